/* Population: the members of one island, on the front of (time, error).
 *
 * Ranks and crowding as in NSGA-II (Deb et al., "A Fast and Elitist Multiobjective Genetic
 * Algorithm", 2002): rank 0 is the front, crowding the size of the gap around a member. A steady
 * population: each newcomer pushes out the worst, but never the fastest. */
#ifndef TUNER_SEARCH_POPULATION_H
#define TUNER_SEARCH_POPULATION_H

#include "base/pcg.h"
#include "base/status.h"

#include "fitness/gates/score.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* How a variant's sketch ran, as far as the times of its children hang on it; 0: not known. */
typedef struct sketched {
    double whole; /* modelled ns at full shape (score.whole_ns), or reckoned from the small cases */
    double near;  /* small_run.sketch where `whole` was timed: a child near it need not be */
    double due; /* a child's sketch that takes as long at full shape is not built: it has gained too
                   little since LLVM built an ancestor */
} sketched;

typedef struct member {
    uint64_t child;
    json_t *genome; /* a reference of its own */
    size_t edits;
    double ns, error;
    small_run small;
    sketched sketch;
    unsigned rank;
    double crowding; /* infinite at the ends of its rank */
} member;

typedef struct population {
    member *members;
    size_t count, capacity;
} population;

ev_status population_begin(population *p, size_t capacity, ev_error *err) EV_CHECKED;
void population_end(population *p);
/* Takes a reference to the genome. Members of equal time and error are kept few: the oldest of them
 * makes room. */
void population_insert(population *p, const member *m);
/* Keeps the fastest alone. */
void population_restart(population *p);
const member *population_best(const population *p); /* fewest ns; NULL: empty */
/* A tournament; NULL: empty. */
const member *population_select(const population *p, ev_pcg *rng);
/* Sets rank and crowding of all. */
void population_rank(member *members, size_t count);

#endif
