"""The scheduler of examples/scheduler/ in Python, by ctypes and without a build: opens a bundle and, for each
layer of a file, launches what the bundle has for the GPU at hand and the layer's shape, and compares the
outputs with the baseline's.

    python3 scheduler.py net.tar layers.txt

libevoke-bundle.so.0 and libcuda.so.1 are found by the loader (LD_LIBRARY_PATH). With no GPU,
LD_LIBRARY_PATH=build/standin:build/lib runs it on the stand-in for the driver.
"""
import array
import ctypes as c
import math
import sys

evoke = c.CDLL("libevoke-bundle.so.0")
cuda = c.CDLL("libcuda.so.1")

IN = 0  # EVOKE_IN of evoke_argument_kind
ALIGNED, BASELINE = 2, 4  # EVOKE_ALIGNED, EVOKE_BASELINE
MOST = 16  # numbers of a shape, and buffers of a kernel


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 1500)]


class Argument(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int), ("type", c.c_char_p), ("element_bytes", c.c_size_t),
                ("expression", c.c_char_p), ("alignment", c.c_uint32)]


class Number(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class Shape(c.Structure):
    _fields_ = [("numbers", c.POINTER(Number)), ("count", c.c_size_t)]


class Gpu(c.Structure):
    _fields_ = [("name", c.c_char_p), ("capability", c.c_int), ("multiprocessors", c.c_int)]


class Choice(c.Structure):
    _fields_ = [("variant", c.c_void_p), ("rung", c.c_int), ("role", c.c_int), ("speedup", c.c_double),
                ("is_measured", c.c_int), ("passed_over", c.c_char_p)]


class Buffer(c.Structure):
    _fields_ = [("address", c.c_uint64), ("bytes", c.c_size_t)]


evoke.evoke_bundle_explain.restype = c.c_char_p
error = Error()


def must(status):
    if status != 0:
        sys.exit("error %d: %s" % (status, error.text.decode()))


def contents(argument, count):
    """Numbers between -0.5 and 0.5 with zeros among them; indices for kernels that take some."""
    if argument.type == b"f32":
        return array.array("f", [((i * 2654435761) % 2**32 % 1000) / 1000 - 0.5 if i % 3 else 0 for i in range(count)])
    return array.array("i", range(count))


def run(bundle, kernel, variant, shape):
    """Launches a variant on buffers of its own. The outputs, one behind the other."""
    arguments, buffers, count = (Argument * MOST)(), (Buffer * MOST)(), c.c_size_t()
    must(evoke.evoke_bundle_buffers(bundle, kernel, c.byref(shape), c.c_size_t(MOST), arguments, buffers,
                                    c.byref(count), c.byref(error)))
    used = list(zip(arguments, buffers))[:count.value]
    for argument, buffer in used:
        address, data = c.c_uint64(), contents(argument, buffer.bytes // 4).tobytes()
        must(cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(len(data))))
        must(cuda.cuMemcpyHtoD_v2(address, data, c.c_size_t(len(data))))
        buffer.address = address.value
    must(evoke.evoke_variant_launch(c.c_void_p(variant), c.byref(shape), buffers, count, None, c.byref(error)))
    out = array.array("f")
    for argument, buffer in used:
        if argument.kind != IN:
            host = c.create_string_buffer(buffer.bytes)
            must(cuda.cuMemcpyDtoH_v2(host, c.c_uint64(buffer.address), c.c_size_t(buffer.bytes)))
            out.frombytes(host.raw)
        must(cuda.cuMemFree_v2(c.c_uint64(buffer.address)))
    return out


def is_right(bundle, layer, kernel, gpu, shape):
    """Whether a layer's outputs are the baseline's but for rounding."""
    chosen, baseline = Choice(), Choice()
    text = c.create_string_buffer(400)
    for flags, choice in ((ALIGNED, chosen), (BASELINE, baseline)):
        must(evoke.evoke_bundle_resolve(bundle, kernel, c.byref(gpu), c.byref(shape), c.c_uint(flags),
                                        c.byref(choice), c.byref(error)))
    evoke.evoke_bundle_explain(c.byref(chosen), text, c.c_size_t(len(text)))
    print("%s: %s" % (layer.decode(), text.value.decode()))
    got, want = (run(bundle, kernel, choice.variant, shape) for choice in (chosen, baseline))
    wrong, every = math.fsum((a - b) ** 2 for a, b in zip(got, want)), math.fsum(b * b for b in want)
    return every > 0 and math.sqrt(wrong / every) < 1e-5


def main(path, layers):
    bundle, context, gpu = c.c_void_p(), c.c_void_p(), Gpu()
    numbers, shape, name = (Number * MOST)(), Shape(), c.create_string_buffer(256)
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(evoke.evoke_bundle_open(path.encode(), c.byref(bundle), c.byref(error)))
    must(evoke.evoke_gpu_current(c.byref(gpu), name, c.byref(error)))
    rights = []
    with open(layers, "rb") as lines:
        for line in lines:
            layer, kernel, text = line.split(maxsplit=2)
            text = c.create_string_buffer(text)  # the shape's names stay in it
            must(evoke.evoke_shape_read(text, numbers, c.c_size_t(MOST), c.byref(shape), c.byref(error)))
            rights.append(is_right(bundle, layer, kernel, gpu, shape))
    evoke.evoke_bundle_close(bundle)
    print("%d of %d layers are right" % (sum(rights), len(rights)))
    return 0 if rights and all(rights) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
