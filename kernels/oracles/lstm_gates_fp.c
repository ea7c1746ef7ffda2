/* Oracle of lstm_gates_fp: gates = Z + R + bias in the order i, f, g, o, through their
 * nonlinearities; c' = f c + i g; h' = o tanh(c').
 *
 * The scale of an output is its size plus the sizes of the sums that it depends on: a sigmoid has a
 * slope of at most 1/4 and tanh of at most 1, so an error of a sum grows no further. */
#include "kernels/oracles.h"

typedef struct cell {
    const float *Z, *R, *bias, *C;
    uint64_t H;
} cell;

typedef struct scaled {
    double value, scale;
} scaled;

static scaled gate_of(const cell *l, uint64_t b, unsigned gate, uint64_t j) {
    uint64_t at = (b * 4 + gate) * l->H + j;
    oracle_sum sum = {0, 0, 0};
    oracle_add(&sum, (double)l->Z[at]);
    oracle_add(&sum, (double)l->R[at]);
    oracle_add(&sum, (double)l->bias[gate * l->H + j]);
    double x = oracle_total(&sum), value = gate == 2 ? tanh(x) : 1 / (1 + exp(-x));
    return (scaled){value, fabs(value) + sum.size * (gate == 2 ? 1 : 0.25)};
}

static scaled cell_of(const cell *l, uint64_t b, uint64_t j) {
    scaled i = gate_of(l, b, 0, j), f = gate_of(l, b, 1, j), g = gate_of(l, b, 2, j);
    double c = (double)l->C[b * l->H + j];
    return (scaled){f.value * c + i.value * g.value,
                    fabs(c) * f.scale + i.value * g.scale + fabs(g.value) * i.scale};
}

int oracle_lstm_gates_fp(evoke_oracle_call *call) {
    int64_t H = oracle_whole(call, "H");
    const cell l = {oracle_floats(call, "Z"), oracle_floats(call, "R"), oracle_floats(call, "bias"),
                    oracle_floats(call, "C"), (uint64_t)H};
    const char *output = call->arguments[call->output].name;
    if (l.Z == NULL || l.R == NULL || l.bias == NULL || l.C == NULL || H < 1)
        return 1;
    for (uint64_t n = 0; n < call->count; n++) {
        uint64_t at = call->first + n;
        scaled result;
        if (strcmp(output, "gates") == 0) {
            result = gate_of(&l, at / (4 * l.H), (unsigned)(at / l.H % 4), at % l.H);
        } else if (strcmp(output, "C_out") == 0) {
            result = cell_of(&l, at / l.H, at % l.H);
        } else if (strcmp(output, "H_out") == 0) {
            scaled c = cell_of(&l, at / l.H, at % l.H), o = gate_of(&l, at / l.H, 3, at % l.H);
            double t = tanh(c.value);
            result = (scaled){o.value * t, o.scale + o.value * c.scale};
        } else {
            return 1;
        }
        call->value[n] = result.value;
        call->scale[n] = result.scale;
    }
    return 0;
}
