/* Arrays, and textures and surfaces of arrays and of linear memory. An array is a buffer whose
 * elements stand row by row; a program sees their order only through copies and fetches. */
#include "fitness/device/standin/standin.h"

#include <string.h>

/* ---- formats ---- */

static bool type_of(CUarray_format format, ev_type *out) {
    static const struct {
        CUarray_format format;
        ev_type type;
    } rows[] = {{CU_AD_FORMAT_UNSIGNED_INT8, EV_U8},   {CU_AD_FORMAT_UNSIGNED_INT16, EV_U16},
                {CU_AD_FORMAT_UNSIGNED_INT32, EV_U32}, {CU_AD_FORMAT_SIGNED_INT8, EV_S8},
                {CU_AD_FORMAT_SIGNED_INT16, EV_S16},   {CU_AD_FORMAT_SIGNED_INT32, EV_S32},
                {CU_AD_FORMAT_HALF, EV_F16},           {CU_AD_FORMAT_FLOAT, EV_F32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].format == format) {
            *out = rows[i].type;
            return true;
        }
    return false;
}

static bool set_format(vm_texture *t, CUarray_format format, unsigned channels) {
    t->channels = (uint8_t)channels;
    return (channels == 1 || channels == 2 || channels == 4) && type_of(format, &t->channel);
}

static uint64_t element_bytes(const vm_texture *t) {
    return ev_type_bytes(t->channel) * t->channels;
}

/* ---- arrays ---- */

#define DIMENSION_MOST (1u << 20)

/* Depth counts the layers or faces of an array that has these. */
static CUresult shape_of(const CUarrayDescriptor3D *what, vm_texture *t) {
    const unsigned known = CU_ARRAY3D_LAYERED | CU_ARRAY3D_SURFACE_LDST | CU_ARRAY3D_CUBEMAP |
                           CU_ARRAY3D_TEXTURE_GATHER;
    bool slices = what->Flags & (CU_ARRAY3D_LAYERED | CU_ARRAY3D_CUBEMAP);
    if (!set_format(t, what->Format, what->NumChannels) || what->Width == 0 ||
        what->Width > DIMENSION_MOST || what->Height > DIMENSION_MOST ||
        what->Depth > DIMENSION_MOST || (slices && what->Depth == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (what->Flags & ~known)
        return CUDA_ERROR_NOT_SUPPORTED;
    t->cube = what->Flags & CU_ARRAY3D_CUBEMAP;
    if (t->cube && (what->Width != what->Height || what->Depth % 6 != 0))
        return CUDA_ERROR_INVALID_VALUE;
    t->width = (uint32_t)what->Width;
    t->height = (uint32_t)what->Height;
    t->depth = slices ? 0 : (uint32_t)what->Depth;
    t->layers = slices ? (uint32_t)what->Depth : 0;
    t->row_bytes = t->width * element_bytes(t);
    t->slice_bytes = t->row_bytes * (t->height > 0 ? t->height : 1);
    return CUDA_SUCCESS;
}

CUresult sd_cuArray3DCreate_v2(CUarray *array, const CUarrayDescriptor3D *what) {
    vm_texture t = {0};
    sd_buffer *b = NULL;
    if (array == NULL || what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = shape_of(what, &t);
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t slices = what->Depth > 0 ? what->Depth : 1;
    if (t.slice_bytes > UINT64_MAX / slices)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sd_alloc(sd_current(), SD_ON_DEVICE, t.slice_bytes * slices, 0, "array", &b);
    if (result != CUDA_SUCCESS)
        return result;
    t.address = b->address;
    sd_array *made = sd_new(SD_ARRAY, sizeof *made, sd_current());
    if (made == NULL) {
        sd_free(t.address);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->what = *what;
    made->shape = t;
    *array = (CUarray)made->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuArrayCreate_v2(CUarray *array, const CUarrayDescriptor *what) {
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUarrayDescriptor3D whole = {.Width = what->Width,
                                       .Height = what->Height,
                                       .Format = what->Format,
                                       .NumChannels = what->NumChannels};
    return sd_cuArray3DCreate_v2(array, &whole);
}

CUresult sd_cuArrayDestroy(CUarray array) {
    sd_array *a = sd_find(array, SD_ARRAY);
    if (a == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_drain();
    sd_free(a->shape.address);
    sd_drop(a);
    return CUDA_SUCCESS;
}

CUresult sd_cuArray3DGetDescriptor_v2(CUarrayDescriptor3D *what, CUarray array) {
    const sd_array *a = sd_find(array, SD_ARRAY);
    if (a == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *what = a->what;
    return CUDA_SUCCESS;
}

CUresult sd_cuArrayGetDescriptor_v2(CUarrayDescriptor *what, CUarray array) {
    CUarrayDescriptor3D whole;
    CUresult result = sd_cuArray3DGetDescriptor_v2(&whole, array);
    if (result != CUDA_SUCCESS || what == NULL)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    *what = (CUarrayDescriptor){.Width = whole.Width,
                                .Height = whole.Height,
                                .Format = whole.Format,
                                .NumChannels = whole.NumChannels};
    return CUDA_SUCCESS;
}

/* ---- textures and surfaces ---- */

static CUresult of_array(const CUresourceDesc *from, vm_texture *t) {
    const sd_array *a = sd_find(from->res.array.hArray, SD_ARRAY);
    if (a == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *t = a->shape;
    return CUDA_SUCCESS;
}

static CUresult of_linear(const CUresourceDesc *from, vm_texture *t) {
    t->address = from->res.linear.devPtr;
    t->linear = true;
    if (!set_format(t, from->res.linear.format, from->res.linear.numChannels))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t elements = from->res.linear.sizeInBytes / element_bytes(t);
    t->width = (uint32_t)elements;
    return elements > 0 && elements <= UINT32_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult of_pitch(const CUresourceDesc *from, vm_texture *t) {
    t->address = from->res.pitch2D.devPtr;
    t->row_bytes = from->res.pitch2D.pitchInBytes;
    t->width = (uint32_t)from->res.pitch2D.width;
    t->height = (uint32_t)from->res.pitch2D.height;
    bool good = set_format(t, from->res.pitch2D.format, from->res.pitch2D.numChannels) &&
                from->res.pitch2D.width <= DIMENSION_MOST && t->height > 0 &&
                from->res.pitch2D.height <= DIMENSION_MOST;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult of_resource(const CUresourceDesc *from, vm_texture *t) {
    if (from == NULL || from->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return of_array(from, t);
    case CU_RESOURCE_TYPE_LINEAR:
        return of_linear(from, t);
    case CU_RESOURCE_TYPE_PITCH2D:
        return of_pitch(from, t);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult set_sampler(const CUtextureDesc *from, vm_texture *t) {
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (from == NULL || from->filterMode < 0 || from->filterMode > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (from->flags & ~known)
        return CUDA_ERROR_NOT_SUPPORTED;
    t->as_float = !(from->flags & CU_TRSF_READ_AS_INTEGER);
    t->sampler.normalised = from->flags & CU_TRSF_NORMALIZED_COORDINATES;
    t->sampler.linear = from->filterMode == 1;
    for (unsigned i = 0; i < 3; i++) {
        if (from->addressMode[i] < 0 || from->addressMode[i] > 3)
            return CUDA_ERROR_INVALID_VALUE;
        t->sampler.modes[i] = (uint8_t)from->addressMode[i];
    }
    memcpy(t->sampler.border, from->borderColor, sizeof t->sampler.border);
    return CUDA_SUCCESS;
}

static CUresult make(const vm_texture *t, CUtexObject *object) {
    ev_error err;
    uint64_t handle;
    sd_drain(); /* the machine's list of textures changes */
    if (vm_texture_new(sd_get()->memory, t, &handle, &err) != EV_OK)
        return CUDA_ERROR_INVALID_VALUE;
    *object = handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuTexObjectCreate(CUtexObject *object, const CUresourceDesc *from,
                              const CUtextureDesc *sampler, const void *view) {
    vm_texture t = {0};
    if (object == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (view != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = of_resource(from, &t);
    if (result == CUDA_SUCCESS)
        result = set_sampler(sampler, &t);
    return result == CUDA_SUCCESS ? make(&t, object) : result;
}

CUresult sd_cuSurfObjectCreate(CUsurfObject *object, const CUresourceDesc *from) {
    vm_texture t = {0};
    if (object == NULL || from == NULL || from->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = of_resource(from, &t);
    const sd_array *a = sd_find(from->res.array.hArray, SD_ARRAY);
    if (result != CUDA_SUCCESS || a == NULL)
        return result;
    bool layered = a->what.Depth > 0 || a->what.Flags != 0; /* only these can say so */
    if (layered && !(a->what.Flags & CU_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    t.surface = true;
    return make(&t, object);
}

static CUresult release(uint64_t object, bool surface) {
    vm_memory *m = sd_get()->memory;
    const vm_texture *t = vm_texture_get(m, object);
    if (t == NULL || t->surface != surface)
        return CUDA_ERROR_INVALID_VALUE;
    sd_drain();
    return vm_texture_release(m, object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sd_cuTexObjectDestroy(CUtexObject object) {
    return release(object, false);
}

CUresult sd_cuSurfObjectDestroy(CUsurfObject object) {
    return release(object, true);
}
