/* Checks candidates case by case. The variants of a bundle are checked with the sources and oracles
 * that the bundle carries. */
#include "tuner/check/check.h"

#include "base/stop.h"
#include "bundle/reader.h"
#include "fitness/gates/fitness.h"
#include "fitness/model/version.h"
#include "ir/ir.h"
#include "tuner/check/manifest.h"
#include "tuner/check/trial.h"
#include "tuner/check/verdict.h"
#include "tuner/run/shipped.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_OF_TASKS "vm:h200"

bool check_is_over(const check *c) {
    return c->again || ev_stop_asked();
}

/* Whether an earlier process did the next step already; counts the step. */
static bool is_done(check *c) {
    return c->step++ < c->done;
}

static const char *verdict_word(bool ok) {
    return ok ? "pass" : "fail";
}

/* ---- one candidate over the cases ---- */

typedef struct subject {
    const task *t;
    fitness *fitness;
    const device *device;
    const char *role; /* "variant" or "baseline" of a bundle, "start" of a task */
    const candidate *candidate;
    const candidate *baseline;
    const char *device_id;
    const launch_plan *within; /* whose ranges bound the drawn shapes; NULL: the task's cases */
    check_record record;
    trial *trial; /* of a genome; NULL: none */
} subject;

static void set_times(json_t *row, const subject *s, const fitness_verdict *v, double base) {
    (void)json_object_set_new(row, "ns", json_real(v->ns));
    (void)json_object_set_new(row, "baseline_ns", json_real(base));
    (void)json_object_set_new(
        row, "time_kind",
        json_string(device_properties_of(s->device)->modelled ? "modelled" : "measured"));
}

/* A row that passes. */
static json_t *new_row(const subject *s, const char *split, const char *at, double tolerance) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "kernel", s->t->name, "role",
                     s->role, "start", s->candidate->start->name, "device",
                     device_properties_of(s->device)->id, "split", split, "case", at, "verdict",
                     "pass", "tolerance", tolerance);
}

/* Adds the row, as a finding of a kind or as one that passes. */
static ev_status end_row(check *c, json_t *row, check_verdict kind, const char *reason,
                         ev_error *err) {
    if (kind != CHECK_OK)
        check_mark(row, kind, reason);
    (void)json_array_append_new(c->rows, row);
    c->failed = c->failed || kind != CHECK_OK;
    return ev_lines_add(c->lines, row, err);
}

/* `kind`: of a result that did not pass; one that passed is held against the record. */
static ev_status add_row(check *c, const subject *s, const task_case *at, const fitness_verdict *v,
                         check_verdict kind, ev_error *err) {
    char reason[CHECK_REASON_BYTES];
    double base = fitness_baseline_ns(s->fitness, at->name);
    (void)snprintf(reason, sizeof reason, "%s", v->reason);
    if (v->ok)
        kind = check_against_record(&s->record, at->name, v, base, reason);
    json_t *row = new_row(s, corpus_split_name(at->split), at->name, v->tolerance);
    if (v->ok || v->stopped == GATE_ACCURATE) /* JSON has no infinity */
        (void)json_object_set_new(row, "error", json_real(fmin(v->error, 1e300)));
    if (v->ns > 0)
        set_times(row, s, v, base);
    return end_row(c, row, kind, reason, err);
}

/* Checks one case. A baseline that traps or is wrong there makes the case impossible to judge; this
 * is a finding about the kernel, and no wrong usage. */
static ev_status check_case(check *c, const subject *s, const task_case *at, ev_error *err) {
    if (is_done(c))
        return EV_OK;
    fitness_verdict *verdict = calloc(1, sizeof *verdict);
    if (verdict == NULL)
        return ev_fail_memory(err, sizeof *verdict);
    ev_error problem = {0};
    check_verdict kind = CHECK_ACCURACY;
    ev_status status = fitness_check(s->fitness, s->candidate, at, verdict, &problem);
    if (status == EV_BAD) {
        kind = CHECK_SETUP;
        *verdict = (fitness_verdict){.tolerance = task_relative_l2(s->t)};
        (void)snprintf(verdict->reason, sizeof verdict->reason, "%s", problem.text);
        status = EV_OK;
    }
    if (status == EV_OK)
        status = add_row(c, s, at, verdict, kind, err);
    else
        *err = problem;
    free(verdict);
    c->again = device_is_spent(s->device);
    return status;
}

static ev_status check_cases(check *c, const subject *s, ev_error *err) {
    for (size_t i = 0; i < s->t->case_count && !check_is_over(c); i++) {
        if ((c->splits >> s->t->cases[i].split & 1u) != 0)
            EV_TRY(check_case(c, s, &s->t->cases[i], err));
    }
    return EV_OK;
}

/* ---- what gate 6 does beside the cases ---- */

static ev_status judge_edits(const subject *s, score *found, check_verdict *kind, ev_error *err) {
    ev_error problem = {0};
    ev_status status = trial_add_builds(s->trial, &problem);
    if (status == EV_OK)
        status = fitness_check_edits(s->fitness, s->candidate, found, &problem);
    bool refused = found->stopped != GATE_NONE;
    *kind = refused ? CHECK_ACCURACY : CHECK_OK;
    if (status == EV_BAD)
        *kind = CHECK_SETUP;
    if (status == EV_BAD)
        (void)snprintf(found->reason, sizeof found->reason, "%s", problem.text);
    else if (status != EV_OK)
        *err = problem;
    return status == EV_BAD ? EV_OK : status;
}

static ev_status check_edits(check *c, const subject *s, ev_error *err) {
    check_verdict kind = CHECK_OK;
    if (is_done(c))
        return EV_OK;
    score *found = calloc(1, sizeof *found);
    if (found == NULL)
        return ev_fail_memory(err, sizeof *found);
    found->stopped = GATE_NONE;
    ev_status status = judge_edits(s, found, &kind, err);
    if (status == EV_OK)
        status =
            end_row(c, new_row(s, "-", "gate 6", task_relative_l2(s->t)), kind, found->reason, err);
    free(found);
    return status;
}

/* ---- stress ---- */

static ev_status stress_one(check *c, const subject *s, ev_error *err) {
    const stress_subject of = {.t = s->t,
                               .device = s->device_id,
                               .baseline = s->baseline,
                               .candidate = s->candidate,
                               .role = s->role,
                               .ranges = s->within != NULL ? s->within->ranges : NULL,
                               .range_count = s->within != NULL ? s->within->range_count : 0};
    json_t *row = NULL;
    if (is_done(c))
        return EV_OK;
    EV_TRY(stress_run(&of, c->stress, &row, err));
    c->failed = c->failed || strcmp(ev_json_text(row, "verdict", ""), "pass") != 0;
    (void)json_array_append(c->stresses, row);
    ev_status status = ev_lines_add(c->lines, row, err);
    json_decref(row);
    return status;
}

/* The cases; then, if all of them passed, the rest of gate 6 for a genome, and the stress. */
static ev_status check_subject(check *c, const subject *s, ev_error *err) {
    bool failed = c->failed;
    c->failed = false;
    ev_status status = check_cases(c, s, err);
    bool shows_all = c->splits == (1u << CORPUS_SPLIT_COUNT) - 1;
    if (status == EV_OK && s->trial != NULL && shows_all && !c->failed && !check_is_over(c))
        status = check_edits(c, s, err);
    if (status == EV_OK && c->stress != NULL && !c->failed && !check_is_over(c))
        status = stress_one(c, s, err);
    c->failed = c->failed || failed;
    return status;
}

/* Whether a candidate is compared with its own start. */
static bool needs_origin(const check *c, const task *t) {
    bool needs = c->stress != NULL;
    for (size_t i = 0; i < t->case_count; i++)
        needs = needs || t->cases[i].inputs.variation != TASK_PLAIN;
    return needs;
}

static const char *device_of(const check *c) {
    return c->device != NULL ? c->device : DEVICE_OF_TASKS;
}

/* ---- tasks ---- */

static bool is_wanted(const check *c, const task_start *start) {
    return strcmp(c->start, "all") == 0 || strcmp(c->start, start->name) == 0;
}

static candidate start_candidate(const task_start *start, const ev_str *ptx) {
    return (candidate){
        .ptx = ev_str_text(ptx), .ptx_bytes = ptx->length, .plan = start->plan, .start = start};
}

/* ---- a genome ---- */

static ev_status check_trial(check *c, const task *t, stand *st, const ev_str *first,
                             ev_error *err) {
    trial it = {0};
    origin own = {.ptx = EV_STR_EMPTY};
    candidate baseline = start_candidate(&t->starts[0], first);
    int sm = device_properties_of(st->device)->sm;
    ev_status status = trial_make(c->genome, t, sm, &it, err);
    if (status == EV_OK)
        status = origin_build(t, sm, &it.made.candidate, &own, err);
    if (status == EV_OK)
        status = stand_fill(st, t, &baseline, err);
    if (status == EV_OK) {
        subject s = {.t = t,
                     .fitness = st->fitness,
                     .device = st->device,
                     .role = "genome",
                     .candidate = &it.made.candidate,
                     .baseline = &baseline,
                     .device_id = device_of(c),
                     .trial = &it};
        status = check_subject(c, &s, err);
    }
    origin_free(&own);
    trial_free(&it);
    return status;
}

/* ---- starts ---- */

static ev_status check_built(check *c, const task *t, stand *st, const ev_str *ptx, ev_error *err) {
    candidate baseline = start_candidate(&t->starts[0], &ptx[0]);
    ev_status status = stand_fill(st, t, &baseline, err);
    for (size_t i = 0; i < t->start_count && status == EV_OK; i++) {
        candidate one = start_candidate(&t->starts[i], &ptx[i]);
        subject s = {.t = t,
                     .fitness = st->fitness,
                     .device = st->device,
                     .role = "start",
                     .candidate = &one,
                     .baseline = &baseline,
                     .device_id = device_of(c)};
        if (is_wanted(c, &t->starts[i]))
            status = check_subject(c, &s, err);
    }
    return status;
}

/* Builds the starts. The first start is always built: the others are compared with it. */
static ev_status build_starts(const check *c, const task *t, int sm, ev_str *ptx, ev_error *err) {
    for (size_t i = 0; i < t->start_count && !check_is_over(c); i++) {
        if (i > 0 && (c->genome != NULL || !is_wanted(c, &t->starts[i])))
            continue;
        ev_status status = variant_build_start(t, &t->starts[i], sm, &ptx[i], err);
        if (status != EV_OK)
            return ev_wrap(err, status, "task %s, start %s", t->name, t->starts[i].name);
    }
    return EV_OK;
}

static ev_status check_starts(check *c, const task *t, ev_error *err) {
    stand st = {0};
    if (strcmp(c->start, "all") != 0 && task_find_start(t, c->start) == NULL)
        return ev_fail(err, EV_BAD, "task %s has no start '%s'; evoke list shows them", t->name,
                       c->start);
    ev_str *ptx = calloc(t->start_count, sizeof *ptx);
    if (ptx == NULL)
        return ev_fail_memory(err, t->start_count * sizeof *ptx);
    ev_status status = fitness_open_device(t, device_of(c), &st.device, err);
    if (status == EV_OK)
        status = build_starts(c, t, device_properties_of(st.device)->sm, ptx, err);
    if (status == EV_OK && !check_is_over(c))
        status = c->genome != NULL ? check_trial(c, t, &st, &ptx[0], err)
                                   : check_built(c, t, &st, ptx, err);
    stand_close(&st);
    for (size_t i = 0; i < t->start_count; i++)
        ev_str_free(&ptx[i]);
    free(ptx);
    return status;
}

/* Tells what the gates leave out. */
static ev_status note_of(const check *c, const task *t, ev_error *err) {
    const char *what = NULL;
    for (size_t i = 0; (what = fitness_not_applied(t, i)) != NULL; i++) {
        ev_str text = EV_STR_EMPTY;
        ev_str_printf(&text, "note: task %s has ranks; not applied: %s", t->name, what);
        c->warn(ev_str_text(&text));
        ev_status status = ev_str_status(&text, err);
        ev_str_free(&text);
        EV_TRY(status);
    }
    return EV_OK;
}

/* A later process of the same check warns no second time. */
static ev_status warn_of(const check *c, const task *t, ev_error *err) {
    if (c->warn != NULL && c->done == 0)
        EV_TRY(note_of(c, t, err));
    for (size_t i = 0; c->warn != NULL && c->done == 0 && i < task_all_count(t); i++) {
        ev_str text = EV_STR_EMPTY;
        if (task_warning(t, i, &text))
            c->warn(ev_str_text(&text));
        ev_status status = ev_str_status(&text, err);
        ev_str_free(&text);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status check_opened(check *c, const task *t, ev_error *err) {
    EV_TRY(warn_of(c, t, err));
    return check_starts(c, t, err);
}

ev_status check_task(check *c, const char *name_or_path, ev_error *err) {
    task *t = NULL;
    EV_TRY(task_open(name_or_path, &t, err));
    ev_status status = check_opened(c, t, err);
    task_free(t);
    return status;
}

/* ---- bundles ---- */

/* Builds the genome from the bundle's sources, and compares the hash with that of the shipped PTX.
 */
static ev_status replay(check *c, const task *t, const bundle_variant *v, const char *role,
                        ev_error *err) {
    ir_genome *genome = NULL;
    ev_str ptx = EV_STR_EMPTY;
    ev_error problem = {0};
    if (is_done(c))
        return EV_OK;
    ev_status status = variant_genome(v->genome, "the genome in the bundle", &genome, &problem);
    if (status == EV_OK)
        status = variant_build(t, genome, v->sm, &ptx, &problem);
    ir_genome_free(genome);
    if (status == EV_INFRA)
        *err = problem;
    ev_sha256 made = ev_sha256_of(ev_str_text(&ptx), ptx.length);
    ev_str_free(&ptx);
    if (status == EV_INFRA)
        return status;
    bool same = status == EV_OK && ev_sha256_equal(&made, &v->sha256);
    if (status == EV_OK && !same)
        (void)ev_fail(&problem, EV_BAD,
                      "the replayed PTX is another (made with %s; this is LLVM %s)", v->versions,
                      ir_llvm_version());
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "kernel", t->name, "role", role,
                            "start", v->start, "verdict", verdict_word(same), "ptx_sha256",
                            v->sha256.hex, "replayed_sha256", status == EV_OK ? made.hex : "");
    if (!same)
        check_mark(row, CHECK_DRIFT, problem.text);
    (void)json_array_append_new(c->replays, row);
    c->failed = c->failed || !same;
    return EV_OK;
}

/* Whether this version of Evoke, with this timing model, wrote the record. */
static bool is_of_this_version(const bundle_variant *v) {
    json_t *versions = json_loads(v->versions, 0, NULL);
    bool is = strcmp(ev_json_text(versions, "evoke", ""), EVOKE_VERSION) == 0 &&
              strcmp(ev_json_text(versions, "llvm", ""), ir_llvm_version()) == 0 &&
              strcmp(ev_json_text(versions, "model", ""), model_version()) == 0;
    json_decref(versions);
    return is;
}

static check_record record_of(const check *c, const bundle_variant *v, const char *id,
                              const device *d) {
    bool modelled = device_properties_of(d)->modelled;
    /* A driver that models its times has another name, and clocks of its own. */
    bool is_own = strncmp(id, "vm:", 3) == 0 && strcmp(id + 3, v->gpu_id) == 0 &&
                  strcmp(device_properties_of(d)->name, v->gpu_name) == 0;
    return (check_record){.v = v,
                          .is_same_model =
                              v->modelled && modelled && is_own && is_of_this_version(v),
                          .is_same_oracle = !c->is_apart,
                          .is_measured = !modelled};
}

static ev_status check_shipped(check *c, const task *t, const bundle_variant *baseline,
                               const bundle_variant *v, const char *role, ev_error *err) {
    shipped base = {0}, one = {0};
    origin own = {.ptx = EV_STR_EMPTY};
    stand st = {0};
    ev_str device_id = EV_STR_EMPTY;
    ev_str_printf(&device_id, "vm:%s", v->gpu_id);
    ev_status status = shipped_make(t, baseline, &base, err);
    if (status == EV_OK)
        status = shipped_make(t, v, &one, err);
    if (status == EV_OK && needs_origin(c, t))
        status = origin_build(t, v->sm, &one.candidate, &own, err);
    const char *id = c->device != NULL ? c->device : ev_str_text(&device_id);
    if (status == EV_OK)
        status = stand_open(id, t, &base.candidate, &st, err);
    if (status == EV_OK) {
        subject s = {.t = t,
                     .fitness = st.fitness,
                     .device = st.device,
                     .role = role,
                     .candidate = &one.candidate,
                     .baseline = &base.candidate,
                     .device_id = id,
                     .within = v->plan,
                     .record = record_of(c, v, id, st.device)};
        status = check_subject(c, &s, err);
        stand_close(&st);
    }
    origin_free(&own);
    shipped_free(&base);
    shipped_free(&one);
    ev_str_free(&device_id);
    return status;
}

/* The GPU that the variant is checked on, as bundles name it. */
static ev_status gpu_of(const check *c, const bundle_variant *v, char out[SHIPPED_GPU_BYTES],
                        ev_error *err) {
    device *d = NULL;
    if (c->device == NULL) {
        (void)snprintf(out, SHIPPED_GPU_BYTES, "%s", v->gpu_id);
        return EV_OK;
    }
    EV_TRY(device_open(c->device, &d, err));
    ev_status status = shipped_gpu_id(d, out, err);
    device_close(d);
    return status;
}

/* Reports a disabled variant. Schedulers do not get it, so it does not count against the bundle. */
static void add_disabled(check *c, const bundle_kernel *k, const bundle_variant *v,
                         const char *role, const char *why) {
    (void)json_array_append_new(c->rows,
                                json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "kernel", k->name,
                                          "role", role, "start", v->start, "split", "-", "case",
                                          "-", "verdict", "disabled", "reason", why));
}

static ev_status check_variant(check *c, const task *t, const bundle_kernel *k,
                               const bundle_variant *v, const char *role, ev_error *err) {
    const bundle_variant *baseline = bundle_baseline_of(k, v);
    if (baseline == NULL)
        return ev_fail(err, EV_BAD, "the bundle has no baseline of %s for sm_%d", k->name, v->sm);
    EV_TRY(replay(c, t, v, role, err));
    return check_shipped(c, t, baseline, v, role, err);
}

/* Checks the enabled variants for the GPU; *count is their number. */
static ev_status check_enabled(check *c, const task *t, const bundle_kernel *k,
                               const bundle_variant *list, size_t length, const char *role,
                               size_t *count, ev_error *err) {
    char gpu_id[SHIPPED_GPU_BYTES];
    for (size_t i = 0; i < length && !check_is_over(c); i++) {
        EV_TRY(gpu_of(c, &list[i], gpu_id, err));
        const char *why = bundle_disabled(&list[i], gpu_id);
        if (why != NULL) {
            if (!is_done(c))
                add_disabled(c, k, &list[i], role, why);
            continue;
        }
        EV_TRY(check_variant(c, t, k, &list[i], list[i].is_bold ? "bold variant" : role, err));
        *count += 1;
    }
    return EV_OK;
}

/* Checks the variants and the unmodified starts; the baselines, for a GPU without either. */
static ev_status check_loaded(check *c, const task *t, const bundle_kernel *k, ev_error *err) {
    size_t count = 0;
    EV_TRY(check_enabled(c, t, k, k->variants, k->variant_count, "variant", &count, err));
    EV_TRY(check_enabled(c, t, k, k->starts, k->start_count, "start", &count, err));
    if (count > 0)
        return EV_OK;
    return check_enabled(c, t, k, k->baselines, k->baseline_count, "baseline", &count, err);
}

/* What the manifest says. Each lie is a row. */
static ev_status check_said(check *c, const task *t, const bundle_kernel *k, ev_error *err) {
    size_t before = json_array_size(c->rows);
    if (is_done(c))
        return EV_OK;
    EV_TRY(check_manifest(k, t, c->rows, err));
    c->failed = c->failed || json_array_size(c->rows) > before;
    for (size_t i = before; i < json_array_size(c->rows); i++)
        EV_TRY(ev_lines_add(c->lines, json_array_get(c->rows, i), err));
    return EV_OK;
}

static ev_status check_one(check *c, const bundle *b, const bundle_kernel *k, ev_error *err) {
    task *t = NULL;
    shipped_trust trust = c->trust;
    if (c->done > c->step) /* an earlier process told it */
        trust.warn = NULL;
    EV_TRY(shipped_task(b, k, &trust, &c->is_apart, &t, err));
    ev_status status = check_said(c, t, k, err);
    if (status == EV_OK)
        status = check_loaded(c, t, k, err);
    task_free(t);
    return status;
}

/* A kernel that cannot be judged does not stop the check of the others. */
static ev_status add_unset(check *c, const bundle_kernel *k, const char *why, ev_error *err) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "kernel", k->name, "role", "kernel",
                            "start", "-", "split", "-", "case", "-");
    check_mark(row, CHECK_SETUP, why);
    if (c->unset[0] == '\0')
        (void)snprintf(c->unset, sizeof c->unset, "%s", ev_json_text(row, "reason", ""));
    (void)json_array_append_new(c->rows, row);
    return ev_lines_add(c->lines, row, err);
}

static ev_status check_kernel(check *c, const bundle *b, const bundle_kernel *k, ev_error *err) {
    ev_error why = {0};
    ev_status status = check_one(c, b, k, &why);
    if (status == EV_BAD)
        return add_unset(c, k, why.text, err);
    if (status != EV_OK)
        *err = why;
    return status;
}

ev_status check_bundle(check *c, const char *path, ev_error *err) {
    bundle *b = NULL;
    EV_TRY(bundle_open_trusted(path, false, c->signers, &b, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < bundle_kernel_count(b) && status == EV_OK && !check_is_over(c); i++)
        status = check_kernel(c, b, bundle_kernel_at(b, i), err);
    bundle_close(b);
    return status;
}
