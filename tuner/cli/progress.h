/* Progress of a run: a status line for each kernel on a terminal, redrawn in place, or plain lines
 * in a log. */
#ifndef TUNER_CLI_PROGRESS_H
#define TUNER_CLI_PROGRESS_H

#include "base/str.h"
#include "tuner/run/tune.h"

#include <stdbool.h>

typedef struct progress_view {
    int fd;
    bool terminal;         /* a status line; else lines of a log */
    bool colours;          /* with SGR codes */
    unsigned width;        /* columns of the terminal, asked anew before each drawing */
    const char *time_kind; /* "modelled" or "measured"; shown with every time */
    double task_seconds;   /* a task's limit in seconds; 0: by evaluations */
    double line_seconds;   /* least distance of two lines of a log */
} progress_view;

typedef struct progress {
    progress_view view;
    size_t task;       /* index of the task shown last */
    double task_begin; /* its first report, in seconds of the run */
    double last_line;  /* a log: when it was written */
    tune_progress now; /* shown last on a terminal */
    char kernel[96];   /* of `now` */
    bool drawn;        /* the terminal's last line is the status line of `now` */
    bool begun;
} progress;

/* The view of stderr as it is now. A terminal that can redraw nothing (TERM=dumb) gets lines; with
 * NO_COLOR (no-color.org) there are no colours. */
progress_view progress_view_stderr(const char *time_kind, double task_seconds);

/* For tune_options: `context` is a progress. */
void progress_show(void *context, const tune_progress *now);
/* Leaves the last kernel's line as it ended, so that further output starts on a clean line. */
void progress_end(progress *p);

/* What a status line says beside the run's own counts. */
typedef struct progress_pace {
    double done;         /* of the kernel, 0 to 1 */
    double rate;         /* evaluations a second; 0: not known */
    double seconds;      /* the kernel took so far */
    double left_seconds; /* of the kernel; below 0: not known */
    bool is_over;        /* the kernel is done */
} progress_pace;

/* Appends the status line: at most width - 1 columns, and no control characters but colours.
 * progress_line appends the line of a log. */
void progress_bar(const tune_progress *now, const progress_pace *pace, const progress_view *view,
                  ev_str *out);
void progress_line(const tune_progress *now, const progress_view *view, ev_str *out);
/* The pace of the kernel that `now` is of. */
progress_pace progress_pace_of(const tune_progress *now, double task_seconds, double task_begin);

#endif
