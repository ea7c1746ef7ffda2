/* Data gradient of a layer whose output gradient has rows of zeros in bfloat16, by hand for tensor
 * cores.
 *
 * A block owns SPAN rows of dX and BN columns. Its warps look for the first element of each row of
 * dY that is not zero. The numbers of the live rows are compacted in order, and the rows of zeros
 * get their zeros. The live rows are multiplied up to ROWS at a time, in tiles of eight. A warp
 * makes 64 columns of them over a part of the depth, and the parts' sums meet in shared memory. W
 * comes by asynchronous copies, into a tile of the warp's own, whose halves take turns, and
 * ldmatrix transposes it; rows of dY come straight into registers, a step of 32 ahead. A lane takes
 * the depth in the order in which its loads of dY bring it, eight neighbours at a time, which
 * changes no sum. So no warp waits for another one in the loop. Lengths that are no multiples of
 * eight take a plain way, an element at a time. */
#include "evoke_cuda.h"
#include "evoke_mma.h"
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#ifndef SPAN
#define SPAN 64
#endif
#ifndef BN
#define BN 128
#endif
#ifndef ROWS
#define ROWS 40
#endif

#define WARPS 8
#define THREADS (32 * WARPS)

#if __CUDA_ARCH__ >= 800
#define PARTS (WARPS * 64 / BN) /* of the depth */
#define TILES (ROWS / 8)
#define STRIDE 68  /* of the rows of sums: eight columns of four rows use all banks */
#define PROBES 8   /* loads under way in a row that seems to be zero */
#define TOGETHER 2 /* such rows at a time */

/* What a block works on: its rows of dY and dX, from its first one on. */
struct problem {
    const __nv_bfloat16 *dY, *W;
    __nv_bfloat16 *dX;
    int rows, column; /* that exist; the first of the block's columns */
    int N, K;
    bool vector; /* N and K are multiples of eight */
};

struct memory {
    union {
        __nv_bfloat16 w[32 * 64]; /* a step of W; see w_at */
        float sum[16 * STRIDE];   /* two tiles, [row][column] */
    } warps[WARPS];
    bool flags[SPAN];
    int live[SPAN + ROWS]; /* the numbers of the live rows; then zeros */
};

/* ---- live rows ---- */

static __device__ __forceinline__ bool is_any(uint4 v) {
    return ((v.x | v.y | v.z | v.w) & 0x7fff7fffu) != 0;
}

/* Eight elements of a row, the last ones from there on. */
static __device__ __forceinline__ uint4 load8(const __nv_bfloat16 *row, int k, int K) {
    return *(const uint4 *)(row + min(k, K - 8));
}

/* Which of the rows in `rest` have an element other than zero from `first` on: a bit for each of
 * the warp's rows, which are WARPS rows apart. */
static __device__ __forceinline__ unsigned int find_rest(const problem &p, unsigned int rest,
                                                         int first, int warp, int lane) {
    unsigned int found = 0;
#pragma unroll 1
    while (rest != 0) {
        unsigned int bit[TOGETHER];
        const __nv_bfloat16 *row[TOGETHER];
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) {
            const int i = __ffs((int)rest) - 1;
            bit[e] = rest & (0 - rest);
            row[e] = rest != 0 ? p.dY + (size_t)(i * WARPS + warp) * p.K : row[0];
            rest &= rest - 1;
        }
#pragma unroll 1
        for (int k = first; k < p.K; k += 256 * PROBES) {
            uint4 v[TOGETHER][PROBES];
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
#pragma unroll
                for (int i = 0; i < PROBES; i++)
                    v[e][i] = load8(row[e], k + i * 256 + lane * 8, p.K);
            }
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
                uint4 any = v[e][0];
#pragma unroll
                for (int i = 1; i < PROBES; i++)
                    any = make_uint4(any.x | v[e][i].x, any.y | v[e][i].y, any.z | v[e][i].z,
                                     any.w | v[e][i].w);
                found |= __any_sync(0xffffffffu, is_any(any)) ? bit[e] : 0;
            }
        }
    }
    return found;
}

/* A bit for each of the warp's rows: whether it has an element other than zero. */
static __device__ __forceinline__ unsigned int find_live(const problem &p, int warp, int lane) {
    unsigned int found = 0, inside = 0;
    if (!p.vector) {
#pragma unroll 1
        for (int i = 0; i < SPAN / WARPS; i++) {
            bool any = false;
            for (int k = lane; k < p.K && i * WARPS + warp < p.rows; k += 32)
                any = any || __bfloat162float(p.dY[(size_t)(i * WARPS + warp) * p.K + k]) != 0.0f;
            found |= __any_sync(0xffffffffu, any) ? 1u << i : 0;
        }
        return found;
    }
    /* A live row mostly shows in its first elements, so those of all rows are read at once. */
    uint4 begin[SPAN / WARPS];
#pragma unroll
    for (int i = 0; i < SPAN / WARPS; i++) {
        const int r = i * WARPS + warp;
        begin[i] = load8(p.dY + (size_t)min(r, p.rows - 1) * p.K, lane * 8, p.K);
        inside |= r < p.rows ? 1u << i : 0;
    }
#pragma unroll
    for (int i = 0; i < SPAN / WARPS; i++)
        found |= __any_sync(0xffffffffu, is_any(begin[i])) ? 1u << i : 0;
    found &= inside;
    return found | find_rest(p, inside & ~found, 256, warp, lane);
}

/* Writes the numbers of the live rows to `live`, in order; how many there are. */
static __device__ __forceinline__ int compact(const bool *flags, int *live, int warp, int lane) {
    int before = 0;
#pragma unroll
    for (int r = lane; r < (SPAN + 31) / 32 * 32; r += 32) {
        const bool own = r < SPAN && flags[r];
        const unsigned int bits = __ballot_sync(0xffffffffu, own);
        if (warp == 0 && own)
            live[before + __popc(bits & ((1u << lane) - 1u))] = r;
        before += __popc(bits);
    }
    return before;
}

/* ---- products ---- */

/* Where chunk c, eight columns, of row k of a step of W stands: rows 0, 1, 8, 9, 16, 17, 24 and 25
 * use all banks, as those four further do, and so on. */
static __device__ __forceinline__ int w_at(int k, int c) {
    return k * 64 + (c ^ (k / 8 * 2 + k % 2)) * 8;
}

/* Half h of a step: of each eight rows, the first or the last four. */
static __device__ __forceinline__ void copy_half(__nv_bfloat16 *tile, const problem &p, int k,
                                                 int column, int h, int lane) {
    const int at = column + lane % 8 * 8;
    const __nv_bfloat16 *from = p.W + (k + 4 * h + lane / 8) * p.N + min(at, p.N - 8);
#pragma unroll
    for (int i = 0; i < 4; i++)
        __pipeline_memcpy_async(tile + w_at(8 * i + 4 * h + lane / 8, lane % 8), from + 8 * i * p.N,
                                16, at < p.N ? 0 : 16);
}

/* Rows of the transpose of half h, 16 a tile. Element (2t, g) of B is element 8t + 4h of row g of
 * dY, and element (2t + 8, g) is two further. */
static __device__ __forceinline__ void load_half(unsigned int (&a)[4][4], const __nv_bfloat16 *tile,
                                                 int h, int lane) {
    const int k = lane % 8 / 2 * 8 + 4 * h + lane / 16 * 2 + lane % 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
        load_transposed(a[i], tile + w_at(k, 2 * i + lane / 8 % 2));
}

/* The lane's rows of the tiles, eight numbers apart, and how many tiles have a row. */
struct places {
    const int *rows; /* in shared memory, which has more room than the registers */
    int tiles;
};

static __device__ __forceinline__ void load_rows(uint4 (&y)[TILES], const problem &p,
                                                 const places &at, int k) {
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        y[j] = *(const uint4 *)(p.dY + at.rows[8 * j] * p.K + k);
    }
}

static __device__ __forceinline__ void multiply(float (&sum)[4][TILES][4],
                                                const unsigned int (&a)[4][4],
                                                const uint4 (&y)[TILES], int h, int tiles) {
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        if (j < tiles) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                mma_bf16(sum[i][j], a[i], h == 0 ? y[j].x : y[j].z, h == 0 ? y[j].y : y[j].w);
        }
    }
}

/* A step: multiplies `now`, and loads what comes PARTS steps later. */
static __device__ __forceinline__ void turn(float (&sum)[4][TILES][4], __nv_bfloat16 *tile,
                                            const problem &p, const places &at,
                                            const uint4 (&now)[TILES], uint4 (&next)[TILES], int s,
                                            int column, int lane) {
    const int k = 32 * (s + PARTS);
    const bool goes_on = k + 32 <= p.K;
    if (goes_on)
        load_rows(next, p, at, k + lane % 4 * 8);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        unsigned int a[4][4];
        __pipeline_wait_prior(1);
        __syncwarp();
        load_half(a, tile, h, lane);
        __syncwarp();
        if (goes_on)
            copy_half(tile, p, k, column, h, lane);
        __pipeline_commit();
        multiply(sum, a, now, h, at.tiles);
    }
}

static __device__ __forceinline__ __nv_bfloat16 element(const __nv_bfloat16 *matrix, int row,
                                                        int rows, int column, int columns) {
    return row < rows && column < columns ? matrix[row * columns + column] : __float2bfloat16(0.0f);
}

/* 16 of the depth from k on, element by element; zeros from K and N on. W takes the first halves of
 * the tile, and 16 rows of dY at a time the others. */
static __device__ __forceinline__ void multiply_elements(float (&sum)[4][TILES][4],
                                                         __nv_bfloat16 *tile, const problem &p,
                                                         const places &at, int k, int column,
                                                         int lane) {
    unsigned int a[4][4];
    uint4 y[TILES];
#pragma unroll 1
    for (int i = lane; i < 16 * 64; i += 32) {
        const int d = i / 64, c = i % 64;
        tile[w_at(d / 4 * 8 + d % 4, c / 8) + c % 8] = element(p.W, k + d, p.K, column + c, p.N);
    }
#pragma unroll 1
    for (int i = lane; i < ROWS * 16; i += 32) {
        const int r = i / 16, d = i % 16;
        const __nv_bfloat16 *row = p.dY + at.rows[r / 8 < at.tiles ? r - lane / 4 : 0] * p.K;
        tile[256 + r / 16 * 512 + r % 16 * 16 + d] = element(row, 0, 1, k + d, p.K);
    }
    __syncwarp();
    load_half(a, tile, 0, lane);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        const int r = 8 * j + lane / 4;
        const uint2 v = *(const uint2 *)(tile + 256 + r / 16 * 512 + r % 16 * 16 + lane % 4 * 4);
        y[j] = make_uint4(v.x, v.y, 0, 0);
    }
    multiply(sum, a, y, 0, at.tiles);
    __syncwarp();
}

/* Both halves of the warp's first step. */
static __device__ __forceinline__ void copy_first(memory &shared, const problem &p, int warp,
                                                  int lane) {
    const int k = warp % PARTS * 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (p.vector && k + 32 <= p.K)
            copy_half(shared.warps[warp].w, p, k, p.column + warp / PARTS * 64, h, lane);
        __pipeline_commit();
    }
}

/* The warp's sums over its part of the depth, for the live rows from `first` on. */
static __device__ __forceinline__ void make_sums(float (&sum)[4][TILES][4], memory &shared,
                                                 const problem &p, int first, int count, int warp,
                                                 int lane) {
    const int part = warp % PARTS, column = p.column + warp / PARTS * 64;
    const int steps = p.vector ? p.K / 32 : 0;
    __nv_bfloat16 *tile = shared.warps[warp].w;
    const places at = {shared.live + first + lane / 4, (min(count - first, ROWS) + 7) / 8};
    uint4 even[TILES] = {}, odd[TILES] = {};
    if (part < steps)
        load_rows(even, p, at, part * 32 + lane % 4 * 8);
#pragma unroll 1
    for (int s = part; s < steps; s += 2 * PARTS) {
        turn(sum, tile, p, at, even, odd, s, column, lane);
        if (s + PARTS < steps)
            turn(sum, tile, p, at, odd, even, s + PARTS, column, lane);
    }
#pragma unroll 1
    for (int k = 32 * steps + 16 * part; k < p.K; k += 16 * PARTS)
        multiply_elements(sum, tile, p, at, k, column, lane);
    __syncwarp();
}

/* ---- dX ---- */

/* Four columns of a row of dX, rounded. */
static __device__ __forceinline__ void store4(const problem &p, int row, int column, float4 v) {
    const __nv_bfloat16 y[4] = {__float2bfloat16(v.x), __float2bfloat16(v.y), __float2bfloat16(v.z),
                                __float2bfloat16(v.w)};
    __nv_bfloat16 *to = p.dX + (size_t)row * p.N + column;
    if (p.vector) {
        if (column < p.N)
            *(uint2 *)to = make_uint2(
                __bfloat16_as_ushort(y[0]) | (unsigned int)__bfloat16_as_ushort(y[1]) << 16,
                __bfloat16_as_ushort(y[2]) | (unsigned int)__bfloat16_as_ushort(y[3]) << 16);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (column + i < p.N)
            to[i] = y[i];
    }
}

/* Adds up the warps' sums, two tiles at a time, and stores them. */
static __device__ __forceinline__ void store_sums(memory &shared, const problem &p,
                                                  const float (&sum)[4][TILES][4], int first,
                                                  int count, int warp, int lane) {
    const int row = threadIdx.x / 16, four = threadIdx.x % 16 * 4;
#pragma unroll
    for (int j = 0; j < TILES; j += 2) {
        if (first + 8 * j < count) {
            float *to = shared.warps[warp].sum + lane % 4 * 2 * STRIDE + lane / 4;
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int e = 0; e < (j + 1 < TILES ? 8 : 4); e++)
                    to[(e / 4 * 8 + e % 2) * STRIDE + 16 * i + e / 2 % 2 * 8] =
                        sum[i][j + e / 4][e % 4];
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < BN / 64; i++) {
                float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    const float4 v =
                        *(const float4 *)&shared.warps[i * PARTS + part].sum[row * STRIDE + four];
                    total = make_float4(total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w);
                }
                if (first + 8 * j + row < count)
                    store4(p, shared.live[first + 8 * j + row], p.column + i * 64 + four, total);
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_input_sparse_bf16(const __nv_bfloat16 *__restrict__ dY,
                              const __nv_bfloat16 *__restrict__ W, __nv_bfloat16 *__restrict__ dX,
                              int M, int N, int K) {
    __shared__ __align__(128) memory shared;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int row = blockIdx.y * SPAN;
    const problem p = {
        dY + (size_t)row * K, W, dX + (size_t)row * N, M - row, (int)blockIdx.x * BN, N, K,
        ((N | K) & 7) == 0};

    copy_first(shared, p, warp, lane);
    const unsigned int found = find_live(p, warp, lane);
    if (thread < SPAN + ROWS)
        shared.live[thread] = 0;
    if (lane < SPAN / WARPS)
        shared.flags[lane * WARPS + warp] = (found >> lane & 1u) != 0;
    __syncthreads();
    const int count = compact(shared.flags, shared.live, warp, lane);
#pragma unroll 1
    for (int i = thread; i < SPAN * BN / 4; i += THREADS) {
        const int r = i / (BN / 4);
        if (!shared.flags[r] && r < p.rows)
            store4(p, r, p.column + i % (BN / 4) * 4, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
    __syncthreads();

#pragma unroll 1
    for (int first = 0; first < count; first += ROWS) {
        float sum[4][TILES][4] = {};
        if (first > 0)
            copy_first(shared, p, warp, lane);
        make_sums(sum, shared, p, first, count, warp, lane);
        store_sums(shared, p, sum, first, count, warp, lane);
    }
    __pipeline_wait_prior(0); /* for a block without a live row */
}
#else

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_input_sparse_bf16(const __nv_bfloat16 *__restrict__ dY,
                              const __nv_bfloat16 *__restrict__ W, __nv_bfloat16 *__restrict__ dX,
                              int M, int N, int K) {
    for (int i = threadIdx.x; i < SPAN * BN; i += THREADS) {
        const int m = blockIdx.y * SPAN + i / BN, n = blockIdx.x * BN + i % BN;
        if (m >= M || n >= N)
            continue;
        float sum = 0.0f;
        for (int k = 0; k < K; k++)
            sum += __bfloat162float(dY[(size_t)m * K + k]) * __bfloat162float(W[(size_t)k * N + n]);
        dX[(size_t)m * N + n] = __float2bfloat16(sum);
    }
}
#endif
