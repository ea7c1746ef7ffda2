/* Oracle of irfft2d: X[t, r, c] = the real part of the sum over u and v of S[t, u, v]
 * exp(2 pi i (u r + v c) / tile) / tile^2, computed directly. S has columns 0 to the middle; the
 * others are conjugates of those opposite, so columns between 0 and the middle count twice.
 *
 * The scale of an output is the sum of the sizes of all numbers of its spectrum, as of rfft2d. */
#include "kernels/oracles.h"

#define MOST 32 /* rows and columns of the largest tile */

/* The sum of one element, row r and column c of a tile. */
static oracle_sum sum_of(const float *s, const double *cosine, int64_t tile, int64_t r, int64_t c) {
    oracle_sum sum = {0, 0, 0};
    const int64_t columns = tile / 2 + 1;
    for (int64_t e = 0; e < tile * columns; e++) {
        int64_t v = e % columns, angle = e / columns * r + v * c;
        double times = v == 0 || v == tile / 2 ? 1 : 2;
        /* -sin(a) = cos(a + a quarter) */
        oracle_add(&sum, times * (double)s[2 * e] * cosine[angle % tile]);
        oracle_add(&sum, times * (double)s[2 * e + 1] * cosine[(angle + tile / 4) % tile]);
    }
    return sum;
}

static double size_of(const float *s, int64_t tile) {
    const int64_t row = tile + 2;
    double size = 0;
    for (int64_t e = 0; e < tile * row; e++) {
        int64_t v = e % row / 2;
        size += (v == 0 || v == tile / 2 ? 1 : 2) * fabs((double)s[e]);
    }
    return size;
}

int oracle_irfft2d(evoke_oracle_call *call) {
    int64_t tiles = oracle_whole(call, "tiles"), levels = oracle_whole(call, "levels");
    const float *S = oracle_floats(call, "S");
    if (S == NULL || tiles < 1 || levels < 3 || levels > 5)
        return 1;
    const int64_t tile = (int64_t)1 << levels, numbers = tile * (tile + 2); /* of a spectrum */
    const double elements = (double)(tile * tile);
    double cosine[MOST] = {0};
    for (int64_t n = 0; n < tile; n++) /* in doubles, a quarter is 0 to 1e-16 */
        cosine[n] = cos(2 * 3.14159265358979323846 * (double)n / (double)tile);
    for (uint64_t i = 0; i < call->count; i++) {
        int64_t at = (int64_t)(call->first + i), e = at % (tile * tile);
        const float *s = S + at / (tile * tile) * numbers;
        const oracle_sum sum = sum_of(s, cosine, tile, e / tile, e % tile);
        call->value[i] = oracle_total(&sum) / elements;
        call->scale[i] = size_of(s, tile) / elements;
    }
    return 0;
}
