/* The Fourier transform of the textbook starts of the convolutions: of a tile of 16 x 16 complex
 * numbers (with LEVELS 3, of 8 x 8) in shared memory, one thread a number. */
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

#endif
