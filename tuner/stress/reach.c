/* Reach: the part of the stress that comes after the drawn shapes. It brings code under all checks
 * that neither they nor the small cases of the task run.
 *
 * A variant may have code for large or for certain sizes only: a copy for one value of an argument,
 * a copy for interior blocks, the turns that fill a tile. At the timed cases such code runs in a
 * few blocks, and with one kind of data. So the stress borrows sizes from the timed cases: a small
 * case gets one whole size of a timed case, or two, as long as the candidate has instructions that
 * no run reached. Coverage decides, as in fuzzing (Zalewski, "AFL technical details"): a probe
 * without checks tells whether a case reaches new instructions; only such a case is tried, with all
 * data and schedules; and further sizes are borrowed by that case first. */
#include "tuner/stress/inside.h"

#include "base/proc.h"
#include "base/stop.h"

#include <stdlib.h>
#include <string.h>

#define PROBES_MOST 64
#define COST_ALLOWANCE 64      /* such cases may cost so many times as much as drawn ones ... */
#define ELEMENTS_EACH 16777216 /* ... and have so many elements */
#define COST_MOST 4e9          /* thread instructions at all of them, about */
#define ALL_DATA 1e7           /* thread instructions of the baseline: all data at cheaper cases */
#define NUMBER_FROM 1000000u   /* of their names, behind those of drawn shapes */

typedef struct reaching {
    stressing *s;
    stress_case probed[PROBES_MOST];
    bool has_gained[PROBES_MOST]; /* it reached new instructions, and stood */
    size_t count;
    uint64_t elements; /* of all of them */
    double cost;       /* of all, in thread instructions: the candidate's, and the baseline's where
                          the case was tried */
} reaching;

static bool same_shape(const stress_case *a, const stress_case *b) {
    for (size_t i = 0; i < a->at.shape_count; i++) {
        if (a->shape[i].value.real != b->shape[i].value.real)
            return false;
    }
    return a->from == b->from;
}

static bool is_probed(const reaching *r, const stress_case *c) {
    for (size_t i = 0; i < r->count; i++) {
        if (same_shape(&r->probed[i], c))
            return true;
    }
    return false;
}

static bool is_done(const reaching *r) {
    const fitness_stress *runs = r->s->runs;
    return r->s->failed || ev_stop_asked() || ev_clock_now() >= r->s->end ||
           r->count == PROBES_MOST || r->cost >= COST_MOST ||
           r->elements >= r->s->limits.elements ||
           fitness_stress_reached(runs) == fitness_stress_insns(runs);
}

/* ---- the task's own small cases ---- */

static bool is_small(const stressing *s, const task_case *at) {
    return at->split == CORPUS_SEARCH && at->use != TASK_TIME && stress_is_inside(s, at);
}

/* Gate 6 tries them with all data and schedules, under their own names. */
static ev_status try_own(const reaching *r, ev_error *err) {
    const task *t = r->s->subject->t;
    for (size_t i = 0; i < t->case_count && !is_done(r); i++) {
        stress_case c;
        if (!is_small(r->s, &t->cases[i]))
            continue;
        stress_begin_case(r->s, &t->cases[i], NUMBER_FROM, &c);
        task_case_inputs with = c.at.inputs;
        with.variation = TASK_PLAIN;
        with.power = 0;
        EV_TRY(stress_try_with(r->s, &c, with, NULL, err));
        fitness_stress_forget(r->s->runs);
    }
    return EV_OK;
}

/* ---- borrowed sizes ---- */

static bool has_whole_data(const task *t) {
    for (size_t i = 0; i < t->argument_count + t->symbol_count; i++) {
        const task_argument *a = &t->arguments[i];
        if (task_argument_has_data(a) && !ev_type_is_float(a->type))
            return true;
    }
    return false;
}

/* The size of a case by name. NULL: the case has none, or a real number. */
static const expr_value *whole_of(const task_case *at, const char *name) {
    for (size_t i = 0; i < at->shape_count; i++) {
        if (strcmp(at->shape[i].name, name) == 0)
            return at->shape[i].value.is_real ? NULL : &at->shape[i].value;
    }
    return NULL;
}

/* Gives a case the size `index` of a timed case. False: it has that size already. */
static bool borrow(const stressing *s, const task_case *timed, size_t index, stress_case *c) {
    const expr_value *size = whole_of(timed, c->shape[index].name);
    const launch_range *range = stress_range_of(s, c->shape[index].name);
    if (size == NULL || size->real == c->shape[index].value.real)
        return false;
    c->shape[index].value =
        range != NULL ? expr_of_whole(stress_fit_range(range, size->whole)) : *size;
    return true;
}

/* Tries a case that costs much with another schedule, with shared buffers, since code of certain
 * sizes may move loads past stores, and with the data that bring equal and extreme indices. */
static ev_status try_few(stressing *s, stress_case *c, ev_pcg *rng, ev_error *err) {
    static const task_variation wholes[] = {TASK_TIES, TASK_SMALL, TASK_EXTREMES};
    task_case_inputs with = c->at.inputs;
    with.schedule = 1 + (uint64_t)ev_pcg_next(rng);
    EV_TRY(stress_try_with(s, c, with, NULL, err));
    with.schedule = 0;
    with.variation = TASK_ALIASED;
    EV_TRY(stress_try_pairs(s, c, with, rng, err));
    with.variation = TASK_ALIASED_SMALL;
    EV_TRY(stress_try_pairs(s, c, with, rng, err));
    for (size_t i = 0; has_whole_data(s->subject->t) && i < 3; i++) {
        with.variation = wholes[i];
        EV_TRY(stress_try_with(s, c, with, NULL, err));
    }
    return EV_OK;
}

/* Tries a case that reaches new instructions, if it costs little with all data and schedules. */
static ev_status try_case(reaching *r, stress_case *c, ev_error *err) {
    bool reaches = false;
    fitness_stood stood = FITNESS_UNFIT;
    size_t number = r->count++;
    ev_pcg rng = ev_pcg_seed(r->s->limits.seed, NUMBER_FROM + number);
    EV_TRY(fitness_stress_probe(r->s->runs, &c->at, &reaches, err));
    r->elements += fitness_stress_elements(r->s->runs);
    r->cost += fitness_stress_cost(r->s->runs);
    if (reaches)
        EV_TRY(stress_try_with(r->s, c, c->with, &stood, err));
    r->has_gained[number] = stood == FITNESS_STOOD;
    if (r->has_gained[number]) {
        double cost = fitness_stress_cost(r->s->runs);
        r->cost += cost;
        EV_TRY(cost <= ALL_DATA ? stress_try_others(r->s, c, &rng, err)
                                : try_few(r->s, c, &rng, err));
    }
    fitness_stress_forget(r->s->runs);
    return EV_OK;
}

/* Tries `from` with the sizes of `timed` that `which` names by a bit each. */
static ev_status try_borrowed(reaching *r, const stress_case *from, const task_case *timed,
                              uint32_t which, ev_error *err) {
    bool differs = true;
    if (is_done(r))
        return EV_OK;
    uint32_t number = NUMBER_FROM + 1 + (uint32_t)r->count;
    stress_case *c = &r->probed[r->count];
    stress_begin_case(r->s, from->from, number, c);
    memcpy(c->shape, from->shape, sizeof c->shape);
    for (size_t i = 0; i < c->at.shape_count; i++)
        differs = differs && ((which >> i & 1) == 0 || borrow(r->s, timed, i, c));
    c->at.inputs = c->with = (task_case_inputs){.fresh = number};
    if (!differs || is_probed(r, c) || !stress_is_inside(r->s, &c->at))
        return EV_OK;
    return try_case(r, c, err);
}

/* Borrows `sizes` sizes at once, 1 or 2, of each timed case. */
static ev_status borrow_each(reaching *r, const stress_case *from, unsigned sizes, ev_error *err) {
    const task *t = r->s->subject->t;
    for (size_t k = 0; k < t->case_count; k++) {
        for (size_t i = 0; t->cases[k].use == TASK_TIME && i < from->at.shape_count; i++) {
            if (sizes == 1)
                EV_TRY(try_borrowed(r, from, &t->cases[k], 1u << i, err));
            for (size_t j = i + 1; sizes == 2 && j < from->at.shape_count; j++)
                EV_TRY(try_borrowed(r, from, &t->cases[k], 1u << i | 1u << j, err));
        }
    }
    return EV_OK;
}

/* Borrows one size for a small case, then two, each time followed by one more for the cases that
 * gained. */
static ev_status grow(reaching *r, const task_case *small, ev_error *err) {
    stress_case from;
    size_t next = r->count;
    stress_begin_case(r->s, small, NUMBER_FROM, &from);
    for (unsigned sizes = 1; sizes <= 2; sizes++) {
        EV_TRY(borrow_each(r, &from, sizes, err));
        for (; next < r->count; next++) {
            if (r->has_gained[next])
                EV_TRY(borrow_each(r, &r->probed[next], 1, err));
        }
    }
    return EV_OK;
}

static ev_status reach(reaching *r, ev_error *err) {
    const task *t = r->s->subject->t;
    EV_TRY(try_own(r, err));
    fitness_stress_allow(r->s->runs, COST_ALLOWANCE, ELEMENTS_EACH);
    for (size_t i = 0; i < t->case_count; i++) {
        if (is_small(r->s, &t->cases[i]))
            EV_TRY(grow(r, &t->cases[i], err));
    }
    if (!r->s->failed) /* a failure is shrunk within these limits */
        fitness_stress_allow(r->s->runs, 1, 0);
    return EV_OK;
}

ev_status stress_reach(stressing *s, ev_error *err) {
    reaching *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    r->s = s;
    ev_status status = reach(r, err);
    free(r);
    return status;
}
