/* Score: the findings of the gates on one variant, a plain value with a JSON form. On the VM a
 * score is a pure function of (PTX, launch, task, device). */
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
    /* Relative L2 and its limit of the output that is farthest over its limit. */
    double over_l2, allowed_l2;
    double over_abs, allowed_abs; /* the same of the largest error, where there is such a limit */
    double scaled_max;
    double max_abs;
    double max_ulp;
    double normalised;
    uint64_t checked;   /* elements */
    uint64_t unwritten; /* elements of outputs that were never written */
    uint64_t spoilt;    /* padding elements that were written */
    uint64_t not_zero;  /* elements that had to be exactly zero and are not */
    uint64_t not_exact; /* whole numbers that differ from the answer */
    uint64_t not_finite;
} accuracy;

typedef struct score_case {
    char name[96];
    double ns; /* 0 for a case that is not timed */
    double low_ns, high_ns;
    double floor_ns; /* least time of what was executed on any GPU of the kind, for gate 6; 0: not
                        known, or not timed. The floor by the task's work is in floor.h */
    /* The baseline's times, by turns with the variant's; 0: not measured then. */
    double baseline_ns, baseline_low_ns, baseline_high_ns;
    double sm_mhz;     /* the GPU's SM clock during the samples; 0: not known */
    double discarded;  /* number of samples discarded for a lowered clock */
    double error;      /* relative L2 */
    double normalised; /* see accuracy */
} score_case;

#define SCORE_MAX_CASES 16

/* Times and error of the search's small cases. */
typedef struct small_run {
    double sketch, built; /* modelled ns: of the fast code, of LLVM's code; 0: not known */
    double first; /* modelled ns of the fast code at the first timed small case; 0: not known */
    double error; /* worst relative L2 */
    double whole; /* of the fast code over the timed cases: score.whole_ns; 0: not known */
} small_run;

/* Verdict of the candidate's fast code, before LLVM built the candidate. */
typedef enum score_sketch {
    SKETCH_NOTHING, /* correct, or no fast code */
    SKETCH_STOPPED, /* wrong; the candidate was not built */
    SKETCH_IGNORED  /* wrong; the candidate was built nevertheless, as an audit */
} score_sketch;

typedef struct score {
    gate stopped;     /* GATE_NONE: passed all gates that were run */
    char reason[600]; /* one line; "" if not stopped */
    char trap[40];    /* name of the trap, if any */
    /* Geometric mean over the timed cases; 0: not timed. Of the search's cases, drawn half-way to
     * the one with the least gain on the baseline (gates.c). A measured time is corrected for the
     * drift of the baseline since its first timing; the times of the cases are as measured. */
    double ns;
    double baseline_ns; /* the baseline's mean at the same time; 0: not measured then */
    double error;       /* worst relative L2 over the cases so far */
    double normalised;  /* worst */
    uint32_t registers;
    double occupancy;             /* warps per SM / max, at the first timed case */
    uint64_t thread_instructions; /* executed by all gates */
    double small_ns;  /* sum of the modelled times of the search's small cases; 0: not known */
    double sketch_ns; /* as small_ns, for the candidate's fast code; 0: none */
    double first_ns;  /* modelled time of the first small case, of the fast code if there is some */
    /* Geometric mean of the fast code's modelled times over the timed cases; 0: not timed. */
    double whole_ns;
    bool estimated; /* the fast code passed and gained nothing, so LLVM did not build the candidate.
                       Its time is estimated from whole_ns and its parent's time */
    bool filtered;  /* stopped by the filter, which may be wrong, not by a gate */
    score_sketch sketch;
    /* Behavioural fingerprint: SHA-256 of how the small cases ran (modelled times, errors,
     * resources).
     * "": not modelled, or not all small cases passed. Equal code has equal fingerprints. */
    char fingerprint[EV_SHA256_HEX];
    bool recalled; /* candidate.is_known returned true: the timed cases were not run */
    size_t case_count;
    score_case cases[SCORE_MAX_CASES];
} score;

/* Turns the score of fast code into the score of its candidate. The fast code's times move to
 * sketch_ns and whole_ns; the cases lose their times. */
void score_take_sketch(score *s);

/* Adds the screening's score of the same variant (candidate.screens) to the GPU's: the worse of
 * both errors, and the modelled times of the small cases. */
void score_add_screening(score *s, const score *screening);

/* The times of cases that did not run are 0. */
small_run score_small_run(const score *s);
/* The filter: true if `ns`, of the small cases, exceeds `reach_ns` and `error` is no less than
 * `reach_error`. reach_ns 0: always false. */
bool score_out_of_reach(double ns, double error, double reach_ns, double reach_error);

json_t *score_to_json(const score *s); /* new reference; NULL: out of memory */
ev_status score_from_json(const json_t *json, score *out, ev_error *err) EV_CHECKED;

#endif
