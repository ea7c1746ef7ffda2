/* Guard: signal handlers and a timer on the process's CPU time, for workers. */
#include "tuner/worker/guard.h"

#include "ir/ir.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_FATAL 70 /* a `fatal` message was sent */
#define WATCHDOG SIGXCPU

static const struct {
    int number;
    const char *words;
} deadly[] = {
    {SIGSEGV, "segmentation fault"},
    {SIGBUS, "bus error"},
    {SIGILL, "illegal instruction"},
    {SIGFPE, "arithmetic fault"},
    {SIGABRT, "abort"},
    {WATCHDOG, "too much CPU time: it hangs"},
};

#define DEADLY_COUNT (sizeof deadly / sizeof deadly[0])
#define STACK_BYTES 65536

/* The state that a handler may read. */
static volatile sig_atomic_t guard_stage;
static volatile sig_atomic_t guard_out = -1;
static timer_t guard_timer;
static bool guard_has_timer;
static struct sigaction guard_before[DEADLY_COUNT];
static char guard_stack[STACK_BYTES]; /* signals need a stack of their own, since a stack
                                         overflow is one of them */

/* Sends a `fatal` message and ends the process, with async-signal-safe calls only. `reason` needs
 * no quoting in JSON. */
static _Noreturn void last_word(const char *reason) {
    message_write_fatal((int)guard_out, (stage)guard_stage, reason);
    _exit(EXIT_FATAL);
}

static void on_signal(int number) {
    const char *words = "a deadly signal";
    for (size_t i = 0; i < DEADLY_COUNT; i++) {
        if (deadly[i].number == number)
            words = deadly[i].words;
    }
    last_word(words);
}

/* LLVM's message may hold any characters; those that JSON would quote become blanks. */
static void on_llvm_abort(const char *reason) {
    char text[512] = "LLVM gave up: ";
    size_t length = strlen(text);
    for (; *reason && length + 1 < sizeof text; reason++) {
        bool plain = *reason >= ' ' && *reason < 127 && *reason != '"' && *reason != '\\';
        text[length++] = plain ? *reason : ' ';
    }
    text[length] = '\0';
    last_word(text);
}

ev_status guard_begin(int out, ev_error *err) {
    guard_out = out;
    guard_stage = STAGE_IDLE;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = WATCHDOG};
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &guard_timer) != 0)
        return ev_fail_errno(err, "cannot make a timer for", "the worker");
    guard_has_timer = true;
    stack_t stack = {.ss_sp = guard_stack, .ss_size = sizeof guard_stack};
    (void)sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        (void)sigaction(deadly[i].number, &action, &guard_before[i]);
    ir_set_fatal_handler(on_llvm_abort);
    return EV_OK;
}

void guard_end(void) {
    if (guard_has_timer)
        (void)timer_delete(guard_timer);
    guard_has_timer = false;
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        (void)sigaction(deadly[i].number, &guard_before[i], NULL);
    stack_t none = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&none, NULL);
    ir_set_fatal_handler(NULL);
    guard_out = -1;
}

void guard_set_stage(stage s) {
    guard_stage = (sig_atomic_t)s;
}

void guard_watch(double cpu_seconds) {
    struct itimerspec until = {.it_value = {.tv_sec = (time_t)cpu_seconds}};
    until.it_value.tv_nsec = (long)((cpu_seconds - (double)until.it_value.tv_sec) * 1e9);
    if (guard_has_timer)
        (void)timer_settime(guard_timer, 0, &until, NULL);
}
