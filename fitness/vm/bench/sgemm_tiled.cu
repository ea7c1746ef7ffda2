// C = A B for square matrices whose side is a multiple of 16, tiles of 16 x 16 in shared memory.
#include "evoke_cuda.h"

#define TILE 16

extern "C" __global__ void sgemm_tiled(const float *__restrict__ a, const float *__restrict__ b,
                                       float *__restrict__ c, int n) {
    __shared__ float left[TILE][TILE];
    __shared__ float right[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
