/* Oracle of the softmax example, in double precision: the part of an oracle that a user writes. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data;
    uint64_t columns = (uint64_t)call->arguments[2].value;
    for (uint64_t i = 0; i < call->count; i++) {
        const float *row = x + (call->first + i) / columns * columns;
        double most = row[0], sum = 0;
        for (uint64_t c = 0; c < columns; c++)
            most = fmax(most, row[c]);
        for (uint64_t c = 0; c < columns; c++)
            sum += exp(row[c] - most);
        call->value[i] = exp(row[(call->first + i) % columns] - most) / sum;
    }
    return 0;
}
