/* Kernels of the device's own: one that holds the stream while it fills, one that leaves stamps of
 * the clocks, and one that measures in what steps the timer counts. */
#include "fitness/device/cuda/cuda.h"

#include <math.h>
#include <stdlib.h>

#define TABLE_BYTES (CUDA_STAMPS * sizeof(cuda_stamp))

/* hold: one thread waits until the host writes to the flag. stamp: each block writes its SM's
 * clock, and the time, to the SM's place. grain: one thread reads the timer until it has changed 17
 * times, and writes the nanoseconds between the first change and the last, and the changes. */
static const char OWN[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry evoke_hold(.param .u64 flag)\n{\n"
                          ".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [flag];\ncvta.to.global.u64 %rd2, %rd1;\n"
                          "AGAIN:\nld.volatile.global.u32 %r1, [%rd2];\n"
                          "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\nret;\n}\n"
                          ".visible .entry evoke_stamp(.param .u64 table, .param .u32 places)\n{\n"
                          ".reg .pred %p<2>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<6>;\n"
                          "mov.u32 %r1, %smid;\nld.param.u32 %r2, [places];\n"
                          "setp.ge.u32 %p1, %r1, %r2;\n@%p1 ret;\n"
                          "ld.param.u64 %rd1, [table];\ncvta.to.global.u64 %rd2, %rd1;\n"
                          "mul.wide.u32 %rd3, %r1, 16;\nadd.u64 %rd2, %rd2, %rd3;\n"
                          "mov.u64 %rd4, %clock64;\nmov.u64 %rd5, %globaltimer;\n"
                          "st.global.v2.u64 [%rd2], {%rd4, %rd5};\nret;\n}\n"
                          ".visible .entry evoke_grain(.param .u64 out)\n{\n"
                          ".reg .pred %p<3>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<6>;\n"
                          "ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd1, %rd1;\n"
                          "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\n"
                          "mov.u64 %rd2, %globaltimer;\nmov.u64 %rd3, %rd2;\n"
                          "AGAIN:\nmov.u64 %rd4, %globaltimer;\nadd.u32 %r2, %r2, 1;\n"
                          "setp.eq.u64 %p1, %rd4, %rd2;\n@%p1 bra NEXT;\n"
                          "setp.eq.u32 %p2, %r1, 0;\n@%p2 mov.u64 %rd3, %rd4;\n"
                          "mov.u64 %rd2, %rd4;\nadd.u32 %r1, %r1, 1;\n"
                          "NEXT:\nsetp.lt.u32 %p1, %r1, 17;\n"
                          "setp.lt.and.u32 %p1, %r2, 1048576, %p1;\n@%p1 bra AGAIN;\n"
                          "sub.u64 %rd4, %rd2, %rd3;\ncvt.u64.u32 %rd5, %r1;\n"
                          "st.global.v2.u64 [%rd1], {%rd4, %rd5};\nret;\n}\n";

CUresult cuda_load_own(cuda_device *c) {
    int blocks = 0;
    CUresult result = c->cu.cuModuleLoadDataEx(&c->own_module, OWN, 0, NULL, NULL);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuModuleGetFunction(&c->hold, c->own_module, "evoke_hold");
    if (result == CUDA_SUCCESS)
        result = c->cu.cuModuleGetFunction(&c->stamp, c->own_module, "evoke_stamp");
    if (result == CUDA_SUCCESS)
        result = c->cu.cuModuleGetFunction(&c->grain, c->own_module, "evoke_grain");
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemAlloc_v2(&c->stamps, 2 * TABLE_BYTES);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                            c->ordinal);
    c->stamp_blocks = (unsigned)blocks;
    return result;
}

CUresult cuda_launch_hold(const cuda_device *c) {
    void *params[] = {(void *)(uintptr_t)&c->flag_seen};
    return c->cu.cuLaunchKernel(c->hold, 1, 1, 1, 1, 1, 1, 0, c->stream, params, NULL);
}

CUresult cuda_leave_stamps(const cuda_device *c, unsigned which) {
    CUdeviceptr table = c->stamps + which * TABLE_BYTES;
    unsigned places = CUDA_STAMPS;
    void *params[] = {&table, &places};
    CUresult result = CUDA_SUCCESS;
    if (which == 0)
        result = c->cu.cuMemsetD8Async(c->stamps, 0, 2 * TABLE_BYTES, c->stream);
    return result == CUDA_SUCCESS ? c->cu.cuLaunchKernel(c->stamp, c->stamp_blocks, 1, 1, 1, 1, 1,
                                                         0, c->stream, params, NULL)
                                  : result;
}

CUresult cuda_stamped_mhz(const cuda_device *c, double *mhz) {
    cuda_stamp *tables = malloc(2 * TABLE_BYTES);
    *mhz = 0;
    if (tables == NULL)
        return CUDA_SUCCESS; /* not known */
    CUresult result = c->cu.cuMemcpyDtoH_v2(tables, c->stamps, 2 * TABLE_BYTES);
    if (result == CUDA_SUCCESS)
        *mhz = cuda_stamps_mhz(tables, tables + CUDA_STAMPS, CUDA_STAMPS, c->timer_grain);
    free(tables);
    return result;
}

/* Waits: the stream is not held. */
static CUresult measure_grain(cuda_device *c) {
    uint64_t seen[2] = {0};
    void *params[] = {&c->stamps};
    CUresult result = c->cu.cuLaunchKernel(c->grain, 1, 1, 1, 1, 1, 1, 0, c->stream, params, NULL);
    if (result == CUDA_SUCCESS)
        result = cuda_wait(c);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemcpyDtoH_v2(seen, c->stamps, sizeof seen);
    c->timer_grain = seen[1] > 1 ? (double)seen[0] / (double)(seen[1] - 1) : INFINITY;
    return result;
}

CUresult cuda_warm_own(cuda_device *c) {
    if (c->timer_grain > 0)
        return CUDA_SUCCESS;
    *c->flag = 1;
    CUresult result = cuda_launch_hold(c);
    for (unsigned i = 0; i < 2 && result == CUDA_SUCCESS; i++)
        result = cuda_leave_stamps(c, i);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemsetD8Async(c->flush, 0, c->flush_bytes, c->stream);
    return result == CUDA_SUCCESS ? measure_grain(c) : result;
}
