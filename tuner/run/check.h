/* Check: holds a bundle's kernels, or a task's starts, against the oracle, for `evoke check`. */
#ifndef TUNER_RUN_CHECK_H
#define TUNER_RUN_CHECK_H

#include "base/lines.h"
#include "base/status.h"
#include "fitness/device/device.h"

#include <jansson.h>
#include <stdbool.h>

/* One run of the command. `rows` and `replays` grow by one object a finding. */
typedef struct check {
    const char *device; /* NULL: the one that fits */
    const char *start;  /* tasks: a start's name, or "all" */
    unsigned splits;    /* bits 1 << corpus_split */
    json_t *rows; /* {"kernel", "start", "split", "case", "verdict", "error", "tolerance", ...} */
    json_t *replays; /* {"kernel", "start", "verdict", "ptx_sha256", "replayed_sha256"} */
    bool failed;
    ev_lines *lines; /* gets each row too; NULL: no file */
    /* Steps of the task or bundle that is looked at, a row each: those that an earlier process did
     * are passed over. */
    size_t done, step;
    bool again; /* the device is spent: another process has to go on */
} check;

/* A stop was asked for (base/stop.h), or the device is spent. */
bool check_is_over(const check *c);

/* Both end early, with EV_OK, when that is so.
 *
 * The starts of a task, unchanged. EV_BAD: no such task, device or start, or a start that cannot be
 * built. */
ev_status check_task(check *c, const char *name_or_path, ev_error *err) EV_CHECKED;

/* A bundle: its files against their hashes, each variant's shipped PTX on the cases, and the replay
 * of its genome from the bundle's own sources. EV_BAD: a damaged bundle. */
ev_status check_bundle(check *c, const char *path, ev_error *err) EV_CHECKED;

#endif
