/* Two-dimensional Fourier transforms of a batch of real tiles.
 *
 * A tile has 2^levels rows and columns. S[t] is the transform of X[t], without the columns behind
 * the middle one, which its symmetry tells: complex numbers, [row][column 0 to the middle]. A block
 * transforms one tile, one thread an element. */
#include "evoke_cuda.h"

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

extern "C" __global__ void rfft2d(const float *X, float *S, int tiles, int levels) {
    __shared__ float re[MOST * MOST], im[MOST * MOST];
    int tile = 1 << levels, columns = tile / 2 + 1;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * tile + tx;
    int from = reversed(ty, levels) * tile + reversed(tx, levels);
    (void)tiles; /* the grid has as many blocks */

    re[from] = X[blockIdx.x * tile * tile + i];
    im[from] = 0.0f;
    /* The stages along x, then those along y. */
    for (int stage = 0; stage < 2 * levels; stage++) {
        int half = 1 << (stage < levels ? stage : stage - levels);
        int position = stage < levels ? tx : ty;
        int distance = 1 << stage;
        __syncthreads();
        if ((position & half) == 0) {
            int t = (position & (half - 1)) * (MOST / 2 / half);
            float wr = twiddle_re[t], wi = twiddle_im[t];
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
    if (tx < columns) {
        int at = (blockIdx.x * tile + ty) * columns + tx;
        S[2 * at] = re[i];
        S[2 * at + 1] = im[i];
    }
}
