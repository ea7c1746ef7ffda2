/* The queue: all work of all streams in the order of the calls. One thread takes the first entry
 * that nothing before it holds up (its stream, the default stream, an event) and does it. Where
 * kernels may run side by side, each gets a thread of its own (turns.c), and the queue goes on
 * behind it; elsewhere the queue's thread runs it itself, which is quicker. */
#include "fitness/device/standin/standin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Commands that are given and not done; who gives one more waits, as with the driver. */
#define QUEUE_MOST 1024

static double later(double a, double b) {
    return a > b ? a : b;
}

/* ---- the list ---- */

static bool is_done(uint64_t number) {
    const sd_entry *e = sd_get()->first;
    while (e != NULL && e->number < number)
        e = e->next;
    return e == NULL || e->number != number;
}

static void take_out(sd_entry *e) {
    sd_state *s = sd_get();
    sd_entry **at = &s->first;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->next == NULL)
        s->end = at;
    s->pending--;
}

static void entry_free(sd_entry *e) {
    if (e->kind == SD_DO_LAUNCH)
        free(e->launch.params);
    free(e);
}

static void finish(sd_state *s, sd_entry *e) {
    take_out(e);
    entry_free(e);
    (void)pthread_cond_broadcast(&s->done);
    (void)pthread_cond_signal(&s->more);
}

/* ---- one entry; the lock is held, and given up while it takes long ---- */

/* A fault ends all kernels of its context that have threads of their own. */
static void end_others(sd_state *s, const sd_entry *faulty) {
    const sd_context *c = faulty->stream->base.context;
    for (sd_entry *e = s->first, *next; e != NULL; e = next) {
        next = e->next;
        bool runs = e->runs && e->kind == SD_DO_LAUNCH && e->launch.turn.passes;
        if (e == faulty || !runs || e->stream->base.context != c)
            continue;
        sd_turn_abandon(&e->launch.turn);
        take_out(e); /* its thread keeps it */
    }
}

/* 1 less or 1 more the share that was asked for, by turns. */
static double jitter(sd_state *s) {
    const char *text = getenv("EVOKE_STANDIN_JITTER");
    double share = text != NULL ? strtod(text, NULL) : 0;
    return s->timed_launches++ % 2 == 0 ? 1 - share : 1 + share;
}

/* The program gives up, or waits for ever as on the chip. */
static _Noreturn void hang(void) {
    for (;;)
        (void)sleep(1000);
}

static void do_launch(sd_state *s, sd_entry *e) {
    sd_context *c = e->stream->base.context;
    sd_device *d = sd_device_of(c);
    sd_turn *turn = &e->launch.turn;
    CUresult fault = sd_injected(SD_FN_LAUNCH);
    bool hangs = sd_injected_hang();
    double ns = 0;
    sd_counters_begin(d, later(d->clock_ns, e->stream->clock_ns), e);
    (void)pthread_mutex_unlock(&s->lock);
    if (hangs)
        hang();
    sd_turn_begin(turn);
    sd_recording *recording = sd_record_before(e);
    if (fault == CUDA_SUCCESS)
        fault = sd_run_launch(e, &ns);
    sd_record_after(recording, e, fault);
    (void)pthread_mutex_lock(&s->lock);
    sd_keep_printed(e);
    if (fault != CUDA_SUCCESS) {
        c->fault = fault;
        end_others(s, e);
    }
    sd_turn_end(turn);
    ns *= jitter(s) / sd_clock_share();
    d->clock_ns = e->stream->clock_ns = later(d->clock_ns, e->stream->clock_ns) + ns;
    sd_counters_end(d, d->clock_ns, e);
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
    if (e->call.status != NULL)
        e->call.status(e->call.stream, e->stream->base.context->fault, e->call.data);
    else
        e->call.function(e->call.data);
    (void)pthread_mutex_lock(&s->lock);
}

/* The machine's list of buffers changes: between the turns of kernels. */
static void do_free(sd_state *s, const sd_entry *e) {
    sd_turn turn = {.context = e->stream->base.context, .mine = PTHREAD_COND_INITIALIZER};
    (void)pthread_mutex_unlock(&s->lock);
    sd_turn_begin(&turn);
    (void)pthread_mutex_lock(&s->lock);
    sd_free(e->address);
    sd_turn_end(&turn);
}

/* Behind a fault nothing runs but callbacks that are told of it. */
static void do_entry(sd_state *s, sd_entry *e) {
    bool is_told = e->kind == SD_DO_CALL && e->call.status != NULL;
    if (e->stream->base.context->fault != CUDA_SUCCESS && !is_told)
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
        do_free(s, e);
        break;
    }
}

/* ---- what may begin ---- */

static bool blocks(const sd_stream *s) {
    return !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* Later entries of the same stream have to wait for this one, and where one of the two is in the
 * default stream, those of other streams. */
static void mark(const sd_entry *e, uint64_t pass) {
    sd_context *c = e->stream->base.context;
    e->stream->held = pass;
    if (!blocks(e->stream))
        return;
    c->held = pass;
    if (e->stream == c->stream)
        c->held_by_default = pass;
}

static bool is_held(const sd_entry *e, uint64_t pass) {
    const sd_stream *on = e->stream;
    const sd_context *c = on->base.context;
    bool by_others = on == c->stream ? c->held == pass : c->held_by_default == pass;
    return on->held == pass || (blocks(on) && by_others) ||
           (e->kind == SD_DO_WAIT && !is_done(e->awaited));
}

static sd_entry *find_ready(sd_state *s) {
    uint64_t pass = ++s->passes;
    sd_entry *e = s->first;
    for (; e != NULL && (e->runs || is_held(e, pass)); e = e->next)
        mark(e, pass);
    return e;
}

/* Two streams may have kernels at the same time. `races` are looked for one kernel at a time, since
 * the machine knows of no order between two; so are launches recorded, since what each of two
 * wrote cannot be told apart. */
static bool side_by_side(const sd_state *s) {
    size_t at = 0, contexts = 0, streams = 0;
    bool free_stream = false;
    while (sd_next(SD_CONTEXT, &at) != NULL)
        contexts++;
    at = 0;
    for (const sd_stream *t = sd_next(SD_STREAM, &at); t != NULL; t = sd_next(SD_STREAM, &at)) {
        streams++;
        free_stream |= !blocks(t);
    }
    bool several = contexts > 1 || streams > contexts + 1 || free_stream;
    return several && !s->config.races && !sd_records();
}

static void *run_aside(void *entry) {
    sd_state *s = sd_get();
    sd_entry *e = entry;
    (void)pthread_mutex_lock(&s->lock);
    if (e->launch.turn.abandoned) { /* before it began */
        entry_free(e);
    } else {
        do_entry(s, e);
        finish(s, e);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* False: no thread to be had. */
static bool begin_aside(sd_entry *e) {
    pthread_t thread;
    e->launch.turn.passes = true;
    if (pthread_create(&thread, NULL, run_aside, e) == 0)
        return pthread_detach(thread) == 0;
    e->launch.turn.passes = false;
    return false;
}

static void *work(void *context) {
    sd_state *s = context;
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        sd_entry *e = find_ready(s);
        if (e == NULL) {
            (void)pthread_cond_wait(&s->more, &s->lock);
            continue;
        }
        e->runs = true;
        if (e->kind == SD_DO_LAUNCH && side_by_side(s) && begin_aside(e))
            continue;
        do_entry(s, e);
        finish(s, e);
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
    while (s->pending >= QUEUE_MOST)
        (void)pthread_cond_wait(&s->done, &s->lock);
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
    s->pending++;
    e->stream->last = e->stream->base.context->last = e->number;
    *s->end = e;
    s->end = &e->next;
    (void)pthread_cond_signal(&s->more);
}

bool sd_is_done(uint64_t number) {
    return is_done(number);
}

void sd_wait(uint64_t number) {
    sd_state *s = sd_get();
    while (!is_done(number))
        (void)pthread_cond_wait(&s->done, &s->lock);
    sd_write_printed();
}

/* Whether something is left of a context's work, NULL: of all, up to entry `number`. */
static bool is_left(const sd_context *c, uint64_t number) {
    const sd_entry *e = sd_get()->first;
    while (e != NULL && e->number <= number && c != NULL && e->stream->base.context != c)
        e = e->next;
    return e != NULL && e->number <= number;
}

void sd_wait_context(const sd_context *c) {
    sd_state *s = sd_get();
    uint64_t newest = s->given;
    while (is_left(c, newest))
        (void)pthread_cond_wait(&s->done, &s->lock);
    sd_write_printed();
}

void sd_drain(void) {
    sd_wait_context(NULL);
}
