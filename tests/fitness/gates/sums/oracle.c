/* What sums.cu computes, in double precision, with the sums of the terms' sizes. */
#include "evoke_oracle.h"

#include <math.h>

enum { X, Y, N, K };

int evoke_oracle(evoke_oracle_call *call);
int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[X].data;
    int k = (int)call->arguments[K].value;
    for (uint64_t i = 0; i < call->count; i++) {
        double sum = 0, scale = 0;
        for (int t = 0; t < k; t++) {
            double term = x[(call->first + i) * (uint64_t)k + (uint64_t)t];
            sum += term;
            scale += fabs(term);
        }
        call->value[i] = sum;
        call->scale[i] = scale;
    }
    return 0;
}
