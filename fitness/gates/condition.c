/* Condition: how large an error the sums of a start make where terms cancel.
 *
 * There a plain sum is as far off as its terms are large, and another order of the terms makes
 * another error of that size, larger or smaller by chance. So the start's error on one sample is no
 * limit for a variant that adds in another order. But u sqrt(K) |terms| is the size of such errors
 * at any data (accuracy.h), and a start has a constant that its own errors are of that size. The
 * constant is learnt here from several samples of the ill-conditioned variations, at the search's
 * small cases, from all outputs of a type together, since the largest error over its size of a few
 * samples is a matter of luck, too. Only errors beyond the task's tolerance count: an output that
 * stays within it where terms cancel, such as a compensated sum, has the constant 0, and variants
 * are held to the tolerance and to the start's own error there.
 *
 * Where the oracle does not give the size of the terms, the start's largest error over several
 * samples of the same data and shape takes the place of its error on one. */
#include "fitness/gates/fitness_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 4 /* of each case and variation */

struct fit_condition {
    ev_sha256 start; /* of its PTX */
    double *of;      /* [outputs of the task] */
};

void fit_conditions_free(fitness *f) {
    for (size_t i = 0; i < f->condition_count; i++)
        free(f->conditions[i].of);
    free(f->conditions);
    f->conditions = NULL;
    f->condition_count = 0;
}

/* Takes the errors that the start made at the case. */
static void learn(const fitness *f, const fit_case *c, double *of) {
    for (size_t i = 0; i < c->output_count; i++) {
        const accuracy_output *own = &c->outputs[i].own;
        const task_argument *a = c->arguments[c->outputs[i].argument].what;
        double limit = a->has_tolerance ? a->relative_l2 : f->t->tolerance.relative_l2;
        double beyond = own->relative_l2 - limit;
        if (beyond > 0 && isfinite(beyond) && own->condition > 0)
            of[i] = fmax(of[i], beyond / own->condition);
    }
}

/* Takes the errors of outputs without a scale. */
static void learn_errors(const fitness *f, const fit_case *c, double *of) {
    (void)f;
    for (size_t i = 0; i < c->output_count; i++) {
        const accuracy_output *own = &c->outputs[i].own;
        if (own->condition == 0 && isfinite(own->relative_l2))
            of[i] = fmax(of[i], own->relative_l2);
    }
}

typedef void learner(const fitness *f, const fit_case *c, double *of);

static ev_status run_sample(fitness *f, const task_case *at, fit_inputs inputs,
                            const fit_start *start, learner *learns, double *of, ev_error *err) {
    fit_case *plain = NULL, *c = NULL;
    EV_TRY(fit_case_get(f, at, fit_usual_inputs(f), &plain, err));
    EV_TRY(fit_need_baseline(f, plain, err));
    EV_TRY(fit_case_get(f, at, inputs, &c, err));
    EV_TRY(fit_vary_start(f, plain, c, start, err));
    if (c->varied.is_usable)
        learns(f, c, of);
    return EV_OK;
}

/* Runs the start at one sample of a case with varied data. A sample that the start stops at, or for
 * which there is no memory, tells nothing. */
static ev_status try_sample(fitness *f, const task_case *at, fit_inputs inputs,
                            const fit_start *start, learner *learns, double *of, ev_error *err) {
    ev_error why = {.status = EV_OK};
    ev_status status = run_sample(f, at, inputs, start, learns, of, &why);
    return status == EV_INFRA ? ev_fail(err, EV_INFRA, "%s", why.text) : EV_OK;
}

ev_status fit_errors_of(fitness *f, const fit_case *c, const fit_start *start, double *of,
                        ev_error *err) {
    fit_inputs inputs = c->inputs;
    memset(of, 0, c->output_count * sizeof *of);
    for (uint32_t i = 0; i < SAMPLES; i++, inputs.fresh++)
        EV_TRY(try_sample(f, c->at, inputs, start, learn_errors, of, err));
    return EV_OK;
}

static ev_status try_samples(fitness *f, const task_case *at, const fit_start *start, double *of,
                             ev_error *err) {
    for (int v = FIT_PLAIN + 1; v < FIT_VARIATIONS; v++) {
        fit_inputs inputs = fit_usual_inputs(f);
        inputs.variation = (fit_variation)v;
        for (uint32_t i = 0; !fit_variation_is_benign(inputs.variation) && i < SAMPLES; i++) {
            EV_TRY(try_sample(f, at, inputs, start, learn, of, err));
            inputs.fresh++;
        }
    }
    return EV_OK;
}

static ev_status add(fitness *f, const fit_start *start, ev_error *err) {
    size_t bytes = (f->condition_count + 1) * sizeof *f->conditions;
    fit_condition *more = realloc(f->conditions, bytes);
    if (more == NULL)
        return ev_fail_memory(err, bytes);
    f->conditions = more;
    double *of = calloc(task_all_count(f->t) + 1, sizeof *of); /* outputs are some of these */
    if (of == NULL)
        return ev_fail_memory(err, task_all_count(f->t) * sizeof *of);
    more[f->condition_count++] = (fit_condition){.start = start->sha256, .of = of};
    for (size_t i = 0; i < f->t->case_count; i++) {
        const task_case *at = &f->t->cases[i];
        if (at->split == CORPUS_SEARCH && at->use != TASK_TIME)
            EV_TRY(try_samples(f, at, start, of, err));
    }
    return EV_OK;
}

ev_status fit_condition_of(fitness *f, const fit_start *start, const double **out, ev_error *err) {
    size_t at = 0;
    while (at < f->condition_count && !ev_sha256_equal(&f->conditions[at].start, &start->sha256))
        at++;
    if (at == f->condition_count)
        EV_TRY(add(f, start, err));
    *out = f->conditions[at].of;
    return EV_OK;
}

double fit_constant_at(const fit_case *c, const double *of, size_t output) {
    double constant = of[output];
    for (size_t i = 0; constant > 0 && i < c->output_count; i++) {
        bool is_like = c->arguments[c->outputs[i].argument].what->type ==
                       c->arguments[c->outputs[output].argument].what->type;
        constant = is_like ? fmax(constant, of[i]) : constant;
    }
    return constant;
}
