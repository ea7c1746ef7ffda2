/* Worker jobs: draw, build, score, promote, replay and check one genome. */
#include "base/proc.h"
#include "tuner/search/draw.h"
#include "tuner/worker/gate_builds.h"
#include "tuner/worker/guard.h"
#include "tuner/worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Jobs that are no single evaluation may use more CPU time than one. */
#define LONG_JOB_FACTOR 20.0
/* A child that takes so many times the baseline's time at a timed case of the task is given up; a
 * start is not, whatever its macros are. */
#define HOPELESS 4

/* Whether a candidate failed before it could be scored, and the gate that counts it. */
typedef struct candidate_failure {
    bool failed;
    gate at;
    ev_error why;
} candidate_failure;

/* EV_BAD is a failure of the candidate; any other failure is one of the job. */
static ev_status judge(candidate_failure *f, gate at, ev_status status, const ev_error *why,
                       ev_error *err) {
    if (status == EV_BAD) {
        f->failed = true;
        f->at = at;
        f->why = *why;
        return EV_OK;
    }
    if (status != EV_OK)
        *err = *why;
    return status;
}

/* ---- questions: is this known? ---- */

/* Sends `question` and waits. *known: the coordinator ends the child here. */
static ev_status ask(worker *w, const message *question, bool *known, ev_error *err) {
    message answer = {0};
    EV_TRY(worker_ask(w, question, MESSAGE_SEEN, &answer, err));
    *known = answer.kind == MESSAGE_SEEN;
    message_free(&answer);
    return EV_OK;
}

static ev_status ask_drawn(worker *w, const ir_genome *genome, const char *operators, bool *known,
                           ev_error *err) {
    message m = {.kind = MESSAGE_DRAWN, .drawn = {.genome = genome, .operators = operators}};
    ev_sha256 sha = ir_genome_sha256(genome);
    memcpy(m.drawn.sha256, sha.hex, sizeof m.drawn.sha256);
    return ask(w, &m, known, err);
}

static ev_status ask_hash(worker *w, message_kind kind, const char *hex, bool *known,
                          ev_error *err) {
    message m = {.kind = kind};
    memcpy(m.hash.sha256, hex, sizeof m.hash.sha256);
    return ask(w, &m, known, err);
}

/* ---- answers ---- */

/* The end of a job: seconds so far, which are reset, and whether the worker leaves. After a fault
 * of a candidate the device may be spent; the answer is sent first, and says so. */
static job_end end_job(worker *w) {
    job_end end = {.leaves = device_is_spent(w->device), .bold = w->bold};
    w->bold = 0;
    memcpy(end.seconds, w->seconds, sizeof end.seconds);
    memset(w->seconds, 0, sizeof w->seconds);
    w->leaves = end.leaves;
    return end;
}

static ev_status send_failed(worker *w, const candidate_failure *f, ev_error *err) {
    message m = {.kind = MESSAGE_FAILED,
                 .failed = {.gate = f->at, .reason = f->why.text, .end = end_job(w)}};
    return message_send(&w->line, &m, err);
}

static ev_status send_done(worker *w, message *m, ev_error *err) {
    m->kind = MESSAGE_DONE;
    m->done.end = end_job(w);
    return message_send(&w->line, m, err);
}

/* Ends a known child, whose result the coordinator has. */
static ev_status send_dropped(worker *w, ev_error *err) {
    message m = {0};
    return send_done(w, &m, err);
}

/* ---- scoring ---- */

/* Adds the seconds that fitness spent on one evaluation, by part. */
static void note_cost(worker *w, const fitness_cost *before) {
    fitness_cost now = fitness_cost_of(w->fitness);
    w->seconds[PART_LOAD] += now.load - before->load;
    w->seconds[PART_SAFE] += now.safe - before->safe;
    w->seconds[PART_ACCURATE] += now.accurate - before->accurate;
    w->seconds[PART_TIMED] += now.timed - before->timed;
}

static ev_status run_score(worker *w, const candidate *c, score *out, ev_error *err) {
    fitness_cost before = fitness_cost_of(w->fitness);
    ev_status status = fitness_score(w->fitness, c, out, err);
    note_cost(w, &before);
    return status;
}

/* Scores a whole variant, and compares its written elements with its start's. */
static ev_status run_whole(worker *w, const worker_build *b, score *out, ev_error *err) {
    EV_TRY(run_score(w, &b->candidate, out, err));
    if (out->recalled)
        return EV_OK;
    fitness_cost before = fitness_cost_of(w->fitness);
    ev_status status = worker_hold_writes(w, b, out, err);
    note_cost(w, &before);
    return status;
}

static ev_status run_promote(worker *w, const worker_build *b, score *out, ev_error *err) {
    double before = ev_clock_threads();
    ev_status status = fitness_promote(w->fitness, &b->candidate, out, err);
    w->seconds[PART_PROMOTE] += ev_clock_threads() - before;
    return status;
}

static ev_status send_score(worker *w, const score *s, ev_error *err) {
    message m = {.done = {.has_score = true, .score = *s}};
    return send_done(w, &m, err);
}

/* Passes a screened variant on to a timer. */
static ev_status send_screened(worker *w, const worker_build *b, const score *s, ev_error *err) {
    message m = {.kind = MESSAGE_SCREENED,
                 .passed = {.ptx = b->candidate.ptx, .score = *s, .end = end_job(w)}};
    return message_send(&w->line, &m, err);
}

/* ---- building with questions ---- */

static ev_status build_stage(worker *w, worker_build *b, ir_stage at, candidate_failure *f,
                             ev_error *err) {
    static const stage stages[IR_STAGE_COUNT] = {STAGE_EDIT, STAGE_VERIFY, STAGE_OPTIMISE,
                                                 STAGE_EMIT};
    EV_TRY(worker_enter(w, stages[at], err));
    ev_error why = {0};
    ev_status status = worker_build_stage(w, b, at, &why);
    return judge(f, at <= IR_STAGE_VERIFY ? GATE_VERIFY : GATE_EMIT, status, &why, err);
}

/* One evaluation under way. */
typedef struct evaluation {
    worker *w;
    const recipe *recipe; /* limits of the child */
    /* The consequence of wrong fast code on the small cases. SKETCH_STOPPED: the child ends.
     * SKETCH_IGNORED: an audit, the child is built all the same. */
    score_sketch sketch;
    worker_build build;
    candidate_failure failure;
    bool known;     /* the child is a duplicate */
    bool ended;     /* the fast code ended the child, as `score` says */
    bool passed_on; /* the screening was sent, and a timer goes on */
    score score;
} evaluation;

/* candidate.is_known for fast code, and below for LLVM's PTX. */
static ev_status ask_sketch_ran(void *context, const char *likeness, bool *known, ev_error *err) {
    const evaluation *e = context;
    ev_sha256 sha;
    memcpy(sha.hex, likeness, sizeof sha.hex);
    sha = ir_build_salt(e->build.build, sha);
    return ask_hash(e->w, MESSAGE_SKETCH_RAN, sha.hex, known, err);
}

static ev_status ask_ran(void *context, const char *likeness, bool *known, ev_error *err) {
    const evaluation *e = context;
    return ask_hash(e->w, MESSAGE_RAN, likeness, known, err);
}

/* Whether fast code that passed is too slow for a build: at full shape or, if not timed there, on
 * the small cases. */
static bool gained_nothing(const score *s, double due) {
    bool passed = s->stopped == GATE_NONE && !s->recalled;
    return passed && due > 0 && (s->whole_ns >= due || s->whole_ns == 0);
}

/* Runs the fast code. A fault of the fast code counts as a fault of the variant, except that its
 * launch does not fit the device. Fast code with a known fingerprint is memoised. */
static ev_status run_sketch(evaluation *e, candidate *sketch, ev_error *err) {
    score s = {0};
    const recipe *r = e->recipe;
    sketch->context = e;
    sketch->is_known = ask_sketch_ran;
    sketch->reach_ns = r->reach.sketch;
    sketch->first_reach_ns = r->reach.first;
    sketch->reach_error = r->reach.error;
    sketch->times_sketch = r->estimate.times;
    sketch->near_ns = r->estimate.near;
    sketch->hopeless = sketch->is_unmodified ? 0 : HOPELESS;
    EV_TRY(worker_enter(e->w, STAGE_SCORE, err));
    EV_TRY(run_score(e->w, sketch, &s, err));
    bool wrong = s.stopped != GATE_NONE && s.stopped != GATE_EMIT && !s.filtered;
    if (wrong)
        s.sketch = e->sketch;
    score_take_sketch(&s);
    s.estimated = gained_nothing(&s, r->estimate.due);
    e->ended = s.recalled || s.filtered || s.estimated || s.sketch == SKETCH_STOPPED;
    e->score = s;
    e->build.candidate.was_sketched = s.stopped == GATE_NONE;
    return EV_OK;
}

static ev_status ask_ir(evaluation *e, ev_error *err) {
    return ask_hash(e->w, MESSAGE_IR, ir_build_ir_sha256(e->build.build).hex, &e->known, err);
}

/* Asks about the fast code or, if there is none, about the IR. Equal IR has equal fast code, so one
 * question is enough. */
static ev_status try_sketch(evaluation *e, ev_error *err) {
    worker *w = e->w;
    EV_TRY(worker_enter(w, STAGE_EMIT, err));
    candidate sketch;
    ev_sha256 sha;
    bool covered = false;
    EV_TRY(worker_build_sketch(w, &e->build, &sketch, &sha, &covered, err));
    if (!covered)
        return ask_ir(e, err);
    EV_TRY(ask_hash(w, MESSAGE_SKETCH, sha.hex, &e->known, err));
    return e->known ? EV_OK : run_sketch(e, &sketch, err);
}

/* Builds one stage, and asks the questions after it. */
static ev_status build_asking(evaluation *e, ir_stage at, ev_error *err) {
    worker *w = e->w;
    const ir_build *build = e->build.build;
    EV_TRY(build_stage(w, &e->build, at, &e->failure, err));
    if (e->failure.failed || at < IR_STAGE_OPTIMISE)
        return EV_OK;
    if (at == IR_STAGE_EMIT)
        return ask_hash(w, MESSAGE_PTX, ir_build_ptx_sha256(build).hex, &e->known, err);
    return e->sketch == SKETCH_NOTHING ? ask_ir(e, err) : try_sketch(e, err);
}

static ev_status climb(evaluation *e, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT; s++) {
        EV_TRY(build_asking(e, (ir_stage)s, err));
        if (e->failure.failed || e->known || e->ended)
            return EV_OK;
    }
    score sketch = e->score;
    e->build.candidate.reach_ns = e->recipe->reach.built;
    e->build.candidate.reach_error = e->recipe->reach.error;
    e->build.candidate.hopeless = e->build.candidate.is_unmodified ? 0 : HOPELESS;
    e->build.candidate.context = e;
    e->build.candidate.is_known = ask_ran;
    e->build.candidate.screens = e->w->role == ROLE_SCREENER;
    EV_TRY(worker_enter(e->w, STAGE_SCORE, err));
    EV_TRY(run_whole(e->w, &e->build, &e->score, err));
    e->score.sketch = sketch.sketch;
    e->score.sketch_ns = sketch.sketch_ns;
    e->score.first_ns = sketch.first_ns;
    e->score.whole_ns = sketch.whole_ns;
    e->passed_on =
        e->build.candidate.screens && e->score.stopped == GATE_NONE && !e->score.recalled;
    return e->passed_on ? send_screened(e->w, &e->build, &e->score, err) : EV_OK;
}

/* Evaluates a genome. Takes over the reference and `edited` (NULL: the edits are still to be
 * applied). */
static ev_status evaluate(worker *w, const ir_genome *genome, ir_edited *edited, const recipe *r,
                          ev_error *err) {
    bool models = device_properties_of(w->device)->modelled;
    evaluation e = {.w = w,
                    .recipe = r,
                    .sketch = models ? r->sketch : SKETCH_NOTHING,
                    .score = {.stopped = GATE_NONE}};
    ev_error why = {0};
    ev_status status = worker_build_begin(w, genome, &e.build, &why);
    if (status == EV_OK)
        ir_build_take_edited(e.build.build, edited);
    else
        ir_edited_free(edited);
    EV_TRY(judge(&e.failure, GATE_VERIFY, status, &why, err));
    status = e.failure.failed ? EV_OK : climb(&e, err);
    worker_build_end(&e.build);
    EV_TRY(status);
    guard_watch(0);
    if (e.passed_on)
        return EV_OK;
    if (e.failure.failed)
        return send_failed(w, &e.failure, err);
    if (e.known)
        return send_dropped(w, err);
    return send_score(w, &e.score, err);
}

/* ---- jobs ---- */

static ev_status get_base(void *context, const ir_genome *genome, const ir_base **out,
                          ev_error *err) {
    worker *w = context;
    return bases_get(w->bases, genome, out, err);
}

static ev_status draw_structure(void *context, const ir_genome *parent, ir_edit_kind kind,
                                const ir_hints *hints, ev_pcg *rng, ir_genome **out,
                                ev_error *err) {
    worker *w = context;
    return bases_draw_structure(w->bases, parent, kind, hints, rng, out, err);
}

static ev_status mend_structure(void *context, const ir_genome *child,
                                const ir_genome *const *parents, size_t count, ir_genome **out,
                                ev_error *err) {
    worker *w = context;
    return bases_mend_structure(w->bases, child, parents, count, out, err);
}

static ev_status draw(worker *w, const recipe *r, drawn_child *child, ev_str *operators,
                      candidate_failure *f, ev_error *err) {
    EV_TRY(worker_enter(w, STAGE_DRAW, err));
    double before = ev_clock_cpu();
    draw_bases from = {.context = w,
                       .get = get_base,
                       .heat = worker_heat,
                       .structure = draw_structure,
                       .mend = mend_structure};
    ev_error why = {0};
    ev_status status = draw_child(w->t, &from, r, child, operators, &why);
    w->seconds[PART_MUTATE] += ev_clock_cpu() - before;
    return judge(f, GATE_VERIFY, status, &why, err);
}

static ev_status job_child(worker *w, const recipe *r, ev_error *err) {
    drawn_child child = {0};
    ev_str operators = EV_STR_EMPTY;
    candidate_failure f = {0};
    bool known = false;
    ev_status status = draw(w, r, &child, &operators, &f, err);
    if (status == EV_OK && child.genome)
        status = ask_drawn(w, child.genome, ev_str_text(&operators), &known, err);
    ev_str_free(&operators);
    if (status == EV_OK && child.genome && !known)
        return evaluate(w, child.genome, child.edited, r, err);
    drawn_child_free(&child);
    EV_TRY(status);
    guard_watch(0);
    return f.failed ? send_failed(w, &f, err) : send_dropped(w, err);
}

static ev_status job_score(worker *w, const ir_genome *genome, ev_error *err) {
    static const recipe without_limits;
    return evaluate(w, ir_genome_ref(genome), NULL, &without_limits, err);
}

/* Runs and times a variant that a screener built and passed. */
static ev_status job_time(worker *w, const screened_message *m, ev_error *err) {
    worker_build b = {0};
    score s = {0};
    EV_TRY(worker_build_screened(w, ir_genome_ref(m->genome), m->ptx, &b, err));
    ev_status status = worker_enter(w, STAGE_SCORE, err);
    if (status == EV_OK)
        status = run_whole(w, &b, &s, err);
    worker_build_end(&b);
    EV_TRY(status);
    score_add_screening(&s, &m->score);
    return send_score(w, &s, err);
}

/* ---- jobs after the search: promote, replay and check ---- */

/* Adds the description of each edit, a line each. */
static ev_status add_words(const worker_build *b, message *m, ev_error *err) {
    ev_str words = EV_STR_EMPTY;
    for (size_t i = 0; i < ir_genome_edit_count(b->genome); i++) {
        ev_error why = {0};
        if (ir_describe_edit(b->base, b->genome, i, &words, &why) != EV_OK)
            ev_str_append(&words, why.text);
        if (words.length > 0 && words.data[words.length - 1] != '\n')
            ev_str_char(&words, '\n');
    }
    m->done.words = ev_arena_strdup(m->arena, ev_str_text(&words));
    ev_str_free(&words);
    return m->done.words ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status add_code(const worker_build *b, message *m, ev_error *err) {
    ev_sha256 genome = ir_genome_sha256(b->genome), ptx = ir_build_ptx_sha256(b->build);
    ev_sha256 ir = ir_build_ir_sha256(b->build);
    code_reply *code = &m->done.code;
    memcpy(code->genome_sha256, genome.hex, sizeof code->genome_sha256);
    memcpy(code->ir_sha256, ir.hex, sizeof code->ir_sha256);
    memcpy(code->ptx_sha256, ptx.hex, sizeof code->ptx_sha256);
    code->entry = launch_plan_entry(b->candidate.plan);
    code->may_alias = b->candidate.may_alias;
    code->ptx = ev_arena_strndup(m->arena, b->candidate.ptx, b->candidate.ptx_bytes);
    m->done.has_code = true;
    return code->ptx ? EV_OK : ev_fail_memory(err, b->candidate.ptx_bytes);
}

/* What the judge of arms needs (candidate.missed). */
static ev_status arms_missed(void *context, const uint8_t *taken, ev_str *why, ev_error *err) {
    const worker_build *b = context;
    return gate_builds_missed(b->base, b->genome, b->candidate.start, taken, why, err);
}

static score refused_at(gate at, const char *what, const char *why) {
    score s;
    memset(&s, 0, sizeof s);
    s.stopped = at;
    (void)snprintf(s.reason, sizeof s.reason, "%s: %s", what, why);
    return s;
}

static ev_status promote_built(worker *w, const worker_build *b, message *m, ev_error *err) {
    EV_TRY(worker_enter(w, STAGE_PROMOTE, err));
    EV_TRY(run_promote(w, b, &m->done.score, err));
    const score *s = &m->done.score;
    bool is_right = s->stopped == GATE_NONE || (b->candidate.bar.is_last && s->ns > 0);
    return is_right ? add_words(b, m, err) : EV_OK;
}

static ev_status promote(worker *w, worker_build *b, message *m, ev_error *err) {
    gate_builds beside = {.arms = EV_STR_EMPTY, .checked = EV_STR_EMPTY};
    candidate plain = b->candidate;
    ev_error why = {0};
    ev_status status =
        gate_builds_make(b->base, b->genome, b->build, b->candidate.start, &beside, &why);
    gate_builds_give(&beside, &b->candidate);
    b->candidate.missed = arms_missed;
    b->candidate.missed_context = b;
    m->done.has_score = true;
    const char *what = "a build that checks its edits fails";
    if (status == EV_OK) {
        what = "gate 6 cannot run the variant";
        status = promote_built(w, b, m, &why);
    }
    if (status == EV_BAD)
        m->done.score = refused_at(GATE_PROMOTED, what, why.text);
    else if (status != EV_OK)
        (void)ev_fail(err, status, "%s", why.text);
    b->candidate = plain;
    gate_builds_free(&beside);
    return status == EV_BAD ? EV_OK : status;
}

/* Checks one held-out case. */
static ev_status check_case(worker *w, const worker_build *b, const task_case *at, message *m,
                            ev_error *err) {
    fitness_verdict v = {0};
    EV_TRY(fitness_check(w->fitness, &b->candidate, at, &v, err));
    char *reason = ev_arena_strdup(m->arena, v.reason);
    if (!reason)
        return ev_fail_memory(err, 0);
    m->done.cases[m->done.case_count++] =
        (case_check){.name = at->name,
                     .ok = v.ok,
                     .ns = v.ns,
                     .low_ns = v.low_ns,
                     .high_ns = v.high_ns,
                     .error = v.error < 1e300 ? v.error : 1e300, /* JSON has no infinity */
                     .reason = reason};
    return EV_OK;
}

/* Checks the timed held-out cases. */
static ev_status check(worker *w, const worker_build *b, message *m, ev_error *err) {
    EV_TRY(worker_enter(w, STAGE_PROMOTE, err));
    m->done.has_cases = true;
    m->done.cases = EV_NEW_ARRAY(m->arena, case_check, w->t->case_count);
    if (!m->done.cases)
        return ev_fail_memory(err, w->t->case_count * sizeof *m->done.cases);
    for (size_t i = 0; i < w->t->case_count; i++) {
        const task_case *at = &w->t->cases[i];
        if (at->split == CORPUS_HELD_OUT && at->use == TASK_TIME)
            EV_TRY(check_case(w, b, at, m, err));
    }
    return EV_OK;
}

static ev_status build_for_job(worker *w, worker_build *b, candidate_failure *f, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT && !f->failed; s++)
        EV_TRY(build_stage(w, b, (ir_stage)s, f, err));
    return EV_OK;
}

static ev_status look_at_build(worker *w, message_kind kind, worker_build *b, candidate_failure *f,
                               message *m, ev_error *err) {
    EV_TRY(build_for_job(w, b, f, err));
    if (f->failed)
        return EV_OK;
    EV_TRY(add_code(b, m, err));
    if (kind == MESSAGE_PROMOTE)
        return promote(w, b, m, err);
    if (kind == MESSAGE_CHECK)
        return check(w, b, m, err);
    return add_words(b, m, err);
}

/* Builds the whole variant, then does the job. `bar` NULL: no promotion. */
static ev_status job_after_search(worker *w, message_kind kind, const ir_genome *genome,
                                  const fitness_bar *bar, ev_error *err) {
    worker_build b = {0};
    candidate_failure f = {0};
    ev_error why = {0};
    ev_status status = worker_build_begin(w, ir_genome_ref(genome), &b, &why);
    EV_TRY(judge(&f, GATE_VERIFY, status, &why, err));
    if (bar)
        b.candidate.bar = *bar;
    message m = {.kind = MESSAGE_DONE, .arena = ev_arena_new()};
    status = m.arena ? EV_OK : ev_fail_memory(err, 0);
    if (status == EV_OK && !f.failed)
        status = look_at_build(w, kind, &b, &f, &m, err);
    guard_watch(0);
    if (status == EV_OK)
        status = f.failed ? send_failed(w, &f, err) : send_done(w, &m, err);
    worker_build_end(&b);
    message_free(&m);
    return status;
}

static ev_status do_job(worker *w, const message *m, ev_error *err) {
    bool long_job = m->kind == MESSAGE_PROMOTE || m->kind == MESSAGE_CHECK;
    guard_watch(w->watchdog * (long_job ? LONG_JOB_FACTOR : 1));
    switch (m->kind) {
    case MESSAGE_CHILD:
        return job_child(w, &m->child.recipe, err);
    case MESSAGE_SCORE:
        return job_score(w, m->variant.genome, err);
    case MESSAGE_TIME:
        return job_time(w, &m->screened, err);
    case MESSAGE_PROMOTE:
        return job_after_search(w, m->kind, m->promote.genome, &m->promote.bar, err);
    default:
        return job_after_search(w, m->kind, m->variant.genome, NULL, err);
    }
}

ev_status worker_job(worker *w, const message *m, ev_error *err) {
    ev_status status = do_job(w, m, err);
    guard_watch(0);
    guard_set_stage(STAGE_IDLE);
    if (status != EV_OK)
        worker_send_error(w, err); /* the worker ends after this message */
    return status;
}
