/* Qualify, trials: runs one variant on a device in a process of its own, by turns with the baseline
 * and the other unmodified starts. */
#ifndef TUNER_RUN_QUALIFY_TRIAL_H
#define TUNER_RUN_QUALIFY_TRIAL_H

#include "base/status.h"
#include "bundle/reader_types.h"
#include "fitness/gates/fitness.h"
#include "kernels/task.h"
#include "tuner/run/shipped.h"

#define QUALIFY_REASON_BYTES 400

/* The result of a variant at one case. */
typedef struct trial_row {
    bool done;
    bool unjudged; /* the baseline fails here, so that there is no verdict */
    gate
        stopped; /* EMIT: the device refused it, SAFE: a fault, ACCURATE: wrong; GATE_NONE: right */
    double error;
    bundle_time variant, baseline;           /* by turns; ns 0: the case is not timed */
    bundle_time beside_start, start;         /* the same with the start that came closest */
    const char *start_name;                  /* NULL: none */
    bundle_time beside_reference, reference; /* the same with the fastest reference */
    const char *reference_name;              /* NULL: none */
    char reason[QUALIFY_REASON_BYTES];       /* "" where it is right */
} trial_row;

/* An unmodified start that a variant must not lose to. A reference is timed beside the variant, and
 * the variant may lose to it: a reference is no part of what is deployed. */
typedef struct trial_rival {
    const char *name;
    bool is_reference;
    candidate candidate;
} trial_rival;

/* All pointers are borrowed. */
typedef struct trial_job {
    const char *device_id;
    const task *t;
    const candidate *variant, *baseline;
    const trial_rival *rivals; /* other starts than the baseline */
    size_t rival_count;
    const task_case *const *cases;
    size_t count;
    double until; /* on the monotonic clock; 0: no limit */
} trial_job;

typedef struct trial_result {
    bool complete;              /* false: the time was over; rows that are done are valid */
    device_resources resources; /* of the variant, if it loads */
    trial_row rows[];           /* by case; none is done after the first failure */
} trial_result;

/* Runs a trial; *out is malloc'ed. A variant whose process dies is tried once more; a second death
 * is its fault, at that case. EV_INFRA: the machine failed without the variant. EV_BAD: the device
 * cannot be opened. */
ev_status trial_run(const trial_job *job, trial_result **out, ev_error *err) EV_CHECKED;

#define TRIAL_DRIVER_NAMES 8 /* most names that are kept */

/* The GPU of a device. */
typedef struct trial_gpu {
    char id[SHIPPED_GPU_BYTES]; /* as bundles name it */
    char name[128], driver[64];
    int sm, sms;
    bool modelled;
    char driver_names[TRIAL_DRIVER_NAMES][64]; /* what drivers call the GPU, without the vendor */
    size_t driver_name_count;
} trial_gpu;

/* Looks at a device in a process of its own, so that this process can still fork. EV_BAD: there is
 * no such device. */
ev_status trial_look(const char *device_id, trial_gpu *out, ev_error *err) EV_CHECKED;

/* ---- the rule (qualify_rule.c): the verdict on a variant from the rows of its trial ---- */

/* Largest relative excess of a variant's median over a rival's where their intervals overlap, or
 * are points. */
#define QUALIFY_SLACK 0.01

/* Whether a variant is slower than a rival, and must not be shipped. It is where its whole interval
 * lies above the rival's, or where the intervals overlap, or are points as modelled times are, and
 * its median exceeds the rival's by more than QUALIFY_SLACK. */
bool qualify_loses(const bundle_time *own, const bundle_time *rival);

/* The verdict at one case; `reason` is "" where the variant passes. */
bundle_verdict qualify_judge(const trial_row *row, const task_case *at,
                             char reason[QUALIFY_REASON_BYTES]);

/* The smaller of the speed-ups over the baseline and over the start; 0: the case was not timed. */
double qualify_gain(const bundle_trial *t);

#endif
