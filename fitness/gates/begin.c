/* Begin: other initial contents for buffers that are read and written.
 *
 * If an inout buffer begins with the same number everywhere in all small cases (zeros, mostly), a
 * variant may write where the kernel adds, and no comparison sees the difference. So the gates run
 * further cases, in which such buffers begin with data: positive numbers, drawn element by element.
 * Their size is that of the answers, so that a lost term is no rounding error. The reference is the
 * baseline or the oracle at the same contents.
 *
 * A case with other contents is legal if the baseline runs there and agrees with its oracle. An
 * oracle that knows only the task's own beginning disagrees, and the case is left out. A task whose
 * callers always begin with the constant says so ("initial": "constant"), and nothing is tried. */
#include "fitness/gates/fitness_impl.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Numbers of a buffer without a scale: [1, 9] for whole numbers, which may be indices. */
#define WHOLE_MOST 9.0
/* The largest number that is drawn, which every float type holds with room for sums. */
#define SCALE_MOST 1e4

static bool has_hidden(const task *t) {
    for (size_t i = 0; i < task_all_count(t); i++) {
        if (task_argument_hides(t, &t->arguments[i]))
            return true;
    }
    return false;
}

/* ---- contents ---- */

static const fit_output *output_of(const fit_case *c, const task_argument *what) {
    for (size_t i = 0; i < c->output_count; i++) {
        if (c->arguments[c->outputs[i].argument].what == what)
            return &c->outputs[i];
    }
    return NULL;
}

/* Root mean square of the answers at the task's own beginning; 1: none are known. */
static double scale_of(const fit_case *plain, const task_argument *what) {
    const fit_output *o = output_of(plain, what);
    accuracy_sum squares = {0, 0};
    if (o == NULL || o->want == NULL)
        return 1;
    uint64_t count = plain->arguments[o->argument].count;
    for (uint64_t i = 0; i < count; i++)
        accuracy_sum_add(&squares, o->want[i] * o->want[i]);
    double mean = sqrt(accuracy_sum_of(&squares) / (double)count);
    return isfinite(mean) && mean > 0 ? fmin(mean, SCALE_MOST) : 1;
}

/* Whether numbers drawn one by one may keep the domain. */
static bool takes_any(const task_range *range) {
    return !range->sorted && !range->distinct;
}

ev_status fit_begin_request(fitness *f, const fit_case *c, const fit_argument *a,
                            corpus_request *request, bool *made, ev_error *err) {
    *made = c->inputs.begins && task_argument_hides(f->t, a->what) && takes_any(&a->range);
    if (!*made)
        return EV_OK;
    fit_case *plain = NULL;
    fit_inputs inputs = c->inputs;
    inputs.begins = false;
    EV_TRY(fit_case_get(f, c->at, inputs, &plain, err));
    EV_TRY(fit_need_baseline(f, plain, err));
    double scale = scale_of(plain, a->what);
    bool is_whole = !ev_type_is_float(a->what->type);
    request->generator = corpus_generator_find("uniform");
    request->file = NULL;
    assert(request->generator != NULL && request->generator->parameter_count == 3);
    request->values[0] = is_whole ? 1 : 0.5 * scale;
    request->values[1] = is_whole ? WHOLE_MOST : 1.5 * scale;
    request->values[2] = 0; /* no number comes again */
    if (a->what->domain.is_given) {
        for (size_t i = 0; i < 2; i++)
            request->values[i] = fmin(fmax(request->values[i], a->range.low), a->range.high);
    }
    return corpus_request_check(request, err);
}

/* ---- whether the case is legal ---- */

static ev_status try_baseline(fitness *f, const task_case *at, fit_inputs inputs, fit_case **out,
                              ev_error *err) {
    fit_case *c = NULL;
    EV_TRY(fit_case_get(f, at, inputs, &c, err));
    c->is_drawn = true; /* it has no time and no rows */
    *out = c;
    if (c->is_tried)
        return EV_OK;
    ev_error why = {.status = EV_OK};
    ev_status status = fit_need_baseline(f, c, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    c->is_tried = true;
    c->is_legal = status == EV_OK;
    return EV_OK;
}

ev_status fit_begin_is_legal(fitness *f, const task_case *at, uint32_t fresh, bool *legal,
                             ev_error *err) {
    *legal = has_hidden(f->t);
    if (!*legal)
        return EV_OK;
    if (f->twin != NULL) /* a fault there costs nothing */
        EV_TRY(fit_begin_is_legal(f->twin, at, fresh, legal, err));
    if (!*legal)
        return EV_OK;
    fit_inputs inputs = fit_usual_inputs(f);
    fit_case *c = NULL;
    inputs.fresh = fresh;
    inputs.begins = true;
    EV_TRY(try_baseline(f, at, inputs, &c, err));
    *legal = c->is_legal;
    return EV_OK;
}

/* ---- runs ---- */

static ev_status run_one(fitness *f, const task_case *which, const fit_trial *trial, gate at,
                         score *s, ev_error *err) {
    fit_inputs inputs = fit_usual_inputs(f);
    bool legal = false;
    EV_TRY(fit_begin_is_legal(f, which, inputs.fresh, &legal, err));
    if (!legal)
        return EV_OK;
    inputs.begins = true;
    size_t rows = s->case_count;
    EV_TRY(fit_gate_case(f, which, inputs, trial, at, s, err));
    s->case_count = rows < s->case_count ? rows : s->case_count;
    return EV_OK;
}

ev_status fit_begin_cases(fitness *f, corpus_split split, size_t most, const fit_trial *trial,
                          gate at, score *s, ev_error *err) {
    size_t done[TASK_SMOKE + 1] = {0};
    for (size_t i = 0; i < f->t->case_count && s->stopped == GATE_NONE; i++) {
        const task_case *which = &f->t->cases[i];
        if (which->split != split || which->use == TASK_TIME || done[which->use] == most)
            continue;
        done[which->use]++;
        EV_TRY(run_one(f, which, trial, at, s, err));
    }
    return EV_OK;
}
