/* Fitness: a task on a device, from opening to closing; its twin, the baseline, and profiles. */
#include "fitness/gates/fitness_impl.h"

#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_BLOCKS 2
#define SPOT_ELEMENTS 64
#define FUEL_FACTOR 32

ev_status fitness_open(const task *t, device *d, const fitness_options *options, fitness **out,
                       ev_error *err) {
    fitness *f = calloc(1, sizeof *f);
    if (f == NULL)
        return ev_fail_memory(err, sizeof *f);
    f->t = t;
    f->d = d;
    f->has_steps = task_has_steps(t);
    if (options != NULL)
        f->options = *options;
    if (f->options.sample_blocks == 0)
        f->options.sample_blocks = SAMPLE_BLOCKS;
    if (f->options.spot_elements == 0)
        f->options.spot_elements = SPOT_ELEMENTS;
    if (f->options.fuel_factor == 0)
        f->options.fuel_factor = FUEL_FACTOR;
    device_clear(d);
    ev_status status = fit_twin_open(f, err);
    if (status != EV_OK) {
        free(f);
        return status;
    }
    *out = f;
    return EV_OK;
}

void fitness_close(fitness *f) {
    if (f == NULL)
        return;
    fit_twin_close(f);
    for (size_t i = 0; i < f->case_count; i++)
        fit_case_free(f, f->cases[i]);
    free(f->cases);
    fit_drawn_free(f);
    fit_references_free(f);
    fit_paths_free(f);
    fit_conditions_free(f);
    fit_steps_free(f);
    device_unload(f->baseline_kernel);
    ev_arena_free(f->baseline_arena);
    device_clear(f->d);
    free(f);
}

/* ---- the twin: the same task in the virtual machine, before a real GPU ---- */

ev_status fit_twin_open(fitness *f, ev_error *err) {
    const char *id = device_properties_of(f->d)->twin;
    if (id[0] == '\0')
        return EV_OK;
    EV_TRY(fitness_open_device(f->t, id, &f->twin_device, err));
    ev_status status = fitness_open(f->t, f->twin_device, &f->options, &f->twin, err);
    if (status != EV_OK)
        fit_twin_close(f);
    return status;
}

void fit_twin_close(fitness *f) {
    fitness_close(f->twin);
    device_close(f->twin_device);
    f->twin = NULL;
    f->twin_device = NULL;
}

/* A stop in the twin stops the candidate here. */
static void take_over(const fitness *f, const score *there, score *s) {
    s->thread_instructions += there->thread_instructions;
    if (there->stopped == GATE_NONE)
        return;
    s->stopped = there->stopped;
    (void)snprintf(s->reason, sizeof s->reason, "on %s: %.500s",
                   device_properties_of(f->twin_device)->id, there->reason);
    (void)snprintf(s->trap, sizeof s->trap, "%s", there->trap);
}

/* Hash of all that defines a launch: code, plan, and the start and macros that give the plan its
 * values. */
static ev_status launch_key(const candidate *who, ev_sha256 *out, ev_error *err) {
    ev_sha256 plan;
    EV_TRY(launch_plan_sha256(who->plan, &plan, err));
    ev_str key = EV_STR_EMPTY;
    ev_str_printf(&key, "%s %s %s", ev_sha256_of(who->ptx, who->ptx_bytes).hex, plan.hex,
                  who->start->name);
    for (size_t i = 0; i < who->macro_count; i++)
        ev_str_printf(&key, " %s=%" PRId64, who->macros[i].name, who->macros[i].value.whole);
    ev_status status = ev_str_status(&key, err);
    if (status == EV_OK)
        *out = ev_sha256_of(ev_str_text(&key), key.length);
    ev_str_free(&key);
    return status;
}

ev_status fit_twin_pass(fitness *f, const candidate *who, score *s, ev_error *err) {
    if (f->twin == NULL)
        return EV_OK;
    ev_sha256 hash;
    EV_TRY(launch_key(who, &hash, err));
    if (who->was_screened) {
        f->has_passed = true;
        f->passed = hash;
    }
    if (f->has_passed && ev_sha256_equal(&hash, &f->passed))
        return EV_OK;
    const fit_trial trial = {.who = who};
    score *there = malloc(sizeof *there);
    if (there == NULL)
        return ev_fail_memory(err, sizeof *there);
    ev_status status = fit_judge(f->twin, &trial, fit_safe_ladder, there, err);
    if (status == EV_OK) {
        take_over(f, there, s);
        f->has_passed = there->stopped == GATE_NONE;
        f->passed = hash;
    }
    free(there);
    return status;
}

ev_status fit_twin_baseline(fitness *f, const candidate *baseline, ev_error *err) {
    if (f->twin == NULL)
        return EV_OK;
    score *there = calloc(1, sizeof *there);
    if (there == NULL)
        return ev_fail_memory(err, sizeof *there);
    ev_status status = fitness_set_baseline(f->twin, baseline, 0, there, err);
    there->stopped = GATE_NONE;
    if (status == EV_OK)
        status = fit_twin_pass(f, baseline, there, err);
    if (status == EV_OK && there->stopped != GATE_NONE)
        status = ev_fail(err, EV_BAD, "task %s: the baseline fails %s", f->t->name, there->reason);
    free(there);
    return status;
}

static ev_status run_for_floor(fitness *twin, const fit_trial *trial, const task_case *which,
                               double *ns, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(twin, which, fit_usual_inputs(twin), &c, err));
    EV_TRY(fit_need_baseline(twin, c, err));
    fit_run_options options = {.timed = true, .checks = VM_CHECK_INIT};
    fit_run *run = malloc(sizeof *run);
    if (run == NULL)
        return ev_fail_memory(err, sizeof *run);
    ev_status status = fit_run_case(twin, c, trial, &options, run, err);
    if (status == EV_OK)
        status = fit_restore_after(twin, c, run, err);
    if (status == EV_OK && run->outcome.ok)
        *ns = run->timing.model.floor_ns;
    free(run);
    return status;
}

ev_status fit_twin_floor(fitness *f, const candidate *who, const task_case *which, double *ns,
                         ev_error *err) {
    *ns = 0;
    if (f->twin == NULL || !device_properties_of(f->d)->twin_is_same)
        return EV_OK;
    fit_trial trial = {.who = who};
    EV_TRY(
        device_load_plan(f->twin_device, who->ptx, who->ptx_bytes, who->plan, &trial.kernel, err));
    ev_status status = run_for_floor(f->twin, &trial, which, ns, err);
    device_unload(trial.kernel);
    return status;
}

/* ---- the baseline ---- */

static expr_name *copy_macros(ev_arena *arena, const candidate *from) {
    expr_name *macros = EV_NEW_ARRAY(arena, expr_name, from->macro_count);
    for (size_t i = 0; macros != NULL && i < from->macro_count; i++)
        macros[i] =
            (expr_name){ev_arena_strdup(arena, from->macros[i].name), from->macros[i].value};
    return macros;
}

static ev_status copy_baseline(fitness *f, const candidate *from, ev_error *err) {
    if (f->baseline_arena == NULL)
        f->baseline_arena = ev_arena_new();
    ev_arena *arena = f->baseline_arena;
    if (arena == NULL)
        return ev_fail_memory(err, from->ptx_bytes);
    candidate made = {.ptx_bytes = from->ptx_bytes,
                      .start = from->start,
                      .macros = copy_macros(arena, from),
                      .macro_count = from->macro_count};
    char *ptx = ev_arena_alloc(arena, from->ptx_bytes + 1); /* ends in NUL */
    EV_TRY(launch_plan_clone(from->plan, arena, &made.plan, err));
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, from->ptx_bytes);
    made.ptx = memcpy(ptx, from->ptx, from->ptx_bytes);
    f->baseline = made;
    return EV_OK;
}

static ev_status baseline_case(fitness *f, const task_case *at, score *s, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(f, at, fit_usual_inputs(f), &c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = fit_baseline_case(f, c, r, err);
    if (status == EV_OK) {
        if (at->use == TASK_TIME && s->occupancy == 0)
            s->occupancy = fit_occupancy(&r->run.timing.model);
        fit_note_case(s, c, r);
    }
    free(r);
    return status;
}

static ev_status baseline_cases(fitness *f, unsigned splits, score *s, ev_error *err) {
    for (size_t i = 0; i < f->t->case_count; i++) {
        const task_case *at = &f->t->cases[i];
        if (splits & 1u << at->split)
            EV_TRY(baseline_case(f, at, s, err));
    }
    s->ns = fit_mean_ns(s);
    return EV_OK;
}

ev_status fitness_set_baseline(fitness *f, const candidate *baseline, unsigned splits, score *out,
                               ev_error *err) {
    assert(f->baseline_kernel == NULL);
    memset(out, 0, sizeof *out);
    out->stopped = GATE_NONE;
    EV_TRY(copy_baseline(f, baseline, err));
    EV_TRY(fit_twin_baseline(f, baseline, err));
    device_kernel *kernel = NULL;
    EV_TRY(fit_load(f, &f->baseline, &kernel, out, err));
    if (kernel == NULL)
        return ev_fail(err, EV_BAD, "task %s: the baseline does not load: %s", f->t->name,
                       out->reason);
    f->baseline_kernel = kernel;
    return baseline_cases(f, splits, out, err);
}

double fitness_baseline_ns(const fitness *f, const char *case_name) {
    for (size_t i = 0; i < f->case_count; i++) {
        const fit_case *c = f->cases[i];
        if (fit_same_inputs(c->inputs, fit_usual_inputs(f)) && strcmp(c->at->name, case_name) == 0)
            return c->baseline.ns;
    }
    return 0;
}

fitness_cost fitness_cost_of(const fitness *f) {
    return f->cost;
}

/* ---- profiles ---- */

static ev_status profile_loaded(fitness *f, const fit_trial *trial, const task_case *at,
                                fitness_profile_data *out, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(f, at, fit_usual_inputs(f), &c, err));
    fit_run_options options = {.timed = true,
                               .checks = VM_CHECK_INIT,
                               .executions = out->executions,
                               .stalls = out->stalls,
                               .sites = out->sites};
    fit_run *run = malloc(sizeof *run);
    if (run == NULL)
        return ev_fail_memory(err, sizeof *run);
    ev_status status = fit_run_case(f, c, trial, &options, run, err);
    if (status == EV_OK)
        status = fit_restore_after(f, c, run, err);
    if (status == EV_OK) {
        out->launch = run->launch;
        out->steps = run->steps;
        out->outcome = run->outcome;
        out->timing = run->timing;
        out->grid = run->grid;
    }
    free(run);
    return status;
}

void fitness_profile_free(fitness_profile_data *p) {
    free(p->executions);
    free(p->stalls);
    free(p->sites);
    free(p->lines);
    *p = (fitness_profile_data){0};
}

static ev_status profile_kernel(fitness *f, const fit_trial *trial, const task_case *at,
                                fitness_profile_data *out, ev_error *err) {
    fitness_profile_data made;
    memset(&made, 0, sizeof made);
    made.insn_count = vm_module_insn_count(device_kernel_module(trial->kernel));
    made.executions = calloc(made.insn_count + 1, sizeof *made.executions);
    made.stalls = calloc(made.insn_count + 1, sizeof *made.stalls);
    made.sites = calloc(made.insn_count + 1, sizeof *made.sites);
    made.lines = calloc(made.insn_count + 1, sizeof *made.lines);
    bool whole =
        made.executions != NULL && made.stalls != NULL && made.sites != NULL && made.lines != NULL;
    ev_status status = whole ? profile_loaded(f, trial, at, &made, err)
                             : ev_fail_memory(err, made.insn_count * sizeof *made.executions);
    if (status != EV_OK) {
        fitness_profile_free(&made);
        return status;
    }
    for (size_t pc = 0; pc < made.insn_count; pc++) {
        vm_insn_info info;
        vm_module_info(device_kernel_module(trial->kernel), (uint32_t)pc, &info);
        made.lines[pc] = info.source_line;
    }
    *out = made;
    return EV_OK;
}

ev_status fitness_profile(fitness *f, const candidate *c, const task_case *at,
                          fitness_profile_data *out, ev_error *err) {
    fit_trial trial = {.who = c};
    score s = {.stopped = GATE_NONE};
    EV_TRY(fit_twin_pass(f, c, &s, err));
    if (s.stopped != GATE_NONE)
        return ev_fail(err, EV_BAD, "%s", s.reason);
    EV_TRY(device_load_plan(f->d, c->ptx, c->ptx_bytes, c->plan, &trial.kernel, err));
    ev_status status = profile_kernel(f, &trial, at, out, err);
    device_unload(trial.kernel);
    return status;
}
