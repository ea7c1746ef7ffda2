/* What the textbook starts of the convolutions share: the Fourier transform of a tile of 16 x 16
 * complex numbers (with LEVELS 3, of 8 x 8) in shared memory, one thread a number, and the
 * convolution with filters of any size. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_PLAIN_H
#define KERNELS_INCLUDE_EVOKE_FFT_PLAIN_H

#ifndef LEVELS
#define LEVELS 4
#endif
#define TILE (1 << LEVELS)

/* exp(-2 pi i n / 16) */
static __constant__ float twiddle_re[8] = {1.0f, 0.923879533f,  0.707106781f,  0.382683432f,
                                           0.0f, -0.382683432f, -0.707106781f, -0.923879533f};
static __constant__ float twiddle_im[8] = {0.0f,  -0.382683432f, -0.707106781f, -0.923879533f,
                                           -1.0f, -0.923879533f, -0.707106781f, -0.382683432f};

/* Where element `i` of TILE stands before a transform: its bits in the opposite order. */
static __device__ int reversed(int i) {
    return __brev(i) >> (32 - LEVELS);
}

/* Transforms the tile in place: LEVELS stages along x, then as many along y. `sign` is -1 for the
 * inverse, which is left unscaled. The tile comes in reversed order in both directions. */
static __device__ void transform(float *re, float *im, float sign) {
    int i = threadIdx.y * TILE + threadIdx.x;
#pragma unroll 1
    for (int stage = 0; stage < 2 * LEVELS; stage++) {
        int half = 1 << stage % LEVELS;
        int position = stage < LEVELS ? threadIdx.x : threadIdx.y;
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
