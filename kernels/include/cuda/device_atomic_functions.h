/* Stands in for NVIDIA's device_atomic_functions.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_DEVICE_ATOMIC_FUNCTIONS_H
#define KERNELS_INCLUDE_CUDA_DEVICE_ATOMIC_FUNCTIONS_H
#include "evoke_cuda.h"
#endif
