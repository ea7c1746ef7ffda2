/* Drawn timed cases: shapes at which gate 5 times a variant beside the task's own timed cases.
 *
 * A task has few timed cases, often of one kind: the same number of tiles, the same small batch. A
 * search that is paid there alone finds structure that wins at these shapes and loses at others.
 * So a task with fewer than FIT_TIMED_MOST timed search cases gets more. Their times count in the
 * mean of a score like the own ones.
 *
 * Each size runs from its least to its greatest value in the search's cases, small magnitudes as
 * often as large ones. The range is cut into as many parts as cases are drawn, and each part goes
 * to one of them, by chance (Latin hypercube sampling; McKay, Beckman and Conover 1979). So each
 * size is small in one case and large in another, whatever the others are. A size that is a
 * multiple of some number in all timed cases stays so. A shape has to be no larger than the task's
 * own, and the starts have to be correct there; else it is drawn again, and after some tries from
 * all parts. Held-out and adversarial cases take no part, except that a shape of theirs is never
 * drawn. */
#include "fitness/gates/fitness_impl.h"

#include "base/pcg.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 12          /* draws of a case from its parts, and as many from all parts */
#define SIZES_MOST 32     /* sizes of a shape that are drawn */
#define LEAST_VALUES 16   /* values that a size's multiple leaves in its range, at least */
#define FUEL_SHARE 1.5    /* of the baseline's instructions at the task's own timed cases */
#define FUEL_LEAST 100000 /* thread instructions */
#define STREAM 0x74696d65u

typedef struct timed_drawing {
    fitness *f, *on;
    const fit_trial *starts;
    size_t start_count;
    size_t wanted;                                /* cases */
    uint8_t parts[SIZES_MOST][FIT_TIMED_MOST];    /* of a size, for each case */
    task_case shapes[2 * TRIES * FIT_TIMED_MOST]; /* drawn so far; `on` points to them */
    size_t shape_count;
    double bytes_most; /* buffers of the largest timed search case */
    ev_pcg rng;
} timed_drawing;

static bool is_own(const task_case *at) {
    return at->split == CORPUS_SEARCH && at->use == TASK_TIME;
}

static size_t count_own(const task *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->case_count; i++)
        count += is_own(&t->cases[i]);
    return count;
}

static const task_case *own_case(const task *t, size_t index) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (is_own(&t->cases[i]) && index-- == 0)
            return &t->cases[i];
    }
    return NULL;
}

/* ---- ranges ---- */

/* The values of a size in the search's cases. */
typedef struct size_range {
    double low, high;
    int64_t step; /* all timed values are multiples of it */
} size_range;

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static int64_t least_factor(int64_t value) {
    for (int64_t factor = 2; factor * factor <= value; factor++) {
        if (value % factor == 0)
            return factor;
    }
    return value;
}

static size_range range_of(const task *t, const char *name) {
    size_range range = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *at = &t->cases[i];
        for (size_t k = 0; at->split == CORPUS_SEARCH && k < at->shape_count; k++) {
            if (strcmp(at->shape[k].name, name) != 0)
                continue;
            const expr_value *value = &at->shape[k].value;
            range.low = fmin(range.low, value->real);
            range.high = fmax(range.high, value->real);
            if (is_own(at) && !value->is_real)
                range.step = common_divisor(range.step, value->whole);
        }
    }
    while (range.step > 1 && range.high < (double)range.step * LEAST_VALUES)
        range.step /= least_factor(range.step);
    return range;
}

/* A value at `at` of the range, 0 to 1; whole numbers by magnitude. */
static expr_value value_at(const size_range *range, bool is_real, double at) {
    if (is_real)
        return expr_of_real(range->low + at * (range->high - range->low));
    double low = log(fmax(range->low, 1)), high = log(fmax(range->high, 1));
    int64_t value = (int64_t)rint(exp(low + at * (high - low)));
    int64_t step = range->step > 1 ? range->step : 1;
    value -= value % step;
    while ((double)value < fmax(range->low, 1))
        value += step;
    return expr_of_whole(value);
}

/* ---- shapes ---- */

/* Gives each case another part of each size's range. */
static void deal_parts(timed_drawing *g) {
    for (size_t size = 0; size < SIZES_MOST; size++) {
        uint8_t *parts = g->parts[size];
        for (size_t i = 0; i < g->wanted; i++) {
            size_t other = ev_pcg_below(&g->rng, (uint32_t)i + 1);
            parts[i] = parts[other];
            parts[other] = (uint8_t)i;
        }
    }
}

static void draw_sizes(timed_drawing *g, size_t number, bool from_all, const task_case *from,
                       expr_name *shape) {
    for (size_t i = 0; i < from->shape_count; i++) {
        size_range range = range_of(g->f->t, shape[i].name);
        double at = ev_pcg_unit(&g->rng);
        if (!from_all && i < SIZES_MOST)
            at = (g->parts[i][number] + at) / (double)g->wanted;
        if (range.low < range.high)
            shape[i].value = value_at(&range, shape[i].value.is_real, at);
    }
}

static void print_value(const expr_value *value, char *text, size_t bytes) {
    if (value->is_real)
        (void)snprintf(text, bytes, "%.3g", value->real);
    else
        (void)snprintf(text, bytes, "%lld", (long long)value->whole);
}

/* "drawn 2: images=4, height=12": its number and sizes. malloc'ed; NULL: out of memory. */
static char *name_of(const expr_name *shape, size_t count, size_t number) {
    char name[96], value[24];
    int used = snprintf(name, sizeof name, "drawn %zu:", number + 1);
    for (size_t i = 0; i < count; i++) {
        size_t left = sizeof name - (size_t)used;
        print_value(&shape[i].value, value, sizeof value);
        int more = snprintf(name + used, left, " %.16s=%s", shape[i].name, value);
        if (more < 0 || (size_t)more >= left) {
            name[used] = '\0';
            break;
        }
        used += more;
    }
    return strdup(name);
}

/* Draws a shape into the list. */
static ev_status draw_shape(timed_drawing *g, size_t number, bool from_all, task_case **out,
                            ev_error *err) {
    const task_case *from = own_case(g->f->t, number % count_own(g->f->t));
    expr_name *shape = calloc(from->shape_count + 1, sizeof *shape);
    if (shape == NULL)
        return ev_fail_memory(err, from->shape_count * sizeof *shape);
    memcpy(shape, from->shape, from->shape_count * sizeof *shape);
    draw_sizes(g, number, from_all, from, shape);
    task_case *made = &g->shapes[g->shape_count++];
    *made = *from;
    made->shape = shape;
    made->from = NULL;
    made->name = name_of(shape, from->shape_count, number);
    *out = made;
    return made->name != NULL ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status bytes_of(const task *t, const task_case *at, double *bytes, ev_error *err) {
    *bytes = 0;
    for (size_t i = 0; i < t->argument_count; i++) {
        const task_argument *a = &t->arguments[i];
        uint64_t count = 0;
        if (a->kind == TASK_SCALAR)
            continue;
        EV_TRY(task_argument_count_of(t, a, at, &count, err));
        *bytes += (double)count * (double)ev_type_bytes(a->type);
    }
    return EV_OK;
}

/* Whether the shape is none of the task's, has a launch, and is no larger than the task's own. */
static bool is_fit(const timed_drawing *g, const task_case *at) {
    const candidate *base = &g->f->baseline;
    ev_error ignored;
    launch_geometry l;
    double bytes = 0;
    return !fit_drawn_is_of_task(g->f->t, at) && bytes_of(g->f->t, at, &bytes, &ignored) == EV_OK &&
           bytes <= g->bytes_most &&
           task_launch_of(g->f->t, base->start, base->plan, base->macros, base->macro_count, at, &l,
                          &ignored) == EV_OK;
}

/* ---- legal shapes ---- */

/* Whether the starts are correct at the shape. EV_BAD is an answer, too: they are not. */
static ev_status run_starts(timed_drawing *g, const task_case *at, bool *legal, ev_error *err) {
    fit_case *c = NULL;
    *legal = false;
    EV_TRY(fit_case_get(g->on, at, fit_usual_inputs(g->on), &c, err));
    c->is_drawn = true;
    EV_TRY(fit_need_baseline(g->on, c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = EV_OK;
    *legal = true;
    for (size_t i = 1; i < g->start_count && *legal && status == EV_OK; i++) {
        status = fit_try_case(g->on, c, &g->starts[i], 0, r, err);
        *legal = status == EV_OK && r->ok;
    }
    free(r);
    return status;
}

static ev_status look_at(timed_drawing *g, const task_case *at, bool *legal, ev_error *err) {
    ev_error why = {.status = EV_OK};
    *legal = false;
    if (!is_fit(g, at))
        return EV_OK;
    ev_status status = run_starts(g, at, legal, &why);
    *legal = *legal && status == EV_OK;
    return fit_drawn_forgive(status, &why, err);
}

/* Draws until a shape is legal. */
static ev_status draw_case(timed_drawing *g, size_t number, ev_error *err) {
    for (size_t i = 0; i < 2 * TRIES; i++) {
        task_case *at = NULL;
        bool legal = false;
        EV_TRY(draw_shape(g, number, i >= TRIES, &at, err));
        EV_TRY(look_at(g, at, &legal, err));
        if (legal)
            return fit_drawn_take(g->f, &g->f->timed[g->f->timed_count++], at, err);
    }
    return EV_OK;
}

/* Sets the limits of a drawn shape by the task's own timed cases. */
static ev_status measure_own(timed_drawing *g, ev_error *err) {
    double most = FUEL_LEAST;
    const task_case *at = NULL;
    for (size_t i = 0; (at = own_case(g->f->t, i)) != NULL; i++) {
        fit_case *c = NULL;
        double bytes = 0;
        EV_TRY(bytes_of(g->f->t, at, &bytes, err));
        EV_TRY(fit_case_get(g->on, at, fit_usual_inputs(g->on), &c, err));
        EV_TRY(fit_need_baseline(g->on, c, err));
        g->bytes_most = fmax(g->bytes_most, bytes);
        most = fmax(most, c->baseline.instructions);
    }
    g->on->options.baseline_fuel = (uint64_t)(FUEL_SHARE * most);
    return EV_OK;
}

static ev_status draw(timed_drawing *g, ev_error *err) {
    EV_TRY(measure_own(g, err));
    deal_parts(g);
    for (size_t i = 0; i < g->wanted; i++)
        EV_TRY(draw_case(g, i, err));
    return EV_OK;
}

ev_status fit_draw_timed(fitness *f, fitness *on, const fit_trial *starts, size_t count,
                         ev_error *err) {
    size_t own = count_own(f->t);
    if (own == 0 || own >= FIT_TIMED_MOST || count == 0)
        return EV_OK;
    timed_drawing *g = calloc(1, sizeof *g);
    if (g == NULL)
        return ev_fail_memory(err, sizeof *g);
    *g = (timed_drawing){.f = f,
                         .on = on,
                         .starts = starts,
                         .start_count = count,
                         .wanted = FIT_TIMED_MOST - own,
                         .rng = ev_pcg_seed(own, STREAM)};
    ev_status status = draw(g, err);
    for (size_t i = 0; i < g->shape_count; i++)
        fit_drawn_free_case(&g->shapes[i]);
    free(g);
    return status;
}
