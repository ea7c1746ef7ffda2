/* Oracle of lstm_gates_bp: with t = tanh(c'), dc = dC + dH o (1 - t^2); the gradients of the gates
 * before their nonlinearities, and dc f for the step before.
 *
 * The scale of an output is the product of its factors' sizes, a difference counting the sizes of
 * its terms. */
#include "kernels/oracles.h"

typedef struct cell {
    const float *dH, *dC, *gates, *C, *C_out;
    uint64_t H;
} cell;

typedef struct scaled {
    double value, scale;
} scaled;

static scaled times(scaled a, double value, double scale) {
    return (scaled){a.value * value, a.scale * scale};
}

static double gate_of(const cell *l, uint64_t b, unsigned gate, uint64_t j) {
    return (double)l->gates[(b * 4 + gate) * l->H + j];
}

/* Gradient of the cell after the step. */
static scaled cell_gradient(const cell *l, uint64_t b, uint64_t j) {
    uint64_t at = b * l->H + j;
    double t = tanh((double)l->C_out[at]), o = gate_of(l, b, 3, j);
    double dC = (double)l->dC[at], through = (double)l->dH[at] * o;
    return (scaled){dC + through * (1 - t * t), fabs(dC) + fabs(through) * (1 + t * t)};
}

static scaled gate_gradient(const cell *l, uint64_t b, unsigned gate, uint64_t j) {
    double i = gate_of(l, b, 0, j), g = gate_of(l, b, 2, j), own = gate_of(l, b, gate, j);
    uint64_t at = b * l->H + j;
    double slope = gate == 2 ? 1 - own * own : own * (1 - own);
    double slope_scale = gate == 2 ? 1 + own * own : fabs(own) * (1 + fabs(own));
    scaled from = cell_gradient(l, b, j);
    double other = gate == 0 ? g : i;
    if (gate == 1)
        other = (double)l->C[at];
    if (gate == 3) {
        double dH = (double)l->dH[at];
        from = (scaled){dH, fabs(dH)};
        other = tanh((double)l->C_out[at]);
    }
    return times(times(from, other, fabs(other)), slope, slope_scale);
}

int oracle_lstm_gates_bp(evoke_oracle_call *call) {
    int64_t H = oracle_whole(call, "H");
    const cell l = {oracle_floats(call, "dH"),    oracle_floats(call, "dC"),
                    oracle_floats(call, "gates"), oracle_floats(call, "C"),
                    oracle_floats(call, "C_out"), (uint64_t)H};
    const char *output = call->arguments[call->output].name;
    if (l.dH == NULL || l.dC == NULL || l.gates == NULL || l.C == NULL || l.C_out == NULL || H < 1)
        return 1;
    for (uint64_t n = 0; n < call->count; n++) {
        uint64_t at = call->first + n;
        scaled result;
        if (strcmp(output, "dG") == 0) {
            result = gate_gradient(&l, at / (4 * l.H), (unsigned)(at / l.H % 4), at % l.H);
        } else if (strcmp(output, "dC_in") == 0) {
            double f = gate_of(&l, at / l.H, 1, at % l.H);
            result = times(cell_gradient(&l, at / l.H, at % l.H), f, fabs(f));
        } else {
            return 1;
        }
        call->value[n] = result.value;
        call->scale[n] = result.scale;
    }
    return 0;
}
