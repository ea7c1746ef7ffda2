/* Report: one page of HTML about a run, from its records, or about a bundle. The page needs no
 * network. */
#ifndef TUNER_REPORT_REPORT_H
#define TUNER_REPORT_REPORT_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends the page of the records file at `path`. A task whose search has no winner yet is left
 * out. EV_BAD: there is no such file, it is no records file, or no task in it has a winner. */
ev_status report_records(const char *path, ev_str *page, ev_error *err) EV_CHECKED;

/* Appends the page of the bundle at `path`, a folder or a tar: what the page of its records has,
 * but for the search, and the findings of evoke qualify. An oracle in C that the bundle brings is
 * not built. EV_BAD: no bundle is there, or it has no tuned variant. EV_INFRA: memory, or the disk.
 */
ev_status report_bundle(const char *path, ev_str *page, ev_error *err) EV_CHECKED;

/* How the run of a page stands. */
typedef struct report_state {
    const char *text; /* one sentence or more, for the head of the page */
    bool is_live;     /* the run goes on: the page reloads itself, and what takes seconds to compute
                         is left out */
    int64_t stamp;    /* of a live page: seconds of the calendar's clock when it was written */
} report_state;

/* As report_records, of a run that goes on or has just ended: with the tasks that have no winner
 * yet. Where there are no records yet, the page has the state alone. */
ev_status report_run(const char *path, const report_state *state, ev_str *page,
                     ev_error *err) EV_CHECKED;

#endif
