/* Site weights: the share of a start's run that each instruction of its base module takes, from one
 * profile in the virtual machine. Draws of edits are weighted by these (ir_mutate). */
#include "tuner/worker/worker.h"

#include <stdlib.h>

/* least weight, relative to the mean: an instruction that never runs may matter, too */
#define LEAST 0.2
/* greatest weight, relative to the mean: one hot spot must not take all draws */
#define MOST 16.0

static const task_case *timed_case(const task *t) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].split == CORPUS_SEARCH && t->cases[i].use == TASK_TIME)
            return &t->cases[i];
    }
    return NULL;
}

/* Adds up weights: half from the share of the executions, half from the share of the stalls. The
 * mean weight is 1 if all PTX has a line. */
static void add_up(const fitness_profile_data *p, double *heat, size_t count) {
    double executions = 0, stalls = 0;
    for (size_t pc = 0; pc < p->insn_count; pc++) {
        executions += (double)p->executions[pc];
        stalls += p->stalls[pc];
    }
    for (size_t pc = 0; pc < p->insn_count; pc++) {
        size_t line = p->lines[pc];
        if (line == 0 || line > count)
            continue;
        double share = executions > 0 ? (double)p->executions[pc] / executions : 0;
        share += stalls > 0 ? p->stalls[pc] / stalls : 0;
        heat[line - 1] += share * (double)count / 2;
    }
    for (size_t i = 0; i < count; i++) {
        heat[i] += LEAST;
        heat[i] = heat[i] < MOST ? heat[i] : MOST;
    }
}

static ev_status profile(worker *w, worker_build *b, const task_case *at, double *heat,
                         ev_error *err) {
    char *ptx = NULL;
    EV_TRY(ir_base_marked_ptx(b->base, &ptx, &b->candidate.ptx_bytes, err));
    b->candidate.ptx = ptx;
    b->candidate.is_unmodified = false; /* another code than the start's */
    fitness_profile_data p = {0};
    ev_status status = fitness_profile(w->fitness, &b->candidate, at, &p, err);
    if (status == EV_OK && p.outcome.ok)
        add_up(&p, heat, ir_base_insn_count(b->base));
    else if (status == EV_OK)
        status = ev_fail(err, EV_BAD, "it traps");
    fitness_profile_free(&p);
    free(ptx);
    return status;
}

/* Measures the weights. *heat is NULL if the start cannot be profiled at these macros. */
static ev_status measure(worker *w, const ir_genome *genome, double **heat, ev_error *err) {
    const task_case *at = timed_case(w->t);
    bool can = at && device_properties_of(w->device)->modelled;
    ir_genome *own = can ? ir_genome_clone(genome) : NULL;
    worker_build b = {0};
    *heat = NULL;
    if (!can)
        return EV_OK;
    if (!own)
        return ev_fail_memory(err, 0);
    EV_TRY(worker_build_begin(w, own, &b, err));
    *heat = calloc(ir_base_insn_count(b.base) + 1, sizeof **heat);
    ev_status status = *heat ? profile(w, &b, at, *heat, err) : ev_fail_memory(err, 0);
    worker_build_end(&b);
    if (status != EV_OK) {
        free(*heat);
        *heat = NULL;
    }
    return status == EV_BAD ? EV_OK : status;
}

static json_t *heat_to_json(const double *heat, size_t count) {
    json_t *list = heat ? json_array() : json_null();
    for (size_t i = 0; heat && i < count; i++)
        (void)json_array_append_new(list, json_real(heat[i]));
    return list;
}

static ev_status heat_from_json(const json_t *list, size_t count, double **heat, ev_error *err) {
    *heat = NULL;
    if (json_is_null(list))
        return EV_OK;
    if (json_array_size(list) != count)
        return ev_fail(err, EV_INFRA, "another worker made a profile of another base");
    *heat = calloc(count + 1, sizeof **heat);
    if (!*heat)
        return ev_fail_memory(err, count * sizeof **heat);
    for (size_t i = 0; i < count; i++)
        (*heat)[i] = json_number_value(json_array_get(list, i));
    return EV_OK;
}

/* Makes the weights, or takes those that another worker measured. */
static ev_status make(worker *w, const ir_genome *genome, size_t count, double **heat,
                      ev_error *err) {
    json_t *known = NULL;
    EV_TRY(bases_want(w->bases, "heat", genome, &known, err));
    if (known) {
        ev_status status = heat_from_json(known, count, heat, err);
        json_decref(known);
        return status;
    }
    EV_TRY(measure(w, genome, heat, err));
    ev_status status = bases_made(w->bases, "heat", genome, heat_to_json(*heat, count), err);
    if (status != EV_OK)
        free(*heat);
    return status;
}

ev_status worker_heat(void *context, const ir_genome *genome, const double **out, ev_error *err) {
    worker *w = context;
    const ir_base *base = NULL;
    EV_TRY(bases_get(w->bases, genome, &base, err));
    if (!bases_heat(w->bases, genome, out)) {
        double *heat = NULL;
        EV_TRY(make(w, genome, ir_base_insn_count(base), &heat, err));
        bases_set_heat(w->bases, genome, heat);
        (void)bases_heat(w->bases, genome, out);
    }
    return EV_OK;
}
