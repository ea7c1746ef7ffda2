/* Filter gradient of a convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap.
 *
 * dF[o, c] = sum over n of X[n, c] correlated with dY[n, o], 5 x 5 filters: dY has four rows and
 * columns less than X. A tile of dY is 12 x 12, zero-padded, and meets the 16 x 16 tile of X that
 * begins at the same place. A block makes one filter, one thread an element: for each tile of each
 * image it transforms both tiles, adds the product with the conjugate of dY's, and transforms the
 * sum back at the end. */
#include "evoke_cuda.h"
#include "evoke_fft_plain.h"

#define FILTER 5
#define KEPT (TILE - FILTER + 1)

extern "C" __global__ void fft_conv2d_bp_filter(const float *X, const float *dY, float *dF,
                                                int images, int channels, int outputs, int height,
                                                int width) {
    __shared__ float x_re[TILE * TILE], x_im[TILE * TILE];
    __shared__ float y_re[TILE * TILE], y_im[TILE * TILE];

    int dy_height = height - FILTER + 1, dy_width = width - FILTER + 1;
    int c = blockIdx.x, o = blockIdx.y;
    int tx = threadIdx.x, ty = threadIdx.y;
    int i = ty * TILE + tx, from = reversed(ty) * TILE + reversed(tx);

    float sum_re = 0.0f, sum_im = 0.0f;
    for (int n = 0; n < images; n++) {
        for (int top = 0; top < dy_height; top += KEPT) {
            for (int left = 0; left < dy_width; left += KEPT) {
                int y = top + ty, x = left + tx;
                x_re[from] = 0.0f;
                if (y < height && x < width)
                    x_re[from] = X[((n * channels + c) * height + y) * width + x];
                x_im[from] = 0.0f;
                transform(x_re, x_im, 1.0f);

                y_re[from] = 0.0f;
                if (ty < KEPT && tx < KEPT && y < dy_height && x < dy_width)
                    y_re[from] = dY[((n * outputs + o) * dy_height + y) * dy_width + x];
                y_im[from] = 0.0f;
                transform(y_re, y_im, 1.0f);

                sum_re += x_re[i] * y_re[i] + x_im[i] * y_im[i];
                sum_im += x_im[i] * y_re[i] - x_re[i] * y_im[i];
                __syncthreads();
            }
        }
    }

    x_re[from] = sum_re;
    x_im[from] = sum_im;
    transform(x_re, x_im, -1.0f);
    if (ty < FILTER && tx < FILTER)
        dF[((o * channels + c) * FILTER + ty) * FILTER + tx] = x_re[i] * (1.0f / (TILE * TILE));
}
