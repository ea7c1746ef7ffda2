/* Oracle of ar_fused_adam: the ranks' mean gradient, one step of Adam (Kingma and Ba, "Adam: A
 * Method for Stochastic Optimization", 2015, algorithm 1) with decoupled weight decay (Loshchilov
 * and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2), the same new parameters
 * on every rank; a stage holds the peers' gradients of its rank's shard. */
#include "kernels/oracles_adam.h"

static void stage_of(const oracle_adam *a, const float *stage, uint64_t at, evoke_oracle_call *call,
                     uint64_t k) {
    uint64_t owner = at / (a->ranks * a->shard), sender = at / a->shard % a->ranks;
    uint64_t i = owner * a->shard + at % a->shard;
    bool is_sent = sender != owner && i < a->n;
    call->value[k] = (double)(is_sent ? a->gradient[sender * a->n + i] : stage[at]);
    call->scale[k] = fabs(call->value[k]);
}

/* The quotient may be off by the error of its numerator, and by that of its denominator, which a
 * root makes large near 0. */
static void parameter_of(const oracle_adam *a, double decay, uint64_t i, evoke_oracle_call *call,
                         uint64_t k) {
    oracle_moments next = oracle_adam_moments(a, i);
    oracle_real_sized step = oracle_adam_step(a, &next);
    double p = (double)a->parameter[i], rate = oracle_real(call, "rate");
    call->value[k] = p - rate * (step.value + decay * p);
    call->scale[k] = fabs(p) + fabs(rate) * (step.size + fabs(decay * p));
}

int oracle_ar_fused_adam(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    const float *stage = oracle_floats(call, "stage");
    double decay = oracle_real(call, "decay");
    oracle_adam a;
    if (!oracle_adam_read(call, &a) || stage == NULL)
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        if (strcmp(output, "parameter") == 0)
            parameter_of(&a, decay, at % a.n, call, k);
        else if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0)
            oracle_adam_moment(&a, output[0] == 'm', at, call, k);
        else if (strcmp(output, "stage") == 0)
            stage_of(&a, stage, at, call, k);
        else if (strcmp(output, "flags") == 0)
            call->value[k] = call->scale[k] = 2 * (double)oracle_whole(call, "epoch");
        else
            return 1;
    }
    return 0;
}
