/* Trials: genomes that are built, scored or promoted after the search, and their records. */
#include "tuner/run/tune_inside.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_SECONDS 0.1

/* Takes `message` over; NULL: out of memory. */
static ev_status submit_message(course *c, message_kind kind, uint64_t number, json_t *message,
                                json_t *genome, ev_error *err) {
    if (message && json_object_set(message, "genome", genome) != 0) {
        json_decref(message);
        message = NULL;
    }
    pool_job *job = pool_job_new(kind, number, message);
    if (!job)
        return ev_fail_memory(err, sizeof *job);
    pool_submit(c->run->pool, job);
    return EV_OK;
}

static ev_status submit(course *c, message_kind kind, uint64_t number, json_t *genome,
                        ev_error *err) {
    return submit_message(c, kind, number, message_new(kind), genome, err);
}

static ev_status wait_one(course *c, pool_job **out, ev_error *err) {
    *out = NULL;
    while (!*out) {
        EV_TRY(pool_wait(c->run->pool, WAIT_SECONDS, out, err));
        course_display(c, NULL);
    }
    return EV_OK;
}

ev_status course_record(course *c, const char *phase, uint64_t number, const pool_job *job,
                        const score *s, ev_error *err) {
    const json_t *score_json = job->reply ? json_object_get(job->reply, "score") : NULL;
    char *text = score_json ? ev_json_print(score_json, true) : NULL;
    gate stopped = s ? s->stopped : job->stopped;
    records_evaluation e = {.task = c->index,
                            .phase = phase,
                            .number = number,
                            .parents = "",
                            .operators = "",
                            .genome = job->genome,
                            .gate = gate_name(stopped),
                            .reason = s ? s->reason : job->reason,
                            .ns = s ? s->ns : 0,
                            .error = s ? s->error : 0,
                            .score = text ? text : "",
                            .seconds = course_seconds(c)};
    for (int by = 0; by < SEARCH_HASHES; by++)
        e.hashes[by] = job->hashes[by];
    ev_status status = records_put(c->run->records, &e, err);
    free(text);
    return status;
}

/* `first`: the number of the batch's first trial. */
static ev_status take_trial(course *c, uint64_t first, const pool_job *job, trial *trials,
                            ev_error *err) {
    score s;
    bool scored = job_score(job, &s);
    trial *to = &trials[job->number];
    if (scored && s.stopped == GATE_NONE)
        *to = (trial){.passed = true, .ns = s.ns, .error = s.error};
    memcpy(to->ptx_sha256, job->hashes[SEARCH_BY_PTX], sizeof to->ptx_sha256);
    return course_record(c, "minimise", first + job->number, job, scored ? &s : NULL, err);
}

ev_status course_score(course *c, json_t *const *genomes, size_t count, trial *trials,
                       ev_error *err) {
    memset(trials, 0, count * sizeof *trials);
    for (size_t i = 0; i < count; i++)
        EV_TRY(submit(c, MESSAGE_SCORE, i, genomes[i], err));
    uint64_t first = c->minimised;
    c->minimised += count;
    for (size_t i = 0; i < count; i++) {
        pool_job *job = NULL;
        EV_TRY(wait_one(c, &job, err));
        ev_status status = take_trial(c, first, job, trials, err);
        pool_job_free(job);
        EV_TRY(status);
    }
    return EV_OK;
}

ev_status course_do(course *c, message_kind kind, json_t *genome, pool_job **out, ev_error *err) {
    EV_TRY(submit(c, kind, 0, genome, err));
    return wait_one(c, out, err);
}

ev_status course_promote(course *c, json_t *genome, const fitness_bar *bar, pool_job **out,
                         ev_error *err) {
    json_t *message = message_new(MESSAGE_PROMOTE);
    if (message)
        (void)json_object_set_new(message, "bar",
                                  json_pack("{s:f,s:f,s:b}", "ns", bar->ns, "baseline_ns",
                                            bar->baseline_ns, "is_last", bar->is_last));
    EV_TRY(submit_message(c, MESSAGE_PROMOTE, 0, message, genome, err));
    return wait_one(c, out, err);
}
