/* Convolution by the fast Fourier transform, in tiles of 16 x 16 that overlap (overlap-save).
 *
 * Y[n, o] = sum over c of X[n, c] correlated with F[o, c], 5 x 5 filters, "valid": an output has
 * four rows and columns less than the input. A block makes a 12 x 12 tile of one output map, one
 * thread an element: for each input map it transforms the tile and the filter (zero-padded), adds
 * the product with the filter's conjugate, and transforms the sum back at the end. */
#include "evoke_cuda.h"
#include "evoke_fft_plain_conv2d.h"

#define FILTER 5

extern "C" __global__ void fft_conv2d(const float *X, const float *F, float *Y, int channels,
                                      int outputs, int height, int width) {
    convolve_tile(X, F, Y, channels, outputs, height, width, FILTER);
}
