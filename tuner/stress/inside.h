/* What the files of the stress share: a drawn case, its drawing and its shrinking. */
#ifndef TUNER_STRESS_INSIDE_H
#define TUNER_STRESS_INSIDE_H

#include "base/pcg.h"
#include "tuner/stress/stress.h"

#include <stdbool.h>

#define STRESS_SIZES_MOST 32

/* A case that the stress made. It is not copied: at.shape and at.name point into it. */
typedef struct stress_case {
    task_case at;
    char name[96];
    expr_name shape[STRESS_SIZES_MOST];
    const task_case *from; /* the task's case that it was drawn from; its data are at.data */
    task_case_inputs with;
} stress_case;

/* A stress under way. */
typedef struct stressing {
    const stress_subject *subject;
    stress_limits limits;
    double end; /* by ev_clock_now: no more shapes are tried from then on */
    device *device;
    fitness *fitness;
    fitness_stress *runs;
    launch_range ranges[STRESS_SIZES_MOST];
    size_t range_count;
    uint32_t shapes, unfit; /* shapes that were tried; drawn ones that tell nothing */
    uint64_t run_count;
    bool failed;
    stress_case worst;       /* if it failed */
    fitness_verdict verdict; /* at `worst` */
} stressing;

/* Runs the candidate once at `c`, and counts the run. */
ev_status stress_try(stressing *s, const stress_case *c, fitness_stood *stood,
                     fitness_verdict *verdict, ev_error *err) EV_CHECKED;
/* Copies a case such that its pointers point into the copy. */
void stress_case_copy(const stress_case *from, stress_case *to);

/* ---- draw.c ---- */

/* Sets s->ranges: the subject's, or those of the task's cases. */
void stress_set_ranges(stressing *s);
/* The range of a size; NULL: it has none, and stays as it is. */
const launch_range *stress_range_of(const stressing *s, const char *name);
/* Draws shape number `number` and its data. */
void stress_draw(const stressing *s, uint32_t number, ev_pcg *rng, stress_case *out);
/* Rounds down to the range's multiples, and into the range. */
int64_t stress_fit_range(const launch_range *range, int64_t value);

/* Whether all sizes of a case lie in the ranges. */
bool stress_is_inside(const stressing *s, const task_case *at);
/* Begins a case as one of the task's, under a name that no case of the task has. */
void stress_begin_case(const stressing *s, const task_case *from, uint32_t number,
                       stress_case *out);

/* ---- reach.c ---- */

/* Tries the candidate at the task's small cases, and at those with sizes of its timed cases. A case
 * that reaches instructions which none before it reached is tried with all data and schedules. */
ev_status stress_reach(stressing *s, ev_error *err) EV_CHECKED;

/* ---- stress.c ---- */

/* Tries a case with these inputs, unless the stress has failed or is to stop. A failure is noted as
 * the worst. *stood: how the run ended, FITNESS_UNFIT if there was none; stood NULL: ignored. */
ev_status stress_try_with(stressing *s, stress_case *c, task_case_inputs with, fitness_stood *stood,
                          ev_error *err) EV_CHECKED;
/* Tries a case with each pair of an input and an output in one buffer, in two orders. */
ev_status stress_try_pairs(stressing *s, stress_case *c, task_case_inputs with, ev_pcg *rng,
                           ev_error *err) EV_CHECKED;
/* Tries a case under other schedules and with each variation of the data. */
ev_status stress_try_others(stressing *s, stress_case *c, ev_pcg *rng, ev_error *err) EV_CHECKED;

/* ---- shrink.c ---- */

/* Makes s->worst smaller as long as it fails: its inputs, its data, then each size. */
ev_status stress_shrink(stressing *s, ev_error *err) EV_CHECKED;

#endif
