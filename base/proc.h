/* Child processes without a shell: run one to its end, or keep one behind two pipes. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct ev_proc_result {
    int exit_code; /* -1 when a signal ended it */
    int signal;    /* 0 when it exited */
    bool timed_out;
    ev_str out;
    ev_str err;
} ev_proc_result;

/* Runs argv[0] (looked up in PATH) with `input` on stdin (NULL: none), collects both outputs, kills
 * it after `seconds` (0: no limit). Its own children that outlive it are killed too. Not being able
 * to start it is EV_INFRA, except a program that is not installed: EV_BAD, with its name. How it
 * ended is in `result`, which the caller frees. */
ev_status ev_proc_run(const char *const argv[], const char *input, double seconds,
                      ev_proc_result *result, ev_error *err) EV_CHECKED;
void ev_proc_result_free(ev_proc_result *result);

/* A child kept running: `in` writes to its stdin, `out` reads its stdout; stderr is inherited. The
 * child is in its own process group and dies with its parent (PR_SET_PDEATHSIG; the kernel means
 * the thread that started it, so that thread must live as long). Pipes are close-on-exec. Whoever
 * writes to `in` ignores SIGPIPE; the child starts with SIGPIPE and SIGXFSZ at their defaults. */
typedef struct ev_proc {
    pid_t pid;
    int in;
    int out;
} ev_proc;

ev_status ev_proc_spawn(const char *const argv[], ev_proc *out, ev_error *err) EV_CHECKED;
/* Closes the pipes, kills the group if it still runs (`force`), reaps; the wait status, or -1. */
int ev_proc_end(ev_proc *proc, bool force);

/* Seconds on the monotonic clock, and CPU seconds of the calling thread and of all threads. (Linux
 * reads the CPU clock of a whole process to a tick, 4 ms, while the process has a timer on it, as
 * workers have.) */
double ev_clock_now(void);
double ev_clock_cpu(void);
double ev_clock_threads(void);

#endif
