/* Interleaves the warps of a block before they are followed, as an SM would run them side by side.
 *
 * The virtual machine runs one warp after another, each up to a barrier. If their loads went
 * through the L1 in that order, each warp would find its own lines still there, and a kernel would
 * lose its hits wherever a barrier stands. So the batches of a block wait in a queue for each warp.
 * The queues are emptied where all warps have arrived: at a barrier, and at the block's end. The
 * warp with the earliest clock goes first, and keeps its turn for a slice: a few loads that go
 * through the L1, up to the end of a basic block (so that the shortcuts of follow.c apply).
 *
 * Most slices repeat one that has a plan (plans.c). Such a slice is found by its events, so a queue
 * keeps the plan and the sectors alone. A slice that the machine's batch cuts off goes on in the
 * warp's next batch.
 *
 * The first slice of each warp needs no queue: all warps leave a barrier at the same clock, so
 * their first slices come in the order in which the machine runs the warps. Mostly there is no
 * second one.
 *
 * A queue that grows long is emptied earlier: warps go on while the one with the earliest clock has
 * events in its queue (conservative simulation: Chandy and Misra 1979). Kernels without loads
 * through the L1, and blocks of one warp, are followed at once. */
#include "fitness/model/model_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Two rounds of a loop of two loads that is unrolled by the usual four. Slices of 4 and of 8 loads
 * change the modelled time of 5 % of the tuned kernels by more than a hundredth, and no rank
 * correlation by more than 0.006; shorter slices cost more of the host's time. */
#define SLICE_LOADS 16
#define SLICE_EVENTS 96                /* after so many, a slice may end within a basic block */
#define QUEUES_BYTES ((size_t)8 << 20) /* of a block, before warps go on */
#define QUEUES_MOST ((size_t)96 << 20) /* of a block, before they go on whatever the order */

typedef struct slice {
    size_t event, sector; /* its first; its events count their sectors from there */
    uint32_t events;
    model_plan *like; /* a plan that has its events; NULL: the queue has them */
} slice;

/* How far a slice has come. */
typedef struct slice_length {
    unsigned loads, events;
    bool is_whole, has_barrier;
    uint32_t arrived; /* lanes that come to its barrier */
    uint32_t gone;    /* lanes that end in it */
} slice_length;

struct warp_queue {
    slice *slices;
    vm_event *events;
    uint64_t *sectors;
    size_t slice_room, event_room, sector_room;
    size_t slice_count, event_count, sector_count;
    size_t next;         /* the first slice that was not followed */
    slice_length length; /* of the last slice that was put there */
    model_plan *last;    /* the plan found last; NULL: none */
    uint32_t passed;     /* barriers that the warp has left behind */
    bool is_begun;       /* the warp did its first slice since the last barrier */
    uint32_t live;       /* lanes that have not ended */
    uint32_t arrived;    /* lanes at the barrier; those of a divergent warp arrive in parts */
    bool at_barrier;     /* all live lanes have arrived */
};

void model_queues_free(warp_queue *queues, size_t count) {
    for (size_t i = 0; queues != NULL && i < count; i++) {
        free(queues[i].slices);
        free(queues[i].events);
        free(queues[i].sectors);
    }
    free(queues);
}

/* ---- slices ---- */

/* What a slice looks at, by the last pc of an event. */
enum { MARK_LOAD = 1, MARK_BARRIER = 2, MARK_END = 4, MARK_EXIT = 8 };

bool model_interleave_begin(model *m) {
    m->marks = calloc((size_t)m->rows.count + 1, 1);
    for (uint32_t pc = 0; m->marks != NULL && pc < m->rows.count; pc++) {
        const model_row *row = &m->rows.rows[pc];
        bool is_load = row->kind == ROW_LOAD && !row->bypasses_l1;
        m->has_cached_loads |= is_load;
        m->marks[pc] =
            (uint8_t)((is_load ? MARK_LOAD : 0) | (row->kind == ROW_BARRIER ? MARK_BARRIER : 0) |
                      (row->kind == ROW_EXIT ? MARK_EXIT : 0) |
                      (m->schedule.next[pc] == pc + 1 ? MARK_END : 0));
    }
    return m->marks != NULL;
}

/* Adds the batch's events from `first` on to a slice, up to its end; returns the event after. */
static size_t lengthen(const model *m, const vm_batch *batch, size_t first, slice_length *length) {
    for (size_t i = first; i < batch->count; i++) {
        const vm_event *e = &batch->events[i];
        unsigned mark = m->marks[e->pc + e->count - 1];
        length->loads += mark & MARK_LOAD;
        length->events++;
        length->has_barrier = (mark & MARK_BARRIER) != 0;
        length->arrived = length->has_barrier ? e->active : 0;
        length->gone |= (mark & MARK_EXIT) != 0 ? e->active : 0;
        length->is_whole =
            length->has_barrier || (length->loads >= SLICE_LOADS &&
                                    ((mark & MARK_END) != 0 || length->events > SLICE_EVENTS));
        if (length->is_whole)
            return i + 1;
    }
    return batch->count;
}

/* Whether the events of a plan are a whole slice. */
static plan_whole whole_of(const model *m, model_plan *p) {
    if (p->whole == PLAN_NOT_ASKED) {
        slice_length length = {0};
        vm_batch batch = {.events = p->events, .count = p->count};
        bool is_all = lengthen(m, &batch, 0, &length) == p->count && length.is_whole;
        p->whole = length.has_barrier ? PLAN_BARRIER : PLAN_WHOLE;
        p->whole = is_all ? p->whole : PLAN_PART;
    }
    return p->whole;
}

/* A plan whose events are the slice that the batch begins with, or NULL; *length: the slice's. No
 * slice ends within the events of a plan, as plans are made of slices, but it may go on after them,
 * unless these are all of the batch. */
static model_plan *like_slice(const model *m, model_plan *before, const vm_batch *batch,
                              slice_length *length) {
    model_plan *like = model_plans_like(m->plans, before, batch);
    if (like == NULL || (whole_of(m, like) == PLAN_PART && like->count < batch->count))
        return NULL;
    bool has_barrier = like->whole == PLAN_BARRIER;
    bool has_exit = like->last != NULL && like->last->kind == ROW_EXIT;
    *length = (slice_length){.is_whole = true,
                             .has_barrier = has_barrier,
                             .arrived = has_barrier ? like->last_active : 0,
                             .gone = has_exit ? like->last_active : 0};
    return like;
}

/* ---- filling ---- */

static bool make_room(void **items, size_t *room, size_t needed, size_t size) {
    if (needed <= *room)
        return true;
    size_t wanted = *room * 2 > needed ? *room * 2 : needed + 64;
    void *more = realloc(*items, wanted * size);
    if (more == NULL)
        return false;
    *items = more;
    *room = wanted;
    return true;
}

/* Room for a slice, which may have no sectors. */
static bool grow(warp_queue *q, size_t events, size_t sectors) {
    void *old[] = {q->slices, q->events, q->sectors};
    bool made = make_room(&old[0], &q->slice_room, q->slice_count + 1, sizeof *q->slices);
    made &= make_room(&old[1], &q->event_room, q->event_count + events, sizeof *q->events);
    made &= make_room(&old[2], &q->sector_room, q->sector_count + sectors + 1, sizeof *q->sectors);
    q->slices = old[0];
    q->events = old[1];
    q->sectors = old[2];
    return made;
}

static size_t sectors_of(const vm_event *events, size_t count) {
    const vm_event *last = &events[count - 1];
    return last->first_sector + last->sectors - events[0].first_sector;
}

/* Puts sectors of a slice's events behind those of the queue. */
static void put_sectors(block_state *b, warp_queue *q, const vm_batch *batch, size_t first,
                        size_t sectors) {
    if (sectors > 0)
        memcpy(q->sectors + q->sector_count, batch->sectors + batch->events[first].first_sector,
               sectors * sizeof *q->sectors);
    q->sector_count += sectors;
    b->queued += sectors * sizeof *q->sectors;
}

/* Puts events behind those of the queue's last slice. */
static bool put_events(block_state *b, warp_queue *q, const vm_batch *batch, size_t first,
                       size_t end) {
    const vm_event *from = batch->events + first;
    size_t count = end - first, sectors = sectors_of(from, count);
    if (!grow(q, count, sectors))
        return false;
    slice *s = &q->slices[q->slice_count - 1];
    assert(s->like == NULL);
    vm_event *to = q->events + q->event_count;
    uint32_t moved = from->first_sector - (uint32_t)(q->sector_count - s->sector);
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].first_sector -= moved;
    }
    put_sectors(b, q, batch, first, sectors);
    s->events += (uint32_t)count;
    q->event_count += count;
    b->queued += count * sizeof *q->events;
    return true;
}

/* An empty slice behind those of the queue. */
static slice *put_slice(block_state *b, warp_queue *q, size_t sectors) {
    if (!grow(q, 0, sectors))
        return NULL;
    q->length = (slice_length){0};
    slice *s = &q->slices[q->slice_count++];
    b->queued += sizeof *s;
    *s = (slice){.event = q->event_count, .sector = q->sector_count};
    return s;
}

/* A slice whose events a plan has: their number, or 0: none has them. */
static size_t put_like(const model *m, block_state *b, warp_queue *q, const vm_batch *part) {
    slice_length length;
    model_plan *like = like_slice(m, q->last, part, &length);
    if (like == NULL || like->whole == PLAN_PART)
        return 0;
    size_t sectors = sectors_of(part->events, like->count);
    slice *s = put_slice(b, q, sectors);
    if (s == NULL)
        return 0;
    s->like = q->last = like;
    s->events = (uint32_t)like->count;
    put_sectors(b, q, part, 0, sectors);
    q->length = length;
    return like->count;
}

/* Puts the batch's events from `first` on into the queue, up to the end of a slice; returns the
 * event after. A slice goes on in the warp's next batch. */
static size_t put_part(model *m, block_state *b, warp_queue *q, const vm_batch *batch,
                       size_t first) {
    bool goes_on = q->next < q->slice_count && !q->length.is_whole;
    if (!goes_on) {
        vm_batch part = *batch;
        part.events += first;
        part.count -= first;
        size_t taken = put_like(m, b, q, &part);
        if (taken > 0)
            return first + taken;
        m->failed = m->failed || put_slice(b, q, 0) == NULL;
    }
    size_t end = lengthen(m, batch, first, &q->length);
    m->failed = m->failed || !put_events(b, q, batch, first, end);
    return end;
}

/* ---- emptying ---- */

static void follow_slice(model *m, block_state *b, uint32_t warp) {
    warp_queue *q = &b->queues[warp];
    const slice *s = &q->slices[q->next++];
    vm_batch batch = {.block = b->block,
                      .warp = warp,
                      .events = s->like != NULL ? s->like->events : q->events + s->event,
                      .count = s->events,
                      .sectors = q->sectors + s->sector};
    model_follow_batch(m, b, &batch, s->like);
}

/* Whether a warp takes turns. `waits`: a warp whose queue is empty does as well, unless it has
 * ended or waits at a barrier. */
static inline uint64_t turn_of(const block_state *b, uint32_t warp, bool waits) {
    const warp_queue *q = &b->queues[warp];
    const warp_state *w = &b->warp[warp];
    bool runs = q->next < q->slice_count || (waits && w->live != 0 && !w->at_barrier);
    return runs ? w->at.clock : UINT64_MAX;
}

/* The running warp with the earliest clock, of those the first; UINT32_MAX: there is none. */
static uint32_t earliest(const block_state *b) {
    uint32_t chosen = UINT32_MAX;
    uint64_t clock = UINT64_MAX;
    for (uint32_t i = 0; i < b->warps; i++) {
        bool earlier = b->turns[i] < clock;
        chosen = earlier ? i : chosen;
        clock = earlier ? b->turns[i] : clock;
    }
    return chosen;
}

/* Drops what was followed from the front of a queue; its bytes afterwards. */
static size_t compact(warp_queue *q) {
    size_t left = q->slice_count - q->next;
    if (left == 0) {
        q->slice_count = q->event_count = q->sector_count = q->next = 0;
        return 0;
    }
    slice first = q->slices[q->next];
    q->event_count -= first.event;
    q->sector_count -= first.sector;
    memmove(q->events, q->events + first.event, q->event_count * sizeof *q->events);
    memmove(q->sectors, q->sectors + first.sector, q->sector_count * sizeof *q->sectors);
    for (size_t i = 0; i < left; i++) {
        slice s = q->slices[q->next + i];
        s.event -= first.event;
        s.sector -= first.sector;
        q->slices[i] = s;
    }
    q->slice_count = left;
    q->next = 0;
    return left * sizeof *q->slices + q->event_count * sizeof *q->events +
           q->sector_count * sizeof *q->sectors;
}

/* `waits`: only as far as no warp that runs lacks events. */
static void empty_queues(model *m, block_state *b, bool waits) {
    if (b->queued == 0)
        return;
    for (uint32_t i = 0; i < b->warps; i++)
        b->turns[i] = turn_of(b, i, waits);
    uint32_t warp = earliest(b);
    while (warp != UINT32_MAX && b->queues[warp].next < b->queues[warp].slice_count && !m->failed) {
        follow_slice(m, b, warp);
        b->turns[warp] = turn_of(b, warp, waits);
        warp = earliest(b);
    }
    b->queued = 0;
    for (uint32_t i = 0; i < b->warps; i++)
        b->queued += compact(&b->queues[i]);
}

/* ---- the interface ---- */

bool model_interleave_block(block_state *b) {
    b->queued = 0;
    b->queued_last = UINT32_MAX;
    b->barriers_passed = 0;
    if (b->warps > b->queue_count) {
        warp_queue *more = realloc(b->queues, b->warps * sizeof *more);
        if (more == NULL)
            return false;
        b->queues = more;
        uint64_t *turns = realloc(b->turns, b->warps * sizeof *turns);
        if (turns == NULL)
            return false;
        b->turns = turns;
        memset(more + b->queue_count, 0, (b->warps - b->queue_count) * sizeof *more);
        b->queue_count = b->warps;
    }
    for (uint32_t i = 0; i < b->warps; i++) {
        b->queues[i].passed = 0;
        b->queues[i].is_begun = b->queues[i].at_barrier = false;
        b->queues[i].last = NULL;
        b->queues[i].live = b->warp[i].live;
        b->queues[i].arrived = 0;
    }
    return true;
}

static void limit_queues(model *m, block_state *b, uint32_t warp) {
    if (b->queued > QUEUES_BYTES && b->queued_last != warp)
        empty_queues(m, b, true);
    if (b->queued > QUEUES_MOST)
        empty_queues(m, b, false);
    b->queued_last = warp;
}

/* All warps have arrived where this one goes on. The first to go on lets them come as far; events
 * in the queues are of the time after that barrier when the others follow. */
static void pass_barrier(model *m, block_state *b, warp_queue *q) {
    if (++q->passed > b->barriers_passed) {
        b->barriers_passed = q->passed;
        empty_queues(m, b, false);
    }
    assert(m->failed || q->next == q->slice_count);
    q->at_barrier = q->is_begun = false;
    q->arrived = 0;
}

/* The warp has come to the end of a slice, or of a part of one. */
static void note_arrived(warp_queue *q) {
    q->arrived |= q->length.arrived;
    q->live &= ~q->length.gone;
    q->at_barrier = q->arrived != 0 && (q->live & ~q->arrived) == 0;
}

/* Follows the first slice of a warp at once; returns the event after. */
static size_t begin_warp(model *m, block_state *b, warp_queue *q, const vm_batch *batch,
                         size_t first) {
    vm_batch part = *batch;
    part.events += first;
    part.count -= first;
    model_plan *like = like_slice(m, b->warp[batch->warp].plan, &part, &q->length);
    if (like != NULL) {
        part.sectors += part.events[0].first_sector;
        part.events = like->events;
        part.count = like->count;
    } else {
        q->length = (slice_length){0};
        part.count = lengthen(m, batch, first, &q->length) - first;
    }
    model_follow_batch(m, b, &part, like);
    q->last = b->warp[batch->warp].plan;
    q->is_begun = true;
    return first + part.count;
}

void model_interleave_batch(model *m, block_state *b, const vm_batch *batch) {
    if (b->warps == 1 || !m->has_cached_loads) {
        model_follow_batch(m, b, batch, NULL);
        return;
    }
    warp_queue *q = &b->queues[batch->warp];
    limit_queues(m, b, batch->warp);
    for (size_t first = 0; first < batch->count && !m->failed;) {
        if (q->at_barrier)
            pass_barrier(m, b, q);
        first = !q->is_begun ? begin_warp(m, b, q, batch, first) : put_part(m, b, q, batch, first);
        note_arrived(q);
    }
}

void model_interleave_rest(model *m, block_state *b) {
    empty_queues(m, b, false);
}
