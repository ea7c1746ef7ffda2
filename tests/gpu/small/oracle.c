/* The oracle of the small task. */
#include "evoke_oracle.h"
int evoke_oracle(evoke_oracle_call *call);
int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    for (uint64_t i = 0; i < call->count; i++)
        call->value[i] = 2.0 * x[call->first + i];
    return 0;
}
