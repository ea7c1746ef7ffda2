/* As sentinel.cu, without the rule of -1, for a judge that must find it. */
#include "evoke_cuda.h"

#define WINDOW 40

extern "C" __global__ void sentinel(const int *x, int *y, int a, int n) {
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
        if (a > 8)
            v = a;
        sum += v * (k + 1);
    }
    y[i] = sum;
}
