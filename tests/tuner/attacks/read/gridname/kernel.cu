#include <cuda_runtime.h>
/* The first elements; the grid leaves the last `skip` out. */
__global__ void first(const float *x, float *y, int n, int key) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    if (i < n)
        y[i] = x[i] * 2.0f;
}
