/* The model's estimate of registers and spills against the assembler's count, where ptxas is
 * installed: every start of the shipped tasks, the kernels of the benches, the tests' zoo, and
 * random candidates of the tasks. */
#include "tuner/bench/bench_model.h"

#include "base/file.h"
#include "base/table.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/model/gpu.h"
#include "fitness/model/registers.h"
#include "kernels/task.h"
#include "tuner/bench/bench.h"
#include "tuner/cli/sampled.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST_WITHOUT 75 /* ptxas 13 has nothing older; older targets are assembled for it */
#define CANDIDATES 60     /* a task */
#define NEAR 8            /* registers: one step of what is allocated */

enum { GPUS = 3 };

/* Of candidates, and the GPU for each. */
static const int targets[GPUS] = {75, 80, 90};
static const char *const gpu_names[GPUS] = {"t4", "a100", "h200"};

/* Estimates of some kernels against what the assembler says. */
typedef struct figures {
    size_t count, near;
    size_t most_off;            /* more than a quarter */
    double off, share, rounded; /* sums: registers, of the count, of what is allocated */
    uint32_t worst;
    size_t spilled, guessed, both; /* by the assembler, by the model */
    size_t same, refused;          /* blocks an SM: those that the count gives; none by the model */
} figures;

typedef struct report {
    json_t *list, *candidates;
    table *rows, *tasks;
    ptxas assembler;
    gpu *gpus[GPUS]; /* one a target */
    figures kernels, drawn;
    size_t refused; /* candidates, by the machine or the assembler */
} report;

/* ---- one kernel ---- */

typedef struct kernel_row {
    uint32_t estimate, counted;            /* registers */
    uint32_t guessed_bytes, spilled_bytes; /* by the model, by the assembler */
    uint32_t blocks, counted_blocks;       /* an SM holds; 0 and 0: the block's size is not known */
} kernel_row;

static double rounded(double registers) {
    return ceil(registers / 8) * 8;
}

static void figures_add(figures *f, const kernel_row *k) {
    double off = fabs((double)k->estimate - k->counted), share = off / k->counted;
    f->count++;
    f->near += off <= NEAR;
    f->most_off += share > 0.25;
    f->off += off;
    f->share += share;
    f->rounded += fabs(rounded(k->estimate) / rounded(k->counted) - 1);
    f->worst = off > f->worst ? (uint32_t)off : f->worst;
    f->spilled += k->spilled_bytes > 0;
    f->guessed += k->guessed_bytes > 0;
    f->both += k->spilled_bytes > 0 && k->guessed_bytes > 0;
    f->same += k->blocks == k->counted_blocks;
    f->refused += k->blocks == 0 && k->counted_blocks > 0;
}

/* The number before `unit`, in the log behind the line that names the entry; false: it is not
 * there. */
static bool find_number(const char *log, const char *line, const char *entry, const char *unit,
                        uint32_t *out) {
    ev_str name = EV_STR_EMPTY;
    ev_str_printf(&name, line, entry);
    const char *from = strstr(log, ev_str_text(&name));
    ev_str_free(&name);
    const char *at = from != NULL ? strstr(from, unit) : NULL;
    if (at == NULL)
        return false;
    while (at > from && at[-1] >= '0' && at[-1] <= '9')
        at--;
    *out = (uint32_t)strtoul(at, NULL, 10);
    return true;
}

/* False: the log does not say. */
static bool read_log(const char *log, const char *entry, kernel_row *k) {
    return find_number(log, "Compiling entry function '%s'", entry, " registers", &k->counted) &&
           find_number(log, "Function properties for %s\n", entry, " bytes spill stores",
                       &k->spilled_bytes) &&
           k->counted > 0;
}

static ev_status assemble(const report *r, const char *ptx, int sm, ev_str *log, ev_error *err) {
    ev_str cubin = EV_STR_EMPTY;
    bool deadly = false;
    ev_status status = ptxas_run(&r->assembler, ptx, sm > NEWEST_WITHOUT ? sm : NEWEST_WITHOUT,
                                 &cubin, log, &deadly, err);
    ev_str_free(&cubin);
    return status;
}

typedef void row_fn(report *r, const char *name, int sm, const kernel_row *k);

static uint32_t blocks_of(const gpu *g, const vm_entry *entry, uint32_t registers,
                          uint32_t threads) {
    const uint32_t grid[3] = {1u << 20, 1, 1}, block[3] = {threads, 1, 1};
    uint32_t cap = model_block_cap(entry, g->sm, threads);
    return model_occupancy_of(g, entry, model_given_registers(registers, cap), grid, block, 0)
        .blocks_per_sm;
}

static ev_status estimate(const report *r, const vm_module *module, const vm_entry *entry,
                          uint32_t threads, kernel_row *k, ev_error *err) {
    model_insns insns;
    EV_TRY(model_insns_make(module, &insns, err));
    model_need need = model_registers_needed(module, &insns, entry);
    model_insns_free(&insns);
    uint32_t cap = model_register_cap(entry, vm_module_sm(module));
    k->estimate = need.wanted < cap ? need.wanted : cap;
    k->guessed_bytes = need.least > cap ? 4 * (need.least - cap) : 0;
    for (size_t i = 0; i < GPUS && threads > 0; i++) {
        if (targets[i] != vm_module_sm(module))
            continue;
        k->blocks = blocks_of(r->gpus[i], entry, need.wanted, threads);
        k->counted_blocks = blocks_of(r->gpus[i], entry, k->counted, threads);
    }
    return EV_OK;
}

/* Calls `fn` for each entry. `threads` of a block; 0: not known. */
static ev_status compare_module(report *r, const char *name, const char *ptx, size_t bytes,
                                uint32_t threads, row_fn *fn, ev_error *err) {
    vm_module *module = NULL;
    ev_str log = EV_STR_EMPTY;
    EV_TRY(vm_module_load(ptx, bytes, name, &module, err));
    ev_status status = assemble(r, ptx, vm_module_sm(module), &log, err);
    for (size_t i = 0; i < vm_module_entry_count(module) && status == EV_OK; i++) {
        const vm_entry *entry = vm_module_entry(module, i);
        kernel_row k = {0};
        char label[64];
        (void)snprintf(label, sizeof label, "%.30s %.30s", name, entry->name);
        if (!read_log(ev_str_text(&log), entry->name, &k))
            continue;
        status = estimate(r, module, entry, threads, &k, err);
        if (status == EV_OK)
            fn(r, label, vm_module_sm(module), &k);
    }
    ev_str_free(&log);
    vm_module_free(module);
    return status;
}

static json_t *row_json(const char *name, int sm, const kernel_row *k) {
    return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I}", "kernel", name, "sm", sm, "estimate",
                     (json_int_t)k->estimate, "ptxas", (json_int_t)k->counted, "spill_estimate",
                     (json_int_t)k->guessed_bytes, "spill_ptxas", (json_int_t)k->spilled_bytes);
}

static void add_kernel(report *r, const char *name, int sm, const kernel_row *k) {
    figures_add(&r->kernels, k);
    table_cell(r->rows, "%s", name);
    table_cell(r->rows, "sm_%d", sm);
    table_cell(r->rows, "%u", k->estimate);
    table_cell(r->rows, "%u", k->counted);
    table_cell(r->rows, "%+.0f %%", 100 * ((double)k->estimate / k->counted - 1));
    table_cell(r->rows, "%u", k->guessed_bytes);
    table_cell(r->rows, "%u", k->spilled_bytes);
    (void)json_array_append_new(r->list, row_json(name, sm, k));
}

/* ---- random candidates ---- */

typedef struct drawing {
    report *r;
    const task *t;
    figures before; /* of the tasks before */
    size_t wanted;
} drawing;

static void add_candidate(report *r, const char *name, int sm, const kernel_row *k) {
    (void)name;
    (void)sm;
    figures_add(&r->drawn, k);
}

/* Sketches are not what a GPU gets. */
static ev_status on_sampled(void *context, const sampled *s, ev_error *err) {
    drawing *d = context;
    ev_error why;
    if (s->is_sketch || d->wanted == 0)
        return EV_OK;
    d->wanted--;
    ev_status status =
        compare_module(d->r, s->start, s->ptx, s->bytes, s->threads, add_candidate, &why);
    d->r->refused += status == EV_BAD;
    if (status == EV_INFRA)
        *err = why;
    return status == EV_INFRA ? EV_INFRA : EV_OK;
}

static json_t *figures_json(const char *task_name, const figures *f) {
    double n = f->count > 0 ? (double)f->count : 1;
    return json_pack("{s:s, s:I, s:f, s:f, s:I, s:I, s:f, s:f, s:I, s:I, s:I}", "kernel", task_name,
                     "candidates", (json_int_t)f->count, "blocks_right", (double)f->same / n,
                     "mean_error", f->off / n, "worst", (json_int_t)f->worst, "refused",
                     (json_int_t)f->refused, "within_8", (double)f->near / n, "mape",
                     100 * f->share / n, "spilled_ptxas", (json_int_t)f->spilled, "spilled_model",
                     (json_int_t)f->guessed, "spilled_both", (json_int_t)f->both);
}

static void tell_task(report *r, const char *name, const figures *f) {
    double n = f->count > 0 ? (double)f->count : 1;
    (void)json_array_append_new(r->candidates, figures_json(name, f));
    table_cell(r->tasks, "%s", name);
    table_cell(r->tasks, "%zu", f->count);
    table_cell(r->tasks, "%.0f %%", 100 * (double)f->same / n);
    table_cell(r->tasks, "%.1f", f->off / n);
    table_cell(r->tasks, "%u", f->worst);
    table_cell(r->tasks, "%.0f %%", 100 * (double)f->near / n);
    table_cell(r->tasks, "%zu", f->guessed);
    table_cell(r->tasks, "%zu", f->spilled);
    table_cell(r->tasks, "%zu", f->both);
}

static void figures_join(figures *all, const figures *f) {
    all->count += f->count;
    all->near += f->near;
    all->most_off += f->most_off;
    all->off += f->off;
    all->share += f->share;
    all->rounded += f->rounded;
    all->worst = f->worst > all->worst ? f->worst : all->worst;
    all->spilled += f->spilled;
    all->guessed += f->guessed;
    all->both += f->both;
    all->same += f->same;
    all->refused += f->refused;
}

static ev_status draw_task(report *r, const task *t, size_t wanted, uint64_t seed, ev_error *err) {
    drawing d = {.r = r, .t = t, .before = r->drawn, .wanted = wanted};
    r->drawn = (figures){0};
    ev_status status = EV_OK;
    size_t groups = (wanted + SAMPLED_GROUP - 1) / SAMPLED_GROUP;
    for (size_t g = 0; g < groups && status == EV_OK; g++)
        status = sampled_each(t, targets[g % (sizeof targets / sizeof targets[0])], seed, g,
                              on_sampled, &d, err);
    figures own = r->drawn;
    tell_task(r, t->name, &own);
    r->drawn = d.before;
    figures_join(&r->drawn, &own);
    return status;
}

/* ---- all of them ---- */

static const int start_targets[] = {70, 80, 90};

static ev_status compare_task(report *r, const task *t, ev_error *err) {
    for (size_t i = 0; i < t->start_count; i++) {
        for (size_t s = 0; s < sizeof start_targets / sizeof start_targets[0]; s++) {
            ev_str ptx = EV_STR_EMPTY;
            ev_status status = variant_build_start(t, &t->starts[i], start_targets[s], &ptx, err);
            if (status == EV_OK)
                status = compare_module(r, t->starts[i].name, ev_str_text(&ptx), ptx.length, 0,
                                        add_kernel, err);
            ev_str_free(&ptx);
            EV_TRY(status);
        }
    }
    return EV_OK;
}

static ev_status compare_tasks(report *r, const cli_args *args, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    size_t wanted = (size_t)cli_count(args, CLI_OPT_VARIANTS, CANDIDATES);
    if (wanted > 100000)
        return ev_fail(err, EV_BAD, "--variants %s: at most 100000",
                       args->values[CLI_OPT_VARIANTS]);
    EV_TRY(task_list_leads(&paths, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++) {
        task *t = NULL;
        status = task_open(paths[i], &t, err);
        if (status == EV_OK)
            status = compare_task(r, t, err);
        if (status == EV_OK)
            status = draw_task(r, t, wanted, cli_count(args, CLI_OPT_SEED, 1), err);
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
        status = compare_module(r, "bench", ev_str_text(&ptx), ptx.length, 0, add_kernel, err);
    ev_str_free(&path);
    ev_str_free(&ptx);
    return status;
}

static ev_status compare_benches(report *r, const char *home, ev_error *err) {
    static const char *const names[][2] = {
#define BENCH_KERNEL(name, elements, out_elements, grid_x, grid_y, block_x, block_y, n, doc)       \
    {"fitness/vm/bench/" #name ".cu", #name},
#include "tuner/bench/bench_kernels.def"
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
    ev_str_printf(&path, "%s/tests/fitness/ptx/zoo/good.ptx", home);
    char *text = NULL;
    size_t bytes = 0;
    ev_status status = EV_OK;
    if (ev_path_exists(ev_str_text(&path)))
        status = ev_file_read(ev_str_text(&path), &text, &bytes, err);
    if (status == EV_OK && text != NULL)
        status = compare_module(r, "zoo", text, bytes, 0, add_kernel, err);
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

static ev_status print_json(cmd_context *c, const report *r, ev_error *err) {
    double n = (double)r->kernels.count;
    return cmd_print_json(
        c,
        json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:I, s:O, s:o, s:I, s:O}", "bench", "model",
                  "part", "registers", "assembler", r->assembler.path, "kernels",
                  (json_int_t)r->kernels.count, "mape", 100 * r->kernels.share / n,
                  "mape_allocated", 100 * r->kernels.rounded / n, "mean_error", r->kernels.off / n,
                  "worst", (json_int_t)r->kernels.worst, "rows", r->list, "candidates",
                  figures_json("all", &r->drawn), "candidates_refused", (json_int_t)r->refused,
                  "candidates_by_kernel", r->candidates),
        err);
}

static ev_status print_report(cmd_context *c, const report *r, ev_error *err) {
    const figures *k = &r->kernels, *d = &r->drawn;
    double n = (double)k->count, m = d->count > 0 ? (double)d->count : 1;
    if (cli_flag(c->args, CLI_OPT_JSON))
        return print_json(c, r, err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_printf(c->out,
                  "\nregisters a thread of %zu kernels: mean absolute error %.1f %%, of what is "
                  "allocated (steps\nof 8) %.1f %%; %zu are more than 25 %% off.\n\n",
                  k->count, 100 * k->share / n, 100 * k->rounded / n, k->most_off);
    EV_TRY(table_print(r->tasks, c->out, err));
    ev_str_printf(
        c->out,
        "\nregisters a thread of %zu random candidates: off by %.1f on average and %u at "
        "worst, %.0f %% of them\nwithin %d; %zu spill, %zu by the model, %zu in both. %zu "
        "were refused by the virtual machine or ptxas.\nOf %.1f %% an SM holds as many blocks as "
        "by ptxas' count; %zu do not fit by the model alone.\n",
        d->count, d->off / m, d->worst, 100 * (double)d->near / m, NEAR, d->spilled, d->guessed,
        d->both, r->refused, 100 * (double)d->same / m, d->refused);
    return EV_OK;
}

static void report_free(report *r) {
    for (size_t i = 0; i < GPUS; i++)
        gpu_free(r->gpus[i]);
    json_decref(r->list);
    json_decref(r->candidates);
    table_free(r->rows);
    table_free(r->tasks);
}

ev_status bench_model_registers(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"kernel", "target",         ">estimate", ">ptxas",
                                          ">off",   ">spilled bytes", ">ptxas's",  NULL};
    static const char *const tasks[] = {
        "random candidates", ">count",        ">blocks right", ">mean error", ">worst",
        ">within 8",         ">spill: model", ">ptxas",        ">both",       NULL};
    report r = {.list = json_array(),
                .candidates = json_array(),
                .rows = table_new(columns),
                .tasks = table_new(tasks)};
    ptxas_find(&r.assembler);
    ev_status status = EV_OK;
    if (r.list == NULL || r.candidates == NULL || r.rows == NULL || r.tasks == NULL)
        status = ev_fail_memory(err, 1);
    else if (r.assembler.path[0] == '\0')
        status =
            ev_fail(err, EV_BAD,
                    "there is no ptxas in PATH or /usr/local/cuda/bin; name one in EVOKE_PTXAS");
    for (size_t i = 0; i < GPUS && status == EV_OK; i++)
        status = gpu_load(gpu_names[i], &r.gpus[i], err);
    if (status == EV_OK)
        status = compare_all(&r, c->args, err);
    if (status == EV_OK)
        status = print_report(c, &r, err);
    report_free(&r);
    return status;
}
