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

/* ---- rectangles ---- */

/* One side of a rectangle in linear memory. */
typedef struct side {
    CUmemorytype type;
    uint64_t first; /* address of the first row's first byte */
    size_t pitch;
} side;

static side side_of(CUmemorytype type, uint64_t host, uint64_t device, size_t x, size_t y,
                    size_t pitch) {
    uint64_t base = type == CU_MEMORYTYPE_HOST ? host : device;
    return (side){.type = type, .first = base + y * pitch + x, .pitch = pitch};
}

static end row_of(const side *s, size_t row, size_t bytes) {
    uint64_t address = s->first + row * s->pitch;
    if (s->type == CU_MEMORYTYPE_HOST)
        return host_end((const void *)(uintptr_t)address, bytes);
    return s->type == CU_MEMORYTYPE_DEVICE ? device_end(address, bytes) : any_end(address, bytes);
}

static bool is_linear(CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

static CUresult copy_rows(const CUmemcpy2D *c, CUstream stream, bool waits) {
    if (c == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_linear(c->srcMemoryType) || !is_linear(c->dstMemoryType)) /* an array */
        return CUDA_ERROR_NOT_SUPPORTED;
    side from = side_of(c->srcMemoryType, (uintptr_t)c->srcHost, c->srcDevice, c->srcXInBytes,
                        c->srcY, c->srcPitch != 0 ? c->srcPitch : c->srcXInBytes + c->WidthInBytes);
    side to = side_of(c->dstMemoryType, (uintptr_t)c->dstHost, c->dstDevice, c->dstXInBytes,
                      c->dstY, c->dstPitch != 0 ? c->dstPitch : c->dstXInBytes + c->WidthInBytes);
    if (from.pitch < c->WidthInBytes || to.pitch < c->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t row = 0; row < c->Height && result == CUDA_SUCCESS; row++)
        result = copy(row_of(&to, row, c->WidthInBytes), row_of(&from, row, c->WidthInBytes),
                      c->WidthInBytes, stream, waits && row + 1 == c->Height);
    return result;
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
