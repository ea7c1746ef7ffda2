/* Oracle of fft_conv2d_bp_data: dX[n, c, y, x] = sum over o and a 5 x 5 window of
 * dY[n, o, y - i, x - j] F[o, c, i, j], computed directly, with zeros outside of dY.
 *
 * A transform spreads each element's rounding error over its whole tile, so the scale of an output
 * is not that of its own terms: it is the sum over o of the norm of the 16 x 16 tile of dY that its
 * tile of 12 x 12 is made of times the norm of the filter. */
#include "kernels/oracles.h"

#define FILTER 5
#define TILE 16
#define KEPT (TILE - FILTER + 1)

typedef struct layer {
    const float *dY, *F;
    uint64_t channels, outputs, height, width; /* of dX */
} layer;

typedef struct place {
    uint64_t n, c, y, x;
} place;

/* An element of dY; zero outside. */
static double gradient_at(const layer *l, uint64_t plane, int64_t y, int64_t x) {
    int64_t rows = (int64_t)l->height - FILTER + 1, columns = (int64_t)l->width - FILTER + 1;
    if (y < 0 || x < 0 || y >= rows || x >= columns)
        return 0;
    return (double)l->dY[((int64_t)plane * rows + y) * columns + x];
}

static double value_at(const layer *l, place p) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t o = 0; o < l->outputs; o++) {
        const float *f = l->F + (o * l->channels + p.c) * FILTER * FILTER;
        for (int i = 0; i < FILTER; i++) {
            for (int j = 0; j < FILTER; j++)
                oracle_add(
                    &sum, gradient_at(l, p.n * l->outputs + o, (int64_t)p.y - i, (int64_t)p.x - j) *
                              (double)f[i * FILTER + j]);
        }
    }
    return oracle_total(&sum);
}

static double scale_at(const layer *l, place p) {
    int64_t top = (int64_t)(p.y / KEPT * KEPT) - FILTER + 1;
    int64_t left = (int64_t)(p.x / KEPT * KEPT) - FILTER + 1;
    double scale = 0;
    for (uint64_t o = 0; o < l->outputs; o++) {
        const float *f = l->F + (o * l->channels + p.c) * FILTER * FILTER;
        double squares = 0, tile = 0;
        for (int i = 0; i < FILTER * FILTER; i++)
            squares += (double)f[i] * (double)f[i];
        for (int64_t i = 0; i < TILE * TILE; i++) {
            double g = gradient_at(l, p.n * l->outputs + o, top + i / TILE, left + i % TILE);
            tile += g * g;
        }
        scale += sqrt(squares) * sqrt(tile);
    }
    return scale;
}

int oracle_fft_conv2d_bp_data(evoke_oracle_call *call) {
    int64_t channels = oracle_whole(call, "channels"), outputs = oracle_whole(call, "outputs");
    int64_t height = oracle_whole(call, "height"), width = oracle_whole(call, "width");
    const layer l = {oracle_floats(call, "dY"), oracle_floats(call, "F"), (uint64_t)channels,
                     (uint64_t)outputs,         (uint64_t)height,         (uint64_t)width};
    if (l.dY == NULL || l.F == NULL || channels < 1 || outputs < 1 || height < FILTER ||
        width < FILTER)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i;
        const place p = {at / l.width / l.height / l.channels, at / l.width / l.height % l.channels,
                         at / l.width % l.height, at % l.width};
        call->value[i] = value_at(&l, p);
        call->scale[i] = scale_at(&l, p);
    }
    return 0;
}
