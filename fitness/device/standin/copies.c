/* Copies and fills. A copy from or to memory that the driver did not give out is done at once,
 * since the program may change it right after the call. */
#include "fitness/device/standin/standin.h"

/* GB/s between host and device: what PCIe 4 with 16 lanes reaches; descriptions do not say. */
#define HOST_GBS 25.0

/* ---- copies ---- */

/* One end of a copy: where this process sees it. */
typedef struct end {
    char *at;      /* NULL: no such memory */
    bool pageable; /* the driver did not give it out */
    bool on_device;
} end;

static end device_end(uint64_t address, size_t bytes) {
    const sd_buffer *b = sd_buffer_at(address, bytes);
    if (b == NULL)
        return (end){0};
    return (end){.at = b->host + (address - b->address), .on_device = b->where != SD_ON_HOST};
}

static end host_end(const void *host, size_t bytes) {
    return (end){.at = (char *)(uintptr_t)host,
                 .pageable = host != NULL && sd_buffer_by_host(host, bytes) == NULL};
}

/* Under unified addressing: whichever memory the address names. */
static end any_end(uint64_t address, size_t bytes) {
    end e = device_end(address, bytes);
    return e.at != NULL || sd_buffer_at(address, 0) != NULL
               ? e
               : host_end((const void *)(uintptr_t)address, bytes);
}

static CUresult copy(end to, end from, size_t bytes, CUstream stream, bool waits) {
    sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (to.at == NULL || from.at == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (to.on_device && from.on_device)
        sd_block(on->base.context, &on->base.context->copied, false);
    sd_entry *e = sd_entry_new(SD_DO_COPY, on);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    double device_gbs = gpu_get(sd_device_of(sd_current())->g, GPU_DRAM_GBS) / 2;
    e->copy.to = to.at;
    e->copy.from = from.at;
    e->copy.bytes = bytes;
    e->copy.gbs = to.on_device && from.on_device ? device_gbs : HOST_GBS;
    sd_push(e);
    if (!waits && !to.pageable && !from.pageable)
        return CUDA_SUCCESS;
    const sd_context *c = sd_current();
    if (on == c->stream)
        sd_wait_context(c);
    else
        sd_wait(on->last);
    return c->fault;
}

CUresult sd_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(any_end(to, bytes), any_end(from, bytes), bytes, NULL, true);
}

CUresult sd_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(any_end(to, bytes), any_end(from, bytes), bytes, stream, false);
}

CUresult sd_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    return copy(device_end(to, bytes), host_end(from, bytes), bytes, NULL, true);
}

CUresult sd_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    return copy(host_end(to, bytes), device_end(from, bytes), bytes, NULL, true);
}

CUresult sd_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, NULL, false);
}

CUresult sd_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy(device_end(to, bytes), host_end(from, bytes), bytes, stream, false);
}

CUresult sd_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(host_end(to, bytes), device_end(from, bytes), bytes, stream, false);
}

CUresult sd_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, stream, false);
}

CUresult sd_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, size_t bytes, CUstream stream) {
    if (sd_find(to_context, SD_CONTEXT) == NULL || sd_find(from_context, SD_CONTEXT) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return sd_cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult sd_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes) {
    return sd_cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, NULL);
}

/* ---- boxes ---- */

/* One side of a box: rows in linear memory or in an array. */
typedef struct side {
    CUmemorytype type;
    uint64_t first; /* address of the first row's first byte */
    size_t pitch, slice;
} side;

typedef struct box_place {
    CUmemorytype type;
    uint64_t host, device;
    const void *array;
    size_t x, y, z, pitch, height;
} box_place;

/* The rows of an array are not to be left. */
static CUresult side_of_array(const box_place *p, const CUmemcpy3D *c, side *out) {
    const sd_array *a = sd_find(p->array, SD_ARRAY);
    if (a == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const vm_texture *t = &a->shape;
    size_t rows = t->height > 0 ? t->height : 1, slices = a->what.Depth > 0 ? a->what.Depth : 1;
    bool inside = p->x <= t->row_bytes && c->WidthInBytes <= t->row_bytes - p->x && p->y <= rows &&
                  c->Height <= rows - p->y && p->z <= slices && c->Depth <= slices - p->z;
    *out = (side){.type = CU_MEMORYTYPE_DEVICE,
                  .first = t->address + p->z * t->slice_bytes + p->y * t->row_bytes + p->x,
                  .pitch = t->row_bytes,
                  .slice = t->slice_bytes};
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult side_of(const box_place *p, const CUmemcpy3D *c, side *out) {
    if (p->type == CU_MEMORYTYPE_ARRAY)
        return side_of_array(p, c, out);
    size_t pitch = p->pitch != 0 ? p->pitch : p->x + c->WidthInBytes;
    size_t slice = pitch * (p->height != 0 ? p->height : p->y + c->Height);
    uint64_t base = p->type == CU_MEMORYTYPE_HOST ? p->host : p->device;
    *out = (side){.type = p->type,
                  .first = base + p->z * slice + p->y * pitch + p->x,
                  .pitch = pitch,
                  .slice = slice};
    bool known = p->type == CU_MEMORYTYPE_HOST || p->type == CU_MEMORYTYPE_DEVICE ||
                 p->type == CU_MEMORYTYPE_UNIFIED;
    return known && pitch >= c->WidthInBytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static end row_of(const side *s, size_t row, size_t slice, size_t bytes) {
    uint64_t address = s->first + slice * s->slice + row * s->pitch;
    if (s->type == CU_MEMORYTYPE_HOST)
        return host_end((const void *)(uintptr_t)address, bytes);
    return s->type == CU_MEMORYTYPE_DEVICE ? device_end(address, bytes) : any_end(address, bytes);
}

static CUresult copy_box(const CUmemcpy3D *c, CUstream stream, bool waits) {
    side from, to;
    const box_place source = {c->srcMemoryType, (uintptr_t)c->srcHost, c->srcDevice,
                              c->srcArray,      c->srcXInBytes,        c->srcY,
                              c->srcZ,          c->srcPitch,           c->srcHeight};
    const box_place target = {c->dstMemoryType, (uintptr_t)c->dstHost, c->dstDevice,
                              c->dstArray,      c->dstXInBytes,        c->dstY,
                              c->dstZ,          c->dstPitch,           c->dstHeight};
    CUresult result = side_of(&source, c, &from);
    if (result == CUDA_SUCCESS)
        result = side_of(&target, c, &to);
    size_t rows = c->Height * c->Depth, bytes = c->WidthInBytes;
    for (size_t i = 0; i < rows && result == CUDA_SUCCESS; i++)
        result = copy(row_of(&to, i % c->Height, i / c->Height, bytes),
                      row_of(&from, i % c->Height, i / c->Height, bytes), bytes, stream,
                      waits && i + 1 == rows);
    return result;
}

static CUresult copy_rows(const CUmemcpy2D *c, CUstream stream, bool waits) {
    if (c == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUmemcpy3D box = {.srcXInBytes = c->srcXInBytes,
                            .srcY = c->srcY,
                            .srcMemoryType = c->srcMemoryType,
                            .srcHost = c->srcHost,
                            .srcDevice = c->srcDevice,
                            .srcArray = c->srcArray,
                            .srcPitch = c->srcPitch,
                            .dstXInBytes = c->dstXInBytes,
                            .dstY = c->dstY,
                            .dstMemoryType = c->dstMemoryType,
                            .dstHost = c->dstHost,
                            .dstDevice = c->dstDevice,
                            .dstArray = c->dstArray,
                            .dstPitch = c->dstPitch,
                            .WidthInBytes = c->WidthInBytes,
                            .Height = c->Height,
                            .Depth = 1};
    return copy_box(&box, stream, waits);
}

CUresult sd_cuMemcpy2D_v2(const CUmemcpy2D *what) {
    return copy_rows(what, NULL, true);
}

CUresult sd_cuMemcpy2DUnaligned_v2(const CUmemcpy2D *what) {
    return copy_rows(what, NULL, true);
}

CUresult sd_cuMemcpy2DAsync_v2(const CUmemcpy2D *what, CUstream stream) {
    return copy_rows(what, stream, false);
}

CUresult sd_cuMemcpy3D_v2(const CUmemcpy3D *what) {
    return what == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(what, NULL, true);
}

CUresult sd_cuMemcpy3DAsync_v2(const CUmemcpy3D *what, CUstream stream) {
    return what == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(what, stream, false);
}

/* Bytes of an array from an offset on; NULL in `at`: not all of them are there. */
static end array_end(CUarray array, size_t at, size_t bytes) {
    const sd_array *a = sd_find(array, SD_ARRAY);
    const sd_buffer *b = a != NULL ? sd_buffer_at(a->shape.address, 0) : NULL;
    bool holds = b != NULL && at <= b->bytes && bytes <= b->bytes - at;
    return holds ? device_end(a->shape.address + at, bytes) : (end){0};
}

CUresult sd_cuMemcpyHtoA_v2(CUarray to, size_t at, const void *from, size_t bytes) {
    return copy(array_end(to, at, bytes), host_end(from, bytes), bytes, NULL, true);
}

CUresult sd_cuMemcpyAtoH_v2(void *to, CUarray from, size_t at, size_t bytes) {
    return copy(host_end(to, bytes), array_end(from, at, bytes), bytes, NULL, true);
}

CUresult sd_cuMemcpyDtoA_v2(CUarray to, size_t at, CUdeviceptr from, size_t bytes) {
    return copy(array_end(to, at, bytes), device_end(from, bytes), bytes, NULL, false);
}

CUresult sd_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t at, size_t bytes) {
    return copy(device_end(to, bytes), array_end(from, at, bytes), bytes, NULL, false);
}

/* ---- fills ---- */

static CUresult fill(CUdeviceptr to, unsigned value, unsigned width, size_t count,
                     CUstream stream) {
    sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (count == 0)
        return CUDA_SUCCESS;
    end where = count > SIZE_MAX / width ? (end){0} : device_end(to, count * width);
    if (where.at == NULL || to % width != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sd_block(on->base.context, &on->base.context->filled, false);
    sd_entry *e = sd_entry_new(SD_DO_FILL, on);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->fill.to = where.at;
    e->fill.value = value;
    e->fill.width = width;
    e->fill.count = count;
    sd_push(e);
    return CUDA_SUCCESS;
}

CUresult sd_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(to, value, 1, count, stream);
}

CUresult sd_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill(to, value, 2, count, stream);
}

CUresult sd_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fill(to, value, 4, count, stream);
}

CUresult sd_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fill(to, value, 1, count, NULL);
}

CUresult sd_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fill(to, value, 2, count, NULL);
}

CUresult sd_cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    return fill(to, value, 4, count, NULL);
}
