// One configuration of the convolution of fitness/model/silicon/convolution.csv: a filter of 15 x 15
// in constant memory over an image that is padded already. The columns of that file are the macros.
// A block copies its part of the input to shared memory; each of its threads makes tile_size_x by
// tile_size_y outputs, block_size_x and block_size_y apart.
#include "evoke_cuda.h"

#ifndef image_size /* outputs in a row, and rows */
#define image_size 4096
#endif

#define FILTER 15
#define BORDER (FILTER - 1)
#define INPUT_SIZE (image_size + BORDER)
#define TILE_X (block_size_x * tile_size_x)
#define TILE_Y (block_size_y * tile_size_y)
#define ROW (TILE_X + BORDER)
#define COLUMN (TILE_Y + BORDER)

/* Columns that no thread uses: with them, neighbouring rows of a narrow block lie in different
 * banks. */
#if use_padding && block_size_x % 32 != 0 && (ROW - block_size_x) % 32 != 0
#define PADDING ((32 - (ROW - block_size_x) % 32) % 32)
#else
#define PADDING 0
#endif

/* A tile that does not divide the image reaches past its end. */
#define IS_CUT (image_size % TILE_X != 0 || image_size % TILE_Y != 0)

#if read_only
#define INPUT(at) __ldg(&input[at])
#else
#define INPUT(at) input[at]
#endif

__constant__ float filter[FILTER * FILTER];

extern "C" __global__ void convolution(float *output, const float *input) {
    __shared__ float part[COLUMN][ROW + PADDING];
    int tx = threadIdx.x, ty = threadIdx.y;
    int left = blockIdx.x * TILE_X, top = blockIdx.y * TILE_Y;

#pragma unroll
    for (int y = ty; y < COLUMN; y += block_size_y) {
#pragma unroll
        for (int x = tx; x < ROW; x += block_size_x) {
            if (!IS_CUT || (top + y < INPUT_SIZE && left + x < INPUT_SIZE))
                part[y][x] = INPUT((top + y) * INPUT_SIZE + left + x);
        }
    }
    __syncthreads();

    float sum[tile_size_y][tile_size_x];
#pragma unroll
    for (int b = 0; b < tile_size_y; b++) {
#pragma unroll
        for (int a = 0; a < tile_size_x; a++)
            sum[b][a] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < FILTER; i++) {
#pragma unroll
        for (int j = 0; j < FILTER; j++) {
#pragma unroll
            for (int b = 0; b < tile_size_y; b++) {
#pragma unroll
                for (int a = 0; a < tile_size_x; a++)
                    sum[b][a] += part[ty + b * block_size_y + i][tx + a * block_size_x + j] *
                                 filter[i * FILTER + j];
            }
        }
    }

#pragma unroll
    for (int b = 0; b < tile_size_y; b++) {
#pragma unroll
        for (int a = 0; a < tile_size_x; a++) {
            int y = top + ty + b * block_size_y, x = left + tx + a * block_size_x;
            if (!IS_CUT || (y < image_size && x < image_size))
                output[y * image_size + x] = sum[b][a];
        }
    }
}
