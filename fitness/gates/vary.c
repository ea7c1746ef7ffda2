/* Varied data: the part of gate 6 that runs the search's small cases with other data than the
 * task's generators make (variations.def).
 *
 * A variant may be right on the task's data and wrong on other data: a polynomial with a wrong
 * coefficient of a term that was small, a clamp that no element reached, a sum whose order matters
 * only where terms cancel. The variant's own start tells what is right: it runs on the same data,
 * and the variant must be NaN or infinite where the start is. Where the start is finite, the oracle
 * has the answer, and the start's own error says how large an error the data allow.
 *
 * All data stay within the domains that the task states. A task without domains leaves out what the
 * start traps on. Whole numbers have rules of their own (vary_whole.c), and a start that has a race
 * on other whole numbers, such as equal indices, tells nothing. */
#include "fitness/gates/fitness_impl.h"

#include "base/hash.h"
#include "base/type_range.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3 /* of variations that choose one value for all: powers, scalars */
#define ALIASED_SCHEDULE 20250101u /* any seed but 0, which is the natural order */
#define FUEL_FACTOR 8 /* fuel of a start, by the baseline's instructions on the task's own data */
#define FUEL_SLACK 3.2e7    /* added to it */
#define THREADS_FACTOR 8    /* most threads with varied scalars, by those with the task's own */
#define THREADS_SLACK 65536 /* added to them */

static const struct {
    const char *words;
    bool is_benign;
} variations[FIT_VARIATIONS] = {
#define VARIATION(id, name, words, is_benign, aliases) [FIT_##id] = {words, is_benign},
#include "kernels/variations.def"
#undef VARIATION
};

const char *fit_variation_words(fit_variation v) {
    return variations[v].words;
}

bool fit_variation_aliases(fit_variation v) {
    return task_variation_aliases((task_variation)v);
}

bool fit_variation_is_benign(fit_variation v) {
    return variations[v].is_benign;
}

/* ---- the start ---- */

void fit_start_free(fit_start *start) {
    if (start->is_owned && start->kernel != NULL)
        device_unload(start->kernel);
    ev_str_free(&start->ptx);
}

/* Gives the unmodified start at the candidate's macros; its PTX is NULL if it is not known. */
static ev_status origin_of(const candidate *who, fit_start *start, candidate *out, ev_error *err) {
    *out = (candidate){.ptx = NULL};
    if (who->origin != NULL) {
        *out = *who->origin;
        return EV_OK;
    }
    if (who->unmodified != NULL)
        EV_TRY(who->unmodified(who->unmodified_context, &start->ptx, err));
    if (start->ptx.length > 0)
        *out = (candidate){.ptx = ev_str_text(&start->ptx),
                           .ptx_bytes = start->ptx.length,
                           .plan = who->start->plan,
                           .start = who->start,
                           .macros = who->macros,
                           .macro_count = who->macro_count};
    out->is_unmodified = true;
    return EV_OK;
}

ev_status fit_start_of(fitness *f, const candidate *who, fit_start *out, ev_error *err) {
    candidate origin;
    *out = (fit_start){.who = f->baseline, .kernel = f->baseline_kernel, .ptx = EV_STR_EMPTY};
    EV_TRY(origin_of(who, out, &origin, err));
    if (origin.ptx != NULL) {
        device_kernel *kernel = NULL;
        ev_error why = {.status = EV_OK};
        ev_status loaded =
            device_load_plan(f->d, origin.ptx, origin.ptx_bytes, origin.plan, &kernel, &why);
        if (loaded == EV_INFRA)
            return ev_fail(err, EV_INFRA, "%s", why.text);
        if (loaded == EV_OK) {
            out->who = origin;
            out->kernel = kernel;
            out->is_owned = true;
        }
    }
    out->sha256 = ev_sha256_of(out->who.ptx, out->who.ptx_bytes);
    return EV_OK;
}

static double most_of(double limit, double own) {
    return limit > 0 ? fmax(limit, FIT_VARIED_FACTOR * own) : 0;
}

/* Outputs with tolerances of their own have limits of their own (answers.c), and widen no other's.
 */
static accuracy_limits limits_of(const fitness *f, const fit_case *c) {
    const task_tolerance *t = &f->t->tolerance;
    const accuracy *own = &c->varied.accuracy;
    double l2 = 0, largest_error = 0;
    for (size_t i = 0; i < c->output_count; i++) {
        const fit_output *o = &c->outputs[i];
        bool is_common = !c->arguments[o->argument].what->has_tolerance;
        l2 = is_common ? fmax(l2, o->own.relative_l2) : l2;
        largest_error = is_common ? fmax(largest_error, o->own.max_abs) : largest_error;
    }
    return (accuracy_limits){.relative_l2 = fmax(t->relative_l2, FIT_VARIED_FACTOR * l2),
                             .scaled_max = most_of(t->scaled_max, own->scaled_max),
                             .max_abs = most_of(t->max_abs, largest_error),
                             .own_factor = FIT_VARIED_FACTOR,
                             .inexact_most = FIT_VARIED_FACTOR * own->not_exact,
                             .depth = c->depth,
                             .takes_nan = true};
}

/* Whether the variation of the case changes nothing but floating-point buffers. */
static bool is_of_floats(const fit_case *c) {
    for (const fit_argument *a = c->arguments; a->what != NULL; a++) {
        bool is_float = a->what->kind != TASK_SCALAR && ev_type_is_float(a->what->type);
        if (a->is_shared || (a->is_varied && !is_float))
            return false;
    }
    return true;
}

static bool is_changed(const fit_case *c) {
    for (const fit_argument *a = c->arguments; a->what != NULL; a++) {
        if (a->is_varied)
            return true;
    }
    return false;
}

/* Whether an output of the start, compared without limits, is further off than its tolerance. */
static bool is_beyond(const fitness *f, const fit_case *c) {
    const task_tolerance *t = &f->t->tolerance;
    bool beyond = c->varied.accuracy.not_exact > 0 && t->max_abs == 0;
    for (size_t i = 0; i < c->output_count; i++) {
        const fit_output *o = &c->outputs[i];
        beyond |= c->arguments[o->argument].what->has_tolerance
                      ? o->found.beyond > 1
                      : o->found.relative_l2 > t->relative_l2;
    }
    return beyond;
}

/* Notes the start's run, unless it left elements unwritten or wrote padding, as it may with a size
 * that became another one. Its outputs are still there. */
static ev_status take_start(fitness *f, fit_case *c, ev_error *err) {
    accuracy_limits none = {
        .relative_l2 = INFINITY, .depth = c->depth, .inexact_most = UINT64_MAX, .takes_nan = true};
    EV_TRY(fit_answer_varied(f, c, false, err));
    EV_TRY(fit_compare_full(f, c, &none, &c->varied.accuracy, err));
    /* An oracle may know only the task's own scalars, from the shape or its source. */
    if (c->inputs.alias_in > 0 || (!is_of_floats(c) && is_beyond(f, c))) {
        EV_TRY(fit_answer_varied(f, c, true, err));
        EV_TRY(fit_compare_full(f, c, &none, &c->varied.accuracy, err));
    }
    for (size_t i = 0; i < c->output_count; i++)
        c->outputs[i].own = c->outputs[i].found;
    bool same = true;
    EV_TRY(fit_ranks_same(f, c, &same, err));
    c->varied.is_usable =
        same && c->varied.accuracy.unwritten == 0 && c->varied.accuracy.spoilt == 0;
    return EV_OK;
}

/* Whether a start's outcome with such data tells something about the candidate. Where sums are
 * ill-conditioned, the error of another start, or of the oracle's stand-in, tells nothing. */
static bool tells(const fitness *f, fit_variation v, const fit_trial *trial,
                  const fit_start *start) {
    return variations[v].is_benign ||
           (f->t->oracle_kind != TASK_ORACLE_BASELINE && trial->who->start == start->who.start);
}

/* Runs the start, and takes its outputs if it ends. *ran: it does. */
static ev_status run_start(fitness *f, const fit_case *plain, fit_case *c, const fit_start *start,
                           vm_checks checks, bool *ran, ev_error *err) {
    const fit_trial trial = {.who = &start->who, .kernel = start->kernel};
    fit_run_options options = {
        .is_baseline = true,
        .checks = checks,
        .fuel = (uint64_t)(FUEL_FACTOR * plain->baseline.instructions + FUEL_SLACK)};
    fit_run run;
    EV_TRY(fit_run_case(f, c, &trial, &options, &run, err));
    c->varied.instructions = (double)run.outcome.counters.thread_instructions;
    c->varied.checks = checks;
    *ran = run.outcome.ok;
    if (*ran)
        EV_TRY(take_start(f, c, err));
    return fit_restore_after(f, c, &run, err);
}

/* If the start traps, or runs much longer than the baseline on the task's own data, these data are
 * not for this kernel. With floats alone a start may have a race that its task's data have, too:
 * then neither the start nor the candidate runs under those checks. */
ev_status fit_vary_start(fitness *f, const fit_case *plain, fit_case *c, const fit_start *start,
                         ev_error *err) {
    bool ran = false;
    if (ev_sha256_equal(&c->varied.start, &start->sha256))
        return EV_OK;
    c->varied = (fit_varied){.start = start->sha256};
    if (!is_changed(c))
        return EV_OK;
    EV_TRY(run_start(f, plain, c, start, fit_checks(f), &ran, err));
    return ran || !is_of_floats(c) ? EV_OK
                                   : run_start(f, plain, c, start, VM_CHECK_INIT, &ran, err);
}

/* ---- the candidate ---- */

static void explain(const fit_case *c, const accuracy_limits *limits, fit_result *r) {
    ev_str text = EV_STR_EMPTY;
    if (!r->ran)
        ev_str_printf(&text, "%s at PTX line %u: %.300s", vm_trap_name(r->run.outcome.fault.kind),
                      r->run.outcome.fault.line, r->run.outcome.fault.message);
    else
        accuracy_explain(&r->accuracy, limits, &text);
    (void)snprintf(r->reason, sizeof r->reason, "case %s with %s: %s", c->at->name,
                   fit_variation_words(c->inputs.variation), ev_str_text(&text));
    ev_str_free(&text);
}

/* With an input and an output in one buffer, threads that have no work may read what others write:
 * their coordinates are those of a thread that has some, and what they read has no effect. So such
 * runs are held to their results alone, under several schedules. */
static vm_checks checks_of(const fit_case *c) {
    return fit_variation_aliases(c->inputs.variation) ? VM_CHECK_INIT : c->varied.checks;
}

static ev_status compare_varied(fitness *f, fit_case *c, const fit_trial *trial, uint64_t schedule,
                                fit_result *r, ev_error *err) {
    fit_run_options options = {
        .checks = checks_of(c), .seed = schedule, .instructions = c->varied.instructions};
    accuracy_limits limits = limits_of(f, c);
    memset(r, 0, sizeof *r);
    EV_TRY(fit_run_case(f, c, trial, &options, &r->run, err));
    r->ran = r->run.outcome.ok;
    if (r->ran)
        EV_TRY(fit_compare_full(f, c, &limits, &r->accuracy, err));
    r->ok = r->ran && r->accuracy.normalised <= 1;
    if (r->ran && !r->ok)
        EV_TRY(fit_find_worst(f, c, &limits, &r->worst, err));
    if (!r->ok) {
        explain(c, &limits, r);
        fit_tell_worst(r);
    }
    EV_TRY(fit_ranks_agree(f, c, r, err));
    return device_is_spent(f->d) ? EV_OK : fit_restore_after(f, c, &r->run, err);
}

static bool is_of_scalars(fit_variation v) {
    return v == FIT_SCALARS || v == FIT_FAR_SCALARS;
}

/* Whether the errors of the start's sums say something about the candidate's. */
static bool has_condition(const fitness *f, const fit_trial *trial, const fit_start *start) {
    return f->t->oracle_kind != TASK_ORACLE_BASELINE && trial->who->start == start->who.start;
}

/* Compares again, with the limit that the start's sums show elsewhere. */
static ev_status compare_conditioned(fitness *f, fit_case *c, const fit_trial *trial,
                                     const fit_start *start, uint64_t schedule, fit_result *r,
                                     ev_error *err) {
    const double *of = NULL;
    EV_TRY(fit_condition_of(f, start, &of, err));
    double *errors = calloc(c->output_count + 1, sizeof *errors);
    if (errors == NULL)
        return ev_fail_memory(err, c->output_count * sizeof *errors);
    ev_status status = fit_errors_of(f, c, start, errors, err);
    for (size_t i = 0; i < c->output_count; i++) {
        c->outputs[i].conditioned = FIT_VARIED_FACTOR * fit_constant_at(c, of, i);
        c->outputs[i].allowed = FIT_VARIED_FACTOR * errors[i];
    }
    if (status == EV_OK)
        status = compare_varied(f, c, trial, schedule, r, err);
    for (size_t i = 0; i < c->output_count; i++)
        c->outputs[i].conditioned = c->outputs[i].allowed = 0;
    free(errors);
    return status;
}

/* Whether the variation can change a case: no case is made for it otherwise. */
static bool may_vary(const fit_case *plain, fit_variation v) {
    bool is_for_scalars = is_of_scalars(v);
    for (const fit_argument *a = plain->arguments; a->what != NULL; a++) {
        bool is_scalar = a->what->kind == TASK_SCALAR;
        if (is_scalar && is_for_scalars && (a->is_free || ev_type_is_float(a->what->type)))
            return true;
        if (!is_scalar && a->what->kind != TASK_OUT &&
            fit_variation_concerns(v, a->what, &a->range))
            return true;
    }
    return false;
}

/* Whether two arguments are as long at all cases of the task. Arguments that are as long at one
 * shape by chance, such as the factor and the result of a product, are no pair. */
static bool are_as_long(const task *t, const task_argument *a, const task_argument *b) {
    for (size_t i = 0; i < t->case_count; i++) {
        uint64_t of_a = 0, of_b = 0;
        if (task_argument_count_of(t, a, &t->cases[i], &of_a, NULL) != EV_OK ||
            task_argument_count_of(t, b, &t->cases[i], &of_b, NULL) != EV_OK || of_a != of_b)
            return false;
    }
    return true;
}

/* Whether callers may pass one buffer for an argument that is read and one that is written. */
static bool may_share(const fitness *f, const fit_case *plain, const fit_trial *trial, size_t in,
                      size_t out) {
    const fit_argument *a = &plain->arguments[in], *b = &plain->arguments[out];
    uint64_t may = f->t->says_alias ? f->t->aliased : trial->who->may_alias;
    bool is_written = b->what->kind == TASK_OUT || b->what->kind == TASK_INOUT;
    return a->what->kind == TASK_IN && a->what->peers_of == NULL && is_written &&
           a->what->type == b->what->type && a->count == b->count && in < 64 && out < 64 &&
           (may >> in & may >> out & 1) != 0 && are_as_long(f->t, a->what, b->what);
}

/* Finds pair `nth` of an input and an output that may share one buffer. */
static bool find_pair(const fitness *f, const fit_case *plain, const fit_trial *trial, int nth,
                      fit_inputs *inputs) {
    size_t count = f->t->argument_count;
    for (size_t i = 0; i < count * count; i++) {
        if (!may_share(f, plain, trial, i / count, i % count) || nth-- > 0)
            continue;
        inputs->alias_in = (uint16_t)(i / count + 1);
        inputs->alias_out = (uint16_t)(i % count + 1);
        return true;
    }
    return false;
}

int fit_pairs_of(const fitness *f, const fit_case *plain, const fit_trial *trial) {
    fit_inputs ignored;
    int count = 0;
    while (count < FIT_PAIRS_MOST && find_pair(f, plain, trial, count, &ignored))
        count++;
    return count;
}

/* Threads of all launches of the candidate at a case; 0: a launch is not legal there. */
static ev_status count_threads(const fitness *f, const task_case *at, const candidate *who,
                               double *threads, ev_error *err) {
    task_steps steps = {0};
    ev_error why = {.status = EV_OK};
    *threads = 0;
    ev_status status =
        task_steps_of(f->t, who->start, who->plan, who->macros, who->macro_count, at, &steps, &why);
    if (status != EV_OK)
        return status == EV_BAD ? EV_OK : ev_fail(err, status, "%s", why.text);
    for (size_t i = 0; i < steps.count; i++) {
        const launch_geometry *l = &steps.all[i].at;
        double blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
        *threads += blocks * l->block[0] * l->block[1] * l->block[2];
    }
    task_steps_free(&steps);
    return EV_OK;
}

ev_status fit_is_launchable(const fitness *f, const fit_case *c, const candidate *who, bool *out,
                            ev_error *err) {
    double usual = 0, own = 0;
    *out = true;
    if (fit_case_of_plans(c) == c->at)
        return EV_OK;
    EV_TRY(count_threads(f, c->at, who, &usual, err));
    EV_TRY(count_threads(f, fit_case_of_plans(c), who, &own, err));
    *out = own > 0 && own <= THREADS_FACTOR * usual + THREADS_SLACK;
    return EV_OK;
}

/* The scalars that a launch plan names: a bit for each argument. */
static uint64_t named_by(const fitness *f, const launch_plan *plan) {
    uint64_t named = 0;
    for (size_t i = 0; i < f->t->argument_count && i < 64; i++) {
        const task_argument *a = &f->t->arguments[i];
        if (a->kind == TASK_SCALAR && task_plan_names(plan, a))
            named |= UINT64_C(1) << i;
    }
    return named;
}

/* Gives the case with varied inputs. Where the candidate has no launch with all scalars varied,
 * those that its plan names keep the task's values: the sizes of a launch are varied by drawn
 * shapes, and the other scalars are varied in any case. */
static ev_status vary_case(fitness *f, const task_case *at, fit_inputs inputs, const candidate *who,
                           fit_case **c, ev_error *err) {
    bool is_launchable = true;
    EV_TRY(fit_case_get(f, at, inputs, c, err));
    EV_TRY(fit_is_launchable(f, *c, who, &is_launchable, err));
    if (is_launchable)
        return EV_OK;
    inputs.kept = named_by(f, who->plan);
    return fit_case_get(f, at, inputs, c, err);
}

ev_status fit_try_variation(fitness *f, const task_case *at, const task_case_inputs *with,
                            const fit_trial *trial, const fit_start *start, bool *usable,
                            fit_result *r, ev_error *err) {
    fit_variation variation = (fit_variation)with->variation;
    fit_inputs inputs = fit_usual_inputs(f);
    fit_case *plain = NULL, *c = NULL;
    *usable = false;
    if (!tells(f, variation, trial, start))
        return EV_OK;
    EV_TRY(fit_case_get(f, at, inputs, &plain, err));
    EV_TRY(fit_need_baseline(f, plain, err));
    inputs.variation = variation;
    if (variation == FIT_SCALED || variation == FIT_DECIMAL || is_of_scalars(variation))
        inputs.power = with->power;
    bool applies = variation == FIT_ALIASED || may_vary(plain, variation);
    if (fit_variation_aliases(variation))
        applies = applies && find_pair(f, plain, trial, with->power, &inputs);
    if (!applies)
        return EV_OK;
    inputs = fit_inputs_for(f, at, inputs, trial->who);
    EV_TRY(vary_case(f, at, inputs, trial->who, &c, err));
    EV_TRY(fit_vary_start(f, plain, c, start, err));
    *usable = c->varied.is_usable;
    if (!*usable)
        return EV_OK;
    EV_TRY(compare_varied(f, c, trial, with->schedule, r, err));
    bool is_inexact = r->ran && !r->ok && r->accuracy.over_l2 > r->accuracy.allowed_l2;
    return is_inexact && has_condition(f, trial, start)
               ? compare_conditioned(f, c, trial, start, with->schedule, r, err)
               : EV_OK;
}

ev_status fit_try_own_variation(fitness *f, const task_case *at, const fit_trial *trial,
                                fit_result *r, ev_error *err) {
    fit_start start;
    bool usable = false;
    ev_status status = fit_start_of(f, trial->who, &start, err);
    if (status == EV_OK)
        status = fit_try_variation(f, at, &at->inputs, trial, &start, &usable, r, err);
    if (status == EV_OK && !usable)
        *r = (fit_result){.ok = true, .ran = true};
    fit_start_free(&start);
    return status;
}

/* ---- the part of gate 6 ---- */

/* Runs of a variation at one case. A single power, or a single value of a scalar, may be on the
 * side where nothing shows. */
static int rounds_of(fit_variation v) {
    if (fit_variation_aliases(v))
        return FIT_PAIRS_MOST;
    return v == FIT_SCALED || v == FIT_DECIMAL || is_of_scalars(v) ? ROUNDS : 1;
}

/* What the power of the inputs stands for: the number of a pair or of a draw, or a power of two. */
static int power_of(fit_variation v, int round) {
    static const int powers[ROUNDS] = {0, TASK_POWER_MOST, -TASK_POWER_MOST};
    return v == FIT_SCALED ? powers[round] : round;
}

static ev_status try_variation(fitness *f, const task_case *at, fit_variation v, int round,
                               const fit_trial *trial, const fit_start *start, score *s,
                               ev_error *err) {
    task_case_inputs with = at->inputs;
    bool usable = false;
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    bool is_own = v == (fit_variation)with.variation && round == 0;
    with.power = is_own ? with.power : power_of(v, round);
    with.variation = (task_variation)v;
    ev_status status = fit_try_variation(f, at, &with, trial, start, &usable, r, err);
    if (status == EV_OK && usable && r->ok && fit_variation_aliases(v)) {
        with.schedule = ALIASED_SCHEDULE;
        status = fit_try_variation(f, at, &with, trial, start, &usable, r, err);
    }
    if (status == EV_OK && usable) {
        s->thread_instructions += r->run.outcome.counters.thread_instructions;
        if (!r->ok)
            fit_stop(s, GATE_PROMOTED, r, "%s", r->reason);
    }
    free(r);
    return status;
}

/* The search's small cases are run with all variations, the others with their own. */
static ev_status try_case(fitness *f, const task_case *at, const fit_trial *trial,
                          const fit_start *start, score *s, ev_error *err) {
    bool is_small = at->split == CORPUS_SEARCH && at->use != TASK_TIME;
    for (int v = FIT_PLAIN + 1; v < FIT_VARIATIONS && s->stopped == GATE_NONE; v++) {
        bool is_own = v == (int)at->inputs.variation;
        int rounds = is_small ? rounds_of((fit_variation)v) : is_own;
        for (int i = 0; i < rounds && s->stopped == GATE_NONE; i++)
            EV_TRY(try_variation(f, at, (fit_variation)v, i, trial, start, s, err));
    }
    return EV_OK;
}

ev_status fit_try_varied(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    fit_start start;
    if (trial->who->is_unmodified || s->stopped != GATE_NONE)
        return EV_OK;
    ev_status status = fit_start_of(f, trial->who, &start, err);
    for (size_t i = 0; status == EV_OK && i < f->t->case_count && s->stopped == GATE_NONE; i++)
        status = try_case(f, &f->t->cases[i], trial, &start, s, err);
    fit_start_free(&start);
    return status;
}
