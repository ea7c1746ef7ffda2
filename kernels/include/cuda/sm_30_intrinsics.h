/* Stands in for NVIDIA's sm_30_intrinsics.h: evoke_cuda.h has what device code uses. */
#ifndef KERNELS_INCLUDE_CUDA_SM_30_INTRINSICS_H
#define KERNELS_INCLUDE_CUDA_SM_30_INTRINSICS_H
#include "evoke_cuda.h"
#endif
