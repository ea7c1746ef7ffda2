/* Guard: reports the death of a worker. On a deadly signal, an abort in LLVM, or too much CPU time
 * in an evaluation, the guard sends a `fatal` message with the stage, and ends the process. A
 * process has at most one guard, since signal handlers can reach globals only. */
#ifndef TUNER_WORKER_GUARD_H
#define TUNER_WORKER_GUARD_H

#include "base/status.h"
#include "tuner/worker/protocol.h"

/* Installs the handlers. Messages go to the descriptor `out`. EV_INFRA: the timer cannot be made.
 */
ev_status guard_begin(int out, ev_error *err) EV_CHECKED;
/* Restores the signal handlers and LLVM's handler. */
void guard_end(void);
/* Sets the stage for a `fatal` message. */
void guard_set_stage(stage s);
/* Sets the watchdog: the process may use `cpu_seconds` of CPU time from now on; 0 stops the
 * watchdog. */
void guard_watch(double cpu_seconds);

#endif
