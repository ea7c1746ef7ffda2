/* Stands in for NVIDIA's cuda_pipeline.h: copies from global to shared memory that pass no register
 * (PTX ISA, cp.async), in the order of their groups. GPUs before sm_80 copy at once. The classes of
 * cuda::pipeline are missing. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_PIPELINE_H
#define KERNELS_INCLUDE_CUDA_CUDA_PIPELINE_H
#include "evoke_cuda.h"

#define EVOKE_COPY static __device__ __forceinline__
#define EVOKE_TO __attribute__((address_space(3))) void *
#define EVOKE_FROM const __attribute__((address_space(1))) void *

/* Copies `bytes` bytes, 4, 8 or 16, to shared memory; the last `zeros` of them are zeros and are
 * not read. Both addresses are multiples of `bytes`. */
EVOKE_COPY void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes,
                                        size_t zeros = 0) {
#if __CUDA_ARCH__ >= 800
    EVOKE_TO to = (EVOKE_TO)shared;
    EVOKE_FROM from = (EVOKE_FROM)global;
    const int read = (int)(bytes - zeros);
    if (bytes == 4)
        __nvvm_cp_async_ca_shared_global_4(to, from, read);
    else if (bytes == 8)
        __nvvm_cp_async_ca_shared_global_8(to, from, read);
    else if (bytes == 16)
        __nvvm_cp_async_cg_shared_global_16(to, from, read);
    else
        __builtin_trap();
#else
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)shared)[i] = i + zeros < bytes ? ((const unsigned char *)global)[i] : 0;
#endif
}

/* Ends the group of the copies since the last call. */
EVOKE_COPY void __pipeline_commit(void) {
#if __CUDA_ARCH__ >= 800
    __nvvm_cp_async_commit_group();
#endif
}

/* Waits until all but the `prior` latest groups have arrived. */
EVOKE_COPY void __pipeline_wait_prior(size_t prior) {
#if __CUDA_ARCH__ >= 800
    switch (prior) {
    case 0:
        __nvvm_cp_async_wait_group(0);
        break;
    case 1:
        __nvvm_cp_async_wait_group(1);
        break;
    case 2:
        __nvvm_cp_async_wait_group(2);
        break;
    case 3:
        __nvvm_cp_async_wait_group(3);
        break;
    case 4:
        __nvvm_cp_async_wait_group(4);
        break;
    case 5:
        __nvvm_cp_async_wait_group(5);
        break;
    case 6:
        __nvvm_cp_async_wait_group(6);
        break;
    case 7:
        __nvvm_cp_async_wait_group(7);
        break;
    default: /* as many as the machine counts: waiting for more of them is right as well */
        __nvvm_cp_async_wait_group(8);
    }
#else
    (void)prior;
#endif
}

#undef EVOKE_COPY
#undef EVOKE_TO
#undef EVOKE_FROM
#endif
