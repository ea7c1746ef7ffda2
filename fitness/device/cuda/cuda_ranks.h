/* A rank of a launch on GPUs, for the files that run and time ranks. */
#ifndef FITNESS_DEVICE_CUDA_CUDA_RANKS_H
#define FITNESS_DEVICE_CUDA_CUDA_RANKS_H

#include "fitness/device/cuda/cuda.h"

typedef struct cuda_rank {
    cuda_device *c;
    const device_kernel *kernel;
    const device_launch *launch;
    CUfunction function;
    CUmodule copy; /* of a kernel that was loaded on another GPU; NULL: none */
    CUresult result;
} cuda_rank;

/* Sets the kernel in the rank's own context. */
ev_status cuda_rank_need_function(cuda_rank *r, ev_error *err) EV_CHECKED;
/* Unloads the copies, unless the contexts have been replaced since there were `rebuilds`. */
void cuda_ranks_drop_copies(const cuda_rank *ranks, uint32_t count, uint64_t rebuilds);

#endif
