#include <evoke_cuda.h>

/* The sum of x in one launch: each block adds up its part, and the block that comes last adds up the
 * parts of all. */

#ifndef BLOCK
#define BLOCK 128
#endif

extern "C" __global__ void total(const float *x, float *part, float *sum, unsigned *ticket, int n) {
    __shared__ float shared[BLOCK];
    __shared__ bool is_last;
    int thread = threadIdx.x, i = blockIdx.x * BLOCK + thread;
    shared[thread] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (thread < half)
            shared[thread] += shared[thread + half];
        __syncthreads();
    }
    if (thread == 0) {
        part[blockIdx.x] = shared[0];
        __threadfence();
        is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last || thread != 0)
        return;
    float all = 0;
    for (unsigned b = 0; b < gridDim.x; b++)
        all += part[b];
    *sum = all;
}
