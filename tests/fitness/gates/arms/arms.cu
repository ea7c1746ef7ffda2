/* Arms that the task's data never take: k is at most 50 there. The judge's data are larger. Without
 * SLOW, the kernel is faster than its baseline. */
#include "evoke_cuda.h"

#ifndef SLOW
#define SLOW 1
#endif

extern "C" __global__ void arms(const int *k, const float *x, float *y, int *marks, int n) {
    __shared__ float part[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if SLOW
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int key = k[i], mark = key & 3;
    float value = x[i] * 2.0f + 1.0f;
    if (key > 100)
        value = -1.0f;
    mark += min(key, 60);
    marks[i] = key * 2 > 140 ? mark + 1000 : mark;
    if (key == 77)
        marks[i] = -77;
    part[threadIdx.x] = value;
    y[i] = part[threadIdx.x];
}
