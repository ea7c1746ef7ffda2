/* The Fourier transform of the textbook starts of rfft2d and irfft2d: of a tile of 2^levels rows
 * and columns of complex numbers in shared memory, levels up to 5, one thread a number. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_LEVELS_H
#define KERNELS_INCLUDE_EVOKE_FFT_LEVELS_H

#define MOST 32 /* rows and columns of the largest tile */

/* exp(-2 pi i n / 32) */
static __constant__ float twiddle_re[16] = {
    1.0f,          0.980785280f,  0.923879533f,  0.831469612f,  0.707106781f,  0.555570233f,
    0.382683432f,  0.195090322f,  0.0f,          -0.195090322f, -0.382683432f, -0.555570233f,
    -0.707106781f, -0.831469612f, -0.923879533f, -0.980785280f};
static __constant__ float twiddle_im[16] = {
    0.0f,          -0.195090322f, -0.382683432f, -0.555570233f, -0.707106781f, -0.831469612f,
    -0.923879533f, -0.980785280f, -1.0f,         -0.980785280f, -0.923879533f, -0.831469612f,
    -0.707106781f, -0.555570233f, -0.382683432f, -0.195090322f};

/* Where element `i` stands before a transform: its bits in the opposite order. */
static __device__ int reversed(int i, int levels) {
    return __brev(i) >> (32 - levels);
}

/* Transforms the tile in place: the stages along x, then those along y. `sign` is -1 for the
 * inverse, which is left unscaled. The tile comes in reversed order in both directions. */
static __device__ void transform(float *re, float *im, int levels, float sign) {
    int i = (threadIdx.y << levels) + threadIdx.x;
    for (int stage = 0; stage < 2 * levels; stage++) {
        int half = 1 << (stage < levels ? stage : stage - levels);
        int position = stage < levels ? threadIdx.x : threadIdx.y;
        int distance = 1 << stage;
        __syncthreads();
        if ((position & half) == 0) {
            int t = (position & (half - 1)) * (MOST / 2 / half);
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

#endif
