/* Oracle of bp_data_masked: dX[M, N] = dY[M, K] W[K, N], exactly zero where X[M, N] is not above
 * zero. */
#include "kernels/oracles.h"

int oracle_bp_data_masked(evoke_oracle_call *call) {
    const float *dY = oracle_floats(call, "dY"), *W = oracle_floats(call, "W");
    const float *X = oracle_floats(call, "X");
    int64_t N = oracle_whole(call, "N"), K = oracle_whole(call, "K");
    if (dY == NULL || W == NULL || X == NULL || N < 1 || K < 0)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, m = at / (uint64_t)N, n = at % (uint64_t)N;
        call->value[i] = 0;
        call->scale[i] = 0;
        if (!(X[at] > 0.0f))
            continue;
        oracle_sum sum = {0, 0, 0};
        for (uint64_t k = 0; k < (uint64_t)K; k++)
            oracle_add(&sum, (double)dY[m * (uint64_t)K + k] * (double)W[k * (uint64_t)N + n]);
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    return 0;
}
