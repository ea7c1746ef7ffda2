/* Data of the judges: xorshift numbers, put within domains. */
#include "tests/tuner/judge/data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define RARE 12 /* one element in so many is special */

static ev_error err;

/* Marsaglia's xorshift, "Xorshift RNGs", 2003, multiplied as in Vigna's xorshift64*. */
static uint64_t next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static uint64_t below(uint64_t *state, uint64_t bound) {
    return (next(state) >> 16) % bound;
}

static double unit(uint64_t *state) {
    return (double)(next(state) >> 11) * 0x1p-53;
}

/* ---- floats ---- */

static double special(uint64_t *state) {
    const double all[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 0x1p-140, -0x1p-140, 1.0};
    return all[below(state, sizeof all / sizeof all[0])];
}

static double draw_float(judge_mood mood, uint64_t *state) {
    double value = unit(state) * 2 - 1;
    switch (mood) {
    case JUDGE_MIXED:
        return below(state, 4) == 0 ? 0 : value;
    case JUDGE_POSITIVE:
        return 0.25 + 2 * fabs(value);
    case JUDGE_FEW:
        return (double)below(state, 5) - 2;
    case JUDGE_SPECIAL:
        return below(state, RARE) == 0 ? special(state) : 0.5 + fabs(value);
    case JUDGE_LARGE:
        return ldexp(value, 18);
    default:
        return ldexp(value, -18);
    }
}

/* A number of the range; drawn again, then forced. */
static double fit(const task_range *range, judge_mood mood, uint64_t *state) {
    double value = draw_float(mood, state);
    for (int i = 0; i < 8 && (!task_range_has(range, value) || (range->finite && !isfinite(value)));
         i++)
        value = draw_float(mood, state);
    if (range->positive || range->low >= 0)
        value = isfinite(value) ? fabs(value) : 1;
    if (isfinite(range->low) && isfinite(range->high) && !task_range_has(range, value))
        value = range->low + (range->high - range->low) * unit(state);
    return task_range_has(range, value) ? value : 1;
}

/* ---- whole numbers ---- */

static double draw_whole(double low, double high, judge_mood mood, uint64_t *state) {
    double width = high - low + 1, all[] = {low, high, low + 1, high - 1, 0, -1, 1};
    double value = low + floor(unit(state) * width);
    if (mood == JUDGE_POSITIVE)
        value = low + floor(width / 2) + floor(unit(state) * width / 2);
    else if (mood == JUDGE_FEW)
        value = low + (double)below(state, width < 5 ? (uint64_t)width : 5);
    else if (mood == JUDGE_SPECIAL)
        value = all[below(state, sizeof all / sizeof all[0])];
    return fmax(low, fmin(high, value));
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Distinct numbers of the range: a walk with steps of at least one that ends within. */
static void draw_distinct(const task_range *range, uint64_t count, double *out, uint64_t *state) {
    double slack = range->high - range->low + 1 - (double)count, at = range->low;
    for (uint64_t i = 0; i < count; i++) {
        double skip = floor(unit(state) * (2 * slack / (double)(count + 1) + 1));
        skip = fmin(skip, slack);
        slack -= skip;
        at += skip;
        out[i] = at++;
    }
    for (uint64_t i = count; i > 1 && !range->sorted; i--) { /* Fisher and Yates */
        uint64_t other = below(state, i);
        double value = out[i - 1];
        out[i - 1] = out[other];
        out[other] = value;
    }
}

static void draw_all(const task_range *range, judge_mood mood, bool is_float, uint64_t count,
                     double *out, uint64_t *state) {
    double low = fmax(range->low, -0x1p31), high = fmin(range->high, 0x1p31 - 1);
    if (!is_float && range->distinct) {
        draw_distinct(range, count, out, state);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        out[i] = is_float ? fit(range, mood, state) : draw_whole(low, high, mood, state);
    if (!is_float && mood == JUDGE_SMALL) {
        for (uint64_t i = 1; i < count; i++)
            out[i] = out[0];
    }
    if (range->sorted || (!is_float && mood == JUDGE_LARGE))
        qsort(out, count, sizeof *out, ascending);
}

/* ---- arguments ---- */

/* Copies of the generator `weights` stay copies: the period after which they come again. */
static uint64_t period_of(const judge_input *in, const task_argument *a, uint64_t count) {
    corpus_request request;
    OK(task_argument_data_of(in->t, a, &in->at, 0, &request, &err));
    for (size_t i = 0; i < request.generator->parameter_count; i++) {
        if (strcmp(request.generator->parameters[i].name, "repeat") == 0 && request.values[i] > 0)
            return (uint64_t)request.values[i];
    }
    return count;
}

/* Buffers that the task makes without negative numbers mostly stay so: second moments, say. */
static bool stays_positive(const judge_input *in, const task_argument *a) {
    corpus_request request;
    OK(task_argument_data_of(in->t, a, &in->at, 0, &request, &err));
    return ev_type_is_float(a->type) && strcmp(request.generator->name, "uniform") == 0 &&
           request.values[0] >= 0;
}

static void fill_buffer(judge_input *in, size_t i, judge_mood mood, uint64_t *state) {
    const task_argument *a = &in->t->arguments[i];
    uint64_t count = in->count[i];
    task_range range;
    double *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    OK(task_range_of(in->t, a, &in->at, &range, &err));
    draw_all(&range, mood, ev_type_is_float(a->type), count, values, state);
    uint64_t period = period_of(in, a, count);
    bool is_positive = stays_positive(in, a) && below(state, 3) > 0;
    for (uint64_t k = 0; k < count; k++) {
        double value = values[k % period];
        ev_type_set(a->type, in->data[i], k, is_positive ? fabs(value) : value);
    }
    free(values);
}

static void fill_scalar(judge_input *in, size_t i, judge_mood mood, uint64_t *state) {
    const task_argument *a = &in->t->arguments[i];
    const double factors[] = {1, 0.5, 2, -1, 0, 3};
    task_range range;
    bool is_float = ev_type_is_float(a->type), is_free = is_float;
    OK(task_range_of(in->t, a, &in->at, &range, &err));
    if (mood == JUDGE_MIXED || !(is_free || task_scalar_is_free(in->t, a)))
        return;
    double own = in->value[i].is_real ? in->value[i].real : (double)in->value[i].whole;
    double value = own * factors[below(state, sizeof factors / sizeof factors[0])];
    if (!is_float && isfinite(range.low) && isfinite(range.high))
        value = draw_whole(range.low, range.high, mood, state);
    if (task_range_has(&range, value))
        in->value[i] = is_float ? expr_of_real(value) : expr_of_whole((int64_t)value);
}

void judge_fill(judge_input *in, judge_mood mood, uint64_t seed) {
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++)
        (void)next(&state);
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        if (judge_is_input(a))
            fill_buffer(in, i, mood, &state);
        else if (a->kind == TASK_SCALAR)
            fill_scalar(in, i, mood, &state);
    }
}
