/* Convolution by the fast Fourier transform with filters of up to 7 x 7 in tiles of 8 x 8 or more,
 * by hand, in three launches (evoke_fft_conv2d.h). */
#include "evoke_cuda.h"
#include "evoke_fft_conv2d.h"

#ifndef TILE
#define TILE 8
#endif
#ifndef WARPS
#define WARPS 2
#endif
#ifndef MAPS
#define MAPS 8
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef CHANNELS
#define CHANNELS 8
#endif

/* XS[bin, c, tile] and FS[bin, c, o] */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ XS,
                float *__restrict__ FS, int channels, int outputs, int height, int width,
                int filter, int tiles, int input_blocks) {
    make_spectra<TILE, WARPS, 7>(X, F, XS, FS, channels, outputs, height, width, filter, tiles,
                                 input_blocks);
}

/* YS[bin, o, tile] = sum over c of XS[bin, c, tile] conj FS[bin, c, o] */
extern "C" __global__ void __launch_bounds__(COLUMNS *MAPS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ FS, float *__restrict__ YS,
                 int channels, int outputs, int tiles) {
    multiply_spectra<COLUMNS, MAPS, CHANNELS, FFT_WHOLE(TILE)>(XS, FS, YS, channels, tiles,
                                                               outputs);
}

/* Y from YS */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_outputs(const float *__restrict__ YS, float *__restrict__ Y, int outputs, int height,
                int width, int filter, int tiles) {
    make_outputs<TILE, WARPS>(YS, Y, outputs, height, width, filter, tiles);
}
