/* Memory, streams, events and questions of the stand-in for the CUDA runtime library: each a call
 * of the driver. And the names that it exports without a body. */
#include "fitness/device/standin/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function that is one call of the driver in the thread's context. */
#define RT_CALL(name, params, call)                                                                \
    RT_EXPORT rt_error name params;                                                                \
    rt_error name params {                                                                         \
        rt_error ready_ = rt_ready();                                                              \
        return rt_keep(ready_ == CUDA_SUCCESS ? (call) : ready_);                                  \
    }

/* A call that needs the pointer, as CUDA does: NULL is an invalid value. */
#define RT_NEEDS(pointer, call) ((pointer) != NULL ? (call) : (rt_error)CUDA_ERROR_INVALID_VALUE)

static CUdeviceptr address_of(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* ---- memory ---- */

/* The runtime gives NULL where the driver refuses. */
static rt_error allocate(void **out, size_t bytes) {
    CUdeviceptr address = 0;
    rt_error result = CUDA_SUCCESS;
    if (bytes > 0)
        result = cuMemAlloc_v2(&address, bytes);
    memcpy(out, &address, sizeof address);
    return result;
}

static rt_error allocate_managed(void **out, size_t bytes, unsigned flags) {
    CUdeviceptr address = 0;
    rt_error result = cuMemAllocManaged(&address, bytes, flags);
    memcpy(out, &address, sizeof address);
    return result;
}

static rt_error allocate_rows(void **out, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr address = 0;
    rt_error result = cuMemAllocPitch_v2(&address, pitch, width, height, 16);
    memcpy(out, &address, sizeof address);
    return result;
}

static rt_error allocate_async(void **out, size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    rt_error result = cuMemAllocAsync(&address, bytes, stream);
    memcpy(out, &address, sizeof address);
    return result;
}

static rt_error device_pointer(void **out, void *host, unsigned flags) {
    CUdeviceptr address = 0;
    rt_error result = cuMemHostGetDevicePointer_v2(&address, host, flags);
    memcpy(out, &address, sizeof address);
    return result;
}

RT_CALL(cudaMalloc, (void **out, size_t bytes), RT_NEEDS(out, allocate(out, bytes)))
RT_CALL(cudaMallocManaged, (void **out, size_t bytes, unsigned flags),
        RT_NEEDS(out, allocate_managed(out, bytes, flags)))
RT_CALL(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
        RT_NEEDS(out, allocate_rows(out, pitch, width, height)))
RT_CALL(cudaMallocAsync, (void **out, size_t bytes, CUstream stream),
        RT_NEEDS(out, allocate_async(out, bytes, stream)))
RT_CALL(cudaMallocHost, (void **out, size_t bytes), cuMemHostAlloc(out, bytes, 0))
RT_CALL(cudaHostAlloc, (void **out, size_t bytes, unsigned flags),
        cuMemHostAlloc(out, bytes, flags))
RT_CALL(cudaFree, (void *pointer), cuMemFree_v2(address_of(pointer)))
RT_CALL(cudaFreeAsync, (void *pointer, CUstream stream),
        cuMemFreeAsync(address_of(pointer), stream))
RT_CALL(cudaFreeHost, (void *pointer), pointer != NULL ? cuMemFreeHost(pointer) : CUDA_SUCCESS)
RT_CALL(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags),
        cuMemHostRegister_v2(pointer, bytes, flags))
RT_CALL(cudaHostUnregister, (void *pointer), cuMemHostUnregister(pointer))
RT_CALL(cudaHostGetDevicePointer, (void **out, void *host, unsigned flags),
        RT_NEEDS(out, device_pointer(out, host, flags)))
RT_CALL(cudaHostGetFlags, (unsigned *flags, void *host), cuMemHostGetFlags(flags, host))
RT_CALL(cudaMemGetInfo, (size_t *left, size_t *total), cuMemGetInfo_v2(left, total))

/* ---- copies ---- */

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

bool rt_is_device(const void *pointer) {
    unsigned type = 0;
    return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(pointer)) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

/* The direction that BY_ADDRESS means; -1: no direction. */
static int direction(void *to, const void *from, int kind) {
    if (kind == BY_ADDRESS)
        kind = (rt_is_device(from) ? 2 : 0) + (rt_is_device(to) ? 1 : 0);
    return kind >= HOST_TO_HOST && kind <= DEVICE_TO_DEVICE ? kind : -1;
}

static rt_error copy(void *to, const void *from, size_t bytes, int kind) {
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (to == NULL || from == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (direction(to, from, kind)) {
    case HOST_TO_HOST:
        memcpy(to, from, bytes);
        return CUDA_SUCCESS;
    case HOST_TO_DEVICE:
        return cuMemcpyHtoD_v2(address_of(to), from, bytes);
    case DEVICE_TO_HOST:
        return cuMemcpyDtoH_v2(to, address_of(from), bytes);
    case DEVICE_TO_DEVICE:
        return cuMemcpyDtoD_v2(address_of(to), address_of(from), bytes);
    default:
        return RT_INVALID_DIRECTION;
    }
}

static rt_error copy_async(void *to, const void *from, size_t bytes, int kind, CUstream stream) {
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (to == NULL || from == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (direction(to, from, kind)) {
    case HOST_TO_HOST: {
        rt_error result = cuStreamSynchronize(stream);
        memcpy(to, from, bytes);
        return result;
    }
    case HOST_TO_DEVICE:
        return cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, stream);
    case DEVICE_TO_HOST:
        return cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, stream);
    case DEVICE_TO_DEVICE:
        return cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, stream);
    default:
        return RT_INVALID_DIRECTION;
    }
}

/* Row by row: a copy of rows has no time of its own in the model. */
static rt_error copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height, int kind, CUstream stream) {
    bool is_wide = width > to_pitch || width > from_pitch, is_empty = width == 0 || height == 0;
    bool is_nowhere = !is_empty && (to == NULL || from == NULL);
    rt_error result = is_wide || is_nowhere ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < height; i++)
        result = copy_async((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width,
                            kind, stream);
    return result;
}

static rt_error copy_rows_now(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, int kind) {
    rt_error result = copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL);
    return result == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : result;
}

static rt_error variable_at(const void *variable, size_t bytes, size_t offset, CUdeviceptr *out) {
    size_t has = 0;
    rt_error result = rt_variable(variable, out, &has);
    if (result == CUDA_SUCCESS && (offset > has || bytes > has - offset))
        result = CUDA_ERROR_INVALID_VALUE;
    *out += offset;
    return result;
}

static rt_error copy_to_variable(const void *variable, const void *from, size_t bytes,
                                 size_t offset, int kind, CUstream stream) {
    CUdeviceptr at = 0;
    rt_error result = variable_at(variable, bytes, offset, &at);
    return result == CUDA_SUCCESS
               ? copy_async((void *)(uintptr_t)at, from, bytes,
                            kind == BY_ADDRESS && !rt_is_device(from) ? HOST_TO_DEVICE : kind,
                            stream)
               : result;
}

static rt_error copy_from_variable(void *to, const void *variable, size_t bytes, size_t offset,
                                   int kind, CUstream stream) {
    CUdeviceptr at = 0;
    rt_error result = variable_at(variable, bytes, offset, &at);
    return result == CUDA_SUCCESS
               ? copy_async(to, (const void *)(uintptr_t)at, bytes,
                            kind == BY_ADDRESS && !rt_is_device(to) ? DEVICE_TO_HOST : kind, stream)
               : result;
}

static rt_error then_wait(rt_error result) {
    return result == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : result;
}

RT_CALL(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind),
        copy(to, from, bytes, kind))
RT_CALL(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, CUstream stream),
        copy_async(to, from, bytes, kind, stream))
RT_CALL(cudaMemcpy2D,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
         size_t height, int kind),
        copy_rows_now(to, to_pitch, from, from_pitch, width, height, kind))
RT_CALL(cudaMemcpy2DAsync,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
         size_t height, int kind, CUstream stream),
        copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream))
RT_CALL(cudaMemcpyToSymbol,
        (const void *variable, const void *from, size_t bytes, size_t offset, int kind),
        then_wait(copy_to_variable(variable, from, bytes, offset, kind, NULL)))
RT_CALL(cudaMemcpyToSymbolAsync,
        (const void *variable, const void *from, size_t bytes, size_t offset, int kind,
         CUstream stream),
        copy_to_variable(variable, from, bytes, offset, kind, stream))
RT_CALL(cudaMemcpyFromSymbol,
        (void *to, const void *variable, size_t bytes, size_t offset, int kind),
        then_wait(copy_from_variable(to, variable, bytes, offset, kind, NULL)))
RT_CALL(cudaMemcpyFromSymbolAsync,
        (void *to, const void *variable, size_t bytes, size_t offset, int kind, CUstream stream),
        copy_from_variable(to, variable, bytes, offset, kind, stream))
RT_CALL(cudaMemset, (void *to, int value, size_t bytes),
        cuMemsetD8_v2(address_of(to), (unsigned char)value, bytes))
RT_CALL(cudaMemsetAsync, (void *to, int value, size_t bytes, CUstream stream),
        cuMemsetD8Async(address_of(to), (unsigned char)value, bytes, stream))

static rt_error fill_rows(void *to, size_t pitch, int value, size_t width, size_t height) {
    rt_error result = width > pitch ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < height; i++)
        result = cuMemsetD8_v2(address_of(to) + i * pitch, (unsigned char)value, width);
    return result;
}

static rt_error variable_address(void **out, const void *variable) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    rt_error result = rt_variable(variable, &address, &bytes);
    memcpy(out, &address, sizeof address);
    return result;
}

static rt_error variable_bytes(size_t *out, const void *variable) {
    CUdeviceptr address = 0;
    return rt_variable(variable, &address, out);
}

RT_CALL(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
        fill_rows(to, pitch, value, width, height))
RT_CALL(cudaGetSymbolAddress, (void **out, const void *variable),
        RT_NEEDS(out, variable_address(out, variable)))
RT_CALL(cudaGetSymbolSize, (size_t *out, const void *variable),
        RT_NEEDS(out, variable_bytes(out, variable)))

/* Where managed memory lies is nothing that the machine models; the arguments differ between
 * versions. */
RT_EXPORT rt_error cudaMemPrefetchAsync(void);
RT_EXPORT rt_error cudaMemAdvise(void);

rt_error cudaMemPrefetchAsync(void) {
    return CUDA_SUCCESS;
}

rt_error cudaMemAdvise(void) {
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

RT_CALL(cudaDeviceSynchronize, (void), cuCtxSynchronize())
RT_CALL(cudaThreadSynchronize, (void), cuCtxSynchronize())
RT_CALL(cudaStreamCreate, (CUstream * out), cuStreamCreate(out, 0))
RT_CALL(cudaStreamCreateWithFlags, (CUstream * out, unsigned flags), cuStreamCreate(out, flags))
RT_CALL(cudaStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
        cuStreamCreateWithPriority(out, flags, priority))
RT_CALL(cudaStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
RT_CALL(cudaStreamSynchronize, (CUstream stream), cuStreamSynchronize(stream))
RT_CALL(cudaStreamQuery, (CUstream stream), cuStreamQuery(stream))
RT_CALL(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
        cuStreamWaitEvent(stream, event, flags))
RT_CALL(cudaStreamGetFlags, (CUstream stream, unsigned *flags), cuStreamGetFlags(stream, flags))
RT_CALL(cudaStreamGetPriority, (CUstream stream, int *priority),
        cuStreamGetPriority(stream, priority))
RT_CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
        cuCtxGetStreamPriorityRange(least, greatest))
RT_CALL(cudaLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
        cuLaunchHostFunc(stream, function, data))
RT_CALL(cudaStreamAddCallback,
        (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
        cuStreamAddCallback(stream, callback, data, flags))
RT_CALL(cudaEventCreate, (CUevent * out), cuEventCreate(out, 0))
RT_CALL(cudaEventCreateWithFlags, (CUevent * out, unsigned flags), cuEventCreate(out, flags))
RT_CALL(cudaEventDestroy, (CUevent event), cuEventDestroy_v2(event))
RT_CALL(cudaEventRecord, (CUevent event, CUstream stream), cuEventRecord(event, stream))
RT_CALL(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
        cuEventRecordWithFlags(event, stream, flags))
RT_CALL(cudaEventQuery, (CUevent event), cuEventQuery(event))
RT_CALL(cudaEventSynchronize, (CUevent event), cuEventSynchronize(event))
RT_CALL(cudaEventElapsedTime, (float *ms, CUevent from, CUevent to),
        cuEventElapsedTime(ms, from, to))
RT_CALL(cudaProfilerStart, (void), cuProfilerStart())
RT_CALL(cudaProfilerStop, (void), cuProfilerStop())

/* ---- kernels ---- */

/* cudaFuncAttributes, up to where all versions agree. */
typedef struct attributes {
    size_t shared, constant, local;
    int threads, registers, ptx, binary, cache, dynamic, carveout;
} attributes;

static rt_error read_attributes(attributes *out, const void *host) {
    int value[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT + 1] = {0};
    CUfunction f = NULL;
    rt_error result = rt_function(host, &f);
    for (int i = 0; result == CUDA_SUCCESS && i < (int)(sizeof value / sizeof value[0]); i++)
        result = cuFuncGetAttribute(&value[i], (CUfunction_attribute)i, f);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (attributes){.shared = (size_t)value[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
                        .constant = (size_t)value[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
                        .local = (size_t)value[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
                        .threads = value[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
                        .registers = value[CU_FUNC_ATTRIBUTE_NUM_REGS],
                        .ptx = value[CU_FUNC_ATTRIBUTE_PTX_VERSION],
                        .binary = value[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
                        .cache = value[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
                        .dynamic = value[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
                        .carveout = value[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT]};
    return CUDA_SUCCESS;
}

static rt_error set_attribute(const void *host, int attribute, int value) {
    CUfunction f = NULL;
    rt_error result = rt_function(host, &f);
    return result == CUDA_SUCCESS ? cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value)
                                  : result;
}

static rt_error set_cache(const void *host, int config) {
    CUfunction f = NULL;
    rt_error result = rt_function(host, &f);
    return result == CUDA_SUCCESS ? cuFuncSetCacheConfig(f, (CUfunc_cache)config) : result;
}

static rt_error count_blocks(int *out, const void *host, int block, size_t shared) {
    CUfunction f = NULL;
    rt_error result = rt_function(host, &f);
    return result == CUDA_SUCCESS
               ? cuOccupancyMaxActiveBlocksPerMultiprocessor(out, f, block, shared)
               : result;
}

RT_CALL(cudaFuncGetAttributes, (attributes * out, const void *host),
        RT_NEEDS(out, read_attributes(out, host)))
RT_CALL(cudaFuncSetAttribute, (const void *host, int attribute, int value),
        set_attribute(host, attribute, value))
RT_CALL(cudaFuncSetCacheConfig, (const void *host, int config), set_cache(host, config))
RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *out, const void *host, int block, size_t shared),
        count_blocks(out, host, block, shared))
RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *out, const void *host, int block, size_t shared, unsigned flags),
        flags > 1 ? CUDA_ERROR_INVALID_VALUE : count_blocks(out, host, block, shared))

/* ---- devices ---- */

RT_CALL(cudaDeviceGetAttribute, (int *value, int attribute, int device),
        cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device))
RT_CALL(cudaDeviceGetPCIBusId, (char *id, int length, int device),
        cuDeviceGetPCIBusId(id, length, device))
RT_CALL(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
        cuDeviceCanAccessPeer(can, device, peer))
RT_CALL(cudaDeviceGetLimit, (size_t *value, int limit), cuCtxGetLimit(value, (CUlimit)limit))
RT_CALL(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
RT_CALL(cudaDeviceSetCacheConfig, (int config), cuCtxSetCacheConfig((CUfunc_cache)config))

RT_EXPORT rt_error cudaSetDeviceFlags(unsigned flags);
RT_EXPORT rt_error cudaDriverGetVersion(int *version);
RT_EXPORT rt_error cudaRuntimeGetVersion(int *version);
RT_EXPORT const char *cudaGetErrorString(rt_error error);
RT_EXPORT const char *cudaGetErrorName(rt_error error);

/* How the host waits. */
rt_error cudaSetDeviceFlags(unsigned flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

rt_error cudaDriverGetVersion(int *version) {
    return rt_keep(cuDriverGetVersion(version));
}

rt_error cudaRuntimeGetVersion(int *version) {
    if (version == NULL)
        return rt_keep(CUDA_ERROR_INVALID_VALUE);
    *version = RUNTIME_VERSION * 1000;
    return CUDA_SUCCESS;
}

typedef struct own_error {
    rt_error number;
    const char *name, *words;
} own_error;

/* The words of an error that the driver has, too, are the driver's. */
static const own_error OWN_ERRORS[] = {
    {CUDA_SUCCESS, "cudaSuccess", NULL},
    {CUDA_ERROR_INVALID_VALUE, "cudaErrorInvalidValue", NULL},
    {CUDA_ERROR_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", NULL},
    {CUDA_ERROR_NOT_INITIALIZED, "cudaErrorInitializationError", NULL},
    {CUDA_ERROR_NO_DEVICE, "cudaErrorNoDevice", NULL},
    {CUDA_ERROR_INVALID_DEVICE, "cudaErrorInvalidDevice", NULL},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "cudaErrorNoKernelImageForDevice", NULL},
    {CUDA_ERROR_INVALID_PTX, "cudaErrorInvalidPtx", NULL},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "cudaErrorUnsupportedPtxVersion", NULL},
    {CUDA_ERROR_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", NULL},
    {CUDA_ERROR_NOT_FOUND, "cudaErrorSymbolNotFound", NULL},
    {CUDA_ERROR_NOT_READY, "cudaErrorNotReady", NULL},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "cudaErrorIllegalAddress", NULL},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "cudaErrorLaunchOutOfResources", NULL},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "cudaErrorLaunchTimeout", NULL},
    {CUDA_ERROR_ASSERT, "cudaErrorAssert", NULL},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "cudaErrorMisalignedAddress", NULL},
    {CUDA_ERROR_LAUNCH_FAILED, "cudaErrorLaunchFailure", NULL},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "cudaErrorCooperativeLaunchTooLarge", NULL},
    {CUDA_ERROR_NOT_SUPPORTED, "cudaErrorNotSupported", NULL},
    {RT_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {RT_INVALID_SYMBOL, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {RT_INVALID_DIRECTION, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {RT_INSUFFICIENT_DRIVER, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {RT_INVALID_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
};

static const own_error *find_error(rt_error number) {
    for (size_t i = 0; i < sizeof OWN_ERRORS / sizeof OWN_ERRORS[0]; i++) {
        if (OWN_ERRORS[i].number == number)
            return &OWN_ERRORS[i];
    }
    return NULL;
}

const char *cudaGetErrorString(rt_error error) {
    const own_error *own = find_error(error);
    const char *text = NULL;
    if (own != NULL && own->words != NULL)
        return own->words;
    return cuGetErrorString(error, &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

const char *cudaGetErrorName(rt_error error) {
    const own_error *own = find_error(error);
    const char *text = NULL;
    if (own != NULL)
        return own->name;
    return cuGetErrorName(error, &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

/* ---- without a body ---- */

static rt_error refuse(const char *name) {
    const char *quiet = getenv("EVOKE_STANDIN_QUIET");
    if (quiet == NULL || *quiet == '\0' || strcmp(quiet, "0") == 0)
        (void)fprintf(stderr, "libcudart stand-in: %s: not supported\n", name);
    return rt_keep(CUDA_ERROR_NOT_SUPPORTED);
}

#define RT_NAME(name)                                                                              \
    RT_EXPORT rt_error name(void);                                                                 \
    rt_error name(void) {                                                                          \
        return refuse(#name);                                                                      \
    }
#include "fitness/device/standin/runtime_names.def"
#undef RT_NAME
