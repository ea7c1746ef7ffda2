/* Shipped: what a bundle holds of a kernel, as the task and candidates that a device can run. */
#ifndef TUNER_RUN_SHIPPED_H
#define TUNER_RUN_SHIPPED_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader.h"
#include "fitness/gates/fitness.h"
#include "ir/genome.h"
#include "kernels/task.h"

#define SHIPPED_GPU_BYTES 128

/* The task that a bundle carries for a kernel. EV_BAD: another one than was tuned. */
ev_status shipped_task(const bundle *b, const bundle_kernel *k, task **out,
                       ev_error *err) EV_CHECKED;

/* A variant, baseline or start of the bundle as a candidate; it borrows from the bundle and the
 * task. EV_BAD: the task has no such start. */
typedef struct shipped {
    candidate candidate;
    expr_name *macros;
} shipped;

ev_status shipped_make(const task *t, const bundle_variant *v, shipped *out,
                       ev_error *err) EV_CHECKED;
void shipped_free(shipped *s);

/* Sets a start's launch plan, borrowed from the task, and its macros; `genome` NULL: with their
 * defaults. */
ev_status shipped_set_launch(ev_arena *arena, const task_start *start, const ir_genome *genome,
                             bundle_variant *out, ev_error *err) EV_CHECKED;

/* A GPU model's name where the device is of one that is described (h200 for "vm:h200", and for a
 * cuda:0 that is one); a description of one's own is called as it calls itself, another GPU as its
 * driver does. */
ev_status shipped_gpu_id(const device *d, char out[SHIPPED_GPU_BYTES], ev_error *err) EV_CHECKED;

/* A device with a task on it, and what everything there is held against. */
typedef struct stand {
    device *device;
    fitness *fitness;
} stand;

/* Puts the task on a device that is open. */
ev_status stand_fill(stand *s, const task *t, const candidate *baseline, ev_error *err) EV_CHECKED;
ev_status stand_open(const char *device_id, const task *t, const candidate *baseline, stand *out,
                     ev_error *err) EV_CHECKED;
void stand_close(stand *s);

#endif
