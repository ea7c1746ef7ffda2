/* What the oracles of fused collectives share: the mean gradient of several ranks, and what a
 * launch leaves in stages and flags. Private to kernels/.
 *
 * Rank r owns shard r of n parameters. The stage of a rank has a row for each sender; the own row
 * stays as it is. */
#ifndef KERNELS_ORACLES_STAGE_H
#define KERNELS_ORACLES_STAGE_H

#include "kernels/oracles.h"

typedef struct oracle_stage {
    const float *gradient, *stage; /* [rank][n]; [rank][sender][shard] */
    uint64_t n, ranks, shard;
} oracle_stage;

/* false: an argument is missing. */
static inline bool oracle_stage_read(const evoke_oracle_call *call, oracle_stage *s) {
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    if (n < 1 || ranks < 1)
        return false;
    *s = (oracle_stage){.gradient = oracle_floats(call, "gradient"),
                        .stage = oracle_floats(call, "stage"),
                        .n = (uint64_t)n,
                        .ranks = (uint64_t)ranks,
                        .shard = oracle_shard((uint64_t)n, (uint64_t)ranks)};
    return s->gradient != NULL && s->stage != NULL;
}

/* Of parameter `i`, over all ranks. */
static inline oracle_real_sized oracle_stage_mean(const oracle_stage *s, uint64_t i) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < s->ranks; r++)
        oracle_add(&sum, (double)s->gradient[r * s->n + i]);
    return (oracle_real_sized){oracle_total(&sum) / (double)s->ranks, sum.size / (double)s->ranks};
}

/* Element `at` of output stage or flags; false: the output is another one. */
static inline bool oracle_stage_answer(const oracle_stage *s, const evoke_oracle_call *call,
                                       const char *output, uint64_t at, oracle_real_sized *r) {
    if (strcmp(output, "stage") == 0) {
        uint64_t owner = at / (s->ranks * s->shard), sender = at / s->shard % s->ranks;
        uint64_t i = owner * s->shard + at % s->shard;
        bool is_sent = sender != owner && i < s->n;
        r->value = (double)(is_sent ? s->gradient[sender * s->n + i] : s->stage[at]);
    } else if (strcmp(output, "flags") == 0) {
        r->value = 2 * (double)oracle_whole(call, "epoch");
    } else {
        return false;
    }
    r->size = fabs(r->value);
    return true;
}

#endif
