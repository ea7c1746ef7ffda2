/* Forward step of an LSTM layer with structured dropout, by hand, a warp a unit.
 *
 * W is read once from DRAM, which bounds the time, so W goes straight into registers: a warp makes
 * one unit of SEQUENCES sequences, its lanes share the kept columns out, and each loads its columns
 * of the four gates' rows STEPS turns ahead. The inputs of the kept neurons lie in shared memory,
 * the sequences of a column side by side, so that a lane reads four of them at once. The lanes add
 * up their sums at the end, in halves: each step leaves a lane half of the sums. The order of the
 * additions is fixed. */
#include "evoke_cuda.h"

#ifndef WARPS
#define WARPS 12
#endif
#ifndef SEQUENCES
#define SEQUENCES 20
#endif
#ifndef STEPS
#define STEPS 4
#endif

#define THREADS (32 * WARPS)
#define CHUNK 512 /* columns in shared memory at a time */
#define SUMS (4 * SEQUENCES)
#define FOURS (SEQUENCES / 4)
/* From column to column, in float4: odd, so that eight lanes use all banks. */
#define PITCH (FOURS + (FOURS + 1) % 2)

static __device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

/* sum[gate][sequence] += x[sequence] w[gate] */
static __device__ __forceinline__ void multiply(float (&sum)[SUMS], const float4 *x,
                                                const float (&w)[4]) {
#pragma unroll
    for (int f = 0; f < FOURS; f++) {
        const float4 v = x[f];
#pragma unroll
        for (int g = 0; g < 4; g++) {
            float *at = &sum[g * SEQUENCES + 4 * f];
            at[0] += v.x * w[g];
            at[1] += v.y * w[g];
            at[2] += v.z * w[g];
            at[3] += v.w * w[g];
        }
    }
}

/* Adds the sums [0, 2 * COUNT) of lanes MASK apart; the upper lane gets the second half of them.
 * Returns whether that is this lane. */
template <int COUNT, int MASK>
static __device__ __forceinline__ bool add_halves(float (&sum)[SUMS]) {
    const bool upper = (threadIdx.x & MASK) != 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float low = sum[i], high = sum[i + COUNT];
        sum[i] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, MASK);
    }
    return upper;
}

/* Adds the lanes' sums up. Afterwards the lane has SUMS / 16 of them, from the returned one on; two
 * neighbouring lanes have the same. */
static __device__ __forceinline__ int add_lanes(float (&sum)[SUMS]) {
    int first = add_halves<SUMS / 2, 16>(sum) ? SUMS / 2 : 0;
    first += add_halves<SUMS / 4, 8>(sum) ? SUMS / 4 : 0;
    first += add_halves<SUMS / 8, 4>(sum) ? SUMS / 8 : 0;
    first += add_halves<SUMS / 16, 2>(sum) ? SUMS / 16 : 0;
#pragma unroll
    for (int i = 0; i < SUMS / 16; i++)
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
    return first;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sd_lstm_fp(const float *__restrict__ X, const int *__restrict__ kept,
               const float *__restrict__ W, const float *__restrict__ G,
               const float *__restrict__ C, float *__restrict__ gates, float *__restrict__ C_out,
               float *__restrict__ H_out, int B, int H, int k, float scale) {
    __shared__ float4 inputs[CHUNK * PITCH];
    __shared__ float sums[WARPS][SUMS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_unit = blockIdx.x * WARPS, first_row = blockIdx.y * SEQUENCES;
    const int unit = min(H - 1, first_unit + warp);

    const float *rows[4];
#pragma unroll
    for (int g = 0; g < 4; g++)
        rows[g] = W + ((size_t)g * H + unit) * H;
    float w[STEPS][4];
    int next[STEPS]; /* columns of the turns after those */
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int i = lane + 32 * s;
        const int column = i < k ? kept[i] : 0;
        next[s] = i + 32 * STEPS < k ? kept[i + 32 * STEPS] : 0;
#pragma unroll
        for (int g = 0; g < 4; g++)
            w[s][g] = i < k ? rows[g][column] : 0.0f;
    }

    float sum[SUMS] = {};
    for (int n = 0; n < k; n += CHUNK) {
        const int columns = min(CHUNK, (k - n + 32 * STEPS - 1) / (32 * STEPS) * (32 * STEPS));
        __syncthreads();
        for (int i = threadIdx.x; i < columns * FOURS; i += THREADS) {
            const int c = i % columns, f = i / columns, b = first_row + 4 * f;
            float4 v = make_float4(0, 0, 0, 0);
            if (n + c < k) {
                const float *at = X + (size_t)b * H + kept[n + c];
                v.x = b < B ? at[0] : 0.0f;
                v.y = b + 1 < B ? at[H] : 0.0f;
                v.z = b + 2 < B ? at[2 * H] : 0.0f;
                v.w = b + 3 < B ? at[3 * H] : 0.0f;
            }
            inputs[c * PITCH + f] = v;
        }
        __syncthreads();
#pragma unroll 1
        for (int turn = 0; turn < columns; turn += 32 * STEPS) {
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const int c = turn + 32 * s + lane, i = n + c + 32 * STEPS;
                multiply(sum, &inputs[c * PITCH], w[s]);
#pragma unroll
                for (int g = 0; g < 4; g++)
                    w[s][g] = i < k ? rows[g][next[s]] : 0.0f;
                next[s] = i + 32 * STEPS < k ? kept[i + 32 * STEPS] : 0;
            }
        }
    }
    const int first = add_lanes(sum);
#pragma unroll
    for (int i = 0; i < SUMS / 16; i++)
        sums[warp][first + i] = sum[i];
    __syncthreads();

    for (int n = threadIdx.x; n < SEQUENCES * WARPS; n += THREADS) {
        const int u = n % WARPS, r = n / WARPS, b = first_row + r, j = first_unit + u;
        if (b < B && j < H) {
            const float *recurrent = G + (size_t)b * 4 * H + j;
            float *out = gates + (size_t)b * 4 * H + j;
            float i = sigmoid(recurrent[0] + scale * sums[u][r]);
            float f = sigmoid(recurrent[H] + scale * sums[u][SEQUENCES + r]);
            float g = tanhf(recurrent[2 * H] + scale * sums[u][2 * SEQUENCES + r]);
            float o = sigmoid(recurrent[3 * H] + scale * sums[u][3 * SEQUENCES + r]);
            float c = f * C[(size_t)b * H + j] + i * g;
            out[0] = i;
            out[H] = f;
            out[2 * H] = g;
            out[3 * H] = o;
            C_out[(size_t)b * H + j] = c;
            H_out[(size_t)b * H + j] = o * tanhf(c);
        }
    }
}
