/* Filter gradient of a convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap.
 *
 * dF[o, c] = sum over n of X[n, c] correlated with dY[n, o], 5 x 5 filters: dY has four rows and
 * columns less than X. A tile of dY is 12 x 12, zero-padded, and meets the 16 x 16 tile of X that
 * begins at the same place. A block makes one filter, one thread an element: for each tile of each
 * image it transforms both tiles, adds the product with the conjugate of dY's, and transforms the
 * sum back at the end. */
#include "evoke_cuda.h"

#define TILE 16
#define FILTER 5
#define KEPT (TILE - FILTER + 1)

/* exp(-2 pi i n / 16) */
static __constant__ float twiddle_re[8] = {1.0f, 0.923879533f,  0.707106781f,  0.382683432f,
                                           0.0f, -0.382683432f, -0.707106781f, -0.923879533f};
static __constant__ float twiddle_im[8] = {0.0f,  -0.382683432f, -0.707106781f, -0.923879533f,
                                           -1.0f, -0.923879533f, -0.707106781f, -0.382683432f};

/* Where element `i` of 16 stands before a transform: its four bits in the opposite order. */
static __device__ int reversed(int i) {
    return __brev(i) >> 28;
}

/* Transforms the tile in place: four stages along x, then four along y. `sign` is -1 for the
 * inverse, which is left unscaled. The tile comes in reversed order in both directions. */
static __device__ void transform(float *re, float *im, float sign) {
    int i = threadIdx.y * TILE + threadIdx.x;
#pragma unroll 1
    for (int stage = 0; stage < 8; stage++) {
        int half = 1 << (stage & 3);
        int position = stage < 4 ? threadIdx.x : threadIdx.y;
        int distance = 1 << stage;
        __syncthreads();
        if ((position & half) == 0) {
            int t = (position & (half - 1)) * (8 / half);
            float wr = twiddle_re[t], wi = sign * twiddle_im[t];
            float br = wr * re[i + distance] - wi * im[i + distance];
            float bi = wr * im[i + distance] + wi * re[i + distance];
            float ar = re[i], ai = im[i];
            re[i] = ar + br;
            im[i] = ai + bi;
            re[i + distance] = ar - br;
            im[i + distance] = ai - bi;
        }
    }
    __syncthreads();
}

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
