/* Plain sums, a thread a row. FORM 0 is the baseline. Forms 1 and 2 are less exact than any order
 * of the terms; 12 and the forms from 20 on, which have FORM - 20 partial sums, add in other orders. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#define LUCKY 0

static __device__ __forceinline__ float partial(const float *x, int from, int step, int k) {
    float sum = 0.0f;
    for (int i = from; i < k; i += step)
        sum += x[i];
    return sum;
}

static __device__ __forceinline__ float sum_of(const float *x, int k) {
#if FORM == 1
    /* A large partial sum keeps its upper 12 bits. */
    float sum = 0.0f;
    for (int i = 0; i < k; i++) {
        sum += x[i];
        if (fabsf(sum) > 1024.0f)
            sum = __int_as_float(__float_as_int(sum) & ~0xfff);
    }
    return sum;
#elif FORM == 2
    /* The last term of a sum with a large first term is left out. */
    return partial(x, 0, 1, fabsf(x[0]) > 1024.0f ? k - 1 : k);
#elif FORM >= 20
    float sum = 0.0f;
    for (int lane = 0; lane < FORM - 20; lane++)
        sum += partial(x, lane, FORM - 20, k);
    return sum;
#elif FORM == 12
    float sum = 0.0f;
    for (int i = k; i-- > 0;)
        sum += x[i];
    return sum;
#else
    /* As by luck, sums with an even first term are exact. */
    double exact = 0.0;
    for (int i = 0; i < k; i++)
        exact += x[i];
    return (__float_as_int(x[0]) & 1) == LUCKY ? (float)exact : partial(x, 0, 1, k);
#endif
}

extern "C" __global__ void sums(const float *x, float *y, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FORM == 0
#pragma unroll 1
    for (int turn = 0; turn < 200; turn++)
        __syncthreads();
#endif
    if (i < n)
        y[i] = sum_of(x + i * k, k);
}
