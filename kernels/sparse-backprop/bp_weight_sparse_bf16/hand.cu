/* Weight gradient of a convolution behind a ReLU in bfloat16, by hand for tensor cores.
 *
 * A block makes BM output channels of BN columns (a column is a filter element and an input
 * channel) of one part; a warp makes WM x WN of them in tiles of 16 x 8. X is read in place: no
 * lowered matrix exists. Tiles of BK pixels of dY and X come by asynchronous copies, up to
 * STAGES - 1 pairs while one is multiplied. Both have a pixel a row, and ldmatrix transposes them
 * on the way into the registers. Chunk c of pixel k, eight elements, stands at chunk c ^ k % 8, so
 * that eight pixels of a chunk use all banks. Rows whose length is a multiple of eight move as
 * chunks, others element by element. With SKIP, a warp skips eight columns of 16 pixels where all X
 * are zero. */
#include "evoke_cuda.h"
#include "evoke_mma.h"
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef BK
#define BK 32
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef SKIP
#define SKIP 0
#endif

#define THREADS (32 * (BM / WM) * (BN / WN))

/* Where a column is in X at pixel 0, in elements. */
static __device__ __forceinline__ int place_of(int column, int channels, int filter, int width) {
    const int row = column / (filter * channels);
    return row * width * channels + column - row * filter * channels;
}

#if __CUDA_ARCH__ >= 800
#define STAGE (BK * (BM + BN))                          /* elements of a tile of dY and one of X */
#define DEPTH (STAGE * 2 * STAGES > 49152 ? 2 : STAGES) /* pairs of tiles at a time */
#define COPIES(width) ((BK * (width) / 8 + THREADS - 1) / THREADS) /* of a thread, in a tile */

/* Divides numbers from 0 on. */
struct divider {
    unsigned int by, inverse;
    __device__ __forceinline__ explicit divider(int d)
        : by((unsigned int)d), inverse(0xffffffffu / (unsigned int)d) {}
    __device__ __forceinline__ int quotient(int n) const {
        const unsigned int q = __umulhi((unsigned int)n, inverse); /* right, or one too small */
        return (int)((unsigned int)n - q * by >= by ? q + 1 : q);
    }
};

/* Where a chunk of a pixel stands in a tile of `width` elements a pixel. */
static __device__ __forceinline__ int chunk_at(int pixel, int chunk, int width) {
    return pixel * width + (chunk ^ (pixel & 7)) * 8;
}

/* The layer, and the elements of it that a block takes. */
struct problem {
    const __nv_bfloat16 *dY, *X;
    int outputs, channels, columns, filter, width;
    int end;                        /* of the part's pixels */
    int first_output, first_column; /* of the block */
    divider of_map, of_row;
};

/* Where a pixel begins in X, in elements. */
static __device__ __forceinline__ int place_of_pixel(const problem &p, int pixel) {
    const int n = p.of_map.quotient(pixel), line = p.of_row.quotient(pixel);
    return (pixel + (n * p.width + line) * (p.filter - 1)) * p.channels;
}

/* A thread's chunks of all pixels. */
struct chunks {
    const __nv_bfloat16 *y, *x; /* at pixel 0 */
    bool is_y, is_x;            /* they exist */
};

/* The tiles of dY and X from pixel `first` on, by chunks: rows have multiples of eight elements.
 * Beyond the matrices are zeros. */
static __device__ __forceinline__ void copy_chunks(const problem &p, const chunks &c,
                                                   __nv_bfloat16 *tile, int first, int thread) {
    const int y_chunk = thread % (BM / 8), x_chunk = thread % (BN / 8);
    /* A lane finds the place of one pixel for the whole warp. */
    const int own = place_of_pixel(p, min(first + thread % 32, p.end - 1));
#pragma unroll
    for (int i = 0; i < COPIES(BM); i++) {
        const int k = thread / (BM / 8) + i * (THREADS * 8 / BM);
        const int pixel = min(first + k, p.end - 1);
        if (BK * BM / 8 % THREADS == 0 || k < BK)
            __pipeline_memcpy_async(tile + chunk_at(k, y_chunk, BM), c.y + pixel * p.outputs, 16,
                                    c.is_y && first + k < p.end ? 0 : 16);
    }
#pragma unroll
    for (int i = 0; i < COPIES(BN); i++) {
        const int k = thread / (BN / 8) + i * (THREADS * 8 / BN);
        const int place = __shfl_sync(0xffffffffu, own, k);
        if (BK * BN / 8 % THREADS == 0 || k < BK)
            __pipeline_memcpy_async(tile + BK * BM + chunk_at(k, x_chunk, BN), c.x + place, 16,
                                    c.is_x && first + k < p.end ? 0 : 16);
    }
}

/* The same, element by element. */
static __device__ __forceinline__ void copy_elements(const problem &p, __nv_bfloat16 *tile,
                                                     int first, int thread) {
#pragma unroll 1
    for (int i = thread; i < BK * BM; i += THREADS) {
        const int k = i / BM, at = i % BM, output = p.first_output + at;
        const bool is_there = first + k < p.end && output < p.outputs;
        tile[chunk_at(k, at / 8, BM) + at % 8] =
            is_there ? p.dY[(size_t)(first + k) * p.outputs + output] : __float2bfloat16(0.0f);
    }
#pragma unroll 1
    for (int i = thread; i < BK * BN; i += THREADS) {
        const int k = i / BN, at = i % BN, column = p.first_column + at;
        __nv_bfloat16 x = __float2bfloat16(0.0f);
        if (first + k < p.end && column < p.columns)
            x = p.X[place_of_pixel(p, first + k) + place_of(column, p.channels, p.filter, p.width)];
        tile[BK * BM + chunk_at(k, at / 8, BN) + at % 8] = x;
    }
}

/* Adds the products of 16 pixels to the warp's sums. */
static __device__ __forceinline__ void multiply(float (&sum)[WM / 16][WN / 8][4],
                                                const __nv_bfloat16 *y, const __nv_bfloat16 *x,
                                                int row, int column, int lane) {
    unsigned int a[WM / 16][4];
#pragma unroll
    for (int i = 0; i < WM / 16; i++)
        load_transposed(a[i],
                        y + chunk_at(lane % 8 + lane / 16 * 8, row / 8 + 2 * i + lane / 8 % 2, BM));
#pragma unroll
    for (int j = 0; j < WN / 8; j += 2) {
        unsigned int b[4];
        load_transposed(b, x + chunk_at(lane % 16, column / 8 + j + lane / 16, BN));
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const unsigned int any = (b[2 * h] | b[2 * h + 1]) & 0x7fff7fffu;
            if (SKIP && !__any_sync(0xffffffffu, any != 0))
                continue;
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
                mma_bf16(sum[i][j + h], a[i], b[2 * h], b[2 * h + 1]);
        }
    }
}

/* Two neighbouring columns of an output channel. */
static __device__ __forceinline__ void store2(float *__restrict__ to, int left, bool vector,
                                              float x, float y) {
    if (vector) {
        if (left > 0)
            __stwb((float2 *)to, make_float2(x, y));
        return;
    }
    if (left > 0)
        to[0] = x;
    if (left > 1)
        to[1] = y;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_weight_sparse_bf16(const __nv_bfloat16 *__restrict__ dY, const __nv_bfloat16 *__restrict__ X,
                          float *__restrict__ dW, int M, int outputs, int channels, int side,
                          int filter, int part) {
    __shared__ __align__(128) __nv_bfloat16 tiles[DEPTH][STAGE]; /* dY, then X */

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN; /* of the warp */
    const int columns = filter * filter * channels, first = blockIdx.z * part;
    const problem p = {dY,
                       X,
                       outputs,
                       channels,
                       columns,
                       filter,
                       side + filter - 1,
                       min(M, first + part),
                       (int)blockIdx.y * BM,
                       (int)blockIdx.x * BN,
                       divider(side * side),
                       divider(side)};
    const int output = p.first_output + thread % (BM / 8) * 8;
    const int x_column = p.first_column + thread % (BN / 8) * 8;
    const bool is_y = output < outputs, is_x = x_column < columns;
    const chunks c = {dY + (is_y ? output : 0),
                      X + (is_x ? place_of(x_column, channels, filter, p.width) : 0), is_y, is_x};
    const bool by_chunks = ((outputs | channels) & 7) == 0;

    float sum[WM / 16][WN / 8][4] = {};
    int stage = 0; /* of the tiles of m */
#pragma unroll 1
    for (int m = first - (DEPTH - 1) * BK; m < p.end; m += BK) {
        __pipeline_wait_prior(DEPTH - 2); /* the tiles of m are there, those before are free */
        __syncthreads();
        const int next = m + (DEPTH - 1) * BK;
        __nv_bfloat16 *tile = tiles[stage == 0 ? DEPTH - 1 : stage - 1];
        if (next < p.end && by_chunks)
            copy_chunks(p, c, tile, next, thread);
        else if (next < p.end)
            copy_elements(p, tile, next, thread);
        __pipeline_commit();
        if (m >= first) {
            const __nv_bfloat16 *y = tiles[stage], *x = y + BK * BM;
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                multiply(sum, y + k * BM, x + k * BN, row, column, lane);
        }
        stage = stage + 1 == DEPTH ? 0 : stage + 1;
    }

    const bool vector = (columns & 1) == 0;
#pragma unroll
    for (int i = 0; i < WM / 8; i++) {
        const int o = blockIdx.y * BM + row + 8 * i + lane / 4;
#pragma unroll
        for (int j = 0; j < WN / 8; j++) {
            const int at = blockIdx.x * BN + column + 8 * j + lane % 4 * 2;
            if (o < outputs)
                store2(dW + ((size_t)blockIdx.z * outputs + o) * columns + at, columns - at, vector,
                       sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
        }
    }
}
#else

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_weight_sparse_bf16(const __nv_bfloat16 *__restrict__ dY, const __nv_bfloat16 *__restrict__ X,
                          float *__restrict__ dW, int M, int outputs, int channels, int side,
                          int filter, int part) {
    const int columns = filter * filter * channels, width = side + filter - 1;
    const int first = blockIdx.z * part, end = min(M, first + part);
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        const int o = blockIdx.y * BM + i / BN, column = blockIdx.x * BN + i % BN;
        if (o >= outputs || column >= columns)
            continue;
        const __nv_bfloat16 *x = X + place_of(column, channels, filter, width);
        float sum = 0.0f;
        for (int m = first; m < end; m++) {
            const int at = (m / (side * side) * width + m / side % side) * width + m % side;
            sum += __bfloat162float(dY[(size_t)m * outputs + o]) *
                   __bfloat162float(x[(size_t)at * channels]);
        }
        dW[((size_t)blockIdx.z * outputs + o) * columns + column] = sum;
    }
}
#endif
