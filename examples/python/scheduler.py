"""The scheduler of examples/scheduler/ in Python, by ctypes and without a build: opens a bundle, resolves the
layers of a ResNet-18's backward pass and of an LSTM for the GPU at hand, launches each, and compares it
with its baseline.

    python3 scheduler.py net.tar

libevoke-bundle.so.0 and libcuda.so.1 are found by the loader (LD_LIBRARY_PATH). With no GPU,
LD_LIBRARY_PATH=build/standin:build/lib runs it on the stand-in for the driver.
"""
import array
import ctypes as c
import math
import sys

evoke = c.CDLL("libevoke-bundle.so.0")
cuda = c.CDLL("libcuda.so.1")

IN, OUT, INOUT, SCALAR = range(4)  # evoke_argument_kind
BASELINE = 4  # EVOKE_BASELINE


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


def shape_of(**numbers):
    items = (Number * len(numbers))(*[Number(k.encode(), v) for k, v in numbers.items()])
    return Shape(items, len(numbers))


def contents(argument, count):
    """Numbers between -0.5 and 0.5 with zeros among them; indices for kernels that take some."""
    if argument.type == b"f32":
        return array.array("f", [((i * 2654435761) % 2**32 % 1000) / 1000 - 0.5 if i % 3 else 0 for i in range(count)])
    return array.array("i", range(count))


class Work:
    """The buffers of a kernel at a shape."""

    def __init__(self, bundle, kernel, shape):
        arguments = c.c_size_t()
        self.shape, self.buffers, self.outputs = shape, [], []
        must(evoke.evoke_bundle_argument_count(bundle, kernel, c.byref(arguments), c.byref(error)))
        for i in range(arguments.value):
            argument, count, address = Argument(), c.c_uint64(), c.c_uint64()
            must(evoke.evoke_bundle_argument(bundle, kernel, c.c_size_t(i), c.byref(argument), c.byref(error)))
            must(evoke.evoke_bundle_elements(bundle, kernel, c.c_size_t(i), c.byref(shape), c.byref(count),
                                             c.byref(error)))
            if argument.kind == SCALAR:
                continue
            data = contents(argument, count.value).tobytes()
            must(cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(len(data))))
            must(cuda.cuMemcpyHtoD_v2(address, data, c.c_size_t(len(data))))
            self.buffers.append(Buffer(address.value, len(data)))
            if argument.kind != IN:
                self.outputs.append(self.buffers[-1])

    def run(self, choice):
        every = (Buffer * len(self.buffers))(*self.buffers)
        must(evoke.evoke_variant_launch(c.c_void_p(choice.variant), c.byref(self.shape), every,
                                        c.c_size_t(len(every)), None, c.byref(error)))
        out = array.array("f")
        for buffer in self.outputs:
            host = c.create_string_buffer(buffer.bytes)
            must(cuda.cuMemcpyDtoH_v2(host, c.c_uint64(buffer.address), c.c_size_t(buffer.bytes)))
            out.frombytes(host.raw)
        return out

    def free(self):
        for buffer in self.buffers:
            must(cuda.cuMemFree_v2(c.c_uint64(buffer.address)))


def is_right(bundle, kernel, gpu, shape):
    chosen, baseline = Choice(), Choice()
    text = c.create_string_buffer(400)
    for flags, choice in ((0, chosen), (BASELINE, baseline)):
        must(evoke.evoke_bundle_resolve(bundle, kernel, c.byref(gpu), c.byref(shape), c.c_uint(flags),
                                        c.byref(choice), c.byref(error)))
    work = Work(bundle, kernel, shape)
    got, want = work.run(chosen), work.run(baseline)
    work.free()
    print(evoke.evoke_bundle_explain(c.byref(chosen), text, c.c_size_t(len(text))).decode())
    wrong = math.fsum((a - b) ** 2 for a, b in zip(got, want))
    return math.sqrt(wrong / math.fsum(b * b for b in want)) < 1e-5


def main(path):
    bundle, context, gpu = c.c_void_p(), c.c_void_p(), Gpu()
    name = c.create_string_buffer(256)
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(evoke.evoke_bundle_open(path.encode(), c.byref(bundle), c.byref(error)))
    must(evoke.evoke_gpu_current(c.byref(gpu), name, c.byref(error)))
    layers = [(b"bp_data_masked", shape_of(images=1, side=side, cin=maps, cout=maps, taps=9, density=0.5))
              for side, maps in ((56, 64), (28, 128), (14, 256), (7, 512))]
    layers.append((b"sd_lstm_fp", shape_of(B=20, H=650, k=325, x_sigma=1, g_sigma=1)))
    right = sum(is_right(bundle, kernel, gpu, shape) for kernel, shape in layers)
    evoke.evoke_bundle_close(bundle)
    print("all 5 layers are right" if right == 5 else "%d of 5 layers are right" % right)
    return 0 if right == 5 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
