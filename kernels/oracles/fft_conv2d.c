/* Oracle of fft_conv2d and fft_conv2d_cached: Y[n, o, y, x] = sum over c and a 5 x 5 window of X[n,
 * c, y+i, x+j] F[o, c, i, j], computed directly.
 *
 * A transform spreads each element's rounding error over its whole tile, so the scale of an output
 * is not that of its own terms: it is the sum over c of the norm of the 16 x 16 tile around it
 * times the norm of the filter. */
#include "kernels/oracles.h"

#include <stdbool.h>

#define FILTER 5
#define TILE 16
#define KEPT (TILE - FILTER + 1)

typedef struct conv {
    const float *X, *F;
    uint64_t channels, outputs, height, width;
} conv;

typedef struct place {
    uint64_t n, o, y, x;
} place;

static const float *filter_of(const conv *v, uint64_t o, uint64_t c) {
    return v->F + (o * v->channels + c) * FILTER * FILTER;
}

static const float *row_of(const conv *v, uint64_t n, uint64_t c, uint64_t y) {
    return v->X + ((n * v->channels + c) * v->height + y) * v->width;
}

static double value_at(const conv *v, place p) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t c = 0; c < v->channels; c++) {
        const float *f = filter_of(v, p.o, c);
        for (uint64_t i = 0; i < FILTER; i++) {
            const float *row = row_of(v, p.n, c, p.y + i) + p.x;
            for (uint64_t j = 0; j < FILTER; j++)
                oracle_add(&sum, (double)row[j] * (double)f[i * FILTER + j]);
        }
    }
    return oracle_total(&sum);
}

static double tile_norm(const conv *v, uint64_t n, uint64_t c, uint64_t top, uint64_t left) {
    double squares = 0;
    for (uint64_t y = top; y < top + TILE && y < v->height; y++) {
        const float *row = row_of(v, n, c, y);
        for (uint64_t x = left; x < left + TILE && x < v->width; x++)
            squares += (double)row[x] * (double)row[x];
    }
    return sqrt(squares);
}

static double scale_at(const conv *v, place p) {
    double scale = 0;
    for (uint64_t c = 0; c < v->channels; c++) {
        const float *f = filter_of(v, p.o, c);
        double squares = 0;
        for (int i = 0; i < FILTER * FILTER; i++)
            squares += (double)f[i] * (double)f[i];
        scale += sqrt(squares) * tile_norm(v, p.n, c, p.y / KEPT * KEPT, p.x / KEPT * KEPT);
    }
    return scale;
}

static bool same_tile(place a, place b) {
    return a.n == b.n && a.o == b.o && a.y / KEPT == b.y / KEPT && a.x / KEPT == b.x / KEPT;
}

int oracle_fft_conv2d(evoke_oracle_call *call) {
    int64_t channels = oracle_whole(call, "channels"), outputs = oracle_whole(call, "outputs");
    int64_t height = oracle_whole(call, "height"), width = oracle_whole(call, "width");
    conv v = {oracle_floats(call, "X"), oracle_floats(call, "F"), (uint64_t)channels,
              (uint64_t)outputs,        (uint64_t)height,         (uint64_t)width};
    if (v.X == NULL || v.F == NULL || channels < 1 || outputs < 1 || height < FILTER ||
        width < FILTER)
        return 1;
    uint64_t rows = v.height - FILTER + 1, columns = v.width - FILTER + 1;
    place last = {0, 0, 0, 0};
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i;
        place p = {at / columns / rows / v.outputs, at / columns / rows % v.outputs,
                   at / columns % rows, at % columns};
        call->value[i] = value_at(&v, p);
        call->scale[i] = i > 0 && same_tile(p, last) ? call->scale[i - 1] : scale_at(&v, p);
        last = p;
    }
    return 0;
}
