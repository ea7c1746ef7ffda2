/* Filter gradient of a convolution, as its definition has it.
 *
 * dF[o, c] = sum over n of X[n, c] correlated with dY[n, o]: dY has filter - 1 rows and columns
 * less than X. A thread makes an element of a filter: the sum over all pixels of dY, a row at a
 * time, so that long sums are of short ones. */
#include "evoke_cuda.h"

extern "C" __global__ void fft_conv2d_any_bp_filter(const float *X, const float *dY, float *dF,
                                                    int images, int channels, int outputs,
                                                    int height, int width, int filter) {
    int dy_height = height - filter + 1, dy_width = width - filter + 1;
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int j = at % filter, i = at / filter % filter;
    int c = at / (filter * filter) % channels, o = at / (filter * filter) / channels;
    if (o >= outputs)
        return;

    float sum = 0.0f;
    for (int n = 0; n < images; n++) {
        const float *input = X + ((n * channels + c) * height + i) * width + j;
        const float *gradient = dY + (n * outputs + o) * dy_height * dy_width;
        for (int y = 0; y < dy_height; y++) {
            float row = 0.0f;
            for (int x = 0; x < dy_width; x++)
                row += input[y * width + x] * gradient[y * dy_width + x];
            sum += row;
        }
    }
    dF[at] = sum;
}
