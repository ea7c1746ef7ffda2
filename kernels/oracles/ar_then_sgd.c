/* Oracle of ar_then_sgd: as that of ar_fused_sgd, with the momenta of all parameters on every rank.
 */
#include "kernels/oracles_sgd.h"

int oracle_ar_then_sgd(evoke_oracle_call *call) {
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
            r = oracle_sgd_momentum(&s, at % s.at.n);
        else if (!oracle_stage_answer(&s.at, call, output, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}
