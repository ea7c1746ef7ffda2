/* Caches of the timing model: a sectored set-associative L1 with LRU, the set of sectors that a
 * block has touched, and how often atomics update a sector. */
#include "fitness/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROUND (UINT64_C(1) << CACHE_ROUND_SHIFT)

_Static_assert(sizeof(cache_line) * CACHE_WAYS == 64, "a set is a line of the host's cache");

ev_status model_cache_make(uint64_t bytes, model_cache *out, ev_error *err) {
    uint64_t lines = bytes / CACHE_LINE_BYTES;
    uint32_t sets = 1;
    while ((uint64_t)sets * 2 * CACHE_WAYS <= lines && sets < 1u << 20)
        sets *= 2;
    size_t room = (size_t)sets * CACHE_WAYS * sizeof(cache_line);
    cache_line *array = aligned_alloc(64, room);
    if (array == NULL)
        return ev_fail_memory(err, room);
    memset(array, 0, room);
    *out = (model_cache){.lines = array, .sets = sets, .round = FIRST_ROUND};
    return EV_OK;
}

/* Lines of earlier rounds were used before all of this one, so they go first. */
void model_cache_clear(model_cache *cache) {
    cache->round += FIRST_ROUND;
    /* half is enough for what comes until the next clear */
    if (cache->round != 0 && cache->clock <= UINT32_MAX / 2)
        return;
    memset(cache->lines, 0, (size_t)cache->sets * CACHE_WAYS * sizeof *cache->lines);
    cache->clock = 0;
    cache->round = FIRST_ROUND;
}

void model_cache_free(model_cache *cache) {
    free(cache->lines);
    cache->lines = NULL;
}

static cache_line *oldest_of(cache_line *set) {
    cache_line *oldest = set;
    for (int way = 1; way < CACHE_WAYS; way++)
        if (set[way].used < oldest->used)
            oldest = &set[way];
    return oldest;
}

uint32_t model_cache_find(model_cache *cache, uint64_t line) {
    /* The set is hashed, as the hardware does, so that power-of-two strides spread. */
    cache_line *set = cache->lines + (model_line_hash(line) & (cache->sets - 1)) * CACHE_WAYS;
    uint64_t tag = line + cache->round;
    /* without a branch a way: which one it is cannot be foreseen */
    unsigned found = 0;
    for (unsigned way = 0; way < CACHE_WAYS; way++)
        found |= (unsigned)(set[way].tag == tag) << way;
    if (found != 0)
        return (uint32_t)(set - cache->lines) + (unsigned)__builtin_ctz(found);
    cache_line *oldest = oldest_of(set);
    *oldest = (cache_line){.tag = tag};
    return (uint32_t)(oldest - cache->lines);
}

bool model_touched_grow(model_touched *t) {
    t->round += t->round == 0; /* new lines are of round 0 */
    uint32_t capacity = t->capacity == 0 ? 1024 : t->capacity * 2;
    touched_line *lines = calloc(capacity, sizeof *lines);
    if (lines == NULL) {
        t->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->lines[i].round != t->round)
            continue;
        uint32_t at = model_line_hash(t->lines[i].tag) & (capacity - 1);
        while (lines[at].round == t->round)
            at = (at + 1) & (capacity - 1);
        lines[at] = t->lines[i];
    }
    free(t->lines);
    t->lines = lines;
    t->capacity = capacity;
    return true;
}

void model_touched_clear(model_touched *t) {
    t->count = 0;
    t->round++;
    if (t->round == 0 && t->capacity > 0) { /* all rounds were used */
        memset(t->lines, 0, t->capacity * sizeof *t->lines);
        t->round = 1;
    }
}

void model_touched_free(model_touched *t) {
    free(t->lines);
    t->lines = NULL;
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
