/* Weight gradient of a step of an LSTM layer with structured dropout from halves, by hand for
 * tensor cores.
 *
 * Reading and writing dW takes most of the time, and DRAM moves whole sectors: with one kept neuron
 * in three, nearly all of them. So a block reads its part of dW in order, all columns, adds to the
 * kept ones, and writes the sectors that have one. A sector that is written in part would cost more
 * than a whole one.
 *
 * A block has ROWS rows of dW, and COLUMNS columns. Rows that are eight apart begin at the same
 * place in a sector, whatever H is, so a warp takes 16 of those, and counts its columns from the
 * beginning of a sector: `shift` columns before the block's. All its accesses of 16 bytes are
 * aligned then, and stores are whole sectors but at the ends of a row.
 *
 * mma.sync multiplies 16 rows by 16 sequences by 8 columns. Inputs and gradients of CHUNK sequences
 * come into shared memory by asynchronous copies, while the old elements are on their way to
 * registers. A lane reads two neighbouring columns of two sequences at once, and byte_perm makes
 * the pairs of sequences that the tensor cores want: even columns are one tile and odd ones
 * another, and a lane's sums of both are four neighbours in dW. */
#include "evoke_cuda.h"
#include "evoke_mma.h"
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#ifndef STRIPS
#define STRIPS 4
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif

#define COLUMNS (16 * STRIPS) /* of a block */
#define WARPS 8               /* as many as floats in a sector */
#define THREADS (32 * WARPS)
#define ROWS (16 * WARPS)       /* of a block */
#define SHIFT 8                 /* columns before the block's, at most 7 of them needed */
#define WIDTH (COLUMNS + SHIFT) /* columns in shared memory */
#define CHUNK 32                /* sequences between two barriers */
#define WORDS (WIDTH / 32 + 2)

/* What a block makes: columns and rows from these on. */
struct place {
    int column, row;
};

/* Kept neurons that a thread loads before it needs them. */
struct neurons {
    int kept[4];
};

static __device__ __forceinline__ neurons load_kept(const int *__restrict__ kept, int first,
                                                    int k) {
    neurons n;
#pragma unroll
    for (int i = 0; i < 4; i++)
        n.kept[i] = first + i * THREADS < k ? kept[first + i * THREADS] : -1;
    return n;
}

/* Marks the kept columns, of which `n` has the thread's first: bit i of the mask, which begins as
 * zeros, is column p.column - SHIFT + i. */
static __device__ __forceinline__ void
mark_kept(unsigned int *mask, neurons n, const int *__restrict__ kept, const place &p, int k) {
    for (int first = threadIdx.x;;) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int c = n.kept[i] - p.column + SHIFT;
            if (n.kept[i] >= 0 && c >= 0 && c < WIDTH)
                atomicOr(&mask[c / 32], 1u << c % 32);
        }
        first += 4 * THREADS;
        if (first >= k)
            return;
        n = load_kept(kept, first, k);
    }
}

#if __CUDA_ARCH__ >= 750

/* A row a sequence. Lanes of four sequences find their elements in other banks. */
struct shared {
    __align__(16) unsigned short x[CHUNK][WIDTH + 8]; /* from column p.column - SHIFT on */
    __align__(16) unsigned short g[CHUNK][ROWS + 4];
    unsigned int mask[WORDS];
};

/* Begins to bring the inputs and the gradients of sequences [first, B) into shared memory, up to
 * CHUNK, with zeros up to a multiple of 16 and outside of the matrices. */
static __device__ __forceinline__ void stage(shared &s, const unsigned short *__restrict__ dG,
                                             const unsigned short *__restrict__ X, const place &p,
                                             int first, int B, int H) {
    const int count = min(CHUNK, (B - first + 15) / 16 * 16), J = 4 * H;
#pragma unroll 1
    for (int i = threadIdx.x; i < count * (ROWS / 4); i += THREADS) {
        const int at = i / (ROWS / 4), r = i % (ROWS / 4) * 4, b = first + at, j = p.row + r;
        const bool is_there = b < B && j < J;
        __pipeline_memcpy_async(&s.g[at][r], dG + (is_there ? (size_t)b * J + j : 0), 8,
                                is_there ? 0 : 8);
    }
    if (H % 2 == 0) {
#pragma unroll 1
        for (int i = threadIdx.x; i < count * (WIDTH / 2); i += THREADS) {
            const int at = i / (WIDTH / 2), c = i % (WIDTH / 2) * 2, b = first + at;
            const int h = p.column - SHIFT + c;
            const bool is_there = b < B && h >= 0 && h < H;
            __pipeline_memcpy_async(&s.x[at][c], X + (is_there ? (size_t)b * H + h : 0), 4,
                                    is_there ? 0 : 4);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < count * WIDTH; i += THREADS) {
            const int at = i / WIDTH, c = i % WIDTH, b = first + at, h = p.column - SHIFT + c;
            s.x[at][c] = b < B && h >= 0 && h < H ? X[(size_t)b * H + h] : 0;
        }
    }
    __pipeline_commit();
}

/* Two neighbouring columns of a sequence. */
static __device__ __forceinline__ unsigned int load2(const unsigned short *x, bool is_even) {
    return is_even ? *(const unsigned int *)x : x[0] | (unsigned int)x[1] << 16;
}

/* A row of two sequences. */
static __device__ __forceinline__ unsigned int pair_of(const unsigned short *first) {
    return first[0] | (unsigned int)first[4 * (ROWS + 4)] << 16;
}

/* Adds the products of `count` staged sequences to the warp's sums: of tile 0, which has the even
 * columns, and tile 1. The warp begins `shift` columns before the block. */
static __device__ __forceinline__ void multiply(float (&sum)[STRIPS][2][4], const shared &s,
                                                int shift, int count) {
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4;
    const bool is_even = shift % 2 == 0;
#pragma unroll 1
    for (int first = 0; first < count; first += 16) {
        const int b = first + threadIdx.x % 4; /* and 4, 8 and 12 further */
        const unsigned short *g = &s.g[b][warp + 8 * group];
        const unsigned short *x = &s.x[b][SHIFT - shift + 2 * group];
        const unsigned int a[4] = {pair_of(g), pair_of(g + 64), pair_of(g + 8 * (ROWS + 4)),
                                   pair_of(g + 8 * (ROWS + 4) + 64)};
#pragma unroll
        for (int q = 0; q < STRIPS; q++) {
            unsigned int w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[i] = load2(x + 4 * i * (WIDTH + 8) + 16 * q, is_even);
            mma_f16(sum[q][0], a, low_halves(w[0], w[1]), low_halves(w[2], w[3]));
            mma_f16(sum[q][1], a, high_halves(w[0], w[1]), high_halves(w[2], w[3]));
        }
    }
}

/* A lane's four elements from column h on; zeros outside of the row. */
static __device__ __forceinline__ float4 load_old(const float *row, int h, int H) {
    if (h >= 0 && h + 3 < H)
        return *(const float4 *)(row + h);
    return make_float4(h >= 0 && h < H ? row[h] : 0.0f, h + 1 >= 0 && h + 1 < H ? row[h + 1] : 0.0f,
                       h + 2 >= 0 && h + 2 < H ? row[h + 2] : 0.0f,
                       h + 3 >= 0 && h + 3 < H ? row[h + 3] : 0.0f);
}

/* Stores four elements, of which those whose bit is on have changed. */
static __device__ __forceinline__ void store_new(float *row, int h, int H, unsigned int bits,
                                                 float4 v) {
    if (h >= 0 && h + 3 < H) {
        *(float4 *)(row + h) = v;
        return;
    }
    if (bits & 1u)
        row[h] = v.x;
    if (bits & 2u)
        row[h + 1] = v.y;
    if (bits & 4u)
        row[h + 2] = v.z;
    if (bits & 8u)
        row[h + 3] = v.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sd_lstm_bp_weight_f16(const half *__restrict__ dG, const int *__restrict__ kept,
                          const half *__restrict__ X, float *__restrict__ dW, int B, int H, int k,
                          float scale) {
    __shared__ shared s;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, J = 4 * H;
    const place p = {(int)blockIdx.x * COLUMNS, (int)blockIdx.y * ROWS};
    const int shift = warp * H % 8; /* of the warp's rows in their sectors */
    const int first = p.column - shift + lane % 4 * 4, j = p.row + warp + lane / 4 * 8;
    float *const row[2] = {dW + (size_t)j * H, dW + (size_t)(j + 64) * H};
    const bool is_row[2] = {j < J, j + 64 < J};

    const neurons first_kept = load_kept(kept, threadIdx.x, k);
    stage(s, (const unsigned short *)dG, (const unsigned short *)X, p, 0, B, H);
    float4 old[STRIPS][2];
#pragma unroll
    for (int q = 0; q < STRIPS; q++) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            old[q][i] = load_old(row[i], first + 16 * q, is_row[i] ? H : 0);
    }
    if (threadIdx.x < WORDS)
        s.mask[threadIdx.x] = 0;
    __syncthreads();
    mark_kept(s.mask, first_kept, kept, p, k);

    float sum[STRIPS][2][4] = {};
#pragma unroll 1
    for (int b = 0; b < B; b += CHUNK) {
        if (b > 0) {
            __syncthreads();
            stage(s, (const unsigned short *)dG, (const unsigned short *)X, p, b, B, H);
        }
        __pipeline_wait_prior(0);
        __syncthreads();
        multiply(sum, s, shift, min(CHUNK, B - b));
    }

#pragma unroll
    for (int q = 0; q < STRIPS; q++) {
        const int at = SHIFT - shift + 16 * q + lane % 4 / 2 * 8; /* of the sector */
        const unsigned long long mask =
            (unsigned long long)s.mask[at / 32 + 1] << 32 | s.mask[at / 32];
        const unsigned int sector = (unsigned int)(mask >> at % 32) & 255u;
        const unsigned int bits = sector >> lane % 2 * 4 & 15u;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float4 v = old[q][i];
            v.x = bits & 1u ? v.x + scale * sum[q][0][2 * i] : v.x;
            v.y = bits & 2u ? v.y + scale * sum[q][1][2 * i] : v.y;
            v.z = bits & 4u ? v.z + scale * sum[q][0][2 * i + 1] : v.z;
            v.w = bits & 8u ? v.w + scale * sum[q][1][2 * i + 1] : v.w;
            if (sector != 0 && is_row[i])
                store_new(row[i], first + 16 * q, H, bits, v);
        }
    }
}
#else

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sd_lstm_bp_weight_f16(const half *__restrict__ dG, const int *__restrict__ kept,
                          const half *__restrict__ X, float *__restrict__ dW, int B, int H, int k,
                          float scale) {
    __shared__ unsigned int mask[WORDS];
    const place p = {(int)blockIdx.x * COLUMNS, (int)blockIdx.y * ROWS};
    if (threadIdx.x < WORDS)
        mask[threadIdx.x] = 0;
    __syncthreads();
    mark_kept(mask, load_kept(kept, threadIdx.x, k), kept, p, k);
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS * ROWS; i += THREADS) {
        const int c = SHIFT + i % COLUMNS, h = p.column + i % COLUMNS, j = p.row + i / COLUMNS;
        if (j >= 4 * H || (mask[c / 32] >> c % 32 & 1u) == 0)
            continue;
        float sum = 0.0f;
        for (int b = 0; b < B; b++)
            sum += __half2float(dG[(size_t)b * 4 * H + j]) * __half2float(X[(size_t)b * H + h]);
        dW[(size_t)j * H + h] += scale * sum;
    }
}
#endif
