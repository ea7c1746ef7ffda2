/* A chain of indices, each clamped to the buffer. */
#include "evoke_cuda.h"

#define STEPS 24

extern "C" __global__ void clamp(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int at = i, sum = 0;
    for (int k = 0; k < STEPS; k++) {
        at = x[at] + a;
        at = at < 0 ? 0 : at;
        at = at >= n ? n - 1 : at;
        sum = sum * 3 + at;
    }
    y[i] = sum;
}
