/* Oracle of bp_data_masked_conv: dX[n, y, x, c] = sum of dY[n, y + 1 - r, x + 1 - s, k]
 * W[k, r, s, c] over output channels k and the filter elements (r, s) whose pixel of dY is in the
 * map, exactly zero where X[n, y, x, c] is not above zero.
 *
 * The sum is compensated: in double, products of two floats are exact, and the oracle's own error
 * is below one unit of a double of the terms' sizes. A float kernel rounds each product and each
 * partial sum, none of which is above the sum of the sizes (the scale); n such roundings, of
 * either sign, add up to about sqrt(n) units of the scale, where n <= 9 outputs is the task's
 * depth. */
#include "kernels/oracles.h"

typedef struct layer {
    const evoke_argument *dY, *W;
    int64_t outputs, channels, side;
} layer;

/* The sum for channel c of pixel m. */
static oracle_sum element_of(const layer *l, int64_t m, int64_t c) {
    int64_t y = m / l->side % l->side, x = m % l->side;
    oracle_sum sum = {0, 0, 0};
    for (int64_t tap = 0; tap < 9; tap++) {
        int64_t down = 1 - tap / 3, right = 1 - tap % 3;
        if (y + down < 0 || y + down >= l->side || x + right < 0 || x + right >= l->side)
            continue;
        int64_t pixel = m + down * l->side + right;
        for (int64_t k = 0; k < l->outputs; k++)
            oracle_add(&sum, evoke_element(l->dY, (uint64_t)(pixel * l->outputs + k)) *
                                 evoke_element(l->W, (uint64_t)((k * 9 + tap) * l->channels + c)));
    }
    return sum;
}

int oracle_bp_data_masked_conv(evoke_oracle_call *call) {
    const evoke_argument *X = oracle_reals(call, "X");
    const layer l = {oracle_reals(call, "dY"), oracle_reals(call, "W"),
                     oracle_whole(call, "outputs"), oracle_whole(call, "channels"),
                     oracle_whole(call, "side")};
    if (l.dY == NULL || l.W == NULL || X == NULL || l.outputs < 0 || l.channels < 1 || l.side < 1)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        int64_t at = (int64_t)(call->first + i);
        call->value[i] = 0;
        call->scale[i] = 0;
        if (!(evoke_element(X, (uint64_t)at) > 0))
            continue;
        oracle_sum sum = element_of(&l, at / l.channels, at % l.channels);
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
