/* evoke bench vm: runs kernels of different character over and over, and divides. */
#include "tuner/bench/bench_vm.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/proc.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>
#include <string.h>

#define FOLDER "fitness/vm/bench"

static const bench_kernel kernels[] = {
#define BENCH_KERNEL(name, elements, out_elements, grid_x, grid_y, block_x, block_y, n, doc)       \
    {#name, doc, elements, out_elements, {grid_x, grid_y, 1}, {block_x, block_y, 1}, n},
#include "tuner/bench/bench_kernels.def"
#undef BENCH_KERNEL
};

#define KERNEL_COUNT (sizeof kernels / sizeof kernels[0])

const bench_kernel *bench_vm_kernel(const char *name) {
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

const bench_kernel *bench_vm_kernels(size_t *count) {
    *count = KERNEL_COUNT;
    return kernels;
}

/* ---- preparing ---- */

void bench_vm_words(uint32_t *words, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        words[i] = 0x3f800000u | (uint32_t)(ev_mix64(seed << 32 | i) >> 41);
}

static ev_status fill(device *d, device_buffer buffer, size_t elements, uint64_t seed,
                      ev_error *err) {
    uint32_t *words = malloc(elements * sizeof *words);
    if (words == NULL)
        return ev_fail_memory(err, elements * sizeof *words);
    bench_vm_words(words, elements, seed);
    ev_status status = device_write(d, buffer, 0, words, elements * sizeof *words, err);
    free(words);
    return status;
}

static ev_status make_input(bench_rig *r, const bench_kernel *k, size_t index, ev_error *err) {
    device_buffer buffer = 0;
    EV_TRY(device_alloc(r->device, k->elements * 4, VM_BUFFER_IN, index == 0 ? "a" : "b", &buffer,
                        err));
    r->params[index] = device_address(r->device, buffer);
    return fill(r->device, buffer, k->elements, index + 1, err);
}

ev_status bench_rig_fill(bench_rig *r, const bench_kernel *k, const ev_str *ptx, ev_error *err) {
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

void bench_rig_clear(bench_rig *r) {
    device_unload(r->kernel);
    device_clear(r->device);
    r->kernel = NULL;
}

ev_status bench_vm_build(const bench_kernel *k, int sm, ev_str *ptx, ev_error *err) {
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

ev_status bench_rig_run(bench_rig *r, const bench_kernel *k, const bench_kind *kind,
                        bench_measure *m, ev_error *err) {
    device_launch launch = {.params = r->params,
                            .checks = kind->checks,
                            .jobs = kind->jobs,
                            .follows_all = kind->follows_all};
    double (*clock)(void) = kind->jobs > 0 ? ev_clock_now : ev_clock_cpu;
    device_timing timing;
    memcpy(launch.grid, k->grid, sizeof launch.grid);
    memcpy(launch.block, k->block, sizeof launch.block);
    device_outcome outcome;
    EV_TRY(device_reset(r->device, 0, err));
    double begin = clock();
    EV_TRY(kind->modelled ? device_time(r->device, r->kernel, &launch, &outcome, &timing, err)
                          : device_run(r->device, r->kernel, &launch, &outcome, err));
    m->seconds[m->runs] = clock() - begin;
    if (!outcome.ok)
        return ev_fail(err, EV_BAD, "%s traps at PTX line %u: %s", k->name, outcome.fault.line,
                       outcome.fault.message);
    m->instructions = outcome.counters.thread_instructions;
    m->runs++;
    return EV_OK;
}

#define LEAST_RUNS 3
#define SECONDS 0.6 /* at least, unless BENCH_MOST_RUNS come first */

bool bench_wants_more(size_t runs, double total) {
    return runs < LEAST_RUNS || (total < SECONDS && runs < BENCH_MOST_RUNS);
}

ev_status bench_rig_measure(bench_rig *r, const bench_kernel *k, const bench_kind *kind,
                            bench_measure *m, ev_error *err) {
    *m = (bench_measure){0};
    EV_TRY(bench_rig_run(r, k, kind, m, err)); /* touches the pages; its time does not count */
    double total = 0;
    for (m->runs = 0; bench_wants_more(m->runs, total);) {
        EV_TRY(bench_rig_run(r, k, kind, m, err));
        total += m->seconds[m->runs - 1];
    }
    return EV_OK;
}

/* ---- printing ---- */

typedef struct vm_report {
    json_t *list;
    table *rows;
} vm_report;

static void report_add(vm_report *report, const bench_kernel *k, const char *checks,
                       bench_measure *m) {
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
}

static ev_status bench_checks(bench_rig *r, const bench_kernel *k, const char *only,
                              vm_report *report, ev_error *err) {
    static const bench_kind kinds[] = {{.name = "all", .checks = VM_CHECK_ALL},
                                       {.name = "none", .checks = VM_CHECK_NONE}};
    for (size_t i = 0; i < 2; i++) {
        bench_measure m;
        if (only != NULL && strcmp(only, kinds[i].name) != 0)
            continue;
        EV_TRY(bench_rig_measure(r, k, &kinds[i], &m, err));
        report_add(report, k, kinds[i].name, &m);
    }
    return EV_OK;
}

/* Of each kind as many as keep a slow moment of the host from being the median. */
#define OVERHEAD_ROUNDS 21

_Static_assert(OVERHEAD_ROUNDS <= BENCH_MOST_RUNS, "a measure has room for them");

/* Median over the rounds of what `with` takes by what `without` does. */
static double median_ratio(const bench_measure *with, const bench_measure *without) {
    double ratios[BENCH_MOST_RUNS];
    for (size_t i = 0; i < with->runs; i++)
        ratios[i] = with->seconds[i] / without->seconds[i];
    return bench_quantile(ratios, with->runs, 0.5);
}

/* Turns about, every other round backwards, so that a machine that slows down in between slows all:
 * what is compared ran in the same round. */
static ev_status measure_overhead(bench_rig *r, const bench_kernel *k, bench_overhead out[2],
                                  ev_error *err) {
    static const bench_kind kinds[] = {
        {.name = "vm", .checks = VM_CHECK_NONE},
        {.name = "model", .checks = VM_CHECK_NONE, .modelled = true},
        {.name = "model, all followed", .modelled = true, .follows_all = true},
        {.name = "vm, all checks", .checks = VM_CHECK_ALL},
        {.name = "model, all checks", .checks = VM_CHECK_ALL, .modelled = true},
        {.name = "both", .checks = VM_CHECK_ALL, .modelled = true, .follows_all = true}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    bench_measure m[KINDS] = {{.runs = 0}};
    for (size_t i = 0; i < KINDS; i++) { /* touches the pages; its time does not count */
        EV_TRY(bench_rig_run(r, k, &kinds[i], &m[i], err));
        m[i].runs = 0;
    }
    for (size_t round = 0; round < OVERHEAD_ROUNDS; round++)
        for (size_t i = 0; i < KINDS; i++) {
            size_t kind = round % 2 == 0 ? i : KINDS - 1 - i;
            EV_TRY(bench_rig_run(r, k, &kinds[kind], &m[kind], err));
        }
    for (size_t i = 0; i < 2; i++) {
        out[i] = (bench_overhead){.kernel = k->name,
                                  .follows_all = kinds[1 + i].follows_all,
                                  .more = median_ratio(&m[1 + i], &m[0]),
                                  .checked_more = median_ratio(&m[4 + i], &m[3]),
                                  .rounds = OVERHEAD_ROUNDS};
    }
    for (size_t i = 0; i < 2; i++) { /* sorts them, and so is last */
        out[i].vm_seconds = bench_quantile(m[0].seconds, m[0].runs, 0.5);
        out[i].checked_seconds = bench_quantile(m[3].seconds, m[3].runs, 0.5);
        out[i].model_seconds = bench_quantile(m[1 + i].seconds, m[1 + i].runs, 0.5);
        out[i].checked_model_seconds = bench_quantile(m[4 + i].seconds, m[4 + i].runs, 0.5);
    }
    return EV_OK;
}

static ev_status check_only(const char *only, ev_error *err) {
    if (only == NULL || bench_vm_kernel(only) != NULL || bench_vm_is_part(only))
        return EV_OK;
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        ev_str_printf(&known, "%s, ", kernels[i].name);
    bench_vm_name_parts(&known);
    ev_status status = ev_fail(err, EV_BAD, "bench vm has no kernel and no part '%s'; it has %s",
                               only, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static ev_status bench_kernels(device *d, const cli_args *args, vm_report *report, ev_error *err) {
    const char *only = cli_text(args, CLI_OPT_ONLY);
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        if (only != NULL && strcmp(only, kernels[i].name) != 0)
            continue;
        ev_str ptx = EV_STR_EMPTY;
        bench_rig r = {.device = d};
        ev_status status = bench_vm_build(&kernels[i], device_properties_of(d)->sm, &ptx, err);
        if (status == EV_OK)
            status = bench_rig_fill(&r, &kernels[i], &ptx, err);
        if (status == EV_OK)
            status =
                bench_checks(&r, &kernels[i], cli_text(args, CLI_OPT_BENCH_CHECKS), report, err);
        bench_rig_clear(&r);
        ev_str_free(&ptx);
        EV_TRY(status);
    }
    return EV_OK;
}

ev_status bench_vm_overhead(device *d, const char *only, bench_overhead out[BENCH_OVERHEAD_MOST],
                            size_t *count, ev_error *err) {
    *count = 0;
    for (size_t i = 0; i < KERNEL_COUNT && *count + 2 <= BENCH_OVERHEAD_MOST; i++) {
        if (only != NULL && strcmp(only, kernels[i].name) != 0)
            continue;
        ev_str ptx = EV_STR_EMPTY;
        bench_rig r = {.device = d};
        ev_status status = bench_vm_build(&kernels[i], device_properties_of(d)->sm, &ptx, err);
        if (status == EV_OK)
            status = bench_rig_fill(&r, &kernels[i], &ptx, err);
        if (status == EV_OK)
            status = measure_overhead(&r, &kernels[i], &out[*count], err);
        *count += 2;
        bench_rig_clear(&r);
        ev_str_free(&ptx);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status print_rates(cmd_context *c, const vm_report *r, ev_error *err) {
    const char *only = cli_text(c->args, CLI_OPT_ONLY);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_char(c->out, '\n');
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        if (only == NULL || strcmp(only, kernels[i].name) == 0)
            ev_str_printf(c->out, "%-14s  %s\n", kernels[i].name, kernels[i].doc);
    ev_str_printf(c->out,
                  "\nthread instructions a second of one core, instruction set %s; CPU time of a "
                  "launch:\nmedian, and from the 10th to the 90th percentile.\n",
                  vm_isa_name());
    return EV_OK;
}

/* Rates of kernels, and beside them the other parts; --only takes one kernel or one part. */
static ev_status bench_all(cmd_context *c, device *d, vm_report *r, json_t *json, ev_str *text,
                           ev_error *err) {
    const char *only = cli_text(c->args, CLI_OPT_ONLY);
    bool kernel = only == NULL || bench_vm_kernel(only) != NULL;
    EV_TRY(check_only(only, err));
    if (kernel)
        EV_TRY(bench_kernels(d, c->args, r, err));
    if (only == NULL || !kernel)
        EV_TRY(bench_vm_parts(d, c->args, only, json, text, err));
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c, json_incref(json), err);
    if (kernel)
        EV_TRY(print_rates(c, r, err));
    ev_str_append(c->out, kernel ? ev_str_text(text) : ev_str_text(text) + 1);
    return ev_str_status(text, err);
}

ev_status bench_vm(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {
        "kernel", "checks", ">thread instr", ">a launch", ">ms p10 - p90", ">a second", NULL};
    device *d = NULL;
    EV_TRY(device_open(c->args->values[CLI_OPT_DEVICE], &d, err));
    vm_report report = {json_array(), table_new(columns)};
    json_t *json =
        json_pack("{s:s, s:s, s:O}", "bench", "vm", "isa", vm_isa_name(), "rows", report.list);
    ev_str text = EV_STR_EMPTY;
    ev_status status = report.rows == NULL || json == NULL
                           ? ev_fail_memory(err, 1)
                           : bench_all(c, d, &report, json, &text, err);
    ev_str_free(&text);
    json_decref(json);
    json_decref(report.list);
    table_free(report.rows);
    device_close(d);
    return status;
}
