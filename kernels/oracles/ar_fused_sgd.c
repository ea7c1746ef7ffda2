/* Oracle of ar_fused_sgd: the ranks' mean gradient, one step of gradient descent with momentum and
 * weight decay, the same new parameters on every rank; a stage holds the peers' gradients of its
 * rank's shard. */
#include "kernels/oracles_sgd.h"

/* Elements behind the last parameter stay as they are. */
static oracle_real_sized kept(const float *v, uint64_t at) {
    return (oracle_real_sized){(double)v[at], fabs((double)v[at])};
}

int oracle_ar_fused_sgd(evoke_oracle_call *call) {
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
            r = at < s.at.n ? oracle_sgd_momentum(&s, at) : kept(s.v, at);
        else if (!oracle_stage_answer(&s.at, call, output, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}
