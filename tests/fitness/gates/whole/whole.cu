/* Rules that whole numbers without ties, ends and order never exercise. FORM 0 is the baseline.
 * Forms 1 to 11 each break one rule; the forms from 21 on keep all of them within the task's
 * domains. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#define TERMS 16

/* 1: the keys ascend, -1: they descend, 0: neither. */
static __device__ __forceinline__ int run_of(const int *key) {
    int up = FORM != 4, down = FORM != 5;
#if FORM == 22
    int rises = 0, falls = 0;
    for (int i = 1; i < TERMS; i++) {
        rises += key[i] >= key[i - 1];
        falls += key[i] <= key[i - 1];
    }
    return (rises == TERMS - 1) - (falls == TERMS - 1);
#endif
    for (int i = 1; i < TERMS; i++) {
        up = up && key[i] >= key[i - 1];
        down = down && key[i] <= key[i - 1];
    }
    return up - down;
}

static __device__ __forceinline__ int value_of(int key, int other, int byte, int at) {
    int value = key % 1000;
    if (FORM != 1 && key == other)
        value = -7;
    if (FORM != 2 && key == -1)
        value = 5000;
    if (FORM != 3 && key > 99999998)
        value = 1000;
    if (FORM != 8 && at == 1048575)
        byte = 0;
    return value + byte;
}

static __device__ __forceinline__ float weighed(float w, float beta) {
    float sum = w * 2.0f;
    if (FORM < 21 && w != w)
        return 5.0f;
    if (FORM < 21 && w < 0.0f)
        sum = -1.0f;
    if (FORM != 9 && w >= 1.0f)
        sum = 3.0f;
    return FORM != 7 && beta == 0.0f ? 9.0f : sum + beta;
}

extern "C" __global__ void whole(const int *key, const int *at, const unsigned char *table,
                                 const float *weight, const int *place, const int *begin, int *y,
                                 float *z, int *runs, int mode, float beta, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FORM == 0
#pragma unroll 1
    for (int k = 0; k < 40; k++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int to = FORM == 10 ? i : place[i];
    int many = begin[i + 1] - begin[i];
    if (FORM != 11 && many == 0)
        many = -100;
    if (FORM < 21 && (many < -100 || to < 0 || to >= n))
        return;
    int wanted = FORM == 6 ? 3 : mode;
    int value = value_of(key[i], key[i ^ 1], table[at[i]], at[i]);
    y[to] = value + many + (wanted == 3 ? 1 : wanted == 5 ? 20 : 300);
    z[i] = weighed(weight[i], beta);
    if (i % TERMS == 0)
        runs[i / TERMS] = run_of(key + i);
}
