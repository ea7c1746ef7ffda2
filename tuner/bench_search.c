/* evoke bench search: how fast a whole search scores, and what it spends its time on. */
#include "tuner/bench.h"

#include "kernels/task.h"
#include "tuner/table.h"
#include "tuner/tune.h"

#include <inttypes.h>

#define STAGES (sizeof tune_stage_names / sizeof tune_stage_names[0])

/* Duplicates are met before anything is scored. */
static uint64_t scored_of(const tune_report *r) {
    return r->evaluations - r->duplicates;
}

static double rate_of(const tune_report *r) {
    return r->seconds > 0 ? (double)scored_of(r) / r->seconds : 0;
}

static ev_status print_json(cmd_context *c, const tune_report *r, ev_error *err) {
    json_t *rejected = json_object(), *seconds = json_object();
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        (void)json_object_set_new(rejected, gate_name((gate)i),
                                  json_integer((json_int_t)r->rejected[i]));
    for (size_t i = 0; i < STAGES; i++)
        (void)json_object_set_new(seconds, tune_stage_names[i], json_real(r->stage_seconds[i]));
    return cmd_print_json(c,
                          json_pack("{s:s, s:f, s:I, s:I, s:f, s:o, s:o}", "bench", "search",
                                    "scored_per_second", rate_of(r), "scored",
                                    (json_int_t)scored_of(r), "duplicates",
                                    (json_int_t)r->duplicates, "seconds", r->seconds, "rejected",
                                    rejected, "stage_seconds", seconds),
                          err);
}

static ev_status print_text(cmd_context *c, const tune_report *r, ev_error *err) {
    static const char *const columns[] = {"stage", ">seconds", ">share", NULL};
    ev_str_printf(c->out,
                  "%.1f variants scored a second: %" PRIu64 " scored, %" PRIu64
                  " duplicates in %.1f s\nstopped at a gate:",
                  rate_of(r), scored_of(r), r->duplicates, r->seconds);
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        ev_str_printf(c->out, " %s %" PRIu64, gate_name((gate)i), r->rejected[i]);
    ev_str_append(c->out, "\n\n");
    double all = 0;
    for (size_t i = 0; i < STAGES; i++)
        all += r->stage_seconds[i];
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < STAGES; i++) {
        table_cell(rows, "%s", tune_stage_names[i]);
        table_cell(rows, "%.2f", r->stage_seconds[i]);
        table_cell(rows, "%.1f %%", all > 0 ? r->stage_seconds[i] / all * 100 : 0);
    }
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    return status;
}

static ev_status run_search(cmd_context *c, char **paths, size_t count, ev_error *err) {
    uint64_t each = cli_count(c->args, CLI_OPT_BENCH_EVALUATIONS, 200) / count;
    tune_options options = {
        .tasks = (const char *const *)paths,
        .task_count = count,
        .device = c->args->values[CLI_OPT_DEVICE],
        .evaluations = each > 0 ? each : 1,
        .seed = cli_count(c->args, CLI_OPT_SEED, 1),
        .workers = (unsigned)cli_count(c->args, CLI_OPT_WORKERS, 0),
        .starts = "all",
    };
    tune_report report = {0};
    EV_TRY(tune_run(&options, &report, err));
    ev_status status =
        cli_flag(c->args, CLI_OPT_JSON) ? print_json(c, &report, err) : print_text(c, &report, err);
    tune_report_free(&report);
    return status;
}

ev_status bench_search(cmd_context *c, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_STRATEGIES))
        return bench_strategies(c, err);
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(bench_tasks(c->args, &paths, &count, err));
    ev_status status = run_search(c, paths, count, err);
    task_list_free(paths, count);
    return status;
}
