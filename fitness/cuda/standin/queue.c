/* The queue: one thread does all work of all streams in the order of the calls. That order
 * satisfies every stream and every event; what it does not give is kernels of two streams side by
 * side, so a kernel that waits for one that was launched after it never ends. */
#include "fitness/cuda/standin/standin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double later(double a, double b) {
    return a > b ? a : b;
}

/* ---- one entry; the lock is held, and given up while it takes long ---- */

static void do_launch(sd_state *s, const sd_entry *e) {
    sd_context *c = e->stream->base.context;
    sd_device *d = sd_device_of(c);
    CUresult fault = sd_injected(SD_FN_LAUNCH);
    bool hangs = sd_injected_hang();
    double ns = 0;
    (void)pthread_mutex_unlock(&s->lock);
    while (hangs)
        (void)sleep(1000); /* the program gives up, or waits for ever as on the chip */
    if (fault == CUDA_SUCCESS)
        fault = sd_run_launch(e, &ns);
    (void)pthread_mutex_lock(&s->lock);
    c->fault = fault;
    d->clock_ns = e->stream->clock_ns = later(d->clock_ns, e->stream->clock_ns) + ns;
}

static void do_copy(sd_state *s, const sd_entry *e) {
    (void)pthread_mutex_unlock(&s->lock);
    memmove(e->copy.to, e->copy.from, e->copy.bytes);
    (void)pthread_mutex_lock(&s->lock);
    e->stream->clock_ns += (double)e->copy.bytes / e->copy.gbs;
}

static void do_fill(const sd_entry *e) {
    char *to = e->fill.to;
    if (e->fill.width == 1)
        memset(to, (int)e->fill.value, e->fill.count);
    for (size_t i = 0; e->fill.width > 1 && i < e->fill.count; i++)
        memcpy(to + i * e->fill.width, &e->fill.value, e->fill.width); /* little-endian */
    double gbs = gpu_get(sd_device_of(e->stream->base.context)->g, GPU_DRAM_GBS);
    e->stream->clock_ns += (double)e->fill.count * e->fill.width / gbs;
}

/* The default stream waits for the others. */
static void do_record(const sd_entry *e) {
    const sd_context *c = e->stream->base.context;
    double now = e->stream->clock_ns;
    e->event->at_ns = e->stream == c->stream ? later(now, sd_device_of(c)->clock_ns) : now;
}

static void do_call(sd_state *s, const sd_entry *e) {
    (void)pthread_mutex_unlock(&s->lock);
    e->call.function(e->call.data);
    (void)pthread_mutex_lock(&s->lock);
}

static void do_entry(sd_state *s, sd_entry *e) {
    if (e->stream->base.context->fault != CUDA_SUCCESS)
        return;
    switch (e->kind) {
    case SD_DO_LAUNCH:
        do_launch(s, e);
        break;
    case SD_DO_COPY:
        do_copy(s, e);
        break;
    case SD_DO_FILL:
        do_fill(e);
        break;
    case SD_DO_RECORD:
        do_record(e);
        break;
    case SD_DO_WAIT:
        e->stream->clock_ns = later(e->stream->clock_ns, e->event->at_ns);
        break;
    case SD_DO_CALL:
        do_call(s, e);
        break;
    case SD_DO_FREE:
        sd_free(e->address);
        break;
    }
}

static void *work(void *context) {
    sd_state *s = context;
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->first == NULL)
            (void)pthread_cond_wait(&s->more, &s->lock);
        sd_entry *e = s->first;
        s->first = e->next;
        if (s->first == NULL)
            s->end = &s->first;
        do_entry(s, e);
        s->finished = e->number;
        if (e->kind == SD_DO_LAUNCH)
            free(e->launch.params);
        free(e);
        (void)pthread_cond_broadcast(&s->done);
    }
    return NULL;
}

/* ---- giving and waiting ---- */

sd_entry *sd_entry_new(sd_entry_kind kind, sd_stream *stream) {
    sd_state *s = sd_get();
    if (!s->works) {
        if (pthread_create(&s->worker, NULL, work, s) != 0)
            return NULL;
        s->works = true;
    }
    sd_entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->kind = kind;
    e->stream = stream;
    return e;
}

void sd_push(sd_entry *e) {
    sd_state *s = sd_get();
    e->number = ++s->given;
    e->stream->last = e->stream->base.context->last = e->number;
    *s->end = e;
    s->end = &e->next;
    (void)pthread_cond_signal(&s->more);
}

void sd_wait(uint64_t number) {
    sd_state *s = sd_get();
    while (s->finished < number)
        (void)pthread_cond_wait(&s->done, &s->lock);
}

void sd_drain(void) {
    sd_wait(sd_get()->given);
}
