/* Oracle of sd_lstm_fp: gates = G + scale X[:, kept] W[:, kept]^T in the order i, f, g, o; then
 * c' = f c + i g and h' = o tanh(c').
 *
 * The scale of an output is its size plus the sizes of the terms it came from, each times the
 * greatest slope on the way (1/4 for the logistic function, 1 for tanh). */
#include "kernels/oracles.h"

typedef struct lstm {
    const float *X, *W, *G, *C;
    const int32_t *kept;
    uint64_t H, k;
    double keep_scale;
} lstm;

typedef struct bounded {
    double value, scale;
} bounded;

/* Gate 0..3 of unit `j` of sequence `b`, after its nonlinearity. */
static bounded gate_of(const lstm *l, uint64_t b, unsigned gate, uint64_t j) {
    oracle_sum sum = {0, 0, 0};
    const float *x = l->X + b * l->H, *w = l->W + (gate * l->H + j) * l->H;
    oracle_add(&sum, (double)l->G[(b * 4 + gate) * l->H + j]);
    for (uint64_t n = 0; n < l->k; n++)
        oracle_add(&sum, l->keep_scale * (double)x[l->kept[n]] * (double)w[l->kept[n]]);
    double total = oracle_total(&sum);
    double value = gate == 2 ? tanh(total) : 1.0 / (1.0 + exp(-total));
    double slope = gate == 2 ? 1.0 - value * value : value * (1.0 - value);
    /* A slope at the point itself would leave out how it changes within the error: 1/16 of the
     * greatest is the least that counts. */
    double most = gate == 2 ? 1.0 : 0.25;
    return (bounded){value, fabs(value) + fmax(slope, most / 16) * sum.size};
}

static bounded cell_of(const lstm *l, uint64_t b, uint64_t j) {
    bounded i = gate_of(l, b, 0, j), f = gate_of(l, b, 1, j), g = gate_of(l, b, 2, j);
    double c = (double)l->C[b * l->H + j];
    return (bounded){f.value * c + i.value * g.value,
                     fabs(c) * f.scale + fabs(g.value) * i.scale + fabs(i.value) * g.scale};
}

static bounded output_of(const lstm *l, uint64_t b, uint64_t j) {
    bounded o = gate_of(l, b, 3, j), c = cell_of(l, b, j);
    double t = tanh(c.value);
    return (bounded){o.value * t, o.scale * fabs(t) + o.value * (c.scale + fabs(t))};
}

int oracle_sd_lstm_fp(evoke_oracle_call *call) {
    const evoke_argument *kept = oracle_argument(call, "kept");
    int64_t H = oracle_whole(call, "H"), k = oracle_whole(call, "k");
    if (kept == NULL || strcmp(kept->type, "s32") != 0 || H < 1 || k < 0)
        return 1;
    lstm l = {oracle_floats(call, "X"),
              oracle_floats(call, "W"),
              oracle_floats(call, "G"),
              oracle_floats(call, "C"),
              kept->data,
              (uint64_t)H,
              (uint64_t)k,
              oracle_real(call, "scale")};
    const char *output = call->arguments[call->output].name;
    if (l.X == NULL || l.W == NULL || l.G == NULL || l.C == NULL || l.kept == NULL)
        return 1;
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
