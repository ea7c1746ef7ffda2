/* Stress: tries a candidate at drawn cases, beyond those of its task, for `evoke check --stress`
 * (tuner/stress/stress.c draws them).
 *
 * A shape is legal if the baseline and the candidate's own start agree with the oracle there. Then
 * the candidate is held to the answers, under all checks of the virtual machine. With other data
 * (vary.c), its own start says what is right. A case costs the baseline no more than COST_FACTOR
 * times the dearest small case of the search, unless the caller allows more. */
#include "fitness/gates/fitness_impl.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COST_FACTOR 2
#define COST_LEAST 2e6 /* thread instructions of the baseline */
/* Fuel of the candidate, by the baseline's instructions. Drawn shapes may give a thread next to
 * nothing to do; a candidate with a block of threads for one of the baseline's then executes so
 * many times as much, and is not wrong. */
#define FUEL_FACTOR 2048
#define PROBE_FACTOR 4    /* fuel of a probe, by that of the baseline */
#define ELEMENTS_FACTOR 4 /* of all buffers, by those of the largest small case */
#define ELEMENTS_LEAST 65536

struct fitness_stress {
    fitness *f;
    fit_trial trial;
    fit_start start;
    double cost_most;          /* of a case, in thread instructions of the baseline */
    uint64_t elements_most;    /* of all buffers of a case */
    uint64_t elements_allowed; /* in place of these, if it is more */
    double cost;               /* of the case tried last, in the same unit */
    int pairs;                 /* of the same case */
    uint64_t elements;         /* of the case made last */
    size_t insn_count;
    uint64_t *executions; /* [insn_count], of the last plain run */
    bool *reached;        /* [insn_count] */
};

/* ---- limits ---- */

static bool is_small(const task_case *at) {
    return at->split == CORPUS_SEARCH && at->use != TASK_TIME;
}

/* Elements of all buffers of a case. EV_BAD: an expression has no value at this shape. */
static ev_status elements_of(const task *t, const task_case *at, uint64_t *out, ev_error *err) {
    *out = 0;
    for (size_t i = 0; i < t->argument_count + t->symbol_count; i++) {
        uint64_t count = 0;
        if (t->arguments[i].kind == TASK_SCALAR)
            continue;
        EV_TRY(task_argument_count_of(t, &t->arguments[i], at, &count, err));
        *out += count;
    }
    return EV_OK;
}

/* Runs the baseline at the search's small cases, and sets the limits of a drawn case. */
static ev_status set_limits(fitness_stress *s, ev_error *err) {
    double cost = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < s->f->t->case_count; i++) {
        const task_case *at = &s->f->t->cases[i];
        fit_case *c = NULL;
        uint64_t elements = 0;
        if (!is_small(at))
            continue;
        EV_TRY(elements_of(s->f->t, at, &elements, err));
        EV_TRY(fit_case_get(s->f, at, fit_usual_inputs(s->f), &c, err));
        EV_TRY(fit_need_baseline(s->f, c, err));
        most = elements > most ? elements : most;
        cost = fmax(cost, c->baseline.instructions);
    }
    s->elements_most = ELEMENTS_FACTOR * most;
    if (s->elements_most < ELEMENTS_LEAST)
        s->elements_most = ELEMENTS_LEAST;
    s->cost_most = fmax(COST_FACTOR * cost, COST_LEAST);
    fitness_stress_allow(s, 1, 0);
    s->f->options.fuel_factor = FUEL_FACTOR;
    fitness_stress_forget(s);
    return EV_OK;
}

void fitness_stress_allow(fitness_stress *s, uint32_t cost, uint64_t elements) {
    s->elements_allowed = elements;
    s->f->options.baseline_fuel = (uint64_t)(cost * s->cost_most);
}

static ev_status make_room(fitness_stress *s, ev_error *err) {
    s->insn_count = vm_module_insn_count(device_kernel_module(s->trial.kernel));
    s->executions = calloc(s->insn_count + 1, sizeof *s->executions);
    s->reached = calloc(s->insn_count + 1, sizeof *s->reached);
    s->trial.executions = s->executions;
    return s->executions != NULL && s->reached != NULL
               ? EV_OK
               : ev_fail_memory(err, s->insn_count * sizeof *s->executions);
}

double fitness_stress_cost(const fitness_stress *s) {
    return s->cost;
}

int fitness_stress_pairs(const fitness_stress *s) {
    return s->pairs;
}

uint64_t fitness_stress_elements(const fitness_stress *s) {
    return s->elements;
}

size_t fitness_stress_insns(const fitness_stress *s) {
    return s->insn_count;
}

size_t fitness_stress_reached(const fitness_stress *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->insn_count; i++)
        count += s->reached[i];
    return count;
}

/* ---- opening and closing ---- */

ev_status fitness_stress_open(fitness *f, const candidate *c, fitness_stress **out,
                              fitness_verdict *refused, ev_error *err) {
    assert(f->baseline_kernel != NULL && f->twin == NULL);
    score *load = calloc(1, sizeof *load);
    fitness_stress *s = calloc(1, sizeof *s);
    *out = NULL;
    if (load == NULL || s == NULL) {
        free(load);
        free(s);
        return ev_fail_memory(err, sizeof *s);
    }
    *s = (fitness_stress){.f = f, .trial = {.who = c}, .start = {.ptx = EV_STR_EMPTY}};
    load->stopped = GATE_NONE;
    ev_status status = fit_load(f, c, &s->trial.kernel, load, err);
    bool is_refused = status == EV_OK && load->stopped != GATE_NONE;
    if (is_refused) {
        *refused = (fitness_verdict){.stopped = load->stopped};
        (void)snprintf(refused->reason, sizeof refused->reason, "%s", load->reason);
    }
    if (status == EV_OK && !is_refused)
        status = fit_start_of(f, c, &s->start, err);
    if (status == EV_OK && !is_refused)
        status = make_room(s, err);
    if (status == EV_OK && !is_refused)
        status = set_limits(s, err);
    free(load);
    if (status == EV_OK && !is_refused)
        *out = s;
    else
        fitness_stress_close(s);
    return status;
}

void fitness_stress_close(fitness_stress *s) {
    if (s == NULL)
        return;
    fitness_stress_forget(s);
    fit_start_free(&s->start);
    device_unload(s->trial.kernel);
    free(s->executions);
    free(s->reached);
    free(s);
}

void fitness_stress_forget(fitness_stress *s) {
    fitness *f = s->f;
    for (size_t i = 0; i < f->case_count; i++)
        fit_case_free(f, f->cases[i]);
    f->case_count = 0;
    f->host_bytes = 0;
    fit_paths_free(f); /* they point to cases */
    fit_steps_free(f); /* snapshots do, too; scratch buffers lie on the device */
    device_clear(f->d);
}

/* ---- one case ---- */

/* Turns EV_BAD into a case that tells nothing. */
static ev_status unfit(ev_status status, const ev_error *why, fitness_stood *stood, ev_error *err) {
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why->text);
    if (status == EV_BAD)
        *stood = FITNESS_UNFIT;
    return EV_OK;
}

/* Runs the baseline and the candidate's own start. EV_BAD: one of them is not right there. */
static ev_status need_starts(fitness_stress *s, fit_case *c, ev_error *err) {
    const fit_trial own = {.who = &s->start.who, .kernel = s->start.kernel};
    EV_TRY(fit_need_baseline(s->f, c, err));
    if (!s->start.is_owned || c->is_tried)
        return c->is_tried && !c->is_legal ? ev_fail(err, EV_BAD, "the start is wrong") : EV_OK;
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = fit_try_case(s->f, c, &own, 0, r, err);
    c->is_tried = true;
    c->is_legal = status == EV_OK && r->ok;
    if (status == EV_OK && !r->ok)
        status = ev_fail(err, EV_BAD, "%s", r->reason);
    free(r);
    return status;
}

/* Gives a case of a size that the stress pays for. EV_BAD: it is none. */
static ev_status get_case(fitness_stress *s, const task_case *at, fit_case **out, ev_error *err) {
    uint64_t elements = 0;
    s->elements = 0;
    EV_TRY(elements_of(s->f->t, at, &elements, err));
    if (elements > s->elements_most && elements > s->elements_allowed)
        return ev_fail(err, EV_BAD, "too large");
    s->elements = elements;
    return fit_case_get(s->f, at, fit_usual_inputs(s->f), out, err);
}

/* Whether the case is of a size that the stress pays for, and both starts stand there. */
static ev_status is_legal(fitness_stress *s, const task_case *at, fit_case **plain,
                          fitness_stood *stood, ev_error *err) {
    ev_error why = {.status = EV_OK};
    ev_status status = get_case(s, at, plain, &why);
    if (status == EV_OK)
        status = need_starts(s, *plain, &why);
    return unfit(status, &why, stood, err);
}

static void judge(const fitness_stress *s, const fit_case *c, const fit_result *r,
                  fitness_stood *stood, fitness_verdict *out) {
    fit_fill_verdict(r, c, s->f, out);
    *stood = r->ok ? FITNESS_STOOD : FITNESS_FAILED;
}

/* A launch that does not fit the device is the candidate's fault, since its start's fits. */
static ev_status blame(ev_status status, const ev_error *why, const task_case *at, fit_result *r,
                       ev_error *err) {
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why->text);
    if (status == EV_BAD) {
        *r = (fit_result){.ok = false};
        (void)snprintf(r->reason, sizeof r->reason, "case %s: %s", at->name, why->text);
    }
    return EV_OK;
}

static void note_reached(fitness_stress *s, bool stood) {
    for (size_t i = 0; i < s->insn_count; i++)
        s->reached[i] |= stood && s->executions[i] > 0;
    memset(s->executions, 0, s->insn_count * sizeof *s->executions);
}

static ev_status probe(fitness_stress *s, const task_case *at, ev_error *err) {
    fit_case *c = NULL;
    fit_run run;
    EV_TRY(get_case(s, at, &c, err));
    EV_TRY(fit_case_get(s->f, at, fit_inputs_for(s->f, at, fit_usual_inputs(s->f), s->trial.who),
                        &c, err));
    const fit_run_options options = {.all_blocks = true,
                                     .checks = VM_CHECK_NONE,
                                     .fuel = PROBE_FACTOR * s->f->options.baseline_fuel,
                                     .executions = s->executions};
    EV_TRY(fit_run_case(s->f, c, &s->trial, &options, &run, err));
    s->cost = (double)run.outcome.counters.thread_instructions;
    return fit_restore_after(s->f, c, &run, err);
}

ev_status fitness_stress_probe(fitness_stress *s, const task_case *at, bool *reaches,
                               ev_error *err) {
    ev_error why = {.status = EV_OK};
    s->cost = 0;
    ev_status status = probe(s, at, &why);
    *reaches = false;
    for (size_t i = 0; i < s->insn_count; i++)
        *reaches |= s->executions[i] > 0 && !s->reached[i];
    memset(s->executions, 0, s->insn_count * sizeof *s->executions);
    return status == EV_INFRA ? ev_fail(err, EV_INFRA, "%s", why.text) : EV_OK;
}

/* *usable false: the case with the candidate's alignments does not fit the machine. */
static ev_status try_plain(fitness_stress *s, const task_case *at, const task_case_inputs *with,
                           bool *usable, fit_result *r, ev_error *err) {
    ev_error why = {.status = EV_OK};
    fit_case *c = NULL;
    bool tried = false;
    fit_inputs inputs = fit_inputs_for(s->f, at, fit_usual_inputs(s->f), s->trial.who);
    ev_status status = fit_case_get(s->f, at, inputs, &c, &why);
    *usable = status != EV_BAD;
    if (!*usable)
        return EV_OK;
    if (status == EV_OK)
        status = fit_try_case(s->f, c, &s->trial, with->schedule, r, &why);
    if (status == EV_OK && r->ok && with->schedule == 0) {
        fit_result first = *r;
        status = fit_try_begins(s->f, &s->trial, at, &tried, r, &why);
        if (!tried)
            *r = first;
    }
    note_reached(s, status == EV_OK && r->ok);
    return blame(status, &why, at, r, err);
}

static ev_status try_legal(fitness_stress *s, const task_case *at, fit_case *plain,
                           const task_case_inputs *with, fit_result *r, fitness_stood *stood,
                           fitness_verdict *out, ev_error *err) {
    ev_error why = {.status = EV_OK};
    bool usable = true;
    if (with->variation == TASK_PLAIN) {
        EV_TRY(try_plain(s, at, with, &usable, r, err));
    } else {
        ev_status status =
            fit_try_variation(s->f, at, with, &s->trial, &s->start, &usable, r, &why);
        EV_TRY(blame(status, &why, at, r, err));
    }
    if (usable)
        judge(s, plain, r, stood, out);
    else
        *stood = FITNESS_UNFIT;
    return EV_OK;
}

ev_status fitness_stress_try(fitness_stress *s, const task_case *at, const task_case_inputs *with,
                             fitness_stood *stood, fitness_verdict *out, ev_error *err) {
    fit_case *plain = NULL;
    s->cost = 0;
    s->pairs = 0;
    assert(at->use != TASK_TIME && with->fresh == at->inputs.fresh);
    *stood = FITNESS_STOOD;
    EV_TRY(is_legal(s, at, &plain, stood, err));
    if (*stood == FITNESS_UNFIT)
        return EV_OK;
    assert(plain != NULL);
    s->cost = plain->baseline.instructions;
    s->pairs = fit_pairs_of(s->f, plain, &s->trial);
    fit_result *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = try_legal(s, at, plain, with, r, stood, out, err);
    free(r);
    return status;
}
