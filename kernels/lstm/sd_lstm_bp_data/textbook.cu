/* Data gradient of a step of an LSTM layer with structured dropout:
 * dX[:, kept] = scale dG W[:, kept], and zero at the neurons that dropout dropped.
 *
 * One thread makes one kept neuron of one sequence from a row of dG[B, 4H] and a column of
 * W[4H, H], and writes the zeros from there to the next kept neuron. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif

extern "C" __global__ void sd_lstm_bp_data(const float *dG, const int *kept, const float *W,
                                           float *dX, int B, int H, int k, float scale) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int b = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (n >= k || b >= B)
        return;

    float sum = 0.0f;
    for (int j = 0; j < 4 * H; j++)
        sum += dG[b * 4 * H + j] * W[j * H + kept[n]];

    if (n == 0) {
        for (int h = 0; h < kept[0]; h++)
            dX[b * H + h] = 0.0f;
    }
    dX[b * H + kept[n]] = scale * sum;
    int next = n + 1 < k ? kept[n + 1] : H;
    for (int h = kept[n] + 1; h < next; h++)
        dX[b * H + h] = 0.0f;
}
