/* The lines that a block touches and its share of the L1, against lists that are searched from end
 * to end: the same sectors are missing, and the same are touched for the first time. */
#include "base/pcg.h"
#include "fitness/model/access/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_LINES 8192 /* more than there are places at first */
/* 4 sets of 68 ways: 3 of the 275 lines are left over. */
#define SETS 4
#define WAYS 68
enum { L1_BYTES = (SETS * WAYS + 3) * CACHE_LINE_BYTES };

typedef struct plain_cache {
    uint64_t line[SETS][WAYS]; /* + 1; 0: none */
    uint32_t used[SETS][WAYS]; /* when it was last */
    unsigned there[SETS][WAYS];
    uint32_t group[SETS], clock;
    unsigned loads[MOST_LINES], stores[MOST_LINES];
} plain_cache;

static unsigned plain_victim(plain_cache *p, uint32_t set) {
    unsigned first = p->group[set], oldest = first;
    p->group[set] = (first + CACHE_GROUP) % WAYS;
    for (unsigned way = first; way < first + CACHE_GROUP; way++)
        oldest = p->used[set][way] < p->used[set][oldest] ? way : oldest;
    return oldest;
}

static unsigned plain_read(plain_cache *p, uint64_t line, unsigned sectors) {
    uint32_t set = (uint32_t)(line ^ line >> 5 ^ line >> 10 ^ line >> 15) % SETS;
    unsigned way = 0;
    while (way < WAYS && p->line[set][way] != line + 1)
        way++;
    if (way == WAYS) {
        way = plain_victim(p, set);
        p->line[set][way] = line + 1;
        p->there[set][way] = 0;
    }
    unsigned had = p->there[set][way];
    p->used[set][way] = ++p->clock;
    p->there[set][way] = had | sectors;
    return sectors & ~had;
}

static unsigned plain_touch(unsigned *marks, unsigned sectors) {
    unsigned first = sectors & ~*marks;
    *marks |= sectors;
    return first;
}

/* One block: `lines` of them, loads through the L1 or past it, and stores. */
static void run_block(model_cache *c, ev_pcg *rng, uint32_t lines, uint32_t accesses) {
    plain_cache *p = calloc(1, sizeof *p);
    assert_non_null(p);
    for (uint32_t i = 0; i < accesses; i++) {
        uint64_t line = ev_pcg_below(rng, lines);
        unsigned sectors = 1 + ev_pcg_below(rng, 15), way = ev_pcg_below(rng, 8);
        uint32_t hash = model_line_hash(line);
        bool hit = way > 1 && model_cache_hit(c, &c->clock, line, sectors) != CACHE_MISSES;
        cache_line *l = model_cache_line(c, line, hash);
        if (way == 0) {
            assert_int_equal(model_cache_touch(l, sectors, true),
                             plain_touch(&p->stores[line], sectors));
        } else if (way == 1) {
            assert_int_equal(model_cache_touch(l, sectors, false),
                             plain_touch(&p->loads[line], sectors));
        } else {
            if (!hit && l->there == 0)
                model_cache_place(c, l, line);
            unsigned missing = hit ? 0 : model_cache_read(c, l, sectors);
            assert_int_equal(missing, plain_read(p, line, sectors));
            assert_int_equal(model_cache_touch(l, missing, false),
                             plain_touch(&p->loads[line], missing));
        }
    }
    free(p);
}

/* Small and large blocks one after the other, more of them than a cache has rounds. */
static void test_reads_as_lists_do(void **state) {
    (void)state;
    static const uint32_t sizes[] = {40, 160, 600, 100, MOST_LINES};
    ev_error err;
    model_cache c;
    ev_pcg rng = ev_pcg_seed(7, 1);
    assert_int_equal(model_cache_make(L1_BYTES, &c, &err), EV_OK);
    for (uint32_t block = 0; block < 150; block++) {
        uint32_t lines = sizes[block < 70 ? block % 2 : block % 5];
        run_block(&c, &rng, lines, lines > 1000 ? 3 * lines : 1000);
        model_cache_clear(&c);
        if (block % 40 == 39)
            c.clock |= UINT32_MAX / 2; /* as after very many uses */
    }
    assert_false(c.failed);
    model_cache_free(&c);
}

/* The fast paths say how far away a sector is that another warp has asked for, while it is on its
 * way: to each warp once, which then has waited. For the warp that asked, and later, it is in the
 * L1. */
static void test_hits_on_their_way(void **state) {
    (void)state;
    enum { LINE = 5, FROM = 2, LATENCY = 200 };
    ev_error err;
    model_cache c;
    assert_int_equal(model_cache_make(L1_BYTES, &c, &err), EV_OK);
    cache_line *l = model_cache_line(&c, LINE, model_line_hash(LINE));
    model_cache_place(&c, l, LINE);
    assert_int_equal(model_cache_read(&c, l, 1), 1);
    model_cache_miss(&c, l, FROM, LATENCY);
    static const struct {
        uint64_t now;
        uint8_t warp;
        bool by_sector;
        unsigned level;
    } rows[] = {{100, 1, false, FROM}, {100, 0, false, 0},  {100, 1, true, 0},
                {100, 31, true, FROM}, {100, 31, false, 0}, {LATENCY - 1, 2, true, FROM},
                {LATENCY, 3, false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        c.now = rows[i].now;
        c.warp = rows[i].warp;
        uint64_t sector = LINE * CACHE_SECTORS;
        unsigned level = rows[i].by_sector ? model_cache_hit_sector(&c, &c.clock, sector)
                                           : model_cache_hit(&c, &c.clock, LINE, 1);
        assert_int_equal(level, rows[i].level);
        assert_int_equal(model_cache_hit_sector(&c, &c.clock, sector + 1), CACHE_MISSES);
    }
    /* what another warp asks for anew has to be waited for anew */
    c.warp = 4;
    c.now = 300;
    model_cache_miss(&c, l, FROM, LATENCY);
    c.warp = 1;
    assert_int_equal(model_cache_hit(&c, &c.clock, LINE, 1), FROM);
    model_cache_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads_as_lists_do),
                                       cmocka_unit_test(test_hits_on_their_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
