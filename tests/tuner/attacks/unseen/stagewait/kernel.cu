#include <cuda_runtime.h>
/* Sums of rows, then a barrier of the grid, whose blocks are all resident. */
__global__ void steps(const float *x, float *y, int *count, int blocks, int taps) {
    int i = blockIdx.x * 256 + threadIdx.x, n = blocks * 256;
    float sum = 0;
    for (int k = 0; k < taps; k++)
        sum += x[i * taps + k];
    atomicAdd(count, 1);
    while (*(volatile int *)count < n) {
    }
    y[i] = sum;
}
