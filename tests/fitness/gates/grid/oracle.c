/* One and two steps of smoothing, and the number of blocks that arrived. */
#include "evoke_oracle.h"

#define BLOCK 128

int evoke_oracle(evoke_oracle_call *call);

static double at(const float *x, int64_t i, int64_t n) {
    int64_t inside = i < 0 ? 0 : i;
    return x[inside < n ? inside : n - 1];
}

static double once(const float *x, int64_t i, int64_t n) {
    int64_t own = i < 0 ? 0 : i;
    own = own < n ? own : n - 1;
    return (at(x, own - 1, n) + at(x, own, n) + at(x, own + 1, n)) / 3;
}

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    int64_t n = (int64_t)call->arguments[4].value;
    for (uint64_t k = 0; k < call->count; k++) {
        int64_t i = (int64_t)(call->first + k);
        double two = (once(x, i - 1, n) + once(x, i, n) + once(x, i + 1, n)) / 3;
        double value = call->output == 1 ? once(x, i, n) : two;
        call->value[k] = call->output == 3 ? (double)((n + BLOCK - 1) / BLOCK) : value;
    }
    return 0;
}
