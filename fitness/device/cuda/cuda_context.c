/* Contexts of the device cuda:N: made, made anew after a fault, and given up; those of ranks
 * together, since a fault of one takes what its peers know of its memory with it. */
#include "fitness/device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult fill_context(cuda_device *c) {
    const cu_driver *cu = &c->cu;
    CUresult result = cu->cuCtxSetCurrent(c->context);
    if (result == CUDA_SUCCESS)
        result = cu->cuStreamCreate(&c->stream, 0);
    if (result == CUDA_SUCCESS)
        result = cu->cuEventCreate(&c->done, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemHostAlloc((void **)(uintptr_t)&c->flag, 64, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemHostGetDevicePointer_v2(&c->flag_seen, (void *)(uintptr_t)c->flag, 0);
    return result == CUDA_SUCCESS ? cuda_load_own(c) : result;
}

/* ---- of a group ---- */

/* The first of the group on the same GPU: its context is that of all of them. */
static cuda_device *first_on_gpu(const cuda_device *c) {
    uint32_t i = 0;
    while (c->group->members[i]->ordinal != c->ordinal)
        i++;
    return c->group->members[i];
}

static void destroy_contexts(const cuda_group *g, const cu_driver *cu) {
    for (uint32_t i = 0; i < g->count; i++) {
        cuda_device *c = g->members[i];
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first = first && g->members[k]->context != c->context;
        if (first && c->context != NULL)
            (void)cu->cuCtxDestroy_v2(c->context); /* it may name the fault again */
    }
    for (uint32_t i = 0; i < g->count; i++)
        g->members[i]->context = NULL;
}

static ev_status make_one(cuda_device *c, ev_error *err) {
    const cuda_device *first = first_on_gpu(c);
    c->flush = 0;
    c->timer_grain = 0;
    if (first != c)
        c->context = first->context;
    else
        EV_TRY(cuda_check(c, c->cu.cuCtxCreate_v2(&c->context, 0, c->ordinal), "cuCtxCreate", err));
    return cuda_check(c, fill_context(c), "setting up the context", err);
}

/* Kernels of `c` may touch what `peer` has. */
static ev_status reach(const cuda_device *c, const cuda_device *peer, ev_error *err) {
    if (c->context == peer->context)
        return EV_OK;
    EV_TRY(cuda_enter(c, err));
    CUresult result = c->cu.cuCtxEnablePeerAccess(peer->context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return EV_OK;
    return cuda_check(c, result, "cuCtxEnablePeerAccess", err);
}

static ev_status make_all(const cuda_group *g, ev_error *err) {
    for (uint32_t i = 0; i < g->count; i++)
        EV_TRY(make_one(g->members[i], err));
    for (uint32_t i = 0; i < g->count; i++) {
        for (uint32_t k = 0; k < g->count; k++)
            EV_TRY(reach(g->members[i], g->members[k], err));
    }
    return EV_OK;
}

ev_status cuda_make_contexts(cuda_device *const *members, uint32_t count, ev_error *err) {
    cuda_group *g = calloc(1, sizeof *g);
    cuda_device **list = calloc(count, sizeof(cuda_device *));
    if (g == NULL || list == NULL) {
        free(g);
        free(list);
        return ev_fail_memory(err, count * sizeof(cuda_device *));
    }
    *g = (cuda_group){.members = list, .count = count, .alive = count};
    for (uint32_t i = 0; i < count; i++) {
        list[i] = members[i];
        list[i]->group = g;
    }
    ev_status status = make_all(g, err);
    if (status != EV_OK)
        destroy_contexts(g, &members[0]->cu);
    return status;
}

void cuda_leave_group(cuda_device *c) {
    cuda_group *g = c->group;
    if (g == NULL || --g->alive > 0)
        return;
    /* a context with a kernel that does not end would not let go: the process does */
    if (!c->dead)
        destroy_contexts(g, &c->cu);
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->members[i] != c)
            free(g->members[i]);
    }
    free(g->members);
    free(g);
}

/* ---- after a fault ---- */

void cuda_give_up(const cuda_device *c) {
    for (uint32_t i = 0; i < c->group->count; i++)
        c->group->members[i]->dead = true;
}

static ev_status restore(const cuda_group *g, ev_error *err) {
    EV_TRY(make_all(g, err));
    for (uint32_t i = 0; i < g->count; i++) {
        EV_TRY(cuda_enter(g->members[i], err));
        EV_TRY(cuda_restore_buffers(g->members[i], err));
    }
    return EV_OK;
}

static ev_status rebuild(cuda_device *c, ev_error *err) {
    const cuda_group *g = c->group;
    for (uint32_t i = 0; i < g->count; i++)
        g->members[i]->rebuilds++;
    destroy_contexts(g, &c->cu);
    ev_status status = restore(g, err);
    if (status != EV_OK)
        cuda_give_up(c);
    else
        status = cuda_enter(c, err);
    return status;
}

void cuda_replace_contexts(cuda_device *c, vm_trap *fault) {
    ev_error why = {0};
    if (rebuild(c, &why) == EV_OK)
        return;
    size_t used = strlen(fault->message);
    (void)snprintf(fault->message + used, sizeof fault->message - used,
                   "; the driver makes no new context in this process (%.120s)", why.text);
}
