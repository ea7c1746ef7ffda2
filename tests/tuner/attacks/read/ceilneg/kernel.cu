#include <cuda_runtime.h>
/* A copy of what the grid has. */
__global__ void copy(const float *x, float *y, int n, int off) {
    int i = blockIdx.x * 64 + threadIdx.x;
    y[i] = x[i] * 2.0f + (float)(n - off);
}
