#include "evoke_cuda.h"

#define ACROSS 128 /* pixels of a block's tile: 32 threads, four each */
#define DOWN 32    /* 8 threads, four each */
#define WIDE (ACROSS + 8)

/* Four neighbours, by one access of 16 bytes. */
__device__ __forceinline__ static void copy4(float *to, const float *from) {
    *(float4 *)to = *(const float4 *)from;
}

/* Writes the pixels inside of the image, four of each row. FOURS: rows are made of whole fours. */
template <bool FOURS>
__device__ __forceinline__ static void store(float *to, int height, int width, int row, int column,
                                             const float (&sum)[4][4]) {
#pragma unroll
    for (int o = 0; o < 4; o++) {
        float *out = to + (size_t)(row + o) * width + column;
        if (FOURS && row + o < height && column < width)
            copy4(out, sum[o]);
#pragma unroll
        for (int p = 0; p < 4; p++)
            if (!FOURS && row + o < height && column + p < width)
                out[p] = sum[o][p];
    }
}

/* Images under a filter of 7 x 7: a tile with its border in shared memory, the filter and 4 x 4
 * pixels in the registers of a thread. Each row of the tile is read once, four numbers at a time,
 * for all rows of pixels that it belongs to. Loads behind the border repeat its last number, so
 * that none waits for a branch. */
extern "C" __global__ void __launch_bounds__(256, 2)
    conv2d_expert(const float *x, const float *filter, float *y, int height, int width) {
    __shared__ __align__(16) float tile[DOWN + 6][WIDE];
    int stride = width + 6, column = blockIdx.x * ACROSS, row = blockIdx.y * DOWN;
    const float *image = x + (size_t)blockIdx.z * (height + 6) * stride;
    float ahead[5][5]; /* all loads of a thread are under way at once */
#pragma unroll
    for (int r = 0; r < 5; r++) {
        int line = min(row + r * 8 + (int)threadIdx.y, height + 5);
#pragma unroll
        for (int s = 0; s < 5; s++) {
            int at = min(column + s * 32 + (int)threadIdx.x, stride - 1);
            ahead[r][s] = image[(size_t)line * stride + at];
        }
    }
    float f[49];
#pragma unroll
    for (int i = 0; i < 49; i++)
        f[i] = filter[i];
#pragma unroll
    for (int r = 0; r < 5; r++) {
#pragma unroll
        for (int s = 0; s < 5; s++)
            if (r * 8 + threadIdx.y < DOWN + 6 && s * 32 + threadIdx.x < WIDE)
                tile[r * 8 + threadIdx.y][s * 32 + threadIdx.x] = ahead[r][s];
    }
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int r = 0; r < 10; r++) {
        float v[12];
#pragma unroll
        for (int s = 0; s < 12; s += 4)
            copy4(&v[s], &tile[threadIdx.y * 4 + r][threadIdx.x * 4 + s]);
#pragma unroll
        for (int o = 0; o < 4; o++) { /* row of pixels */
            if (r - o < 0 || r - o >= 7)
                continue;
#pragma unroll
            for (int s = 0; s < 7; s++) {
#pragma unroll
                for (int p = 0; p < 4; p++)
                    sum[o][p] += v[s + p] * f[(r - o) * 7 + s];
            }
        }
    }
    float *to = y + (size_t)blockIdx.z * height * width;
    if (width % 4 == 0)
        return store<true>(to, height, width, row + threadIdx.y * 4, column + threadIdx.x * 4, sum);
    store<false>(to, height, width, row + threadIdx.y * 4, column + threadIdx.x * 4, sum);
}
