/* Data gradient of a convolution behind a ReLU: dX = (dY W) with zeros where the ReLU was off.
 *
 * One thread makes one element of dX[M, N] from a row of the lowered dY[M, K] and a column of
 * W[K, N]; the mask is X[M, N] > 0. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16
#endif

extern "C" __global__ void bp_data_masked(const float *dY, const float *W, const float *X,
                                          float *dX, int M, int N, int K) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int m = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (m >= M || n >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += dY[m * K + k] * W[k * N + n];

    if (X[m * N + n] > 0.0f)
        dX[m * N + n] = sum;
    else
        dX[m * N + n] = 0.0f;
}
