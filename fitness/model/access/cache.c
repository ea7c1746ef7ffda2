/* Caches of the timing model: the lines that a block has touched, an L1 over these lines, and the
 * number of atomic updates of each sector.
 *
 * The lines are in a hash table with open addressing and linear probing. The table is at most half
 * full after growth, and a quarter full at its first size, so most lookups end at the first place.
 * A tag is the line number plus the number of the round. `model_cache_clear` only raises the
 * round, so old entries count as empty and a new block costs no memset.
 *
 * The L1 has sectors of 32 bytes and few sets of many ways: microbenchmarks of Volta's L1 found
 * four sets, and a replacement that is not LRU (Jia et al., arXiv:1804.06826, table 3.1). So a
 * block loses few hits below the capacity by the placement of its lines. In place of LRU over all
 * ways, the least recently used way of a small group is replaced, and the groups take turns. The
 * inline lookup is in cache.h.
 *
 * `model_hot` counts atomic updates a sector in a table of fixed size. A table that is half full
 * ignores further sectors. */
#include "fitness/model/access/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROUND (UINT64_C(1) << CACHE_ROUND_SHIFT)
/* At first; a quarter of them are taken before there are more, so that most lines are where they
 * are looked for first. */
#define LINES 2048

#define LEAST_WAYS 64 /* of a set, if the L1 is larger than one set */

_Static_assert(CACHE_GROUP == 4, "model_cache_place knows them");

ev_status model_cache_make(uint64_t l1_bytes, model_cache *out, ev_error *err) {
    uint64_t lines = l1_bytes / CACHE_LINE_BYTES;
    uint32_t sets = 1;
    while ((uint64_t)sets * 2 * LEAST_WAYS <= lines && sets < 1u << 20)
        sets *= 2;
    uint32_t ways = (uint32_t)(lines / sets) / CACHE_GROUP * CACHE_GROUP;
    assert(ways > 0);
    *out = (model_cache){.lines = calloc(LINES + 2, sizeof *out->lines),
                         .ways = ways,
                         .sets = calloc((size_t)sets * 2 * ways, sizeof *out->sets),
                         .turn = calloc(sets, sizeof *out->turn),
                         .line_mask = LINES - 1,
                         .most = LINES / 4,
                         .set_mask = sets - 1,
                         .round = FIRST_ROUND};
    if (out->lines != NULL && out->sets != NULL && out->turn != NULL)
        return EV_OK;
    model_cache_free(out);
    return ev_fail_memory(err,
                          LINES * sizeof *out->lines + (size_t)sets * 2 * ways * sizeof *out->sets);
}

static size_t line_count(const model_cache *cache) {
    return (size_t)cache->line_mask + 1;
}

static size_t set_words(const model_cache *cache) {
    return ((size_t)cache->set_mask + 1) * 2 * cache->ways;
}

void model_cache_clear(model_cache *cache) {
    cache->count = 0;
    cache->round += FIRST_ROUND;
    cache->began = cache->clock;
    /* half is enough for what comes until the next clear */
    if (cache->round != 0 && cache->clock <= UINT32_MAX / 2)
        return;
    memset(cache->sets, 0, set_words(cache) * sizeof *cache->sets);
    memset(cache->lines, 0, (line_count(cache) + 2) * sizeof *cache->lines);
    cache->clock = cache->began = 0;
    cache->round = FIRST_ROUND;
}

void model_cache_free(model_cache *cache) {
    free(cache->lines);
    free(cache->sets);
    free(cache->turn);
    cache->turn = NULL;
    cache->lines = NULL;
    cache->sets = NULL;
}

/* Where the line is, or, empty, where it would be. */
static cache_line *place_of(const model_cache *cache, uint64_t line, uint32_t hash) {
    for (;; hash++) {
        size_t at = hash & cache->line_mask;
        cache_line *l = &cache->lines[1 + at];
        if (l->tag == line + cache->round || model_cache_is_empty(cache, l))
            return l;
    }
}

/* Twice as many places; false: there is no memory. */
static bool grow(model_cache *cache) {
    model_cache old = *cache;
    size_t count = line_count(cache);
    cache_line *lines = calloc(2 * count + 2, sizeof *lines);
    if (lines == NULL)
        return false;
    cache->lines = lines;
    cache->line_mask = (uint32_t)(2 * count - 1);
    cache->most = (uint32_t)count;
    for (size_t i = 1; i <= count; i++) {
        if (model_cache_is_empty(&old, &old.lines[i]))
            continue;
        uint64_t line = old.lines[i].tag - old.round;
        cache_line *to = place_of(cache, line, model_line_hash(line));
        *to = old.lines[i];
        if (to->there != 0)
            cache->sets[to->way + cache->ways] = (uint32_t)(to - lines);
    }
    free(old.lines);
    return true;
}

/* Where there is no memory, lines are none, and the caller hears of it at the end. */
cache_line *model_cache_seek(model_cache *cache, uint64_t line, uint32_t hash) {
    cache_line *l = place_of(cache, line, hash);
    if (!model_cache_is_empty(cache, l))
        return l;
    if (cache->count >= cache->most) {
        if (!grow(cache)) {
            cache->failed = true;
            return &cache->lines[0];
        }
        l = place_of(cache, line, hash);
    }
    cache->count++;
    *l = (cache_line){.tag = line + cache->round};
    return l;
}

/* ---- atomics ---- */

#define HOT_PLACES 8192 /* a power of two */

ev_status model_hot_make(model_hot *out, ev_error *err) {
    *out = (model_hot){.sectors = calloc(HOT_PLACES, sizeof *out->sectors),
                       .counts = calloc(HOT_PLACES, sizeof *out->counts)};
    if (out->sectors != NULL && out->counts != NULL)
        return EV_OK;
    model_hot_free(out);
    return ev_fail_memory(err, HOT_PLACES * sizeof *out->sectors);
}

void model_hot_free(model_hot *hot) {
    free(hot->sectors);
    free(hot->counts);
    *hot = (model_hot){0};
}

void model_hot_add(model_hot *hot, uint64_t sector, double count) {
    uint32_t at = model_line_hash(sector) & (HOT_PLACES - 1);
    while (hot->sectors[at] != 0 && hot->sectors[at] != sector + 1)
        at = (at + 1) & (HOT_PLACES - 1);
    if (hot->sectors[at] == 0) {
        if (hot->used >= HOT_PLACES / 2)
            return;
        hot->sectors[at] = sector + 1;
        hot->used++;
    }
    hot->counts[at] += count;
    hot->most = hot->counts[at] > hot->most ? hot->counts[at] : hot->most;
}
