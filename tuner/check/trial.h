/* Trial: a genome of a task, read from a file and built, as a candidate. For check and profile. */
#ifndef TUNER_CHECK_TRIAL_H
#define TUNER_CHECK_TRIAL_H

#include "base/arena.h"
#include "base/str.h"
#include "bundle/reader.h"
#include "ir/genome.h"
#include "kernels/task.h"
#include "tuner/run/shipped.h"
#include "tuner/worker/gate_builds.h"

typedef struct trial {
    ir_genome *genome;
    ev_str ptx;
    ev_arena *arena;     /* holds the launch plan and the macros */
    bundle_variant form; /* as a bundle has it */
    shipped made;        /* its candidate borrows from the task and from the trial */
    const task *t;
    int sm;
    gate_builds beside; /* of trial_add_builds */
} trial;

/* Reads and builds the genome; `out` is zeroed before. Free by trial_free, also after an error.
 * EV_BAD: the file has no genome, the task has no such start, or an edit has no place. */
ev_status trial_make(const char *path, const task *t, int sm, trial *out, ev_error *err) EV_CHECKED;
void trial_free(trial *it);
/* Builds what gate 6 runs beside the variant, for fitness_check_edits; the candidate borrows from
 * the trial, which must stay where it is. EV_BAD: a build fails. */
ev_status trial_add_builds(trial *it, ev_error *err) EV_CHECKED;

#endif
