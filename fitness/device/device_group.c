/* The group: several ranks of a device as one, virtual machines or GPUs. A buffer is spread over
 * the ranks in equal parts, one rank's part behind the other's; a launch runs on all of them side
 * by side, each rank with its own parameters. The gates therefore compare outputs as one long
 * buffer.
 *
 * On the virtual machine, the time of a launch is that of its slowest rank, with the links between
 * the ranks. Executions are added up over the ranks; stalls and sites are of rank 0. On GPUs, a
 * time goes from the first rank's begin to the last one's end (cuda_ranks_time.c). */
#include "fitness/device/device_group.h"

#include "fitness/device/device_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct group_buffer {
    uint32_t ranks;
    uint64_t part; /* bytes on each of them */
    device_buffer of[DEVICE_GROUP_MOST];
} group_buffer;

typedef struct device_group {
    device base; /* first */
    device *members[DEVICE_GROUP_MOST];
    uint32_t count;
    uint32_t spread;       /* ranks of the buffers that are made next */
    group_buffer *buffers; /* by handle - 1 */
    size_t buffer_count, room;
} device_group;

static device_group *group_of(device *d) {
    return (device_group *)d;
}
static const device_group *group_of_const(const device *d) {
    return (const device_group *)d;
}

static void group_close(device *d) {
    device_group *g = group_of(d);
    for (uint32_t i = 0; i < g->count; i++)
        device_close(g->members[i]);
    free(g->buffers);
    free(g);
}

/* ---- buffers ---- */

static ev_status room_for_buffer(device_group *g, ev_error *err) {
    if (g->buffer_count < g->room)
        return EV_OK;
    size_t room = g->room == 0 ? 16 : g->room * 2;
    group_buffer *more = realloc(g->buffers, room * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(err, room * sizeof *more);
    g->buffers = more;
    g->room = room;
    return EV_OK;
}

/* `odd`: as in device_alloc_odd; 0: wherever the ranks place it. */
static ev_status alloc_at(device *d, uint64_t bytes, uint32_t odd, vm_buffer_kind kind,
                          const char *name, device_buffer *out, ev_error *err) {
    device_group *g = group_of(d);
    assert(bytes % g->spread == 0);
    EV_TRY(room_for_buffer(g, err));
    group_buffer made = {.ranks = g->spread, .part = bytes / g->spread};
    for (uint32_t i = 0; i < made.ranks; i++) {
        device *rank = g->members[i];
        if (odd > 0)
            EV_TRY(device_alloc_odd(rank, made.part, odd, kind, name, &made.of[i], err));
        else
            EV_TRY(device_alloc(rank, made.part, kind, name, &made.of[i], err));
    }
    g->buffers[g->buffer_count++] = made;
    *out = (device_buffer)g->buffer_count;
    return EV_OK;
}

static ev_status group_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                             device_buffer *out, ev_error *err) {
    return alloc_at(d, bytes, 0, kind, name, out, err);
}

static ev_status group_alloc_odd(device *d, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                                 const char *name, device_buffer *out, ev_error *err) {
    return alloc_at(d, bytes, align, kind, name, out, err);
}

static void group_clear(device *d) {
    device_group *g = group_of(d);
    for (uint32_t i = 0; i < g->count; i++)
        device_clear(g->members[i]);
    g->buffer_count = 0;
}

static const group_buffer *buffer_at(const device *d, device_buffer buffer) {
    const device_group *g = group_of_const(d);
    assert(buffer > 0 && buffer <= g->buffer_count);
    return &g->buffers[buffer - 1];
}

static uint64_t group_address(const device *d, device_buffer buffer) {
    return device_address(group_of_const(d)->members[0], buffer_at(d, buffer)->of[0]);
}

/* The piece of a range of bytes that lies on one rank. */
typedef struct piece {
    uint32_t rank;
    uint64_t offset, bytes;
} piece;

static piece piece_at(const group_buffer *b, uint64_t offset, uint64_t bytes) {
    piece p = {.rank = (uint32_t)(offset / b->part), .offset = offset % b->part};
    uint64_t rest = b->part - p.offset;
    p.bytes = bytes < rest ? bytes : rest;
    return p;
}

static ev_status group_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                             uint64_t bytes, ev_error *err) {
    const group_buffer *b = buffer_at(d, buffer);
    for (uint64_t done = 0; done < bytes;) {
        piece p = piece_at(b, offset + done, bytes - done);
        EV_TRY(device_write(group_of(d)->members[p.rank], b->of[p.rank], p.offset,
                            (const char *)data + done, p.bytes, err));
        done += p.bytes;
    }
    return EV_OK;
}

static ev_status group_read(device *d, device_buffer buffer, uint64_t offset, void *data,
                            uint64_t bytes, ev_error *err) {
    const group_buffer *b = buffer_at(d, buffer);
    for (uint64_t done = 0; done < bytes;) {
        piece p = piece_at(b, offset + done, bytes - done);
        EV_TRY(device_read(group_of(d)->members[p.rank], b->of[p.rank], p.offset,
                           (char *)data + done, p.bytes, err));
        done += p.bytes;
    }
    return EV_OK;
}

/* The parts do not lie side by side. */
static void *group_host(device *d, device_buffer buffer) {
    (void)d;
    (void)buffer;
    return NULL;
}

static ev_status group_reset(device *d, uint8_t poison, ev_error *err) {
    device_group *g = group_of(d);
    for (uint32_t i = 0; i < g->count; i++)
        EV_TRY(device_reset(g->members[i], poison, err));
    return EV_OK;
}

static ev_status group_written(device *d, device_buffer buffer, size_t element_bytes,
                               uint64_t first, uint64_t count, uint8_t *written, uint64_t *how_many,
                               ev_error *err) {
    const group_buffer *b = buffer_at(d, buffer);
    *how_many = 0;
    for (uint64_t done = 0; done < count;) {
        piece p = piece_at(b, (first + done) * element_bytes, (count - done) * element_bytes);
        uint64_t elements = p.bytes / element_bytes, many = 0;
        EV_TRY(device_written(group_of(d)->members[p.rank], b->of[p.rank], element_bytes,
                              p.offset / element_bytes, elements,
                              written != NULL ? written + done : NULL, &many, err));
        *how_many += many;
        done += elements;
    }
    return EV_OK;
}

/* ---- kernels: one, loaded on rank 0, which all ranks run ---- */

static device *first_of(const device *d) {
    return group_of_const(d)->members[0];
}

static ev_status group_load(device *d, device_kernel *kernel, ev_error *err) {
    device *first = first_of(d);
    if (first->words == NULL)
        EV_TRY(vm_words_new(&first->words, err));
    kernel->owner = first;
    return first->ops->load(first, kernel, err);
}

/* A kernel is its rank's. */
static void group_unload(device_kernel *kernel) {
    kernel->owner->ops->unload(kernel);
}

static ev_status group_fill(device *d, device_kernel *kernel, const char *name,
                            const vm_variable *variable, const void *data, ev_error *err) {
    device *first = first_of(d);
    return first->ops->fill(first, kernel, name, variable, data, err);
}

static ev_status group_check(const device *d, const device_kernel *kernel,
                             const device_launch *launch, ev_error *err) {
    return device_check(first_of(d), kernel, launch, err);
}

/* ---- runs ---- */

/* One launch, as its ranks run it. */
typedef struct group_run {
    uint32_t ranks;
    const device_kernel *kernels[DEVICE_GROUP_MOST];
    device_launch launches[DEVICE_GROUP_MOST];
    device_outcome outcomes[DEVICE_GROUP_MOST];
    device_timing timings[DEVICE_GROUP_MOST];
} group_run;

static ev_status run_new(const device *d, const device_kernel *kernel, const device_launch *launch,
                         group_run **out, ev_error *err) {
    group_run *r = calloc(1, sizeof *r);
    *out = r;
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    assert(launch->ranks > 0 && launch->ranks <= group_of_const(d)->count);
    (void)d;
    r->ranks = launch->ranks;
    for (uint32_t i = 0; i < r->ranks; i++) {
        r->kernels[i] = kernel;
        r->launches[i] = *launch;
        r->launches[i].params = launch->rank_params[i];
        if (i == 0)
            continue;
        r->launches[i].stalls = NULL;
        r->launches[i].sites = NULL;
    }
    return EV_OK;
}

/* Adds up what all ranks did. After a fault each outcome has that fault. */
static void add_outcomes(const group_run *r, device_outcome *out) {
    *out = r->outcomes[0];
    for (uint32_t i = 1; i < r->ranks; i++) {
        uint64_t sum[sizeof out->counters / sizeof(uint64_t)], own[sizeof sum / sizeof *sum];
        memcpy(sum, &out->counters, sizeof sum);
        memcpy(own, &r->outcomes[i].counters, sizeof own);
        for (size_t k = 0; k < sizeof sum / sizeof *sum; k++)
            sum[k] += own[k];
        memcpy(&out->counters, sum, sizeof sum);
        out->waits = out->waits || r->outcomes[i].waits;
    }
}

_Static_assert(sizeof(vm_counters) % sizeof(uint64_t) == 0, "counters are whole numbers");

static ev_status group_run_all(device *d, const device_kernel *kernel, const device_launch *launch,
                               device_outcome *out, ev_error *err) {
    group_run *r = NULL;
    EV_TRY(run_new(d, kernel, launch, &r, err));
    ev_status status =
        device_run_ranks(group_of(d)->members, r->kernels, r->launches, r->ranks, r->outcomes, err);
    if (status == EV_OK)
        add_outcomes(r, out);
    free(r);
    return status;
}

static ev_status group_time(device *d, const device_kernel *kernel, const device_launch *launch,
                            device_outcome *out, device_timing *timing, ev_error *err) {
    group_run *r = NULL;
    EV_TRY(run_new(d, kernel, launch, &r, err));
    ev_status status = device_time_ranks(group_of(d)->members, r->kernels, r->launches, r->ranks,
                                         MODEL_ONE_NODE, r->outcomes, r->timings, err);
    if (status == EV_OK)
        add_outcomes(r, out);
    for (uint32_t i = 0; status == EV_OK && out->ok && i < r->ranks; i++) {
        if (i == 0 || r->timings[i].ns > timing->ns)
            *timing = r->timings[i];
    }
    free(r);
    return status;
}

/* ---- GPUs ---- */

static ev_status group_time_sequence(device *d, const device_sequence *what, device_rival *rival,
                                     device_outcome *out, device_timing *timing, ev_error *err) {
    const device_group *g = group_of(d);
    return g->members[0]->ops->time_ranks_sequence(g->members, what, rival, out, timing, err);
}

static ev_status group_time_alone(device *d, const device_kernel *kernel,
                                  const device_launch *launch, device_outcome *out,
                                  device_timing *timing, ev_error *err) {
    const device_sequence one = {.kernels = &kernel, .launches = launch, .count = 1};
    return group_time_sequence(d, &one, NULL, out, timing, err);
}

/* All ranks are made anew, or given up, together. */
static uint64_t group_rebuilds(const device *d) {
    return device_rebuilds(first_of(d));
}

static bool group_is_spent(const device *d) {
    return device_is_spent(first_of(d));
}

static const uint64_t *group_stored(const device *d, size_t *count) {
    (void)d;
    *count = 0;
    return NULL;
}

static bool group_number(const device *d, gpu_key key, double *out) {
    return device_number(first_of(d), key, out);
}

static const gpu *group_description(const device *d) {
    return device_description(first_of(d));
}

/* Those of the virtual machine and of GPUs. */
#define COMMON_OPS                                                                                 \
    .close = group_close, .alloc = group_alloc, .alloc_odd = group_alloc_odd,                      \
    .clear = group_clear, .address = group_address, .write = group_write, .read = group_read,      \
    .host = group_host, .reset = group_reset, .written = group_written, .load = group_load,        \
    .unload = group_unload, .fill = group_fill, .check = group_check, .run = group_run_all,        \
    .stored = group_stored, .number = group_number

static const device_ops GROUP_OPS = {
    COMMON_OPS,
    .time = group_time,
    .description = group_description,
};

static const device_ops GPU_GROUP_OPS = {
    COMMON_OPS,
    .time = group_time_alone,
    .time_sequence = group_time_sequence,
    .rebuilds = group_rebuilds,
    .is_spent = group_is_spent,
};

ev_status device_open_group(const char *id, uint32_t most, device **out, ev_error *err) {
    assert(most > 0 && most <= DEVICE_GROUP_MOST);
    device_group *g = calloc(1, sizeof *g);
    if (g == NULL)
        return ev_fail_memory(err, sizeof *g);
    ev_status status = device_open_ranks(id, most, g->members, err);
    if (status != EV_OK) {
        free(g);
        return status;
    }
    g->count = g->spread = most;
    g->base.ops = g->members[0]->ops->time_ranks_sequence != NULL ? &GPU_GROUP_OPS : &GROUP_OPS;
    g->base.properties = g->members[0]->properties;
    g->base.properties.all_blocks = true;
    *out = &g->base;
    return EV_OK;
}

static bool is_group(const device *d) {
    return d->ops == &GROUP_OPS || d->ops == &GPU_GROUP_OPS;
}

uint32_t device_group_count(const device *d) {
    return is_group(d) ? group_of_const(d)->count : 0;
}

void device_group_spread(device *d, uint32_t ranks) {
    device_group *g = group_of(d);
    assert(is_group(d) && ranks > 0 && ranks <= g->count);
    g->spread = ranks;
}

uint64_t device_group_address(const device *d, device_buffer buffer, uint32_t rank) {
    assert(is_group(d) && rank < buffer_at(d, buffer)->ranks);
    return device_address(group_of_const(d)->members[rank], buffer_at(d, buffer)->of[rank]);
}
