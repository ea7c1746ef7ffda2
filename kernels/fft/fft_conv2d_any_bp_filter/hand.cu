/* Filter gradient of a convolution by the fast Fourier transform with filters of any size up to 11,
 * by hand, in three launches: the spectra of all tiles of X and dY, their products, and the
 * inverse.
 *
 * evoke_fft_tiles.h says how lanes transform a tile, and which numbers a spectrum has.
 *
 * A tile of dY has TILE - filter + 1 rows and columns, and zeros behind them, and meets the whole
 * tile of X that begins at the same place. A spectrum's numbers lie far apart, [bin][tile][map],
 * and a warp has two to eight maps side by side, so that it reads and writes whole sectors. The sum
 * over all tiles of all images is then a product of two matrices for each bin, tiled in shared
 * memory and registers. The numbers of maps are rounded up; what stands there is zero. */
#include "evoke_cuda.h"
#include "evoke_fft_conv2d_bp.h"

#ifndef TILE
#define TILE 16
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
#ifndef DEPTH
#define DEPTH 8
#endif

template <int tile>
static __device__ __forceinline__ void
make_map_spectra(const float *__restrict__ X, const float *__restrict__ dY, float *__restrict__ XS,
                 float *__restrict__ DS, int channels, int outputs, int height, int width,
                 int filter, int input_blocks) {
    constexpr int lanes = tile / 2, groups = 32 * WARPS / lanes;
    __shared__ float2 scratch[groups * FFT_SCRATCH(tile)];
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, number = blockIdx.x;
    const int dy_height = height - filter + 1, dy_width = width - filter + 1;
    const fft_cut cut = cut_map<tile>(height, width, filter);
    const int of_map = number % (cut.tiles_y * cut.tiles_x),
              n = number / (cut.tiles_y * cut.tiles_x);
    const int top = of_map / cut.tiles_x * cut.kept, left = of_map % cut.tiles_x * cut.kept;
    const bool is_input = (int)blockIdx.y < input_blocks;
    const int count = is_input ? channels : outputs, pitch = whole_tiles<tile>(count);
    const int at = (blockIdx.y - (is_input ? 0 : input_blocks)) * groups + group;

    float2 v[tile] = {};
    if (is_input && at < count) {
        const float *map = X + ((size_t)n * channels + at) * height * width;
        load_part_of_row<0>(map, top + lane, left, height, width, width, v);
        load_part_of_row<1>(map, top + lane + lanes, left, height, width, width, v);
    } else if (at < count) {
        const float *map = dY + ((size_t)n * outputs + at) * dy_height * dy_width;
        const int bottom = min(dy_height, top + cut.kept), right = min(dy_width, left + cut.kept);
        load_part_of_row<0>(map, top + lane, left, bottom, dy_width, right, v);
        load_part_of_row<1>(map, top + lane + lanes, left, bottom, dy_width, right, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * FFT_SCRATCH(tile), lane,
                       (float2 *)(is_input ? XS : DS) + (size_t)number * pitch + at,
                       (size_t)gridDim.x * pitch);
}

/* XS[bin, tile, c] and DS[bin, tile, o]: the first `input_blocks` blocks along y have tiles of X,
 * the others tiles of dY. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ dY, float *__restrict__ XS,
                float *__restrict__ DS, int channels, int outputs, int height, int width,
                int filter, int input_blocks) {
    FFT_BY_FILTER(TILE, filter, make_map_spectra, X, dY, XS, DS, channels, outputs, height, width,
                  filter, input_blocks);
}

template <int tile>
static __device__ __forceinline__ void
add_tiles(const float *__restrict__ XS, const float *__restrict__ DS, float *__restrict__ FS,
          int channels, int outputs, int tiles) {
    multiply_spectra<COLUMNS, MAPS, DEPTH, FFT_WHOLE(tile)>(XS, DS, FS, tiles, channels, outputs);
}

/* FS[bin, o, c] = sum over all tiles of XS[bin, tile, c] conj DS[bin, tile, o] */
extern "C" __global__ void __launch_bounds__(COLUMNS *MAPS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ DS, float *__restrict__ FS,
                 int channels, int outputs, int filter, int tiles) {
    FFT_BY_FILTER(TILE, filter, add_tiles, XS, DS, FS, channels, outputs, tiles);
}

/* A group makes the filter of input map `at` and output map blockIdx.y: the first rows and columns
 * of the inverse. */
template <int tile>
static __device__ __forceinline__ void
make_filters(const float *__restrict__ FS, float *__restrict__ dF, int channels, int filter) {
    constexpr int lanes = tile / 2, groups = 32 * WARPS / lanes;
    __shared__ float2 scratch[groups * FFT_SCRATCH(tile)];
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
    const int pitch = whole_tiles<tile>(channels), at = blockIdx.x * groups + group;
    const int o = blockIdx.y, outputs = gridDim.y;
    if (at >= pitch) /* by whole warps */
        return;

    float2 w[tile], *own = scratch + group * FFT_SCRATCH(tile);
    invert_columns<tile>((const float2 *)FS + (size_t)o * pitch + at, (size_t)outputs * pitch, own,
                         lane, tile);
    invert_rows(own, lane, w);

    const float scale = 0.25f / (tile * tile); /* both spectra had the factor two */
    float *upper = dF + (((size_t)o * channels + at) * filter + lane) * filter;
    float *lower = upper + lanes * filter;
#pragma unroll
    for (int k = 0; k < tile; k++) {
        if (at < channels && k < filter && lane < filter)
            upper[k] = w[order<tile>(k)].y * scale;
        if (at < channels && k < filter && lane + lanes < filter)
            lower[k] = w[order<tile>(k)].x * scale;
    }
}

/* dF from FS */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_filters(const float *__restrict__ FS, float *__restrict__ dF, int channels, int filter) {
    FFT_BY_FILTER(TILE, filter, make_filters, FS, dF, channels, filter);
}
