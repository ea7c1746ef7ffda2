#include "evoke_cuda.h"

/* Softmax of rows: a warp a row, so that no shared memory is needed. */
extern "C" __global__ void softmax(const float *x, float *y, int columns) {
    const float *row = x + blockIdx.x * columns;
    float most = row[0];
    for (int i = threadIdx.x; i < columns; i += 32)
        most = fmaxf(most, row[i]);
    for (int lane = 16; lane > 0; lane /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32)
        sum += expf(row[i] - most);
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    for (int i = threadIdx.x; i < columns; i += 32)
        y[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
