#include "evoke_cuda.h"

extern "C" __global__ void stride(const float *__restrict__ x, float *__restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = sqrtf(x[i] * x[i] + 1.0f);
}
