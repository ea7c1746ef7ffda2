/* Qualify, starts: builds and tries the unmodified starts of a task, which are the rivals of a
 * variant and may be shipped in its place. */
#ifndef TUNER_RUN_QUALIFY_START_H
#define TUNER_RUN_QUALIFY_START_H

#include "base/arena.h"
#include "bundle/reader_types.h"
#include "tuner/run/qualify_trial.h"

/* A kernel of the bundle on this machine. Texts live in the arena. */
typedef struct qualify_kernel {
    ev_arena *arena;
    const trial_gpu *gpu;
    const char *device_id;
    const task *t;
    int sm;              /* compute capability that the starts are built for */
    candidate baseline;  /* the task's first start */
    shipped made;        /* what the baseline borrows from, if the bundle has it */
    trial_rival *rivals; /* its other starts */
    size_t rival_count;
    double until;
    const char *const *driver_names; /* of the GPU, in the arena */
    size_t driver_name_count;
} qualify_kernel;

/* The times of a variant and of the fastest reference at a case. */
typedef struct qualify_beside {
    const char *name; /* NULL: no reference was timed */
    bundle_time variant, reference;
} qualify_beside;

/* What a trial found. */
typedef struct qualify_findings {
    bundle_qualified qualified;
    const qualify_beside *references; /* by trial */
    device_resources resources;
    bool reached; /* false: the time was over first */
} qualify_findings;

/* Builds the starts that the bundle does not hold: all but the baseline, and the baseline too where
 * the bundle has none for this GPU (*lacks_baseline). EV_BAD: a start cannot be built. */
ev_status qualify_build_starts(qualify_kernel *x, const bundle_kernel *k, bool *lacks_baseline,
                               ev_error *err) EV_CHECKED;

/* The task's cases of the names that a variant lists. EV_BAD: the variant lists none, or the task
 * has no case of a name. */
ev_status qualify_cases(const qualify_kernel *x, const bundle_variant *v,
                        const task_case *const **out, ev_error *err) EV_CHECKED;

/* Runs `who` at the cases of `like`. */
ev_status qualify_try(const qualify_kernel *x, const candidate *who, const trial_rival *rivals,
                      size_t rival_count, const bundle_variant *like, qualify_findings *found,
                      ev_error *err) EV_CHECKED;

/* Makes a variant of the bundle from an unmodified start, with the cases of `like`. `found` comes
 * from qualify_try. */
ev_status qualify_ship_start(const qualify_kernel *x, const candidate *who,
                             const bundle_variant *like, const qualify_findings *found,
                             bundle_variant *out, ev_error *err) EV_CHECKED;

#endif
