// C = A B for square matrices, one element a thread, straight from global memory.
#include "evoke_cuda.h"

extern "C" __global__ void sgemm_naive(const float *__restrict__ a, const float *__restrict__ b,
                                       float *__restrict__ c, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
