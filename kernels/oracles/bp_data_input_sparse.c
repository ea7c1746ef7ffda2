/* Oracle of bp_data_input_sparse: dX[M, N] = dY[M, K] W[K, N]. */
#include "kernels/oracles.h"

int oracle_bp_data_input_sparse(evoke_oracle_call *call) {
    const evoke_argument *dY = oracle_reals(call, "dY"), *W = oracle_reals(call, "W");
    int64_t N = oracle_whole(call, "N"), K = oracle_whole(call, "K");
    if (dY == NULL || W == NULL || N < 1 || K < 0)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, m = at / (uint64_t)N, n = at % (uint64_t)N;
        oracle_sum sum = {0, 0, 0};
        for (uint64_t k = 0; k < (uint64_t)K; k++)
            oracle_add(&sum, evoke_element(dY, m * (uint64_t)K + k) *
                                 evoke_element(W, k * (uint64_t)N + n));
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
