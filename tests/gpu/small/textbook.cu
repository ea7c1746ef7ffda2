/* By way of shared memory, with a barrier too many. */
#include "evoke_cuda.h"
extern "C" __global__ void scale(const float *x, float *y, int n) {
    __shared__ float part[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    __syncthreads();
    if (i < n)
        y[i] = part[threadIdx.x] * 2.0f;
}
