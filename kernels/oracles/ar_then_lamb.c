/* Oracle of ar_then_lamb: as that of ar_fused_lamb, with the moments of all parameters on every
 * rank, and without norms, which no rank sends. */
#include "kernels/oracles_lamb.h"

static bool rest_of(const oracle_lamb *l, const evoke_oracle_call *call, uint64_t at,
                    oracle_real_sized *r) {
    return oracle_stage_answer(&l->at, call, call->arguments[call->output].name, at, r);
}

int oracle_ar_then_lamb(evoke_oracle_call *call) {
    return oracle_lamb_answer(call, true, rest_of);
}
