/* Convolution by the fast Fourier transform with each transform made once, by hand, in three
 * launches: all spectra, their products, and the inverse.
 *
 * evoke_fft_tiles.h says how lanes transform a tile, and which numbers a spectrum has.
 *
 * A spectrum's numbers lie far apart, [bin][channel][tile], and a warp has four tiles side by side,
 * so that it reads and writes whole sectors. The sum over the channels is then a product of two
 * matrices for each bin, tiled in shared memory and registers. The numbers of tiles and of outputs
 * are rounded up to whole fours; what stands there is zero. */
#include "evoke_cuda.h"
#include "evoke_fft_tiles.h"

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

#define TILE 16
#define FILTER 5
#define KEPT (TILE - FILTER + 1)
#define LANES 8            /* of a tile */
#define GROUPS (4 * WARPS) /* tiles of a block */

/* XS[bin, c, tile] and FS[bin, c, o]: the first `input_blocks` blocks along x have tiles, the
 * others filters. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ XS,
                float *__restrict__ FS, int channels, int outputs, int height, int width, int tiles,
                int input_blocks) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, c = blockIdx.y;
    const int tiles_y = (height - FILTER + KEPT) / KEPT, tiles_x = (width - FILTER + KEPT) / KEPT;
    const bool is_input = (int)blockIdx.x < input_blocks;
    const int count = is_input ? tiles : outputs, pitch = (count + 3) / 4 * 4;
    const int at = (blockIdx.x - (is_input ? 0 : input_blocks)) * GROUPS + group;

    float2 v[TILE] = {};
    if (is_input && at < count) {
        const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
        const int y = tile / tiles_x * KEPT + lane, left = tile % tiles_x * KEPT;
        const float *map = X + ((size_t)n * channels + c) * height * width;
        load_row<0, TILE>(map, y, left, height, width, v);
        load_row<1, TILE>(map, y + LANES, left, height, width, v);
    } else if (at < count && lane < FILTER) {
        const float *row = F + (((size_t)at * channels + c) * FILTER + lane) * FILTER;
#pragma unroll
        for (int x = 0; x < FILTER; x++)
            v[x].x = row[x];
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
                                                 const float v[KEPT]) {
    if ((width & 3) == 0) {
#pragma unroll
        for (int k = 0; k < KEPT; k += 4) {
            if (left + k < width)
                *(float4 *)(row + left + k) = make_float4(v[k], v[k + 1], v[k + 2], v[k + 3]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            if (left + k < width)
                row[left + k] = v[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_outputs(const float *__restrict__ YS, float *__restrict__ Y, int outputs, int height,
                int width, int tiles) {
    __shared__ float2 scratch[GROUPS * FFT_SCRATCH(TILE)];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, o = blockIdx.y;
    const int out_height = height - FILTER + 1, out_width = width - FILTER + 1;
    const int tiles_y = (out_height + KEPT - 1) / KEPT, tiles_x = (out_width + KEPT - 1) / KEPT;
    const int pitch = (tiles + 3) / 4 * 4, at = blockIdx.x * GROUPS + group;
    if (at >= pitch) /* by whole warps */
        return;

    float2 w[TILE], *own = scratch + group * FFT_SCRATCH(TILE);
    invert_columns<TILE>((const float2 *)YS + (size_t)o * pitch + at, (size_t)outputs * pitch, own,
                         lane, TILE);
    invert_rows(own, lane, w);

    const float scale = 0.25f / (TILE * TILE); /* both spectra had the factor two */
    float a[KEPT], b[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        a[k] = w[order<TILE>(k)].y * scale;
        b[k] = w[order<TILE>(k)].x * scale;
    }
    const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
    const int y = tile / tiles_x * KEPT + lane, left = tile % tiles_x * KEPT;
    float *map = Y + ((size_t)n * outputs + o) * out_height * out_width;
    if (at < tiles && y < out_height)
        store_row(map + (size_t)y * out_width, left, out_width, a);
    if (at < tiles && lane + LANES < KEPT && y + LANES < out_height)
        store_row(map + (size_t)(y + LANES) * out_width, left, out_width, b);
}
