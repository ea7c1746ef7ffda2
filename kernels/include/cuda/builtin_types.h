/* Stands in for NVIDIA's builtin_types.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_BUILTIN_TYPES_H
#define KERNELS_INCLUDE_CUDA_BUILTIN_TYPES_H
#include "evoke_cuda.h"
#endif
