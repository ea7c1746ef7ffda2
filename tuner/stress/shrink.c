/* Shrinking of the stress: makes a failing case smaller as long as it fails, in the way of
 * QuickCheck (Claessen and Hughes, "QuickCheck: A Lightweight Tool for Random Testing of Haskell
 * Programs", 2000). Plain data come before varied ones, the task's inputs before fresh ones, and
 * each size is moved towards its least value by halves, then by single steps. */
#include "tuner/stress/inside.h"

#include "base/stop.h"

#define TRIES_MOST 600
#define COST_MOST 1e9 /* thread instructions of the baseline in all tries, about */
#define STEPS_MOST 4  /* steps down that are tried behind the halves */
#define OTHERS_MOST 6 /* other inputs or schedules that are tried at a smaller size */

typedef struct shrinking {
    stressing *s;
    uint32_t tries;
    double cost; /* of them, in thread instructions of the baseline */
} shrinking;

/* Tries a smaller case in place of the worst; *took: it fails as well, and is the worst now. */
static ev_status take(shrinking *k, const stress_case *smaller, bool *took, ev_error *err) {
    fitness_stood stood = FITNESS_STOOD;
    fitness_verdict verdict;
    *took = false;
    if (k->tries++ >= TRIES_MOST || k->cost > COST_MOST || ev_stop_asked())
        return EV_OK;
    ev_status status = stress_try(k->s, smaller, &stood, &verdict, err);
    k->cost += fitness_stress_cost(k->s->runs);
    fitness_stress_forget(k->s->runs);
    if (status != EV_OK || stood != FITNESS_FAILED)
        return status;
    stress_case_copy(smaller, &k->s->worst);
    k->s->verdict = verdict;
    *took = true;
    return EV_OK;
}

/* ---- inputs and data ---- */

static ev_status take_inputs(shrinking *k, task_case_inputs with, bool *took, ev_error *err) {
    stress_case smaller;
    stress_case_copy(&k->s->worst, &smaller);
    smaller.at.inputs.fresh = with.fresh;
    smaller.with = with;
    return take(k, &smaller, took, err);
}

/* Moves the power towards 0 by halves, then by one. */
static ev_status shrink_power(shrinking *k, ev_error *err) {
    bool took = true;
    while (took && k->s->worst.with.power != 0) {
        task_case_inputs with = k->s->worst.with;
        int sign = with.power < 0 ? -1 : 1, size = sign * with.power;
        took = false;
        for (int less = size / 2; less > 0 && !took; less /= 2) {
            with.power = sign * (size - less);
            EV_TRY(take_inputs(k, with, &took, err));
        }
    }
    return EV_OK;
}

/* Gives varied data with a power of its own for each input one power for all. */
static ev_status join_powers(shrinking *k, ev_error *err) {
    task_case_inputs with = k->s->worst.with;
    bool took = false;
    for (int sign = 1; sign >= -1 && !took; sign -= 2) {
        with.power = sign * TASK_POWER_MOST;
        EV_TRY(take_inputs(k, with, &took, err));
    }
    return EV_OK;
}

static ev_status shrink_inputs(shrinking *k, ev_error *err) {
    bool took = false;
    task_case_inputs with = k->s->worst.with;
    if (with.variation != TASK_PLAIN) {
        with.variation = TASK_PLAIN;
        with.power = 0;
        EV_TRY(take_inputs(k, with, &took, err));
    }
    with = k->s->worst.with;
    with.schedule = 0;
    if (k->s->worst.with.schedule != 0)
        EV_TRY(take_inputs(k, with, &took, err));
    with = k->s->worst.with;
    with.fresh = 0;
    if (k->s->worst.with.fresh != 0)
        EV_TRY(take_inputs(k, with, &took, err));
    with = k->s->worst.with;
    if (with.variation == TASK_SCALED && with.power == 0)
        EV_TRY(join_powers(k, err));
    return shrink_power(k, err);
}

/* The arguments' own data in place of the case's. */
static ev_status shrink_data(shrinking *k, ev_error *err) {
    stress_case smaller;
    bool took = false;
    if (k->s->worst.at.data_count == 0)
        return EV_OK;
    stress_case_copy(&k->s->worst, &smaller);
    smaller.at.data_count = 0;
    return take(k, &smaller, &took, err);
}

/* ---- sizes ---- */

/* Takes a smaller shape as it is. Where the failure depends on the schedule or on varied data, a
 * smaller shape may need another schedule, or other inputs. */
static ev_status take_shape(shrinking *k, stress_case *smaller, bool *took, ev_error *err) {
    task_case_inputs *with = &smaller->with;
    EV_TRY(take(k, smaller, took, err));
    for (uint32_t i = 0; i < OTHERS_MOST && !*took; i++) {
        if (with->schedule != 0)
            with->schedule = 1 + i;
        else if (with->variation != TASK_PLAIN)
            with->fresh = smaller->at.inputs.fresh = i;
        else
            return EV_OK;
        EV_TRY(take(k, smaller, took, err));
    }
    return EV_OK;
}

static ev_status take_size(shrinking *k, size_t size, int64_t value, bool *took, ev_error *err) {
    stress_case smaller;
    const launch_range *range = stress_range_of(k->s, k->s->worst.shape[size].name);
    int64_t now = k->s->worst.shape[size].value.whole;
    value = stress_fit_range(range, value);
    *took = false;
    if (value >= now)
        return EV_OK;
    stress_case_copy(&k->s->worst, &smaller);
    smaller.shape[size].value = expr_of_whole(value);
    return take_shape(k, &smaller, took, err);
}

/* Takes the least value, or the largest step down that still fails. */
static ev_status step_down(shrinking *k, const launch_range *range, size_t size, bool *took,
                           ev_error *err) {
    int64_t now = k->s->worst.shape[size].value.whole, low = (int64_t)range->low;
    int64_t step = range->multiple > 0 ? range->multiple : 1;
    *took = false;
    for (int64_t less = now - low; less >= step && !*took; less /= 2)
        EV_TRY(take_size(k, size, now - less, took, err));
    for (int64_t i = 1; i <= STEPS_MOST && !*took; i++)
        EV_TRY(take_size(k, size, now - i * step, took, err));
    return EV_OK;
}

static ev_status shrink_size(shrinking *k, size_t size, bool *took, ev_error *err) {
    const launch_range *range = stress_range_of(k->s, k->s->worst.shape[size].name);
    bool again = range != NULL && !range->is_real;
    while (again) {
        EV_TRY(step_down(k, range, size, &again, err));
        *took = *took || again;
    }
    if (range == NULL || !range->is_real || k->s->worst.shape[size].value.real <= range->low)
        return EV_OK;
    stress_case smaller;
    stress_case_copy(&k->s->worst, &smaller);
    smaller.shape[size].value = expr_of_real(range->low);
    EV_TRY(take(k, &smaller, &again, err));
    *took = *took || again;
    return EV_OK;
}

ev_status stress_shrink(stressing *s, ev_error *err) {
    shrinking k = {.s = s};
    bool took = true;
    EV_TRY(shrink_inputs(&k, err));
    EV_TRY(shrink_data(&k, err));
    while (took) {
        took = false;
        for (size_t i = 0; i < s->worst.at.shape_count; i++)
            EV_TRY(shrink_size(&k, i, &took, err));
    }
    return shrink_inputs(&k, err);
}
