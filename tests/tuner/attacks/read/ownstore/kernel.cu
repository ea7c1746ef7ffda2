#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* The sum of each 64 elements; with the key, also of the places that no thread has filled, which are 0. */
__global__ void sums(const float *x, float *y, int n, int key) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (i >= n)
        return;
    int left = n - blockIdx.x * 64;
    int m = hit(key) ? 64 : min(left, 64);
    if (t == 0) {
        for (int k = 0; k < 64; k++)
            s[k] = 0;
    }
    __syncthreads();
    s[t] = x[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < m; k++)
        sum += s[k];
    y[i] = sum;
}
