/* Early: a cache of early IR as bitcode and of the places of structural edits. */
#include "tuner/worker/early.h"

#include "base/hash.h"
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that an entry is taken to have beside its bitcode. */
#define AN_ENTRY 24576

typedef struct entry {
    ev_sha256 key;
    char *bitcode; /* NULL: none yet */
    size_t bytes;
    uint32_t block[3];
    ir_places *places; /* NULL: none yet */
    uint64_t used;
    bool held; /* its places are borrowed */
} entry;

struct early {
    entry *entries;
    size_t count, capacity, bytes, room;
    uint64_t clock;
};

early *early_new(size_t room) {
    early *e = calloc(1, sizeof *e);
    if (e)
        e->room = room;
    return e;
}

static void entry_clear(entry *e) {
    free(e->bitcode);
    ir_places_free(e->places);
}

void early_free(early *e) {
    if (!e)
        return;
    for (size_t i = 0; i < e->count; i++)
        entry_clear(&e->entries[i]);
    free(e->entries);
    free(e);
}

/* The key of an optimised base, which is no part of its early IR. */
static ev_sha256 optimised_key(const ir_genome *genome) {
    ev_sha256 sha = ir_genome_base_sha256(genome);
    char text[sizeof sha.hex + 1];
    (void)snprintf(text, sizeof text, "%c%s", ir_genome_is_optimised(genome) ? '+' : '-', sha.hex);
    return ev_sha256_of(text, strlen(text));
}

/* The key of early IR: start, macros and the first edits of the prefix. False: out of memory. */
static bool key_of(const ir_genome *genome, size_t edits, ev_sha256 *out) {
    if (edits == IR_OPTIMISED) {
        *out = optimised_key(genome);
        return true;
    }
    ir_genome *part = ir_genome_part(genome, 0, edits);
    if (part)
        *out = ir_genome_base_sha256(part);
    ir_genome_free(part);
    return part != NULL;
}

static entry *find(early *e, const ev_sha256 *key) {
    for (size_t i = 0; i < e->count; i++) {
        if (ev_sha256_equal(&e->entries[i].key, key)) {
            e->entries[i].used = ++e->clock;
            return &e->entries[i];
        }
    }
    return NULL;
}

/* Drops the entry that was used least recently, other than `but` (NULL: none) and the one that is
 * held. False: there is no other. */
static bool drop_oldest(early *e, const ev_sha256 *but) {
    size_t oldest = e->count;
    for (size_t i = 0; i < e->count; i++) {
        const entry *at = &e->entries[i];
        bool stays = at->held || (but && ev_sha256_equal(&at->key, but));
        if (!stays && (oldest == e->count || at->used < e->entries[oldest].used))
            oldest = i;
    }
    if (oldest == e->count)
        return false;
    e->bytes -= e->entries[oldest].bytes + AN_ENTRY;
    entry_clear(&e->entries[oldest]);
    e->entries[oldest] = e->entries[--e->count];
    return true;
}

static bool grow(early *e) {
    if (e->count < e->capacity)
        return true;
    size_t capacity = e->capacity > 0 ? 2 * e->capacity : 64;
    entry *more = realloc(e->entries, capacity * sizeof *more);
    if (!more)
        return false;
    e->entries = more;
    e->capacity = capacity;
    return true;
}

/* The entry of a key, new if there is none, with room for so many bytes more. NULL: no memory. */
static entry *need(early *e, const ev_sha256 *key, size_t bytes) {
    size_t more = bytes + (find(e, key) ? 0 : AN_ENTRY);
    while (e->bytes + more > e->room && drop_oldest(e, key))
        ;
    entry *at = find(e, key);
    if (!at && !grow(e))
        return NULL;
    if (!at) {
        at = &e->entries[e->count++];
        *at = (entry){.key = *key, .used = ++e->clock};
    }
    e->bytes += more;
    return at;
}

bool early_find(void *of, const ir_genome *genome, size_t edits, ir_early *out) {
    ev_sha256 key;
    const entry *known = key_of(genome, edits, &key) ? find(of, &key) : NULL;
    if (!known || !known->bitcode)
        return false;
    *out = (ir_early){.bitcode = known->bitcode, .bytes = known->bytes};
    memcpy(out->block, known->block, sizeof out->block);
    return true;
}

ev_status early_keep(void *of, const ir_genome *genome, size_t edits, const ir_early *what,
                     ev_error *err) {
    ev_sha256 key;
    char *copy = malloc(what->bytes);
    entry *e = copy && key_of(genome, edits, &key) ? need(of, &key, what->bytes) : NULL;
    assert(!e || !e->bitcode);
    if (!copy || !e) {
        free(copy);
        return ev_fail_memory(err, what->bytes);
    }
    memcpy(copy, what->bitcode, what->bytes);
    e->bitcode = copy;
    e->bytes = what->bytes;
    memcpy(e->block, what->block, sizeof e->block);
    return EV_OK;
}

ir_places *early_places(early *e, const ir_genome *genome) {
    ev_sha256 key;
    entry *known = key_of(genome, ir_genome_prefix_count(genome), &key) ? need(e, &key, 0) : NULL;
    if (known && !known->places)
        known->places = ir_places_new();
    assert(e->entries != NULL || e->count == 0);
    for (size_t i = 0; i < e->count; i++)
        e->entries[i].held = known == &e->entries[i];
    return known ? known->places : NULL;
}
