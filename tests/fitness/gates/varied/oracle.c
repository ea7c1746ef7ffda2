/* What varied.cu computes, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

enum { X, Y, SUMS, LARGE, A, TERMS = 16 };

static double sum_of(const float *x) {
    double sum = 0;
    for (int i = 0; i < TERMS; i++)
        sum += x[i];
    return sum;
}

static double value_of(double v, double a) {
    if (isnan(v))
        return 5;
    return v < 0 ? -1 : sqrt(v) * a + 1e-9 * v * v * v;
}

int evoke_oracle(evoke_oracle_call *call);
int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[X].data;
    double a = call->arguments[A].value;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i;
        if (call->output == SUMS)
            call->value[i] = sum_of(x + at * TERMS);
        else if (call->output == LARGE)
            call->value[i] = ldexp((double)x[at], 100);
        else
            call->value[i] = value_of(x[at], a) * (x[at] == x[at ^ 1] ? 3 : 1);
    }
    return 0;
}
