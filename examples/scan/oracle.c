/* The sums in double precision. Asked for elements first .. first + count - 1, it adds up all
 * before them as well. */
#include "evoke_oracle.h"

int evoke_oracle(evoke_oracle_call *call);
int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    double sum = 0, sizes = 0;
    for (uint64_t i = 0; i < call->first + call->count; i++) {
        sum += x[i];
        sizes += x[i] < 0 ? -(double)x[i] : (double)x[i];
        if (i >= call->first) {
            call->value[i - call->first] = sum;
            call->scale[i - call->first] = sizes;
        }
    }
    return 0;
}
