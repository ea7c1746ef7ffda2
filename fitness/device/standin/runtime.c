/* Devices, registered code and launches of the stand-in for the CUDA runtime library.
 *
 * Host code that nvcc makes registers its fat binaries, kernels and variables before main. A fat
 * binary becomes a module of a device when a kernel or a variable of it is first used there. */
#include "fitness/device/standin/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MOST = 16 };

/* A fat binary. */
typedef struct binary {
    struct binary *next;
    const void *image;
    CUmodule modules[DEVICES_MOST]; /* NULL: not loaded there */
} binary;

/* A kernel or a variable, by its address in the host's program. */
typedef struct symbol {
    const void *host;
    const char *name;
    binary *of;
    size_t bytes; /* of a variable; 0: a kernel */
} symbol;

static struct {
    pthread_mutex_t lock;
    binary *binaries;
    symbol *symbols;
    size_t count, room;
    bool retained[DEVICES_MOST];
} runtime = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int device;
static _Thread_local rt_error last;

rt_error rt_keep(rt_error result) {
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        last = result;
    return result;
}

/* ---- devices ---- */

static rt_error use(int number) {
    CUcontext context = NULL;
    (void)pthread_mutex_lock(&runtime.lock);
    /* One reference a process: a primary context lives until cudaDeviceReset. */
    rt_error result = cuDevicePrimaryCtxRetain(&context, number);
    if (result == CUDA_SUCCESS && runtime.retained[number])
        (void)cuDevicePrimaryCtxRelease_v2(number);
    if (result == CUDA_SUCCESS)
        runtime.retained[number] = true;
    (void)pthread_mutex_unlock(&runtime.lock);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

static rt_error start(void) {
    int version = 0;
    rt_error result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDriverGetVersion(&version);
    if (result == CUDA_SUCCESS && version < RUNTIME_VERSION * 1000)
        result = RT_INSUFFICIENT_DRIVER;
    return result;
}

rt_error rt_ready(void) {
    CUcontext now = NULL;
    rt_error result = start();
    if (result == CUDA_SUCCESS)
        result = cuCtxGetCurrent(&now);
    return result == CUDA_SUCCESS && now == NULL ? use(device) : result;
}

RT_EXPORT rt_error cudaSetDevice(int number);
RT_EXPORT rt_error cudaGetDevice(int *number);
RT_EXPORT rt_error cudaGetDeviceCount(int *count);
RT_EXPORT rt_error cudaDeviceReset(void);
RT_EXPORT rt_error cudaGetLastError(void);
RT_EXPORT rt_error cudaPeekAtLastError(void);

rt_error cudaSetDevice(int number) {
    int count = 0;
    rt_error result = start();
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetCount(&count);
    if (result == CUDA_SUCCESS && (number < 0 || number >= count))
        result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS)
        result = use(number);
    if (result == CUDA_SUCCESS)
        device = number;
    return rt_keep(result);
}

rt_error cudaGetDevice(int *number) {
    if (number == NULL)
        return rt_keep(CUDA_ERROR_INVALID_VALUE);
    *number = device;
    return CUDA_SUCCESS;
}

rt_error cudaGetDeviceCount(int *count) {
    rt_error result = start();
    return rt_keep(result == CUDA_SUCCESS ? cuDeviceGetCount(count) : result);
}

/* The modules go with the context. */
rt_error cudaDeviceReset(void) {
    rt_error result = rt_ready();
    if (result != CUDA_SUCCESS)
        return rt_keep(result);
    (void)pthread_mutex_lock(&runtime.lock);
    for (binary *of = runtime.binaries; of != NULL; of = of->next)
        of->modules[device] = NULL;
    runtime.retained[device] = false;
    result = cuDevicePrimaryCtxReset_v2(device);
    (void)pthread_mutex_unlock(&runtime.lock);
    (void)cuCtxSetCurrent(NULL);
    last = CUDA_SUCCESS;
    return rt_keep(result);
}

rt_error cudaGetLastError(void) {
    rt_error result = last;
    last = CUDA_SUCCESS;
    return result;
}

rt_error cudaPeekAtLastError(void) {
    return last;
}

/* ---- registration ---- */

/* What host code passes between <<< >>> and the kernel's stub. */
typedef struct configuration {
    rt_dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

enum { NESTED_MOST = 8 };
static _Thread_local configuration pushed[NESTED_MOST];
static _Thread_local int pushed_count;

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapper);
RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
RT_EXPORT char __cudaInitModule(void **handle);
RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
                                      int limit, void *tid, void *bid, rt_dim3 *block,
                                      rt_dim3 *grid, int *warp);
RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
                                 int is_extern, size_t bytes, int is_constant, int is_global);
RT_EXPORT unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t shared,
                                               void *stream);
RT_EXPORT rt_error __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *shared,
                                              void *stream);

void **__cudaRegisterFatBinary(void *wrapper) {
    binary *made = calloc(1, sizeof *made);
    if (made != NULL) {
        (void)pthread_mutex_lock(&runtime.lock);
        *made = (binary){.next = runtime.binaries, .image = wrapper};
        runtime.binaries = made;
        (void)pthread_mutex_unlock(&runtime.lock);
    }
    return (void **)(void *)made;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

/* Drops a binary with its kernels and variables: another library may come to lie at their
 * addresses.
 */
static void drop(const binary *of) {
    size_t kept = 0;
    (void)pthread_mutex_lock(&runtime.lock);
    for (binary **at = &runtime.binaries; *at != NULL; at = &(*at)->next) {
        if (*at == of) {
            *at = of->next;
            break;
        }
    }
    for (size_t i = 0; i < runtime.count; i++) {
        if (runtime.symbols[i].of != of)
            runtime.symbols[kept++] = runtime.symbols[i];
    }
    runtime.count = kept;
    (void)pthread_mutex_unlock(&runtime.lock);
}

/* At the end of the process, or by dlclose of the library that registered it. Launches that nothing
 * waited for still run: a module must not go before they end. */
void __cudaUnregisterFatBinary(void **handle) {
    binary *of = (binary *)(void *)handle;
    CUcontext before = NULL;
    bool has_context = cuCtxGetCurrent(&before) == CUDA_SUCCESS;
    if (of == NULL)
        return;
    drop(of);
    for (int i = 0; i < DEVICES_MOST; i++) {
        if (of->modules[i] == NULL || use(i) != CUDA_SUCCESS)
            continue;
        (void)cuCtxSynchronize();
        (void)cuModuleUnload(of->modules[i]);
    }
    if (has_context)
        (void)cuCtxSetCurrent(before);
    free(of);
}

char __cudaInitModule(void **handle) {
    return handle != NULL;
}

static void add_symbol(symbol made) {
    (void)pthread_mutex_lock(&runtime.lock);
    if (runtime.count == runtime.room) {
        size_t room = runtime.room == 0 ? 64 : runtime.room * 2;
        symbol *more = realloc(runtime.symbols, room * sizeof *more);
        runtime.symbols = more != NULL ? more : runtime.symbols;
        runtime.room = more != NULL ? room : runtime.room;
    }
    if (runtime.count < runtime.room && made.of != NULL)
        runtime.symbols[runtime.count++] = made;
    (void)pthread_mutex_unlock(&runtime.lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
                            int limit, void *tid, void *bid, rt_dim3 *block, rt_dim3 *grid,
                            int *warp) {
    (void)stub, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add_symbol((symbol){.host = host, .name = name, .of = (binary *)(void *)handle});
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int is_extern,
                       size_t bytes, int is_constant, int is_global) {
    (void)address, (void)is_extern, (void)is_constant, (void)is_global;
    add_symbol(
        (symbol){.host = host, .name = name, .of = (binary *)(void *)handle, .bytes = bytes});
}

/* The module of a symbol on the thread's device. */
static rt_error module_of(const symbol *s, CUmodule *out) {
    CUdevice now = device;
    rt_error result = cuCtxGetDevice(&now);
    CUmodule *place = &s->of->modules[now];
    if (result == CUDA_SUCCESS && *place == NULL)
        result = cuModuleLoadData(place, s->of->image);
    *out = *place;
    return result;
}

static const symbol *find(const void *host, bool is_variable) {
    for (size_t i = 0; i < runtime.count; i++) {
        if (runtime.symbols[i].host == host && (runtime.symbols[i].bytes > 0) == is_variable)
            return &runtime.symbols[i];
    }
    return NULL;
}

rt_error rt_function(const void *host, CUfunction *out) {
    CUmodule module = NULL;
    rt_error result = rt_ready();
    if (result != CUDA_SUCCESS)
        return result;
    (void)pthread_mutex_lock(&runtime.lock);
    const symbol *s = find(host, false);
    result = s != NULL ? module_of(s, &module) : RT_INVALID_FUNCTION;
    if (result == CUDA_SUCCESS)
        result = cuModuleGetFunction(out, module, s->name);
    (void)pthread_mutex_unlock(&runtime.lock);
    return result;
}

rt_error rt_variable(const void *host, CUdeviceptr *address, size_t *bytes) {
    CUmodule module = NULL;
    rt_error result = rt_ready();
    if (result != CUDA_SUCCESS)
        return result;
    (void)pthread_mutex_lock(&runtime.lock);
    const symbol *s = find(host, true);
    result = s != NULL ? module_of(s, &module) : RT_INVALID_SYMBOL;
    if (result == CUDA_SUCCESS)
        result = cuModuleGetGlobal_v2(address, bytes, module, s->name);
    (void)pthread_mutex_unlock(&runtime.lock);
    return result == CUDA_ERROR_NOT_FOUND ? RT_INVALID_SYMBOL : result;
}

/* ---- launches ---- */

RT_EXPORT rt_error cudaLaunchKernel(const void *host, rt_dim3 grid, rt_dim3 block, void **arguments,
                                    size_t shared, CUstream stream);
RT_EXPORT rt_error cudaLaunchCooperativeKernel(const void *host, rt_dim3 grid, rt_dim3 block,
                                               void **arguments, size_t shared, CUstream stream);
RT_EXPORT rt_error __cudaGetKernel(void **kernel, const void *host);
RT_EXPORT rt_error __cudaLaunchKernel(void *kernel, rt_dim3 grid, rt_dim3 block, void **arguments,
                                      size_t shared, CUstream stream);

unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t shared, void *stream) {
    if (pushed_count == NESTED_MOST)
        return 1;
    pushed[pushed_count++] = (configuration){grid, block, shared, stream};
    return 0;
}

rt_error __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *shared, void *stream) {
    if (pushed_count == 0)
        return rt_keep(RT_INVALID_CONFIGURATION);
    const configuration *c = &pushed[--pushed_count];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    memcpy(stream, &c->stream, sizeof c->stream);
    return CUDA_SUCCESS;
}

static rt_error launch(const void *host, rt_dim3 grid, rt_dim3 block, void **arguments,
                       size_t shared, CUstream stream, bool is_cooperative) {
    CUfunction f = NULL;
    rt_error result = rt_function(host, &f);
    if (result == CUDA_SUCCESS && shared > UINT32_MAX)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_keep(result);
    unsigned bytes = (unsigned)shared;
    result = is_cooperative ? cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y,
                                                        block.z, bytes, stream, arguments)
                            : cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             bytes, stream, arguments, NULL);
    return rt_keep(result == CUDA_ERROR_INVALID_VALUE ? RT_INVALID_CONFIGURATION : result);
}

rt_error cudaLaunchKernel(const void *host, rt_dim3 grid, rt_dim3 block, void **arguments,
                          size_t shared, CUstream stream) {
    return launch(host, grid, block, arguments, shared, stream, false);
}

rt_error cudaLaunchCooperativeKernel(const void *host, rt_dim3 grid, rt_dim3 block,
                                     void **arguments, size_t shared, CUstream stream) {
    return launch(host, grid, block, arguments, shared, stream, true);
}

/* A kernel's handle is its address in the host's program, which no device is part of. */
rt_error __cudaGetKernel(void **kernel, const void *host) {
    if (kernel == NULL)
        return rt_keep(CUDA_ERROR_INVALID_VALUE);
    memcpy(kernel, &host, sizeof host);
    return CUDA_SUCCESS;
}

rt_error __cudaLaunchKernel(void *kernel, rt_dim3 grid, rt_dim3 block, void **arguments,
                            size_t shared, CUstream stream) {
    return launch(kernel, grid, block, arguments, shared, stream, false);
}
