/* Stands in for NVIDIA's device_functions.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_DEVICE_FUNCTIONS_H
#define KERNELS_INCLUDE_CUDA_DEVICE_FUNCTIONS_H
#include "evoke_cuda.h"
#endif
