#include "evoke_cuda.h"

#define ACROSS 128 /* pixels of a block's tile: 32 threads, four each */
#define DOWN 32    /* 8 threads, four each */
#define WIDE (ACROSS + 8)

/* Images under a filter of 7 x 7: a tile with its border in shared memory, 4 x 4 pixels in the
 * registers of a thread. Each row of the tile is read once, four numbers at a time, for all rows of
 * pixels that it belongs to. */
extern "C" __global__ void __launch_bounds__(256, 2)
    conv2d_expert(const float *x, const float *filter, float *y, int height, int width) {
    __shared__ float tile[DOWN + 6][WIDE];
    __shared__ float f[7][8];
    int stride = width + 6, column = blockIdx.x * ACROSS, row = blockIdx.y * DOWN;
    const float *image = x + (size_t)blockIdx.z * (height + 6) * stride;
    int thread = threadIdx.y * 32 + threadIdx.x;
    if (thread < 49)
        f[thread / 7][thread % 7] = filter[thread];
#pragma unroll
    for (int r = threadIdx.y; r < DOWN + 6; r += 8) {
        bool inside = row + r < height + 6;
        const float *from = image + (size_t)(inside ? row + r : 0) * stride + column;
#pragma unroll
        for (int s = threadIdx.x; s < WIDE; s += 32)
            tile[r][s] = inside && column + s < stride ? from[s] : 0.0f;
    }
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int r = 0; r < 10; r++) {
        float v[12];
#pragma unroll
        for (int s = 0; s < 12; s += 4)
            *(float4 *)&v[s] = *(const float4 *)&tile[threadIdx.y * 4 + r][threadIdx.x * 4 + s];
#pragma unroll
        for (int o = 0; o < 4; o++) { /* row of pixels */
            if (r - o < 0 || r - o >= 7)
                continue;
#pragma unroll
            for (int s = 0; s < 7; s++) {
#pragma unroll
                for (int p = 0; p < 4; p++)
                    sum[o][p] += v[s + p] * f[r - o][s];
            }
        }
    }
    int to_row = row + threadIdx.y * 4, to = column + threadIdx.x * 4;
    float *out = y + ((size_t)blockIdx.z * height + to_row) * width + to;
#pragma unroll
    for (int o = 0; o < 4 && to_row + o < height; o++, out += width) {
        if (width % 4 == 0 && to < width) {
            *(float4 *)out = make_float4(sum[o][0], sum[o][1], sum[o][2], sum[o][3]);
        } else {
#pragma unroll
            for (int p = 0; p < 4; p++)
                if (to + p < width)
                    out[p] = sum[o][p];
        }
    }
}
