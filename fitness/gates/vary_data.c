/* Varied data: the contents of floating-point buffers (variations.def), made from those of the
 * task's own generators. Whole numbers have rules of their own (vary_whole.c). All data stay within
 * the domains that the task states. */
#include "fitness/gates/fitness_impl.h"

#include "base/hash.h"
#include "base/type_range.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPREAD_MOST 8   /* the same for single elements */
#define TIE_STEPS 2     /* values of either sign that TIES leaves */
#define LARGE 12        /* CANCELLING: large elements are the largest times two to this power */
#define LARGE_EACH 4    /* one element in so many is large */
#define EXTREME_EACH 4  /* one element in so many takes a bound of its domain */
#define RARE 256        /* one element in so many becomes NaN or infinite */
#define DECIMALS_EACH 1 /* digits of a decimal behind that of the largest element */
#define MULTIPLES_MOST 1048576.0 /* of a scalar, that the largest element is */

uint64_t fit_vary_seed(const fit_case *c, const fit_argument *a) {
    uint64_t seed = c->inputs.variation;
    for (const char *s = c->at->name; *s; s++)
        seed = ev_mix64(seed + (unsigned char)*s);
    for (const char *s = a->what->name; *s; s++)
        seed = ev_mix64(seed + (unsigned char)*s);
    return seed;
}

/* A whole number from -most to most. */
static int exponent_of(uint64_t bits, int most) {
    return (int)(bits % (2 * (uint64_t)most + 1)) - most;
}

static double largest(ev_type type, const void *data, uint64_t count) {
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs(ev_type_get(type, data, i)));
    return most;
}

static double small_or_zero(uint64_t bits, ev_type type) {
    const double values[] = {0.0, -0.0, ev_type_ulp(type, 0), -3 * ev_type_ulp(type, 0)};
    return values[bits % 4];
}

static double non_finite(uint64_t bits) {
    const double values[] = {NAN, INFINITY, -INFINITY};
    return values[bits % 3];
}

/* What an element's new value depends on. */
typedef struct varying {
    fit_variation variation;
    ev_type type;
    uint64_t seed;
    task_range range;
    int power;     /* SCALED: of two */
    int up, down;  /* powers of two by which elements may grow, and shrink, within the type */
    double most;   /* the largest absolute value in the buffer */
    double step;   /* DECIMAL: elements become multiples of it; 0: they stay */
    double tie;    /* the largest power of two that is not over `most`: multiples of its half have
                      exact sums in every order, also where they cancel */
    double chosen; /* becomes NaN or infinite */
} varying;

/* Bounds the powers of two to half of what the type leaves above and below the largest element, so
 * that products of two inputs stay within the type, too. Matters for f16 alone, unless the data are
 * extreme. */
static void bound_powers(varying *v) {
    v->up = v->down = TASK_POWER_MOST;
    if (!(v->most > 0) || isinf(v->most))
        return;
    int own = ilogb(v->most);
    int up = (ev_type_most_exponent(v->type) - own) / 2;
    int down = (own - ev_type_least_exponent(v->type)) / 2;
    v->up = up > 0 ? up : 0;
    v->down = down > 0 ? down : 0;
}

static int bounded(const varying *v, int power) {
    if (power > v->up)
        return v->up;
    return power < -v->down ? -v->down : power;
}

/* One of the bounds that there are. */
static double end_of(const task_range *range, uint64_t bits, double value) {
    double one = bits % 2 == 0 ? range->low : range->high;
    double other = bits % 2 == 0 ? range->high : range->low;
    if (isfinite(one))
        return one;
    return isfinite(other) ? other : value;
}

static double within(const task_range *range, double value) {
    return isnan(value) ? value : fmin(fmax(value, range->low), range->high);
}

/* The multiple of a step that is nearest; of a step below 1 that is a power of ten, the decimal. */
static double multiple_of(double step, double value) {
    double parts = rint(1 / step), count = rint(value / step);
    bool is_decimal = step < 1 && fabs(parts * step - 1) < 1e-12;
    return is_decimal ? count / parts : count * step;
}

/* No larger than the largest element, so that it stays within the type. */
static double nearest(const varying *v, double value) {
    return fmax(fmin(multiple_of(v->step, value), v->most), -v->most);
}

/* Depends on the value and not on its place, so that copies stay copies: the replicas of a
 * parameter on several ranks, or a table that a kernel reads at two places. A zero stays a zero,
 * since zeros often are a mask. */
static double vary_element(const varying *v, double value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    bits = ev_mix64(v->seed ^ bits);
    if (value == 0)
        return value;
    switch (v->variation) {
    case FIT_SCALED:
        return ldexp(value, v->power);
    case FIT_NEGATED:
        return -value;
    case FIT_TIES:
        return within(&v->range, rint(value / v->most * TIE_STEPS) / TIE_STEPS * v->tie);
    case FIT_DECIMAL:
        return v->step > 0 ? within(&v->range, nearest(v, value)) : value;
    case FIT_ZEROS:
        return bits % 8 == 0 ? small_or_zero(bits >> 8, v->type) : value;
    case FIT_NON_FINITE:
        return value == v->chosen || bits % RARE == 0 ? non_finite(bits >> 8) : value;
    case FIT_SPREAD:
        return ldexp(value, bounded(v, exponent_of(bits, SPREAD_MOST)));
    case FIT_EXTREMES:
        return bits % EXTREME_EACH == 0 ? end_of(&v->range, bits >> 8, value) : value;
    default:
        return value;
    }
}

static bool is_input(const fit_argument *a) {
    return (a->what->kind == TASK_IN || a->what->kind == TASK_INOUT) &&
           ev_type_is_float(a->what->type);
}

static int by_value(const void *a, const void *b) {
    const fit_placed *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

ev_status fit_sort_elements(ev_type type, const void *data, uint64_t count, fit_placed **out,
                            ev_error *err) {
    fit_placed *all = malloc((count + 1) * sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, (count + 1) * sizeof *all);
    for (uint64_t i = 0; i < count; i++)
        all[i] = (fit_placed){ev_type_get(type, data, i), i};
    qsort(all, count, sizeof *all, by_value);
    *out = all;
    return EV_OK;
}

/* Makes every fourth element large, such that the large ones cancel in sums: over neighbours, and
 * at strides that are powers of two. The sum is that of the small ones, of which a partial sum with
 * a large one loses the lower bits. The signs are those of the Thue-Morse sequence, at the first
 * place of an equal element, so that copies stay copies. */
static ev_status make_cancelling(ev_type type, uint64_t count, void *data, ev_error *err) {
    varying v = {.type = type, .most = largest(type, data, count)};
    bound_powers(&v);
    double large = ldexp(v.most, bounded(&v, LARGE));
    fit_placed *sorted = NULL;
    EV_TRY(fit_sort_elements(type, data, count, &sorted, err));
    uint64_t first = 0;
    for (uint64_t i = 0; i < count; i++) {
        const fit_placed *p = &sorted[i];
        first = i > 0 && p->value == sorted[i - 1].value ? first : p->at;
        double sign = __builtin_popcountll(first / LARGE_EACH) % 2 == 0 ? 1 : -1;
        if (p->value != 0 && first % LARGE_EACH == 0)
            ev_type_set(type, data, p->at, sign * large);
    }
    free(sorted);
    return EV_OK;
}

/* Whether the variation changes arguments of this type and kind. */
bool fit_variation_concerns(fit_variation v, const task_argument *what, const task_range *range) {
    bool is_float = ev_type_is_float(what->type);
    bool is_bounded = isfinite(range->low) || isfinite(range->high);
    if (what->peers_of != NULL || what->member_count > 0)
        return false;
    switch (v) {
    case FIT_PLAIN:
    case FIT_SCALARS:
    case FIT_FAR_SCALARS:
    case FIT_ALIASED:
    case FIT_VARIATIONS:
        return false;
    case FIT_SCALED:
    case FIT_NEGATED:
    case FIT_SPREAD:
        return is_float;
    case FIT_DECIMAL:
    case FIT_ZEROS:
    case FIT_CANCELLING:
        return is_float && !range->distinct;
    case FIT_NON_FINITE:
        return is_float && !range->distinct && !(range->orders && range->finite);
    case FIT_TIES:
        return !range->distinct;
    case FIT_EXTREMES:
        return !is_float || (is_bounded && !range->distinct);
    case FIT_SMALL:
    case FIT_SORTED:
    case FIT_REVERSED:
    case FIT_ALIASED_SMALL:
        break;
    }
    return !is_float;
}

static bool takes_non_finite(const fit_argument *a) {
    return is_input(a) && fit_variation_concerns(FIT_NON_FINITE, a->what, &a->range);
}

/* NaN and infinities go into one input of a case, so that not all results are NaN. */
static bool is_spared(const fit_case *c, const fit_argument *a) {
    if (c->inputs.variation != FIT_NON_FINITE)
        return false;
    uint64_t inputs = 0, own = 0;
    for (const fit_argument *other = c->arguments; other->what != NULL; other++) {
        own = other == a ? inputs : own;
        inputs += takes_non_finite(other);
    }
    return inputs > 0 && own != fit_vary_seed(c, c->arguments) % inputs;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(ev_type type, void *data, uint64_t count, double *room) {
    for (uint64_t i = 0; i < count; i++)
        room[i] = ev_type_get(type, data, i);
    qsort(room, count, sizeof *room, ascending);
    for (uint64_t i = 0; i < count; i++)
        ev_type_set(type, data, i, room[i]);
}

/* The floating-point scalar number `nth` of a case, from 1 on; 0: there is none. */
static double scalar_of(const fit_case *c, int nth) {
    for (const fit_argument *a = c->arguments; a->what != NULL; a++) {
        if (a->what->kind == TASK_SCALAR && ev_type_is_float(a->what->type) && --nth == 0)
            return fabs(a->value.real);
    }
    return 0;
}

/* Decimals of as many digits as prices have, or multiples of a scalar: what is rounded down, or
 * divided by that scalar, then lies at an edge often, where an error of rounding shows. */
static double step_of(const fit_case *c, const varying *v) {
    if (!(v->most > 0) || isinf(v->most))
        return 0;
    if (c->inputs.power <= 0)
        return pow(10, floor(log10(v->most)) - DECIMALS_EACH);
    double step = scalar_of(c, c->inputs.power);
    return step > 0 && v->most >= step && v->most / step <= MULTIPLES_MOST ? step : 0;
}

static ev_status vary_floats(const fit_case *c, const fit_argument *a, void *data, ev_error *err) {
    if (c->inputs.variation == FIT_CANCELLING)
        return make_cancelling(a->what->type, a->count, data, err);
    varying v = {.variation = c->inputs.variation,
                 .type = a->what->type,
                 .range = a->range,
                 .seed = fit_vary_seed(c, a)};
    v.most = largest(v.type, data, a->count);
    v.tie = v.most > 0 && isfinite(v.most) ? ldexp(1, ilogb(v.most)) : v.most;
    v.step = step_of(c, &v);
    bound_powers(&v);
    v.power =
        bounded(&v, c->inputs.power != 0 ? c->inputs.power : exponent_of(v.seed, TASK_POWER_MOST));
    v.chosen = a->count > 0 ? ev_type_get(v.type, data, v.seed % a->count) : 0;
    for (uint64_t i = 0; i < a->count; i++)
        ev_type_set(v.type, data, i, vary_element(&v, ev_type_get(v.type, data, i)));
    return EV_OK;
}

/* Puts floats back into their range: a new value outside gives way to the old one. */
static void keep_in_range(const fit_argument *a, const void *old, void *data, double *room) {
    ev_type type = a->what->type;
    for (uint64_t i = 0; i < a->count; i++) {
        if (!task_range_has(&a->range, ev_type_get(type, data, i)))
            ev_type_set(type, data, i, ev_type_get(type, old, i));
    }
    if (a->range.sorted)
        sort(type, data, a->count, room);
}

ev_status fit_vary_buffer(const fit_case *c, fit_argument *a, void *data, ev_error *err) {
    bool is_float = is_input(a);
    if (!fit_variation_concerns(c->inputs.variation, a->what, &a->range) ||
        (is_float && is_spared(c, a)))
        return EV_OK;
    void *old = malloc(a->bytes + 1);
    double *room = malloc((a->count + 1) * sizeof *room);
    ev_status status = EV_OK;
    if (old == NULL || room == NULL) {
        status = ev_fail_memory(err, a->bytes + (a->count + 1) * sizeof *room);
    } else {
        memcpy(old, data, a->bytes);
        status = is_float ? vary_floats(c, a, data, err) : fit_vary_whole(c, a, data, err);
        if (is_float && a->what->domain.is_given)
            keep_in_range(a, old, data, room);
        a->is_varied = memcmp(old, data, a->bytes) != 0;
    }
    free(old);
    free(room);
    return status;
}
