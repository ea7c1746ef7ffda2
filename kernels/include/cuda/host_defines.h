/* Stands in for NVIDIA's host_defines.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_HOST_DEFINES_H
#define KERNELS_INCLUDE_CUDA_HOST_DEFINES_H
#include "evoke_cuda.h"
#endif
