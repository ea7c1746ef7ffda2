/* Run_of: the evaluations of the tasks of a records file, for formats that list them. */
#ifndef TUNER_EXPORTS_RUN_OF_H
#define TUNER_EXPORTS_RUN_OF_H

#include "tuner/exports/exports.h"
#include "tuner/run/records.h"

/* A records file, open for reading. */
typedef struct exports_run {
    records *records;
    records_winner *winners; /* of the tasks that r->only leaves */
    size_t count;
    records_winner *all;
    size_t all_count;
} exports_run;

/* Close by exports_run_close, also after a failure. EV_BAD: no records, no task with a winner, or
 * none that is called r->only; the message lists the tasks. */
ev_status exports_run_open(const exports_request *r, exports_run *out, ev_error *err) EV_CHECKED;
void exports_run_close(exports_run *run);

/* "modelled" or "measured": what the times of a task are. */
const char *exports_run_kind(const records_winner *w);

#endif
