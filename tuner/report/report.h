/* Report: one page of HTML about a run, from its records. The page needs no network. */
#ifndef TUNER_REPORT_REPORT_H
#define TUNER_REPORT_REPORT_H

#include "base/status.h"
#include "base/str.h"

/* Appends the page of the records file at `path`. A task whose search has no winner yet is left
 * out. EV_BAD: there is no such file, it is no records file, or no task in it has a winner. */
ev_status report_records(const char *path, ev_str *page, ev_error *err) EV_CHECKED;

#endif
