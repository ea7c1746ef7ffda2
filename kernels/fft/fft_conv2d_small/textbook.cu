/* Convolution by the fast Fourier transform, in tiles of 8 x 8 that overlap (overlap-save).
 *
 * Y[n, o] = sum over c of X[n, c] correlated with F[o, c], "valid": an output has
 * filter - 1 rows and columns less than the input. A block makes a tile of one output map, one
 * thread an element, of which the elements that no filter wraps around are kept: for each input map
 * it transforms the tile and the filter (zero-padded), adds the product with the filter's
 * conjugate, and transforms the sum back at the end. */
#define LEVELS 3
#include "evoke_cuda.h"
#include "evoke_fft_plain_conv2d.h"

extern "C" __global__ void fft_conv2d_small(const float *X, const float *F, float *Y, int channels,
                                            int outputs, int height, int width, int filter) {
    convolve_tile(X, F, Y, channels, outputs, height, width, filter);
}
