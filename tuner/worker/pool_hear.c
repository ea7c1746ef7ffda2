/* Pool, hearing: handles the messages of workers. */
#include "tuner/worker/pool_inside.h"

#include "base/child.h"
#include "base/str.h"
#include "ir/ir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ON_SHELF 1024 /* entries of the base store, some 10 to 40 KB each */

/* Opens the task again. One worker has all splits from the start, so that a wrong baseline shows
 * before the search. */
static void open_again(pool *p, slot *s) {
    bool first = s == &p->slots[0] && !p->has_ready;
    pool_send_open(p, s, first ? SPLITS_ALL : SPLITS_SEARCH);
}

static ev_status hear_hello(pool *p, slot *s, const hello_message *m, ev_error *err) {
    if (m->protocol != PROTOCOL_VERSION || strcmp(m->evoke, EVOKE_VERSION) != 0 ||
        strcmp(m->llvm, ir_llvm_version()) != 0)
        return ev_fail(err, EV_BAD,
                       "the worker is evoke %s with LLVM %s (protocol %llu), and this is evoke %s "
                       "with LLVM %s (protocol %d); start workers of the same build",
                       m->evoke, m->llvm, (unsigned long long)m->protocol, EVOKE_VERSION,
                       ir_llvm_version(), PROTOCOL_VERSION);
    open_again(p, s);
    return EV_OK;
}

/* The names of the drawn cases, separated by commas; malloc'ed. NULL: out of memory. */
static char *names_of_drawn(const ready_message *m) {
    ev_str names = EV_STR_EMPTY;
    for (size_t i = 0; i < m->drawn_count; i++)
        ev_str_printf(&names, "%s%s", i > 0 ? ", " : "", m->drawn[i]);
    if (m->drawn_count == 0)
        ev_str_append(&names, "none");
    char *text = ev_str_take(&names);
    ev_str_free(&names);
    return text;
}

/* Compares the drawn cases of workers. Each worker draws its cases by itself, and all must draw the
 * same, since a score must not depend on the worker. */
static ev_status compare_drawn(pool *p, const ready_message *m, ev_error *err) {
    char *drawn = names_of_drawn(m);
    if (!drawn)
        return ev_fail_memory(err, 0);
    if (!p->drawn) {
        p->drawn = drawn;
        return EV_OK;
    }
    ev_status status = EV_OK;
    if (strcmp(p->drawn, drawn) != 0)
        status = ev_fail(err, EV_BAD,
                         "two workers draw different cases from the same task: %s and %s; start "
                         "workers of the same build with the same EVOKE_HOME",
                         p->drawn, drawn);
    free(drawn);
    return status;
}

/* Keeps the first answer of a worker with all splits: takes the message over. */
static ev_status hear_ready(pool *p, slot *s, message *m, ev_error *err) {
    if (s->serial != p->serial) { /* an answer about the previous task */
        open_again(p, s);
        return EV_OK;
    }
    if (s->role != ROLE_TIMER) /* a timer runs no drawn case */
        EV_TRY(compare_drawn(p, &m->ready, err));
    s->state = SLOT_IDLE;
    s->at = STAGE_IDLE;
    if (!p->has_ready && s->splits == SPLITS_ALL) {
        p->ready = *m;
        p->has_ready = true;
        *m = (message){0};
    }
    return EV_OK;
}

/* The hash that a question is about; SEARCH_HASHES: the message is no question. */
static search_hash asked_about(message_kind kind) {
    static const message_kind questions[SEARCH_HASHES] = {
        [SEARCH_BY_GENOME] = MESSAGE_DRAWN,  [SEARCH_BY_IR] = MESSAGE_IR,
        [SEARCH_BY_SKETCH] = MESSAGE_SKETCH, [SEARCH_SKETCH_RAN] = MESSAGE_SKETCH_RAN,
        [SEARCH_BY_PTX] = MESSAGE_PTX,       [SEARCH_RAN] = MESSAGE_RAN};
    int by = 0;
    while (by < SEARCH_HASHES && questions[by] != kind)
        by++;
    return (search_hash)by;
}

static void copy_hash(char into[EV_SHA256_HEX], const char from[EV_SHA256_HEX]) {
    memcpy(into, from, EV_SHA256_HEX);
}

static void take_drawn(child_result *r, const drawn_message *m) {
    ir_genome_free(r->genome);
    r->genome = ir_genome_ref(m->genome);
    snprintf(r->operators, sizeof r->operators, "%s", m->operators);
}

static void hear_question(pool *p, slot *s, const message *m) {
    pool_job *job = s->job;
    child_result *r = &job->result;
    search_hash by = asked_about(m->kind);
    bool drawn = m->kind == MESSAGE_DRAWN;
    copy_hash(r->hashes[by], drawn ? m->drawn.sha256 : m->hash.sha256);
    if (drawn)
        take_drawn(r, &m->drawn);
    bool asks = job->kind == MESSAGE_CHILD && p->options.known;
    bool known = asks && p->options.known(p->options.context, job, by);
    bool ends = known && !search_is_fingerprint(by);
    r->outcome.origin = ends ? SEARCH_DUPLICATE : SEARCH_TIMED;
    pool_say(s, &(message){.kind = known ? MESSAGE_SEEN : MESSAGE_GO});
}

/* ---- the base store ---- */

static void hear_want(const pool *p, slot *s, const want_message *m) {
    json_t *value = json_object_get(p->shelf, m->key);
    message answer = {.kind = MESSAGE_GO};
    if (value)
        answer = (message){.kind = MESSAGE_MADE, .made = {.key = m->key, .value = value}};
    pool_say(s, &answer);
}

/* Stores an entry of the base store. Without room or memory, each worker makes its own. */
static void hear_made(const pool *p, const made_message *m) {
    if (json_object_size(p->shelf) < MOST_ON_SHELF)
        (void)json_object_set(p->shelf, m->key, m->value);
}

/* ---- ends ---- */

static void add_seconds(pool *p, const job_end *end) {
    for (size_t i = 0; i < PART_COUNT; i++)
        p->seconds[i] += end->seconds[i];
}

/* A timer does not build, so that the screener's count stays. */
static void take_bold(child_result *r, const job_end *end) {
    if (end->bold > 0)
        r->bold = end->bold;
}

/* Ends a job. The worker becomes idle, or is replaced if it leaves. */
static ev_status end_job(pool *p, slot *s, const job_end *end, ev_error *err) {
    bool leaves = end->leaves;
    add_seconds(p, end);
    s->state = SLOT_IDLE;
    s->at = STAGE_IDLE;
    return leaves ? pool_replace(p, s, err) : EV_OK;
}

static ev_status hear_failed(pool *p, slot *s, const failed_message *m, ev_error *err) {
    child_result *r = &s->job->result;
    r->outcome = (child_outcome){.stopped = m->gate};
    take_bold(r, &m->end);
    snprintf(r->reason, sizeof r->reason, "%s", m->reason);
    pool_finish(p, s);
    return end_job(p, s, &m->end, err);
}

static bool is_dropped(const pool_job *job) {
    return job->result.outcome.origin == SEARCH_DUPLICATE;
}

static bool is_whole(const pool_job *job, const done_message *m) {
    switch (job->kind) {
    case MESSAGE_PROMOTE:
        return m->has_score && m->has_code;
    case MESSAGE_REPLAY:
        return m->has_code && m->words;
    case MESSAGE_CHECK:
        return m->has_code && m->has_cases;
    default:
        return m->has_score || is_dropped(job);
    }
}

/* Keeps the answer in the job. Takes the message over. */
static void take_answer(pool_job *job, message *m) {
    child_result *r = &job->result;
    job->answer = *m;
    job->reply = &job->answer.done;
    *m = (message){0};
    if (job->reply->has_score)
        child_result_take_score(r, &job->reply->score);
    if (job->reply->has_code) {
        const code_reply *code = &job->reply->code;
        copy_hash(r->hashes[SEARCH_BY_GENOME], code->genome_sha256);
        copy_hash(r->hashes[SEARCH_BY_IR], code->ir_sha256);
        copy_hash(r->hashes[SEARCH_BY_PTX], code->ptx_sha256);
    }
}

static ev_status hear_done(pool *p, slot *s, message *m, ev_error *err) {
    job_end end = m->done.end;
    if (!is_whole(s->job, &m->done))
        return pool_bury(p, s, "its 'done' lacks a part of what the job asks for", err);
    take_bold(&s->job->result, &end);
    if (!is_dropped(s->job))
        take_answer(s->job, m);
    pool_finish(p, s);
    return end_job(p, s, &end, err);
}

/* Handles the end of a screening. A timer takes the job after those screened before. Takes the
 * message over. */
static ev_status hear_screened(pool *p, slot *s, message *m, ev_error *err) {
    job_end end = m->passed.end;
    p->deaths = 0;
    pool_job *job = pool_leave(p, s);
    take_bold(&job->result, &end);
    job->screening = *m;
    *m = (message){0};
    job->screened = true;
    pool_append(&p->queue, job);
    return end_job(p, s, &end, err);
}

/* Handles an error. During an opening, a worker's complaint about task or device is the answer to
 * the user. A failure of the machine is reported only if a second worker confirms it, since a fault
 * may have spent the device for one process only. During a job, an error is a failure of the
 * machine. */
static ev_status hear_error(pool *p, slot *s, const error_message *m, ev_error *err) {
    if (s->state == SLOT_OPENING && s->serial != p->serial) {
        open_again(p, s);
        return EV_OK;
    }
    if (s->state == SLOT_OPENING && (m->status == EV_BAD || p->deaths > 0))
        return ev_fail_long(err, m->status, m->text);
    return pool_bury(p, s, m->text, err);
}

static void hear_last_word(slot *s, const fatal_message *m) {
    s->at = m->stage;
    s->has_last_word = true;
    snprintf(s->last_word, sizeof s->last_word, "%s", m->reason);
}

/* Whether a message of this kind is allowed in this state. */
static bool in_place(const slot *s, message_kind kind) {
    slot_state state = s->state;
    if (asked_about(kind) != SEARCH_HASHES)
        return state == SLOT_BUSY;
    switch (kind) {
    case MESSAGE_HELLO:
        return state == SLOT_GREETING;
    case MESSAGE_READY:
        return state == SLOT_OPENING;
    case MESSAGE_SCREENED:
        return state == SLOT_BUSY && s->role == ROLE_SCREENER;
    case MESSAGE_DONE:
    case MESSAGE_FAILED:
        return state == SLOT_BUSY;
    case MESSAGE_STAGE:
    case MESSAGE_WANT:
    case MESSAGE_MADE:
    case MESSAGE_ERROR:
        return state == SLOT_BUSY || state == SLOT_OPENING;
    case MESSAGE_FATAL:
        return true;
    default:
        return false;
    }
}

static ev_status hear_message(pool *p, slot *s, message *m, ev_error *err) {
    if (!in_place(s, m->kind))
        return pool_bury(p, s, "it said something out of place", err);
    switch (m->kind) {
    case MESSAGE_HELLO:
        return hear_hello(p, s, &m->hello, err);
    case MESSAGE_READY:
        return hear_ready(p, s, m, err);
    case MESSAGE_STAGE:
        s->at = m->stage.stage;
        return EV_OK;
    case MESSAGE_WANT:
        hear_want(p, s, &m->want);
        return EV_OK;
    case MESSAGE_MADE:
        hear_made(p, &m->made);
        return EV_OK;
    case MESSAGE_FATAL:
        hear_last_word(s, &m->fatal);
        return EV_OK;
    case MESSAGE_ERROR:
        return hear_error(p, s, &m->error, err);
    case MESSAGE_SCREENED:
        return hear_screened(p, s, m, err);
    case MESSAGE_FAILED:
        return hear_failed(p, s, &m->failed, err);
    case MESSAGE_DONE:
        return hear_done(p, s, m, err);
    default:
        hear_question(p, s, m);
        return EV_OK;
    }
}

ev_status pool_hear(pool *p, slot *s, ev_error *err) {
    bool closed = false;
    ev_error lost = {0};
    if (channel_fill(&s->line, &closed, &lost) != EV_OK)
        return pool_bury(p, s, lost.text, err);
    pid_t pid = s->proc.pid;
    for (;;) {
        message m = {0};
        bool got = false;
        ev_status status = message_next(&s->line, &m, &got, &lost);
        if (status == EV_BAD)
            return ev_fail(err, EV_BAD, "%s", lost.text);
        if (status != EV_OK)
            return pool_bury(p, s, lost.text, err);
        if (!got)
            break;
        status = hear_message(p, s, &m, err);
        message_free(&m);
        EV_TRY(status);
        if (s->proc.pid != pid) /* the worker was replaced */
            return EV_OK;
    }
    return closed ? pool_bury(p, s, NULL, err) : EV_OK;
}
