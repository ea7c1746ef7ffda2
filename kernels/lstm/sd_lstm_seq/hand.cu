/* Forward sequence of an LSTM layer with structured dropout, by hand: the input products of all
 * time steps in one launch, then a launch a step, which ends with the cells.
 *
 * Only the recurrent product waits for the step before. Both products are made in the same way. A
 * block makes the four gates of UNITS units for SEQUENCES sequences. A stage of COLUMNS columns of
 * weights and inputs comes to shared memory by asynchronous copies, which stand in line for the
 * stages ahead, so that memory stays busy behind the sums. Of a stage, each half of a warp takes
 * four columns: a lane has UNITS / 4 rows of weights, and the sequences' inputs are the same for
 * all lanes, so that shared memory delivers them at once. The halves and the warps add up their
 * sums at the end, in a fixed order. Thread blocks of the same units at all time steps stand beside
 * each other, so that the input weights come from DRAM once. */
#include "evoke_cuda.h"

#include <cuda_pipeline.h>

#ifndef UNITS
#define UNITS 12
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef SEQUENCES
#define SEQUENCES 20
#endif

#define THREADS (32 * WARPS)
#define COLUMNS (8 * WARPS) /* of a stage: four a half of a warp */
#define GATES (4 * UNITS)   /* rows of weights of a block */
#define ROWS (UNITS / 4)    /* of a lane */
#define LINES (GATES + SEQUENCES)
#define PITCH (COLUMNS + 4) /* an odd number of float4: eight lanes use all banks */
#define STAGE (LINES * PITCH)
#define ENDS ((SEQUENCES * UNITS + THREADS - 1) / THREADS) /* cells of a thread at the end */
#define FIT (43 * 1024 / (4 * STAGE))                      /* stages in shared memory */
#define STAGES (FIT < 6 ? FIT : 6)

/* The stages, and afterwards the warps' sums, [warp][sequence][unit, gate]. */
union tile {
    float stage[STAGES][STAGE];
    float sums[WARPS][SEQUENCES][GATES];
};

static __device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

/* VEC numbers to shared memory; zeros where there are none. */
template <int VEC>
static __device__ __forceinline__ void copy(float *to, const float *from, bool is_there) {
#if __CUDA_ARCH__ >= 800
    __pipeline_memcpy_async(to, from, 4 * VEC, is_there ? 0 : 4 * VEC);
#else
#pragma unroll
    for (int i = 0; i < VEC; i++)
        to[i] = is_there ? from[i] : 0.0f;
#endif
}

/* What a block multiplies: x[b][columns] M[gate, unit][columns]. */
struct product {
    const float *x, *M;
    const int *kept; /* of a product over kept columns */
    int count;       /* of columns */
    int first_unit;
    int rows; /* sequences, from x on */
    int H;
};

/* Asks for the columns [n, n + COLUMNS): a thread has VEC of them, from `column` on, in every
 * (4 VEC)-th line. Line 4 u + g of the weights is gate g of the block's unit u. */
template <int VEC>
static __device__ __forceinline__ void copy_stage(float *stage, const product &p, int n,
                                                  int column) {
    const int c = threadIdx.x % (COLUMNS / VEC) * VEC, line = threadIdx.x / (COLUMNS / VEC);
    const bool is_there = n + c < p.count;
    const int unit = p.first_unit + line / 4, u_end = is_there ? p.H - unit : 0;
    const int b_end = is_there ? p.rows - line : 0;
    const float *from = p.M + ((size_t)(line % 4) * p.H + unit) * p.H + column;
    float *to = stage + line * PITCH + c;
#pragma unroll
    for (int u = 0; u < UNITS; u += VEC, from += VEC * p.H, to += 4 * VEC * PITCH)
        copy<VEC>(to, from, u < u_end);
    from = p.x + line * p.H + column;
#pragma unroll
    for (int s = 0; s < SEQUENCES; s += 4 * VEC, from += 4 * VEC * p.H, to += 4 * VEC * PITCH) {
        if (SEQUENCES % (4 * VEC) == 0 || line + s < SEQUENCES)
            copy<VEC>(to, from, s < b_end);
    }
}

/* sum[row][sequence] += w[row] x[sequence], over the half warp's four columns of a stage. */
static __device__ __forceinline__ void multiply(float (&sum)[ROWS][SEQUENCES], const float *stage) {
    const int lane = threadIdx.x % 16, quad = threadIdx.x / 16 * 4;
    float4 w[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        w[r] = *(const float4 *)(stage + (lane + 16 * r) * PITCH + quad);
#pragma unroll
    for (int s = 0; s < SEQUENCES; s++) {
        const float4 x = *(const float4 *)(stage + (GATES + s) * PITCH + quad);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            sum[r][s] += w[r].x * x.x;
            sum[r][s] += w[r].y * x.y;
            sum[r][s] += w[r].z * x.z;
            sum[r][s] += w[r].w * x.w;
        }
    }
}

/* Adds the sums of the two halves of a warp, each of which keeps half of the sequences, and leaves
 * them in shared memory. */
static __device__ __forceinline__ void leave_sums(tile *t, const float (&sum)[ROWS][SEQUENCES]) {
    const bool upper = (threadIdx.x & 16) != 0;
    const int lane = threadIdx.x % 16, warp = threadIdx.x / 32;
    const int first = upper ? SEQUENCES / 2 : 0;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int s = 0; s < SEQUENCES / 2; s++) {
            const float low = sum[r][s], high = sum[r][s + SEQUENCES / 2];
            const float other = __shfl_xor_sync(0xffffffffu, upper ? low : high, 16);
            t->sums[warp][first + s][lane + 16 * r] = (upper ? high : low) + other;
        }
    }
    __syncthreads();
}

/* The column that the thread copies next: one of those that dropout keeps, or the i-th of all. */
template <bool IS_KEPT>
static __device__ __forceinline__ int column_of(const product &p, int i, int vec) {
    i = min(i, p.count - vec);
    return IS_KEPT ? p.kept[i] : i;
}

/* Leaves the warps' sums of the product in shared memory. VEC: numbers that lie side by side in
 * memory, aligned as a whole. */
template <bool IS_KEPT, int VEC>
static __device__ __forceinline__ void add_up(tile *t, const product &p) {
    const int c = threadIdx.x % (COLUMNS / VEC) * VEC;
    float sum[ROWS][SEQUENCES] = {};
    int column = column_of<IS_KEPT>(p, c, VEC);
    int n = 0; /* first column of the next stage */
    for (int i = 0; i < STAGES - 1; i++, n += COLUMNS) {
        if (n < p.count)
            copy_stage<VEC>(t->stage[i], p, n, column);
        __pipeline_commit();
        column = column_of<IS_KEPT>(p, n + COLUMNS + c, VEC);
    }
    const int stages = (p.count + COLUMNS - 1) / COLUMNS;
    int from = 0, to = STAGES - 1;
#pragma unroll 1
    for (int i = 0; i < stages; i++, n += COLUMNS) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        if (n < p.count)
            copy_stage<VEC>(t->stage[to], p, n, column);
        __pipeline_commit();
        column = column_of<IS_KEPT>(p, n + COLUMNS + c, VEC);
        multiply(sum, t->stage[from]);
        from = from + 1 < STAGES ? from + 1 : 0;
        to = to + 1 < STAGES ? to + 1 : 0;
    }
    __pipeline_wait_prior(0);
    leave_sums(t, sum);
}

/* The sums of all warps: the four gates of the block's unit `u`, its sequence `s`. */
static __device__ __forceinline__ float4 total(const tile *t, int s, int u) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        const float4 v = *(const float4 *)&t->sums[w][s][4 * u];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    return sum;
}

/* Z[t, b, gate, unit] = bias + scale X[t][b, kept[t]] W[gate, unit][kept[t]], for all t. */
extern "C" __global__ void __launch_bounds__(THREADS, 16 / WARPS)
    sd_lstm_inputs(const float *__restrict__ X, const int *__restrict__ kept,
                   const float *__restrict__ W, const float *__restrict__ bias,
                   float *__restrict__ Z, int B, int H, int k, float scale) {
    __shared__ __align__(16) tile shared;
    const int t = blockIdx.x, first_unit = blockIdx.y * UNITS, first_row = blockIdx.z * SEQUENCES;
    const product p = {X + (size_t)(t * B + first_row) * H, W, kept + t * k, k, first_unit,
                       min(B - first_row, SEQUENCES),       H};
    add_up<true, 1>(&shared, p);

    for (int n = threadIdx.x; n < SEQUENCES * UNITS; n += THREADS) {
        const int u = n % UNITS, s = n / UNITS, b = first_row + s, j = first_unit + u;
        if (b < B && j < H) {
            const float4 sum = total(&shared, s, u);
            float *to = Z + ((size_t)(t * B + b) * 4) * H + j;
            to[0] = bias[j] + scale * sum.x;
            to[H] = bias[H + j] + scale * sum.y;
            to[2 * H] = bias[2 * H + j] + scale * sum.z;
            to[3 * H] = bias[3 * H + j] + scale * sum.w;
        }
    }
}

/* Step t: the recurrent product, the gates, the cells and the outputs. */
extern "C" __global__ void __launch_bounds__(THREADS, 16 / WARPS)
    sd_lstm_step(const float *__restrict__ Z, const float *__restrict__ U,
                 const float *__restrict__ H_in, const float *__restrict__ C_in,
                 float *__restrict__ gates, float *C_out, float *H_out, int B, int H, int t) {
    __shared__ __align__(16) tile shared;
    __shared__ float ahead[5][ENDS * THREADS]; /* Z and cell of the thread's own ends */
    const int first_unit = blockIdx.x * UNITS, first_row = blockIdx.y * SEQUENCES;
    const float *h = t > 0 ? H_out + (size_t)(t - 1) * B * H : H_in;
    const float *cells = t > 0 ? C_out + (size_t)(t - 1) * B * H : C_in;
    const product p = {h + (size_t)first_row * H,     U, nullptr, H, first_unit,
                       min(B - first_row, SEQUENCES), H};
#pragma unroll
    for (int e = 0; e < ENDS; e++) {
        const int n = threadIdx.x + e * THREADS;
        const int b = min(first_row + n / UNITS, B - 1), j = min(first_unit + n % UNITS, H - 1);
        copy<1>(&ahead[4][n], cells + (size_t)b * H + j, true);
#pragma unroll
        for (int g = 0; g < 4; g++)
            copy<1>(&ahead[g][n], Z + ((size_t)(t * B + b) * 4 + g) * H + j, true);
    }
    if (H % 4 == 0)
        add_up<false, 4>(&shared, p);
    else if (H % 2 == 0)
        add_up<false, 2>(&shared, p);
    else
        add_up<false, 1>(&shared, p);

#pragma unroll
    for (int e = 0; e < ENDS; e++) {
        const int n = threadIdx.x + e * THREADS;
        const int u = n % UNITS, s = n / UNITS, b = first_row + s, j = first_unit + u;
        if (s < SEQUENCES && b < B && j < H) {
            const size_t to = ((size_t)t * B + b) * H + j;
            float *out = gates + ((size_t)(t * B + b) * 4) * H + j;
            const float4 sum = total(&shared, s, u);
            float i = sigmoid(ahead[0][n] + sum.x);
            float f = sigmoid(ahead[1][n] + sum.y);
            float g = tanhf(ahead[2][n] + sum.z);
            float o = sigmoid(ahead[3][n] + sum.w);
            float c = f * ahead[4][n] + i * g;
            out[0] = i;
            out[H] = f;
            out[2 * H] = g;
            out[3 * H] = o;
            C_out[to] = c;
            H_out[to] = o * tanhf(c);
        }
    }
}
