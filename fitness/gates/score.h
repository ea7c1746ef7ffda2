/* Score: what the gates found out about one variant; a plain value with a JSON form. On the VM it
 * is a pure function of (PTX, launch, task, device). */
#ifndef FITNESS_GATES_SCORE_H
#define FITNESS_GATES_SCORE_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/vm/vm.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gate {
#define GATE(number, id, name, meaning) GATE_##id = number,
#include "fitness/gates/gates.def"
#undef GATE
    GATE_COUNT,
    GATE_NONE = GATE_COUNT /* not stopped */
} gate;

const char *gate_name(gate g); /* "none" for GATE_NONE */
const char *gate_meaning(gate g);
bool gate_find(const char *name, gate *out);

/* Accuracy at one case, the worst over its outputs. `normalised` is the largest ratio of a
 * metric to its limit; a value of at most 1 passes. `normalised` is infinite if an output
 * contains an unexpected NaN or infinity. */
typedef struct accuracy {
    double relative_l2;
    double scaled_max;
    double max_abs;
    double max_ulp;
    double normalised;
    uint64_t checked;   /* elements */
    uint64_t unwritten; /* elements of outputs that were never written */
    uint64_t not_zero;  /* elements that had to be exactly zero and are not */
    uint64_t not_finite;
} accuracy;

typedef struct score_case {
    char name[96];
    double ns; /* 0 for a case that is not timed */
    double low_ns, high_ns;
    double floor_ns; /* no GPU of the kind could be faster; 0: not known here, or not timed */
    /* The baseline's, timed by turns with it; 0: not measured at that time. */
    double baseline_ns, baseline_low_ns, baseline_high_ns;
    double sm_mhz;     /* the GPU's SM clock meanwhile; 0: not known */
    double discarded;  /* samples thrown away, taken while it was lower than it can be */
    double error;      /* relative L2 */
    double normalised; /* see accuracy */
} score_case;

#define SCORE_MAX_CASES 16

/* How all of the search's small cases ran. */
typedef struct small_run {
    double sketch, built; /* modelled ns: of the sketch, and of what LLVM built; 0: not known */
    double first;         /* of the sketch, the first of those that have a time; 0: not known */
    double error;         /* worst relative L2 */
    double whole;         /* of the sketch over the timed cases: score.whole_ns; 0: not known */
} small_run;

/* What a sketch of the candidate, code made in haste, said before it was built. */
typedef enum score_sketch {
    SKETCH_NOTHING, /* it was right, or there was none */
    SKETCH_STOPPED, /* it was wrong, and the candidate was not built */
    SKETCH_IGNORED  /* it was wrong, and the candidate was built all the same */
} score_sketch;

typedef struct score {
    gate stopped;     /* GATE_NONE: passed all gates that were asked for */
    char reason[600]; /* one line; "" when not stopped */
    char trap[40];    /* name of the trap, where there was one */
    /* Geometric mean over the timed cases; 0 when not timed. Where the search measured it: less
     * what the baseline drifted since it was timed first; the cases are as measured. */
    double ns;
    double baseline_ns; /* the same of the baseline at that time; 0: not measured then */
    double error;       /* worst relative L2 over the cases so far */
    double normalised;  /* worst */
    uint32_t registers;
    double occupancy;             /* warps per SM / max, at the first timed case */
    uint64_t thread_instructions; /* executed by all gates */
    double small_ns;  /* sum of the modelled times of the search's small cases; 0: not known */
    double sketch_ns; /* the same of the candidate's sketch, where there was one */
    double first_ns;  /* of the first of them alone, the sketch's where there was one */
    /* Geometric mean of the sketch's modelled times over the timed cases; 0: it was not timed. */
    double whole_ns;
    bool estimated; /* passed by its sketch alone, which gained nothing: it was not built, and its
                       time is to be reckoned from whole_ns and its parent's */
    bool filtered;  /* stopped by the cheap filter, which may be wrong, and by no gate's own word */
    score_sketch sketch;
    /* SHA-256 of how the small cases ran: their modelled times, their errors, and what the code
     * takes of the GPU; "": not modelled, or not all of them passed. Equal code has equal ones. */
    char likeness[EV_SHA256_HEX];
    bool recalled; /* candidate.is_known knew it: the timed cases were not run */
    size_t case_count;
    score_case cases[SCORE_MAX_CASES];
} score;

/* Turns the score of a sketch into the score of its candidate: the times of the sketch move to
 * sketch_ns and whole_ns, and the cases lose their times. */
void score_take_sketch(score *s);

/* Adds what a virtual machine found of the same variant before a GPU timed it (candidate.screens):
 * errors, the worse of both; modelled times of the small cases, which a GPU does not have. */
void score_add_screening(score *s, const score *screening);

/* The times of cases that did not run are 0. */
small_run score_small_run(const score *s);
/* The filter: whether small cases of so many ns and such an error take longer than `reach_ns` (0:
 * nothing does) and are no more accurate than `reach_error`. */
bool score_out_of_reach(double ns, double error, double reach_ns, double reach_error);

json_t *score_to_json(const score *s); /* new reference; NULL: out of memory */
ev_status score_from_json(const json_t *json, score *out, ev_error *err) EV_CHECKED;

#endif
