/* Buffers of the device cuda:N: between two canaries, with a copy on the host of what the host
 * wrote, so that inputs can be held against it and a new context filled from it. */
#include "fitness/device/cuda/cuda.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY 0xa5

static cuda_buffer *buffer_at(const device *d, device_buffer buffer) {
    const cuda_device *c = cuda_of_const(d);
    assert(buffer > 0 && buffer <= c->count);
    return &c->buffers[buffer - 1];
}

static CUdeviceptr contents(const cuda_buffer *b) {
    return b->base + CUDA_CANARY_BYTES;
}

static bool is_initialised(const cuda_buffer *b) {
    return b->kind == VM_BUFFER_IN || b->kind == VM_BUFFER_INOUT;
}

uint64_t cuda_address(const device *d, device_buffer buffer) {
    return contents(buffer_at(d, buffer));
}

void *cuda_host(device *d, device_buffer buffer) {
    (void)d;
    (void)buffer;
    return NULL;
}

/* ---- contents ---- */

static CUresult set_contents(const cuda_device *c, const cuda_buffer *b) {
    if (b->bytes == 0)
        return CUDA_SUCCESS;
    return is_initialised(b) ? c->cu.cuMemcpyHtoD_v2(contents(b), b->before, b->bytes)
                             : c->cu.cuMemsetD8_v2(contents(b), c->poison, b->bytes);
}

/* The allocation in the current context. */
static CUresult place(const cuda_device *c, cuda_buffer *b) {
    CUresult result = c->cu.cuMemAlloc_v2(&b->base, b->bytes + 2ul * CUDA_CANARY_BYTES);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemsetD8_v2(b->base, CANARY, CUDA_CANARY_BYTES);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuMemsetD8_v2(contents(b) + b->bytes, CANARY, CUDA_CANARY_BYTES);
    return result == CUDA_SUCCESS ? set_contents(c, b) : result;
}

ev_status cuda_restore_buffers(cuda_device *c, ev_error *err) {
    for (size_t i = 0; i < c->count; i++) {
        c->buffers[i].keep = 0;
        c->buffers[i].is_mirrored = false;
        EV_TRY(cuda_check(c, place(c, &c->buffers[i]), "putting back a buffer", err));
    }
    return EV_OK;
}

ev_status cuda_renew_contents(cuda_device *c, ev_error *err) {
    for (size_t i = 0; i < c->count; i++) {
        c->buffers[i].is_mirrored = false;
        if (c->buffers[i].kind != VM_BUFFER_IN)
            EV_TRY(cuda_check(c, set_contents(c, &c->buffers[i]), "setting a buffer", err));
    }
    return EV_OK;
}

/* ---- making and freeing ---- */

static void free_host(cuda_buffer *b) {
    free(b->before);
    free(b->mirror);
}

static ev_status make_room(cuda_device *c, ev_error *err) {
    if (c->count < c->room)
        return EV_OK;
    size_t room = c->room == 0 ? 16 : c->room * 2;
    cuda_buffer *more = realloc(c->buffers, room * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(err, room * sizeof *more);
    c->buffers = more;
    c->room = room;
    return EV_OK;
}

ev_status cuda_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                     device_buffer *out, ev_error *err) {
    cuda_device *c = cuda_of(d);
    EV_TRY(cuda_enter(c, err));
    EV_TRY(make_room(c, err));
    if (bytes > d->properties.memory_bytes)
        return ev_fail(err, EV_BAD, "buffer '%s' of %llu bytes: %s has %llu", name,
                       (unsigned long long)bytes, d->properties.id,
                       (unsigned long long)d->properties.memory_bytes);
    cuda_buffer made = {.bytes = bytes, .kind = kind};
    (void)snprintf(made.name, sizeof made.name, "%s", name);
    if (is_initialised(&made)) {
        made.before = calloc(1, bytes > 0 ? bytes : 1);
        if (made.before == NULL)
            return ev_fail_memory(err, bytes);
    }
    CUresult result = place(c, &made);
    if (result != CUDA_SUCCESS) {
        (void)c->cu.cuMemFree_v2(made.base);
        free_host(&made);
        return result == CUDA_ERROR_OUT_OF_MEMORY
                   ? ev_fail(err, EV_INFRA, "%s has no %llu bytes left for buffer '%s'",
                             d->properties.id, (unsigned long long)bytes, name)
                   : cuda_check(c, result, "allocating a buffer", err);
    }
    c->buffers[c->count++] = made;
    *out = (device_buffer)c->count;
    return EV_OK;
}

void cuda_clear(device *d) {
    cuda_device *c = cuda_of(d);
    ev_error ignored;
    bool usable = c->context != NULL && cuda_enter(c, &ignored) == EV_OK;
    for (size_t i = 0; i < c->count; i++) {
        if (usable) {
            (void)c->cu.cuMemFree_v2(c->buffers[i].base);
            (void)c->cu.cuMemFree_v2(c->buffers[i].keep);
        }
        free_host(&c->buffers[i]);
    }
    c->count = 0;
}

/* ---- reading and writing ---- */

ev_status cuda_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                     uint64_t bytes, ev_error *err) {
    cuda_device *c = cuda_of(d);
    cuda_buffer *b = buffer_at(d, buffer);
    assert(offset <= b->bytes && bytes <= b->bytes - offset && is_initialised(b));
    EV_TRY(cuda_enter(c, err));
    if (bytes == 0)
        return EV_OK;
    b->is_mirrored = false;
    memcpy(b->before + offset, data, bytes);
    return cuda_check(c, c->cu.cuMemcpyHtoD_v2(contents(b) + offset, data, bytes), "cuMemcpyHtoD",
                      err);
}

/* Contents on the host; read once after each launch, since callers look at single elements. */
static ev_status need_mirror(cuda_device *c, cuda_buffer *b, ev_error *err) {
    if (b->is_mirrored)
        return EV_OK;
    EV_TRY(cuda_enter(c, err));
    if (b->mirror == NULL)
        b->mirror = malloc(b->bytes > 0 ? b->bytes : 1);
    if (b->mirror == NULL)
        return ev_fail_memory(err, b->bytes);
    if (b->bytes > 0)
        EV_TRY(cuda_check(c, c->cu.cuMemcpyDtoH_v2(b->mirror, contents(b), b->bytes),
                          "cuMemcpyDtoH", err));
    b->is_mirrored = true;
    return EV_OK;
}

ev_status cuda_read(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                    ev_error *err) {
    cuda_buffer *b = buffer_at(d, buffer);
    assert(offset <= b->bytes && bytes <= b->bytes - offset);
    EV_TRY(need_mirror(cuda_of(d), b, err));
    memcpy(data, b->mirror + offset, bytes);
    return EV_OK;
}

ev_status cuda_reset(device *d, uint8_t poison, ev_error *err) {
    cuda_device *c = cuda_of(d);
    EV_TRY(cuda_enter(c, err));
    c->poison = poison;
    for (size_t i = 0; i < c->count; i++) {
        cuda_buffer *b = &c->buffers[i];
        b->is_mirrored = false;
        if (!is_initialised(b))
            EV_TRY(cuda_check(c, set_contents(c, b), "poisoning an output", err));
    }
    return EV_OK;
}

/* An element that differs from what it was before the launch. */
static bool was_written(const cuda_device *c, const cuda_buffer *b, uint64_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        uint8_t was = is_initialised(b) ? b->before[at + i] : c->poison;
        if (b->mirror[at + i] != was)
            return true;
    }
    return false;
}

ev_status cuda_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                       uint64_t count, uint8_t *written, uint64_t *how_many, ev_error *err) {
    cuda_device *c = cuda_of(d);
    cuda_buffer *b = buffer_at(d, buffer);
    uint64_t total = 0;
    EV_TRY(need_mirror(c, b, err));
    for (uint64_t i = 0; i < count; i++) {
        bool yes = was_written(c, b, (first + i) * element_bytes, element_bytes);
        if (written != NULL)
            written[i] = yes;
        total += yes;
    }
    *how_many = total;
    return EV_OK;
}

/* ---- after a launch ---- */

static ev_status is_whole(const cuda_device *c, CUdeviceptr at, bool *whole, ev_error *err) {
    uint8_t bytes[CUDA_CANARY_BYTES];
    EV_TRY(cuda_check(c, c->cu.cuMemcpyDtoH_v2(bytes, at, sizeof bytes), "reading a canary", err));
    *whole = true;
    for (size_t i = 0; i < sizeof bytes; i++)
        *whole = *whole && bytes[i] == CANARY;
    return EV_OK;
}

static ev_status inspect(cuda_device *c, cuda_buffer *b, bool inputs, vm_trap *trap,
                         ev_error *err) {
    bool below = true, above = true;
    EV_TRY(is_whole(c, b->base, &below, err));
    EV_TRY(is_whole(c, contents(b) + b->bytes, &above, err));
    if (!below || !above) {
        *trap = (vm_trap){.kind = VM_TRAP_OUT_OF_BOUNDS};
        (void)snprintf(trap->message, sizeof trap->message,
                       "out-of-bounds: the canary %s buffer '%s' was written over",
                       below ? "behind" : "before", b->name);
        cuda_replace_contexts(c, trap); /* what else was written over is not known */
        return EV_OK;
    }
    if (!inputs || b->kind != VM_BUFFER_IN)
        return EV_OK;
    EV_TRY(need_mirror(c, b, err));
    if (memcmp(b->mirror, b->before, b->bytes) == 0)
        return EV_OK;
    *trap = (vm_trap){.kind = VM_TRAP_READ_ONLY_WRITE};
    (void)snprintf(trap->message, sizeof trap->message,
                   "write-outside-outputs: the input '%s' was changed", b->name);
    b->is_mirrored = false;
    return cuda_check(c, set_contents(c, b), "putting back an input", err);
}

ev_status cuda_inspect(cuda_device *c, bool inputs, vm_trap *trap, ev_error *err) {
    for (size_t i = 0; i < c->count && trap->kind == VM_TRAP_NONE; i++)
        EV_TRY(inspect(c, &c->buffers[i], inputs, trap, err));
    return EV_OK;
}
