/* evoke bench model: the timing model against measurements of real GPUs. */
#include "tuner/bench/bench_model.h"

#include "base/file.h"
#include "base/table.h"
#include "tuner/bench/bench.h"
#include "tuner/bench/bench_vm.h"

#include <stdlib.h>
#include <string.h>

#define FOLDER "fitness/model/silicon"

/* ---- points ---- */

/* The shipped description that a GPU's name means: "A100-80" is a100. */
static void description_id(const char *gpu_name, char id[40]) {
    size_t length = strcspn(gpu_name, "-");
    for (size_t i = 0; i < length; i++)
        id[i] = (char)(gpu_name[i] >= 'A' && gpu_name[i] <= 'Z' ? gpu_name[i] + 32 : gpu_name[i]);
    id[length] = '\0';
}

/* The points of the first GPU among `points`, which stand in a row. */
static size_t same_gpu(const silicon_point *points, size_t count) {
    size_t same = 0;
    while (same < count && strcmp(points[same].gpu, points[0].gpu) == 0)
        same++;
    return same;
}

static ev_status run_points(const gpu *g, silicon_set set, silicon_point *points, size_t count,
                            ev_error *err) {
    model_rig *rig = NULL;
    EV_TRY(model_rig_new(g, set, &rig, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = model_rig_run(rig, g, &points[i], err);
    model_rig_free(rig);
    return status;
}

/* ---- printing ---- */

typedef struct model_report {
    json_t *list;
    table *rows;
} model_report;

static void report_kernels(model_report *r, const silicon_point *points, size_t count,
                           const char *set) {
    for (size_t first = 0; first < count;) {
        size_t same = first;
        while (same < count && strcmp(points[same].kernel, points[first].kernel) == 0)
            same++;
        table_cell(r->rows, "%s", points[first].gpu);
        table_cell(r->rows, "%s", set);
        table_cell(r->rows, "%s", points[first].kernel);
        table_cell(r->rows, "%zu", same - first);
        table_cell(r->rows, "%.1f %%", silicon_mape(points + first, same - first));
        table_cell(r->rows, "%.3f", silicon_spearman(points + first, same - first));
        first = same;
    }
}

static void report_add(model_report *r, const silicon_point *points, size_t count,
                       const char *set) {
    double mape = silicon_mape(points, count), spearman = silicon_spearman(points, count);
    (void)json_array_append_new(
        r->list, json_pack("{s:s, s:s, s:I, s:f, s:f}", "gpu", points[0].gpu, "set", set, "points",
                           (json_int_t)count, "mape", mape, "spearman", spearman));
    table_cell(r->rows, "%s", points[0].gpu);
    table_cell(r->rows, "%s", set);
    table_cell(r->rows, "all");
    table_cell(r->rows, "%zu", count);
    table_cell(r->rows, "%.1f %%", mape);
    table_cell(r->rows, "%.3f", spearman);
}

static ev_status print_report(cmd_context *c, const model_report *r, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c, json_pack("{s:s, s:O}", "bench", "model", "rows", r->list), err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_append(c->out, "\nmodelled against measured: mean absolute error, and Spearman's rank "
                          "correlation; the\nmodel's numbers are those of the GPU's description "
                          "alone.\n");
    return EV_OK;
}

/* ---- files ---- */

/* By GPU and then by kernel, in the file's order otherwise. */
static int compare_points(const void *a, const void *b) {
    const silicon_point *x = a, *y = b;
    int by_gpu = strcmp(x->gpu, y->gpu), by_kernel = strcmp(x->kernel, y->kernel);
    if (by_gpu != 0 || by_kernel != 0)
        return by_gpu != 0 ? by_gpu : by_kernel;
    return x->line < y->line ? -1 : x->line > y->line;
}

static ev_status each_in_data(silicon_data *data, const char *description, bench_model_fn *fn,
                              void *context, ev_error *err) {
    qsort(data->points, data->count, sizeof *data->points, compare_points);
    for (size_t first = 0, same; first < data->count; first += same) {
        silicon_point *points = data->points + first;
        same = same_gpu(points, data->count - first);
        char id[40];
        description_id(points->gpu, id);
        gpu *g = NULL;
        EV_TRY(gpu_load(description != NULL ? description : id, &g, err));
        ev_status status = fn(context, g, data->set, points, same, err);
        gpu_free(g);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status each_in_file(const char *path, const char *description, bench_model_fn *fn,
                              void *context, ev_error *err) {
    silicon_data data;
    EV_TRY(silicon_read(path, &data, err));
    ev_status status = each_in_data(&data, description, fn, context, err);
    silicon_free(&data);
    return status;
}

static ev_status each_shipped(bench_model_fn *fn, void *context, ev_error *err) {
    static const char *const files[] = {"stream.csv", "strides.csv"};
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the folder %s was not found; set EVOKE_HOME", FOLDER);
    ev_status status = EV_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && status == EV_OK; i++) {
        ev_str path = EV_STR_EMPTY;
        ev_str_printf(&path, "%s/" FOLDER "/%s", home, files[i]);
        status = each_in_file(ev_str_text(&path), NULL, fn, context, err);
        ev_str_free(&path);
    }
    free(home);
    return status;
}

ev_status bench_model_each(const cli_args *args, bench_model_fn *fn, void *context, ev_error *err) {
    const char *data = cli_text(args, CLI_OPT_DATA);
    const char *description = cli_text(args, CLI_OPT_DESCRIPTION);
    if (data == NULL && description != NULL)
        return ev_fail(err, EV_BAD, "--description says which GPU --data is of; give both");
    return data != NULL ? each_in_file(data, description, fn, context, err)
                        : each_shipped(fn, context, err);
}

/* ---- agreement ---- */

static ev_status score_gpu(void *context, gpu *g, silicon_set set, silicon_point *points,
                           size_t count, ev_error *err) {
    EV_TRY(run_points(g, set, points, count, err));
    report_kernels(context, points, count, silicon_set_name(set));
    report_add(context, points, count, silicon_set_name(set));
    return EV_OK;
}

static ev_status silicon_part(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"gpu",    "set",   "kernel", ">points",
                                          ">error", ">rank", NULL};
    model_report report = {json_array(), table_new(columns)};
    ev_status status = report.list == NULL || report.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = bench_model_each(c->args, score_gpu, &report, err);
    if (status == EV_OK)
        status = print_report(c, &report, err);
    json_decref(report.list);
    table_free(report.rows);
    return status;
}

/* ---- what the model costs ---- */

/* What the project holds itself to: percent of the machine's time without shadow checks. */
#define OVERHEAD_BAR 40.0

static void report_overhead(model_report *r, const bench_overhead *o) {
    double more = 100 * (o->more - 1);
    double checked = 100 * (o->checked_more - 1);
    const char *blocks = o->follows_all ? "all followed" : "repeats recalled";
    table_cell(r->rows, "%s", o->kernel);
    table_cell(r->rows, "%s", blocks);
    table_cell(r->rows, "%.2f ms", o->vm_seconds * 1e3);
    table_cell(r->rows, "%.2f ms", o->model_seconds * 1e3);
    table_cell(r->rows, "%.0f %%", more);
    table_cell(r->rows, "%.2f ms", o->checked_seconds * 1e3);
    table_cell(r->rows, "%.0f %%", checked);
    table_cell(r->rows, "%zu", o->rounds);
    (void)json_array_append_new(
        r->list,
        json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "kernel", o->kernel,
                  "blocks", blocks, "vm_seconds", o->vm_seconds, "model_seconds", o->model_seconds,
                  "overhead_percent", more, "checked_vm_seconds", o->checked_seconds,
                  "checked_model_seconds", o->checked_model_seconds, "checked_overhead_percent",
                  checked, "bar_percent", OVERHEAD_BAR, "rounds", (json_int_t)o->rounds));
}

static ev_status print_overhead(cmd_context *c, const model_report *r, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(
            c, json_pack("{s:s, s:s, s:O}", "bench", "model", "part", "overhead", "rows", r->list),
            err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_printf(
        c->out,
        "\nCPU time of a launch, all blocks: medians. 'more' is the median over the rounds of "
        "what the launch\nwith the model took more than the one without it in the same "
        "round. Blocks that repeat an earlier\none at moved addresses are recalled; in "
        "a sample of a few there may be none, and all are followed.\nThe bar is %.0f %% "
        "more than the machine alone without shadow checks; a search runs with all\n"
        "checks on.\n",
        OVERHEAD_BAR);
    return EV_OK;
}

/* `kernel`: of bench vm; NULL: all. */
static ev_status overhead_of(cmd_context *c, const char *kernel, ev_error *err) {
    static const char *const columns[] = {"kernel",      "blocks",  ">VM alone",
                                          ">with model", ">more",   ">VM, all checks",
                                          ">more",       ">rounds", NULL};
    bench_overhead rows[BENCH_OVERHEAD_MOST];
    size_t count = 0;
    device *d = NULL;
    EV_TRY(device_open(c->args->values[CLI_OPT_DEVICE], &d, err));
    ev_status status = bench_vm_overhead(d, kernel, rows, &count, err);
    device_close(d);
    EV_TRY(status);
    model_report report = {json_array(), table_new(columns)};
    if (report.list == NULL || report.rows == NULL)
        status = ev_fail_memory(err, 1);
    for (size_t i = 0; status == EV_OK && i < count; i++)
        report_overhead(&report, &rows[i]);
    if (status == EV_OK)
        status = print_overhead(c, &report, err);
    json_decref(report.list);
    table_free(report.rows);
    return status;
}

static ev_status overhead_part(cmd_context *c, ev_error *err) {
    return overhead_of(c, NULL, err);
}

ev_status bench_model(cmd_context *c, ev_error *err) {
    static const struct {
        const char *name;
        cmd_fn *run;
    } parts[] = {
        {"silicon", silicon_part},
        {"overhead", overhead_part},
        {"sensitivity", bench_model_sensitivity},
        {"registers", bench_model_registers},
        {"ranking", bench_model_ranking},
        {"convolution", bench_model_ranking},
        {"gemm", bench_model_ranking},
    };
    const char *only = cli_text(c->args, CLI_OPT_ONLY);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (only == NULL || strcmp(only, parts[i].name) == 0)
            return parts[i].run(c, err);
    }
    if (bench_vm_kernel(only) != NULL)
        return overhead_of(c, only, err);
    return ev_fail(
        err, EV_BAD,
        "bench model has no part '%s'; it has silicon, overhead, sensitivity, registers, "
        "ranking (of the sets convolution and gemm, or of one by its name), and for a kernel of "
        "bench vm its overhead",
        only);
}
