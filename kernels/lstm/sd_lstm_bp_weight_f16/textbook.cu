/* Weight gradient of a step of an LSTM layer with structured dropout, from gradients and inputs in
 * half precision: dW[:, kept] += scale dG^T X[:, kept], summed in float.
 *
 * dW adds up over the steps, so it is kept in float. The columns of the neurons that dropout
 * dropped stay as they are. One thread adds to one element of dW[4H, H]. */
#include "evoke_cuda.h"
#include <cuda_fp16.h>

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

extern "C" __global__ void sd_lstm_bp_weight_f16(const half *dG, const int *kept, const half *X,
                                                 float *dW, int B, int H, int k, float scale) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (n >= k || j >= 4 * H)
        return;

    float sum = 0.0f;
    for (int b = 0; b < B; b++)
        sum += __half2float(dG[b * 4 * H + j]) * __half2float(X[b * H + kept[n]]);
    dW[j * H + kept[n]] += scale * sum;
}
