/* Convolution by the fast Fourier transform with filters of any size up to 11, by hand, in three
 * launches: all spectra, their products, and the inverse.
 *
 * evoke_fft_tiles.h says how lanes transform a tile, and which numbers a spectrum has.
 *
 * A spectrum's numbers lie far apart, [bin][channel][tile], and a warp has two or four tiles side
 * by side. The sum over the channels is then a product of two matrices for each bin, tiled in
 * shared memory and registers. The numbers of tiles and of outputs are rounded up to whole fours;
 * what stands there is zero. */
#include "evoke_cuda.h"
#include "evoke_fft_tiles.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef MAPS
#define MAPS 8
#endif
#ifndef COLUMNS
#define COLUMNS 8
#endif
#ifndef CHANNELS
#define CHANNELS 8
#endif

#define MOST 11                     /* rows of a filter */
#define LANES (TILE / 2)            /* of a tile */
#define GROUPS (32 * WARPS / LANES) /* tiles of a block */

/* Row `y` of a map as v.x (part 0) or v.y (part 1), zero outside. */
template <int PART>
static __device__ __forceinline__ void load_row(const float *__restrict__ map, int y, int left,
                                                int height, int width, float2 v[TILE]) {
    const float *row = map + (size_t)y * width + left;
    const bool is_there = y < height, is_even = ((width | left) & 1) == 0;
#pragma unroll
    for (int x = 0; x < TILE; x += 2) {
        float2 w = make_float2(0, 0);
        if (is_there && is_even) {
            if (left + x < width)
                w = __ldg((const float2 *)(row + x));
        } else if (is_there) {
            w.x = left + x < width ? row[x] : 0.0f;
            w.y = left + x + 1 < width ? row[x + 1] : 0.0f;
        }
        (PART ? v[x].y : v[x].x) = w.x;
        (PART ? v[x + 1].y : v[x + 1].x) = w.y;
    }
}

/* Row `y` of a filter as v.x (part 0) or v.y (part 1), zero behind. */
template <int PART>
static __device__ __forceinline__ void load_filter(const float *__restrict__ F, int y, int filter,
                                                   float2 v[TILE]) {
#pragma unroll
    for (int x = 0; x < MOST; x++) {
        if (y < filter && x < filter)
            (PART ? v[x].y : v[x].x) = F[y * filter + x];
    }
}

/* XS[bin, c, tile] and FS[bin, c, o]: the first `input_blocks` blocks along x have tiles, the
 * others filters. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ XS,
                float *__restrict__ FS, int channels, int outputs, int height, int width,
                int filter, int tiles, int input_blocks) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, c = blockIdx.y;
    const int kept = TILE - filter + 1;
    const int tiles_y = (height - filter + kept) / kept, tiles_x = (width - filter + kept) / kept;
    const bool is_input = (int)blockIdx.x < input_blocks;
    const int count = is_input ? tiles : outputs, pitch = (count + 3) / 4 * 4;
    const int at = (blockIdx.x - (is_input ? 0 : input_blocks)) * GROUPS + group;

    float2 v[TILE] = {};
    if (is_input && at < count) {
        const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
        const int y = tile / tiles_x * kept + lane, left = tile % tiles_x * kept;
        const float *map = X + ((size_t)n * channels + c) * height * width;
        load_row<0>(map, y, left, height, width, v);
        load_row<1>(map, y + LANES, left, height, width, v);
    } else if (at < count) {
        const float *of = F + ((size_t)at * channels + c) * filter * filter;
        load_filter<0>(of, lane, filter, v);
        if (LANES < MOST)
            load_filter<1>(of, lane + LANES, filter, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * FFT_SCRATCH(TILE), lane,
                       (float2 *)(is_input ? XS : FS) + (size_t)c * pitch + at,
                       (size_t)channels * pitch);
}

/* YS[bin, o, tile] = sum over c of XS[bin, c, tile] conj FS[bin, c, o] */
extern "C" __global__ void __launch_bounds__(COLUMNS *MAPS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ FS, float *__restrict__ YS,
                 int channels, int outputs, int tiles) {
    multiply_spectra<COLUMNS, MAPS, CHANNELS>(XS, FS, YS, channels, tiles, outputs);
}

static __device__ __forceinline__ void store_row(float *__restrict__ row, int left, int width,
                                                 int kept, const float v[TILE]) {
    const bool is_even = ((width | kept) & 1) == 0;
#pragma unroll
    for (int k = 0; k < TILE; k += 2) {
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

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_outputs(const float *__restrict__ YS, float *__restrict__ Y, int outputs, int height,
                int width, int filter, int tiles) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, o = blockIdx.y;
    const int kept = TILE - filter + 1;
    const int out_height = height - filter + 1, out_width = width - filter + 1;
    const int tiles_y = (out_height + kept - 1) / kept, tiles_x = (out_width + kept - 1) / kept;
    const int pitch = (tiles + 3) / 4 * 4, at = blockIdx.x * GROUPS + group;
    if (at >= pitch) /* by whole warps */
        return;

    float2 w[TILE], *own = scratch + group * FFT_SCRATCH(TILE);
    invert_columns<TILE>((const float2 *)YS + (size_t)o * pitch + at, (size_t)outputs * pitch, own,
                         lane, TILE);
    invert_rows(own, lane, w);

    const float scale = 0.25f / (TILE * TILE); /* both spectra had the factor two */
    float a[TILE], b[TILE];
#pragma unroll
    for (int k = 0; k < TILE; k++) {
        a[k] = w[order<TILE>(k)].y * scale;
        b[k] = w[order<TILE>(k)].x * scale;
    }
    const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
    const int y = tile / tiles_x * kept + lane, left = tile % tiles_x * kept;
    float *map = Y + ((size_t)n * outputs + o) * out_height * out_width;
    if (at < tiles && lane < kept && y < out_height)
        store_row(map + (size_t)y * out_width, left, out_width, kept, a);
    if (at < tiles && lane + LANES < kept && y + LANES < out_height)
        store_row(map + (size_t)(y + LANES) * out_width, left, out_width, kept, b);
}
