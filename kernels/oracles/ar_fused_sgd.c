/* Oracle of ar_fused_sgd: the ranks' mean gradient, one step of gradient descent with momentum and
 * weight decay (Sutskever et al., "On the importance of initialization and momentum in deep
 * learning", 2013; the rate outside of the momentum, as in Goyal et al., "Accurate, Large Minibatch
 * SGD", 2017, equation 10), the same new parameters on every rank; a stage holds the peers'
 * gradients of its rank's shard.
 *
 * The scale of an element is the sum of the sizes of all terms that a kernel adds up for it, so
 * u sqrt(K) of it bounds the error of any order of the sums. */
#include "kernels/oracles_stage.h"

typedef struct sgd {
    oracle_stage at;
    const float *parameter, *v; /* [rank][n]; [rank][shard] */
    double rate, momentum, decay;
} sgd;

static oracle_real_sized momentum_of(const sgd *s, uint64_t i) {
    oracle_real_sized g = oracle_stage_mean(&s->at, i);
    double v = (double)s->v[i], p = (double)s->parameter[i];
    return (oracle_real_sized){s->momentum * v + g.value + s->decay * p,
                               fabs(s->momentum * v) + g.size + fabs(s->decay * p)};
}

static oracle_real_sized parameter_of(const sgd *s, uint64_t i) {
    oracle_real_sized v = momentum_of(s, i);
    double p = (double)s->parameter[i];
    return (oracle_real_sized){p - s->rate * v.value, fabs(p) + fabs(s->rate) * v.size};
}

/* Elements behind the last parameter stay as they are. */
static oracle_real_sized kept(const float *v, uint64_t at) {
    return (oracle_real_sized){(double)v[at], fabs((double)v[at])};
}

int oracle_ar_fused_sgd(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    sgd s = {.parameter = oracle_floats(call, "parameter"),
             .v = oracle_floats(call, "v"),
             .rate = oracle_real(call, "rate"),
             .momentum = oracle_real(call, "momentum"),
             .decay = oracle_real(call, "decay")};
    if (!oracle_stage_read(call, &s.at) || s.parameter == NULL || s.v == NULL)
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "parameter") == 0)
            r = parameter_of(&s, at % s.at.n);
        else if (strcmp(output, "v") == 0)
            r = at < s.at.n ? momentum_of(&s, at) : kept(s.v, at);
        else if (!oracle_stage_answer(&s.at, call, output, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}
