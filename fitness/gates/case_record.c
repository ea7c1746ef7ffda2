/* The record of a case: its inputs and answers, for files that other programs read. */
#include "fitness/gates/fitness_impl.h"

#include <stdlib.h>
#include <string.h>

/* The case with the data that its "inputs" ask for. A shared buffer has no data of its own. */
static ev_status get_case(fitness *f, const task_case *at, fit_case **out, ev_error *err) {
    fit_inputs inputs = fit_usual_inputs(f);
    if (!task_variation_aliases(at->inputs.variation)) {
        inputs.variation = (fit_variation)at->inputs.variation;
        inputs.power = at->inputs.power;
    }
    return fit_case_get(f, at, inputs, out, err);
}

static const fit_output *output_of(const fit_case *c, size_t argument) {
    for (size_t i = 0; i < c->output_count; i++) {
        if (c->outputs[i].argument == argument)
            return &c->outputs[i];
    }
    return NULL;
}

/* The answer as the kernel's type holds it. 64-bit whole numbers are those of the baseline, where
 * it has them. */
static ev_status round_answer(const fit_argument *a, const fit_output *o, void **out,
                              ev_error *err) {
    ev_type type = a->what->type;
    *out = calloc(a->count + 1, ev_type_bytes(type));
    if (*out == NULL)
        return ev_fail_memory(err, (a->count + 1) * ev_type_bytes(type));
    for (uint64_t i = 0; i < a->count; i++) {
        ev_type_set(type, *out, i, o->want[i]);
        if (o->exact != NULL && ev_type_get(type, o->exact, i) == o->want[i])
            memcpy((char *)*out + i * sizeof o->exact[i], &o->exact[i], sizeof o->exact[i]);
    }
    return EV_OK;
}

static ev_status visit_one(const fitness *f, const fit_case *c, size_t index,
                           fitness_datum_visit *visit, void *context, ev_error *err) {
    const fit_argument *a = &c->arguments[index];
    const fit_output *o = output_of(c, index);
    fitness_datum datum = {.what = a->what,
                           .is_symbol = index >= f->t->argument_count && a->owner == NULL,
                           .count = a->count,
                           .value = a->value,
                           .begins = a->before};
    void *expected = NULL;
    if (o != NULL)
        EV_TRY(round_answer(a, o, &expected, err));
    datum.expected = expected;
    ev_status status = visit(context, &datum, err);
    free(expected);
    return status;
}

ev_status fitness_case_data(fitness *f, const task_case *at, fitness_datum_visit *visit,
                            void *context, ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(get_case(f, at, &c, err));
    if (f->t->oracle_kind == TASK_ORACLE_BASELINE)
        EV_TRY(fit_need_baseline(f, c, err));
    else
        EV_TRY(fit_answer_all(f, c, err));
    for (size_t i = 0; i < task_all_count(f->t); i++)
        EV_TRY(visit_one(f, c, i, visit, context, err));
    return EV_OK;
}
