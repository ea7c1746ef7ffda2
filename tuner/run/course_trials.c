/* Trials: builds, scores and promotes genomes after the search, and records the results. */
#include "tuner/run/tune_inside.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_SECONDS 0.1

/* Submits a job. `bar` NULL: the job is no promotion. */
static ev_status submit(course *c, message_kind kind, uint64_t number, const ir_genome *genome,
                        const fitness_bar *bar, ev_error *err) {
    pool_job *job = pool_job_variant(kind, number, genome);
    if (!job)
        return ev_fail_memory(err, sizeof *job);
    if (bar)
        job->bar = *bar;
    pool_submit(c->run->pool, job);
    return EV_OK;
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
                        ev_error *err) {
    records_evaluation e = {.phase = phase, .number = number, .parents = ""};
    bool scored = job->reply && job->reply->has_score;
    return course_put(c, &e, job, scored ? &job->reply->score : NULL, err);
}

/* Takes the result of a trial. `first`: the number of the batch's first trial. */
static ev_status take_trial(course *c, uint64_t first, const pool_job *job, trial *trials,
                            ev_error *err) {
    const child_outcome *o = &job->result.outcome;
    trial *to = &trials[job->number];
    if (o->stopped == GATE_NONE)
        *to = (trial){.passed = true, .ns = o->ns, .error = o->error, .bold = job->result.bold};
    memcpy(to->ptx_sha256, job->result.hashes[SEARCH_BY_PTX], sizeof to->ptx_sha256);
    return course_record(c, "minimise", first + job->number, job, err);
}

ev_status course_score(course *c, const ir_genome *const *genomes, size_t count, trial *trials,
                       ev_error *err) {
    memset(trials, 0, count * sizeof *trials);
    for (size_t i = 0; i < count; i++)
        EV_TRY(submit(c, MESSAGE_SCORE, i, genomes[i], NULL, err));
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

ev_status course_do(course *c, message_kind kind, const ir_genome *genome, pool_job **out,
                    ev_error *err) {
    EV_TRY(submit(c, kind, 0, genome, NULL, err));
    return wait_one(c, out, err);
}

ev_status course_promote(course *c, const ir_genome *genome, const fitness_bar *bar, pool_job **out,
                         ev_error *err) {
    EV_TRY(submit(c, MESSAGE_PROMOTE, 0, genome, bar, err));
    return wait_one(c, out, err);
}
