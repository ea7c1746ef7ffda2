/* Gates 2 to 5: runs one candidate through the gates on the search cases, in order of cost, and
 * stops at the first gate that fails. */
#include "fitness/gates/fitness_impl.h"

#include "base/proc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fit_stop(score *s, gate at, const fit_result *result, const char *format, ...) {
    s->stopped = at;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
    for (char *c = s->reason; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    }
    if (result != NULL && !result->ran)
        (void)snprintf(s->trap, sizeof s->trap, "%s", vm_trap_name(result->run.outcome.fault.kind));
}

static void note_result(score *s, const fit_result *r) {
    s->thread_instructions += r->run.outcome.counters.thread_instructions;
    if (!r->ran)
        return;
    if (r->accuracy.relative_l2 > s->error)
        s->error = r->accuracy.relative_l2;
    if (r->accuracy.normalised > s->normalised)
        s->normalised = r->accuracy.normalised;
}

double fit_occupancy(const model_time *t) {
    return t->occupancy.max_warps > 0
               ? (double)t->occupancy.warps_per_sm / (double)t->occupancy.max_warps
               : 0;
}

/* Gives a free row. If all rows are taken, a timed case replaces a row without a time. */
static score_case *row_for(score *s, bool is_timed) {
    if (s->case_count < SCORE_MAX_CASES)
        return &s->cases[s->case_count++];
    for (size_t i = SCORE_MAX_CASES; is_timed && i-- > 0;) {
        if (s->cases[i].ns == 0)
            return &s->cases[i];
    }
    return NULL;
}

void fit_note_case(score *s, const fit_case *c, const fit_result *r) {
    note_result(s, r);
    bool is_timed = c->at->use == TASK_TIME;
    score_case *row = r->ran ? row_for(s, is_timed) : NULL;
    if (!is_timed)
        s->small_ns += r->run.timing.ns;
    if (row == NULL)
        return;
    (void)snprintf(row->name, sizeof row->name, "%s", c->at->name);
    row->ns = is_timed ? r->run.timing.ns : 0;
    row->low_ns = is_timed ? r->run.timing.low_ns : 0;
    row->high_ns = is_timed ? r->run.timing.high_ns : 0;
    row->floor_ns = is_timed ? r->run.timing.model.floor_ns : 0;
    row->baseline_ns = r->run.baseline.ns;
    row->baseline_low_ns = r->run.baseline.low_ns;
    row->baseline_high_ns = r->run.baseline.high_ns;
    row->sm_mhz = is_timed ? r->run.timing.sm_mhz : 0;
    row->discarded = is_timed ? r->run.timing.discarded : 0;
    row->error = r->accuracy.relative_l2;
    row->normalised = r->accuracy.normalised;
}

double fit_mean_of(const score *s, double (*value)(const score_case *c, const void *context),
                   const void *context) {
    double logs = 0;
    size_t count = 0;
    for (size_t i = 0; i < s->case_count; i++) {
        double ns = s->cases[i].ns > 0 ? value(&s->cases[i], context) : 0;
        if (ns > 0) {
            logs += log(ns);
            count++;
        }
    }
    return count > 0 ? exp(logs / (double)count) : 0;
}

static double own_ns(const score_case *c, const void *context) {
    (void)context;
    return c->ns;
}

static double rival_ns(const score_case *c, const void *context) {
    (void)context;
    return c->baseline_ns;
}

double fit_mean_ns(const score *s) {
    return fit_mean_of(s, own_ns, NULL);
}

void fit_note_means(score *s) {
    s->ns = fit_mean_of(s, own_ns, NULL);
    s->baseline_ns = fit_mean_of(s, rival_ns, NULL);
}

#define WORST_SHARE 0.3 /* of the worst case in a time of the search */
#define DRAWN_SHARE 0.5 /* of all drawn cases together, beside the task's own as 1 */

/* ln of the case's time as a part of the baseline's; NAN: not timed. */
static double log_ratio(const fitness *f, const score_case *c) {
    double base = c->baseline_ns > 0 ? c->baseline_ns : fitness_baseline_ns(f, c->name);
    return c->ns > 0 && base > 0 ? log(c->ns / base) : NAN;
}

static bool is_drawn(const fitness *f, const score_case *c) {
    const task_case *drawn = NULL;
    for (size_t i = 0; (drawn = fitness_drawn_timed(f, i)) != NULL; i++) {
        if (strcmp(drawn->name, c->name) == 0)
            return true;
    }
    return false;
}

/* Logarithms of times as parts of the baseline's. */
typedef struct log_sum {
    double sum, worst;
    size_t count;
} log_sum;

static log_sum sum_ratios(const fitness *f, const score *s, bool drawn) {
    log_sum sum = {.worst = -INFINITY};
    for (size_t i = 0; i < s->case_count; i++) {
        double log_of = log_ratio(f, &s->cases[i]);
        if (isnan(log_of) || is_drawn(f, &s->cases[i]) != drawn)
            continue;
        sum.sum += log_of;
        sum.worst = fmax(sum.worst, log_of);
        sum.count++;
    }
    return sum;
}

/* The time that the search goes by: the weighted mean over the timed cases, moved by WORST_SHARE
 * towards the case that gains least on the baseline, drawn cases included. Of two variants with
 * equal means, the one that gains everywhere is more likely to gain at shapes that nobody timed.
 * The task's own cases are what shall be fast, so all drawn ones together weigh half as much, and
 * one no more than an own one. The baseline's own time is its plain mean. */
static double search_ns(const fitness *f, const score *s) {
    log_sum own = sum_ratios(f, s, false), drawn = sum_ratios(f, s, true);
    if (own.count == 0)
        return fit_mean_ns(s);
    double of_own = (double)own.count, of_drawn = (double)drawn.count;
    double weight = drawn.count > 0 ? fmin(DRAWN_SHARE * of_own / of_drawn, 1) : 0;
    double plain = (own.sum + drawn.sum) / (of_own + of_drawn);
    double mean = (own.sum + weight * drawn.sum) / (of_own + weight * of_drawn);
    return fit_mean_ns(s) * exp(mean - plain + WORST_SHARE * (fmax(own.worst, drawn.worst) - mean));
}

/* ---- gate 2 ---- */

double fit_clock(const fitness *f) {
    return device_properties_of(f->d)->modelled ? ev_clock_cpu() : ev_clock_now();
}

ev_status fit_load(fitness *f, const candidate *who, device_kernel **kernel, score *s,
                   ev_error *err) {
    ev_error why = {.status = EV_OK};
    double begin = fit_clock(f);
    ev_status status = device_load_plan(f->d, who->ptx, who->ptx_bytes, who->plan, kernel, &why);
    f->cost.load += fit_clock(f) - begin;
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    if (status == EV_BAD)
        fit_stop(s, GATE_EMIT, NULL, "%s", why.text);
    else
        s->registers = device_kernel_resources(*kernel).registers;
    return EV_OK;
}

/* Whether the launch of one case fits the device. The check needs no buffers. */
static ev_status check_fit(const fitness *f, const task_case *at, const fit_trial *trial, score *s,
                           ev_error *err) {
    ev_error why = {.status = EV_OK};
    ev_status status = fit_steps_fit(f, at, trial, &why);
    if (status == EV_BAD)
        fit_stop(s, GATE_EMIT, NULL, "case %s: %s", at->name, why.text);
    return status == EV_INFRA ? ev_fail(err, EV_INFRA, "%s", why.text) : EV_OK;
}

static ev_status gate_emit(const fitness *f, const fit_trial *trial, unsigned splits, score *s,
                           ev_error *err) {
    for (size_t i = 0; i < f->t->case_count && s->stopped == GATE_NONE; i++) {
        const task_case *at = &f->t->cases[i];
        if (splits & 1u << at->split)
            EV_TRY(check_fit(f, at, trial, s, err));
    }
    return EV_OK;
}

/* ---- gates 3 to 5 ---- */

/* On the smallest case a trap counts for gate 3, and a wrong answer for gate 4. */
static gate gate_for(const fit_case *c, gate at, const fit_result *r) {
    return at == GATE_SAFE && c->at->use == TASK_SMOKE && r->ran ? GATE_ACCURATE : at;
}

static ev_status gate_case(fitness *f, fit_case *c, const fit_trial *trial, gate at, score *s,
                           fit_result *r, ev_error *err) {
    ev_error why = {.status = EV_OK};
    EV_TRY(fit_need_baseline(f, c, err));
    ev_status status = fit_try_case(f, c, trial, 0, r, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    if (status == EV_BAD) {
        fit_stop(s, at, NULL, "case %s: %s", c->at->name, why.text);
        return EV_OK;
    }
    if (s->occupancy == 0 && r->ran && c->at->use == TASK_TIME)
        s->occupancy = fit_occupancy(&r->run.timing.model);
    fit_note_case(s, c, r);
    fit_note_writes(trial, c, r);
    if (!r->ok)
        fit_stop(s, gate_for(c, at, r), r, "%s", r->reason);
    return EV_OK;
}

/* Stops a variant that is hopelessly slow at the timed case that it just ran: a few of its blocks
 * do most of the work, so each further case would take seconds. */
static void stop_hopeless(const fit_case *c, const fit_trial *trial, const fit_result *r,
                          score *s) {
    double most = trial->who->hopeless * c->baseline.ns;
    if (s->stopped != GATE_NONE || most <= 0 || r->run.timing.ns <= most || c->is_drawn)
        return;
    s->filtered = true;
    fit_stop(s, GATE_TIMED, NULL, "case %s: %.3g times the baseline's time", c->at->name,
             r->run.timing.ns / c->baseline.ns);
}

ev_status fit_gate_case(fitness *f, const task_case *which, fit_inputs inputs,
                        const fit_trial *trial, gate at, score *s, ev_error *err) {
    fit_case *c = NULL;
    inputs = fit_inputs_for(f, which, inputs, trial->who);
    EV_TRY(fit_case_get(f, which, inputs, &c, err));
    fit_result *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = gate_case(f, c, trial, at, s, r, err);
    bool is_timed = which->use == TASK_TIME && r->ran;
    if (status == EV_OK && is_timed)
        stop_hopeless(c, trial, r, s);
    if (status == EV_OK && s->stopped == GATE_NONE && is_timed && !trial->who->is_sketch)
        status = fit_hold_floor(f, which, r->run.timing.ns, at, s, err);
    free(r);
    return status;
}

/* Whether the filter stops a candidate: it is slower than its limit on the small cases, and no more
 * accurate than its parents. The timed cases cost the most, and time on the small cases predicts
 * time at full shape. */
static void filter(const fit_trial *trial, double reach, const char *which, score *s) {
    if (s->stopped != GATE_NONE ||
        !score_out_of_reach(s->small_ns, score_small_run(s).error, reach, trial->who->reach_error))
        return;
    s->filtered = true;
    fit_stop(s, GATE_TIMED, NULL, "filter: %.0f ns modelled for %s, out of reach (%.0f ns)",
             s->small_ns, which, reach);
}

/* The filter's first check, after the first small case that has a time. */
static void filter_first(const fit_trial *trial, score *s) {
    if (s->first_ns > 0 || s->stopped != GATE_NONE)
        return;
    s->first_ns = s->small_ns;
    filter(trial, trial->who->first_reach_ns, "the first small case", s);
    s->small_ns = s->filtered ? 0 : s->small_ns;
}

/* All search cases of one use, in the task's order. */
static ev_status gate_cases(fitness *f, task_case_use use, gate at, const fit_trial *trial,
                            score *s, ev_error *err) {
    for (size_t i = 0; i < f->t->case_count && s->stopped == GATE_NONE; i++) {
        const task_case *which = &f->t->cases[i];
        if (which->split != CORPUS_SEARCH || which->use != use)
            continue;
        EV_TRY(fit_gate_case(f, which, fit_usual_inputs(f), trial, at, s, err));
        filter_first(trial, s);
    }
    return EV_OK;
}

static ev_status gate_other_blocks_of(fitness *f, const task_case *which, const fit_trial *trial,
                                      score *s, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(f, which, fit_usual_inputs(f), &c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    fit_run_options options = {.other_blocks = true, .checks = VM_CHECK_INIT};
    ev_status status = fit_try_options(f, c, trial, &options, r, err);
    if (status == EV_OK) {
        note_result(s, r);
        fit_note_writes(trial, c, r);
        if (!r->ok)
            fit_stop(s, GATE_TIMED, r, "%s", r->reason);
    }
    free(r);
    return status;
}

/* Runs other blocks, untimed, after the timed sample, which always has the same blocks. Only
 * candidates that passed all else and beat the known starts pay for this run (writes.c). */
static ev_status gate_other_blocks(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    const fit_writes timed = *trial->writes; /* the counts so far; those of the other blocks
                                                are added */
    if (trial->bar_ns > 0 && search_ns(f, s) >= trial->bar_ns)
        return EV_OK;
    for (size_t i = 0; i < timed.count && s->stopped == GATE_NONE; i++)
        EV_TRY(gate_other_blocks_of(f, timed.cases[i].at, trial, s, err));
    return EV_OK;
}

/* Runs the drawn cases on a candidate that passed all other cases. The score gets no rows for them.
 */
static ev_status gate_drawn(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    const task_case *which = NULL;
    size_t rows = s->case_count;
    if (trial->who->was_sketched)
        return EV_OK;
    for (size_t i = 0; s->stopped == GATE_NONE && (which = fitness_drawn_case(f, i)) != NULL; i++) {
        EV_TRY(check_fit(f, which, trial, s, err));
        if (s->stopped == GATE_NONE)
            EV_TRY(fit_gate_case(f, which, fit_usual_inputs(f), trial, GATE_ACCURATE, s, err));
        s->case_count = rows < s->case_count ? rows : s->case_count;
    }
    return EV_OK;
}

/* Times a candidate at the drawn timed cases, so that its time is a mean over shapes of more kinds
 * than the task's own few. */
static ev_status gate_drawn_timed(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    const task_case *which = NULL;
    for (size_t i = 0; s->stopped == GATE_NONE && (which = fitness_drawn_timed(f, i)) != NULL;
         i++) {
        EV_TRY(check_fit(f, which, trial, s, err));
        if (s->stopped == GATE_NONE)
            EV_TRY(fit_gate_case(f, which, fit_usual_inputs(f), trial, GATE_TIMED, s, err));
    }
    return EV_OK;
}

/* Runs the smallest cases with other contents in the buffers that are read and written, which by
 * the task begin as constants. */
static ev_status gate_begins(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    if (s->stopped != GATE_NONE || trial->who->was_sketched)
        return EV_OK;
    return fit_begin_cases(f, CORPUS_SEARCH, 1, trial, GATE_ACCURATE, s, err);
}

/* Checks that the kernel has the task's parameters. No edit changes parameters, so a difference is
 * the caller's mistake. */
static ev_status check_params(fitness *f, const device_kernel *kernel, ev_error *err) {
    if (f->case_count == 0 || f->has_steps)
        return EV_OK; /* the first case's launch says it */
    void *params = NULL;
    EV_TRY(fit_case_pack(f, f->cases[0], device_kernel_entry(kernel), 0, &params, err));
    free(params);
    return EV_OK;
}

static bool has_smoke(const task *t) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].split == CORPUS_SEARCH && t->cases[i].use == TASK_SMOKE)
            return true;
    }
    return false;
}

ev_status fit_safe_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    task_case_use use = has_smoke(f->t) ? TASK_SMOKE : TASK_CHECK;
    EV_TRY(check_params(f, trial->kernel, err));
    EV_TRY(gate_emit(f, trial, 1u << CORPUS_SEARCH, s, err));
    return gate_cases(f, use, GATE_SAFE, trial, s, err);
}

/* ---- alike on the small cases ---- */

/* The data that a fingerprint hashes, without padding. */
typedef struct fingerprint {
    double small_ns;
    double errors[SCORE_MAX_CASES][2];
    uint32_t registers, shared_bytes, local_bytes, spill_bytes;
} fingerprint;

/* Hashes the rows of the score, which are those of the small cases at this point. */
static void note_fingerprint(const fit_trial *trial, score *s) {
    if (s->stopped != GATE_NONE || s->small_ns <= 0)
        return;
    device_resources takes = device_kernel_resources(trial->kernel);
    fingerprint is = {.small_ns = s->small_ns,
                      .registers = takes.registers,
                      .shared_bytes = takes.shared_bytes,
                      .local_bytes = takes.local_bytes,
                      .spill_bytes = takes.spill_bytes};
    for (size_t i = 0; i < s->case_count; i++) {
        is.errors[i][0] = s->cases[i].error;
        is.errors[i][1] = s->cases[i].normalised;
    }
    ev_sha256 sha = ev_sha256_of(&is, sizeof is);
    memcpy(s->fingerprint, sha.hex, sizeof s->fingerprint);
}

/* Asks whether the fingerprint is known. Most correct new variants are as fast as a known one, and
 * their small cases show it. */
static ev_status recall(const fit_trial *trial, score *s, ev_error *err) {
    const candidate *who = trial->who;
    if (s->stopped != GATE_NONE || s->fingerprint[0] == '\0' || who->is_known == NULL)
        return EV_OK;
    return who->is_known(who->context, s->fingerprint, &s->recalled, err);
}

static double first_ns(const score_case *c, const void *context) {
    return fitness_baseline_ns(context, c->name);
}

/* Corrects the time for drift, since the search compares times taken at different hours: scales by
 * the baseline's first time over its time measured in turn with this candidate. */
static void take_out_drift(const fitness *f, score *s) {
    double first = fit_mean_of(s, first_ns, f);
    if (s->baseline_ns > 0 && first > 0)
        s->ns *= first / s->baseline_ns;
}

/* Whether fast code is timed at full shape. Code whose time on the small cases is near the limit is
 * near it at full shape as well, and is not timed. */
static bool times_sketch(const candidate *who, double small_ns) {
    bool is_near = small_ns >= who->near_ns * (1 - FITNESS_NEAR_BELOW) &&
                   small_ns < who->near_ns * (1 + FITNESS_NEAR_ABOVE);
    return who->times_sketch && !is_near;
}

ev_status fit_search_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    EV_TRY(check_params(f, trial->kernel, err));
    EV_TRY(gate_emit(f, trial, 1u << CORPUS_SEARCH, s, err));
    EV_TRY(gate_cases(f, TASK_SMOKE, GATE_SAFE, trial, s, err));
    EV_TRY(gate_cases(f, TASK_CHECK, GATE_ACCURATE, trial, s, err));
    note_fingerprint(trial, s);
    filter(trial, trial->who->reach_ns, "the small cases", s);
    /* The fingerprint is asked for only after the drawn cases passed. A variant that fails a drawn
     * case may have the fingerprint of a correct one; when such variants were memoised, a quarter
     * of the audits refuted the result. */
    EV_TRY(gate_begins(f, trial, s, err));
    EV_TRY(gate_drawn(f, trial, s, err));
    EV_TRY(recall(trial, s, err));
    bool is_slow_sketch = trial->who->is_sketch && !times_sketch(trial->who, s->small_ns);
    if (s->recalled || is_slow_sketch || (trial->who->screens && !trial->who->is_sketch))
        return EV_OK;
    EV_TRY(gate_cases(f, TASK_TIME, GATE_TIMED, trial, s, err));
    EV_TRY(gate_drawn_timed(f, trial, s, err));
    if (!trial->who->is_sketch)
        EV_TRY(gate_other_blocks(f, trial, s, err));
    if (s->stopped == GATE_NONE) {
        fit_note_means(s);
        s->ns = search_ns(f, s);
        take_out_drift(f, s);
    }
    return EV_OK;
}

ev_status fit_judge(fitness *f, const fit_trial *trial, fit_ladder *ladder, score *out,
                    ev_error *err) {
    assert(f->baseline_kernel != NULL);
    memset(out, 0, sizeof *out);
    out->stopped = GATE_NONE;
    fit_trial loaded = *trial;
    EV_TRY(fit_twin_pass(f, trial->who, out, err));
    if (out->stopped == GATE_NONE)
        EV_TRY(fit_load(f, trial->who, &loaded.kernel, out, err));
    if (out->stopped != GATE_NONE)
        return EV_OK;
    ev_status status = ladder(f, &loaded, out, err);
    device_unload(loaded.kernel);
    return status;
}

ev_status fitness_score(fitness *f, const candidate *c, score *out, ev_error *err) {
    f->writes.count = 0;
    const fit_trial trial = {.who = c, .writes = &f->writes, .bar_ns = f->bar_ns};
    return fit_judge(f, &trial, fit_search_ladder, out, err);
}
