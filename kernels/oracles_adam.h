/* The moments of Adam of several ranks, each of which has a shard of them, for the oracles that
 * take its step. Private to kernels/. */
#ifndef KERNELS_ORACLES_ADAM_H
#define KERNELS_ORACLES_ADAM_H

#include "kernels/oracles.h"

#include <float.h>

#define ORACLE_ADAM_OFF 8 /* as scaled_max in task.json */

typedef struct oracle_adam {
    const float *gradient, *parameter, *m, *v; /* gradients: [rank][n]; moments: [rank][shard] */
    uint64_t n, ranks, shard;
    double beta1, beta2, epsilon, correction1, correction2;
    double reach; /* error of a sum over its size, at most */
} oracle_adam;

/* An error of reach sizes is allowed. */
typedef struct oracle_moments {
    oracle_real_sized m, v;
} oracle_moments;

/* false: an argument is missing. */
static inline bool oracle_adam_read(const evoke_oracle_call *call, oracle_adam *a) {
    int64_t n = oracle_whole(call, "n"), ranks = oracle_whole(call, "ranks");
    if (n < 1 || ranks < 1)
        return false;
    *a = (oracle_adam){
        .gradient = oracle_floats(call, "gradient"),
        .parameter = oracle_floats(call, "parameter"),
        .m = oracle_floats(call, "m"),
        .v = oracle_floats(call, "v"),
        .n = (uint64_t)n,
        .ranks = (uint64_t)ranks,
        .shard = oracle_shard((uint64_t)n, (uint64_t)ranks),
        .beta1 = oracle_real(call, "beta1"),
        .beta2 = oracle_real(call, "beta2"),
        .epsilon = oracle_real(call, "epsilon"),
        .correction1 = oracle_real(call, "correction1"),
        .correction2 = oracle_real(call, "correction2"),
        .reach = ORACLE_ADAM_OFF * (double)FLT_EPSILON / 2 * sqrt((double)ranks),
    };
    return a->gradient != NULL && a->parameter != NULL && a->m != NULL && a->v != NULL;
}

/* Of parameter `i`, whose owner is rank i / shard. The square of a mean g that is off by
 * d = reach sizes is off by 2 |g| d + d^2. */
static inline oracle_moments oracle_adam_moments(const oracle_adam *a, uint64_t i) {
    oracle_sum sum = {0, 0, 0};
    for (uint64_t r = 0; r < a->ranks; r++)
        oracle_add(&sum, (double)a->gradient[r * a->n + i]);
    double g = oracle_total(&sum) / (double)a->ranks, size = sum.size / (double)a->ranks;
    double m = (double)a->m[i], v = (double)a->v[i]; /* shards stand one behind the other */
    double square = g * g + 2 * fabs(g) * size + a->reach * size * size;
    return (oracle_moments){
        .m = {a->beta1 * m + (1 - a->beta1) * g, fabs(a->beta1 * m) + fabs(1 - a->beta1) * size},
        .v = {a->beta2 * v + (1 - a->beta2) * g * g,
              fabs(a->beta2 * v) + fabs(1 - a->beta2) * square},
    };
}

/* m / correction1 over sqrt(v / correction2) + epsilon. A kernel's root may be that of any v within
 * the error allowed. Where v is known well, the quotient is farther off on the side of the least v,
 * since 1 / (sqrt(v) + epsilon) is convex; where v may be 0, on the side of the greatest. */
static inline oracle_real_sized oracle_adam_step(const oracle_adam *a, const oracle_moments *next) {
    double off = a->reach * next->v.size, least = fmax(next->v.value - off, 0);
    double below = sqrt(next->v.value / a->correction2) + a->epsilon;
    double nearest = sqrt(least / a->correction2) + a->epsilon;
    double farthest = sqrt((next->v.value + off) / a->correction2) + a->epsilon;
    double mean = next->m.value / a->correction1;
    double gap = fmax(1 / nearest - 1 / below, 1 / below - 1 / farthest);
    return (oracle_real_sized){mean / below, fabs(next->m.size / a->correction1 / nearest) +
                                                 fabs(mean) * gap / a->reach};
}

/* Element `at` of an output m or v; elements behind the last parameter stay as they are. */
static inline void oracle_adam_moment(const oracle_adam *a, bool first, uint64_t at,
                                      evoke_oracle_call *call, uint64_t k) {
    double old = (double)(first ? a->m : a->v)[at];
    oracle_real_sized kept = {old, fabs(old)};
    oracle_moments next = {kept, kept};
    if (at < a->n)
        next = oracle_adam_moments(a, at);
    call->value[k] = first ? next.m.value : next.v.value;
    call->scale[k] = first ? next.m.size : next.v.size;
}

#endif
