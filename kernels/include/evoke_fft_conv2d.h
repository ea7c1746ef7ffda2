/* The three launches of a convolution by the fast Fourier transform with filters of any size up to
 * that of a tile: all spectra, their products, and the inverse.
 *
 * evoke_fft_tiles.h says how lanes transform a tile, and which numbers a spectrum has.
 *
 * A spectrum's numbers lie far apart, [bin][channel][tile], and a warp has two to eight tiles side
 * by side. The sum over the channels is then a product of two matrices for each bin, tiled in
 * shared memory and registers. The numbers of tiles and of outputs are rounded up to multiples of
 * FFT_WHOLE(tile); what stands there is zero. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_CONV2D_H
#define KERNELS_INCLUDE_EVOKE_FFT_CONV2D_H

#include "evoke_fft_tiles.h"

/* How a map is cut into tiles: a tile has `kept` rows and columns that no filter wraps around. */
struct fft_cut {
    int kept, tiles_y, tiles_x;
};

template <int tile>
static __device__ __forceinline__ fft_cut cut_map(int height, int width, int filter) {
    fft_cut cut;
    cut.kept = tile - filter + 1;
    cut.tiles_y = (height - filter + cut.kept) / cut.kept;
    cut.tiles_x = (width - filter + cut.kept) / cut.kept;
    return cut;
}

template <int tile> static __device__ __forceinline__ int whole_tiles(int count) {
    return (count + FFT_WHOLE(tile) - 1) / FFT_WHOLE(tile) * FFT_WHOLE(tile);
}

/* Row `y` of a map from column `left` on as v.x (part 0) or v.y (part 1), zero outside. */
template <int part, int tile>
static __device__ __forceinline__ void load_tile_row(const float *__restrict__ map, int y, int left,
                                                     int height, int width, float2 (&v)[tile]) {
    const float *row = map + (size_t)y * width + left;
    const bool is_there = y < height, is_even = ((width | left) & 1) == 0;
#pragma unroll
    for (int x = 0; x < tile; x += 2) {
        float2 w = make_float2(0, 0);
        if (is_there && is_even) {
            if (left + x < width)
                w = __ldg((const float2 *)(row + x));
        } else if (is_there) {
            w.x = left + x < width ? row[x] : 0.0f;
            w.y = left + x + 1 < width ? row[x + 1] : 0.0f;
        }
        (part ? v[x].y : v[x].x) = w.x;
        (part ? v[x + 1].y : v[x + 1].x) = w.y;
    }
}

/* Row `y` of a filter of at most `most` rows as v.x (part 0) or v.y (part 1); what lies behind the
 * filter stays. */
template <int part, int most, int tile>
static __device__ __forceinline__ void load_filter_row(const float *__restrict__ F, int y,
                                                       int filter, float2 (&v)[tile]) {
    static_assert(most <= tile, "a filter fits a tile");
#pragma unroll
    for (int x = 0; x < most; x++) {
        if (y < filter && x < filter)
            (part ? v[x].y : v[x].x) = F[y * filter + x];
    }
}

/* XS[bin, c, tile] and FS[bin, c, o]: the first `input_blocks` blocks along x have tiles, the
 * others filters; a block has 32 * warps threads. */
template <int tile, int warps, int most>
static __device__ __forceinline__ void
make_spectra(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ XS,
             float *__restrict__ FS, int channels, int outputs, int height, int width, int filter,
             int tiles, int input_blocks) {
    constexpr int lanes = tile / 2, groups = 32 * warps / lanes;
    __shared__ float2 scratch[groups * FFT_SCRATCH(tile)];
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, c = blockIdx.y;
    const fft_cut cut = cut_map<tile>(height, width, filter);
    const bool is_input = (int)blockIdx.x < input_blocks;
    const int count = is_input ? tiles : outputs, pitch = whole_tiles<tile>(count);
    const int at = (blockIdx.x - (is_input ? 0 : input_blocks)) * groups + group;

    float2 v[tile] = {};
    if (is_input && at < count) {
        const int of_map = at % (cut.tiles_y * cut.tiles_x), n = at / (cut.tiles_y * cut.tiles_x);
        const int y = of_map / cut.tiles_x * cut.kept + lane,
                  left = of_map % cut.tiles_x * cut.kept;
        const float *map = X + ((size_t)n * channels + c) * height * width;
        load_tile_row<0>(map, y, left, height, width, v);
        load_tile_row<1>(map, y + lanes, left, height, width, v);
    } else if (at < count) {
        const float *of = F + ((size_t)at * channels + c) * filter * filter;
        load_filter_row<0, most>(of, lane, filter, v);
        if (lanes < most)
            load_filter_row<1, most>(of, lane + lanes, filter, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * FFT_SCRATCH(tile), lane,
                       (float2 *)(is_input ? XS : FS) + (size_t)c * pitch + at,
                       (size_t)channels * pitch);
}

template <int tile>
static __device__ __forceinline__ void store_tile_row(float *__restrict__ row, int left, int width,
                                                      int kept, const float (&v)[tile]) {
    const bool is_even = ((width | kept) & 1) == 0;
#pragma unroll
    for (int k = 0; k < tile; k += 2) {
        if (is_even && k < kept && left + k < width) {
            __stwb((float2 *)(row + left + k), make_float2(v[k], v[k + 1]));
        } else if (!is_even) {
            if (k < kept && left + k < width)
                row[left + k] = v[k];
            if (k + 1 < kept && left + k + 1 < width)
                row[left + k + 1] = v[k + 1];
        }
    }
}

/* Y from YS[bin, o, tile]; a block has 32 * warps threads. */
template <int tile, int warps>
static __device__ __forceinline__ void make_outputs(const float *__restrict__ YS,
                                                    float *__restrict__ Y, int outputs, int height,
                                                    int width, int filter, int tiles) {
    constexpr int lanes = tile / 2, groups = 32 * warps / lanes;
    __shared__ float2 scratch[groups * FFT_SCRATCH(tile)];
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, o = blockIdx.y;
    const fft_cut cut = cut_map<tile>(height, width, filter);
    const int out_height = height - filter + 1, out_width = width - filter + 1;
    const int pitch = whole_tiles<tile>(tiles), at = blockIdx.x * groups + group;
    if (at >= pitch) /* by whole warps */
        return;

    float2 w[tile], *own = scratch + group * FFT_SCRATCH(tile);
    invert_columns<tile>((const float2 *)YS + (size_t)o * pitch + at, (size_t)outputs * pitch, own,
                         lane, tile);
    invert_rows(own, lane, w);

    const float scale = 0.25f / (tile * tile); /* both spectra had the factor two */
    float a[tile], b[tile];
#pragma unroll
    for (int k = 0; k < tile; k++) {
        a[k] = w[order<tile>(k)].y * scale;
        b[k] = w[order<tile>(k)].x * scale;
    }
    const int of_map = at % (cut.tiles_y * cut.tiles_x), n = at / (cut.tiles_y * cut.tiles_x);
    const int y = of_map / cut.tiles_x * cut.kept + lane, left = of_map % cut.tiles_x * cut.kept;
    float *map = Y + ((size_t)n * outputs + o) * out_height * out_width;
    if (at < tiles && lane < cut.kept && y < out_height)
        store_tile_row(map + (size_t)y * out_width, left, out_width, cut.kept, a);
    if (at < tiles && lane + lanes < cut.kept && y + lanes < out_height)
        store_tile_row(map + (size_t)(y + lanes) * out_width, left, out_width, cut.kept, b);
}

#endif
