/* evoke bench search --strategies: all ways to search on the same budget, over tasks, starts and
 * seeds; the speed-up of what each promoted, on the held-out cases, over the start it grew from. */
#include "tuner/bench/bench.h"

#include "base/lines.h"
#include "kernels/task.h"
#include "tuner/bench/comparison.h"
#include "tuner/cli/cmd_tune.h"
#include "tuner/run/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    cmd_context *c;
    bool among[STRATEGY_COUNT];  /* the strategies that are compared */
    bool without[IR_EDIT_COUNT]; /* edits that no search draws */
    ev_lines *lines;             /* of --rows; NULL: none */
    char **paths;
    size_t task_count;
    uint64_t first, seeds, evaluations; /* seeds from the first on */
    comparison found;
} plan;

/* ---- one search ---- */

/* Over the start that was searched, unmodified: the geometric mean over the held-out timed cases.
 */
static double speedup_of(const tune_report *r) {
    double logs = 0;
    for (size_t i = 0; i < r->row_count; i++)
        logs += log(r->rows[i].alone_ns / r->rows[i].best_ns);
    return r->row_count > 0 ? exp(logs / (double)r->row_count) : 0;
}

static ev_status tell(plan *p, const comparison_row *row, double seconds, ev_error *err) {
    (void)fprintf(stderr, "%s, %s, %s, seed %" PRIu64 ": %.3fx in %.0f s\n",
                  strategy_name(row->strategy), row->kernel, comparison_starts[row->start],
                  row->seed, row->speedup, seconds);
    json_t *line = comparison_row_json(row);
    ev_status status = line ? ev_lines_add(p->lines, line, err) : ev_fail_memory(err, 0);
    json_decref(line);
    return status;
}

/* Names of the edits that no search draws, in the order of the table of edits. */
static void name_without(const plan *p, char *to, size_t bytes) {
    size_t length = 0;
    for (int i = 0; i < IR_EDIT_COUNT; i++)
        if (p->without[i] && length < bytes)
            length += (size_t)snprintf(to + length, bytes - length, "%s%s", length > 0 ? "," : "",
                                       ir_edit_name((ir_edit_kind)i));
}

static ev_status run_trial(plan *p, const char *path, size_t start, strategy s, uint64_t seed,
                           ev_error *err) {
    const char *tasks[] = {path};
    tune_options options = {.tasks = tasks,
                            .task_count = 1,
                            .device = p->c->args->values[CLI_OPT_DEVICE],
                            .evaluations = p->evaluations,
                            .seed = seed,
                            .least_gain = TUNE_LEAST_GAIN,
                            .strategy = s,
                            .workers = (unsigned)cli_count(p->c->args, CLI_OPT_WORKERS, 0),
                            .starts = comparison_starts[start]};
    memcpy(options.without, p->without, sizeof options.without);
    tune_report report = {0};
    EV_TRY(tune_run(&options, &report, err));
    comparison_row row = {.strategy = s,
                          .start = start,
                          .seed = seed,
                          .evaluations = report.evaluations,
                          .duplicates = report.duplicates,
                          .speedup = speedup_of(&report)};
    if (report.row_count > 0)
        row.genome = json_incref(json_object_get(report.genomes, report.rows[0].genome_sha256));
    (void)snprintf(row.kernel, sizeof row.kernel, "%s",
                   report.row_count > 0 ? report.rows[0].kernel : path);
    (void)snprintf(row.device, sizeof row.device, "%s", options.device);
    name_without(p, row.without, sizeof row.without);
    double seconds = report.seconds;
    tune_report_free(&report);
    EV_TRY(comparison_add(&p->found, row, err));
    return tell(p, &row, seconds, err);
}

/* Seeds outermost: cut short, what was printed is balanced. */
static ev_status run_trials(plan *p, ev_error *err) {
    for (uint64_t seed = p->first; seed - p->first < p->seeds; seed++)
        for (size_t t = 0; t < p->task_count; t++)
            for (size_t start = 0; start < COMPARISON_STARTS; start++)
                for (int s = 0; s < STRATEGY_COUNT; s++)
                    if (p->among[s])
                        EV_TRY(run_trial(p, p->paths[t], start, (strategy)s, seed, err));
    return EV_OK;
}

/* ---- the bench ---- */

static ev_status print(const comparison *m, cmd_context *c, ev_error *err) {
    EV_TRY(comparison_check(m, err));
    return cli_flag(c->args, CLI_OPT_JSON) ? cmd_print_json(c, comparison_json(m), err)
                                           : comparison_print(m, c->out, err);
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

static ev_status choose(plan *p, const cli_args *args, ev_error *err) {
    const char *list = cli_text(args, CLI_OPT_AMONG);
    for (int s = 0; s < STRATEGY_COUNT; s++)
        p->among[s] = list == NULL;
    if (list)
        EV_TRY(cli_words(list, take_strategy, p->among, err));
    return cmd_without(args, p->without, err);
}

static ev_status read_rows(void *context, const char *path, ev_error *err) {
    return comparison_read(context, path, err);
}

/* The table of rows that were made before. */
static ev_status print_rows(plan *p, const char *list, ev_error *err) {
    EV_TRY(cli_words(list, read_rows, &p->found, err));
    return print(&p->found, p->c, err);
}

static ev_status search_all(plan *p, ev_error *err) {
    EV_TRY(choose(p, p->c->args, err));
    EV_TRY(bench_tasks(p->c->args, &p->paths, &p->task_count, err));
    ev_status status = ev_lines_open(cli_text(p->c->args, CLI_OPT_ROWS), &p->lines, err);
    if (status == EV_OK)
        status = run_trials(p, err);
    if (status == EV_OK)
        status = print(&p->found, p->c, err);
    ev_lines_close(p->lines);
    task_list_free(p->paths, p->task_count);
    return status;
}

ev_status bench_strategies(cmd_context *c, ev_error *err) {
    plan p = {.c = c,
              .first = cli_count(c->args, CLI_OPT_SEED, 1),
              .seeds = cli_count(c->args, CLI_OPT_SEEDS, 5),
              .evaluations = cli_count(c->args, CLI_OPT_BENCH_EVALUATIONS, 200)};
    if (p.seeds == 0 || p.seeds > COMPARISON_MOST_SEEDS)
        return ev_fail(err, EV_BAD, "--seeds %s: from 1 to %d", c->args->values[CLI_OPT_SEEDS],
                       COMPARISON_MOST_SEEDS);
    const char *made = cli_text(c->args, CLI_OPT_FROM_ROWS);
    ev_status status = made ? print_rows(&p, made, err) : search_all(&p, err);
    comparison_free(&p.found);
    return status;
}
