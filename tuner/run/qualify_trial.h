/* Qualify, trials: runs one variant on a device, in a process of its own, beside the baseline and
 * the unmodified starts. */
#ifndef TUNER_RUN_QUALIFY_TRIAL_H
#define TUNER_RUN_QUALIFY_TRIAL_H

#include "base/status.h"
#include "bundle/reader_types.h"
#include "fitness/gates/fitness.h"
#include "kernels/task.h"
#include "tuner/run/shipped.h"

#define QUALIFY_REASON_BYTES 400

/* How a variant did at one case. */
typedef struct trial_row {
    bool done;
    bool unjudged; /* the baseline fails here */
    gate stopped;  /* EMIT: refused, SAFE: a fault, ACCURATE: wrong; GATE_NONE: right */
    double error;
    bundle_time variant, baseline;     /* by turns; ns 0: the case is not timed */
    bundle_time beside_start, start;   /* the same with the start that was hardest to beat */
    const char *start_name;            /* NULL: none */
    char reason[QUALIFY_REASON_BYTES]; /* "" where it is right */
} trial_row;

/* A start to beat, unmodified. */
typedef struct trial_rival {
    const char *name;
    candidate candidate;
} trial_rival;

/* All pointers borrowed. */
typedef struct trial_job {
    const char *device_id;
    const task *t;
    const candidate *variant, *baseline;
    const trial_rival *rivals; /* other starts than the baseline */
    size_t rival_count;
    const task_case *const *cases;
    size_t count;
    double until; /* by the clock; 0: no limit */
} trial_job;

typedef struct trial_result {
    bool complete;              /* else the time was over; rows that are done say what they say */
    device_resources resources; /* of the variant, where it loads */
    trial_row rows[];           /* as the cases; from the first failure on they are not done */
} trial_result;

/* malloc'ed. A variant that takes its process down is tried once more, and then at fault at that
 * case. EV_INFRA: the machine fails without it. EV_BAD: the device cannot be opened. */
ev_status trial_run(const trial_job *job, trial_result **out, ev_error *err) EV_CHECKED;

/* What a device is, found out in a process of its own, so that this one can still fork. */
typedef struct trial_gpu {
    char id[SHIPPED_GPU_BYTES]; /* as bundles name it */
    char name[128], driver[64];
    int sm;
    bool modelled;
} trial_gpu;

ev_status trial_look(const char *device_id, trial_gpu *out, ev_error *err) EV_CHECKED;

#endif
