/* Runs: executes one kernel at one case, checked or timed, and compares its outputs. */
#include "fitness/gates/fitness_impl.h"
#include "fitness/gates/sample.h"

#include "base/hash.h"
#include "base/proc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of the baseline's run in thread instructions a case: minutes on the virtual machine. */
#define BASELINE_FUEL UINT64_C(40000000000)
/* Limit of a timed case of a task whose oracle is its baseline, in thread instructions: all blocks
 * have to run. */
#define BASELINE_ORACLE_MOST 4e9
/* Thread instructions that one SM issues in a cycle at most, and its clock if none is known. */
#define ISSUED_MOST (4 * 32)
#define CLOCK_GHZ 3.0
/* Blocks at the places of a sample may do so many times the work of a mean block of the grid. */
#define SAMPLE_SLACK 2
/* The least fuel, so that a kernel with large tiles, or with many threads for one of the
 * baseline's, is not out of fuel at a tiny case. */
#define FUEL_LEAST UINT64_C(32000000)
/* Beside it, instructions of each thread: a team of a block's threads for one of the baseline's has
 * each thread compute coordinates, test bounds and exchange, however little there is to share. */
#define FUEL_OF_THREAD 4096
#define MOST_OF_BASELINES 32 /* limits of the baseline's run, where it has one of its own */

/* A sampled run must write this share of the elements that the baseline writes for the same share
 * of blocks. The share is below 1 because a sample of few blocks, with the grid's last block among
 * them, is not exact. */
#define WRITTEN_SHARE 0.6

#define SAMPLE_MOST 512
#define OTHER_BLOCKS 2
/* The least number of blocks at cases of a promotion, which run seldom. */
#define SAMPLE_PROMOTION 4

static uint64_t blocks_of(const launch_geometry *l) {
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

static size_t sample_limit(const fitness *f, const fit_case *c, double share, uint64_t blocks) {
    size_t limit = f->options.sample_blocks;
    if (share > 0)
        limit = (size_t)fmin(ceil(share * (double)blocks), SAMPLE_MOST);
    if (c->at->split != CORPUS_SEARCH && limit < SAMPLE_PROMOTION)
        limit = SAMPLE_PROMOTION;
    return limit < SAMPLE_MOST ? limit : SAMPLE_MOST;
}

static uint64_t baseline_fuel(const fitness *f) {
    return f->options.baseline_fuel > 0 ? f->options.baseline_fuel : BASELINE_FUEL;
}

uint64_t fit_fuel_of_blocks(const gpu *g, const fit_case *c, const candidate *who, uint64_t run,
                            uint64_t grid) {
    double ns = c->at->use == TASK_TIME && c->baseline.done ? who->hopeless * c->baseline.ns : 0;
    if (ns <= 0)
        return UINT64_MAX;
    double sms = (double)run; /* that these blocks have for that time */
    if (g != NULL && grid > 0)
        sms = fmin(sms, SAMPLE_SLACK * gpu_get(g, GPU_SM_COUNT) * (double)run / (double)grid);
    double fuel =
        ns * ISSUED_MOST * (g != NULL ? gpu_get(g, GPU_BOOST_MHZ) * 1e-3 : CLOCK_GHZ) * sms;
    return (uint64_t)fmin(fuel, 1e18) + FUEL_LEAST;
}

/* Limit of thread instructions of a candidate, by those of the baseline. Where the baseline's own
 * are limited, a candidate that does not end is cut after a multiple of that limit. */
static double fuel_of(const fitness *f, double instructions) {
    double fuel = (double)f->options.fuel_factor * instructions;
    return f->options.baseline_fuel > 0
               ? fmin(fuel, MOST_OF_BASELINES * (double)f->options.baseline_fuel)
               : fuel;
}

/* `blocks`: that the launch runs. `grid`: see fit_fuel_of_blocks. */
static uint64_t fuel_for(const fitness *f, const fit_case *c, const candidate *who,
                         const fit_run_options *options, const fit_run *run, uint64_t blocks,
                         uint64_t grid) {
    if (options->fuel > 0)
        return options->fuel;
    if (options->instructions <= 0 && !c->baseline.done)
        return baseline_fuel(f);
    double own = options->instructions > 0 ? options->instructions : c->baseline.instructions;
    const uint32_t *block = run->launch.block;
    double threads = (double)blocks * block[0] * block[1] * block[2];
    double fuel = fuel_of(f, own) * run->share + threads * FUEL_OF_THREAD;
    uint64_t most = fit_fuel_of_blocks(device_description(f->d), c, who, blocks, grid);
    return (uint64_t)fmin(fuel + (double)FUEL_LEAST, (double)most);
}

static device_launch launch_with(const fit_case *c, const launch_geometry *at,
                                 const fit_run_options *options) {
    device_launch d = device_launch_of(at);
    d.checks = options->checks;
    d.approx = c->inputs.approx;
    d.schedule_seed = options->seed;
    d.jobs = options->jobs;
    d.notes_stores = options->other_blocks;
    d.executions = options->executions;
    d.stalls = options->stalls;
    d.sites = options->sites;
    return d;
}

static ev_status launch(fitness *f, const fit_trial *trial, const device_launch *l, bool begins,
                        const fit_run_options *options, fit_run *out, ev_error *err) {
    if (begins)
        EV_TRY(device_reset(f->d, FIT_POISON, err));
    if (!options->timed)
        return device_run(f->d, trial->kernel, l, &out->outcome, err);
    return device_time(f->d, trial->kernel, l, &out->outcome, &out->timing, err);
}

/* Chooses the other blocks, ascending: the last block, at the end of the outputs, and blocks at
 * random places, which no simple rule in a kernel (even numbers, first of a row) singles out. */
static size_t sample_others(uint64_t blocks, uint32_t *sample) {
    assert(blocks > OTHER_BLOCKS);
    size_t count = 0;
    for (uint64_t draw = 0; count < OTHER_BLOCKS - 1; draw++) {
        uint32_t block = (uint32_t)(ev_mix64(blocks + draw) % (blocks - 1));
        size_t at = 0;
        while (at < count && sample[at] < block)
            at++;
        if (at < count && sample[at] == block)
            continue;
        memmove(&sample[at + 1], &sample[at], (count++ - at) * sizeof *sample);
        sample[at] = block;
    }
    sample[count++] = (uint32_t)(blocks - 1);
    return count;
}

/* Chooses a block at a random place in each of `count` equal parts of the grid, ascending. Places
 * at equal distances would meet the same column of the grid, or the same member of a coarsened
 * block, again and again. `draw`: another number gives other places. */
static size_t sample_spread(uint64_t blocks, size_t count, uint32_t draw, uint32_t *sample,
                            double *weights) {
    for (size_t i = 0; i < count; i++) {
        uint64_t from = blocks * i / count, to = blocks * (i + 1) / count;
        uint64_t place = ev_mix64(blocks + i + ((uint64_t)draw << 32));
        sample[i] = (uint32_t)(from + place % (to - from));
        weights[i] = (double)(to - from);
    }
    return count;
}

/* The blocks to run. */
typedef struct block_sample {
    uint32_t blocks[SAMPLE_MOST + 2];
    double weights[SAMPLE_MOST + 2]; /* how many blocks of the grid each one stands for */
    size_t count;                    /* 0: all */
    bool shares_sms;                 /* its grid has like blocks */
} block_sample;

static size_t limit_of(const fitness *f, const fit_case *c, const fit_run_options *options,
                       uint64_t blocks) {
    if (options->other_blocks)
        return OTHER_BLOCKS;
    return options->one_block ? 1 : sample_limit(f, c, options->sample_share, blocks);
}

bool fit_has_idle_parts(const candidate *who) {
    return who->idle_parts[0] > 1 || who->idle_parts[1] > 1 || who->idle_parts[2] > 1;
}

/* The part of the grid whose blocks work. */
static launch_geometry working_grid(const candidate *who, const launch_geometry *l) {
    launch_geometry part = *l;
    for (int d = 0; d < 3; d++) {
        uint32_t parts = who->idle_parts[d] > 1 ? who->idle_parts[d] : 1;
        part.grid[d] = (l->grid[d] + parts - 1) / parts;
    }
    return part;
}

/* The number in the whole grid of a block of the part that works. */
static uint32_t number_in_grid(const launch_geometry *l, const launch_geometry *part,
                               uint32_t block) {
    uint32_t x = block % part->grid[0], rest = block / part->grid[0];
    uint32_t y = rest % part->grid[1], z = rest / part->grid[1];
    return (z * l->grid[1] + y) * l->grid[0] + x;
}

/* Turns a sample of the part that works into one of the grid: the last block, which is idle, stands
 * for all that are. */
static void add_idle(const launch_geometry *l, const launch_geometry *part, block_sample *s) {
    for (size_t i = 0; i < s->count; i++)
        s->blocks[i] = number_in_grid(l, part, s->blocks[i]);
    s->blocks[s->count] = (uint32_t)(blocks_of(l) - 1);
    s->weights[s->count++] = (double)(blocks_of(l) - blocks_of(part));
}

/* Chooses blocks at fixed places. */
static void sample_even(const fit_run_options *options, size_t limit, block_sample *s,
                        fit_run *out) {
    uint64_t blocks = blocks_of(&out->launch);
    size_t inner = 0;
    if (options->other_blocks)
        s->count = inner = sample_others(blocks, s->blocks);
    else if (options->sample_share > 0)
        s->count = inner = sample_spread(blocks, limit, options->draw, s->blocks, s->weights);
    else
        s->count = sample_grid(out->launch.grid, limit, s->blocks, s->weights, &inner);
    out->share = (double)s->count / (double)blocks;
    out->whole = (double)inner / (double)s->count;
}

static void take_sample(const fit_run_options *options, const block_sample *s, device_launch *l) {
    l->sample = s->blocks;
    l->sample_count = s->count;
    l->weights = options->other_blocks ? NULL : s->weights;
}

/* Chooses blocks of a grid of which a known part is idle. */
static void sample_working(const candidate *who, const fit_run_options *options, size_t limit,
                           device_launch *l, block_sample *s, fit_run *out) {
    launch_geometry whole = out->launch, part = working_grid(who, &whole);
    out->launch = part;
    sample_even(options, limit, s, out);
    out->launch = whole;
    add_idle(&whole, &part, s);
    take_sample(options, s, l);
}

/* Takes the blocks that the paths chose. */
static void sample_uneven(const fit_paths *p, const fit_run_options *options, block_sample *s,
                          fit_run *out) {
    s->count = options->other_blocks ? p->other_count : p->count;
    memcpy(s->blocks, options->other_blocks ? p->others : p->blocks, s->count * sizeof *s->blocks);
    memcpy(s->weights, p->weights, p->count * sizeof *p->weights);
    out->share = p->share;
}

/* Chooses the blocks of a timed case, by the kind of its grid. `l` has the parameters. */
static ev_status choose_blocks(fitness *f, fit_case *c, const fit_trial *trial,
                               const fit_run_options *options, device_launch *l, block_sample *s,
                               fit_run *out, ev_error *err) {
    uint64_t blocks = blocks_of(&out->launch);
    size_t limit = limit_of(f, c, options, blocks);
    const fit_paths *paths = NULL;
    s->count = 0;
    s->shares_sms = false;
    if (fit_case_is_full(c) || c->is_shared_work || options->all_blocks ||
        device_properties_of(f->d)->all_blocks || blocks <= limit)
        return EV_OK;
    launch_geometry part = working_grid(trial->who, &out->launch);
    if (blocks_of(&part) < blocks) {
        limit = limit_of(f, c, options, blocks_of(&part));
        if (blocks_of(&part) > limit)
            sample_working(trial->who, options, limit, l, s, out);
        return EV_OK;
    }
    /* One block, or others, may be wanted of a grid that runs whole where it is timed. */
    size_t places = sample_limit(f, c, 0, blocks);
    places = places < blocks ? places : (size_t)blocks - 1;
    EV_TRY(fit_paths_get(f, c, trial, l, places, &paths, err));
    out->grid = paths->grid;
    out->wanted = options->sample_share > 0 || options->other_blocks ? 0 : paths->written;
    if (paths->grid == FITNESS_GRID_WAITS)
        return EV_OK;
    s->shares_sms = paths->grid == FITNESS_GRID_EVEN;
    if (paths->grid == FITNESS_GRID_EVEN || options->sample_share > 0)
        sample_even(options, limit, s, out);
    else
        sample_uneven(paths, options, s, out);
    take_sample(options, s, l);
    return EV_OK;
}

/* `l`: the launch, with its parameters. */
static ev_status run_packed(fitness *f, fit_case *c, const fit_trial *trial, bool begins,
                            const fit_run_options *options, device_launch *l, block_sample *sample,
                            fit_run *out, ev_error *err) {
    EV_TRY(choose_blocks(f, c, trial, options, l, sample, out, err));
    uint64_t grid = blocks_of(&out->launch), blocks = l->sample_count > 0 ? l->sample_count : grid;
    bool shares = sample->shares_sms || blocks == grid;
    l->fuel = fuel_for(f, c, trial->who, options, out, blocks, shares ? grid : 0);
    return launch(f, trial, l, begins, options, out, err);
}

ev_status fit_run_launch(fitness *f, fit_case *c, const fit_trial *trial, const fit_launch *which,
                         const fit_run_options *options, fit_run *out, ev_error *err) {
    out->share = out->whole = 1;
    out->launch = *which->at;
    device_launch l = launch_with(c, &out->launch, options);
    l.stream = which->stream;
    fit_params params;
    EV_TRY(fit_params_pack(f, c, device_kernel_entry(trial->kernel), &params, &l, err));
    block_sample sample;
    ev_status status = run_packed(f, c, trial, which->begins, options, &l, &sample, out, err);
    fit_params_free(&params);
    return status;
}

/* Whether the device runs all blocks, and times the launches of a plan together. That of ranks on
 * the virtual machine models each by itself. */
static bool is_timed_together(const fitness *f) {
    const device_properties *p = device_properties_of(f->d);
    return p->all_blocks && (f->t->ranks == NULL || p->twin[0] != '\0');
}

ev_status fit_run_case(fitness *f, fit_case *c, const fit_trial *trial,
                       const fit_run_options *options, fit_run *out, ev_error *err) {
    launch_geometry at;
    memset(out, 0, sizeof *out);
    EV_TRY(fit_case_fill(f, c, trial->kernel, err));
    if (c->ranks > 1 && c->rebuilds != device_rebuilds(f->d)) /* addresses may be others now */
        EV_TRY(fit_ranks_fill(f, c, err));
    if (options->timed && is_timed_together(f))
        return fit_run_sequence(f, c, trial, options, out, err);
    if (!launch_plan_is_plain(trial->who->plan))
        return fit_run_steps(f, c, trial, options, out, err);
    EV_TRY(fit_case_launch(f, c, trial->who, &at, err));
    const fit_launch which = {.at = &at, .begins = true};
    return fit_run_launch(f, c, trial, &which, options, out, err);
}

ev_status fit_restore_after(fitness *f, fit_case *c, const fit_run *run, ev_error *err) {
    size_t count = 0;
    bool knows = run->share < 1 && run->outcome.ok && run->steps == 0;
    const uint64_t *stored = knows ? device_stored(f->d, &count) : NULL;
    return fit_case_restore(f, c, stored, count, err);
}

/* ---- one candidate at one case ---- */

static void explain_trap(fit_result *r, const fit_case *c) {
    const vm_trap *trap = &r->run.outcome.fault;
    const char *where = r->run.where;
    (void)snprintf(r->reason, sizeof r->reason, "case %s%s%s: %s at PTX line %u: %.480s",
                   c->at->name, where[0] != '\0' ? ", " : "", where, vm_trap_name(trap->kind),
                   trap->line, trap->message);
}

static const char *inputs_in_words(const fit_case *c) {
    if (c->inputs.approx == VM_APPROX_TURNED)
        return " (errors of approximate instructions to the other side)";
    if (c->inputs.begins)
        return " (its inout buffers begin with other data)";
    return c->inputs.fresh > 0 ? " (other inputs)" : "";
}

static void explain_skipped(fit_result *r, const fit_case *c, const fit_skipped *skipped) {
    (void)snprintf(r->reason, sizeof r->reason,
                   "case %s: it skips its work: %llu of %llu elements of '%s' are not written, and "
                   "should have other contents",
                   c->at->name, (unsigned long long)skipped->unwritten,
                   (unsigned long long)skipped->count, skipped->output);
}

static void explain_error(fit_result *r, const fit_case *c, const accuracy_limits *limits) {
    ev_str text = EV_STR_EMPTY;
    accuracy_explain(&r->accuracy, limits, &text);
    (void)snprintf(r->reason, sizeof r->reason, "case %s%s: %s", c->at->name, inputs_in_words(c),
                   ev_str_text(&text));
    ev_str_free(&text);
}

/* The least number of elements that a run must write, and about how many the baseline writes. */
static double least_written(const fit_case *c, const fit_run *run, double *wanted) {
    bool knows = c->baseline.covered > 0;
    *wanted = (knows ? c->baseline.covered : c->baseline.written) * run->share;
    if (run->wanted == 0)
        return (run->share < 1 || !knows ? WRITTEN_SHARE * run->whole : 1) * *wanted;
    *wanted = (double)run->wanted; /* of the same blocks of the start at the same macros */
    return (run->share < 1 ? WRITTEN_SHARE : 1) * *wanted;
}

/* Whether the sampled run writes enough elements of the outputs, by the baseline's count. */
static bool writes_enough(const fit_case *c, const fit_run_options *options, fit_result *r) {
    double wanted = 0, least = least_written(c, &r->run, &wanted);
    if (r->run.is_compared &&
        r->run.wanted == 0) /* so few blocks ran that they may write nothing */
        return true;
    if (options->covers || options->is_baseline || !c->baseline.done || (double)r->written >= least)
        return true;
    (void)snprintf(
        r->reason, sizeof r->reason,
        "case %s: it skips its work: the blocks that were run wrote %llu elements, where "
        "the baseline's write about %.0f",
        c->at->name, (unsigned long long)r->written, wanted);
    return false;
}

accuracy_limits fit_limits_of_run(const fitness *f, const fit_case *c,
                                  const fit_run_options *options) {
    accuracy_limits limits = fit_limits(f, c);
    if (options->is_baseline)
        limits.baseline_l2 = limits.baseline_factor = 0;
    if (!fit_case_is_full(c))
        limits.baseline_factor = 0; /* the error of a few elements is no estimate of the whole */
    return limits;
}

static ev_status find_worst(fitness *f, fit_case *c, const fit_run_options *options, fit_result *r,
                            ev_error *err) {
    accuracy_limits limits = fit_limits_of_run(f, c, options);
    EV_TRY(fit_find_worst(f, c, &limits, &r->worst, err));
    fit_tell_worst(r);
    return EV_OK;
}

static ev_status compare(fitness *f, fit_case *c, const fit_run_options *options, fit_result *r,
                         ev_error *err) {
    accuracy_limits limits = fit_limits_of_run(f, c, options);
    bool full = fit_case_is_full(c);
    fit_skipped skipped = {0};
    bool sees_all = options->covers && r->run.share >= 1;
    if (full) {
        EV_TRY(fit_compare_full(f, c, &limits, &r->accuracy, err));
    } else if (r->run.is_compared) {
        r->accuracy = r->run.accuracy;
        r->written = r->run.written;
    } else {
        EV_TRY(fit_compare_spots(f, c, &limits, &r->accuracy, &r->written,
                                 sees_all ? &skipped : NULL, err));
    }
    r->ok = r->accuracy.normalised <= 1;
    if (skipped.output != NULL)
        explain_skipped(r, c, &skipped);
    else if (!r->ok)
        explain_error(r, c, &limits);
    else if (!full && !options->other_blocks && !options->one_block)
        r->ok = writes_enough(c, options, r);
    return fit_ranks_agree(f, c, r, err);
}

vm_checks fit_checks(const fitness *f) {
    vm_checks checks = VM_CHECK_ALL & ~f->waived;
    if (f->t->ranks != NULL && !f->t->begins_together)
        checks |= VM_CHECK_BEGIN;
    if (f->t->ranks != NULL && !f->t->ends_together)
        checks |= VM_CHECK_END;
    return checks;
}

/* The options of a plain run. The search's small cases are timed, too, if times are modelled: the
 * filter needs these times (gates.c). */
static fit_run_options options_for(const fitness *f, const fit_case *c, const candidate *who,
                                   uint64_t seed) {
    bool full = fit_case_is_full(c);
    bool small = !c->is_drawn && c->at->use == TASK_CHECK && c->at->split == CORPUS_SEARCH &&
                 device_properties_of(f->d)->modelled;
    return (fit_run_options){.timed = !full || small,
                             .one_block = who->is_sketch,
                             .against_baseline = c->at->use == TASK_TIME,
                             .checks = full && !who->was_sketched ? fit_checks(f) : VM_CHECK_INIT,
                             .seed = seed != 0 ? seed : c->at->inputs.schedule};
}

/* The member of f->cost that a case's seconds go to: the gate of the case's use. */
static double *cost_of(fitness *f, const fit_case *c) {
    switch (c->at->use) {
    case TASK_SMOKE:
        return &f->cost.safe;
    case TASK_CHECK:
        return &f->cost.accurate;
    case TASK_TIME:
        break;
    }
    return &f->cost.timed;
}

static ev_status run_and_compare(fitness *f, fit_case *c, const fit_trial *trial,
                                 const fit_run_options *options, bool bits, fit_result *out,
                                 ev_error *err) {
    memset(out, 0, sizeof *out);
    double begin = fit_clock(f), oracle = f->cost.oracle;
    fit_run_options own = *options;
    own.compares = true;
    EV_TRY(fit_run_case(f, c, trial, &own, &out->run, err));
    out->ran = out->run.outcome.ok;
    ev_status status = EV_OK;
    if (out->ran)
        status = compare(f, c, options, out, err);
    else
        explain_trap(out, c);
    bool is_found = out->worst.output != NULL; /* the ranks disagree */
    if (status == EV_OK && out->ran && !out->ok && fit_case_is_full(c) && !is_found)
        status = find_worst(f, c, options, out, err);
    if (status == EV_OK && bits && out->ran)
        status = fit_hash_outputs(f, c, &out->bits, err);
    if (status == EV_OK && !device_is_spent(f->d))
        status = fit_restore_after(f, c, &out->run, err);
    *cost_of(f, c) += fit_clock(f) - begin - (f->cost.oracle - oracle);
    return status;
}

ev_status fit_try_case(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) {
    EV_TRY(fit_need_baseline(f, c, err));
    fit_run_options options = options_for(f, c, trial->who, seed);
    options.executions = trial->executions;
    return run_and_compare(f, c, trial, &options, false, out, err);
}

ev_status fit_try_options(fitness *f, fit_case *c, const fit_trial *trial,
                          const fit_run_options *options, fit_result *out, ev_error *err) {
    EV_TRY(fit_need_baseline(f, c, err));
    return run_and_compare(f, c, trial, options, false, out, err);
}

ev_status fit_try_bits(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) {
    EV_TRY(fit_need_baseline(f, c, err));
    fit_run_options options = options_for(f, c, trial->who, seed);
    return run_and_compare(f, c, trial, &options, true, out, err);
}

/* ---- the baseline ---- */

/* Runs all blocks of the baseline and keeps what it writes as the answers. */
static ev_status answer_by_baseline(fitness *f, fit_case *c, const fit_trial *trial,
                                    ev_error *err) {
    fit_run_options options = {
        .all_blocks = true, .checks = VM_CHECK_INIT, .fuel = baseline_fuel(f)};
    fit_run run;
    EV_TRY(fit_run_case(f, c, trial, &options, &run, err));
    if (!run.outcome.ok)
        return ev_fail(err, EV_BAD,
                       "task %s, case %s: the baseline is its own oracle, and it ends in %s: %s",
                       f->t->name, c->at->name, vm_trap_name(run.outcome.fault.kind),
                       run.outcome.fault.message);
    EV_TRY(fit_keep_outputs(f, c, err));
    return fit_case_restore(f, c, NULL, 0, err);
}

/* Refuses a timed case whose full run would cost too much; estimates the cost from a sample. */
static ev_status check_cost(fitness *f, fit_case *c, const fit_trial *trial, ev_error *err) {
    if (fit_case_is_full(c))
        return EV_OK;
    fit_run_options options = {.checks = VM_CHECK_NONE, .timed = true, .fuel = baseline_fuel(f)};
    fit_run run;
    EV_TRY(fit_run_case(f, c, trial, &options, &run, err));
    EV_TRY(fit_restore_after(f, c, &run, err));
    double all = (double)run.outcome.counters.thread_instructions / run.share;
    if (all <= BASELINE_ORACLE_MOST)
        return EV_OK;
    return ev_fail(
        err, EV_BAD,
        "task %s, case %s: the baseline is its own oracle and would have to execute "
        "about %.2g thread instructions, more than %.2g, for the answer; make the case's "
        "shape smaller, or give the task an oracle in C (a bundle may bring one: "
        "--trust-oracle)",
        f->t->name, c->at->name, all, BASELINE_ORACLE_MOST);
}

static void note_baseline(const fitness *f, fit_case *c, const fit_result *r) {
    c->baseline = (fit_baseline){
        .done = true,
        .instructions = (double)r->run.outcome.counters.thread_instructions / r->run.share,
        .written = (double)r->written / r->run.share,
        .accuracy = r->accuracy,
        .ns = r->run.timing.ns,
        .rebuilds = device_rebuilds(f->d)};
}

static bool has_race(const fit_result *r) {
    vm_trap_kind kind = r->run.outcome.fault.kind;
    return !r->ran && (kind == VM_TRAP_RACE_GLOBAL || kind == VM_TRAP_RACE_SHARED);
}

/* Runs a baseline that raced again, without some of the checks, the fewest at a time first, until
 * it races no more. What was waived for another case stays so. */
static ev_status waive(fitness *f, fit_case *c, const fit_trial *trial, fit_run_options *options,
                       fit_result *out, ev_error *err) {
    const vm_checks before = f->waived, all = VM_CHECK_WAIVABLE;
    const int count = __builtin_popcount(all);
    ev_status status = EV_OK;
    for (int most = 1; most <= count; most++)
        for (vm_checks set = (0 - all) & all; set != 0; set = (set - all) & all) { /* its subsets */
            if (status != EV_OK || !has_race(out) || __builtin_popcount(set) != most)
                continue;
            f->waived = before | set;
            options->checks = fit_checks(f);
            status = run_and_compare(f, c, trial, options, false, out, err);
        }
    if (status != EV_OK || !out->ok)
        f->waived = before;
    return status;
}

/* Runs the baseline. A baseline that reads what a flag announced without an acquire fence, that
 * takes a shuffle to order memory between lanes, that reads plainly what others change by atomics,
 * or whose threads write one value to one place, is taken as it is, and no variant is held to more:
 * many published kernels take a ticket and leave the fence out, begin with a plain load what a
 * compare-and-swap ends, or raise one flag from all threads. */
static ev_status run_baseline(fitness *f, fit_case *c, const fit_trial *trial, fit_result *out,
                              ev_error *err) {
    fit_run_options options = options_for(f, c, trial->who, 0);
    options.is_baseline = true;
    options.fuel = baseline_fuel(f);
    options.seed = 0;
    bool has_checks = (options.checks & VM_CHECK_RACES) != 0;
    EV_TRY(run_and_compare(f, c, trial, &options, false, out, err));
    return has_checks && has_race(out) ? waive(f, c, trial, &options, out, err) : EV_OK;
}

bool fit_baseline_has(const fitness *f, bool (*has)(const device_kernel *)) {
    for (size_t i = 0; i < f->baseline.plan->launch_count; i++) {
        if (has(device_kernel_of(f->baseline_kernel, i)))
            return true;
    }
    return false;
}

/* Whether a sample of blocks may write parts of sums, as of a histogram: the baseline differed from
 * itself, or all of its few blocks ran and have atomics. */
static bool may_share_work(const fitness *f, const fit_case *c, const fit_result *r) {
    if (f->t->oracle_kind != TASK_ORACLE_BASELINE || fit_case_is_full(c) || !r->ran ||
        r->run.grid == FITNESS_GRID_WAITS)
        return false;
    bool all_ran = r->run.share >= 1;
    return !r->ok || (all_ran && fit_baseline_has(f, device_kernel_has_far_atomics));
}

ev_status fit_baseline_case(fitness *f, fit_case *c, fit_result *out, ev_error *err) {
    assert(f->baseline_kernel != NULL);
    const fit_trial trial = {.who = &f->baseline, .kernel = f->baseline_kernel};
    if (f->t->oracle_kind == TASK_ORACLE_BASELINE && c->outputs[0].want == NULL) {
        EV_TRY(check_cost(f, c, &trial, err));
        EV_TRY(answer_by_baseline(f, c, &trial, err));
    }
    ev_status status = run_baseline(f, c, &trial, out, err);
    if (status == EV_OK && !c->is_shared_work && may_share_work(f, c, out)) {
        c->is_shared_work = true;
        if (!out->ok)
            status = run_baseline(f, c, &trial, out, err);
    }
    if (status != EV_OK)
        return ev_wrap(err, status, "task %s, case %s, the baseline", f->t->name, c->at->name);
    if (!out->ran)
        return ev_fail(err, EV_BAD, "task %s: the baseline does not run: %s", f->t->name,
                       out->reason);
    if (!out->ok)
        return ev_fail(err, EV_BAD, "task %s: the baseline disagrees with its oracle: %s",
                       f->t->name, out->reason);
    note_baseline(f, c, out);
    return EV_OK;
}

ev_status fit_need_baseline(fitness *f, fit_case *c, ev_error *err) {
    /* a run from before a fault of the device is repeated */
    if (c->baseline.done && c->baseline.rebuilds == device_rebuilds(f->d))
        return EV_OK;
    fit_result *result = malloc(sizeof *result);
    if (result == NULL)
        return ev_fail_memory(err, sizeof *result);
    ev_status status = fit_baseline_case(f, c, result, err);
    free(result);
    if (status == EV_OK || !c->baseline.done)
        return status;
    /* the baseline passed before, so the device is at fault */
    if (err != NULL)
        err->status = EV_INFRA;
    return ev_wrap(err, EV_INFRA, "since a fault of %s", device_properties_of(f->d)->id);
}
