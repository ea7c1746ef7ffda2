/* evoke bench search --strategies: all ways to search on the same budget, over tasks, starts and
 * seeds; the speed-up of what each promoted, on the held-out cases, over the start it grew from. */
#include "tuner/bench/bench.h"

#include "base/lines.h"
#include "base/table.h"
#include "kernels/task.h"
#include "tuner/cli/cmd_tune.h"
#include "tuner/run/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STARTS 2
#define MOST_SEEDS 32

static const char *const starts[STARTS] = {"textbook", "hand"};

/* One search. */
typedef struct trial_row {
    strategy strategy;
    char kernel[96];
    size_t start;
    uint64_t seed, evaluations, duplicates;
    double speedup, seconds;
    json_t *genome; /* of what was promoted, or the start; the row's reference */
} trial_row;

typedef struct comparison {
    cmd_context *c;
    bool among[STRATEGY_COUNT];  /* the strategies that are compared */
    bool without[IR_EDIT_COUNT]; /* edits that no search draws */
    ev_lines *lines;             /* of --rows; NULL: none */
    char **paths;
    size_t task_count;
    uint64_t first, seeds, evaluations; /* seeds from the first on */
    trial_row *rows; /* [STRATEGY_COUNT * task_count * STARTS * seeds], as many as there are */
    size_t count;
} comparison;

/* Mean over the seeds, with the 95 % interval of Student's t of the logarithms. */
typedef struct interval {
    double mean, low, high;
} interval;

/* ---- one search ---- */

/* Over the start that was searched, unmodified: the geometric mean over the held-out timed cases.
 */
static double speedup_of(const tune_report *r) {
    double logs = 0;
    for (size_t i = 0; i < r->row_count; i++)
        logs += log(r->rows[i].alone_ns / r->rows[i].best_ns);
    return r->row_count > 0 ? exp(logs / (double)r->row_count) : 0;
}

static json_t *row_json(const trial_row *r) {
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:f,s:O?}", "strategy", strategy_name(r->strategy),
                     "kernel", r->kernel, "start", starts[r->start], "seed", (json_int_t)r->seed,
                     "evaluations", (json_int_t)r->evaluations, "duplicates",
                     (json_int_t)r->duplicates, "speedup", r->speedup, "genome", r->genome);
}

static ev_status tell(comparison *m, const trial_row *row, ev_error *err) {
    (void)fprintf(stderr, "%s, %s, %s, seed %" PRIu64 ": %.3fx in %.0f s\n",
                  strategy_name(row->strategy), row->kernel, starts[row->start], row->seed,
                  row->speedup, row->seconds);
    json_t *line = row_json(row);
    ev_status status = line ? ev_lines_add(m->lines, line, err) : ev_fail_memory(err, 0);
    json_decref(line);
    return status;
}

static ev_status run_trial(comparison *m, const char *path, size_t start, strategy s, uint64_t seed,
                           ev_error *err) {
    const char *tasks[] = {path};
    tune_options options = {.tasks = tasks,
                            .task_count = 1,
                            .device = m->c->args->values[CLI_OPT_DEVICE],
                            .evaluations = m->evaluations,
                            .seed = seed,
                            .least_gain = TUNE_LEAST_GAIN,
                            .strategy = s,
                            .workers = (unsigned)cli_count(m->c->args, CLI_OPT_WORKERS, 0),
                            .starts = starts[start]};
    memcpy(options.without, m->without, sizeof options.without);
    tune_report report = {0};
    EV_TRY(tune_run(&options, &report, err));
    trial_row *row = &m->rows[m->count++];
    *row = (trial_row){.strategy = s,
                       .start = start,
                       .seed = seed,
                       .evaluations = report.evaluations,
                       .duplicates = report.duplicates,
                       .speedup = speedup_of(&report),
                       .seconds = report.seconds};
    if (report.row_count > 0)
        row->genome = json_incref(json_object_get(report.genomes, report.rows[0].genome_sha256));
    (void)snprintf(row->kernel, sizeof row->kernel, "%s",
                   report.row_count > 0 ? report.rows[0].kernel : path);
    tune_report_free(&report);
    return tell(m, row, err);
}

/* Seeds outermost: cut short, what was printed is balanced. */
static ev_status run_trials(comparison *m, ev_error *err) {
    for (uint64_t seed = m->first; seed - m->first < m->seeds; seed++)
        for (size_t t = 0; t < m->task_count; t++)
            for (size_t start = 0; start < STARTS; start++)
                for (int s = 0; s < STRATEGY_COUNT; s++)
                    if (m->among[s])
                        EV_TRY(run_trial(m, m->paths[t], start, (strategy)s, seed, err));
    return EV_OK;
}

/* ---- intervals ---- */

/* Student's t at 97.5 %, by degrees of freedom from 1. */
static double student(uint64_t freedom) {
    static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                       2.365,  2.306, 2.262, 2.228, 2.201, 2.179};
    size_t most = sizeof quantiles / sizeof quantiles[0];
    return freedom == 0 ? 0 : quantiles[freedom <= most ? freedom - 1 : most - 1];
}

/* Over the rows of a strategy; of one start and one kernel alone where they are given (`start` <
 * STARTS, kernel not NULL). */
static interval interval_of(const comparison *m, strategy s, size_t start, const char *kernel) {
    double logs[MOST_SEEDS] = {0};
    for (uint64_t at = 0; at < m->seeds; at++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < m->count; i++) {
            const trial_row *r = &m->rows[i];
            if (r->strategy != s || r->seed != m->first + at ||
                (start < STARTS && r->start != start) || (kernel && strcmp(kernel, r->kernel) != 0))
                continue;
            sum += log(r->speedup);
            count++;
        }
        logs[at] = count > 0 ? sum / (double)count : 0;
    }
    size_t n = (size_t)m->seeds;
    double mean = bench_mean(logs, n);
    double reach = student(m->seeds - 1) * bench_deviation(logs, n) / sqrt((double)n);
    return (interval){exp(mean), exp(mean - reach), exp(mean + reach)};
}

/* ---- printing ---- */

static json_t *interval_json(interval v) {
    return json_pack("{s:f,s:f,s:f}", "mean", v.mean, "low", v.low, "high", v.high);
}

static json_t *geomeans_json(const comparison *m, size_t start) {
    json_t *all = json_object();
    for (int s = 0; s < STRATEGY_COUNT; s++)
        if (m->among[s])
            (void)json_object_set_new(all, strategy_name((strategy)s),
                                      interval_json(interval_of(m, (strategy)s, start, NULL)));
    return all;
}

static ev_status print_json(const comparison *m, ev_error *err) {
    json_t *rows = json_array();
    for (size_t i = 0; i < m->count; i++)
        (void)json_array_append_new(rows, row_json(&m->rows[i]));
    json_t *by_start = json_object();
    for (size_t i = 0; i < STARTS; i++)
        (void)json_object_set_new(by_start, starts[i], geomeans_json(m, i));
    return cmd_print_json(m->c,
                          json_pack("{s:s,s:s,s:I,s:o,s:o,s:o}", "bench", "strategies", "device",
                                    m->c->args->values[CLI_OPT_DEVICE], "seeds",
                                    (json_int_t)m->seeds, "rows", rows, "geomean",
                                    geomeans_json(m, STARTS), "geomean_by_start", by_start),
                          err);
}

static void interval_cell(table *t, interval v) {
    table_cell(t, "%.3f [%.3f, %.3f]", v.mean, v.low, v.high);
}

static void add_line(const comparison *m, table *t, const char *name, size_t start,
                     const char *kernel) {
    table_cell(t, "%s", name);
    table_cell(t, "%s", start < STARTS ? starts[start] : "both");
    for (int s = 0; s < STRATEGY_COUNT; s++)
        if (m->among[s])
            interval_cell(t, interval_of(m, (strategy)s, start, kernel));
}

/* The kernel's name of each task: the first rows are one of each strategy, start and task. */
static const char *kernel_of(const comparison *m, size_t at) {
    return m->rows[at * m->count / (m->seeds * m->task_count)].kernel;
}

static ev_status print_text(const comparison *m, ev_error *err) {
    const char *columns[STRATEGY_COUNT + 3] = {"kernel", "start"};
    char titles[STRATEGY_COUNT][32];
    for (int s = 0, column = 2; s < STRATEGY_COUNT; s++) {
        (void)snprintf(titles[s], sizeof titles[s], ">%s", strategy_name((strategy)s));
        if (m->among[s])
            columns[column++] = titles[s];
    }
    table *t = table_new(columns);
    if (t == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < m->task_count; i++)
        for (size_t start = 0; start < STARTS; start++)
            add_line(m, t, kernel_of(m, i), start, kernel_of(m, i));
    for (size_t start = 0; start <= STARTS; start++)
        add_line(m, t, "geometric mean", start, NULL);
    ev_status status = table_print(t, m->c->out, err);
    table_free(t);
    ev_str_printf(
        m->c->out,
        "\nspeed-up over the start, on the held-out cases, of what was promoted: mean over "
        "%" PRIu64 " seeds\nand its 95 %% interval, %" PRIu64 " evaluations a search on %s\n",
        m->seeds, m->evaluations, m->c->args->values[CLI_OPT_DEVICE]);
    return status;
}

/* ---- the bench ---- */

static ev_status compare(comparison *m, ev_error *err) {
    m->rows = calloc(STRATEGY_COUNT * m->task_count * STARTS * m->seeds, sizeof *m->rows);
    if (m->rows == NULL)
        return ev_fail_memory(err, m->seeds * sizeof *m->rows);
    ev_status status = run_trials(m, err);
    if (status == EV_OK)
        status = cli_flag(m->c->args, CLI_OPT_JSON) ? print_json(m, err) : print_text(m, err);
    for (size_t i = 0; i < m->count; i++)
        json_decref(m->rows[i].genome);
    free(m->rows);
    return status;
}

static ev_status take_strategy(void *context, const char *word, ev_error *err) {
    bool *among = context;
    strategy found;
    if (!strategy_find(word, &found))
        return ev_fail(err, EV_BAD,
                       "--among: no strategy is named '%s'; evoke tune --help lists them", word);
    among[found] = true;
    return EV_OK;
}

static ev_status choose(comparison *m, const cli_args *args, ev_error *err) {
    const char *list = cli_text(args, CLI_OPT_AMONG);
    for (int s = 0; s < STRATEGY_COUNT; s++)
        m->among[s] = list == NULL;
    if (list)
        EV_TRY(cli_words(list, take_strategy, m->among, err));
    return cmd_without(args, m->without, err);
}

ev_status bench_strategies(cmd_context *c, ev_error *err) {
    comparison m = {.c = c,
                    .first = cli_count(c->args, CLI_OPT_SEED, 1),
                    .seeds = cli_count(c->args, CLI_OPT_SEEDS, 5),
                    .evaluations = cli_count(c->args, CLI_OPT_BENCH_EVALUATIONS, 200)};
    if (m.seeds == 0 || m.seeds > MOST_SEEDS)
        return ev_fail(err, EV_BAD, "--seeds %s: from 1 to %d", c->args->values[CLI_OPT_SEEDS],
                       MOST_SEEDS);
    EV_TRY(choose(&m, c->args, err));
    EV_TRY(bench_tasks(c->args, &m.paths, &m.task_count, err));
    ev_status status = ev_lines_open(cli_text(c->args, CLI_OPT_ROWS), &m.lines, err);
    if (status == EV_OK)
        status = compare(&m, err);
    ev_lines_close(m.lines);
    task_list_free(m.paths, m.task_count);
    return status;
}
