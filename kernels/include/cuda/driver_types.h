/* Stands in for NVIDIA's driver_types.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_DRIVER_TYPES_H
#define KERNELS_INCLUDE_CUDA_DRIVER_TYPES_H
#include "evoke_cuda.h"
#endif
