/* A clipped root with a slope below 0 and a value for NaN: arms that the task's data never take. */
#include "evoke_cuda.h"

extern "C" __global__ void blend(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 40; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    float v = x[i], next = x[i + 1 < n ? i + 1 : i];
    float root = sqrtf(v > 6.0f ? 6.0f : v) + a * next;
    if (v != v)
        root = a;
    else if (v < 0.0f)
        root = v * 0.125f;
    y[i] = v == next ? 2.0f * root : root;
}
