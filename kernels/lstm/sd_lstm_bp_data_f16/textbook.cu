/* Data gradient of a step of an LSTM layer with structured dropout in half precision:
 * dX[:, kept] = scale dG W[:, kept], and zero at the neurons that dropout dropped. Products are
 * summed in float, and each result is rounded once.
 *
 * One thread makes one kept neuron of one sequence from a row of dG[B, 4H] and a column of
 * W[4H, H], and writes the zeros from there to the next kept neuron. */
#include "evoke_cuda.h"
#include <cuda_fp16.h>

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif

extern "C" __global__ void sd_lstm_bp_data_f16(const half *dG, const int *kept, const half *W,
                                               half *dX, int B, int H, int k, float scale) {
    int n = blockIdx.x * BLOCK_X + threadIdx.x;
    int b = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (n >= k || b >= B)
        return;

    float sum = 0.0f;
    for (int j = 0; j < 4 * H; j++)
        sum += __half2float(dG[b * 4 * H + j]) * __half2float(W[j * H + kept[n]]);

    if (n == 0) {
        for (int h = 0; h < kept[0]; h++)
            dX[b * H + h] = __float2half(0.0f);
    }
    dX[b * H + kept[n]] = __float2half(scale * sum);
    int next = n + 1 < k ? kept[n + 1] : H;
    for (int h = kept[n] + 1; h < next; h++)
        dX[b * H + h] = __float2half(0.0f);
}
