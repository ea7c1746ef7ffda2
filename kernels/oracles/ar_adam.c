/* Oracle of ar_adam: the ranks' mean gradient, one step of Adam (Kingma and Ba, "Adam: A Method for
 * Stochastic Optimization", 2015, algorithm 1), the same new parameters on every rank. */
#include "kernels/oracles.h"

#include <stdbool.h>

typedef struct adam {
    const float *gradient, *parameter, *m, *v;
    uint64_t n, ranks;
    double rate, beta1, beta2, epsilon, correction1, correction2;
} adam;

typedef struct moments {
    double m, v;
    double m_size, v_size; /* of the terms */
} moments;

static moments moments_of(const adam *a, uint64_t i) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < a->ranks; r++)
        oracle_add(&sum, (double)a->gradient[r * a->n + i]);
    double g = oracle_total(&sum) / (double)a->ranks, size = sum.size / (double)a->ranks;
    double m = (double)a->m[i], v = (double)a->v[i];
    return (moments){
        .m = a->beta1 * m + (1 - a->beta1) * g,
        .v = a->beta2 * v + (1 - a->beta2) * g * g,
        .m_size = fabs(a->beta1 * m) + (1 - a->beta1) * size,
        .v_size = a->beta2 * v + (1 - a->beta2) * size * size,
    };
}

/* Rank r owns shard r, and starts from its own copy of the parameters. */
static double parameter_of(const adam *a, uint64_t i, double *scale) {
    uint64_t shard = (a->n + a->ranks - 1) / a->ranks, owner = i / shard;
    moments next = moments_of(a, i);
    double below = sqrt(next.v / a->correction2) + a->epsilon;
    double p = (double)a->parameter[owner * a->n + i];
    *scale = fabs(p) + a->rate * (next.m_size / a->correction1) / below;
    return p - a->rate * (next.m / a->correction1) / below;
}

int oracle_ar_adam(evoke_oracle_call *call) {
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    adam a = {.gradient = oracle_floats(call, "gradient"),
              .parameter = oracle_floats(call, "parameter"),
              .m = oracle_floats(call, "m"),
              .v = oracle_floats(call, "v"),
              .n = (uint64_t)n,
              .ranks = (uint64_t)ranks,
              .rate = oracle_real(call, "rate"),
              .beta1 = oracle_real(call, "beta1"),
              .beta2 = oracle_real(call, "beta2"),
              .epsilon = oracle_real(call, "epsilon"),
              .correction1 = oracle_real(call, "correction1"),
              .correction2 = oracle_real(call, "correction2")};
    const char *output = call->arguments[call->output].name;
    if (a.gradient == NULL || a.parameter == NULL || a.m == NULL || a.v == NULL || n < 1 ||
        ranks < 1)
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t i = (call->first + k) % a.n;
        if (strcmp(output, "parameter") == 0) {
            call->value[k] = parameter_of(&a, i, &call->scale[k]);
            continue;
        }
        moments next = moments_of(&a, i);
        bool first = strcmp(output, "m") == 0;
        if (!first && strcmp(output, "v") != 0)
            return 1;
        call->value[k] = first ? next.m : next.v;
        call->scale[k] = first ? next.m_size : next.v_size;
    }
    return 0;
}
