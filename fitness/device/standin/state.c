/* The stand-in's state: configuration from the environment, devices, handles, and each thread's
 * contexts. */
#include "fitness/device/standin/standin.h"

#include "base/file.h"
#include "base/str.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLE_BASE ((uintptr_t)0x10000)
#define HANDLE_STEP ((uintptr_t)16)
/* What the host may allocate beside the devices' memory. */
#define HOST_BYTES (UINT64_C(64) << 30)
#define DEVICE_UNLESS_TOLD "h200"

static sd_state state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                         .more = PTHREAD_COND_INITIALIZER,
                         .done = PTHREAD_COND_INITIALIZER,
                         .end = &state.first};

sd_state *sd_get(void) {
    return &state;
}

void sd_say(const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sd_record_line("said", "%s", text);
    if (!state.config.quiet)
        (void)fprintf(stderr, "libcuda stand-in: %s\n", text);
}

/* ---- starting ---- */

static void read_config(sd_config *c) {
    const char *fuel = getenv("EVOKE_STANDIN_FUEL");
    const char *quiet = getenv("EVOKE_STANDIN_QUIET");
    const char *checks = getenv("EVOKE_STANDIN_CHECK");
    c->fuel = fuel != NULL ? strtoull(fuel, NULL, 10) : 0;
    c->quiet = quiet != NULL && quiet[0] != '\0' && strcmp(quiet, "0") != 0;
    const char *peers = getenv("EVOKE_STANDIN_PEERS");
    c->no_peers = peers != NULL && strcmp(peers, "none") == 0;
    c->no_peer_atomics = c->no_peers || (peers != NULL && strcmp(peers, "plain") == 0);
    const char *loading = getenv("CUDA_MODULE_LOADING");
    c->eager = loading != NULL && strcmp(loading, "EAGER") == 0;
    c->races = checks != NULL && strcmp(checks, "races") == 0;
}

/* ---- what the driver claims to be ---- */

static const sd_version VERSIONS[] = {
#define PTX_VERSION(cuda, branch, ptx) {cuda, branch, ptx},
#include "base/ptx/versions.def"
#undef PTX_VERSION
};

#define OLDEST_DRIVER 11000 /* cuGetProcAddress and what clients of today ask for came with it */

enum { VERSION_COUNT = sizeof VERSIONS / sizeof VERSIONS[0] };

/* "12.4" or the branch "550"; NULL: no such driver. */
static const sd_version *find_version(const char *text) {
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        const sd_version *v = &VERSIONS[i];
        if (v->cuda < OLDEST_DRIVER)
            continue;
        char cuda[16], branch[16];
        (void)snprintf(cuda, sizeof cuda, "%d.%d", v->cuda / 1000, v->cuda % 1000 / 10);
        (void)snprintf(branch, sizeof branch, "%d", v->branch);
        if (strcmp(text, cuda) == 0 || strcmp(text, branch) == 0)
            return v;
    }
    return NULL;
}

static const sd_version *wanted_version(void) {
    const char *text = getenv("EVOKE_STANDIN_DRIVER");
    return text == NULL || *text == '\0' ? &VERSIONS[VERSION_COUNT - 1] : find_version(text);
}

const sd_version *sd_driver(void) {
    const sd_version *v = wanted_version();
    return v != NULL ? v : &VERSIONS[VERSION_COUNT - 1];
}

static CUresult check_version(void) {
    if (wanted_version() != NULL)
        return CUDA_SUCCESS;
    sd_say("EVOKE_STANDIN_DRIVER=%s: no such driver; a CUDA version from 11.0 to 13.0 (12.4), or a "
           "driver's branch from 450 to 580 (550)",
           getenv("EVOKE_STANDIN_DRIVER"));
    return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

/* ---- devices ---- */

/* FOLDER/gpus/ID.json where FOLDER holds this library, as it is installed; malloc'ed, NULL: there
 * is none. */
static char *description_beside(const char *id) {
    Dl_info library;
    if (dladdr(&state, &library) == 0 || library.dli_fname == NULL)
        return NULL;
    char name[128];
    (void)snprintf(name, sizeof name, "gpus/%.100s.json", id);
    char *folder = ev_path_dir(library.dli_fname);
    char *path = folder != NULL ? ev_path_join(folder, name) : NULL;
    free(folder);
    if (path != NULL && ev_path_exists(path))
        return path;
    free(path);
    return NULL;
}

static ev_status load_description(const char *id, gpu **out, ev_error *err) {
    char *beside = strchr(id, '/') == NULL ? description_beside(id) : NULL;
    ev_status status = gpu_load(beside != NULL ? beside : id, out, err);
    free(beside);
    return status;
}

static CUresult add_device(const char *id) {
    ev_error err = {0};
    sd_device *d = &state.devices[state.device_count];
    if (state.device_count == SD_DEVICES_MOST || load_description(id, &d->g, &err) != EV_OK) {
        sd_say("EVOKE_STANDIN: %s", err.text[0] != '\0' ? err.text : "more than 16 devices");
        return CUDA_ERROR_NO_DEVICE;
    }
    d->bytes = (uint64_t)(gpu_get(d->g, GPU_DRAM_GB) * 1e9);
    state.device_count++;
    return CUDA_SUCCESS;
}

/* EVOKE_STANDIN: descriptions by id or path, with commas; empty: no device. */
static CUresult add_devices(void) {
    const char *list = getenv("EVOKE_STANDIN");
    char *ids = strdup(list != NULL ? list : DEVICE_UNLESS_TOLD), *rest = NULL;
    if (ids == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    for (char *id = strtok_r(ids, ", ", &rest); id != NULL && result == CUDA_SUCCESS;
         id = strtok_r(NULL, ", ", &rest))
        result = add_device(id);
    free(ids);
    return result == CUDA_SUCCESS && state.device_count == 0 ? CUDA_ERROR_NO_DEVICE : result;
}

static CUresult make_memory(void) {
    uint64_t bytes = HOST_BYTES;
    for (int i = 0; i < state.device_count; i++)
        bytes += state.devices[i].bytes;
    ev_error err;
    if (vm_memory_new_unified(bytes, &state.memory, &err) == EV_OK)
        return CUDA_SUCCESS;
    sd_say("%s", err.text);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A child has neither the queue's thread nor whoever held the lock. */
static void forked_child(void) {
    state.forked = state.ready;
    (void)pthread_mutex_init(&state.lock, NULL);
}

static bool watch_forks(void) {
    static bool watched;
    watched = watched || pthread_atfork(NULL, NULL, forked_child) == 0;
    return watched;
}

CUresult sd_start(void) {
    if (state.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (state.ready)
        return CUDA_SUCCESS;
    read_config(&state.config);
    CUresult result = check_version();
    if (result == CUDA_SUCCESS && !watch_forks())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = add_devices();
    if (result == CUDA_SUCCESS)
        result = make_memory();
    if (result != CUDA_SUCCESS) {
        while (state.device_count > 0)
            gpu_free(state.devices[--state.device_count].g);
        return result;
    }
    state.ready = true;
    sd_record_begin();
    return CUDA_SUCCESS;
}

/* ---- calls ---- */

static CUresult stands_against(sd_fn fn, sd_scope scope) {
    CUresult injected = sd_injected(fn);
    if (injected != CUDA_SUCCESS || scope == SD_ANY)
        return injected;
    if (!state.ready || state.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (state.lost != CUDA_SUCCESS)
        return state.lost;
    if (scope == SD_INIT)
        return CUDA_SUCCESS;
    const sd_context *c = sd_current();
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return scope == SD_LIVE ? c->fault : CUDA_SUCCESS;
}

CUresult sd_enter(sd_fn fn, sd_scope scope) {
    (void)pthread_mutex_lock(&state.lock);
    CUresult result = stands_against(fn, scope);
    return result == CUDA_SUCCESS ? result : sd_leave(result);
}

CUresult sd_leave(CUresult result) {
    (void)pthread_mutex_unlock(&state.lock);
    return result;
}

/* ---- handles ---- */

void *sd_new(sd_kind kind, size_t bytes, sd_context *context) {
    if (state.object_count == state.object_room) {
        size_t room = state.object_room == 0 ? 64 : state.object_room * 2;
        sd_object **more = realloc(state.objects, room * sizeof(*more));
        if (more == NULL)
            return NULL;
        state.objects = more;
        state.object_room = room;
    }
    sd_object *made = calloc(1, bytes);
    if (made == NULL)
        return NULL;
    *made = (sd_object){
        .kind = kind, .handle = HANDLE_BASE + state.object_count * HANDLE_STEP, .context = context};
    state.objects[state.object_count++] = made;
    return made;
}

void *sd_find(const void *handle, sd_kind kind) {
    uintptr_t value = (uintptr_t)handle - HANDLE_BASE;
    if (value % HANDLE_STEP != 0 || value / HANDLE_STEP >= state.object_count)
        return NULL;
    sd_object *o = state.objects[value / HANDLE_STEP];
    return o != NULL && o->kind == kind ? o : NULL;
}

void sd_drop(void *object) {
    const sd_object *o = object;
    if (o != NULL)
        state.objects[(o->handle - HANDLE_BASE) / HANDLE_STEP] = NULL;
    free(object);
}

void *sd_next(sd_kind kind, size_t *at) {
    while (*at < state.object_count) {
        sd_object *o = state.objects[(*at)++];
        if (o != NULL && o->kind == kind)
            return o;
    }
    return NULL;
}

/* ---- contexts of a thread ---- */

#define STACK_MOST 32

typedef struct context_stack {
    uintptr_t handles[STACK_MOST];
    int depth;
} context_stack;

static _Thread_local context_stack stack;

sd_context *sd_current(void) {
    return stack.depth == 0 ? NULL
                            : sd_find((const void *)stack.handles[stack.depth - 1], SD_CONTEXT);
}

CUresult sd_cuCtxPushCurrent_v2(CUcontext context) {
    const sd_context *c = sd_find(context, SD_CONTEXT);
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth == STACK_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    stack.handles[stack.depth++] = c->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxPopCurrent_v2(CUcontext *context) {
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context != NULL)
        *context = (CUcontext)stack.handles[stack.depth];
    return CUDA_SUCCESS;
}

CUresult sd_cuCtxSetCurrent(CUcontext context) {
    if (stack.depth > 0)
        stack.depth--;
    return context == NULL ? CUDA_SUCCESS : sd_cuCtxPushCurrent_v2(context);
}

CUresult sd_cuCtxGetCurrent(CUcontext *context) {
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const sd_context *c = sd_current();
    *context = c != NULL ? (CUcontext)c->base.handle : NULL;
    return CUDA_SUCCESS;
}

bool sd_is_device(CUdevice device) {
    return device >= 0 && device < state.device_count;
}

sd_device *sd_device_of(const sd_context *context) {
    return &state.devices[context->device];
}

sd_stream *sd_stream_of(CUstream stream) {
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return sd_current()->stream;
    return sd_find(stream, SD_STREAM);
}
