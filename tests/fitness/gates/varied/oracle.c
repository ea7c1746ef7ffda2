/* What varied.cu computes, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

enum { X, Y, SUMS, INVERSE, A, TERMS = 16 };

static double sum_of(const float *x) {
    double sum = 0;
    for (int i = 0; i < TERMS; i++)
        sum += fabs(x[i]) <= 1e30 ? x[i] : 0;
    return sum;
}

static double size_of(const float *x) {
    double size = 0;
    for (int i = 0; i < TERMS; i++)
        size += fabs(x[i]) <= 1e30 ? fabs(x[i]) : 0;
    return size;
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
        if (call->output == SUMS) {
            call->value[i] = sum_of(x + at * TERMS);
            call->scale[i] = size_of(x + at * TERMS);
        } else if (call->output == INVERSE) {
            call->value[i] = (double)1e-30f / (double)x[at];
        } else {
            call->value[i] = value_of(x[at], a) * (x[at] == x[at ^ 1] ? 3 : 1);
        }
    }
    return 0;
}
