/* Runs the kernels that stand for measurements of real GPUs through the machine and the model. */
#include "tuner/bench/bench_model.h"

#include "base/file.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "fitness/model/bench"
#define KERNELS_MOST 6
#define BLOCKS_RUN 3 /* of a grid: the first, the middle, the last */

#define STREAM_ELEMENTS 268435458
#define STRIDE_THREADS 1024u
#define STRIDE_LOADS 8     /* a turn, of each warp */
#define STRIDE_ELEMENTS 31 /* of the last lane, times the stride, plus the turn's 8 x 32 */

typedef struct rig_kernel {
    const char *name;     /* as in the data */
    const char *entry;    /* of the source */
    uint32_t arrays;      /* double arrays that it touches, a first */
    double element_bytes; /* stream: bytes that count; strides: of one element */
    vm_module *module;
} rig_kernel;

static const struct {
    const char *file;
    size_t count;
    rig_kernel kernels[KERNELS_MOST];
} sources[] = {
    [SILICON_STREAM] = {"stream.cu",
                        6,
                        {{"init", "init", 1, 8, NULL},
                         {"read", "read", 2, 8, NULL},
                         {"scale", "scale", 2, 16, NULL},
                         {"triad", "triad", 4, 32, NULL},
                         {"stencil3", "stencil3", 2, 16, NULL},
                         {"stencil5", "stencil5", 2, 16, NULL}}},
    [SILICON_STRIDES] = {"strides.cu",
                         2,
                         {{"float", "strides_float", 0, 4, NULL},
                          {"double", "strides_double", 0, 8, NULL}}},
};

struct model_rig {
    silicon_set set;
    size_t count;
    rig_kernel kernels[KERNELS_MOST];
    vm_memory *memory;
};

/* ---- making ---- */

static ev_status build(const char *path, int sm, rig_kernel *k, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    ev_status status = variant_build_file(path, k->entry, sm, &ptx, err);
    if (status == EV_OK)
        status = vm_module_load(ev_str_text(&ptx), ptx.length, k->entry, &k->module, err);
    ev_str_free(&ptx);
    return status;
}

static ev_status build_all(model_rig *rig, int sm, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the folder %s was not found; set EVOKE_HOME", FOLDER);
    ev_str path = EV_STR_EMPTY;
    ev_str_printf(&path, "%s/" FOLDER "/%s", home, sources[rig->set].file);
    free(home);
    ev_status status = EV_OK;
    for (size_t i = 0; i < rig->count && status == EV_OK; i++)
        status = build(ev_str_text(&path), sm, &rig->kernels[i], err);
    ev_str_free(&path);
    return status;
}

ev_status model_rig_new(const gpu *g, silicon_set set, model_rig **out, ev_error *err) {
    model_rig *rig = calloc(1, sizeof *rig);
    if (rig == NULL)
        return ev_fail_memory(err, sizeof *rig);
    rig->set = set;
    rig->count = sources[set].count;
    memcpy(rig->kernels, sources[set].kernels, sizeof rig->kernels);
    ev_status status = build_all(rig, g->sm, err);
    if (status == EV_OK)
        status = vm_memory_new((uint64_t)(gpu_get(g, GPU_DRAM_GB) * 1e9), &rig->memory, err);
    if (status != EV_OK) {
        model_rig_free(rig);
        return status;
    }
    *out = rig;
    return EV_OK;
}

void model_rig_free(model_rig *rig) {
    if (rig == NULL)
        return;
    for (size_t i = 0; i < rig->count; i++)
        vm_module_free(rig->kernels[i].module);
    vm_memory_free(rig->memory);
    free(rig);
}

/* ---- one launch ---- */

#define BUFFERS_MOST 4

typedef struct rig_launch {
    vm_launch vm;
    model_buffer buffers[BUFFERS_MOST];
    size_t count;
    uint64_t params[6];
    uint32_t sample[BLOCKS_RUN];
} rig_launch;

static ev_status add_buffer(model_rig *rig, rig_launch *l, uint64_t bytes, vm_buffer_kind kind,
                            ev_error *err) {
    model_buffer *b = &l->buffers[l->count];
    b->bytes = bytes;
    EV_TRY(vm_memory_alloc(rig->memory, bytes, kind, "array", &b->address, err));
    l->params[l->count++] = b->address;
    return EV_OK;
}

ev_status model_rig_time(vm_memory *memory, const gpu *g, vm_launch *launch,
                         const model_buffer *buffers, size_t count, model_time *out,
                         ev_error *err) {
    model *m = NULL;
    EV_TRY(model_new(g, launch, &m, err));
    model_set_buffers(m, buffers, count);
    launch->observer = model_observer(m);
    vm_result result;
    ev_status status = vm_run(memory, launch, &result, err);
    if (status == EV_OK && !result.ok)
        status = ev_fail(err, EV_BAD, "%s traps at PTX line %u: %.300s", launch->entry->name,
                         result.trap.line, result.trap.message);
    if (status == EV_OK)
        status = model_finish(m, &result, out, err);
    launch->observer = NULL;
    model_free(m);
    return status;
}

static ev_status model_launch(model_rig *rig, const gpu *g, rig_launch *l, double *ns,
                              ev_error *err) {
    uint64_t blocks = l->vm.grid[0];
    model_time time = {0};
    l->vm.entry = vm_module_entry(l->vm.module, 0);
    l->vm.params = l->params;
    l->vm.sample = l->sample;
    l->vm.sample_count = model_sample_blocks(blocks, BLOCKS_RUN, l->sample);
    ev_status status = model_rig_time(rig->memory, g, &l->vm, l->buffers, l->count, &time, err);
    *ns = time.ns;
    return status;
}

/* ---- streams ---- */

/* Dynamic shared memory that lets exactly `blocks` on an SM, where nothing else lets in fewer. */
static uint32_t shared_for(const gpu *g, uint32_t blocks) {
    double unit = gpu_get(g, GPU_SHARED_UNIT);
    double each = floor(gpu_get(g, GPU_SHARED_SM) / blocks / unit) * unit;
    double bytes = fmin(each - gpu_get(g, GPU_SHARED_RESERVED), gpu_get(g, GPU_SHARED_BLOCK));
    return bytes > 0 ? (uint32_t)bytes : 0;
}

static ev_status run_stream(model_rig *rig, const gpu *g, const rig_kernel *k, silicon_point *p,
                            ev_error *err) {
    uint32_t grid = (STREAM_ELEMENTS + p->threads - 1) / p->threads;
    rig_launch l = {.vm = {.module = k->module,
                           .grid = {grid, 1, 1},
                           .block = {p->threads, 1, 1},
                           .dynamic_shared = shared_for(g, p->blocks)}};
    for (size_t i = 0; i < BUFFERS_MOST; i++) {
        l.params[i] = l.params[0];
        if (i < k->arrays)
            EV_TRY(add_buffer(rig, &l, STREAM_ELEMENTS * 8ull,
                              i == 0 ? VM_BUFFER_OUT : VM_BUFFER_IN, err));
    }
    l.params[BUFFERS_MOST] = STREAM_ELEMENTS;
    double ns = 0;
    EV_TRY(model_launch(rig, g, &l, &ns, err));
    p->modelled = k->element_bytes * STREAM_ELEMENTS / ns;
    return EV_OK;
}

/* ---- strides ---- */

static ev_status time_strides(model_rig *rig, const gpu *g, const rig_kernel *k, uint32_t stride,
                              uint32_t turns, double *ns, ev_error *err) {
    rig_launch l = {
        .vm = {.module = k->module, .grid = {1, 1, 1}, .block = {STRIDE_THREADS, 1, 1}}};
    uint64_t elements = (uint64_t)STRIDE_ELEMENTS * stride + (uint64_t)STRIDE_LOADS * 32;
    vm_memory_clear(rig->memory);
    EV_TRY(add_buffer(rig, &l, elements * (uint64_t)k->element_bytes, VM_BUFFER_IN, err));
    EV_TRY(add_buffer(rig, &l, (uint64_t)STRIDE_THREADS * 8, VM_BUFFER_OUT, err));
    l.params[2] = stride | (uint64_t)turns << 32;
    return model_launch(rig, g, &l, ns, err);
}

/* What a load costs when there are more of them: starting and first misses fall out. */
static ev_status run_strides(model_rig *rig, const gpu *g, const rig_kernel *k, silicon_point *p,
                             ev_error *err) {
    const uint32_t few = 16, many = 64;
    double first = 0, second = 0;
    EV_TRY(time_strides(rig, g, k, p->stride, few, &first, err));
    EV_TRY(time_strides(rig, g, k, p->stride, many, &second, err));
    double loads = (double)(many - few) * STRIDE_LOADS * STRIDE_THREADS / 32;
    p->modelled = (second - first) * gpu_get(g, GPU_BOOST_MHZ) * 1e-3 / loads;
    return EV_OK;
}

ev_status model_rig_run(model_rig *rig, const gpu *g, silicon_point *point, ev_error *err) {
    const rig_kernel *k = rig->kernels;
    while (strcmp(k->name, point->kernel) != 0)
        k++;
    vm_memory_clear(rig->memory);
    return rig->set == SILICON_STREAM ? run_stream(rig, g, k, point, err)
                                      : run_strides(rig, g, k, point, err);
}
