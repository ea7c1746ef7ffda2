/* Data gradient of a 3 x 3 convolution behind a ReLU, by hand.
 *
 * A thread block makes BM pixels x BN channels, a thread ROWS x BN / 16 of them in registers. The
 * convolution is implicit: a step multiplies BK output channels of one filter element, whose dY is
 * that of the pixels shifted by the element, or zero beyond the border. dY (transposed) and W pass
 * through shared memory; while a step is multiplied, the next one is loaded into registers. A block
 * whose mask is off everywhere writes zeros and reads neither, and a warp whose elements are all
 * off skips its products. Rows whose length is a multiple of four move as float4. */
#include "evoke_cuda.h"
#include "evoke_rows.h"

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 16
#endif
#ifndef ROWS
#define ROWS 8
#endif

#define THREADS (16 * BM / ROWS)
#define TN (BN / 64)                /* channels of a thread, in groups of four */
#define A_STEP (THREADS / (BK / 4)) /* pixels between the loads of a thread */
#define A_LOADS ((BM + A_STEP - 1) / A_STEP)
#define B_STEP (THREADS / (BN / 4)) /* output channels between the loads of a thread */
#define B_LOADS ((BK + B_STEP - 1) / B_STEP)

struct tiles {
    float4 a[BK][BM / 4 + 1]; /* dY, transposed */
    float4 b[BK][BN / 4];
};

/* A bit for each filter element: whether the pixel of dY that it takes to pixel m is in the map. */
static __device__ __forceinline__ unsigned int taps_of(int m, int M, int side) {
    const int y = m / side % side, x = m % side;
    const unsigned int row = (x + 1 < side ? 1u : 0u) | 2u | (x > 0 ? 4u : 0u);
    const unsigned int bits = (y + 1 < side ? row : 0u) | row << 3 | (y > 0 ? row << 6 : 0u);
    return m < M ? bits : 0u;
}

static __device__ __forceinline__ void multiply(const tiles &t, int tx, int ty,
                                                float4 sum[ROWS][TN]) {
#pragma unroll
    for (int k = 0; k < BK; k++) {
        float4 x[ROWS / 4];
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++)
            x[i] = t.a[k][ty * (ROWS / 4) + i];
#pragma unroll
        for (int j = 0; j < TN; j++) {
            float4 y = t.b[k][j * 16 + tx];
#pragma unroll
            for (int i = 0; i < ROWS / 4; i++) {
                sum[4 * i][j] = axpy4(x[i].x, y, sum[4 * i][j]);
                sum[4 * i + 1][j] = axpy4(x[i].y, y, sum[4 * i + 1][j]);
                sum[4 * i + 2][j] = axpy4(x[i].z, y, sum[4 * i + 2][j]);
                sum[4 * i + 3][j] = axpy4(x[i].w, y, sum[4 * i + 3][j]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_masked_conv(const float *__restrict__ dY, const float *__restrict__ W,
                        const float *__restrict__ X, float *__restrict__ dX, int M, int outputs,
                        int channels, int side) {
    __shared__ tiles shared[2];

    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int first = blockIdx.y * BM, column = blockIdx.x * BN;
    const bool c_vector = (channels & 3) == 0, k_vector = (outputs & 3) == 0;

    /* Four mask bits a group. */
    unsigned int live[ROWS] = {};
    unsigned int any = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        int m = first + ty * ROWS + i;
        if (m < M) {
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float4 x =
                    load4(X + (size_t)m * channels, column + j * 64 + tx * 4, channels, c_vector);
                live[i] |= live4(x) << (4 * j);
            }
        }
        any |= live[i];
    }

    float4 sum[ROWS][TN] = {};
    if (__syncthreads_or(any != 0)) {
        const bool warp_live = __any_sync(0xffffffffu, any != 0);
        /* What this thread loads: pixels a_row + i * A_STEP, rows b_row + i * B_STEP of W. */
        const int a_row = thread / (BK / 4), a_column = thread % (BK / 4) * 4;
        const int b_row = thread / (BN / 4), b_column = thread % (BN / 4);
        unsigned int taps[A_LOADS];
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            taps[i] = taps_of(first + a_row + i * A_STEP, M, side);

        float4 a_next[A_LOADS], b_next[B_LOADS];
        int tap = 0, k = 0, buffer = 0;
#pragma unroll 1
        for (bool loaded = false; tap < 9 || loaded;) {
            /* Load the step of (tap, k), multiply the one before. */
            const bool more = tap < 9;
            if (more) {
                const int shift = (1 - tap / 3) * side + 1 - tap % 3;
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    int m = first + a_row + i * A_STEP + shift;
                    a_next[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if ((taps[i] >> tap & 1u) != 0)
                        a_next[i] =
                            load4(dY + (size_t)m * outputs, k + a_column, outputs, k_vector);
                }
#pragma unroll
                for (int i = 0; i < B_LOADS; i++) {
                    int row = k + b_row + i * B_STEP;
                    b_next[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if (row < outputs)
                        b_next[i] = load4(W + (size_t)(row * 9 + tap) * channels,
                                          column + b_column * 4, channels, c_vector);
                }
            }
            if (loaded && warp_live)
                multiply(shared[buffer ^ 1], tx, ty, sum);
            if (more) {
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    int r = a_row + i * A_STEP;
                    if (r < BM) {
                        tiles &t = shared[buffer];
                        ((float *)t.a[a_column])[r] = a_next[i].x;
                        ((float *)t.a[a_column + 1])[r] = a_next[i].y;
                        ((float *)t.a[a_column + 2])[r] = a_next[i].z;
                        ((float *)t.a[a_column + 3])[r] = a_next[i].w;
                    }
                }
#pragma unroll
                for (int i = 0; i < B_LOADS; i++) {
                    if (b_row + i * B_STEP < BK)
                        shared[buffer].b[b_row + i * B_STEP][b_column] = b_next[i];
                }
            }
            __syncthreads();
            loaded = more;
            buffer ^= 1;
            k += BK;
            tap += k >= outputs;
            k = k >= outputs ? 0 : k;
        }
    }

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        int m = first + ty * ROWS + i;
        if (m < M) {
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float4 v = keep4(sum[i][j], live[i] >> (4 * j));
                store4(dX + (size_t)m * channels, column + j * 64 + tx * 4, channels, c_vector, v);
            }
        }
    }
}
