/* Fitness: a task on a device, ready to score candidates through the gates.
 *
 * The inputs of a case and the oracle's answers are made once, when the case is first used. After
 * that, scoring a candidate costs only its own runs. */
#ifndef FITNESS_GATES_FITNESS_H
#define FITNESS_GATES_FITNESS_H

#include "base/launch_plan.h"
#include "base/status.h"
#include "base/str.h"
#include "fitness/device/device.h"
#include "fitness/gates/score.h"
#include "kernels/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fitness fitness;

typedef struct fitness_options {
    size_t
        sample_blocks; /* blocks a timed run executes on search cases; 0: 2. At least 4 on others */
    size_t spot_elements;   /* outputs of a timed run to compare with the oracle; 0: 64 */
    uint64_t fuel_factor;   /* fuel = factor x the baseline's own thread instructions; 0: 32 */
    uint32_t fresh;         /* number of the inputs: another number, other inputs, same split */
    uint64_t baseline_fuel; /* limit of the baseline's run at a case in thread instructions; 0: of
                               minutes on the virtual machine */
    /* Limit of a full grid of gate 6 in thread instructions of the baseline; 0: of about a second
     * on the virtual machine. */
    uint64_t cover_instructions;
    uint32_t jobs; /* on the VM: threads that share the full grids of gate 6; 0: one */
} fitness_options;

/* The time on the held-out cases that a promoted candidate has to beat (gate 6). */
typedef struct fitness_bar {
    double ns;          /* of the best unmodified start; 0: the baseline is all there is to beat */
    double baseline_ns; /* the baseline's time at the measurement of `ns`; 0: not measured */
    double least_gain;  /* by this share of `ns` at least */
    bool is_last; /* compare with baseline and bar last: a too-slow verdict implies correctness */
} fitness_bar;

/* Two times are near if one is at most this share below or above the other. */
#define FITNESS_NEAR_BELOW 1e-4
#define FITNESS_NEAR_ABOVE 1e-3

/* A candidate: PTX and its launch. All pointers are borrowed. */
typedef struct candidate {
    const char *ptx;
    size_t ptx_bytes;
    const launch_plan *plan; /* how it is launched; its first entry is the kernel */
    const task_start *start;
    const expr_name *macros; /* the macros that differ from their defaults */
    size_t macro_count;
    /* Limits of the filter. The timed cases are skipped (score.filtered) if the modelled time of
     * the small cases exceeds reach_ns and their error is no less than reach_error. 0 ns: no
     * filter. */
    double reach_ns, reach_error;
    double first_reach_ns; /* as reach_ns, for the first small case alone, before the others run */
    /* The candidate is stopped (score.filtered) at a timed case of the task that takes so many
     * times the baseline's time. 0: never. */
    double hopeless;
    bool is_sketch;    /* fast code: a launch that does not fit does not stop the candidate */
    bool times_sketch; /* fast code runs on the timed cases, too, */
    double near_ns; /* unless the modelled time of the small cases is within FITNESS_NEAR_BELOW and
                       FITNESS_NEAR_ABOVE of this; 0: never */
    bool was_sketched; /* fast code of the same IR passed all small cases: drawn cases are not run
                          again, and the others run without race checks */
    bool screens;      /* the ladder ends before the timed cases, which another device runs */
    bool was_screened; /* a screening virtual machine passed this PTX at gates 2 to 4, so this
                          device may launch it */
    /* Asked after the small cases have passed, if their times are modelled: is a candidate with
     * this behavioural fingerprint known? If so, the timed cases are not run. NULL: not asked. */
    ev_status (*is_known)(void *context, const char *fingerprint, bool *known, ev_error *err);
    void *context;      /* of is_known */
    bool is_unmodified; /* the start at these macros, without edits */
    bool is_skeleton;   /* no edit but structural ones and knobs: others with its macros and launch
                           plan have to write what it writes */
    /* Blocks behind the first n-th part of a dimension of the grid end at once, although those of
     * the start do not; 0 or 1: none. */
    uint32_t idle_parts[3];
    /* Builds the unmodified start at these macros, launched by start->plan: *ptx stays empty if it
     * does not build. NULL: the baseline stands for the start. */
    ev_status (*unmodified)(void *context, ev_str *ptx, ev_error *err);
    /* Builds the start with the candidate's macros and the edits of `division`, launched by `plan`.
     * NULL: blocks are chosen by the candidate itself where the start is not the baseline
     * (paths.c). */
    ev_status (*divided)(void *context, ev_str *ptx, ev_error *err);
    void *unmodified_context; /* of both */
    const char *structure; /* names its structural edits, equal ones by equal texts; NULL: none */
    const char *division;  /* names those up to the last one that divides the work of blocks anew,
                              or changes that of some of them; NULL: none */
    /* The unmodified start at these macros, already built, in place of `unmodified`. NULL: not
     * built. */
    const struct candidate *origin;
    fitness_bar bar;
    /* The same variant with the facts that its edits assert as checks, for gate 6. A broken fact
     * ends in `trap`, on a PTX line that says which behind `checked_mark`. NULL: its edits assert
     * nothing. */
    const char *checked_ptx;
    size_t checked_bytes;
    const char *checked_mark;
    /* Arguments whose pointers the source does not declare as not overlapping: a bit each. Gate 6
     * tries them as one buffer, unless the task says which arguments overlap. */
    uint64_t may_alias;
    /* A build of the unmodified start that notes the arms that it takes, for gate 6 (arms.c), in a
     * buffer of `arms_bytes` bytes whose address stands in the variable `arms_variable`. NULL: no
     * edit of the candidate can depend on them. `missed` appends why an edit touches an arm that
     * was not taken; nothing: no edit does. */
    const char *arms_ptx;
    size_t arms_ptx_bytes, arms_bytes;
    const char *arms_variable;
    ev_status (*missed)(void *context, const uint8_t *taken, ev_str *why, ev_error *err);
    void *missed_context;
    /* Buffers of which the candidate needs an alignment of `aligned_to` bytes, where the task
     * grants less: a bit for each argument. Whoever launches the candidate has to grant this. */
    uint64_t aligned;
    uint32_t aligned_to;
} candidate;

/* Opens the device that the task runs on: device_open, or a group of as many ranks as its cases
 * have at most (device_group.h). EV_BAD: as of these. */
ev_status fitness_open_device(const task *t, const char *id, device **out,
                              ev_error *err) EV_CHECKED;

/* Check number `index` that the gates do not apply to the task, and why not, in words; NULL: there
 * are no more. */
const char *fitness_not_applied(const task *t, size_t index);

/* Borrows `d`, for its exclusive use, until fitness_close. EV_BAD: a case does not fit in the
 * device's memory (names case, bytes and cure). */
ev_status fitness_open(const task *t, device *d, const fitness_options *options, fitness **out,
                       ev_error *err) EV_CHECKED;
void fitness_close(fitness *f); /* NULL is fine */

/* Sets the baseline, the task's unmodified first start. Call before anything is scored. The
 * baseline gives the fuel, the denominator of the speed-up, and the answers if the oracle is
 * `baseline`. It is compared with its oracle on every case of `splits` (bit 1 << corpus_split).
 * EV_BAD: the baseline traps, or disagrees with its oracle (names task, case, error, tolerance). */
ev_status fitness_set_baseline(fitness *f, const candidate *baseline, unsigned splits, score *out,
                               ev_error *err) EV_CHECKED;

/* Draws more check cases for gate 4 from the search's small ones (drawn.c), and more timed cases
 * for gate 5 from its timed ones (drawn_timed.c). The virtual machine tells which shapes are legal
 * and run new code. `device_id`: as given to device_open. `starts`: the unmodified starts of the
 * task, the baseline first; a start that is wrong at the task's own small cases is left out. The
 * drawing is a pure function of the task, the starts' PTX and the device. Call once, after
 * fitness_set_baseline. */
ev_status fitness_draw_cases(fitness *f, const char *device_id, const candidate *starts,
                             size_t count, ev_error *err) EV_CHECKED;
const task_case *fitness_drawn_case(const fitness *f, size_t index); /* NULL: there are no more */
/* The drawn cases that gate 5 times beside the task's own (drawn_timed.c); NULL: no more. */
const task_case *fitness_drawn_timed(const fitness *f, size_t index);

/* Runs gates EMIT..TIMED (2 to 5) on the search cases and stops at the first that fails. A
 * candidate's fault is in out->stopped and out->reason. EV_BAD: misuse. EV_INFRA: the machine
 * failed. */
ev_status fitness_score(fitness *f, const candidate *c, score *out, ev_error *err) EV_CHECKED;

/* The last part of gate 5, after fitness_score of `c`. Stops the score if the blocks of a timed
 * case write another number of elements than those of the unmodified start at the same macros.
 * *wants: that start is not known; call fitness_add_reference and try again. Only candidates faster
 * than the fastest start at the default macros are checked, so add those starts before. */
ev_status fitness_hold_writes(fitness *f, const candidate *c, score *s, bool *wants,
                              ev_error *err) EV_CHECKED;
/* Adds an unmodified start at some macros. If it fails a gate or has no PTX, candidates are not
 * compared with it. */
ev_status fitness_add_reference(fitness *f, const candidate *unmodified, ev_error *err) EV_CHECKED;

/* Gate 6: held-out and adversarial cases, other inputs, other schedules bit for bit, accuracy again
 * after timing, the time on the held-out timed cases against the baseline, and the whole work of
 * these cases (every block, or as many as affordable). out->cases has the cases. out->stopped is
 * GATE_PROMOTED if the candidate failed. out->ns is set for a correct candidate, and for a too-slow
 * one; modelled times are compared first. A time below the speed-of-light floor fails. */
ev_status fitness_promote(fitness *f, const candidate *c, score *out, ev_error *err) EV_CHECKED;

/* The element of an output that is farthest from its answer. */
typedef struct fitness_element {
    const char *output; /* its name, of the task; NULL: not known, as after a trap */
    char name[96];      /* of the element: "y[12]", "bodies[12].position.y" */
    uint64_t index;     /* of a task with ranks: in the rank's part */
    double got, want;
    bool is_written;      /* false: no thread wrote it, and `got` is 0 */
    uint32_t rank, ranks; /* of a task with ranks; 0 ranks: it has none */
} fitness_element;

/* One row of `evoke check`: the candidate at one case of any split, checked, and timed if the case
 * is a timed one. At a timed case all blocks run once more, and the elements that they write are
 * compared with the baseline's count (cover.c). */
typedef struct fitness_verdict {
    bool ok;
    double error; /* relative L2 */
    double normalised;
    double tolerance; /* of the relative L2 (task_relative_l2) */
    double ns;        /* timed cases */
    double low_ns, high_ns;
    /* The baseline's times; measured ones are taken by turns with the candidate's. */
    double baseline_ns, baseline_low_ns, baseline_high_ns;
    gate stopped; /* EMIT: refused, SAFE: ended by a fault, ACCURATE: wrong; GATE_NONE: ok */
    fitness_element worst; /* of a wrong one */
    char reason[600];
} fitness_verdict;

ev_status fitness_check(fitness *f, const candidate *c, const task_case *at, fitness_verdict *out,
                        ev_error *err) EV_CHECKED;
/* The checks of gate 6 beside its cases, in a virtual machine: the small cases with other data and
 * with the errors of approximate instructions to the other side, other schedules, arms that no case
 * takes, and asserted facts. After fitness_check of the task's small cases. out->stopped and
 * out->reason tell a refusal. EV_BAD as of fitness_check. */
ev_status fitness_check_edits(fitness *f, const candidate *c, score *out, ev_error *err) EV_CHECKED;
/* Runs the baseline at a case, unless it has run there. fitness_check does so first, so an EV_BAD
 * of fitness_check may be the baseline's. EV_BAD: the baseline traps or disagrees with its oracle.
 */
ev_status fitness_check_baseline(fitness *f, const task_case *at, ev_error *err) EV_CHECKED;

/* One argument or symbol of a case (case_record.c). Borrowed. */
typedef struct fitness_datum {
    const task_argument *what;
    bool is_symbol;
    uint64_t count;       /* of elements; 0 for scalars */
    expr_value value;     /* of scalars */
    const void *begins;   /* the elements before the launch; NULL: a scalar or an `out` */
    const void *expected; /* the trusted answer, rounded to the type; NULL: no output */
} fitness_datum;

typedef ev_status fitness_datum_visit(void *context, const fitness_datum *datum, ev_error *err);
/* Calls `visit` for each argument, then for each symbol, with the data that the case is run with,
 * its own "inputs" included, but never in a shared buffer. The oracle computes every element of the
 * answers, at timed cases as well. The baseline must be set where it is the oracle. EV_BAD: the
 * baseline traps, or would take too long. */
ev_status fitness_case_data(fitness *f, const task_case *at, fitness_datum_visit *visit,
                            void *context, ev_error *err) EV_CHECKED;

/* A candidate under stress (stress.c): drawn cases, each compared as gate 6 compares. */
typedef struct fitness_stress fitness_stress;

/* Borrows `f`, for its exclusive use, and the candidate. The baseline is set; the device is a
 * virtual machine. The limit of a run is taken from the baseline's at the search's small cases.
 * *refused: the candidate does not load (its reason is in *verdict), and *out is NULL. */
ev_status fitness_stress_open(fitness *f, const candidate *c, fitness_stress **out,
                              fitness_verdict *refused, ev_error *err) EV_CHECKED;
void fitness_stress_close(fitness_stress *s); /* NULL is fine */

#define FIT_PAIRS_MOST TASK_PAIRS_MOST /* pairs of arguments that are tried in one buffer */

/* How a case of the stress ended. */
typedef enum fitness_stood {
    FITNESS_STOOD,  /* right */
    FITNESS_FAILED, /* wrong: the verdict says how */
    FITNESS_UNFIT   /* the case tells nothing: the start does not stand there, or it is too large */
} fitness_stood;

/* Runs the candidate at a case of the task's shapes with the inputs `with`, which stand in place of
 * at->inputs but have its `fresh`. The case is borrowed until fitness_stress_forget. */
ev_status fitness_stress_try(fitness_stress *s, const task_case *at, const task_case_inputs *with,
                             fitness_stood *stood, fitness_verdict *out, ev_error *err) EV_CHECKED;
/* Frees the data of all cases that were tried. */
void fitness_stress_forget(fitness_stress *s);
/* Allows other cases than fitness_stress_open does, from now on: `cost` times as dear, and of so
 * many elements, if that is more. */
void fitness_stress_allow(fitness_stress *s, uint32_t cost, uint64_t elements);
/* Thread instructions of the baseline at the case that was tried last, or of the candidate at the
 * one that was probed last; and the pairs of arguments of the case tried last that may be one
 * buffer. Both 0 if the case told nothing. */
double fitness_stress_cost(const fitness_stress *s);
int fitness_stress_pairs(const fitness_stress *s);
/* Elements of all buffers of the case that was made last. */
uint64_t fitness_stress_elements(const fitness_stress *s);
/* Runs the candidate without checks. *reaches: it executed an instruction that is not reached yet.
 * The case is borrowed until fitness_stress_forget. */
ev_status fitness_stress_probe(fitness_stress *s, const task_case *at, bool *reaches,
                               ev_error *err) EV_CHECKED;
/* The candidate's PTX instructions, and those that a run with the task's own kind of data executed,
 * under all checks, at a case where it stood. */
size_t fitness_stress_insns(const fitness_stress *s);
size_t fitness_stress_reached(const fitness_stress *s);

/* The baseline's time at a case; 0 if it is not timed or no baseline is set. */
double fitness_baseline_ns(const fitness *f, const char *case_name);
/* Seconds spent in each part since opening, for `evoke bench search`: CPU time on the VM, elapsed
 * time on a GPU. */
typedef struct fitness_cost {
    double inputs, oracle, load, safe, accurate, timed;
} fitness_cost;
fitness_cost fitness_cost_of(const fitness *f);

/* What a few blocks of a grid say of the others (paths.c). */
typedef enum fitness_grid {
    FITNESS_GRID_EVEN,   /* blocks at fixed places stand for all */
    FITNESS_GRID_UNEVEN, /* blocks chosen by path length stand for all */
    FITNESS_GRID_WAITS,  /* blocks wait for others, or for the last one: all have to run */
} fitness_grid;

const char *fitness_grid_name(fitness_grid grid); /* "even", "uneven" or "waits" */

/* A profile of one candidate at one case: counters and the model's account. */
typedef struct fitness_profile_data {
    launch_geometry launch; /* of several, the longest */
    size_t steps;           /* launches of a plan with steps; 0: a plain plan */
    device_outcome outcome;
    device_timing timing;
    fitness_grid grid;
    uint64_t *executions; /* per pc; malloc'ed, the caller frees */
    double *stalls;       /* per pc; malloc'ed, the caller frees */
    model_site *sites;    /* per pc; malloc'ed, the caller frees */
    uint32_t *lines;      /* per pc, of .loc, 0: none; malloc'ed, the caller frees */
    size_t insn_count;
} fitness_profile_data;

void fitness_profile_free(fitness_profile_data *profile);
ev_status fitness_profile(fitness *f, const candidate *c, const task_case *at,
                          fitness_profile_data *out, ev_error *err) EV_CHECKED;

#endif
