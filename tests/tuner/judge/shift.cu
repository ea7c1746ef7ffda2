/* Shifts of both kinds and a rotation, by a variable number of places. */
#include "evoke_cuda.h"

#define WINDOW 40

extern "C" __global__ void shift(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int sum = 0, places = a & 31;
    for (int k = 0; k < WINDOW; k++) {
        int v = x[max(i - k, 0)];
        unsigned u = (unsigned)v, turned = u << places | u >> (-places & 31);
        int halved = v >> places;
        sum ^= (int)turned + halved + (int)(u >> 1);
    }
    y[i] = sum;
}
