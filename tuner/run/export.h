/* Export: the winners in a run's records as a bundle. */
#ifndef TUNER_RUN_EXPORT_H
#define TUNER_RUN_EXPORT_H

#include "base/status.h"

#include <stddef.h>

typedef struct export_summary {
    size_t kernels;  /* in the bundle, each with its untuned baseline */
    size_t variants; /* promoted */
} export_summary;

/* Writes every kernel of the records: its baseline, and its winner where that was promoted. EV_BAD:
 * no finished task, a task that has changed since, a source outside its task's folder, a bad place
 * for the bundle. */
ev_status export_bundle(const char *records_path, const char *bundle_path, export_summary *out,
                        ev_error *err) EV_CHECKED;

#endif
