/* Condition: how large an error the sums of a start make where terms cancel.
 *
 * There a plain sum is as far off as its terms are large, and another order of the terms makes
 * another error of that size, larger or smaller by chance. So the start's error on one sample is no
 * limit for a variant that adds in another order. But u sqrt(K) |terms| is the size of such errors
 * at any data (accuracy.h), and a start has a constant that its own errors are of that size. The
 * constant is learnt here from several samples of the ill-conditioned variations, at the search's
 * small cases. Only errors beyond the task's tolerance count: an output that stays within it where
 * terms cancel, such as a compensated sum, has the constant 0, and variants are held to the
 * tolerance and to the start's own error. */
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
        double beyond = own->relative_l2 - f->t->tolerance.relative_l2;
        if (beyond > 0 && isfinite(beyond) && own->condition > 0)
            of[i] = fmax(of[i], beyond / own->condition);
    }
}

/* A variation that the start stops at, or for which there is no memory, tells nothing. */
static ev_status try_sample(fitness *f, const task_case *at, fit_variation variation,
                            uint32_t sample, const fit_start *start, double *of, ev_error *err) {
    fit_case *plain = NULL, *c = NULL;
    fit_inputs inputs = fit_usual_inputs(f);
    EV_TRY(fit_case_get(f, at, inputs, &plain, err));
    EV_TRY(fit_need_baseline(f, plain, err));
    inputs.variation = variation;
    inputs.fresh += sample;
    EV_TRY(fit_case_get(f, at, inputs, &c, err));
    EV_TRY(fit_vary_start(f, plain, c, start, err));
    if (c->varied.is_usable)
        learn(f, c, of);
    return EV_OK;
}

static ev_status try_samples(fitness *f, const task_case *at, const fit_start *start, double *of,
                             ev_error *err) {
    for (int v = FIT_PLAIN + 1; v < FIT_VARIATIONS; v++) {
        for (uint32_t i = 0; !fit_variation_is_benign((fit_variation)v) && i < SAMPLES; i++) {
            ev_error why = {.status = EV_OK};
            ev_status status = try_sample(f, at, (fit_variation)v, i, start, of, &why);
            if (status == EV_INFRA)
                return ev_fail(err, EV_INFRA, "%s", why.text);
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
    double *of = calloc(f->t->argument_count + 1, sizeof *of); /* outputs are arguments */
    if (of == NULL)
        return ev_fail_memory(err, f->t->argument_count * sizeof *of);
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
