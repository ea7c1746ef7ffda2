/* Data gradient of a step of an LSTM layer with structured dropout, by hand.
 *
 * The product is narrow, and reading W takes most of the time. A block makes eight kept neurons of
 * ROWS sequences. Eight lanes read eight kept columns of a row of W, which stand in a few sectors;
 * 4 * WARPS rows are read at a time, UNROLL such groups are under way while the groups before them
 * are multiplied. dG passes through shared memory, a row of W's index a row, so that a lane reads
 * four sequences at once. The sums meet by shuffles in a warp, then in shared memory. */
#include "evoke_cuda.h"

#ifndef ROWS
#define ROWS 10
#endif
#ifndef WARPS
#define WARPS 16
#endif

#define THREADS (32 * WARPS)
#define COLUMNS 8
#define UNROLL 8
#define SLOTS (4 * WARPS)      /* rows of W at a time */
#define CHUNK (SLOTS * UNROLL) /* rows of W between two barriers */
#define QUADS ((ROWS + 3) / 4)
#define STAGED (CHUNK * ROWS / THREADS) /* elements of dG a thread and chunk */

static __device__ __forceinline__ void load_w(const float *__restrict__ W, int first, int J, int H,
                                              int column, float w[UNROLL]) {
    const float *from = W + (size_t)first * H + column;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        w[u] = column < H && first + u * SLOTS < J ? __ldg(from + u * SLOTS * H) : 0.0f;
}

static __device__ __forceinline__ void load_g(const float *__restrict__ dG, int first_row, int B,
                                              int first, int J, int thread, float g[STAGED]) {
    const float *from = dG + (size_t)first_row * J + first;
#pragma unroll
    for (int i = 0; i < STAGED; i++) {
        const int at = i * THREADS + thread, row = at / CHUNK, j = at % CHUNK;
        g[i] = first_row + row < B && first + j < J ? __ldg(from + row * J + j) : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sd_lstm_bp_data(const float *__restrict__ dG, const int *__restrict__ kept,
                    const float *__restrict__ W, float *__restrict__ dX, int B, int H, int k,
                    float scale) {
    __shared__ union {
        float4 g[CHUNK][QUADS];
        float sum[WARPS][COLUMNS][ROWS]; /* after the last chunk */
    } shared;
    __shared__ int columns[COLUMNS + 1]; /* and the first that is the next block's */
    __shared__ float total[COLUMNS][ROWS];

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int slot = thread / COLUMNS, own = thread % COLUMNS;
    const int first_n = blockIdx.x * COLUMNS, first_row = blockIdx.y * ROWS, J = 4 * H;
    const int column = first_n + own < k ? kept[first_n + own] : H;

    if (thread <= COLUMNS)
        columns[thread] = first_n + thread < k ? kept[first_n + thread] : H;
    for (int i = thread; i < CHUNK * (4 * QUADS - ROWS); i += THREADS)
        ((float *)shared.g[i % CHUNK])[ROWS + i / CHUNK] = 0.0f;

    float4 sum[QUADS] = {};
    float w_next[UNROLL], g_next[STAGED];
    load_w(W, slot, J, H, column, w_next);
    load_g(dG, first_row, B, 0, J, thread, g_next);
#pragma unroll 1
    for (int first = 0; first < J; first += CHUNK) {
        float w[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            w[u] = w_next[u];
#pragma unroll
        for (int i = 0; i < STAGED; i++) {
            const int at = i * THREADS + thread;
            ((float *)shared.g[at % CHUNK])[at / CHUNK] = g_next[i];
        }
        load_w(W, first + CHUNK + slot, J, H, column, w_next);
        load_g(dG, first_row, B, first + CHUNK, J, thread, g_next);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
#pragma unroll
            for (int q = 0; q < QUADS; q++) {
                const float4 g = shared.g[u * SLOTS + slot][q];
                sum[q].x += g.x * w[u];
                sum[q].y += g.y * w[u];
                sum[q].z += g.z * w[u];
                sum[q].w += g.w * w[u];
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float4 s = sum[r / 4];
        float v = r % 4 == 0 ? s.x : r % 4 == 1 ? s.y : r % 4 == 2 ? s.z : s.w;
        v += __shfl_xor_sync(0xffffffffu, v, 8);
        v += __shfl_xor_sync(0xffffffffu, v, 16);
        if (lane < COLUMNS)
            shared.sum[warp][lane][r] = v;
    }
    __syncthreads();
    for (int i = thread; i < COLUMNS * ROWS; i += THREADS) {
        float v = 0.0f;
#pragma unroll
        for (int s = 0; s < WARPS; s++)
            v += shared.sum[s][i / ROWS][i % ROWS];
        total[i / ROWS][i % ROWS] = scale * v;
    }
    __syncthreads();

    /* The block's part of each row, a warp a row; zeros between the kept neurons. */
    const int from = blockIdx.x == 0 ? 0 : columns[0], end = columns[COLUMNS];
    for (int r = warp; r < ROWS && first_row + r < B; r += WARPS) {
        for (int h = from + lane; h < end; h += 32) {
            float v = 0.0f;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const float t = total[c][r];
                v = columns[c] == h ? t : v;
            }
            dX[(size_t)(first_row + r) * H + h] = v;
        }
    }
}
