/* evoke bench vm: runs kernels of different character over and over, and divides. */
#include "tuner/bench.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/proc.h"
#include "fitness/device.h"
#include "tuner/table.h"
#include "tuner/variant.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RUNS 32
#define LEAST_RUNS 3
#define SECONDS 0.6 /* a kernel and kind of checks, at least, unless MOST_RUNS come first */
#define FOLDER "fitness/vm/bench"

typedef struct bench_kernel {
    const char *name, *doc;
    size_t elements, out_elements;
    uint32_t grid[3], block[3];
    int32_t n;
} bench_kernel;

static const bench_kernel kernels[] = {
#define BENCH_KERNEL(name, elements, out_elements, grid_x, grid_y, block_x, block_y, n, doc)       \
    {#name, doc, elements, out_elements, {grid_x, grid_y, 1}, {block_x, block_y, 1}, n},
#include "tuner/bench_kernels.def"
#undef BENCH_KERNEL
};

#define KERNEL_COUNT (sizeof kernels / sizeof kernels[0])

/* A kernel on the device with its buffers. */
typedef struct rig {
    device *device;
    device_kernel *kernel;
    device_buffer out;
    size_t out_bytes;
    uint64_t params[4]; /* a, b, c, n: pointers of 8 bytes, then 4 bytes */
} rig;

typedef struct measure {
    double seconds[MOST_RUNS];
    size_t runs;
    uint64_t instructions;
} measure;

/* ---- preparing ---- */

/* Words that are small positive floats, and spread well as integers. */
static ev_status fill(device *d, device_buffer buffer, size_t elements, uint64_t seed,
                      ev_error *err) {
    uint32_t *words = malloc(elements * sizeof *words);
    if (words == NULL)
        return ev_fail_memory(err, elements * sizeof *words);
    for (size_t i = 0; i < elements; i++)
        words[i] = 0x3f800000u | (uint32_t)(ev_mix64(seed << 32 | i) >> 41);
    ev_status status = device_write(d, buffer, 0, words, elements * sizeof *words, err);
    free(words);
    return status;
}

static ev_status make_input(rig *r, const bench_kernel *k, size_t index, ev_error *err) {
    device_buffer buffer = 0;
    EV_TRY(device_alloc(r->device, k->elements * 4, VM_BUFFER_IN, index == 0 ? "a" : "b", &buffer,
                        err));
    r->params[index] = device_address(r->device, buffer);
    return fill(r->device, buffer, k->elements, index + 1, err);
}

static ev_status rig_fill(rig *r, const bench_kernel *k, const ev_str *ptx, ev_error *err) {
    EV_TRY(device_load(r->device, ev_str_text(ptx), ptx->length, k->name, &r->kernel, err));
    if (device_kernel_entry(r->kernel)->param_bytes != 28)
        return ev_fail(err, EV_BAD, "%s/%s.cu must take (a, b, c, n)", FOLDER, k->name);
    EV_TRY(make_input(r, k, 0, err));
    EV_TRY(make_input(r, k, 1, err));
    r->out_bytes = k->out_elements * 4;
    EV_TRY(device_alloc(r->device, r->out_bytes, VM_BUFFER_INOUT, "c", &r->out, err));
    r->params[2] = device_address(r->device, r->out);
    memcpy(&r->params[3], &k->n, sizeof k->n);
    return EV_OK;
}

static void rig_clear(rig *r) {
    device_unload(r->kernel);
    device_clear(r->device);
    r->kernel = NULL;
}

static ev_status build_kernel(const bench_kernel *k, int sm, ev_str *ptx, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the folder %s was not found; set EVOKE_HOME", FOLDER);
    ev_str path = EV_STR_EMPTY;
    ev_str_printf(&path, "%s/" FOLDER "/%s.cu", home, k->name);
    free(home);
    ev_status status = variant_build_file(ev_str_text(&path), k->name, sm, ptx, err);
    ev_str_free(&path);
    return status;
}

/* ---- measuring ---- */

/* What a run does beside executing. */
typedef struct bench_kind {
    const char *name;
    vm_checks checks;
    bool modelled;
} bench_kind;

static ev_status run_once(rig *r, const bench_kernel *k, const bench_kind *kind, measure *m,
                          ev_error *err) {
    device_launch launch = {.params = r->params, .checks = kind->checks};
    device_timing timing;
    memcpy(launch.grid, k->grid, sizeof launch.grid);
    memcpy(launch.block, k->block, sizeof launch.block);
    device_outcome outcome;
    EV_TRY(device_reset(r->device, 0, err));
    double begin = ev_clock_cpu();
    EV_TRY(kind->modelled ? device_time(r->device, r->kernel, &launch, &outcome, &timing, err)
                          : device_run(r->device, r->kernel, &launch, &outcome, err));
    m->seconds[m->runs] = ev_clock_cpu() - begin;
    if (!outcome.ok)
        return ev_fail(err, EV_BAD, "%s traps at PTX line %u: %s", k->name, outcome.fault.line,
                       outcome.fault.message);
    m->instructions = outcome.counters.thread_instructions;
    m->runs++;
    return EV_OK;
}

static ev_status measure_kernel(rig *r, const bench_kernel *k, const bench_kind *kind, measure *m,
                                ev_error *err) {
    *m = (measure){0};
    EV_TRY(run_once(r, k, kind, m, err)); /* touches the pages; its time does not count */
    double total = 0;
    for (m->runs = 0; m->runs < LEAST_RUNS || (total < SECONDS && m->runs < MOST_RUNS);) {
        EV_TRY(run_once(r, k, kind, m, err));
        total += m->seconds[m->runs - 1];
    }
    return EV_OK;
}

/* ---- printing ---- */

typedef struct vm_report {
    json_t *list;
    table *rows;
} vm_report;

static void report_add(vm_report *report, const bench_kernel *k, const char *checks, measure *m) {
    double median = bench_quantile(m->seconds, m->runs, 0.5);
    double low = bench_quantile(m->seconds, m->runs, 0.1);
    double high = bench_quantile(m->seconds, m->runs, 0.9);
    double rate = median > 0 ? (double)m->instructions / median : 0;
    (void)json_array_append_new(report->list,
                                json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:I}", "kernel",
                                          k->name, "checks", checks, "thread_instructions",
                                          (json_int_t)m->instructions, "seconds", median,
                                          "seconds_p10", low, "seconds_p90", high, "per_second",
                                          rate, "runs", (json_int_t)m->runs));
    table_cell(report->rows, "%s", k->name);
    table_cell(report->rows, "%s", checks);
    table_cell(report->rows, "%.2f M", (double)m->instructions * 1e-6);
    table_cell(report->rows, "%.2f ms", median * 1e3);
    table_cell(report->rows, "%.2f - %.2f", low * 1e3, high * 1e3);
    table_cell(report->rows, "%.0f M", rate * 1e-6);
    table_cell(report->rows, "%s", k->doc);
}

static ev_status bench_rig(rig *r, const bench_kernel *k, const char *only, vm_report *report,
                           ev_error *err) {
    static const bench_kind kinds[] = {{"all", VM_CHECK_ALL, false},
                                       {"none", VM_CHECK_NONE, false}};
    for (size_t i = 0; i < 2; i++) {
        measure m;
        if (only != NULL && strcmp(only, kinds[i].name) != 0)
            continue;
        EV_TRY(measure_kernel(r, k, &kinds[i], &m, err));
        report_add(report, k, kinds[i].name, &m);
    }
    return EV_OK;
}

/* Turns about, so that a machine that slows down in between slows both. */
static ev_status measure_overhead(rig *r, const bench_kernel *k, bench_overhead *out,
                                  ev_error *err) {
    static const bench_kind kinds[] = {{"vm", VM_CHECK_NONE, false},
                                       {"model", VM_CHECK_NONE, true}};
    measure m[2] = {{.runs = 0}, {.runs = 0}};
    double total = 0;
    for (size_t i = 0; i < 2; i++)
        EV_TRY(run_once(r, k, &kinds[i], &m[i], err));
    for (m[0].runs = m[1].runs = 0;
         m[0].runs < LEAST_RUNS || (total < SECONDS && m[0].runs < MOST_RUNS);) {
        for (size_t i = 0; i < 2; i++) {
            EV_TRY(run_once(r, k, &kinds[i], &m[i], err));
            total += m[i].seconds[m[i].runs - 1];
        }
    }
    *out = (bench_overhead){.kernel = k->name,
                            .vm_seconds = bench_quantile(m[0].seconds, m[0].runs, 0.5),
                            .model_seconds = bench_quantile(m[1].seconds, m[1].runs, 0.5),
                            .runs = m[0].runs};
    return EV_OK;
}

static ev_status check_only(const char *only, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    bool found = only == NULL;
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        found = found || strcmp(only, kernels[i].name) == 0;
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", kernels[i].name);
    }
    ev_status status = found ? EV_OK
                             : ev_fail(err, EV_BAD, "bench vm has no kernel '%s'; it has %s", only,
                                       ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static ev_status bench_kernels(device *d, const cli_args *args, vm_report *report, ev_error *err) {
    const char *only = cli_text(args, CLI_OPT_ONLY);
    EV_TRY(check_only(only, err));
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        if (only != NULL && strcmp(only, kernels[i].name) != 0)
            continue;
        ev_str ptx = EV_STR_EMPTY;
        rig r = {.device = d};
        ev_status status = build_kernel(&kernels[i], device_properties_of(d)->sm, &ptx, err);
        if (status == EV_OK)
            status = rig_fill(&r, &kernels[i], &ptx, err);
        if (status == EV_OK)
            status = bench_rig(&r, &kernels[i], cli_text(args, CLI_OPT_BENCH_CHECKS), report, err);
        rig_clear(&r);
        ev_str_free(&ptx);
        EV_TRY(status);
    }
    return EV_OK;
}

ev_status bench_vm_overhead(device *d, bench_overhead *out, size_t *count, ev_error *err) {
    *count = 0;
    for (size_t i = 0; i < KERNEL_COUNT && i < BENCH_OVERHEAD_MOST; i++) {
        ev_str ptx = EV_STR_EMPTY;
        rig r = {.device = d};
        ev_status status = build_kernel(&kernels[i], device_properties_of(d)->sm, &ptx, err);
        if (status == EV_OK)
            status = rig_fill(&r, &kernels[i], &ptx, err);
        if (status == EV_OK)
            status = measure_overhead(&r, &kernels[i], &out[(*count)++], err);
        rig_clear(&r);
        ev_str_free(&ptx);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status print_report(cmd_context *c, const vm_report *r, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(
            c, json_pack("{s:s, s:s, s:O}", "bench", "vm", "isa", vm_isa_name(), "rows", r->list),
            err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_printf(c->out,
                  "\nthread instructions a second of one core, instruction set %s; CPU time of a "
                  "launch:\nmedian, and from the 10th to the 90th percentile.\n",
                  vm_isa_name());
    return EV_OK;
}

ev_status bench_vm(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {
        "kernel",        "checks",    ">thread instr", ">a launch",
        ">ms p10 - p90", ">a second", "what it does",  NULL};
    device *d = NULL;
    EV_TRY(device_open(c->args->values[CLI_OPT_DEVICE], &d, err));
    vm_report report = {json_array(), table_new(columns)};
    ev_status status = report.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = bench_kernels(d, c->args, &report, err);
    if (status == EV_OK)
        status = print_report(c, &report, err);
    json_decref(report.list);
    table_free(report.rows);
    device_close(d);
    return status;
}
