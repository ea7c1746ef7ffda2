/* Data gradient of a layer whose output gradient has rows of zeros, by hand.
 *
 * A block owns SPAN rows of dX and 64 columns. Its warps look for the first element of each row of
 * dY that is not zero. The numbers of the live rows are compacted in order, and the rows of zeros
 * get their zeros. The live rows are multiplied 32 at a time: each of the eight warps makes the
 * whole tile of 32 x 64 over an eighth of the depth, eight rows and eight columns a lane, and the
 * eight sums meet in shared memory. While a step of 32 is multiplied, the next one is loaded into
 * registers. */
#include "evoke_cuda.h"
#include "evoke_rows.h"

#ifndef SPAN
#define SPAN 96
#endif

#define WARPS 8
#define THREADS (32 * WARPS)
#define ROWS 32
#define COLUMNS 64
#define PROBES 8 /* loads under way in a row that seems to be zero */
#define DEPTH (4 * WARPS)
#define STRIDE (DEPTH / 4 + 1) /* in float4; odd, so that neighbouring rows use different banks */

struct tiles {
    float4 a[ROWS][STRIDE];       /* dY, [row][four of the depth] */
    float4 b[DEPTH][COLUMNS / 4]; /* W */
};

/* Whether a row has an element other than zero from `first` on; the same for the whole warp. */
static __device__ __forceinline__ bool is_live(const float *__restrict__ row, int first, int K,
                                               bool vector, int lane) {
    bool any = false;
#pragma unroll 1
    for (int k = first; k < K && !any; k += 128 * PROBES) {
        float4 v[PROBES];
#pragma unroll
        for (int i = 0; i < PROBES; i++)
            v[i] = load4(row, k + i * 128 + lane * 4, K, vector);
        bool own = false;
#pragma unroll
        for (int i = 0; i < PROBES; i++)
            own = own || is_any(v[i]);
        any = __any_sync(0xffffffffu, own);
    }
    return any;
}

/* Writes the numbers of the live rows to `live`, in order; how many there are. */
static __device__ __forceinline__ int compact(const bool *flags, int *live, int warp, int lane) {
    int before = 0;
    for (int r = lane; r < SPAN; r += 32) {
        const unsigned int bits = __ballot_sync(0xffffffffu, flags[r]);
        if (warp == 0 && flags[r])
            live[before + __popc(bits & ((1u << lane) - 1u))] = r;
        before += __popc(bits);
    }
    return before;
}

static __device__ __forceinline__ void multiply(const tiles &t, int warp, int ty, int tx,
                                                float4 sum[8][2]) {
    float4 a[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        a[i] = t.a[4 * i + ty][warp];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float4 left = t.b[4 * warp + k][tx], right = t.b[4 * warp + k][8 + tx];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float x = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
            sum[i][0] = axpy4(x, left, sum[i][0]);
            sum[i][1] = axpy4(x, right, sum[i][1]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_input_sparse(const float *__restrict__ dY, const float *__restrict__ W,
                         float *__restrict__ dX, int M, int N, int K) {
    __shared__ union {
        tiles step[2];
        float4 sum[WARPS / 2][ROWS][COLUMNS / 4]; /* after the last step */
    } shared;
    __shared__ bool flags[SPAN];
    __shared__ int live[SPAN];

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int ty = lane / 8, tx = lane % 8;
    const int row = blockIdx.y * SPAN, column = blockIdx.x * COLUMNS;
    const bool n_vector = (N & 3) == 0, k_vector = (K & 3) == 0;

    /* A live row mostly shows in its first elements, so those of all rows are read at once. */
    float4 begin[SPAN / WARPS];
#pragma unroll
    for (int i = 0; i < SPAN / WARPS; i++) {
        const int m = row + i * WARPS + warp;
        begin[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (m < M)
            begin[i] = load4(dY + (size_t)m * K, lane * 4, K, k_vector);
    }
    unsigned int found = 0;
#pragma unroll
    for (int i = 0; i < SPAN / WARPS; i++)
        found |= __any_sync(0xffffffffu, is_any(begin[i])) ? 1u << i : 0u;
#pragma unroll 1
    for (int i = 0; i < SPAN / WARPS; i++) {
        const int r = i * WARPS + warp;
        const bool inside = row + r < M;
        bool any = (found >> i & 1u) != 0;
        if (inside && !any)
            any = is_live(dY + (size_t)(row + r) * K, 128, K, k_vector, lane);
        if (lane == 0)
            flags[r] = any;
        if (inside && !any && lane < COLUMNS / 4)
            store4(dX + (size_t)(row + r) * N, column + lane * 4, N, n_vector,
                   make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
    __syncthreads();
    const int count = compact(flags, live, warp, lane);
    __syncthreads();

    const int a_row = thread / (DEPTH / 4), a_depth = thread % (DEPTH / 4);
    const int b_depth = thread / (COLUMNS / 4), b_column = thread % (COLUMNS / 4);
#pragma unroll 1
    for (int first = 0; first < count; first += ROWS) {
        const bool inside = first + a_row < count;
        const float *a_from = dY + (size_t)(row + (inside ? live[first + a_row] : 0)) * K;
        float4 sum[8][2] = {};
        int buffer = 0;
#pragma unroll 1
        for (int k = 0; k < K + DEPTH; k += DEPTH) {
            /* Load step k, multiply the step before it. */
            float4 a_next = make_float4(0.0f, 0.0f, 0.0f, 0.0f), b_next[2];
            if (inside)
                a_next = load4(a_from, k + 4 * a_depth, K, k_vector);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int depth = k + b_depth + i * (DEPTH / 2);
                b_next[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (depth < K)
                    b_next[i] = load4(W + (size_t)depth * N, column + 4 * b_column, N, n_vector);
            }
            if (k > 0)
                multiply(shared.step[buffer ^ 1], warp, ty, tx, sum);
            shared.step[buffer].a[a_row][a_depth] = a_next;
#pragma unroll
            for (int i = 0; i < 2; i++)
                shared.step[buffer].b[b_depth + i * (DEPTH / 2)][b_column] = b_next[i];
            __syncthreads();
            buffer ^= 1;
        }

        /* Eight sums an element become four in registers, then one. */
        if (warp >= WARPS / 2) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                shared.sum[warp - WARPS / 2][4 * i + ty][tx] = sum[i][0];
                shared.sum[warp - WARPS / 2][4 * i + ty][8 + tx] = sum[i][1];
            }
        }
        __syncthreads();
        if (warp < WARPS / 2) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float4 *left = &shared.sum[warp][4 * i + ty][tx];
                float4 *right = &shared.sum[warp][4 * i + ty][8 + tx];
                *left = add4(sum[i][0], *left);
                *right = add4(sum[i][1], *right);
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = b_depth + i * (ROWS / 2);
            float4 total = shared.sum[0][r][b_column];
#pragma unroll
            for (int w = 1; w < WARPS / 2; w++)
                total = add4(total, shared.sum[w][r][b_column]);
            if (first + r < count)
                store4(dX + (size_t)(row + live[first + r]) * N, column + 4 * b_column, N, n_vector,
                       total);
        }
        __syncthreads();
    }
}
