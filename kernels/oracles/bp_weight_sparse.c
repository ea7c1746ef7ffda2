/* Oracle of bp_weight_sparse: dW[p, o, r, s, c] = sum of dY[n, y, x, o] X[n, y + r, x + s, c] over
 * the pixels of part p. A zero of X adds nothing to the value or to the scale. The buffers may be
 * of any float type: products of two 16-bit floats are exact in double. */
#include "kernels/oracles.h"

typedef struct layer {
    const evoke_argument *dY, *X;
    uint64_t M, outputs, channels, side, filter, part;
} layer;

/* Element [p][o][tap][c] of dW is element `at` of the buffer. */
static oracle_sum element_of(const layer *l, uint64_t at) {
    uint64_t columns = l->filter * l->filter * l->channels, width = l->side + l->filter - 1;
    uint64_t p = at / columns / l->outputs, o = at / columns % l->outputs;
    uint64_t tap = at % columns / l->channels, c = at % l->channels;
    oracle_sum sum = {0, 0, 0};
    for (uint64_t m = p * l->part; m < (p + 1) * l->part && m < l->M; m++) {
        uint64_t n = m / l->side / l->side;
        uint64_t row = m / l->side % l->side + tap / l->filter;
        uint64_t column = m % l->side + tap % l->filter;
        double x = evoke_element(l->X, ((n * width + row) * width + column) * l->channels + c);
        oracle_add(&sum, evoke_element(l->dY, m * l->outputs + o) * x);
    }
    return sum;
}

int oracle_bp_weight_sparse(evoke_oracle_call *call) {
    int64_t M = oracle_whole(call, "M"), outputs = oracle_whole(call, "outputs");
    int64_t channels = oracle_whole(call, "channels"), side = oracle_whole(call, "side");
    int64_t filter = oracle_whole(call, "filter"), part = oracle_whole(call, "part");
    const layer l = {oracle_reals(call, "dY"), oracle_reals(call, "X"), (uint64_t)M,
                     (uint64_t)outputs,        (uint64_t)channels,      (uint64_t)side,
                     (uint64_t)filter,         (uint64_t)part};
    if (l.dY == NULL || l.X == NULL || M < 0 || outputs < 1 || channels < 1 || side < 1 ||
        filter < 1 || part < 0)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        oracle_sum sum = element_of(&l, call->first + i);
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
