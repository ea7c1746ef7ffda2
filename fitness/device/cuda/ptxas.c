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

/* ---- what it says ---- */

static const char *properties_of(const char *log, const char *entry) {
    char wanted[300];
    (void)snprintf(wanted, sizeof wanted, "properties for %.200s\n", entry);
    return strstr(log, wanted);
}

/* Of "N bytes spill stores" after the entry's name. */
uint32_t ptxas_spills(const char *log, const char *entry) {
    const char *at = properties_of(log, entry);
    const char *stores = at != NULL ? strstr(at, " bytes spill stores") : NULL;
    if (stores == NULL)
        return 0;
    const char *digits = stores;
    while (digits > at && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    return (uint32_t)strtoul(digits, NULL, 10);
}

/* Of "Used N registers" after it. */
uint32_t ptxas_registers(const char *log, const char *entry) {
    static const char mark[] = "Used ";
    const char *at = properties_of(log, entry);
    const char *used = at != NULL ? strstr(at, mark) : NULL;
    return used != NULL ? (uint32_t)strtoul(used + strlen(mark), NULL, 10) : 0;
}

/* Of "Cuda compilation tools, release 13.0, V13.0.88". */
static ev_status ask_version(const ptxas *p, char *out, size_t room, ev_error *err) {
    const char *const argv[] = {p->path, "--version", NULL};
    ev_proc_result result;
    EV_TRY(ev_proc_run(argv, NULL, p->seconds, &result, err));
    const char *at = strstr(ev_str_text(&result.out), ", V");
    size_t length = at != NULL ? strspn(at + 3, "0123456789.") : 0;
    (void)snprintf(out, room, "ptxas%s%.*s", length > 0 ? " V" : "", (int)length,
                   length > 0 ? at + 3 : "");
    ev_proc_result_free(&result);
    return EV_OK;
}

ev_status ptxas_assemble(const char *ptx, const char *entry, int sm, bool *found, ptxas_code *out,
                         ev_error *err) {
    ptxas p;
    ev_str log = EV_STR_EMPTY;
    ev_error why;
    bool deadly = false;
    *out = (ptxas_code){.cubin = EV_STR_EMPTY};
    *found = false;
    ptxas_find(&p);
    if (p.path[0] == '\0')
        return EV_OK;
    ev_status status = ptxas_run(&p, ptx, sm, &out->cubin, &log, &deadly, &why);
    *found = status == EV_OK;
    out->registers = ptxas_registers(ev_str_text(&log), entry);
    out->spill_bytes = ptxas_spills(ev_str_text(&log), entry);
    ev_str_free(&log);
    return *found ? ask_version(&p, out->version, sizeof out->version, err) : EV_OK;
}
