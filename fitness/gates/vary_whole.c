/* Varied data of whole numbers (vary.c): other values of integer buffers and of scalars.
 *
 * Integers are indices, sizes, flags and keys, so a new value stays within the argument's range:
 * its domain, or what its generator makes. Within a range without bounds, the values stay between
 * the least and the largest that the task's own data have. A start that runs on them without a trap
 * or a race is the truth. */
#include "fitness/gates/fitness_impl.h"

#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_COUNT 4 /* values that SMALL leaves */
#define TIE_COUNT 3   /* values that TIES leaves */
#define FAR 20        /* a scalar is multiplied by two to this power, or its inverse */

/* ---- buffers ---- */

/* What new values depend on. */
typedef struct whole {
    const fit_argument *a;
    char *data;
    uint64_t seed;
    double low, high; /* whole */
} whole;

static double get(const whole *w, uint64_t i) {
    return ev_type_get(w->a->what->type, w->data, i);
}

static void set(const whole *w, uint64_t i, double value) {
    ev_type_set(w->a->what->type, w->data, i, value);
}

/* Equal values give equal bits, so that copies stay copies. */
static uint64_t bits_of(const whole *w, double value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return ev_mix64(w->seed ^ bits);
}

static void find_range(whole *w) {
    double least = INFINITY, most = -INFINITY;
    for (uint64_t i = 0; i < w->a->count; i++) {
        least = fmin(least, get(w, i));
        most = fmax(most, get(w, i));
    }
    w->low = ceil(w->a->range.low);
    w->high = floor(w->a->range.high);
    if (isinf(w->low) || w->low > least)
        w->low = least;
    if (isinf(w->high) || w->high < most)
        w->high = most;
}

/* Numbers at the ends of the range, and around 0: a sentinel such as -1 is one of them. */
static double extreme(const whole *w, double value) {
    const double all[] = {w->low, w->high, w->low + 1, w->high - 1, 0, -1};
    uint64_t bits = bits_of(w, value);
    double chosen = all[(bits >> 8) % (sizeof all / sizeof all[0])];
    return bits % 2 == 0 && chosen >= w->low && chosen <= w->high ? chosen : value;
}

static double small(const whole *w, double value) {
    double first = w->low <= 0 && w->high >= 0 ? fmax(w->low, -1) : w->low;
    return fmin(w->high, first + (double)(bits_of(w, value) % SMALL_COUNT));
}

static void map(whole *w, fit_variation v) {
    double ties[TIE_COUNT];
    for (uint64_t i = 0; i < TIE_COUNT; i++)
        ties[i] = get(w, ev_mix64(w->seed + i) % w->a->count);
    for (uint64_t i = 0; i < w->a->count; i++) {
        double value = get(w, i);
        if (v == FIT_TIES)
            value = ties[bits_of(w, value) % TIE_COUNT];
        else if (v == FIT_SMALL)
            value = small(w, value);
        else if (v == FIT_EXTREMES)
            value = extreme(w, value);
        set(w, i, value);
    }
}

/* Puts the elements into ascending or descending order. */
static ev_status order(const whole *w, bool descends, ev_error *err) {
    fit_placed *all = NULL;
    EV_TRY(fit_sort_elements(w->a->what->type, w->data, w->a->count, &all, err));
    for (uint64_t i = 0; i < w->a->count; i++)
        set(w, i, all[descends ? w->a->count - 1 - i : i].value);
    free(all);
    return EV_OK;
}

/* Other distinct elements in the same order: a run of neighbours at one end of the range. */
static ev_status gather(const whole *w, bool at_end, ev_error *err) {
    fit_placed *all = NULL;
    double count = (double)w->a->count;
    if (w->high - w->low < count - 1)
        return EV_OK;
    EV_TRY(fit_sort_elements(w->a->what->type, w->data, w->a->count, &all, err));
    double first = at_end ? w->high - count + 1 : w->low;
    for (uint64_t i = 0; i < w->a->count; i++)
        set(w, all[i].at, first + (double)i);
    free(all);
    return EV_OK;
}

/* Fisher and Yates. */
static void shuffle(const whole *w) {
    for (uint64_t i = w->a->count; i > 1; i--) {
        uint64_t other = ev_mix64(w->seed + i) % i;
        double value = get(w, i - 1);
        set(w, i - 1, get(w, other));
        set(w, other, value);
    }
}

static ev_status vary_distinct(const whole *w, fit_variation v, ev_error *err) {
    if (w->a->range.permutation)
        shuffle(w);
    else if (v == FIT_SMALL || v == FIT_EXTREMES)
        return gather(w, v == FIT_EXTREMES, err);
    return EV_OK;
}

ev_status fit_vary_whole(const fit_case *c, const fit_argument *a, void *data, ev_error *err) {
    fit_variation v = c->inputs.variation;
    if (v == FIT_ALIASED_SMALL) /* what may not be equal comes in another order */
        v = a->range.distinct ? FIT_REVERSED : FIT_SMALL;
    whole w = {.a = a, .data = data, .seed = fit_vary_seed(c, a)};
    if (a->count == 0)
        return EV_OK;
    find_range(&w);
    if (v == FIT_SORTED || v == FIT_REVERSED)
        return order(&w, v == FIT_REVERSED && !a->range.sorted, err);
    if (a->range.distinct)
        return vary_distinct(&w, v, err);
    map(&w, v);
    return a->range.sorted ? order(&w, false, err) : EV_OK;
}

/* ---- scalars ---- */

/* As the type holds the value. */
static double rounded(ev_type type, double value) {
    char room[8];
    ev_type_set(type, room, 0, value);
    return ev_type_get(type, room, 0);
}

static bool is_bounded(const task_range *range) {
    return isfinite(range->low) && isfinite(range->high);
}

/* A number of the scalar's size. */
static double near_to(const fit_argument *a, double value, uint64_t bits) {
    double share = (double)(bits % 1024) / 1024;
    if (is_bounded(&a->range))
        return a->range.low + share * (a->range.high - a->range.low);
    if (ev_type_is_float(a->what->type))
        return value * (0.5 + share);
    const double steps[] = {1, -1, 2, 3};
    return value + steps[bits % (sizeof steps / sizeof steps[0])];
}

/* An end of the range, 0, 1, or a number of another sign or size. */
static double far_from(const fit_argument *a, double value, uint64_t first) {
    bool is_float = ev_type_is_float(a->what->type);
    const double all[] = {0,
                          a->range.low,
                          1,
                          a->range.high,
                          -value,
                          is_float ? ldexp(value, FAR) : 2 * value,
                          is_float ? ldexp(value, -FAR) : -1};
    size_t count = sizeof all / sizeof all[0];
    for (size_t i = 0; i < count; i++) {
        double chosen = rounded(a->what->type, all[(first + i) % count]);
        if (isfinite(chosen) && chosen != value && task_range_has(&a->range, chosen))
            return chosen;
    }
    return value;
}

void fit_vary_scalar(const fit_case *c, fit_argument *a) {
    bool is_float = ev_type_is_float(a->what->type);
    fit_variation v = c->inputs.variation;
    size_t number = (size_t)(a - c->arguments);
    bool is_kept = number < 64 && (c->inputs.kept >> number & 1) != 0;
    if ((v != FIT_SCALARS && v != FIT_FAR_SCALARS) || !(is_float || a->is_free) || is_kept)
        return;
    /* The number of the draw; 0 is the value that most rules name, and the first to be drawn. */
    uint64_t draw = (uint64_t)c->inputs.power;
    uint64_t bits = ev_mix64(fit_vary_seed(c, a) + draw);
    double value = a->value.is_real ? a->value.real : (double)a->value.whole;
    uint64_t first = c->at->use == TASK_SMOKE && draw == 0 ? 0 : bits;
    double chosen = v == FIT_SCALARS ? near_to(a, value, bits) : far_from(a, value, first);
    chosen = rounded(a->what->type, chosen);
    if (!task_range_has(&a->range, chosen))
        return;
    a->is_varied |= chosen != value;
    a->value = is_float ? expr_of_real(chosen) : expr_of_whole((int64_t)chosen);
}
