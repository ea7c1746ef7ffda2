/* Convolution by the fast Fourier transform with each transform made once, in four launches: the
 * spectra of the filters, those of the inputs' tiles, their products, and the inverse.
 *
 * Y[n, o] = sum over c of X[n, c] correlated with F[o, c], 5 x 5 filters, "valid": an output has
 * four rows and columns less than the input. Tiles are 16 x 16 and overlap (overlap-save); a
 * spectrum is a tile of complex numbers. One thread an element. */
#include "evoke_cuda.h"
#include "evoke_fft_plain.h"

#define POINTS (TILE * TILE)
#define FILTER 5
#define KEPT (TILE - FILTER + 1)

/* FS[o, c, element]: a filter in the corner of a tile. */
extern "C" __global__ void fft_filters(const float *F, float *FS, int channels) {
    __shared__ float re[POINTS], im[POINTS];
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * TILE + tx;
    int from = reversed(ty) * TILE + reversed(tx);
    int filter = blockIdx.y * channels + blockIdx.x;

    re[from] = 0.0f;
    if (ty < FILTER && tx < FILTER)
        re[from] = F[(filter * FILTER + ty) * FILTER + tx];
    im[from] = 0.0f;
    transform(re, im, 1.0f);
    FS[2 * (filter * POINTS + i)] = re[i];
    FS[2 * (filter * POINTS + i) + 1] = im[i];
}

/* XS[n, tile, c, element] */
extern "C" __global__ void fft_inputs(const float *X, float *XS, int channels, int height,
                                      int width) {
    __shared__ float re[POINTS], im[POINTS];
    int tiles_x = (width - FILTER + KEPT) / KEPT;
    int tile = blockIdx.x, c = blockIdx.y, n = blockIdx.z;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * TILE + tx;
    int from = reversed(ty) * TILE + reversed(tx);
    int y = tile / tiles_x * KEPT + ty, x = tile % tiles_x * KEPT + tx;

    re[from] = 0.0f;
    if (y < height && x < width)
        re[from] = X[((n * channels + c) * height + y) * width + x];
    im[from] = 0.0f;
    transform(re, im, 1.0f);
    int at = ((n * gridDim.x + tile) * channels + c) * POINTS + i;
    XS[2 * at] = re[i];
    XS[2 * at + 1] = im[i];
}

/* YS[n, tile, o, element] = sum over c of XS and the conjugate of FS; one block a tile and o. */
extern "C" __global__ void fft_products(const float *XS, const float *FS, float *YS, int channels) {
    int i = threadIdx.x, o = blockIdx.x, tile = blockIdx.y;
    float sum_re = 0.0f, sum_im = 0.0f;
    for (int c = 0; c < channels; c++) {
        const float *x = XS + 2 * ((tile * channels + c) * POINTS + i);
        const float *f = FS + 2 * ((o * channels + c) * POINTS + i);
        sum_re += x[0] * f[0] + x[1] * f[1];
        sum_im += x[1] * f[0] - x[0] * f[1];
    }
    int at = (tile * gridDim.x + o) * POINTS + i;
    YS[2 * at] = sum_re;
    YS[2 * at + 1] = sum_im;
}

extern "C" __global__ void fft_outputs(const float *YS, float *Y, int outputs, int height,
                                       int width) {
    __shared__ float re[POINTS], im[POINTS];
    int out_height = height - FILTER + 1, out_width = width - FILTER + 1;
    int tiles_x = (out_width + KEPT - 1) / KEPT;
    int tile = blockIdx.x, o = blockIdx.y, n = blockIdx.z;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * TILE + tx;
    int to = reversed(ty) * TILE + reversed(tx);
    int y = tile / tiles_x * KEPT + ty, x = tile % tiles_x * KEPT + tx;

    int at = ((n * gridDim.x + tile) * outputs + o) * POINTS + i;
    re[to] = YS[2 * at];
    im[to] = YS[2 * at + 1];
    transform(re, im, -1.0f);
    if (ty < KEPT && tx < KEPT && y < out_height && x < out_width)
        Y[((n * outputs + o) * out_height + y) * out_width + x] = re[i] * (1.0f / POINTS);
}
