/* Oracle of bp_data_input_sparse_conv: the sums of oracles_conv.h over all pixels of dY. A pixel of
 * zeros adds exact zeros, since W is finite. */
#include "kernels/oracles_conv.h"

int oracle_bp_data_input_sparse_conv(evoke_oracle_call *call) {
    oracle_conv l;
    if (!oracle_conv_read(call, &l))
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        oracle_sum sum = oracle_conv_element(&l, (int64_t)(call->first + i));
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
