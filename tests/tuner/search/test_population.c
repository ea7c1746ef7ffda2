/* Population and fronts against brute force, and the map of known code. */
#include "tuner/search/front.h"
#include "tuner/search/known.h"
#include "tuner/search/population.h"
#include "tuner/search/search.h"

#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"

/* ---- population ---- */

static bool beats(const member *a, const member *b) {
    return a->ns <= b->ns && a->error <= b->error && (a->ns != b->ns || a->error != b->error);
}

/* The rank by its definition: one more than the highest rank among those that dominate it. */
static unsigned brute_rank(const member *members, size_t count, size_t at) {
    unsigned rank = 0;
    for (size_t i = 0; i < count; i++) {
        if (beats(&members[i], &members[at])) {
            unsigned above = brute_rank(members, count, i) + 1;
            rank = above > rank ? above : rank;
        }
    }
    return rank;
}

static void random_members(member *members, size_t count, ev_pcg *rng, uint32_t range) {
    for (size_t i = 0; i < count; i++)
        members[i] = (member){.child = i,
                              .ns = 1 + ev_pcg_below(rng, range),
                              .error = ev_pcg_below(rng, range) * 0.25};
}

static void test_ranks_are_those_of_brute_force(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(5, 6);
    for (int round = 0; round < 300; round++) {
        member members[14];
        size_t count = 1 + ev_pcg_below(&rng, 14);
        random_members(members, count, &rng, 2 + ev_pcg_below(&rng, 8));
        population_rank(members, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(members[i].rank, brute_rank(members, count, i));
    }
}

/* ---- the front of a whole search ---- */

static bool is_covered(const front_member *all, size_t count, size_t at) {
    for (size_t i = 0; i < count; i++) {
        bool equal = all[i].ns == all[at].ns && all[i].error == all[at].error;
        if (i != at && all[i].ns <= all[at].ns && all[i].error <= all[at].error &&
            (!equal || i < at)) /* of equals the first stays */
            return true;
    }
    return false;
}

static bool is_on(const front *f, uint64_t child) {
    for (size_t i = 0; i < f->count; i++)
        if (f->list[i].child == child)
            return true;
    return false;
}

static void test_front_is_that_of_brute_force(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(9, 1);
    for (int trial = 0; trial < 300; trial++) {
        front_member all[40];
        front f = {0};
        size_t count = 1 + ev_pcg_below(&rng, 40);
        for (size_t i = 0; i < count; i++) {
            all[i] = (front_member){i, ev_pcg_below(&rng, 12), ev_pcg_below(&rng, 12)};
            front_add(&f, all[i]);
        }
        for (size_t i = 0; i < count; i++)
            assert_int_equal(is_on(&f, i), !is_covered(all, count, i));
        for (size_t i = 1; i < f.count; i++)
            assert_true(f.list[i - 1].ns < f.list[i].ns && f.list[i - 1].error > f.list[i].error);
    }
}

static void test_full_front_drops_the_slowest(void **state) {
    (void)state;
    front f = {0};
    for (int i = 0; i < FRONT_MOST; i++)
        front_add(&f, (front_member){(uint64_t)i, 2.0 * i, 100 - i});
    front_add(&f, (front_member){100, 1000, 0}); /* slower than all: it goes itself */
    assert_false(is_on(&f, 100));
    front_add(&f, (front_member){101, 3, 98.5});
    assert_int_equal(f.count, FRONT_MOST);
    assert_true(is_on(&f, 101) && !is_on(&f, FRONT_MOST - 1) && is_on(&f, FRONT_MOST - 2));
}

static int by_ns(const void *a, const void *b) {
    const member *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* A front of distinct values, sorted: crowding is the gap between the neighbours. */
static void test_crowding_is_the_gap_between_neighbours(void **state) {
    (void)state;
    enum { N = 9 };
    ev_pcg rng = ev_pcg_seed(7, 8);
    member members[N];
    double ns = 10, error = 100;
    for (int i = 0; i < N; i++) {
        ns += 1 + ev_pcg_below(&rng, 9);
        error -= 1 + ev_pcg_below(&rng, 9);
        members[i] = (member){.child = (uint64_t)i, .ns = ns, .error = error};
    }
    for (int i = N - 1; i > 0; i--) { /* shuffled: order must not matter */
        uint32_t j = ev_pcg_below(&rng, (uint32_t)i + 1);
        member swap = members[i];
        members[i] = members[j];
        members[j] = swap;
    }
    population_rank(members, N);
    qsort(members, N, sizeof *members, by_ns);
    double spans[2] = {members[N - 1].ns - members[0].ns, members[0].error - members[N - 1].error};
    assert_true(isinf(members[0].crowding) && isinf(members[N - 1].crowding));
    for (int i = 1; i + 1 < N; i++) {
        double want = (members[i + 1].ns - members[i - 1].ns) / spans[0] +
                      (members[i - 1].error - members[i + 1].error) / spans[1];
        assert_true(fabs(members[i].crowding - want) < 1e-12);
    }
}

static void test_population_keeps_its_best(void **state) {
    (void)state;
    ev_error err;
    population p;
    assert_int_equal(population_begin(&p, 16, &err), EV_OK);
    ev_pcg rng = ev_pcg_seed(9, 10);
    double best = INFINITY;
    for (uint64_t child = 0; child < 500; child++) {
        ir_genome *genome = genome_bare();
        member m = {.child = child,
                    .genome = genome,
                    .ns = 100 + ev_pcg_below(&rng, 1000),
                    .error = ev_pcg_below(&rng, 5)};
        best = fmin(best, m.ns);
        population_insert(&p, &m);
        ir_genome_free(genome);
        assert_true(p.count <= 16);
        assert_true(population_best(&p)->ns == best);
        assert_non_null(population_select(&p, &rng));
    }
    population_restart(&p);
    assert_int_equal(p.count, 1);
    assert_true(population_best(&p)->ns == best);
    population_end(&p);
}

static void test_population_keeps_few_equals(void **state) {
    (void)state;
    ev_error err;
    population p;
    assert_int_equal(population_begin(&p, 16, &err), EV_OK);
    for (uint64_t child = 0; child < 40; child++) {
        ir_genome *genome = genome_bare();
        member m = {.child = child, .genome = genome, .ns = child % 2 ? 10 : 20, .error = 1};
        population_insert(&p, &m);
        ir_genome_free(genome);
    }
    assert_int_equal(p.count, 8); /* four of each: the slower ones were not crowded out */
    assert_int_equal(p.members[p.count - 1].child, 39);
    population_end(&p);
}

/* ---- known ---- */

static ev_sha256 numbered(uint64_t i) {
    return ev_sha256_of(&i, sizeof i);
}

static void test_known_finds_what_was_added(void **state) {
    (void)state;
    ev_error err;
    known *k = known_new();
    for (uint64_t i = 0; i < 5000; i++) {
        ev_sha256 key = numbered(i);
        assert_int_equal(known_add(k, &key, i, &err), EV_OK);
        assert_int_equal(known_add(k, &key, i + 1, &err), EV_OK); /* the first stays */
    }
    for (uint64_t i = 0; i < 10000; i++) {
        ev_sha256 key = numbered(i);
        uint64_t child = 0;
        assert_int_equal(known_find(k, &key, &child), i < 5000);
        if (i < 5000)
            assert_int_equal(child, i);
    }
    known_free(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_those_of_brute_force),
        cmocka_unit_test(test_front_is_that_of_brute_force),
        cmocka_unit_test(test_full_front_drops_the_slowest),
        cmocka_unit_test(test_crowding_is_the_gap_between_neighbours),
        cmocka_unit_test(test_population_keeps_its_best),
        cmocka_unit_test(test_population_keeps_few_equals),
        cmocka_unit_test(test_known_finds_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
