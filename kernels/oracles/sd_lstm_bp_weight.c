/* Oracle of sd_lstm_bp_weight and sd_lstm_bp_weight_f16: dW[j, h] gains scale times the sum over b
 * of dG[b, j] X[b, h] where neuron h is kept, and stays as it is where it is not. A product of two
 * halves is exact in double. */
#include "kernels/oracles.h"

#include <stdlib.h>

/* A byte a neuron: 1 where it is kept. NULL: out of memory. */
static unsigned char *mark_kept(const int32_t *kept, uint64_t k, uint64_t H) {
    unsigned char *is_kept = calloc(H, 1);
    for (uint64_t n = 0; is_kept != NULL && n < k; n++) {
        if (kept[n] >= 0 && (uint64_t)kept[n] < H)
            is_kept[kept[n]] = 1;
    }
    return is_kept;
}

int oracle_sd_lstm_bp_weight(evoke_oracle_call *call) {
    const evoke_argument *kept = oracle_argument(call, "kept");
    const evoke_argument *dG = oracle_reals(call, "dG"), *X = oracle_reals(call, "X");
    const float *dW = oracle_floats(call, "dW");
    int64_t B = oracle_whole(call, "B"), units = oracle_whole(call, "H");
    int64_t k = oracle_whole(call, "k");
    double keep_scale = oracle_real(call, "scale");
    if (kept == NULL || strcmp(kept->type, "s32") != 0 || kept->data == NULL || dG == NULL ||
        X == NULL || dW == NULL || B < 0 || units < 1 || k < 0)
        return 1;
    uint64_t H = (uint64_t)units;
    unsigned char *is_kept = mark_kept(kept->data, (uint64_t)k, H);
    if (is_kept == NULL)
        return 1;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, j = at / H, h = at % H;
        oracle_sum sum = {0, 0, 0};
        oracle_add(&sum, (double)dW[at]);
        for (uint64_t b = 0; b < (uint64_t)B && is_kept[h]; b++)
            oracle_add(&sum,
                       keep_scale * evoke_element(dG, b * 4 * H + j) * evoke_element(X, b * H + h));
        call->value[i] = oracle_total(&sum);
        call->scale[i] = sum.size;
    }
    free(is_kept);
    return 0;
}
