/* Forward step of an LSTM layer with structured dropout: the same neurons are dropped for the whole
 * batch, so that only the k kept columns of W[4H, H] take part.
 *
 * G[B, 4H] holds the recurrent part of the gates with the bias; the input part is added here:
 * gates = G + scale X[:, kept] W[:, kept]^T, in the order i, f, g, o. One thread makes one unit of
 * one sequence: its four gates, which the backward pass needs, its cell and its output. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif

static __device__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

extern "C" __global__ void sd_lstm_fp(const float *X, const int *kept, const float *W,
                                      const float *G, const float *C, float *gates, float *C_out,
                                      float *H_out, int B, int H, int k, float scale) {
    int j = blockIdx.x * BLOCK_X + threadIdx.x;
    int b = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (j >= H || b >= B)
        return;

    float i = 0.0f, f = 0.0f, g = 0.0f, o = 0.0f;
    for (int n = 0; n < k; n++) {
        float x = scale * X[b * H + kept[n]];
        i += x * W[(0 * H + j) * H + kept[n]];
        f += x * W[(1 * H + j) * H + kept[n]];
        g += x * W[(2 * H + j) * H + kept[n]];
        o += x * W[(3 * H + j) * H + kept[n]];
    }
    i = sigmoid(G[b * 4 * H + 0 * H + j] + i);
    f = sigmoid(G[b * 4 * H + 1 * H + j] + f);
    g = tanhf(G[b * 4 * H + 2 * H + j] + g);
    o = sigmoid(G[b * 4 * H + 3 * H + j] + o);
    float c = f * C[b * H + j] + i * g;

    gates[b * 4 * H + 0 * H + j] = i;
    gates[b * 4 * H + 1 * H + j] = f;
    gates[b * 4 * H + 2 * H + j] = g;
    gates[b * 4 * H + 3 * H + j] = o;
    C_out[b * H + j] = c;
    H_out[b * H + j] = o * tanhf(c);
}
