/* Pool: its queue, its poll loop, its beginning and end. */
#include "tuner/worker/pool_inside.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- jobs ---- */

pool_job *pool_job_child(uint64_t number, recipe *r) {
    pool_job *job = calloc(1, sizeof *job);
    if (!job) {
        recipe_free(r);
        return NULL;
    }
    job->kind = MESSAGE_CHILD;
    job->number = number;
    job->result.outcome.stopped = GATE_NONE;
    job->recipe = *r;
    *r = (recipe){0};
    return job;
}

pool_job *pool_job_variant(message_kind kind, uint64_t number, const ir_genome *genome) {
    assert(kind != MESSAGE_CHILD);
    pool_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->kind = kind;
    job->number = number;
    job->result.outcome.stopped = GATE_NONE;
    job->result.genome = ir_genome_ref(genome);
    return job;
}

void pool_job_free(pool_job *job) {
    if (!job)
        return;
    recipe_free(&job->recipe);
    message_free(&job->screening);
    message_free(&job->answer);
    child_result_free(&job->result);
    free(job);
}

void pool_append(pool_job **list, pool_job *job) {
    while (*list)
        list = &(*list)->next;
    job->next = NULL;
    *list = job;
}

static pool_job *take_first(pool_job **list) {
    pool_job *job = *list;
    if (job) {
        *list = job->next;
        job->next = NULL;
    }
    return job;
}

bool pool_needs_all_splits(const pool_job *job) {
    return job->kind == MESSAGE_PROMOTE || job->kind == MESSAGE_CHECK;
}

/* A fault in a stage counts at the gate that the stage is there for. */
gate pool_gate_of(stage at) {
    switch (at) {
    case STAGE_OPTIMISE:
    case STAGE_EMIT:
        return GATE_EMIT;
    case STAGE_SCORE:
        return GATE_SAFE;
    case STAGE_PROMOTE:
        return GATE_PROMOTED;
    default:
        return GATE_VERIFY;
    }
}

pool_job *pool_leave(pool *p, slot *s) {
    pool_job *job = s->job;
    if (s->role == ROLE_TIMER && job->screened)
        p->timer_seconds += ev_clock_now() - s->began;
    s->job = NULL;
    return job;
}

void pool_finish(pool *p, slot *s) {
    p->deaths = 0;
    pool_append(&p->finished, pool_leave(p, s));
}

slot pool_slot(const pool *p, size_t index) {
    const pool_options *o = &p->options;
    slot s = {.line = {.in = -1, .out = -1}, .device = o->device};
    if (index < o->timers) {
        s.role = ROLE_TIMER;
        s.device = o->timer_devices[index];
    } else if (o->timers > 0) {
        s.role = ROLE_SCREENER;
    }
    return s;
}

void pool_submit(pool *p, pool_job *job) {
    assert(p->task);
    p->jobs++;
    pool_append(&p->queue, job);
}

/* ---- giving out work ---- */

/* Whether a job is for workers of this role. Timers do promotions completely; screeners build all
 * else first. */
static bool is_for(worker_role role, const pool_job *job) {
    bool timer = job->screened || pool_needs_all_splits(job);
    return role == ROLE_WHOLE || (role == ROLE_TIMER) == timer;
}

static slot *find_slot(pool *p, const pool_job *job, bool all_splits) {
    for (unsigned i = 0; i < p->options.workers; i++) {
        slot *s = &p->slots[i];
        if (s->state == SLOT_IDLE && is_for(s->role, job) &&
            (!all_splits || s->splits == SPLITS_ALL))
            return s;
    }
    return NULL;
}

static bool any_has_all_splits(const pool *p) {
    for (unsigned i = 0; i < p->options.workers; i++) {
        if (p->slots[i].state >= SLOT_OPENING && p->slots[i].splits == SPLITS_ALL)
            return true;
    }
    return false;
}

static bool any_is_idle(const pool *p) {
    for (unsigned i = 0; i < p->options.workers; i++) {
        if (p->slots[i].state == SLOT_IDLE)
            return true;
    }
    return false;
}

/* Gives queued jobs to idle workers. A job that needs all splits waits for a worker that has opened
 * them. If there is no such worker any more, an idle worker opens the task anew. */
static void give_out(pool *p) {
    pool_job **at = &p->queue;
    while (*at && any_is_idle(p)) {
        bool all_splits = pool_needs_all_splits(*at);
        slot *s = find_slot(p, *at, all_splits);
        slot *idle = s ? s : find_slot(p, *at, false);
        if (s)
            pool_send_job(s, take_first(at));
        else if (idle && !any_has_all_splits(p))
            pool_send_open(p, idle, SPLITS_ALL);
        else
            at = &(*at)->next;
    }
}

/* ---- the poll loop ---- */

static int poll_timeout(const pool *p, double until) {
    double first = until;
    for (unsigned i = 0; i < p->options.workers; i++) {
        const slot *s = &p->slots[i];
        bool counts = s->state != SLOT_EMPTY && s->state != SLOT_IDLE;
        if (counts && s->deadline < first)
            first = s->deadline;
    }
    double left = first - ev_clock_now();
    if (left <= 0)
        return 0;
    if (left > 1000)
        return 1000000;
    return (int)(left * 1000) + 1;
}

/* Waits for an event and handles all that came. *signalled: a signal came instead. */
static ev_status step(pool *p, double until, bool *signalled, ev_error *err) {
    struct pollfd *fds = calloc(p->options.workers, sizeof *fds);
    if (!fds)
        return ev_fail_memory(err, p->options.workers * sizeof *fds);
    for (unsigned i = 0; i < p->options.workers; i++)
        fds[i] = (struct pollfd){.fd = p->slots[i].state == SLOT_EMPTY ? -1 : p->slots[i].proc.out,
                                 .events = POLLIN};
    int got = poll(fds, p->options.workers, poll_timeout(p, until));
    *signalled = got < 0 && errno == EINTR;
    ev_status status = EV_OK;
    for (unsigned i = 0; status == EV_OK && i < p->options.workers; i++) {
        slot *s = &p->slots[i];
        if (got > 0 && fds[i].revents != 0)
            status = pool_hear(p, s, err);
        else if (s->state != SLOT_EMPTY)
            status = pool_check_deadline(p, s, err);
    }
    free(fds);
    return status;
}

ev_status pool_wait(pool *p, double seconds, pool_job **out, ev_error *err) {
    double until = ev_clock_now() + seconds;
    bool signalled = false;
    *out = NULL;
    while (p->jobs > 0) {
        give_out(p);
        if (p->finished) {
            *out = take_first(&p->finished);
            p->jobs--;
            return EV_OK;
        }
        if (signalled || ev_clock_now() >= until)
            return EV_OK;
        EV_TRY(step(p, until, &signalled, err));
    }
    return EV_OK;
}

/* Forgets the workers' answers about the open task. */
static void forget_task(pool *p) {
    message_free(&p->ready);
    p->has_ready = false;
    free(p->drawn);
    p->drawn = NULL;
    json_decref(p->shelf);
    p->shelf = NULL;
}

ev_status pool_open(pool *p, const char *path, const ready_message **ready, ev_error *err) {
    assert(p->jobs == 0);
    char *name = strdup(path);
    if (!name)
        return ev_fail_memory(err, strlen(path) + 1);
    free(p->task);
    p->task = name;
    p->serial++;
    forget_task(p);
    p->shelf = json_object();
    for (unsigned i = 0; i < p->options.workers; i++) {
        slot *s = &p->slots[i];
        if (s->state == SLOT_EMPTY)
            EV_TRY(pool_start(p, s, err));
        else if (s->state == SLOT_IDLE)
            pool_send_open(p, s, i == 0 ? SPLITS_ALL : SPLITS_SEARCH);
    }
    bool signalled = false;
    while (!p->has_ready && !signalled)
        EV_TRY(step(p, ev_clock_now() + 1000, &signalled, err));
    *ready = p->has_ready ? &p->ready.ready : NULL;
    return EV_OK;
}

/* ---- beginning and end ---- */

static ev_status find_self(pool *p, ev_error *err) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return ev_fail_errno(err, "cannot read", "/proc/self/exe");
    path[length] = '\0';
    p->self = strdup(path);
    if (!p->self)
        return ev_fail_memory(err, (size_t)length + 1);
    p->self_argv[0] = p->self;
    p->self_argv[1] = "worker";
    p->self_argv[2] = "--stdio";
    if (!p->options.argv)
        p->options.argv = p->self_argv;
    return EV_OK;
}

ev_status pool_new(const pool_options *options, pool **out, ev_error *err) {
    assert(options->workers > 0);
    pool *p = calloc(1, sizeof *p);
    if (!p)
        return ev_fail_memory(err, sizeof *p);
    p->options = *options;
    assert(options->timers == 0 || options->timers < options->workers);
    p->slots = calloc(options->workers, sizeof *p->slots);
    for (unsigned i = 0; p->slots && i < options->workers; i++)
        p->slots[i] = pool_slot(p, i);
    ev_status status =
        p->slots ? find_self(p, err) : ev_fail_memory(err, options->workers * sizeof *p->slots);
    if (status == EV_OK)
        *out = p;
    else
        pool_free(p);
    return status;
}

static void free_list(pool_job *list) {
    while (list)
        pool_job_free(take_first(&list));
}

void pool_free(pool *p) {
    if (!p)
        return;
    for (unsigned i = 0; p->slots && i < p->options.workers; i++) {
        if (p->slots[i].state == SLOT_IDLE)
            ev_proc_hang_up(&p->slots[i].proc);
    }
    for (unsigned i = 0; p->slots && i < p->options.workers; i++) {
        slot *s = &p->slots[i];
        /* An idle worker ends when its stdin closes. A busy worker is killed, since waiting is not
         * worthwhile. */
        if (s->state != SLOT_EMPTY)
            (void)ev_proc_end(&s->proc, s->state == SLOT_IDLE ? EV_PROC_PATIENCE : 0);
        channel_free(&s->line);
        pool_job_free(s->job);
    }
    free_list(p->queue);
    free_list(p->finished);
    forget_task(p);
    free(p->slots);
    free(p->task);
    free(p->self);
    free(p);
}

size_t pool_jobs(const pool *p) {
    return p->jobs;
}
uint64_t pool_failed_workers(const pool *p) {
    return p->failed;
}

bool pool_timers_starve(const pool *p) {
    size_t waiting = 0;
    for (const pool_job *job = p->queue; job; job = job->next)
        waiting += job->screened;
    return waiting < p->options.timers;
}

double pool_timer_seconds(const pool *p) {
    return p->timer_seconds;
}

void pool_seconds(const pool *p, double seconds[PART_COUNT]) {
    memcpy(seconds, p->seconds, sizeof p->seconds);
}
