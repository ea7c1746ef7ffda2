/* Cache: the lines that one block touched, and which of them are in its share of the L1; how often
 * each sector is updated by atomics. */
#ifndef FITNESS_MODEL_CACHE_H
#define FITNESS_MODEL_CACHE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_WAYS 4
#define CACHE_LINE_BYTES 128
#define CACHE_SECTORS 4 /* of a line */

/* Multiplicative hashing (Knuth, TAOCP 3, 6.4); the upper half is well mixed. */
static inline uint32_t model_line_hash(uint64_t line) {
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
/* How many of a line's sectors have their bit set: the count of each value in 4 bits. */
static inline unsigned model_sector_count(unsigned sectors) {
    return UINT64_C(0x4332322132212110) >> 4 * (sectors & 15) & 15;
}

typedef struct cache_line {
    uint64_t tag;    /* line number + the cache's round; of another round: empty */
    uint32_t way;    /* where its last use in the L1 is noted, if it was there */
    uint8_t there;   /* bit s: sector s is in the L1; 0: the line is not */
    uint8_t touched; /* low 4 bits loads, high 4 bits stores, by sector */
} cache_line;

#define CACHE_ROUND_SHIFT 58 /* line numbers have 57 bits */

/* Where the ways of a set stand among the words of all sets: CACHE_WAYS times of last uses, then as
 * many places of lines, of which 0 is none. */
enum { CACHE_SET_WORDS = 2 * CACHE_WAYS };

typedef struct model_cache {
    cache_line *lines;  /* [0] is none; from [1] on open addressing; the last is none */
    uint32_t line_mask; /* how many there are, a power of two, less one */
    uint32_t set_mask;  /* the same of the sets */
    uint32_t *sets;     /* of the L1 */
    uint64_t round;     /* counts the clears, from 1, above the bits of line numbers */
    uint32_t count;     /* of lines touched since */
    uint32_t most;      /* of them, before there are more places */
    uint32_t clock;     /* of uses, in all rounds */
    uint32_t began;     /* the clock at the last clear */
    bool failed;        /* memory ran out */
} model_cache;

ev_status model_cache_make(uint64_t l1_bytes, model_cache *out, ev_error *err) EV_CHECKED;
void model_cache_clear(model_cache *cache);
void model_cache_free(model_cache *cache);
/* The line of that number where its first place is another's; `hash`: of its number. */
cache_line *model_cache_seek(model_cache *cache, uint64_t line, uint32_t hash);
static inline bool model_cache_is_empty(const model_cache *cache, const cache_line *l) {
    return (l->tag ^ cache->round) >> CACHE_ROUND_SHIFT != 0;
}
/* The line of that number (address / 128), which stays where it is until the next. */
static inline cache_line *model_cache_line(model_cache *cache, uint64_t line, uint32_t hash) {
    size_t at = hash & cache->line_mask;
    cache_line *l = &cache->lines[1 + at];
    if (l->tag == line + cache->round)
        return l;
    if (!model_cache_is_empty(cache, l) || cache->count >= cache->most)
        return model_cache_seek(cache, line, hash);
    *l = (cache_line){.tag = line + cache->round};
    cache->count++;
    return l;
}
/* Puts a line into the L1, in the place of the one of its set that was used longest ago: one of an
 * earlier round, where there is any, whose place may now be another line's, and which is not
 * written to. The set is hashed, as the hardware does, so that power-of-two strides spread. */
static inline void model_cache_place(model_cache *cache, cache_line *l, uint32_t hash) {
    uint32_t way = (hash & cache->set_mask) * CACHE_SET_WORDS;
    const uint32_t *used = cache->sets + way;
    /* without branches: which one it is cannot be foreseen */
    unsigned low = used[1] < used[0], high = 2 + (used[3] < used[2]);
    unsigned oldest = used[high] < used[low] ? high : low;
    way += oldest;
    uint32_t *place = &cache->sets[way + CACHE_WAYS];
    cache->lines[used[oldest] > cache->began ? *place : 0].there = 0;
    *place = (uint32_t)(l - cache->lines);
    l->way = way;
}
/* Reads sectors of a line through the L1, a bit each: those that it did not have. */
static inline unsigned model_cache_read(model_cache *cache, cache_line *l, uint32_t hash,
                                        unsigned sectors) {
    if (l->there == 0)
        model_cache_place(cache, l, hash);
    unsigned missing = sectors & ~(unsigned)l->there;
    l->there |= (uint8_t)sectors;
    cache->sets[l->way] = ++cache->clock;
    return missing;
}
/* Whether the L1 has the sector, whose line is where it is looked for first or right after, and so
 * reads it; false: nothing was done. *clock: the cache's, which the caller holds meanwhile. */
static inline bool model_cache_hit_sector(const model_cache *cache, uint32_t *clock,
                                          uint64_t sector) {
    uint64_t line = sector / CACHE_SECTORS;
    size_t at = model_line_hash(line) & cache->line_mask;
    const cache_line *l = &cache->lines[1 + at];
    l += l->tag != line + cache->round; /* no branch: nobody foresees it */
    if (l->tag != line + cache->round || (l->there >> (sector % CACHE_SECTORS) & 1) == 0)
        return false;
    cache->sets[l->way] = ++*clock;
    return true;
}
/* The same of sectors of a line, a bit each. */
static inline bool model_cache_hit(const model_cache *cache, uint32_t *clock, uint64_t line,
                                   unsigned sectors) {
    size_t at = model_line_hash(line) & cache->line_mask;
    const cache_line *l = &cache->lines[1 + at];
    if (l->tag != line + cache->round || (sectors & ~(unsigned)l->there) != 0)
        return false;
    cache->sets[l->way] = ++*clock;
    return true;
}
/* Marks sectors of a line; those marked for the first time. */
static inline unsigned model_cache_touch(cache_line *l, unsigned sectors, bool is_store) {
    unsigned marks = is_store ? sectors << CACHE_SECTORS : sectors;
    unsigned first = marks & ~(unsigned)l->touched;
    l->touched |= (uint8_t)marks;
    return is_store ? first >> CACHE_SECTORS : first;
}

/* ---- how often each sector is updated by atomics ---- */

typedef struct model_hot {
    uint64_t *sectors; /* + 1; 0: empty */
    double *counts;
    uint32_t used;
    double most;
} model_hot;

ev_status model_hot_make(model_hot *out, ev_error *err) EV_CHECKED;
void model_hot_free(model_hot *hot);
/* Past some thousand sectors new ones are not counted: they are not where all meet. */
void model_hot_add(model_hot *hot, uint64_t sector, double count);

#endif
