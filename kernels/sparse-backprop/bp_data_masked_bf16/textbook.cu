/* Data gradient of a convolution behind a ReLU in bfloat16: dX = (dY W) with zeros where the ReLU
 * was off. Products are summed in float and rounded once.
 *
 * One thread makes one element of dX[M, N] from a row of the lowered dY[M, K] and a column of
 * W[K, N]; the mask is X[M, N] > 0. */
#include "evoke_cuda.h"
#include <cuda_bf16.h>

#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16
#endif

extern "C" __global__ void bp_data_masked_bf16(const __nv_bfloat16 *dY, const __nv_bfloat16 *W,
                                               const __nv_bfloat16 *X, __nv_bfloat16 *dX, int M,
                                               int N, int K) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int m = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (m >= M || n >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += __bfloat162float(dY[m * K + k]) * __bfloat162float(W[k * N + n]);

    if (__bfloat162float(X[m * N + n]) > 0.0f)
        dX[m * N + n] = __float2bfloat16(sum);
    else
        dX[m * N + n] = __float2bfloat16(0.0f);
}
