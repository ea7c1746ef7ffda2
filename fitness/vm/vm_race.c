/* Races, the slow part: whose each stamp is, and when a block or warp becomes ordered after others.
 */
#include "fitness/vm/vm_exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_STAMPS (1u << 20) /* of the 21 bits an entry has */

bool vm_race_begin(vm_state *s) {
    s->stamp = s->first_stamp = s->memory->stamp;
    s->owners = NULL;
    s->owner_capacity = 0;
    return true;
}

void vm_race_end(vm_state *s) {
    s->memory->stamp = s->stamp;
    free(s->owners);
}

uint64_t vm_race_self(const vm_warp *w) {
    return (uint64_t)w->block->linear << 5 | w->index;
}

uint64_t vm_race_owner(const vm_state *s, uint32_t stamp) {
    return stamp > s->first_stamp ? s->owners[stamp - s->first_stamp - 1] : UINT64_MAX;
}

/* All stamps are used up: forgets the past, and so counts all of it as ordered. */
static void start_over(vm_state *s) {
    vm_memory *m = s->memory;
    madvise(m->races, m->reserved * 2, MADV_DONTNEED);
    for (uint32_t i = 0; i < s->block_count; i++) {
        vm_block *b = &s->blocks[i];
        if (!b->warps)
            continue;
        memset(b->shared_races, 0, s->shared_bytes * 2);
        for (uint32_t k = 0; k < b->warp_count; k++) {
            b->warps[k].stamp = 0;
            b->warps[k].acquired = 0;
            b->warps[k].sync_stamp = 0;
        }
    }
    s->stamp = s->first_stamp = 0;
}

void vm_race_stamp(vm_warp *w) {
    vm_state *s = w->state;
    if (s->stamp >= MAX_STAMPS)
        start_over(s);
    size_t index = s->stamp - s->first_stamp;
    if (index >= s->owner_capacity) {
        size_t wanted = s->owner_capacity ? s->owner_capacity * 2 : 1024;
        uint64_t *bigger = realloc(s->owners, wanted * sizeof *bigger);
        if (!bigger) {
            s->out_of_memory = true;
            return;
        }
        s->owners = bigger;
        s->owner_capacity = wanted;
    }
    s->owners[index] = vm_race_self(w);
    w->stamp = ++s->stamp;
}

void vm_race_acquire(vm_warp *w) {
    w->acquired = w->state->stamp;
    w->stamp = 0;
    vm_race_stamp(w);
}

void vm_race_block(vm_state *s, vm_block *b) {
    for (uint32_t k = 0; k < b->warp_count; k++)
        b->warps[k].sync_stamp = s->stamp;
}

void vm_race_warp(vm_warp *w) {
    w->stamp = 0;
    w->acquired = w->state->first_stamp;
    w->fenced = 0;
}

static bool waits_at(const vm_warp *w, unsigned id) {
    for (unsigned i = 0; i < w->set_count; i++)
        if (w->sets[i].state == VM_SET_BARRIER && w->sets[i].barrier == id)
            return true;
    return false;
}

/* A barrier orders those who wait at it after all that its block did before: who arrived without
 * waiting, and who stayed away, are ordered after nothing. What one of its threads knows, all that
 * wait know. */
void vm_race_barrier(vm_block *b, unsigned id) {
    uint32_t acquired = 0, stamp = b->warps[0].state->stamp;
    uint8_t fenced = 0;
    for (uint32_t k = 0; k < b->warp_count; k++) {
        const vm_warp *w = &b->warps[k];
        acquired = w->acquired > acquired ? w->acquired : acquired;
        fenced = w->fenced > fenced ? w->fenced : fenced;
    }
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_warp *w = &b->warps[k];
        w->stamp = 0;
        if (!waits_at(w, id))
            continue;
        w->acquired = acquired;
        w->fenced = fenced;
        w->sync_stamp = stamp;
    }
}
