/* The length of the run of equal keys behind each key, and whether the key is its head. */
#include "evoke_cuda.h"

extern "C" __global__ void head(const int *x, int *y, int a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int run = 1, at = i;
    while (at > 0 && x[at - 1] == x[at]) {
        run++;
        at--;
    }
    bool head = i == 0 || x[i - 1] != x[i];
    y[i] = run * 4 + (head ? 2 : 0) + (x[at] > a ? 1 : 0);
}
