/* The cases of a draft from the launches of a program, and the files of their data.
 *
 * The cheapest launch is the smoke case, the dearest is timed, others check; launches that are left
 * are held out. Where there is no launch for a use, a case with generated data takes its place, if
 * the kernel takes such data, else the launch that is nearest to it. */
#include "tuner/init/draft_trace.h"

#include "base/file.h"
#include "corpora/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKS = 3, CASES = 16 };

/* Thread instructions of a case. */
#define SMOKE_MOST UINT64_C(2000000)
#define CHECK_MOST UINT64_C(12000000)
#define TIME_MOST UINT64_C(2000000000) /* the baseline is the oracle, so all blocks are run */

/* A row of "cases": a launch, or generated data. */
typedef struct role {
    const char *name, *split, *use;
    traced_case *launch;  /* NULL: generated */
    const int64_t *sizes; /* of generated data */
} role;

typedef struct roles {
    role rows[CASES];
    size_t count;
    traced_case *order[TRACED_CASES]; /* by cost */
    bool used[TRACED_CASES];
    size_t order_count;
} roles;

static int by_cost(const void *a, const void *b) {
    const traced_case *x = *(traced_case *const *)a, *y = *(traced_case *const *)b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->launch->number < y->launch->number ? -1 : x->launch->number > y->launch->number;
}

static void add_row(roles *r, role row) {
    if (r->count < CASES)
        r->rows[r->count++] = row;
}

static void add_launch(roles *r, size_t index, const char *name, const char *split,
                       const char *use) {
    r->used[index] = true;
    add_row(r, (role){.name = name, .split = split, .use = use, .launch = r->order[index]});
}

/* The dearest unused launch of at most `most` thread instructions; SIZE_MAX: none. */
static size_t dearest(const roles *r, uint64_t most) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < r->order_count; i++) {
        if (!r->used[i] && r->order[i]->cost <= most)
            best = i;
    }
    return best;
}

static void add_generated(const draft *d, roles *r) {
    add_row(r, (role){"odd", "search", "check", NULL, d->odd});
    add_row(r, (role){"other", "held-out", "check", NULL, d->other_odd});
}

/* No launch is cheap enough. */
static void assign_generated(const draft *d, roles *r) {
    add_row(r, (role){"small", "search", "smoke", NULL, d->small});
    add_row(r, (role){"large", "search", "time", NULL, d->large});
    add_row(r, (role){"other-large", "held-out", "time", NULL, d->other_large});
    add_generated(d, r);
}

static void sort_launches(const draft_trace *dt, roles *r) {
    for (size_t i = 0; i < dt->count; i++)
        r->order[r->order_count++] = &dt->cases[i];
    qsort(r->order, r->order_count, sizeof(r->order[0]), by_cost);
}

static void assign(const draft_trace *dt, roles *r) {
    const draft *d = dt->d;
    bool generates = dt->generates;
    size_t timed = dearest(r, TIME_MOST);
    if (!generates || r->order[0]->cost <= SMOKE_MOST)
        add_launch(r, 0, "smoke", "search", "smoke");
    else
        add_row(r, (role){"small", "search", "smoke", NULL, d->small});
    add_launch(r, timed, "time", "search", "time");
    size_t held = dearest(r, TIME_MOST), checks = 0;
    add_launch(r, held != SIZE_MAX ? held : timed, "held-out-time", "held-out", "time");
    size_t other = dearest(r, CHECK_MOST);
    if (other != SIZE_MAX)
        add_launch(r, other, "held-out-check", "held-out", "check");
    for (size_t i; checks < CHECKS && (i = dearest(r, CHECK_MOST)) != SIZE_MAX; checks++)
        add_launch(r, i, "check", "search", "check");
    if (generates)
        add_generated(d, r);
    if (checks == 0 && !generates)
        add_launch(r, 0, "check", "search", "check");
    if (other == SIZE_MAX && !generates)
        add_launch(r, 0, "held-out-check", "held-out", "check");
}

/* The search's first, and of these the cheap ones. */
static int by_use(const void *a, const void *b) {
    static const char *const uses[] = {"smoke", "check", "time"};
    const role *x = a, *y = b;
    int first = strcmp(y->split, x->split); /* "search" before "held-out" */
    for (size_t i = 0; first == 0 && i < sizeof uses / sizeof uses[0]; i++)
        first = (strcmp(y->use, uses[i]) == 0) - (strcmp(x->use, uses[i]) == 0);
    if (first == 0 && x->launch != NULL && y->launch != NULL)
        return x->launch->launch->number < y->launch->launch->number ? -1 : 1;
    return first != 0 ? first : (x->launch == NULL) - (y->launch == NULL);
}

/* ---- data ---- */

static const char *whole_name(const draft *d, const draft_argument *a) {
    return a->owner != NULL ? ev_arena_printf(d->t->arena, "%s.%s", a->owner, a->field) : a->name;
}

static ev_status write_array(const char *folder, const char *name, const char *ending, ev_type type,
                             uint64_t count, const void *data, ev_error *err) {
    char path[4200];
    (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    return npy_write(path, type, count, data, err);
}

static uint64_t elements_of(const draft_trace *dt, const traced_case *c, const draft_argument *a) {
    int64_t value = 0;
    (void)draft_trace_value(dt, c, a->count, &value);
    return (uint64_t)value * a->lanes;
}

/* NAME.npy of each input, and NAME.expected.npy of what the program's kernel left. */
static ev_status write_data(const draft_trace *dt, const traced_case *c, const char *folder,
                            ev_error *err) {
    const draft *d = dt->d;
    EV_TRY(ev_dir_make(folder, err));
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        const traced_buffer *b = &c->buffers[i];
        if (a->kind == DRAFT_SCALAR)
            continue;
        const char *name = whole_name(d, a);
        uint64_t count = elements_of(dt, c, a);
        if (a->kind != DRAFT_OUT)
            EV_TRY(write_array(folder, name, ".npy", a->type, count, c->before[b->part] + b->offset,
                               err));
        if (a->kind != DRAFT_IN)
            EV_TRY(write_array(folder, name, ".expected.npy", a->type, count,
                               c->after[b->part] + b->offset, err));
    }
    for (size_t i = 0; i < d->symbol_count; i++) {
        const draft_symbol *s = &d->symbols[i];
        EV_TRY(write_array(folder, s->name, ".npy", s->type, (uint64_t)s->count * s->lanes,
                           c->before[c->symbols[i]], err));
    }
    return EV_OK;
}

static ev_status write_once(const draft_trace *dt, const traced_case *c, const char *folder,
                            ev_error *err) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/data/launch%" PRIu64, folder, c->launch->number);
    return ev_path_exists(path) ? EV_OK : write_data(dt, c, path, err);
}

/* ---- task.json ---- */

static void write_number(const expr_value *v, ev_str *out) {
    if (v->is_real)
        draft_trace_real(EV_F64, v->real, out);
    else
        ev_str_printf(out, "%" PRId64, v->whole);
}

static void write_names(const draft_trace *dt, const traced_case *c, size_t first, ev_str *out) {
    for (size_t i = first; i < dt->name_count; i++) {
        ev_str_printf(out, "%s\"%s\": ", i > first ? ", " : "", dt->names[i]);
        write_number(&c->values[i], out);
    }
}

static void write_files(const draft_trace *dt, const traced_case *c, ev_str *out) {
    const draft *d = dt->d;
    const char *comma = "";
    char folder[64];
    (void)snprintf(folder, sizeof folder, "data/launch%" PRIu64, c->launch->number);
    ev_str_append(out, ",\n     \"data\": {");
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->kind == DRAFT_SCALAR || a->kind == DRAFT_OUT)
            continue;
        const char *name = whole_name(d, a);
        ev_str_printf(out, "%s\"%s\": {\"file\": \"%s/%s.npy\"}", comma, name, folder, name);
        comma = ", ";
    }
    for (size_t i = 0; i < d->symbol_count; i++) {
        const char *name = d->symbols[i].name;
        ev_str_printf(out, "%s\"%s\": {\"file\": \"%s/%s.npy\"}", comma, name, folder, name);
        comma = ", ";
    }
    ev_str_append(out, "}");
}

static void write_row(const draft_trace *dt, const role *row, bool last, ev_str *out) {
    ev_str more = EV_STR_EMPTY;
    if (row->launch == NULL) {
        write_names(dt, &dt->cases[0], dt->d->size_count, &more);
        draft_write_case(dt->d, row->name, row->split, row->use, row->sizes, ev_str_text(&more),
                         last, out);
        ev_str_free(&more);
        return;
    }
    const traced_case *c = row->launch;
    ev_str_printf(out,
                  "    {\"name\": \"launch%" PRIu64 "-%s\", \"split\": \"%s\", \"use\": \"%s\", "
                  "\"shape\": {",
                  c->launch->number, row->name, row->split, row->use);
    write_names(dt, c, 0, out);
    ev_str_append(out, "}");
    write_files(dt, c, out);
    ev_str_append(out, last ? "}\n" : "},\n");
}

static ev_status fail_cost(const draft_trace *dt, const roles *r, ev_error *err) {
    const traced_case *c = r->order[0];
    return ev_fail(err, EV_BAD,
                   "launch %" PRIu64 " of %s, the cheapest, takes %.0f million thread "
                   "instructions, and a case at most %.0f million; run the program with less data",
                   c->launch->number, dt->d->kernel->name, (double)c->cost * 1e-6,
                   (double)TIME_MOST * 1e-6);
}

/* One launch is timed by the search and held out. */
static bool is_timed_twice(const roles *r) {
    const traced_case *first = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const role *row = &r->rows[i];
        if (row->launch == NULL || strcmp(row->use, "time") != 0)
            continue;
        if (first == row->launch)
            return true;
        first = row->launch;
    }
    return false;
}

static void note_cases(const draft_trace *dt, const roles *r) {
    draft *d = dt->d;
    size_t unused = 0;
    for (size_t i = 0; i < r->order_count; i++)
        unused += !r->used[i];
    if (r->order[0]->cost > TIME_MOST)
        draft_note(d,
                   "no case has recorded data: the cheapest launch takes %.0f million thread "
                   "instructions, and a case at most %.0f million",
                   (double)r->order[0]->cost * 1e-6, (double)TIME_MOST * 1e-6);
    else if (unused > 0)
        draft_note(d,
                   "%zu recorded launch%s in no case: the cases are the cheapest and the "
                   "dearest launches",
                   unused, unused == 1 ? " is" : "es are");
    if (!dt->generates)
        draft_note(d, "all cases have recorded data: generated ones would be no indices, or the "
                      "kernel does not run on them, or lengths are no expressions of the sizes");
    else
        draft_note(d, "small, odd and other have generated data, in the ranges of the recorded");
    if (is_timed_twice(r))
        draft_note(d,
                   "the held-out case is timed with the data of the search's: no other launch is "
                   "left for it");
    if (r->rows[0].launch != NULL && r->rows[0].launch->cost > SMOKE_MOST)
        draft_note(d,
                   "each variant is run on %.1f million thread instructions before it is timed: "
                   "record a run of the program with less data for a faster search",
                   (double)r->rows[0].launch->cost * 1e-6);
}

ev_status draft_write_traced(draft_trace *dt, const char *folder, ev_str *out, ev_error *err) {
    roles r = {0};
    sort_launches(dt, &r);
    bool is_cheap = r.order[0]->cost <= TIME_MOST;
    if (!is_cheap && !dt->generates)
        return fail_cost(dt, &r, err);
    if (is_cheap)
        assign(dt, &r);
    else
        assign_generated(dt->d, &r);
    qsort(r.rows, r.count, sizeof r.rows[0], by_use);
    for (size_t i = 0; i < r.count; i++) {
        if (r.rows[i].launch != NULL)
            EV_TRY(write_once(dt, r.rows[i].launch, folder, err));
        write_row(dt, &r.rows[i], i + 1 == r.count, out);
    }
    note_cases(dt, &r);
    return EV_OK;
}
