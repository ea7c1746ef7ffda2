/* Oracle of sd_lstm_seq: from step to step, gates = bias + scale X[t][:, kept[t]] W[:, kept[t]]^T +
 * h U^T in the order i, f, g, o; then c' = f c + i g and h' = o tanh(c').
 *
 * The first call runs all steps and keeps them, since a step needs all units of the step before.
 * Scales are those of kernels/oracles_lstm.h. A sum of step t > 0 also inherits the errors of the
 * outputs of step t - 1, each times its weight. They come from different sums, so they add up in
 * squares, as the roundings of one sum do, for which a sum's error is held against the root of its
 * number of terms. The scale of step t so grows with t. Added up in full instead, it would grow by
 * a factor of the root of H a step and hold no kernel to anything. */
#include "kernels/oracles.h"
#include "kernels/oracles_lstm.h"

#include <float.h>
#include <stdlib.h>

/* As scaled_max in task.json. */
#define SUMS_OFF 8
#define RUN 64 /* terms that are added up without compensation */

typedef struct sequence {
    const float *X, *W, *U, *bias, *C_in, *H_in;
    const int32_t *kept;
    uint64_t B, H, k, T;
    double keep_scale;
    lstm_errors errors;
    bounded *gates, *cells, *outputs; /* [T, B, 4H], [T, B, H], [T, B, H] */
} sequence;

/* Space for one step. */
typedef struct work {
    double *inputs, *values, *scales; /* [B, k], [B, H], [B, H] */
    float *weights;                   /* [k] */
} work;

typedef struct products {
    oracle_sum sum; /* its `size` is that of totals, and not used */
    double size;    /* of the terms */
    double squares; /* of the inherited errors */
} products;

/* Adds v[n] m[n]; `scales`: of v, NULL: exact. Four sums at a time, since one waits for itself. */
static void add_products(products *p, const double *v, const double *scales, const float *m,
                         uint64_t count) {
    for (uint64_t first = 0; first < count; first += RUN) {
        double sum[4] = {0}, size[4] = {0}, squares[4] = {0};
        uint64_t run = count - first < RUN ? count - first : RUN;
        for (uint64_t i = 0; i < run; i++) {
            double weight = (double)m[first + i], term = v[first + i] * weight;
            double error = scales != NULL ? scales[first + i] * weight : 0;
            sum[i % 4] += term;
            size[i % 4] += fabs(term);
            squares[i % 4] += error * error;
        }
        oracle_add(&p->sum, (sum[0] + sum[1]) + (sum[2] + sum[3]));
        p->size += (size[0] + size[1]) + (size[2] + size[3]);
        p->squares += (squares[0] + squares[1]) + (squares[2] + squares[3]);
    }
}

/* The inputs of step t, in doubles. */
static void load_step(const sequence *s, uint64_t t, work *w) {
    for (uint64_t b = 0; b < s->B; b++) {
        const float *x = s->X + (t * s->B + b) * s->H;
        for (uint64_t n = 0; n < s->k; n++)
            w->inputs[b * s->k + n] = s->keep_scale * (double)x[s->kept[t * s->k + n]];
    }
    for (uint64_t i = 0; i < s->B * s->H; i++) {
        const bounded *before = t > 0 ? &s->outputs[(t - 1) * s->B * s->H + i] : NULL;
        w->values[i] = before != NULL ? before->value : (double)s->H_in[i];
        w->scales[i] = before != NULL ? before->scale : 0;
    }
}

/* One gate of one unit, of all sequences. */
static void make_row(const sequence *s, uint64_t t, uint64_t row, const work *w) {
    const float *weights = s->W + row * s->H, *recurrent = s->U + row * s->H;
    for (uint64_t n = 0; n < s->k; n++)
        w->weights[n] = weights[s->kept[t * s->k + n]];
    for (uint64_t b = 0; b < s->B; b++) {
        products p = {{0, 0, 0}, fabs((double)s->bias[row]), 0};
        oracle_add(&p.sum, (double)s->bias[row]);
        add_products(&p, w->inputs + b * s->k, NULL, w->weights, s->k);
        add_products(&p, w->values + b * s->H, t > 0 ? w->scales + b * s->H : NULL, recurrent,
                     s->H);
        s->gates[(t * s->B + b) * 4 * s->H + row] = lstm_gate(
            &s->errors, (unsigned)(row / s->H), oracle_total(&p.sum), p.size + sqrt(p.squares));
    }
}

static void make_cells(const sequence *s, uint64_t t) {
    for (uint64_t i = 0; i < s->B * s->H; i++) {
        uint64_t b = i / s->H, at = t * s->B * s->H + i;
        const bounded *gates = &s->gates[(t * s->B + b) * 4 * s->H + i % s->H];
        bounded before = {(double)s->C_in[i], 0};
        if (t > 0)
            before = s->cells[at - s->B * s->H];
        s->cells[at] = lstm_cell(&s->errors, gates[0], gates[s->H], gates[2 * s->H], before);
        s->outputs[at] = lstm_output(&s->errors, gates[3 * s->H], s->cells[at]);
    }
}

static int run_steps(const sequence *s) {
    uint64_t doubles = s->B * (s->k + 2 * s->H);
    double *room = malloc(doubles * sizeof *room + (s->k + 1) * sizeof(float));
    if (room == NULL)
        return 1;
    work w = {.inputs = room,
              .values = room + s->B * s->k,
              .scales = room + s->B * (s->k + s->H),
              .weights = (float *)(room + doubles)};
    for (uint64_t t = 0; t < s->T; t++) {
        load_step(s, t, &w);
        for (uint64_t row = 0; row < 4 * s->H; row++)
            make_row(s, t, row, &w);
        make_cells(s, t);
    }
    free(room);
    return 0;
}

/* False: an argument is missing. */
static bool read_arguments(const evoke_oracle_call *call, sequence *s) {
    const evoke_argument *kept = oracle_argument(call, "kept");
    const evoke_argument *gates = oracle_argument(call, "gates");
    int64_t B = oracle_whole(call, "B"), H = oracle_whole(call, "H"), k = oracle_whole(call, "k");
    *s = (sequence){.X = oracle_floats(call, "X"),
                    .W = oracle_floats(call, "W"),
                    .U = oracle_floats(call, "U"),
                    .bias = oracle_floats(call, "bias"),
                    .C_in = oracle_floats(call, "C_in"),
                    .H_in = oracle_floats(call, "H_in"),
                    .keep_scale = oracle_real(call, "scale")};
    if (kept == NULL || strcmp(kept->type, "s32") != 0 || gates == NULL || B < 1 || H < 1 || k < 0)
        return false;
    s->kept = kept->data;
    s->B = (uint64_t)B;
    s->H = (uint64_t)H;
    s->k = (uint64_t)k;
    s->T = gates->count / (4 * s->B * s->H);
    s->errors = (lstm_errors){.reach = SUMS_OFF * (double)FLT_EPSILON / 2 * sqrt((double)(k + H)),
                              .least = ldexp(FLT_MIN, FLT_MANT_DIG)};
    return s->X != NULL && s->W != NULL && s->U != NULL && s->bias != NULL && s->C_in != NULL &&
           s->H_in != NULL && s->kept != NULL;
}

int oracle_sd_lstm_seq(evoke_oracle_call *call) {
    sequence s;
    if (!read_arguments(call, &s))
        return 1;
    bool is_new = call->scratch == NULL;
    uint64_t units = s.T * s.B * s.H;
    if (is_new)
        call->scratch = malloc(6 * units * sizeof(bounded));
    if (call->scratch == NULL)
        return 1;
    s.gates = call->scratch;
    s.cells = s.gates + 4 * units;
    s.outputs = s.cells + units;
    if (is_new && run_steps(&s) != 0) {
        free(call->scratch);
        call->scratch = NULL;
        return 1;
    }
    const char *output = call->arguments[call->output].name;
    const bounded *from = NULL;
    if (strcmp(output, "gates") == 0)
        from = s.gates;
    else if (strcmp(output, "C_out") == 0)
        from = s.cells;
    else if (strcmp(output, "H_out") == 0)
        from = s.outputs;
    for (uint64_t i = 0; from != NULL && i < call->count; i++) {
        call->value[i] = from[call->first + i].value;
        call->scale[i] = from[call->first + i].scale;
    }
    return from != NULL ? 0 : 1;
}
