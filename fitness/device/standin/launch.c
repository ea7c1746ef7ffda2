/* Launches: what a function needs, whether a launch fits, its run in the virtual machine with its
 * modelled time, and what a trap means in the driver's words. */
#include "fitness/device/standin/standin.h"

#include <stdlib.h>
#include <string.h>

/* ---- functions ---- */

static int max_threads(const sd_function *f) {
    const gpu *g = sd_device_of(f->base.context)->g;
    int most = (int)gpu_get(g, GPU_MAX_THREADS);
    if (f->entry->max_threads > 0 && (int)f->entry->max_threads < most)
        most = (int)f->entry->max_threads;
    int by_registers = (int)(gpu_get(g, GPU_REGISTERS_SM) / f->registers) / 32 * 32;
    return by_registers < most ? by_registers : most;
}

CUresult sd_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    const sd_function *f = sd_find(function, SD_FUNCTION);
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t constants = 0;
    (void)vm_module_constants(f->module->code, &constants);
    const int values[] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = max_threads(f),
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)f->entry->shared_bytes,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)constants,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)f->entry->local_bytes,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = (int)f->registers,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = vm_module_sm(f->module->code),
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = sd_device_of(f->base.context)->g->sm,
        [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = 0,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = (int)f->dynamic_most,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = f->carveout,
    };
    if (attribute < 0 || attribute >= (int)(sizeof values / sizeof values[0]))
        return CUDA_ERROR_INVALID_VALUE;
    *value = values[attribute];
    return CUDA_SUCCESS;
}

CUresult sd_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    double most = gpu_get(sd_device_of(f->base.context)->g, GPU_SHARED_BLOCK);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 &&
        value <= 100) {
        f->carveout = value;
        return CUDA_SUCCESS;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (double)value + f->entry->shared_bytes > most)
        return CUDA_ERROR_INVALID_VALUE;
    f->dynamic_most = (uint32_t)value;
    return CUDA_SUCCESS;
}

CUresult sd_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    if (sd_find(function, SD_FUNCTION) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sd_cuFuncGetModule(CUmodule *module, CUfunction function) {
    const sd_function *f = sd_find(function, SD_FUNCTION);
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *module = (CUmodule)f->module->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuFuncGetName(const char **name, CUfunction function) {
    const sd_function *f = sd_find(function, SD_FUNCTION);
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->entry->name;
    return CUDA_SUCCESS;
}

/* A setting of before sm_50, ignored as there. */
CUresult sd_cuFuncSetSharedMemConfig(CUfunction function, int config) {
    if (sd_find(function, SD_FUNCTION) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sd_cuFuncLoad(CUfunction function) {
    return sd_find(function, SD_FUNCTION) == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult sd_cuFuncIsLoaded(int *loaded, CUfunction function) {
    if (loaded == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *loaded = 1;
    return sd_cuFuncLoad(function);
}

/* ---- occupancy ---- */

static model_occupancy occupancy_of(const sd_function *f, const uint32_t block[3],
                                    uint32_t dynamic) {
    const uint32_t grid[3] = {1u << 20, 1, 1}; /* never the limit */
    return model_occupancy_of(sd_device_of(f->base.context)->g, f->entry, f->registers, grid, block,
                              dynamic);
}

CUresult sd_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                        int block_size, size_t shared) {
    const sd_function *f = sd_find(function, SD_FUNCTION);
    if (blocks == NULL || block_size <= 0 || shared > UINT32_MAX / 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const uint32_t block[3] = {(uint32_t)block_size, 1, 1};
    bool fits = block_size <= max_threads(f);
    *blocks = fits ? (int)occupancy_of(f, block, (uint32_t)shared).blocks_per_sm : 0;
    return CUDA_SUCCESS;
}

CUresult sd_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                 int block_size, size_t shared,
                                                                 unsigned flags) {
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE
                     : sd_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size,
                                                                      shared);
}

CUresult sd_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                             CUoccupancyB2DSize shared_of, size_t shared,
                                             int limit) {
    const sd_function *f = sd_find(function, SD_FUNCTION);
    if (grid == NULL || block == NULL || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    int most = limit > 0 && limit < max_threads(f) ? limit : max_threads(f), best = 0;
    *grid = *block = 0;
    for (int size = most; size > 0; size = (size - 1) / 32 * 32) {
        int blocks = 0;
        size_t dynamic = shared_of != NULL ? shared_of(size) : shared;
        (void)sd_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, size, dynamic);
        if (blocks * size <= best)
            continue;
        best = blocks * size;
        *block = size;
        *grid = blocks * (int)gpu_get(sd_device_of(f->base.context)->g, GPU_SM_COUNT);
    }
    return CUDA_SUCCESS;
}

/* ---- giving a launch to the queue ---- */

static CUresult check_launch(const sd_function *f, const uint32_t *grid, const uint32_t *block,
                             uint32_t shared) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (threads == 0 || blocks == 0 || grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 ||
        block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (f->entry->max_threads > 0 && threads > f->entry->max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (shared > f->dynamic_most)
        return CUDA_ERROR_INVALID_VALUE;
    if (blocks > UINT32_MAX) /* more than the machine counts */
        return CUDA_ERROR_NOT_SUPPORTED;
    return occupancy_of(f, block, shared).blocks_per_sm == 0 ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                             : CUDA_SUCCESS;
}

/* A grid that fits the device as a whole is alive as a whole: only then may blocks wait for each
 * other. */
static bool fits_as_a_whole(const sd_function *f, const uint32_t *grid, const uint32_t *block,
                            uint32_t shared) {
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    double sms = gpu_get(sd_device_of(f->base.context)->g, GPU_SM_COUNT);
    return (double)blocks <= sms * occupancy_of(f, block, shared).blocks_per_sm;
}

static CUresult pack_each(const vm_entry *e, void **params, char *block) {
    for (size_t i = 0; i < e->param_count; i++) {
        if (params == NULL || params[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(block + e->params[i].offset, params[i], e->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult pack_extra(const vm_entry *e, void **extra, char *block) {
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != NULL)
            memcpy(&bytes, extra[1], sizeof bytes);
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (buffer == NULL || bytes < e->param_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(block, buffer, e->param_bytes);
    return CUDA_SUCCESS;
}

static CUresult push_launch(sd_function *f, const uint32_t *grid, const uint32_t *block,
                            uint32_t shared, sd_stream *on, void *params) {
    sd_entry *e = sd_entry_new(SD_DO_LAUNCH, on);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->launch.function = f;
    memcpy(e->launch.grid, grid, sizeof e->launch.grid);
    memcpy(e->launch.block, block, sizeof e->launch.block);
    e->launch.shared = shared;
    e->launch.params = params;
    e->launch.timed = sd_get()->timed_events > 0;
    e->launch.print_most = on->base.context->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    e->launch.turn.context = on->base.context;
    (void)pthread_cond_init(&e->launch.turn.mine, NULL);
    sd_push(e);
    return CUDA_SUCCESS;
}

CUresult sd_cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **params, void **extra) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    sd_stream *on = sd_stream_of(stream);
    if (f == NULL || on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (f->base.context != sd_current() || on->base.context != sd_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (params != NULL && extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    sd_block(on->base.context, &f->ran, true);
    CUresult result = check_launch(f, grid, block, shared);
    if (result != CUDA_SUCCESS)
        return result;
    char *packed = calloc(1, f->entry->param_bytes + 8);
    if (packed == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result =
        extra != NULL ? pack_extra(f->entry, extra, packed) : pack_each(f->entry, params, packed);
    if (result == CUDA_SUCCESS)
        result = push_launch(f, grid, block, shared, on, packed);
    if (result != CUDA_SUCCESS)
        free(packed);
    return result;
}

/* Blocks of a cooperative grid may wait for each other: all of them have to be alive at once. */
static CUresult check_cooperative(const sd_function *f, const uint32_t *grid, const uint32_t *block,
                                  uint32_t shared) {
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = check_launch(f, grid, block, shared);
    if (result != CUDA_SUCCESS)
        return result;
    return fits_as_a_whole(f, grid, block, shared) ? CUDA_SUCCESS
                                                   : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

CUresult sd_cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      CUstream stream, void **params) {
    const uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    CUresult result = check_cooperative(sd_find(function, SD_FUNCTION), grid, block, shared);
    return result != CUDA_SUCCESS
               ? result
               : sd_cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

static bool is_one(const unsigned *cluster) {
    return cluster[0] <= 1 && cluster[1] <= 1 && cluster[2] <= 1;
}

/* What only speeds a launch up, or lets it overlap with others, needs nothing here. */
static CUresult heed_attribute(const CUlaunchAttribute *a, bool *cooperative) {
    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        *cooperative = a->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return is_one(a->value.cluster) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return CUDA_SUCCESS;
    default:
        sd_say("cuLaunchKernelEx: attribute %d is not supported", a->id);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sd_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params,
                             void **extra) {
    bool cooperative = false;
    CUresult result = CUDA_SUCCESS;
    if (c == NULL || (c->numAttrs > 0 && c->attrs == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs && result == CUDA_SUCCESS; i++)
        result = heed_attribute(&c->attrs[i], &cooperative);
    const uint32_t grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
    const uint32_t block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
    if (result == CUDA_SUCCESS && cooperative)
        result = check_cooperative(sd_find(function, SD_FUNCTION), grid, block, c->sharedMemBytes);
    if (result != CUDA_SUCCESS)
        return result;
    return sd_cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                             c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, params,
                             extra);
}

/* ---- a launch's turn ---- */

static CUresult error_of(vm_trap_kind kind) {
    switch (kind) {
    case VM_TRAP_OUT_OF_BOUNDS:
    case VM_TRAP_READ_ONLY_WRITE:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case VM_TRAP_MISALIGNED:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case VM_TRAP_DEADLOCK:
    case VM_TRAP_LIVELOCK:
    case VM_TRAP_FUEL:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case VM_TRAP_STACK_OVERFLOW:
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case VM_TRAP_BAD_CALL:
        return CUDA_ERROR_INVALID_PC;
    case VM_TRAP_ASSERTION:
        return CUDA_ERROR_ASSERT;
    case VM_TRAP_ILLEGAL_INSTRUCTION:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static uint32_t resident_blocks(const sd_function *f, const vm_launch *l) {
    bool fits = fits_as_a_whole(f, l->grid, l->block, l->dynamic_shared);
    return fits ? l->grid[0] * l->grid[1] * l->grid[2] : 0;
}

static void set_buffers(model *m, const vm_launch *l) {
    model_buffer found[32];
    size_t count = 0;
    uint64_t value = 0;
    for (uint32_t at = 0; vm_entry_next_word(l->entry, l->params, &at, &value);) {
        const sd_buffer *b = sd_buffer_at(value, 0);
        if (b != NULL && count < sizeof found / sizeof found[0])
            found[count++] = (model_buffer){b->address, b->bytes};
    }
    model_set_buffers(m, found, count);
}

/* Passes the turn on after each stretch that it is told of, and tells the model. */
typedef struct passing {
    sd_turn *turn;
    const vm_observer *inner; /* NULL: none */
} passing;

static void pass_block_begin(void *context, uint32_t block, uint32_t warps) {
    const passing *p = context;
    if (p->inner != NULL && p->inner->block_begin != NULL)
        p->inner->block_begin(p->inner->context, block, warps);
}

static void pass_batch(void *context, const vm_batch *batch) {
    const passing *p = context;
    if (p->inner != NULL && p->inner->batch != NULL)
        p->inner->batch(p->inner->context, batch);
    sd_turn_pass(p->turn);
}

static void pass_block_end(void *context, uint32_t block) {
    const passing *p = context;
    if (p->inner != NULL && p->inner->block_end != NULL)
        p->inner->block_end(p->inner->context, block);
}

static ev_status run_in_turns(sd_entry *e, vm_launch *l, vm_result *result, ev_error *err) {
    passing p = {.turn = &e->launch.turn, .inner = l->observer};
    const vm_observer observer = {.context = &p,
                                  .block_begin = pass_block_begin,
                                  .batch = pass_batch,
                                  .block_end = pass_block_end};
    if (p.turn->passes)
        l->observer = &observer;
    return vm_run(sd_get()->memory, l, result, err);
}

/* What one model after another works in; NULL: none is to spare. It belongs to who has the turn. */
static model_scratch *spare;

static ev_status take_scratch(model_scratch **out, ev_error *err) {
    *out = spare;
    spare = NULL;
    return *out != NULL ? EV_OK : model_scratch_new(out, err);
}

static void give_scratch(model_scratch *scratch) {
    model_scratch_free(spare); /* of a kernel that ran beside */
    spare = scratch;
}

static ev_status run_timed(sd_entry *e, vm_launch *l, model *m, vm_result *result, double *ns,
                           ev_error *err) {
    model_time time;
    set_buffers(m, l);
    l->observer = model_observer(m);
    EV_TRY(run_in_turns(e, l, result, err));
    if (!result->ok)
        return EV_OK;
    EV_TRY(model_finish(m, result, &time, err));
    *ns = time.ns;
    return EV_OK;
}

static ev_status run(sd_entry *e, vm_launch *l, vm_result *result, double *ns, ev_error *err) {
    sd_function *f = e->launch.function;
    const gpu *g = sd_device_of(f->base.context)->g;
    model_scratch *scratch = NULL;
    model *m = NULL;
    if (!e->launch.timed)
        return run_in_turns(e, l, result, err);
    if (f->code == NULL)
        EV_TRY(model_code_new(g, l->module, l->entry, &f->code, err));
    EV_TRY(take_scratch(&scratch, err));
    ev_status status = model_new_of(f->code, l, scratch, &m, err);
    if (status == EV_OK)
        status = run_timed(e, l, m, result, ns, err);
    model_free(m);
    give_scratch(scratch);
    return status;
}

static void copy_constants(const sd_module *m) {
    uint64_t bytes = 0;
    void *to = vm_module_constants(m->code, &bytes);
    const sd_buffer *from = sd_buffer_at(m->constants, bytes);
    if (bytes > 0 && from != NULL)
        memcpy(to, from->host, bytes);
}

CUresult sd_run_launch(sd_entry *e, double *ns) {
    const sd_function *f = e->launch.function;
    const sd_config *config = &sd_get()->config;
    vm_launch l = {.module = f->module->code,
                   .entry = f->entry,
                   .dynamic_shared = e->launch.shared,
                   .params = e->launch.params,
                   .fuel = config->fuel,
                   .checks = config->races ? VM_CHECK_RACES : VM_CHECK_NONE,
                   .host_writes = true,
                   .clock_cycles = e->launch.cycles,
                   .timer_ns = e->launch.timer_ns,
                   .timer_grain = sd_timer_grain(),
                   .print = sd_print,
                   .print_context = e,
                   .globals = f->module->globals};
    memcpy(l.grid, e->launch.grid, sizeof l.grid);
    memcpy(l.block, e->launch.block, sizeof l.block);
    l.resident_blocks = resident_blocks(f, &l);
    copy_constants(f->module);
    vm_result result;
    ev_error err;
    ev_status status = run(e, &l, &result, ns, &err);
    if (status != EV_OK) {
        sd_say("%s: %s", f->entry->name, err.text);
        return status == EV_BAD ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->launch.ticks = result.counters.thread_instructions / 32;
    if (result.ok)
        return CUDA_SUCCESS;
    sd_say("device %d, %s: %s", f->base.context->device, f->entry->name, result.trap.message);
    return error_of(result.trap.kind);
}
