#include <evoke_cuda.h>

/* Two kernels whose last blocks of rows and columns are cut off: a five-point stencil, and a
 * transpose through a tile in shared memory. */

#define WIDE 32
#define HIGH 8

extern "C" __global__ void stencil(const float *x, float *y, int width, int height) {
    int column = blockIdx.x * WIDE + threadIdx.x, row = blockIdx.y * HIGH + threadIdx.y;
    if (column >= width || row >= height)
        return;
    int at = row * width + column;
    float left = column > 0 ? x[at - 1] : 0, right = column < width - 1 ? x[at + 1] : 0;
    float up = row > 0 ? x[at - width] : 0, down = row < height - 1 ? x[at + width] : 0;
    y[at] = 0.5f * x[at] + 0.125f * (left + right + up + down);
}

extern "C" __global__ void transpose(const float *x, float *y, int width, int height) {
    __shared__ float tile[WIDE][WIDE + 1];
    int column = blockIdx.x * WIDE + threadIdx.x, row = blockIdx.y * WIDE + threadIdx.y;
    for (int i = 0; i < WIDE; i += HIGH)
        if (column < width && row + i < height)
            tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * width + column];
    __syncthreads();
    column = blockIdx.y * WIDE + threadIdx.x;
    row = blockIdx.x * WIDE + threadIdx.y;
    for (int i = 0; i < WIDE; i += HIGH)
        if (column < height && row + i < width)
            y[(row + i) * height + column] = tile[threadIdx.x][threadIdx.y + i];
}
