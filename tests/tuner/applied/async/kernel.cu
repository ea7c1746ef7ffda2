/* A matrix transposed in tiles that asynchronous copies bring. */
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

__global__ void transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int columns) {
    __shared__ float tile[16][17];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i < rows && j < columns)
        __pipeline_memcpy_async(&tile[threadIdx.y][threadIdx.x], &x[i * columns + j], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    i = blockIdx.y * 16 + threadIdx.x;
    j = blockIdx.x * 16 + threadIdx.y;
    if (i < rows && j < columns)
        y[j * rows + i] = tile[threadIdx.x][threadIdx.y];
}
