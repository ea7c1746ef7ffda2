/* Twins: what a candidate has to show in the virtual machine before a real GPU sees it. */
#include "fitness/gates/fitness_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ev_status fit_twin_open(fitness *f, ev_error *err) {
    const char *id = device_properties_of(f->d)->twin;
    if (id[0] == '\0')
        return EV_OK;
    EV_TRY(device_open(id, &f->twin_device, err));
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

/* What stopped it there stops it here. */
static void take_over(const fitness *f, const score *there, score *s) {
    s->thread_instructions += there->thread_instructions;
    if (there->stopped == GATE_NONE)
        return;
    s->stopped = there->stopped;
    (void)snprintf(s->reason, sizeof s->reason, "on %s: %.500s",
                   device_properties_of(f->twin_device)->id, there->reason);
    (void)snprintf(s->trap, sizeof s->trap, "%s", there->trap);
}

ev_status fit_twin_pass(fitness *f, const candidate *who, score *s, ev_error *err) {
    if (f->twin == NULL)
        return EV_OK;
    ev_sha256 hash = ev_sha256_of(who->ptx, who->ptx_bytes);
    if (who->was_screened) {
        f->has_passed = true;
        f->passed = hash;
    }
    if (f->has_passed && ev_sha256_equal(&hash, &f->passed))
        return EV_OK;
    score *there = malloc(sizeof *there);
    if (there == NULL)
        return ev_fail_memory(err, sizeof *there);
    ev_status status = fit_judge(f->twin, who, fit_safe_ladder, there, err);
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

/* ---- the floor ---- */

static ev_status run_for_floor(fitness *twin, const fit_trial *trial, const task_case *which,
                               double *ns, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(twin, which, twin->options.fresh, &c, err));
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
    EV_TRY(device_load(f->twin_device, who->ptx, who->ptx_bytes, launch_plan_entry(who->plan),
                       &trial.kernel, err));
    ev_status status = run_for_floor(f->twin, &trial, which, ns, err);
    device_unload(trial.kernel);
    return status;
}
