/* Fitness: a task on a device, ready to score candidates through the gates.
 *
 * Opening makes the inputs of the cases and the oracle's answers once (lazily, a case at a time);
 * scoring a candidate then costs its own runs only. */
#ifndef FITNESS_GATES_FITNESS_H
#define FITNESS_GATES_FITNESS_H

#include "base/launch_plan.h"
#include "base/status.h"
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
    size_t spot_elements; /* outputs of a timed run that are held against the oracle; 0: 64 */
    uint64_t fuel_factor; /* fuel = factor x the baseline's own thread instructions; 0: 8 */
    uint32_t fresh;       /* number of the inputs: another number, other inputs, same split */
    uint32_t jobs;        /* on the VM: threads that share the full grids of gate 6; 0: one */
} fitness_options;

/* Minimum relative gain over the bar on the held-out cases. */
#define FITNESS_LEAST_GAIN 0.002

/* The time on the held-out cases that a promoted candidate has to beat by FITNESS_LEAST_GAIN
 * (gate 6). */
typedef struct fitness_bar {
    double ns;          /* of the best unmodified start; 0: the baseline is all there is to beat */
    double baseline_ns; /* the baseline's when that was measured; 0: it was not then */
    bool is_last;       /* what is too slow is right in all else, the dear full grids as well */
} fitness_bar;

/* So much less or more than another's time is near to it. */
#define FITNESS_NEAR_BELOW 1e-4
#define FITNESS_NEAR_ABOVE 1e-3

/* What is scored: PTX and how to launch it. All pointers borrowed. */
typedef struct candidate {
    const char *ptx;
    size_t ptx_bytes;
    const launch_plan *plan; /* how it is launched; its first entry is the kernel */
    const task_start *start;
    const expr_name *macros; /* that differ from their defaults */
    size_t macro_count;
    /* The filter: one that takes longer for the small cases than reach_ns, modelled, and is no more
     * accurate there than reach_error is not run on the timed ones (score.filtered). 0 ns: it is.
     */
    double reach_ns, reach_error;
    double first_reach_ns; /* the same for the first small case alone, before the others are run */
    bool is_sketch;    /* code made in haste: a launch that does not fit is not held against it */
    bool times_sketch; /* a sketch is run on the timed cases as well as on the small ones, */
    double near_ns;    /* but where those take near to so long, modelled: FITNESS_NEAR_BELOW */
    bool was_sketched; /* a sketch of the same IR passed all small cases: the drawn ones are not run
                          again, the others without looking for races */
    bool screens;      /* the ladder ends before the timed cases: they are another device's */
    bool was_screened; /* this PTX passed gates 2 to 4 in a virtual machine that `screens`: it may
                          be launched here */
    /* Asked once the small cases are passed, where they are modelled: is a candidate known that ran
     * them alike (score.likeness)? Then the timed ones are not run. NULL: it is not asked. */
    ev_status (*is_known)(void *context, const char *likeness, bool *known, ev_error *err);
    void *context; /* of is_known */
    fitness_bar bar;
} candidate;

/* `d` is borrowed and belongs to this fitness alone until it is closed. EV_BAD: a case that does
 * not fit in the device's memory (names case, bytes and cure). */
ev_status fitness_open(const task *t, device *d, const fitness_options *options, fitness **out,
                       ev_error *err) EV_CHECKED;
void fitness_close(fitness *f); /* NULL is fine */

/* The baseline: the task's first start, unchanged. Must be called before anything is scored: it
 * gives the fuel, the speed-up's denominator, the answers where the oracle is `baseline`, and it is
 * held against its oracle on every case of `splits` (bit 1 << corpus_split). EV_BAD: it traps, or
 * disagrees with its oracle (task, case, error, tolerance). */
ev_status fitness_set_baseline(fitness *f, const candidate *baseline, unsigned splits, score *out,
                               ev_error *err) EV_CHECKED;

/* Draws more check cases from the search's small ones, for gate 4, where the virtual machine is
 * there to say what is legal and what is new (drawn.c). `device_id`: what the device was opened by;
 * `starts`: the task's, unmodified, the baseline first; one that is wrong at the task's own small
 * cases is left out. A pure function of the task, the starts' PTX and the device; once, after the
 * baseline. */
ev_status fitness_draw_cases(fitness *f, const char *device_id, const candidate *starts,
                             size_t count, ev_error *err) EV_CHECKED;
const task_case *fitness_drawn_case(const fitness *f, size_t index); /* NULL: there are no more */

/* Runs gates EMIT..TIMED (2 to 5) on the search cases, stopping at the first that fails. A
 * candidate's fault is in out->stopped and out->reason; EV_BAD is a misuse, EV_INFRA the machine.
 */
ev_status fitness_score(fitness *f, const candidate *c, score *out, ev_error *err) EV_CHECKED;

/* After fitness_score of `c`, and a part of gate 5: stops the score where the blocks that were run
 * at a timed case write another number of elements than those of its start, unmodified, at the same
 * macros. *wants: that start is not known; say what it is, and ask again. Only what is faster than
 * the fastest start at the default macros is looked at: say those beforehand. */
ev_status fitness_hold_writes(fitness *f, const candidate *c, score *s, bool *wants,
                              ev_error *err) EV_CHECKED;
/* A start without edits, at some macros; where it fails a gate, or has no PTX, nothing is held
 * against it. */
ev_status fitness_add_reference(fitness *f, const candidate *unmodified, ev_error *err) EV_CHECKED;

/* Gate 6: held-out and adversarial cases, other inputs, two schedules bit for bit, accuracy again
 * after timing, time against the baseline's on the held-out timed cases, and all of the work done
 * there (every block, or as many as can be paid for): out->cases holds them, with out->stopped
 * GATE_PROMOTED if it failed; with out->ns where it was too slow, which where times are modelled is
 * seen first, and else of what is right. A time under the speed-of-light floor is an alarm: it
 * fails. */
ev_status fitness_promote(fitness *f, const candidate *c, score *out, ev_error *err) EV_CHECKED;

/* One row of `evoke check`: the candidate at one case of any split, checked (and timed where the
 * case is for time). `ok` is the verdict. */
typedef struct fitness_verdict {
    bool ok;
    double error; /* relative L2 */
    double normalised;
    double tolerance; /* the task's relative L2 */
    double ns;        /* timed cases */
    double low_ns, high_ns;
    /* The baseline's, by turns with it where times are measured. */
    double baseline_ns, baseline_low_ns, baseline_high_ns;
    gate stopped; /* EMIT: refused, SAFE: ended by a fault, ACCURATE: wrong; GATE_NONE: ok */
    char reason[600];
} fitness_verdict;

ev_status fitness_check(fitness *f, const candidate *c, const task_case *at, fitness_verdict *out,
                        ev_error *err) EV_CHECKED;
/* Runs the baseline at a case, unless it was: fitness_check does so first, and its EV_BAD may be of
 * either. EV_BAD: the baseline traps there or disagrees with its oracle. */
ev_status fitness_check_baseline(fitness *f, const task_case *at, ev_error *err) EV_CHECKED;

/* The baseline's time at a case; 0 if it is not timed or no baseline is set. */
double fitness_baseline_ns(const fitness *f, const char *case_name);
/* Seconds spent in each part since opening, for `evoke bench search`: CPU time where the device is
 * this process itself, else time on the clock. */
typedef struct fitness_cost {
    double inputs, oracle, load, safe, accurate, timed;
} fitness_cost;
fitness_cost fitness_cost_of(const fitness *f);

/* Everything a profile shows of one candidate at one case: counters and the model's account. */
typedef struct fitness_profile_data {
    launch_geometry launch;
    device_outcome outcome;
    device_timing timing;
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
