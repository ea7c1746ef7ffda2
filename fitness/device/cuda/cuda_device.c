/* The device cuda:N: opening and properties. */
#include "fitness/device/cuda/cuda.h"

#include "fitness/model/gpu_match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds a launch may take: a kernel that is worth tuning ends well before. Where the GPU is the
 * stand-in's, seconds are the virtual machine's. */
#define WATCHDOG_SECONDS 10
#define WATCHDOG_MODELLED 600

ev_status cuda_check(const cuda_device *c, CUresult result, const char *what, ev_error *err) {
    char text[200];
    if (result == CUDA_SUCCESS)
        return EV_OK;
    return ev_fail(err, EV_INFRA, "%s: %s: %s", c->base.properties.id, what,
                   cu_error_text(&c->cu, result, text, sizeof text));
}

ev_status cuda_enter(const cuda_device *c, ev_error *err) {
    if (c->dead)
        return ev_fail(
            err, EV_INFRA,
            "%s was given up after an endless kernel or a failure of the driver; another "
            "process has to open it",
            c->base.properties.id);
    return cuda_check(c, c->cu.cuCtxSetCurrent(c->context), "cuCtxSetCurrent", err);
}

bool cuda_is_fault(CUresult result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* ---- its end ---- */

static uint64_t cuda_rebuilds(const device *d) {
    return cuda_of_const(d)->rebuilds;
}

static bool cuda_is_spent(const device *d) {
    return cuda_of_const(d)->dead;
}

/* What a group knows of its members lasts as long as the last of them. */
static void cuda_close(device *d) {
    cuda_device *c = cuda_of(d);
    bool last = c->group == NULL || c->group->alive == 1;
    cuda_clear(d);
    nvml_close(c->clocks);
    free(c->buffers);
    c->buffers = NULL;
    c->room = 0;
    cuda_codes_free(&c->codes);
    cuda_leave_group(c);
    if (!c->dead)
        cu_driver_close(&c->cu);
    if (last)
        free(c);
}

static const uint64_t *cuda_stored(const device *d, size_t *count) {
    (void)d;
    *count = 0;
    return NULL;
}

/* ---- the twin ---- */

static ev_status choose_twin(device_properties *p, int sm_count, ev_error *err) {
    const gpu_seen seen = {
        .name = p->name, .sm = p->sm, .sm_count = sm_count, .memory_bytes = p->memory_bytes};
    gpu_match match;
    EV_TRY(gpu_match_driver(&seen, &match, err));
    (void)snprintf(p->twin, sizeof p->twin, "vm:%.60s", match.id);
    (void)snprintf(p->twin_note, sizeof p->twin_note, "%s", match.note);
    p->twin_is_same = match.is_same;
    p->sm = match.sm; /* candidates are compiled for what both take */
    return EV_OK;
}

/* ---- properties ---- */

static CUresult attribute(const cuda_device *c, cu_device_attribute which, uint32_t *out) {
    int value = 0;
    CUresult result = c->cu.cuDeviceGetAttribute(&value, (int)which, c->ordinal);
    *out = (uint32_t)value;
    return result;
}

static CUresult read_properties(cuda_device *c, uint32_t *sm_count) {
    device_properties *p = &c->base.properties;
    uint32_t major = 0, minor = 0, l2 = 0;
    size_t bytes = 0;
    const struct {
        cu_device_attribute which;
        uint32_t *to;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &p->max_threads_per_block},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &p->max_shared_per_block},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, sm_count},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && result == CUDA_SUCCESS; i++)
        result = attribute(c, wanted[i].which, wanted[i].to);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuDeviceGetName(p->name, sizeof p->name, c->ordinal);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuDeviceTotalMem_v2(&bytes, c->ordinal);
    c->capability = p->sm = (int)(major * 10 + minor);
    p->memory_bytes = bytes;
    p->max_registers_per_thread = 255;
    p->all_blocks = true;
    p->modelled = strstr(p->name, "(modelled)") != NULL; /* so the stand-in calls its devices */
    /* the stand-in has no cache that lasts from one launch to the next */
    c->flush_bytes = p->modelled ? 4096 : 2 * (uint64_t)l2;
    return result;
}

static ev_status need_twin(device_properties *p, int sm_count, const cuda_device *like,
                           ev_error *err) {
    if (like == NULL || strcmp(like->base.properties.name, p->name) != 0)
        return choose_twin(p, sm_count, err);
    memcpy(p->twin, like->base.properties.twin, sizeof p->twin);
    p->twin_is_same = like->base.properties.twin_is_same;
    memcpy(p->twin_note, like->base.properties.twin_note, sizeof p->twin_note);
    p->sm = like->base.properties.sm;
    return EV_OK;
}

static ev_status describe(cuda_device *c, const cuda_device *like, ev_error *err) {
    uint32_t sm_count = 0;
    char bus[32] = "";
    EV_TRY(cuda_check(c, read_properties(c, &sm_count), "reading its properties", err));
    if (c->cu.cuDriverGetVersion(&c->version) == CUDA_SUCCESS)
        (void)snprintf(c->base.properties.driver, sizeof c->base.properties.driver,
                       "CUDA driver %d.%d", c->version / 1000, c->version % 1000 / 10);
    if (c->cu.cuDeviceGetPCIBusId != NULL &&
        c->cu.cuDeviceGetPCIBusId(bus, sizeof bus, c->ordinal) == CUDA_SUCCESS)
        c->clocks = nvml_open(bus);
    return need_twin(&c->base.properties, (int)sm_count, like, err);
}

/* ---- opening ---- */

static const device_ops CUDA_OPS = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .clear = cuda_clear,
    .address = cuda_address,
    .write = cuda_write,
    .read = cuda_read,
    .host = cuda_host,
    .reset = cuda_reset,
    .written = cuda_written,
    .load = cuda_load,
    .unload = cuda_unload,
    .fill = cuda_fill,
    .check = cuda_fits,
    .run = cuda_run,
    .run_ranks = cuda_run_ranks,
    .time = cuda_time,
    .time_sequence = cuda_time_sequence,
    .time_ranks_sequence = cuda_time_ranks,
    .stored = cuda_stored,
    .number = cuda_number,
    .rebuilds = cuda_rebuilds,
    .is_spent = cuda_is_spent,
};

static double watchdog_seconds(const device_properties *p) {
    const char *text = getenv("EVOKE_WATCHDOG");
    double seconds = text != NULL ? strtod(text, NULL) : 0;
    if (seconds > 0)
        return seconds;
    if (p->modelled)
        return WATCHDOG_MODELLED;
    return WATCHDOG_SECONDS;
}

static ev_status open_ordinal(cuda_device *c, const char *ordinal, const cuda_device *like,
                              ev_error *err) {
    char *end = NULL;
    long number = strtol(ordinal, &end, 10);
    int count = 0;
    EV_TRY(cuda_check(c, c->cu.cuDeviceGetCount(&count), "cuDeviceGetCount", err));
    if (end == ordinal || *end != '\0' || number < 0 || number >= count)
        return ev_fail(err, EV_BAD, "no device 'cuda:%s'; the driver has %d, from cuda:0 on",
                       ordinal, count);
    EV_TRY(cuda_check(c, c->cu.cuDeviceGet(&c->ordinal, (int)number), "cuDeviceGet", err));
    EV_TRY(describe(c, like, err));
    c->watchdog = watchdog_seconds(&c->base.properties);
    /* the stand-in takes no machine code, unless one is named that gives it what it takes */
    if (!c->base.properties.modelled || getenv("EVOKE_PTXAS") != NULL)
        ptxas_find(&c->assembler);
    c->assembler.seconds = fmin(c->assembler.seconds, c->watchdog);
    return EV_OK;
}

ev_status cuda_open_bare(const char *ordinal, const cuda_device *like, cuda_device **out,
                         ev_error *err) {
    cuda_device *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ev_fail_memory(err, sizeof *c);
    c->base.ops = &CUDA_OPS;
    (void)snprintf(c->base.properties.id, sizeof c->base.properties.id, "cuda:%.40s", ordinal);
    ev_status status = cuda_driver_open(&c->cu, err);
    if (status == EV_OK)
        status = open_ordinal(c, ordinal, like, err);
    if (status != EV_OK) {
        cuda_close(&c->base);
        return status;
    }
    *out = c;
    return EV_OK;
}

ev_status device_cuda_open(const char *ordinal, device **out, ev_error *err) {
    return device_cuda_open_ranks(ordinal, 1, out, err);
}

size_t device_cuda_count(void) {
    cu_driver cu;
    ev_error none;
    int count = 0;
    if (cuda_driver_open(&cu, &none) != EV_OK)
        return 0;
    if (cu.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        count = 0;
    cu_driver_close(&cu);
    return (size_t)count;
}
