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
 * The check counts elements. `enough` scales the baseline's count to the share of the grid that
 * ran, with a margin (COVER_PART) because blocks at the edges of a grid write less. The baseline
 * itself runs only if the count falls short of all elements of the outputs. */
#include "fitness/gates/fitness_impl.h"

#include <math.h>
#include <stdlib.h>

/* Limit of a case's cost in thread instructions of the baseline: about a second on the virtual
 * machine. */
#define COVER_INSTRUCTIONS 1e9

/* Blocks at the grid's edges write less, so that a part of the grid says less than all of it. */
#define COVER_PART 0.9
/* A grid of another structure has fewer and larger blocks, many of which may have work in part
 * only: more of the grid is run, and its count says less. */
#define REGROUPED_FACTOR 4
#define REGROUPED_PART 0.6

/* The share of the grid's blocks that run. */
static double share_to_run(const fit_case *c, bool regrouped) {
    double most = (regrouped ? REGROUPED_FACTOR : 1) * COVER_INSTRUCTIONS;
    return fmin(1, most / fmax(1, c->baseline.instructions));
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

static ev_status run_cover(fitness *f, fit_case *c, const fit_trial *trial, bool regrouped,
                           fit_result *out, ev_error *err) {
    double share = share_to_run(c, regrouped);
    fit_run_options options = {.all_blocks = share >= 1,
                               .sample_share = share,
                               .covers = true, /* few blocks may write more than their share */
                               .checks = VM_CHECK_INIT,
                               .jobs = f->options.jobs};
    return fit_try_options(f, c, trial, &options, out, err);
}

/* Counts the elements that the baseline writes, once for each case. */
static ev_status need_cover(fitness *f, fit_case *c, ev_error *err) {
    if (c->baseline.covered > 0)
        return EV_OK;
    const fit_trial trial = {.who = &f->baseline, .kernel = f->baseline_kernel};
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = run_cover(f, c, &trial, false, r, err);
    if (status == EV_OK && !r->ok)
        status = ev_fail(err, EV_BAD, "task %s: the baseline fails at full shape: %s", f->t->name,
                         r->reason);
    if (status == EV_OK)
        c->baseline.covered = (double)r->written / r->run.share;
    free(r);
    return status;
}

/* The least number of elements that a run must write. `covered`: the number that all blocks of the
 * baseline write. */
static double enough(double covered, const fit_result *r, bool regrouped) {
    double part = regrouped ? REGROUPED_PART : COVER_PART;
    if (r->run.share >= 1)
        part = 1;
    return floor(part * covered * r->run.share);
}

static double count_elements(const fit_case *c) {
    double count = 0;
    for (size_t i = 0; i < c->output_count; i++)
        count += (double)c->arguments[c->outputs[i].argument].count;
    return count;
}

static ev_status judge_cover(fitness *f, fit_case *c, const fit_result *r, bool regrouped, score *s,
                             ev_error *err) {
    if ((double)r->written >= enough(count_elements(c), r, regrouped))
        return EV_OK;
    EV_TRY(need_cover(f, c, err));
    if ((double)r->written < enough(c->baseline.covered, r, regrouped))
        fit_stop(s, GATE_PROMOTED, NULL,
                 "case %s: it skips its work: %llu elements of the outputs are written, where the "
                 "baseline writes %.0f",
                 c->at->name, (unsigned long long)r->written, c->baseline.covered * r->run.share);
    return EV_OK;
}

ev_status fit_cover_case(fitness *f, fit_case *c, const fit_trial *trial, score *s, ev_error *err) {
    bool regrouped = false;
    EV_TRY(is_launched_otherwise(trial->who, &regrouped, err));
    regrouped = regrouped || fit_has_idle_parts(trial->who);
    EV_TRY(fit_need_baseline(f, c, err)); /* gives the cost */
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = run_cover(f, c, trial, regrouped, r, err);
    if (status == EV_OK && !r->ok)
        fit_stop(s, GATE_PROMOTED, r, "%s", r->reason);
    else if (status == EV_OK)
        status = judge_cover(f, c, r, regrouped, s, err);
    if (status == EV_OK)
        s->thread_instructions += r->run.outcome.counters.thread_instructions;
    free(r);
    return status;
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
