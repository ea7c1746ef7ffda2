/* Data gradient of a convolution behind a ReLU, tiled by hand.
 *
 * A block of 16 x 16 threads makes a BM x BN tile of dX from BK-deep tiles of dY and W in shared
 * memory; a thread keeps BM/16 rows of BN/64 groups of four neighbours in registers. The mask is
 * read first: a tile that is all off costs its stores alone, and a warp whose elements are all off
 * skips its products. Rows whose length is a multiple of four move as float4. */
#include "evoke_cuda.h"
#include "evoke_rows.h"

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 16
#endif

#define THREADS 256
#define TM (BM / 16)
#define TN (BN / 64) /* in groups of four */

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_masked(const float *__restrict__ dY, const float *__restrict__ W,
                   const float *__restrict__ X, float *__restrict__ dX, int M, int N, int K) {
    __shared__ float4 a[BK][BM / 4 + 1]; /* dY, transposed */
    __shared__ float4 b[BK][BN / 4];

    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int row = blockIdx.y * BM, column = blockIdx.x * BN;
    const bool n_vector = (N & 3) == 0, k_vector = (K & 3) == 0;

    /* Four mask bits a group. */
    unsigned int live[TM] = {};
    unsigned int any = 0;
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int m = row + ty * TM + i;
        if (m < M) {
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float4 x = load4(X + (size_t)m * N, column + j * 64 + tx * 4, N, n_vector);
                live[i] |= live4(x) << (4 * j);
            }
        }
        any |= live[i];
    }

    float4 sum[TM][TN] = {};
    if (__syncthreads_or(any != 0)) {
        const bool warp_live = __any_sync(0xffffffffu, any != 0);
        for (int k = 0; k < K; k += BK) {
            for (int i = thread; i < BM * BK / 4; i += THREADS) {
                int r = i / (BK / 4), c = i % (BK / 4) * 4;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (row + r < M)
                    v = load4(dY + (size_t)(row + r) * K, k + c, K, k_vector);
                ((float *)a[c])[r] = v.x;
                ((float *)a[c + 1])[r] = v.y;
                ((float *)a[c + 2])[r] = v.z;
                ((float *)a[c + 3])[r] = v.w;
            }
            for (int i = thread; i < BK * BN / 4; i += THREADS) {
                int r = i / (BN / 4), c = i % (BN / 4) * 4;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (k + r < K)
                    v = load4(W + (size_t)(k + r) * N, column + c, N, n_vector);
                b[r][c / 4] = v;
            }
            __syncthreads();
            if (warp_live) {
#pragma unroll
                for (int kk = 0; kk < BK; kk++) {
                    float4 x[TM / 4];
#pragma unroll
                    for (int i = 0; i < TM / 4; i++)
                        x[i] = a[kk][ty * (TM / 4) + i];
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        float4 y = b[kk][j * 16 + tx];
#pragma unroll
                        for (int i = 0; i < TM / 4; i++) {
                            sum[4 * i][j] = axpy4(x[i].x, y, sum[4 * i][j]);
                            sum[4 * i + 1][j] = axpy4(x[i].y, y, sum[4 * i + 1][j]);
                            sum[4 * i + 2][j] = axpy4(x[i].z, y, sum[4 * i + 2][j]);
                            sum[4 * i + 3][j] = axpy4(x[i].w, y, sum[4 * i + 3][j]);
                        }
                    }
                }
            }
            __syncthreads();
        }
    }

#pragma unroll
    for (int i = 0; i < TM; i++) {
        int m = row + ty * TM + i;
        if (m < M) {
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float4 v = keep4(sum[i][j], live[i] >> (4 * j));
                store4(dX + (size_t)m * N, column + j * 64 + tx * 4, N, n_vector, v);
            }
        }
    }
}
