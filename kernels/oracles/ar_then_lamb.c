/* Oracle of ar_then_lamb: as that of ar_fused_lamb, with the moments of all parameters on every
 * rank, and without norms, which no rank sends. */
#include "kernels/oracles_lamb.h"

int oracle_ar_then_lamb(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    bool is_parameter = strcmp(output, "parameter") == 0;
    oracle_lamb l;
    if (!oracle_lamb_read(call, &l))
        return 1;
    oracle_lamb_norms all = {0, 0, 0};
    if (is_parameter)
        all = oracle_lamb_squares(&l, 0, l.at.n);
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0) {
            oracle_adam_moment(&l.adam, output[0] == 'm', at % l.at.n, call, k);
            continue;
        }
        if (is_parameter)
            r = oracle_lamb_parameter(&l, &all, at % l.at.n);
        else if (!oracle_stage_answer(&l.at, call, output, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}
