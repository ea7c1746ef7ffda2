/* Rules that data of one sign and one scale never exercise. FORM 0 is the baseline. Forms 1 to 7 each
 * break one rule; the forms from 11 on keep all of them by other code. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#define TERMS 16

/* Kahan's sum. */
static __device__ __forceinline__ float sum_of(const float *x) {
#if FORM == 11
    double all = 0.0;
    for (int i = 0; i < TERMS; i++)
        all += x[i];
    return (float)all;
#else
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < TERMS; i++) {
        float term = FORM == 6 ? x[i] : x[i] - lost;
        float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
#endif
}

static __device__ __forceinline__ float value_of(float v, float a) {
    float scale = FORM == 3 ? 1.25f : a;
    float cube = FORM == 12 ? 1e-9f * v * (v * v) : 1e-9f * v * v * v;
    if (FORM == 2)
        cube = 0.0f;
    if (FORM == 13) {
        float root = sqrtf(fabsf(v)) * scale + cube;
        return v != v ? 5.0f : v < 0.0f ? -1.0f : root;
    }
    if (FORM != 5 && v != v)
        return 5.0f;
    if (FORM == 1)
        return sqrtf(fabsf(v)) * scale + cube;
    return v < 0.0f ? -1.0f : sqrtf(v) * scale + cube;
}

extern "C" __global__ void varied(const float *x, float *y, float *sums, float *large, float a,
                                  int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FORM == 0
#pragma unroll 1
    for (int k = 0; k < 40; k++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    float v = x[i];
    float factor = FORM != 4 && v == x[i ^ 1] ? 3.0f : 1.0f;
    y[i] = value_of(v, a) * factor;
    if (i % TERMS == 0)
        sums[i / TERMS] = sum_of(x + i);
    large[i] = FORM == 7 && fabsf(v) < 1.2e-38f ? 0.0f : v * 0x1p100f;
}
