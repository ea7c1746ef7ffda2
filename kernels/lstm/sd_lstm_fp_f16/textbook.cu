/* Forward step of an LSTM layer with structured dropout in half precision: the same neurons are
 * dropped for the whole batch, so that only the k kept columns of W[4H, H] take part. Products are
 * summed in float, and each result is rounded once.
 *
 * G[B, 4H] holds the recurrent part of the gates with the bias; the input part is added here:
 * gates = G + scale X[:, kept] W[:, kept]^T, in the order i, f, g, o. One thread makes one unit of
 * one sequence: its four gates, which the backward pass needs, its cell and its output. */
#include "evoke_cuda.h"
#include <cuda_fp16.h>

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif

static __device__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

extern "C" __global__ void sd_lstm_fp_f16(const half *X, const int *kept, const half *W,
                                          const half *G, const half *C, half *gates, half *C_out,
                                          half *H_out, int B, int H, int k, float scale) {
    int j = blockIdx.x * BLOCK_X + threadIdx.x;
    int b = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (j >= H || b >= B)
        return;

    float i = 0.0f, f = 0.0f, g = 0.0f, o = 0.0f;
    for (int n = 0; n < k; n++) {
        float x = __half2float(X[b * H + kept[n]]);
        i += x * __half2float(W[(0 * H + j) * H + kept[n]]);
        f += x * __half2float(W[(1 * H + j) * H + kept[n]]);
        g += x * __half2float(W[(2 * H + j) * H + kept[n]]);
        o += x * __half2float(W[(3 * H + j) * H + kept[n]]);
    }
    i = sigmoid(__half2float(G[b * 4 * H + 0 * H + j]) + scale * i);
    f = sigmoid(__half2float(G[b * 4 * H + 1 * H + j]) + scale * f);
    g = tanhf(__half2float(G[b * 4 * H + 2 * H + j]) + scale * g);
    o = sigmoid(__half2float(G[b * 4 * H + 3 * H + j]) + scale * o);
    float c = f * __half2float(C[b * H + j]) + i * g;

    gates[b * 4 * H + 0 * H + j] = __float2half(i);
    gates[b * 4 * H + 1 * H + j] = __float2half(f);
    gates[b * 4 * H + 2 * H + j] = __float2half(g);
    gates[b * 4 * H + 3 * H + j] = __float2half(o);
    C_out[b * H + j] = __float2half(c);
    H_out[b * H + j] = __float2half(o * tanhf(c));
}
