/* Oracle of ar_sgd_momentum: the ranks' mean gradient g; v = momentum v + g + decay p and
 * p = p - rate v (Sutskever et al., "On the importance of initialization and momentum in deep
 * learning", 2013, with the rate outside v, as frameworks have it); the same on every rank. */
#include "kernels/oracles.h"

typedef struct sgd {
    const float *gradient, *parameter, *v;
    uint64_t n, ranks;
    double rate, momentum, decay;
} sgd;

static oracle_sum momentum_of(const sgd *s, uint64_t i, double p) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < s->ranks; r++)
        oracle_add(&sum, (double)s->gradient[r * s->n + i] / (double)s->ranks);
    oracle_add(&sum, s->momentum * (double)s->v[i]);
    oracle_add(&sum, s->decay * p);
    return sum;
}

int oracle_ar_sgd_momentum(evoke_oracle_call *call) {
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    const sgd s = {oracle_floats(call, "gradient"),
                   oracle_floats(call, "parameter"),
                   oracle_floats(call, "v"),
                   (uint64_t)n,
                   (uint64_t)ranks,
                   oracle_real(call, "rate"),
                   oracle_real(call, "momentum"),
                   oracle_real(call, "decay")};
    bool is_parameter = strcmp(call->arguments[call->output].name, "parameter") == 0;
    if (s.gradient == NULL || s.parameter == NULL || s.v == NULL || n < 1 || ranks < 1 ||
        (!is_parameter && strcmp(call->arguments[call->output].name, "v") != 0))
        return 1;
    uint64_t shard = (s.n + s.ranks - 1) / s.ranks;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t i = (call->first + k) % s.n; /* rank i / shard starts from its own copy */
        double p = (double)s.parameter[i / shard * s.n + i];
        oracle_sum v = momentum_of(&s, i, p);
        call->value[k] = is_parameter ? p - s.rate * oracle_total(&v) : oracle_total(&v);
        call->scale[k] = is_parameter ? fabs(p) + fabs(s.rate) * v.size : v.size;
    }
    return 0;
}
