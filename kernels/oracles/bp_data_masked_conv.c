/* Oracle of bp_data_masked_conv: the sums of oracles_conv.h, exactly zero where X[n, y, x, c] is
 * not above zero. */
#include "kernels/oracles_conv.h"

int oracle_bp_data_masked_conv(evoke_oracle_call *call) {
    const evoke_argument *X = oracle_reals(call, "X");
    oracle_conv l;
    if (!oracle_conv_read(call, &l) || X == NULL)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        int64_t at = (int64_t)(call->first + i);
        call->value[i] = 0;
        call->scale[i] = 0;
        if (!(evoke_element(X, (uint64_t)at) > 0))
            continue;
        oracle_sum sum = oracle_conv_element(&l, at);
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
