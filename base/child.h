/* Child: does a piece of work in a forked process. An abort, a crash or an endless loop ends the
 * child, not this process. And the long messages of other programs and processes: an error has the
 * first lines, and the whole is kept for whoever shows the error to a person. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/status.h"
#include "base/str.h"

/* Environment variable, which worker processes inherit: the folder of a CUDA toolkit, whose headers
 * and libdevice a .cu is compiled with in place of evoke_cuda.h. */
#define EV_CUDA_PATH "EVOKE_CUDA_PATH"

/* Runs in the child, which has a copy of this process's memory. The contents of `out` are copied
 * back to the caller of ev_child_run. */
typedef ev_status ev_child_work(void *context, ev_str *out, ev_error *err);

typedef struct ev_child {
    const char *what; /* the work's name for messages: "building" */
    ev_child_work *work;
    void *context;
    double seconds;  /* time limit */
    ev_status death; /* the status if the child dies or exceeds the limit: EV_BAD or EV_INFRA */
} ev_child;

/* Returns the child's status, with its message in `err` and its text in `out`. A child that dies,
 * or that is killed at its time limit, gives the status `death`; the message names the signal.
 * EV_INFRA: fork failed, or somebody else ended the child (ev_signal_is_sent). */
ev_status ev_child_run(const ev_child *c, ev_str *out, ev_error *err) EV_CHECKED;
/* Ends a child from a handler that must not return; the work's status is EV_BAD. */
_Noreturn void ev_child_leave(const char *why);

/* As ev_fail, with a message of any length. err->text has as many lines as leave room for the
 * places of ev_wrap, and says how many bytes are left out; the whole is kept until the next long
 * message of the process. */
ev_status ev_fail_long(ev_error *err, ev_status status, const char *message);

/* Appends the error's message: whole, with its places in front, if it is the long message that is
 * kept; else err->text. */
void ev_error_whole(const ev_error *err, ev_str *out);

#endif
