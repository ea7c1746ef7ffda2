// C = A B for square matrices of halves whose side is a multiple of 64, sums in single precision.
// Tiles of 64 x 16 and 16 x 64 in shared memory; each of four warps makes 32 x 32 of a block's 64 x 64
// with ldmatrix and mma.m16n8k16.
#include "evoke_cuda.h"

#define TILE 64
#define DEPTH 16
#define PAD 8 // halves between rows, so that eight rows of a matrix lie in different banks

__device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)(size_t)(const __attribute__((address_space(3))) void *)p;
}

__device__ __forceinline__ void load_rows(unsigned *r, unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
__device__ __forceinline__ void load_columns(unsigned *r, unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
__device__ __forceinline__ void multiply(float *c, const unsigned *a, const unsigned *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void mma_tiled(const uint4 *__restrict__ a, const uint4 *__restrict__ b,
                                     float *__restrict__ c, int n) {
    __shared__ __align__(16) unsigned short left[TILE][DEPTH + PAD];
    __shared__ __align__(16) unsigned short right[DEPTH][TILE + PAD];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row = warp / 2 * 32, column = warp % 2 * 32, eighth = n / 8;
    float sum[2][4][4] = {};
    for (int k = 0; k < n; k += DEPTH) {
        *(uint4 *)&left[thread / 2][thread % 2 * 8] =
            a[(blockIdx.y * TILE + thread / 2) * eighth + k / 8 + thread % 2];
        *(uint4 *)&right[thread / 8][thread % 8 * 8] =
            b[(k + thread / 8) * eighth + blockIdx.x * (TILE / 8) + thread % 8];
        __syncthreads();
        unsigned l[2][4], r[2][4];
        for (int i = 0; i < 2; i++) {
            load_rows(l[i], shared_address(&left[row + i * 16 + lane % 16][lane / 16 * 8]));
            load_columns(r[i], shared_address(&right[lane % 16][column + i * 16 + lane / 16 * 8]));
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 4; j++)
                multiply(sum[i][j], l[i], r[j / 2] + j % 2 * 2);
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int part = 0; part < 2; part++) {
                int y = blockIdx.y * TILE + row + i * 16 + part * 8 + lane / 4;
                int x = blockIdx.x * TILE + column + j * 8 + lane % 4 * 2;
                *(float2 *)&c[y * n + x] = {sum[i][j][part * 2], sum[i][j][part * 2 + 1]};
            }
}
