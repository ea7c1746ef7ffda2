/* Oracle of bc_fp: y[b, i k + r] = sum over j and s of w[i, j, (r - s) mod k] x[b, j k + s],
 * computed directly.
 *
 * A transform spreads each element's rounding error over its whole vector, and two neighbouring
 * rows of the batch may share a transform. So the scale of an output is the sum over j of the norm
 * of the block of w times the norm of the vectors of x in the row's pair (rows 2 m and 2 m + 1). */
#include "kernels/oracles.h"

typedef struct layer {
    const float *x, *w;
    int64_t batch, p, q, k;
} layer;

static void value_at(const layer *l, int64_t b, int64_t i, int64_t r, double *value,
                     double *scale) {
    oracle_sum sum = {0, 0, 0};
    *scale = 0;
    for (int64_t j = 0; j < l->q; j++) {
        const float *w = l->w + (i * l->q + j) * l->k, *x = l->x + (b * l->q + j) * l->k;
        double pair = oracle_squares(x, l->k);
        if ((b ^ 1) < l->batch)
            pair += oracle_squares(l->x + ((b ^ 1) * l->q + j) * l->k, l->k);
        for (int64_t s = 0; s < l->k; s++)
            oracle_add(&sum, (double)w[(r - s + l->k) % l->k] * (double)x[s]);
        *scale += sqrt(oracle_squares(w, l->k)) * sqrt(pair);
    }
    *value = oracle_total(&sum);
}

int oracle_bc_fp(evoke_oracle_call *call) {
    const layer l = {oracle_floats(call, "x"),    oracle_floats(call, "w"),
                     oracle_whole(call, "batch"), oracle_whole(call, "p"),
                     oracle_whole(call, "q"),     oracle_whole(call, "k")};
    if (l.x == NULL || l.w == NULL || l.batch < 1 || l.p < 1 || l.q < 1 || l.k < 1)
        return 1;
    for (uint64_t n = 0; n < call->count; n++) {
        int64_t at = (int64_t)(call->first + n);
        value_at(&l, at / l.k / l.p, at / l.k % l.p, at % l.k, &call->value[n], &call->scale[n]);
    }
    return 0;
}
