#include "evoke_cuda.h"

/* Root-mean-square normalisation: a block of 128 threads a row. */
extern "C" __global__ void rmsnorm(const float *x, const float *gain, float *y, int columns) {
    __shared__ float part[128];
    const float *row = x + blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 128)
        sum += row[i] * row[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    float factor = 1.0f / sqrtf(part[0] / columns + 1e-6f);
    for (int i = threadIdx.x; i < columns; i += 128)
        y[blockIdx.x * columns + i] = row[i] * factor * gain[i];
}
