/* Oracle of bc_bp_weight: dW[i, j, m] = sum over b and s of dY[b, i, (s + m) mod k] x[b, j, s],
 * computed directly.
 *
 * A transform spreads each element's rounding error over its whole vector, and two neighbouring
 * rows of the batch may share a transform, the products of which then hold both. So the scale of an
 * output is the sum over the pairs of rows (2 m and 2 m + 1) of the norm of both rows' dY times the
 * norm of both rows' x. */
#include "kernels/oracles.h"

typedef struct layer {
    const float *x, *dY;
    int64_t batch, p, q, k;
} layer;

static double pair_at(const layer *l, int64_t b, int64_t i, int64_t j) {
    double inputs = 0, gradients = 0;
    for (int64_t row = b; row < b + 2 && row < l->batch; row++) {
        inputs += oracle_squares(l->x + (row * l->q + j) * l->k, l->k);
        gradients += oracle_squares(l->dY + (row * l->p + i) * l->k, l->k);
    }
    return sqrt(inputs) * sqrt(gradients);
}

static void value_at(const layer *l, int64_t i, int64_t j, int64_t m, double *value,
                     double *scale) {
    oracle_sum sum = {0, 0, 0};
    *scale = 0;
    for (int64_t b = 0; b < l->batch; b++) {
        const float *x = l->x + (b * l->q + j) * l->k, *dY = l->dY + (b * l->p + i) * l->k;
        for (int64_t s = 0; s < l->k; s++)
            oracle_add(&sum, (double)dY[(s + m) % l->k] * (double)x[s]);
        if (b % 2 == 0)
            *scale += pair_at(l, b, i, j);
    }
    *value = oracle_total(&sum);
}

int oracle_bc_bp_weight(evoke_oracle_call *call) {
    const layer l = {oracle_floats(call, "x"),    oracle_floats(call, "dY"),
                     oracle_whole(call, "batch"), oracle_whole(call, "p"),
                     oracle_whole(call, "q"),     oracle_whole(call, "k")};
    if (l.x == NULL || l.dY == NULL || l.batch < 1 || l.p < 1 || l.q < 1 || l.k < 1)
        return 1;
    for (uint64_t n = 0; n < call->count; n++) {
        int64_t at = (int64_t)(call->first + n);
        value_at(&l, at / l.k / l.q, at / l.k % l.q, at % l.k, &call->value[n], &call->scale[n]);
    }
    return 0;
}
