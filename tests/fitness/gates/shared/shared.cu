/* A kernel that callers may run in place: the block reads its elements before any thread writes.
 * FORM 0 is the baseline. Forms 1 to 4 are right only if x and y are two buffers. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif

extern "C" __global__ void shared(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x,
        mirror = 2 * blockIdx.x * blockDim.x + blockDim.x - 1 - i;
#if FORM == 0
#pragma unroll 1
    for (int k = 0; k < 40; k++)
        __syncthreads();
#endif
    float other = mirror < n ? x[mirror] : 0.0f;
#if FORM == 3
    __syncwarp();
#elif FORM != 1
    __syncthreads();
#endif
    if (i >= n)
        return;
#if FORM == 2
    y[i] = other;
    y[i] += x[i] * 2.0f;
#elif FORM == 4
    y[i] = x[i] * 2.0f;
    y[i] = other + x[i] * 2.0f;
#elif FORM == 11
    float own = x[i];
    y[i] = __fmaf_rn(own, 2.0f, other);
#else
    y[i] = other + x[i] * 2.0f;
#endif
}
