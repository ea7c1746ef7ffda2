/* Modules: PTX into the virtual machine, with the logs a just-in-time compiler writes; functions,
 * variables, and the linker as far as one PTX text goes. */
#include "fitness/cuda/standin/standin.h"

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DYNAMIC_UNLESS_ASKED 49152

/* ---- options and logs ---- */

typedef struct jit {
    char *info, *error;
    size_t info_room, error_room;
    void **info_size, **error_size, **wall; /* where the lengths and the milliseconds go */
    bool verbose;
    double begin;
} jit;

static size_t size_of(void *const *value) {
    return (size_t)(uintptr_t)*value;
}

static jit read_options(unsigned count, const CUjit_option *options, void **values) {
    jit j = {.begin = ev_clock_now()};
    for (unsigned i = 0; options != NULL && values != NULL && i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            j.info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            j.info_size = &values[i];
            j.info_room = size_of(&values[i]);
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            j.error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            j.error_size = &values[i];
            j.error_room = size_of(&values[i]);
            break;
        case CU_JIT_WALL_TIME:
            j.wall = &values[i];
            break;
        case CU_JIT_LOG_VERBOSE:
            j.verbose = size_of(&values[i]) != 0;
            break;
        default:
            break;
        }
    }
    return j;
}

/* The size option is read as room and written as what was filled. */
static void write_log(char *log, size_t room, void **size, const ev_str *text) {
    size_t length = 0;
    if (text->length < room)
        length = text->length;
    else if (room > 0)
        length = room - 1;
    if (log == NULL || room == 0)
        length = 0;
    else {
        memcpy(log, ev_str_text(text), length);
        log[length] = '\0';
    }
    if (size != NULL)
        *size = (void *)(uintptr_t)length;
}

static void describe_entry(const sd_module *m, const vm_entry *e, ev_str *out) {
    ev_str_printf(out,
                  "ptxas info    : Compiling entry function '%s' for 'sm_%d'\n"
                  "ptxas info    : Function properties for %s\n"
                  "    %u bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                  "ptxas info    : Used %u registers, %u bytes smem, %u bytes cmem[0]\n",
                  e->name, sd_device_of(m->base.context)->g->sm, e->name, e->local_bytes,
                  model_registers(m->code, e), e->shared_bytes, e->param_bytes);
}

static void write_info(const jit *j, const sd_module *m) {
    ev_str text = EV_STR_EMPTY;
    for (size_t i = 0; j->verbose && i < vm_module_entry_count(m->code); i++)
        describe_entry(m, vm_module_entry(m->code, i), &text);
    write_log(j->info, j->info_room, j->info_size, &text);
    ev_str_free(&text);
    if (j->wall != NULL) {
        float ms = (float)((ev_clock_now() - j->begin) * 1e3);
        memcpy(j->wall, &ms, sizeof ms);
    }
}

/* "ptx:12:3: words" of the machine as ptxas puts it. */
static void write_error(const jit *j, const char *words) {
    unsigned line = 0;
    int at = 0;
    ev_str text = EV_STR_EMPTY;
    if (sscanf(words, "ptx:%u:%*u: %n", &line, &at) == 1 && at > 0)
        ev_str_printf(&text, "ptxas application ptx input, line %u; error   : %s\n", line,
                      words + at);
    else
        ev_str_printf(&text, "ptxas fatal   : %s\n", words);
    ev_str_append(&text, "ptxas fatal   : Ptx assembly aborted due to errors\n");
    write_log(j->error, j->error_room, j->error_size, &text);
    ev_str_free(&text);
}

/* ---- loading ---- */

static bool is_binary(const char *image) {
    return memcmp(image, "\177ELF", 4) == 0 || memcmp(image, "\x50\xed\x55\xba", 4) == 0;
}

static CUresult place_variables(sd_module *m) {
    uint64_t globals = vm_module_global_bytes(m->code), constants = 0;
    const void *image = vm_module_constants(m->code, &constants);
    sd_buffer *b = NULL;
    CUresult result = CUDA_SUCCESS;
    if (globals > 0) {
        result = sd_alloc(m->base.context, SD_ON_DEVICE, globals, 0, ".global variables", &b);
        if (result != CUDA_SUCCESS)
            return result;
        m->globals = b->address;
        vm_module_place(m->code, b->address, b->host);
    }
    if (constants > 0) {
        result = sd_alloc(m->base.context, SD_ON_DEVICE, constants, 0, ".const variables", &b);
        if (result != CUDA_SUCCESS)
            return result;
        m->constants = b->address;
        memcpy(b->host, image, constants);
    }
    return result;
}

void sd_module_free(sd_module *m) {
    size_t at = 0;
    for (sd_function *f = sd_next(SD_FUNCTION, &at); f != NULL; f = sd_next(SD_FUNCTION, &at)) {
        if (f->module == m)
            sd_drop(f);
    }
    sd_free(m->globals);
    sd_free(m->constants);
    vm_module_free(m->code);
    sd_drop(m);
}

static CUresult fill_module(sd_module *m, const char *image, const jit *j) {
    ev_error err;
    int sm = sd_device_of(m->base.context)->g->sm;
    if (vm_module_load(image, strlen(image), "ptx", &m->code, &err) != EV_OK) {
        write_error(j, err.text);
        return err.status == EV_BAD ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (vm_module_sm(m->code) > sm) {
        (void)ev_fail(&err, EV_BAD, "the text is for sm_%d, and the device is sm_%d",
                      vm_module_sm(m->code), sm);
        write_error(j, err.text);
        return CUDA_ERROR_INVALID_PTX;
    }
    CUresult result = place_variables(m);
    if (result == CUDA_SUCCESS)
        write_info(j, m);
    return result;
}

/* A GPU takes its time over each variant while its host is idle; here nobody's cores are. */
static void be_busy(void) {
    const char *text = getenv("EVOKE_STANDIN_DELAY");
    double seconds = text != NULL ? strtod(text, NULL) : 0;
    if (!(seconds > 0))
        return;
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

CUresult sd_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                               CUjit_option *options, void **values) {
    if (module == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_binary(image)) {
        sd_say("a module of machine code: the virtual machine takes PTX text only");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    be_busy();
    jit j = read_options(count, options, values);
    sd_module *m = sd_new(SD_MODULE, sizeof *m, sd_current());
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = fill_module(m, image, &j);
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)m->base.handle;
    else
        sd_module_free(m);
    return result;
}

CUresult sd_cuModuleLoadData(CUmodule *module, const void *image) {
    return sd_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult sd_cuModuleLoad(CUmodule *module, const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    if (module == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = bytes < 4 ? CUDA_ERROR_INVALID_IMAGE : sd_cuModuleLoadData(module, text);
    free(text);
    return result;
}

CUresult sd_cuModuleUnload(CUmodule module) {
    sd_drain();
    sd_module *m = sd_find(module, SD_MODULE);
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_module_free(m);
    return CUDA_SUCCESS;
}

/* ---- what is in a module ---- */

static sd_function *function_of(const sd_module *m, const vm_entry *entry) {
    size_t at = 0;
    for (sd_function *f = sd_next(SD_FUNCTION, &at); f != NULL; f = sd_next(SD_FUNCTION, &at)) {
        if (f->module == m && f->entry == entry)
            return f;
    }
    return NULL;
}

CUresult sd_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    sd_module *m = sd_find(module, SD_MODULE);
    if (function == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const vm_entry *entry = vm_module_find(m->code, name);
    if (entry == NULL)
        return CUDA_ERROR_NOT_FOUND;
    sd_function *f = function_of(m, entry);
    if (f == NULL) {
        f = sd_new(SD_FUNCTION, sizeof *f, m->base.context);
        if (f == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        f->module = m;
        f->entry = entry;
        f->registers = model_registers(m->code, entry);
        f->dynamic_most = entry->shared_bytes < DYNAMIC_UNLESS_ASKED
                              ? DYNAMIC_UNLESS_ASKED - entry->shared_bytes
                              : 0;
        f->carveout = -1;
    }
    *function = (CUfunction)f->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    const sd_module *m = sd_find(module, SD_MODULE);
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = (unsigned)vm_module_entry_count(m->code);
    return CUDA_SUCCESS;
}

CUresult sd_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                 const char *name) {
    const sd_module *m = sd_find(module, SD_MODULE);
    vm_variable v;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!vm_module_variable(m->code, name, &v))
        return CUDA_ERROR_NOT_FOUND;
    if (address != NULL)
        *address = (v.space == VM_SPACE_CONST ? m->constants : m->globals) + v.offset;
    if (bytes != NULL)
        *bytes = v.bytes;
    return CUDA_SUCCESS;
}

/* ---- libraries: a module by another name, in the current context ---- */

CUresult sd_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                              void **values, unsigned count, int *library_options,
                              void **library_values, unsigned library_count) {
    (void)library_options;
    (void)library_values;
    (void)library_count;
    CUmodule module = NULL;
    if (library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sd_cuModuleLoadDataEx(&module, code, count, options, values);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)(void *)module;
    return result;
}

CUresult sd_cuLibraryUnload(CUlibrary library) {
    return sd_cuModuleUnload((CUmodule)(void *)library);
}

CUresult sd_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    CUfunction function = NULL;
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sd_cuModuleGetFunction(&function, (CUmodule)(void *)library, name);
    if (result == CUDA_SUCCESS)
        *kernel = (CUkernel)(void *)function;
    return result;
}

CUresult sd_cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sd_find(kernel, SD_FUNCTION) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

/* ---- the linker: takes one text and gives it back ---- */

typedef struct link_state {
    sd_object base;
    char *text;
} link_state;

CUresult sd_cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values,
                            CUlinkState *state) {
    (void)count;
    (void)options;
    (void)values;
    if (state == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    link_state *l = sd_new(SD_LINK, sizeof *l, sd_current());
    if (l == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *state = (CUlinkState)l->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                             const char *name, unsigned count, CUjit_option *options,
                             void **values) {
    (void)name;
    link_state *l = sd_find(state, SD_LINK);
    if (l == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (data == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX || l->text != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    char *text = strndup(data, bytes);
    vm_module *checked = NULL;
    ev_error err;
    if (text == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (vm_module_load(text, strlen(text), "ptx", &checked, &err) != EV_OK) {
        jit j = read_options(count, options, values);
        write_error(&j, err.text);
        free(text);
        return CUDA_ERROR_INVALID_PTX;
    }
    vm_module_free(checked);
    l->text = text;
    return CUDA_SUCCESS;
}

CUresult sd_cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
    const link_state *l = sd_find(state, SD_LINK);
    if (l == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (image == NULL || l->text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *image = l->text;
    if (bytes != NULL)
        *bytes = strlen(l->text) + 1;
    return CUDA_SUCCESS;
}

CUresult sd_cuLinkDestroy(CUlinkState state) {
    link_state *l = sd_find(state, SD_LINK);
    if (l == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    free(l->text);
    sd_drop(l);
    return CUDA_SUCCESS;
}
