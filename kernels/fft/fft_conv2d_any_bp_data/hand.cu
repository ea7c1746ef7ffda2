/* Data gradient of a convolution by the fast Fourier transform with filters of any size up to 11,
 * by hand, in the three launches of the forward pass (evoke_fft_conv2d.h).
 *
 * With its filters turned by half a turn, the gradient is a convolution like the forward one: of dY
 * with filter - 1 rows and columns of zeros on all sides, and with sums over the output maps. */
#include "evoke_cuda.h"
#include "evoke_fft_conv2d_bp.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WARPS
#define WARPS 2
#endif
#ifndef MAPS
#define MAPS 4
#endif
#ifndef COLUMNS
#define COLUMNS 8
#endif
#ifndef OUTPUTS
#define OUTPUTS 8
#endif
#define MOST 11 /* rows of a filter */

/* Row `y` of a turned filter as v.x (part 0) or v.y (part 1); what lies behind the filter stays. */
template <int part, int tile>
static __device__ __forceinline__ void load_turned_row(const float *__restrict__ F, int y,
                                                       int filter, float2 (&v)[tile]) {
    const float *last = F + (filter - 1 - y) * filter + filter - 1;
#pragma unroll
    for (int x = 0; x < (tile < MOST ? tile : MOST); x++) {
        if (y < filter && x < filter)
            (part ? v[x].y : v[x].x) = last[-x];
    }
}

template <int tile>
static __device__ __forceinline__ void
make_gradient_spectra(const float *__restrict__ dY, const float *__restrict__ F,
                      float *__restrict__ DS, float *__restrict__ FS, int channels, int outputs,
                      int height, int width, int filter, int tiles, int gradient_blocks) {
    constexpr int lanes = tile / 2, groups = 32 * WARPS / lanes;
    __shared__ float2 scratch[groups * FFT_SCRATCH(tile)];
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, o = blockIdx.y;
    const int edge = filter - 1, dy_height = height - edge, dy_width = width - edge;
    const fft_cut cut = cut_map<tile>(height + edge, width + edge, filter);
    const bool is_gradient = (int)blockIdx.x < gradient_blocks;
    const int count = is_gradient ? tiles : channels, pitch = whole_tiles<tile>(count);
    const int at = (blockIdx.x - (is_gradient ? 0 : gradient_blocks)) * groups + group;

    float2 v[tile] = {};
    if (is_gradient && at < count) {
        const int of_map = at % (cut.tiles_y * cut.tiles_x), n = at / (cut.tiles_y * cut.tiles_x);
        const int y = of_map / cut.tiles_x * cut.kept + lane - edge,
                  left = of_map % cut.tiles_x * cut.kept - edge;
        const float *map = dY + ((size_t)n * outputs + o) * dy_height * dy_width;
        load_part_of_row<0>(map, y, left, dy_height, dy_width, dy_width, v);
        load_part_of_row<1>(map, y + lanes, left, dy_height, dy_width, dy_width, v);
    } else if (at < count) {
        const float *of = F + ((size_t)o * channels + at) * filter * filter;
        load_turned_row<0>(of, lane, filter, v);
        if (lanes < MOST)
            load_turned_row<1>(of, lane + lanes, filter, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * FFT_SCRATCH(tile), lane,
                       (float2 *)(is_gradient ? DS : FS) + (size_t)o * pitch + at,
                       (size_t)outputs * pitch);
}

/* DS[bin, o, tile] of dY and FS[bin, o, c] of the turned filters: the first `gradient_blocks`
 * blocks along x have tiles, the others filters. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ dY, const float *__restrict__ F, float *__restrict__ DS,
                float *__restrict__ FS, int channels, int outputs, int height, int width,
                int filter, int tiles, int gradient_blocks) {
    FFT_BY_FILTER(TILE, filter, make_gradient_spectra, dY, F, DS, FS, channels, outputs, height,
                  width, filter, tiles, gradient_blocks);
}

template <int tile>
static __device__ __forceinline__ void
multiply_by_filters(const float *__restrict__ DS, const float *__restrict__ FS,
                    float *__restrict__ XS, int channels, int outputs, int tiles) {
    multiply_spectra<COLUMNS, MAPS, OUTPUTS, FFT_WHOLE(tile)>(DS, FS, XS, outputs, tiles, channels);
}

/* XS[bin, c, tile] = sum over o of DS[bin, o, tile] conj FS[bin, o, c] */
extern "C" __global__ void __launch_bounds__(COLUMNS *MAPS)
    fft_products(const float *__restrict__ DS, const float *__restrict__ FS, float *__restrict__ XS,
                 int channels, int outputs, int filter, int tiles) {
    FFT_BY_FILTER(TILE, filter, multiply_by_filters, DS, FS, XS, channels, outputs, tiles);
}

template <int tile>
static __device__ __forceinline__ void make_inputs(const float *__restrict__ XS,
                                                   float *__restrict__ dX, int channels, int height,
                                                   int width, int filter, int tiles) {
    make_outputs<tile, WARPS>(XS, dX, channels, height + filter - 1, width + filter - 1, filter,
                              tiles);
}

/* dX from XS */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_inputs(const float *__restrict__ XS, float *__restrict__ dX, int channels, int height,
               int width, int filter, int tiles) {
    FFT_BY_FILTER(TILE, filter, make_inputs, XS, dX, channels, height, width, filter, tiles);
}
