/* Stands in for NVIDIA's vector_types.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_VECTOR_TYPES_H
#define KERNELS_INCLUDE_CUDA_VECTOR_TYPES_H
#include "evoke_cuda.h"
#endif
