/* Convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap (overlap-save).
 *
 * Y[n, o] = sum over c of X[n, c] correlated with F[o, c], 5 x 5 filters, "valid": an output has
 * four rows and columns less than the input. A block makes a 12 x 12 tile of one output map, one
 * thread an element: for each input map it transforms the tile and the filter (zero-padded), adds
 * the product with the filter's conjugate, and transforms the sum back at the end. */
#include "evoke_cuda.h"
#include "evoke_fft_plain.h"

#define FILTER 5
#define KEPT (TILE - FILTER + 1)

extern "C" __global__ void fft_conv2d(const float *X, const float *F, float *Y, int channels,
                                      int outputs, int height, int width) {
    __shared__ float x_re[TILE * TILE], x_im[TILE * TILE];
    __shared__ float f_re[TILE * TILE], f_im[TILE * TILE];

    int out_height = height - FILTER + 1, out_width = width - FILTER + 1;
    int tiles_x = (out_width + KEPT - 1) / KEPT;
    int top = blockIdx.x / tiles_x * KEPT, left = blockIdx.x % tiles_x * KEPT;
    int o = blockIdx.y, n = blockIdx.z;
    int tx = threadIdx.x, ty = threadIdx.y;
    int i = ty * TILE + tx, from = reversed(ty) * TILE + reversed(tx);
    int y = top + ty, x = left + tx;

    float sum_re = 0.0f, sum_im = 0.0f;
    for (int c = 0; c < channels; c++) {
        x_re[from] = 0.0f;
        if (y < height && x < width)
            x_re[from] = X[((n * channels + c) * height + y) * width + x];
        x_im[from] = 0.0f;
        transform(x_re, x_im, 1.0f);

        f_re[from] = 0.0f;
        if (ty < FILTER && tx < FILTER)
            f_re[from] = F[((o * channels + c) * FILTER + ty) * FILTER + tx];
        f_im[from] = 0.0f;
        transform(f_re, f_im, 1.0f);

        sum_re += x_re[i] * f_re[i] + x_im[i] * f_im[i];
        sum_im += x_im[i] * f_re[i] - x_re[i] * f_im[i];
        __syncthreads();
    }

    x_re[from] = sum_re;
    x_im[from] = sum_im;
    transform(x_re, x_im, -1.0f);
    if (ty < KEPT && tx < KEPT && y < out_height && x < out_width)
        Y[((n * outputs + o) * out_height + y) * out_width + x] = x_re[i] * (1.0f / (TILE * TILE));
}
