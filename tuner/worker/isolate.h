/* Isolate: does a piece of work with LLVM in a forked child (base/child.h), so that LLVM's abort
 * costs that piece too, with LLVM's words. */
#ifndef TUNER_WORKER_ISOLATE_H
#define TUNER_WORKER_ISOLATE_H

#include "base/child.h"

typedef ev_child_work isolate_work;

/* As ev_child_run. */
ev_status isolate_run(isolate_work *work, void *context, double seconds, ev_str *out,
                      ev_error *err) EV_CHECKED;

#endif
