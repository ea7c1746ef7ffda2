/* Filter gradient of a convolution by the fast Fourier transform with each transform made once, by
 * hand, in three launches: the spectra of all tiles of X and dY, their products, and the inverse.
 *
 * evoke_fft_tiles.h says how lanes transform a tile, and which numbers a spectrum has.
 *
 * A spectrum's numbers lie far apart, [bin][tile][map], and a warp has four maps side by side, so
 * that it reads and writes whole sectors. The sum over all tiles of all images is then a product of
 * two matrices for each bin, tiled in shared memory and registers. The numbers of maps are rounded
 * up to whole fours; what stands there is zero. */
#include "evoke_cuda.h"
#include "evoke_fft_tiles.h"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef MAPS
#define MAPS 8
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef DEPTH
#define DEPTH 8
#endif

#define TILE 16
#define FILTER 5
#define KEPT (TILE - FILTER + 1)
#define LANES 8            /* of a tile */
#define GROUPS (4 * WARPS) /* tiles of a block */

/* XS[bin, tile, c] and DS[bin, tile, o]: the first `input_blocks` blocks along y have tiles of X,
 * 16 x 16, the others tiles of dY, 12 x 12. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ dY, float *__restrict__ XS,
                float *__restrict__ DS, int channels, int outputs, int height, int width,
                int input_blocks) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, tile = blockIdx.x;
    const int dy_height = height - FILTER + 1, dy_width = width - FILTER + 1;
    const int tiles_y = (dy_height + KEPT - 1) / KEPT, tiles_x = (dy_width + KEPT - 1) / KEPT;
    const int n = tile / (tiles_y * tiles_x), place = tile % (tiles_y * tiles_x);
    const int y = place / tiles_x * KEPT + lane, left = place % tiles_x * KEPT;
    const bool is_input = (int)blockIdx.y < input_blocks;
    const int count = is_input ? channels : outputs, pitch = (count + 3) / 4 * 4;
    const int at = (blockIdx.y - (is_input ? 0 : input_blocks)) * GROUPS + group;

    float2 v[TILE] = {};
    if (is_input && at < count) {
        const float *map = X + ((size_t)n * channels + at) * height * width;
        load_row<0, TILE>(map, y, left, height, width, v);
        load_row<1, TILE>(map, y + LANES, left, height, width, v);
    } else if (at < count) {
        const float *map = dY + ((size_t)n * outputs + at) * dy_height * dy_width;
        load_row<0, KEPT>(map, y, left, dy_height, dy_width, v);
        if (lane + LANES < KEPT)
            load_row<1, KEPT>(map, y + LANES, left, dy_height, dy_width, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * FFT_SCRATCH(TILE), lane,
                       (float2 *)(is_input ? XS : DS) + (size_t)tile * pitch + at,
                       (size_t)gridDim.x * pitch);
}

/* FS[bin, o, c] = sum over all tiles of XS[bin, tile, c] conj DS[bin, tile, o] */
extern "C" __global__ void __launch_bounds__(COLUMNS *MAPS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ DS, float *__restrict__ FS,
                 int channels, int outputs, int tiles) {
    multiply_spectra<COLUMNS, MAPS, DEPTH>(XS, DS, FS, tiles, channels, outputs);
}

/* A group makes the filter of input map `at` and output map blockIdx.y: the five rows and columns
 * that are kept of the inverse. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_filters(const float *__restrict__ FS, float *__restrict__ dF, int channels) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int pitch = (channels + 3) / 4 * 4, at = blockIdx.x * GROUPS + group;
    const int o = blockIdx.y, outputs = gridDim.y;
    if (at >= pitch) /* by whole warps */
        return;

    float2 w[TILE], *own = scratch + group * FFT_SCRATCH(TILE);
    invert_columns<TILE>((const float2 *)FS + (size_t)o * pitch + at, (size_t)outputs * pitch, own,
                         lane, FILTER);
    if (lane >= FILTER || at >= channels)
        return;

    /* Half of the spectrum of a real row, whose elements are the real parts. */
    const float2 *half = own + lane * (LANES + 1);
    w[0] = make_float2(half[0].x, 0);
    w[TILE / 2] = make_float2(half[0].y, 0);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        w[k] = half[k];
        w[TILE - k] = make_float2(half[k].x, -half[k].y);
    }
    inverse(w);
    const float scale = 0.25f / (TILE * TILE); /* both spectra had the factor two */
    float *row = dF + (((size_t)o * channels + at) * FILTER + lane) * FILTER;
#pragma unroll
    for (int k = 0; k < FILTER; k++)
        row[k] = w[order<TILE>(k)].y * scale;
}
