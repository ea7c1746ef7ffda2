/* Winner: the rows of the final table, and the winner's record with all data for a bundle. */
#include "tuner/run/tune_inside.h"

#include "base/json.h"
#include "fitness/model/version.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ev_status winner_start_genome(const task_start *start, const ir_genome **out, ev_error *err) {
    *out = ir_genome_new(start->name);
    return *out ? EV_OK : ev_fail_memory(err, 0);
}

/* ---- the table ---- */

/* The result of a case in a `check` reply; zeros if there is none. */
static case_check find_check(const pool_job *job, const char *name) {
    size_t count = job && job->reply ? job->reply->case_count : 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(job->reply->cases[i].name, name) == 0)
            return job->reply->cases[i];
    }
    return (case_check){0};
}

/* Unmodified starts on the timed held-out cases. */
typedef struct start_checks {
    pool_job *hand;  /* the task's last start; NULL: it has only one */
    pool_job *alone; /* the one start that is searched, if it is another one; else NULL */
} start_checks;

/* The one start that is searched; NULL: all are. */
static const task_start *only_start(const course *c) {
    const char *wanted = c->run->options->starts;
    return wanted && strcmp(wanted, "all") != 0 ? c->starts[0].start : NULL;
}

static double alone_ns(const course *c, const start_checks *starts, const tune_row *row) {
    const task_start *only = only_start(c);
    if (!only || only == &c->t->starts[0])
        return only ? row->baseline_ns : 0;
    return starts->alone ? find_check(starts->alone, row->at).ns : row->hand_ns;
}

static void fill_row(const course *c, const winner *w, const task_case *at,
                     const start_checks *starts, tune_row *row) {
    assert(w->job != NULL);
    case_check checked = find_check(w->job, at->name);
    *row = (tune_row){.modelled = c->ready->modelled,
                      .tolerance = task_relative_l2(c->t),
                      .promoted = w->promoted,
                      .preserving = w->job->result.bold == 0};
    snprintf(row->kernel, sizeof row->kernel, "%s", c->t->name);
    snprintf(row->start, sizeof row->start, "%s", ir_genome_start(w->genome));
    snprintf(row->at, sizeof row->at, "%s", at->name);
    snprintf(row->device, sizeof row->device, "%s", tune_device(c->run));
    memcpy(row->genome_sha256, w->job->result.hashes[SEARCH_BY_GENOME], sizeof row->genome_sha256);
    memcpy(row->ptx_sha256, w->job->result.hashes[SEARCH_BY_PTX], sizeof row->ptx_sha256);
    row->baseline_ns = course_baseline_ns(c, at->name);
    row->best_ns = checked.ns;
    row->error = checked.error;
    row->floor_ns = course_floor_ns(c, at->name);
    row->at_floor = c->at_floor;
    case_check start = find_check(starts->hand, at->name);
    row->hand_ns = start.ns;
    row->hand_low_ns = start.low_ns;
    row->hand_high_ns = start.high_ns;
    for (size_t i = 0; w->promoted && i < w->score.case_count; i++) {
        const score_case *timed = &w->score.cases[i];
        if (strcmp(timed->name, at->name) != 0)
            continue;
        row->best_ns = timed->ns;
        if (timed->baseline_ns > 0) { /* measured in turn with the winner */
            row->baseline_ns = timed->baseline_ns;
            row->baseline_low_ns = timed->baseline_low_ns;
            row->baseline_high_ns = timed->baseline_high_ns;
        }
    }
    if (w->promoted)
        row->error = w->score.error;
    row->alone_ns = alone_ns(c, starts, row);
    row->speedup = row->best_ns > 0 ? row->baseline_ns / row->best_ns : 0;
}

static ev_status check_start(course *c, const task_start *start, pool_job **out, ev_error *err) {
    const ir_genome *genome = NULL;
    EV_TRY(winner_start_genome(start, &genome, err));
    ev_status status = course_do(c, MESSAGE_CHECK, genome, out, err);
    ir_genome_free(genome);
    return status;
}

static ev_status check_starts(course *c, start_checks *out, ev_error *err) {
    const task *t = c->t;
    const task_start *last = &t->starts[t->start_count - 1], *only = only_start(c);
    if (t->start_count > 1)
        EV_TRY(check_start(c, last, &out->hand, err));
    if (only && only != &t->starts[0] && only != last)
        EV_TRY(check_start(c, only, &out->alone, err));
    return EV_OK;
}

/* The speed-up of a front's fastest member over the baseline, on the search cases. */
static double front_speedup(const course *c, const front *f) {
    return f->count > 0 && f->list[0].ns > 0 ? c->baseline_ns / f->list[0].ns : 0;
}

static void fill_fronts(const course *c, tune_row *row) {
    const front *exact = search_front(c->search, SEARCH_EXACT);
    const front *tolerant = search_front(c->search, SEARCH_TOLERANT);
    row->exact_count = (unsigned)exact->count;
    row->exact_speedup = front_speedup(c, exact);
    row->tolerant_count = (unsigned)tolerant->count;
    row->tolerant_speedup = front_speedup(c, tolerant);
    row->tolerant_error = tolerant->count > 0 ? tolerant->list[0].error : 0;
}

/* The speed-up of the bold winner over the winner at a case; 0: there is no bold winner. */
static double bold_speedup(const winner *bold, const tune_row *row) {
    for (size_t i = 0; bold->genome && i < bold->score.case_count; i++) {
        const score_case *timed = &bold->score.cases[i];
        if (strcmp(timed->name, row->at) == 0 && timed->ns > 0)
            return row->best_ns / timed->ns;
    }
    return 0;
}

static double time_at(const winner *w, const char *name) {
    for (size_t i = 0; w->promoted && i < w->score.case_count; i++) {
        if (strcmp(w->score.cases[i].name, name) == 0)
            return w->score.cases[i].ns;
    }
    return 0;
}

/* The fastest of a portfolio at a case; without a portfolio, the winner. */
static const winner *fastest_at(const winner *w, const winner_beside *beside, const char *name) {
    const winner *best = w;
    for (size_t i = 0; i < beside->member_count; i++) {
        double ns = time_at(&beside->members[i], name);
        if (ns > 0 && ns < time_at(best, name))
            best = &beside->members[i];
    }
    return best;
}

static ev_status make_rows(course *c, const winner *w, const winner_beside *beside, json_t **out,
                           ev_error *err) {
    tune_report *report = c->run->report;
    size_t first = report->row_count;
    start_checks starts = {0};
    ev_status status = check_starts(c, &starts, err);
    for (size_t i = 0; status == EV_OK && i < c->t->case_count; i++) {
        const task_case *at = &c->t->cases[i];
        tune_row row;
        if (at->split != CORPUS_HELD_OUT || at->use != TASK_TIME)
            continue;
        fill_row(c, fastest_at(w, beside, at->name), at, &starts, &row);
        fill_fronts(c, &row);
        row.bold_speedup = bold_speedup(beside->bold, &row);
        status = rows_append(report, &row, err);
    }
    pool_job_free(starts.hand);
    pool_job_free(starts.alone);
    EV_TRY(status);
    *out = rows_to_json(report->rows + first, report->row_count - first);
    return *out ? EV_OK : ev_fail_memory(err, 0);
}

/* ---- the record ---- */

typedef struct winner_texts {
    char *genome, *rows, *score, *versions, *bold;
    const char *portfolio; /* borrowed */
} winner_texts;

static char *print_and_drop(json_t *json) {
    char *text = json ? ev_json_print(json, true) : NULL;
    json_decref(json);
    return text;
}

static ev_status put_winner(course *c, const winner *w, const pool_job *baseline,
                            const winner_texts *texts, ev_error *err) {
    const done_message *reply = w->job->reply;
    const char *words = reply->words ? reply->words : "";
    records_winner record = {.kernel = c->t->name,
                             .task_path = c->t->path,
                             .task_sha256 = c->t->sha256.hex,
                             .device = tune_device(c->run),
                             .gpu_name = c->ready->gpu_name,
                             .sm = (int)c->ready->sm,
                             .start = ir_genome_start(w->genome),
                             .genome = texts->genome,
                             .genome_sha256 = w->job->result.hashes[SEARCH_BY_GENOME],
                             .ptx = reply->code.ptx,
                             .ptx_sha256 = w->job->result.hashes[SEARCH_BY_PTX],
                             .entry = reply->code.entry,
                             .baseline_ptx = baseline->reply->code.ptx,
                             .baseline_entry = baseline->reply->code.entry,
                             .rows = texts->rows,
                             .score = texts->score,
                             .edits = w->words ? w->words : words,
                             .versions = texts->versions,
                             .bold = texts->bold,
                             .stress = w->stress ? w->stress : "",
                             .portfolio = texts->portfolio,
                             .seed = c->run->options->seed,
                             .promoted = w->promoted};
    return records_put_winner(c->run->records, c->index, &record, course_finished(c), err);
}

static ev_status replay_baseline(course *c, pool_job **out, ev_error *err) {
    const ir_genome *genome = NULL;
    EV_TRY(winner_start_genome(&c->t->starts[0], &genome, err));
    ev_status status = course_do(c, MESSAGE_REPLAY, genome, out, err);
    ir_genome_free(genome);
    if (status == EV_OK && !(*out)->reply)
        return ev_fail(err, EV_INFRA, "the baseline cannot be built again: %s",
                       (*out)->result.reason);
    return status;
}

json_t *winner_to_json(const winner *w) {
    const done_message *reply = w->job->reply;
    const char *words = w->words ? w->words : reply->words;
    json_t *json = json_pack(
        "{s:o*, s:s, s:s, s:s, s:s, s:s, s:o*, s:s, s:s}", "genome", ir_genome_to_json(w->genome),
        "genome_sha256", w->job->result.hashes[SEARCH_BY_GENOME], "ptx", reply->code.ptx,
        "ptx_sha256", w->job->result.hashes[SEARCH_BY_PTX], "entry", reply->code.entry, "start",
        ir_genome_start(w->genome), "score", score_to_json(&w->score), "edits", words ? words : "",
        "stress", w->stress ? w->stress : "");
    if (json && json_object_size(json) != 9) { /* a member could not be made */
        json_decref(json);
        json = NULL;
    }
    return json;
}

/* The bold winner as JSON text, malloc'ed; "": there is none. NULL: out of memory. */
static char *bold_text(const winner *w) {
    return w->genome ? print_and_drop(winner_to_json(w)) : strdup("");
}

static void texts_free(winner_texts *texts) {
    free(texts->genome);
    free(texts->rows);
    free(texts->score);
    free(texts->versions);
    free(texts->bold);
}

static json_t *versions_json(const course *c) {
    json_t *versions =
        json_pack("{s:s,s:s,s:s,s:i}", "evoke", EVOKE_VERSION, "llvm", ir_llvm_version(), "model",
                  model_version(), "records", RECORDS_VERSION);
    if (c->ready->driver[0] != '\0') /* a NULL stays NULL */
        (void)json_object_set_new(versions, "driver", json_string(c->ready->driver));
    return versions;
}

ev_status winner_write(course *c, const winner *w, const winner_beside *beside, ev_error *err) {
    json_t *rows = NULL;
    EV_TRY(make_rows(c, w, beside, &rows, err));
    winner_texts texts = {.genome = print_and_drop(ir_genome_to_json(w->genome)),
                          .rows = print_and_drop(rows),
                          .score =
                              w->promoted ? print_and_drop(score_to_json(&w->score)) : strdup(""),
                          .versions = print_and_drop(versions_json(c)),
                          .bold = bold_text(beside->bold),
                          .portfolio = beside->portfolio ? beside->portfolio : ""};
    pool_job *baseline = NULL;
    bool ok = texts.genome && texts.rows && texts.score && texts.versions && texts.bold;
    ev_status status = ok ? replay_baseline(c, &baseline, err) : ev_fail_memory(err, 0);
    if (status == EV_OK)
        status = put_winner(c, w, baseline, &texts, err);
    if (status == EV_OK)
        status = portfolio_append(c->run->report, c->t->name, texts.portfolio, err);
    if (status == EV_OK)
        status = genomes_append(c->run->report, w->job->result.hashes[SEARCH_BY_GENOME],
                                texts.genome, err);
    pool_job_free(baseline);
    texts_free(&texts);
    return status;
}
