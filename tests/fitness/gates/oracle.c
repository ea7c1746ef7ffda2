/* y = a x + b, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call);

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    double a = call->arguments[2].value, b = call->arguments[3].value;
    for (uint64_t i = 0; i < call->count; i++) {
        double term = a * (double)x[call->first + i];
        call->value[i] = term + b;
        call->scale[i] = fabs(term) + fabs(b);
    }
    return 0;
}
