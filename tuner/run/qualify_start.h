/* Qualify, starts: a task's starts, unmodified: to beat, and to be handed out in place of a
 * variant.
 */
#ifndef TUNER_RUN_QUALIFY_START_H
#define TUNER_RUN_QUALIFY_START_H

#include "base/arena.h"
#include "bundle/reader_types.h"
#include "tuner/run/qualify_trial.h"

/* A kernel of the bundle on this machine; texts live in the arena. */
typedef struct qualify_kernel {
    ev_arena *arena;
    const trial_gpu *gpu;
    const char *device_id;
    const task *t;
    int sm;             /* what the starts are built for */
    candidate baseline; /* the task's first start */
    expr_name *baseline_macros;
    trial_rival *rivals; /* its other starts */
    size_t rival_count;
    double until;
} qualify_kernel;

/* Builds what the bundle does not hold: the other starts, and the baseline where the bundle has
 * none that this GPU can run (*lacks_baseline). EV_BAD: one cannot be built. */
ev_status qualify_build_starts(qualify_kernel *x, const bundle_kernel *k, bool *lacks_baseline,
                               ev_error *err) EV_CHECKED;

/* The cases of a variant as the task's. EV_BAD: none, or the task has none of that name. */
ev_status qualify_cases(const qualify_kernel *x, const bundle_variant *v,
                        const task_case *const **out, ev_error *err) EV_CHECKED;

/* Runs `who` at the cases of `like`, and turns what was found into a qualification; *reached:
 * false where the time was over first. */
ev_status qualify_try(const qualify_kernel *x, const candidate *who, const trial_rival *rivals,
                      size_t rival_count, const bundle_variant *like, bundle_qualified *found,
                      device_resources *resources, bool *reached, ev_error *err) EV_CHECKED;

/* An unmodified start as a bundle's variant, with the cases of `like`; `found` and `resources` are
 * of qualify_try. */
ev_status qualify_ship_start(const qualify_kernel *x, const candidate *who,
                             const bundle_variant *like, const bundle_qualified *found,
                             const device_resources *resources, bundle_variant *out,
                             ev_error *err) EV_CHECKED;

#endif
