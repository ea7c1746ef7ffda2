/* Pool: takes what a worker says. */
#include "tuner/worker/pool_inside.h"

#include "base/json.h"
#include "ir/ir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ON_SHELF 1024 /* of some 10 to 40 KB each */

/* One worker has all splits from the start, so that a wrong baseline shows before the search. */
static ev_status open_again(pool *p, slot *s, ev_error *err) {
    bool first = s == &p->slots[0] && !p->ready;
    return pool_send_open(p, s, first ? SPLITS_ALL : SPLITS_SEARCH, err);
}

static ev_status hear_hello(pool *p, slot *s, const json_t *m, ev_error *err) {
    const char *evoke = ev_json_text(m, "evoke", "?"), *llvm = ev_json_text(m, "llvm", "?");
    json_int_t protocol = ev_json_integer(m, "protocol", -1);
    if (protocol != PROTOCOL_VERSION || strcmp(evoke, EVOKE_VERSION) != 0 ||
        strcmp(llvm, ir_llvm_version()) != 0)
        return ev_fail(err, EV_BAD,
                       "the worker is evoke %s with LLVM %s (protocol %lld), and this is evoke %s "
                       "with LLVM %s (protocol %d); start workers of the same build",
                       evoke, llvm, (long long)protocol, EVOKE_VERSION, ir_llvm_version(),
                       PROTOCOL_VERSION);
    return open_again(p, s, err);
}

/* Each worker draws its cases by itself, and all have to come to the same: a score must not depend
 * on who made it. */
static ev_status compare_drawn(pool *p, const json_t *m, ev_error *err) {
    json_t *drawn = json_object_get(m, "drawn");
    if (!p->drawn)
        p->drawn = json_incref(drawn);
    if (!p->drawn || json_equal(p->drawn, drawn))
        return EV_OK;
    char *one = ev_json_print(p->drawn, true), *other = drawn ? ev_json_print(drawn, true) : NULL;
    ev_status status =
        ev_fail(err, EV_BAD,
                "two workers draw different cases from the same task: %s and %s; start workers of "
                "the same build with the same EVOKE_HOME",
                one ? one : "?", other ? other : "none");
    free(one);
    free(other);
    return status;
}

static ev_status hear_ready(pool *p, slot *s, json_t *m, ev_error *err) {
    if (s->serial != p->serial) /* of the task before: another was asked for meanwhile */
        return open_again(p, s, err);
    if (s->role != ROLE_TIMER) /* it runs none of them */
        EV_TRY(compare_drawn(p, m, err));
    s->state = SLOT_IDLE;
    s->at = STAGE_IDLE;
    if (!p->ready && s->splits == SPLITS_ALL)
        p->ready = json_incref(m);
    return EV_OK;
}

/* Which hash a question is about; SEARCH_HASHES: it is no question. */
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

static void copy_hash(char into[EV_SHA256_HEX], const json_t *m, const char *key) {
    snprintf(into, EV_SHA256_HEX, "%s", ev_json_text(m, key, ""));
}

static ev_status hear_question(pool *p, slot *s, const json_t *m, message_kind kind,
                               ev_error *err) {
    pool_job *job = s->job;
    search_hash by = asked_about(kind);
    copy_hash(job->hashes[by], m, "sha256");
    if (kind == MESSAGE_DRAWN) {
        json_decref(job->genome);
        job->genome = json_incref(json_object_get(m, "genome"));
        free(job->operators);
        job->operators = strdup(ev_json_text(m, "operators", ""));
        if (!job->operators)
            return ev_fail_memory(err, 0);
    }
    bool asks = job->kind == MESSAGE_CHILD && p->options.known;
    bool known = asks && p->options.known(p->options.context, job, by, job->hashes[by]);
    job->seen = known && !search_is_fingerprint(by);
    pool_say(s, message_new(known ? MESSAGE_SEEN : MESSAGE_GO));
    return EV_OK;
}

/* ---- the shelf ---- */

static void hear_want(const pool *p, slot *s, const json_t *m) {
    json_t *value = json_object_get(p->shelf, ev_json_text(m, "key", ""));
    json_t *answer = message_new(value ? MESSAGE_MADE : MESSAGE_GO);
    if (answer && value)
        (void)json_object_set(answer, "value", value);
    pool_say(s, answer);
}

/* Where there is no room, or no memory, each worker makes its own. */
static void hear_made(const pool *p, const json_t *m) {
    json_t *value = json_object_get(m, "value");
    if (value && json_object_size(p->shelf) < MOST_ON_SHELF)
        (void)json_object_set(p->shelf, ev_json_text(m, "key", ""), value);
}

/* ---- ends ---- */

static void add_seconds(pool *p, const json_t *m) {
    const json_t *list = json_object_get(m, "seconds");
    for (size_t i = 0; i < POOL_PARTS && i < json_array_size(list); i++)
        p->seconds[i] += json_number_value(json_array_get(list, i));
}

/* A job's end: `done` or `failed`. */
static ev_status hear_end(pool *p, slot *s, json_t *m, message_kind kind, ev_error *err) {
    pool_job *job = s->job;
    add_seconds(p, m);
    if (kind == MESSAGE_FAILED) {
        if (!gate_find(ev_json_text(m, "gate", ""), &job->stopped))
            return ev_fail(err, EV_INFRA, "a worker named a gate that is not there");
        snprintf(job->reason, sizeof job->reason, "%s", ev_json_text(m, "reason", ""));
    } else if (!job->seen) {
        job->reply = json_incref(m);
        if (job->kind != MESSAGE_CHILD && job->kind != MESSAGE_SCORE) {
            copy_hash(job->hashes[SEARCH_BY_GENOME], m, "genome_sha256");
            copy_hash(job->hashes[SEARCH_BY_IR], m, "ir_sha256");
            copy_hash(job->hashes[SEARCH_BY_PTX], m, "ptx_sha256");
        }
    }
    pool_finish(p, s);
    s->state = SLOT_IDLE;
    s->at = STAGE_IDLE;
    return json_is_true(json_object_get(m, "leaves")) ? pool_replace(p, s, err) : EV_OK;
}

/* A screener is done with the job. A timer takes the job next, after those screened before. */
static ev_status hear_screened(pool *p, slot *s, const json_t *m, ev_error *err) {
    json_t *time = message_new(MESSAGE_TIME), *score = json_object_get(m, "score");
    bool ok = time && json_object_set(time, "genome", s->job->genome) == 0 &&
              json_object_set(time, "ptx", json_object_get(m, "ptx")) == 0 &&
              json_object_set(time, "score", score) == 0;
    if (!ok) {
        json_decref(time);
        return ev_fail_memory(err, 0);
    }
    add_seconds(p, m);
    p->deaths = 0;
    pool_job *job = pool_leave(p, s);
    json_decref(job->message);
    job->message = time;
    job->screened = true;
    pool_append(&p->queue, job);
    s->state = SLOT_IDLE;
    s->at = STAGE_IDLE;
    return EV_OK;
}

/* While it opens, what a worker says of task or device is the answer to the user; where the machine
 * failed, once another one said so too: a fault may have spent the device for that process. In a
 * job it is the machine that failed. */
static ev_status hear_error(pool *p, slot *s, const json_t *m, ev_error *err) {
    const char *text = ev_json_text(m, "text", "");
    bool bad = strcmp(ev_json_text(m, "status", ""), "bad") == 0;
    if (s->state == SLOT_OPENING && s->serial != p->serial)
        return open_again(p, s, err);
    if (s->state == SLOT_OPENING && !bad && p->deaths == 0)
        return pool_bury(p, s, text, err);
    if (s->state == SLOT_OPENING)
        return ev_fail(err, bad ? EV_BAD : EV_INFRA, "%s", text);
    return pool_bury(p, s, text, err);
}

static void hear_last_word(slot *s, const json_t *m) {
    stage at = s->at;
    if (stage_find(ev_json_text(m, "stage", ""), &at))
        s->at = at;
    s->has_last_word = true;
    snprintf(s->last_word, sizeof s->last_word, "%s", ev_json_text(m, "reason", "?"));
}

/* Whether a message of this kind is in place in this state. */
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

static ev_status hear_message(pool *p, slot *s, json_t *m, ev_error *err) {
    message_kind kind = message_kind_of(m);
    if (!in_place(s, kind))
        return pool_bury(p, s, "it said something out of place", err);
    switch (kind) {
    case MESSAGE_HELLO:
        return hear_hello(p, s, m, err);
    case MESSAGE_READY:
        return hear_ready(p, s, m, err);
    case MESSAGE_STAGE:
        (void)stage_find(ev_json_text(m, "stage", ""), &s->at);
        return EV_OK;
    case MESSAGE_WANT:
        hear_want(p, s, m);
        return EV_OK;
    case MESSAGE_MADE:
        hear_made(p, m);
        return EV_OK;
    case MESSAGE_FATAL:
        hear_last_word(s, m);
        return EV_OK;
    case MESSAGE_ERROR:
        return hear_error(p, s, m, err);
    case MESSAGE_SCREENED:
        return hear_screened(p, s, m, err);
    case MESSAGE_DONE:
    case MESSAGE_FAILED:
        return hear_end(p, s, m, kind, err);
    default:
        return hear_question(p, s, m, kind, err);
    }
}

ev_status pool_hear(pool *p, slot *s, ev_error *err) {
    bool closed = false;
    ev_error lost = {0};
    if (channel_fill(&s->line, &closed, &lost) != EV_OK)
        return pool_bury(p, s, lost.text, err);
    pid_t pid = s->proc.pid;
    for (;;) {
        json_t *m = NULL;
        if (channel_next(&s->line, &m, &lost) != EV_OK)
            return pool_bury(p, s, lost.text, err);
        if (!m)
            break;
        ev_status status = hear_message(p, s, m, err);
        json_decref(m);
        EV_TRY(status);
        if (s->proc.pid != pid) /* it was buried, and another is in its place */
            return EV_OK;
    }
    return closed ? pool_bury(p, s, NULL, err) : EV_OK;
}
