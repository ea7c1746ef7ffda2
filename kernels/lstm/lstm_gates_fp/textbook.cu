/* The pointwise part of a forward step of an LSTM layer: gates = Z + R + bias in the order i, f, g,
 * o, through their nonlinearities; then c' = f c + i g and h' = o tanh(c').
 *
 * Z[B, 4H] and R[B, 4H] are the products with the inputs and with the last outputs. One thread
 * makes one unit of one sequence. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 128
#endif

static __device__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

static __device__ float sum_of(const float *Z, const float *R, const float *bias, int b, int row,
                               int H) {
    return Z[b * 4 * H + row] + R[b * 4 * H + row] + bias[row];
}

extern "C" __global__ void lstm_gates_fp(const float *Z, const float *R, const float *bias,
                                         const float *C, float *gates, float *C_out, float *H_out,
                                         int B, int H) {
    int at = blockIdx.x * BLOCK + threadIdx.x;
    if (at >= B * H)
        return;
    int b = at / H, j = at % H;

    float i = sigmoid(sum_of(Z, R, bias, b, 0 * H + j, H));
    float f = sigmoid(sum_of(Z, R, bias, b, 1 * H + j, H));
    float g = tanhf(sum_of(Z, R, bias, b, 2 * H + j, H));
    float o = sigmoid(sum_of(Z, R, bias, b, 3 * H + j, H));
    float c = f * C[at] + i * g;

    gates[b * 4 * H + 0 * H + j] = i;
    gates[b * 4 * H + 1 * H + j] = f;
    gates[b * 4 * H + 2 * H + j] = g;
    gates[b * 4 * H + 3 * H + j] = o;
    C_out[at] = c;
    H_out[at] = o * tanhf(c);
}
