/* Data gradient of a convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap.
 *
 * dX[n, c] = sum over o of dY[n, o] convolved with F[o, c], 5 x 5 filters, "full": dX has four rows
 * and columns more than dY. A block makes a 12 x 12 tile of one input map, one thread an element:
 * for each output map it transforms the tile of dY, which begins four rows and columns before, and
 * the filter (zero-padded), adds their product, and transforms the sum back at the end. */
#include "evoke_cuda.h"
#include "evoke_fft_plain.h"

#define FILTER 5
#define KEPT (TILE - FILTER + 1)

extern "C" __global__ void fft_conv2d_bp_data(const float *dY, const float *F, float *dX,
                                              int channels, int outputs, int height, int width) {
    __shared__ float y_re[TILE * TILE], y_im[TILE * TILE];
    __shared__ float f_re[TILE * TILE], f_im[TILE * TILE];

    int dy_height = height - FILTER + 1, dy_width = width - FILTER + 1;
    int tiles_x = (width + KEPT - 1) / KEPT;
    int top = blockIdx.x / tiles_x * KEPT, left = blockIdx.x % tiles_x * KEPT;
    int c = blockIdx.y, n = blockIdx.z;
    int tx = threadIdx.x, ty = threadIdx.y;
    int i = ty * TILE + tx, from = reversed(ty) * TILE + reversed(tx);
    int y = top + ty - (FILTER - 1), x = left + tx - (FILTER - 1);

    float sum_re = 0.0f, sum_im = 0.0f;
    for (int o = 0; o < outputs; o++) {
        y_re[from] = 0.0f;
        if (y >= 0 && y < dy_height && x >= 0 && x < dy_width)
            y_re[from] = dY[((n * outputs + o) * dy_height + y) * dy_width + x];
        y_im[from] = 0.0f;
        transform(y_re, y_im, 1.0f);

        f_re[from] = 0.0f;
        if (ty < FILTER && tx < FILTER)
            f_re[from] = F[((o * channels + c) * FILTER + ty) * FILTER + tx];
        f_im[from] = 0.0f;
        transform(f_re, f_im, 1.0f);

        sum_re += y_re[i] * f_re[i] - y_im[i] * f_im[i];
        sum_im += y_im[i] * f_re[i] + y_re[i] * f_im[i];
        __syncthreads();
    }

    y_re[from] = sum_re;
    y_im[from] = sum_im;
    transform(y_re, y_im, -1.0f);
    if (ty >= FILTER - 1 && tx >= FILTER - 1 && y < height && x < width)
        dX[((n * channels + c) * height + y) * width + x] = y_re[i] * (1.0f / (TILE * TILE));
}
