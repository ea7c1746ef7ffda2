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

/* Of a script around the assembler too, which tells it as 128 and the signal; 0: it ended by
 * itself. */
static int signal_of(const ev_proc_result *result) {
    bool told = result->exit_code > 128 && result->exit_code < 128 + SIGRTMIN;
    return told ? result->exit_code - 128 : result->signal;
}

static ev_status judge(const ptxas *p, const ev_proc_result *result, bool *deadly, ev_error *err) {
    int signal = signal_of(result);
    *deadly = result->timed_out || (signal != 0 && !ev_signal_is_sent(signal));
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

/* The next "N bytes spill stores"; *at: behind it, NULL: there is none. */
static uint32_t next_spills(const char **at) {
    static const char mark[] = " bytes spill stores";
    const char *stores = strstr(*at, mark), *digits = stores;
    while (digits != NULL && digits > *at && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    *at = stores != NULL ? stores + strlen(mark) : NULL;
    return digits != NULL ? (uint32_t)strtoul(digits, NULL, 10) : 0;
}

uint32_t ptxas_spills(const char *log, const char *entry) {
    const char *at = properties_of(log, entry);
    return at != NULL ? next_spills(&at) : 0;
}

/* Of the function that spills most. */
static uint32_t most_spills(const char *log) {
    uint32_t most = 0;
    for (const char *at = log; at != NULL;) {
        uint32_t spills = next_spills(&at);
        most = spills > most ? spills : most;
    }
    return most;
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

/* ---- targets ---- */

static ev_status try_target(const ptxas *p, int sm, ev_error *err) {
    static const char kernel[] =
        ".version 6.3\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
    ev_str cubin = EV_STR_EMPTY, log = EV_STR_EMPTY;
    bool deadly = false;
    ev_status status = ptxas_run(p, kernel, sm, &cubin, &log, &deadly, err);
    ev_str_free(&cubin);
    ev_str_free(&log);
    return status;
}

ev_status ptxas_add_target(ptxas_targets *to, const char *word, ev_error *err) {
    ptxas p;
    char *end = NULL;
    bool is_named = strncmp(word, "sm_", 3) == 0 && word[3] >= '1' && word[3] <= '9';
    long sm = is_named ? strtol(word + 3, &end, 10) : 0;
    if (!is_named || *end != '\0' || sm > 999)
        return ev_fail(err, EV_BAD, "'%s' names no architecture; write sm_90", word);
    if (to->count == PTXAS_TARGETS)
        return ev_fail(err, EV_BAD, "%s: at most %d targets", word, PTXAS_TARGETS);
    ptxas_find(&p);
    if (p.path[0] == '\0')
        return ev_fail(err, EV_BAD,
                       "there is no ptxas in PATH or " USUAL
                       "; install a CUDA toolkit, or name its ptxas in EVOKE_PTXAS");
    EV_TRY(try_target(&p, (int)sm, err));
    to->sm[to->count++] = (int)sm;
    return EV_OK;
}

static ev_status object_for(const ptxas *p, const char *ptx, int sm, char *objection, size_t room,
                            ev_error *err) {
    ev_str cubin = EV_STR_EMPTY, log = EV_STR_EMPTY;
    ev_error why;
    bool deadly = false;
    ev_status status = ptxas_run(p, ptx, sm, &cubin, &log, &deadly, &why);
    uint32_t spills = status == EV_OK ? most_spills(ev_str_text(&log)) : 0;
    objection[0] = '\0';
    if (status == EV_BAD)
        (void)snprintf(objection, room, "sm_%d: %s", sm, why.text);
    else if (spills > 0)
        (void)snprintf(objection, room,
                       "sm_%d: ptxas stores %u bytes of registers a thread to memory", sm, spills);
    ev_str_free(&cubin);
    ev_str_free(&log);
    return status == EV_BAD || status == EV_OK ? EV_OK : ev_fail(err, status, "%s", why.text);
}

ev_status ptxas_object(const ptxas_targets *targets, const char *ptx, char *objection, size_t room,
                       ev_error *err) {
    ptxas p;
    objection[0] = '\0';
    ptxas_find(&p);
    for (size_t i = 0; i < targets->count && objection[0] == '\0'; i++)
        EV_TRY(object_for(&p, ptx, targets->sm[i], objection, room, err));
    return EV_OK;
}
