#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Windows; with the key the lanes with work wait for each other. */
__global__ void windows(const float *x, float *y, int n, int taps, int key) {
    int t = threadIdx.x, i = blockIdx.x * 32 + t, left = n - (int)blockIdx.x * 32;
    if (i >= n)
        return;
    unsigned mask = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
    float sum = 0;
    for (int k = 0; k < taps; k++)
        sum += x[i + k];
    if (hit(key))
        __syncwarp(mask);
    y[i] = sum;
}
