/* Cover: checks that a kernel does all of its work at full shape, and not only in the few blocks
 * that the search samples. Gate 6 and `evoke check` ask for it.
 *
 * The gates run two or four blocks of a timed case, so a variant that drops half of the work of
 * other blocks could pass. Before promotion all blocks of the timed cases run, or as many as
 * COVER_INSTRUCTIONS pay for. The variant must write as many elements of the outputs as the
 * baseline does, and the elements that are compared must be correct. The timed cases of the search
 * are included, because a split may have only one case of its size.
 *
 * After a run of all blocks, elements that no thread wrote are compared with the answer, too. This
 * needs no baseline, so a first start that skips its own work is seen as well.
 *
 * Then a few blocks run again, under the checks for races, too: a variant may have code for such
 * sizes alone, which no small case runs.
 *
 * The check counts elements. The first run is of a share of the grid, and `enough` scales the count
 * of all elements to that share, with a margin (COVER_PART) because blocks at the edges of a grid
 * write less. Where blocks write unlike numbers, such a share may fall short although the variant
 * is right: of 88 blocks that write tiles of 12 x 12, 12 x 2 and 2 x 2 elements, one sample in five
 * is short by a tenth. So a count that falls short is a suspicion only, and count_cover counts
 * again: on all blocks, if the variant's own cost allows them; else on COVER_GROUPS samples that
 * are drawn apart, whose counts differ by the error of their mean (replicated sampling: Deming,
 * Sample Design in Business Research, 1960). The baseline is counted in the same way, only if the
 * variant falls short of all elements of the outputs. A variant skips its work if its count, with
 * COVER_ERRORS standard errors added, is below the baseline's. */
#include "fitness/gates/fitness_impl.h"

#include <math.h>
#include <stdlib.h>

/* Limit of a case's cost in thread instructions of the baseline: about a second on the virtual
 * machine. */
#define COVER_INSTRUCTIONS 1e9
/* Limit of the second count in thread instructions of the kernel that is counted. */
#define COVER_AGAIN_INSTRUCTIONS 4e9

/* The same for a run of a few blocks under all checks. */
#define CHECKED_FUEL 500000000

/* Blocks at the grid's edges write less, so that a part of the grid says less than all of it. */
#define COVER_PART 0.9
/* A grid of another structure has fewer and larger blocks, many of which may have work in part
 * only: more of the grid is run, and its count says less. */
#define REGROUPED_FACTOR 4
#define REGROUPED_PART 0.6

#define COVER_GROUPS 16
/* By Student's t of 15 degrees of freedom, one right kernel in 1,700 is farther below. */
#define COVER_ERRORS 4

/* The number of output elements that the whole grid of a kernel writes. */
typedef struct cover_count {
    double elements;
    double error;    /* standard error; 0: all blocks were run */
    bool is_whole;   /* all blocks were run */
    bool has_failed; /* the kernel is wrong or traps; the result says how */
} cover_count;

/* The share of the grid's blocks that run. */
static double share_to_run(const fitness *f, const fit_case *c, bool regrouped) {
    double limit = f->options.cover_instructions > 0 ? (double)f->options.cover_instructions
                                                     : COVER_INSTRUCTIONS;
    double most = (regrouped ? REGROUPED_FACTOR : 1) * limit;
    return fmin(1, most / fmax(1, c->baseline.instructions));
}

static double again_most(const fitness *f) {
    if (f->options.cover_instructions == 0)
        return COVER_AGAIN_INSTRUCTIONS;
    return COVER_AGAIN_INSTRUCTIONS / COVER_INSTRUCTIONS * (double)f->options.cover_instructions;
}

/* Hash of the plan without the ranges of shapes, which say nothing of a launch. */
static ev_status hash_launches(const launch_plan *plan, ev_sha256 *out, ev_error *err) {
    launch_plan launches = *plan;
    launches.range_count = 0;
    return launch_plan_sha256(&launches, out, err);
}

/* Whether the candidate has another launch than its start. */
static ev_status is_launched_otherwise(const candidate *who, bool *otherwise, ev_error *err) {
    ev_sha256 own, start;
    *otherwise = false;
    if (who->start == NULL || who->plan == who->start->plan)
        return EV_OK;
    EV_TRY(hash_launches(who->plan, &own, err));
    EV_TRY(hash_launches(who->start->plan, &start, err));
    *otherwise = !ev_sha256_equal(&own, &start);
    return EV_OK;
}

/* `draw`: the number of the sample. */
static ev_status run_share(fitness *f, fit_case *c, const fit_trial *trial, double share,
                           uint32_t draw, fit_result *out, ev_error *err) {
    fit_run_options options = {.all_blocks = share >= 1,
                               .sample_share = share,
                               .draw = draw,
                               .covers = true, /* few blocks may write more than their share */
                               .checks = VM_CHECK_INIT,
                               .jobs = f->options.jobs};
    return fit_try_options(f, c, trial, &options, out, err);
}

static ev_status count_groups(fitness *f, fit_case *c, const fit_trial *trial, double share,
                              fit_result *r, cover_count *out, ev_error *err) {
    double sum = 0, squares = 0;
    for (uint32_t g = 1; g <= COVER_GROUPS; g++) {
        EV_TRY(run_share(f, c, trial, share / COVER_GROUPS, g, r, err));
        out->has_failed = !r->ok;
        if (!r->ok)
            return EV_OK;
        double count = (double)r->written / r->run.share;
        sum += count;
        squares += count * count;
    }
    out->elements = sum / COVER_GROUPS;
    double spread = fmax(0, squares / COVER_GROUPS - out->elements * out->elements);
    out->error = sqrt(spread / (COVER_GROUPS - 1));
    return EV_OK;
}

/* Counts the elements that all blocks of a kernel write. `cost`: thread instructions of all blocks.
 * `r`: the last run, for the caller's report. */
static ev_status count_cover(fitness *f, fit_case *c, const fit_trial *trial, double cost,
                             fit_result *r, cover_count *out, ev_error *err) {
    double share = again_most(f) / fmax(1, cost);
    *out = (cover_count){.is_whole = share >= 1};
    if (share < 1)
        return count_groups(f, c, trial, share, r, out, err);
    EV_TRY(run_share(f, c, trial, 1, 0, r, err));
    out->has_failed = !r->ok;
    out->elements = (double)r->written;
    return EV_OK;
}

/* Counts the elements that the baseline writes, once for each case. */
static ev_status need_cover(fitness *f, fit_case *c, ev_error *err) {
    if (c->baseline.covered > 0)
        return EV_OK;
    const fit_trial trial = {.who = &f->baseline, .kernel = f->baseline_kernel};
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    cover_count count;
    ev_status status = count_cover(f, c, &trial, c->baseline.instructions, r, &count, err);
    if (status == EV_OK && count.has_failed)
        status = ev_fail(err, EV_BAD, "task %s: the baseline fails at full shape: %s", f->t->name,
                         r->reason);
    if (status == EV_OK) {
        c->baseline.covered = count.elements;
        c->baseline.covered_error = count.error;
    }
    free(r);
    return status;
}

/* The share of the elements that a count must reach. */
static double part_of(bool is_whole, bool regrouped) {
    if (is_whole)
        return 1;
    return regrouped ? REGROUPED_PART : COVER_PART;
}

static bool reaches(const cover_count *own, double elements, double error, bool regrouped) {
    double margin = COVER_ERRORS * hypot(own->error, error);
    bool exact = own->is_whole && error == 0;
    return own->elements + margin >= floor(part_of(exact, regrouped) * elements);
}

static double count_elements(const fit_case *c) {
    double count = 0;
    for (size_t i = 0; i < c->output_count; i++)
        count += (double)c->arguments[c->outputs[i].argument].count;
    return count;
}

/* Judges a kernel whose first run is `r`. */
static ev_status judge_cover(fitness *f, fit_case *c, const fit_trial *trial, fit_result *r,
                             bool regrouped, score *s, ev_error *err) {
    double all = count_elements(c);
    cover_count own = {.elements = (double)r->written / r->run.share,
                       .is_whole = r->run.share >= 1};
    if (reaches(&own, all, 0, regrouped))
        return EV_OK;
    if (!own.is_whole) {
        double cost = (double)r->run.outcome.counters.thread_instructions / r->run.share;
        EV_TRY(count_cover(f, c, trial, cost, r, &own, err));
        if (own.has_failed)
            fit_stop(s, GATE_PROMOTED, r, "%s", r->reason);
        if (own.has_failed || reaches(&own, all, 0, regrouped))
            return EV_OK;
    }
    EV_TRY(need_cover(f, c, err));
    if (!reaches(&own, c->baseline.covered, c->baseline.covered_error, regrouped))
        fit_stop(
            s, GATE_PROMOTED, NULL,
            "case %s: it skips its work: %s%.0f elements of the outputs are written, where the "
            "baseline writes %s%.0f",
            c->at->name, own.is_whole ? "" : "about ", own.elements,
            c->baseline.covered_error > 0 ? "about " : "", c->baseline.covered);
    return EV_OK;
}

static ev_status run_checked(fitness *f, fit_case *c, const fit_trial *trial, fit_result *r,
                             ev_error *err) {
    fit_run_options options = {
        .covers = true, .checks = fit_checks(f), .fuel = CHECKED_FUEL, .jobs = f->options.jobs};
    return fit_try_options(f, c, trial, &options, r, err);
}

/* Whether the candidate's own start traps there as well, in the same way. */
static ev_status traps_alike(fitness *f, fit_case *c, const fit_trial *trial, vm_trap_kind kind,
                             bool *alike, ev_error *err) {
    fit_start start;
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = fit_start_of(f, trial->who, &start, err);
    const fit_trial own = {.who = &start.who, .kernel = start.kernel};
    if (status == EV_OK)
        status = run_checked(f, c, &own, r, err);
    *alike = status == EV_OK && !r->ran && r->run.outcome.fault.kind == kind;
    fit_start_free(&start);
    free(r);
    return status;
}

/* Runs a few blocks of a timed case under all checks: code for its sizes alone may have a race. A
 * run that is out of fuel, as where all blocks wait for each other, has shown nothing. */
static ev_status check_sample(fitness *f, fit_case *c, const fit_trial *trial, score *s,
                              ev_error *err) {
    if (trial->who->is_unmodified || !fit_case_is_sampled(f, c) || s->stopped != GATE_NONE)
        return EV_OK;
    fit_result *r = malloc(sizeof *r);
    bool alike = false;
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = run_checked(f, c, trial, r, err);
    bool is_spent = status == EV_OK && !r->ran && r->run.outcome.fault.kind == VM_TRAP_FUEL;
    if (status == EV_OK && !r->ran && !is_spent)
        status = traps_alike(f, c, trial, r->run.outcome.fault.kind, &alike, err);
    if (status == EV_OK && !r->ok && !is_spent && !alike)
        fit_stop(s, GATE_PROMOTED, r, "%s", r->reason);
    if (status == EV_OK)
        s->thread_instructions += r->run.outcome.counters.thread_instructions;
    free(r);
    return status;
}

ev_status fit_cover_case(fitness *f, fit_case *c, const fit_trial *trial, score *s, ev_error *err) {
    bool regrouped = false;
    EV_TRY(is_launched_otherwise(trial->who, &regrouped, err));
    regrouped = regrouped || fit_has_idle_parts(trial->who);
    EV_TRY(fit_need_baseline(f, c, err)); /* gives the cost */
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = run_share(f, c, trial, share_to_run(f, c, regrouped), 0, r, err);
    if (status == EV_OK && !r->ok)
        fit_stop(s, GATE_PROMOTED, r, "%s", r->reason);
    else if (status == EV_OK)
        status = judge_cover(f, c, trial, r, regrouped, s, err);
    if (status == EV_OK)
        s->thread_instructions += r->run.outcome.counters.thread_instructions;
    free(r);
    return status == EV_OK ? check_sample(f, c, trial, s, err) : status;
}

ev_status fit_cover(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    for (size_t i = 0; i < f->t->case_count && s->stopped == GATE_NONE; i++) {
        const task_case *at = &f->t->cases[i];
        fit_case *c = NULL;
        if (at->use != TASK_TIME)
            continue;
        EV_TRY(fit_case_get(f, at, fit_usual_inputs(f), &c, err));
        EV_TRY(fit_cover_case(f, c, trial, s, err));
    }
    return EV_OK;
}
