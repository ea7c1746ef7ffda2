/* Two-dimensional Fourier transforms of a batch of real tiles.
 *
 * A tile has 2^levels rows and columns. S[t] is the transform of X[t], without the columns behind
 * the middle one, which its symmetry tells: complex numbers, [row][column 0 to the middle]. A block
 * transforms one tile, one thread an element. */
#include "evoke_cuda.h"
#include "evoke_fft_levels.h"

extern "C" __global__ void rfft2d(const float *X, float *S, int tiles, int levels) {
    __shared__ float re[MOST * MOST], im[MOST * MOST];
    int tile = 1 << levels, columns = tile / 2 + 1;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * tile + tx;
    int from = reversed(ty, levels) * tile + reversed(tx, levels);
    (void)tiles; /* the grid has as many blocks */

    re[from] = X[blockIdx.x * tile * tile + i];
    im[from] = 0.0f;
    transform(re, im, levels, 1.0f);
    if (tx < columns) {
        int at = (blockIdx.x * tile + ty) * columns + tx;
        S[2 * at] = re[i];
        S[2 * at + 1] = im[i];
    }
}
