/* Population: the members of one island, selected on (time, error).
 *
 * Ranks and crowding distances are those of NSGA-II (Deb et al., "A Fast and Elitist Multiobjective
 * Genetic Algorithm", 2002): rank 0 is the front, the crowding of a member is the size of the gap
 * around the member. The population is steady-state: a newcomer replaces the worst member. The
 * elite, which is the fastest member, is never replaced. */
#ifndef TUNER_SEARCH_POPULATION_H
#define TUNER_SEARCH_POPULATION_H

#include "base/pcg.h"
#include "base/status.h"

#include "fitness/gates/score.h"
#include "ir/genome.h"

#include <stddef.h>
#include <stdint.h>

/* How the fast code of a variant ran, for the estimates of its children; 0: not known. */
typedef struct sketched {
    double whole; /* modelled ns at full shape (score.whole_ns), or scaled from the small cases */
    double near;  /* small_run.sketch where `whole` was modelled; a child near it is not modelled */
    double due;   /* least ns at full shape of fast code that gained nothing since LLVM built an
                     ancestor: a child that takes as long is estimated, and not built */
} sketched;

/* A count of each structural edit, from IR_EDIT_LOCAL_COUNT on. */
typedef struct structural_counts {
    uint8_t of[IR_EDIT_COUNT - IR_EDIT_LOCAL_COUNT];
} structural_counts;

typedef struct member {
    uint64_t child;
    const ir_genome *genome; /* a reference that the population owns */
    size_t edits;
    double ns, error;
    uint32_t registers; /* of a thread; 0: not known */
    small_run small;
    sketched sketch;
    uint64_t missed; /* of a skeleton: structural edits that found no place on it, a bit each from
                        IR_EDIT_LOCAL_COUNT on */
    size_t reduced;  /* of a skeleton: so many of its edits have been left out on trial */
    size_t tuned;    /* of a skeleton: so many of its neighbours were tried (ir_genome_neighbour) */
    size_t limited;  /* of a skeleton: so many limits of its registers were tried */
    uint64_t extended; /* of a skeleton: the edits of others that it was tried with, a bit each */
    size_t set;        /* of a skeleton: so many of its macros' next values were tried */
    uint64_t met;      /* of a skeleton: the settings of others that it was tried at, a bit each */
    uint64_t gained;   /* of a skeleton: the gains of others that it was tried with, a bit each */
    structural_counts opened; /* of a skeleton: how often each edit that opens was tried on it */
    structural_counts placed; /* of a leader: how often each structural edit was tried on it */
    uint64_t outline;         /* of a skeleton in a pool: ir_genome_outline */
    uint64_t extent;          /* of a skeleton in a pool: ir_genome_extent */
    unsigned rank;
    double crowding; /* infinite at the ends of its rank */
} member;

typedef struct population {
    member *members;
    size_t count, capacity;
} population;

ev_status population_begin(population *p, size_t capacity, ev_error *err) EV_CHECKED;
void population_end(population *p);
/* Adds a member with a new reference to its genome. Of too many members of equal time and error the
 * oldest goes; of too many members the worst. */
void population_insert(population *p, const member *m);
/* Keeps the elite alone. */
void population_restart(population *p);
const member *population_best(const population *p); /* the elite; NULL: empty */
/* The winner of a tournament; NULL: the population is empty. */
const member *population_select(const population *p, ev_pcg *rng);
/* Sets rank and crowding of all members. */
void population_rank(member *members, size_t count);

#endif
