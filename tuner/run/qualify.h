/* Qualify: turns a bundle of modelled or elsewhere measured variants into one for the machine at
 * hand, for `evoke qualify`. */
#ifndef TUNER_RUN_QUALIFY_H
#define TUNER_RUN_QUALIFY_H

#include "base/status.h"
#include "tuner/run/qualify_trial.h"

#include <jansson.h>
#include <stddef.h>

/* One run of the command. The lists grow by one object a finding. */
typedef struct qualify {
    const char *device;
    const char *only; /* one kernel; NULL: all. The others are carried over as they are */
    double until;  /* by the clock; 0: no limit. Variants that are not reached stay as they are */
    trial_gpu gpu; /* out: what the device is */
    json_t *rows;  /* a case: {"kernel", "gpu", "case", "verdict", "error", times, ...} */
    json_t *variants; /* {"kernel", "gpu", "sha256", "verdict", "disabled", "reason", "instead"} */
    size_t judged, disabled, unreached; /* variants */
} qualify;

/* Runs every variant of the bundle at `path` beside its baseline and the task's other starts,
 * unmodified, at the cases it was validated at, and writes the bundle with what was found to `out`
 * (bundle_write). EV_BAD: a damaged bundle, no such kernel or device, a start that cannot be built,
 * a bad place. EV_INFRA: the machine failed; what was judged before is written. */
ev_status qualify_bundle(qualify *q, const char *path, const char *out, ev_error *err) EV_CHECKED;

#endif
