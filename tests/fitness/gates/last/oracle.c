/* The parts of a sum, the sum, and the number of blocks that took a ticket. */
#include "evoke_oracle.h"

#include <math.h>

#define BLOCK 128

int evoke_oracle(evoke_oracle_call *call);

static double add(const float *x, uint64_t first, uint64_t end, double *scale) {
    double sum = 0;
    for (uint64_t i = first; i < end; i++) {
        sum += x[i];
        *scale += fabs(x[i]);
    }
    return sum;
}

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    uint64_t n = (uint64_t)call->arguments[4].value, blocks = (n + BLOCK - 1) / BLOCK;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t first = call->output == 1 ? (call->first + i) * BLOCK : 0;
        uint64_t end = call->output == 1 && first + BLOCK < n ? first + BLOCK : n;
        call->value[i] = call->output == 3 ? (double)blocks : add(x, first, end, &call->scale[i]);
    }
    return 0;
}
