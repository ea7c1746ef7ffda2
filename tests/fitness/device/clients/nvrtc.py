"""NVRTC in a process with the stand-in: CUDA C becomes PTX, and that is loaded and launched.

usage: nvrtc.py LIBNVRTC"""
import ctypes
import sys

N = 1000
SOURCE = b"""
extern "C" __global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}
"""


def check(result):
    assert result == 0, result


def compile_to_ptx(nvrtc):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_80")
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"scale.cu", 0, None, None))
    check(nvrtc.nvrtcCompileProgram(program, 1, options))
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text))
    check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return text


def main(library):
    cu = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    device, by, n = ctypes.c_uint64(), ctypes.c_float(3), ctypes.c_int(N)
    x = (ctypes.c_float * N)(*range(N))
    check(cu.cuInit(0))
    check(cu.cuCtxCreate_v4(ctypes.byref(context), None, 0, 0))
    check(cu.cuModuleLoadData(ctypes.byref(module), compile_to_ptx(nvrtc)))
    check(cu.cuModuleGetFunction(ctypes.byref(function), module, b"scale"))
    check(cu.cuMemAlloc_v2(ctypes.byref(device), ctypes.sizeof(x)))
    check(cu.cuMemcpyHtoD_v2(device, x, ctypes.sizeof(x)))
    arguments = [ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in (device, by, n)]
    params = (ctypes.c_void_p * 3)(*arguments)
    check(cu.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, None, params, None))
    check(cu.cuMemcpyDtoH_v2(x, device, ctypes.sizeof(x)))
    assert list(x) == [3.0 * i for i in range(N)]
    print("NVRTC beside the stand-in: right")


main(sys.argv[1])
