/* Live: the page of a run that goes on, written again every ten seconds while kernels are tuned. */
#ifndef TUNER_REPORT_LIVE_H
#define TUNER_REPORT_LIVE_H

#include "base/status.h"
#include "tuner/run/tune.h"

#define REPORT_LIVE_SECONDS 10.0

typedef struct report_live report_live;

/* Writes the first page to `path`, before anything is known. `records`: the run's records file,
 * which need not be there yet. Both are borrowed. `seconds`: the least time between two pages. Free
 * *out by report_live_free. EV_BAD: the page cannot be written there. */
ev_status report_live_new(const char *path, const char *records, double seconds, report_live **out,
                          ev_error *err) EV_CHECKED;
/* Writes the page again, if that is due: not before the seconds have passed, and so seldom that at
 * most a twentieth of the time goes into writing. A failure is no failure of the run: the next call
 * tries again. */
void report_live_show(report_live *live, const tune_progress *now);
/* Writes the page of the run as it ended; it does not reload itself any more. `words`: how the run
 * ended, one sentence. EV_BAD, EV_INFRA: as report_run, or the page cannot be written. */
ev_status report_live_end(report_live *live, const char *words, ev_error *err) EV_CHECKED;
void report_live_free(report_live *live); /* NULL is fine */

#endif
