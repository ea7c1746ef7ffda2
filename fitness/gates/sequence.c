/* Sequence: times the launches of a candidate together, on a device that measures times. They run
 * in order on one stream, on one memory, and in turn with those of the baseline. A plain plan is a
 * sequence of one launch. */
#include "fitness/gates/fitness_impl.h"
#include "fitness/gates/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The launches of a walk, with their parameters. */
typedef struct packed {
    const device_kernel **kernels;
    device_launch *launches;
    fit_params *params;
    size_t count;
} packed;

static void packed_free(packed *p) {
    for (size_t i = 0; i < p->count && p->params != NULL; i++)
        fit_params_free(&p->params[i]);
    free(p->params);
    free((void *)p->kernels);
    free(p->launches);
    *p = (packed){0};
}

static device_sequence sequence_of(const packed *p) {
    return (device_sequence){.kernels = p->kernels, .launches = p->launches, .count = p->count};
}

static ev_status fail_at(const fit_walk *w, size_t index, ev_status status, ev_error *err) {
    char name[160];
    if (launch_plan_is_plain(w->who->plan))
        return status;
    task_step_name(w->who->plan, &w->steps, index, name, sizeof name);
    return ev_wrap(err, status, "%s", name);
}

static ev_status pack_launch(fit_walk *w, size_t index, packed *p, ev_error *err) {
    const task_step *step = &w->steps.all[index];
    const device_kernel *kernel = device_kernel_of(w->kernel, step->launch);
    w->c->now = (fit_now){.step = step, .index = index, .scratch = w->scratch};
    p->kernels[index] = kernel;
    p->launches[index] = device_launch_of(&step->at);
    return fit_params_pack(w->f, w->c, device_kernel_entry(kernel), &p->params[index],
                           &p->launches[index], err);
}

/* The caller frees *p, also after a failure. */
static ev_status pack(fit_walk *w, packed *p, ev_error *err) {
    size_t count = w->steps.count;
    *p = (packed){.count = count};
    p->kernels = calloc(count, sizeof *p->kernels);
    p->launches = calloc(count, sizeof *p->launches);
    p->params = calloc(count, sizeof *p->params);
    if (p->kernels == NULL || p->launches == NULL || p->params == NULL)
        return ev_fail_memory(err, count * sizeof *p->launches);
    for (size_t i = 0; i < count; i++) {
        ev_status status = pack_launch(w, i, p, err);
        if (status != EV_OK)
            return fail_at(w, i, status, err);
    }
    return EV_OK;
}

/* ---- what the run says ---- */

static double threads_of(const launch_geometry *l) {
    return (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] * l->block[2];
}

/* The launch with the most threads stands for all, since none has a time of its own. */
static void describe(const fit_walk *w, fit_run *out) {
    out->share = out->whole = 1;
    out->launch = w->steps.all[0].at;
    for (size_t i = 1; i < w->steps.count; i++) {
        if (threads_of(&w->steps.all[i].at) > threads_of(&out->launch))
            out->launch = w->steps.all[i].at;
    }
    if (launch_plan_is_plain(w->who->plan))
        return;
    out->steps = w->steps.count;
    if (out->outcome.ok)
        return;
    if (out->outcome.launch < w->steps.count)
        task_step_name(w->who->plan, &w->steps, out->outcome.launch, out->where, sizeof out->where);
    else
        (void)snprintf(out->where, sizeof out->where, "one of %zu launches in a row",
                       w->steps.count);
}

/* ---- timing ---- */

static ev_status time_packed(fit_walk *w, const packed *own, device_rival *rival, fit_run *out,
                             ev_error *err) {
    const device_sequence what = sequence_of(own);
    EV_TRY(device_reset(w->f->d, FIT_POISON, err));
    ev_status status =
        device_time_sequence(w->f->d, &what, rival, &out->outcome, &out->timing, err);
    if (status != EV_OK && out->outcome.launch < what.count)
        return fail_at(w, out->outcome.launch, status, err);
    return status;
}

static ev_status time_against(fit_walk *w, const packed *own, fit_run *out, ev_error *err) {
    fitness *f = w->f;
    fit_walk base;
    packed theirs = {0};
    ev_status status = fit_walk_begin(f, w->c, &f->baseline, f->baseline_kernel, &base, err);
    if (status == EV_OK)
        status = fit_case_fill(f, w->c, f->baseline_kernel, err);
    if (status == EV_OK)
        status = pack(&base, &theirs, err);
    if (status == EV_OK) {
        device_rival rival = {.what = sequence_of(&theirs)};
        status = time_packed(w, own, &rival, out, err);
        out->baseline = rival.timing;
    }
    packed_free(&theirs);
    fit_walk_end(&base);
    return status;
}

static bool is_against(const fit_walk *w, const fit_run_options *options) {
    return options->against_baseline && w->f->twin != NULL && w->c->baseline.done &&
           w->kernel != w->f->baseline_kernel;
}

ev_status fit_run_sequence(fitness *f, fit_case *c, const fit_trial *trial,
                           const fit_run_options *options, fit_run *out, ev_error *err) {
    fit_walk w;
    packed own = {0};
    ev_status status = fit_walk_begin(f, c, trial->who, trial->kernel, &w, err);
    if (status == EV_OK)
        status = pack(&w, &own, err);
    if (status == EV_OK)
        status = is_against(&w, options) ? time_against(&w, &own, out, err)
                                         : time_packed(&w, &own, NULL, out, err);
    if (status == EV_OK)
        describe(&w, out);
    packed_free(&own);
    fit_walk_end(&w);
    return status;
}
