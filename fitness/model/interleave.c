/* Interleaves the warps of a block before they are followed, as an SM would run them side by side.
 *
 * The virtual machine runs one warp after another, each up to a barrier. If their loads went
 * through the L1 in that order, each warp would find its own lines still there, and a kernel would
 * lose its hits wherever a barrier stands. So the batches of a block wait in a queue for each warp.
 * The queues are emptied where all warps have arrived: at a barrier, and at the block's end. The
 * warp with the earliest clock goes first, and keeps its turn for a slice: a few loads that go
 * through the L1, up to the end of a basic block (so that the shortcuts of follow.c apply).
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

#define SLICE_LOADS 4   /* as many as a loop has that is unrolled by the usual four */
#define SLICE_EVENTS 96 /* after so many, a slice may end within a basic block */
#define QUEUES_BYTES ((size_t)8 << 20) /* of a block, before warps go on */
#define QUEUES_MOST ((size_t)96 << 20) /* of a block, before they go on whatever the order */

typedef struct slice {
    size_t event, sector; /* its first; its events count their sectors from there */
    uint32_t events;
} slice;

struct warp_queue {
    slice *slices;
    vm_event *events;
    uint64_t *sectors;
    size_t slice_room, event_room, sector_room;
    size_t slice_count, event_count, sector_count;
    size_t next;     /* the first slice that was not followed */
    uint32_t passed; /* barriers that the warp has left behind */
    bool is_begun;   /* the warp did its first slice since the last barrier */
    bool at_barrier; /* its last event is a barrier */
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
enum { MARK_LOAD = 1, MARK_BARRIER = 2, MARK_END = 4 };

bool model_interleave_begin(model *m) {
    m->marks = calloc((size_t)m->rows.count + 1, 1);
    for (uint32_t pc = 0; m->marks != NULL && pc < m->rows.count; pc++) {
        const model_row *row = &m->rows.rows[pc];
        bool is_load = row->kind == ROW_LOAD && !row->bypasses_l1;
        m->has_cached_loads |= is_load;
        m->marks[pc] =
            (uint8_t)((is_load ? MARK_LOAD : 0) | (row->kind == ROW_BARRIER ? MARK_BARRIER : 0) |
                      (m->schedule.next[pc] == pc + 1 ? MARK_END : 0));
    }
    return m->marks != NULL;
}

/* The end of the slice that begins with an event of the batch; *barrier: it ends with one. */
static size_t slice_end(const model *m, const vm_batch *batch, size_t first, bool *barrier) {
    unsigned loads = 0;
    for (size_t i = first; i < batch->count; i++) {
        unsigned mark = m->marks[batch->events[i].pc + batch->events[i].count - 1];
        loads += mark & MARK_LOAD;
        *barrier = (mark & MARK_BARRIER) != 0;
        if (*barrier ||
            (loads >= SLICE_LOADS && ((mark & MARK_END) != 0 || i - first >= SLICE_EVENTS)))
            return i + 1;
    }
    return batch->count;
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

/* Puts a slice behind those of the queue. */
static bool put_slice(block_state *b, warp_queue *q, const vm_batch *part) {
    const vm_event *from = part->events, *last = &from[part->count - 1];
    size_t count = part->count, sectors = last->first_sector + last->sectors - from->first_sector;
    if (!grow(q, count, sectors))
        return false;
    vm_event *to = q->events + q->event_count;
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].first_sector -= from->first_sector;
    }
    if (sectors > 0)
        memcpy(q->sectors + q->sector_count, part->sectors + from->first_sector,
               sectors * sizeof *q->sectors);
    q->slices[q->slice_count++] = (slice){q->event_count, q->sector_count, (uint32_t)count};
    q->event_count += count;
    q->sector_count += sectors;
    b->queued += count * sizeof *q->events + sectors * sizeof *q->sectors;
    return true;
}

/* ---- emptying ---- */

static void follow_slice(model *m, block_state *b, uint32_t warp) {
    warp_queue *q = &b->queues[warp];
    const slice *s = &q->slices[q->next++];
    vm_batch batch = {.block = b->block,
                      .warp = warp,
                      .events = q->events + s->event,
                      .count = s->events,
                      .sectors = q->sectors + s->sector};
    model_follow_batch(m, b, &batch);
}

/* The running warp with the earliest clock; UINT32_MAX: there is none. `waits`: a warp whose queue
 * is empty is chosen as well, unless it has ended or waits at a barrier. */
static uint32_t earliest(const block_state *b, bool waits) {
    uint32_t chosen = UINT32_MAX;
    uint64_t clock = UINT64_MAX;
    for (uint32_t i = 0; i < b->warps; i++) {
        const warp_queue *q = &b->queues[i];
        const warp_state *w = &b->warp[i];
        bool runs = q->next < q->slice_count || (waits && w->live != 0 && !w->at_barrier);
        if (!runs || w->at.clock >= clock)
            continue;
        chosen = i;
        clock = w->at.clock;
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
        const slice *s = &q->slices[q->next + i];
        q->slices[i] = (slice){s->event - first.event, s->sector - first.sector, s->events};
    }
    q->slice_count = left;
    q->next = 0;
    return q->event_count * sizeof *q->events + q->sector_count * sizeof *q->sectors;
}

/* `waits`: only as far as no warp that runs lacks events. */
static void empty_queues(model *m, block_state *b, bool waits) {
    uint32_t warp = b->queued > 0 ? earliest(b, waits) : UINT32_MAX;
    while (warp != UINT32_MAX && b->queues[warp].next < b->queues[warp].slice_count && !m->failed) {
        follow_slice(m, b, warp);
        warp = earliest(b, waits);
    }
    size_t left = 0;
    for (uint32_t i = 0; b->queued > 0 && i < b->warps; i++)
        left += compact(&b->queues[i]);
    b->queued = left;
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
        memset(more + b->queue_count, 0, (b->warps - b->queue_count) * sizeof *more);
        b->queues = more;
        b->queue_count = b->warps;
    }
    for (uint32_t i = 0; i < b->warps; i++) {
        b->queues[i].passed = 0;
        b->queues[i].is_begun = b->queues[i].at_barrier = false;
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
    q->at_barrier = q->is_begun = false;
}

void model_interleave_batch(model *m, block_state *b, const vm_batch *batch) {
    if (b->warps == 1 || !m->has_cached_loads) {
        model_follow_batch(m, b, batch);
        return;
    }
    warp_queue *q = &b->queues[batch->warp];
    limit_queues(m, b, batch->warp);
    for (size_t first = 0, end; first < batch->count && !m->failed; first = end) {
        if (q->at_barrier)
            pass_barrier(m, b, q);
        bool barrier = false;
        end = slice_end(m, batch, first, &barrier);
        vm_batch part = *batch;
        part.events += first;
        part.count = end - first;
        if (!q->is_begun)
            model_follow_batch(m, b, &part);
        else
            m->failed = m->failed || !put_slice(b, q, &part);
        q->is_begun = true;
        q->at_barrier = barrier;
    }
}

void model_interleave_rest(model *m, block_state *b) {
    empty_queues(m, b, false);
}
