/* Relay: work by one process after another. After a kernel's fault, the CUDA driver may accept no
 * further call from the process, nor from a child forked from it, although the work has more to do.
 *
 * This process never does the work itself. A child works as far as it can, and hands over either
 * its state, from which the next child continues, or the result. */
#ifndef BASE_RELAY_H
#define BASE_RELAY_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

typedef struct ev_relay {
    void *context;
    /* In the child: continues from `context`. Sets *again if this process cannot continue and
     * another one could; `baton` is then the state so far, and otherwise the result. */
    ev_status (*run)(void *context, ev_str *baton, bool *again, ev_error *err);
    /* In this process: reads the baton into `context`. */
    ev_status (*take)(void *context, const ev_str *baton, bool again, ev_error *err);
    bool apart; /* false: without a child; `run` is called once, in this process */
} ev_relay;

/* Runs children until one has the result. EV_INFRA: a child died, or got no further than the one
 * before. */
ev_status ev_relay_run(const ev_relay *r, ev_error *err) EV_CHECKED;

#endif
