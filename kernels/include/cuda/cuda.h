/* Stands in for NVIDIA's cuda.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_H
#define KERNELS_INCLUDE_CUDA_CUDA_H
#include "evoke_cuda.h"
#endif
