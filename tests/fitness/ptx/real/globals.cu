/* Variables with initialisers, static and dynamic shared memory, atomics, inline assembly. */
#include "real.h"

__device__ int counter = 3;
__device__ float weights[8] = {1, 2, 3.5f, -4, 0, 0.125f, 1e10f, -1e-3f};
__device__ const char *names[3] = {"alpha", "beta", "gamma"};
__constant__ double coefficients[4] = {1.0, -0.5, 0.25, 3.0};
__device__ struct {
    char a;
    short b;
    int c;
    long long d;
    float *w;
} mixed = {1, 2, 3, 4, weights + 2};
__device__ int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ unsigned char bytes[] = {1, 2, 3, 255};
__shared__ int shared_words[64];
extern __shared__ int dynamic_words[];

KERNEL(global_initialised) {
    int i = threadIdx.x, length = 0;
    float s = 0;
    for (int k = 0; k < 6; k++)
        s += weights[k] * (float)coefficients[k & 3];
    for (const char *name = names[in[i] % 3]; name[length];)
        length++;
    out[i] = (int)(s * 8) + length * 100 + (int)mixed.w[in[i] % 3] + mixed.b + mixed.c +
             (int)mixed.d + matrix[i & 1][in[i] % 3] + bytes[i & 3];
}

KERNEL(global_shared) {
    __shared__ float tile[8][9];
    int i = threadIdx.x;
    shared_words[i] = in[i] * 2;
    dynamic_words[i] = i;
    tile[i / 8][i % 8] = i;
    __syncthreads();
    out[i] = shared_words[63 - i] + dynamic_words[(i + 1) & 63] + (int)tile[i % 8][i / 8];
}

KERNEL(global_atomic) {
    __shared__ int counts[8];
    int i = threadIdx.x;
    (void)atomicAdd(&counter, 1);
    if (i < 8)
        counts[i] = 0;
    __syncthreads();
    atomicAdd(&counts[in[i]], 1);
    __syncthreads();
    out[i] = counts[i & 7];
}

KERNEL(global_assembly) {
    int i = threadIdx.x, r, s;
    unsigned lane;
    asm volatile("add.s32 %0, %1, %2;" : "=r"(r) : "r"(in[i]), "r"(i));
    asm("{ .reg .pred p; .reg .b32 t; setp.gt.s32 p, %1, 3; selp.b32 t, 10, 20, p; mov.b32 %0, t; }"
        : "=r"(s)
        : "r"(in[i]));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[i] = r + s + lane;
}
