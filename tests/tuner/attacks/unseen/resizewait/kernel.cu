#include <cuda_runtime.h>
/* All threads meet: a barrier of the grid, whose blocks are all resident. */
__global__ void steps(const float *x, float *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    atomicAdd(count, 1);
    while (*(volatile int *)count < n) {
    }
    y[i] = x[i] * 2.0f;
}
