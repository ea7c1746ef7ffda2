/* The pointwise part of a backward step of an LSTM layer, from the gates i, f, g, o that the
 * forward step kept: with t = tanh(c'), dc = dC + dH o (1 - t^2); then do = dH t, di = dc g, dg =
 * dc i, df = dc c, each times the slope of its nonlinearity, and dc f goes on to the step before.
 *
 * One thread makes one unit of one sequence. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 128
#endif

extern "C" __global__ void lstm_gates_bp(const float *dH, const float *dC, const float *gates,
                                         const float *C, const float *C_out, float *dG,
                                         float *dC_in, int B, int H) {
    int at = blockIdx.x * BLOCK + threadIdx.x;
    if (at >= B * H)
        return;
    int b = at / H, j = at % H;

    float i = gates[b * 4 * H + 0 * H + j];
    float f = gates[b * 4 * H + 1 * H + j];
    float g = gates[b * 4 * H + 2 * H + j];
    float o = gates[b * 4 * H + 3 * H + j];
    float t = tanhf(C_out[at]);
    float dc = dC[at] + dH[at] * o * (1.0f - t * t);

    dG[b * 4 * H + 0 * H + j] = dc * g * i * (1.0f - i);
    dG[b * 4 * H + 1 * H + j] = dc * C[at] * f * (1.0f - f);
    dG[b * 4 * H + 2 * H + j] = dc * i * (1.0f - g * g);
    dG[b * 4 * H + 3 * H + j] = dH[at] * t * o * (1.0f - o);
    dC_in[at] = dc * f;
}
