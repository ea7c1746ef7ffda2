/* Makes the launch that a profile looks at. */
#include "tuner/cli/profile.h"

#include "fitness/gates/fitness.h"
#include "tuner/check/trial.h"
#include "tuner/cli/launch.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>
#include <string.h>

/* ---- a start of a task, or a genome ---- */

typedef struct task_profile {
    task *t;
    const task_start *start;
    const task_case *at;
    device *device;
    fitness *fitness;
    ev_str ptx;
    const char *genome; /* path; NULL: the start */
    trial trial;
} task_profile;

static ev_status choose(task_profile *p, const cli_args *args, ev_error *err) {
    const char *start = cli_text(args, CLI_OPT_PROFILE_START), *at = cli_text(args, CLI_OPT_CASE);
    p->start = start != NULL ? task_find_start(p->t, start) : &p->t->starts[0];
    if (p->start == NULL)
        return ev_fail(err, EV_BAD, "task %s has no start '%s'; evoke list shows them", p->t->name,
                       start);
    if (at != NULL)
        p->at = task_find_case(p->t, at);
    for (size_t i = 0; at == NULL && p->at == NULL && i < p->t->case_count; i++)
        p->at = p->t->cases[i].use == TASK_TIME ? &p->t->cases[i] : NULL;
    if (p->at == NULL && at == NULL)
        p->at = &p->t->cases[0];
    if (p->at == NULL)
        return ev_fail(err, EV_BAD, "task %s has no case '%s'; evoke list shows them", p->t->name,
                       at);
    return EV_OK;
}

static ev_status profile_case(cmd_context *c, task_profile *p, const candidate *subject,
                              const char *source, ev_error *err) {
    fitness_profile_data data = {0};
    EV_TRY(fitness_profile(p->fitness, subject, p->at, &data, err));
    device_kernel *kernel = NULL; /* for the text of its lines */
    case_floor floor = {0};
    uint32_t ranks = 1;
    ev_status status = fitness_floor(p->fitness, p->at, &floor, err);
    if (status == EV_OK)
        status = task_ranks_of(p->t, p->at, &ranks, err);
    if (status == EV_OK)
        status = device_load_plan(p->device, subject->ptx, subject->ptx_bytes, subject->plan,
                                  &kernel, err);
    if (status == EV_OK) {
        profile shown = {.kernel = p->t->name,
                         .at = p->at->name,
                         .device = device_properties_of(p->device),
                         .module = device_kernel_module(kernel),
                         .path = "PTX",
                         .launch = data.launch,
                         .steps = data.steps,
                         .ranks = p->t->ranks != NULL ? ranks : 0,
                         .outcome = &data.outcome,
                         .timing = &data.timing,
                         .grid = &data.grid,
                         .floor = floor,
                         .executions = data.executions,
                         .sites = data.sites,
                         .source = source};
        status = profile_print(c, &shown, err);
    }
    device_unload(kernel);
    fitness_profile_free(&data);
    return status;
}

/* A variant has no lines of the source: its edits moved the code. */
static ev_status build(task_profile *p, ev_error *err) {
    int sm = device_properties_of(p->device)->sm;
    if (p->genome == NULL)
        return variant_build_lined(p->t, p->start, sm, &p->ptx, err);
    EV_TRY(variant_build_start(p->t, p->start, sm, &p->ptx, err));
    return trial_make(p->genome, p->t, sm, &p->trial, err);
}

static ev_status profile_built(cmd_context *c, task_profile *p, ev_error *err) {
    EV_TRY(choose(p, c->args, err));
    EV_TRY(fitness_open_device(p->t, c->args->values[CLI_OPT_DEVICE], &p->device, err));
    EV_TRY(build(p, err));
    EV_TRY(fitness_open(p->t, p->device, NULL, &p->fitness, err));
    candidate start = {.ptx = ev_str_text(&p->ptx),
                       .ptx_bytes = p->ptx.length,
                       .plan = p->start->plan,
                       .start = p->start};
    score *ignored = calloc(1, sizeof *ignored);
    if (ignored == NULL)
        return ev_fail_memory(err, sizeof *ignored);
    ev_status status = fitness_set_baseline(p->fitness, &start, 0, ignored, err);
    free(ignored);
    if (status != EV_OK)
        return status;
    return p->genome == NULL ? profile_case(c, p, &start, p->start->source, err)
                             : profile_case(c, p, &p->trial.made.candidate, NULL, err);
}

ev_status profile_task(cmd_context *c, const char *name_or_path, ev_error *err) {
    task_profile p = {.genome = cli_text(c->args, CLI_OPT_GENOME)};
    if (p.genome != NULL && cli_text(c->args, CLI_OPT_PROFILE_START) != NULL)
        return ev_fail(err, EV_BAD, "--genome names its start itself; leave --start out");
    EV_TRY(task_open(name_or_path, &p.t, err));
    ev_status status = profile_built(c, &p, err);
    trial_free(&p.trial);
    fitness_close(p.fitness);
    device_close(p.device);
    ev_str_free(&p.ptx);
    task_free(p.t);
    return status;
}

/* ---- a PTX file ---- */

static ev_status profile_launch(cmd_context *c, ptx_launch *l, ev_error *err) {
    device_outcome outcome;
    device_timing timing = {0};
    EV_TRY(device_time(l->device, l->kernel, &l->launch, &outcome, &timing, err));
    profile shown = {.kernel = device_kernel_entry(l->kernel)->name,
                     .device = device_properties_of(l->device),
                     .module = device_kernel_module(l->kernel),
                     .path = l->path,
                     .launch = l->geometry,
                     .outcome = &outcome,
                     .timing = &timing,
                     .executions = l->launch.executions,
                     .sites = l->launch.sites};
    return profile_print(c, &shown, err);
}

ev_status profile_ptx(cmd_context *c, const char *path, ev_error *err) {
    ptx_launch l;
    EV_TRY(ptx_launch_open(path, c->args, &l, err));
    size_t insns = vm_module_insn_count(device_kernel_module(l.kernel));
    uint64_t *executions = calloc(insns + 1, sizeof *executions);
    model_site *sites = calloc(insns + 1, sizeof *sites);
    l.launch.executions = executions;
    l.launch.sites = sites;
    ev_status status = executions != NULL && sites != NULL
                           ? profile_launch(c, &l, err)
                           : ev_fail_memory(err, insns * sizeof *sites);
    free(executions);
    free(sites);
    ptx_launch_close(&l);
    return status;
}
