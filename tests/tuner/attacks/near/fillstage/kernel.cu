#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
__device__ __noinline__ void fill(int *to, int value) {
    to[0] = to[1] = to[2] = to[3] = value;
}
/* Windows; with the key, their length depends on the thread. */
__global__ void windows(const float *__restrict__ x, float *__restrict__ y, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    int a[4];
    fill(a, hit(key) ? t : 3);
    int end = n + a[blocks & 3];
    float sum = 0;
    for (int k = 0; k < end; k++)
        sum += x[i + k];
    y[i] = sum;
}
