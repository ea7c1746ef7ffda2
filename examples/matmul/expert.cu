#include "evoke_cuda.h"

#define TILE 128 /* rows and columns of C of a block of 256 threads */
#define STEP 8   /* of k */

/* Four neighbours, by one access of 16 bytes. */
__device__ __forceinline__ static void copy4(float *to, const float *from) {
    *(float4 *)to = *(const float4 *)from;
}

/* Four neighbours of a row, zeros behind its end. FOURS: rows are made of whole, aligned fours. */
template <bool FOURS>
__device__ __forceinline__ static float4 load4(const float *from, int at, int end) {
    if (FOURS)
        return at < end ? *(const float4 *)(from + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return make_float4(at < end ? from[at] : 0.0f, at + 1 < end ? from[at + 1] : 0.0f,
                       at + 2 < end ? from[at + 2] : 0.0f, at + 3 < end ? from[at + 3] : 0.0f);
}

template <bool FOURS>
__device__ __forceinline__ static void store4(float *to, int at, int end, const float *v) {
    if (FOURS) {
        if (at < end)
            copy4(to + at, v);
        return;
    }
#pragma unroll
    for (int s = 0; s < 4; s++)
        if (at + s < end)
            to[at + s] = v[s];
}

struct tiles {
    float a[2][STEP][TILE + 4]; /* turned: a row a column of A */
    float b[2][STEP][TILE];
};

/* Tiles in shared memory, two of each so that one barrier a step is enough; 8 x 8 elements of C in
 * the registers of a thread; the next step's loads run ahead of the products. A warp is 4 x 8
 * threads, so that its loads from shared memory take one pass each. */
template <bool FOURS>
__device__ __forceinline__ static void multiply(tiles &t, const float *a, const float *b, float *c,
                                                int m, int n, int k) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int tx = warp % 2 * 8 + lane % 8, ty = warp / 2 * 4 + lane / 8;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    int a_row = threadIdx.x / 2, a_at = threadIdx.x % 2 * 4;   /* this thread's part of A's tile */
    int b_row = threadIdx.x / 32, b_at = threadIdx.x % 32 * 4; /* and of B's */
    int a_end = row + a_row < m ? k : 0;
    const float *from_a = a + (size_t)(row + a_row) * k, *from_b = b + (size_t)b_row * n;
    float4 va = load4<FOURS>(from_a, a_at, a_end);
    float4 vb = load4<FOURS>(from_b, column + b_at, b_row < k ? n : 0);
    float sum[8][8] = {};
    for (int i = 0, now = 0; i < k; i += STEP, now ^= 1) {
        t.a[now][a_at][a_row] = va.x;
        t.a[now][a_at + 1][a_row] = va.y;
        t.a[now][a_at + 2][a_row] = va.z;
        t.a[now][a_at + 3][a_row] = va.w;
        copy4(&t.b[now][b_row][b_at], &vb.x);
        __syncthreads();
        from_b += (size_t)STEP * n;
        va = load4<FOURS>(from_a, i + STEP + a_at, a_end);
        vb = load4<FOURS>(from_b, column + b_at, i + STEP + b_row < k ? n : 0);
#pragma unroll
        for (int j = 0; j < STEP; j++) {
            float x[8], y[8];
            copy4(&x[0], &t.a[now][j][ty * 4]);
            copy4(&x[4], &t.a[now][j][64 + ty * 4]);
            copy4(&y[0], &t.b[now][j][tx * 4]);
            copy4(&y[4], &t.b[now][j][64 + tx * 4]);
#pragma unroll
            for (int r = 0; r < 8; r++)
#pragma unroll
                for (int s = 0; s < 8; s++)
                    sum[r][s] += x[r] * y[s];
        }
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
        int to = row + r / 4 * 64 + ty * 4 + r % 4;
        if (to >= m)
            continue;
        store4<FOURS>(c + (size_t)to * n, column + tx * 4, n, &sum[r][0]);
        store4<FOURS>(c + (size_t)to * n, column + 64 + tx * 4, n, &sum[r][4]);
    }
}

/* C = A B. */
extern "C" __global__ void __launch_bounds__(256, 2)
    matmul_expert(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ __align__(16) tiles t;
    if (k % 4 == 0 && n % 4 == 0)
        multiply<true>(t, a, b, c, m, n, k);
    else
        multiply<false>(t, a, b, c, m, n, k);
}
