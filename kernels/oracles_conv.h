/* What the oracles of data gradients of 3 x 3 convolutions share: of images of side x side pixels,
 * dX[n, y, x, c] = sum of dY[n, y + 1 - r, x + 1 - s, k] W[k, r, s, c] over output channels k and
 * the filter elements (r, s) whose pixel of dY is in the map.
 *
 * The sum is compensated: in double, products of two floats are exact, and the oracle's own error
 * is below one unit of a double of the terms' sizes. A float kernel rounds each product and each
 * partial sum, none of which is above the sum of the sizes (the scale); n such roundings, of
 * either sign, add up to about sqrt(n) units of the scale, where n <= 9 outputs is the task's
 * depth. */
#ifndef KERNELS_ORACLES_CONV_H
#define KERNELS_ORACLES_CONV_H

#include "kernels/oracles.h"

typedef struct oracle_conv {
    const evoke_argument *dY, *W;
    int64_t outputs, channels, side;
} oracle_conv;

/* Whether the call has all arguments of a layer. */
static inline bool oracle_conv_read(const evoke_oracle_call *call, oracle_conv *l) {
    *l = (oracle_conv){oracle_reals(call, "dY"), oracle_reals(call, "W"),
                       oracle_whole(call, "outputs"), oracle_whole(call, "channels"),
                       oracle_whole(call, "side")};
    return l->dY != NULL && l->W != NULL && l->outputs >= 0 && l->channels >= 1 && l->side >= 1;
}

/* The sum for element `at` of dX. */
static inline oracle_sum oracle_conv_element(const oracle_conv *l, int64_t at) {
    int64_t m = at / l->channels, c = at % l->channels;
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

#endif
