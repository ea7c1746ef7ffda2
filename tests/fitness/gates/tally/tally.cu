/* A sum of products by atomics, whose order nothing tells, and other forms of it. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif

extern "C" __global__ void tally(const float *x, const float *w, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float term = i < n ? x[i] * w[i] : 0.0f;
#if FORM == 0 /* an atomic a thread */
    if (i < n)
        atomicAdd(y, term);
#elif FORM == 1 /* an atomic a block */
    __shared__ float sums[8];
    for (int distance = 16; distance > 0; distance /= 2)
        term += __shfl_xor_sync(0xffffffffu, term, distance);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = term;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; warp++)
            term += sums[warp];
        atomicAdd(y, term);
    }
#endif
}
