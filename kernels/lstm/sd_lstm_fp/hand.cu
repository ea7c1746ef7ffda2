/* Forward step of an LSTM layer with structured dropout, tiled by hand.
 *
 * A block makes UNITS units of 4 * ROWS sequences. Its threads stand as 4 gates x UNITS units by 4
 * rows; each keeps ROWS sums in registers. The kept columns come in chunks of CHUNK: X and W are
 * gathered into shared memory once a chunk, and read from there four columns at a time. The gates
 * meet in shared memory at the end. The gather makes no use of alignment, so H = 650 costs no more
 * than H = 648 does. */
#include "evoke_cuda.h"

#ifndef UNITS
#define UNITS 8
#endif
#ifndef ROWS
#define ROWS 5
#endif
#ifndef CHUNK
#define CHUNK 32
#endif

#define COLUMNS (4 * UNITS) /* of the gate matrix, in a block */
#define THREADS (4 * COLUMNS)
#define BATCH (4 * ROWS)       /* sequences a block */
#define STRIDE (CHUNK / 4 + 1) /* in float4; odd, so that neighbouring rows use different banks */

static __device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

extern "C" __global__ void __launch_bounds__(THREADS, 640 / THREADS)
    sd_lstm_fp(const float *__restrict__ X, const int *__restrict__ kept,
               const float *__restrict__ W, const float *__restrict__ G,
               const float *__restrict__ C, float *__restrict__ gates, float *__restrict__ C_out,
               float *__restrict__ H_out, int B, int H, int k, float scale) {
    __shared__ float4 x[BATCH][STRIDE];
    __shared__ union {
        float4 w[COLUMNS][STRIDE];
        float gate[BATCH][COLUMNS + 1]; /* after the last use of w */
    } shared;

    const int column = threadIdx.x, ty = threadIdx.y, thread = ty * COLUMNS + column;
    const int first_unit = blockIdx.x * UNITS, first_row = blockIdx.y * BATCH;

    float sum[ROWS] = {};
    for (int n = 0; n < k; n += CHUNK) {
        for (int i = thread; i < BATCH * CHUNK; i += THREADS) {
            int r = i / CHUNK, c = i % CHUNK;
            bool inside = first_row + r < B && n + c < k;
            ((float *)x[r])[c] =
                inside ? scale * X[(size_t)(first_row + r) * H + kept[n + c]] : 0.0f;
        }
        for (int i = thread; i < COLUMNS * CHUNK; i += THREADS) {
            int r = i / CHUNK, c = i % CHUNK;
            int unit = first_unit + r % UNITS;
            bool inside = unit < H && n + c < k;
            ((float *)shared.w[r])[c] =
                inside ? W[((size_t)(r / UNITS) * H + unit) * H + kept[n + c]] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < CHUNK / 4; c++) {
            float4 v = shared.w[column][c];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float4 u = x[ty * ROWS + r][c];
                sum[r] += u.x * v.x;
                sum[r] += u.y * v.y;
                sum[r] += u.z * v.z;
                sum[r] += u.w * v.w;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        shared.gate[ty * ROWS + r][column] = sum[r];
    __syncthreads();

    for (int n = thread; n < BATCH * UNITS; n += THREADS) {
        int r = n / UNITS, u = n % UNITS;
        int b = first_row + r, j = first_unit + u;
        if (b < B && j < H) {
            const float *recurrent = G + (size_t)b * 4 * H + j;
            float *out = gates + (size_t)b * 4 * H + j;
            float i = sigmoid(recurrent[0] + shared.gate[r][u]);
            float f = sigmoid(recurrent[H] + shared.gate[r][UNITS + u]);
            float g = tanhf(recurrent[2 * H] + shared.gate[r][2 * UNITS + u]);
            float o = sigmoid(recurrent[3 * H] + shared.gate[r][3 * UNITS + u]);
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
