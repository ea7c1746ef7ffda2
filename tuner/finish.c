/* Finish: after the search: minimises the best, promotes it, writes the winner.
 *
 * A candidate that fails gate 6 stays in the records with the reason. What fails there is mostly
 * one edit that cheats where the search does not look, so candidates that hold all of a failed
 * one's edits are passed over, and what is left of the failed one without any one of its edits is
 * tried as well. */
#include "tuner/tune_inside.h"

#include "base/json.h"
#include "tuner/minimise.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROMOTIONS 10
#define KEEP_GAIN 0.98
#define MINIMISE_BUDGET 240 /* trials for one candidate */
#define MOST_PARTS 24       /* edits of a wrong genome that are looked at one by one */
#define MOST_CANDIDATES (SEARCH_ARCHIVE + 256)

typedef struct winner {
    json_t *genome;
    pool_job *job; /* its promotion or, when nothing was promoted, its check */
    bool promoted;
    score score; /* when promoted */
} winner;

typedef struct candidate_entry {
    json_t *genome;
    double ns;
    bool used;
} candidate_entry;

typedef struct finish {
    course *c;
    candidate_entry candidates[MOST_CANDIDATES];
    size_t candidate_count;
    json_t *wrong; /* genomes that gate 6 found wrong: so is what holds all their edits */
    json_t *slow;  /* that were right, and not faster */
    unsigned tried;
    winner winner;
} finish;

/* ---- candidates ---- */

static void add_candidate(finish *f, const json_t *genome, double ns) {
    if (f->candidate_count < MOST_CANDIDATES)
        f->candidates[f->candidate_count++] =
            (candidate_entry){json_incref((json_t *)genome), ns, false};
}

static bool holds_edit(const json_t *genome, const json_t *edit) {
    size_t at = 0;
    const json_t *other = NULL;
    json_array_foreach(json_object_get(genome, "edits"), at, other) {
        if (json_equal(other, edit))
            return true;
    }
    return false;
}

/* Whether the genome has all of a failed one's edits on the same base. */
static bool holds_failed(const json_t *genome, const json_t *failed) {
    const char *keys[] = {"start", "macros"};
    for (size_t i = 0; i < 2; i++) {
        if (!json_equal(json_object_get(genome, keys[i]), json_object_get(failed, keys[i])))
            return false;
    }
    size_t at = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(failed, "edits"), at, edit) {
        if (!holds_edit(genome, edit))
            return false;
    }
    return true;
}

static bool is_hopeless(const finish *f, const json_t *genome) {
    size_t at = 0;
    const json_t *other = NULL;
    json_array_foreach(f->wrong, at, other) {
        if (holds_failed(genome, other))
            return true;
    }
    json_array_foreach(f->slow, at, other) {
        if (json_equal(genome, other))
            return true;
    }
    return false;
}

/* The fastest that was not used; the first added among equals. */
static candidate_entry *next_candidate(finish *f) {
    candidate_entry *best = NULL;
    for (size_t i = 0; i < f->candidate_count; i++) {
        candidate_entry *e = &f->candidates[i];
        if (!e->used && (!best || e->ns < best->ns))
            best = e;
    }
    return best;
}

/* ---- minimising ---- */

static ev_status score_for_minimise(void *context, json_t *const *genomes, size_t count, double *ns,
                                    ev_error *err) {
    course *c = context;
    trial *trials = calloc(count, sizeof *trials);
    if (!trials)
        return ev_fail_memory(err, count * sizeof *trials);
    ev_status status = course_score(c, genomes, count, trials, err);
    for (size_t i = 0; i < count; i++)
        ns[i] = trials[i].passed ? trials[i].ns : 0;
    free(trials);
    return status;
}

/* The time that a genome's gain is counted from: its start's, unmodified; where that did not pass,
 * the baseline's. */
static double reference_of(const finish *f, const json_t *genome) {
    const char *start = ev_json_text(genome, "start", "");
    for (size_t i = 0; i < f->c->start_count; i++) {
        double ns = search_start_ns(f->c->search, i);
        if (strcmp(f->c->starts[i].start->name, start) == 0 && ns > 0)
            return ns;
    }
    return f->c->baseline_ns;
}

static ev_status minimise(finish *f, const candidate_entry *e, json_t **out, double *ns,
                          ev_error *err) {
    minimise_request request = {.genome = e->genome,
                                .ns = e->ns,
                                .reference_ns = reference_of(f, e->genome),
                                .keep = KEEP_GAIN,
                                .budget = MINIMISE_BUDGET,
                                .score = score_for_minimise,
                                .context = f->c};
    return minimise_genome(&request, out, ns, err);
}

/* ---- promoting ---- */

typedef enum verdict { PROMOTED, WRONG, SLOW } verdict;

/* Gate 6, and its record. Where it is PROMOTED, the job and its score are given out. */
static ev_status promote(finish *f, json_t *genome, verdict *v, winner *out, ev_error *err) {
    pool_job *job = NULL;
    EV_TRY(course_do(f->c, MESSAGE_PROMOTE, genome, &job, err));
    score s = {0};
    bool scored = job_score(job, &s);
    ev_status status =
        course_record(f->c, "promote", f->c->promoted++, job, scored ? &s : NULL, err);
    /* It has a time only if all was right. */
    *v = scored && s.stopped == GATE_NONE ? PROMOTED : scored && s.ns > 0 ? SLOW : WRONG;
    if (status == EV_OK && *v == PROMOTED) {
        *out = (winner){json_incref(genome), job, true, s};
        return EV_OK;
    }
    char note[300];
    snprintf(note, sizeof note, "not promoted: %.260s", scored ? s.reason : job->reason);
    course_display(f->c, note);
    pool_job_free(job);
    if (status == EV_OK && json_array_append(*v == SLOW ? f->slow : f->wrong, genome) != 0)
        status = ev_fail_memory(err, 0);
    return status;
}

static void clear_winner(winner *w) {
    json_decref(w->genome);
    pool_job_free(w->job);
    *w = (winner){0};
}

/* The genome with one edit alone (`keep`), or without that one; for each of its edits. A list;
 * NULL: out of memory. */
static json_t *parts_of(const json_t *genome, bool keep) {
    json_t *list = json_array();
    size_t count = json_array_size(json_object_get(genome, "edits"));
    for (size_t i = 0; list && i < count; i++) {
        json_t *part = json_deep_copy(genome);
        json_t *edits = json_object_get(part, "edits");
        for (size_t k = count; part && k-- > 0;) {
            if ((k == i) != keep)
                (void)json_array_remove(edits, k);
        }
        if (json_array_append_new(list, part) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

/* Scores the parts of a wrong genome; `ns` [MOST_PARTS]; 0: stopped at a gate. */
static ev_status score_parts(finish *f, json_t *list, double *ns, ev_error *err) {
    json_t *genomes[MOST_PARTS];
    size_t count = json_array_size(list);
    assert(count <= MOST_PARTS);
    for (size_t i = 0; i < count; i++)
        genomes[i] = json_array_get(list, i);
    return score_for_minimise(f->c, genomes, count, ns, err);
}

/* Which edits of a wrong genome are wrong by themselves: much of the archive may hold them. One
 * that is right is a candidate like any other. */
static ev_status blame_edits(finish *f, json_t *singles, ev_error *err) {
    double ns[MOST_PARTS] = {0};
    EV_TRY(score_parts(f, singles, ns, err));
    for (size_t i = 0; i < json_array_size(singles); i++) {
        json_t *single = json_array_get(singles, i);
        verdict v = SLOW;
        winner right = {0};
        if (ns[i] > 0 && !is_hopeless(f, single))
            EV_TRY(promote(f, single, &v, &right, err));
        clear_winner(&right);
        if (v == PROMOTED)
            add_candidate(f, single, ns[i]);
    }
    return EV_OK;
}

/* What is left without any one edit may be right. */
static ev_status add_reduced(finish *f, json_t *reduced, ev_error *err) {
    double ns[MOST_PARTS] = {0};
    EV_TRY(score_parts(f, reduced, ns, err));
    for (size_t i = 0; i < json_array_size(reduced); i++) {
        if (ns[i] > 0 && ns[i] < f->c->baseline_ns)
            add_candidate(f, json_array_get(reduced, i), ns[i]);
    }
    return EV_OK;
}

static ev_status learn_from(finish *f, const json_t *wrong, ev_error *err) {
    size_t count = json_array_size(json_object_get(wrong, "edits"));
    if (count < 2 || count > MOST_PARTS)
        return EV_OK;
    json_t *singles = parts_of(wrong, true), *reduced = parts_of(wrong, false);
    ev_status status = singles && reduced ? EV_OK : ev_fail_memory(err, 0);
    if (status == EV_OK)
        status = blame_edits(f, singles, err);
    if (status == EV_OK && count > 2) /* of two, what is left are the single ones */
        status = add_reduced(f, reduced, err);
    json_decref(singles);
    json_decref(reduced);
    return status;
}

static ev_status try_candidate(finish *f, const candidate_entry *e, bool *passed, ev_error *err) {
    json_t *small = NULL;
    double ns = 0;
    EV_TRY(minimise(f, e, &small, &ns, err));
    ev_status status = EV_OK;
    verdict v = SLOW;
    if (!is_hopeless(f, small)) {
        f->tried++;
        status = promote(f, small, &v, &f->winner, err);
        if (status == EV_OK && v == WRONG)
            status = learn_from(f, small, err);
    }
    *passed = status == EV_OK && v == PROMOTED;
    json_decref(small);
    return status;
}

static ev_status try_candidates(finish *f, bool *passed, ev_error *err) {
    const search_best *best = NULL;
    size_t count = search_archive(f->c->search, &best);
    for (size_t i = 0; i < count; i++) {
        if (best[i].ns < f->c->baseline_ns)
            add_candidate(f, best[i].genome, best[i].ns);
    }
    while (!*passed && f->tried < MOST_PROMOTIONS) {
        candidate_entry *e = next_candidate(f);
        if (!e)
            return EV_OK;
        e->used = true;
        if (!is_hopeless(f, e->genome))
            EV_TRY(try_candidate(f, e, passed, err));
    }
    return EV_OK;
}

static ev_status start_genome(const task_start *start, json_t **out, ev_error *err) {
    ir_genome *genome = ir_genome_new(start->name);
    json_t *json = genome ? ir_genome_to_json(genome) : NULL;
    ir_genome_free(genome);
    if (!json)
        return ev_fail_memory(err, 0);
    *out = json;
    return EV_OK;
}

/* Last resort: the unmodified starts, fastest first; the first start is the baseline itself. */
static ev_status try_starts(finish *f, bool *passed, ev_error *err) {
    bool used[64] = {false};
    for (size_t round = 0; !*passed && round < f->c->start_count && round < 64; round++) {
        size_t at = f->c->start_count;
        for (size_t i = 0; i < f->c->start_count && i < 64; i++) {
            double ns = search_start_ns(f->c->search, i);
            bool faster = ns > 0 && ns < f->c->baseline_ns && !used[i];
            if (faster && (at == f->c->start_count || ns < search_start_ns(f->c->search, at)))
                at = i;
        }
        if (at == f->c->start_count)
            return EV_OK;
        used[at] = true;
        json_t *genome = NULL;
        EV_TRY(start_genome(f->c->starts[at].start, &genome, err));
        verdict v = SLOW;
        ev_status status = is_hopeless(f, genome) ? EV_OK : promote(f, genome, &v, &f->winner, err);
        *passed = status == EV_OK && v == PROMOTED;
        json_decref(genome);
        EV_TRY(status);
    }
    return EV_OK;
}

/* Nothing is better: the winner is the baseline, not promoted. */
static ev_status keep_baseline(finish *f, ev_error *err) {
    EV_TRY(start_genome(&f->c->t->starts[0], &f->winner.genome, err));
    EV_TRY(course_do(f->c, MESSAGE_CHECK, f->winner.genome, &f->winner.job, err));
    if (!f->winner.job->reply)
        return ev_fail(err, EV_BAD, "the baseline of the task %s cannot be built again: %s",
                       f->c->t->name, f->winner.job->reason);
    return EV_OK;
}

/* ---- the table ---- */

/* Times and errors of a `check` reply, by case. */
static const json_t *find_check(const pool_job *job, const char *name) {
    size_t at = 0;
    const json_t *row = NULL;
    const json_t *list = job && job->reply ? json_object_get(job->reply, "cases") : NULL;
    json_array_foreach(list, at, row) {
        if (strcmp(ev_json_text(row, "name", ""), name) == 0)
            return row;
    }
    return NULL;
}

static void fill_row(const finish *f, const task_case *at, const pool_job *hand, tune_row *row) {
    const course *c = f->c;
    const winner *w = &f->winner;
    *row = (tune_row){.modelled = ev_json_flag(c->ready, "modelled", false),
                      .tolerance = c->t->tolerance.relative_l2,
                      .promoted = w->promoted};
    snprintf(row->kernel, sizeof row->kernel, "%s", c->t->name);
    snprintf(row->start, sizeof row->start, "%s", ev_json_text(w->genome, "start", ""));
    snprintf(row->at, sizeof row->at, "%s", at->name);
    snprintf(row->device, sizeof row->device, "%s", c->run->options->device);
    memcpy(row->genome_sha256, w->job->genome_sha256, sizeof row->genome_sha256);
    memcpy(row->ptx_sha256, w->job->ptx_sha256, sizeof row->ptx_sha256);
    row->baseline_ns = ev_json_number(json_object_get(c->ready, "baseline_ns"), at->name, 0);
    row->best_ns = ev_json_number(find_check(w->job, at->name), "ns", 0);
    row->error = ev_json_number(find_check(w->job, at->name), "error", 0);
    row->hand_ns = ev_json_number(find_check(hand, at->name), "ns", 0);
    for (size_t i = 0; w->promoted && i < w->score.case_count; i++) {
        if (strcmp(w->score.cases[i].name, at->name) == 0)
            row->best_ns = w->score.cases[i].ns;
    }
    if (w->promoted)
        row->error = w->score.error;
    row->speedup = row->best_ns > 0 ? row->baseline_ns / row->best_ns : 0;
}

/* The task's last start as it is, on the timed held-out cases; *out is NULL if it has only one. */
static ev_status check_hand(finish *f, pool_job **out, ev_error *err) {
    const task *t = f->c->t;
    *out = NULL;
    if (t->start_count < 2)
        return EV_OK;
    json_t *genome = NULL;
    EV_TRY(start_genome(&t->starts[t->start_count - 1], &genome, err));
    ev_status status = course_do(f->c, MESSAGE_CHECK, genome, out, err);
    json_decref(genome);
    return status;
}

static ev_status make_rows(finish *f, json_t **out, ev_error *err) {
    tune_report *report = f->c->run->report;
    size_t first = report->row_count;
    pool_job *hand = NULL;
    EV_TRY(check_hand(f, &hand, err));
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < f->c->t->case_count; i++) {
        const task_case *at = &f->c->t->cases[i];
        tune_row row;
        if (at->split != CORPUS_HELD_OUT || at->use != TASK_TIME)
            continue;
        fill_row(f, at, hand, &row);
        status = rows_append(report, &row, err);
    }
    pool_job_free(hand);
    EV_TRY(status);
    *out = rows_to_json(report->rows + first, report->row_count - first);
    return *out ? EV_OK : ev_fail_memory(err, 0);
}

/* ---- the record ---- */

typedef struct winner_texts {
    char *genome, *rows, *score, *versions;
} winner_texts;

static char *print_and_drop(json_t *json) {
    char *text = json ? ev_json_print(json, true) : NULL;
    json_decref(json);
    return text;
}

static ev_status put_winner(finish *f, const pool_job *baseline, const winner_texts *texts,
                            ev_error *err) {
    const course *c = f->c;
    const json_t *reply = f->winner.job->reply;
    records_winner w = {.kernel = c->t->name,
                        .task_path = c->t->path,
                        .task_sha256 = c->t->sha256.hex,
                        .device = c->run->options->device,
                        .gpu_name = ev_json_text(c->ready, "gpu_name", ""),
                        .sm = (int)ev_json_integer(c->ready, "sm", 0),
                        .start = ev_json_text(f->winner.genome, "start", ""),
                        .genome = texts->genome,
                        .genome_sha256 = f->winner.job->genome_sha256,
                        .ptx = ev_json_text(reply, "ptx", ""),
                        .ptx_sha256 = f->winner.job->ptx_sha256,
                        .entry = ev_json_text(reply, "entry", ""),
                        .baseline_ptx = ev_json_text(baseline->reply, "ptx", ""),
                        .baseline_entry = ev_json_text(baseline->reply, "entry", ""),
                        .rows = texts->rows,
                        .score = texts->score,
                        .edits = ev_json_text(reply, "words", ""),
                        .versions = texts->versions,
                        .seed = c->run->options->seed,
                        .promoted = f->winner.promoted};
    return records_put_winner(c->run->records, c->index, &w, course_finished(c), err);
}

static ev_status replay_baseline(finish *f, pool_job **out, ev_error *err) {
    json_t *genome = NULL;
    EV_TRY(start_genome(&f->c->t->starts[0], &genome, err));
    ev_status status = course_do(f->c, MESSAGE_REPLAY, genome, out, err);
    json_decref(genome);
    if (status == EV_OK && !(*out)->reply)
        return ev_fail(err, EV_INFRA, "the baseline cannot be built again: %s", (*out)->reason);
    return status;
}

static ev_status write_winner(finish *f, ev_error *err) {
    json_t *rows = NULL;
    EV_TRY(make_rows(f, &rows, err));
    winner_texts texts = {
        .genome = ev_json_print(f->winner.genome, true),
        .rows = print_and_drop(rows),
        .score = f->winner.promoted ? print_and_drop(score_to_json(&f->winner.score)) : strdup(""),
        .versions = print_and_drop(json_pack("{s:s,s:s,s:i}", "evoke", EVOKE_VERSION, "llvm",
                                             ir_llvm_version(), "records", RECORDS_VERSION))};
    pool_job *baseline = NULL;
    bool ok = texts.genome && texts.rows && texts.score && texts.versions;
    ev_status status = ok ? replay_baseline(f, &baseline, err) : ev_fail_memory(err, 0);
    if (status == EV_OK)
        status = put_winner(f, baseline, &texts, err);
    pool_job_free(baseline);
    free(texts.genome);
    free(texts.rows);
    free(texts.score);
    free(texts.versions);
    return status;
}

static ev_status find_winner(finish *f, ev_error *err) {
    bool passed = false;
    f->wrong = json_array();
    f->slow = json_array();
    if (!f->wrong || !f->slow)
        return ev_fail_memory(err, 0);
    EV_TRY(try_candidates(f, &passed, err));
    if (!passed)
        EV_TRY(try_starts(f, &passed, err));
    return passed ? EV_OK : keep_baseline(f, err);
}

ev_status course_finish(course *c, ev_error *err) {
    finish *f = calloc(1, sizeof *f);
    if (!f)
        return ev_fail_memory(err, sizeof *f);
    f->c = c;
    course_display(c, "minimising and promoting");
    ev_status status = find_winner(f, err);
    if (status == EV_OK)
        status = write_winner(f, err);
    for (size_t i = 0; i < f->candidate_count; i++)
        json_decref(f->candidates[i].genome);
    json_decref(f->wrong);
    json_decref(f->slow);
    clear_winner(&f->winner);
    free(f);
    return status;
}
