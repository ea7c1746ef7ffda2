/* Data gradient of a layer whose output gradient has rows of zeros, in bfloat16: dX = dY W.
 * Products are summed in float and rounded once.
 *
 * One thread makes one element of dX[M, N] from a row of the lowered dY[M, K] and a column of
 * W[K, N]. A row of dY is a pixel; it is all zero where no gradient arrives. */
#include "evoke_cuda.h"
#include <cuda_bf16.h>

#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16
#endif

extern "C" __global__ void bp_data_input_sparse_bf16(const __nv_bfloat16 *dY,
                                                     const __nv_bfloat16 *W, __nv_bfloat16 *dX,
                                                     int M, int N, int K) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int m = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (m >= M || n >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += __bfloat162float(dY[m * K + k]) * __bfloat162float(W[k * N + n]);
    dX[m * N + n] = __float2bfloat16(sum);
}
