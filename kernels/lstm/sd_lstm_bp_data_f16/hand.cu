/* Data gradient of a step of an LSTM layer with structured dropout in half precision, by hand for
 * tensor cores.
 *
 * W is read once from DRAM, which bounds the time, and DRAM moves whole sectors: with one kept
 * neuron in three, nearly all of them. So nothing is gathered: the product takes all columns, and
 * those of dropped neurons are left out at the end.
 *
 * A block makes COLUMNS neurons of BATCH sequences from one of PARTS parts of the rows of W, since
 * there are fewer neurons than a GPU needs to be busy. mma.sync multiplies 16 neurons by 16 rows,
 * and wants two rows of a neuron in a register, where memory has two neurons of a row: a lane loads
 * the same neurons of four rows, and byte_perm makes the pairs. A sum does not care which row is
 * which, so that the lane's four rows are neighbours, whose gradients are one load. A tile does not
 * care which neuron is which either: a lane takes VECTOR neighbours at a time, as the alignment of
 * the rows allows (H = 650 and 1150 are no multiples of four). Loads are STEPS turns ahead.
 *
 * The warps add up their sums in shared memory, and the block that ends last those of the parts, in
 * the order of the parts whichever that block is. */
#include "evoke_cuda.h"
#include "evoke_mma.h"
#include "evoke_rows.h"
#include <cuda_fp16.h>

#ifndef TILES
#define TILES 2
#endif
#ifndef EIGHTS
#define EIGHTS 3
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef PARTS
#define PARTS 8
#endif
#ifndef STEPS
#define STEPS 4
#endif

#define COLUMNS (16 * TILES) /* neurons of a block */
#define BATCH (8 * EIGHTS)   /* sequences of a block */
#define THREADS (32 * WARPS)
#define STRIDE (16 * WARPS)             /* rows of a turn of all warps */
#define FRAGMENTS (TILES * EIGHTS * 32) /* a lane's four sums of a tile */
#define SLOTS (WARPS > 4 ? 4 : WARPS)   /* warps whose sums fit into shared memory */
#define MOST 8192                       /* places in the grid that can be in parts */

#if __CUDA_ARCH__ >= 750

/* Parts of a place that have arrived; zero between launches, which therefore must not overlap. */
static __device__ unsigned int arrived[MOST];

/* What a block makes: neurons and sequences from these on, of rows [from, end). */
struct place {
    int column, sequence, from, end;
};

/* A lane's part of a turn of 16 rows: pairs of neurons of four rows, and four gradients each. */
struct turn {
    unsigned int w[4][TILES];
    uint2 g[EIGHTS];
};

/* Which neuron of the block is element i of a lane. */
template <int VECTOR> static __device__ __forceinline__ int column_of(int lane, int i) {
    return i / VECTOR * 8 * VECTOR + lane / 4 * VECTOR + i % VECTOR;
}

/* A lane's elements of a row. Those behind the last neuron are of others, and are never stored. */
template <int VECTOR>
static __device__ __forceinline__ void load_row(unsigned int (&pair)[TILES],
                                                const unsigned short *__restrict__ row, int column,
                                                int lane, int H) {
#pragma unroll
    for (int i = 0; i < 2 * TILES; i += VECTOR) {
        const unsigned short *at = row + min(column + column_of<VECTOR>(lane, i), H - VECTOR);
        if (VECTOR == 8) {
            const uint4 t = *(const uint4 *)at;
            pair[i / 2] = t.x;
            pair[(i / 2 + 1) % TILES] = t.y;
            pair[(i / 2 + 2) % TILES] = t.z;
            pair[(i / 2 + 3) % TILES] = t.w;
        } else if (VECTOR == 4) {
            const uint2 t = *(const uint2 *)at;
            pair[i / 2] = t.x;
            pair[(i / 2 + 1) % TILES] = t.y;
        } else if (VECTOR == 2) {
            pair[i / 2] = *(const unsigned int *)at;
        } else {
            const unsigned int t = *at;
            pair[i / 2] = i % 2 ? pair[i / 2] | t << 16 : t;
        }
    }
}

/* The turn that begins with row `first`; zeros behind the part. */
template <int VECTOR>
static __device__ __forceinline__ void
load_turn(turn &to, const unsigned short *__restrict__ dG, const unsigned short *__restrict__ W,
          const place &p, int first, int lane, int B, int H) {
    const int row = first + lane % 4 * 4;
    const bool is_there = row < p.end; /* all four are, or none */
#pragma unroll
    for (int r = 0; r < 4; r++) {
        if (is_there) {
            load_row<VECTOR>(to.w[r], W + (size_t)(row + r) * H, p.column, lane, H);
        } else {
#pragma unroll
            for (int m = 0; m < TILES; m++)
                to.w[r][m] = 0;
        }
    }
#pragma unroll
    for (int n = 0; n < EIGHTS; n++) {
        const int b = min(B - 1, p.sequence + 8 * n + lane / 4);
        to.g[n] = is_there ? *(const uint2 *)(dG + (size_t)b * 4 * H + row) : make_uint2(0, 0);
    }
}

static __device__ __forceinline__ void multiply(float (&sum)[TILES][EIGHTS][4], const turn &of) {
#pragma unroll
    for (int m = 0; m < TILES; m++) {
        const unsigned int a[4] = {
            low_halves(of.w[0][m], of.w[1][m]), high_halves(of.w[0][m], of.w[1][m]),
            low_halves(of.w[2][m], of.w[3][m]), high_halves(of.w[2][m], of.w[3][m])};
#pragma unroll
        for (int n = 0; n < EIGHTS; n++)
            mma_f16(sum[m][n], a, of.g[n].x, of.g[n].y);
    }
}

/* Adds up the sums of the warps: those of SLOTS warps to those of the SLOTS before them, until
 * `slots` has what is left. */
static __device__ __forceinline__ void join(float (&sum)[TILES][EIGHTS][4],
                                            float4 (&slots)[SLOTS][FRAGMENTS]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int active = WARPS; active > 0; active -= SLOTS) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILES * EIGHTS; i++) {
            const float *s = sum[i / EIGHTS][i % EIGHTS];
            if (warp >= active - SLOTS && warp < active)
                slots[warp % SLOTS][i * 32 + lane] = make_float4(s[0], s[1], s[2], s[3]);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILES * EIGHTS; i++) {
            float *s = sum[i / EIGHTS][i % EIGHTS];
            if (warp >= active - 2 * SLOTS && warp < active - SLOTS) {
                const float4 v = slots[warp % SLOTS][i * 32 + lane];
                s[0] += v.x;
                s[1] += v.y;
                s[2] += v.z;
                s[3] += v.w;
            }
        }
    }
}

/* Stores the gradients of a fragment: two neurons of two sequences each. */
template <int VECTOR>
static __device__ __forceinline__ void store(half *__restrict__ dX, const unsigned int *mask,
                                             const place &p, int fragment, float4 v, int B, int H,
                                             float scale) {
    const int lane = fragment % 32, tile = fragment / 32 / EIGHTS;
    const int b = p.sequence + fragment / 32 % EIGHTS * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int c = column_of<VECTOR>(lane, 2 * tile + i), h = p.column + c;
        const bool is_kept = mask[c / 32] >> c % 32 & 1u;
        const float first = i == 0 ? v.x : v.z, second = i == 0 ? v.y : v.w;
        if (h < H && b < B)
            dX[(size_t)b * H + h] = __float2half(is_kept ? scale * first : 0.0f);
        if (h < H && b + 1 < B)
            dX[(size_t)(b + 1) * H + h] = __float2half(is_kept ? scale * second : 0.0f);
    }
}

struct shared {
    float4 slots[SLOTS][FRAGMENTS];
    unsigned int mask[(COLUMNS + 31) / 32]; /* a bit a neuron: kept */
    bool is_last;
};

/* Whether this block is the last one of its place whose sums are in `sums`. */
static __device__ __forceinline__ bool is_last_part(shared &s, int index, int parts) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        s.is_last = atomicInc(&arrived[index], parts - 1) == (unsigned int)parts - 1;
    __syncthreads();
    __threadfence();
    return s.is_last;
}

/* The block's part of the sums, and the gradients of its place where it ends last. `sums` has the
 * fragments of all parts of all places, `index` is the place's number. */
template <int VECTOR>
static __device__ __forceinline__ void
gradient(shared &s, const unsigned short *__restrict__ dG, const int *__restrict__ kept,
         const unsigned short *__restrict__ W, half *__restrict__ dX, float4 *sums, const place &p,
         int index, int parts, int B, int H, int k, float scale) {
    const int thread = threadIdx.x, lane = thread % 32;
    float sum[TILES][EIGHTS][4] = {};
    turn turns[STEPS];
    const int first = p.from + thread / 32 * 16;
#pragma unroll
    for (int t = 0; t < STEPS; t++)
        load_turn<VECTOR>(turns[t], dG, W, p, first + t * STRIDE, lane, B, H);

    if (thread < (COLUMNS + 31) / 32)
        s.mask[thread] = 0;
    __syncthreads();
#pragma unroll 4
    for (int i = thread; i < k; i += THREADS) {
        const int c = kept[i] - p.column;
        if (c >= 0 && c < COLUMNS)
            atomicOr(&s.mask[c / 32], 1u << c % 32);
    }

#pragma unroll 1
    for (int at = first; at < p.end; at += STEPS * STRIDE) {
#pragma unroll
        for (int t = 0; t < STEPS; t++) {
            multiply(sum, turns[t]);
            load_turn<VECTOR>(turns[t], dG, W, p, at + (t + STEPS) * STRIDE, lane, B, H);
        }
    }

    join(sum, s.slots);
#pragma unroll 1
    for (int f = thread; f < FRAGMENTS; f += THREADS) {
        float4 total = s.slots[0][f];
#pragma unroll
        for (int i = 1; i < SLOTS; i++)
            total = add4(total, s.slots[i][f]);
        if (parts == 1)
            store<VECTOR>(dX, s.mask, p, f, total, B, H, scale);
        else
            sums[((size_t)index * PARTS + blockIdx.z) * FRAGMENTS + f] = total;
    }
    if (parts == 1 || !is_last_part(s, index, parts))
        return;
#pragma unroll 1
    for (int f = thread; f < FRAGMENTS; f += THREADS) {
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            total = add4(total, sums[((size_t)index * PARTS + part) * FRAGMENTS + f]);
        store<VECTOR>(dX, s.mask, p, f, total, B, H, scale);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sd_lstm_bp_data_f16(const half *__restrict__ dG, const int *__restrict__ kept,
                        const half *__restrict__ W, half *__restrict__ dX, float *sums, int B,
                        int H, int k, float scale) {
    __shared__ shared s;

    /* A grid of more places than there are counters is not in parts. */
    const int index = (int)(blockIdx.y * gridDim.x + blockIdx.x);
    const int parts = gridDim.x * gridDim.y <= MOST ? PARTS : 1;
    if ((int)blockIdx.z >= parts)
        return;
    const int rows = ((H + 3) / 4 + parts - 1) / parts * 16; /* of a part: whole turns of 16 */
    const place p = {(int)blockIdx.x * COLUMNS, (int)blockIdx.y * BATCH, (int)blockIdx.z * rows,
                     min(4 * H, ((int)blockIdx.z + 1) * rows)};
    const unsigned short *g = (const unsigned short *)dG, *w = (const unsigned short *)W;
    if (TILES >= 4 && H % 8 == 0)
        gradient<(TILES >= 4 ? 8 : 2)>(s, g, kept, w, dX, (float4 *)sums, p, index, parts, B, H, k,
                                       scale);
    else if (TILES >= 2 && H % 4 == 0)
        gradient<(TILES >= 2 ? 4 : 2)>(s, g, kept, w, dX, (float4 *)sums, p, index, parts, B, H, k,
                                       scale);
    else if (H % 2 == 0)
        gradient<2>(s, g, kept, w, dX, (float4 *)sums, p, index, parts, B, H, k, scale);
    else
        gradient<1>(s, g, kept, w, dX, (float4 *)sums, p, index, parts, B, H, k, scale);
}
#else

extern "C" __global__ void __launch_bounds__(THREADS)
    sd_lstm_bp_data_f16(const half *__restrict__ dG, const int *__restrict__ kept,
                        const half *__restrict__ W, half *__restrict__ dX, float *, int B, int H,
                        int k, float scale) {
    __shared__ unsigned int mask[(COLUMNS + 31) / 32];
    if (blockIdx.z != 0)
        return;
    const int column = blockIdx.x * COLUMNS, sequence = blockIdx.y * BATCH;
    if (threadIdx.x < (COLUMNS + 31) / 32)
        mask[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += THREADS) {
        const int c = kept[i] - column;
        if (c >= 0 && c < COLUMNS)
            atomicOr(&mask[c / 32], 1u << c % 32);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS * BATCH; i += THREADS) {
        const int c = i % COLUMNS, h = column + c, b = sequence + i / COLUMNS;
        if (h >= H || b >= B)
            continue;
        float sum = 0.0f;
        for (int j = 0; j < 4 * H && mask[c / 32] >> c % 32 & 1u; j++)
            sum += __half2float(dG[(size_t)b * 4 * H + j]) * __half2float(W[(size_t)j * H + h]);
        dX[(size_t)b * H + h] = __float2half(scale * sum);
    }
}
#endif
