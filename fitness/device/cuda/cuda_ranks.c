/* Ranks on GPUs: each on a GPU of its own where there are several of one model that reach each
 * other's memory, else several on one GPU, in one context on a stream each. */
#include "fitness/device/cuda/cuda_ranks.h"

#include "base/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Streams of one GPU that the hardware has queues for (CUDA_DEVICE_MAX_CONNECTIONS); kernels of
 * more could stand behind one that waits for them. */
#define RANKS_A_GPU 32
#define GPUS_MOST 64

/* ---- which GPUs ---- */

typedef struct gpu_set {
    int ordinals[GPUS_MOST];
    uint32_t count;
    bool no_atomics; /* between some of them */
    char why[100];   /* there are no more */
} gpu_set;

static bool reach_each_other(const cu_driver *cu, int a, int b) {
    int there = 0, back = 0;
    return cu->cuDeviceCanAccessPeer != NULL && cu->cuCtxEnablePeerAccess != NULL &&
           cu->cuDeviceCanAccessPeer(&there, a, b) == CUDA_SUCCESS && there &&
           cu->cuDeviceCanAccessPeer(&back, b, a) == CUDA_SUCCESS && back;
}

/* A link may take loads and stores but no atomics, which then are none: PCIe does. */
static bool has_atomics(const cu_driver *cu, int a, int b) {
    int value = 0;
    return cu->cuDeviceGetP2PAttribute == NULL ||
           cu->cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, a,
                                       b) != CUDA_SUCCESS ||
           value != 0;
}

/* May GPU `o` join the others? */
static bool joins(const cuda_device *c, gpu_set *set, int o) {
    char name[128] = "";
    CUresult result = c->cu.cuDeviceGetName(name, sizeof name, o);
    if (result != CUDA_SUCCESS || strcmp(name, c->base.properties.name) != 0) {
        (void)snprintf(set->why, sizeof set->why, "cuda:%d is another model", o);
        return false;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (!reach_each_other(&c->cu, set->ordinals[i], o)) {
            (void)snprintf(set->why, sizeof set->why, "cuda:%d and cuda:%d have no peer access",
                           set->ordinals[i], o);
            return false;
        }
    }
    return true;
}

/* From the GPU that was asked for on, and round. */
static ev_status choose_gpus(const cuda_device *c, uint32_t ranks, gpu_set *set, ev_error *err) {
    int count = 0;
    EV_TRY(cuda_check(c, c->cu.cuDeviceGetCount(&count), "cuDeviceGetCount", err));
    *set = (gpu_set){.ordinals = {c->ordinal}, .count = 1};
    (void)snprintf(set->why, sizeof set->why, "there is no other");
    for (int i = 1; i < count && set->count < ranks && set->count < GPUS_MOST; i++) {
        int o = (c->ordinal + i) % count;
        if (!joins(c, set, o))
            continue;
        for (uint32_t k = 0; k < set->count; k++)
            set->no_atomics = set->no_atomics || !has_atomics(&c->cu, set->ordinals[k], o) ||
                              !has_atomics(&c->cu, o, set->ordinals[k]);
        set->ordinals[set->count++] = o;
    }
    if (ranks <= set->count * RANKS_A_GPU)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%u ranks on %u GPU%s: at most %u on each; take vm:MODEL", ranks,
                   set->count, set->count == 1 ? "" : "s", RANKS_A_GPU);
}

static void say_where(const gpu_set *set, uint32_t ranks, device_properties *p) {
    size_t room = sizeof p->placement;
    if (set->count == 1) {
        (void)snprintf(p->placement, room, "%u ranks on one GPU, cuda:%d, a stream each: %s", ranks,
                       set->ordinals[0], set->why);
        return;
    }
    (void)snprintf(p->placement, room, "%u ranks on %u GPUs with peer access, cuda:%d", ranks,
                   set->count, set->ordinals[0]);
    for (uint32_t i = 1; i < set->count; i++) {
        size_t used = strlen(p->placement);
        (void)snprintf(p->placement + used, room - used, ", cuda:%d", set->ordinals[i]);
    }
    size_t used = strlen(p->placement);
    (void)snprintf(p->placement + used, room - used, "%s",
                   set->no_atomics ? " (their link has no atomics)" : "");
    used = strlen(p->placement);
    if (ranks > set->count)
        (void)snprintf(p->placement + used, room - used, "; those on one have a stream each: %s",
                       set->why);
}

/* ---- opening ---- */

static ev_status open_members(const char *ordinal, uint32_t count, cuda_device **members,
                              ev_error *err) {
    gpu_set set;
    EV_TRY(cuda_open_bare(ordinal, NULL, &members[0], err));
    EV_TRY(choose_gpus(members[0], count, &set, err));
    for (uint32_t i = 1; i < count; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", set.ordinals[i % set.count]);
        EV_TRY(cuda_open_bare(text, members[0], &members[i], err));
    }
    for (uint32_t i = 0; i < count && count > 1; i++)
        say_where(&set, count, &members[i]->base.properties);
    return cuda_make_contexts(members, count, err);
}

ev_status device_cuda_open_ranks(const char *ordinal, uint32_t count, device **out, ev_error *err) {
    cuda_device **members = calloc(count, sizeof(cuda_device *));
    if (members == NULL)
        return ev_fail_memory(err, count * sizeof(cuda_device *));
    ev_status status = open_members(ordinal, count, members, err);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = status == EV_OK ? &members[i]->base : NULL;
        if (status != EV_OK)
            device_close((device *)members[i]);
    }
    free(members);
    return status;
}

/* ---- a launch of ranks ---- */

typedef cuda_rank rank;

static ev_status check_group(device *const *devices, uint32_t count, ev_error *err) {
    const cuda_group *g = cuda_of(devices[0])->group;
    for (uint32_t i = 0; i < count; i++) {
        bool twice = false;
        for (uint32_t k = 0; k < i; k++)
            twice = twice || devices[k] == devices[i];
        if (twice || cuda_of(devices[i])->group != g)
            return ev_fail(err, EV_BAD,
                           "rank %u on %s: ranks run side by side on devices of one "
                           "device_open_ranks, each on its own",
                           i, devices[i]->properties.id);
    }
    return EV_OK;
}

ev_status cuda_rank_need_function(rank *r, ev_error *err) {
    cuda_device *owner = cuda_of(r->kernel->owner);
    if (owner->context != r->c->context) {
        EV_TRY(cuda_enter(r->c, err));
        return cuda_load_copy(r->c, r->kernel, &r->copy, &r->function, err);
    }
    EV_TRY(cuda_enter(owner, err));
    EV_TRY(cuda_need_kernel(owner, r->kernel, err));
    r->function = ((const cuda_kernel *)r->kernel->own)->function;
    return EV_OK;
}

/* The share of the GPU's places for blocks that the launch takes, where the driver tells. */
static double share_of(const rank *r) {
    const device_launch *l = r->launch;
    const cu_driver *cu = &r->c->cu;
    double sms = 0;
    int a_block = (int)(l->block[0] * l->block[1] * l->block[2]), blocks = 0;
    if (cu->cuOccupancyMaxActiveBlocksPerMultiprocessor == NULL ||
        !cuda_number(&r->c->base, GPU_SM_COUNT, &sms) ||
        cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, r->function, a_block,
                                                        l->dynamic_shared) != CUDA_SUCCESS ||
        blocks <= 0)
        return 0;
    return (double)l->grid[0] * l->grid[1] * l->grid[2] / (sms * blocks);
}

/* Ranks that share a GPU may wait for each other: all of their blocks have to be there at once, or
 * the launch would never end. */
static ev_status check_room(const rank *ranks, uint32_t count, ev_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        double share = 0;
        uint32_t sharing = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (ranks[k].c->context != ranks[i].c->context)
                continue;
            EV_TRY(cuda_enter(ranks[k].c, err));
            share += share_of(&ranks[k]);
            sharing++;
        }
        if (sharing > 1 && share > 1)
            return ev_fail(err, EV_BAD,
                           "the blocks of %u ranks would fill %s %.1f times, and ranks that wait "
                           "for each other have to be there together; launch fewer blocks, or take "
                           "a GPU for each rank",
                           sharing, ranks[i].c->base.properties.id, share);
    }
    return EV_OK;
}

/* What was given to default streams is done, and nothing that was read before holds any more. */
static ev_status settle(const rank *ranks, uint32_t count, ev_error *err) {
    const cuda_group *g = ranks[0].c->group;
    for (uint32_t i = 0; i < g->count; i++) {
        for (size_t b = 0; b < g->members[i]->count; b++)
            g->members[i]->buffers[b].is_mirrored = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const cuda_device *c = ranks[i].c;
        EV_TRY(cuda_enter(c, err));
        EV_TRY(cuda_check(c, c->cu.cuCtxSynchronize(), "cuCtxSynchronize", err));
    }
    return EV_OK;
}

static CUresult begin(const rank *r) {
    const cuda_device *c = r->c;
    CUresult result = c->cu.cuCtxSetCurrent(c->context);
    if (result == CUDA_SUCCESS)
        result = cuda_launch_function(c, r->function, r->kernel, r->launch);
    return result == CUDA_SUCCESS ? c->cu.cuEventRecord(c->done, c->stream) : result;
}

/* How many have not ended. */
static uint32_t look(rank *ranks, uint32_t count) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        rank *r = &ranks[i];
        if (r->result != CUDA_ERROR_NOT_READY)
            continue;
        CUresult entered = r->c->cu.cuCtxSetCurrent(r->c->context);
        r->result = entered != CUDA_SUCCESS ? entered : r->c->cu.cuEventQuery(r->c->done);
        left += r->result == CUDA_ERROR_NOT_READY;
    }
    return left;
}

/* Until all have ended, or the watchdog's time is over. */
static void run_all(rank *ranks, uint32_t count) {
    double begun = ev_clock_now(), waited = 0;
    for (uint32_t i = 0; i < count; i++) {
        ranks[i].result = begin(&ranks[i]);
        if (ranks[i].result == CUDA_SUCCESS)
            ranks[i].result = CUDA_ERROR_NOT_READY;
    }
    while (look(ranks, count) > 0 && waited < ranks[0].c->watchdog) {
        cuda_nap(waited);
        waited = ev_clock_now() - begun;
    }
}

/* ---- what came of it ---- */

/* The rank whose result says the most: a failure of the driver, then a kernel's fault, then one
 * that did not end; NULL: all went well. */
static rank *find_worst(rank *ranks, uint32_t count) {
    rank *fault = NULL, *hangs = NULL;
    for (uint32_t i = 0; i < count; i++) {
        rank *r = &ranks[i];
        if (r->result == CUDA_ERROR_NOT_READY)
            hangs = hangs != NULL ? hangs : r;
        else if (cuda_is_fault(r->result))
            fault = fault != NULL ? fault : r;
        else if (r->result != CUDA_SUCCESS)
            return r;
    }
    return fault != NULL ? fault : hangs;
}

/* Which ranks it may have been: a fault in a context is that of all kernels in it. */
static void name_ranks(const rank *ranks, uint32_t count, const rank *at, char *text, size_t room) {
    (void)snprintf(text, room, "; rank %td", at - ranks);
    for (const rank *r = at + 1; r < ranks + count; r++) {
        size_t used = strlen(text);
        if (r->c->context == at->c->context && r->result == at->result)
            (void)snprintf(text + used, room - used, " or %td", r - ranks);
    }
}

/* Some kernels may still wait for the one that is gone: then the devices are of no use any more. */
static ev_status judge(rank *ranks, uint32_t count, device_outcome *out, ev_error *err) {
    rank *worst = find_worst(ranks, count);
    *out = (device_outcome){.ok = worst == NULL};
    if (worst == NULL)
        return EV_OK;
    char names[200];
    name_ranks(ranks, count, worst, names, sizeof names);
    bool hang = false;
    for (uint32_t i = 0; i < count; i++)
        hang = hang || ranks[i].result == CUDA_ERROR_NOT_READY;
    if (hang)
        cuda_give_up(worst->c);
    if (cuda_is_refused(worst->result))
        return ev_wrap(err, cuda_fail_refused(worst->c, worst->result, err), "rank %td",
                       worst - ranks);
    EV_TRY(cuda_judge(worst->c, worst->kernel, worst->result, out, err));
    out->fault.rank = (uint32_t)(worst - ranks);
    size_t used = strlen(out->fault.message);
    (void)snprintf(out->fault.message + used, sizeof out->fault.message - used, "%s", names);
    return EV_OK;
}

/* Canaries and inputs of all ranks. */
static ev_status inspect(const rank *ranks, uint32_t count, device_outcome *out, ev_error *err) {
    for (uint32_t i = 0; i < count && out->ok; i++) {
        EV_TRY(cuda_enter(ranks[i].c, err));
        EV_TRY(cuda_inspect(ranks[i].c, true, &out->fault, err));
        out->ok = out->fault.kind == VM_TRAP_NONE;
        out->fault.rank = i;
    }
    return EV_OK;
}

static ev_status run_ranks(rank *ranks, uint32_t count, device_outcome *out, ev_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        ev_status status = cuda_rank_need_function(&ranks[i], err);
        if (status != EV_OK)
            return ev_wrap(err, status, "rank %u", i);
    }
    EV_TRY(check_room(ranks, count, err));
    EV_TRY(settle(ranks, count, err));
    run_all(ranks, count);
    EV_TRY(judge(ranks, count, out, err));
    return out->ok ? inspect(ranks, count, out, err) : EV_OK;
}

void cuda_ranks_drop_copies(const rank *ranks, uint32_t count, uint64_t rebuilds) {
    ev_error ignored;
    for (uint32_t i = 0; i < count; i++) {
        const cuda_device *c = ranks[i].c;
        if (ranks[i].copy != NULL && c->rebuilds == rebuilds && cuda_enter(c, &ignored) == EV_OK)
            (void)c->cu.cuModuleUnload(ranks[i].copy);
    }
}

ev_status cuda_run_ranks(device *const *devices, const device_kernel *const *kernels,
                         const device_launch *launches, uint32_t count, device_outcome *out,
                         ev_error *err) {
    EV_TRY(check_group(devices, count, err));
    rank *ranks = calloc(count, sizeof *ranks);
    if (ranks == NULL)
        return ev_fail_memory(err, count * sizeof *ranks);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = (rank){.c = cuda_of(devices[i]), .kernel = kernels[i], .launch = &launches[i]};
    uint64_t rebuilds = ranks[0].c->rebuilds;
    ev_status status = run_ranks(ranks, count, out, err);
    for (uint32_t i = 1; status == EV_OK && i < count; i++)
        out[i] = out[0];
    cuda_ranks_drop_copies(ranks, count, rebuilds);
    free(ranks);
    return status;
}
