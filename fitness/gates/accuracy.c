/* Accuracy: the error metrics of a comparison with the trusted answer, fed element by element.
 *
 * The relative L2 error of an output is sqrt(sum (got - want)^2) / sqrt(sum want^2). Both sums are
 * compensated (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen",
 * 1974), so their rounding errors stay below the errors that they measure. The scaled maximum is
 * the largest |got - want| / (u sqrt(K) scale), where u is the unit roundoff of the type, K the
 * depth of the sum, and scale the sum of the absolute values of its terms: a probabilistic
 * rounding bound (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis",
 * 2019). `normalised` is the largest metric over its own limit; a value of at most 1 passes.
 *
 * A NaN or an infinity never passes, except an infinity where the answer rounds to the same
 * infinity in the output's type. */
#include "fitness/gates/accuracy.h"

#include <math.h>
#include <string.h>

void accuracy_sum_add(accuracy_sum *s, double term) {
    double next = s->sum + term;
    s->lost += fabs(s->sum) >= fabs(term) ? (s->sum - next) + term : (term - next) + s->sum;
    s->sum = next;
}

double accuracy_sum_of(const accuracy_sum *s) {
    return s->sum + s->lost;
}

void accuracy_begin(accuracy_check *check, const accuracy_limits *limits) {
    *check = (accuracy_check){.limits = *limits};
    if (!(check->limits.depth >= 1))
        check->limits.depth = 1;
}

void accuracy_begin_output(accuracy_check *check, ev_type type) {
    check->type = type;
    check->ulp_one = ev_type_ulp(type, 1);
    check->ulp_least = ev_type_ulp(type, 0);
    check->ulp_most = ev_type_ulp(type, INFINITY);
    check->error_squares = check->want_squares = (accuracy_sum){0, 0};
    check->scale_squares = check->conditioned = check->allowed = 0;
    check->has_own = false;
    check->found_abs = 0;
    check->found_inexact = 0;
}

void accuracy_own(accuracy_check *check, double relative_l2, double max_abs) {
    check->has_own = true;
    check->relative_l2 = relative_l2;
    check->max_abs = max_abs;
}

static void keep_max(double *kept, double value) {
    if (value > *kept)
        *kept = value;
}

/* The largest number of the type is finite; an answer beyond it may be rounded to infinity. */
static bool both_infinite(ev_type type, double got, double want) {
    if (!isinf(got) || isnan(want) || signbit(got) != signbit(want))
        return false;
    double rounded = 0;
    ev_type_set(type, &rounded, 0, want);
    return isinf(ev_type_get(type, &rounded, 0));
}

/* What the elements of a part change, apart from the check, so that it stays in registers. */
typedef struct tally {
    accuracy_sum error_squares, want_squares;
    double scale_squares;
    double max_abs, max_ulp, scaled_max;
    double ulp_one, ulp_least, ulp_most;
    double scaled_unit; /* unit roundoff x sqrt(K) */
    uint64_t not_exact;
    bool is_float;
} tally;

static tally tally_of(const accuracy_check *check) {
    const accuracy *worst = &check->worst;
    return (tally){.error_squares = check->error_squares,
                   .want_squares = check->want_squares,
                   .scale_squares = check->scale_squares,
                   .max_abs = check->found_abs,
                   .max_ulp = worst->max_ulp,
                   .scaled_max = worst->scaled_max,
                   .not_exact = check->found_inexact,
                   .ulp_one = check->ulp_one,
                   .ulp_least = check->ulp_least,
                   .ulp_most = check->ulp_most,
                   .scaled_unit = check->ulp_one / 2 * sqrt(check->limits.depth),
                   .is_float = ev_type_is_float(check->type)};
}

static void take_tally(accuracy_check *check, const tally *t) {
    check->error_squares = t->error_squares;
    check->want_squares = t->want_squares;
    check->scale_squares = t->scale_squares;
    check->found_abs = t->max_abs;
    check->worst.max_ulp = t->max_ulp;
    check->worst.scaled_max = t->scaled_max;
    check->found_inexact = t->not_exact;
}

/* ev_type_ulp for a finite value, from the bits: the sums ask for it at every element. */
static inline double ulp_at(const tally *t, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52; /* the power of two below |value| */
    double power;
    memcpy(&power, &bits, sizeof power);
    double ulp = t->is_float ? power * t->ulp_one : 1;
    return fmin(fmax(ulp, t->ulp_least), t->ulp_most);
}

/* |got - exact| of 64-bit whole numbers. */
static double distance_exact(ev_type type, uint64_t got, uint64_t exact) {
    bool is_less = type == EV_S64 ? (int64_t)got < (int64_t)exact : got < exact;
    return (double)(is_less ? exact - got : got - exact);
}

/* |got - want|, by the exact answer where there is one. */
static inline double error_at(const accuracy_part *part, uint64_t i, double got, double want) {
    uint64_t bits;
    if (part->exact == NULL)
        return fabs(got - want);
    memcpy(&bits, (const char *)part->got + i * sizeof bits, sizeof bits);
    if (ev_type_get(part->type, part->exact, i) != want)
        return fabs(got - want);
    return distance_exact(part->type, bits, part->exact[i]);
}

static inline void add_error(tally *t, double error, double want, double scale) {
    accuracy_sum_add(&t->error_squares, error * error);
    accuracy_sum_add(&t->want_squares, want * want);
    keep_max(&t->max_abs, error);
    if (error > 0)
        keep_max(&t->max_ulp, error / ulp_at(t, want));
    t->not_exact += error > 0 && !t->is_float;
    if (scale > 0) {
        keep_max(&t->scaled_max, error / (t->scaled_unit * scale));
        t->scale_squares += scale * scale;
    }
}

static inline double got_at(const accuracy_part *part, uint64_t i) {
    float single;
    if (part->type != EV_F32) /* most are */
        return ev_type_get(part->type, part->got, i);
    memcpy(&single, (const char *)part->got + i * sizeof single, sizeof single);
    return (double)single;
}

void accuracy_add(accuracy_check *check, const accuracy_part *part) {
    accuracy *worst = &check->worst;
    tally t = tally_of(check);
    worst->checked += part->count;
    for (uint64_t i = 0; i < part->count; i++) {
        if (part->stride > 0 && i % part->stride >= part->row) {
            worst->spoilt += part->written == NULL || part->written[i] != 0;
            continue;
        }
        if (part->written != NULL && part->written[i] == 0) {
            worst->unwritten++;
            continue;
        }
        double got = got_at(part, i), want = part->want[i];
        if (part->must_zero != NULL && part->must_zero[i] != 0 && got != 0)
            worst->not_zero++;
        if (isfinite(got) && isfinite(want))
            add_error(&t, error_at(part, i, got, want), want,
                      part->scale != NULL ? fabs(part->scale[i]) : 0);
        else if (!both_infinite(part->type, got, want) &&
                 !(check->limits.takes_nan && isnan(got) && isnan(want)))
            worst->not_finite++;
    }
    take_tally(check, &t);
}

/* Value over limit; an exact match is asked for where the limit is zero. */
static double over(double value, double limit) {
    if (isinf(limit))
        return 0;
    if (limit > 0)
        return value / limit;
    return value > 0 ? INFINITY : 0;
}

/* Holds the relative L2 of an output to its limit. */
static void limit_output(accuracy_check *check, accuracy_output *o) {
    accuracy *worst = &check->worst;
    double limit = check->has_own ? check->relative_l2 : check->limits.relative_l2;
    double allowed = fmax(limit, check->conditioned * o->condition);
    allowed = fmax(allowed, check->allowed);
    o->beyond = over(o->relative_l2, allowed);
    if (o->beyond > over(worst->over_l2, worst->allowed_l2)) {
        worst->over_l2 = o->relative_l2;
        worst->allowed_l2 = allowed;
    }
    keep_max(&worst->normalised, o->beyond);
}

/* Holds a largest error to its limit, and keeps the one that is farthest over. */
static double limit_abs(accuracy *worst, double found, double allowed) {
    double beyond = over(found, allowed);
    if (beyond > over(worst->over_abs, worst->allowed_abs)) {
        worst->over_abs = found;
        worst->allowed_abs = allowed;
    }
    keep_max(&worst->normalised, beyond);
    return beyond;
}

/* The output's largest error and inexact numbers: held to its own limits, or kept for the end. */
static void limit_largest(accuracy_check *check, accuracy_output *o) {
    accuracy *worst = &check->worst;
    keep_max(&worst->max_abs, check->found_abs);
    if (!check->has_own) {
        keep_max(&check->common_abs, check->found_abs);
        worst->not_exact += check->found_inexact;
        if (check->limits.max_abs == 0 && check->found_inexact > check->limits.inexact_most)
            o->beyond = INFINITY;
    } else if (check->max_abs > 0 || check->found_inexact > 0) {
        keep_max(&o->beyond, limit_abs(worst, check->found_abs, check->max_abs));
    }
}

accuracy_output accuracy_end_output(accuracy_check *check) {
    double error = sqrt(accuracy_sum_of(&check->error_squares));
    double want = sqrt(accuracy_sum_of(&check->want_squares));
    double unit = check->ulp_one / 2 * sqrt(check->limits.depth);
    accuracy_output o = {.relative_l2 = INFINITY, .max_abs = check->found_abs};
    if (error == 0)
        o.relative_l2 = 0;
    else if (want > 0)
        o.relative_l2 = error / want;
    if (want > 0)
        o.condition = unit * sqrt(check->scale_squares) / want;
    bool has_l2 = !check->has_own || isfinite(check->relative_l2);
    if (has_l2)
        keep_max(&check->worst.relative_l2, o.relative_l2);
    limit_output(check, &o);
    limit_largest(check, &o);
    /* The floor under "no worse than k x the baseline" depends on the output's type. */
    const accuracy_limits *limits = &check->limits;
    if (limits->baseline_factor > 0 && has_l2) {
        double allowed = limits->baseline_factor * limits->baseline_l2;
        keep_max(&allowed, ev_type_ulp(check->type, 1));
        keep_max(&check->worst.normalised, o.relative_l2 / allowed);
    }
    return o;
}

static bool is_broken(const accuracy *a) {
    return a->spoilt > 0 || a->unwritten > 0 || a->not_zero > 0 || a->not_finite > 0;
}

/* A whole number has no rounding: one that is off by little among large ones is wrong all the same,
 * which a relative L2 would let pass. */
static bool is_inexact(const accuracy *a, const accuracy_limits *limits) {
    return limits->max_abs == 0 && a->not_exact > limits->inexact_most;
}

accuracy accuracy_end(const accuracy_check *check) {
    accuracy a = check->worst;
    const accuracy_limits *limits = &check->limits;
    if (limits->scaled_max > 0)
        keep_max(&a.normalised, a.scaled_max / limits->scaled_max);
    if (limits->max_abs > 0)
        (void)limit_abs(&a, check->common_abs, limits->max_abs);
    if (is_broken(&a) || is_inexact(&a, limits))
        a.normalised = INFINITY;
    if (a.not_finite > 0)
        a.relative_l2 = a.max_abs = INFINITY;
    return a;
}

void accuracy_explain(const accuracy *a, const accuracy_limits *limits, ev_str *out) {
    unsigned long long checked = a->checked;
    if (a->spoilt > 0)
        ev_str_printf(out, "%llu elements of the padding behind rows were written",
                      (unsigned long long)a->spoilt);
    else if (a->not_finite > 0 && limits->takes_nan)
        ev_str_printf(out,
                      "%llu of %llu elements are finite, infinite or NaN where the answer is not",
                      (unsigned long long)a->not_finite, checked);
    else if (a->not_finite > 0)
        ev_str_printf(out, "%llu of %llu elements are NaN or infinite",
                      (unsigned long long)a->not_finite, checked);
    else if (a->unwritten > 0)
        ev_str_printf(out, "%llu of %llu elements were never written",
                      (unsigned long long)a->unwritten, checked);
    else if (a->not_zero > 0)
        ev_str_printf(out, "%llu of %llu elements must be exactly zero and are not",
                      (unsigned long long)a->not_zero, checked);
    else if (is_inexact(a, limits))
        ev_str_printf(
            out,
            "%llu of %llu elements are whole numbers that differ from the answer, and the "
            "tolerance has no \"max_abs\" for them",
            (unsigned long long)a->not_exact, checked);
    else if (a->over_l2 > a->allowed_l2)
        ev_str_printf(out, "relative L2 error %.3g is over the tolerance %.3g", a->over_l2,
                      a->allowed_l2);
    else if (limits->scaled_max > 0 && a->scaled_max > limits->scaled_max)
        ev_str_printf(out, "largest scaled error %.3g is over the tolerance %.3g", a->scaled_max,
                      limits->scaled_max);
    else if (a->over_abs > a->allowed_abs)
        ev_str_printf(out, "largest error %.3g is over the tolerance %.3g", a->over_abs,
                      a->allowed_abs);
    else
        ev_str_printf(out, "relative L2 error %.3g is over %.3g x the baseline's own %.3g",
                      a->relative_l2, limits->baseline_factor, limits->baseline_l2);
}
