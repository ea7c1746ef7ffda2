/* evoke bench compile: variants of each textbook start, built one after another in a child process.
 *
 * The child writes what each variant cost into memory that it shares with its parent. When LLVM
 * aborts it, the parent starts another child behind the variant that did it: an abort costs one
 * variant, and no fork stands between the clock and the work. */
#include "tuner/bench/bench.h"

#include "base/proc.h"
#include "base/table.h"
#include "fitness/device/device.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_EDITS 8 /* a lineage is begun anew after so many */
#define CHILD_SECONDS 3600
#define DRAWS 64 /* kinds tried before a variant is given up */

typedef enum fate { NOT_REACHED, BEGUN, BUILT, REJECTED } fate;

typedef struct sample {
    fate fate; /* BEGUN, when the child is dead: it aborted */
    double ms; /* CPU time of all */
    double own_ms, llvm_ms;
    double emit_ms, direct_ms; /* of LLVM's emission, and of the direct emitter's in its place */
    bool covered;              /* the direct emitter has a way for it */
} sample;

typedef struct compile_bench {
    const task *t;
    int sm;
    uint64_t seed;
    uint32_t kernel; /* index: a stream of its own */
    size_t variants;
    sample *samples; /* [variants], shared with the child */
} compile_bench;

/* ---- in the child ---- */

static ev_status time_direct(ir_build *build, sample *out, ev_error *err) {
    double begin = ev_clock_cpu();
    ev_status status = ir_build_sketch(build, &out->covered, err);
    out->direct_ms = (ev_clock_cpu() - begin) * 1e3;
    return status;
}

static ev_status build_all(ir_build *build, sample *out, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT; s++) {
        if (s == IR_STAGE_EMIT)
            EV_TRY(time_direct(build, out, err));
        EV_TRY(ir_build_run(build, (ir_stage)s, err));
    }
    return EV_OK;
}

/* Draws kinds until one finds a place. */
static ev_status mutate(const ir_base *base, const ir_genome *parent, ev_pcg *rng, ir_genome **out,
                        ev_error *err) {
    ev_status status = EV_BAD;
    for (int i = 0; i < DRAWS && status == EV_BAD; i++) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(rng, IR_EDIT_LOCAL_COUNT);
        status = ir_mutate(base, parent, kind, NULL, rng, out, err);
    }
    return status;
}

static ev_status build_one(const ir_base *base, const ir_genome *child, sample *out,
                           ev_error *err) {
    ir_build *build = NULL;
    EV_TRY(ir_build_new(base, child, &build, err));
    ev_status status = build_all(build, out, err);
    ir_build_cost cost = ir_build_cost_of(build);
    for (int s = 0; s < IR_STAGE_COUNT; s++) {
        out->own_ms += cost.own[s] * 1e3;
        out->llvm_ms += cost.llvm[s] * 1e3;
    }
    out->emit_ms = cost.llvm[IR_STAGE_EMIT] * 1e3;
    ir_build_free(build);
    return status;
}

/* One variant: a mutation of `*parent`, which it becomes when it could be built. */
static ev_status make_variant(const compile_bench *b, const ir_base *base, size_t number,
                              ir_genome **parent, ev_error *err) {
    sample *out = &b->samples[number];
    ev_pcg rng = ev_pcg_child(b->seed, b->kernel, 0, (uint32_t)number);
    ir_genome *child = NULL;
    out->fate = BEGUN;
    double begin = ev_clock_cpu();
    ev_status status = mutate(base, *parent, &rng, &child, err);
    double drawn = ev_clock_cpu();
    if (status == EV_OK)
        status = build_one(base, child, out, err);
    out->ms = (ev_clock_cpu() - begin) * 1e3 - out->direct_ms;
    out->own_ms += (drawn - begin) * 1e3;
    out->fate = status == EV_OK ? BUILT : REJECTED;
    if (status != EV_OK) {
        ir_genome_free(child);
        return status == EV_BAD ? EV_OK : status;
    }
    ir_genome_free(*parent);
    *parent = child;
    return EV_OK;
}

static ev_status make_variants(const compile_bench *b, const ir_base *base, ev_error *err) {
    ir_genome *parent = NULL;
    ev_status status = EV_OK;
    for (size_t i = 0; i < b->variants && status == EV_OK; i++) {
        if (b->samples[i].fate != NOT_REACHED)
            continue;
        if (parent == NULL || ir_genome_edit_count(parent) >= MOST_EDITS) {
            ir_genome_free(parent);
            parent = ir_genome_new(b->t->starts[0].name);
        }
        status = parent != NULL ? make_variant(b, base, i, &parent, err) : ev_fail_memory(err, 1);
    }
    ir_genome_free(parent);
    return status;
}

/* The first build pays for what LLVM sets up once. */
static ev_status warm_up(const ir_base *base, const ir_genome *genome, ev_error *err) {
    sample ignored = {0};
    return build_one(base, genome, &ignored, err);
}

static ev_status child_work(void *context, ev_str *out, ev_error *err) {
    const compile_bench *b = context;
    (void)out;
    bases *all = NULL;
    const ir_base *base = NULL;
    ir_genome *genome = ir_genome_new(b->t->starts[0].name);
    ev_status status =
        genome == NULL ? ev_fail_memory(err, 1) : bases_new(b->t, b->sm, 1, &all, err);
    if (status == EV_OK)
        status = bases_get(all, genome, &base, err);
    if (status == EV_OK)
        status = warm_up(base, genome, err);
    if (status == EV_OK)
        status = make_variants(b, base, err);
    ir_genome_free(genome);
    bases_free(all);
    return status;
}

/* ---- in the parent ---- */

static size_t count_fate(const compile_bench *b, fate which) {
    size_t count = 0;
    for (size_t i = 0; i < b->variants; i++)
        count += b->samples[i].fate == which;
    return count;
}

/* Children until every variant had its turn. One that dies without having begun a variant is no
 * variant's fault. */
static ev_status run_children(compile_bench *b, ev_error *err) {
    while (count_fate(b, NOT_REACHED) > 0) {
        size_t before = count_fate(b, NOT_REACHED);
        ev_str none = EV_STR_EMPTY;
        ev_status status = isolate_run(child_work, b, CHILD_SECONDS, &none, err);
        ev_str_free(&none);
        if (status != EV_OK && (status == EV_INFRA || count_fate(b, NOT_REACHED) == before))
            return status;
    }
    return EV_OK;
}

/* ---- figures ---- */

typedef struct compile_figures {
    size_t built, rejected, aborted, covered;
    double *ms, *share; /* [built] */
    double own_ms, llvm_ms;
    double emit_ms, direct_ms; /* of the covered */
} compile_figures;

static void figures_free(compile_figures *f) {
    free(f->ms);
    free(f->share);
}

static ev_status figures_add(compile_figures *f, const compile_bench *b, ev_error *err) {
    double *ms = realloc(f->ms, (f->built + b->variants) * sizeof *ms);
    f->ms = ms != NULL ? ms : f->ms;
    double *share = realloc(f->share, (f->built + b->variants) * sizeof *share);
    f->share = share != NULL ? share : f->share;
    if (ms == NULL || share == NULL)
        return ev_fail_memory(err, (f->built + b->variants) * sizeof *ms);
    for (size_t i = 0; i < b->variants; i++) {
        const sample *s = &b->samples[i];
        f->rejected += s->fate == REJECTED;
        f->aborted += s->fate == BEGUN;
        if (s->fate != BUILT)
            continue;
        f->ms[f->built] = s->ms;
        f->share[f->built++] = s->llvm_ms > 0 ? s->own_ms / s->llvm_ms : 0;
        f->own_ms += s->own_ms;
        f->llvm_ms += s->llvm_ms;
        f->covered += s->covered;
        f->emit_ms += s->covered ? s->emit_ms : 0;
        f->direct_ms += s->covered ? s->direct_ms : 0;
    }
    return EV_OK;
}

static double own_share(const compile_figures *f) {
    return f->llvm_ms > 0 ? f->own_ms / f->llvm_ms : 0;
}

static json_t *figures_json(const char *kernel, compile_figures *f) {
    double count = f->built > 0 ? (double)f->built : 1;
    double covered = f->covered > 0 ? (double)f->covered : 1;
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:f}", "kernel",
        kernel, "variants", (json_int_t)f->built, "rejected", (json_int_t)f->rejected, "aborted",
        (json_int_t)f->aborted, "ms_mean", bench_mean(f->ms, f->built), "ms_deviation",
        bench_deviation(f->ms, f->built), "ms_p90", bench_quantile(f->ms, f->built, 0.9),
        "own_ms_mean", f->own_ms / count, "llvm_ms_mean", f->llvm_ms / count, "own_share",
        own_share(f), "own_share_deviation", bench_deviation(f->share, f->built), "own_share_p90",
        bench_quantile(f->share, f->built, 0.9), "direct", (json_int_t)f->covered, "emit_ms_mean",
        f->emit_ms / covered, "direct_ms_mean", f->direct_ms / covered);
}

static void figures_row(const char *kernel, compile_figures *f, table *rows) {
    double count = f->built > 0 ? (double)f->built : 1;
    table_cell(rows, "%s", kernel);
    table_cell(rows, "%zu", f->built);
    table_cell(rows, "%zu", f->rejected);
    table_cell(rows, "%zu", f->aborted);
    table_cell(rows, "%.2f ± %.2f", bench_mean(f->ms, f->built), bench_deviation(f->ms, f->built));
    table_cell(rows, "%.2f", bench_quantile(f->ms, f->built, 0.9));
    table_cell(rows, "%.2f", f->own_ms / count);
    table_cell(rows, "%.2f", f->llvm_ms / count);
    table_cell(rows, "%.1f ± %.1f %%", own_share(f) * 100,
               bench_deviation(f->share, f->built) * 100);
    table_cell(rows, "%.2f", f->emit_ms / (double)(f->covered > 0 ? f->covered : 1));
    table_cell(rows, "%.2f", f->direct_ms / (double)(f->covered > 0 ? f->covered : 1));
    table_cell(rows, "%zu", f->covered);
}

/* ---- the bench ---- */

typedef struct compile_report {
    json_t *list; /* with --json */
    table *rows;
    compile_figures total;
} compile_report;

static ev_status bench_task(const cli_args *args, compile_bench *b, compile_report *report,
                            ev_error *err) {
    compile_figures f = {0};
    ev_status status = run_children(b, err);
    if (status == EV_OK)
        status = figures_add(&f, b, err);
    if (status == EV_OK)
        status = figures_add(&report->total, b, err);
    if (status == EV_OK && cli_flag(args, CLI_OPT_JSON))
        (void)json_array_append_new(report->list, figures_json(b->t->name, &f));
    else if (status == EV_OK)
        figures_row(b->t->name, &f, report->rows);
    figures_free(&f);
    return status;
}

static ev_status bench_path(const cli_args *args, const char *path, uint32_t kernel, int sm,
                            compile_report *report, ev_error *err) {
    task *t = NULL;
    EV_TRY(task_open(path, &t, err));
    compile_bench b = {.t = t,
                       .sm = sm,
                       .seed = cli_count(args, CLI_OPT_SEED, 1),
                       .kernel = kernel,
                       .variants = (size_t)cli_count(args, CLI_OPT_VARIANTS, 60)};
    size_t bytes = b.variants * sizeof *b.samples;
    b.samples = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ev_status status = EV_OK;
    if (b.samples == MAP_FAILED)
        status = ev_fail_memory(err, bytes);
    else
        status = bench_task(args, &b, report, err);
    if (b.samples != MAP_FAILED)
        (void)munmap(b.samples, bytes);
    task_free(t);
    return status;
}

static ev_status bench_paths(cmd_context *c, int sm, compile_report *report, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(bench_tasks(c->args, &paths, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = bench_path(c->args, paths[i], (uint32_t)i, sm, report, err);
    task_list_free(paths, count);
    return status;
}

static ev_status print_report(cmd_context *c, compile_report *r, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON)) {
        json_t *all = figures_json("all", &r->total);
        (void)json_object_del(all, "kernel");
        (void)json_object_set_new(all, "bench", json_string("compile"));
        (void)json_object_set(all, "rows", r->list);
        return cmd_print_json(c, all, err);
    }
    figures_row("all", &r->total, r->rows);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_append(c->out, "\nCPU milliseconds a variant, mean ± standard deviation. own: drawing, "
                          "editing, repairing,\nverifying, hashing; its share is of what LLVM's "
                          "passes and emission take.\nemit: LLVM's emission, direct: the direct "
                          "emitter's in its place, of the variants that it covers.\n");
    return EV_OK;
}

ev_status bench_compile(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {
        "kernel",   ">variants",   ">rejected", ">aborted",   ">ms",      ">ms p90", ">own ms",
        ">LLVM ms", ">own / LLVM", ">emit ms",  ">direct ms", ">covered", NULL};
    if (cli_count(c->args, CLI_OPT_VARIANTS, 60) == 0 ||
        cli_count(c->args, CLI_OPT_VARIANTS, 60) > 1000000)
        return ev_fail(err, EV_BAD, "--variants %s: from 1 to 1000000",
                       c->args->values[CLI_OPT_VARIANTS]);
    device *d = NULL;
    EV_TRY(device_open(c->args->values[CLI_OPT_DEVICE], &d, err));
    int sm = device_properties_of(d)->sm;
    device_close(d);
    compile_report report = {.list = json_array(), .rows = table_new(columns)};
    ev_status status = report.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = bench_paths(c, sm, &report, err);
    if (status == EV_OK)
        status = print_report(c, &report, err);
    figures_free(&report.total);
    table_free(report.rows);
    json_decref(report.list);
    return status;
}
