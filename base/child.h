/* Child: does a piece of work in a forked process, so that an abort, a crash or an endless loop
 * costs that piece and not this process. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/status.h"
#include "base/str.h"

/* Runs in the child, which sees all memory of this process as it is now; what it leaves in `out` is
 * carried over. */
typedef ev_status ev_child_work(void *context, ev_str *out, ev_error *err);

typedef struct ev_child {
    const char *what; /* it is, for messages: "building" */
    ev_child_work *work;
    void *context;
    double seconds;  /* that it may take */
    ev_status death; /* what its death means: EV_BAD or EV_INFRA */
} ev_child;

/* The child's status, its message and its text. A child that dies is `death`, with the signal; one
 * that takes too long is killed: `death` too. EV_INFRA: no child could be made. */
ev_status ev_child_run(const ev_child *c, ev_str *out, ev_error *err) EV_CHECKED;
/* In a child, from a handler that must not return: ends it, as EV_BAD. */
_Noreturn void ev_child_leave(const char *why);

#endif
