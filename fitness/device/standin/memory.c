/* Buffers: device, host and managed memory, and what a pointer is. */
#include "fitness/device/standin/standin.h"

#include <stdlib.h>
#include <string.h>

#define PITCH_UNIT 512

/* ---- buffers ---- */

/* How many buffers begin at or below the address. */
static size_t buffers_below(uint64_t address) {
    const sd_state *s = sd_get();
    size_t lo = 0, hi = s->buffer_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->buffers[mid].address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

sd_buffer *sd_buffer_at(uint64_t address, uint64_t bytes) {
    size_t n = buffers_below(address);
    sd_buffer *b = n > 0 ? &sd_get()->buffers[n - 1] : NULL;
    return b != NULL && address - b->address < b->bytes &&
                   bytes <= b->bytes - (address - b->address)
               ? b
               : NULL;
}

sd_buffer *sd_buffer_by_host(const void *host, uint64_t bytes) {
    sd_state *s = sd_get();
    for (size_t i = 0; i < s->buffer_count; i++) {
        uint64_t offset = (uintptr_t)host - (uintptr_t)s->buffers[i].host;
        if (offset < s->buffers[i].bytes && bytes <= s->buffers[i].bytes - offset)
            return &s->buffers[i];
    }
    return NULL;
}

static bool make_room(void) {
    sd_state *s = sd_get();
    if (s->buffer_count < s->buffer_room)
        return true;
    size_t room = s->buffer_room == 0 ? 64 : s->buffer_room * 2;
    sd_buffer *more = realloc(s->buffers, room * sizeof *more);
    if (more == NULL)
        return false;
    s->buffers = more;
    s->buffer_room = room;
    return true;
}

static bool counts(const sd_buffer *b) {
    return b->where != SD_ON_HOST;
}

CUresult sd_alloc(sd_context *c, sd_where where, uint64_t bytes, unsigned flags, const char *name,
                  sd_buffer **out) {
    sd_state *s = sd_get();
    sd_device *d = sd_device_of(c);
    ev_error err;
    sd_buffer made = {
        .bytes = bytes, .where = where, .device = c->device, .flags = flags, .context = c};
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sd_drain(); /* the machine's list of buffers changes */
    if ((counts(&made) && bytes > d->bytes - d->used) || !make_room() ||
        vm_memory_alloc(s->memory, bytes, VM_BUFFER_INOUT, name, &made.address, &err) != EV_OK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made.host = vm_memory_host(s->memory, made.address);
    d->used += counts(&made) ? bytes : 0;
    size_t at = buffers_below(made.address);
    memmove(&s->buffers[at + 1], &s->buffers[at], (s->buffer_count - at) * sizeof made);
    s->buffers[at] = made;
    s->buffer_count++;
    *out = &s->buffers[at];
    return CUDA_SUCCESS;
}

void sd_free(uint64_t address) {
    sd_state *s = sd_get();
    sd_buffer *b = sd_buffer_at(address, 0);
    if (b == NULL || b->address != address)
        return;
    if (counts(b))
        s->devices[b->device].used -= b->bytes;
    (void)vm_memory_release(s->memory, address);
    size_t at = (size_t)(b - s->buffers);
    memmove(b, b + 1, (s->buffer_count - at - 1) * sizeof *b);
    s->buffer_count--;
}

void sd_free_all(const sd_context *context) {
    sd_state *s = sd_get();
    for (size_t i = s->buffer_count; i-- > 0;) {
        if (s->buffers[i].context == context)
            sd_free(s->buffers[i].address);
    }
}

/* ---- device memory ---- */

CUresult sd_cuMemGetInfo_v2(size_t *left, size_t *total) {
    const sd_device *d = sd_device_of(sd_current());
    if (left != NULL)
        *left = d->bytes - d->used;
    if (total != NULL)
        *total = d->bytes;
    return CUDA_SUCCESS;
}

static CUresult alloc_to(CUdeviceptr *address, sd_where where, size_t bytes, unsigned flags) {
    sd_buffer *b = NULL;
    if (address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sd_alloc(sd_current(), where, bytes, flags, "buffer", &b);
    if (result == CUDA_SUCCESS)
        *address = b->address;
    return result;
}

CUresult sd_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    return alloc_to(address, SD_ON_DEVICE, bytes, 0);
}

CUresult sd_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                               unsigned element) {
    if (pitch == NULL || width > SIZE_MAX / 2 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
    if (height != 0 && row > SIZE_MAX / height)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pitch = row;
    return sd_cuMemAlloc_v2(address, row * height);
}

CUresult sd_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
    if (flags != 1 && flags != 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (!vm_memory_is_unified(sd_get()->memory))
        return CUDA_ERROR_NOT_SUPPORTED;
    return alloc_to(address, SD_MANAGED, bytes, flags);
}

CUresult sd_cuMemFree_v2(CUdeviceptr address) {
    if (address == 0)
        return CUDA_SUCCESS;
    sd_drain();
    const sd_buffer *b = sd_buffer_at(address, 0);
    if (b == NULL || b->address != address || b->where == SD_ON_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    sd_free(address);
    return CUDA_SUCCESS;
}

CUresult sd_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    return sd_stream_of(stream) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                        : sd_cuMemAlloc_v2(address, bytes);
}

CUresult sd_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    sd_stream *on = sd_stream_of(stream);
    const sd_buffer *b = sd_buffer_at(address, 0);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (b == NULL || b->address != address || b->where != SD_ON_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    sd_entry *e = sd_entry_new(SD_DO_FREE, on);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->address = address;
    sd_push(e);
    return CUDA_SUCCESS;
}

CUresult sd_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    const sd_buffer *b = sd_buffer_at(address, 0);
    if (b == NULL)
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = b->address;
    if (bytes != NULL)
        *bytes = b->bytes;
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

CUresult sd_cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    sd_buffer *b = NULL;
    if (host == NULL || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sd_alloc(sd_current(), SD_ON_HOST, bytes, flags, "host memory", &b);
    if (result == CUDA_SUCCESS)
        *host = b->host;
    return result;
}

CUresult sd_cuMemAllocHost_v2(void **host, size_t bytes) {
    return sd_cuMemHostAlloc(host, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult sd_cuMemFreeHost(void *host) {
    sd_drain();
    const sd_buffer *b = sd_buffer_by_host(host, 0);
    if (b == NULL || b->host != host || b->where != SD_ON_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    sd_free(b->address);
    return CUDA_SUCCESS;
}

CUresult sd_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
    const sd_buffer *b = sd_buffer_by_host(host, 0);
    if (address == NULL || flags != 0 || b == NULL || b->where == SD_ON_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *address = b->address + (uint64_t)((char *)host - b->host);
    return CUDA_SUCCESS;
}

CUresult sd_cuMemHostGetFlags(unsigned *flags, void *host) {
    const sd_buffer *b = sd_buffer_by_host(host, 0);
    if (flags == NULL || b == NULL || b->where != SD_ON_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = b->flags;
    return CUDA_SUCCESS;
}

/* Pins nothing, and copies work as from any memory; kernels cannot see it. */
CUresult sd_cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) {
    if (host == NULL || bytes == 0 || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    return flags & CU_MEMHOSTALLOC_DEVICEMAP ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult sd_cuMemHostUnregister(void *host) {
    return host == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- what a pointer is ---- */

static void set_number(void *value, uint64_t number, size_t bytes) {
    memcpy(value, &number, bytes);
}

static CUresult attribute_of(void *value, CUpointer_attribute attribute, const sd_buffer *b,
                             uint64_t address) {
    uint64_t host = (uintptr_t)b->host + (address - b->address);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        set_number(value, b->context->base.handle, 8);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        set_number(value, b->where == SD_ON_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, 4);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        set_number(value, address, 8);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        set_number(value, host, 8);
        return b->where == SD_ON_DEVICE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        set_number(value, b->address, 8);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        set_number(value, b->bytes, 8);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        set_number(value, b->where == SD_MANAGED, 4);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        set_number(value, (uint64_t)b->device, 4);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        set_number(value, 1, 1);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sd_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    const sd_buffer *b = sd_buffer_at(address, 0);
    if (b == NULL)
        b = sd_buffer_by_host((const void *)(uintptr_t)address, 0);
    if (value == NULL || b == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool by_host = sd_buffer_at(address, 0) == NULL;
    uint64_t at = by_host ? b->address + (address - (uintptr_t)b->host) : address;
    return attribute_of(value, attribute, b, at);
}
