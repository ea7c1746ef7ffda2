/* The convolution with filters of any size, as the textbook starts of fft_conv2d_any and
 * fft_conv2d_small make it. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_PLAIN_CONV2D_H
#define KERNELS_INCLUDE_EVOKE_FFT_PLAIN_CONV2D_H

#include "evoke_fft_plain.h"

/* A tile of one output map Y[n, o], the correlation of maps X[n, c] with filters F[o, c], whose
 * size is `filter`. A block has a thread for each element of the tile; the elements that no filter
 * wraps around are kept. Grid: tiles, outputs, images. */
static __device__ void convolve_tile(const float *X, const float *F, float *Y, int channels,
                                     int outputs, int height, int width, int filter) {
    int kept = TILE - filter + 1;
    __shared__ float x_re[TILE * TILE], x_im[TILE * TILE];
    __shared__ float f_re[TILE * TILE], f_im[TILE * TILE];

    int out_height = height - filter + 1, out_width = width - filter + 1;
    int tiles_x = (out_width + kept - 1) / kept;
    int top = blockIdx.x / tiles_x * kept, left = blockIdx.x % tiles_x * kept;
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
        if (ty < filter && tx < filter)
            f_re[from] = F[((o * channels + c) * filter + ty) * filter + tx];
        f_im[from] = 0.0f;
        transform(f_re, f_im, 1.0f);

        sum_re += x_re[i] * f_re[i] + x_im[i] * f_im[i];
        sum_im += x_im[i] * f_re[i] - x_re[i] * f_im[i];
        __syncthreads();
    }

    x_re[from] = sum_re;
    x_im[from] = sum_im;
    transform(x_re, x_im, -1.0f);
    if (ty < kept && tx < kept && y < out_height && x < out_width)
        Y[((n * outputs + o) * out_height + y) * out_width + x] = x_re[i] * (1.0f / (TILE * TILE));
}

#endif
