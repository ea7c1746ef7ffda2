/* Stands in for NVIDIA's cuda_runtime_api.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_RUNTIME_API_H
#define KERNELS_INCLUDE_CUDA_CUDA_RUNTIME_API_H
#include "evoke_cuda.h"
#endif
