/* Oracle of the matrix product, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call);

int evoke_oracle(evoke_oracle_call *call) {
    const float *a = call->arguments[0].data, *b = call->arguments[1].data;
    uint64_t n = (uint64_t)call->arguments[4].value, k = (uint64_t)call->arguments[5].value;
    for (uint64_t at = 0; at < call->count; at++) {
        const float *row = a + (call->first + at) / n * k, *column = b + (call->first + at) % n;
        double sum = 0;
        for (uint64_t i = 0; i < k; i++) {
            sum += (double)row[i] * column[i * n];
            call->scale[at] += fabs((double)row[i] * column[i * n]);
        }
        call->value[at] = sum;
    }
    return 0;
}
