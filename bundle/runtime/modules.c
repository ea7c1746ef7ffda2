/* Modules: the driver, and each variant's module once in every context that launches it. */
#include "bundle/runtime/runtime.h"

#include "base/ptx/versions.h"
#include "bundle/needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES 1000

/* Found once a process, and never unloaded: contexts outlive bundles. */
static struct {
    pthread_mutex_t lock;
    bool is_there;
    cu_driver cu;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

ev_status runtime_driver(const cu_driver **out, ev_error *err) {
    ev_status status = EV_OK;
    (void)pthread_mutex_lock(&driver.lock);
    if (!driver.is_there)
        status = cu_driver_find(&driver.cu, err);
    driver.is_there = status == EV_OK;
    (void)pthread_mutex_unlock(&driver.lock);
    if (status == EV_OK)
        *out = &driver.cu;
    return status;
}

ev_status runtime_check(const cu_driver *cu, CUresult result, const char *what, ev_error *err) {
    char text[300];
    if (result == CUDA_SUCCESS)
        return EV_OK;
    return ev_fail(err, EV_INFRA, "%s: %s", what, cu_error_text(cu, result, text, sizeof text));
}

ev_status runtime_context(const cu_driver *cu, CUcontext *context, unsigned long long *id,
                          ev_error *err) {
    CUcontext current = NULL;
    EV_TRY(runtime_check(cu, cu->cuCtxGetCurrent(&current), "cuCtxGetCurrent", err));
    if (current == NULL)
        return ev_fail(err, EV_INFRA,
                       "no CUDA context is current in this thread; call cuCtxSetCurrent (or "
                       "cudaSetDevice) first");
    *id = (unsigned long long)(uintptr_t)current;
    if (cu->cuCtxGetId != NULL) /* CUDA 12.0 on */
        EV_TRY(runtime_check(cu, cu->cuCtxGetId(current, id), "cuCtxGetId", err));
    *context = current;
    return EV_OK;
}

/* ---- loading ---- */

/* Whether the driver refuses this PTX, and not PTX at large. */
static bool is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_INVALID_SOURCE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

static ev_status compile(const evoke_variant *v, const cu_driver *cu, const char *ptx,
                         CUmodule *out, ev_error *err) {
    char log[LOG_BYTES] = "", text[300];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result = cu->cuModuleLoadDataEx(out, ptx, 2, options, values);
    if (result == CUDA_SUCCESS)
        return EV_OK;
    log[sizeof log - 1] = '\0';
    return ev_fail(err, is_refusal(result) ? EV_BAD : EV_INFRA,
                   "%s: the driver does not load kernels/%.12s....ptx (made for sm_%d): %s%s%s",
                   v->kernel->name, v->is->sha256.hex, v->is->sm,
                   cu_error_text(cu, result, text, sizeof text), log[0] != '\0' ? "; " : "", log);
}

/* A driver that is too old says no more than that it does not know the version. */
static ev_status check_driver(const evoke_variant *v, const cu_driver *cu, ev_error *err) {
    int version = 0, needs = v->is->ptx_version;
    const ev_ptx_row *least = ev_ptx_needs(needs);
    EV_TRY(runtime_check(cu, cu->cuDriverGetVersion(&version), "cuDriverGetVersion", err));
    if (needs <= ev_ptx_taken(version))
        return EV_OK;
    ev_error wanted = {0};
    if (least != NULL)
        (void)ev_fail(&wanted, EV_BAD, "CUDA %d.%d or newer (branch %d)", least->cuda / 1000,
                      least->cuda % 1000 / 10, least->branch);
    return ev_fail(err, EV_BAD,
                   "%s: the variant for %s needs a driver for %s, for PTX %d.%d; this one is for "
                   "CUDA %d.%d; update the driver",
                   v->kernel->name, v->is->gpu_name, least != NULL ? wanted.text : "a newer CUDA",
                   needs / 10, needs % 10, version / 1000, version % 1000 / 10);
}

static ev_status attribute(const cu_driver *cu, CUdevice device, int which, int *out,
                           ev_error *err) {
    return runtime_check(cu, cu->cuDeviceGetAttribute(out, which, device), "cuDeviceGetAttribute",
                         err);
}

/* The first launch of the kernel that a launch runs. */
static size_t first_of(const launch_plan *plan, size_t launch) {
    size_t i = 0;
    while (strcmp(plan->launches[i].entry, plan->launches[launch].entry) != 0)
        i++;
    return i;
}

runtime_function *runtime_function_of(const evoke_variant *v, runtime_loaded *l, size_t launch) {
    return &l->functions[first_of(v->is->plan, launch)];
}

/* A kernel, and what a block of it may have in this context: `most` bytes of shared memory. */
static ev_status find_function(const cu_driver *cu, CUmodule module, const char *entry, int most,
                               runtime_function *f, ev_error *err) {
    int threads = 0, fixed = 0;
    EV_TRY(runtime_check(cu, cu->cuModuleGetFunction(&f->function, module, entry), entry, err));
    EV_TRY(runtime_check(
        cu, cu->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f->function),
        "cuFuncGetAttribute", err));
    EV_TRY(runtime_check(
        cu, cu->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->function),
        "cuFuncGetAttribute", err));
    f->threads = (uint32_t)threads;
    f->shared = most > fixed ? (uint32_t)(most - fixed) : 0;
    return EV_OK;
}

static ev_status find_functions(const evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                                ev_error *err) {
    const launch_plan *plan = v->is->plan;
    CUdevice device = 0;
    int most = 0;
    l->functions = calloc(plan->launch_count, sizeof *l->functions);
    if (l->functions == NULL)
        return ev_fail_memory(err, plan->launch_count * sizeof *l->functions);
    EV_TRY(runtime_check(cu, cu->cuCtxGetDevice(&device), "cuCtxGetDevice", err));
    EV_TRY(
        attribute(cu, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most, err));
    for (size_t i = 0; i < plan->launch_count; i++) {
        if (first_of(plan, i) == i)
            EV_TRY(
                find_function(cu, l->module, plan->launches[i].entry, most, &l->functions[i], err));
    }
    return EV_OK;
}

/* The machine code for the context's GPU; NULL: the variant has none for its architecture. */
static ev_status find_cubin(const evoke_variant *v, const cu_driver *cu, const bundle_cubin **out,
                            ev_error *err) {
    CUdevice device = 0;
    int major = 0, minor = 0;
    *out = NULL;
    if (v->is->cubin_count == 0)
        return EV_OK;
    EV_TRY(runtime_check(cu, cu->cuCtxGetDevice(&device), "cuCtxGetDevice", err));
    EV_TRY(attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, err));
    EV_TRY(attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, err));
    for (size_t i = 0; i < v->is->cubin_count; i++) {
        if (needs_target(v->is->cubins[i].arch) == major * 10 + minor)
            *out = &v->is->cubins[i];
    }
    return EV_OK;
}

/* Loads the machine code. *loaded false: there is none for this GPU, or the driver does not take
 * it, and the PTX is compiled. */
static ev_status load_cubin(const evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                            bool *loaded, ev_error *err) {
    const bundle_cubin *c = NULL;
    char *code = NULL;
    size_t bytes = 0;
    *loaded = false;
    EV_TRY(find_cubin(v, cu, &c, err));
    if (c == NULL)
        return EV_OK;
    EV_TRY(bundle_read_cubin(v->owner->inside, c, &code, &bytes, err));
    CUresult result = cu->cuModuleLoadDataEx(&l->module, code, 0, NULL, NULL);
    free(code);
    *loaded = result == CUDA_SUCCESS;
    return *loaded || is_refusal(result) ? EV_OK
                                         : runtime_check(cu, result, "cuModuleLoadDataEx", err);
}

static ev_status load_ptx(const evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                          ev_error *err) {
    char *ptx = NULL;
    size_t bytes = 0;
    EV_TRY(check_driver(v, cu, err));
    EV_TRY(bundle_read_ptx(v->owner->inside, v->is, &ptx, &bytes, err));
    ev_status status = compile(v, cu, ptx, &l->module, err);
    free(ptx);
    return status;
}

static ev_status load_module(const evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                             ev_error *err) {
    bool loaded = false;
    EV_TRY(load_cubin(v, cu, l, &loaded, err));
    ev_status status = loaded ? EV_OK : load_ptx(v, cu, l, err);
    EV_TRY(status);
    status = find_functions(v, cu, l, err);
    if (status != EV_OK)
        (void)cu->cuModuleUnload(l->module);
    return status;
}

static ev_status load(evoke_variant *v, const cu_driver *cu, CUcontext context,
                      unsigned long long id, runtime_loaded **out, ev_error *err) {
    runtime_loaded *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ev_fail_memory(err, sizeof *l);
    l->context = context;
    l->id = id;
    ev_status status = load_module(v, cu, l, err);
    if (status != EV_OK) {
        free(l->functions);
        free(l);
        return status;
    }
    l->next = v->loaded;
    v->loaded = l;
    *out = l;
    return EV_OK;
}

ev_status runtime_load(evoke_variant *v, const cu_driver *cu, runtime_loaded **out, ev_error *err) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    EV_TRY(runtime_context(cu, &context, &id, err));
    (void)pthread_mutex_lock(v->lock);
    runtime_loaded *l = v->loaded;
    while (l != NULL && l->id != id)
        l = l->next;
    ev_status status = l == NULL ? load(v, cu, context, id, &l, err) : EV_OK;
    (void)pthread_mutex_unlock(v->lock);
    if (status == EV_OK)
        *out = l;
    return status;
}

static ev_status check_block(const runtime_function *f, const launch_geometry *at, ev_error *err) {
    uint64_t threads = (uint64_t)at->block[0] * at->block[1] * at->block[2];
    if (threads > f->threads)
        return ev_fail(err, EV_BAD,
                       "a block is %llu threads, and the kernel takes at most %u on this GPU",
                       (unsigned long long)threads, f->threads);
    if (at->shared_bytes > f->shared)
        return ev_fail(
            err, EV_BAD,
            "a block has %u bytes of dynamic shared memory, and at most %u are left on this GPU",
            at->shared_bytes, f->shared);
    return EV_OK;
}

ev_status runtime_allow(evoke_variant *v, const cu_driver *cu, runtime_loaded *l, size_t launch,
                        const launch_geometry *at, ev_error *err) {
    runtime_function *f = runtime_function_of(v, l, launch);
    EV_TRY(check_block(f, at, err));
    ev_status status = EV_OK;
    (void)pthread_mutex_lock(v->lock);
    if (at->shared_bytes > f->allowed) {
        status = runtime_check(
            cu,
            cu->cuFuncSetAttribute(f->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   (int)at->shared_bytes),
            "cuFuncSetAttribute", err);
        f->allowed = status == EV_OK ? at->shared_bytes : f->allowed;
    }
    (void)pthread_mutex_unlock(v->lock);
    return status;
}

/* ---- unloading ---- */

static void unload_one(const cu_driver *cu, runtime_loaded *l) {
    CUcontext ignored = NULL;
    if (cu->cuCtxPushCurrent_v2(l->context) == CUDA_SUCCESS) {
        (void)cu->cuModuleUnload(l->module);
        (void)cu->cuCtxPopCurrent_v2(&ignored);
    }
    free(l->functions);
    free(l);
}

void runtime_unload(evoke_bundle *b, const cu_driver *cu, unsigned long long id) {
    for (size_t i = 0; i < b->count; i++) {
        evoke_variant *v = &b->variants[i];
        (void)pthread_mutex_lock(v->lock);
        runtime_loaded **at = &v->loaded;
        while (*at != NULL) {
            runtime_loaded *l = *at;
            if (id != 0 && l->id != id) {
                at = &l->next;
                continue;
            }
            *at = l->next;
            unload_one(cu, l);
        }
        (void)pthread_mutex_unlock(v->lock);
    }
}
