/* Oracle of fft_conv2d_bp_data and fft_conv2d_any_bp_data: dX[n, c, y, x] = sum over o and a window
 * of dY[n, o, y - i, x - j] F[o, c, i, j], computed directly, with zeros outside of dY. Filters are
 * 5 x 5 where the task has no argument `filter`.
 *
 * A transform spreads each element's rounding error over its whole tile, so the scale of an output
 * is not that of its own terms: it is the sum over o of the norm of the part of dY that its tile is
 * made of times the norm of the filter. With 5 x 5 filters alone, that part is the 16 x 16 tile
 * that a tile of 12 x 12 is made of; with any filters it is the whole map, whatever the tiles are,
 * and all elements of a map of dX have the same scale. */
#include "kernels/oracles.h"

#define TILE 16
#define KEPT 12 /* of a tile, with 5 x 5 filters */

typedef struct layer {
    const float *dY, *F;
    int64_t channels, outputs, height, width; /* of dX */
    int64_t filter, rows, columns;            /* of a filter; of dY */
    bool has_tiles;
} layer;

typedef struct place {
    int64_t n, c, y, x;
} place;

/* Part of a map of dY. */
typedef struct window {
    int64_t top, left, rows, columns;
} window;

/* An element of dY; zero outside. */
static double gradient_at(const layer *l, int64_t plane, int64_t y, int64_t x) {
    if (y < 0 || x < 0 || y >= l->rows || x >= l->columns)
        return 0;
    return (double)l->dY[(plane * l->rows + y) * l->columns + x];
}

static const float *filter_of(const layer *l, int64_t o, int64_t c) {
    return l->F + (o * l->channels + c) * l->filter * l->filter;
}

static double value_at(const layer *l, place p) {
    oracle_sum sum = {0, 0, 0};
    for (int64_t o = 0; o < l->outputs; o++) {
        const float *f = filter_of(l, o, p.c);
        for (int64_t i = 0; i < l->filter; i++) {
            for (int64_t j = 0; j < l->filter; j++)
                oracle_add(&sum, gradient_at(l, p.n * l->outputs + o, p.y - i, p.x - j) *
                                     (double)f[i * l->filter + j]);
        }
    }
    return oracle_total(&sum);
}

/* What the tile of an element is made of. */
static window window_of(const layer *l, place p) {
    if (!l->has_tiles)
        return (window){0, 0, l->rows, l->columns};
    return (window){p.y / KEPT * KEPT - (TILE - KEPT), p.x / KEPT * KEPT - (TILE - KEPT), TILE,
                    TILE};
}

static double scale_of(const layer *l, place p) {
    const window w = window_of(l, p);
    double scale = 0;
    for (int64_t o = 0; o < l->outputs; o++) {
        double squares = 0;
        for (int64_t i = 0; i < w.rows * w.columns; i++) {
            double g =
                gradient_at(l, p.n * l->outputs + o, w.top + i / w.columns, w.left + i % w.columns);
            squares += g * g;
        }
        scale += sqrt(squares) * sqrt(oracle_squares(filter_of(l, o, p.c), l->filter * l->filter));
    }
    return scale;
}

int oracle_fft_conv2d_bp_data(evoke_oracle_call *call) {
    const bool is_any = oracle_argument(call, "filter") != NULL;
    layer l = {.dY = oracle_floats(call, "dY"),
               .F = oracle_floats(call, "F"),
               .channels = oracle_whole(call, "channels"),
               .outputs = oracle_whole(call, "outputs"),
               .height = oracle_whole(call, "height"),
               .width = oracle_whole(call, "width"),
               .filter = is_any ? oracle_whole(call, "filter") : 5,
               .has_tiles = !is_any};
    if (l.dY == NULL || l.F == NULL || l.channels < 1 || l.outputs < 1 || l.filter < 1 ||
        l.height < l.filter || l.width < l.filter)
        return 1;
    l.rows = l.height - l.filter + 1;
    l.columns = l.width - l.filter + 1;
    for (uint64_t i = 0; i < call->count; i++) {
        const int64_t at = (int64_t)(call->first + i), map = at / l.width / l.height;
        const place p = {map / l.channels, map % l.channels, at / l.width % l.height, at % l.width};
        const bool is_same = is_any && i > 0 && (p.y > 0 || p.x > 0);
        call->value[i] = value_at(&l, p);
        call->scale[i] = is_same ? call->scale[i - 1] : scale_of(&l, p);
    }
    return 0;
}
