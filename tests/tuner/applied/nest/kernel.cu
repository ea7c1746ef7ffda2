#include "evoke_cuda.h"

/* Mean and variance of each channel of NCHW maps: a channel a thread, in two passes. */
extern "C" __global__ void bnstats(const float *x, float *mean, float *var, int batch, int channels,
                                   int pixels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels)
        return;
    float sum = 0.0f;
    for (int b = 0; b < batch; b++)
        for (int p = 0; p < pixels; p++)
            sum += x[(b * channels + c) * pixels + p];
    float m = sum / (batch * pixels);
    float squares = 0.0f;
    for (int b = 0; b < batch; b++)
        for (int p = 0; p < pixels; p++) {
            float diff = x[(b * channels + c) * pixels + p] - m;
            squares += diff * diff;
        }
    mean[c] = m;
    var[c] = squares / (batch * pixels);
}
