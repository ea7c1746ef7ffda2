/* Softmax of rows in half precision: numbers are read and written as halves, and computed as floats.
 * A warp has a row. */
#include <cuda_fp16.h>

__device__ float over_warp(float value, bool adds) {
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, lanes);
        value = adds ? value + other : fmaxf(value, other);
    }
    return value;
}

extern "C" __global__ void halfmax(const half *x, half *y, int rows, int columns) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    const half *from = x + (size_t)row * columns;
    half *to = y + (size_t)row * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32)
        most = fmaxf(most, __half2float(from[i]));
    most = over_warp(most, false);
    for (int i = threadIdx.x; i < columns; i += 32)
        sum += expf(__half2float(from[i]) - most);
    sum = over_warp(sum, true);
    for (int i = threadIdx.x; i < columns; i += 32)
        to[i] = __float2half(expf(__half2float(from[i]) - most) / sum);
}
