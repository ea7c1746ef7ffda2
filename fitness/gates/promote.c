/* Gate 6, promotion: the checks that a variant must pass before it is exported, and the check of a
 * single case for `evoke check`.
 *
 * The order of the checks follows from their cost and from the rate at which they refuse. Where
 * times are modelled, the time on the held-out cases comes first (`stand`): it is cheap, and most
 * refused variants are too slow. Where times are measured, correctness comes first. `try_others`
 * runs the held-out and adversarial cases, then fresh inputs, then the search's cases with the
 * errors of approximate instructions to the other side (vm_approx), then the build with asserted
 * facts as checks (asserted.c), and compares the bits of three schedules (vm_wave.c): different
 * bits mean a race. `fit_cover` (cover.c) runs the full grids. A last smoke test repeats the
 * accuracy check after timing. On a GPU, a virtual machine first runs the smallest cases and the
 * schedules (`run_in_vm`).
 *
 * A time below the speed-of-light floor means that the work was not done, or not seen, so the
 * variant fails. With bar.is_last the comparisons of times are the last checks, so a variant that
 * is refused as too slow has passed all others. */
#include "fitness/gates/fitness_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* any seed but 0, which is the natural order */
#define OTHER_SCHEDULE 20240229u

/* ---- other cases ---- */

static ev_status try_cases(fitness *f, corpus_split split, task_case_use use, fit_inputs inputs,
                           const fit_trial *trial, score *s, ev_error *err) {
    for (size_t i = 0; i < f->t->case_count && s->stopped == GATE_NONE; i++) {
        const task_case *which = &f->t->cases[i];
        if (which->split == split && which->use == use)
            EV_TRY(fit_gate_case(f, which, inputs, trial, GATE_PROMOTED, s, err));
    }
    return EV_OK;
}

/* As try_cases, but the score gets no rows. */
static ev_status try_again(fitness *f, task_case_use use, fit_inputs inputs, const fit_trial *trial,
                           score *s, ev_error *err) {
    size_t rows = s->case_count;
    EV_TRY(try_cases(f, CORPUS_SEARCH, use, inputs, trial, s, err));
    s->case_count = rows < s->case_count ? rows : s->case_count;
    return EV_OK;
}

/* ---- other schedules ---- */

/* The results have the same bits in all orders of blocks and warps, unless the baseline itself adds
 * real numbers by atomics: then each result is to be within the tolerance, as ever. */
static ev_status compare_schedules(fitness *f, fit_case *c, const fit_trial *trial, score *s,
                                   fit_result *r, ev_error *err) {
    const uint64_t seeds[] = {0, OTHER_SCHEDULE, OTHER_SCHEDULE + 1};
    ev_sha256 first = {{0}};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        EV_TRY(fit_try_bits(f, c, trial, seeds[i], r, err));
        first = i == 0 ? r->bits : first;
        s->thread_instructions += r->run.outcome.counters.thread_instructions;
        if (!r->ok) {
            fit_stop(s, GATE_PROMOTED, r, "schedule %zu: %s", i, r->reason);
            return EV_OK;
        }
        if (!ev_sha256_equal(&first, &r->bits) && !fit_baseline_has(f, device_kernel_adds_reals)) {
            fit_stop(s, GATE_PROMOTED, r,
                     "case %s: another order of its blocks and warps gives other bits: a race",
                     c->at->name);
            return EV_OK;
        }
    }
    return EV_OK;
}

/* The smallest case, and the first held-out case of use `check`. */
static bool is_for_schedules(const task_case *at, bool *had_check) {
    if (at->use == TASK_SMOKE)
        return true;
    if (at->use != TASK_CHECK || at->split != CORPUS_HELD_OUT || *had_check)
        return false;
    *had_check = true;
    return true;
}

static ev_status try_schedules(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    bool had_check = false;
    ev_status status = EV_OK;
    for (size_t i = 0; i < f->t->case_count && status == EV_OK && s->stopped == GATE_NONE; i++) {
        fit_case *c = NULL;
        if (!is_for_schedules(&f->t->cases[i], &had_check))
            continue;
        const task_case *which = &f->t->cases[i];
        fit_inputs inputs = fit_inputs_for(f, which, fit_usual_inputs(f), trial->who);
        status = fit_case_get(f, which, inputs, &c, err);
        if (status == EV_OK)
            status = compare_schedules(f, c, trial, s, r, err);
    }
    free(r);
    return status;
}

/* ---- time ---- */

/* The baseline's time at a case: measured in turn with the candidate, else from the baseline's own
 * run. */
static double baseline_of(const score_case *c, const void *context) {
    return c->baseline_ns > 0 ? c->baseline_ns : fitness_baseline_ns(context, c->name);
}

static double baseline_low(const score_case *c, const void *context) {
    return c->baseline_ns > 0 ? c->baseline_low_ns : baseline_of(c, context);
}

static double own_high(const score_case *c, const void *context) {
    (void)context;
    return c->high_ns;
}

/* Whether the candidate's whole interval lies below the baseline's. Modelled times are points. */
static void judge_time(const fitness *f, score *s) {
    double base = fit_mean_of(s, baseline_of, f), low = fit_mean_of(s, baseline_low, f);
    double high = fit_mean_of(s, own_high, f);
    fit_note_means(s);
    if (s->ns > 0 && s->ns >= base)
        fit_stop(s, GATE_PROMOTED, NULL,
                 "not faster than the baseline on the held-out cases: %.1f ns, baseline %.1f ns",
                 s->ns, base);
    else if (s->ns > 0 && high >= low)
        fit_stop(
            s, GATE_PROMOTED, NULL,
            "its interval on the held-out cases is not clear of the baseline's: %.1f ns, up to "
            "%.1f; baseline %.1f ns, down to %.1f",
            s->ns, high, base, low);
}

/* The bar, corrected for drift: the baseline's times, measured in turn with the candidate, tell how
 * far the device drifted since the bar was measured. */
static void hold_against_bar(const fitness_bar *bar, score *s) {
    bool drifts = s->baseline_ns > 0 && bar->baseline_ns > 0;
    double ns = drifts ? bar->ns * s->baseline_ns / bar->baseline_ns : bar->ns;
    if (s->stopped == GATE_NONE && ns > 0 && s->ns >= ns * (1 - bar->least_gain))
        fit_stop(s, GATE_PROMOTED, NULL,
                 "not faster by %.3g %% than the best unmodified start on the held-out cases: %.1f "
                 "ns, start %.1f ns",
                 100 * bar->least_gain, s->ns, ns);
}

/* Refuses a time below the speed-of-light floor: the work was not done, or the comparison did not
 * see it. */
static ev_status check_floor(fitness *f, const score_case *timed, const fit_trial *trial, score *s,
                             ev_error *err) {
    double floor_ns = timed->floor_ns;
    const task_case *which = task_find_case(f->t, timed->name);
    if (f->twin != NULL)
        EV_TRY(fit_twin_floor(f, trial->who, which, &floor_ns, err));
    if (timed->ns < floor_ns)
        fit_stop(s, GATE_PROMOTED, NULL,
                 "case %s: %.1f ns is below the speed-of-light floor of %.1f ns: an alarm",
                 timed->name, timed->ns, floor_ns);
    return EV_OK;
}

static ev_status check_floors(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    for (size_t i = 0; i < s->case_count && s->stopped == GATE_NONE; i++) {
        if (s->cases[i].ns > 0)
            EV_TRY(check_floor(f, &s->cases[i], trial, s, err));
    }
    return EV_OK;
}

/* A score that is stopped keeps its reason. */
static void compare_times(const fitness *f, const fit_trial *trial, score *s) {
    if (s->stopped == GATE_NONE)
        judge_time(f, s);
    hold_against_bar(&trial->who->bar, s);
}

static ev_status try_time(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    EV_TRY(try_cases(f, CORPUS_HELD_OUT, TASK_TIME, fit_usual_inputs(f), trial, s, err));
    if (s->stopped == GATE_NONE)
        EV_TRY(check_floors(f, trial, s, err));
    if (!trial->who->bar.is_last)
        compare_times(f, trial, s);
    else if (s->stopped == GATE_NONE)
        fit_note_means(s);
    return EV_OK;
}

/* ---- the gate ---- */

/* The search's cases with the errors of approximate instructions to the other side. */
static ev_status try_turned(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    fit_inputs turned = fit_usual_inputs(f);
    turned.approx = VM_APPROX_TURNED;
    return try_again(f, TASK_CHECK, turned, trial, s, err);
}

/* The small cases of all splits with other contents in the buffers that are read and written. */
static ev_status try_begins(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    for (int split = 0; split < CORPUS_SPLIT_COUNT; split++)
        EV_TRY(fit_begin_cases(f, (corpus_split)split, SIZE_MAX, trial, GATE_PROMOTED, s, err));
    return EV_OK;
}

static ev_status try_others(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    const fit_inputs usual = fit_usual_inputs(f);
    const corpus_split splits[] = {CORPUS_HELD_OUT, CORPUS_ADVERSARIAL};
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        EV_TRY(try_cases(f, splits[i], TASK_SMOKE, usual, trial, s, err));
        EV_TRY(try_cases(f, splits[i], TASK_CHECK, usual, trial, s, err));
    }
    fit_inputs fresh = usual;
    fresh.fresh++;
    EV_TRY(try_again(f, TASK_SMOKE, fresh, trial, s, err));
    EV_TRY(try_again(f, TASK_CHECK, fresh, trial, s, err));
    EV_TRY(try_begins(f, trial, s, err));
    if (f->twin == NULL) { /* a GPU has one result only; its twin was asked before */
        EV_TRY(try_turned(f, trial, s, err));
        EV_TRY(fit_try_varied(f, trial, s, err));
        EV_TRY(fit_try_arms(f, trial, s, err));
        EV_TRY(fit_asserted(f, trial, s, err));
    }
    return s->stopped == GATE_NONE ? try_schedules(f, trial, s, err) : EV_OK;
}

static ev_status try_rest(fitness *f, const fit_trial *trial, bool is_timed, score *s,
                          ev_error *err) {
    EV_TRY(try_others(f, trial, s, err));
    if (s->stopped == GATE_NONE && !is_timed) {
        EV_TRY(try_time(f, trial, s, err));
        if (s->stopped != GATE_NONE)
            return EV_OK;
    }
    if (s->stopped == GATE_NONE)
        EV_TRY(fit_cover(f, trial, s, err));
    EV_TRY(try_again(f, TASK_SMOKE, fit_usual_inputs(f), trial, s, err));
    if (s->stopped != GATE_NONE)
        s->ns = 0; /* a wrong candidate has no time */
    compare_times(f, trial, s);
    return EV_OK;
}

/* Modelled times are cheap, and most refused variants are too slow, so the time comes first.
 * Measured times come last. */
static ev_status stand(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    bool is_cheap = device_properties_of(f->d)->modelled;
    if (is_cheap)
        EV_TRY(try_time(f, trial, s, err));
    return s->stopped == GATE_NONE ? try_rest(f, trial, is_cheap, s, err) : EV_OK;
}

/* The checks that only a virtual machine can make, at the smallest cases. */
static ev_status run_in_vm(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    const fit_inputs usual = fit_usual_inputs(f);
    EV_TRY(try_cases(f, CORPUS_HELD_OUT, TASK_SMOKE, usual, trial, s, err));
    EV_TRY(try_cases(f, CORPUS_ADVERSARIAL, TASK_SMOKE, usual, trial, s, err));
    EV_TRY(try_turned(f, trial, s, err));
    EV_TRY(fit_try_varied(f, trial, s, err));
    EV_TRY(fit_try_arms(f, trial, s, err));
    EV_TRY(fit_asserted(f, trial, s, err));
    return s->stopped == GATE_NONE ? try_schedules(f, trial, s, err) : EV_OK;
}

ev_status fitness_promote(fitness *f, const candidate *c, score *out, ev_error *err) {
    const fit_trial trial = {.who = c};
    if (f->twin != NULL) {
        EV_TRY(fit_judge(f->twin, &trial, run_in_vm, out, err));
        if (out->stopped != GATE_NONE)
            return EV_OK;
    }
    return fit_judge(f, &trial, stand, out, err);
}

/* ---- one case ---- */

static gate stopped_at(const fit_result *r) {
    if (r->ok)
        return GATE_NONE;
    return r->ran ? GATE_ACCURATE : GATE_SAFE;
}

void fit_fill_verdict(const fit_result *r, const fit_case *c, const fitness *f,
                      fitness_verdict *out) {
    const device_timing *own = &r->run.timing, *base = &r->run.baseline;
    bool by_turns = base->samples > 0;
    *out = (fitness_verdict){.ok = r->ok,
                             .error = r->accuracy.relative_l2,
                             .normalised = r->accuracy.normalised,
                             .tolerance = task_relative_l2(f->t),
                             .ns = own->ns,
                             .low_ns = own->low_ns,
                             .high_ns = own->high_ns,
                             .baseline_ns = by_turns ? base->ns : c->baseline.ns,
                             .baseline_low_ns = by_turns ? base->low_ns : c->baseline.ns,
                             .baseline_high_ns = by_turns ? base->high_ns : c->baseline.ns,
                             .stopped = stopped_at(r),
                             .worst = r->worst};
    (void)snprintf(out->reason, sizeof out->reason, "%s", r->reason);
}

/* Checks the writes of a timed case at full shape, of which the timed run shows a few blocks only.
 * If these skip their work, the full run names the output. */
static ev_status check_cover(fitness *f, fit_case *c, const fit_trial *trial, fitness_verdict *out,
                             ev_error *err) {
    bool is_right = out->stopped != GATE_SAFE && out->normalised <= 1; /* what was written */
    if (!is_right || c->at->use != TASK_TIME)
        return EV_OK;
    score *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    s->stopped = GATE_NONE;
    ev_status status = fit_cover_case(f, c, trial, s, err);
    if (status == EV_OK && s->stopped != GATE_NONE) {
        out->ok = false;
        out->stopped = s->trap[0] != '\0' ? GATE_SAFE : GATE_ACCURATE;
        (void)snprintf(out->reason, sizeof out->reason, "%.*s", (int)sizeof out->reason - 1,
                       s->reason);
    }
    free(s);
    return status;
}

ev_status fit_try_begins(fitness *f, const fit_trial *trial, const task_case *at, bool *tried,
                         fit_result *r, ev_error *err) {
    fit_inputs inputs = fit_usual_inputs(f);
    fit_case *c = NULL;
    EV_TRY(fit_begin_is_legal(f, at, inputs.fresh, tried, err));
    if (!*tried)
        return EV_OK;
    inputs.begins = true;
    EV_TRY(fit_case_get(f, at, inputs, &c, err));
    return fit_try_case(f, c, trial, 0, r, err);
}

/* Checks a small case with other contents in the buffers that are read and written. */
static ev_status check_begins(fitness *f, const fit_trial *trial, fit_case *c, fitness_verdict *out,
                              ev_error *err) {
    bool tried = false;
    if (!out->ok || c->at->use == TASK_TIME)
        return EV_OK;
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = fit_try_begins(f, trial, c->at, &tried, r, err);
    if (status == EV_OK && tried && !r->ok)
        fit_fill_verdict(r, c, f, out);
    free(r);
    return status;
}

static ev_status try_orders(fitness *on, const fit_trial *trial, const task_case *at, score *s,
                            fit_result *r, fitness_verdict *out, ev_error *err) {
    fit_case *c = NULL;
    s->stopped = GATE_NONE;
    EV_TRY(fit_case_get(on, at, fit_inputs_for(on, at, fit_usual_inputs(on), trial->who), &c, err));
    EV_TRY(compare_schedules(on, c, trial, s, r, err));
    if (s->stopped == GATE_NONE)
        return EV_OK;
    r->ok = false;
    (void)snprintf(r->reason, sizeof r->reason, "%s", s->reason);
    fit_fill_verdict(r, c, on, out);
    return EV_OK;
}

/* Checks a small case under other schedules, which a virtual machine has, and whose results must
 * have the same bits, of a task with ranks or a kernel with atomics: flags between ranks, and tries
 * until no other thread came between, may be right in the natural order alone. */
static ev_status check_orders(fitness *f, const fit_trial *trial, const task_case *at,
                              fitness_verdict *out, ev_error *err) {
    fitness *on = f->twin != NULL ? f->twin : f;
    const candidate *who = trial->who;
    fit_trial there = {.who = who};
    bool matters = f->t->ranks != NULL || fit_baseline_has(f, device_kernel_has_atomics);
    if (!out->ok || at->use == TASK_TIME || !matters)
        return EV_OK;
    EV_TRY(device_load_plan(on->d, who->ptx, who->ptx_bytes, who->plan, &there.kernel, err));
    score *s = calloc(1, sizeof *s);
    fit_result *r = calloc(1, sizeof *r);
    ev_status status = s != NULL && r != NULL ? try_orders(on, &there, at, s, r, out, err)
                                              : ev_fail_memory(err, sizeof *r);
    free(s);
    free(r);
    device_unload(there.kernel);
    return status;
}

/* Checks the variation of data that the case asks for, in a virtual machine. */
static ev_status check_varied(fitness *f, const fit_trial *trial, const task_case *at,
                              fitness_verdict *out, ev_error *err) {
    fitness *on = f->twin != NULL ? f->twin : f;
    fit_case *c = NULL;
    if (!out->ok || at->inputs.variation == TASK_PLAIN)
        return EV_OK;
    fit_trial there = {.who = trial->who};
    const candidate *who = trial->who;
    EV_TRY(device_load_plan(on->d, who->ptx, who->ptx_bytes, who->plan, &there.kernel, err));
    fit_result *r = malloc(sizeof *r);
    ev_status status = r != NULL ? EV_OK : ev_fail_memory(err, sizeof *r);
    if (status == EV_OK)
        status = fit_try_own_variation(on, at, &there, r, err);
    if (status == EV_OK)
        status = fit_case_get(on, at, fit_usual_inputs(on), &c, err);
    if (status == EV_OK && !r->ok)
        fit_fill_verdict(r, c, on, out);
    free(r);
    device_unload(there.kernel);
    return status;
}

static ev_status check_loaded(fitness *f, const fit_trial *trial, const task_case *at,
                              fitness_verdict *out, ev_error *err) {
    fit_case *c = NULL;
    fit_inputs inputs = fit_inputs_for(f, at, fit_usual_inputs(f), trial->who);
    EV_TRY(fit_case_get(f, at, inputs, &c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = fit_try_case(f, c, trial, 0, r, err);
    if (status == EV_OK)
        fit_fill_verdict(r, c, f, out);
    free(r);
    if (status == EV_OK)
        status = check_cover(f, c, trial, out, err);
    if (status == EV_OK)
        status = check_orders(f, trial, at, out, err);
    if (status == EV_OK)
        status = check_begins(f, trial, c, out, err);
    if (status == EV_OK)
        status = check_varied(f, trial, at, out, err);
    if (status == EV_OK && !out->ok) /* a wrong kernel has no time */
        out->ns = out->low_ns = out->high_ns = 0;
    return status;
}

ev_status fitness_check(fitness *f, const candidate *c, const task_case *at, fitness_verdict *out,
                        ev_error *err) {
    assert(f->baseline_kernel != NULL);
    score s;
    memset(&s, 0, sizeof s);
    s.stopped = GATE_NONE;
    fit_trial trial = {.who = c};
    EV_TRY(fit_twin_pass(f, c, &s, err));
    if (s.stopped == GATE_NONE)
        EV_TRY(fit_load(f, c, &trial.kernel, &s, err));
    if (s.stopped != GATE_NONE) {
        *out = (fitness_verdict){.tolerance = task_relative_l2(f->t), .stopped = s.stopped};
        (void)snprintf(out->reason, sizeof out->reason, "%s", s.reason);
        return EV_OK;
    }
    ev_status status = check_loaded(f, &trial, at, out, err);
    device_unload(trial.kernel);
    return status;
}

ev_status fitness_check_edits(fitness *f, const candidate *c, score *out, ev_error *err) {
    const fit_trial trial = {.who = c};
    return fit_judge(f->twin != NULL ? f->twin : f, &trial, run_in_vm, out, err);
}

ev_status fitness_check_baseline(fitness *f, const task_case *at, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(f, at, fit_usual_inputs(f), &c, err));
    return fit_need_baseline(f, c, err);
}
