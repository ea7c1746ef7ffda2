/* Helpers of the built-in oracles: compensated sums, look-up of arguments. Private to kernels/. */
#ifndef KERNELS_ORACLES_H
#define KERNELS_ORACLES_H

#include "kernels/evoke_oracle.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ORACLE(name, doc) evoke_oracle_fn oracle_##name;
#include "kernels/oracles.def"
#undef ORACLE

/* A sum with its rounding errors kept apart (A. Neumaier, "Rundungsfehleranalyse einiger Verfahren
 * zur Summation endlicher Summen", 1974), and the sum of the terms' sizes beside it. */
typedef struct oracle_sum {
    double sum, rest, size;
} oracle_sum;

static inline void oracle_add(oracle_sum *s, double term) {
    double next = s->sum + term;
    if (fabs(s->sum) >= fabs(term))
        s->rest += (s->sum - next) + term;
    else
        s->rest += (term - next) + s->sum;
    s->sum = next;
    s->size += fabs(term);
}

static inline double oracle_total(const oracle_sum *s) {
    return s->sum + s->rest;
}

/* The sum of the squares of `count` numbers. */
static inline double oracle_squares(const float *v, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)v[i] * (double)v[i];
    return sum;
}

/* A number, and its size: an error of some units of that size is allowed. */
typedef struct oracle_real_sized {
    double value, size;
} oracle_real_sized;

/* Elements of a rank's share of n: equal parts, rounded up to whole fours. */
static inline uint64_t oracle_shard(uint64_t n, uint64_t ranks) {
    return ((n + ranks - 1) / ranks + 3) / 4 * 4;
}

/* The argument with that name; NULL if the task file does not have it. */
static inline const evoke_argument *oracle_argument(const evoke_oracle_call *call,
                                                    const char *name) {
    for (size_t i = 0; i < call->argument_count; i++) {
        if (strcmp(call->arguments[i].name, name) == 0)
            return &call->arguments[i];
    }
    return NULL;
}

/* A buffer of any float type, for evoke_element; NULL if it is not there, or holds integers. */
static inline const evoke_argument *oracle_reals(const evoke_oracle_call *call, const char *name) {
    const evoke_argument *a = oracle_argument(call, name);
    bool is_float = a != NULL && (a->type[0] == 'f' || a->type[0] == 'b');
    return is_float && a->data != NULL ? a : NULL;
}

static inline const float *oracle_floats(const evoke_oracle_call *call, const char *name) {
    const evoke_argument *a = oracle_argument(call, name);
    return a != NULL && strcmp(a->type, "f32") == 0 ? (const float *)a->data : NULL;
}

/* A whole scalar; -1 if it is not there. */
static inline int64_t oracle_whole(const evoke_oracle_call *call, const char *name) {
    const evoke_argument *a = oracle_argument(call, name);
    return a != NULL ? (int64_t)a->value : -1;
}

/* An f32 scalar as the kernel gets it; NAN if it is not there. */
static inline double oracle_real(const evoke_oracle_call *call, const char *name) {
    const evoke_argument *a = oracle_argument(call, name);
    return a != NULL ? (double)(float)a->value : (double)NAN;
}

#endif
