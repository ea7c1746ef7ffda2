/* Oracle of ar_ring: the sum of the ranks' numbers on every rank; an inbox holds the sums so far
 * that the rank before sent, and the flags the messages of all launches.
 *
 * Slice j of the elements starts at rank j, so rank r gets the sum over ranks j, j + 1, ..., r - 1
 * of it, and never gets slice r. */
#include "kernels/oracles.h"

typedef struct ring {
    const float *input, *inbox;
    uint64_t n, ranks, pitch, slice;
} ring;

/* Of element i, over `count` ranks from `first` on. */
static void sum_of(const ring *s, uint64_t i, uint64_t first, uint64_t count,
                   evoke_oracle_call *call, uint64_t k) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < count; r++)
        oracle_add(&sum, (double)s->input[(first + r) % s->ranks * s->n + i]);
    call->value[k] = oracle_total(&sum);
    call->scale[k] = sum.size;
}

static void inbox_of(const ring *s, uint64_t at, evoke_oracle_call *call, uint64_t k) {
    uint64_t rank = at / s->pitch, i = at % s->pitch, start = i / s->slice;
    if (i < s->n && start != rank) {
        sum_of(s, i, start, (rank + s->ranks - start) % s->ranks, call, k);
        return;
    }
    call->value[k] = (double)s->inbox[at];
    call->scale[k] = fabs(call->value[k]);
}

int oracle_ar_ring(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    int64_t epoch = oracle_whole(call, "epoch");
    if (n < 1 || ranks < 2 || epoch < 1)
        return 1;
    const ring s = {.input = oracle_floats(call, "input"),
                    .inbox = oracle_floats(call, "inbox"),
                    .n = (uint64_t)n,
                    .ranks = (uint64_t)ranks,
                    .pitch = ((uint64_t)n + 3) / 4 * 4,
                    .slice = oracle_shard((uint64_t)n, (uint64_t)ranks)};
    bool is_sum = strcmp(output, "output") == 0, is_inbox = strcmp(output, "inbox") == 0;
    if (s.input == NULL || s.inbox == NULL ||
        (!is_sum && !is_inbox && strcmp(output, "flags") != 0))
        return 1;
    for (uint64_t k = 0; k < call->count; k++) {
        if (is_sum)
            sum_of(&s, (call->first + k) % s.n, 0, s.ranks, call, k);
        else if (is_inbox)
            inbox_of(&s, call->first + k, call, k);
        else
            call->value[k] = call->scale[k] = (double)epoch * 2 * (double)(ranks - 1);
    }
    return 0;
}
