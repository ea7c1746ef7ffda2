/* Weight gradient of a step of an LSTM layer with structured dropout, by hand.
 *
 * Reading and writing dW takes most of the time. A block has BLOCK kept columns, one a thread, and
 * GROUPS groups of ROWS rows. The inputs and the gradients of up to CHUNK sequences are gathered
 * into shared memory, once for all groups where the batch is no larger. The old elements of a group
 * are loaded while the group before it is computed. dG is read four rows at a time: a row of dG has
 * 4 H elements, so that this is aligned for any H. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef ROWS
#define ROWS 8
#endif
#ifndef GROUPS
#define GROUPS 4
#endif

#define CHUNK 32
#define ALL_ROWS (ROWS * GROUPS)

struct tiles {
    float x[CHUNK][BLOCK];
    float4 g[CHUNK][ALL_ROWS / 4];
};

static __device__ __forceinline__ void stage(tiles &t, const float *__restrict__ dG,
                                             const float *__restrict__ X, int first_b, int B, int H,
                                             int column, int first_row) {
    const int J = 4 * H;
    __syncthreads();
#pragma unroll 8
    for (int b = 0; b < CHUNK; b++) {
        if (first_b + b < B)
            t.x[b][threadIdx.x] = __ldg(X + (size_t)(first_b + b) * H + column);
    }
    for (int i = threadIdx.x; i < CHUNK * ALL_ROWS / 4; i += BLOCK) {
        const int b = i / (ALL_ROWS / 4), q = i % (ALL_ROWS / 4);
        if (first_b + b < B && first_row + 4 * q < J)
            t.g[b][q] = __ldg((const float4 *)(dG + (size_t)(first_b + b) * J + first_row) + q);
    }
    __syncthreads();
}

static __device__ __forceinline__ void load_rows(const float *__restrict__ dW, int first, int H,
                                                 int column, bool inside, float old[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        old[r] = inside && first + r < 4 * H ? __ldca(dW + (size_t)(first + r) * H + column) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sd_lstm_bp_weight(const float *__restrict__ dG, const int *__restrict__ kept,
                      const float *__restrict__ X, float *__restrict__ dW, int B, int H, int k,
                      float scale) {
    __shared__ tiles shared;

    const int n = blockIdx.x * BLOCK + threadIdx.x, first_row = blockIdx.y * ALL_ROWS, J = 4 * H;
    const bool inside = n < k;
    const int column = kept[inside ? n : k - 1];

    float next[ROWS];
    load_rows(dW, first_row, H, column, inside, next);
    for (int group = 0; group < GROUPS && first_row + group * ROWS < J; group++) {
        const int first = first_row + group * ROWS;
        float old[ROWS];
        float4 sum[ROWS / 4] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            old[r] = next[r];
        if (group + 1 < GROUPS)
            load_rows(dW, first + ROWS, H, column, inside, next);
        for (int b = 0; b < B; b += CHUNK) {
            if (group == 0 || B > CHUNK)
                stage(shared, dG, X, b, B, H, column, first_row);
            const int count = min(CHUNK, B - b);
            for (int c = 0; c < count; c++) {
                const float x = shared.x[c][threadIdx.x];
#pragma unroll
                for (int q = 0; q < ROWS / 4; q++) {
                    if (first + 4 * q < J) {
                        const float4 g = shared.g[c][group * (ROWS / 4) + q];
                        sum[q].x += g.x * x;
                        sum[q].y += g.y * x;
                        sum[q].z += g.z * x;
                        sum[q].w += g.w * x;
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 s = sum[r / 4];
            const float v = r % 4 == 0 ? s.x : r % 4 == 1 ? s.y : r % 4 == 2 ? s.z : s.w;
            if (inside && first + r < J)
                __stwb(dW + (size_t)(first + r) * H + column, old[r] + scale * v);
        }
    }
}
