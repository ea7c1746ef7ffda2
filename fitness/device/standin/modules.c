/* Modules: PTX into the virtual machine, with the logs a just-in-time compiler writes; functions
 * and variables. */
#include "fitness/device/standin/standin.h"

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

static void write_info(const jit *j, const ev_str *text) {
    write_log(j->info, j->info_room, j->info_size, text);
    if (j->wall != NULL) {
        float ms = (float)((ev_clock_now() - j->begin) * 1e3);
        memcpy(j->wall, &ms, sizeof ms);
    }
}

static void describe_module(const jit *j, const sd_module *m) {
    ev_str text = EV_STR_EMPTY;
    for (size_t i = 0; j->verbose && i < vm_module_entry_count(m->code); i++)
        describe_entry(m, vm_module_entry(m->code, i), &text);
    write_info(j, &text);
    ev_str_clear(&text);
    write_log(j->error, j->error_room, j->error_size, &text);
    ev_str_free(&text);
}

/* "ptx:12:3: words" of the machine as ptxas puts it. Both logs are filled: programs print the room
 * that they gave for one which is not. */
static void write_error(const jit *j, const char *words) {
    uint32_t line = 0, column = 0;
    const char *end = ev_text_u32(ev_text_u32(words, "ptx:", &line), ":", &column);
    ev_str text = EV_STR_EMPTY;
    if (end != NULL && strncmp(end, ": ", 2) == 0)
        ev_str_printf(&text, "ptxas application ptx input, line %u; error   : %s\n", line, end + 2);
    else
        ev_str_printf(&text, "ptxas fatal   : %s\n", words);
    ev_str_append(&text, "ptxas fatal   : Ptx assembly aborted due to errors\n");
    write_log(j->error, j->error_room, j->error_size, &text);
    ev_str_clear(&text);
    ev_str_append(&text, "ptxas info    : nothing was compiled; the error log says why\n");
    write_info(j, &text);
    ev_str_free(&text);
}

void sd_log_error(unsigned count, const CUjit_option *options, void **values, const char *words) {
    jit j = read_options(count, options, values);
    write_error(&j, words);
}

void sd_log_nothing(unsigned count, const CUjit_option *options, void **values) {
    jit j = read_options(count, options, values);
    const ev_str none = EV_STR_EMPTY;
    write_log(j.error, j.error_room, j.error_size, &none);
    write_info(&j, &none);
}

/* ---- loading ---- */

/* Behind blanks and comments, where a text begins. */
static const char *skip_comments(const char *at) {
    for (;;) {
        at += strspn(at, " \t\r\n\v\f");
        const char *end = NULL;
        if (strncmp(at, "//", 2) == 0)
            end = strchr(at, '\n');
        else if (strncmp(at, "/*", 2) == 0 && (end = strstr(at + 2, "*/")) != NULL)
            end += 2;
        if (end == NULL)
            return at;
        at = end;
    }
}

/* Of .version, times ten; 0: the text does not begin with one. */
static int version_of(const char *at) {
    static const char word[] = ".version";
    if (strncmp(at, word, sizeof word - 1) != 0)
        return 0;
    char *end = NULL;
    long major = strtol(at + sizeof word - 1, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > 0 && major < 100 && minor >= 0 && minor < 10 ? (int)(major * 10 + minor) : 0;
}

/* A newer text may hold what the machine does not know, so its version is looked at before it is
 * read. */
static bool is_too_new(const char *image, ev_error *err) {
    const char *at = skip_comments(image);
    int version = version_of(at), most = sd_driver()->ptx;
    if (version <= most)
        return false;
    unsigned line = 1;
    for (const char *c = image; c < at; c++)
        line += *c == '\n';
    (void)ev_fail(err, EV_BAD, "ptx:%u:1: Unsupported .version %d.%d; current version is '%d.%d'",
                  line, version / 10, version % 10, most / 10, most % 10);
    return true;
}

/* *out is NULL after an error. */
static CUresult load_module(const char *text, vm_module **out, ev_error *err) {
    *out = NULL;
    if (is_too_new(text, err))
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (vm_module_load(text, strlen(text), "ptx", out, err) == EV_OK)
        return CUDA_SUCCESS;
    *out = NULL;
    return err->status == EV_BAD ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sd_check_text(const char *text, ev_error *err) {
    vm_module *checked = NULL;
    CUresult result = load_module(text, &checked, err);
    vm_module_free(checked);
    return result;
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
        if (f->module == m) {
            model_code_free(f->code);
            sd_drop(f);
        }
    }
    at = 0;
    for (sd_reference *r = sd_next(SD_REFERENCE, &at); r != NULL; r = sd_next(SD_REFERENCE, &at)) {
        if (r->module == m)
            sd_reference_free(r);
    }
    sd_free(m->globals);
    sd_free(m->constants);
    vm_module_free(m->code);
    sd_drop(m);
}

static CUresult fill_module(sd_module *m, const char *image, const jit *j) {
    ev_error err;
    int sm = sd_device_of(m->base.context)->g->sm;
    CUresult result = load_module(image, &m->code, &err);
    if (result == CUDA_SUCCESS && vm_module_sm(m->code) > sm) {
        (void)ev_fail(&err, EV_BAD, "the text is for sm_%d, and the device is sm_%d",
                      vm_module_sm(m->code), sm);
        result = CUDA_ERROR_INVALID_PTX;
    }
    if (result != CUDA_SUCCESS) {
        write_error(j, err.text);
        return result;
    }
    result = place_variables(m);
    if (result == CUDA_SUCCESS)
        describe_module(j, m);
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

static CUresult load_text(CUmodule *module, const char *text, const jit *j) {
    be_busy();
    sd_module *m = sd_new(SD_MODULE, sizeof *m, sd_current());
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = fill_module(m, text, j);
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)m->base.handle;
    else
        sd_module_free(m);
    return result;
}

static CUresult load_fatbin(CUmodule *module, const void *image, size_t room, const jit *j) {
    char *text = NULL;
    CUresult result = sd_fatbin_text(image, room, sd_device_of(sd_current())->g->sm, &text);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        sd_say("a fat binary without PTX text for this device or an older one");
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        write_error(j, "the fat binary holds no PTX text for this device or an older one");
    else if (result != CUDA_SUCCESS)
        write_error(j, "the fat binary is malformed, or cannot be unpacked");
    else
        result = load_text(module, text, j);
    free(text);
    return result;
}

CUresult sd_load_image(CUmodule *module, const void *image, size_t room, unsigned count,
                       const CUjit_option *options, void **values) {
    if (module == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    jit j = read_options(count, options, values);
    if (strncmp(image, "\177ELF", 4) == 0) {
        sd_say("a module of machine code: the virtual machine takes PTX text only");
        write_error(&j, "the image is machine code, and the virtual machine takes PTX text only: "
                        "compile with nvcc -ptx, or -fatbin and code=compute_NN");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return sd_is_fatbin(image) ? load_fatbin(module, image, room, &j)
                               : load_text(module, image, &j);
}

CUresult sd_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                               CUjit_option *options, void **values) {
    return sd_load_image(module, image, SIZE_MAX, count, options, values);
}

CUresult sd_cuModuleLoadData(CUmodule *module, const void *image) {
    return sd_load_image(module, image, SIZE_MAX, 0, NULL, NULL);
}

CUresult sd_cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    if (image != NULL && !sd_is_fatbin(image))
        return CUDA_ERROR_INVALID_IMAGE;
    return sd_cuModuleLoadData(module, image);
}

CUresult sd_cuModuleLoad(CUmodule *module, const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    if (module == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result =
        bytes < 4 ? CUDA_ERROR_INVALID_IMAGE : sd_load_image(module, text, bytes, 0, NULL, NULL);
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

CUresult sd_cuModuleGetLoadingMode(int *mode) {
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = 1; /* eager: all of a module is there once it is loaded */
    return CUDA_SUCCESS;
}
