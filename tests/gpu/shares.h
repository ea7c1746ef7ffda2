/* Shares: one piece of work, done by several forked processes at once, each its share. A share that
 * could not begin, as where a device has no room for so many processes, is tried again, with fewer
 * processes at once. */
#ifndef TESTS_GPU_SHARES_H
#define TESTS_GPU_SHARES_H

#include "base/str.h"

#include <stdbool.h>

typedef struct shares {
    void *context;
    unsigned count; /* 1: in this process */
    /* In the process of share 0..count-1: its result as text. A failure with *again may be tried
     * again in a new process. */
    ev_status (*work)(void *context, unsigned share, ev_str *out, bool *again, ev_error *err);
    /* In this process, in the order of the shares: reads the result into `context`. */
    ev_status (*take)(void *context, const ev_str *out, ev_error *err);
} shares;

/* Ends when all have ended. At first all shares run at once. Those that ask for it are tried again,
 * each time half as many at once, at last one by one, until that helps none of them. A share that
 * fails loses only its own result: the others are taken, and the first failure is the status.
 * EV_INFRA: a process died, or could not be made. */
ev_status shares_run(const shares *s, ev_error *err) EV_CHECKED;

#endif
