/* Oracle of sd_lstm_fp and sd_lstm_fp_f16: gates = G + scale X[:, kept] W[:, kept]^T in the order
 * i, f, g, o; then c' = f c + i g and h' = o tanh(c').
 * Scales are those of kernels/oracles_lstm.h. */
#include "kernels/oracles.h"
#include "kernels/oracles_lstm.h"

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
    lstm_errors errors;
} lstm;

/* Gate 0..3 of unit `j` of sequence `b`, after its nonlinearity. */
static bounded gate_of(const lstm *l, uint64_t b, unsigned gate, uint64_t j) {
    oracle_sum sum = {0, 0, 0};
    uint64_t x = b * l->H, w = (gate * l->H + j) * l->H;
    oracle_add(&sum, evoke_element(l->G, (b * 4 + gate) * l->H + j));
    for (uint64_t n = 0; n < l->k; n++) {
        uint64_t at = (uint64_t)l->kept[n];
        oracle_add(&sum, l->keep_scale * evoke_element(l->X, x + at) * evoke_element(l->W, w + at));
    }
    return lstm_gate(&l->errors, gate, oracle_total(&sum), sum.size);
}

static bounded cell_of(const lstm *l, uint64_t b, uint64_t j) {
    bounded before = {evoke_element(l->C, b * l->H + j), 0};
    return lstm_cell(&l->errors, gate_of(l, b, 0, j), gate_of(l, b, 1, j), gate_of(l, b, 2, j),
                     before);
}

static bounded output_of(const lstm *l, uint64_t b, uint64_t j) {
    return lstm_output(&l->errors, gate_of(l, b, 3, j), cell_of(l, b, j));
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
              .errors = {.reach = SUMS_OFF * (double)FLT_EPSILON / 2 * sqrt(fmax((double)k, 1)),
                         .least = ldexp(FLT_MIN, FLT_MANT_DIG)}};
    const char *output = call->arguments[call->output].name;
    if (l.X == NULL || l.W == NULL || l.G == NULL || l.C == NULL || l.kept == NULL)
        return 1;
    if (strcmp(call->arguments[call->output].type, "f16") == 0) {
        l.errors = (lstm_errors){.reach = HALVES_OFF * HALF_UNIT, .least = 0x1p-14};
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
