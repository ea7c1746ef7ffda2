/* Forward sequence of an LSTM layer with structured dropout: two launches a time step.
 *
 * At step t dropout keeps the k columns kept[t] of the inputs X[t], the same for the whole batch.
 * The first launch makes the sums Z[B, 4H] = bias + scale X[t][:, kept[t]] W[:, kept[t]]^T + h U^T
 * in the order i, f, g, o, the second the gates, the cells and the outputs; a thread has one unit
 * of one sequence. Cells and outputs of a step are those that the next step begins with. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 4
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 32
#endif

static __device__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

extern "C" __global__ void sd_lstm_sums(const float *X, const int *kept, const float *W,
                                        const float *U, const float *bias, const float *H_in,
                                        const float *H_out, float *Z, int B, int H, int k,
                                        float scale, int t) {
    int b = blockIdx.x * BLOCK_X + threadIdx.x;
    int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (j >= H || b >= B)
        return;

    const float *inputs = X + (t * B + b) * H;
    const float *outputs = t > 0 ? H_out + ((t - 1) * B + b) * H : H_in + b * H;
    const int *columns = kept + t * k;
    float i = bias[j], f = bias[H + j], g = bias[2 * H + j], o = bias[3 * H + j];
    for (int n = 0; n < k; n++) {
        float x = scale * inputs[columns[n]];
        i += x * W[(0 * H + j) * H + columns[n]];
        f += x * W[(1 * H + j) * H + columns[n]];
        g += x * W[(2 * H + j) * H + columns[n]];
        o += x * W[(3 * H + j) * H + columns[n]];
    }
    for (int n = 0; n < H; n++) {
        float h = outputs[n];
        i += h * U[(0 * H + j) * H + n];
        f += h * U[(1 * H + j) * H + n];
        g += h * U[(2 * H + j) * H + n];
        o += h * U[(3 * H + j) * H + n];
    }
    Z[b * 4 * H + j] = i;
    Z[b * 4 * H + H + j] = f;
    Z[b * 4 * H + 2 * H + j] = g;
    Z[b * 4 * H + 3 * H + j] = o;
}

extern "C" __global__ void sd_lstm_cells(const float *Z, const float *C_in, float *gates,
                                         float *C_out, float *H_out, int B, int H, int t) {
    int b = blockIdx.x * BLOCK_X + threadIdx.x;
    int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (j >= H || b >= B)
        return;

    const float *z = Z + b * 4 * H + j;
    float *out = gates + (t * B + b) * 4 * H + j;
    float before = t > 0 ? C_out[((t - 1) * B + b) * H + j] : C_in[b * H + j];
    float i = sigmoid(z[0]);
    float f = sigmoid(z[H]);
    float g = tanhf(z[2 * H]);
    float o = sigmoid(z[3 * H]);
    float c = f * before + i * g;
    out[0] = i;
    out[H] = f;
    out[2 * H] = g;
    out[3 * H] = o;
    C_out[(t * B + b) * H + j] = c;
    H_out[(t * B + b) * H + j] = o * tanhf(c);
}
