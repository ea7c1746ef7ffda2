/* Devices and contexts. */
#include "fitness/device/standin/standin.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver ---- */

CUresult sd_cuInit(unsigned flags) {
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : sd_start();
}

CUresult sd_cuDriverGetVersion(int *version) {
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sd_driver()->cuda;
    return CUDA_SUCCESS;
}

CUresult sd_cuProfilerStart(void) {
    return CUDA_SUCCESS;
}

CUresult sd_cuProfilerStop(void) {
    return CUDA_SUCCESS;
}

/* ---- devices ---- */

CUresult sd_cuDeviceGetCount(int *count) {
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sd_get()->device_count;
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGet(CUdevice *device, int ordinal) {
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetName(char *name, int length, CUdevice device) {
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(name, (size_t)length, "%s (modelled)", sd_get()->devices[device].g->name);
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof *uuid);
    (void)snprintf(uuid->bytes, sizeof uuid->bytes, "evoke-vm-%d", device);
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    return sd_cuDeviceGetUuid_v2(uuid, device);
}

CUresult sd_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = sd_get()->devices[device].bytes;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(int *value, int attribute, CUdevice ordinal) {
    const gpu *g = sd_get()->devices[ordinal].g;
    bool unified = vm_memory_is_unified(sd_get()->memory);
#define V(key) gpu_get(g, GPU_##key)
#define SM (g->sm)
#define ORDINAL ordinal
#define UNIFIED unified
    switch (attribute) {
#define CU_ATTRIBUTE(id, number, is)                                                               \
    case number:                                                                                   \
        *value = (is);                                                                             \
        return CUDA_SUCCESS;
#include "base/cuda/attributes.def"
#undef CU_ATTRIBUTE
    default:
        break;
    }
#undef V
#undef SM
#undef ORDINAL
#undef UNIFIED
    if (attribute < 1 || attribute > 200)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0; /* whatever it is, there is none of it */
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return sd_is_device(device) ? attribute_of(value, attribute, device)
                                : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sd_cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = sd_get()->devices[device].g->sm / 10;
    *minor = sd_get()->devices[device].g->sm % 10;
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    if (id == NULL || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

/* "DOMAIN:BUS:..." or "BUS:..." in hexadecimal. */
static bool read_bus(const char *id, unsigned long *domain, unsigned long *bus) {
    char *end;
    *bus = strtoul(id, &end, 16);
    if (end == id || *end != ':')
        return false;
    const char *second = end + 1;
    unsigned long number = strtoul(second, &end, 16);
    if (end == second || *end != ':')
        return true;
    *domain = *bus;
    *bus = number;
    return true;
}

CUresult sd_cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    if (device == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned long domain = 0, bus = 0;
    if (!read_bus(id, &domain, &bus))
        return CUDA_ERROR_INVALID_VALUE;
    if (domain != 0 || bus > INT_MAX || !sd_is_device((int)bus - 1))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    if (can == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device) || !sd_is_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && !sd_get()->config.no_peers;
    return CUDA_SUCCESS;
}

CUresult sd_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer) {
    const sd_config *c = &sd_get()->config;
    if (value == NULL || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attribute > CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device) || !sd_is_device(peer) || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
        *value = 0;
    else if (attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)
        *value = !c->no_peers;
    else
        *value = !c->no_peer_atomics;
    return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static CUresult make_context(int device, unsigned flags, bool primary, sd_context **out) {
    sd_context *c = sd_new(SD_CONTEXT, sizeof *c, NULL);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->stream = sd_new(SD_STREAM, sizeof *c->stream, c);
    if (c->stream == NULL) {
        sd_drop(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->device = device;
    c->flags = flags;
    c->primary = primary;
    c->uses = 1;
    c->limits[CU_LIMIT_STACK_SIZE] = 1024;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    *out = c;
    return CUDA_SUCCESS;
}

/* Drops all objects of one kind that belong to the context. */
static void drop_kind(const sd_context *c, sd_kind kind) {
    size_t at = 0;
    for (sd_object *o = sd_next(kind, &at); o != NULL; o = sd_next(kind, &at)) {
        if (o->context != c)
            continue;
        if (kind == SD_MODULE)
            sd_module_free((sd_module *)(void *)o);
        else if (kind == SD_REFERENCE)
            sd_reference_free((sd_reference *)(void *)o);
        else
            sd_drop(o);
    }
}

static void forget_timed(const sd_context *c) {
    size_t at = 0;
    for (sd_event *e = sd_next(SD_EVENT, &at); e != NULL; e = sd_next(SD_EVENT, &at)) {
        if (e->base.context == c && !(e->flags & CU_EVENT_DISABLE_TIMING))
            sd_get()->timed_events--;
    }
}

void sd_context_free(sd_context *c) {
    forget_timed(c);
    const sd_kind kinds[] = {SD_MODULE, SD_FUNCTION, SD_EVENT, SD_STREAM, SD_ARRAY, SD_REFERENCE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        drop_kind(c, kinds[i]);
    sd_free_all(c);
    ev_str_free(&c->printed);
    if (c->primary)
        sd_device_of(c)->primary = NULL;
    sd_drop(c);
}

CUresult sd_cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sd_context *c = NULL;
    CUresult result = make_context(device, flags, false, &c);
    if (result != CUDA_SUCCESS)
        return result;
    *context = (CUcontext)c->base.handle;
    return sd_cuCtxPushCurrent_v2(*context);
}

/* With parameters a context would have some of the SMs, or share them with graphics. */
CUresult sd_cuCtxCreate_v3(CUcontext *context, void *params, int count, unsigned flags,
                           CUdevice device) {
    if (count < 0 || (count > 0 && params == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    return count > 0 ? CUDA_ERROR_NOT_SUPPORTED : sd_cuCtxCreate_v2(context, flags, device);
}

CUresult sd_cuCtxCreate_v4(CUcontext *context, const CUctxCreateParams *p, unsigned flags,
                           CUdevice device) {
    bool asks =
        p != NULL && (p->affinities != NULL || p->affinity_count != 0 || p->graphics != NULL);
    return asks ? CUDA_ERROR_NOT_SUPPORTED : sd_cuCtxCreate_v2(context, flags, device);
}

CUresult sd_cuCtxDestroy_v2(CUcontext context) {
    if (sd_find(context, SD_CONTEXT) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    sd_drain();
    sd_context *c = sd_find(context, SD_CONTEXT);
    if (c == NULL || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c == sd_current())
        (void)sd_cuCtxPopCurrent_v2(NULL);
    sd_context_free(c);
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxAttach(CUcontext *context, unsigned flags) {
    sd_context *c = sd_current();
    if (context == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    c->uses++;
    *context = (CUcontext)c->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxDetach(CUcontext context) {
    sd_context *c = sd_find(context, SD_CONTEXT);
    if (c == NULL || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --c->uses > 0 ? CUDA_SUCCESS : sd_cuCtxDestroy_v2(context);
}

CUresult sd_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sd_device *d = &sd_get()->devices[device];
    if (d->primary == NULL) {
        CUresult result = make_context(device, d->flags, true, &d->primary);
        if (result != CUDA_SUCCESS)
            return result;
    }
    d->retained++;
    *context = (CUcontext)d->primary->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sd_drain();
    sd_device *d = &sd_get()->devices[device];
    if (d->primary != NULL)
        sd_context_free(d->primary);
    return CUDA_SUCCESS;
}

CUresult sd_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sd_device *d = &sd_get()->devices[device];
    if (d->retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --d->retained == 0 ? sd_cuDevicePrimaryCtxReset_v2(device) : CUDA_SUCCESS;
}

CUresult sd_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sd_get()->devices[device].flags = flags;
    return CUDA_SUCCESS;
}

CUresult sd_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = sd_get()->devices[device].flags;
    *active = sd_get()->devices[device].primary != NULL;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxGetDevice(CUdevice *device) {
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = sd_current()->device;
    return CUDA_SUCCESS;
}

/* By the second ABI a context is named, and NULL is the current one. Programs that look a name up
 * with _v2 behind it call these with the arguments of the first, so anything else that is no
 * context means the current one, too. */
static sd_context *named_or_current(CUcontext context) {
    sd_context *c = sd_find(context, SD_CONTEXT);
    return c != NULL ? c : sd_current();
}

CUresult sd_cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    const sd_context *c = named_or_current(context);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = c->device;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxGetFlags(unsigned *flags) {
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = sd_current()->flags;
    return CUDA_SUCCESS;
}

/* Handles are never used again here, so they serve. */
CUresult sd_cuCtxGetId(CUcontext context, unsigned long long *id) {
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const sd_context *c = context != NULL ? sd_find(context, SD_CONTEXT) : sd_current();
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = (unsigned long long)c->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sd_find(context, SD_CONTEXT) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020; /* of the interface of contexts, not of CUDA */
    return CUDA_SUCCESS;
}

static bool is_limit(CUlimit limit) {
    return limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_MALLOC_HEAP_SIZE;
}

CUresult sd_cuCtxGetLimit(size_t *value, CUlimit limit) {
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_limit(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = sd_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxSetLimit(CUlimit limit, size_t value) {
    if (!is_limit(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    sd_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxGetCacheConfig(CUfunc_cache *config) {
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = sd_current()->cache;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxSetCacheConfig(CUfunc_cache config) {
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    sd_current()->cache = config;
    return CUDA_SUCCESS;
}

/* How wide the banks of shared memory are: a setting of before sm_50, ignored as there. */
CUresult sd_cuCtxGetSharedMemConfig(int *config) {
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = 1; /* four bytes */
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxSetSharedMemConfig(int config) {
    return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sd_cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxSynchronize(void) {
    sd_context *c = sd_current();
    sd_wait_context(c);
    c = sd_current();
    return c != NULL ? c->fault : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sd_cuCtxSynchronize_v2(CUcontext context) {
    const sd_context *c = named_or_current(context);
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    const void *handle = (const void *)c->base.handle;
    sd_wait_context(c);
    c = sd_find(handle, SD_CONTEXT);
    return c != NULL ? c->fault : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult peer_of(CUcontext peer, uint32_t *bit) {
    const sd_context *p = sd_find(peer, SD_CONTEXT);
    if (p == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *bit = 1u << p->device;
    return p->device == sd_current()->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sd_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    uint32_t bit = 0;
    CUresult result = flags != 0 ? CUDA_ERROR_INVALID_VALUE : peer_of(peer, &bit);
    if (result == CUDA_SUCCESS && sd_get()->config.no_peers)
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (result != CUDA_SUCCESS)
        return result;
    if (sd_current()->peers & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    sd_current()->peers |= bit;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxDisablePeerAccess(CUcontext peer) {
    uint32_t bit = 0;
    CUresult result = peer_of(peer, &bit);
    if (result != CUDA_SUCCESS)
        return result;
    if (!(sd_current()->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    sd_current()->peers &= ~bit;
    return CUDA_SUCCESS;
}
