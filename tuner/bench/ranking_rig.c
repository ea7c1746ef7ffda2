/* Ranking rig: one configuration from source to modelled time. */
#include "tuner/bench/ranking_rig.h"

#include "base/file.h"
#include "base/proc.h"
#include "tuner/worker/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "fitness/model/bench"
#define HEADER "kernels/include"
#define NVCC_SECONDS 300
#define NVCC_OLDEST 75 /* nvcc 13 has no older target: its PTX is for the oldest */
#define SAMPLE_MOST 4

#define IMAGE 4096ull
#define BORDER 14ull
#define PRODUCT 4096ull

static const char *const COMPILERS[] = {[RANKING_CLANG] = "clang", [RANKING_NVCC] = "nvcc"};

const char *ranking_compiler_name(ranking_compiler compiler) {
    return COMPILERS[compiler];
}

struct ranking_rig {
    const ranking_options *options;
    char *home;
    vm_memory *memory;
    ranking_kernel kernel; /* whose buffers the memory has */
    bool has_buffers;
    model_buffer buffers[3];
    size_t buffer_count;
};

/* ---- finding nvcc ---- */

static bool find_in_path(char path[512]) {
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        int n = snprintf(path, 512, "%.*s/nvcc", (int)length, at);
        if (n > 0 && n < 512 && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

bool ranking_find_nvcc(char path[512]) {
    static const char usual[] = "/usr/local/cuda/bin/nvcc";
    const char *named = getenv("EVOKE_NVCC");
    if (named != NULL && named[0] != '\0') {
        (void)snprintf(path, 512, "%s", named);
        return strcmp(named, "none") != 0;
    }
    if (find_in_path(path))
        return true;
    memcpy(path, usual, sizeof usual);
    return access(path, X_OK) == 0;
}

/* ---- making ---- */

ev_status ranking_rig_new(const ranking_options *options, ranking_rig **out, ev_error *err) {
    ranking_rig *rig = calloc(1, sizeof *rig);
    if (rig == NULL)
        return ev_fail_memory(err, sizeof *rig);
    rig->options = options;
    rig->home = ev_path_home();
    ev_status status =
        rig->home == NULL
            ? ev_fail(err, EV_BAD, "the folder %s was not found; set EVOKE_HOME", FOLDER)
            : vm_memory_new(1ull << 33, &rig->memory, err);
    if (status != EV_OK) {
        ranking_rig_free(rig);
        return status;
    }
    *out = rig;
    return EV_OK;
}

void ranking_rig_free(ranking_rig *rig) {
    if (rig == NULL)
        return;
    vm_memory_free(rig->memory);
    free(rig->home);
    free(rig);
}

/* ---- compiling ---- */

typedef struct recipe {
    const ranking_rig *rig;
    ranking_kernel kernel;
    const ir_macro *macros;
    size_t macro_count;
    ranking_compiler compiler;
    int sm;
    const char *source; /* path */
} recipe;

static ev_status compile_nvcc(const recipe *r, ev_str *ptx, ev_error *err) {
    const char *argv[16 + RANKING_MACROS_MOST];
    char texts[RANKING_MACROS_MOST + 3][160], folder[] = "/tmp/evoke-nvcc-XXXXXX";
    size_t n = 0;
    if (mkdtemp(folder) == NULL)
        return ev_fail_errno(err, "cannot make a folder in", "/tmp");
    (void)snprintf(texts[RANKING_MACROS_MOST], 160, "-arch=sm_%d",
                   r->sm > NVCC_OLDEST ? r->sm : NVCC_OLDEST);
    (void)snprintf(texts[RANKING_MACROS_MOST + 1], 160, "-I%.100s/" HEADER, r->rig->home);
    (void)snprintf(texts[RANKING_MACROS_MOST + 2], 160, "%s/a.ptx", folder);
    argv[n++] = r->rig->options->nvcc;
    argv[n++] = "-O3";
    argv[n++] = "-ptx";
    argv[n++] = texts[RANKING_MACROS_MOST];
    argv[n++] = texts[RANKING_MACROS_MOST + 1];
    for (size_t i = 0; i < r->macro_count; i++) {
        (void)snprintf(texts[i], 160, "-D%.100s=%lld", r->macros[i].name,
                       (long long)r->macros[i].value);
        argv[n++] = texts[i];
    }
    argv[n++] = r->source;
    argv[n++] = "-o";
    argv[n++] = texts[RANKING_MACROS_MOST + 2];
    argv[n] = NULL;
    ev_proc_result result = {0};
    ev_status status = ev_proc_run(argv, NULL, NVCC_SECONDS, &result, err);
    if (status == EV_OK && result.exit_code != 0)
        status = ev_fail(err, EV_BAD, "nvcc: %.300s", ev_str_text(&result.err));
    char *text = NULL;
    size_t bytes = 0;
    if (status == EV_OK)
        status = ev_file_read(texts[RANKING_MACROS_MOST + 2], &text, &bytes, err);
    if (status == EV_OK)
        ev_str_append_n(ptx, text, bytes);
    free(text);
    ev_proc_result_free(&result);
    ev_error ignored;
    return ev_dir_remove(folder, status == EV_OK ? err : &ignored) == EV_OK || status != EV_OK
               ? status
               : EV_INFRA;
}

static ev_status compile(const recipe *r, ev_str *ptx, ev_error *err) {
    if (r->compiler == RANKING_NVCC)
        return compile_nvcc(r, ptx, err);
    return variant_build_macros(r->source, ranking_kernel_name(r->kernel), r->macros,
                                r->macro_count, r->sm, ptx, err);
}

/* The file of a compiled configuration: by compiler, target, source text and macros. */
static ev_status cache_path(const recipe *r, ev_str *path, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(r->source, &text, &bytes, err));
    ev_str key = EV_STR_EMPTY;
    ev_str_append_n(&key, text, bytes);
    free(text);
    for (size_t i = 0; i < r->macro_count; i++)
        ev_str_printf(&key, "\n%s=%lld", r->macros[i].name, (long long)r->macros[i].value);
    ev_status status = ev_str_status(&key, err);
    ev_sha256 hash = ev_sha256_of(key.data, key.length);
    ev_str_free(&key);
    ev_str_printf(path, "%s/%s-%s-sm_%d-%s.ptx", r->rig->options->cache,
                  ranking_kernel_name(r->kernel), ranking_compiler_name(r->compiler), r->sm,
                  hash.hex);
    return status == EV_OK ? ev_str_status(path, err) : status;
}

static ev_status read_cached(const char *path, ev_str *ptx, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_str_append_n(ptx, text, bytes);
    free(text);
    return ev_str_status(ptx, err);
}

static ev_status compile_cached(const recipe *r, ev_str *ptx, ev_error *err) {
    if (r->rig->options->cache == NULL)
        return compile(r, ptx, err);
    ev_str path = EV_STR_EMPTY;
    ev_status status = cache_path(r, &path, err);
    bool known = status == EV_OK && ev_path_exists(ev_str_text(&path));
    if (known)
        status = read_cached(ev_str_text(&path), ptx, err);
    else if (status == EV_OK)
        status = compile(r, ptx, err);
    if (status == EV_OK && !known)
        status = ev_file_write(ev_str_text(&path), ptx->data, ptx->length, err);
    ev_str_free(&path);
    return status;
}

/* ---- running ---- */

static ev_status add_buffer(ranking_rig *rig, uint64_t bytes, vm_buffer_kind kind, ev_error *err) {
    model_buffer *b = &rig->buffers[rig->buffer_count++];
    b->bytes = bytes;
    return vm_memory_alloc(rig->memory, bytes, kind, "array", &b->address, err);
}

/* Buffers of the kernel, in the order of its arguments. Their contents do not matter. */
static ev_status make_buffers(ranking_rig *rig, ranking_kernel kernel, ev_error *err) {
    if (rig->has_buffers && rig->kernel == kernel)
        return EV_OK;
    vm_memory_clear(rig->memory);
    rig->kernel = kernel;
    rig->buffer_count = 0;
    if (kernel == RANKING_CONVOLUTION) {
        EV_TRY(add_buffer(rig, IMAGE * IMAGE * 4, VM_BUFFER_OUT, err));
        EV_TRY(add_buffer(rig, (IMAGE + BORDER) * (IMAGE + BORDER) * 4, VM_BUFFER_IN, err));
    } else {
        EV_TRY(add_buffer(rig, PRODUCT * PRODUCT * 4, VM_BUFFER_INOUT, err));
        EV_TRY(add_buffer(rig, PRODUCT * PRODUCT * 4, VM_BUFFER_IN, err));
        EV_TRY(add_buffer(rig, PRODUCT * PRODUCT * 4, VM_BUFFER_IN, err));
    }
    rig->has_buffers = true;
    return EV_OK;
}

typedef struct sample {
    uint32_t blocks[SAMPLE_MOST];
    double weights[SAMPLE_MOST];
    size_t count;
} sample;

static void add_block(sample *s, uint32_t block, double weight) {
    if (weight <= 0)
        return;
    s->blocks[s->count] = block;
    s->weights[s->count++] = weight;
}

/* Blocks by their share of the grid: one inside, one at the right edge, one at the lower edge, the
 * last corner. The tiles of the edges may be cut off. */
static void sample_edges(const uint32_t grid[3], sample *s) {
    uint32_t columns = grid[0], rows = grid[1];
    uint32_t x = (columns - 1) / 2, y = (rows - 1) / 2;
    s->count = 0;
    add_block(s, y * columns + x, (double)(columns - 1) * (rows - 1));
    add_block(s, y * columns + columns - 1, rows - 1);
    add_block(s, (rows - 1) * columns + x, columns - 1);
    add_block(s, rows * columns - 1, 1);
}

/* All blocks are alike. */
static void sample_middle(const uint32_t grid[3], sample *s) {
    uint32_t x = (grid[0] - 1) / 2, y = (grid[1] - 1) / 2;
    s->count = 0;
    add_block(s, y * grid[0] + x, (double)grid[0] * grid[1]);
}

static ev_status run_blocks(ranking_rig *rig, const gpu *g, const vm_launch *l, model_time *time,
                            ev_error *err) {
    model *m = NULL;
    vm_launch launch = *l;
    vm_result result;
    EV_TRY(model_new(g, &launch, &m, err));
    model_set_buffers(m, rig->buffers, rig->buffer_count);
    launch.observer = model_observer(m);
    ev_status status = vm_run(rig->memory, &launch, &result, err);
    if (status == EV_OK && !result.ok)
        status = ev_fail(err, EV_BAD, "traps at PTX line %u: %.300s", result.trap.line,
                         result.trap.message);
    if (status == EV_OK)
        status = model_finish(m, &result, time, err);
    model_free(m);
    if (status == EV_OK && time->occupancy.blocks_per_sm == 0)
        status = ev_fail(err, EV_BAD, "does not fit: %u registers a thread, limited by %s",
                         time->occupancy.registers, model_limiter_name(time->occupancy.limiter));
    return status;
}

static ev_status run_module(ranking_rig *rig, const gpu *g, const recipe *r, vm_module *module,
                            ranking_result *out, ev_error *err) {
    sample s = {.count = 0};
    uint64_t params[6] = {0};
    vm_launch l = {.module = module, .entry = vm_module_entry(module, 0), .params = params};
    EV_TRY(make_buffers(rig, r->kernel, err));
    ranking_launch(r->kernel, r->macros, l.grid, l.block);
    if (r->kernel == RANKING_CONVOLUTION)
        sample_edges(l.grid, &s);
    else
        sample_middle(l.grid, &s);
    for (size_t i = 0; i < rig->buffer_count; i++)
        params[i] = rig->buffers[i].address;
    params[3] = PRODUCT | PRODUCT << 32;
    params[4] = PRODUCT;
    l.sample = s.blocks;
    l.weights = s.weights;
    l.sample_count = s.count;
    out->live_registers = model_live_registers(module, l.entry);
    out->insns = (uint32_t)vm_module_insn_count(module);
    return run_blocks(rig, g, &l, &out->time, err);
}

ev_status ranking_rig_run(ranking_rig *rig, const gpu *g, ranking_kernel kernel,
                          const ir_macro *macros, size_t macro_count, ranking_compiler compiler,
                          int sm, ranking_result *out, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY, path = EV_STR_EMPTY;
    vm_module *module = NULL;
    ev_str_printf(&path, "%s/" FOLDER "/%s.cu", rig->home, ranking_kernel_name(kernel));
    const recipe r = {rig, kernel, macros, macro_count, compiler, sm, ev_str_text(&path)};
    double start = ev_clock_now();
    *out = (ranking_result){.insns = 0};
    ev_status status = compile_cached(&r, &ptx, err);
    double built = ev_clock_now();
    if (status == EV_OK)
        status = vm_module_load(ptx.data, ptx.length, ranking_kernel_name(kernel), &module, err);
    if (status == EV_OK)
        status = run_module(rig, g, &r, module, out, err);
    out->build_seconds = built - start;
    out->run_seconds = ev_clock_now() - built;
    vm_module_free(module);
    ev_str_free(&ptx);
    ev_str_free(&path);
    return status;
}
