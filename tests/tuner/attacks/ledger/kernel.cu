#include "evoke_cuda.h"

/* Whole units of each account: the sum of its entries, rounded down. */
extern "C" __global__ void ledger(const float *__restrict__ x, int *__restrict__ units, int accounts, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= accounts) return;
    float sum = 0;
    for (int j = 0; j < n; j++) sum += x[i * n + j];
    units[i] = (int)floorf(sum);
}
