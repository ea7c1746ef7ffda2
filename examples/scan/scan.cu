#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 128
#endif

/* The inclusive scan y[i] = x[0] + ... + x[i] in three launches: each block scans a tile of BLOCK
 * elements and leaves its sum, one block scans the sums, and each block adds what is before it
 * (Blelloch, Prefix Sums and Their Applications, 1990). */
static __device__ float scan_block(float v) {
    __shared__ float s[BLOCK];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < BLOCK; d *= 2) {
        float before = (int)threadIdx.x >= d ? s[threadIdx.x - d] : 0;
        __syncthreads();
        s[threadIdx.x] += before;
        __syncthreads();
    }
    return s[threadIdx.x];
}

__global__ void scan_tiles(const float *x, float *y, float *sums, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float v = scan_block(i < n ? x[i] : 0);
    if (i < n)
        y[i] = v;
    if (threadIdx.x == BLOCK - 1)
        sums[blockIdx.x] = v;
}

__global__ void scan_sums(float *sums, int tiles) {
    __shared__ float last;
    float before = 0;
    for (int first = 0; first < tiles; first += BLOCK) {
        int i = first + threadIdx.x;
        float v = scan_block(i < tiles ? sums[i] : 0);
        if (threadIdx.x == BLOCK - 1)
            last = v;
        if (i < tiles)
            sums[i] = before + v;
        __syncthreads();
        before += last;
        __syncthreads();
    }
}

__global__ void add_sums(float *y, const float *sums, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n)
        y[i] += sums[blockIdx.x - 1];
}
