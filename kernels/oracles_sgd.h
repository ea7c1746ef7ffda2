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

#endif
