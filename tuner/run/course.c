/* Course: the search of one task, from its opening to the last committed child.
 *
 * search_all is the loop: it draws children as long as the search allows (draw_one), hands them to
 * the pool, stores each result when it arrives (arrive_new), and commits results in the order of
 * the children (commit_one), whatever the order of their arrival. A resumed run draws the same
 * children and finds their results in the records (arrive_stored) until the first gap. */
#include "tuner/run/tune_inside.h"

#include "base/json.h"
#include "base/proc.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISPLAY_SECONDS 0.1
#define WAIT_SECONDS 0.1 /* longest time between two looks at stop flag and clock */

/* ---- clock and display ---- */

double course_seconds(const course *c) {
    return c->earlier + ev_clock_now() - c->began;
}

static bool must_stop(course *c) {
    const tune_options *o = c->run->options;
    if (o->stop && *o->stop)
        c->run->stopped = true;
    if (o->seconds > 0 && course_seconds(c) >= o->seconds)
        c->out_of_time = true;
    return c->run->stopped || c->out_of_time;
}

void course_display(course *c, const char *note) {
    const tune_options *o = c->run->options;
    double now = ev_clock_now();
    if (!o->progress || (!note && now - c->run->displayed < DISPLAY_SECONDS))
        return;
    c->run->displayed = now;
    c->progress.seconds = now - c->run->began;
    c->progress.failed_workers = pool_failed_workers(c->run->pool);
    c->progress.note = note;
    o->progress(o->progress_context, &c->progress);
}

/* ---- opening ---- */

static bool is_chosen(const course *c, const task_start *start) {
    const char *wanted = c->run->options->starts;
    return !start->is_reference &&
           (!wanted || strcmp(wanted, "all") == 0 || strcmp(wanted, start->name) == 0);
}

/* Edits that the options leave out have no places. */
static void read_sites(search_start *start, const ready_message *ready, const tune_options *o) {
    for (size_t i = 0; i < ready->start_count; i++) {
        if (strcmp(ready->starts[i].name, start->start->name) == 0)
            memcpy(start->sites, ready->starts[i].sites, sizeof start->sites);
    }
    for (int kind = 0; kind < IR_EDIT_COUNT; kind++) {
        if (o->without[kind] || (o->no_structure && kind >= IR_EDIT_LOCAL_COUNT))
            start->sites[kind] = 0;
    }
}

static ev_status choose_starts(course *c, ev_error *err) {
    c->starts = calloc(c->t->start_count, sizeof *c->starts);
    if (!c->starts)
        return ev_fail_memory(err, c->t->start_count * sizeof *c->starts);
    for (size_t i = 0; i < c->t->start_count; i++) {
        if (!is_chosen(c, &c->t->starts[i]))
            continue;
        search_start *start = &c->starts[c->start_count++];
        start->start = &c->t->starts[i];
        read_sites(start, c->ready, c->run->options);
    }
    return EV_OK;
}

double course_baseline_ns(const course *c, const char *name) {
    for (size_t i = 0; i < c->ready->baseline_count; i++) {
        if (strcmp(c->ready->baseline[i].name, name) == 0)
            return c->ready->baseline[i].ns;
    }
    return 0;
}

double course_baseline_mean(const course *c, corpus_split split) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < c->ready->baseline_count; i++) {
        const case_time *of = &c->ready->baseline[i];
        const task_case *at = task_find_case(c->t, of->name);
        bool is_drawn = at == NULL; /* the search draws cases beside the task's own */
        if (is_drawn ? split == CORPUS_SEARCH : at->split == split && at->use == TASK_TIME) {
            sum += log(of->ns);
            count++;
        }
    }
    return count > 0 ? exp(sum / (double)count) : 0;
}

/* The text of a variant is for the device's architecture and newer ones. */
static ev_status check_targets(const course *c, ev_error *err) {
    const ptxas_targets *targets = &c->run->options->assemble;
    for (size_t i = 0; i < targets->count; i++) {
        if (targets->sm[i] < (int)c->ready->sm)
            return ev_fail(err, EV_BAD,
                           "--assemble sm_%d: the PTX of this device's variants is for sm_%d and "
                           "newer; leave sm_%d out",
                           targets->sm[i], (int)c->ready->sm, targets->sm[i]);
    }
    return EV_OK;
}

static ev_status check_ready(course *c, ev_error *err) {
    EV_TRY(check_targets(c, err));
    if (strcmp(c->ready->task_sha256, c->t->sha256.hex) != 0)
        return ev_fail(err, EV_BAD,
                       "the task %s changed while it was read, or is another one where the worker "
                       "runs; start again",
                       c->t->path);
    c->baseline_ns = course_baseline_mean(c, CORPUS_SEARCH);
    return EV_OK;
}

/* Whether the earlier run timed the baseline as this one does. Versions alone do not tell: the
 * model may have changed within one. */
static ev_status is_same_model(const course *c, bool *same, ev_error *err) {
    const ir_genome *genome = NULL;
    score s;
    EV_TRY(winner_start_genome(&c->t->starts[0], &genome, err));
    ev_status status = earlier_score(c->run->earlier, genome, &s, same, err);
    ir_genome_free(genome);
    for (size_t i = 0; status == EV_OK && *same && i < s.case_count; i++) {
        double now = course_baseline_ns(c, s.cases[i].name);
        *same = s.cases[i].ns <= 0 || s.cases[i].ns == now;
    }
    return status;
}

static ev_status take_times(const course *c, size_t *known, ev_error *err) {
    earlier *e = c->run->earlier;
    bool same = false;
    EV_TRY(earlier_use_times(e, c->t, c->run->identity, known, err));
    if (*known > 0)
        EV_TRY(is_same_model(c, &same, err));
    if (!same) {
        earlier_drop_times(e);
        *known = 0;
    }
    return EV_OK;
}

/* The genomes of the earlier run, with a line for each that is left out, and its times. */
static ev_status take_earlier(course *c, const ir_genome *out[EARLIER_MOST], size_t *count,
                              ev_error *err) {
    const tune_options *o = c->run->options;
    earlier *e = c->run->earlier;
    const earlier_filter filter = {c->t, o->starts, o->bold, !o->no_structure};
    ev_str skipped = EV_STR_EMPTY, note = EV_STR_EMPTY;
    size_t known = 0;
    ev_status status = earlier_genomes(e, &filter, out, count, &skipped, err);
    if (status == EV_OK)
        status = take_times(c, &known, err);
    ev_str_printf(&note, "%s: begins with %zu genomes, and knows %zu times", earlier_path(e),
                  *count, known);
    course_display(c, ev_str_text(&note));
    for (const char *line = ev_str_text(&skipped); *line != '\0';) {
        size_t length = strcspn(line, "\n");
        ev_str_free(&note);
        note = EV_STR_EMPTY;
        ev_str_printf(&note, "%s: %.*s", earlier_path(e), (int)length, line);
        course_display(c, ev_str_text(&note));
        line += length + (line[length] == '\n');
    }
    ev_str_free(&skipped);
    ev_str_free(&note);
    return status;
}

static ev_status make_search(course *c, const ir_genome *const *first, size_t count,
                             ev_error *err) {
    const tune_options *o = c->run->options;
    search_settings settings = {.starts = c->starts,
                                .start_count = c->start_count,
                                .seed = o->seed,
                                .evaluations = o->evaluations,
                                .strategy = o->strategy,
                                .bold = o->bold,
                                .odds = o->prior ? o->prior->odds : NULL,
                                .without = o->without,
                                .measured = !c->ready->modelled,
                                .earlier = first,
                                .earlier_count = count};
    return search_new(&settings, &c->search, err);
}

static ev_status begin_search(course *c, ev_error *err) {
    const ir_genome *first[EARLIER_MOST];
    size_t count = 0;
    EV_TRY(check_ready(c, err));
    EV_TRY(choose_starts(c, err));
    ev_status status = c->run->earlier ? take_earlier(c, first, &count, err) : EV_OK;
    if (status == EV_OK)
        status = make_search(c, first, count, err);
    for (size_t i = 0; i < count; i++)
        ir_genome_free(first[i]);
    return status;
}

/* Shows the drawn cases, which gate 4 runs beside the task's own. */
static void tell_drawn(course *c) {
    ev_str note = EV_STR_EMPTY;
    for (size_t i = 0; i < c->ready->drawn_count; i++)
        ev_str_printf(&note, "%s%s", i == 0 ? "cases drawn from the task's: " : ", ",
                      c->ready->drawn[i]);
    if (note.length > 0)
        course_display(c, ev_str_text(&note));
    ev_str_free(&note);
}

/* Shows the weak points of the task. */
static void tell_warnings(course *c) {
    for (size_t i = 0; i < task_all_count(c->t); i++) {
        ev_str note = EV_STR_EMPTY;
        if (task_warning(c->t, i, &note))
            course_display(c, ev_str_text(&note));
        ev_str_free(&note);
    }
}

/* *c must be closed with course_close whatever the status. If a signal comes while the workers open
 * the task, c->search stays NULL and run->stopped is set. */
ev_status course_open(tune_state *run, size_t index, course *c, ev_error *err) {
    const tune_options *o = run->options;
    *c = (course){.run = run,
                  .index = index,
                  .t = run->tasks[index],
                  .replays = o->resume,
                  .began = ev_clock_now(),
                  .progress = {.kernel = run->tasks[index]->name,
                               .task_index = index,
                               .task_count = o->task_count,
                               .budget = o->evaluations}};
    tell_warnings(c);
    course_display(c, "opening the task: inputs, oracle, baseline");
    while (!c->ready) {
        EV_TRY(pool_open(run->pool, c->t->path, &c->ready, err));
        if (!c->ready && must_stop(c)) {
            run->stopped = true;
            return EV_OK;
        }
    }
    EV_TRY(begin_search(c, err));
    tell_drawn(c);
    c->progress.baseline_ns = c->baseline_ns;
    c->began = ev_clock_now();
    return EV_OK;
}

void course_close(course *c) {
    for (size_t i = 0; i < SEARCH_LAG; i++)
        child_result_free(&c->on_way[i].result);
    search_free(c->search);
    free(c->starts);
    *c = (course){0};
}

bool course_finished(const course *c) {
    uint64_t budget = c->run->options->evaluations;
    bool whole = (budget > 0 && search_committed(c->search) >= budget) ||
                 search_is_exhausted(c->search) || c->at_floor;
    return !c->cut_short && (c->out_of_time || whole);
}

/* ---- records ---- */

/* Writes the reason of a known child: the key, and the child that it equals. */
static void known_words(search_hash by, uint64_t same_as, char *text, size_t bytes) {
    snprintf(text, bytes, "same %s as %" PRIu64, search_hash_name(by), same_as);
}

/* Sets the reason of a child that the pool ended as known. The key is the last one that the worker
 * asked about. False: no child has it, but the earlier run. */
static bool take_known(const course *c, uint64_t child, child_result *r) {
    int by = SEARCH_HASHES - 1;
    uint64_t same_as = 0;
    while (by > 0 && !r->hashes[by][0])
        by--;
    if (!search_is_over(c->search, child, r->genome, (search_hash)by, r->hashes[by], &same_as))
        return false;
    known_words((search_hash)by, same_as, r->reason, sizeof r->reason);
    if (r->outcome.origin == SEARCH_MEMOISED)
        search_outcome(c->search, same_as, &r->outcome.ns, &r->outcome.error);
    return true;
}

bool job_score(const pool_job *job, score *out) {
    bool scored = job->reply && job->reply->has_score;
    if (scored)
        *out = job->reply->score;
    return scored;
}

/* The score as text for the records; malloc'ed. NULL: out of memory. */
static char *score_text(const score *s) {
    json_t *json = score_to_json(s);
    char *text = json ? ev_json_print(json, true) : NULL;
    json_decref(json);
    return text;
}

ev_status course_put(course *c, records_evaluation *e, const pool_job *job, const score *s,
                     ev_error *err) {
    const child_result *r = &job->result;
    char *text = s ? score_text(s) : NULL;
    json_t *genome = r->genome ? ir_genome_to_json(r->genome) : NULL;
    bool ok = !(s && !text) && !(r->genome && !genome);
    e->genome = genome;
    bool is_duplicate = r->outcome.origin == SEARCH_DUPLICATE;
    e->task = c->index;
    e->operators = r->operators;
    for (int by = 0; by < SEARCH_HASHES; by++)
        e->hashes[by] = r->hashes[by];
    e->gate = gate_name(is_duplicate ? GATE_SEEN : r->outcome.stopped);
    e->reason = r->reason;
    e->ns = r->outcome.ns;
    e->error = r->outcome.error;
    e->score = text ? text : "";
    e->seconds = course_seconds(c);
    e->bold = (uint32_t)r->bold;
    ev_status status = ok ? records_put(c->run->records, e, err) : ev_fail_memory(err, 0);
    free(text);
    json_decref(genome);
    return status;
}

/* ---- arrivals ---- */

/* Takes a result from a worker: completes it and moves it from the job to its place. */
static ev_status arrive_new(course *c, pool_job *job, ev_error *err) {
    on_way *w = &c->on_way[job->number % SEARCH_LAG];
    child_result *r = &job->result;
    child_outcome *o = &r->outcome;
    if (o->origin == SEARCH_ESTIMATED)
        search_estimate(c->search, job->number, &o->small, &o->ns, &o->error);
    if (o->origin == SEARCH_ESTIMATED && o->ns <= 0)
        return ev_fail(err, EV_INFRA, "a worker did not build what no parent's sketch is known of");
    bool known = search_is_known(o->origin);
    bool recalls = known && !take_known(c, job->number, r) && c->run->earlier;
    score recalled;
    if (recalls) {
        EV_TRY(earlier_recall(c->run->earlier, r, &recalled, err));
        c->run->report->recalled++;
    }
    records_evaluation e = {.phase = "search",
                            .number = job->number,
                            .island = w->island,
                            .generation = w->generation,
                            .let_through = w->let_through,
                            .parents = w->parents};
    const score *s = job->reply ? &job->reply->score : NULL;
    s = recalls ? &recalled : s;
    EV_TRY(course_put(c, &e, job, o->origin != SEARCH_MEMOISED ? s : NULL, err));
    w->here = true;
    w->floor_share = s ? course_floor_share(c, s) : 0;
    w->result = *r;
    *r = (child_result){0};
    return EV_OK;
}

/* Reads the score of a stored child; "": the child has none. */
static ev_status read_score(course *c, on_way *w, const char *text, ev_error *err) {
    if (!text[0])
        return EV_OK;
    ev_json *doc = NULL;
    score s;
    EV_TRY(ev_json_parse(text, "the records", &doc, err));
    ev_status status = score_from_json(doc->root, &s, err);
    ev_json_free(doc);
    EV_TRY(status);
    child_result_take_score(&w->result, &s);
    w->floor_share = course_floor_share(c, &s);
    return EV_OK;
}

typedef struct replay {
    course *c;
    uint64_t child;
} replay;

static ev_status read_genome(const json_t *json, const ir_genome **out, ev_error *err) {
    ir_genome *genome = NULL;
    ev_status status = ir_genome_from_json(json, &genome, err);
    *out = genome;
    return status == EV_OK ? EV_OK : ev_wrap(err, status, "the records");
}

static ev_status arrive_stored(void *context, const records_evaluation *e, ev_error *err) {
    const replay *replayed = context;
    on_way *w = &replayed->c->on_way[replayed->child % SEARCH_LAG];
    child_result *r = &w->result;
    search_let_through(replayed->c->search, e->let_through != 0);
    EV_TRY(read_score(replayed->c, w, e->score, err));
    if (!gate_find(e->gate, &r->outcome.stopped))
        return ev_fail(err, EV_BAD, "the records name a gate '%s' that is not there", e->gate);
    if (r->outcome.stopped == GATE_SEEN)
        r->outcome.origin = SEARCH_DUPLICATE;
    r->bold = e->bold;
    r->outcome.ns = e->ns; /* also for estimated and memoised children */
    r->outcome.error = e->error;
    if (e->genome)
        EV_TRY(read_genome(e->genome, &r->genome, err));
    snprintf(r->operators, sizeof r->operators, "%s", e->operators);
    for (int by = 0; by < SEARCH_HASHES; by++)
        snprintf(r->hashes[by], sizeof r->hashes[by], "%s", e->hashes[by]);
    w->here = true;
    if (e->seconds > replayed->c->earlier)
        replayed->c->earlier = e->seconds;
    return EV_OK;
}

/* ---- the loop ---- */

/* Draws one child. Its result comes from the records or else from a worker. After the first child
 * that is missing in the records, later children may still be there: they were under way when the
 * run ended. */
static ev_status draw_one(course *c, ev_error *err) {
    recipe drawn;
    bool let_through = pool_timers_starve(c->run->pool);
    EV_TRY(search_draw(c->search, let_through, &drawn, err));
    uint64_t child = drawn.stream.child;
    on_way *w = &c->on_way[child % SEARCH_LAG];
    *w = (on_way){.island = drawn.stream.island,
                  .generation = drawn.stream.generation,
                  .let_through = let_through};
    memcpy(w->parents, drawn.lineage, sizeof w->parents);
    bool stored = false;
    replay r = {c, child};
    if (c->replays) {
        ev_status status = records_get(c->run->records, c->index, "search", child, arrive_stored,
                                       &r, &stored, err);
        if (status != EV_OK || stored) {
            recipe_free(&drawn);
            return status;
        }
        c->has_gap = true;
    }
    pool_job *job = pool_job_child(child, &drawn);
    if (!job)
        return ev_fail_memory(err, sizeof *job);
    pool_submit(c->run->pool, job);
    return EV_OK;
}

static void note_audit(tune_audit *count, search_audit found) {
    count->made += found != AUDIT_NONE;
    count->refuted += found == AUDIT_REFUTED;
}

static void note_audits(tune_report *report, const search_audits *a) {
    report->let_through += a->let_through;
    note_audit(&report->filter_audits, a->filter);
    note_audit(&report->memo_audits, a->memo);
    note_audit(&report->screen_audits, a->screen);
    report->estimates_audited += a->estimate != ESTIMATE_NOT_AUDITED;
    report->estimates_beaten += a->estimate == ESTIMATE_BEATEN;
    report->estimates_missed += a->estimate == ESTIMATE_MISSED;
}

static void note_verdict(course *c, const search_verdict *v) {
    tune_report *report = c->run->report;
    tune_progress *p = &c->progress;
    p->evaluations++;
    report->evaluations++;
    if (v->outcome.origin == SEARCH_DUPLICATE) {
        p->duplicates++;
        report->duplicates++;
        report->duplicates_by[v->by]++;
        p->rejected[GATE_SEEN]++;
        report->rejected[GATE_SEEN]++;
    } else if (v->outcome.stopped != GATE_NONE) {
        p->rejected[v->outcome.stopped]++;
        report->rejected[v->outcome.stopped]++;
    }
    if (v->outcome.origin == SEARCH_MEMOISED)
        report->memoised_by[v->by]++;
    report->estimated += v->outcome.origin == SEARCH_ESTIMATED;
    report->filtered += v->outcome.origin == SEARCH_FILTERED;
    report->screened += v->outcome.origin == SEARCH_SCREENED;
    note_audits(report, &v->audits);
    if (v->is_best) {
        p->best_ns = v->outcome.ns;
        p->best_error = v->outcome.error;
    }
}

/* Corrects the record of a child that proves known at its commitment. The worker may not have
 * known: the child that it equals may have been committed after the worker asked. */
static ev_status mark_known(course *c, uint64_t child, const search_verdict *v, ev_error *err) {
    char words[80];
    bool is_duplicate = v->outcome.origin == SEARCH_DUPLICATE;
    known_words(v->by, v->same_as, words, sizeof words);
    records_evaluation known = {.task = c->index,
                                .number = child,
                                .gate = gate_name(is_duplicate ? GATE_SEEN : v->outcome.stopped),
                                .reason = words,
                                .ns = is_duplicate ? 0 : v->outcome.ns,
                                .error = is_duplicate ? 0 : v->outcome.error};
    return records_mark_known(c->run->records, &known, err);
}

ev_status course_note_wrong(course *c, const wrong_setting *s, ev_error *err) {
    ev_str note = EV_STR_EMPTY;
    EV_TRY(wrong_append(c->run->report, c->t->name, s, err));
    ev_str_printf(&note, "start %s is wrong at %s (gate %s: %s); this setting is left out",
                  s->start, s->macros, gate_name(s->at), s->reason);
    course_display(c, ev_str_text(&note));
    ev_str_free(&note);
    return EV_OK;
}

static ev_status tell_wrong(course *c, size_t before, ev_error *err) {
    const wrong_setting *list = NULL;
    size_t count = search_wrong(c->search, &list);
    for (size_t i = before; i < count; i++)
        EV_TRY(course_note_wrong(c, &list[i], err));
    return EV_OK;
}

/* Tells of a genome of the earlier run that a gate stopped. */
static void tell_earlier(course *c, uint64_t child, const child_result *r,
                         const search_verdict *v) {
    ev_str note = EV_STR_EMPTY;
    if (!search_is_earlier(c->search, child) || v->outcome.stopped == GATE_NONE)
        return;
    ev_str_printf(&note, "%s: a genome is stopped here (gate %s: %s)", c->run->options->from,
                  gate_name(v->outcome.stopped), r->reason);
    course_display(c, ev_str_text(&note));
    ev_str_free(&note);
}

static ev_status commit_one(course *c, ev_error *err) {
    uint64_t child = search_committed(c->search);
    on_way *w = &c->on_way[child % SEARCH_LAG];
    search_origin was = w->result.outcome.origin;
    search_verdict verdict;
    const wrong_setting *ignored = NULL;
    size_t wrong = search_wrong(c->search, &ignored);
    EV_TRY(search_commit(c->search, &w->result, &verdict, err));
    EV_TRY(tell_wrong(c, wrong, err));
    if (search_is_known(verdict.outcome.origin) && verdict.outcome.origin != was)
        EV_TRY(mark_known(c, child, &verdict, err));
    EV_TRY(course_note_floor(c, child, w, &verdict, err));
    tell_earlier(c, child, &w->result, &verdict);
    child_result_free(&w->result);
    w->here = false;
    note_verdict(c, &verdict);
    course_display(c, NULL);
    return EV_OK;
}

static bool wants_more(course *c) {
    uint64_t budget = c->run->options->evaluations;
    if (c->at_floor || (budget > 0 && search_drawn(c->search) >= budget))
        return false;
    /* The results of earlier runs are replayed completely before the clock counts. */
    bool takes_up = c->replays && !c->has_gap;
    return search_may_draw(c->search) && (takes_up || !must_stop(c));
}

static bool is_next_here(const course *c) {
    uint64_t child = search_committed(c->search);
    return child < search_drawn(c->search) && c->on_way[child % SEARCH_LAG].here;
}

static ev_status search_all(course *c, ev_error *err) {
    for (;;) {
        while (wants_more(c))
            EV_TRY(draw_one(c, err));
        if (is_next_here(c)) {
            EV_TRY(commit_one(c, err));
            continue;
        }
        if (search_committed(c->search) == search_drawn(c->search))
            return EV_OK;
        pool_job *job = NULL;
        EV_TRY(pool_wait(c->run->pool, WAIT_SECONDS, &job, err));
        ev_status status = job ? arrive_new(c, job, err) : EV_OK;
        pool_job_free(job);
        EV_TRY(status);
        course_display(c, NULL);
    }
}

ev_status course_search(course *c, ev_error *err) {
    tune_report *report = c->run->report;
    double began = ev_clock_now(), busy = pool_timer_seconds(c->run->pool);
    ev_status status = search_all(c, err);
    report->search_seconds += ev_clock_now() - began;
    report->timer_seconds += pool_timer_seconds(c->run->pool) - busy;
    return status;
}
