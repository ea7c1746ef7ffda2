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

/* Runs argv[0] (looked up in PATH) with `input` on stdin (NULL: none) and collects both outputs.
 * The process is killed after `seconds` (0: no limit), and so are children that outlive it.
 * `result` tells how the process ended; the caller frees it. EV_BAD with the name: the program is
 * not installed. EV_INFRA: any other failure to start it. */
ev_status ev_proc_run(const char *const argv[], const char *input, double seconds,
                      ev_proc_result *result, ev_error *err) EV_CHECKED;
void ev_proc_result_free(ev_proc_result *result);
/* As ev_proc_run, for a program whose exit code is a verdict on its input. A program that somebody
 * ends (ev_signal_is_sent) is run once more. EV_INFRA: the second run was ended, too. */
ev_status ev_proc_judge(const char *const argv[], const char *input, double seconds,
                        ev_proc_result *result, ev_error *err) EV_CHECKED;
/* Whether somebody sends this signal, the kernel's out-of-memory killer among them. A process that
 * such a signal ends tells nothing of its work. */
bool ev_signal_is_sent(int signal);

/* A running child. `in` writes to its stdin, `out` reads its stdout; stderr is inherited. The child
 * is in its own process group and dies with its parent (PR_SET_PDEATHSIG). For the kernel, the
 * parent is the thread that started the child, so that thread must live as long. Pipes are
 * close-on-exec. A process that writes to `in` must ignore SIGPIPE. The child starts with SIGPIPE
 * and SIGXFSZ at their defaults. */
typedef struct ev_proc {
    pid_t pid;
    int in;
    int out;
} ev_proc;

ev_status ev_proc_spawn(const char *const argv[], ev_proc *out, ev_error *err) EV_CHECKED;
#define EV_PROC_PATIENCE 20.0 /* seconds for a child that ends by itself */

/* Closes the pipes and reaps the child. The group of a child that has not ended within `seconds` is
 * killed; 0: it is killed at once. Returns the wait status, or -1. */
int ev_proc_end(ev_proc *proc, double seconds);
/* Closes the pipes. A child that reads its input to the end then ends by itself. */
void ev_proc_hang_up(ev_proc *proc);

/* Seconds on the monotonic clock; CPU seconds of the calling thread; CPU seconds of all threads.
 * The last has a resolution of 4 ms while the process has a timer on that clock, as workers have.
 */
double ev_clock_now(void);
double ev_clock_cpu(void);
double ev_clock_threads(void);

#endif
