/* Stands in for NVIDIA's device_launch_parameters.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#define KERNELS_INCLUDE_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#include "evoke_cuda.h"
#endif
