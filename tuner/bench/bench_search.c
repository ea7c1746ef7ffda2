/* evoke bench search: how fast a whole search scores, and what it spends its time on. */
#include "tuner/bench/bench.h"

#include "base/table.h"
#include "kernels/task.h"
#include "tuner/run/tune.h"

#include <inttypes.h>

#define STAGES (sizeof tune_stage_names / sizeof tune_stage_names[0])

/* Duplicates are met before anything is scored. */
static uint64_t scored_of(const tune_report *r) {
    return r->evaluations - r->duplicates;
}

static double rate_of(const tune_report *r) {
    return r->seconds > 0 ? (double)scored_of(r) / r->seconds : 0;
}

/* What the stages do not count: compiling base modules, oracles, baselines, waiting for pipes. */
static double other_of(const tune_report *r) {
    double other = r->cpu_seconds;
    for (size_t i = 0; i < STAGES; i++)
        other -= r->stage_seconds[i];
    return other > 0 ? other : 0;
}

static double per(double amount, double of) {
    return of > 0 ? amount / of : 0;
}

static json_t *rejected_json(const tune_report *r) {
    json_t *rejected = json_object();
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        (void)json_object_set_new(rejected, gate_name((gate)i),
                                  json_integer((json_int_t)r->rejected[i]));
    return rejected;
}

/* Counts by what a child was known by: its code or genome, or how it ran. */
static json_t *known_json(const uint64_t counts[SEARCH_HASHES], bool fingerprint) {
    json_t *by = json_object();
    for (int i = 0; i < SEARCH_HASHES; i++) {
        if (search_is_fingerprint((search_hash)i) == fingerprint)
            (void)json_object_set_new(by, search_hash_name((search_hash)i),
                                      json_integer((json_int_t)counts[i]));
    }
    return by;
}

static double regret_of(const tune_audit *a) {
    return per((double)a->refuted, (double)a->made);
}

/* What a shortcut stopped, and its audits. */
static json_t *shortcut_json(uint64_t stopped, const tune_audit *a) {
    return json_pack("{s:I, s:I, s:I, s:f}", "stopped", (json_int_t)stopped, "let_through",
                     (json_int_t)a->made, "regretted", (json_int_t)a->refuted, "regret",
                     regret_of(a));
}

static json_t *audits_json(const tune_report *r) {
    const tune_audit *a = &r->memo_audits;
    return json_pack("{s:I, s:I, s:f}", "audited", (json_int_t)a->made, "missed",
                     (json_int_t)a->refuted, "miss", regret_of(a));
}

static json_t *estimates_json(const tune_report *r) {
    return json_pack("{s:I, s:I, s:I, s:I}", "made", (json_int_t)r->estimated, "audited",
                     (json_int_t)r->estimates_audited, "faster", (json_int_t)r->estimates_beaten,
                     "slower", (json_int_t)r->estimates_missed);
}

static void print_known(cmd_context *c, const uint64_t counts[SEARCH_HASHES], bool fingerprint) {
    for (int i = 0; i < SEARCH_HASHES; i++) {
        if (search_is_fingerprint((search_hash)i) == fingerprint)
            ev_str_printf(c->out, " %s %" PRIu64, search_hash_name((search_hash)i), counts[i]);
    }
}

/* Seconds of CPU by stage, or the shares that they have of all. */
static json_t *stages_json(const tune_report *r, double whole) {
    json_t *stages = json_object();
    for (size_t i = 0; i < STAGES; i++)
        (void)json_object_set_new(stages, tune_stage_names[i],
                                  json_real(per(r->stage_seconds[i], whole)));
    (void)json_object_set_new(stages, "other", json_real(per(other_of(r), whole)));
    return stages;
}

static ev_status print_json(cmd_context *c, const tune_report *r, ev_error *err) {
    double scored = (double)scored_of(r), all = (double)r->evaluations;
    json_t *m =
        json_pack("{s:s, s:I, s:f, s:f, s:f, s:I, s:I, s:f, s:f}", "bench", "search", "workers",
                  (json_int_t)r->workers, "scored_per_second", rate_of(r),
                  "scored_per_second_a_core", per(rate_of(r), r->workers), "scored_per_cpu_second",
                  per(scored, r->cpu_seconds), "scored", (json_int_t)scored_of(r), "duplicates",
                  (json_int_t)r->duplicates, "seconds", r->seconds, "cpu_seconds", r->cpu_seconds);
    if (!m)
        return ev_fail_memory(err, 0);
    (void)json_object_set_new(m, "duplicates_by", known_json(r->duplicates_by, false));
    (void)json_object_set_new(m, "recalled_by", known_json(r->memoised_by, true));
    (void)json_object_set_new(m, "audits", audits_json(r));
    (void)json_object_set_new(m, "estimates", estimates_json(r));
    (void)json_object_set_new(m, "rejected", rejected_json(r));
    (void)json_object_set_new(m, "filter", shortcut_json(r->filtered, &r->filter_audits));
    (void)json_object_set_new(m, "sketches", shortcut_json(r->screened, &r->screen_audits));
    if (r->timers > 0)
        (void)json_object_set_new(m, "gpus", tune_timers_json(r));
    (void)json_object_set_new(m, "stage_seconds", stages_json(r, 1));
    (void)json_object_set_new(m, "stage_shares", stages_json(r, r->cpu_seconds));
    (void)json_object_set_new(m, "coordinator_ms_an_evaluation",
                              json_real(per(r->stage_seconds[STAGES - 1] * 1e3, all)));
    (void)json_object_set_new(m, "coordinator_bytes",
                              json_integer((json_int_t)r->coordinator_bytes));
    (void)json_object_set_new(m, "records_bytes_an_evaluation",
                              json_real(per((double)r->records_bytes, all)));
    return cmd_print_json(c, m, err);
}

static void print_counts(cmd_context *c, const tune_report *r) {
    double all = (double)r->evaluations;
    ev_str_printf(c->out,
                  "%.1f variants scored a second with %u workers, %.1f a CPU second: %" PRIu64
                  " scored, %" PRIu64 " duplicates in %.1f s\nstopped at a gate:",
                  rate_of(r), r->workers, per((double)scored_of(r), r->cpu_seconds), scored_of(r),
                  r->duplicates, r->seconds);
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        ev_str_printf(c->out, " %s %" PRIu64, gate_name((gate)i), r->rejected[i]);
    ev_str_append(c->out, "\nduplicates by:");
    print_known(c, r->duplicates_by, false);
    ev_str_append(c->out, "\nrecalled by:");
    print_known(c, r->memoised_by, true);
    ev_str_printf(c->out,
                  "\naudits: of %" PRIu64 " known by a sketch or a run that were built and timed, "
                  "%" PRIu64 " had another outcome",
                  r->memo_audits.made, r->memo_audits.refuted);
    ev_str_printf(c->out,
                  "\nestimates: %" PRIu64 " gained nothing by their sketch and were not built; of "
                  "%" PRIu64 " audited, %" PRIu64 " were faster than that, %" PRIu64
                  " slower or stopped",
                  r->estimated, r->estimates_audited, r->estimates_beaten, r->estimates_missed);
    ev_str_printf(c->out,
                  "\nfilter: %" PRIu64 " stopped before the timed cases; of %" PRIu64
                  " let through all the same, %" PRIu64 " were as fast as their parent",
                  r->filtered, r->filter_audits.made, r->filter_audits.refuted);
    ev_str_printf(c->out,
                  "\nsketches: %" PRIu64 " stopped before the build; of %" PRIu64
                  " built all the same, %" PRIu64 " were right",
                  r->screened, r->screen_audits.made, r->screen_audits.refuted);
    ev_str_printf(c->out,
                  "\ncoordinator: %.2f ms an evaluation, %.0f MB; records: %.0f bytes an "
                  "evaluation\n\n",
                  per(r->stage_seconds[STAGES - 1] * 1e3, all), (double)r->coordinator_bytes / 1e6,
                  per((double)r->records_bytes, all));
}

static void stage_row(table *rows, const char *name, double seconds, double all) {
    table_cell(rows, "%s", name);
    table_cell(rows, "%.2f", seconds);
    table_cell(rows, "%.1f %%", per(seconds, all) * 100);
}

static ev_status print_text(cmd_context *c, const tune_report *r, ev_error *err) {
    static const char *const columns[] = {"stage", ">CPU seconds", ">share", NULL};
    print_counts(c, r);
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < STAGES; i++)
        stage_row(rows, tune_stage_names[i], r->stage_seconds[i], r->cpu_seconds);
    stage_row(rows, "other", other_of(r), r->cpu_seconds);
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
        .least_gain = TUNE_LEAST_GAIN,
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
    if (cli_flag(c->args, CLI_OPT_STRATEGIES) || cli_text(c->args, CLI_OPT_FROM_ROWS))
        return bench_strategies(c, err);
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(bench_tasks(c->args, &paths, &count, err));
    ev_status status = run_search(c, paths, count, err);
    task_list_free(paths, count);
    return status;
}
