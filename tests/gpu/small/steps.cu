/* y = 2 x in launches: a copy, an addition in a buffer that changes places with the first, a copy. */
#include "evoke_cuda.h"
extern "C" __global__ void copy(const float *from, float *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}
extern "C" __global__ void add(const float *a, const float *x, float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = a[i] + x[i];
}
