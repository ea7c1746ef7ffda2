/* Drawn timed cases: shapes at which gate 5 times a variant beside the task's own timed cases.
 *
 * A task has few timed cases, often of one kind: the same number of tiles, the same small batch. A
 * search that is paid there alone finds structure that wins at these shapes and loses at others.
 * So a task with fewer than FIT_TIMED_MOST timed search cases gets more. Their times count in the
 * mean of a score, all together half as much as the own ones (search_ns in gates.c).
 *
 * A shape begins as one of the timed search cases, so that relations between sizes mostly hold.
 * About half of its sizes are drawn anew, from the least to the greatest value in the search's
 * cases, small magnitudes as often as large ones. A size that is a multiple of some number in all
 * timed cases stays so. A shape is no larger than the task's own timed ones, and not much smaller:
 * where few blocks run, a time is the latency of one block, and giving a block more work always
 * loses. Of the shapes so drawn, each next case is the one that is farthest from all timed so far,
 * by magnitude of sizes, grid and bytes, and at which the starts are correct. Held-out and
 * adversarial cases take no part, except that a shape of theirs is never drawn. */
#include "fitness/gates/fitness_impl.h"

#include "base/divisor.h"
#include "base/pcg.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES 192        /* shapes that are drawn */
#define TRIES_A_CASE 16   /* shapes that are run for a case, at most */
#define SIZES_MOST 28     /* sizes of a shape that count in its distance from others */
#define LEAST_BLOCKS 0.25 /* of the least grid of the own timed cases */
#define LEAST_NS 0.25     /* of the least time of the baseline at them */
#define LEAST_VALUES 16   /* values that a size's multiple leaves in its range, at least */
#define FUEL_SHARE 1.5    /* of the baseline's instructions at the task's own timed cases */
#define FUEL_LEAST 100000 /* thread instructions */
#define STREAM 0x74696d65u

enum { TRAITS = SIZES_MOST + 4 }; /* the sizes, the grid's dimensions, the bytes */

/* A timed case or a drawn shape. */
typedef struct timed_shape {
    task_case at;
    double blocks, bytes;
    double traits[TRAITS]; /* logarithms, but for real sizes */
    bool tried;
} timed_shape;

typedef struct timed_drawing {
    fitness *f, *on;
    const fit_trial *starts;
    size_t start_count;
    timed_shape taken[FIT_TIMED_MOST]; /* the task's own, then the drawn ones; names are borrowed */
    size_t taken_count;
    timed_shape shapes[SHAPES]; /* drawn; `on` points to their cases */
    size_t shape_count;
    double least_ns;      /* of the baseline, in the virtual machine */
    double spans[TRAITS]; /* of a trait over all shapes; 0: it does not vary */
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
                range.step = ev_divisor_signed(range.step, value->whole);
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

static void draw_sizes(const task *t, expr_name *shape, size_t count, ev_pcg *rng) {
    for (size_t i = 0; i < count; i++) {
        size_range range = range_of(t, shape[i].name);
        if (ev_pcg_below(rng, 2) == 0 && range.low < range.high)
            shape[i].value = value_at(&range, shape[i].value.is_real, ev_pcg_unit(rng));
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
    int used = snprintf(name, sizeof name, "drawn %zu:", number);
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

static ev_status draw_shape(const task *t, const task_case *from, size_t number, ev_pcg *rng,
                            task_case *out, ev_error *err) {
    expr_name *shape = calloc(from->shape_count + 1, sizeof *shape);
    if (shape == NULL)
        return ev_fail_memory(err, from->shape_count * sizeof *shape);
    memcpy(shape, from->shape, from->shape_count * sizeof *shape);
    draw_sizes(t, shape, from->shape_count, rng);
    *out = *from;
    out->shape = shape;
    out->from = NULL;
    out->name = name_of(shape, from->shape_count, number);
    if (out->name != NULL)
        return EV_OK;
    fit_drawn_free_case(out);
    return ev_fail_memory(err, 0);
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

static double magnitude(double value) {
    return log(fmax(value, 1));
}

/* The launch of the baseline with the most blocks. EV_BAD: the shape has no launch. */
static ev_status largest_launch(const timed_drawing *g, const task_case *at, launch_geometry *out,
                                ev_error *err) {
    const candidate *base = &g->f->baseline;
    task_steps steps;
    double most = 0;
    EV_TRY(task_steps_of(g->f->t, base->start, base->plan, base->macros, base->macro_count, at,
                         &steps, err));
    for (size_t i = 0; i < steps.count; i++) {
        const launch_geometry *l = &steps.all[i].at;
        double blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
        *out = blocks > most ? *l : *out;
        most = blocks > most ? blocks : most;
    }
    task_steps_free(&steps);
    return EV_OK;
}

/* Fills in grid, bytes and traits. EV_BAD: the shape has no launch. */
static ev_status measure(const timed_drawing *g, timed_shape *s, ev_error *err) {
    launch_geometry l = {0};
    size_t at = 0;
    EV_TRY(bytes_of(g->f->t, &s->at, &s->bytes, err));
    EV_TRY(largest_launch(g, &s->at, &l, err));
    s->blocks = (double)l.grid[0] * l.grid[1] * l.grid[2];
    for (size_t i = 0; i < s->at.shape_count && i < SIZES_MOST; i++) {
        const expr_value *value = &s->at.shape[i].value;
        s->traits[at++] = value->is_real ? value->real : magnitude(value->real);
    }
    for (size_t i = 0; i < 3; i++)
        s->traits[at++] = magnitude(l.grid[i]);
    s->traits[at] = magnitude(s->bytes);
    return EV_OK;
}

/* Whether the shape is none of the task's, and neither too large nor too small. */
static bool is_fit(const timed_drawing *g, timed_shape *s) {
    double bytes = 0, blocks = INFINITY;
    ev_error ignored;
    for (size_t i = 0; i < g->taken_count; i++) {
        bytes = fmax(bytes, g->taken[i].bytes);
        blocks = fmin(blocks, g->taken[i].blocks);
    }
    return !fit_drawn_is_of_task(g->f->t, &s->at) && measure(g, s, &ignored) == EV_OK &&
           s->bytes <= bytes && s->blocks >= LEAST_BLOCKS * blocks;
}

static void set_spans(timed_drawing *g) {
    for (size_t trait = 0; trait < TRAITS; trait++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < g->shape_count; i++) {
            low = fmin(low, g->shapes[i].traits[trait]);
            high = fmax(high, g->shapes[i].traits[trait]);
        }
        g->spans[trait] = high > low ? high - low : 0;
    }
}

static ev_status draw_shapes(timed_drawing *g, ev_error *err) {
    const task *t = g->f->t;
    size_t own = count_own(t);
    assert(own > 0);
    ev_pcg rng = ev_pcg_seed(own, STREAM);
    for (size_t i = 0; i < SHAPES; i++) {
        timed_shape s = {.tried = false};
        EV_TRY(draw_shape(t, own_case(t, i % own), i + 1, &rng, &s.at, err));
        if (is_fit(g, &s))
            g->shapes[g->shape_count++] = s;
        else
            fit_drawn_free_case(&s.at);
    }
    set_spans(g);
    return EV_OK;
}

/* ---- choosing ---- */

/* Squared, in spans. */
static double distance(const timed_drawing *g, const timed_shape *a, const timed_shape *b) {
    double sum = 0;
    for (size_t i = 0; i < TRAITS; i++) {
        double part = g->spans[i] > 0 ? (a->traits[i] - b->traits[i]) / g->spans[i] : 0;
        sum += part * part;
    }
    return sum;
}

/* From the nearest of the timed cases. */
static double distance_from_taken(const timed_drawing *g, const timed_shape *s) {
    double least = INFINITY;
    for (size_t i = 0; i < g->taken_count; i++)
        least = fmin(least, distance(g, s, &g->taken[i]));
    return least;
}

/* The untried shape that is farthest from the timed cases; NULL: none is left. */
static timed_shape *farthest(timed_drawing *g) {
    timed_shape *best = NULL;
    double most = 0;
    for (size_t i = 0; i < g->shape_count; i++) {
        double far = g->shapes[i].tried ? 0 : distance_from_taken(g, &g->shapes[i]);
        if (far > most) {
            best = &g->shapes[i];
            most = far;
        }
    }
    return best;
}

/* ---- legal shapes ---- */

/* Whether the starts are correct at the shape, and the baseline takes long enough. EV_BAD is an
 * answer, too: they are not. */
static ev_status run_starts(const timed_drawing *g, const task_case *at, bool *legal,
                            ev_error *err) {
    fit_case *c = NULL;
    *legal = false;
    EV_TRY(fit_case_get(g->on, at, fit_usual_inputs(g->on), &c, err));
    c->is_drawn = true;
    EV_TRY(fit_need_baseline(g->on, c, err));
    fit_result *r = malloc(sizeof *r);
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    ev_status status = EV_OK;
    *legal = c->baseline.ns >= g->least_ns;
    for (size_t i = 1; i < g->start_count && *legal && status == EV_OK; i++) {
        status = fit_try_case(g->on, c, &g->starts[i], 0, r, err);
        *legal = status == EV_OK && r->ok;
    }
    free(r);
    return status;
}

/* Takes the farthest legal shape. */
static ev_status take_case(timed_drawing *g, ev_error *err) {
    for (size_t i = 0; i < TRIES_A_CASE; i++) {
        timed_shape *s = farthest(g);
        if (s == NULL)
            return EV_OK;
        ev_error why = {.status = EV_OK};
        bool legal = false;
        s->tried = true;
        ev_status status = run_starts(g, &s->at, &legal, &why);
        EV_TRY(fit_drawn_forgive(status, &why, err));
        if (status != EV_OK || !legal)
            continue;
        g->taken[g->taken_count++] = *s;
        return fit_drawn_take(g->f, &g->f->timed[g->f->timed_count++], &s->at, err);
    }
    return EV_OK;
}

/* Takes the task's own timed cases, and bounds time and instructions of a drawn one. */
static ev_status take_own(timed_drawing *g, ev_error *err) {
    double most = FUEL_LEAST, least = INFINITY;
    const task_case *at = NULL;
    for (size_t i = 0; (at = own_case(g->f->t, i)) != NULL; i++) {
        fit_case *c = NULL;
        timed_shape *own = &g->taken[g->taken_count++];
        own->at = *at;
        EV_TRY(measure(g, own, err));
        EV_TRY(fit_case_get(g->on, at, fit_usual_inputs(g->on), &c, err));
        EV_TRY(fit_need_baseline(g->on, c, err));
        most = fmax(most, c->baseline.instructions);
        least = fmin(least, c->baseline.ns);
    }
    g->least_ns = LEAST_NS * least;
    g->on->options.baseline_fuel = (uint64_t)(FUEL_SHARE * most);
    return EV_OK;
}

static ev_status draw(timed_drawing *g, ev_error *err) {
    EV_TRY(take_own(g, err));
    EV_TRY(draw_shapes(g, err));
    for (size_t wanted = FIT_TIMED_MOST - g->taken_count; wanted > 0; wanted--)
        EV_TRY(take_case(g, err));
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
    g->f = f;
    g->on = on;
    g->starts = starts;
    g->start_count = count;
    ev_status status = draw(g, err);
    for (size_t i = 0; i < g->shape_count; i++)
        fit_drawn_free_case(&g->shapes[i].at);
    free(g);
    return status;
}
