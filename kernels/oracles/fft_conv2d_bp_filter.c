/* Oracle of fft_conv2d_bp_filter and fft_conv2d_any_bp_filter: dF[o, c, i, j] = sum over n, y and x
 * of dY[n, o, y, x] X[n, c, y + i, x + j], computed directly. Filters are 5 x 5 where the task has
 * no argument `filter`.
 *
 * A transform spreads each element's rounding error over its whole tile, so the scale of an output
 * is not that of its own terms: it is the sum over the images of the norm of dY's map times the
 * norm of X's map, whatever the tiles are. All elements of a filter have the same scale. */
#include "kernels/oracles.h"

typedef struct layer {
    const float *X, *dY;
    uint64_t images, channels, outputs, height, width; /* of X */
    uint64_t filter;
} layer;

/* A map of X or dY. */
typedef struct plane {
    const float *at;
    uint64_t rows, columns;
} plane;

static plane input_of(const layer *l, uint64_t n, uint64_t c) {
    uint64_t size = l->height * l->width;
    return (plane){l->X + (n * l->channels + c) * size, l->height, l->width};
}

static plane gradient_of(const layer *l, uint64_t n, uint64_t o) {
    uint64_t rows = l->height - l->filter + 1, columns = l->width - l->filter + 1;
    return (plane){l->dY + (n * l->outputs + o) * rows * columns, rows, columns};
}

static double value_at(const layer *l, uint64_t filter, uint64_t i, uint64_t j) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t n = 0; n < l->images; n++) {
        const plane x = input_of(l, n, filter % l->channels);
        const plane g = gradient_of(l, n, filter / l->channels);
        for (uint64_t row = 0; row < g.rows; row++) {
            for (uint64_t column = 0; column < g.columns; column++)
                oracle_add(&sum, (double)g.at[row * g.columns + column] *
                                     (double)x.at[(row + i) * x.columns + column + j]);
        }
    }
    return oracle_total(&sum);
}

static double norm(plane p) {
    return sqrt(oracle_squares(p.at, (int64_t)(p.rows * p.columns)));
}

static double scale_of(const layer *l, uint64_t filter) {
    double scale = 0;
    for (uint64_t n = 0; n < l->images; n++)
        scale += norm(input_of(l, n, filter % l->channels)) *
                 norm(gradient_of(l, n, filter / l->channels));
    return scale;
}

int oracle_fft_conv2d_bp_filter(evoke_oracle_call *call) {
    int64_t images = oracle_whole(call, "images"), channels = oracle_whole(call, "channels");
    int64_t outputs = oracle_whole(call, "outputs"), height = oracle_whole(call, "height");
    int64_t width = oracle_whole(call, "width");
    int64_t size = oracle_argument(call, "filter") != NULL ? oracle_whole(call, "filter") : 5;
    const layer l = {
        oracle_floats(call, "X"), oracle_floats(call, "dY"), (uint64_t)images, (uint64_t)channels,
        (uint64_t)outputs,        (uint64_t)height,          (uint64_t)width,  (uint64_t)size};
    if (l.X == NULL || l.dY == NULL || images < 1 || channels < 1 || outputs < 1 || size < 1 ||
        height < size || width < size)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, taps = l.filter * l.filter;
        uint64_t filter = at / taps, tap = at % taps;
        call->value[i] = value_at(&l, filter, tap / l.filter, tap % l.filter);
        call->scale[i] = i > 0 && tap > 0 ? call->scale[i - 1] : scale_of(&l, filter);
    }
    return 0;
}
