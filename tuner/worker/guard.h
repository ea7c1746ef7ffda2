/* Guard: lets a worker say its last word. A deadly signal, LLVM's own abort, or an evaluation that
 * uses more CPU time than it may, becomes a `fatal` message with the stage it happened in, and the
 * end of the process. One a process: signal handlers know no other place than globals. */
#ifndef TUNER_WORKER_GUARD_H
#define TUNER_WORKER_GUARD_H

#include "base/status.h"
#include "tuner/worker/protocol.h"

/* Installs the handlers; last words go to `out`. EV_INFRA: no timer. */
ev_status guard_begin(int out, ev_error *err) EV_CHECKED;
/* Gives signals and LLVM's handler back. */
void guard_end(void);
/* The stage that a last word names. */
void guard_set_stage(stage s);
/* The watchdog: this process may use `cpu_seconds` more from now on; 0 stops it. */
void guard_watch(double cpu_seconds);

#endif
