/* Oracle of bc_bp_data: dX[b, j k + s] = sum over i and r of w[i, j, (r - s) mod k] dY[b, i k + r],
 * computed directly.
 *
 * A transform spreads each element's rounding error over its whole vector, and it may hold two
 * vectors: neighbouring rows of the batch, and neighbouring blocks of weights. So the scale of an
 * output is the sum over i of the norm of both blocks (j and j ^ 1) times the norm of both rows' dY
 * (b and b ^ 1). */
#include "kernels/oracles.h"

typedef struct layer {
    const float *dY, *w;
    int64_t batch, p, q, k;
} layer;

static void value_at(const layer *l, int64_t b, int64_t j, int64_t s, double *value,
                     double *scale) {
    oracle_sum sum = {0, 0, 0};
    *scale = 0;
    for (int64_t i = 0; i < l->p; i++) {
        const float *w = l->w + (i * l->q + j) * l->k, *dY = l->dY + (b * l->p + i) * l->k;
        double blocks = oracle_squares(w, l->k), rows = oracle_squares(dY, l->k);
        if ((j ^ 1) < l->q)
            blocks += oracle_squares(l->w + (i * l->q + (j ^ 1)) * l->k, l->k);
        if ((b ^ 1) < l->batch)
            rows += oracle_squares(l->dY + ((b ^ 1) * l->p + i) * l->k, l->k);
        for (int64_t r = 0; r < l->k; r++)
            oracle_add(&sum, (double)w[(r - s + l->k) % l->k] * (double)dY[r]);
        *scale += sqrt(blocks) * sqrt(rows);
    }
    *value = oracle_total(&sum);
}

int oracle_bc_bp_data(evoke_oracle_call *call) {
    const layer l = {oracle_floats(call, "dY"),   oracle_floats(call, "w"),
                     oracle_whole(call, "batch"), oracle_whole(call, "p"),
                     oracle_whole(call, "q"),     oracle_whole(call, "k")};
    if (l.dY == NULL || l.w == NULL || l.batch < 1 || l.p < 1 || l.q < 1 || l.k < 1)
        return 1;
    for (uint64_t n = 0; n < call->count; n++) {
        int64_t at = (int64_t)(call->first + n);
        value_at(&l, at / l.k / l.q, at / l.k % l.q, at % l.k, &call->value[n], &call->scale[n]);
    }
    return 0;
}
