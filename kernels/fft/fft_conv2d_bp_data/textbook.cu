/* Data gradient of a convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap.
 *
 * dX[n, c] = sum over o of dY[n, o] convolved with F[o, c], 5 x 5 filters, "full": dX has four rows
 * and columns more than dY. A block makes a 12 x 12 tile of one input map, one thread an element:
 * for each output map it transforms the tile of dY, which begins four rows and columns before, and
 * the filter (zero-padded), adds their product, and transforms the sum back at the end. */
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
