/* Qualify: times and checks every variant of a bundle on this machine, and writes the bundle with
 * the findings, for `evoke qualify`. */
#ifndef TUNER_RUN_QUALIFY_H
#define TUNER_RUN_QUALIFY_H

#include "base/status.h"
#include "bundle/sign.h"
#include "tuner/run/qualify_trial.h"
#include "tuner/run/shipped.h"

#include <jansson.h>
#include <stddef.h>

/* One run of the command. Each finding is appended to `rows` or `variants` as an object. */
typedef struct qualify {
    const char *device;
    const char *only; /* one kernel; NULL: all. Other kernels are copied unchanged */
    double until; /* on the monotonic clock; 0: no limit. Variants beyond it are copied unchanged */
    const sign_key *key; /* signs the new bundle; NULL: unsigned */
    shipped_trust trust; /* of oracles that the bundle brings */
    trial_gpu gpu;       /* out: the GPU of the device */
    json_t *rows;        /* one a case: {"kernel", "gpu", "case", "verdict", "error", times, ...} */
    json_t *variants; /* {"kernel", "gpu", "sha256", "verdict", "disabled", "reason", "instead"} */
    size_t judged, disabled, unreached; /* variants */
} qualify;

/* Runs every variant of the bundle at `path` at the cases that validated it, by turns with the
 * baseline and the other unmodified starts, and writes the bundle with the findings to `out`
 * (bundle_write_signed). EV_BAD: the bundle is damaged, there is no such kernel or device, a start
 * cannot be built, or `out` cannot be written. EV_INFRA: the machine failed; earlier findings are
 * written.
 */
ev_status qualify_bundle(qualify *q, const char *path, const char *out, ev_error *err) EV_CHECKED;

#endif
