/* Runs ptxas as a child process: text in, machine code out, both through pipes. */
#include "fitness/device/cuda/ptxas.h"

#include "base/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL "/usr/local/cuda/bin"
#define SECONDS 30

static bool is_in(const char *dir, size_t length, ptxas *out) {
    int written =
        snprintf(out->path, sizeof out->path, "%.*s/ptxas", (int)length, length > 0 ? dir : ".");
    return written > 0 && (size_t)written < sizeof out->path && access(out->path, X_OK) == 0;
}

static bool is_in_path(ptxas *out) {
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        if (length > 0 && is_in(at, length, out))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

void ptxas_find(ptxas *out) {
    const char *named = getenv("EVOKE_PTXAS");
    *out = (ptxas){.seconds = SECONDS};
    if (named != NULL && named[0] != '\0') {
        if (strcmp(named, "none") != 0)
            (void)snprintf(out->path, sizeof out->path, "%s", named);
        return;
    }
    if (!is_in_path(out) && !is_in(USUAL, strlen(USUAL), out))
        out->path[0] = '\0';
}

/* The target's own letter is part of the name: code with features of sm_90a is for that alone. */
static void name_target(const char *ptx, int sm, char *text, size_t room) {
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, ".target sm_%da", sm);
    (void)snprintf(text, room, "-arch=sm_%d%s", sm, strstr(ptx, wanted) != NULL ? "a" : "");
}

/* A signal that somebody sends, the kernel's out-of-memory killer among them, tells nothing of the
 * text. */
static bool is_crash(int signal) {
    return signal != 0 && signal != SIGKILL && signal != SIGTERM && signal != SIGINT &&
           signal != SIGHUP;
}

/* Of a script around the assembler too, which tells it as 128 and the signal; 0: it ended by
 * itself. */
static int signal_of(const ev_proc_result *result) {
    bool told = result->exit_code > 128 && result->exit_code < 128 + SIGRTMIN;
    return told ? result->exit_code - 128 : result->signal;
}

static ev_status judge(const ptxas *p, const ev_proc_result *result, bool *deadly, ev_error *err) {
    int signal = signal_of(result);
    *deadly = result->timed_out || is_crash(signal);
    if (result->timed_out)
        return ev_fail(err, EV_BAD, "%s takes longer than %g s for this PTX", p->path, p->seconds);
    if (signal != 0)
        return ev_fail(err, EV_BAD,
                       "%s died of signal %d (%s) on this PTX; write the failing instruction in "
                       "another form, or name another ptxas in EVOKE_PTXAS",
                       p->path, signal, strsignal(signal));
    if (result->exit_code != 0)
        return ev_fail(err, EV_BAD, "%s: %.1000s", p->path, ev_str_text(&result->err));
    return result->out.length >= 4 ? EV_OK
                                   : ev_fail(err, EV_BAD, "%s gives no machine code", p->path);
}

ev_status ptxas_run(const ptxas *p, const char *ptx, int sm, ev_str *cubin, ev_str *log,
                    bool *deadly, ev_error *err) {
    char target[32];
    ev_proc_result result;
    *deadly = false;
    name_target(ptx, sm, target, sizeof target);
    const char *const argv[] = {p->path, "-v", target, "-o", "/dev/stdout", "/dev/stdin", NULL};
    if (ev_proc_run(argv, ptx, p->seconds, &result, err) != EV_OK)
        return ev_wrap(err, EV_INFRA, "ptxas");
    ev_status status = judge(p, &result, deadly, err);
    ev_str_append_n(cubin, ev_str_text(&result.out), result.out.length);
    ev_str_append(log, ev_str_text(&result.err));
    ev_proc_result_free(&result);
    if (status == EV_OK)
        status = ev_str_status(cubin, err);
    return status == EV_OK ? ev_str_status(log, err) : status;
}
