"""Numba's driver layer on the stand-in: a PTX text loaded and launched, the linker, a failed load,
memory that the host sees, a callback, and the error of a kernel that writes to nowhere.

usage: numba_layer.py KERNELS.ptx"""
import ctypes
import sys

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import devices, driver

N = 1000


def launch(function, arguments, stream=0):
    driver.launch_kernel(function.handle, 4, 1, 1, 256, 1, 1, 0, stream, arguments)


def add(context, function):
    a = np.arange(N, dtype=np.float32)
    b = a * 2
    arrays = [cuda.to_device(x) for x in (a, b, np.zeros_like(a))]
    arguments = [x.device_ctypes_pointer for x in arrays] + [ctypes.c_int(N)]
    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    told = []
    begin.record(stream)
    launch(function, arguments, stream.handle)
    end.record(stream)
    stream.add_callback(lambda *said: told.append(said[1]), None)
    stream.synchronize()
    assert cuda.event_elapsed_time(begin, end) > 0
    assert told == [0]
    assert (arrays[2].copy_to_host() == a + b).all()
    assert context.get_active_blocks_per_multiprocessor(function, 256, 0) > 0


def main(path):
    with open(path, encoding="ascii") as file:
        text = file.read()
    context = devices.get_context()
    module = context.create_module_ptx(text)
    assert b"vector_add" in module.info_log
    add(context, module.get_function("vector_add"))

    linker = driver.Linker.new(cc=context.device.compute_capability)
    linker.add_ptx(text.encode(), "kernels")
    image, size = linker.complete()
    assert size > 0
    add(context, context.create_module_image(image).get_function("vector_add"))

    try:
        context.create_module_ptx(".version 8.0\n.target sm_80\n.address_size 64\nwhat is this\n")
        raise AssertionError("nonsense was loaded")
    except driver.CudaAPIError as error:
        assert error.code == 218 and "line 4" in str(error), error

    for array in (cuda.mapped_array(10, np.float32), cuda.managed_array(10, np.float32)):
        array[:] = 3
        assert array.sum() == 30

    nowhere = ctypes.c_void_p(64)
    launch(module.get_function("vector_add"), [nowhere] * 3 + [ctypes.c_int(N)])
    try:
        context.synchronize()
        raise AssertionError("an access to nowhere went unnoticed")
    except driver.CudaAPIError as error:
        assert error.code == 700, error
    print("Numba's driver layer: right")


main(sys.argv[1])
