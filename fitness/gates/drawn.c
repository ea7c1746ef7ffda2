/* Drawn cases: small check cases that the tuner generates from the search's own, because a search
 * learns to exploit whatever its few cases do not cover.
 *
 * Each generated case is a small search case with one size changed. A candidate case has to
 * satisfy three conditions: the unmodified starts are correct there, so the case is legal for the
 * task; its cost is small; and it covers new behaviour. Coverage is measured as in coverage-guided
 * fuzzing (Zalewski, "AFL technical details"): for each instruction of each start, the number of
 * executions a warp in buckets of powers of two. A bucket that no earlier case reached is new.
 *
 * `choose` is the greedy algorithm for maximum coverage: it takes the case with the largest gain,
 * adds its buckets to those seen, and repeats until no case gains much or the budget is used up.
 * Code that no case had executed counts before all else; other gains are divided by the cost of
 * the case. Held-out and adversarial cases take no part, except that a shape of theirs is never
 * drawn. */
#include "fitness/gates/fitness_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIATIONS_MOST 8 /* variations of one size; each is tried once */
#define SHAPES_MOST 256   /* shapes that are looked at */
/* The limit of the cost of all drawn cases together, as a share of the cost of the search's own
 * small cases. Costs are thread instructions of the baseline. */
#define COST_SHARE 1.5
/* Limit of thread instructions of a start at the task's own small cases. */
#define OWN_FUEL 1e10
/* Fixed cost of a case, for its launch and the comparison. */
#define COST_CASE 2e5
/* The least gain of a case, as a share of the instructions of all starts. */
#define LEAST_GAIN 0.01

#define BUCKETS 8
/* The share of the tolerance that a start may use up at a drawn case, unless it uses more at the
 * task's own cases, such as a whole number that may be off by one. The rest is for variants that
 * round differently. */
#define MARGIN 0.5

/* A start, loaded on the device of the generator, and the buckets that its cases reached. */
typedef struct drawn_start {
    fit_trial trial;
    size_t insn_count;
    uint8_t *seen; /* per pc: a bit a bucket */
    double used;   /* the largest share of the tolerance at the task's own small cases */
    bool is_wrong; /* the start is wrong at a small case of the task, so its results do not count */
} drawn_start;

/* A candidate case: legal and cheap. */
typedef struct drawn_shape {
    task_case at;
    uint8_t *buckets; /* of all starts, one after the other */
    double cost;
    bool taken;
} drawn_shape;

typedef struct drawing {
    fitness *f; /* owned, on an owned device */
    device *d;
    drawn_start *starts;
    size_t start_count, insn_count; /* of all starts */
    drawn_shape shapes[SHAPES_MOST];
    size_t shape_count;
    double cost_most;
} drawing;

/* ---- running a start at a case ---- */

static uint8_t bucket_of(uint64_t count, uint64_t warps) {
    if (count == 0 || warps == 0)
        return 0;
    if (count <= warps)
        return count == warps ? 2 : 1;
    double more = ceil(log2((double)count / (double)warps));
    return (uint8_t)fmin(2 + more, BUCKETS - 1);
}

/* Runs the start, and compares in full if there is an answer. is_own: at a case of the task, in
 * place of a drawn one. *ok: the run is correct and within its fuel. */
static ev_status run_start(drawing *g, fit_case *c, drawn_start *start, bool is_own,
                           uint8_t *buckets, double *cost, bool *ok, ev_error *err) {
    double most = is_own ? 1 : fmax(MARGIN, start->used);
    double fuel = is_own ? OWN_FUEL : g->cost_most;
    bool answered = g->f->t->oracle_kind != TASK_ORACLE_BASELINE || c->outputs[0].want != NULL;
    uint64_t *executions = calloc(start->insn_count + 1, sizeof *executions);
    if (executions == NULL)
        return ev_fail_memory(err, start->insn_count * sizeof *executions);
    fit_run_options options = {
        .checks = fit_checks(g->f), .fuel = (uint64_t)fuel, .executions = executions};
    fit_run run = {.share = 1, .whole = 1};
    accuracy got = {0};
    accuracy_limits limits = fit_limits(g->f, c);
    ev_status status = fit_run_case(g->f, c, &start->trial, &options, &run, err);
    *ok = status == EV_OK && run.outcome.ok;
    if (*ok && answered)
        status = fit_compare_full(g->f, c, &limits, &got, err);
    if (*ok && status == EV_OK)
        status = fit_ranks_same(g->f, c, ok, err);
    if (status == EV_OK)
        status = fit_restore_after(g->f, c, &run, err);
    *ok = *ok && status == EV_OK && got.normalised <= most;
    start->used = is_own && *ok ? fmax(start->used, got.normalised) : start->used;
    *cost = (double)run.outcome.counters.thread_instructions;
    for (size_t pc = 0; pc < start->insn_count; pc++)
        buckets[pc] = bucket_of(executions[pc], executions[0]);
    free(executions);
    return status;
}

ev_status fit_drawn_forgive(ev_status status, const ev_error *why, ev_error *err) {
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why->text);
    return EV_OK;
}

/* Runs all starts at a case. *legal: all are correct. A start that is wrong at a case of the task
 * itself (`is_own`) takes no further part. EV_BAD is an answer, too: such a shape is not legal. */
static ev_status run_starts(drawing *g, const task_case *at, bool is_own, uint8_t *buckets,
                            double *cost, bool *legal, ev_error *err) {
    fit_case *c = NULL;
    size_t offset = 0;
    *legal = false;
    EV_TRY(fit_case_get(g->f, at, fit_usual_inputs(g->f), &c, err));
    c->is_drawn = true; /* times are of no use here */
    for (size_t i = 0; i < g->start_count; i++) {
        drawn_start *start = &g->starts[i];
        bool ok = false;
        double own = 0;
        ev_error why = {.status = EV_OK};
        if (!start->is_wrong)
            EV_TRY(fit_drawn_forgive(
                run_start(g, c, start, is_own, buckets + offset, &own, &ok, &why), &why, err));
        start->is_wrong = start->is_wrong || (!ok && is_own);
        if (!ok && !start->is_wrong)
            return EV_OK;
        if (i == 0) {
            *cost = own; /* so it may be run without a limit */
            EV_TRY(fit_need_baseline(g->f, c, err));
        }
        offset += start->insn_count;
    }
    *legal = true;
    return EV_OK;
}

/* ---- shapes ---- */

static bool is_small(const task_case *at) {
    return at->split == CORPUS_SEARCH && at->use != TASK_TIME;
}

static const expr_name *find_size(const task_case *at, const char *name) {
    for (size_t i = 0; i < at->shape_count; i++) {
        if (strcmp(at->shape[i].name, name) == 0)
            return &at->shape[i];
    }
    return NULL;
}

static bool same_value(const expr_value *a, const expr_value *b) {
    double x = a->is_real ? a->real : (double)a->whole, y = b->is_real ? b->real : (double)b->whole;
    return x == y;
}

bool fit_drawn_same_shape(const task_case *a, const task_case *b) {
    for (size_t i = 0; i < a->shape_count; i++) {
        const expr_name *other = find_size(b, a->shape[i].name);
        if (other == NULL || !same_value(&a->shape[i].value, &other->value))
            return false;
    }
    return a->shape_count == b->shape_count;
}

/* Shapes of the search are not new, and shapes of other splits must stay unknown to the search. */
bool fit_drawn_is_of_task(const task *t, const task_case *at) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (fit_drawn_same_shape(&t->cases[i], at))
            return true;
    }
    return false;
}

static size_t variations_of(int64_t size, int64_t *out) {
    const int64_t all[VARIATIONS_MOST] = {size + 1, size - 1, 2 * size, size / 2, 4 * size, 1};
    size_t count = 0;
    for (size_t i = 0; i < VARIATIONS_MOST; i++) {
        bool known = all[i] < 1 || all[i] == size;
        for (size_t k = 0; k < count && !known; k++)
            known = out[k] == all[i];
        if (!known)
            out[count++] = all[i];
    }
    return count;
}

void fit_drawn_free_case(task_case *at) {
    free((char *)at->name);
    free((expr_name *)at->shape);
    memset(at, 0, sizeof *at);
}

/* A copy of `from` with one size changed. */
static ev_status make_case(const task_case *from, size_t size, int64_t value, task_case *out,
                           ev_error *err) {
    char name[96];
    task_case made = *from;
    expr_name *shape = calloc(from->shape_count, sizeof *shape);
    (void)snprintf(name, sizeof name, "%.40s:%.24s=%lld", from->name, from->shape[size].name,
                   (long long)value);
    made.name = strdup(name);
    made.shape = shape;
    if (made.name == NULL || shape == NULL) {
        fit_drawn_free_case(&made);
        return ev_fail_memory(err, from->shape_count * sizeof *shape);
    }
    memcpy(shape, from->shape, from->shape_count * sizeof *shape);
    shape[size].value = (expr_value){.whole = value, .real = (double)value};
    made.use = TASK_CHECK;
    *out = made;
    return EV_OK;
}

/* ---- looking at the task's own small cases, and at shapes ---- */

static void see(drawing *g, const uint8_t *buckets) {
    for (size_t i = 0, at = 0; i < g->start_count; at += g->starts[i++].insn_count) {
        for (size_t pc = 0; !g->starts[i].is_wrong && pc < g->starts[i].insn_count; pc++)
            g->starts[i].seen[pc] |= (uint8_t)(1u << buckets[at + pc]);
    }
}

/* Counts the instructions that the case would execute for the first time, and those that it would
 * execute another number of times. */
static void gain_of(const drawing *g, const uint8_t *buckets, size_t *fresh, size_t *other) {
    *fresh = *other = 0;
    for (size_t i = 0, at = 0; i < g->start_count; at += g->starts[i++].insn_count) {
        for (size_t pc = 0; !g->starts[i].is_wrong && pc < g->starts[i].insn_count; pc++) {
            uint8_t bucket = buckets[at + pc], seen = g->starts[i].seen[pc];
            bool is_new = (seen >> bucket & 1u) == 0, is_first = bucket > 0 && (seen & ~1u) == 0;
            *fresh += is_new && is_first;
            *other += is_new && !is_first;
        }
    }
}

/* Runs the starts at the search's own small cases, and notes buckets and costs. */
static ev_status look_at_own(drawing *g, ev_error *err) {
    uint8_t *buckets = calloc(g->insn_count + 1, 1);
    if (buckets == NULL)
        return ev_fail_memory(err, g->insn_count);
    ev_status status = EV_OK;
    double all = 0;
    for (size_t i = 0; status == EV_OK && i < g->f->t->case_count; i++) {
        double cost = 0;
        bool legal = false;
        if (!is_small(&g->f->t->cases[i]))
            continue;
        ev_error why = {.status = EV_OK};
        status = fit_drawn_forgive(
            run_starts(g, &g->f->t->cases[i], true, buckets, &cost, &legal, &why), &why, err);
        if (status == EV_OK && legal)
            see(g, buckets);
        all += cost;
    }
    g->cost_most = COST_SHARE * all;
    free(buckets);
    return status;
}

static ev_status look_at_shape(drawing *g, const task_case *from, size_t size, int64_t value,
                               ev_error *err) {
    if (g->shape_count == SHAPES_MOST)
        return EV_OK;
    drawn_shape *s = &g->shapes[g->shape_count];
    EV_TRY(make_case(from, size, value, &s->at, err));
    s->buckets = calloc(g->insn_count + 1, 1);
    ev_error why = {.status = EV_OK};
    bool legal = false;
    ev_status status = s->buckets != NULL ? EV_OK : ev_fail_memory(err, g->insn_count);
    if (status == EV_OK && !fit_drawn_is_of_task(g->f->t, &s->at))
        status = fit_drawn_forgive(run_starts(g, &s->at, false, s->buckets, &s->cost, &legal, &why),
                                   &why, err);
    /* A case of an illegal shape keeps its place, because the fitness points to it. */
    s->taken = !legal;
    g->shape_count++;
    return status;
}

static ev_status look_at_shapes(drawing *g, ev_error *err) {
    for (size_t i = 0; i < g->f->t->case_count; i++) {
        const task_case *from = &g->f->t->cases[i];
        for (size_t size = 0; is_small(from) && size < from->shape_count; size++) {
            int64_t values[VARIATIONS_MOST];
            size_t count = 0;
            if (!from->shape[size].value.is_real)
                count = variations_of(from->shape[size].value.whole, values);
            for (size_t k = 0; k < count; k++)
                EV_TRY(look_at_shape(g, from, size, values[k], err));
        }
    }
    return EV_OK;
}

/* ---- choosing ---- */

/* The gain of a case. New code counts first, whatever its cost; other gains are divided by the
 * cost. 0: no gain worth a case. */
static double worth_of(const drawing *g, const drawn_shape *s) {
    size_t fresh = 0, other = 0;
    double least = LEAST_GAIN * (double)g->insn_count;
    gain_of(g, s->buckets, &fresh, &other);
    if ((double)fresh >= least)
        return 1 + (double)fresh;
    return (double)other >= least ? (double)other / (s->cost + COST_CASE) : 0;
}

/* The case with the largest gain; the first among equals. NULL: no case has a gain. */
static drawn_shape *best_shape(drawing *g, double budget) {
    drawn_shape *best = NULL;
    double most = 0;
    for (size_t i = 0; i < g->shape_count; i++) {
        drawn_shape *s = &g->shapes[i];
        double worth = s->taken || s->cost > budget ? 0 : worth_of(g, s);
        if (worth > most) {
            best = s;
            most = worth;
        }
    }
    return best;
}

ev_status fit_drawn_take(fitness *f, fit_drawn *drawn, task_case *at, ev_error *err) {
    task_case *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return ev_fail_memory(err, sizeof *kept);
    *kept = *at;
    *at = (task_case){0};
    drawn->at = kept;
    fit_case *c = NULL;
    ev_error why = {.status = EV_OK};
    ev_status status = fit_case_get(f, kept, fit_usual_inputs(f), &c, &why);
    if (status == EV_OK) {
        c->is_drawn = true;
        status = fit_need_baseline(f, c, &why);
    }
    drawn->used = status == EV_OK;
    return fit_drawn_forgive(status, &why, err);
}

static ev_status choose(drawing *g, fitness *f, ev_error *err) {
    double budget = g->cost_most;
    while (f->drawn_count < FIT_DRAWN_MOST) {
        drawn_shape *best = best_shape(g, budget);
        if (best == NULL)
            return EV_OK;
        best->taken = true;
        budget -= best->cost;
        see(g, best->buckets);
        EV_TRY(fit_drawn_take(f, &f->drawn[f->drawn_count++], &best->at, err));
    }
    return EV_OK;
}

/* ---- the whole ---- */

static ev_status load_start(drawing *g, const candidate *who, ev_error *err) {
    drawn_start *s = &g->starts[g->start_count];
    ev_error why = {.status = EV_OK};
    s->trial.who = who;
    ev_status status =
        device_load_plan(g->d, who->ptx, who->ptx_bytes, who->plan, &s->trial.kernel, &why);
    EV_TRY(fit_drawn_forgive(status, &why, err));
    if (status != EV_OK) /* it is no start for this GPU */
        return EV_OK;
    s->insn_count = vm_module_insn_count(device_kernel_module(s->trial.kernel));
    s->seen = calloc(s->insn_count + 1, 1);
    g->start_count++;
    g->insn_count += s->insn_count;
    return s->seen != NULL ? EV_OK : ev_fail_memory(err, s->insn_count);
}

/* Draws the timed cases, with the starts that are right at the task's own small cases. */
static ev_status draw_timed(drawing *g, fitness *f, ev_error *err) {
    fit_trial *trials = calloc(g->start_count + 1, sizeof *trials);
    size_t count = 0;
    if (trials == NULL)
        return ev_fail_memory(err, g->start_count * sizeof *trials);
    for (size_t i = 0; i < g->start_count; i++) {
        if (!g->starts[i].is_wrong)
            trials[count++] = g->starts[i].trial;
    }
    ev_status status = fit_draw_timed(f, g->f, trials, count, err);
    free(trials);
    return status;
}

static ev_status draw(drawing *g, fitness *f, const candidate *starts, size_t count,
                      ev_error *err) {
    score s;
    EV_TRY(fitness_set_baseline(g->f, &f->baseline, 0, &s, err));
    g->starts = calloc(count + 1, sizeof *g->starts);
    if (g->starts == NULL)
        return ev_fail_memory(err, count * sizeof *g->starts);
    for (size_t i = 0; i < count; i++)
        EV_TRY(load_start(g, &starts[i], err));
    EV_TRY(look_at_own(g, err));
    EV_TRY(look_at_shapes(g, err));
    EV_TRY(choose(g, f, err));
    return draw_timed(g, f, err);
}

static void close_drawing(drawing *g) {
    for (size_t i = 0; g->starts != NULL && i < g->start_count; i++) {
        device_unload(g->starts[i].trial.kernel);
        free(g->starts[i].seen);
    }
    for (size_t i = 0; i < g->shape_count; i++) {
        fit_drawn_free_case(&g->shapes[i].at);
        free(g->shapes[i].buckets);
    }
    fitness_close(g->f);
    device_close(g->d);
    free(g->starts);
    free(g);
}

ev_status fitness_draw_cases(fitness *f, const char *device_id, const candidate *starts,
                             size_t count, ev_error *err) {
    const device_properties *is = device_properties_of(f->d);
    const char *machine = is->modelled ? device_id : is->twin;
    if (machine[0] == '\0')
        return EV_OK;
    drawing *g = calloc(1, sizeof *g);
    if (g == NULL)
        return ev_fail_memory(err, sizeof *g);
    ev_status status = fitness_open_device(f->t, machine, &g->d, err);
    if (status == EV_OK)
        status = fitness_open(f->t, g->d, &f->options, &g->f, err);
    if (status == EV_OK)
        status = draw(g, f, starts, count, err);
    close_drawing(g);
    return status;
}

static const task_case *used_case(const fit_drawn *drawn, size_t count, size_t index) {
    for (size_t i = 0; i < count; i++) {
        if (drawn[i].used && index-- == 0)
            return drawn[i].at;
    }
    return NULL;
}

const task_case *fitness_drawn_case(const fitness *f, size_t index) {
    return used_case(f->drawn, f->drawn_count, index);
}

const task_case *fitness_drawn_timed(const fitness *f, size_t index) {
    return used_case(f->timed, f->timed_count, index);
}

static void free_all(fit_drawn *drawn, size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        fit_drawn_free_case(drawn[i].at);
        free(drawn[i].at);
    }
    *count = 0;
}

void fit_drawn_free(fitness *f) {
    free_all(f->drawn, &f->drawn_count);
    free_all(f->timed, &f->timed_count);
}
