/* Bench bundle: what a scheduler waits for: opening, verifying and resolving bundles of many
 * variants.
 *
 * The bundles are made up: kernels with variants for four GPUs, eight cases a variant, PTX of a few
 * KiB. Each is written as a folder and as a tar; the least of several runs counts, as the machine's
 * other work only adds to it. */
#include "tuner/bench/bench.h"

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/table.h"
#include "bundle/bundle.h"
#include "bundle/reader.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CASES 8
#define RUNS 5
#define RESOLVES 20000
#define PTX_BYTES 6000

static const struct {
    const char *id, *name;
    int sm, sms;
} gpus[] = {{"p100", "Tesla P100", 60, 56},
            {"a100", "NVIDIA A100", 80, 108},
            {"h100", "NVIDIA H100", 90, 132},
            {"h200", "NVIDIA H200", 90, 132}};

#define GPUS (sizeof gpus / sizeof gpus[0])

/* ---- a made-up bundle ---- */

static const char *const dimensions[] = {"images", "height", "width", "channels"};
#define DIMENSIONS (sizeof dimensions / sizeof dimensions[0])

static const launch_rule rule = {"kernel",
                                 {"ceil_div(height * width, TILE)", "channels", "images"},
                                 {"TILE", "1", "1"},
                                 "0",
                                 NULL,
                                 0};
static const launch_plan plan = {.launches = &rule, .launch_count = 1};
static const bundle_number macros[] = {{"TILE", false, 128}};
static const char *const edits[] = {"replaces operand 1 of instruction 17 (line 40)",
                                    "moves instruction 22 before 19 (line 44)",
                                    "unrolls the loop at line 31 by 4"};

static void fill_cases(ev_arena *arena, bundle_variant *v, size_t number) {
    bundle_case *cases = EV_NEW_ARRAY(arena, bundle_case, CASES);
    for (size_t i = 0; cases != NULL && i < CASES; i++) {
        bundle_number *shape = EV_NEW_ARRAY(arena, bundle_number, DIMENSIONS);
        double ns = 1000.0 + (double)((number * 37 + i * 101) % 900);
        for (size_t d = 0; shape != NULL && d < DIMENSIONS; d++)
            shape[d] = (bundle_number){dimensions[d], false, (double)((size_t)1 << (i + d))};
        cases[i] = (bundle_case){.name = ev_arena_printf(arena, "case-%zu", i),
                                 .split = i % 2 ? "held-out" : "search",
                                 .shape = shape,
                                 .shape_count = DIMENSIONS,
                                 .ns = ns,
                                 .low_ns = ns,
                                 .high_ns = ns,
                                 .baseline_ns = 2000,
                                 .error = 1e-7};
    }
    v->cases = cases;
    v->case_count = CASES;
}

static void fill_variant(ev_arena *arena, bundle_variant *v, size_t number) {
    size_t g = number % GPUS;
    char *ptx = ev_arena_alloc(arena, PTX_BYTES + 1);
    if (ptx != NULL) {
        memset(ptx, ' ', PTX_BYTES);
        (void)snprintf(ptx, PTX_BYTES, "// %zu\n.version 7.8\n.target sm_%d", number, gpus[g].sm);
        ptx[strlen(ptx)] = '\n';
    }
    *v = (bundle_variant){.ptx = ptx,
                          .ptx_bytes = PTX_BYTES,
                          .start = "textbook",
                          .plan = &plan,
                          .macros = macros,
                          .macro_count = 1,
                          .gpu_id = gpus[g].id,
                          .gpu_name = gpus[g].name,
                          .sm = gpus[g].sm,
                          .sms = gpus[g].sms,
                          .registers = 32,
                          .modelled = true,
                          .error = 1e-7,
                          .tolerance = 1e-5,
                          .genome =
                              "{\"edits\":[[3,17,1],[5,22,19],[9,31,4]],\"start\":\"textbook\"}",
                          .genome_sha256 = "00",
                          .edits = edits,
                          .edit_count = sizeof edits / sizeof edits[0],
                          .versions = "{\"evoke\":\"0.1.0\"}"};
    fill_cases(arena, v, number);
}

static void fill_kernel(ev_arena *arena, bundle_kernel *k, size_t number, size_t variants) {
    static const bundle_argument arguments[] = {
        {"x", "in", "f32", "images * channels * height * width", 16, false, 0, 0, NULL, NULL,
         false},
        {"y", "out", "f32", "images * channels * height * width", 16, false, 0, 0, NULL, NULL,
         false},
        {"height", "scalar", "s32", "height", 0, false, 0, 0, NULL, NULL, false}};
    bundle_variant *all = EV_NEW_ARRAY(arena, bundle_variant, variants + 1);
    for (size_t i = 0; all != NULL && i < variants; i++)
        fill_variant(arena, &all[i], number * variants + i);
    if (all != NULL)
        fill_variant(arena, &all[variants], 1000000 + number * GPUS); /* for the oldest GPU */
    *k = (bundle_kernel){.name = ev_arena_printf(arena, "kernel_%zu", number),
                         .family = "bench",
                         .doc = "made up",
                         .task = "tasks/task.json",
                         .task_sha256 = "00",
                         .arguments = arguments,
                         .argument_count = sizeof arguments / sizeof arguments[0],
                         .baselines = &all[variants],
                         .baseline_count = 1,
                         .variants = all,
                         .variant_count = variants};
}

static ev_status write_bundle(const char *path, size_t kernels, size_t variants, ev_error *err) {
    static const bundle_file task = {"tasks/task.json", "{}\n", 3};
    ev_arena *arena = ev_arena_new();
    bundle_kernel *all = arena != NULL ? EV_NEW_ARRAY(arena, bundle_kernel, kernels) : NULL;
    for (size_t i = 0; all != NULL && i < kernels; i++)
        fill_kernel(arena, &all[i], i, variants);
    ev_status status = EV_OK;
    if (all == NULL || ev_arena_failed(arena))
        status = ev_fail_memory(err, kernels * variants * PTX_BYTES);
    if (status == EV_OK)
        status = bundle_write(path, &(bundle_content){"0.1.0", all, kernels, &task, 1}, err);
    ev_arena_free(arena);
    return status;
}

/* ---- measuring ---- */

typedef struct bundle_figures {
    size_t kernels, variants; /* of each */
    size_t file_bytes;        /* of the tar */
    double open_ms, open_tar_ms, verify_ms;
    double open_cpu_ms; /* of the tar: CPU time of the thread */
    double resolve_ns;  /* mean of a call, over kernels, GPUs and shapes */
    double memory;      /* heap after opening the tar, by its bytes */
} bundle_figures;

static ev_status time_open(const char *path, double *least_ms, double *cpu_ms, ev_error *err) {
    *least_ms = *cpu_ms = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        bundle *b = NULL;
        double start = ev_clock_now(), cpu = ev_clock_cpu();
        EV_TRY(bundle_open_lazy(path, &b, err));
        *cpu_ms = fmin(*cpu_ms, (ev_clock_cpu() - cpu) * 1e3);
        *least_ms = fmin(*least_ms, (ev_clock_now() - start) * 1e3);
        bundle_close(b);
    }
    return EV_OK;
}

static ev_status time_verify(const bundle *b, bundle_figures *f, ev_error *err) {
    f->verify_ms = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        double start = ev_clock_now();
        EV_TRY(bundle_verify(b, err));
        f->verify_ms = fmin(f->verify_ms, (ev_clock_now() - start) * 1e3);
    }
    return EV_OK;
}

static ev_status resolve_all(const bundle *b, size_t *chosen, ev_error *err) {
    for (size_t i = 0; i < RESOLVES; i++) {
        size_t g = i % GPUS, size = i / GPUS % CASES;
        bundle_number shape[DIMENSIONS];
        bundle_choice choice;
        for (size_t d = 0; d < DIMENSIONS; d++)
            shape[d] = (bundle_number){dimensions[d], false, (double)((size_t)1 << (size + d))};
        const bundle_request request = {
            .kernel = bundle_kernel_at(b, i * 7 % bundle_kernel_count(b))->name,
            .gpu = gpus[g].name,
            .sm = gpus[g].sm,
            .sms = gpus[g].sms,
            .shape = shape,
            .shape_count = DIMENSIONS};
        EV_TRY(bundle_resolve(b, &request, &choice, err));
        *chosen += choice.role == BUNDLE_ROLE_VARIANT;
    }
    return EV_OK;
}

static ev_status time_resolve(const bundle *b, bundle_figures *f, ev_error *err) {
    f->resolve_ns = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        size_t chosen = 0;
        double start = ev_clock_cpu(); /* it waits for nothing but a core */
        EV_TRY(resolve_all(b, &chosen, err));
        f->resolve_ns = fmin(f->resolve_ns, (ev_clock_cpu() - start) * 1e9 / RESOLVES);
        if (chosen == 0)
            return ev_fail(err, EV_BAD, "bench bundle: no variant was chosen");
    }
    return EV_OK;
}

static ev_status measure_tar(const char *path, bundle_figures *f, ev_error *err) {
    bundle *b = NULL;
    char *data = NULL;
    EV_TRY(ev_file_read(path, &data, &f->file_bytes, err));
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    ev_status status = bundle_open_memory(data, f->file_bytes, &b, err);
    f->memory =
        (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / (double)f->file_bytes;
    free(data);
    EV_TRY(status);
    status = time_verify(b, f, err);
    if (status == EV_OK)
        status = time_resolve(b, f, err);
    bundle_close(b);
    return status;
}

static ev_status measure(const char *folder, bundle_figures *f, ev_error *err) {
    char path[128], tar[128];
    (void)snprintf(path, sizeof path, "%s/b", folder);
    (void)snprintf(tar, sizeof tar, "%s/b.tar", folder);
    EV_TRY(write_bundle(path, f->kernels, f->variants, err));
    EV_TRY(write_bundle(tar, f->kernels, f->variants, err));
    EV_TRY(time_open(path, &f->open_ms, &f->open_cpu_ms, err));
    EV_TRY(time_open(tar, &f->open_tar_ms, &f->open_cpu_ms, err));
    return measure_tar(tar, f, err);
}

/* ---- the report ---- */

static json_t *figures_json(const bundle_figures *f) {
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "kernels",
                     (json_int_t)f->kernels, "variants_each", (json_int_t)f->variants, "tar_bytes",
                     (json_int_t)f->file_bytes, "open_ms", f->open_ms, "open_tar_ms",
                     f->open_tar_ms, "open_cpu_ms", f->open_cpu_ms, "verify_ms", f->verify_ms,
                     "resolve_ns", f->resolve_ns, "memory_by_file", f->memory);
}

static void figures_row(const bundle_figures *f, table *rows) {
    table_cell(rows, "%zu x %zu", f->kernels, f->variants);
    table_cell(rows, "%.1f", (double)f->file_bytes * 1e-6);
    table_cell(rows, "%.1f", f->open_ms);
    table_cell(rows, "%.1f", f->open_tar_ms);
    table_cell(rows, "%.1f", f->open_cpu_ms);
    table_cell(rows, "%.1f", f->verify_ms);
    table_cell(rows, "%.0f", f->resolve_ns);
    table_cell(rows, "%.1f", f->memory);
}

ev_status bench_bundle(cmd_context *c, ev_error *err) {
    size_t variants =
        (size_t)(c->args->given[CLI_OPT_VARIANTS] ? cli_count(c->args, CLI_OPT_VARIANTS, 1000)
                                                  : 1000);
    bundle_figures all[] = {{.kernels = variants >= 10 ? variants / 10 : 1, .variants = 10},
                            {.kernels = 1, .variants = variants}};
    char folder[] = "/tmp/evoke-bench-bundle-XXXXXX";
    if (variants < 1 || variants > 100000)
        return ev_fail(err, EV_BAD, "bench bundle: --variants is from 1 to 100000");
    if (mkdtemp(folder) == NULL)
        return ev_fail_errno(err, "cannot make the folder", folder);
    ev_status status = EV_OK;
    for (size_t i = 0; i < 2 && status == EV_OK; i++)
        status = measure(folder, &all[i], err);
    if (ev_dir_remove(folder, NULL) != EV_OK && status == EV_OK)
        status = ev_fail_errno(err, "cannot remove", folder);
    EV_TRY(status);
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:[o, o]}", "bench", "bundle", "rows",
                                        figures_json(&all[0]), figures_json(&all[1])),
                              err);
    static const char *const columns[] = {">kernels x variants", ">tar, MB",        ">open, ms",
                                          ">open tar, ms",       ">its CPU, ms",    ">verify, ms",
                                          ">resolve, ns",        ">memory by file", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    figures_row(&all[0], rows);
    figures_row(&all[1], rows);
    status = table_print(rows, c->out, err);
    table_free(rows);
    return status;
}
