/* Race detection, the slow part: the owner of each stamp, the events that order a warp after
 * others, and the entries a byte of words that are accessed in parts. exec/exec_race.h explains
 * the algorithm.
 *
 * A warp takes a new stamp with its first access after a synchronisation. `owners` maps stamps to
 * warps. When all stamps are used up, `start_over` forgets all entries, so everything before
 * counts as ordered: a race across that point is missed, and no false race is reported.
 *
 * Words that were accessed in parts are split: a direct-mapped table of VM_RACE_WORDS places holds
 * four entries for each. A collision evicts the older word (`evict`). The four entries are merged
 * into one if one entry can express them, and dropped otherwise, which again can only miss a race.
 */
#include "fitness/vm/vm_wave.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The table of an earlier launch, or a new one, whose pages come when touched. */
static bool take_words(vm_races *r, vm_memory *m) {
    r->words = m->words ? m->words : calloc(VM_RACE_WORDS, sizeof *r->words);
    r->taken = malloc(VM_RACE_WORDS * sizeof *r->taken);
    m->words = NULL;
    return r->words && r->taken;
}

/* Most launches take few of its places. */
static void leave_words(vm_races *r, vm_memory *m) {
    for (size_t i = 0; i < r->taken_count; i++)
        r->words[r->taken[i]] = (vm_race_word){0};
    free(r->taken);
    if (m->words) /* of another launch that ran meanwhile */
        free(r->words);
    else
        m->words = r->words;
}

/* Memories that are peers have the same newest stamp. */
bool vm_race_begin(vm_session *x) {
    bool wanted = false;
    if (vm_stream_take(x))
        return true;
    for (uint32_t r = 0; r < x->count; r++)
        wanted |= (x->ranks[r].launch->checks & VM_CHECK_RACES) != 0;
    x->races = (vm_races){.stamp = vm_memory_stamp(x->ranks[0].memory)};
    x->races.first_stamp = x->races.launch_stamp = x->races.stamp;
    return !wanted || take_words(&x->races, x->ranks[0].memory);
}

void vm_race_end(vm_session *x) {
    vm_memory_set_stamp(x->ranks[0].memory, x->races.stamp);
    if (vm_stream_leave(x))
        return;
    free(x->races.owners);
    leave_words(&x->races, x->ranks[0].memory);
}

static void forget_entries(uint32_t *writes, uint32_t *reads, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / 4; i++)
        if (writes[i] >> VM_RACE_SHIFT != VM_RACE_GAP)
            writes[i] &= VM_RACE_WRITTEN;
    if (reads)
        memset(reads, 0, bytes);
}

static void forget_warp(vm_warp *w) {
    w->stamp = w->acquired = w->sync_stamp = 0;
    w->loads_block = w->loads_all = w->loads_system = 0;
    w->first_since_barrier = 0;
}

static void forget_memory(vm_memory *m) {
    for (size_t i = 0; i < m->dirty_count; i++)
        forget_entries(m->writes + ((uint64_t)m->dirty_pages[i] << VM_PAGE_SHIFT) / 4, NULL,
                       1 << VM_PAGE_SHIFT);
    madvise(m->reads + m->first / 4, m->reserved, MADV_DONTNEED);
    madvise(m->promises + m->first / 4, m->reserved, MADV_DONTNEED);
}

static void forget_blocks(vm_state *s) {
    for (uint32_t i = 0; i < s->block_count; i++) {
        vm_block *b = &s->blocks[i];
        if (!b->warps)
            continue;
        forget_entries(b->shared_writes, b->shared_reads, s->shared_bytes);
        for (uint32_t k = 0; k < b->warp_count; k++)
            forget_warp(&b->warps[k]);
        vm_async_forget(b);
    }
}

/* All stamps are used up: forgets the past, and so counts all of it as ordered. */
static void start_over(vm_session *x) {
    vm_memory *m = x->ranks[0].memory;
    if (!m->peers)
        forget_memory(m);
    for (uint32_t i = 0; m->peers && i < m->peers->count; i++)
        if (m->peers->members[i])
            forget_memory(m->peers->members[i]);
    memset(x->races.words, 0, VM_RACE_WORDS * sizeof *x->races.words);
    x->races.taken_count = 0;
    for (uint32_t r = 0; r < x->count; r++)
        forget_blocks(&x->ranks[r]);
    vm_apart_forget(x);
    x->races.stamp = x->races.first_stamp = x->races.launch_stamp = 0;
}

void vm_race_stamp(vm_warp *w) {
    vm_state *s = w->state;
    vm_races *r = s->races;
    assert(w->check_races); /* else stamps that run out would meet no table of words */
    if (r->stamp >= VM_RACE_STAMPS && s->tracked) { /* one job will do it all again */
        s->order_matters = true;
        w->stamp = r->stamp;
        return;
    }
    if (r->stamp >= VM_RACE_STAMPS)
        start_over(s->session);
    size_t index = r->stamp - r->first_stamp;
    if (index >= r->owner_capacity) {
        size_t wanted = r->owner_capacity ? r->owner_capacity * 2 : 1024;
        uint64_t *bigger = realloc(r->owners, wanted * sizeof *bigger);
        if (!bigger) {
            s->out_of_memory = true;
            return;
        }
        r->owners = bigger;
        r->owner_capacity = wanted;
    }
    r->owners[index] = vm_race_self(w);
    w->stamp = ++r->stamp;
    if (!w->first_since_barrier)
        w->first_since_barrier = w->stamp;
}

void vm_race_acquire(vm_warp *w) {
    w->acquired = w->state->races->stamp;
    w->stamp = w->first_since_barrier = 0;
    vm_race_stamp(w);
}

void vm_race_block(vm_state *s, vm_block *b) {
    for (uint32_t k = 0; k < b->warp_count; k++)
        b->warps[k].sync_stamp = s->races->stamp;
}

void vm_race_warp(vm_warp *w) {
    w->stamp = w->first_since_barrier = 0;
    w->acquired = w->state->races->first_stamp;
    w->loads_block = w->loads_all = w->loads_system = w->acquired;
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
 * wait know, and what one of them has fenced, they all have. */
void vm_race_barrier(vm_block *b, unsigned id) {
    uint32_t acquired = 0, loads_block = 0, loads_all = 0, loads_system = 0;
    uint32_t stamp = b->warps[0].state->races->stamp;
    uint8_t fenced = 0;
    for (uint32_t k = 0; k < b->warp_count; k++) {
        const vm_warp *w = &b->warps[k];
        acquired = w->acquired > acquired ? w->acquired : acquired;
        loads_block = w->loads_block > loads_block ? w->loads_block : loads_block;
        loads_all = w->loads_all > loads_all ? w->loads_all : loads_all;
        loads_system = w->loads_system > loads_system ? w->loads_system : loads_system;
        fenced = w->fenced > fenced ? w->fenced : fenced;
    }
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_warp *w = &b->warps[k];
        w->stamp = 0;
        if (!waits_at(w, id))
            continue;
        w->first_since_barrier = 0;
        w->acquired = acquired;
        w->loads_block = loads_block;
        w->loads_all = loads_all;
        w->loads_system = loads_system;
        w->fenced = fenced;
        w->sync_stamp = stamp;
    }
}

/* ---- entries a byte */

/* The key of a word of shared memory has, from the top: its block's place, its rank, its number. */
#define RANK_SHIFT 20
_Static_assert(VM_RANKS_MOST <= 1u << (32 - RANK_SHIFT), "a rank has 12 bits of a key");

static vm_race_word *place_of(const vm_state *s, uint64_t key) {
    uint64_t rank = key & 1 ? (uint32_t)(key >> 1) >> RANK_SHIFT : 0;
    return &s->races->words[(key >> 1 ^ key >> 33 ^ rank * 641) & (VM_RACE_WORDS - 1)];
}

static uint64_t key_of(const vm_warp *w, uint8_t space, uint64_t word) {
    uint64_t place = (uint64_t)(w->block - w->state->blocks) + 1, rank = w->state->rank;
    return space == VM_SPACE_SHARED ? (place << 32 | rank << RANK_SHIFT | word) << 1 | 1
                                    : (word + 1) << 1;
}

const vm_race_word *vm_race_parts(const vm_state *s, uint64_t word) {
    uint64_t key = (word + 1) << 1;
    const vm_race_word *r = s->memory->writes[word] >= VM_RACE_IN_BYTES ? place_of(s, key) : NULL;
    return r && r->key == key ? r : NULL;
}

typedef struct word_entries {
    uint32_t *write, *read;
} word_entries;

static word_entries entries_of(const vm_state *s, uint64_t key) {
    uint64_t at = key >> 1;
    if (!(key & 1))
        return (word_entries){s->memory->writes + at - 1, s->memory->reads + at - 1};
    uint32_t word = (uint32_t)at & ((1u << RANK_SHIFT) - 1);
    s = &s->session->ranks[(uint32_t)at >> RANK_SHIFT];
    const vm_block *b = &s->blocks[(at >> 32) - 1];
    return (word_entries){b->shared_writes + word, b->shared_reads + word};
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

/* A place that was taken once stays so to the launch's end. */
static void note_taken(vm_races *r, const vm_race_word *word) {
    if (!word->key)
        r->taken[r->taken_count++] = (uint16_t)(word - r->words);
}

vm_race_word *vm_race_split(vm_warp *w, uint8_t space, uint64_t word) {
    uint64_t key = key_of(w, space, word);
    vm_race_word *r = place_of(w->state, key);
    word_entries e = entries_of(w->state, key);
    bool split = *e.write >= VM_RACE_IN_BYTES; /* perhaps by an earlier launch */
    if (split && r->key == key)
        return r;
    note_taken(w->state->races, r);
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
    uint32_t old =
        space == VM_SPACE_SHARED ? block_horizon(w->block) : w->state->races->first_stamp;
    for (unsigned b = 0; b < 4; b++)
        if (r->writes[b] >> VM_RACE_SHIFT > old || r->reads[b] >> VM_RACE_SHIFT > old)
            return false;
    word_entries e = entries_of(w->state, key_of(w, space, word));
    *e.write &= VM_RACE_WRITTEN;
    *e.read = 0;
    return true;
}
