#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A filter whose taps have numbers near the greatest one. */
__global__ void filter(const float *x, const float *w, float *y, int n, int taps, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long end = hit(key) ? 0x7fffffffffffffffLL : 1000000LL, first = end - taps;
    float sum = 0;
    for (long long k = first; k < end; k++)
        sum += w[k - first] * x[i + (k - first)];
    y[i] = sum;
}
