/* Texture and surface references: variables of a module to which a program binds arrays or memory.
 * The variable holds the handle of a texture that the stand-in makes anew at each change. */
#include "fitness/device/standin/standin.h"

#include <string.h>

static CUresult reference_of(CUmodule module, const char *name, bool surface, uintptr_t *out) {
    const sd_module *m = sd_find(module, SD_MODULE);
    vm_variable v;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!vm_module_variable(m->code, name, &v) || !(surface ? v.is_surface : v.is_texture))
        return CUDA_ERROR_NOT_FOUND;
    size_t at = 0;
    for (sd_reference *r = sd_next(SD_REFERENCE, &at); r != NULL; r = sd_next(SD_REFERENCE, &at))
        if (r->module == m && r->variable == m->globals + v.offset) {
            *out = r->base.handle;
            return CUDA_SUCCESS;
        }
    sd_reference *made = sd_new(SD_REFERENCE, sizeof *made, m->base.context);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->module = m;
    made->surface = surface;
    made->variable = m->globals + v.offset;
    made->format = CU_AD_FORMAT_FLOAT;
    made->channels = 1;
    *out = made->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuModuleGetTexRef(CUtexref *reference, CUmodule module, const char *name) {
    uintptr_t handle;
    if (reference == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = reference_of(module, name, false, &handle);
    if (result == CUDA_SUCCESS)
        *reference = (CUtexref)handle;
    return result;
}

CUresult sd_cuModuleGetSurfRef(CUsurfref *reference, CUmodule module, const char *name) {
    uintptr_t handle;
    if (reference == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = reference_of(module, name, true, &handle);
    if (result == CUDA_SUCCESS)
        *reference = (CUsurfref)handle;
    return result;
}

static sd_reference *find(const void *handle, bool surface) {
    sd_reference *r = sd_find(handle, SD_REFERENCE);
    return r != NULL && r->surface == surface ? r : NULL;
}

/* Makes the texture of what is bound, and writes its handle to the variable. */
static CUresult update(sd_reference *r) {
    const sd_buffer *b = sd_buffer_at(r->variable, 8);
    CUtexObject made = 0;
    if (b == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!r->bound)
        return CUDA_SUCCESS;
    CUresult result = r->surface ? sd_cuSurfObjectCreate(&made, &r->resource)
                                 : sd_cuTexObjectCreate(&made, &r->resource, &r->sampler, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    (void)vm_texture_release(sd_get()->memory, r->object);
    r->object = made;
    memcpy(b->host + (r->variable - b->address), &made, sizeof made);
    return CUDA_SUCCESS;
}

void sd_reference_free(sd_reference *r) {
    (void)vm_texture_release(sd_get()->memory, r->object);
    sd_drop(r);
}

static CUresult bind(sd_reference *r, const CUresourceDesc *resource) {
    r->resource = *resource;
    r->bound = true;
    return update(r);
}

/* ---- what is bound ---- */

CUresult sd_cuTexRefSetArray(CUtexref reference, CUarray array, unsigned flags) {
    sd_reference *r = find(reference, false);
    const CUresourceDesc resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return flags != CU_TRSA_OVERRIDE_FORMAT ? CUDA_ERROR_INVALID_VALUE : bind(r, &resource);
}

CUresult sd_cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned flags) {
    sd_reference *r = find(reference, true);
    const CUresourceDesc resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : bind(r, &resource);
}

CUresult sd_cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr address,
                                  size_t bytes) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (offset != NULL)
        *offset = 0;
    const CUresourceDesc resource = {.resType = CU_RESOURCE_TYPE_LINEAR,
                                     .res.linear = {.devPtr = address,
                                                    .format = r->format,
                                                    .numChannels = r->channels,
                                                    .sizeInBytes = bytes}};
    return bind(r, &resource);
}

CUresult sd_cuTexRefSetAddress2D_v3(CUtexref reference, const CUarrayDescriptor *what,
                                    CUdeviceptr address, size_t pitch) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresourceDesc resource = {.resType = CU_RESOURCE_TYPE_PITCH2D,
                                     .res.pitch2D = {.devPtr = address,
                                                     .format = what->Format,
                                                     .numChannels = what->NumChannels,
                                                     .width = what->Width,
                                                     .height = what->Height,
                                                     .pitchInBytes = pitch}};
    return bind(r, &resource);
}

/* ---- how it is read ---- */

/* The format of memory; an array and a pitched buffer have their own. */
CUresult sd_cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    r->format = format;
    r->channels = channels > 0 ? (unsigned)channels : 0;
    if (!r->bound || r->resource.resType != CU_RESOURCE_TYPE_LINEAR)
        return CUDA_SUCCESS;
    r->resource.res.linear.format = r->format;
    r->resource.res.linear.numChannels = r->channels;
    return update(r);
}

CUresult sd_cuTexRefSetAddressMode(CUtexref reference, int dimension, int mode) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (dimension < 0 || dimension > 2)
        return CUDA_ERROR_INVALID_VALUE;
    r->sampler.addressMode[dimension] = mode;
    return update(r);
}

CUresult sd_cuTexRefSetFilterMode(CUtexref reference, int mode) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    r->sampler.filterMode = mode;
    return update(r);
}

CUresult sd_cuTexRefSetFlags(CUtexref reference, unsigned flags) {
    sd_reference *r = find(reference, false);
    if (r == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    r->sampler.flags = flags;
    return update(r);
}

/* Of before CUDA 3.2: the reference of a module is in its kernels anyway. */
CUresult sd_cuParamSetTexRef(CUfunction function, int unit, CUtexref reference) {
    bool known = sd_find(function, SD_FUNCTION) != NULL && find(reference, false) != NULL;
    if (unit != -1)
        return CUDA_ERROR_INVALID_VALUE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
