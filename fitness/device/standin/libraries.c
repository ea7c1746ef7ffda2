/* Libraries: modules by another name, in the current context; and the linker as far as one PTX text
 * goes. */
#include "fitness/device/standin/standin.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

/* ---- libraries ---- */

CUresult sd_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                              void **values, unsigned count, int *library_options,
                              void **library_values, unsigned library_count) {
    (void)library_options;
    (void)library_values;
    (void)library_count;
    CUmodule module = NULL;
    if (library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sd_load_image(&module, code, SIZE_MAX, count, options, values);
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

CUresult sd_cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
    return sd_cuModuleGetFunctionCount(count, (CUmodule)(void *)library);
}

CUresult sd_cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sd_find(library, SD_MODULE) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *module = (CUmodule)(void *)library;
    return CUDA_SUCCESS;
}

CUresult sd_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                               const char *name) {
    return sd_cuModuleGetGlobal_v2(address, bytes, (CUmodule)(void *)library, name);
}

CUresult sd_cuKernelGetName(const char **name, CUkernel kernel) {
    return sd_cuFuncGetName(name, (CUfunction)(void *)kernel);
}

CUresult sd_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                                 CUdevice device) {
    return sd_is_device(device)
               ? sd_cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel)
               : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sd_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                 CUdevice device) {
    return sd_is_device(device)
               ? sd_cuFuncSetAttribute((CUfunction)(void *)kernel, attribute, value)
               : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- the linker: takes one text and gives it back ---- */

typedef struct link_state {
    sd_object base;
    char *text;
    unsigned count; /* of the options it was made with; they and their values are the program's */
    CUjit_option *options;
    void **values;
} link_state;

CUresult sd_cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values,
                            CUlinkState *state) {
    if (state == NULL || (count > 0 && (options == NULL || values == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    link_state *l = sd_new(SD_LINK, sizeof *l, sd_current());
    if (l == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->options = count > 0 ? calloc(count, sizeof *options) : NULL;
    if (count > 0 && l->options == NULL) {
        sd_drop(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count > 0)
        memcpy(l->options, options, count * sizeof *options);
    l->count = count;
    l->values = values;
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
    if (text == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ev_error err;
    CUresult result = sd_check_text(text, &err);
    if (result == CUDA_SUCCESS) {
        l->text = text;
        return CUDA_SUCCESS;
    }
    free(text);
    sd_log_error(l->count, l->options, l->values, err.text);
    sd_log_error(count, options, values, err.text);
    return result;
}

CUresult sd_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                             unsigned count, CUjit_option *options, void **values) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = sd_cuLinkAddData_v2(state, type, text, bytes, path, count, options, values);
    free(text);
    return result;
}

CUresult sd_cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
    const link_state *l = sd_find(state, SD_LINK);
    if (l == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (image == NULL || l->text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sd_log_nothing(l->count, l->options, l->values);
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
    free(l->options);
    sd_drop(l);
    return CUDA_SUCCESS;
}
