/* Floor: the least time of a case on a GPU, by the work that its task declares.
 *
 * The floor is a launch that does nothing, and the longest of the parts: the bytes at the DRAM
 * bandwidth that kernels reach, and the operations of each unit at the peak of all SMs. Nothing
 * that a variant executes enters, so waste does not raise it (roofline model: Williams et al.,
 * 2009). */
#ifndef FITNESS_GATES_FLOOR_H
#define FITNESS_GATES_FLOOR_H

#include "fitness/gates/fitness.h"
#include "kernels/task.h"

/* A time is at its floor if it is at most this share above it. */
#define FLOOR_NEAR 0.05

typedef struct case_floor {
    double ns;            /* launch and the longest part; 0: not known */
    double launch_ns;     /* of `ns` */
    const char *bound_by; /* of the longest part: "DRAM", or a unit's key in task.json */
} case_floor;

/* Of one launch. A zeroed floor where no work is declared. Units that the GPU does not have count
 * nothing. */
case_floor floor_of(const gpu *g, const task_amounts *work);

/* The floor of a case, with as many launches as a start of the task needs at least. `g`: NULL gives
 * a zeroed floor. */
ev_status floor_at(const gpu *g, const task *t, const task_case *at, case_floor *out,
                   ev_error *err) EV_CHECKED;

/* The same on the fitness's device; on a measured device by the description of its GPU.
 * A zeroed one: the task declares no work, or there is no such description. */
ev_status fitness_floor(const fitness *f, const task_case *at, case_floor *out,
                        ev_error *err) EV_CHECKED;

#endif
