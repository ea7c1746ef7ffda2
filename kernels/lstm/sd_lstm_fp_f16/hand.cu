/* Forward step of an LSTM layer with structured dropout in half precision, by hand for tensor
 * cores.
 *
 * W is read once from DRAM, which bounds the time, and DRAM moves whole sectors: with one kept
 * neuron in three, nearly all of them. So nothing is gathered. The inputs of dropped neurons become
 * zeros by a mask in shared memory, and the product takes all columns, whose weights are finite.
 *
 * A block makes UNITS units of BATCH sequences. A tile of 16 rows of W has the four gates of four
 * units; mma.sync multiplies it by 16 columns of eight sequences. The warps share the columns out
 * in turns of 32, load STEPS turns ahead from DRAM into registers, and add up their sums in shared
 * memory at the end. A sum does not care which column is which, so a lane takes its eight columns
 * of a turn as its loads bring them: VECTOR neighbours at a time, as the alignment of the rows
 * allows (H = 650 and 1150 are no multiples of four). */
#include "evoke_cuda.h"
#include "evoke_mma.h"
#include <cuda_fp16.h>

#ifndef UNITS
#define UNITS 4
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef EIGHTS
#define EIGHTS 3
#endif
#ifndef STEPS
#define STEPS 1
#endif

#define TILES (UNITS / 4)
#define BATCH (8 * EIGHTS) /* sequences a block */
#define THREADS (32 * WARPS)
#define STRIDE (32 * WARPS) /* columns of a turn of all warps */
#define MOST 65536          /* columns */
#define PITCH (BATCH + 4)

static __device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

/* The gates, the cell and the output of unit j of sequence b, by the sums of the gates. */
static __device__ __forceinline__ void make_cell(const float z[4], const half *C, half *gates,
                                                 half *C_out, half *H_out, int b, int j, int H) {
    const size_t at = (size_t)b * H + j;
    half *out = gates + (size_t)b * 4 * H + j;
    float i = sigmoid(z[0]), f = sigmoid(z[1]), g = tanhf(z[2]), o = sigmoid(z[3]);
    float c = f * __half2float(C[at]) + i * g;
    out[0] = __float2half(i);
    out[H] = __float2half(f);
    out[2 * H] = __float2half(g);
    out[3 * H] = __float2half(o);
    C_out[at] = __float2half(c);
    H_out[at] = __float2half(o * tanhf(c));
}

#if __CUDA_ARCH__ >= 750

/* Eight halves of a lane, in pairs. */
struct eight {
    unsigned pair[4];
};

/* Column of the lane's element i in a turn. */
template <int VECTOR> static __device__ __forceinline__ int column_of(int i) {
    return i / VECTOR * 4 * VECTOR + (int)threadIdx.x % 4 * VECTOR + i % VECTOR;
}

/* The lane's columns of a turn from `turn` on; zeros from `columns` on. `row` is aligned to VECTOR
 * elements, as `columns` is. Single elements (VECTOR 1) are zeros, too, where bit 4 i of `own` is
 * not set: no further masks are in registers while the loads of all sequences are under way. */
template <int VECTOR>
static __device__ __forceinline__ eight load8(const unsigned short *row, int turn, int columns,
                                              unsigned own = ~0u) {
    eight e;
#pragma unroll
    for (int i = 0; i < 8; i += VECTOR) {
        const int at = turn + column_of<VECTOR>(i);
        const bool is_there = at < columns;
        if (VECTOR == 8) {
            uint4 t = is_there ? *(const uint4 *)(row + at) : make_uint4(0, 0, 0, 0);
            e.pair[0] = t.x;
            e.pair[1] = t.y;
            e.pair[2] = t.z;
            e.pair[3] = t.w;
        } else if (VECTOR == 4) {
            uint2 t = is_there ? *(const uint2 *)(row + at) : make_uint2(0, 0);
            e.pair[i / 2] = t.x;
            e.pair[i / 2 + 1] = t.y;
        } else if (VECTOR == 2) {
            e.pair[i / 2] = is_there ? *(const unsigned *)(row + at) : 0;
        } else {
            unsigned t = is_there ? row[at] : 0;
            t = own >> 4 * i & 1u ? t : 0;
            e.pair[i / 2] = i % 2 ? e.pair[i / 2] | t << 16 : t;
        }
    }
    return e;
}

/* sum += w x over 16 columns: rows of the lane's group and eight further, sequences of the group.
 */
static __device__ __forceinline__ void multiply(float (&sum)[4], const eight &low,
                                                const eight &high, const eight &x, int i) {
    const unsigned int rows[4] = {low.pair[i], high.pair[i], low.pair[i + 1], high.pair[i + 1]};
    mma_f16(sum, rows, x.pair[i], x.pair[i + 1]);
}

/* All bits of those halves of the lane whose columns are kept; `bits`: of the turn. */
template <int VECTOR> static __device__ __forceinline__ eight mask8(unsigned bits) {
    eight e;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        e.pair[i / 2] = (bits >> column_of<VECTOR>(i) & 1u ? 0xffffu : 0) |
                        (bits >> column_of<VECTOR>(i + 1) & 1u ? 0xffff0000u : 0);
    }
    return e;
}

/* The warp's turns of columns [0, H) of the rows of W, added to the sums. */
template <int VECTOR>
static __device__ __forceinline__ void
product(float (&sum)[TILES][EIGHTS][4], const unsigned short *__restrict__ X,
        const int *__restrict__ kept, const unsigned short *__restrict__ W, unsigned *mask, int B,
        int H, int k, int first_unit, int first_row) {
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4;
    const unsigned short *rows[TILES][2], *x_rows = X + (size_t)first_row * H;
    const int last = B - 1 - first_row;
    eight w[STEPS][TILES][2];
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int unit = min(H - 1, first_unit + 4 * t + group % 4);
            rows[t][i] = W + (size_t)((group / 4 + 2 * i) * H + unit) * H;
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                w[s][t][i] = load8<VECTOR>(rows[t][i], 32 * warp + s * STRIDE, H);
        }
    }

    for (int i = threadIdx.x; i < (H + 31) / 32; i += THREADS)
        mask[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += THREADS)
        atomicOr(&mask[kept[i] / 32], 1u << kept[i] % 32);
    __syncthreads();

#pragma unroll 1
    for (int turn = 32 * warp; turn < H; turn += STEPS * STRIDE) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const int at = turn + s * STRIDE;
            const unsigned bits = at < H ? mask[at / 32] : 0, own = bits >> threadIdx.x % 4;
#pragma unroll
            for (int n = 0; n < EIGHTS; n++) {
                /* The last sequence stands for those behind it, whose sums are not stored. */
                eight x = load8<VECTOR>(x_rows + min(last, 8 * n + group) * H, at, H, own);
                if (VECTOR > 1) {
                    const eight on = mask8<VECTOR>(bits);
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        x.pair[i] &= on.pair[i];
                }
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    multiply(sum[t][n], w[s][t][0], w[s][t][1], x, 0);
                    multiply(sum[t][n], w[s][t][0], w[s][t][1], x, 2);
                }
            }
#pragma unroll
            for (int t = 0; t < TILES; t++) {
#pragma unroll
                for (int i = 0; i < 2; i++)
                    w[s][t][i] = load8<VECTOR>(rows[t][i], at + STEPS * STRIDE, H);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS)
    sd_lstm_fp_f16(const half *__restrict__ X, const int *__restrict__ kept,
                   const half *__restrict__ W, const half *__restrict__ G,
                   const half *__restrict__ C, half *__restrict__ gates, half *__restrict__ C_out,
                   half *__restrict__ H_out, int B, int H, int k, float scale) {
    __shared__ unsigned mask[MOST / 32];
    __shared__ float sums[WARPS][4 * UNITS][PITCH];

    const unsigned short *x = (const unsigned short *)X, *w = (const unsigned short *)W;
    const int first_unit = blockIdx.x * UNITS, first_row = blockIdx.y * BATCH;
    float sum[TILES][EIGHTS][4] = {};
    if (H % 8 == 0)
        product<8>(sum, x, kept, w, mask, B, H, k, first_unit, first_row);
    else if (H % 4 == 0)
        product<4>(sum, x, kept, w, mask, B, H, k, first_unit, first_row);
    else if (H % 2 == 0)
        product<2>(sum, x, kept, w, mask, B, H, k, first_unit, first_row);
    else
        product<1>(sum, x, kept, w, mask, B, H, k, first_unit, first_row);

    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
            *(float2 *)&sums[warp][16 * t + group][8 * n + pair] =
                make_float2(sum[t][n][0], sum[t][n][1]);
            *(float2 *)&sums[warp][16 * t + group + 8][8 * n + pair] =
                make_float2(sum[t][n][2], sum[t][n][3]);
        }
    }
    __syncthreads();

    for (int n = threadIdx.x; n < BATCH * UNITS; n += THREADS) {
        const int u = n % UNITS, r = n / UNITS;
        const int b = first_row + r, j = first_unit + u;
        if (b < B && j < H) {
            const half *recurrent = G + (size_t)b * 4 * H + j;
            float z[4];
#pragma unroll
            for (int gate = 0; gate < 4; gate++) {
                float total = 0.0f;
#pragma unroll
                for (int part = 0; part < WARPS; part++)
                    total += sums[part][u / 4 * 16 + gate * 4 + u % 4][r];
                z[gate] = __half2float(recurrent[gate * H]) + scale * total;
            }
            make_cell(z, C, gates, C_out, H_out, b, j, H);
        }
    }
}
#else

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS)
    sd_lstm_fp_f16(const half *__restrict__ X, const int *__restrict__ kept,
                   const half *__restrict__ W, const half *__restrict__ G,
                   const half *__restrict__ C, half *__restrict__ gates, half *__restrict__ C_out,
                   half *__restrict__ H_out, int B, int H, int k, float scale) {
    for (int n = threadIdx.x; n < BATCH * UNITS; n += THREADS) {
        const int b = blockIdx.y * BATCH + n / UNITS, j = blockIdx.x * UNITS + n % UNITS;
        if (b >= B || j >= H)
            continue;
        float z[4];
        for (int gate = 0; gate < 4; gate++) {
            float sum = 0.0f;
            for (int i = 0; i < k; i++)
                sum += __half2float(X[(size_t)b * H + kept[i]]) *
                       __half2float(W[((size_t)gate * H + j) * H + kept[i]]);
            z[gate] = __half2float(G[((size_t)b * 4 + gate) * H + j]) + scale * sum;
        }
        make_cell(z, C, gates, C_out, H_out, b, j, H);
    }
}
#endif
