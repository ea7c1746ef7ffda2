/* Data gradient of a convolution behind a ReLU in bfloat16, tiled by hand for tensor cores.
 *
 * A block of eight warps makes a BM x BN tile of dX; a warp makes a quarter of its rows and a half
 * of its columns, in tiles of 16 x 16. BK-deep tiles of dY and W come by asynchronous copies, up
 * to STAGES - 1 pairs while one is multiplied. The mask is read first: a tile that is all off costs
 * its stores alone, and a warp whose elements are all off skips its products. Rows whose length is
 * a multiple of eight move as 16 bytes, others element by element. */
#include "evoke_cuda.h"
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 32
#endif
#ifndef STAGES
#define STAGES 4
#endif

#define THREADS 256
#define TM (BM / 64) /* tiles of a warp */
#define TN (BN / 32)
#define AK (BK + 8) /* elements between the rows of a tile: no two rows begin in one bank */
#define BC (BN + 8)
#define CC 20                     /* the same of a warp's tile of sums, in floats */
#define STAGE (BM * AK + BK * BC) /* elements of a tile of dY and one of W */
#define DEPTH (STAGE * 2 * STAGES > 49152 ? 2 : STAGES) /* tiles at a time */

#if __CUDA_ARCH__ >= 800
using namespace nvcuda;

/* Eight neighbours of a row, zeros from `columns` on, into shared memory. A row that does not exist
 * is all zeros. */
static __device__ __forceinline__ void copy8(__nv_bfloat16 *to, const __nv_bfloat16 *matrix,
                                             int row, int rows, int column, int columns,
                                             bool vector) {
    const __nv_bfloat16 *from = matrix + (size_t)row * columns + column;
    if (vector) {
        bool is_there = row < rows && column < columns;
        __pipeline_memcpy_async(to, is_there ? from : matrix, 16, is_there ? 0 : 16);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[i] = row < rows && column + i < columns ? from[i] : __float2bfloat16(0.0f);
}

/* Eight bits: which of eight neighbours of a row are greater than zero. */
static __device__ __forceinline__ unsigned int mask8(const __nv_bfloat16 *X, int row, int rows,
                                                     int column, int columns, bool vector) {
    __align__(16) __nv_bfloat16 x[8];
    const __nv_bfloat16 *from = X + (size_t)row * columns + column;
    if (row >= rows || column >= columns)
        return 0;
    if (vector)
        *(uint4 *)x = *(const uint4 *)from;
    unsigned int bits = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (!vector)
            x[i] = column + i < columns ? from[i] : __float2bfloat16(0.0f);
        bits |= __bfloat162float(x[i]) > 0.0f ? 1u << i : 0u;
    }
    return bits;
}

static __device__ __forceinline__ void store8(__nv_bfloat16 *dX, const float *sums,
                                              unsigned int bits, int row, int rows, int column,
                                              int columns, bool vector) {
    __align__(16) __nv_bfloat16 y[8];
    if (row >= rows || column >= columns)
        return;
#pragma unroll
    for (int i = 0; i < 8; i++)
        y[i] = __float2bfloat16(bits >> i & 1u ? sums[i] : 0.0f);
    __nv_bfloat16 *to = dX + (size_t)row * columns + column;
    if (vector) {
        *(uint4 *)to = *(const uint4 *)y;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (column + i < columns)
            to[i] = y[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_masked_bf16(const __nv_bfloat16 *__restrict__ dY, const __nv_bfloat16 *__restrict__ W,
                        const __nv_bfloat16 *__restrict__ X, __nv_bfloat16 *__restrict__ dX, int M,
                        int N, int K) {
    __shared__ __align__(128) __nv_bfloat16 tiles[DEPTH][STAGE]; /* dY, then W */

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int row = blockIdx.y * BM, column = blockIdx.x * BN;
    const int warp_row = warp / 2 * (BM / 4), warp_column = warp % 2 * (BN / 2);
    const int lane_row = lane / 2, lane_column = lane % 2 * 8; /* of a tile */
    const bool n_vector = (N & 7) == 0, k_vector = (K & 7) == 0;

    unsigned int live[TM][TN], any = 0;
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) {
            live[i][j] = mask8(X, row + warp_row + 16 * i + lane_row, M,
                               column + warp_column + 16 * j + lane_column, N, n_vector);
            any |= live[i][j];
        }
    }

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);
    }

    if (__syncthreads_or(any != 0)) {
        const bool warp_live = __any_sync(0xffffffffu, any != 0);
        for (int k = -(DEPTH - 1) * BK; k < K; k += BK) {
            const int next = k + (DEPTH - 1) * BK;
            if (next < K) {
                __nv_bfloat16 *a = tiles[next / BK % DEPTH], *b = a + BM * AK;
                for (int i = thread; i < BM * BK / 8; i += THREADS) {
                    int r = i / (BK / 8), at = i % (BK / 8) * 8;
                    copy8(&a[r * AK + at], dY, row + r, M, next + at, K, k_vector);
                }
                for (int i = thread; i < BK * BN / 8; i += THREADS) {
                    int r = i / (BN / 8), at = i % (BN / 8) * 8;
                    copy8(&b[r * BC + at], W, next + r, K, column + at, N, n_vector);
                }
            }
            __pipeline_commit();
            if (k >= 0 && warp_live) {
                const __nv_bfloat16 *a = tiles[k / BK % DEPTH], *b = a + BM * AK;
#pragma unroll
                for (int kk = 0; kk < BK; kk += 16) {
                    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major>
                        x[TM];
                    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> y;
#pragma unroll
                    for (int i = 0; i < TM; i++)
                        wmma::load_matrix_sync(x[i], &a[(warp_row + 16 * i) * AK + kk], AK);
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        wmma::load_matrix_sync(y, &b[kk * BC + warp_column + 16 * j], BC);
#pragma unroll
                        for (int i = 0; i < TM; i++)
                            wmma::mma_sync(sum[i][j], x[i], y, sum[i][j]);
                    }
                }
            }
            __pipeline_wait_prior(DEPTH - 2); /* the next pair is there */
            __syncthreads();
        }
        __pipeline_wait_prior(0); /* the tiles take the sums now */
        __syncthreads();
    }

    float *c = (float *)tiles + warp * 16 * CC;
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) {
            wmma::store_matrix_sync(c, sum[i][j], CC, wmma::mem_row_major);
            __syncwarp();
            store8(dX, &c[lane_row * CC + lane_column], live[i][j],
                   row + warp_row + 16 * i + lane_row, M,
                   column + warp_column + 16 * j + lane_column, N, n_vector);
            __syncwarp();
        }
    }
}
#else

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_masked_bf16(const __nv_bfloat16 *__restrict__ dY, const __nv_bfloat16 *__restrict__ W,
                        const __nv_bfloat16 *__restrict__ X, __nv_bfloat16 *__restrict__ dX, int M,
                        int N, int K) {
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        int m = blockIdx.y * BM + i / BN, n = blockIdx.x * BN + i % BN;
        if (m >= M || n >= N)
            continue;
        float sum = 0.0f;
        if (__bfloat162float(X[(size_t)m * N + n]) > 0.0f) {
            for (int k = 0; k < K; k++)
                sum += __bfloat162float(dY[(size_t)m * K + k]) *
                       __bfloat162float(W[(size_t)k * N + n]);
        }
        dX[(size_t)m * N + n] = __float2bfloat16(sum);
    }
}
#endif
