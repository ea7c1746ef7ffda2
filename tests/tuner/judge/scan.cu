/* Running sums of each block that begin anew at every 0, by doubling in shared memory. */
#include "evoke_cuda.h"

#define BLOCK 64

extern "C" __global__ void scan(const int *x, int *y, int a, int n) {
    __shared__ int sums[BLOCK], heads[BLOCK];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    int v = i < n ? x[i] : 0, t = threadIdx.x;
    sums[t] = v;
    heads[t] = v == 0 ? 1 : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        int sum = sums[t], head = heads[t];
        if (t >= step && head == 0) {
            sum += sums[t - step];
            head = heads[t - step];
        }
        __syncthreads();
        sums[t] = sum;
        heads[t] = head;
        __syncthreads();
    }
    if (i < n)
        y[i] = sums[t] * a + heads[t];
}
