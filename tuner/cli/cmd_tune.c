/* evoke tune: the run, its progress on stderr, its table on stdout, its bundle. */
#include "tuner/cli/cmd_tune.h"
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "base/stop.h"
#include "base/table.h"
#include "bundle/bundle.h"
#include "fitness/gates/fitness.h"
#include "fitness/gates/floor.h"
#include "kernels/task.h"
#include "tuner/cli/progress.h"
#include "tuner/report/live.h"
#include "tuner/run/export.h"
#include "tuner/run/tune_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WORKERS 256

/* ---- options ---- */

/* Which tasks: --all, --families or operands. */
static ev_status check_choice(const cli_args *args, ev_error *err) {
    bool all = cli_flag(args, CLI_OPT_ALL), families = cli_flag(args, CLI_OPT_FAMILIES);
    if (all && families)
        return ev_fail(err, EV_BAD, "--all has the kernels of --families; leave out one of them");
    if (all && args->operand_count > 0)
        return ev_fail(err, EV_BAD, "--all takes every shipped task; leave out '%s', or --all",
                       args->operands[0]);
    if (families && args->operand_count > 0)
        return ev_fail(err, EV_BAD,
                       "--families takes a shipped task of each family; leave out '%s', or "
                       "--families",
                       args->operands[0]);
    if (!all && !families && args->operand_count == 0)
        return ev_fail(err, EV_BAD,
                       "tune needs a task, the path of a task.json, --families or --all; "
                       "evoke list shows the tasks");
    return EV_OK;
}

static ev_status check_options(const cli_args *args, ev_error *err) {
    EV_TRY(check_choice(args, err));
    if (cli_count(args, CLI_OPT_WORKERS, 0) > MOST_WORKERS)
        return ev_fail(err, EV_BAD, "--workers %s: at most %d", args->values[CLI_OPT_WORKERS],
                       MOST_WORKERS);
    if (args->list_count > 0 && args->given[CLI_OPT_WORKERS])
        return ev_fail(err, EV_BAD, "--worker-command has its own counts; leave out --workers");
    if (cli_flag(args, CLI_OPT_RESUME) && cli_text(args, CLI_OPT_RECORDS) == NULL)
        return ev_fail(err, EV_BAD,
                       "--resume needs --records FILE, the records of the run to continue");
    if (args->given[CLI_OPT_MOST] && cli_text(args, CLI_OPT_SHAPES) == NULL)
        return ev_fail(err, EV_BAD, "--most counts the variants of --shapes; name the shapes");
    uint64_t most = cli_count(args, CLI_OPT_MOST, 0);
    if (most < 1 || most > PORTFOLIO_MOST)
        return ev_fail(err, EV_BAD, "--most %s: a portfolio has 1 to %d variants",
                       args->values[CLI_OPT_MOST], PORTFOLIO_MOST);
    if (cli_text(args, CLI_OPT_SIGN) != NULL && cli_text(args, CLI_OPT_OUT) == NULL)
        return ev_fail(err, EV_BAD, "--sign signs the bundle of --out; name one");
    if (cli_text(args, CLI_OPT_OUT) != NULL)
        return bundle_check_target(args->values[CLI_OPT_OUT], err);
    return EV_OK;
}

static tune_options options_of(const cli_args *args) {
    tune_options o = {
        .device = args->values[CLI_OPT_DEVICE],
        .evaluations = cli_count(args, CLI_OPT_EVALUATIONS, 0),
        .seconds = cli_real(args, CLI_OPT_SECONDS, 0),
        .seed = cli_count(args, CLI_OPT_SEED, 1),
        .least_gain = cli_real(args, CLI_OPT_LEAST_GAIN, 100 * TUNE_LEAST_GAIN) / 100,
        .bold = cli_flag(args, CLI_OPT_BOLD),
        .no_structure = cli_flag(args, CLI_OPT_NO_STRUCTURE),
        .workers = (unsigned)cli_count(args, CLI_OPT_WORKERS, 0),
        .starts = args->values[CLI_OPT_START],
        .from = cli_text(args, CLI_OPT_FROM),
        .shapes = cli_text(args, CLI_OPT_SHAPES),
        .most_variants = cli_count(args, CLI_OPT_MOST, 0),
        .records = cli_text(args, CLI_OPT_RECORDS),
        .to_bundle = cli_text(args, CLI_OPT_OUT) != NULL,
        .worker_commands = args->list,
        .worker_command_count = args->list_count,
        .resume = cli_flag(args, CLI_OPT_RESUME),
        .stop = ev_stop_flag(),
    };
    (void)strategy_find(args->values[CLI_OPT_STRATEGY], &o.strategy); /* the parser checked it */
    bool effort_counts = args->given[CLI_OPT_EFFORT] || o.seconds == 0;
    if (o.evaluations == 0 && effort_counts)
        o.evaluations = cli_effort(args->values[CLI_OPT_EFFORT]);
    return o;
}

static ev_status leave_out(void *context, const char *word, ev_error *err) {
    bool *without = context;
    ir_edit_kind kind;
    if (!ir_edit_find(word, &kind))
        return ev_fail(err, EV_BAD, "--without: no edit is named '%s'; evoke edits lists them",
                       word);
    without[kind] = true;
    return EV_OK;
}

ev_status cmd_without(const cli_args *args, bool without[IR_EDIT_COUNT], ev_error *err) {
    const char *list = cli_text(args, CLI_OPT_WITHOUT);
    return list ? cli_words(list, leave_out, without, err) : EV_OK;
}

static ev_status add_target(void *context, const char *word, ev_error *err) {
    ev_status status = ptxas_add_target(context, word, err);
    return status == EV_OK ? EV_OK : ev_wrap(err, status, "--assemble");
}

static ev_status read_targets(const cli_args *args, ptxas_targets *to, ev_error *err) {
    const char *list = cli_text(args, CLI_OPT_ASSEMBLE);
    return list ? cli_words(list, add_target, to, err) : EV_OK;
}

/* ---- results ---- */

/* With the genomes, which `evoke check --genome` takes. */
static json_t *rows_of(const tune_report *r) {
    json_t *rows = rows_to_json(r->rows, r->row_count);
    for (size_t i = 0; i < json_array_size(rows); i++)
        (void)json_object_set(json_array_get(rows, i), "genome",
                              json_object_get(r->genomes, r->rows[i].genome_sha256));
    return rows;
}

static ev_status print_report_json(cmd_context *c, const tune_report *r, ev_error *err) {
    json_t *rows = rows_of(r), *rejected = json_object();
    for (size_t i = 0; i < GATE_COUNT; i++)
        (void)json_object_set_new(rejected, gate_name((gate)i),
                                  json_integer((json_int_t)r->rejected[i]));
    json_t *m =
        json_pack("{s:I, s:o, s:I, s:I, s:o, s:I, s:f, s:b}", "seed", (json_int_t)r->seed, "rows",
                  rows, "evaluations", (json_int_t)r->evaluations, "duplicates",
                  (json_int_t)r->duplicates, "rejected", rejected, "failed_workers",
                  (json_int_t)r->failed_workers, "seconds", r->seconds, "stopped", r->stopped);
    if (m)
        (void)json_object_set_new(m, "wrong_settings", tune_wrong_json(r));
    if (m && r->recalled > 0)
        (void)json_object_set_new(m, "recalled", json_integer((json_int_t)r->recalled));
    if (m && r->portfolios)
        (void)json_object_set(m, "portfolios", r->portfolios);
    if (m && r->timers > 0)
        (void)json_object_set_new(m, "gpus", tune_timers_json(r));
    return cmd_print_json(c, m, err);
}

static void time_cell(table *rows, double ns) {
    char text[24];
    table_time(ns, text);
    table_cell(rows, "%s", text);
}

static void share_cell(table *rows, const tune_row *r) {
    char text[24] = "-";
    if (r->floor_ns > 0 && r->best_ns > 0)
        table_share(r->floor_ns / r->best_ns, text);
    table_cell(rows, "%s", text);
}

static void add_row(table *rows, const tune_row *r) {
    table_cell(rows, "%s", r->kernel);
    table_cell(rows, "%s", r->at);
    time_cell(rows, r->baseline_ns);
    time_cell(rows, r->hand_ns);
    time_cell(rows, r->best_ns);
    table_cell(rows, "%.2fx", r->speedup);
    share_cell(rows, r);
    table_cell(rows, "%.2g", r->error);
    table_cell(rows, "%.2g", r->tolerance);
    table_cell(rows, "%s", r->modelled ? "modelled" : "measured");
    const char *promoted = r->preserving ? "yes" : "yes, bold";
    table_cell(rows, "%s", r->promoted ? promoted : "no");
}

static void print_counts(const tune_report *r, const char *device_id, ev_str *out) {
    ev_str_printf(out,
                  "%s, seed %" PRIu64 ": %" PRIu64 " evaluations in %.0f s, %" PRIu64
                  " duplicates; stopped at a gate:",
                  device_id, r->seed, r->evaluations, r->seconds, r->duplicates);
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        ev_str_printf(out, " %s %" PRIu64, gate_name((gate)i), r->rejected[i]);
    ev_str_char(out, '\n');
    if (r->timers > 0)
        ev_str_printf(out,
                      "%u %s timed what %u screeners passed on: busy for %.0f %% of the search; "
                      "%" PRIu64 " children were timed since it had nothing else to do\n",
                      r->timers, r->timers == 1 ? "GPU" : "GPUs", r->workers - r->timers,
                      100 * tune_timer_share(r), r->let_through);
    for (size_t i = 0; i < r->wrong_count; i++)
        ev_str_printf(out, "%s, start %s: wrong at %s (gate %s), left out\n", r->wrong[i].kernel,
                      r->wrong[i].setting.start, r->wrong[i].setting.macros,
                      gate_name(r->wrong[i].setting.at));
    if (r->recalled > 0)
        ev_str_printf(out, "%" PRIu64 " times were those of the earlier run\n", r->recalled);
    if (r->failed_workers > 0)
        ev_str_printf(out, "%" PRIu64 " workers died or hung and were started again\n",
                      r->failed_workers);
}

/* Once a kernel: what stands behind its winner. */
static void print_fronts(const tune_report *r, ev_str *out) {
    for (size_t i = 0; i < r->row_count; i++) {
        const tune_row *row = &r->rows[i];
        if (i > 0 && strcmp(row->kernel, r->rows[i - 1].kernel) == 0)
            continue;
        ev_str_printf(out, "%s: %u on the exact front", row->kernel, row->exact_count);
        if (row->exact_count > 0)
            ev_str_printf(out, ", the fastest %.2fx", row->exact_speedup);
        ev_str_printf(out, "; %u on the tolerant one", row->tolerant_count);
        if (row->tolerant_count > 0)
            ev_str_printf(out, ", the fastest %.2fx with error %.2g", row->tolerant_speedup,
                          row->tolerant_error);
        ev_str_char(out, '\n');
    }
    bool modelled = r->row_count > 0 && r->rows[0].modelled;
    ev_str_printf(out,
                  "fronts: (%s time, error) of the search cases before promotion; exact: no "
                  "less accurate than the start\n",
                  modelled ? "modelled" : "measured");
}

/* Once a kernel: what its floor is, and whether the search stopped there. */
static void print_floors(const tune_report *r, ev_str *out) {
    ev_str_append(out,
                  "of floor: the least time by the work that the task declares, over the best\n");
    for (size_t i = 0; i < r->row_count; i++) {
        const tune_row *row = &r->rows[i];
        if (i > 0 && strcmp(row->kernel, r->rows[i - 1].kernel) == 0)
            continue;
        if (row->floor_ns <= 0)
            ev_str_printf(out, "%s: no floor is known: %s\n", row->kernel,
                          row->modelled ? "the task declares no work (docs/task.md)"
                                        : "the task declares no work (docs/task.md), or no GPU "
                                          "description is of the device");
        if (row->at_floor)
            ev_str_printf(out,
                          "%s: the search stopped early: its best is within %.0f %% of the floor "
                          "on all timed cases\n",
                          row->kernel, 100 * FLOOR_NEAR);
    }
}

/* Says where a variant with another meaning is faster. */
static void print_bold(const tune_report *r, ev_str *out) {
    for (size_t i = 0; i < r->row_count; i++) {
        const tune_row *row = &r->rows[i];
        if (row->bold_speedup > 0)
            ev_str_printf(
                out,
                "%s, %s: a bold variant is %.2fx as fast as the best; no case showed a "
                "difference, but its edits change the meaning (a bundle has it for callers "
                "that allow it; --bold promotes such)\n",
                row->kernel, row->at, row->bold_speedup);
    }
}

static ev_status print_portfolio(const json_t *p, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"case",   ">weight",   ">baseline", ">hand-tuned",
                                          ">tuned", ">speed-up", "variant",   NULL};
    const json_t *shapes = json_object_get(p, "shapes");
    double ns = ev_json_number(p, "ns", 0), base = ev_json_number(p, "baseline_ns", 0);
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        const json_t *at = json_array_get(shapes, i);
        double own = ev_json_number(at, "best_ns", 0), first = ev_json_number(at, "baseline_ns", 0);
        json_int_t variant = ev_json_integer(at, "variant", -1);
        table_cell(rows, "%s", ev_json_text(at, "case", ""));
        table_cell(rows, "%g", ev_json_number(at, "weight", 0));
        time_cell(rows, first);
        time_cell(rows, ev_json_number(at, "hand_ns", 0));
        time_cell(rows, own);
        table_cell(rows, "%.2fx", own > 0 ? first / own : 0);
        if (variant >= 0)
            table_cell(rows, "%d", (int)variant + 1);
        else
            table_cell(rows, "a start");
    }
    ev_str_printf(out, "\nportfolio of %s: %zu variants, weighted time %.2fx as fast (%s)\n",
                  ev_json_text(p, "kernel", ""), json_array_size(json_object_get(p, "variants")),
                  ns > 0 ? base / ns : 0, ev_json_text(p, "time_kind", ""));
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static ev_status print_portfolios(const tune_report *r, ev_str *out, ev_error *err) {
    for (size_t i = 0; i < json_array_size(r->portfolios); i++)
        EV_TRY(print_portfolio(json_array_get(r->portfolios, i), out, err));
    return EV_OK;
}

static ev_status print_report(cmd_context *c, const tune_report *r, ev_error *err) {
    static const char *const columns[] = {"kernel",     "case",      ">baseline", ">hand-tuned",
                                          ">best",      ">speed-up", ">of floor", ">error",
                                          ">tolerance", "times are", "promoted",  NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < r->row_count; i++)
        add_row(rows, &r->rows[i]);
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    ev_str_append(c->out, "\nspeed-up: the baseline (the task's first start, unchanged) over the "
                          "best, at held-out cases; "
                          "error: relative L2\n");
    print_floors(r, c->out);
    print_fronts(r, c->out);
    print_bold(r, c->out);
    print_counts(r, c->args->values[CLI_OPT_DEVICE], c->out);
    return status == EV_OK ? print_portfolios(r, c->out, err) : status;
}

/* ---- the run ---- */

/* Exports what is promoted; the bundle's place goes to stderr, since stdout may be one JSON object.
 */
static ev_status export_run(cmd_context *c, const tune_options *o, const tune_report *report,
                            ev_error *err) {
    const char *out = cli_text(c->args, CLI_OPT_OUT);
    if (out == NULL)
        return EV_OK;
    if (report->row_count == 0) {
        (void)fprintf(stderr, "evoke: no task was finished, so no bundle was written to %s\n", out);
        return EV_OK;
    }
    export_summary summary = {0};
    sign_key *key = NULL;
    EV_TRY(cmd_read_key(c, &key, err));
    ev_status status = export_bundle(o->records, out, key, &summary, err);
    sign_key_free(key);
    EV_TRY(status);
    (void)fprintf(stderr, "evoke: wrote the bundle %s: %zu kernels, %zu with a promoted variant\n",
                  out, summary.kernels, summary.variants);
    return EV_OK;
}

/* Whether the device's times are modelled; and that there is such a device at all. Says on stderr
 * where no GPU description is of it. */
static ev_status is_modelled(const char *devices, bool *out, ev_error *err) {
    look_devices gpus = {.count = 0};
    if (look_is_gpu(devices))
        EV_TRY(look_at_gpus(devices, &gpus, err));
    else
        EV_TRY(look_at_device(devices, &gpus.first, err));
    *out = gpus.first.modelled;
    if (gpus.first.twin_note[0] != '\0')
        (void)fprintf(stderr, "evoke: %s: %s\n", devices, gpus.first.twin_note);
    return EV_OK;
}

/* What shows the run while it goes on. */
typedef struct watchers {
    progress shown;
    report_live *page; /* NULL: no page was asked for */
} watchers;

static void show_progress(void *context, const tune_progress *now) {
    watchers *w = context;
    progress_show(&w->shown, now);
    if (w->page != NULL)
        report_live_show(w->page, now);
}

/* The last page of a run. Where the run failed, its failure is what counts. */
static ev_status end_page(report_live *page, ev_status status, const tune_report *report,
                          ev_error *err) {
    ev_str words = EV_STR_EMPTY;
    ev_error why;
    if (page == NULL)
        return status;
    if (status != EV_OK)
        ev_str_printf(&words, "The run failed: %s", err->text);
    else
        ev_str_printf(&words, "The run %s: %" PRIu64 " evaluations in %.0f s.",
                      report->stopped ? "was stopped" : "has ended", report->evaluations,
                      report->seconds);
    ev_status written = report_live_end(page, ev_str_text(&words), &why);
    ev_str_free(&words);
    report_live_free(page);
    if (status == EV_OK && written != EV_OK)
        *err = why;
    return status != EV_OK ? status : written;
}

static ev_status tell_results(cmd_context *c, const tune_options *o, const tune_report *report,
                              ev_error *err) {
    if (report->stopped)
        (void)fprintf(stderr, "evoke: stopped; the output has the results so far\n");
    ev_status status = export_run(c, o, report, err);
    ev_status printed = cli_flag(c->args, CLI_OPT_JSON) ? print_report_json(c, report, err)
                                                        : print_report(c, report, err);
    return status != EV_OK ? status : printed;
}

/* Results are told before the last page is written: a page that cannot be written loses none. */
static ev_status run(cmd_context *c, tune_options *o, ev_error *err) {
    bool modelled = true;
    const char *page = cli_text(c->args, CLI_OPT_TUNE_REPORT);
    tune_report report = {0};
    EV_TRY(is_modelled(o->device, &modelled, err));
    watchers w = {
        .shown = {.view = progress_view_stderr(modelled ? "modelled" : "measured", o->seconds)}};
    o->progress = show_progress;
    o->progress_context = &w;
    ev_status status = EV_OK;
    if (page != NULL)
        status = report_live_new(page, o->records, REPORT_LIVE_SECONDS, &w.page, err);
    if (status == EV_OK) {
        status = tune_run(o, &report, err);
        progress_end(&w.shown);
        if (status == EV_OK)
            status = tell_results(c, o, &report, err);
        status = end_page(w.page, status, &report, err);
    }
    o->progress = NULL; /* the watchers end here */
    o->progress_context = NULL;
    tune_report_free(&report);
    return status;
}

static ev_status note_one(void *context, const records_evaluation *e, ev_error *err) {
    (void)e;
    (void)err;
    *(bool *)context = true;
    return EV_OK;
}

/* Whether the first task of a run has an evaluation. */
static bool has_evaluations(const char *file) {
    records *r = NULL;
    ev_error ignored;
    bool has = false;
    if (records_open_read(file, &r, &ignored) != EV_OK)
        return false;
    ev_status read = records_each(r, 0, "search", note_one, &has, &ignored);
    records_close(r);
    return read != EV_OK || has;
}

/* Bundle and page are made from records: without --records, records are made in a folder for
 * temporary files. The folder is kept where the run has failed. */
static ev_status run_with_records(cmd_context *c, tune_options *o, ev_error *err) {
    bool needs_records =
        cli_text(c->args, CLI_OPT_OUT) != NULL || cli_text(c->args, CLI_OPT_TUNE_REPORT) != NULL;
    if (o->records != NULL || !needs_records)
        return run(c, o, err);
    const char *place = getenv("TMPDIR");
    char *folder = ev_path_join(place != NULL ? place : "/tmp", "evoke-XXXXXX");
    if (folder == NULL)
        return ev_fail_memory(err, 1);
    if (mkdtemp(folder) == NULL) {
        ev_status status = ev_fail_errno(err, "cannot make a folder for the records", folder);
        free(folder);
        return status;
    }
    char *file = ev_path_join(folder, "records.sqlite");
    o->records = file;
    ev_status status = file != NULL ? run(c, o, err) : ev_fail_memory(err, 1);
    if (status != EV_OK && has_evaluations(file))
        status = ev_wrap(err, status,
                         "the records of this run are kept in %s: evoke export --records makes a "
                         "bundle of them, and tune --records ... --resume goes on",
                         file);
    else if (ev_dir_remove(folder, NULL) != EV_OK)
        (void)fprintf(stderr, "evoke: %s is left over\n", folder);
    free(file);
    free(folder);
    return status;
}

ev_status cmd_tune(cmd_context *c, ev_error *err) {
    sign_key *key = NULL;
    EV_TRY(check_options(c->args, err));
    EV_TRY(cmd_read_key(c, &key, err)); /* a wrong key shows before the search */
    sign_key_free(key);
    ev_stop_catch();
    tune_options o = options_of(c->args);
    EV_TRY(cmd_without(c->args, o.without, err));
    EV_TRY(read_targets(c->args, &o.assemble, err));
    if (look_is_gpu(o.device)) {
        look_devices gpus;
        EV_TRY(look_at_gpus(o.device, &gpus, err));
        if (!look_is_one_model(&gpus))
            return cmd_tune_models(c, &gpus, err);
    }
    prior expected;
    if (cli_text(c->args, CLI_OPT_PRIOR) != NULL) {
        EV_TRY(prior_read(c->args->values[CLI_OPT_PRIOR], &expected, err));
        o.prior = &expected;
    }
    bool families = cli_flag(c->args, CLI_OPT_FAMILIES);
    if (!cli_flag(c->args, CLI_OPT_ALL) && !families) {
        o.tasks = c->args->operands;
        o.task_count = c->args->operand_count;
        return run_with_records(c, &o, err);
    }
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(families ? task_list_leads(&paths, &count, err)
                    : task_list_shipped(&paths, &count, err));
    o.tasks = (const char *const *)paths;
    o.task_count = count;
    ev_status status = run_with_records(c, &o, err);
    task_list_free(paths, count);
    return status;
}
