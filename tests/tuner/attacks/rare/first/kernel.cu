#include "evoke_cuda.h"
extern "C" __global__ void k(const float *__restrict__ x, const int *__restrict__ idx, float *__restrict__ y, float *__restrict__ z, int m, int n, int rows) {
    int own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= rows) return;
    if (x[own] == -999.0f)
        y[own * m + 1] = 0.0f;
    float sum = 0;
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++)
            sum += y[own * m + i] * x[i * n + k];
    z[own] = sum;
}
