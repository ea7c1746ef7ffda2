/* The device vm:MODEL: the PTX virtual machine for what a kernel does, the timing model for how
 * long it takes. */
#include "fitness/device/device_impl.h"
#include "fitness/device/device_stores.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct device_vm {
    device base; /* first */
    gpu *g;
    vm_memory *memory;
    model_buffer *buffers; /* by handle - 1 */
    size_t count, room;
    model_scratch *scratch; /* of its models; NULL before the first */
    model *last;            /* of the last timed run, for what it stored */
    device_stores stores;   /* of the last run, where that noted them */
} device_vm;

static device_vm *vm_of(device *d) {
    return (device_vm *)d;
}
static const device_vm *vm_of_const(const device *d) {
    return (const device_vm *)d;
}

static void vm_close(device *d) {
    device_vm *v = vm_of(d);
    model_free(v->last);
    model_scratch_free(v->scratch);
    device_stores_end(&v->stores);
    vm_memory_free(v->memory);
    gpu_free(v->g);
    free(v->buffers);
    free(v);
}

/* ---- buffers ---- */

/* `odd`: at an odd multiple of it; 0: wherever the memory places it. */
static ev_status alloc_at(device *d, uint64_t bytes, uint32_t odd, vm_buffer_kind kind,
                          const char *name, device_buffer *out, ev_error *err) {
    device_vm *v = vm_of(d);
    if (v->count == v->room) {
        size_t room = v->room == 0 ? 16 : v->room * 2;
        model_buffer *more = realloc(v->buffers, room * sizeof *more);
        if (more == NULL)
            return ev_fail_memory(err, room * sizeof *more);
        v->buffers = more;
        v->room = room;
    }
    model_buffer made = {.bytes = bytes};
    if (odd > 0)
        EV_TRY(vm_memory_alloc_odd(v->memory, bytes, odd, kind, name, &made.address, err));
    else
        EV_TRY(vm_memory_alloc(v->memory, bytes, kind, name, &made.address, err));
    v->buffers[v->count++] = made;
    *out = (device_buffer)v->count;
    return EV_OK;
}

static ev_status vm_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                          device_buffer *out, ev_error *err) {
    return alloc_at(d, bytes, 0, kind, name, out, err);
}

static ev_status vm_alloc_odd(device *d, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                              const char *name, device_buffer *out, ev_error *err) {
    return alloc_at(d, bytes, align, kind, name, out, err);
}

static ev_status vm_texture_of(device *d, const vm_texture *texture, uint64_t *handle,
                               ev_error *err) {
    return vm_texture_new(vm_of(d)->memory, texture, handle, err);
}

static void vm_clear(device *d) {
    device_vm *v = vm_of(d);
    vm_memory_clear(v->memory);
    v->count = 0;
}

static const model_buffer *buffer_at(const device *d, device_buffer buffer) {
    const device_vm *v = vm_of_const(d);
    assert(buffer > 0 && buffer <= v->count);
    return &v->buffers[buffer - 1];
}

static uint64_t vm_address(const device *d, device_buffer buffer) {
    return buffer_at(d, buffer)->address;
}

static void *vm_host(device *d, device_buffer buffer) {
    return vm_memory_host(vm_of(d)->memory, buffer_at(d, buffer)->address);
}

static ev_status vm_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                          uint64_t bytes, ev_error *err) {
    (void)err;
    assert(offset <= buffer_at(d, buffer)->bytes);
    assert(bytes <= buffer_at(d, buffer)->bytes - offset);
    memcpy((char *)vm_host(d, buffer) + offset, data, bytes);
    return EV_OK;
}

static ev_status vm_read(device *d, device_buffer buffer, uint64_t offset, void *data,
                         uint64_t bytes, ev_error *err) {
    (void)err;
    assert(offset <= buffer_at(d, buffer)->bytes);
    assert(bytes <= buffer_at(d, buffer)->bytes - offset);
    memcpy(data, (const char *)vm_host(d, buffer) + offset, bytes);
    return EV_OK;
}

static ev_status vm_reset(device *d, uint8_t poison, ev_error *err) {
    (void)err;
    vm_memory_reset(vm_of(d)->memory, poison);
    return EV_OK;
}

static ev_status vm_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                            uint64_t count, uint8_t *written, uint64_t *how_many, ev_error *err) {
    (void)err;
    *how_many = vm_memory_written(vm_of(d)->memory, vm_address(d, buffer), element_bytes, first,
                                  count, written);
    return EV_OK;
}

/* ---- kernels ---- */

/* Timed launches have .global variables as the chip places them, at least at whole sectors: their
 * sectors cost time. */
static ev_status load_odd(device *d, device_kernel *kernel, ev_error *err) {
    size_t bytes;
    const char *text = vm_module_text(kernel->module, &bytes);
    if (vm_module_global_bytes(kernel->module) == 0)
        return EV_OK;
    EV_TRY(
        vm_module_load_with(d->words, VM_PLACE_ODD_GLOBALS, text, bytes, "ptx", &kernel->odd, err));
    kernel->odd_entry = vm_module_find(kernel->odd, kernel->entry->name);
    return EV_OK;
}

static ev_status vm_load(device *d, device_kernel *kernel, ev_error *err) {
    if (vm_module_sm(kernel->module) > d->properties.sm)
        return ev_fail(err, EV_BAD,
                       "the PTX is for sm_%d, and %s is sm_%d; compile for at most that",
                       vm_module_sm(kernel->module), d->properties.id, d->properties.sm);
    const vm_entry *entry = kernel->entry;
    model_code *code = NULL;
    EV_TRY(load_odd(d, kernel, err));
    EV_TRY(model_code_new(vm_of(d)->g, kernel->module, entry, &code, err));
    kernel->own = code;
    kernel->may_wait =
        device_code_waits(kernel->module, 0, (uint32_t)vm_module_insn_count(kernel->module));
    kernel->resources = (device_resources){.registers = model_code_registers(code),
                                           .shared_bytes = entry->shared_bytes,
                                           .local_bytes = entry->local_bytes,
                                           .max_threads = entry->max_threads};
    return EV_OK;
}

/* The last model may still be asked what was stored, but of this code it knows no more. */
static void vm_unload(device_kernel *kernel) {
    model_code_free(kernel->own);
    kernel->own = NULL;
}

static ev_status vm_fill(device *d, device_kernel *kernel, const char *name,
                         const vm_variable *variable, const void *data, ev_error *err) {
    (void)d;
    (void)err;
    vm_module_fill(kernel->module, variable, data);
    vm_variable odd; /* the same variable, at another place */
    if (kernel->odd != NULL && vm_module_variable(kernel->odd, name, &odd))
        vm_module_fill(kernel->odd, &odd, data);
    return EV_OK;
}

#define GRID_X_MOST 2147483647u
#define GRID_YZ_MOST 65535u
#define BLOCK_Z_MOST 64u

static ev_status check_geometry(const device *d, const device_kernel *k, const device_launch *l,
                                ev_error *err) {
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    const uint32_t *grid = l->grid;
    if (threads == 0 || (uint64_t)grid[0] * grid[1] * grid[2] == 0)
        return ev_fail(err, EV_BAD, "the launch has no threads (grid %u,%u,%u block %u,%u,%u)",
                       grid[0], grid[1], grid[2], l->block[0], l->block[1], l->block[2]);
    if (threads > d->properties.max_threads_per_block || l->block[2] > BLOCK_Z_MOST)
        return ev_fail(err, EV_BAD, "a block of %u,%u,%u threads; %s takes at most %u (z: %u)",
                       l->block[0], l->block[1], l->block[2], d->properties.id,
                       d->properties.max_threads_per_block, BLOCK_Z_MOST);
    if (k->entry->max_threads > 0 && threads > k->entry->max_threads)
        return ev_fail(err, EV_BAD, "a block of %llu threads; the kernel's own bound is %u",
                       (unsigned long long)threads, k->entry->max_threads);
    if (grid[0] > GRID_X_MOST || grid[1] > GRID_YZ_MOST || grid[2] > GRID_YZ_MOST)
        return ev_fail(err, EV_BAD, "a grid of %u,%u,%u blocks; at most %u,%u,%u", grid[0], grid[1],
                       grid[2], GRID_X_MOST, GRID_YZ_MOST, GRID_YZ_MOST);
    return EV_OK;
}

static ev_status vm_check(const device *d, const device_kernel *k, const device_launch *l,
                          ev_error *err) {
    EV_TRY(check_geometry(d, k, l, err));
    uint64_t shared = (uint64_t)k->entry->shared_bytes + l->dynamic_shared;
    if (shared > d->properties.max_shared_per_block)
        return ev_fail(err, EV_BAD, "a block needs %llu bytes of shared memory; %s has %u",
                       (unsigned long long)shared, d->properties.id,
                       d->properties.max_shared_per_block);
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    uint32_t cap = model_block_cap(k->entry, vm_module_sm(k->module), threads),
             registers = k->resources.registers;
    model_occupancy o =
        model_occupancy_of(vm_of_const(d)->g, k->entry, registers < cap ? registers : cap, l->grid,
                           l->block, l->dynamic_shared);
    if (o.blocks_per_sm == 0)
        return ev_fail(err, EV_BAD,
                       "a block does not fit an SM of %s: %u threads with about %u registers each, "
                       "limited by %s; bound the registers or make the block smaller",
                       d->properties.id, l->block[0] * l->block[1] * l->block[2], o.registers,
                       model_limiter_name(o.limiter));
    return EV_OK;
}

static vm_launch launch_of(const device_kernel *k, const device_launch *l) {
    vm_launch v = {.module = k->module,
                   .entry = k->entry,
                   .dynamic_shared = l->dynamic_shared,
                   .params = l->params,
                   .fuel = l->fuel,
                   .checks = l->checks,
                   .approx = l->approx,
                   .stream = l->stream,
                   .schedule_seed = l->schedule_seed,
                   .jobs = l->jobs,
                   .sample = l->sample,
                   .sample_count = l->sample_count,
                   .weights = l->weights,
                   .paths = l->paths,
                   .print = l->print,
                   .print_context = l->print_context,
                   .executions = l->executions};
    memcpy(v.grid, l->grid, sizeof v.grid);
    memcpy(v.block, l->block, sizeof v.block);
    return v;
}

/* Blocks that the GPU holds at once. 0, the virtual machine's own number, which costs less memory,
 * where no block can wait for another. */
static uint32_t resident_blocks(const device *d, const device_kernel *k, const device_launch *l) {
    if (!k->may_wait)
        return 0;
    const gpu *g = vm_of_const(d)->g;
    model_occupancy o = model_occupancy_of(g, k->entry, k->resources.registers, l->grid, l->block,
                                           l->dynamic_shared);
    return o.blocks_per_sm * (uint32_t)gpu_get(g, GPU_SM_COUNT);
}

static void set_outcome(const vm_result *result, device_outcome *out) {
    *out = (device_outcome){.ok = result->ok, .counters = result->counters, .waits = result->waits};
    if (!result->ok)
        out->fault = result->trap;
}

static ev_status vm_run_plain(device *d, const device_kernel *kernel, const device_launch *launch,
                              device_outcome *out, ev_error *err) {
    vm_launch l = launch_of(kernel, launch);
    vm_result result;
    device_vm *v = vm_of(d);
    if (kernel->odd != NULL) {
        l.module = kernel->odd;
        l.entry = kernel->odd_entry;
    }
    model_free(v->last); /* what it stored is history */
    v->last = NULL;
    device_stores_end(&v->stores);
    if (launch->notes_stores)
        EV_TRY(device_stores_begin(&v->stores, l.module, err));
    l.observer = launch->notes_stores ? &v->stores.observer : NULL;
    l.resident_blocks = resident_blocks(d, kernel, launch);
    EV_TRY(vm_run(v->memory, &l, &result, err));
    set_outcome(&result, out);
    return v->stores.failed ? ev_fail_memory(err, v->stores.room * sizeof *v->stores.sectors)
                            : EV_OK;
}

static ev_status vm_run_side_by_side(device *const *devices, const device_kernel *const *kernels,
                                     const device_launch *launches, uint32_t count,
                                     device_outcome *out, ev_error *err) {
    vm_launch *all = calloc(count, sizeof *all);
    vm_rank *ranks = calloc(count, sizeof *ranks);
    vm_result *results = calloc(count, sizeof *results);
    bool made = all != NULL && ranks != NULL && results != NULL;
    ev_status status = made ? EV_OK : ev_fail_memory(err, count * sizeof *results);
    for (uint32_t i = 0; made && i < count; i++) {
        device_vm *v = vm_of(devices[i]);
        model_free(v->last);
        v->last = NULL;
        device_stores_end(&v->stores);
        all[i] = launch_of(kernels[i], &launches[i]);
        if (kernels[i]->odd != NULL) {
            all[i].module = kernels[i]->odd;
            all[i].entry = kernels[i]->odd_entry;
        }
        all[i].resident_blocks = resident_blocks(devices[i], kernels[i], &launches[i]);
        ranks[i] = (vm_rank){.memory = v->memory, .launch = &all[i]};
    }
    if (status == EV_OK)
        status = vm_run_ranks(ranks, count, results, err);
    for (uint32_t i = 0; status == EV_OK && i < count; i++)
        set_outcome(&results[i], &out[i]);
    free(all);
    free(ranks);
    free(results);
    return status;
}

/* The buffers that a pointer among the parameters leads to. */
static size_t launch_buffers(const device_vm *v, const vm_entry *entry, const void *params,
                             model_buffer *found, size_t room) {
    size_t count = 0;
    uint64_t value = 0;
    for (uint32_t at = 0; vm_entry_next_word(entry, params, &at, &value);) {
        for (size_t i = 0; i < v->count && count < room; i++) {
            if (value - v->buffers[i].address < v->buffers[i].bytes)
                found[count++] = v->buffers[i];
        }
    }
    return count;
}

#define BUFFERS_MOST 32

/* A model that listens to the launch; `l` stays where it is until told. */
static ev_status listen(device_vm *v, const device_kernel *kernel, const device_launch *launch,
                        vm_launch *l, ev_error *err) {
    *l = launch_of(kernel, launch);
    model_free(v->last);
    v->last = NULL;
    device_stores_end(&v->stores);
    if (v->scratch == NULL)
        EV_TRY(model_scratch_new(&v->scratch, err));
    EV_TRY(model_new_of(kernel->own, l, v->scratch, &v->last, err));
    model_buffer buffers[BUFFERS_MOST];
    size_t count = launch_buffers(v, kernel->entry, launch->params, buffers, BUFFERS_MOST);
    model_set_buffers(v->last, buffers, count);
    if (launch->follows_all)
        model_follow_all(v->last);
    if (launch->stalls != NULL || launch->sites != NULL)
        EV_TRY(model_watch_stalls(v->last, err));
    if (launch->sites != NULL)
        model_watch_sites(v->last, launch->sites);
    l->observer = model_observer(v->last);
    return EV_OK;
}

/* What it made of the run; nothing after a trap. */
static ev_status tell(device_vm *v, const device_kernel *kernel, const device_launch *launch,
                      const vm_result *result, device_outcome *out, device_timing *timing,
                      ev_error *err) {
    set_outcome(result, out);
    if (!out->ok)
        return EV_OK;
    EV_TRY(model_finish(v->last, result, &timing->model, err));
    timing->ns = timing->low_ns = timing->high_ns = timing->model.ns;
    timing->warm_ns = timing->model.warm_ns;
    timing->samples = 1;
    if (launch->stalls != NULL)
        memcpy(launch->stalls, model_stalls_by_pc(v->last),
               vm_module_insn_count(kernel->module) * sizeof *launch->stalls);
    return EV_OK;
}

static ev_status vm_time(device *d, const device_kernel *kernel, const device_launch *launch,
                         device_outcome *out, device_timing *timing, ev_error *err) {
    vm_launch l;
    vm_result result;
    EV_TRY(listen(vm_of(d), kernel, launch, &l, err));
    l.resident_blocks = resident_blocks(d, kernel, launch);
    if (kernel->may_wait)
        EV_TRY(model_skip_polls(vm_of(d)->last, err));
    EV_TRY(vm_run(vm_of(d)->memory, &l, &result, err));
    return tell(vm_of(d), kernel, launch, &result, out, timing, err);
}

/* ---- times of ranks ---- */

typedef struct rank_run {
    vm_launch launch;
    model *model;
} rank_run;

static ev_status listen_to_ranks(device *const *devices, const device_kernel *const *kernels,
                                 const device_launch *launches, uint32_t count, model_reach reach,
                                 rank_run *runs, model_buffer *memory, ev_error *err) {
    for (uint32_t i = 0; i < count; i++)
        vm_memory_range(vm_of(devices[i])->memory, &memory[i].address, &memory[i].bytes);
    for (uint32_t i = 0; i < count; i++) {
        device_vm *v = vm_of(devices[i]);
        model_ranks ranks = {.memory = memory, .count = count, .self = i, .reach = reach};
        EV_TRY(listen(v, kernels[i], &launches[i], &runs[i].launch, err));
        EV_TRY(model_set_ranks(v->last, &ranks, err));
        runs[i].launch.resident_blocks = resident_blocks(devices[i], kernels[i], &launches[i]);
        runs[i].model = v->last;
    }
    return EV_OK;
}

static ev_status run_listened(device *const *devices, uint32_t count, rank_run *runs,
                              vm_rank *ranks, vm_result *results, model **models, ev_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = (vm_rank){.memory = vm_of(devices[i])->memory, .launch = &runs[i].launch};
        models[i] = runs[i].model;
    }
    EV_TRY(vm_run_ranks(ranks, count, results, err));
    model_join_ranks(models, count);
    return EV_OK;
}

static ev_status vm_time_side_by_side(device *const *devices, const device_kernel *const *kernels,
                                      const device_launch *launches, uint32_t count,
                                      model_reach reach, device_outcome *out,
                                      device_timing *timings, ev_error *err) {
    rank_run *runs = calloc(count, sizeof *runs);
    model_buffer *memory = calloc(count, sizeof *memory);
    vm_rank *ranks = calloc(count, sizeof *ranks);
    vm_result *results = calloc(count, sizeof *results);
    model **models = calloc(count, sizeof(model *));
    bool made =
        runs != NULL && memory != NULL && ranks != NULL && results != NULL && models != NULL;
    ev_status status = made ? EV_OK : ev_fail_memory(err, count * sizeof *runs);
    if (status == EV_OK)
        status = listen_to_ranks(devices, kernels, launches, count, reach, runs, memory, err);
    if (status == EV_OK)
        status = run_listened(devices, count, runs, ranks, results, models, err);
    for (uint32_t i = 0; status == EV_OK && i < count; i++) {
        timings[i] = (device_timing){0};
        status = tell(vm_of(devices[i]), kernels[i], &launches[i], &results[i], &out[i],
                      &timings[i], err);
    }
    for (uint32_t i = 0; i < count; i++) { /* its launch goes with this call */
        model_free(vm_of(devices[i])->last);
        vm_of(devices[i])->last = NULL;
    }
    free(runs);
    free(memory);
    free(ranks);
    free(results);
    free(models);
    return status;
}

static const uint64_t *vm_stored(const device *d, size_t *count) {
    *count = 0;
    const device_vm *v = vm_of_const(d);
    if (v->last == NULL)
        *count = v->stores.count;
    return v->last != NULL ? model_stored(v->last, count) : v->stores.sectors;
}

static const gpu *vm_description(const device *d) {
    return vm_of_const(d)->g;
}

static const device_ops VM_OPS = {
    .close = vm_close,
    .alloc = vm_alloc,
    .alloc_odd = vm_alloc_odd,
    .texture = vm_texture_of,
    .clear = vm_clear,
    .address = vm_address,
    .write = vm_write,
    .read = vm_read,
    .host = vm_host,
    .reset = vm_reset,
    .written = vm_written,
    .load = vm_load,
    .unload = vm_unload,
    .fill = vm_fill,
    .check = vm_check,
    .run = vm_run_plain,
    .run_ranks = vm_run_side_by_side,
    .time = vm_time,
    .time_ranks = vm_time_side_by_side,
    .stored = vm_stored,
    .description = vm_description,
};

static void set_properties(device *d, const gpu *g, const char *id) {
    device_properties *p = &d->properties;
    (void)snprintf(p->id, sizeof p->id, "vm:%s", id);
    (void)snprintf(p->name, sizeof p->name, "%s", g->name);
    p->sm = g->sm;
    p->modelled = true;
    p->max_threads_per_block = (uint32_t)gpu_get(g, GPU_MAX_THREADS);
    p->max_shared_per_block = (uint32_t)gpu_get(g, GPU_SHARED_BLOCK);
    p->max_registers_per_thread = (uint32_t)gpu_get(g, GPU_MAX_REGISTERS);
    p->memory_bytes = (uint64_t)(gpu_get(g, GPU_DRAM_GB) * 1e9);
}

/* Without its memory. */
static ev_status open_model(const char *model_id, device_vm **out, ev_error *err) {
    device_vm *v = calloc(1, sizeof *v);
    if (v == NULL)
        return ev_fail_memory(err, sizeof *v);
    v->base.ops = &VM_OPS;
    ev_status status = gpu_load(model_id, &v->g, err);
    if (status != EV_OK) {
        free(v);
        return status;
    }
    set_properties(&v->base, v->g, model_id);
    *out = v;
    return EV_OK;
}

ev_status device_vm_open(const char *model_id, device **out, ev_error *err) {
    device_vm *v = NULL;
    EV_TRY(open_model(model_id, &v, err));
    ev_status status = vm_memory_new(v->base.properties.memory_bytes, &v->memory, err);
    if (status == EV_OK)
        *out = &v->base;
    else
        vm_close(&v->base);
    return status;
}

static ev_status take_memories(uint32_t count, device *const *devices, ev_error *err) {
    vm_memory **memories = calloc((size_t)count + 1, sizeof(vm_memory *));
    if (memories == NULL)
        return ev_fail_memory(err, count * sizeof(vm_memory *));
    uint64_t bytes = devices[0]->properties.memory_bytes;
    ev_status status = vm_memory_new_peers(bytes, count, memories, err);
    for (uint32_t i = 0; status == EV_OK && i < count; i++)
        vm_of(devices[i])->memory = memories[i];
    for (uint32_t i = 0; count > 1 && i < count; i++)
        (void)snprintf(devices[i]->properties.placement, sizeof devices[i]->properties.placement,
                       "%u ranks in the virtual machine, a memory each", count);
    free(memories);
    return status;
}

ev_status device_vm_open_ranks(const char *model_id, uint32_t count, device **out, ev_error *err) {
    ev_status status = EV_OK;
    uint32_t made = 0;
    for (; status == EV_OK && made < count; made++) {
        device_vm *v = NULL;
        status = open_model(model_id, &v, err);
        out[made] = (device *)v;
    }
    if (status == EV_OK)
        status = take_memories(count, out, err);
    for (uint32_t i = 0; status != EV_OK && i < made; i++) {
        device_close(out[i]);
        out[i] = NULL;
    }
    return status;
}
