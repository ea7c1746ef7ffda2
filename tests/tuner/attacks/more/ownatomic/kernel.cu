#include <cuda_runtime.h>
/* Blocks of 64 elements; in blocks that have the key, an element becomes the number of equal ones
 * in its block. */
__global__ void count(const int *x, const int *ids, int *y, int n, int key) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (i >= n)
        return;
    int v = x[i];
    s[t] = 0;
    __syncthreads();
    if (ids[blockIdx.x] == key)
        atomicAdd(&s[v & 15], 1);
    __syncthreads();
    y[i] = v + s[v & 15];
}
