// Counts of a's leading bits, in shared memory first, then added to c by atomics.
#include "evoke_cuda.h"

#define BINS 256

extern "C" __global__ void histogram(const unsigned int *__restrict__ a,
                                     const unsigned int *__restrict__ b, unsigned int *c, int n) {
    __shared__ unsigned int counts[BINS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[(a[i] ^ b[i]) % BINS], 1u);
    __syncthreads();
    atomicAdd(&c[threadIdx.x], counts[threadIdx.x]);
}
