/* Worker jobs: draw, build, score, promote, replay and check one genome. */
#include "base/json.h"
#include "base/proc.h"
#include "tuner/search/draw.h"
#include "tuner/worker/guard.h"
#include "tuner/worker/worker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Jobs that are no single evaluation may use more CPU time than one. */
#define LONG_JOB_FACTOR 20.0

/* A candidate that fails before it can be scored; the gate that counts it. */
typedef struct outcome {
    bool failed;
    gate at;
    ev_error why;
} outcome;

/* EV_BAD of a candidate becomes an outcome; what is left is a failure of the job. */
static ev_status judge(outcome *o, gate at, ev_status status, const ev_error *why, ev_error *err) {
    if (status == EV_BAD) {
        o->failed = true;
        o->at = at;
        o->why = *why;
        return EV_OK;
    }
    if (status != EV_OK)
        *err = *why;
    return status;
}

/* ---- questions: is this known? ---- */

/* Sends `question` and waits; *known: the coordinator wants no more of it. */
static ev_status ask(worker *w, json_t *question, bool *known, ev_error *err) {
    json_t *answer = NULL;
    EV_TRY(worker_ask(w, question, MESSAGE_SEEN, &answer, err));
    *known = message_kind_of(answer) == MESSAGE_SEEN;
    json_decref(answer);
    return EV_OK;
}

static ev_status ask_drawn(worker *w, const ir_genome *genome, const char *operators, bool *known,
                           ev_error *err) {
    json_t *m = message_new(MESSAGE_DRAWN);
    ev_sha256 sha = ir_genome_sha256(genome);
    if (m) {
        (void)json_object_set_new(m, "genome", ir_genome_to_json(genome));
        (void)json_object_set_new(m, "sha256", json_string(sha.hex));
        (void)json_object_set_new(m, "operators", json_string(operators));
    }
    return ask(w, m, known, err);
}

static ev_status ask_hash(worker *w, message_kind kind, const char *hex, bool *known,
                          ev_error *err) {
    json_t *m = message_new(kind);
    if (m)
        (void)json_object_set_new(m, "sha256", json_string(hex));
    return ask(w, m, known, err);
}

/* ---- answers ---- */

static void add_seconds(worker *w, json_t *message) {
    json_t *seconds = json_array();
    for (size_t i = 0; i < PART_COUNT; i++) {
        (void)json_array_append_new(seconds, json_real(w->seconds[i]));
        w->seconds[i] = 0;
    }
    (void)json_object_set_new(message, "seconds", seconds);
}

/* After a fault of the candidate this process may be of no use any more: the answer comes first,
 * and says so. */
static void add_leaving(worker *w, json_t *message) {
    w->leaves = device_is_spent(w->device);
    if (w->leaves)
        (void)json_object_set_new(message, "leaves", json_true());
}

static ev_status send_failed(worker *w, const outcome *o, ev_error *err) {
    json_t *m = message_new(MESSAGE_FAILED);
    if (m) {
        (void)json_object_set_new(m, "gate", json_string(gate_name(o->at)));
        (void)json_object_set_new(m, "reason", json_string(o->why.text));
        add_seconds(w, m);
        add_leaving(w, m);
    }
    return channel_send(&w->line, m, err);
}

static ev_status send_done(worker *w, json_t *m, ev_error *err) {
    if (m) {
        add_seconds(w, m);
        add_leaving(w, m);
    }
    return channel_send(&w->line, m, err);
}

/* ---- scoring ---- */

/* What fitness spent on one evaluation, by part. */
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

/* A whole variant, held against its start as well. */
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
    json_t *m = message_new(MESSAGE_DONE);
    if (m)
        (void)json_object_set_new(m, "score", score_to_json(s));
    return send_done(w, m, err);
}

/* A timer goes on with it. */
static ev_status send_screened(worker *w, const worker_build *b, const score *s, ev_error *err) {
    json_t *m = message_new(MESSAGE_SCREENED);
    if (m) {
        (void)json_object_set_new(m, "ptx", json_stringn(b->candidate.ptx, b->candidate.ptx_bytes));
        (void)json_object_set_new(m, "score", score_to_json(s));
    }
    return send_done(w, m, err);
}

/* ---- building with questions ---- */

static ev_status build_stage(worker *w, worker_build *b, ir_stage at, outcome *o, ev_error *err) {
    static const stage stages[IR_STAGE_COUNT] = {STAGE_EDIT, STAGE_VERIFY, STAGE_OPTIMISE,
                                                 STAGE_EMIT};
    EV_TRY(worker_enter(w, stages[at], err));
    ev_error why = {0};
    ev_status status = worker_build_stage(w, b, at, &why);
    return judge(o, at <= IR_STAGE_VERIFY ? GATE_VERIFY : GATE_EMIT, status, &why, err);
}

/* What the coordinator wants of an evaluation. */
typedef struct wish {
    small_run reach; /* the filter's limits; 0: none */
    /* A sketch is held against the small cases first. SKETCH_STOPPED: if that is wrong, this is its
     * end; SKETCH_IGNORED: it is built all the same, to see whether it was. */
    score_sketch sketch;
    bool times_sketch; /* at full shape as well; reach.whole: so slow there, it is not built */
    double near_ns;    /* if it is near to that on the small cases, neither */
} wish;

/* One evaluation on its way. */
typedef struct evaluation {
    worker *w;
    const wish *wanted;
    worker_build build;
    outcome outcome;
    bool known;     /* as a duplicate */
    bool ended;     /* by its sketch: `score` says how */
    bool passed_on; /* to a timer: its screening is sent */
    score score;
} evaluation;

/* candidate.is_known, of a sketch and of what LLVM built. */
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

/* Whether a sketch that passed is too slow to be built: at full shape, or, not timed there, on the
 * small cases. */
static bool gained_nothing(const score *s, const wish *wanted) {
    double reach = wanted->reach.whole;
    bool passed = s->stopped == GATE_NONE && !s->recalled;
    return passed && reach > 0 && (s->whole_ns >= reach || s->whole_ns == 0);
}

/* Runs the sketch. What it does wrong, the variant does too; whether it fits on the device says
 * nothing. One that ran the small cases as a known one did is recalled. */
static ev_status run_sketch(evaluation *e, candidate *sketch, ev_error *err) {
    score s = {0};
    sketch->context = e;
    sketch->is_known = ask_sketch_ran;
    sketch->reach_ns = e->wanted->reach.sketch;
    sketch->first_reach_ns = e->wanted->reach.first;
    sketch->reach_error = e->wanted->reach.error;
    sketch->times_sketch = e->wanted->times_sketch;
    sketch->near_ns = e->wanted->near_ns;
    EV_TRY(worker_enter(e->w, STAGE_SCORE, err));
    EV_TRY(run_score(e->w, sketch, &s, err));
    bool wrong = s.stopped != GATE_NONE && s.stopped != GATE_EMIT && !s.filtered;
    if (wrong)
        s.sketch = e->wanted->sketch;
    score_take_sketch(&s);
    s.estimated = gained_nothing(&s, e->wanted);
    e->ended = s.recalled || s.filtered || s.estimated || s.sketch == SKETCH_STOPPED;
    e->score = s;
    e->build.candidate.was_sketched = s.stopped == GATE_NONE;
    return EV_OK;
}

static ev_status ask_ir(evaluation *e, ev_error *err) {
    return ask_hash(e->w, MESSAGE_IR, ir_build_ir_sha256(e->build.build).hex, &e->known, err);
}

/* Equal IR has equal sketches, which are hashed in a fraction of the time: where there is one, the
 * IR's hash would tell nothing more. */
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

/* One stage with the questions after it. */
static ev_status build_asking(evaluation *e, ir_stage at, ev_error *err) {
    worker *w = e->w;
    const ir_build *build = e->build.build;
    EV_TRY(build_stage(w, &e->build, at, &e->outcome, err));
    if (e->outcome.failed || at < IR_STAGE_OPTIMISE)
        return EV_OK;
    if (at == IR_STAGE_EMIT)
        return ask_hash(w, MESSAGE_PTX, ir_build_ptx_sha256(build).hex, &e->known, err);
    return e->wanted->sketch == SKETCH_NOTHING ? ask_ir(e, err) : try_sketch(e, err);
}

static ev_status climb(evaluation *e, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT; s++) {
        EV_TRY(build_asking(e, (ir_stage)s, err));
        if (e->outcome.failed || e->known || e->ended)
            return EV_OK;
    }
    score sketch = e->score;
    e->build.candidate.reach_ns = e->wanted->reach.built;
    e->build.candidate.reach_error = e->wanted->reach.error;
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

/* Takes the child over. */
static ev_status evaluate(worker *w, drawn_child child, const wish *wanted, ev_error *err) {
    evaluation e = {.w = w, .wanted = wanted, .score = {.stopped = GATE_NONE}};
    ev_error why = {0};
    ev_status status = worker_build_begin(w, child.genome, &e.build, &why);
    if (status == EV_OK)
        ir_build_take_edited(e.build.build, child.edited);
    else
        ir_edited_free(child.edited);
    EV_TRY(judge(&e.outcome, GATE_VERIFY, status, &why, err));
    status = e.outcome.failed ? EV_OK : climb(&e, err);
    worker_build_end(&e.build);
    EV_TRY(status);
    guard_watch(0);
    if (e.passed_on)
        return EV_OK;
    if (e.outcome.failed)
        return send_failed(w, &e.outcome, err);
    if (e.known)
        return send_done(w, message_new(MESSAGE_DONE), err);
    return send_score(w, &e.score, err);
}

/* ---- jobs ---- */

static ev_status get_base(void *context, const ir_genome *genome, const ir_base **out,
                          ev_error *err) {
    worker *w = context;
    return bases_get(w->bases, genome, out, err);
}

static ev_status draw(worker *w, const json_t *message, drawn_child *child, ev_str *operators,
                      outcome *o, ev_error *err) {
    EV_TRY(worker_enter(w, STAGE_DRAW, err));
    double before = ev_clock_cpu();
    draw_bases from = {.context = w, .get = get_base, .heat = worker_heat};
    ev_error why = {0};
    ev_status status = draw_child(w->t, &from, message, child, operators, &why);
    w->seconds[PART_MUTATE] += ev_clock_cpu() - before;
    return judge(o, GATE_VERIFY, status, &why, err);
}

static ev_status job_child(worker *w, const json_t *message, ev_error *err) {
    const json_t *reach = json_object_get(message, "reach");
    const json_t *sketched = json_object_get(message, "sketched");
    wish wanted = {.reach = {.sketch = json_number_value(json_array_get(reach, 0)),
                             .built = json_number_value(json_array_get(reach, 1)),
                             .error = json_number_value(json_array_get(reach, 2)),
                             .first = json_number_value(json_array_get(reach, 3)),
                             .whole = json_number_value(json_array_get(sketched, 1))},
                   .times_sketch = sketched != NULL,
                   .near_ns = json_number_value(json_array_get(sketched, 0)),
                   .sketch = device_properties_of(w->device)->modelled
                                 ? (score_sketch)ev_json_integer(message, "sketch", 0)
                                 : SKETCH_NOTHING};
    drawn_child child = {0};
    ev_str operators = EV_STR_EMPTY;
    outcome o = {0};
    bool known = false;
    ev_status status = draw(w, message, &child, &operators, &o, err);
    if (status == EV_OK && child.genome)
        status = ask_drawn(w, child.genome, ev_str_text(&operators), &known, err);
    ev_str_free(&operators);
    if (status == EV_OK && child.genome && !known)
        return evaluate(w, child, &wanted, err);
    drawn_child_free(&child);
    EV_TRY(status);
    guard_watch(0);
    return o.failed ? send_failed(w, &o, err) : send_done(w, message_new(MESSAGE_DONE), err);
}

/* Runs and times what a screener passed, as it built it. Takes `genome` over. */
static ev_status job_time(worker *w, const json_t *message, ir_genome *genome, ev_error *err) {
    worker_build b = {0};
    EV_TRY(worker_build_screened(w, genome, ev_json_text(message, "ptx", ""), &b, err));
    score *s = calloc(2, sizeof *s), *screening = s ? s + 1 : NULL;
    ev_status status = s ? EV_OK : ev_fail_memory(err, 2 * sizeof *s);
    if (status == EV_OK)
        status = score_from_json(json_object_get(message, "score"), screening, err);
    if (status == EV_OK)
        status = worker_enter(w, STAGE_SCORE, err);
    if (status == EV_OK)
        status = run_whole(w, &b, s, err);
    worker_build_end(&b);
    if (status == EV_OK) {
        score_add_screening(s, screening);
        status = send_score(w, s, err);
    }
    free(s);
    return status;
}

/* Each edit in words, a line each. */
static void add_words(const worker_build *b, json_t *m) {
    ev_str words = EV_STR_EMPTY;
    for (size_t i = 0; i < ir_genome_edit_count(b->genome); i++) {
        ev_error why = {0};
        if (ir_describe_edit(b->base, b->genome, i, &words, &why) != EV_OK)
            ev_str_append(&words, why.text);
        if (words.length > 0 && words.data[words.length - 1] != '\n')
            ev_str_char(&words, '\n');
    }
    (void)json_object_set_new(m, "words", json_string(ev_str_text(&words)));
    ev_str_free(&words);
}

static void add_code(const worker_build *b, json_t *m) {
    ev_sha256 genome = ir_genome_sha256(b->genome), ptx = ir_build_ptx_sha256(b->build);
    ev_sha256 ir = ir_build_ir_sha256(b->build);
    (void)json_object_set_new(m, "ptx", json_stringn(b->candidate.ptx, b->candidate.ptx_bytes));
    (void)json_object_set_new(m, "ptx_sha256", json_string(ptx.hex));
    (void)json_object_set_new(m, "ir_sha256", json_string(ir.hex));
    (void)json_object_set_new(m, "genome_sha256", json_string(genome.hex));
    (void)json_object_set_new(m, "entry", json_string(launch_plan_entry(b->candidate.plan)));
}

static ev_status promote(worker *w, const worker_build *b, json_t *m, ev_error *err) {
    score s = {0};
    EV_TRY(worker_enter(w, STAGE_PROMOTE, err));
    EV_TRY(run_promote(w, b, &s, err));
    if (s.stopped == GATE_NONE)
        add_words(b, m);
    return json_object_set_new(m, "score", score_to_json(&s)) == 0 ? EV_OK : ev_fail_memory(err, 0);
}

/* The held-out cases that are for time. */
static ev_status check(worker *w, const worker_build *b, json_t *m, ev_error *err) {
    EV_TRY(worker_enter(w, STAGE_PROMOTE, err));
    json_t *list = json_array();
    (void)json_object_set_new(m, "cases", list);
    for (size_t i = 0; i < w->t->case_count; i++) {
        const task_case *at = &w->t->cases[i];
        if (at->split != CORPUS_HELD_OUT || at->use != TASK_TIME)
            continue;
        fitness_verdict v = {0};
        EV_TRY(fitness_check(w->fitness, &b->candidate, at, &v, err));
        double error = v.error < 1e300 ? v.error : 1e300; /* JSON has no infinity */
        json_t *row = json_pack("{s:s,s:b,s:f,s:f,s:s}", "name", at->name, "ok", v.ok, "ns", v.ns,
                                "error", error, "reason", v.reason);
        if (json_array_append_new(list, row) != 0)
            return ev_fail_memory(err, 0);
    }
    return EV_OK;
}

static ev_status build_for_job(worker *w, worker_build *b, outcome *o, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT && !o->failed; s++)
        EV_TRY(build_stage(w, b, (ir_stage)s, o, err));
    return EV_OK;
}

static fitness_bar bar_of(const json_t *message) {
    const json_t *bar = json_object_get(message, "bar");
    return (fitness_bar){.ns = ev_json_number(bar, "ns", 0),
                         .baseline_ns = ev_json_number(bar, "baseline_ns", 0),
                         .is_last = json_is_true(json_object_get(bar, "is_last"))};
}

static ev_status after_search(worker *w, message_kind kind, worker_build *b, outcome *o, json_t *m,
                              ev_error *err) {
    EV_TRY(build_for_job(w, b, o, err));
    if (o->failed)
        return EV_OK;
    add_code(b, m);
    if (kind == MESSAGE_PROMOTE)
        return promote(w, b, m, err);
    if (kind == MESSAGE_CHECK)
        return check(w, b, m, err);
    add_words(b, m);
    return EV_OK;
}

/* Promote, replay and check: build whole, then look. Takes `genome` over. */
static ev_status job_after_search(worker *w, message_kind kind, const json_t *message,
                                  ir_genome *genome, ev_error *err) {
    worker_build b = {0};
    outcome o = {0};
    ev_error why = {0};
    ev_status status = worker_build_begin(w, genome, &b, &why);
    EV_TRY(judge(&o, GATE_VERIFY, status, &why, err));
    json_t *m = message_new(MESSAGE_DONE);
    status = m ? EV_OK : ev_fail_memory(err, 0);
    b.candidate.bar = bar_of(message);
    if (status == EV_OK && !o.failed)
        status = after_search(w, kind, &b, &o, m, err);
    worker_build_end(&b);
    guard_watch(0);
    if (status == EV_OK && !o.failed)
        return send_done(w, m, err);
    json_decref(m);
    EV_TRY(status);
    return send_failed(w, &o, err);
}

static ev_status do_job(worker *w, message_kind kind, const json_t *message, ev_error *err) {
    bool long_job = kind == MESSAGE_PROMOTE || kind == MESSAGE_CHECK;
    guard_watch(w->watchdog * (long_job ? LONG_JOB_FACTOR : 1));
    if (kind == MESSAGE_CHILD)
        return job_child(w, message, err);
    ir_genome *genome = NULL;
    EV_TRY(ir_genome_from_json(json_object_get(message, "genome"), &genome, err));
    if (kind == MESSAGE_TIME)
        return job_time(w, message, genome, err);
    if (kind == MESSAGE_SCORE)
        return evaluate(w, (drawn_child){.genome = genome}, &(wish){0}, err);
    return job_after_search(w, kind, message, genome, err);
}

ev_status worker_job(worker *w, message_kind kind, const json_t *message, ev_error *err) {
    ev_status status = do_job(w, kind, message, err);
    guard_watch(0);
    guard_set_stage(STAGE_IDLE);
    if (status == EV_OK)
        return EV_OK;
    /* The machine failed: the coordinator shall know why before this worker ends. */
    json_t *m = message_new(MESSAGE_ERROR);
    if (m) {
        (void)json_object_set_new(m, "status", json_string(status == EV_BAD ? "bad" : "infra"));
        (void)json_object_set_new(m, "text", json_string(err->text));
    }
    ev_error lost;
    if (channel_send(&w->line, m, &lost) != EV_OK)
        return status;
    return status;
}
