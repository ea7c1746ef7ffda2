/* What the gradients of a convolution by the fast Fourier transform with filters of any size share:
 * rows of a tile that reaches over the edges of a map, and the tiles that a filter takes. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_CONV2D_BP_H
#define KERNELS_INCLUDE_EVOKE_FFT_CONV2D_BP_H

#include "evoke_fft_conv2d.h"

/* Filters of more than 7 rows leave nothing, or one row, of a tile of 8: they take tiles of 16.
 * CALL is a template of the tile's size; task.json has the same size as max(TILE, filter / 8 * 16).
 */
#define FFT_BY_FILTER(tile, filter, CALL, ...)                                                     \
    do {                                                                                           \
        if ((tile) >= 16 || (filter) < 8)                                                          \
            CALL<(tile)>(__VA_ARGS__);                                                             \
        else                                                                                       \
            CALL<16>(__VA_ARGS__);                                                                 \
    } while (0)

/* Row `y` of a map from column `left` on as v.x (part 0) or v.y (part 1): the numbers of the first
 * `rows` rows and of the columns before `right`, and zero elsewhere, also before the map. */
template <int part, int tile>
static __device__ __forceinline__ void load_part_of_row(const float *__restrict__ map, int y,
                                                        int left, int rows, int width, int right,
                                                        float2 (&v)[tile]) {
    const bool is_there = (unsigned)y < (unsigned)rows;
    const bool is_even = ((width | left | right) & 1) == 0;
    const float *row = map + (is_there ? y * width : 0);
#pragma unroll
    for (int x = 0; x < tile; x += 2) {
        const int at = left + x;
        float2 w = make_float2(0, 0);
        if (is_there && is_even) {
            if ((unsigned)at < (unsigned)right)
                w = __ldg((const float2 *)(row + at));
        } else if (is_there) {
            w.x = (unsigned)at < (unsigned)right ? row[at] : 0.0f;
            w.y = (unsigned)(at + 1) < (unsigned)right ? row[at + 1] : 0.0f;
        }
        (part ? v[x].y : v[x].x) = w.x;
        (part ? v[x + 1].y : v[x + 1].x) = w.y;
    }
}

#endif
