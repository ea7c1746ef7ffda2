/* Progress of a run: a bar on one line of a terminal, or plain lines in a log. */
#ifndef TUNER_CLI_PROGRESS_H
#define TUNER_CLI_PROGRESS_H

#include "base/str.h"
#include "tuner/run/tune.h"

#include <stdbool.h>

typedef struct progress_view {
    int fd;
    bool terminal;         /* a bar; else lines */
    unsigned width;        /* columns of the terminal */
    const char *time_kind; /* "modelled" or "measured"; shown with every time */
    double task_seconds;   /* a task's limit in seconds; 0: by evaluations */
    double line_seconds;   /* least distance of two lines of a log */
} progress_view;

typedef struct progress {
    progress_view view;
    size_t task;       /* index of the task shown last */
    double task_begin; /* its first report, in seconds of the run */
    double last_line;  /* a log: when it was written */
    bool drawn;        /* the terminal's last line has a bar */
    bool begun;
} progress;

/* The view of stderr as it is now. */
progress_view progress_view_stderr(const char *time_kind, double task_seconds);

/* For tune_options: `context` is a progress. */
void progress_show(void *context, const tune_progress *now);
/* Removes the bar, so that further output starts on a clean line. */
void progress_end(progress *p);

/* Appends the bar, or the log line, without control characters. `done` (0 to 1) and `eta_seconds`
 * are of the whole run. */
void progress_bar(const tune_progress *now, double done, double eta_seconds,
                  const progress_view *view, ev_str *out);
void progress_line(const tune_progress *now, const progress_view *view, ev_str *out);
/* Share of the run that is done, 0 to 1. */
double progress_done(const tune_progress *now, double task_seconds, double task_begin);

#endif
