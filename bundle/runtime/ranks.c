/* evoke/bundle.h: kernels whose launches run on several GPUs at once. The ranks wait for each
 * other, so a launch that cannot be given to one of them would have the others wait for ever.
 * Therefore everything is checked on all ranks before the first is launched. */
#include "bundle/runtime/runtime.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(EVOKE_RANKS_MOST == BUNDLE_RANKS_MOST, "the public limit is the inner one");

ev_status runtime_refuse_ranks(const bundle_kernel *k, ev_error *err) {
    if (k->ranks == NULL)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "%s has ranks: a launch runs on several GPUs at once (ranks \"%s\"); call "
                   "evoke_variant_launch_ranks",
                   k->name, k->ranks->count);
}

/* ---- what a bundle says ---- */

static ev_status count_ranks(const bundle_kernel *k, const launch_plan *ranges,
                             const evoke_shape *shape, uint32_t *out, ev_error *err) {
    runtime_scope room;
    int64_t count = 1;
    *out = 1;
    if (k->ranks == NULL)
        return EV_OK;
    EV_TRY(runtime_scope_of(k, ranges, shape, SIZE_MAX, &room, err));
    ev_status status = expr_eval_whole(k->ranks->count, &room.scope, BUNDLE_RANKS_LEAST,
                                       BUNDLE_RANKS_MOST, &count, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s, ranks", k->name);
    *out = (uint32_t)count;
    return EV_OK;
}

static ev_status find_kernel(const evoke_bundle *b, const char *kernel, const bundle_kernel **out,
                             ev_error *err) {
    *out = bundle_find(b->inside, kernel);
    if (*out != NULL)
        return EV_OK;
    (void)bundle_fail_kernel(b->inside, kernel, err);
    return EV_BAD;
}

static ev_status describe_ranks(const evoke_bundle *b, const char *kernel, const evoke_shape *shape,
                                evoke_ranks *out, ev_error *err) {
    const bundle_kernel *k = NULL;
    evoke_ranks made = {.count = 1};
    EV_TRY(find_kernel(b, kernel, &k, err));
    const bundle_variant *v = k->baseline_count > 0 ? k->baselines : k->variants;
    if (k->baseline_count + k->variant_count == 0)
        return ev_fail(err, EV_BAD, "the bundle has no variant of %s", k->name);
    EV_TRY(count_ranks(k, v->plan, shape, &made.count, err));
    made.needs_barrier_before = k->ranks != NULL && k->ranks->begins_together;
    made.needs_barrier_after = k->ranks != NULL && k->ranks->ends_together;
    *out = made;
    return EV_OK;
}

evoke_status evoke_bundle_ranks(const evoke_bundle *b, const char *kernel, const evoke_shape *shape,
                                evoke_ranks *out, evoke_error *error) {
    return runtime_status(describe_ranks(b, kernel, shape, out, runtime_error(error)));
}

static ev_status describe_shared(const evoke_bundle *b, const char *kernel, size_t index,
                                 evoke_shared *out, ev_error *err) {
    const bundle_kernel *k = NULL;
    EV_TRY(find_kernel(b, kernel, &k, err));
    if (index >= k->argument_count)
        return ev_fail(err, EV_BAD, "%s has %zu arguments, and none of the number %zu", kernel,
                       k->argument_count, index);
    const bundle_argument *a = &k->arguments[index];
    *out = (evoke_shared){.of = a->of, .before = a->before, .by_rank = a->by_rank};
    return EV_OK;
}

evoke_status evoke_bundle_shared(const evoke_bundle *b, const char *kernel, size_t index,
                                 evoke_shared *out, evoke_error *error) {
    return runtime_status(describe_shared(b, kernel, index, out, runtime_error(error)));
}

/* ---- a launch on several ranks ---- */

typedef struct member {
    const evoke_rank *is;
    uint32_t number;
    CUdevice device;
    unsigned long long context; /* its id */
    runtime_loaded *loaded;
    runtime_sequence *launches;
    double share; /* of the GPU's places for blocks */
    size_t step;  /* of the launch that takes the share */
} member;

typedef struct group {
    const evoke_variant *v;
    const evoke_shape *shape;
    const cu_driver *cu;
    size_t count;
    size_t step; /* that is launched next */
    member members[BUNDLE_RANKS_MOST];
} group;

static const bundle_kernel *kernel_of(const group *g) {
    return g->v->kernel;
}

static ev_status fail_rank(const group *g, const member *m, ev_status status, ev_error *err) {
    return status == EV_OK ? EV_OK
                           : ev_wrap(err, status, "%s, rank %u", kernel_of(g)->name, m->number);
}

static void group_free(group *g) {
    for (size_t i = 0; i < g->count; i++)
        runtime_sequence_free(g->members[i].launches);
}

/* Runs `call` in the rank's context, and makes the caller's current again. */
static ev_status in_context(const group *g, member *m,
                            ev_status (*call)(const group *g, member *m, ev_error *err),
                            ev_error *err) {
    CUcontext ignored = NULL;
    ev_status status = m->is->context != NULL
                           ? runtime_check(g->cu, g->cu->cuCtxPushCurrent_v2(m->is->context),
                                           "cuCtxPushCurrent", err)
                           : ev_fail(err, EV_BAD, "it has no context; create one on its GPU");
    if (status == EV_OK) {
        status = call(g, m, err);
        (void)g->cu->cuCtxPopCurrent_v2(&ignored);
    }
    return fail_rank(g, m, status, err);
}

static ev_status for_each(group *g, ev_status (*call)(const group *g, member *m, ev_error *err),
                          ev_error *err) {
    for (size_t i = 0; i < g->count; i++)
        EV_TRY(in_context(g, &g->members[i], call, err));
    return EV_OK;
}

static ev_status refuse_single(const bundle_kernel *k, ev_error *err) {
    if (k->ranks != NULL)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "%s has no ranks: its launches run on one GPU; call evoke_variant_launch",
                   k->name);
}

static ev_status check_count(const group *g, size_t given, ev_error *err) {
    uint32_t count = 1;
    EV_TRY(refuse_single(kernel_of(g), err));
    EV_TRY(count_ranks(kernel_of(g), g->v->is->plan, g->shape, &count, err));
    if (given == count)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s has %u ranks at this shape, and %zu are given",
                   kernel_of(g)->name, count, given);
}

/* What can be known without the driver. The caller frees *out by group_free, also after a failure.
 */
static ev_status group_of(const evoke_variant *v, const evoke_shape *shape, const evoke_rank *ranks,
                          size_t count, size_t buffer_count, group *out, ev_error *err) {
    *out = (group){.v = v, .shape = shape};
    EV_TRY(check_count(out, count, err));
    for (size_t i = 0; i < count; i++) {
        member *m = &out->members[out->count++];
        *m = (member){.is = &ranks[i], .number = (uint32_t)i};
        const evoke_buffer *scratch = ranks[i].scratch.bytes > 0 ? &ranks[i].scratch : NULL;
        EV_TRY(fail_rank(out, m,
                         runtime_sequence_new(v, shape, ranks[i].buffers, buffer_count, m->number,
                                              scratch, &m->launches, err),
                         err));
    }
    return runtime_driver(&out->cu, err);
}

/* ---- where the ranks are ---- */

static ev_status locate(const group *g, member *m, ev_error *err) {
    CUcontext context = NULL;
    EV_TRY(runtime_context(g->cu, &context, &m->context, err));
    return runtime_check(g->cu, g->cu->cuCtxGetDevice(&m->device), "cuCtxGetDevice", err);
}

static ev_status load(const group *g, member *m, ev_error *err) {
    return runtime_load(runtime_own(g->v), g->cu, &m->loaded, err);
}

static ev_status allow(const group *g, member *m, ev_error *err) {
    EV_TRY(runtime_sequence_allow(m->launches, g->cu, m->loaded, err));
    return runtime_sequence_share(m->launches, g->cu, m->loaded, &m->share, &m->step, err);
}

/* Two ranks of one GPU run at once in one context, on a stream each. */
static ev_status check_pair(const group *g, const member *a, const member *b, ev_error *err) {
    if (a->device != b->device)
        return EV_OK;
    if (a->context != b->context)
        return ev_fail(
            err, EV_BAD,
            "%s: ranks %u and %u have two contexts of one GPU, whose kernels take turns; "
            "give them one context, and a stream each",
            kernel_of(g)->name, a->number, b->number);
    if (a->is->stream == b->is->stream || a->is->stream == NULL || b->is->stream == NULL)
        return ev_fail(err, EV_BAD,
                       "%s: ranks %u and %u have one GPU and one stream, or the default stream, in "
                       "which one would wait for the other's end; create a stream for each "
                       "(CU_STREAM_NON_BLOCKING)",
                       kernel_of(g)->name, a->number, b->number);
    return EV_OK;
}

/* All blocks that wait for a peer have to be there at once: the ones that are not would be waited
 * for by those that never go. */
static ev_status check_room(const group *g, const member *m, ev_error *err) {
    double share = 0;
    unsigned sharing = 0;
    for (size_t i = 0; i < g->count; i++) {
        bool is_here = g->members[i].device == m->device;
        share += is_here ? g->members[i].share : 0;
        sharing += is_here;
    }
    if (share <= 1)
        return EV_OK;
    (void)ev_fail(err, EV_BAD,
                  "its blocks and those of the ranks that share its GPU, %u in all, would fill the "
                  "GPU %.2f times, and blocks that wait for each other have to be there together; "
                  "take a GPU for each rank, a smaller shape, or another variant",
                  sharing, share);
    return fail_rank(g, m, runtime_sequence_fail(m->launches, m->step, EV_BAD, err), err);
}

static ev_status check_places(const group *g, ev_error *err) {
    for (size_t i = 0; i < g->count; i++) {
        for (size_t k = 0; k < i; k++)
            EV_TRY(check_pair(g, &g->members[k], &g->members[i], err));
        EV_TRY(check_room(g, &g->members[i], err));
    }
    return EV_OK;
}

/* ---- launching ---- */

static ev_status give(const group *g, member *m, ev_error *err) {
    return runtime_sequence_give(m->launches, g->step, g->cu, m->loaded, (CUstream)m->is->stream,
                                 err);
}

/* A launch on all ranks before the next one: a call that waits for what runs, since the driver has
 * yet to load a kernel, waits for launches whose peers are there. */
static ev_status launch_group(group *g, ev_error *err) {
    EV_TRY(for_each(g, locate, err));
    EV_TRY(for_each(g, load, err));
    EV_TRY(for_each(g, allow, err));
    EV_TRY(check_places(g, err));
    for (g->step = 0; g->step < runtime_sequence_count(g->members[0].launches); g->step++)
        EV_TRY(for_each(g, give, err));
    return EV_OK;
}

evoke_status evoke_variant_launch_ranks(const evoke_variant *v, const evoke_shape *shape,
                                        const evoke_rank *ranks, size_t count, size_t buffer_count,
                                        evoke_error *error) {
    group g;
    ev_status status = group_of(v, shape, ranks, count, buffer_count, &g, runtime_error(error));
    if (status == EV_OK)
        status = launch_group(&g, runtime_error(error));
    group_free(&g);
    return runtime_status(status);
}

/* ---- one rank alone ---- */

static ev_status check_alone(const evoke_variant *v, const evoke_shape *shape, uint32_t number,
                             ev_error *err) {
    const launch_plan *plan = v->is->plan;
    uint32_t count = 1;
    EV_TRY(refuse_single(v->kernel, err));
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (plan->scratch[i].peers_of != NULL)
            return ev_fail(err, EV_BAD,
                           "%s: the variant has a table of addresses (%s) in its scratch memory; "
                           "launch all ranks by evoke_variant_launch_ranks",
                           v->kernel->name, plan->scratch[i].name);
    }
    EV_TRY(count_ranks(v->kernel, plan, shape, &count, err));
    if (number < count)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s has %u ranks at this shape, and none of the number %u",
                   v->kernel->name, count, number);
}

static ev_status launch_alone(const evoke_variant *v, const evoke_shape *shape, uint32_t number,
                              const evoke_rank *rank, size_t buffer_count, group *g,
                              ev_error *err) {
    *g = (group){.v = v, .shape = shape};
    EV_TRY(check_alone(v, shape, number, err));
    member *m = &g->members[g->count++];
    *m = (member){.is = rank, .number = number};
    const evoke_buffer *scratch = rank->scratch.bytes > 0 ? &rank->scratch : NULL;
    EV_TRY(fail_rank(g, m,
                     runtime_sequence_new(v, shape, rank->buffers, buffer_count, number, scratch,
                                          &m->launches, err),
                     err));
    EV_TRY(runtime_driver(&g->cu, err));
    return launch_group(g, err);
}

evoke_status evoke_variant_launch_rank(const evoke_variant *v, const evoke_shape *shape,
                                       uint32_t number, const evoke_rank *rank, size_t buffer_count,
                                       evoke_error *error) {
    group g;
    ev_status status = launch_alone(v, shape, number, rank, buffer_count, &g, runtime_error(error));
    group_free(&g);
    return runtime_status(status);
}

/* ---- preparing ---- */

static ev_status fail_peers(const group *g, const member *from, const member *to, ev_error *err) {
    return ev_fail(
        err, EV_BAD,
        "%s: the GPU of rank %u has no access to the memory of rank %u's; take GPUs with "
        "peer access (nvidia-smi topo -p2p r), or one GPU for both",
        kernel_of(g)->name, from->number, to->number);
}

/* The context of `from` is current. */
static ev_status reach(const group *g, const member *from, const member *to, ev_error *err) {
    int can = 0;
    if (from->device == to->device)
        return EV_OK;
    if (g->cu->cuDeviceCanAccessPeer == NULL || g->cu->cuCtxEnablePeerAccess == NULL)
        return fail_peers(g, from, to, err);
    EV_TRY(runtime_check(g->cu, g->cu->cuDeviceCanAccessPeer(&can, from->device, to->device),
                         "cuDeviceCanAccessPeer", err));
    if (!can)
        return fail_peers(g, from, to, err);
    CUresult result = g->cu->cuCtxEnablePeerAccess(to->is->context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return EV_OK;
    return runtime_check(g->cu, result, "cuCtxEnablePeerAccess", err);
}

static ev_status reach_all(const group *g, member *m, ev_error *err) {
    for (size_t i = 0; i < g->count; i++)
        EV_TRY(reach(g, m, &g->members[i], err));
    return EV_OK;
}

static ev_status copy_in(const group *g, uint64_t to, const void *data, size_t bytes,
                         ev_error *err) {
    return runtime_check(g->cu, g->cu->cuMemcpyHtoD_v2(to, data, bytes), "cuMemcpyHtoD", err);
}

/* The place of argument `index` among the buffers. */
static size_t buffer_at(const bundle_kernel *k, size_t index) {
    size_t at = 0;
    for (size_t i = 0; i < index; i++)
        at += !bundle_is_scalar(&k->arguments[i]);
    return at;
}

static size_t find_argument(const bundle_kernel *k, const char *name) {
    size_t i = 0;
    while (strcmp(k->arguments[i].name, name) != 0) /* the reader looked (read_ranks.c) */
        i++;
    return i;
}

/* A manifest may say fewer bytes than the addresses take. */
static ev_status check_table(const group *g, const char *name, size_t bytes, ev_error *err) {
    if (bytes >= g->count * sizeof(uint64_t))
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "the table '%s' has %zu bytes, and the addresses of %zu ranks take %zu", name,
                   bytes, g->count, g->count * sizeof(uint64_t));
}

static ev_status fill_table(const group *g, const member *m, size_t index, ev_error *err) {
    const bundle_kernel *k = kernel_of(g);
    uint64_t addresses[BUNDLE_RANKS_MOST];
    const evoke_buffer *table = &m->is->buffers[buffer_at(k, index)];
    size_t of = buffer_at(k, find_argument(k, k->arguments[index].of));
    size_t bytes = g->count * sizeof *addresses;
    for (size_t i = 0; i < g->count; i++)
        addresses[i] = g->members[i].is->buffers[of].address;
    EV_TRY(check_table(g, k->arguments[index].name, table->bytes, err));
    return copy_in(g, table->address, addresses, bytes, err);
}

/* A piece at a time: the buffer may be larger than the host's memory. */
static ev_status copy_pieces(const group *g, uint64_t to, const void *piece, size_t piece_bytes,
                             size_t bytes, ev_error *err) {
    for (size_t at = 0; at < bytes; at += piece_bytes)
        EV_TRY(
            copy_in(g, to + at, piece, bytes - at < piece_bytes ? bytes - at : piece_bytes, err));
    return EV_OK;
}

static ev_status fill_before(const group *g, const member *m, size_t index, ev_error *err) {
    enum { PIECE = 1 << 20 }; /* of whole elements, which are all equal */
    const bundle_kernel *k = kernel_of(g);
    runtime_scope room;
    uint64_t elements = 0;
    ev_type type = EV_F32;
    EV_TRY(runtime_scope_of(k, g->v->is->plan, g->shape, SIZE_MAX, &room, err));
    EV_TRY(runtime_elements(k, index, &room.scope, &elements, err));
    size_t bytes =
        elements * (ev_type_find(k->arguments[index].type, &type) ? ev_type_bytes(type) : 1);
    size_t piece = bytes < PIECE ? bytes : PIECE;
    void *data = malloc(piece + 1);
    ev_status status = data != NULL ? EV_OK : ev_fail_memory(err, piece);
    if (status == EV_OK)
        status = runtime_fill_before(k, index, &room.scope, data, piece, err);
    if (status == EV_OK)
        status =
            copy_pieces(g, m->is->buffers[buffer_at(k, index)].address, data, piece, bytes, err);
    free(data);
    return status;
}

static size_t find_scratch(const launch_plan *plan, const char *name) {
    size_t i = 0;
    while (strcmp(plan->scratch[i].name, name) != 0) /* the reader looked (read_ranks.c) */
        i++;
    return i;
}

static ev_status fill_scratch(const group *g, const member *m, size_t index, ev_error *err) {
    const launch_plan *plan = g->v->is->plan;
    uint64_t addresses[BUNDLE_RANKS_MOST];
    const evoke_buffer table = runtime_sequence_scratch(m->launches, index);
    size_t of = find_scratch(plan, plan->scratch[index].peers_of);
    size_t bytes = g->count * sizeof *addresses;
    for (size_t i = 0; i < g->count; i++)
        addresses[i] = g->members[i].is->scratch.address +
                       runtime_sequence_scratch(g->members[i].launches, of).address;
    EV_TRY(check_table(g, plan->scratch[index].name, table.bytes, err));
    return copy_in(g, m->is->scratch.address + table.address, addresses, bytes, err);
}

static ev_status fill(const group *g, member *m, ev_error *err) {
    const bundle_kernel *k = kernel_of(g);
    const launch_plan *plan = g->v->is->plan;
    for (size_t i = 0; i < k->argument_count; i++) {
        if (bundle_is_peers(&k->arguments[i]))
            EV_TRY(fill_table(g, m, i, err));
        if (k->arguments[i].before != NULL)
            EV_TRY(fill_before(g, m, i, err));
    }
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (plan->scratch[i].peers_of != NULL)
            EV_TRY(fill_scratch(g, m, i, err));
    }
    return EV_OK;
}

/* A copy from pageable memory may return before its end, and a stream that is created as
 * non-blocking does not wait for the default stream, where the copies go. */
static ev_status finish_copies(const group *g, member *m, ev_error *err) {
    (void)m;
    return runtime_check(g->cu, g->cu->cuCtxSynchronize(), "cuCtxSynchronize", err);
}

evoke_status evoke_variant_prepare_ranks(const evoke_variant *v, const evoke_shape *shape,
                                         const evoke_rank *ranks, size_t count, size_t buffer_count,
                                         evoke_error *error) {
    group g;
    ev_error *err = runtime_error(error);
    ev_status status = group_of(v, shape, ranks, count, buffer_count, &g, err);
    if (status == EV_OK)
        status = for_each(&g, locate, err);
    if (status == EV_OK)
        status = for_each(&g, reach_all, err);
    if (status == EV_OK)
        status = for_each(&g, load, err);
    if (status == EV_OK)
        status = for_each(&g, fill, err);
    if (status == EV_OK)
        status = for_each(&g, finish_copies, err);
    group_free(&g);
    return runtime_status(status);
}
