/* Check: tests a bundle's kernels, or a task's starts, against the oracle, for `evoke check`. */
#ifndef TUNER_CHECK_CHECK_H
#define TUNER_CHECK_CHECK_H

#include "base/lines.h"
#include "base/status.h"
#include "bundle/reader.h"
#include "fitness/device/device.h"
#include "tuner/run/shipped.h"
#include "tuner/stress/stress.h"

#include <jansson.h>
#include <stdbool.h>

/* One run of the command. Each finding is appended to `rows` or `replays` as an object. */
typedef struct check {
    const char *device; /* NULL: the device that fits */
    const char *start;  /* of a task: the name of a start, or "all" */
    const char *genome; /* of a task: a file with a genome to check in place of the starts; NULL */
    unsigned splits;    /* set of bits 1 << corpus_split */
    json_t *rows; /* {"kernel", "start", "split", "case", "verdict", "error", "tolerance", ...}; of
                     a finding also "kind" (check/verdicts.def) and "reason" */
    json_t *replays;  /* {"kernel", "start", "verdict", "ptx_sha256", "replayed_sha256"} */
    json_t *stresses; /* of each candidate that passed, as stress_run gives them */
    const stress_limits *stress; /* NULL: no stress */
    bool failed;
    shipped_trust trust;         /* of oracles that a bundle brings */
    const bundle_trust *signers; /* bundles must be signed by one of these; NULL: any bundle */
    bool is_apart;               /* of the kernel at hand: the baseline stands for its oracle */
    char unset[sizeof((ev_error *)0)->text]; /* why the first kernel could not be judged; "": all
                                                could */
    void (*warn)(const char *text);          /* told of weak points of a task; NULL: nobody */
    ev_lines *lines;                         /* receives each row too; NULL: no file */
    /* Steps of this task or bundle, one a row. The first `done` steps were done by an earlier
     * process and are skipped; `step` counts all. */
    size_t done, step;
    bool again; /* the device is spent: a new process must continue */
} check;

/* True: a stop was asked for (base/stop.h), or the device is spent. */
bool check_is_over(const check *c);

/* Checks the unmodified starts of a task, or the genome. Returns EV_OK early once check_is_over.
 * EV_BAD: there is no such task, device or start, or a start cannot be built. */
ev_status check_task(check *c, const char *name_or_path, ev_error *err) EV_CHECKED;

/* Checks a bundle: files against their hashes, the shipped PTX of each variant on the cases, and
 * the replay of its genome from the bundle's own sources, errors and times against the record. A
 * kernel that cannot be judged is a row of kind "setup", and the check goes on. Returns EV_OK early
 * once check_is_over. EV_BAD: the bundle is damaged, or not signed as it must be. */
ev_status check_bundle(check *c, const char *path, ev_error *err) EV_CHECKED;

#endif
