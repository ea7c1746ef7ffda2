/* Steps: the launches of a candidate at a case (steps.c). Private to this folder. */
#ifndef FITNESS_GATES_STEPS_H
#define FITNESS_GATES_STEPS_H

#include "fitness/gates/fitness_impl.h"

/* A candidate's launches at a case, under way. */
typedef struct fit_walk {
    fitness *f;
    fit_case *c;
    const candidate *who;
    device_kernel *kernel; /* of the plan */
    task_steps steps;
    device_buffer scratch[TASK_MAX_SCRATCH];
    size_t lent; /* scratch buffers */
} fit_walk;

/* Lists the launches of any plan, and lends it scratch buffers. The caller calls fit_walk_end, also
 * after a failure. */
ev_status fit_walk_begin(fitness *f, fit_case *c, const candidate *who, device_kernel *kernel,
                         fit_walk *w, ev_error *err) EV_CHECKED;
void fit_walk_end(fit_walk *w);

#endif
