/* Isolate: runs work with LLVM in a forked child (base/child.h), so that an abort in LLVM ends only
 * the child, and LLVM's message is kept. */
#ifndef TUNER_WORKER_ISOLATE_H
#define TUNER_WORKER_ISOLATE_H

#include "base/child.h"

typedef ev_child_work isolate_work;

/* As ev_child_run. `seconds`: limit of time. */
ev_status isolate_run(isolate_work *work, void *context, double seconds, ev_str *out,
                      ev_error *err) EV_CHECKED;

#endif
