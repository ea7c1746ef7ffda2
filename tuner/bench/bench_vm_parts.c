/* evoke bench vm, beside the rates of kernels: loading, jobs, cost over sizes, shadow memory. */
#include "tuner/bench/bench_vm.h"

#include "base/proc.h"

#include <stdlib.h>
#include <string.h>

/* What the project holds itself to. */
#define LOAD_BAR_MS 2.0 /* a 1,000 lines */
#define SHADOW_BAR 2.0  /* bytes a byte in use */
#define LEAST_JOBS 2u

typedef struct part_context {
    device *device;
    const cli_args *args;
    json_t *json; /* taken over by the caller */
    table *rows;
} part_context;

/* ---- loading ---- */

/* All kernels' PTX as one module: the first with its head, the others without. */
static ev_status join_modules(int sm, ev_str *out, ev_error *err) {
    static const char head_end[] = ".address_size 64\n";
    size_t count = 0;
    const bench_kernel *all = bench_vm_kernels(&count);
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < count; i++) {
        ev_str ptx = EV_STR_EMPTY;
        status = bench_vm_build(&all[i], sm, &ptx, err);
        const char *body = status == EV_OK ? strstr(ev_str_text(&ptx), head_end) : NULL;
        if (body != NULL)
            ev_str_append(out, i == 0 ? ev_str_text(&ptx) : body + sizeof head_end - 1);
        else if (status == EV_OK)
            status =
                ev_fail(err, EV_BAD, "the PTX of %s has no line '.address_size 64'", all[i].name);
        ev_str_free(&ptx);
    }
    return status;
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* Each load alone is shorter than the clock is sure of. */
#define LOADS 8

static ev_status load_often(const ev_str *ptx, bench_measure *m, ev_error *err) {
    double total = 0;
    for (m->runs = 0; bench_wants_more(m->runs, total); m->runs++) {
        double begin = ev_clock_cpu();
        for (unsigned i = 0; i < LOADS; i++) {
            vm_module *module = NULL;
            EV_TRY(vm_module_load(ev_str_text(ptx), ptx->length, "bench", &module, err));
            vm_module_free(module);
        }
        m->seconds[m->runs] = (ev_clock_cpu() - begin) / LOADS;
        total += m->seconds[m->runs] * LOADS;
    }
    return EV_OK;
}

static void report_load(part_context *c, size_t lines, size_t bytes, bench_measure *m) {
    double ms = bench_quantile(m->seconds, m->runs, 0.5) * 1e3;
    double low = bench_quantile(m->seconds, m->runs, 0.1) * 1e3;
    double high = bench_quantile(m->seconds, m->runs, 0.9) * 1e3;
    double each = ms * 1e3 / (double)lines;
    (void)json_object_update_new(c->json, json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "lines",
                                                    (json_int_t)lines, "bytes", (json_int_t)bytes,
                                                    "ms", ms, "ms_p10", low, "ms_p90", high,
                                                    "ms_per_1000_lines", each, "bar", LOAD_BAR_MS));
    table_cell(c->rows, "%zu", lines);
    table_cell(c->rows, "%.3f", ms);
    table_cell(c->rows, "%.3f - %.3f", low, high);
    table_cell(c->rows, "%.3f", each);
    table_cell(c->rows, "%.1f", LOAD_BAR_MS);
}

static ev_status part_load(part_context *c, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    bench_measure m;
    ev_status status = join_modules(device_properties_of(c->device)->sm, &ptx, err);
    if (status == EV_OK)
        status = ev_str_status(&ptx, err);
    if (status == EV_OK)
        status = load_often(&ptx, &m, err);
    if (status == EV_OK)
        report_load(c, count_lines(ev_str_text(&ptx)), ptx.length, &m);
    ev_str_free(&ptx);
    return status;
}

/* ---- a kernel made ready ---- */

typedef ev_status rig_fn(part_context *c, bench_rig *r, const bench_kernel *k, ev_error *err);

static ev_status with_rig(part_context *c, const bench_kernel *k, rig_fn *fn, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    bench_rig r = {.device = c->device};
    ev_status status = bench_vm_build(k, device_properties_of(c->device)->sm, &ptx, err);
    if (status == EV_OK)
        status = bench_rig_fill(&r, k, &ptx, err);
    if (status == EV_OK)
        status = fn(c, &r, k, err);
    bench_rig_clear(&r);
    ev_str_free(&ptx);
    return status;
}

/* ---- jobs ---- */

/* Turns about, so that what else the machine does slows both. */
static ev_status hold_jobs(part_context *c, bench_rig *r, const bench_kernel *k, ev_error *err) {
    uint64_t wanted = cli_count(c->args, CLI_OPT_JOBS, 1);
    uint32_t jobs = (uint32_t)wanted;
    if (wanted < LEAST_JOBS)
        jobs = LEAST_JOBS;
    else if (wanted > 256)
        jobs = 256;
    const bench_kind kinds[] = {{.checks = VM_CHECK_ALL, .jobs = 1},
                                {.checks = VM_CHECK_ALL, .jobs = jobs}};
    bench_measure m[2] = {{.runs = 0}, {.runs = 0}};
    double total = 0;
    for (size_t i = 0; i < 2; i++)
        EV_TRY(bench_rig_run(r, k, &kinds[i], &m[i], err));
    for (m[0].runs = m[1].runs = 0; bench_wants_more(m[0].runs, total);)
        for (size_t i = 0; i < 2; i++) {
            EV_TRY(bench_rig_run(r, k, &kinds[i], &m[i], err));
            total += m[i].seconds[m[i].runs - 1];
        }
    double one = bench_quantile(m[0].seconds, m[0].runs, 0.5);
    double many = bench_quantile(m[1].seconds, m[1].runs, 0.5);
    double gain = many > 0 ? one / many : 0;
    (void)json_array_append_new(c->json,
                                json_pack("{s:s, s:I, s:f, s:f, s:f, s:I}", "kernel", k->name,
                                          "jobs", (json_int_t)jobs, "seconds_one", one, "seconds",
                                          many, "speed_up", gain, "runs", (json_int_t)m[0].runs));
    table_cell(c->rows, "%s", k->name);
    table_cell(c->rows, "%u", jobs);
    table_cell(c->rows, "%.2f ms", one * 1e3);
    table_cell(c->rows, "%.2f ms", many * 1e3);
    table_cell(c->rows, "%.2f", gain);
    return EV_OK;
}

static ev_status part_jobs(part_context *c, ev_error *err) {
    static const char *const names[] = {"vector_add", "sgemm_naive", "sgemm_tiled"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        EV_TRY(with_rig(c, bench_vm_kernel(names[i]), hold_jobs, err));
    return EV_OK;
}

/* ---- sizes ---- */

static ev_status hold_size(part_context *c, bench_rig *r, const bench_kernel *k, ev_error *err) {
    static const bench_kind kind = {.checks = VM_CHECK_ALL};
    bench_measure m;
    EV_TRY(bench_rig_measure(r, k, &kind, &m, err));
    double seconds = bench_quantile(m.seconds, m.runs, 0.5);
    double ns = seconds * 1e9 / (double)m.instructions;
    (void)json_array_append_new(
        c->json,
        json_pack("{s:s, s:I, s:I, s:f, s:f, s:I}", "kernel", k->name, "n", (json_int_t)k->n,
                  "thread_instructions", (json_int_t)m.instructions, "seconds", seconds,
                  "ns_per_thread_instruction", ns, "runs", (json_int_t)m.runs));
    table_cell(c->rows, "%s", k->name);
    table_cell(c->rows, "%d", k->n);
    table_cell(c->rows, "%.2f M", (double)m.instructions * 1e-6);
    table_cell(c->rows, "%.2f ms", seconds * 1e3);
    table_cell(c->rows, "%.3f", ns);
    return EV_OK;
}

/* Square products of both kinds; n^3 grows 216-fold. */
static ev_status part_sizes(part_context *c, ev_error *err) {
    static const char *const names[] = {"sgemm_naive", "sgemm_tiled"};
    static const int32_t sizes[] = {64, 128, 256, 384};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            bench_kernel k = *bench_vm_kernel(names[i]);
            k.n = sizes[s];
            k.elements = k.out_elements = (size_t)k.n * (size_t)k.n;
            k.grid[0] = k.grid[1] = (uint32_t)k.n / 16;
            EV_TRY(with_rig(c, &k, hold_size, err));
        }
    return EV_OK;
}

/* ---- shadow ---- */

/* A buffer of `words` in a fresh memory. */
static ev_status take_words(vm_memory *memory, size_t words, vm_buffer_kind kind, uint64_t seed,
                            uint64_t *address, ev_error *err) {
    EV_TRY(vm_memory_alloc(memory, words * 4, kind, "buffer", address, err));
    if (seed > 0)
        bench_vm_words(vm_memory_host(memory, *address), words, seed);
    return EV_OK;
}

static ev_status launch_once(vm_memory *memory, const vm_module *module, const bench_kernel *k,
                             ev_error *err) {
    uint64_t params[4] = {0};
    vm_result result;
    EV_TRY(take_words(memory, k->elements, VM_BUFFER_IN, 1, &params[0], err));
    EV_TRY(take_words(memory, k->elements, VM_BUFFER_IN, 2, &params[1], err));
    EV_TRY(take_words(memory, k->out_elements, VM_BUFFER_INOUT, 3, &params[2], err));
    memcpy(&params[3], &k->n, sizeof k->n);
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, k->name),
                   .params = params,
                   .checks = VM_CHECK_ALL};
    memcpy(l.grid, k->grid, sizeof l.grid);
    memcpy(l.block, k->block, sizeof l.block);
    EV_TRY(vm_run(memory, &l, &result, err));
    return result.ok ? EV_OK : ev_fail(err, EV_BAD, "%s", result.trap.message);
}

static void report_shadow(part_context *c, const char *title, const vm_usage *use) {
    double each = (double)use->shadow / (double)use->contents;
    (void)json_array_append_new(c->json, json_pack("{s:s, s:I, s:I, s:I, s:f, s:f}", "kernel",
                                                   title, "bytes", (json_int_t)use->contents,
                                                   "shadow_bytes", (json_int_t)use->shadow,
                                                   "list_bytes", (json_int_t)use->lists,
                                                   "shadow_per_byte", each, "bar", SHADOW_BAR));
    table_cell(c->rows, "%s", title);
    table_cell(c->rows, "%.2f MB", (double)use->contents * 1e-6);
    table_cell(c->rows, "%.2f MB", (double)use->shadow * 1e-6);
    table_cell(c->rows, "%.2f MB", (double)use->lists * 1e-6);
    table_cell(c->rows, "%.2f", each);
    table_cell(c->rows, "%.1f", SHADOW_BAR);
}

#define SHADOW_MEMORY (64ull << 20)

static ev_status hold_shadow(part_context *c, const bench_kernel *k, const char *title,
                             const ev_str *ptx, ev_error *err) {
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    vm_usage use;
    ev_status status = vm_module_load(ev_str_text(ptx), ptx->length, k->name, &module, err);
    if (status == EV_OK)
        status = vm_memory_new(SHADOW_MEMORY, &memory, err);
    if (status == EV_OK)
        status = launch_once(memory, module, k, err);
    if (status == EV_OK) {
        vm_memory_usage(memory, &use);
        report_shadow(c, title, &use);
    }
    vm_memory_free(memory);
    vm_module_free(module);
    return status;
}

/* Reads and writes every n-th word of c: the most that shadow can cost. Buffers that are inputs
 * only, as those of most kernels, have none. */
static const char in_place[] =
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry in_place(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
    "mad.lo.u32 %r0, %r1, %r2, %r0; ld.param.u32 %r3, [n]; mul.lo.u32 %r0, %r0, %r3;\n"
    "ld.param.u64 %d0, [c]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;\n"
    "ld.global.u32 %r4, [%d0]; add.u32 %r4, %r4, 1; st.global.u32 [%d0], %r4; ret; }\n";

#define IN_PLACE_WORDS (2u << 20)
#define PAGE_WORDS 1024u

static ev_status hold_in_place(part_context *c, const char *title, uint32_t stride, ev_error *err) {
    const bench_kernel k = {.name = "in_place",
                            .elements = 1,
                            .out_elements = IN_PLACE_WORDS,
                            .grid = {IN_PLACE_WORDS / stride / 256, 1, 1},
                            .block = {256, 1, 1},
                            .n = (int32_t)stride};
    ev_str ptx = EV_STR_EMPTY;
    ev_str_append(&ptx, in_place);
    ev_status status = ev_str_status(&ptx, err);
    if (status == EV_OK)
        status = hold_shadow(c, &k, title, &ptx, err);
    ev_str_free(&ptx);
    return status;
}

static ev_status part_shadow(part_context *c, ev_error *err) {
    static const char *const names[] = {"vector_add", "histogram"};
    EV_TRY(hold_in_place(c, "in place", 1, err));
    EV_TRY(hold_in_place(c, "in place, a word a page", PAGE_WORDS, err));
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < sizeof names / sizeof *names; i++) {
        const bench_kernel *k = bench_vm_kernel(names[i]);
        ev_str ptx = EV_STR_EMPTY;
        status = bench_vm_build(k, device_properties_of(c->device)->sm, &ptx, err);
        if (status == EV_OK)
            status = hold_shadow(c, k, k->name, &ptx, err);
        ev_str_free(&ptx);
    }
    return status;
}

/* ---- all parts ---- */

static const struct {
    const char *name, *title;
    ev_status (*run)(part_context *c, ev_error *err);
    bool is_list; /* in JSON: an array, else an object */
    const char *columns[7];
} parts[] = {
    {"load",
     "Loading: the PTX of all kernels as one module; CPU time, median of loads.",
     part_load,
     false,
     {">lines", ">ms", ">ms p10 - p90", ">ms a 1,000 lines", ">bar", NULL}},
    {"jobs",
     "Jobs: the blocks of a launch shared by threads, all checks on; time on the wall's clock, "
     "median.",
     part_jobs,
     true,
     {"kernel", ">jobs", ">by one job", ">by all", ">speed-up", NULL}},
    {"sizes",
     "Sizes: cost of a thread instruction as the problem grows, all checks on; CPU time, median.",
     part_sizes,
     true,
     {"kernel", ">n", ">thread instr", ">a launch", ">ns a thread instr", NULL}},
    {"shadow",
     "Shadow memory: pages held after one launch with all checks on.",
     part_shadow,
     true,
     {"kernel", ">contents", ">shadow", ">lists", ">shadow a byte", ">bar", NULL}},
};

#define PART_COUNT (sizeof parts / sizeof *parts)

void bench_vm_name_parts(ev_str *out) {
    for (size_t i = 0; i < PART_COUNT; i++)
        ev_str_printf(out, "%s%s", i > 0 ? ", " : "", parts[i].name);
}

bool bench_vm_is_part(const char *name) {
    for (size_t i = 0; i < PART_COUNT; i++)
        if (strcmp(parts[i].name, name) == 0)
            return true;
    return false;
}

static ev_status run_part(size_t i, part_context *c, ev_str *text, ev_error *err) {
    c->json = parts[i].is_list ? json_array() : json_object();
    c->rows = table_new(parts[i].columns);
    ev_status status = c->rows == NULL ? ev_fail_memory(err, 1) : parts[i].run(c, err);
    if (status == EV_OK) {
        ev_str_printf(text, "\n%s\n\n", parts[i].title);
        status = table_print(c->rows, text, err);
    }
    table_free(c->rows);
    return status;
}

ev_status bench_vm_parts(device *d, const cli_args *args, const char *only, json_t *json,
                         ev_str *text, ev_error *err) {
    for (size_t i = 0; i < PART_COUNT; i++) {
        part_context c = {.device = d, .args = args};
        if (only != NULL && strcmp(only, parts[i].name) != 0)
            continue;
        ev_status status = run_part(i, &c, text, err);
        (void)json_object_set_new(json, parts[i].name, c.json);
        EV_TRY(status);
    }
    return EV_OK;
}
