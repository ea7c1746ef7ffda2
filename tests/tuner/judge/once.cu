/* Remainders by subtraction; the loop runs at most once on the task's data. */
#include "evoke_cuda.h"

#define WINDOW 40

extern "C" __global__ void once(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int sum = 0;
    for (int k = 0; k < WINDOW; k++) {
        int v = x[min(i + k, n - 1)];
        while (v >= a)
            v -= a;
        sum = sum * 31 + v;
    }
    y[i] = sum;
}
