/* Oracle of sd_lstm_bp_data and sd_lstm_bp_data_f16: dX[b, h] = scale times the sum over j of
 * dG[b, j] W[j, h] where neuron h is kept, exactly zero where it is not. A product of two halves is
 * exact in double.
 *
 * The scale of an element is the sum of the sizes of its terms. A half is rounded once behind a sum
 * in float, by half a unit of the least normal number at least: below that number, halves are
 * subnormal, and their units no longer shrink with them. */
#include "kernels/oracles.h"

#define LEAST_HALF 0x1p-14

/* Whether `h` is among the `k` ascending numbers. */
static bool is_kept(const int32_t *kept, uint64_t k, uint64_t h) {
    uint64_t low = 0, high = k;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if ((uint64_t)kept[middle] < h)
            low = middle + 1;
        else
            high = middle;
    }
    return low < k && (uint64_t)kept[low] == h;
}

int oracle_sd_lstm_bp_data(evoke_oracle_call *call) {
    const evoke_argument *kept = oracle_argument(call, "kept");
    const evoke_argument *dG = oracle_reals(call, "dG"), *W = oracle_reals(call, "W");
    int64_t H = oracle_whole(call, "H"), k = oracle_whole(call, "k");
    double keep_scale = oracle_real(call, "scale");
    if (kept == NULL || strcmp(kept->type, "s32") != 0 || kept->data == NULL || dG == NULL ||
        W == NULL || H < 1 || k < 0)
        return 1;
    double least = strcmp(call->arguments[call->output].type, "f16") == 0 ? LEAST_HALF : 0;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, b = at / (uint64_t)H, h = at % (uint64_t)H;
        uint64_t J = 4 * (uint64_t)H;
        bool kept_here = is_kept(kept->data, (uint64_t)k, h);
        oracle_sum sum = {0, 0, 0};
        for (uint64_t j = 0; j < J && kept_here; j++)
            oracle_add(&sum, evoke_element(dG, b * J + j) * evoke_element(W, j * (uint64_t)H + h));
        call->value[i] = keep_scale * oracle_total(&sum);
        call->scale[i] = fabs(keep_scale) * sum.size + (kept_here ? least : 0);
    }
    return 0;
}
