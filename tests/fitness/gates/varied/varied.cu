/* Rules that data of one sign and one scale never exercise. FORM 0 is the baseline. Forms 1 to 10
 * each break one rule; the forms from 11 on keep all of them by other code. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#define TERMS 16

static __device__ __forceinline__ float finite(float v) {
    return fabsf(v) <= 1e30f ? v : 0.0f;
}

/* Neumaier's sum of the finite terms. */
static __device__ __forceinline__ float sum_of(const float *x) {
#if FORM == 11
    double all = 0.0;
    for (int i = 0; i < TERMS; i++)
        all += finite(x[i]);
    return (float)all;
#elif FORM == 10
    float sum = 0.0f;
    for (int i = 0; i < TERMS; i += 2)
        sum += finite(x[i]) + finite(x[i + 1]);
    return sum;
#else
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < TERMS; i++) {
        float term = finite(x[i]), next = sum + term;
        if (FORM == 8)
            lost += (sum - next) + term;
        else if (FORM == 9)
            lost += (sum + term) - next;
        else
            lost += fabsf(sum) >= fabsf(term) ? (sum - next) + term : (term - next) + sum;
        sum = next;
    }
    return FORM == 6 ? sum : sum + lost;
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

extern "C" __global__ void varied(const float *x, float *y, float *sums, float *inverse, float a,
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
    inverse[i] = 1e-30f / (FORM == 7 && fabsf(v) < 1.2e-38f ? 0.0f : v);
}
