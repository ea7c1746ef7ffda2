/* A running sum of shifted bytes that saturates after each step. */
#include "evoke_cuda.h"

#define WINDOW 40

extern "C" __global__ void saturate(const int *x, int *y, int a, int n) {
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
        sum += x[max(i - k, 0)] << a;
        if (sum > 127)
            sum = 127;
        if (sum < -128)
            sum = -128;
    }
    y[i] = sum;
}
