/* Copies under way and mbarriers of a block: their lists, and what happens when they end.
 *
 * A copy's bytes reach shared memory only when it is waited for; until then its words are marked in
 * the race shadow, so that any access to them traps. Copies that an mbarrier tells the end of are
 * made when the thread says so, but stay marked until the mbarrier's phase ends. */
#include "fitness/vm/vm_exec.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more element. */
static bool grow(vm_state *s, void **list, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *bigger = realloc(*list, wanted * size);
    if (!bigger) {
        s->out_of_memory = true;
        return false;
    }
    *list = bigger;
    *capacity = wanted;
    return true;
}

bool vm_copy_add(vm_warp *w, vm_copy copy) {
    if (!w->async)
        w->async = calloc(1, sizeof *w->async);
    vm_async *a = w->async;
    if (!a) {
        w->state->out_of_memory = true;
        return false;
    }
    if (!grow(w->state, (void **)&a->copies, &a->capacity, a->count, sizeof *a->copies))
        return false;
    copy.group = a->committed[copy.lane];
    a->copies[a->count++] = copy;
    return true;
}

void vm_copies_commit(vm_warp *w, uint32_t lanes) {
    for (uint32_t left = w->async ? lanes : 0; left; left &= left - 1)
        w->async->committed[__builtin_ctz(left)]++;
}

static void mark(const vm_warp *w, const vm_copy *c, uint32_t entry) {
    for (unsigned k = 0; w->check_races && k < c->bytes / 4u; k++)
        w->block->shared_writes[c->to / 4 + k] = entry | VM_RACE_WRITTEN;
}

static void move_bytes(const vm_warp *w, const vm_copy *c) {
    memcpy(w->shared + c->to, c->from, c->read);
    memset(w->shared + c->to + c->read, 0, (size_t)(c->bytes - c->read));
}

void vm_copies_wait(vm_warp *w, uint32_t lanes, uint32_t but, uint32_t entry) {
    vm_async *a = w->async;
    size_t kept = 0;
    for (size_t i = 0; a && i < a->count; i++) {
        const vm_copy *c = &a->copies[i];
        bool over = but == UINT32_MAX || (uint64_t)c->group + but < a->committed[c->lane];
        if (!over || !(lanes >> c->lane & 1)) {
            a->copies[kept++] = *c;
            continue;
        }
        if (!c->mbarrier)
            move_bytes(w, c);
        mark(w, c, entry | (uint32_t)c->lane << VM_RACE_LANE_SHIFT);
        vm_promise_copied(w, c, entry | (uint32_t)c->lane << VM_RACE_LANE_SHIFT);
    }
    if (a)
        a->count = kept;
}

void vm_copies_bind(vm_warp *w, unsigned lane, uint32_t mbarrier, uint32_t entry) {
    vm_async *a = w->async;
    for (size_t i = 0; a && i < a->count; i++) {
        vm_copy *c = &a->copies[i];
        if (c->lane != lane || c->mbarrier)
            continue;
        move_bytes(w, c);
        c->mbarrier = mbarrier + 1;
        c->entry = entry | lane << VM_RACE_LANE_SHIFT;
    }
}

void vm_copies_release(vm_block *b, uint32_t mbarrier) {
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_async *a = b->warps[k].async;
        size_t kept = 0;
        for (size_t i = 0; a && i < a->count; i++) {
            if (a->copies[i].mbarrier == mbarrier + 1)
                mark(&b->warps[k], &a->copies[i], a->copies[i].entry);
            else
                a->copies[kept++] = a->copies[i];
        }
        if (a)
            a->count = kept;
    }
}

vm_mbarrier *vm_mbarrier_find(const vm_block *b, uint32_t offset) {
    for (size_t i = 0; i < b->mbarrier_count; i++)
        if (b->mbarriers[i].offset == offset)
            return &b->mbarriers[i];
    return NULL;
}

vm_mbarrier *vm_mbarrier_add(vm_block *b, uint32_t offset) {
    if (!grow(b->warps[0].state, (void **)&b->mbarriers, &b->mbarrier_capacity, b->mbarrier_count,
              sizeof *b->mbarriers))
        return NULL;
    vm_mbarrier *m = &b->mbarriers[b->mbarrier_count++];
    *m = (vm_mbarrier){.offset = offset};
    return m;
}

void vm_mbarrier_remove(vm_block *b, vm_mbarrier *m) {
    *m = b->mbarriers[--b->mbarrier_count];
}

void vm_async_reset(vm_block *b) {
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_async *a = b->warps[k].async;
        if (!a)
            continue;
        a->count = 0;
        memset(a->committed, 0, sizeof a->committed);
    }
    b->mbarrier_count = 0;
}

void vm_async_forget(vm_block *b) {
    for (size_t i = 0; i < b->mbarrier_count; i++)
        b->mbarriers[i].made = b->mbarriers[i].stamp = 0;
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_async *a = b->warps[k].async;
        for (size_t i = 0; a && i < a->count; i++)
            a->copies[i].entry = 0;
    }
}

void vm_async_free(vm_block *b) {
    for (uint32_t k = 0; b->warps && k < b->warp_count; k++) {
        if (b->warps[k].async)
            free(b->warps[k].async->copies);
        free(b->warps[k].async);
    }
    free(b->mbarriers);
}
