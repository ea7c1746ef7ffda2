/* Inverse two-dimensional Fourier transforms of a batch of half spectra, to real tiles.
 *
 * A tile has 2^levels rows and columns. S[t] has columns 0 to the middle of a spectrum whose other
 * columns are the conjugates of those opposite; X[t] is the real part of the spectrum's inverse. A
 * block transforms one tile, one thread an element. */
#include "evoke_cuda.h"
#include "evoke_fft_levels.h"

extern "C" __global__ void irfft2d(const float *S, float *X, int tiles, int levels) {
    __shared__ float re[MOST * MOST], im[MOST * MOST];
    int tile = 1 << levels, columns = tile / 2 + 1;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * tile + tx;
    int to = reversed(ty, levels) * tile + reversed(tx, levels);
    bool is_there = tx < columns;
    (void)tiles; /* the grid has as many blocks */

    int row = is_there ? ty : (tile - ty) % tile, column = is_there ? tx : tile - tx;
    int at = (blockIdx.x * tile + row) * columns + column;
    re[to] = S[2 * at];
    im[to] = is_there ? S[2 * at + 1] : -S[2 * at + 1];
    transform(re, im, levels, -1.0f);
    X[blockIdx.x * tile * tile + i] = re[i] / (tile * tile);
}
