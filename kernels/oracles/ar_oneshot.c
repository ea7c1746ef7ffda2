/* Oracle of ar_oneshot: the sum of the ranks' numbers on every rank; the half of the stage that the
 * launch uses holds the rank's own numbers, and the flags the launch's number. */
#include "kernels/oracles.h"

typedef struct oneshot {
    const float *input, *stage;
    uint64_t n, ranks, epoch, pitch;
} oneshot;

static void sum_of(const oneshot *s, uint64_t at, evoke_oracle_call *call, uint64_t k) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < s->ranks; r++)
        oracle_add(&sum, (double)s->input[r * s->n + at % s->n]);
    call->value[k] = oracle_total(&sum);
    call->scale[k] = sum.size;
}

static void stage_of(const oneshot *s, uint64_t at, evoke_oracle_call *call, uint64_t k) {
    uint64_t rank = at / (2 * s->pitch), half = at / s->pitch % 2, i = at % s->pitch;
    bool is_used = half == s->epoch % 2 && i < s->n;
    call->value[k] = (double)(is_used ? s->input[rank * s->n + i] : s->stage[at]);
    call->scale[k] = fabs(call->value[k]);
}

int oracle_ar_oneshot(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    int64_t epoch = oracle_whole(call, "epoch");
    const oneshot s = {.input = oracle_floats(call, "input"),
                       .stage = oracle_floats(call, "stage"),
                       .n = (uint64_t)n,
                       .ranks = (uint64_t)ranks,
                       .epoch = (uint64_t)epoch,
                       .pitch = ((uint64_t)n + 3) / 4 * 4};
    if (s.input == NULL || s.stage == NULL || n < 1 || ranks < 1 || epoch < 1)
        return 1;
    bool is_sum = strcmp(output, "output") == 0, is_stage = strcmp(output, "stage") == 0;
    if (!is_sum && !is_stage && strcmp(output, "flags") != 0)
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        if (is_sum)
            sum_of(&s, call->first + k, call, k);
        else if (is_stage)
            stage_of(&s, call->first + k, call, k);
        else
            call->value[k] = call->scale[k] = (double)s.epoch;
    }
    return 0;
}
