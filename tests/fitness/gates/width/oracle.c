/* Sums of eight neighbours, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call);

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    for (uint64_t i = 0; i < call->count; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < 8; k++) {
            double one = x[8 * (call->first + i) + k];
            sum += one;
            call->scale[i] += fabs(one);
        }
        call->value[i] = sum;
    }
    return 0;
}
