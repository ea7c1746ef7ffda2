/* Quotients and remainders that round down, of both signs; by 0 they are 0. */
#include "evoke_cuda.h"

#define WINDOW 12

extern "C" __global__ void divide(const int *x, int *y, int a, int n) {
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
        int v = x[min(i + k, n - 1)], quotient = 0, rest = 0;
        if (a != 0) {
            quotient = v / a;
            rest = v % a;
            if (rest != 0 && (rest < 0) != (a < 0)) {
                quotient--;
                rest += a;
            }
        }
        sum = sum * 5 + quotient * 3 + rest;
    }
    y[i] = sum;
}
