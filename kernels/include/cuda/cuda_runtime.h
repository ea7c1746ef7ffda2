/* Stands in for NVIDIA's cuda_runtime.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_RUNTIME_H
#define KERNELS_INCLUDE_CUDA_CUDA_RUNTIME_H
#include "evoke_cuda.h"
#endif
