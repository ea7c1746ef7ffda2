/* Blocks and their warps from start to end, and what they tell the observer. */
#include "fitness/vm/vm_wave.h"

#include <stdlib.h>
#include <string.h>

/* ---- the observer's batches */

void vm_batch_flush(vm_warp *w) {
    vm_state *s = w->state;
    if (!s->event_count)
        return;
    vm_batch batch = {.block = w->block->linear,
                      .warp = w->index,
                      .events = s->events,
                      .count = s->event_count,
                      .sectors = s->sectors};
    s->launch->observer->batch(s->launch->observer->context, &batch);
    s->event_count = s->sector_count = 0;
}

void vm_event_push(vm_warp *w, uint32_t pc, uint32_t active) {
    if (w->state->poll) { /* nobody listens */
        w->event_pc = pc + 1;
        return;
    }
    vm_event_room(w);
    (void)vm_event_put(w, pc, active, 0, 0);
}

/* ---- blocks */

static void mark_gaps(const vm_state *s, vm_block *b) {
    for (size_t i = 0; i < s->gap_count && s->launch->checks & VM_CHECK_RACES; i++)
        b->shared_writes[s->gaps[i]] = (uint32_t)VM_RACE_GAP << VM_RACE_SHIFT | VM_RACE_WRITTEN;
}

/* What the system left there is a value, whichever. */
static void mark_reserved(const vm_state *s, vm_block *b) {
    uint32_t first = s->module->reserved_shared / 4;
    for (uint32_t i = 0; i < PTX_RESERVED_BYTES / 4 && first; i++)
        b->shared_writes[first + i] = VM_RACE_WRITTEN;
}

static void place_block(vm_state *s, vm_block *b, uint32_t linear) {
    const uint32_t *g = s->launch->grid;
    b->linear = linear;
    b->id[0] = linear % g[0];
    b->id[1] = linear / g[0] % g[1];
    b->id[2] = linear / g[0] / g[1];
    b->live_threads = s->threads;
    b->instructions = 0;
    b->stored = 0;
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->shared, 0, s->shared_bytes);
    memset(b->shared_writes, 0, s->shared_bytes);
    mark_gaps(s, b);
    mark_reserved(s, b);
    vm_async_reset(b);
    vm_race_block(s, b);
    b->active = true;
    s->happenings++;
}

static bool start_warp(vm_state *s, vm_block *b, uint32_t index) {
    vm_warp *w = &b->warps[index];
    uint32_t left = s->threads - index * VM_LANES;
    w->live = left >= VM_LANES ? VM_FULL : (1u << left) - 1;
    w->cc = w->cc_undefined = 0;
    w->set_count = 0;
    w->ticks = 0;
    w->polls = 0;
    w->yielded = UINT64_MAX;
    vm_race_warp(w);
    uint64_t local = s->entry->local_bytes;
    if (w->local_used) { /* no block sees what another left */
        memset(w->local, 0, w->local_capacity * VM_LANES);
        memset(w->local_written, 0, w->local_capacity / 8 * VM_LANES);
    }
    if (!vm_local_grow(w, local ? local : 64))
        return false;
    w->local_used = local;
    vm_frame *frame = vm_frame_take(w, (uint32_t)(s->entry - s->module->funcs));
    if (!frame)
        return false;
    frame->lanes = w->live;
    vm_set_push(w, w->live, s->entry->pub.first_pc, frame);
    return true;
}

bool vm_block_start(vm_state *s, vm_block *b, uint32_t linear) {
    place_block(s, b, linear);
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (!start_warp(s, b, i))
            return false;
    const vm_observer *o = s->launch->observer;
    if (o && o->block_begin)
        o->block_begin(o->context, linear, b->warp_count);
    return true;
}

void vm_block_end(vm_state *s, vm_block *b) {
    vm_trap_settle(s, b);
    const vm_observer *o = s->launch->observer;
    if (o && o->block_end)
        o->block_end(o->context, b->linear);
    if (s->launch->paths)
        s->launch->paths[b->place] = b->instructions + VM_PATH_SECTOR * b->stored;
    b->active = false;
    s->happenings++;
    s->result->counters.blocks++;
}

void vm_block_free(vm_block *b) {
    vm_async_free(b);
    for (uint32_t i = 0; b->warps && i < b->warp_count; i++) {
        free(b->warps[i].local);
        free(b->warps[i].local_written);
        free(b->warps[i].local_undefined);
        free(b->warps[i].levels);
    }
    free(b->warps);
}

bool vm_block_make(vm_state *s, vm_block *b) {
    uint64_t bytes = s->shared_bytes;
    b->warp_count = (s->threads + VM_LANES - 1) / VM_LANES;
    size_t warp_bytes = (b->warp_count * sizeof *b->warps + 63) & ~(size_t)63;
    b->warps = aligned_alloc(64, warp_bytes);
    if (!b->warps)
        return false;
    memset(b->warps, 0, warp_bytes);
    vm_spare *spare = &s->spare;
    b->shared = vm_spare_take(spare, bytes);
    b->shared_writes = vm_spare_take(spare, bytes);
    b->shared_reads = vm_spare_take(spare, bytes);
    if (!b->shared || !b->shared_writes || !b->shared_reads)
        return false;
    memset(b->shared_reads, 0, bytes);
    for (uint32_t i = 0; i < b->warp_count; i++) {
        vm_warp *w = &b->warps[i];
        w->state = s;
        w->block = b;
        w->index = i;
        w->code = s->undefined_code ? s->undefined_code : s->module->code;
        w->arena = s->memory->arena;
        w->segments = s->segments;
        w->shared = b->shared;
        w->shared_bytes = s->shared_used;
        w->observed = s->launch->observer != NULL;
        w->tracked = s->tracked || s->ranked;
        w->ranked = s->ranked;
        w->check_init = s->launch->checks & VM_CHECK_INIT;
        w->check_races = s->launch->checks & VM_CHECK_RACES;
        w->check_fences = w->check_races && s->launch->checks & VM_CHECK_FENCES;
        w->check_lanes = w->check_races && s->launch->checks & VM_CHECK_LANES;
        w->takes_plain = w->check_races && !(s->launch->checks & VM_CHECK_PLAIN);
        w->takes_same = w->check_races && !(s->launch->checks & VM_CHECK_SAME);
        w->check_begin = w->check_races && s->heard && s->launch->checks & VM_CHECK_BEGIN;
        w->check_end = w->check_races && s->heard && s->launch->checks & VM_CHECK_END;
        w->approx = s->launch->approx;
    }
    return true;
}
