/* Races, the slow part: whose each stamp is, when a block or warp becomes ordered after others, and
 * the entries a byte of words that are accessed in parts. */
#include "fitness/vm/vm_exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool vm_race_begin(vm_state *s) {
    s->stamp = s->first_stamp = s->memory->stamp;
    s->owners = NULL;
    s->owner_capacity = 0;
    if (!(s->launch->checks & VM_CHECK_RACES))
        return true;
    s->race_words = calloc(VM_RACE_WORDS, sizeof *s->race_words); /* pages come when touched */
    return s->race_words != NULL;
}

void vm_race_end(vm_state *s) {
    s->memory->stamp = s->stamp;
    free(s->owners);
    free(s->race_words);
}

uint64_t vm_race_self(const vm_warp *w) {
    return (uint64_t)w->block->linear << 5 | w->index;
}

uint64_t vm_race_owner(const vm_state *s, uint32_t stamp) {
    return stamp > s->first_stamp ? s->owners[stamp - s->first_stamp - 1] : UINT64_MAX;
}

static void forget_entries(uint32_t *writes, uint32_t *reads, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / 4; i++)
        writes[i] &= VM_RACE_WRITTEN;
    if (reads)
        memset(reads, 0, bytes);
}

static void forget_warp(vm_warp *w) {
    w->stamp = w->acquired = w->sync_stamp = 0;
    w->first_since_barrier = w->first_since_message = 0;
}

/* All stamps are used up: forgets the past, and so counts all of it as ordered. */
static void start_over(vm_state *s) {
    vm_memory *m = s->memory;
    for (size_t i = 0; i < m->dirty_count; i++)
        forget_entries(m->writes + ((uint64_t)m->dirty_pages[i] << VM_PAGE_SHIFT) / 4, NULL,
                       1 << VM_PAGE_SHIFT);
    madvise(m->reads, m->reserved, MADV_DONTNEED);
    memset(s->race_words, 0, VM_RACE_WORDS * sizeof *s->race_words);
    for (uint32_t i = 0; i < s->block_count; i++) {
        vm_block *b = &s->blocks[i];
        if (!b->warps)
            continue;
        forget_entries(b->shared_writes, b->shared_reads, s->shared_bytes);
        for (uint32_t k = 0; k < b->warp_count; k++)
            forget_warp(&b->warps[k]);
        vm_async_forget(b);
    }
    s->stamp = s->first_stamp = 0;
}

void vm_race_stamp(vm_warp *w) {
    vm_state *s = w->state;
    if (s->stamp >= VM_RACE_STAMPS && s->tracked) { /* one job will do it all again */
        s->order_matters = true;
        w->stamp = s->stamp;
        return;
    }
    if (s->stamp >= VM_RACE_STAMPS)
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
    if (!w->first_since_barrier)
        w->first_since_barrier = w->stamp;
    if (!w->first_since_message)
        w->first_since_message = w->stamp;
}

void vm_race_acquire(vm_warp *w) {
    w->acquired = w->state->stamp;
    w->stamp = w->first_since_barrier = w->first_since_message = 0;
    vm_race_stamp(w);
}

void vm_race_block(vm_state *s, vm_block *b) {
    for (uint32_t k = 0; k < b->warp_count; k++)
        b->warps[k].sync_stamp = s->stamp;
}

void vm_race_warp(vm_warp *w) {
    w->stamp = w->first_since_barrier = w->first_since_message = 0;
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
        if (w->acquired != acquired)
            w->first_since_message = 0;
        w->first_since_barrier = 0;
        w->acquired = acquired;
        w->fenced = fenced;
        w->sync_stamp = stamp;
    }
}

/* ---- entries a byte */

static vm_race_word *place_of(const vm_state *s, uint64_t key) {
    return &s->race_words[(key >> 1 ^ key >> 33) & (VM_RACE_WORDS - 1)];
}

static uint64_t key_of(const vm_warp *w, uint8_t space, uint64_t word) {
    uint64_t place = (uint64_t)(w->block - w->state->blocks) + 1;
    return space == VM_SPACE_SHARED ? (place << 32 | word) << 1 | 1 : (word + 1) << 1;
}

typedef struct word_entries {
    uint32_t *write, *read;
} word_entries;

static word_entries entries_of(const vm_state *s, uint64_t key) {
    uint64_t at = key >> 1;
    if (!(key & 1))
        return (word_entries){s->memory->writes + at - 1, s->memory->reads + at - 1};
    const vm_block *b = &s->blocks[(at >> 32) - 1];
    return (word_entries){b->shared_writes + (uint32_t)at, b->shared_reads + (uint32_t)at};
}

/* What differs between the entries of four bytes, and what any of them has. */
static void compare(const uint32_t *bytes, uint32_t *differs, uint32_t *any) {
    *differs = *any = 0;
    for (unsigned b = 0; b < 4; b++) {
        *differs |= bytes[b] ^ bytes[0];
        *any |= bytes[b];
    }
}

/* One entry for what four say alike; where weak accesses differ in their lanes only, it says so;
 * else it says nothing. */
static uint32_t joined_writes(const uint32_t *bytes) {
    uint32_t differs, any;
    compare(bytes, &differs, &any);
    for (unsigned b = 0; b < 4 && differs; b++)
        if ((bytes[b] & VM_RACE_HOW) > VM_RACE_WEAK_SOME << VM_RACE_HOW_SHIFT)
            return 0;
    if (differs & ~(uint32_t)(VM_RACE_LANE | VM_RACE_HOW))
        return 0;
    return differs ? (bytes[0] & VM_RACE_IN_BYTES) | VM_RACE_WEAK_SOME << VM_RACE_HOW_SHIFT : any;
}

static uint32_t joined_reads(const uint32_t *bytes) {
    uint32_t differs, any;
    compare(bytes, &differs, &any);
    if (differs & ~(uint32_t)(VM_RACE_LANE | VM_RACE_MANY | VM_RACE_SOME_READ))
        return 0;
    if (differs && any & VM_RACE_STRONG)
        return 0;
    return differs ? (any & ~(uint32_t)(VM_RACE_LANE | VM_RACE_MANY)) | VM_RACE_SOME_READ : any;
}

static void evict(const vm_state *s, vm_race_word *r) {
    if (!r->key)
        return;
    word_entries e = entries_of(s, r->key);
    if (*e.write >= VM_RACE_IN_BYTES) {
        *e.write = (*e.write & VM_RACE_WRITTEN) | joined_writes(r->writes);
        *e.read = joined_reads(r->reads);
    }
    *r = (vm_race_word){0};
}

vm_race_word *vm_race_split(vm_warp *w, uint8_t space, uint64_t word) {
    uint64_t key = key_of(w, space, word);
    vm_race_word *r = place_of(w->state, key);
    word_entries e = entries_of(w->state, key);
    bool split = *e.write >= VM_RACE_IN_BYTES; /* perhaps by an earlier launch */
    if (split && r->key == key)
        return r;
    evict(w->state, r);
    r->key = key;
    for (unsigned b = 0; b < 4 && !split; b++) {
        r->writes[b] = *e.write & ~(uint32_t)VM_RACE_WRITTEN;
        r->reads[b] = *e.read;
    }
    *e.write |= VM_RACE_IN_BYTES;
    return r;
}

/* Stamps of the block up to this one are ordered before all its warps. */
static uint32_t block_horizon(const vm_block *b) {
    uint32_t least = UINT32_MAX;
    for (uint32_t k = 0; k < b->warp_count; k++)
        if (b->warps[k].live && b->warps[k].sync_stamp < least)
            least = b->warps[k].sync_stamp;
    return least;
}

bool vm_race_join(vm_warp *w, uint8_t space, uint64_t word) {
    const vm_race_word *r = vm_race_split(w, space, word);
    uint32_t old = space == VM_SPACE_SHARED ? block_horizon(w->block) : w->state->first_stamp;
    for (unsigned b = 0; b < 4; b++)
        if (r->writes[b] >> VM_RACE_SHIFT > old || r->reads[b] >> VM_RACE_SHIFT > old)
            return false;
    word_entries e = entries_of(w->state, key_of(w, space, word));
    *e.write &= VM_RACE_WRITTEN;
    *e.read = 0;
    return true;
}
