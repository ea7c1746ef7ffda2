/* Oracle of sd_lstm_fp and sd_lstm_fp_f16: gates = G + scale X[:, kept] W[:, kept]^T in the order
 * i, f, g, o; then c' = f c + i g and h' = o tanh(c').
 *
 * The scale of an output is its size plus the sizes of the terms of its sums, each times the
 * greatest slope on the way. Where terms cancel, a sum may be off by more than its value, and the
 * slope at the value says little about the slope at the sum that a kernel finds. So the slope is
 * the greatest within SUMS_OFF u sqrt(K) sizes of the value: by the mean value theorem, a kernel
 * whose sums are no further off has outputs no further off than SUMS_OFF u sqrt(K) scales. */
#include "kernels/oracles.h"

#include <float.h>

/* As scaled_max and depth in task.json. Halves are rounded once, behind sums in float, whatever the
 * number of terms. */
#define SUMS_OFF 8
#define HALVES_OFF 4
#define HALF_UNIT 0x1p-11

typedef struct lstm {
    const evoke_argument *X, *W, *G, *C;
    const int32_t *kept;
    uint64_t H, k;
    double keep_scale;
    double reach; /* error of a sum over its size, at most */
    double least; /* kernels may flush what is subnormal; of halves, what is subnormal is rounded */
} lstm;

typedef struct bounded {
    double value, scale;
} bounded;

static double logistic(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* At x >= 0. tanh(x) is 2 logistic(2 x) - 1. */
static double logistic_slope(double x) {
    return exp(-x) / ((1.0 + exp(-x)) * (1.0 + exp(-x)));
}

/* Gate 0..3 of unit `j` of sequence `b`, after its nonlinearity. */
static bounded gate_of(const lstm *l, uint64_t b, unsigned gate, uint64_t j) {
    oracle_sum sum = {0, 0, 0};
    uint64_t x = b * l->H, w = (gate * l->H + j) * l->H;
    oracle_add(&sum, evoke_element(l->G, (b * 4 + gate) * l->H + j));
    for (uint64_t n = 0; n < l->k; n++) {
        uint64_t at = (uint64_t)l->kept[n];
        oracle_add(&sum, l->keep_scale * evoke_element(l->X, x + at) * evoke_element(l->W, w + at));
    }
    double total = oracle_total(&sum);
    double nearest = fmax(fabs(total) - l->reach * sum.size, 0); /* slopes are greatest at 0 */
    double value = gate == 2 ? tanh(total) : logistic(total);
    double slope = gate == 2 ? 4 * logistic_slope(2 * nearest) : logistic_slope(nearest);
    return (bounded){value, fabs(value) + slope * sum.size + l->least};
}

/* Scale of a product of two inexact factors. */
static double product_scale(const lstm *l, bounded a, bounded b) {
    return fabs(a.value) * b.scale + fabs(b.value) * a.scale + l->reach * a.scale * b.scale;
}

static bounded cell_of(const lstm *l, uint64_t b, uint64_t j) {
    bounded i = gate_of(l, b, 0, j), f = gate_of(l, b, 1, j), g = gate_of(l, b, 2, j);
    double c = evoke_element(l->C, b * l->H + j);
    return (bounded){f.value * c + i.value * g.value,
                     fabs(c) * f.scale + product_scale(l, i, g) + l->least};
}

static bounded output_of(const lstm *l, uint64_t b, uint64_t j) {
    bounded o = gate_of(l, b, 3, j), c = cell_of(l, b, j);
    bounded t = {tanh(c.value), fabs(tanh(c.value)) + fmin(c.scale, 2 / l->reach)};
    return (bounded){o.value * t.value, product_scale(l, o, t) + l->least};
}

int oracle_sd_lstm_fp(evoke_oracle_call *call) {
    const evoke_argument *kept = oracle_argument(call, "kept");
    int64_t H = oracle_whole(call, "H"), k = oracle_whole(call, "k");
    if (kept == NULL || strcmp(kept->type, "s32") != 0 || H < 1 || k < 0)
        return 1;
    lstm l = {.X = oracle_reals(call, "X"),
              .W = oracle_reals(call, "W"),
              .G = oracle_reals(call, "G"),
              .C = oracle_reals(call, "C"),
              .kept = kept->data,
              .H = (uint64_t)H,
              .k = (uint64_t)k,
              .keep_scale = oracle_real(call, "scale"),
              .reach = SUMS_OFF * (double)FLT_EPSILON / 2 * sqrt(fmax((double)k, 1)),
              .least = ldexp(FLT_MIN, FLT_MANT_DIG)};
    const char *output = call->arguments[call->output].name;
    if (l.X == NULL || l.W == NULL || l.G == NULL || l.C == NULL || l.kept == NULL)
        return 1;
    if (strcmp(call->arguments[call->output].type, "f16") == 0) {
        l.reach = HALVES_OFF * HALF_UNIT;
        l.least = 0x1p-14;
    }
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i;
        bounded result;
        if (strcmp(output, "gates") == 0)
            result = gate_of(&l, at / (4 * l.H), (unsigned)(at / l.H % 4), at % l.H);
        else if (strcmp(output, "C_out") == 0)
            result = cell_of(&l, at / l.H, at % l.H);
        else if (strcmp(output, "H_out") == 0)
            result = output_of(&l, at / l.H, at % l.H);
        else
            return 1;
        call->value[i] = result.value;
        call->scale[i] = result.scale;
    }
    return 0;
}
