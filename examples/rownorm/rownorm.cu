#include "evoke_cuda.h"

/* The Euclidean norm of each row: a row a thread. */
extern "C" __global__ void rownorm(const float *x, float *y, int rows, int columns) {
    int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < columns; i++) {
        float value = x[row * columns + i];
        sum += value * value;
    }
    y[row] = sqrtf(sum);
}
