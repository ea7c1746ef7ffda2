/* The parts of fitness that its files share: cases made concrete, runs of a kernel at a case, and
 * how they are held against the answers. */
#ifndef FITNESS_GATES_FITNESS_IMPL_H
#define FITNESS_GATES_FITNESS_IMPL_H

#include "fitness/gates/accuracy.h"
#include "fitness/gates/fitness.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- cases (case_data.c) ---- */

typedef struct fit_argument {
    const task_argument *what;
    device_buffer buffer; /* 0: a scalar */
    uint64_t count;       /* elements */
    uint64_t bytes;
    void *before; /* contents before a launch: of an input the device's own where the host sees them
                   */
    bool owns_before;
    expr_value value; /* scalars */
} fit_argument;

/* Answers at single elements, for outputs too large to answer in full: open addressing. */
typedef struct fit_spot {
    uint64_t key; /* element + 1; 0: empty */
    double want, scale;
} fit_spot;

typedef struct fit_output {
    size_t argument;
    const fit_argument *zero_where; /* NULL: nowhere */
    double *want, *scale;           /* of every element; NULL until asked for */
    uint8_t *must_zero;             /* of every element; NULL with zero_where, or until asked for */
    fit_spot *spots;
    size_t spot_room, spot_count;
} fit_output;

#define FIT_SEEN_KEPT 4

/* All bytes of a case's outputs as a launch left them that was near enough, and how near. */
typedef struct fit_seen {
    char *bytes; /* output after output; NULL: nothing is kept here */
    accuracy_limits limits;
    accuracy accuracy;
} fit_seen;

/* What the baseline did at a case. */
typedef struct fit_baseline {
    bool done;
    double instructions; /* thread instructions of the whole grid, extrapolated */
    double written;      /* output elements, the same */
    double covered;      /* the same, from all blocks or many (cover.c); 0: not known */
    accuracy accuracy;
    double ns;
    uint64_t rebuilds; /* of the device when it was run */
} fit_baseline;

typedef struct fit_case {
    const task_case *at;
    uint32_t fresh;
    bool is_drawn;           /* none of the task's */
    fit_argument *arguments; /* as the task's */
    fit_output *outputs;
    size_t output_count;
    fit_seen seen[FIT_SEEN_KEPT]; /* the one that was met last first */
    double depth;                 /* K */
    evoke_argument *oracle_arguments;
    const char **shape_names;
    double *shape_values;
    void *scratch; /* of the oracle */
    fit_baseline baseline;
} fit_case;

#define FIT_DRAWN_MOST 5

typedef struct fit_drawn {
    task_case *at;
    bool used; /* the baseline is right there on this device */
} fit_drawn;

/* What the blocks of sampled runs wrote at the search's timed cases (writes.c). */
typedef struct fit_written {
    const task_case *at;
    uint64_t written; /* elements of outputs */
} fit_written;

typedef struct fit_writes {
    fit_written cases[SCORE_MAX_CASES];
    size_t count;
} fit_writes;

typedef struct fit_reference fit_reference;

struct fitness {
    const task *t;
    device *d;
    fitness_options options;
    fit_case **cases;
    size_t case_count;
    uint64_t host_bytes; /* of all cases so far */
    fit_drawn drawn[FIT_DRAWN_MOST];
    size_t drawn_count;
    fit_writes writes; /* of the last candidate that was scored */
    fit_reference *references;
    size_t reference_count;
    double bar_ns;            /* the fastest of those at the default macros; 0: none */
    candidate baseline;       /* a copy of its own; ptx NULL: not set */
    ev_arena *baseline_arena; /* that holds it; NULL: not set */
    device_kernel *baseline_kernel;
    fitness_cost cost;
    fitness *twin; /* in the virtual machine, before a real GPU; NULL: the device needs none */
    device *twin_device;
    bool has_passed;  /* `passed` is of the last candidate that passed the twin */
    ev_sha256 passed; /* of its PTX, plan, start and macros */
};

/* The case, made on the first call: buffers, inputs. */
ev_status fit_case_get(fitness *f, const task_case *at, uint32_t fresh, fit_case **out,
                       ev_error *err) EV_CHECKED;
void fit_case_free(const fitness *f, fit_case *c);
/* Whether all blocks are run and every output element is looked at. */
bool fit_case_is_full(const fit_case *c);
/* Packs the parameter block of `entry`; malloc'ed. EV_BAD: the kernel's parameters are not the
 * task's arguments (names both). */
ev_status fit_case_pack(const fitness *f, const fit_case *c, const vm_entry *entry, void **out,
                        ev_error *err) EV_CHECKED;
/* Puts back what a launch wrote to INOUT buffers; `stored`: the sectors it wrote, NULL: any. */
ev_status fit_case_restore(fitness *f, fit_case *c, const uint64_t *stored, size_t stored_count,
                           ev_error *err) EV_CHECKED;
ev_status fit_case_launch(const fitness *f, const fit_case *c, const candidate *who,
                          launch_geometry *out, ev_error *err) EV_CHECKED;

/* ---- answers (answers.c) ---- */

/* Compares every element of the outputs, which the last launch at `c` left. */
ev_status fit_compare_full(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                           ev_error *err) EV_CHECKED;
/* Compares elements spread evenly over those that the last timed launch wrote; counts those in
 * *written. */
ev_status fit_compare_spots(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                            uint64_t *written, ev_error *err) EV_CHECKED;
/* Keeps the outputs as they are as the answers: the baseline is the oracle. */
ev_status fit_keep_outputs(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;
accuracy_limits fit_limits(const fitness *f, const fit_case *c);

/* Outputs seen before: most variants leave the bits that one before them left. */

/* Whether outputs of these bytes, all of them written, were kept at these limits: *out is their
 * accuracy. `got`: the contents of each output. */
bool fit_seen_find(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   accuracy *out);
/* Keeps them in place of those that were met longest ago; where memory is short, nothing. */
void fit_seen_keep(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   const accuracy *result);
void fit_seen_free(fit_case *c);

/* A hash of all bytes of the outputs as the last launch left them. */
ev_status fit_hash_outputs(fitness *f, const fit_case *c, ev_sha256 *out, ev_error *err) EV_CHECKED;

/* ---- runs (run.c) ---- */

typedef struct fit_trial {
    const candidate *who;
    device_kernel *kernel;
    fit_writes *writes; /* notes the runs at timed cases of the search; NULL: nobody asks */
    double bar_ns;      /* one that is no faster runs no other blocks; 0: all run them */
} fit_trial;

typedef struct fit_run_options {
    bool timed;
    bool against_baseline; /* timed by turns with the baseline, where times are measured */
    bool all_blocks;       /* else a sample of them, where the case is for time */
    double sample_share;   /* of the blocks to run, at most SAMPLE_MOST; 0: a few, by the case */
    bool other_blocks;     /* a few others: how much they write is not judged by the baseline's */
    bool covers;           /* how much it writes is judged by a full grid of the baseline's alone */
    bool is_baseline;      /* it makes the figures that other runs are held against */
    bool one_block;        /* the sample is the middle one, and what it writes is not judged either:
                              a sketch's times are held against sketches' alone */
    vm_checks checks;
    uint64_t seed; /* of the schedule */
    uint32_t jobs; /* threads that share the blocks, where it is not timed; 0: one */
    uint64_t fuel; /* of the whole grid; 0: from the baseline */
    uint64_t *executions;
    double *stalls;
    model_site *sites;
} fit_run_options;

typedef struct fit_run {
    launch_geometry launch;
    device_outcome outcome;
    device_timing timing;
    device_timing baseline; /* by turns with it; samples 0: not taken */
    double share;           /* of the grid's blocks that were run */
} fit_run;

/* Poisons the outputs and runs. What it wrote stays to be compared; the caller restores. */
ev_status fit_run_case(fitness *f, fit_case *c, const fit_trial *trial,
                       const fit_run_options *options, fit_run *out, ev_error *err) EV_CHECKED;
ev_status fit_restore_after(fitness *f, fit_case *c, const fit_run *run, ev_error *err) EV_CHECKED;

/* How one candidate did at one case. */
typedef struct fit_result {
    bool ok;
    bool ran;       /* it ended without a trap */
    ev_sha256 bits; /* of the outputs, where they were asked for */
    accuracy accuracy;
    fit_run run;
    uint64_t written;
    char reason[600];
} fit_result;

/* Runs a candidate at a case for what the case is for, and compares. EV_BAD only when the launch
 * does not fit the device. What it changed is put back. */
ev_status fit_try_case(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) EV_CHECKED;
/* As fit_try_case, and result->bits is made from the outputs before they are restored. */
ev_status fit_try_bits(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) EV_CHECKED;
/* As fit_try_case, run as the options say; the reason does not speak of what was left out. */
ev_status fit_try_options(fitness *f, fit_case *c, const fit_trial *trial,
                          const fit_run_options *options, fit_result *out,
                          ev_error *err) EV_CHECKED;
/* The baseline's run at a case, on the first call. EV_BAD: it traps or disagrees. */
ev_status fit_baseline_case(fitness *f, fit_case *c, fit_result *out, ev_error *err) EV_CHECKED;
ev_status fit_need_baseline(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;

/* ---- coverage (cover.c) ---- */

/* Gate 6: all outputs are written at the held-out timed cases, as far as blocks can be paid for. */
ev_status fit_cover(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

/* ---- drawn cases (drawn.c) ---- */

void fit_drawn_free(fitness *f);

/* ---- writes (writes.c) ---- */

/* Notes what a run at a timed case of the search wrote. */
void fit_note_writes(const fit_trial *trial, const fit_case *c, const fit_result *r);
void fit_references_free(fitness *f);

/* ---- the twin (fitness.c) ---- */

/* The same task on the virtual machine that the device names as its twin, if it does. */
ev_status fit_twin_open(fitness *f, ev_error *err) EV_CHECKED;
void fit_twin_close(fitness *f);
ev_status fit_twin_baseline(fitness *f, const candidate *baseline, ev_error *err) EV_CHECKED;
/* Gates 2 and 3 in the twin: `s` is stopped where the candidate fails there. Nothing to do without
 * a twin, or when it was the last to pass. */
ev_status fit_twin_pass(fitness *f, const candidate *who, score *s, ev_error *err) EV_CHECKED;
/* The speed-of-light floor at a case, ns, by the twin's counters; 0: not known for this device. */
ev_status fit_twin_floor(fitness *f, const candidate *who, const task_case *which, double *ns,
                         ev_error *err) EV_CHECKED;

/* ---- gates (gates.c) ---- */

/* The clock of fitness_cost. */
double fit_clock(const fitness *f);
/* What a loaded candidate has to pass. */
typedef ev_status fit_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err);
/* The twin's gates, gate 2's load, then the ladder; the score begins empty. `trial` has no kernel.
 */
ev_status fit_judge(fitness *f, const fit_trial *trial, fit_ladder *ladder, score *out,
                    ev_error *err) EV_CHECKED;
/* Gates 2 to 5. trial->writes: not NULL. */
ev_status fit_search_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

/* Gates 2 and 3 alone: what a twin is asked. */
ev_status fit_safe_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;
void fit_stop(score *s, gate at, const fit_result *result, const char *format, ...) EV_PRINTF(4, 5);
/* Adds a case's row to the score. */
void fit_note_case(score *s, const fit_case *c, const fit_result *result);
/* Geometric mean over the timed cases of a score; 0 where there are none. */
double fit_mean_ns(const score *s);
double fit_mean_of(const score *s, double (*value)(const score_case *c, const void *context),
                   const void *context);
/* The score's means: its own, and the baseline's at that time. */
void fit_note_means(score *s);
/* Warps on an SM, of those it could hold. */
double fit_occupancy(const model_time *t);
/* Loads a candidate; a refusal is in `s`. Free the kernel with device_unload. */
ev_status fit_load(fitness *f, const candidate *who, device_kernel **kernel, score *s,
                   ev_error *err) EV_CHECKED;
/* One case on the ladder: runs, compares, notes, stops the score at `at` if it failed. */
ev_status fit_gate_case(fitness *f, const task_case *which, uint32_t fresh, const fit_trial *trial,
                        gate at, score *s, ev_error *err) EV_CHECKED;

#endif
