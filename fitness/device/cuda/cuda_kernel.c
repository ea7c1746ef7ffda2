/* Kernels of the device cuda:N: PTX through ptxas where there is one, else through the driver's
 * compiler, with what the log says. An assembler that refuses what the driver takes, or whose code
 * the driver refuses, is not asked again; text that it dies of does not go to the driver. */
#include "fitness/device/cuda/cuda.h"

#include "base/ptx/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES 8192

typedef struct jit_log {
    char info[LOG_BYTES], error[LOG_BYTES];
} jit_log;

static CUresult compile(const cuda_device *c, const char *ptx, CUmodule *out, jit_log *log) {
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *values[] = {log->info, (void *)(uintptr_t)sizeof log->info, log->error,
                      (void *)(uintptr_t)sizeof log->error, (void *)1};
    log->info[0] = log->error[0] = '\0';
    return c->cu.cuModuleLoadDataEx(out, ptx, sizeof options / sizeof options[0], options, values);
}

/* What the text itself is to blame for. */
static bool is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_INVALID_SOURCE;
}

static ev_status fail_compile(const cuda_device *c, CUresult result, const jit_log *log,
                              ev_error *err) {
    char text[200];
    if (!is_refusal(result))
        return cuda_check(c, result, "cuModuleLoadDataEx", err);
    return ev_fail(err, EV_BAD, "%s refuses the PTX: %s%s%.1000s", c->base.properties.id,
                   cu_error_text(&c->cu, result, text, sizeof text),
                   log->error[0] != '\0' ? "; its compiler says: " : "", log->error);
}

/* ---- the PTX version ---- */

/* What goes to the driver's compiler: the module's text, or, to be freed, the same with the least
 * PTX version that it needs, where it says a later one than this driver takes. */
static ev_status text_for_driver(const cuda_device *c, const vm_module *module, char **lowered,
                                 ev_error *err) {
    const char *what = "";
    int taken = ev_ptx_taken(c->version), needs = vm_module_needs(module, &what);
    *lowered = NULL;
    if (c->version == 0 || vm_module_version(module) <= taken)
        return EV_OK;
    if (needs > taken)
        return ev_fail(err, EV_BAD,
                       "%s: the driver (CUDA %d.%d) takes PTX up to version %d.%d, and this kernel "
                       "needs %d.%d for '%s'; update the driver",
                       c->base.properties.id, c->version / 1000, c->version % 1000 / 10, taken / 10,
                       taken % 10, needs / 10, needs % 10, what);
    *lowered = vm_module_text_for(module, needs);
    return *lowered != NULL ? EV_OK : ev_fail_memory(err, 1);
}

/* ---- machine code ---- */

/* To own->cubin, which stays empty where there is no assembler or it does not take the text. */
static ev_status assemble(cuda_device *c, const char *ptx, cuda_kernel *own, jit_log *log,
                          ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_error why;
    bool deadly = false;
    if (c->assembler.path[0] == '\0' || own->cubin.length > 0)
        return EV_OK;
    ev_status status = cuda_code_get(&c->codes, &c->assembler, ptx, c->capability, &own->cubin,
                                     &text, &deadly, &why);
    (void)snprintf(log->info, sizeof log->info, "%s", ev_str_text(&text));
    ev_str_free(&text);
    if (status != EV_OK)
        ev_str_free(&own->cubin);
    /* the driver's compiler would do the same in this process: nothing could stop it, or survive it
     */
    return deadly ? ev_fail(err, EV_BAD, "%s", why.text) : EV_OK;
}

static CUresult load_cubin(cuda_device *c, cuda_kernel *own, CUmodule *module) {
    CUresult result = c->cu.cuModuleLoadDataEx(module, ev_str_text(&own->cubin), 0, NULL, NULL);
    if (is_refusal(result)) {
        ev_str_free(&own->cubin);
        c->assembler.path[0] = '\0';
    }
    return result;
}

/* EV_BAD: the driver is too old for it, or refuses it. */
static ev_status load_module(cuda_device *c, const vm_module *module, cuda_kernel *own,
                             CUmodule *out, jit_log *log, ev_error *err) {
    CUresult result = CUDA_ERROR_NOT_FOUND;
    char *lowered = NULL;
    size_t bytes = 0;
    if (own->cubin.length > 0)
        result = load_cubin(c, own, out);
    if (own->cubin.length == 0) {
        EV_TRY(text_for_driver(c, module, &lowered, err));
        result = compile(c, lowered != NULL ? lowered : vm_module_text(module, &bytes), out, log);
        free(lowered);
        if (result == CUDA_SUCCESS)
            c->assembler.path[0] = '\0';
    }
    return result == CUDA_SUCCESS ? EV_OK : fail_compile(c, result, log, err);
}

static ev_status load_into(cuda_device *c, const device_kernel *kernel, cuda_kernel *own,
                           jit_log *log, ev_error *err) {
    size_t bytes = 0;
    const char *ptx = vm_module_text(kernel->module, &bytes);
    CUmodule module = NULL;
    log->info[0] = log->error[0] = '\0';
    EV_TRY(assemble(c, ptx, own, log, err));
    EV_TRY(load_module(c, kernel->module, own, &module, log, err));
    /* blocks may ask for dynamic shared memory up to the device's limit */
    CUresult result = c->cu.cuModuleGetFunction(&own->function, module, kernel->entry->name);
    uint32_t fixed = kernel->entry->shared_bytes, most = c->base.properties.max_shared_per_block;
    if (result == CUDA_SUCCESS && fixed < most)
        result = c->cu.cuFuncSetAttribute(
            own->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)(most - fixed));
    if (result != CUDA_SUCCESS) {
        (void)c->cu.cuModuleUnload(module);
        return fail_compile(c, result, log, err);
    }
    own->module = module;
    own->rebuilds = c->rebuilds;
    return EV_OK;
}

static CUresult read_resources(const cuda_device *c, const cuda_kernel *own, device_resources *r) {
    const struct {
        CUfunction_attribute which;
        uint32_t *to;
    } wanted[] = {{CU_FUNC_ATTRIBUTE_NUM_REGS, &r->registers},
                  {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &r->shared_bytes},
                  {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &r->local_bytes},
                  {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &r->max_threads}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        int value = 0;
        CUresult result = c->cu.cuFuncGetAttribute(&value, wanted[i].which, own->function);
        if (result != CUDA_SUCCESS)
            return result;
        *wanted[i].to = (uint32_t)value;
    }
    return CUDA_SUCCESS;
}

static ev_status load_first(cuda_device *c, device_kernel *kernel, cuda_kernel *own, jit_log *log,
                            ev_error *err) {
    EV_TRY(load_into(c, kernel, own, log, err));
    device_resources *r = &kernel->resources;
    EV_TRY(cuda_check(c, read_resources(c, own, r), "cuFuncGetAttribute", err));
    r->spill_bytes = ptxas_spills(log->info, kernel->entry->name);
    return EV_OK;
}

static void free_own(cuda_kernel *own) {
    if (own != NULL)
        ev_str_free(&own->cubin);
    free(own);
}

ev_status cuda_load(device *d, device_kernel *kernel, ev_error *err) {
    cuda_device *c = cuda_of(d);
    EV_TRY(cuda_enter(c, err));
    cuda_kernel *own = calloc(1, sizeof *own);
    jit_log *log = malloc(sizeof *log);
    ev_status status = own != NULL && log != NULL ? load_first(c, kernel, own, log, err)
                                                  : ev_fail_memory(err, sizeof *log);
    free(log);
    if (status == EV_OK)
        kernel->own = own;
    else
        free_own(own);
    return status;
}

/* What was taken once is not to blame. */
ev_status cuda_need_kernel(cuda_device *c, const device_kernel *kernel, ev_error *err) {
    cuda_kernel *own = kernel->own;
    ev_error why;
    if (own->rebuilds == c->rebuilds)
        return EV_OK;
    jit_log *log = malloc(sizeof *log);
    if (log == NULL)
        return ev_fail_memory(err, sizeof *log);
    ev_status status = load_into(c, kernel, own, log, &why);
    free(log);
    return status == EV_OK ? EV_OK
                           : ev_fail(err, EV_INFRA, "%s took the kernel %s before a fault: %s",
                                     c->base.properties.id, kernel->entry->name, why.text);
}

ev_status cuda_fill(device *d, device_kernel *kernel, const char *name, const vm_variable *variable,
                    const void *data, ev_error *err) {
    cuda_device *c = cuda_of(d);
    CUdeviceptr address = 0;
    size_t bytes = 0;
    EV_TRY(cuda_enter(c, err));
    EV_TRY(cuda_need_kernel(c, kernel, err));
    const cuda_kernel *own = kernel->own;
    CUresult found = c->cu.cuModuleGetGlobal_v2(&address, &bytes, own->module, name);
    if (found == CUDA_ERROR_NOT_FOUND) /* the driver's compiler removed what no instruction reads */
        return EV_OK;
    EV_TRY(cuda_check(c, found, "cuModuleGetGlobal", err));
    if (bytes < variable->bytes)
        return ev_fail(err, EV_INFRA, "%s has %zu bytes for the variable '%s' of %llu bytes",
                       d->properties.id, bytes, name, (unsigned long long)variable->bytes);
    return cuda_check(c, c->cu.cuMemcpyHtoD_v2(address, data, variable->bytes), "cuMemcpyHtoD",
                      err);
}

ev_status cuda_load_copy(cuda_device *c, const device_kernel *kernel, CUmodule *module,
                         CUfunction *function, ev_error *err) {
    cuda_kernel copy = {0};
    jit_log *log = malloc(sizeof *log);
    if (log == NULL)
        return ev_fail_memory(err, sizeof *log);
    ev_status status = load_into(c, kernel, &copy, log, err);
    free(log);
    ev_str_free(&copy.cubin);
    *module = copy.module;
    *function = copy.function;
    return status;
}

void cuda_unload(device_kernel *kernel) {
    cuda_device *c = cuda_of(kernel->owner);
    cuda_kernel *own = kernel->own;
    ev_error ignored;
    if (own != NULL && own->rebuilds == c->rebuilds && cuda_enter(c, &ignored) == EV_OK)
        (void)c->cu.cuModuleUnload(own->module);
    free_own(own);
}
