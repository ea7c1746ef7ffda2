/* The step of the oracles of gradient descent with momentum and weight decay (Sutskever et al., "On
 * the importance of initialization and momentum in deep learning", 2013; the rate outside of the
 * momentum, as in Goyal et al., "Accurate, Large Minibatch SGD", 2017, equation 10). Private to
 * kernels/.
 *
 * The scale of an element is the sum of the sizes of all terms that a kernel adds up for it, so
 * u sqrt(K) of it bounds the error of any order of the sums. */
#ifndef KERNELS_ORACLES_SGD_H
#define KERNELS_ORACLES_SGD_H

#include "kernels/oracles_stage.h"

typedef struct oracle_sgd {
    oracle_stage at;
    const float *parameter, *v; /* [rank][n]; momenta of parameters 0 .. n - 1 first */
    double rate, momentum, decay;
} oracle_sgd;

static inline oracle_real_sized oracle_sgd_momentum(const oracle_sgd *s, uint64_t i) {
    oracle_real_sized g = oracle_stage_mean(&s->at, i);
    double v = (double)s->v[i], p = (double)s->parameter[i];
    return (oracle_real_sized){s->momentum * v + g.value + s->decay * p,
                               fabs(s->momentum * v) + g.size + fabs(s->decay * p)};
}

static inline oracle_real_sized oracle_sgd_parameter(const oracle_sgd *s, uint64_t i) {
    oracle_real_sized v = oracle_sgd_momentum(s, i);
    double p = (double)s->parameter[i];
    return (oracle_real_sized){p - s->rate * v.value, fabs(p) + fabs(s->rate) * v.size};
}

/* false: an argument is missing. */
static inline bool oracle_sgd_read(const evoke_oracle_call *call, oracle_sgd *s) {
    *s = (oracle_sgd){.parameter = oracle_floats(call, "parameter"),
                      .v = oracle_floats(call, "v"),
                      .rate = oracle_real(call, "rate"),
                      .momentum = oracle_real(call, "momentum"),
                      .decay = oracle_real(call, "decay")};
    return oracle_stage_read(call, &s->at) && s->parameter != NULL && s->v != NULL;
}

/* Elements behind the last parameter of a shard stay as they are. */
static inline oracle_real_sized oracle_sgd_next(const oracle_sgd *s, bool has_all, uint64_t at) {
    if (has_all || at < s->at.n)
        return oracle_sgd_momentum(s, at % s->at.n);
    return (oracle_real_sized){(double)s->v[at], fabs((double)s->v[at])};
}

/* An oracle as a whole. `has_all`: every rank has the momenta of all parameters; else those of its
 * shard. */
static inline int oracle_sgd_answer(evoke_oracle_call *call, bool has_all) {
    const char *output = call->arguments[call->output].name;
    oracle_sgd s;
    if (!oracle_sgd_read(call, &s))
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "parameter") == 0)
            r = oracle_sgd_parameter(&s, at % s.at.n);
        else if (strcmp(output, "v") == 0)
            r = oracle_sgd_next(&s, has_all, at);
        else if (!oracle_stage_answer(&s.at, call, output, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}

#endif
