/* Streams and events. Times between events are modelled: the timing model's for kernels, bandwidths
 * of the description for copies and fills. */
#include "fitness/device/standin/standin.h"

#include <stdlib.h>

/* ---- streams ---- */

CUresult sd_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    if (stream == NULL || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    sd_stream *made = sd_new(SD_STREAM, sizeof *made, sd_current());
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->flags = flags;
    made->priority = priority;
    *stream = (CUstream)made->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuStreamCreate(CUstream *stream, unsigned flags) {
    return sd_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult sd_cuStreamGetFlags(CUstream stream, unsigned *flags) {
    const sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = on->flags;
    return CUDA_SUCCESS;
}

CUresult sd_cuStreamGetPriority(CUstream stream, int *priority) {
    const sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = on->priority;
    return CUDA_SUCCESS;
}

CUresult sd_cuStreamGetCtx(CUstream stream, CUcontext *context) {
    const sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = (CUcontext)on->base.context->base.handle;
    return CUDA_SUCCESS;
}

/* No context is a green one: none has but some of the SMs. */
CUresult sd_cuStreamGetCtx_v2(CUstream stream, CUcontext *context, void **green) {
    if (green != NULL)
        *green = NULL;
    return sd_cuStreamGetCtx(stream, context);
}

CUresult sd_cuStreamDestroy_v2(CUstream stream) {
    sd_drain();
    sd_stream *s = sd_find(stream, SD_STREAM);
    if (s == NULL || s == s->base.context->stream)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_drop(s);
    return CUDA_SUCCESS;
}

CUresult sd_cuStreamQuery(CUstream stream) {
    const sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return sd_is_done(on->last) ? on->base.context->fault : CUDA_ERROR_NOT_READY;
}

CUresult sd_cuStreamSynchronize(CUstream stream) {
    const sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const sd_context *c = on->base.context;
    if (on == c->stream)
        sd_wait_context(c);
    else
        sd_wait(on->last);
    return c->fault;
}

CUresult sd_cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data) {
    sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_entry *e = call == NULL ? NULL : sd_entry_new(SD_DO_CALL, on);
    if (e == NULL)
        return call == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    e->call.function = call;
    e->call.data = data;
    sd_push(e);
    return CUDA_SUCCESS;
}

CUresult sd_cuStreamAddCallback(CUstream stream, CUstreamCallback call, void *data,
                                unsigned flags) {
    sd_stream *on = sd_stream_of(stream);
    if (on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_entry *e = call == NULL || flags != 0 ? NULL : sd_entry_new(SD_DO_CALL, on);
    if (e == NULL)
        return call == NULL || flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    e->call.status = call;
    e->call.stream = stream;
    e->call.data = data;
    sd_push(e);
    return CUDA_SUCCESS;
}

/* ---- events ---- */

CUresult sd_cuEventCreate(CUevent *event, unsigned flags) {
    if (event == NULL || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    sd_event *made = sd_new(SD_EVENT, sizeof *made, sd_current());
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->flags = flags;
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        sd_get()->timed_events++;
    *event = (CUevent)made->base.handle;
    return CUDA_SUCCESS;
}

CUresult sd_cuEventDestroy_v2(CUevent event) {
    sd_event *e = sd_find(event, SD_EVENT);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sd_wait(e->used);
    e = sd_find(event, SD_EVENT);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!(e->flags & CU_EVENT_DISABLE_TIMING))
        sd_get()->timed_events--;
    sd_drop(e);
    return CUDA_SUCCESS;
}

static CUresult push_event(sd_entry_kind kind, CUevent event, CUstream stream) {
    sd_event *e = sd_find(event, SD_EVENT);
    sd_stream *on = sd_stream_of(stream);
    if (e == NULL || on == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (kind == SD_DO_WAIT && e->last == 0)
        return CUDA_SUCCESS;
    sd_entry *entry = sd_entry_new(kind, on);
    if (entry == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->event = e;
    entry->awaited = e->last;
    sd_push(entry);
    e->used = entry->number;
    e->last = kind == SD_DO_RECORD ? entry->number : e->last;
    return CUDA_SUCCESS;
}

CUresult sd_cuEventRecord(CUevent event, CUstream stream) {
    return push_event(SD_DO_RECORD, event, stream);
}

CUresult sd_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : sd_cuEventRecord(event, stream);
}

CUresult sd_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : push_event(SD_DO_WAIT, event, stream);
}

CUresult sd_cuEventQuery(CUevent event) {
    const sd_event *e = sd_find(event, SD_EVENT);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return sd_is_done(e->last) ? e->base.context->fault : CUDA_ERROR_NOT_READY;
}

CUresult sd_cuEventSynchronize(CUevent event) {
    const sd_event *e = sd_find(event, SD_EVENT);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const sd_context *c = e->base.context;
    sd_wait(e->last);
    return c->fault;
}

CUresult sd_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    const sd_event *a = sd_find(start, SD_EVENT), *b = sd_find(end, SD_EVENT);
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (a == NULL || b == NULL || a->last == 0 || b->last == 0 ||
        ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sd_is_done(a->last) || !sd_is_done(b->last))
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((b->at_ns - a->at_ns) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult sd_cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    return sd_cuEventElapsedTime(milliseconds, start, end);
}
