/* Drawing of the stress: shapes within ranges, and fresh data. A shape begins as one of the task's
 * small cases, so that relations between sizes that no range tells mostly hold. */
#include "tuner/stress/inside.h"

#include "base/divisor.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NEAR_LEAST 9 /* steps from the lower end that are drawn more often */
#define NEAR_OWN 4   /* steps from the case's own size that are drawn more often */
#define PAIR_EACH 2  /* one shape in so many has two sizes that nearly meet */
#define ENDS_EACH 16 /* one shape in so many has all of its sizes at ends of their ranges */
#define PAIR_BITS 9  /* such sizes are less than two to this power apart */

/* ---- ranges ---- */

static void widen(launch_range *range, const expr_value *value) {
    range->low = fmin(range->low, value->real);
    range->high = fmax(range->high, value->real);
    range->is_real = range->is_real || value->is_real;
    range->multiple = range->is_real ? 0 : ev_divisor_signed(range->multiple, value->whole);
}

const launch_range *stress_range_of(const stressing *s, const char *name) {
    for (size_t i = 0; i < s->range_count; i++) {
        if (strcmp(s->ranges[i].name, name) == 0)
            return &s->ranges[i];
    }
    return NULL;
}

/* From the least to the greatest value of all cases, in steps that divide all of them. */
static void add_shape(stressing *s, const task_case *at) {
    for (size_t i = 0; i < at->shape_count; i++) {
        const expr_name *size = &at->shape[i];
        const launch_range *known = stress_range_of(s, size->name);
        if (known != NULL) {
            widen(&s->ranges[known - s->ranges], &size->value);
        } else if (s->range_count < STRESS_SIZES_MOST) {
            launch_range fresh = {size->name, false, size->value.real, size->value.real, 0};
            widen(&fresh, &size->value);
            s->ranges[s->range_count++] = fresh;
        }
    }
}

void stress_set_ranges(stressing *s) {
    const stress_subject *of = s->subject;
    if (of->ranges == NULL) {
        for (size_t i = 0; i < of->t->case_count; i++)
            add_shape(s, &of->t->cases[i]);
        return;
    }
    for (size_t i = 0; i < of->range_count && i < STRESS_SIZES_MOST; i++)
        s->ranges[s->range_count++] = of->ranges[i];
}

int64_t stress_fit_range(const launch_range *range, int64_t value) {
    int64_t step = range->multiple > 0 ? range->multiple : 1;
    value -= value % step;
    if ((double)value > range->high)
        value = (int64_t)range->high;
    return (double)value < range->low ? (int64_t)range->low : value;
}

/* ---- shapes ---- */

static int64_t draw_magnitude(const launch_range *range, ev_pcg *rng) {
    double low = log2(fmax(range->low, 1)), high = log2(fmax(range->high, 1));
    return (int64_t)exp2(low + ev_pcg_unit(rng) * (high - low));
}

static int64_t draw_near_power(const launch_range *range, ev_pcg *rng) {
    double power = rint(log2(fmax((double)draw_magnitude(range, rng), 1)));
    int64_t step = range->multiple > 0 ? range->multiple : 1;
    return (int64_t)exp2(power) + ((int64_t)ev_pcg_below(rng, 3) - 1) * step;
}

static int64_t draw_whole(const launch_range *range, int64_t own, ev_pcg *rng) {
    int64_t step = range->multiple > 0 ? range->multiple : 1;
    switch (ev_pcg_below(rng, 5)) {
    case 0:
        return (int64_t)range->low + step * (int64_t)ev_pcg_below(rng, NEAR_LEAST);
    case 1:
        return draw_near_power(range, rng);
    case 2:
        return own + step * ((int64_t)ev_pcg_below(rng, 2 * NEAR_OWN + 1) - NEAR_OWN);
    default:
        return draw_magnitude(range, rng);
    }
}

static void draw_size(const launch_range *range, expr_name *size, ev_pcg *rng) {
    if (range->is_real)
        size->value = expr_of_real(range->low + ev_pcg_unit(rng) * (range->high - range->low));
    else
        size->value =
            expr_of_whole(stress_fit_range(range, draw_whole(range, size->value.whole, rng)));
}

bool stress_is_inside(const stressing *s, const task_case *at) {
    for (size_t i = 0; i < at->shape_count; i++) {
        const launch_range *range = stress_range_of(s, at->shape[i].name);
        if (range != NULL && !launch_range_holds(range, at->shape[i].value.real))
            return false;
    }
    return true;
}

/* One of the task's small cases that lies in the ranges; if there is none, any small case. */
static const task_case *draw_case(const stressing *s, ev_pcg *rng) {
    const task *t = s->subject->t;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t count = 0;
        const task_case *chosen = NULL;
        for (size_t i = 0; i < t->case_count; i++) {
            const task_case *at = &t->cases[i];
            if (at->use != TASK_TIME && (pass > 0 || stress_is_inside(s, at)) &&
                ev_pcg_below(rng, ++count) == 0)
                chosen = at;
        }
        if (chosen != NULL)
            return chosen;
    }
    assert(false); /* a task has a smoke case */
    return t->cases;
}

/* Draws about half of the sizes anew, at least one of those that may vary. */
static void draw_sizes(const stressing *s, stress_case *c, ev_pcg *rng) {
    uint32_t free_count = 0;
    for (size_t i = 0; i < c->at.shape_count; i++) {
        const launch_range *range = stress_range_of(s, c->shape[i].name);
        free_count += range != NULL && range->low < range->high;
    }
    uint32_t surely = free_count > 0 ? ev_pcg_below(rng, free_count) : 0, number = 0;
    for (size_t i = 0; i < c->at.shape_count; i++) {
        const launch_range *range = stress_range_of(s, c->shape[i].name);
        if (range == NULL)
            continue;
        bool is_drawn = ev_pcg_below(rng, 2) == 0;
        bool is_free = range->low < range->high;
        if ((is_free && (is_drawn || number == surely)) ||
            !launch_range_holds(range, c->shape[i].value.real))
            draw_size(range, &c->shape[i], rng);
        number += is_free;
    }
}

static bool is_free_whole(const stressing *s, const expr_name *size) {
    const launch_range *range = stress_range_of(s, size->name);
    return range != NULL && !range->is_real && range->low < range->high;
}

/* The size number `nth` of those that vary and are whole. */
static expr_name *free_size(const stressing *s, stress_case *c, uint32_t nth) {
    for (size_t i = 0; i < c->at.shape_count; i++) {
        if (is_free_whole(s, &c->shape[i]) && nth-- == 0)
            return &c->shape[i];
    }
    return NULL;
}

/* What a kernel does may depend on the difference of two sizes, a begin and an end, which sizes
 * that are drawn each for itself hardly ever have small. */
static void draw_pair(const stressing *s, stress_case *c, uint32_t count, ev_pcg *rng) {
    uint32_t first = ev_pcg_below(rng, count);
    uint32_t other = (first + 1 + ev_pcg_below(rng, count - 1)) % count;
    expr_name *a = free_size(s, c, first);
    const expr_name *b = free_size(s, c, other);
    int64_t apart = (int64_t)ev_pcg_below(rng, 1u << ev_pcg_below(rng, PAIR_BITS + 1));
    const launch_range *range = stress_range_of(s, a->name);
    int64_t step = range->multiple > 0 ? range->multiple : 1;
    int64_t way = ev_pcg_below(rng, 2) == 0 ? apart : -apart;
    a->value = expr_of_whole(stress_fit_range(range, b->value.whole + step * way));
}

static void draw_ends(const stressing *s, stress_case *c, ev_pcg *rng) {
    bool are_high = ev_pcg_below(rng, 2) == 0;
    for (size_t i = 0; i < c->at.shape_count; i++) {
        const launch_range *range = stress_range_of(s, c->shape[i].name);
        if (is_free_whole(s, &c->shape[i]))
            c->shape[i].value = expr_of_whole(
                stress_fit_range(range, (int64_t)(are_high ? range->high : range->low)));
    }
}

/* Sizes as they stand to each other. */
static void draw_together(const stressing *s, stress_case *c, ev_pcg *rng) {
    uint32_t count = 0;
    for (size_t i = 0; i < c->at.shape_count; i++)
        count += is_free_whole(s, &c->shape[i]);
    if (count < 2)
        return;
    if (ev_pcg_below(rng, ENDS_EACH) == 0)
        draw_ends(s, c, rng);
    else if (ev_pcg_below(rng, PAIR_EACH) == 0)
        draw_pair(s, c, count, rng);
}

/* A name that no case of the task has. The data depend on it. */
static void set_name(const stressing *s, uint32_t number, stress_case *c) {
    const char *again = "";
    do {
        (void)snprintf(c->name, sizeof c->name, "stress-%.40s-%llu-%u%s",
                       s->subject->candidate->start->name, (unsigned long long)s->limits.seed,
                       number, again);
        again = again[0] == '\0' ? "-again" : "-anew";
    } while (task_find_case(s->subject->t, c->name) != NULL && strstr(c->name, "-anew") == NULL);
}

void stress_begin_case(const stressing *s, const task_case *from, uint32_t number,
                       stress_case *out) {
    *out = (stress_case){.from = from};
    out->at = *from;
    assert(out->at.shape_count <= STRESS_SIZES_MOST);
    memcpy(out->shape, from->shape, out->at.shape_count * sizeof out->shape[0]);
    set_name(s, number, out);
    out->at.name = out->name;
    out->at.shape = out->shape;
    out->at.from = NULL;
    out->at.split = CORPUS_HELD_OUT;
    out->at.use = TASK_CHECK;
}

void stress_draw(const stressing *s, uint32_t number, ev_pcg *rng, stress_case *out) {
    stress_begin_case(s, draw_case(s, rng), number, out);
    draw_sizes(s, out, rng);
    draw_together(s, out, rng);
    out->at.inputs = (task_case_inputs){.fresh = 1 + ev_pcg_below(rng, INT32_MAX - 1)};
    out->with = out->at.inputs;
}
