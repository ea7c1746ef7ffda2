/* Pool, slots: starts workers, gives them work, and finds out why a worker ended. */
#include "tuner/worker/pool_inside.h"

#include "fitness/device/device.h"
#include "ir/ir.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GREETING_SECONDS 60.0 /* time for a connection and a start */
#define OPENING_SECONDS 1800.0
#define JOB_SECONDS 300.0 /* the watchdog's CPU time, on processors that do much else */
#define LONG_JOB_SECONDS 900.0
#define WATCHDOG_SECONDS 20 /* CPU seconds for one evaluation */
#define MOST_LOST 4         /* workers lost over one job, before the run fails */
#define MOST_LATE 2         /* deadlines that one job may miss, before its candidate is to blame */
#define MOST_DEATHS 12      /* workers lost in a row, before the run fails */

void pool_say(slot *s, const message *m) {
    /* If the send fails, the worker is gone. The next read shows that, and says more. */
    ev_error gone;
    ev_status status = message_send(&s->line, m, &gone);
    (void)status;
}

ev_status pool_start(pool *p, slot *s, ev_error *err) {
    assert(s->state == SLOT_EMPTY);
    *s = pool_slot(p, (size_t)(s - p->slots));
    const char *shell[] = {"/bin/sh", "-c", NULL, NULL};
    if (p->options.commands)
        shell[2] = p->options.commands[s - p->slots];
    EV_TRY(ev_proc_spawn(p->options.commands ? shell : p->options.argv, &s->proc, err));
    s->state = SLOT_GREETING;
    s->line.in = s->proc.out;
    s->line.out = s->proc.in;
    s->deadline = ev_clock_now() + GREETING_SECONDS;
    message hello = {.kind = MESSAGE_HELLO,
                     .hello = {PROTOCOL_VERSION, EVOKE_VERSION, ir_llvm_version()}};
    pool_say(s, &hello);
    return EV_OK;
}

/* The number of cores from which on a run of all blocks is shared. Each job copies the pages that
 * it writes, and so doubles the work. */
#define SPREADS_OVER 4

/* The idle cores, for the one worker that promotes while the others wait, if they help. Unknown for
 * other machines. */
static unsigned idle_cores(const pool *p) {
    return p->options.commands || p->options.workers < SPREADS_OVER ? 1 : p->options.workers;
}

void pool_send_open(pool *p, slot *s, unsigned splits) {
    message open = {.kind = MESSAGE_OPEN,
                    .open = {.task = p->task,
                             .device = s->device,
                             .role = s->role,
                             .splits = splits,
                             .jobs = idle_cores(p),
                             .watchdog = WATCHDOG_SECONDS,
                             .holds_never = getenv(DEVICE_NO_HOLD) != NULL}};
    s->state = SLOT_OPENING;
    s->splits = splits;
    s->at = STAGE_OPEN;
    s->deadline = ev_clock_now() + OPENING_SECONDS;
    s->serial = p->serial;
    pool_say(s, &open);
}

/* Borrows from the job. */
static message message_of(const pool_job *job) {
    message m = {.kind = job->screened ? MESSAGE_TIME : job->kind};
    switch (m.kind) {
    case MESSAGE_CHILD:
        m.child.recipe = job->recipe;
        break;
    case MESSAGE_TIME:
        m.screened = (screened_message){.genome = job->result.genome,
                                        .ptx = job->screening.passed.ptx,
                                        .score = job->screening.passed.score};
        break;
    case MESSAGE_PROMOTE:
        m.promote = (promote_message){.genome = job->result.genome, .bar = job->bar};
        break;
    default:
        m.variant.genome = job->result.genome;
    }
    return m;
}

void pool_send_job(slot *s, pool_job *job) {
    assert(s->state == SLOT_IDLE);
    s->state = SLOT_BUSY;
    s->job = job;
    s->at = STAGE_IDLE;
    s->began = ev_clock_now();
    s->deadline = ev_clock_now() + (pool_needs_all_splits(job) ? LONG_JOB_SECONDS : JOB_SECONDS);
    message m = message_of(job);
    pool_say(s, &m);
}

/* ---- ends ---- */

static const char *signal_words(int number) {
    switch (number) {
    case SIGSEGV:
        return "segmentation fault";
    case SIGABRT:
        return "abort";
    case SIGBUS:
        return "bus error";
    case SIGILL:
        return "illegal instruction";
    case SIGFPE:
        return "arithmetic fault";
    default:
        return NULL;
    }
}

/* The name of a signal that only the process itself can cause, from a signal or, through a shell or
 * ssh, an exit code above 128. NULL: the process ended in another way. */
static const char *own_fault(int status) {
    if (status == -1)
        return NULL;
    if (WIFSIGNALED(status))
        return signal_words(WTERMSIG(status));
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return code > 128 ? signal_words(code - 128) : NULL;
}

/* Blames the candidate, which brought the worker down. */
static void blame(slot *s, const char *why) {
    child_result *r = &s->job->result;
    r->outcome = (child_outcome){.stopped = pool_gate_of(s->at)};
    snprintf(r->reason, sizeof r->reason, "the worker went down in stage '%s': %s",
             stage_name(s->at), why);
}

/* Repeats the job on another worker, since the machine is to blame. The job goes to the front,
 * because the commit order waits for it. */
static ev_status try_again(pool *p, slot *s, const char *why, ev_error *err) {
    pool_job *job = s->job;
    job->lost++;
    if (job->lost >= MOST_LOST)
        return ev_fail(err, EV_INFRA,
                       "%u workers were lost over evaluation %llu without its fault; the last: %s",
                       job->lost, (unsigned long long)job->number, why);
    (void)pool_leave(p, s);
    job->next = p->queue;
    p->queue = job;
    message_free(&job->answer);
    job->reply = NULL;
    if (job->kind == MESSAGE_CHILD && !job->screened)
        child_result_free(&job->result); /* the other worker draws the child again */
    job->result.outcome = (child_outcome){.stopped = GATE_NONE};
    return EV_OK;
}

static ev_status account(pool *p, slot *s, const char *fault, const char *why, ev_error *err) {
    bool candidate_ran = s->at >= STAGE_DRAW;
    if (s->state == SLOT_OPENING && fault)
        return ev_fail(err, EV_BAD,
                       "the worker went down while it opened the task %s: %s; look at "
                       "the sources of its starts",
                       p->task, fault);
    if (s->state == SLOT_BUSY && fault && candidate_ran) {
        blame(s, fault);
        pool_finish(p, s);
        return EV_OK;
    }
    p->deaths++;
    if (p->deaths > MOST_DEATHS)
        return ev_fail(err, EV_INFRA, "%u workers in a row ended before their time; the last: %s",
                       p->deaths, why);
    return s->state == SLOT_BUSY ? try_again(p, s, why, err) : EV_OK;
}

/* How a process ended, in words. */
static const char *end_words(int status, char *text, size_t bytes) {
    if (status != -1 && WIFSIGNALED(status))
        snprintf(text, bytes, "ended by signal %d", WTERMSIG(status));
    else if (status != -1 && WIFEXITED(status))
        snprintf(text, bytes, "left with exit code %d", WEXITSTATUS(status));
    else
        snprintf(text, bytes, "its end could not be seen");
    return text;
}

ev_status pool_bury(pool *p, slot *s, const char *why, ev_error *err) {
    char text[80];
    int ended = ev_proc_end(&s->proc, 0);
    const char *fault;
    if (s->has_last_word)
        fault = s->last_word;
    else if (why)
        fault = NULL;
    else
        fault = own_fault(ended);
    p->failed++;
    ev_status status = account(p, s, fault, why ? why : end_words(ended, text, sizeof text), err);
    channel_free(&s->line);
    if (status != EV_OK) {
        pool_job_free(s->job);
        *s = pool_slot(p, (size_t)(s - p->slots));
        return status;
    }
    s->state = SLOT_EMPTY;
    return pool_start(p, s, err);
}

ev_status pool_replace(pool *p, slot *s, ev_error *err) {
    (void)ev_proc_end(&s->proc, 0);
    channel_free(&s->line);
    s->state = SLOT_EMPTY;
    return pool_start(p, s, err);
}

ev_status pool_check_deadline(pool *p, slot *s, ev_error *err) {
    bool waits = s->state == SLOT_GREETING || s->state == SLOT_OPENING || s->state == SLOT_BUSY;
    if (!waits || ev_clock_now() < s->deadline)
        return EV_OK;
    if (s->state == SLOT_BUSY && ++s->job->late >= MOST_LATE) {
        s->has_last_word = true;
        snprintf(s->last_word, sizeof s->last_word, "no answer in time, twice: it hangs");
        if (s->at < STAGE_DRAW)
            s->at = STAGE_DRAW;
    }
    return pool_bury(p, s, "no answer in time", err);
}
