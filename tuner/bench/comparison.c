/* Rows of compared searches: reading them, what a table needs of them, and the tables. */
#include "tuner/bench/comparison.h"

#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "tuner/bench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KERNELS 64

const char *const comparison_starts[COMPARISON_STARTS] = {"textbook", "hand"};

/* ---- rows ---- */

ev_status comparison_add(comparison *m, comparison_row row, ev_error *err) {
    if (m->count == m->room) {
        size_t room = m->room > 0 ? 2 * m->room : 64;
        comparison_row *rows = realloc(m->rows, room * sizeof *rows);
        if (rows == NULL) {
            json_decref(row.genome);
            return ev_fail_memory(err, room * sizeof *rows);
        }
        m->rows = rows;
        m->room = room;
    }
    m->rows[m->count++] = row;
    return EV_OK;
}

void comparison_free(comparison *m) {
    for (size_t i = 0; i < m->count; i++)
        json_decref(m->rows[i].genome);
    free(m->rows);
    *m = (comparison){0};
}

json_t *comparison_row_json(const comparison_row *r) {
    json_t *row =
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:f,s:O?}", "strategy", strategy_name(r->strategy),
                  "kernel", r->kernel, "start", comparison_starts[r->start], "seed",
                  (json_int_t)r->seed, "evaluations", (json_int_t)r->evaluations, "duplicates",
                  (json_int_t)r->duplicates, "speedup", r->speedup, "genome", r->genome);
    if (row && r->device[0] != '\0')
        (void)json_object_set_new(row, "device", json_string(r->device));
    if (row && r->without[0] != '\0')
        (void)json_object_set_new(row, "without", json_string(r->without));
    return row;
}

/* ---- reading ---- */

static const ev_json_key row_keys[] = {
    {"strategy", EV_JSON_STRING, true, "how the search went"},
    {"kernel", EV_JSON_STRING, true, "the task"},
    {"start", EV_JSON_STRING, true, "textbook or hand"},
    {"seed", EV_JSON_INTEGER, true, "the seed of the search"},
    {"evaluations", EV_JSON_INTEGER, true, "those that it used"},
    {"duplicates", EV_JSON_INTEGER, true, "those among them that were known"},
    {"speedup", EV_JSON_NUMBER, true, "over the start"},
    {"genome", EV_JSON_ANY, false, "of what was promoted"},
    {"device", EV_JSON_STRING, false, "where it was timed"},
    {"without", EV_JSON_STRING, false, "edits that were not drawn"},
};

static bool find_start(const char *name, size_t *out) {
    for (size_t i = 0; i < COMPARISON_STARTS; i++) {
        if (strcmp(name, comparison_starts[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* As many characters of `value` as fit in `to`, which has `bytes`. EV_BAD: not all. */
static ev_status take_text(const ev_json *doc, const char *key, char *to, size_t bytes,
                           ev_error *err) {
    const char *value = ev_json_text(doc->root, key, "");
    if (snprintf(to, bytes, "%s", value) >= (int)bytes)
        return ev_json_fail(doc, key, err, "over %zu characters", bytes - 1);
    return EV_OK;
}

static ev_status take_row(comparison *m, const ev_json *doc, ev_error *err) {
    EV_TRY(ev_json_check(doc, doc->root, "", row_keys, sizeof row_keys / sizeof row_keys[0], err));
    const json_t *o = doc->root;
    comparison_row row = {.seed = (uint64_t)ev_json_integer(o, "seed", 0),
                          .evaluations = (uint64_t)ev_json_integer(o, "evaluations", 0),
                          .duplicates = (uint64_t)ev_json_integer(o, "duplicates", 0),
                          .speedup = ev_json_number(o, "speedup", 0)};
    if (!strategy_find(ev_json_text(o, "strategy", ""), &row.strategy))
        return ev_json_fail(doc, "strategy", err, "no strategy; evoke tune --help lists them");
    if (!find_start(ev_json_text(o, "start", ""), &row.start))
        return ev_json_fail(doc, "start", err, "neither textbook nor hand");
    if (!(row.speedup > 0) || !isfinite(row.speedup))
        return ev_json_fail(doc, "speedup", err, "not above 0");
    EV_TRY(take_text(doc, "kernel", row.kernel, sizeof row.kernel, err));
    EV_TRY(take_text(doc, "device", row.device, sizeof row.device, err));
    EV_TRY(take_text(doc, "without", row.without, sizeof row.without, err));
    row.genome = json_incref(json_object_get(o, "genome"));
    return comparison_add(m, row, err);
}

static ev_status read_line(comparison *m, const char *text, const char *path, size_t line,
                           ev_error *err) {
    char name[512];
    (void)snprintf(name, sizeof name, "%s, line %zu", path, line);
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, name, &doc, err));
    ev_status status = take_row(m, doc, err);
    ev_json_free(doc);
    return status;
}

ev_status comparison_read(comparison *m, const char *path, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_status status = EV_OK;
    size_t line = 1;
    for (char *at = text; status == EV_OK && *at != '\0'; line++) {
        char *end = at + strcspn(at, "\n");
        char *next = *end == '\n' ? end + 1 : end;
        *end = '\0';
        if (at[strspn(at, " \t\r")] != '\0')
            status = read_line(m, at, path, line, err);
        at = next;
    }
    free(text);
    return status;
}

/* ---- the rows of a table ---- */

/* The edits that no search of the first table drew: none, unless all rows lack some. */
static const char *first_without(const comparison *m) {
    for (size_t i = 0; i < m->count; i++)
        if (m->rows[i].without[0] == '\0')
            return "";
    return m->count > 0 ? m->rows[0].without : "";
}

static bool is_first(const comparison *m, const comparison_row *r) {
    return strcmp(r->without, first_without(m)) == 0;
}

static const comparison_row *find_row(const comparison *m, const char *without, strategy s,
                                      const char *kernel, size_t start, uint64_t seed) {
    for (size_t i = 0; i < m->count; i++) {
        const comparison_row *r = &m->rows[i];
        if (r->strategy == s && r->start == start && r->seed == seed &&
            strcmp(r->kernel, kernel) == 0 && strcmp(r->without, without) == 0)
            return r;
    }
    return NULL;
}

/* What the first table has: strategies, kernels, starts and seeds, each in the order of the rows.
 */
typedef struct axes {
    bool strategies[STRATEGY_COUNT], starts[COMPARISON_STARTS];
    const char *kernels[MOST_KERNELS]; /* the rows' */
    uint64_t seeds[COMPARISON_MOST_SEEDS];
    size_t kernel_count, seed_count;
} axes;

static ev_status add_seed(axes *a, uint64_t seed, ev_error *err) {
    for (size_t i = 0; i < a->seed_count; i++)
        if (a->seeds[i] == seed)
            return EV_OK;
    if (a->seed_count == COMPARISON_MOST_SEEDS)
        return ev_fail(err, EV_BAD, "rows of over %d seeds", COMPARISON_MOST_SEEDS);
    a->seeds[a->seed_count++] = seed;
    return EV_OK;
}

static ev_status add_kernel(axes *a, const char *kernel, ev_error *err) {
    for (size_t i = 0; i < a->kernel_count; i++)
        if (strcmp(a->kernels[i], kernel) == 0)
            return EV_OK;
    if (a->kernel_count == MOST_KERNELS)
        return ev_fail(err, EV_BAD, "rows of over %d kernels", MOST_KERNELS);
    a->kernels[a->kernel_count++] = kernel;
    return EV_OK;
}

static ev_status axes_of(const comparison *m, axes *a, ev_error *err) {
    *a = (axes){0};
    for (size_t i = 0; i < m->count; i++) {
        const comparison_row *r = &m->rows[i];
        if (!is_first(m, r))
            continue;
        a->strategies[r->strategy] = true;
        a->starts[r->start] = true;
        EV_TRY(add_kernel(a, r->kernel, err));
        EV_TRY(add_seed(a, r->seed, err));
    }
    return EV_OK;
}

/* ---- what a table needs ---- */

static ev_status fail_row(ev_error *err, const char *what, const comparison_row *r) {
    return ev_fail(err, EV_BAD, "%s: %s, %s, %s, seed %" PRIu64 "%s%s", what,
                   strategy_name(r->strategy), r->kernel, comparison_starts[r->start], r->seed,
                   r->without[0] != '\0' ? ", without " : "", r->without);
}

static ev_status check_once(const comparison *m, ev_error *err) {
    for (size_t i = 0; i < m->count; i++) {
        const comparison_row *r = &m->rows[i], *first = &m->rows[0];
        if (strcmp(r->device, first->device) != 0)
            return ev_fail(err, EV_BAD,
                           "rows of '%s' and of '%s' make no table; give files of one device",
                           first->device, r->device);
        if (find_row(m, r->without, r->strategy, r->kernel, r->start, r->seed) != r)
            return fail_row(err, "this search has two rows; leave one out", r);
    }
    return EV_OK;
}

static ev_status check_complete(const comparison *m, const axes *a, ev_error *err) {
    comparison_row r = {0};
    (void)snprintf(r.without, sizeof r.without, "%s", first_without(m));
    for (int s = 0; s < STRATEGY_COUNT; s++)
        for (size_t k = 0; a->strategies[s] && k < a->kernel_count; k++)
            for (size_t start = 0; start < COMPARISON_STARTS; start++)
                for (size_t i = 0; a->starts[start] && i < a->seed_count; i++) {
                    r.strategy = (strategy)s;
                    r.start = start;
                    r.seed = a->seeds[i];
                    (void)snprintf(r.kernel, sizeof r.kernel, "%s", a->kernels[k]);
                    if (!find_row(m, r.without, r.strategy, r.kernel, start, r.seed))
                        return fail_row(err, "no row of this search, which the means need", &r);
                }
    for (size_t i = 0; i < m->count; i++) {
        r = m->rows[i];
        (void)snprintf(r.without, sizeof r.without, "%s", first_without(m));
        if (!find_row(m, r.without, r.strategy, r.kernel, r.start, r.seed))
            return fail_row(err, "no row of this search, beside which one without an edit stands",
                            &r);
    }
    return EV_OK;
}

ev_status comparison_check(const comparison *m, ev_error *err) {
    if (m->count == 0)
        return ev_fail(err, EV_BAD,
                       "there are no rows; evoke bench search --strategies --rows "
                       "FILE makes some");
    EV_TRY(check_once(m, err));
    axes a;
    EV_TRY(axes_of(m, &a, err));
    return check_complete(m, &a, err);
}

/* ---- intervals ---- */

/* Mean over the seeds, with the 95 % interval of Student's t of the logarithms. */
typedef struct interval {
    double mean, low, high;
} interval;

/* Student's t at 97.5 %, by degrees of freedom from 1. */
static double student(size_t freedom) {
    static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                       2.365,  2.306, 2.262, 2.228, 2.201, 2.179};
    size_t most = sizeof quantiles / sizeof quantiles[0];
    return freedom == 0 ? 0 : quantiles[freedom <= most ? freedom - 1 : most - 1];
}

/* Over the rows of a strategy; of one start and one kernel alone where they are given (`start` <
 * COMPARISON_STARTS, kernel not NULL). */
static interval interval_of(const comparison *m, const axes *a, strategy s, size_t start,
                            const char *kernel) {
    double logs[COMPARISON_MOST_SEEDS] = {0};
    for (size_t at = 0; at < a->seed_count; at++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < m->count; i++) {
            const comparison_row *r = &m->rows[i];
            if (r->strategy != s || r->seed != a->seeds[at] || !is_first(m, r) ||
                (start < COMPARISON_STARTS && r->start != start) ||
                (kernel && strcmp(kernel, r->kernel) != 0))
                continue;
            sum += log(r->speedup);
            count++;
        }
        logs[at] = count > 0 ? sum / (double)count : 0;
    }
    double mean = bench_mean(logs, a->seed_count);
    double reach = student(a->seed_count - 1) * bench_deviation(logs, a->seed_count) /
                   sqrt((double)a->seed_count);
    return (interval){exp(mean), exp(mean - reach), exp(mean + reach)};
}

/* ---- searches without an edit ---- */

/* One kernel and start of a strategy without some edits, and the same seeds with all edits. */
typedef struct loss {
    const comparison_row *of; /* the first of its rows */
    double all, without;      /* speed-ups, geometric means over the seeds */
    double ratios[COMPARISON_MOST_SEEDS];
    size_t seeds;
} loss;

static bool is_first_of_its_kind(const comparison *m, size_t at) {
    const comparison_row *r = &m->rows[at];
    for (size_t i = 0; i < at; i++) {
        const comparison_row *q = &m->rows[i];
        if (q->strategy == r->strategy && q->start == r->start &&
            strcmp(q->kernel, r->kernel) == 0 && strcmp(q->without, r->without) == 0)
            return false;
    }
    return !is_first(m, r);
}

static loss loss_of(const comparison *m, const comparison_row *of) {
    loss l = {.of = of};
    double all = 0, without = 0;
    for (size_t i = 0; i < m->count && l.seeds < COMPARISON_MOST_SEEDS; i++) {
        const comparison_row *r = &m->rows[i];
        if (r->strategy != of->strategy || r->start != of->start ||
            strcmp(r->kernel, of->kernel) != 0 || strcmp(r->without, of->without) != 0)
            continue;
        const comparison_row *full =
            find_row(m, first_without(m), r->strategy, r->kernel, r->start, r->seed);
        all += log(full->speedup);
        without += log(r->speedup);
        l.ratios[l.seeds++] = r->speedup / full->speedup;
    }
    l.all = exp(all / (double)l.seeds);
    l.without = exp(without / (double)l.seeds);
    return l;
}

/* ---- JSON ---- */

static json_t *geomeans_json(const comparison *m, const axes *a, size_t start) {
    json_t *all = json_object();
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        if (!a->strategies[s])
            continue;
        interval v = interval_of(m, a, (strategy)s, start, NULL);
        (void)json_object_set_new(
            all, strategy_name((strategy)s),
            json_pack("{s:f,s:f,s:f}", "mean", v.mean, "low", v.low, "high", v.high));
    }
    return all;
}

static json_t *losses_json(const comparison *m) {
    json_t *all = json_array();
    for (size_t i = 0; i < m->count; i++) {
        if (!is_first_of_its_kind(m, i))
            continue;
        loss l = loss_of(m, &m->rows[i]);
        (void)json_array_append_new(
            all,
            json_pack("{s:s,s:s,s:s,s:s,s:I,s:f,s:f,s:f}", "without", l.of->without, "strategy",
                      strategy_name(l.of->strategy), "kernel", l.of->kernel, "start",
                      comparison_starts[l.of->start], "seeds", (json_int_t)l.seeds, "speedup_all",
                      l.all, "speedup_without", l.without, "ratio", l.without / l.all));
    }
    return all;
}

json_t *comparison_json(const comparison *m) {
    axes a;
    if (axes_of(m, &a, NULL) != EV_OK)
        return NULL;
    json_t *rows = json_array(), *by_start = json_object();
    for (size_t i = 0; i < m->count; i++)
        (void)json_array_append_new(rows, comparison_row_json(&m->rows[i]));
    for (size_t i = 0; i < COMPARISON_STARTS; i++)
        if (a.starts[i])
            (void)json_object_set_new(by_start, comparison_starts[i], geomeans_json(m, &a, i));
    json_t *all = json_pack("{s:s,s:s,s:I,s:o,s:o,s:o,s:o}", "bench", "strategies", "device",
                            m->rows[0].device, "seeds", (json_int_t)a.seed_count, "rows", rows,
                            "geomean", geomeans_json(m, &a, COMPARISON_STARTS), "geomean_by_start",
                            by_start, "without", losses_json(m));
    return all;
}

/* ---- tables ---- */

static void add_line(const comparison *m, const axes *a, table *t, size_t start,
                     const char *kernel) {
    table_cell(t, "%s", kernel ? kernel : "geometric mean");
    table_cell(t, "%s", start < COMPARISON_STARTS ? comparison_starts[start] : "both");
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        if (!a->strategies[s])
            continue;
        interval v = interval_of(m, a, (strategy)s, start, kernel);
        if (a->seed_count > 1)
            table_cell(t, "%.3f [%.3f, %.3f]", v.mean, v.low, v.high);
        else
            table_cell(t, "%.3f", v.mean);
    }
}

static void add_lines(const comparison *m, const axes *a, table *t) {
    for (size_t i = 0; i < a->kernel_count; i++)
        for (size_t start = 0; start < COMPARISON_STARTS; start++)
            if (a->starts[start])
                add_line(m, a, t, start, a->kernels[i]);
    for (size_t start = 0; start < COMPARISON_STARTS; start++)
        if (a->starts[start])
            add_line(m, a, t, start, NULL);
    if (a->starts[0] && a->starts[1])
        add_line(m, a, t, COMPARISON_STARTS, NULL);
}

static ev_status print_strategies(const comparison *m, const axes *a, ev_str *out, ev_error *err) {
    const char *columns[STRATEGY_COUNT + 3] = {"kernel", "start"};
    char titles[STRATEGY_COUNT][32];
    for (int s = 0, column = 2; s < STRATEGY_COUNT; s++) {
        (void)snprintf(titles[s], sizeof titles[s], ">%s", strategy_name((strategy)s));
        if (a->strategies[s])
            columns[column++] = titles[s];
    }
    table *t = table_new(columns);
    if (t == NULL)
        return ev_fail_memory(err, 1);
    add_lines(m, a, t);
    ev_status status = table_print(t, out, err);
    table_free(t);
    uint64_t most = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->rows[i].evaluations > most)
            most = m->rows[i].evaluations;
    ev_str_append(out, "\nspeed-up over the start, on the held-out cases, of what was promoted: ");
    if (a->seed_count > 1)
        ev_str_printf(out, "mean over %zu seeds\nand its 95 %% interval", a->seed_count);
    else
        ev_str_printf(out, "seed %" PRIu64, a->seeds[0]);
    ev_str_printf(out, ", at most %" PRIu64 " evaluations a search", most);
    if (m->rows[0].device[0] != '\0')
        ev_str_printf(out, " on %s", m->rows[0].device);
    if (first_without(m)[0] != '\0')
        ev_str_printf(out, ", without %s", first_without(m));
    ev_str_append(out, "\n");
    return status;
}

static void add_loss(table *t, const loss *l) {
    char ratios[COMPARISON_MOST_SEEDS * 8] = "";
    size_t length = 0;
    for (size_t i = 0; i < l->seeds && length < sizeof ratios; i++)
        length += (size_t)snprintf(ratios + length, sizeof ratios - length, "%s%.2f",
                                   i > 0 ? ", " : "", l->ratios[i]);
    table_cell(t, "%s", l->of->without);
    table_cell(t, "%s", strategy_name(l->of->strategy));
    table_cell(t, "%s", l->of->kernel);
    table_cell(t, "%s", comparison_starts[l->of->start]);
    table_cell(t, "%.3f", l->all);
    table_cell(t, "%.3f", l->without);
    table_cell(t, "%.3f", l->without / l->all);
    table_cell(t, "%s", ratios);
}

static ev_status print_losses(const comparison *m, ev_str *out, ev_error *err) {
    table *t = table_new((const char *[]){"without", "strategy", "kernel", "start", ">all edits",
                                          ">without", ">ratio", "of each seed", NULL});
    if (t == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < m->count; i++) {
        if (!is_first_of_its_kind(m, i))
            continue;
        loss l = loss_of(m, &m->rows[i]);
        add_loss(t, &l);
    }
    ev_str_append(out, "\n");
    ev_status status = table_print(t, out, err);
    table_free(t);
    ev_str_append(out, "\nratio: the speed-up of the searches that did not draw the edits over "
                       "that of the searches with\nall edits, at the same seeds\n");
    return status;
}

ev_status comparison_print(const comparison *m, ev_str *out, ev_error *err) {
    axes a;
    EV_TRY(axes_of(m, &a, err));
    EV_TRY(print_strategies(m, &a, out, err));
    bool losses = false;
    for (size_t i = 0; i < m->count; i++)
        losses |= !is_first(m, &m->rows[i]);
    return losses ? print_losses(m, out, err) : EV_OK;
}
