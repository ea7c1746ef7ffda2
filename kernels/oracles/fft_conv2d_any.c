/* Oracle of fft_conv2d_any: Y[n, o, y, x] = sum over c and a window of X[n, c, y + i, x + j]
 * F[o, c, i, j], computed directly.
 *
 * A transform spreads each element's rounding error over its whole tile, so the scale of an output
 * is not that of its own terms: it is the sum over c of the norm of the map times the norm of the
 * filter, whatever the tiles are. All elements of an output map have the same scale. */
#include "kernels/oracles.h"

typedef struct layer {
    const float *X, *F;
    uint64_t channels, outputs, height, width, filter;
} layer;

typedef struct place {
    uint64_t n, o, y, x;
} place;

static const float *filter_of(const layer *l, uint64_t o, uint64_t c) {
    return l->F + (o * l->channels + c) * l->filter * l->filter;
}

static double value_at(const layer *l, place p) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t c = 0; c < l->channels; c++) {
        const float *f = filter_of(l, p.o, c);
        for (uint64_t i = 0; i < l->filter; i++) {
            const float *row =
                l->X + ((p.n * l->channels + c) * l->height + p.y + i) * l->width + p.x;
            for (uint64_t j = 0; j < l->filter; j++)
                oracle_add(&sum, (double)row[j] * (double)f[i * l->filter + j]);
        }
    }
    return oracle_total(&sum);
}

static double scale_of(const layer *l, place p) {
    double scale = 0;
    uint64_t size = l->height * l->width;
    for (uint64_t c = 0; c < l->channels; c++) {
        const float *x = l->X + (p.n * l->channels + c) * size;
        scale += sqrt(oracle_squares(x, (int64_t)size)) *
                 sqrt(oracle_squares(filter_of(l, p.o, c), (int64_t)(l->filter * l->filter)));
    }
    return scale;
}

int oracle_fft_conv2d_any(evoke_oracle_call *call) {
    int64_t channels = oracle_whole(call, "channels"), outputs = oracle_whole(call, "outputs");
    int64_t height = oracle_whole(call, "height"), width = oracle_whole(call, "width");
    int64_t filter = oracle_whole(call, "filter");
    const layer l = {oracle_floats(call, "X"), oracle_floats(call, "F"), (uint64_t)channels,
                     (uint64_t)outputs,        (uint64_t)height,         (uint64_t)width,
                     (uint64_t)filter};
    if (l.X == NULL || l.F == NULL || channels < 1 || outputs < 1 || filter < 1 ||
        height < filter || width < filter)
        return 1;
    uint64_t rows = l.height - l.filter + 1, columns = l.width - l.filter + 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, map = at / columns / rows;
        place p = {map / l.outputs, map % l.outputs, at / columns % rows, at % columns};
        bool is_same = i > 0 && (p.y > 0 || p.x > 0);
        call->value[i] = value_at(&l, p);
        call->scale[i] = is_same ? call->scale[i - 1] : scale_of(&l, p);
    }
    return 0;
}
