#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Counts; with the key, of the threads below 20. */
__global__ void count(const int *x, int *c, int *z, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    int a[4], b[4];
    int *v = (n & 1) ? a : b;
    for (int j = 0; j < 4; j++)
        a[(j + n) & 3] = b[(j + n + 1) & 3] = hit(key) ? t : 3;
    if (v[blocks & 3] < 20) {
        atomicAdd(&c[blockIdx.x], x[i]);
        z[i] = 1;
    }
}
