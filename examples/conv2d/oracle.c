/* Oracle of the convolution, in double precision. */
#include "evoke_oracle.h"

#include <math.h>

int evoke_oracle(evoke_oracle_call *call);

int evoke_oracle(evoke_oracle_call *call) {
    const float *x = call->arguments[0].data, *filter = call->arguments[1].data;
    uint64_t height = (uint64_t)call->arguments[3].value,
             width = (uint64_t)call->arguments[4].value;
    for (uint64_t at = 0; at < call->count; at++) {
        uint64_t pixel = call->first + at, line = pixel / width; /* of all images */
        const float *from = x + (line + line / height * 6) * (width + 6) + pixel % width;
        double sum = 0;
        for (uint64_t i = 0; i < 49; i++) {
            double term = (double)from[i / 7 * (width + 6) + i % 7] * filter[i];
            sum += term;
            call->scale[at] += fabs(term);
        }
        call->value[at] = sum;
    }
    return 0;
}
