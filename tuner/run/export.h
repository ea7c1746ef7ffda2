/* Export: writes the winners of a run's records as a bundle. */
#ifndef TUNER_RUN_EXPORT_H
#define TUNER_RUN_EXPORT_H

#include "base/status.h"
#include "bundle/sign.h"
#include "kernels/task.h"

#include <stddef.h>

typedef struct export_summary {
    size_t kernels;  /* kernels in the bundle, each with its baseline */
    size_t variants; /* promoted winners in the bundle */
} export_summary;

/* Writes every kernel of the records: the baseline, and the winner where it was promoted; signed by
 * the key, NULL: unsigned. EV_BAD: the records hold no finished task, a task has changed since, a
 * source lies outside its task's folder, or the bundle cannot be written there. */
ev_status export_bundle(const char *records_path, const char *bundle_path, const sign_key *key,
                        export_summary *out, ev_error *err) EV_CHECKED;

/* Checks, before a long run, that the files of a task can go into a bundle. EV_BAD: a file lies
 * outside the task's folder, or there are too many; the message names the file. */
ev_status export_check_task(const task *t, ev_error *err) EV_CHECKED;

#endif
