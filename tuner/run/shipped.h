/* Shipped: the task and the variants of a bundle's kernel in the form that a device can run. */
#ifndef TUNER_RUN_SHIPPED_H
#define TUNER_RUN_SHIPPED_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader.h"
#include "fitness/gates/fitness.h"
#include "fitness/model/gpu.h"
#include "ir/genome.h"
#include "kernels/task.h"

#define SHIPPED_GPU_BYTES 128

/* An oracle in C that came with a bundle is somebody's code. */
typedef struct shipped_trust {
    bool oracle; /* build and run oracles in C; false: only of a trusted bundle */
    void (*warn)(const char *text); /* told of an oracle that is not built; NULL: nobody */
} shipped_trust;

/* Reads the task that the bundle carries for a kernel; *out is the caller's. *is_apart (may be
 * NULL): the task has an oracle in C that is not trusted, and the baseline stands for the oracle.
 * EV_BAD: the task is not the one that was tuned. */
ev_status shipped_task(const bundle *b, const bundle_kernel *k, const shipped_trust *trust,
                       bool *is_apart, task **out, ev_error *err) EV_CHECKED;

/* A variant, baseline or start of the bundle as a candidate. Borrows from the bundle and the task.
 */
typedef struct shipped {
    candidate candidate;
    expr_name *macros;
    ev_arena *arena; /* what the genome says; NULL: it has no structural edits */
} shipped;

/* Free by shipped_free. EV_BAD: the task has no such start, or the variant's genome is none. A
 * variant may have no genome, as one that is still to be written. */
ev_status shipped_make(const task *t, const bundle_variant *v, shipped *out,
                       ev_error *err) EV_CHECKED;
void shipped_free(shipped *s);
/* Sets what a genome says of the candidate's blocks: its structural prefix, and which part of its
 * grid works. For a variant that has no genome as text. */
ev_status shipped_take_genome(shipped *s, const ir_genome *genome, ev_error *err) EV_CHECKED;

/* The unmodified start of a candidate, at the candidate's macros. */
typedef struct origin {
    ev_str ptx;
    candidate candidate; /* borrows from `ptx`, and what `of` borrowed from */
} origin;

/* Builds the start, and sets of->origin to it, which must outlive `of`, and of->may_alias to what
 * the start's source says. EV_BAD: it does not build. */
ev_status origin_build(const task *t, int sm, candidate *of, origin *out, ev_error *err) EV_CHECKED;
void origin_free(origin *o);

/* An argument of a task as a bundle says it; borrows from the task. */
bundle_argument shipped_argument(const task *t, const task_argument *a);
/* Sets the kernels of the variant's PTX whose blocks may wait for a peer's, of a task with ranks;
 * others have none. EV_BAD: the device cannot load the PTX. */
ev_status shipped_set_resident(ev_arena *arena, const task *t, device *d, bundle_variant *out,
                               ev_error *err) EV_CHECKED;

/* Sets the launch plan of a start, borrowed from the task, and its macros with a genome's values;
 * NULL: with their defaults. */
ev_status shipped_set_launch(ev_arena *arena, const task_start *start, const ir_genome *genome,
                             bundle_variant *out, ev_error *err) EV_CHECKED;

/* The name of a device's GPU model: that of the built-in description ("h200" for "vm:h200" and for
 * a cuda:0 that is an H200), else that in the user's description, else the driver's name. */
ev_status shipped_gpu_id(const device *d, char out[SHIPPED_GPU_BYTES], ev_error *err) EV_CHECKED;

/* The description of a device's GPU model; *out NULL: there is none. */
ev_status shipped_gpu_model(const device *d, gpu **out, ev_error *err) EV_CHECKED;

/* The multiprocessors of a device, or of its GPU model; 0: not known. */
ev_status shipped_gpu_sms(const device *d, int *out, ev_error *err) EV_CHECKED;
/* Sets the id, the multiprocessors and the drivers' names of a variant's GPU. */
ev_status shipped_set_gpu(ev_arena *arena, const device *d, bundle_variant *out,
                          ev_error *err) EV_CHECKED;

/* A device with a task on it, and the references for the task's gates. */
typedef struct stand {
    device *device;
    fitness *fitness;
} stand;

/* Puts the task on s->device, which is open. */
ev_status stand_fill(stand *s, const task *t, const candidate *baseline, ev_error *err) EV_CHECKED;
/* Opens the device and puts the task on it; close by stand_close. EV_BAD: there is no such device.
 */
ev_status stand_open(const char *device_id, const task *t, const candidate *baseline, stand *out,
                     ev_error *err) EV_CHECKED;
void stand_close(stand *s);

#endif
