/* Oracle of ar_then_adam: as that of ar_fused_adam, with the moments of all parameters on every
 * rank. */
#include "kernels/oracles_adam.h"
#include "kernels/oracles_stage.h"

static void parameter_of(const oracle_adam *a, uint64_t i, evoke_oracle_call *call, uint64_t k) {
    oracle_moments next = oracle_adam_moments(a, i);
    oracle_real_sized step = oracle_adam_step(a, &next);
    double p = (double)a->parameter[i], rate = oracle_real(call, "rate");
    double decay = oracle_real(call, "decay");
    call->value[k] = p - rate * (step.value + decay * p);
    call->scale[k] = fabs(p) + fabs(rate) * (step.size + fabs(decay * p));
}

int oracle_ar_then_adam(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    oracle_adam a;
    oracle_stage stage;
    if (!oracle_adam_read(call, &a) || !oracle_stage_read(call, &stage))
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "parameter") == 0) {
            parameter_of(&a, at % a.n, call, k);
        } else if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0) {
            oracle_adam_moment(&a, output[0] == 'm', at % a.n, call, k);
        } else if (oracle_stage_answer(&stage, call, output, at, &r)) {
            call->value[k] = r.value;
            call->scale[k] = r.size;
        } else {
            return 1;
        }
    }
    return 0;
}
