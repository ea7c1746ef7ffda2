/* Cache: the lines that one block touched, and those of its sectors that are in the block's share
 * of the L1: sectored, with few sets of many ways. Below: counts of atomics by sector. A line has
 * 128 bytes and four sectors; line and sector numbers are address / 128 and address / 32. Sets of
 * sectors are masks of four bits. */
#ifndef FITNESS_MODEL_ACCESS_CACHE_H
#define FITNESS_MODEL_ACCESS_CACHE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_GROUP 4 /* ways of which the least recently used one is replaced */
#define CACHE_LINE_BYTES 128
#define CACHE_SECTORS 4 /* sectors of a line */

/* Multiplicative hashing (Knuth, TAOCP 3, 6.4); the upper half is well mixed. */
static inline uint32_t model_line_hash(uint64_t line) {
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
/* Counts the bits of a mask of sectors; the constant holds the count of each mask in 4 bits. */
static inline unsigned model_sector_count(unsigned sectors) {
    return UINT64_C(0x4332322132212110) >> 4 * (sectors & 15) & 15;
}

typedef struct cache_line {
    uint64_t tag;    /* line number + the cache's round; with another round the entry is empty */
    uint32_t way;    /* index in `sets` of the line's last use; valid if `there` is not 0 */
    uint8_t there;   /* bit s: sector s is in the L1; 0: no sector is */
    uint8_t touched; /* sectors touched by loads (low 4 bits) and stores (high 4 bits) */
    uint8_t from;    /* the level that the last miss went to, as the model counts them */
    uint32_t waited; /* bit w: warp w missed last, or has waited for the sectors of that miss */
    uint64_t ready;  /* the clock at which the sectors of the last miss arrive */
    uint32_t asked;  /* the caller's: sectors that the block had asked the L2 for, the last time */
} cache_line;

#define CACHE_ROUND_SHIFT 58 /* line numbers have 57 bits */

/* Layout of a set in `sets`: `ways` times of last use, then `ways` indices of lines; index 0 means
 * an empty way. */
typedef struct model_cache {
    cache_line *lines;  /* hash table with open addressing from [1] on; [0] and the last entry
                           hold no line */
    uint32_t line_mask; /* number of places for lines, a power of two, less one */
    uint32_t set_mask;  /* number of sets, a power of two, less one */
    uint32_t ways;      /* of a set, a multiple of CACHE_GROUP */
    uint32_t *sets;     /* the sets of the L1, 2 * ways words each */
    uint32_t *turn;     /* by set: the first way of the group that is replaced next */
    uint64_t round;     /* number of clears from 1, shifted by CACHE_ROUND_SHIFT */
    uint32_t count;     /* lines touched since the last clear */
    uint32_t most;      /* count at which the table grows */
    uint32_t clock;     /* counts uses, through all rounds */
    uint32_t began;     /* the clock at the last clear */
    uint64_t now;       /* cycles of the SM: when the warp that reads has come so far */
    uint8_t warp;       /* the warp that reads, of 32 at most */
    bool failed;        /* memory ran out; the model reports it at the end of the launch */
} model_cache;

ev_status model_cache_make(uint64_t l1_bytes, model_cache *out, ev_error *err) EV_CHECKED;
void model_cache_clear(model_cache *cache);
void model_cache_free(model_cache *cache);
/* The slow path of model_cache_line: the first place of the line holds another line. `hash`:
 * model_line_hash(line). */
cache_line *model_cache_seek(model_cache *cache, uint64_t line, uint32_t hash);
static inline bool model_cache_is_empty(const model_cache *cache, const cache_line *l) {
    return (l->tag ^ cache->round) >> CACHE_ROUND_SHIFT != 0;
}
/* Finds or adds the line with this number (address / 128). The pointer is valid until the next
 * call. */
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
/* The set of a line by its home: neighbours lie in different sets, and the higher bits are folded
 * in, as in the hardware, so that strides of powers of two spread over the sets. */
static inline uint32_t model_cache_set(const model_cache *cache, uint64_t home) {
    return (uint32_t)(home ^ home >> 5 ^ home >> 10 ^ home >> 15) & cache->set_mask;
}
/* Puts a line into the L1 before its first read (there == 0). `home`: a number of the line that
 * does not depend on where the device placed the buffers (model_buffers_line). The line comes in
 * place of the least recently used line of the next group of its set. The groups take turns, so all
 * ways of a set fill before a line is replaced. If that way was last used in an earlier round, its
 * index may belong to another line by now, and that line is left as it is. */
static inline void model_cache_place(model_cache *cache, cache_line *l, uint64_t home) {
    uint32_t set = model_cache_set(cache, home), group = cache->turn[set];
    uint32_t way = set * 2 * cache->ways + group;
    cache->turn[set] = group + CACHE_GROUP < cache->ways ? group + CACHE_GROUP : 0;
    const uint32_t *used = cache->sets + way;
    /* no branches: the oldest way cannot be predicted */
    unsigned low = used[1] < used[0], high = 2 + (used[3] < used[2]);
    unsigned oldest = used[high] < used[low] ? high : low;
    way += oldest;
    uint32_t *place = &cache->sets[way + cache->ways];
    cache->lines[used[oldest] > cache->began ? *place : 0].there = 0;
    *place = (uint32_t)(l - cache->lines);
    l->way = way;
}
/* Reads a mask of sectors of a line through the L1, where it has a place. Returns the sectors that
 * missed. */
static inline unsigned model_cache_read(model_cache *cache, cache_line *l, unsigned sectors) {
    unsigned missing = sectors & ~(unsigned)l->there;
    l->there |= (uint8_t)sectors;
    cache->sets[l->way] = ++cache->clock;
    return missing;
}
/* True: another warp's miss has asked for sectors of the line, and they have not arrived. A read
 * then waits for them, whether or not it counts as a hit. `now` stands still in straight-line code,
 * where the warp's next read of the line does not wait for them again: this is the only true one.
 */
static inline bool model_cache_is_coming(const model_cache *cache, cache_line *l) {
    bool is_coming = l->ready > cache->now && (l->waited >> cache->warp & 1) == 0;
    l->waited |= (uint32_t)is_coming << cache->warp;
    return is_coming;
}
/* Notes a miss of the warp that reads: its sectors come from the level `from` after `latency`
 * cycles. */
static inline void model_cache_miss(const model_cache *cache, cache_line *l, unsigned from,
                                    uint64_t latency) {
    l->ready = cache->now + latency;
    l->waited = UINT32_C(1) << cache->warp;
    l->from = (uint8_t)from;
}
#define CACHE_MISSES UINT32_MAX

/* How far away sectors that the L1 holds are: as far as the line's last miss went, if another warp
 * has asked for them and they have not arrived; else 0, the L1. */
static inline unsigned model_cache_level(const model_cache *cache, cache_line *l) {
    return model_cache_is_coming(cache, l) ? l->from : 0;
}
/* The fast path of a load of one sector. CACHE_MISSES: nothing was changed; the sector missed, or
 * its line stands further than one place from its first. Else the L1 holds the sector, the read is
 * done, and the result is as model_cache_level's. *clock: the cache's clock, which the caller keeps
 * in a register meanwhile. */
static inline unsigned model_cache_hit_sector(const model_cache *cache, uint32_t *clock,
                                              uint64_t sector) {
    uint64_t line = sector / CACHE_SECTORS;
    size_t at = model_line_hash(line) & cache->line_mask;
    cache_line *l = &cache->lines[1 + at];
    l += l->tag != line + cache->round; /* no branch: the outcome cannot be predicted */
    if (l->tag != line + cache->round || (l->there >> (sector % CACHE_SECTORS) & 1) == 0)
        return CACHE_MISSES;
    cache->sets[l->way] = ++*clock;
    return model_cache_level(cache, l);
}
/* As model_cache_hit_sector, for a mask of sectors of one line, at the line's first place only. */
static inline unsigned model_cache_hit(const model_cache *cache, uint32_t *clock, uint64_t line,
                                       unsigned sectors) {
    size_t at = model_line_hash(line) & cache->line_mask;
    cache_line *l = &cache->lines[1 + at];
    if (l->tag != line + cache->round || (sectors & ~(unsigned)l->there) != 0)
        return CACHE_MISSES;
    cache->sets[l->way] = ++*clock;
    return model_cache_level(cache, l);
}
/* Marks sectors of a line as touched. Returns the sectors that were not marked before. */
static inline unsigned model_cache_touch(cache_line *l, unsigned sectors, bool is_store) {
    unsigned marks = is_store ? sectors << CACHE_SECTORS : sectors;
    unsigned first = marks & ~(unsigned)l->touched;
    l->touched |= (uint8_t)marks;
    return is_store ? first >> CACHE_SECTORS : first;
}

/* ---- counts of atomics by sector ---- */

typedef struct model_hot {
    uint64_t *sectors; /* sector + 1; 0: empty */
    double *counts;
    uint32_t used;
    double most;
} model_hot;

ev_status model_hot_make(model_hot *out, ev_error *err) EV_CHECKED;
void model_hot_free(model_hot *hot);
/* Adds `count` atomic requests to a sector. When the table is full, new sectors are not counted:
 * thousands of sectors are no hot spot. */
void model_hot_add(model_hot *hot, uint64_t sector, double count);

#endif
