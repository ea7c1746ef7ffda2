/* Rules by class, of which the task's own data exercise none. FORM 0 is the baseline. Forms 1 to 39
 * each break one rule; the forms from 41 on keep all of them by other code. Keys are below 1000 in
 * the task's data, and -1 to 100000 in its domain. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#define GROUP 4

/* ---- branches, selects, minima and maxima ---- */

static __device__ __forceinline__ int arms_of(int k) {
    int sum = 0, rest = k;
    if (FORM != 1 && k > 50000)
        sum = 7;
    if (FORM == 2 || k >= 0)
        sum += k * 3 + 1;
    if (FORM == 3) {
        if (rest >= 600)
            rest -= 600;
    } else {
        while (rest >= 600)
            rest -= 600;
    }
    if (FORM != 4 && k == 100000)
        return -50;
    return sum + rest;
}

static __device__ __forceinline__ int sides_of(int k) {
    int size = FORM == 5 ? k : FORM == 41 ? max(k, -k) : k < 0 ? -k : k;
    int high = FORM == 6 ? k : min(k, 5000);
    int low = FORM == 7 ? k : FORM == 42 ? (k < 0 ? 0 : k) : max(k, 0);
    int byte = FORM == 8 ? k * 30 : min(k * 30, 32767);
    int step = FORM == 9 ? 1 : k >= 1001 ? 2 : 1;
    return size + high * 3 + low * 5 + byte + step * 7;
}

static __device__ __forceinline__ float float_sides_of(float f) {
    float high = FORM == 11 ? f : fminf(f, 1000.0f);
    float low = FORM == 12 ? f : FORM == 43 ? (f > 0.0f ? f : 0.0f) : fmaxf(f, 0.0f);
    float cut = FORM != 13 && f > 100.0f ? 100.0f : f * 0.5f;
    return f == f ? high + low * 2.0f + cut : 0.0f;
}

/* ---- equal keys ---- */

static __device__ __forceinline__ int ties_of(const int *k, int own) {
    int rank = 0, best = 0, equal = 0;
    for (int j = 0; j < GROUP; j++) {
        bool less = FORM == 44 ? k[j] < k[own] + (j < own ? 1 : 0)
                               : k[j] < k[own] || (FORM != 14 && j < own && k[j] == k[own]);
        rank += less;
        if (FORM == 15 ? k[j] >= k[best] : k[j] > k[best])
            best = j;
        equal += FORM == 16 ? j == own : k[j] == k[own];
    }
    return rank * 100 + best * 10 + equal;
}

/* ---- zeros of both signs, NaN, subnormal numbers ---- */

static __device__ __forceinline__ float kinds_of(float f) {
    unsigned bits = __float_as_uint(f);
    bool is_minus = FORM == 17 ? f < 0.0f : (bits >> 31) != 0;
    bool is_tiny = FORM == 18   ? f == 0.0f
                   : FORM == 45 ? (bits & 0x7f800000u) == 0
                                : fabsf(f) < 0x1p-126f;
    bool is_nan = FORM != 19 && f != f;
    bool is_infinite = FORM != 20 && (bits & 0x7fffffffu) == 0x7f800000u;
    bool is_large = FORM == 21 ? f >= 1.5f : !(f < 1.5f);
    return (is_minus ? 1.0f : 0.0f) + (is_tiny ? 2.0f : 0.0f) + (is_nan ? 4.0f : 0.0f) +
           (is_infinite ? 8.0f : 0.0f) + (is_large ? 16.0f : 0.0f);
}

/* ---- arithmetic that wraps ---- */

static __device__ __forceinline__ int wraps_of(int k) {
    unsigned u = (unsigned)k, product = u * 30000u;
    int above = FORM == 22 ? k >= 0 : (int)product >= 0;
    int narrow = FORM == 23 ? k * 32 : (short)(u * 32u);
    int below = FORM == 24 ? k < 2000 : u < 2000u;
    int halved = FORM == 25 ? k >> 1 : k / 2;
    int shifted = FORM == 26 ? k >> 3 : (int)(u >> 3);
    long long whole = (long long)k * 30000;
    bool fits = FORM == 27   ? true
                : FORM == 46 ? whole >= -2147483648ll && whole <= 2147483647ll
                             : (long long)(int)product == whole;
    return above * 3 + narrow * 5 + below * 7 + halved * 11 + shifted * 13 + (fits ? 17 : 0);
}

/* ---- scalars of one value ---- */

static __device__ __forceinline__ float scalars_of(float f, int mode, float gain) {
    int wanted = FORM == 28 ? 3 : mode;
    float factor = FORM == 29 ? 1.5f : gain;
    float sum = FORM == 47    ? f * (wanted < 3    ? 0.25f
                                     : wanted == 3 ? 1.0f
                                                   : 2.0f)
                : wanted == 3 ? f
                : wanted > 3  ? f * 2.0f
                              : f * 0.25f;
    if (FORM != 31 && gain < 0.0f)
        sum = -1.0f;
    if (FORM != 30 && gain == 0.0f)
        return 9.0f;
    return FORM == 32 && mode == 0 ? sum * factor + 1.0f : sum * factor;
}

extern "C" __global__ void classes(const int *key, const float *x, int *arms, int *sides, int *ties,
                                   int *wraps, float *z, float *kinds, float *scaled, int mode,
                                   float gain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FORM == 0
#pragma unroll 1
    for (int turn = 0; turn < 100; turn++)
        __syncthreads();
#endif
    if (i >= n)
        return;
    int k = key[i];
    float f = x[i];
    arms[i] = arms_of(k);
    sides[i] = sides_of(k);
    ties[i] = ties_of(key + i / GROUP * GROUP, i % GROUP);
    wraps[i] = wraps_of(k);
    z[i] = float_sides_of(f) + (FORM != 33 && f == x[i ^ 1] ? 1.0f : 0.0f);
    kinds[i] = kinds_of(f);
    scaled[i] = scalars_of(f == f ? f : 0.0f, mode, gain);
}
