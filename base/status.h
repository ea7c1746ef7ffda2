/* Status: the answer of every call that can fail.
 *
 * Three classes, never mixed. A caller's bug is an assert. Bad input or a bad candidate is EV_BAD
 * with a message that names the thing, the place and the cure. A failure of the machine (disk full,
 * driver gone, worker killed, out of memory) is EV_INFRA: never scored, never cached, exit code 3.
 *
 * Ownership law of the whole project: a `const` pointer is borrowed for the call; an out-pointer
 * (`T **out`) hands the object to the caller, who frees it with T's own free function; what an
 * arena gives lives until the arena is freed. On any status but EV_OK, out-pointers are left
 * unchanged. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdarg.h>

typedef enum ev_status {
    EV_OK = 0,
    EV_BAD,   /* bad input or bad candidate: the user or the search can act on the message */
    EV_INFRA, /* the machine failed: says nothing about the input */
} ev_status;

/* The message that goes with a status. One lives on the caller's stack and is passed down as the
 * last argument; it is written only when a call fails. */
typedef struct ev_error {
    ev_status status;
    char text[1500];
} ev_error;

#define EV_CHECKED __attribute__((warn_unused_result))
#define EV_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* Writes the message and returns `status`, so that a failing function ends in `return
 * ev_fail(...)`. `err` may be NULL if the message is not needed. */
ev_status ev_fail(ev_error *err, ev_status status, const char *format, ...) EV_PRINTF(3, 4);

/* Out of memory: EV_INFRA with the number of bytes that were asked for. */
ev_status ev_fail_memory(ev_error *err, unsigned long long bytes);

/* A system call failed: EV_INFRA, "WHAT PATH: strerror(errno)". */
ev_status ev_fail_errno(ev_error *err, const char *what, const char *path);

/* Puts "PLACE: " in front of a message already written; returns its status. */
ev_status ev_wrap(ev_error *err, ev_status status, const char *format, ...) EV_PRINTF(3, 4);

/* Forwards a failure. */
#define EV_TRY(call)                                                                               \
    do {                                                                                           \
        ev_status ev_try_status_ = (call);                                                         \
        if (ev_try_status_ != EV_OK)                                                               \
            return ev_try_status_;                                                                 \
    } while (0)

/* The exit code of main for a status: 0 ok, 2 bad input, 3 infrastructure. */
int ev_status_exit_code(ev_status status);

/* The analyser reads one file at a time: here it learns that a failure returns no EV_OK. */
#if defined(__clang_analyzer__) && !defined(BASE_STATUS_C)
static inline ev_status ev_as(ev_status status, ev_status returned) {
    (void)returned;
    return status;
}
#define ev_fail(err, status, ...) ev_as(status, ev_fail(err, status, __VA_ARGS__))
#define ev_fail_memory(err, bytes) ev_as(EV_INFRA, ev_fail_memory(err, bytes))
#define ev_fail_errno(err, what, path) ev_as(EV_INFRA, ev_fail_errno(err, what, path))
#define ev_wrap(err, status, ...) ev_as(status, ev_wrap(err, status, __VA_ARGS__))
#endif

#endif
