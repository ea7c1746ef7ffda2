/* Check, manifest: holds what a bundle's manifest says of a kernel against the task, the PTX and
 * the GPU descriptions, without running anything. */
#ifndef TUNER_CHECK_MANIFEST_H
#define TUNER_CHECK_MANIFEST_H

#include "base/status.h"
#include "bundle/reader.h"
#include "kernels/task.h"

#include <jansson.h>

/* Appends an object to `lies` for each value that is not so: {"kernel", "role": "manifest",
 * "start", "split": "-", "case", "verdict": "fail", "reason"}. The launch rule of each variant is
 * evaluated at every case of its list and compared with the rule that its genome makes of the
 * task's. EV_BAD: never; what cannot be read is a lie. */
ev_status check_manifest(const bundle_kernel *k, const task *t, json_t *lies,
                         ev_error *err) EV_CHECKED;

#endif
