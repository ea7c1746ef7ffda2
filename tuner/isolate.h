/* Isolate: does a piece of work in a forked child, so that LLVM's abort, a crash or an endless loop
 * costs that piece and not this process. */
#ifndef TUNER_ISOLATE_H
#define TUNER_ISOLATE_H

#include "base/status.h"
#include "base/str.h"

/* Runs in the child, which sees all memory of this process as it is now; what it leaves in `out` is
 * carried over. */
typedef ev_status isolate_work(void *context, ev_str *out, ev_error *err);

/* The child's status, its message and its text. A child that dies is EV_BAD, with LLVM's words or
 * the signal; one that takes longer than `seconds` is killed: EV_BAD too. EV_INFRA: no child
 * could be made. */
ev_status isolate_run(isolate_work *work, void *context, double seconds, ev_str *out,
                      ev_error *err) EV_CHECKED;

#endif
