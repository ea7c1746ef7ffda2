/* Oracle of rfft2d: S[t, u, v] = sum over r and c of X[t, r, c] exp(-2 pi i (u r + v c) / tile),
 * real and imaginary part, computed directly.
 *
 * A fast transform adds up and rounds numbers that an output's own terms do not tell: sums that
 * cancel later. Each of them is a sum of elements of the tile with factors of size one, so the
 * scale of an output is the sum of the sizes of all elements of its tile. */
#include "kernels/oracles.h"

#define MOST 32 /* rows and columns of the largest tile */

int oracle_rfft2d(evoke_oracle_call *call) {
    int64_t tiles = oracle_whole(call, "tiles"), levels = oracle_whole(call, "levels");
    const float *X = oracle_floats(call, "X");
    if (X == NULL || tiles < 1 || levels < 3 || levels > 5)
        return 1;
    const int64_t tile = (int64_t)1 << levels, row = tile + 2; /* numbers of a row of S */
    double cosine[MOST];
    for (int64_t n = 0; n < tile; n++) /* in doubles, a quarter is 0 to 1e-16 */
        cosine[n] = cos(2 * 3.14159265358979323846 * (double)n / (double)tile);
    for (uint64_t i = 0; i < call->count; i++) {
        int64_t at = (int64_t)(call->first + i), part = at % 2;
        int64_t u = at / row % tile, v = at % row / 2;
        const float *x = X + at / row / tile * tile * tile;
        oracle_sum sum = {0, 0, 0};
        for (int64_t e = 0; e < tile * tile; e++) {
            int64_t angle = u * (e / tile) + v * (e % tile);
            /* -sin(a) = cos(a + a quarter) */
            oracle_add(&sum, (double)x[e] * cosine[(angle + part * tile / 4) % tile]);
            call->scale[i] += fabs((double)x[e]);
        }
        call->value[i] = oracle_total(&sum);
    }
    return 0;
}
