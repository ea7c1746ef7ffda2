/* One step of Gaussian elimination, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call);

int evoke_oracle(evoke_oracle_call *call) {
    const float *factor = call->arguments[0].data, *a = call->arguments[1].data;
    uint64_t n = (uint64_t)call->arguments[2].value, pivot = (uint64_t)call->arguments[3].value;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t at = call->first + i, row = at / n, column = at % n;
        double own = a[at], term = 0;
        if (row > pivot && column >= pivot)
            term = (double)factor[row] * (double)a[pivot * n + column];
        call->value[i] = own - term;
        call->scale[i] = fabs(own) + fabs(term);
    }
    return 0;
}
