/* Relay: work that needs one process after another, since a process may come to its end on the way
 * without the work's fault: after a fault of a kernel the CUDA driver may take no further call from
 * the process where it happened, and a child that is forked from there can't use the driver either.
 *
 * This process never does the work itself. A child does, as far as it comes, and hands over either
 * what it has, for the next child to go on from, or the result. */
#ifndef BASE_RELAY_H
#define BASE_RELAY_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

typedef struct ev_relay {
    void *context;
    /* In the child: goes on from what `context` holds. Sets *again where this process can't go on
     * and another one could; `baton` is then what there is so far, else the result. */
    ev_status (*run)(void *context, ev_str *baton, bool *again, ev_error *err);
    /* In this process: puts it into `context`. */
    ev_status (*take)(void *context, const ev_str *baton, bool again, ev_error *err);
    bool apart; /* false: no child; `run` is called here, and once */
} ev_relay;

/* Until a result is there. EV_INFRA: a child died, or left without having come further than the one
 * before. */
ev_status ev_relay_run(const ev_relay *r, ev_error *err) EV_CHECKED;

#endif
