/* Asserted facts: a part of gate 6. An edit may assert what the compiler cannot prove, such as that
 * an addition does not wrap. A run that breaks the fact may still give right answers today, since
 * the compiler had no use for it. So the variant is built a second time with the facts as checks,
 * and that build runs at every case that is run in full: a check that traps refuses the variant,
 * and its PTX line names the edit. */
#include "fitness/gates/fitness_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words behind the mark on a line of the checked PTX; bytes 0: the line has no mark. */
static const char *fact_at(const fit_trial *trial, uint32_t line, size_t *bytes) {
    *bytes = 0;
    size_t length = 0;
    const char *text = vm_module_line(device_kernel_module(trial->kernel), line, &length);
    const char *wanted = trial->who->checked_mark;
    const char *mark = text != NULL ? memmem(text, length, wanted, strlen(wanted)) : NULL;
    if (mark == NULL)
        return NULL;
    const char *fact = mark + strlen(wanted);
    *bytes = length - (size_t)(fact - text);
    return fact;
}

static void refuse(const fit_case *c, const fit_trial *trial, const fit_result *r, score *s) {
    const vm_trap *trap = &r->run.outcome.fault;
    size_t bytes = 0;
    const char *fact = fact_at(trial, trap->line, &bytes);
    if (fact != NULL)
        fit_stop(s, GATE_PROMOTED, r,
                 "case %s: %.*s, and block (%u, %u, %u) thread (%u, %u, %u) breaks this",
                 c->at->name, (int)bytes, fact, trap->block[0], trap->block[1], trap->block[2],
                 trap->thread[0], trap->thread[1], trap->thread[2]);
    else
        fit_stop(s, GATE_PROMOTED, r, "with its asserted facts as checks: %s", r->reason);
}

static ev_status try_case(fitness *f, const task_case *which, const fit_trial *trial, score *s,
                          ev_error *err) {
    fit_case *c = NULL;
    fit_inputs inputs = fit_inputs_for(f, which, fit_usual_inputs(f), trial->who);
    EV_TRY(fit_case_get(f, which, inputs, &c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    const fit_run_options options = {.checks = VM_CHECK_INIT};
    ev_error why = {.status = EV_OK};
    ev_status status = fit_try_options(f, c, trial, &options, r, &why);
    if (status == EV_INFRA)
        (void)ev_fail(err, EV_INFRA, "%s", why.text);
    if (status == EV_OK && !r->ran)
        refuse(c, trial, r, s);
    free(r);
    return status == EV_INFRA ? EV_INFRA : EV_OK; /* the checks may take too many registers */
}

ev_status fit_asserted(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    if (trial->who->checked_ptx == NULL || s->stopped != GATE_NONE)
        return EV_OK;
    candidate checked = *trial->who;
    checked.ptx = trial->who->checked_ptx;
    checked.ptx_bytes = trial->who->checked_bytes;
    fit_trial own = {.who = &checked};
    uint32_t registers = s->registers;
    EV_TRY(fit_load(f, &checked, &own.kernel, s, err));
    s->registers = registers;
    if (s->stopped != GATE_NONE)
        return EV_OK;
    ev_status status = EV_OK;
    for (size_t i = 0; i < f->t->case_count && status == EV_OK && s->stopped == GATE_NONE; i++) {
        if (f->t->cases[i].use != TASK_TIME)
            status = try_case(f, &f->t->cases[i], &own, s, err);
    }
    device_unload(own.kernel);
    return status;
}
