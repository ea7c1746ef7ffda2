/* Kernels of the device's own: one that holds the stream while it fills, and one that leaves stamps
 * of the clocks. */
#include "fitness/cuda/cuda.h"

#include <stdlib.h>

#define TABLE_BYTES (CUDA_STAMPS * sizeof(cuda_stamp))

/* hold: one thread waits until the host writes to the flag. stamp: each block writes its SM's
 * clock, and the time, to the SM's place. */
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
                          "st.global.v2.u64 [%rd2], {%rd4, %rd5};\nret;\n}\n";

CUresult cuda_load_own(cuda_device *c) {
    int blocks = 0;
    CUresult result = c->cu.cuModuleLoadDataEx(&c->own_module, OWN, 0, NULL, NULL);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuModuleGetFunction(&c->hold, c->own_module, "evoke_hold");
    if (result == CUDA_SUCCESS)
        result = c->cu.cuModuleGetFunction(&c->stamp, c->own_module, "evoke_stamp");
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemAlloc_v2(&c->stamps, 2 * TABLE_BYTES);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                            c->ordinal);
    c->stamp_blocks = (unsigned)blocks;
    return result;
}

CUresult cuda_hold(const cuda_device *c) {
    void *params[] = {(void *)(uintptr_t)&c->flag_seen};
    *c->flag = 0;
    return c->cu.cuLaunchKernel(c->hold, 1, 1, 1, 1, 1, 1, 0, c->stream, params, NULL);
}

void cuda_let_go(const cuda_device *c) {
    *c->flag = 1;
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
        *mhz = cuda_stamps_mhz(tables, tables + CUDA_STAMPS, CUDA_STAMPS);
    free(tables);
    return result;
}
