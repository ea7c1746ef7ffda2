/* The good half of the zoo: no kernel raises a false alarm, and what it computes depends neither on
 * the order of warps and blocks nor on the instruction set. */
#include "tests/fitness/vm/zoo.h"
#include "tests/fitness/vm/zoo_good.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 8
#define FUEL 100000000

typedef struct good_zoo {
    zoo *z;
    vm_module *modules[ZOO_SOURCES];
} good_zoo;

static int set_up(void **state) {
    static good_zoo g;
    g.z = zoo_new();
    g.modules[ZOO_OLDER] = zoo_compile("tests/fitness/ptx/zoo/good.cu");
    g.modules[ZOO_PATTERNS] = zoo_compile("tests/fitness/ptx/zoo/good_patterns.cu");
    g.modules[ZOO_TEXT] = zoo_load("tests/fitness/ptx/zoo/good_text.ptx");
    *state = &g;
    return 0;
}

static int tear_down(void **state) {
    good_zoo *g = *state;
    for (unsigned s = 0; s < ZOO_SOURCES; s++)
        vm_module_free(g->modules[s]);
    zoo_free(g->z);
    return 0;
}

static vm_result run(good_zoo *g, const vm_module *m, const zoo_good *k, uint64_t seed) {
    zoo_launch how = {.blocks = ZOO_BLOCKS,
                      .threads = ZOO_THREADS,
                      .shared = k->shared,
                      .seed = seed,
                      .fuel = FUEL};
    const vm_entry *entry = vm_module_find(m, k->name);
    if (!entry)
        fail_msg("no kernel '%s'", k->name);
    return zoo_run(g->z, m, entry, &how);
}

static bool word_fits(int32_t want, int32_t got, float tolerance) {
    if (want == ZOO_ANY || want == got)
        return true;
    float w, g;
    memcpy(&w, &want, sizeof w);
    memcpy(&g, &got, sizeof g);
    return tolerance > 0 && fabsf(w - g) <= tolerance * fmaxf(fabsf(w), 0.01f);
}

static unsigned wrong_words(const zoo *z, const zoo_good *k) {
    int32_t out[ZOO_N], both[ZOO_N];
    unsigned wrong = 0;
    for (int i = 0; i < ZOO_N; i++)
        out[i] = both[i] = ZOO_ANY;
    k->expect(out, both);
    for (int i = 0; i < ZOO_N; i++) {
        wrong += word_fits(out[i], z->out[i], k->tolerance) ? 0u : 1u;
        wrong += word_fits(both[i], z->both[i], 0) ? 0u : 1u;
    }
    return wrong;
}

/* What a kernel leaves in `out` is the same under every schedule, to the bit. */
static unsigned check_kernel(good_zoo *g, const vm_module *m, const zoo_good *k, unsigned isa) {
    int32_t first[ZOO_N];
    unsigned failures = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        vm_result r = run(g, m, k, seed);
        unsigned wrong = r.ok ? wrong_words(g->z, k) : 0;
        if (seed == 0)
            memcpy(first, g->z->out, sizeof first);
        bool same = memcmp(first, g->z->out, sizeof first) == 0;
        if (r.ok && !wrong && same)
            continue;
        failures++;
        print_error("%s (schedule %llu, isa %u): %s, %u wrong values%s\n", k->name,
                    (unsigned long long)seed, isa, r.ok ? "ran" : r.trap.message, wrong,
                    same ? "" : ", other results than under schedule 0");
    }
    return failures;
}

static void check_source(void **state, zoo_source source) {
    good_zoo *g = *state;
    vm_module *m = g->modules[source];
    size_t count;
    const zoo_good *list = zoo_good_list(source, &count);
    unsigned failures = 0;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(m, isa);
        for (size_t i = 0; i < count; i++)
            failures += check_kernel(g, m, &list[i], isa);
    }
    assert_int_equal(failures, 0);
    assert_int_equal(vm_module_entry_count(m), count);
}

static void test_older(void **state) {
    check_source(state, ZOO_OLDER);
}
static void test_patterns(void **state) {
    check_source(state, ZOO_PATTERNS);
}
static void test_text(void **state) {
    check_source(state, ZOO_TEXT);
}

/* ---- counters and events */

/* What the observer saw of a launch, as one number. */
typedef struct watch {
    uint64_t hash, events;
} watch;

static void watch_bytes(watch *w, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        w->hash = (w->hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
}

static void watch_begin(void *context, uint32_t block, uint32_t warps) {
    uint32_t all[2] = {block, warps};
    watch_bytes(context, all, sizeof all);
}

static void watch_batch(void *context, const vm_batch *b) {
    watch *w = context;
    uint32_t all[2] = {b->block, b->warp};
    watch_bytes(w, all, sizeof all);
    for (size_t i = 0; i < b->count; i++) {
        const vm_event *e = &b->events[i];
        uint32_t fields[] = {e->pc, e->count, e->active, e->sectors, e->lines, e->passes};
        watch_bytes(w, fields, sizeof fields);
        watch_bytes(w, b->sectors + e->first_sector, e->sectors * sizeof *b->sectors);
    }
    w->events += b->count;
}

static void watch_end(void *context, uint32_t block) {
    watch_bytes(context, &block, sizeof block);
}

static vm_result run_watched(good_zoo *g, vm_module *m, const zoo_good *k, unsigned isa, watch *w) {
    vm_observer observer = {w, watch_begin, watch_batch, watch_end};
    zoo_launch how = {.blocks = ZOO_BLOCKS,
                      .threads = ZOO_THREADS,
                      .shared = k->shared,
                      .fuel = FUEL,
                      .observer = w ? &observer : NULL};
    vm_module_set_isa(m, isa);
    return zoo_run(g->z, m, vm_module_find(m, k->name), &how);
}

/* What is counted and what the observer sees depend neither on the executor nor, counters, on
 * whether someone watches. */
static void check_counts(good_zoo *g, vm_module *m, const zoo_good *k, unsigned isa) {
    watch want = {0}, got = {0};
    vm_result a = run_watched(g, m, k, VM_ISA_BASELINE, &want);
    vm_result b = run_watched(g, m, k, isa, &got);
    vm_result c = run_watched(g, m, k, isa, NULL);
    if (memcmp(&a.counters, &b.counters, sizeof a.counters) != 0)
        fail_msg("%s: isa %u counts what the baseline does not", k->name, isa);
    if (memcmp(&a.counters, &c.counters, sizeof a.counters) != 0)
        fail_msg("%s: who is watched counts differently", k->name);
    if (want.hash != got.hash || want.events != got.events)
        fail_msg("%s: isa %u shows other events than the baseline (%llu, %llu)", k->name, isa,
                 (unsigned long long)got.events, (unsigned long long)want.events);
    assert_true(want.events > 0);
    assert_true(a.counters.thread_instructions <= a.counters.warp_instructions * 32);
}

static void test_counters(void **state) {
    good_zoo *g = *state;
    for (unsigned isa = VM_ISA_BASELINE + 1; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa)) {
            print_message("this processor lacks instruction set %u: not compared\n", isa);
            continue;
        }
        for (unsigned s = 0; s < ZOO_SOURCES; s++) {
            size_t count;
            const zoo_good *list = zoo_good_list((zoo_source)s, &count);
            for (size_t i = 0; i < count; i++)
                check_counts(g, g->modules[s], &list[i], isa);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
