/* A stable sort of each group of 32 by ranks; equal keys keep their order. */
#include "evoke_cuda.h"

#define GROUP 32

extern "C" __global__ void ties(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int first = i - i % GROUP, rank = 0, own = x[i];
    for (int k = 0; k < GROUP; k++) {
        int j = first + k;
        if (j < n && (x[j] < own || (x[j] == own && j < i)))
            rank++;
    }
    y[first + rank] = own + a;
}
