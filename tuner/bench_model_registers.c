/* The model's estimate of registers against the assembler's count, where ptxas is installed: every
 * start of the shipped tasks, the kernels of the benches and the tests' zoo. */
#include "tuner/bench_model.h"

#include "base/file.h"
#include "base/proc.h"
#include "fitness/model/model.h"
#include "kernels/task.h"
#include "tuner/bench.h"
#include "tuner/table.h"
#include "tuner/variant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTXAS_SECONDS 60
#define USUAL_PTXAS "/usr/local/cuda/bin/ptxas"
#define NEWEST_WITHOUT 75 /* ptxas 13 has nothing older; older targets are assembled for it */

typedef struct report {
    json_t *list;
    table *rows;
    const char *ptxas;
    double error, rounded_error; /* sums */
    size_t count, most_off;      /* most_off: rows that are more than a quarter off */
} report;

/* ---- one kernel ---- */

static double rounded(double registers) {
    return ceil(registers / 8) * 8;
}

static void report_add(report *r, const char *name, int sm, uint32_t estimate, uint32_t counted) {
    double off = (double)estimate / counted - 1;
    r->error += fabs(off);
    r->rounded_error += fabs(rounded(estimate) / rounded(counted) - 1);
    r->count++;
    r->most_off += fabs(off) > 0.25;
    table_cell(r->rows, "%s", name);
    table_cell(r->rows, "sm_%d", sm);
    table_cell(r->rows, "%u", estimate);
    table_cell(r->rows, "%u", counted);
    table_cell(r->rows, "%+.0f %%", off * 100);
    (void)json_array_append_new(r->list, json_pack("{s:s, s:I, s:I, s:I}", "kernel", name, "sm",
                                                   (json_int_t)sm, "estimate", (json_int_t)estimate,
                                                   "ptxas", (json_int_t)counted));
}

/* "Used N registers" after the line that names the entry; 0: it is not there. */
static uint32_t find_count(const char *log, const char *entry) {
    ev_str name = EV_STR_EMPTY;
    ev_str_printf(&name, "Compiling entry function '%s'", entry);
    const char *at = strstr(log, ev_str_text(&name));
    ev_str_free(&name);
    at = at != NULL ? strstr(at, "Used ") : NULL;
    return at != NULL ? (uint32_t)strtoul(at + 5, NULL, 10) : 0;
}

static ev_status assemble(const char *ptxas, const char *ptx, int sm, ev_str *log, ev_error *err) {
    char arch[24];
    (void)snprintf(arch, sizeof arch, "-arch=sm_%d", sm > NEWEST_WITHOUT ? sm : NEWEST_WITHOUT);
    const char *const argv[] = {ptxas, "-v", arch, "-o", "/dev/null", "/dev/stdin", NULL};
    ev_proc_result result;
    EV_TRY(ev_proc_run(argv, ptx, PTXAS_SECONDS, &result, err));
    ev_str_append(log, ev_str_text(&result.out));
    ev_str_append(log, ev_str_text(&result.err));
    ev_status status =
        result.exit_code == 0 ? EV_OK : ev_fail(err, EV_BAD, "%s: %.300s", ptxas, ev_str_text(log));
    ev_proc_result_free(&result);
    return status;
}

static ev_status compare_module(report *r, const char *name, const char *ptx, size_t bytes,
                                ev_error *err) {
    vm_module *module = NULL;
    ev_str log = EV_STR_EMPTY;
    EV_TRY(vm_module_load(ptx, bytes, name, &module, err));
    ev_status status = assemble(r->ptxas, ptx, vm_module_sm(module), &log, err);
    for (size_t i = 0; i < vm_module_entry_count(module) && status == EV_OK; i++) {
        const vm_entry *entry = vm_module_entry(module, i);
        uint32_t counted = find_count(ev_str_text(&log), entry->name);
        uint32_t live = model_live_registers(module, entry), cap = model_register_cap(entry);
        char label[64];
        (void)snprintf(label, sizeof label, "%.30s %.30s", name, entry->name);
        if (counted > 0)
            report_add(r, label, vm_module_sm(module), live < cap ? live : cap, counted);
    }
    ev_str_free(&log);
    vm_module_free(module);
    return status;
}

/* ---- all of them ---- */

static const int targets[] = {70, 80, 90};

static ev_status compare_task(report *r, const task *t, ev_error *err) {
    for (size_t i = 0; i < t->start_count; i++) {
        for (size_t s = 0; s < sizeof targets / sizeof targets[0]; s++) {
            ev_str ptx = EV_STR_EMPTY;
            ev_status status = variant_build_start(t, &t->starts[i], targets[s], &ptx, err);
            if (status == EV_OK)
                status = compare_module(r, t->starts[i].name, ev_str_text(&ptx), ptx.length, err);
            ev_str_free(&ptx);
            EV_TRY(status);
        }
    }
    return EV_OK;
}

static ev_status compare_tasks(report *r, const cli_args *args, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    (void)args;
    EV_TRY(task_list_shipped(&paths, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++) {
        task *t = NULL;
        status = task_open(paths[i], &t, err);
        if (status == EV_OK)
            status = compare_task(r, t, err);
        task_free(t);
    }
    task_list_free(paths, count);
    return status;
}

/* The entries of a source of ours that holds one kernel a name. */
static ev_status compare_source(report *r, const char *home, const char *file, const char *entry,
                                ev_error *err) {
    ev_str path = EV_STR_EMPTY, ptx = EV_STR_EMPTY;
    ev_str_printf(&path, "%s/%s", home, file);
    ev_status status = variant_build_file(ev_str_text(&path), entry, 80, &ptx, err);
    if (status == EV_OK)
        status = compare_module(r, "bench", ev_str_text(&ptx), ptx.length, err);
    ev_str_free(&path);
    ev_str_free(&ptx);
    return status;
}

static ev_status compare_benches(report *r, const char *home, ev_error *err) {
    static const char *const names[][2] = {
#define BENCH_KERNEL(name, elements, out_elements, grid_x, grid_y, block_x, block_y, n, doc)       \
    {"fitness/vm/bench/" #name ".cu", #name},
#include "tuner/bench_kernels.def"
#undef BENCH_KERNEL
        {"fitness/model/bench/stream.cu", "triad"},
        {"fitness/model/bench/stream.cu", "stencil5"},
        {"fitness/model/bench/strides.cu", "strides_double"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        EV_TRY(compare_source(r, home, names[i][0], names[i][1], err));
    return EV_OK;
}

static ev_status compare_zoo(report *r, const char *home, ev_error *err) {
    ev_str path = EV_STR_EMPTY;
    ev_str_printf(&path, "%s/tests/ptx/zoo/good.ptx", home);
    char *text = NULL;
    size_t bytes = 0;
    ev_status status = EV_OK;
    if (ev_path_exists(ev_str_text(&path)))
        status = ev_file_read(ev_str_text(&path), &text, &bytes, err);
    if (status == EV_OK && text != NULL)
        status = compare_module(r, "zoo", text, bytes, err);
    free(text);
    ev_str_free(&path);
    return status;
}

static ev_status compare_all(report *r, const cli_args *args, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the kernels were not found; set EVOKE_HOME");
    ev_status status = compare_tasks(r, args, err);
    if (status == EV_OK)
        status = compare_benches(r, home, err);
    if (status == EV_OK)
        status = compare_zoo(r, home, err);
    free(home);
    return status;
}

static ev_status print_report(cmd_context *c, const report *r, ev_error *err) {
    double n = (double)r->count;
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:s, s:I, s:f, s:f, s:O}", "bench", "model", "part",
                                        "registers", "kernels", (json_int_t)r->count, "mape",
                                        100 * r->error / n, "mape_allocated",
                                        100 * r->rounded_error / n, "rows", r->list),
                              err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_printf(c->out,
                  "\nregisters a thread of %zu kernels: mean absolute error %.1f %%, of what is "
                  "allocated (steps\nof 8) %.1f %%; %zu are more than 25 %% off.\n",
                  r->count, 100 * r->error / n, 100 * r->rounded_error / n, r->most_off);
    return EV_OK;
}

ev_status bench_model_registers(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"kernel", "target", ">estimate", ">ptxas", ">off", NULL};
    report r = {.list = json_array(),
                .rows = table_new(columns),
                .ptxas = ev_path_exists(USUAL_PTXAS) ? USUAL_PTXAS : "ptxas"};
    ev_status status = r.list == NULL || r.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = compare_all(&r, c->args, err);
    if (status == EV_OK)
        status = print_report(c, &r, err);
    json_decref(r.list);
    table_free(r.rows);
    return status;
}
