/* Weight gradient of a step of an LSTM layer with structured dropout:
 * dW[:, kept] += scale dG^T X[:, kept].
 *
 * The columns of the neurons that dropout dropped stay as they are. One thread adds to one element
 * of dW[4H, H]. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

extern "C" __global__ void sd_lstm_bp_weight(const float *dG, const int *kept, const float *X,
                                             float *dW, int B, int H, int k, float scale) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (n >= k || j >= 4 * H)
        return;

    float sum = 0.0f;
    for (int b = 0; b < B; b++)
        sum += dG[b * 4 * H + j] * X[b * H + kept[n]];
    dW[j * H + kept[n]] += scale * sum;
}
