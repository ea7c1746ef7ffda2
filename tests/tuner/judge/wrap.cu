/* A sum of products that counts its carries, and a hash beside it. */
#include "evoke_cuda.h"

#define WINDOW 40

extern "C" __global__ void wrap(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    unsigned sum = 0, hash = (unsigned)a;
    int carries = 0;
    for (int k = 0; k < WINDOW; k++) {
        unsigned v = (unsigned)x[min(i + k, n - 1)], before = sum;
        sum += v * (unsigned)(k + 1);
        if (sum < before)
            carries++;
        hash = hash * 33u + v;
    }
    y[i] = (int)(sum ^ hash) + carries * 7;
}
