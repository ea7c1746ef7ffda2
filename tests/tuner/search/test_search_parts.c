/* The parts of the search that stand alone: bandit, population against brute force, known code,
 * minimising. */
#include "tuner/run/minimise.h"
#include "tuner/run/shares.h"
#include "tuner/search/bandit.h"
#include "tuner/search/draw.h"
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

/* ---- the filter in the search ---- */

typedef struct scripted {
    search *s;
    json_t *genome;
    double reach; /* of the child drawn last; 0: it is not filtered */
} scripted;

/* `start` outlives the search. */
static scripted begin_scripted(const task_start *of, search_start *start) {
    *start = (search_start){.start = of, .sites = {[IR_EDIT_DELETE] = 9}};
    const search_settings settings = {
        .starts = start, .start_count = 1, .seed = 3, .evaluations = 400};
    scripted x = {0};
    assert_int_equal(search_new(&settings, &x.s, NULL), EV_OK);
    return x;
}

static search_recipe draw_next(scripted *x) {
    search_recipe recipe;
    assert_int_equal(search_draw(x->s, false, &recipe, NULL), EV_OK);
    x->reach = json_number_value(json_array_get(json_object_get(recipe.message, "reach"), 1));
    json_decref(recipe.message);
    return recipe;
}

static search_verdict commit(scripted *x, const char *hash, gate stopped, double ns, double small,
                             bool filtered) {
    search_result r = {.genome = x->genome,
                       .operators = "delete",
                       .hashes = {[SEARCH_BY_IR] = hash, [SEARCH_BY_PTX] = hash},
                       .stopped = stopped,
                       .ns = ns,
                       .small = {.built = small},
                       .filtered = filtered};
    search_verdict v;
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    return v;
}

static void name_genome(scripted *x, int number) {
    json_decref(x->genome);
    x->genome = json_pack("{s:s,s:{},s:[{s:s,s:s,s:i}]}", "start", "textbook", "macros", "edits",
                          "kind", "delete", "at", "i0", "option", number);
}

/* What the filter stops is not known for good, what it would have stopped is let through now and
 * then, and whether that was worth it is told. */
static void test_filter_blacklists_nothing(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    unsigned filtered = 0, probed = 0, regretted = 0;
    for (int i = 0; i < 400; i++) {
        char hash[24];
        snprintf(hash, sizeof hash, "code %d", i);
        name_genome(&x, i);
        (void)draw_next(&x);
        bool opens = i < 2; /* the start, and with the light pipeline */
        assert_true(!opens || x.reach == 0);
        bool slow = !opens && i % 2 == 0, stops = slow && x.reach > 0 && x.reach < 150;
        assert_true(x.reach == 0 || x.reach > 100);
        search_verdict v = commit(&x, hash, stops ? GATE_TIMED : GATE_NONE, stops ? 0 : 1000,
                                  slow ? 150 : 100, stops);
        assert_int_equal(v.filtered, stops);
        assert_true(!v.seen && (!stops || !v.probed));
        filtered += v.filtered;
        probed += v.probed;
        regretted += v.regretted;
        uint64_t same_as = 0;
        assert_int_equal(search_knows(x.s, x.genome, SEARCH_BY_GENOME, "", &same_as), !stops);
        assert_int_equal(search_knows(x.s, x.genome, SEARCH_BY_PTX, hash, &same_as), !stops);
    }
    assert_true(filtered > 120 && probed > 1 && probed < 25);
    assert_int_equal(regretted, probed); /* all were as fast as their parent */
    search_free(x.s);
    json_decref(x.genome);
}

static bool is_over(const scripted *x, uint64_t *same_as) {
    return search_is_over(x->s, search_committed(x->s), x->genome, SEARCH_BY_GENOME, "", same_as);
}

/* What would be filtered again is a duplicate of what was, also where its worker was not told; a
 * probe and a child of slower parents are looked at anew. */
static void test_filtered_again_is_a_duplicate(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    uint64_t first = 0, same_as = 0;
    unsigned again = 0;
    for (int i = 0; i < 3 || x.reach == 0;
         i++) { /* the openings, and children till one is no probe */
        name_genome(&x, i);
        (void)draw_next(&x);
        first = search_committed(x.s);
        bool stops = i >= 2 && x.reach > 0;
        assert_false(is_over(&x, &same_as));
        search_verdict v = commit(&x, "", stops ? GATE_TIMED : GATE_NONE, stops ? 0 : 1000,
                                  stops ? 150 : 100, stops);
        assert_true(v.filtered == stops && !v.seen);
    }
    for (;; again++) {
        (void)draw_next(&x);
        if (x.reach == 0)
            break;
        assert_true(is_over(&x, &same_as) && same_as == first);
        search_verdict v = commit(&x, "", GATE_TIMED, 0, 150, true);
        assert_true(v.seen && !v.filtered && v.same_as == first && v.by == SEARCH_BY_GENOME);
        assert_false(search_knows(x.s, x.genome, SEARCH_BY_GENOME, "", &same_as));
    }
    assert_false(is_over(&x, &same_as));
    search_verdict v = commit(&x, "", GATE_NONE, 900, 150, false);
    assert_true(!v.seen && v.probed && v.regretted && v.is_best);
    (void)draw_next(&x); /* from now on it is known as what it is */
    assert_true(is_over(&x, &same_as) && same_as > first);
    assert_true(again > 0);
    commit(&x, "", GATE_NONE, 900, 150, false);
    name_genome(&x, 1000);
    unsigned reached = 0, missed = 0;
    for (bool was = false; missed < 1 || reached < 1; was = true) {
        (void)draw_next(&x);
        bool out = x.reach > 0 && x.reach < 140;
        assert_int_equal(is_over(&x, &same_as), was && out);
        v = commit(&x, "", GATE_TIMED, 0, 140, true);
        assert_true(v.seen == (was && out));
        missed += was && out;
        reached += was && x.reach > 140;
    }
    search_free(x.s);
    json_decref(x.genome);
}

/* ---- children that run alike ---- */

/* As child `i` with its own code; the likeness of its sketch. */
static search_verdict commit_run(scripted *x, int i, const char *ran, gate stopped, double ns) {
    char code[24];
    snprintf(code, sizeof code, "code %d", i);
    name_genome(x, i);
    (void)draw_next(x);
    search_result r = {.genome = x->genome,
                       .operators = "delete",
                       .hashes = {[SEARCH_BY_IR] = code,
                                  [SEARCH_BY_SKETCH] = code,
                                  [SEARCH_SKETCH_RAN] = ran,
                                  [SEARCH_BY_PTX] = code},
                       .stopped = stopped,
                       .ns = ns};
    search_verdict v;
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    return v;
}

/* Whatever its worker got to: one that ran as a known child did has that child's time, and leaves
 * no trace of what came after. Audited ones keep their own, and tell where the two differ. */
static void test_what_runs_alike_is_recalled(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    uint64_t same_as = 0;
    assert_false(commit_run(&x, 0, "start", GATE_NONE, 1000).recalled);
    assert_false(commit_run(&x, 1, "wrong", GATE_TIMED, 0).recalled);
    assert_false(commit_run(&x, 2, "fast", GATE_NONE, 900).recalled);
    search_verdict v = commit_run(&x, 3, "wrong", GATE_NONE, 950); /* that one did not pass */
    assert_true(!v.recalled && v.ns == 950);
    v = commit_run(&x, 4, "fast", GATE_NONE, 700); /* measured before that was known */
    assert_true(v.recalled && !v.seen && v.by == SEARCH_SKETCH_RAN && v.same_as == 2);
    assert_true(v.ns == 900 && !v.is_best && v.stopped == GATE_NONE);
    assert_true(commit_run(&x, 5, "fast", GATE_TIMED, 0).recalled); /* and stopped before it was */
    assert_true(search_knows(x.s, x.genome, SEARCH_BY_IR, "code 5", &same_as) && same_as == 5);
    assert_false(search_knows(x.s, x.genome, SEARCH_BY_PTX, "code 5", &same_as));
    for (int i = 6; i < 63; i++)
        assert_true(commit_run(&x, i, "start", GATE_NONE, 1000).recalled);
    v = commit_run(&x, 63, "start", GATE_NONE, 1000.5);
    assert_true(!v.recalled && v.audited && !v.missed && v.ns == 1000.5);
    for (int i = 64; i < 127; i++)
        assert_true(!commit_run(&x, i, "fast", GATE_NONE, 900).audited);
    v = commit_run(&x, 127, "fast", GATE_NONE, 600);
    assert_true(!v.recalled && v.audited && v.missed && v.is_best);
    search_free(x.s);
    json_decref(x.genome);
}

/* ---- children that gained nothing by their sketch ---- */

/* What the next child's worker may leave unbuilt: so slow a sketch; 0: nothing. `near`: of the
 * small cases; what is near to that need not be timed, either. */
static double draw_limits(scripted *x, double *near) {
    search_recipe recipe;
    assert_int_equal(search_draw(x->s, false, &recipe, NULL), EV_OK);
    const json_t *limits = json_object_get(recipe.message, "sketched");
    assert_int_equal(json_array_size(limits), 2);
    *near = json_number_value(json_array_get(limits, 0));
    double due = json_number_value(json_array_get(limits, 1));
    json_decref(recipe.message);
    return due;
}

static double draw_limit(scripted *x) {
    double near = 0;
    return draw_limits(x, &near);
}

/* As child `i`, whose sketch takes `whole` ns; built where `ns` > 0, else with an estimate. */
static search_verdict commit_sketched(scripted *x, int i, double whole, double ns) {
    char code[24];
    snprintf(code, sizeof code, "code %d", i);
    name_genome(x, i);
    small_run small = {.sketch = 10, .built = ns > 0 ? 10 : 0, .whole = whole, .error = 2e-8};
    double reckoned = 0, error = 1e-7; /* as small as its parent's, if not built */
    if (ns <= 0)
        search_estimate(x->s, search_committed(x->s), &small, &reckoned, &error);
    assert_float_equal(error, 1e-7, 1e-20);
    if (ns <= 0) {
        small_run worse = small;
        worse.error = 3 * small.error;
        search_estimate(x->s, search_committed(x->s), &worse, &reckoned, &error);
        assert_float_equal(error, 3e-7, 1e-20);
        search_estimate(x->s, search_committed(x->s), &small, &reckoned, &error);
    }
    search_result r = {.genome = x->genome,
                       .operators = "delete",
                       .hashes = {[SEARCH_BY_IR] = code, [SEARCH_BY_PTX] = ns > 0 ? code : ""},
                       .stopped = GATE_NONE,
                       .estimated = ns <= 0,
                       .ns = ns > 0 ? ns : reckoned,
                       .error = error,
                       .small = small};
    search_verdict v;
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    assert_int_equal(v.estimated, ns <= 0);
    return v;
}

static bool archive_holds(const search *s, uint64_t child, bool reckoned) {
    const search_best *best = NULL;
    size_t count = search_archive(s, &best);
    for (size_t i = 0; i < count; i++) {
        if (best[i].child == child)
            return best[i].recalled == reckoned;
    }
    return false;
}

/* Such a child is given its parent's time by as much as its sketch takes longer; small gains add up
 * till one is built; a time that was never LLVM's is marked in the archive. */
static void test_what_gained_nothing_is_estimated(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    assert_true(draw_limit(&x) == 0); /* the openings are built */
    commit_sketched(&x, 0, 0, 5000);
    assert_true(draw_limit(&x) == 0);
    commit_sketched(&x, 1, 2000, 1000); /* what all grow from: a sketch twice as slow */
    double whole = 2000;
    for (int i = 2; i < 12; i++) {
        assert_true(fabs(draw_limit(&x) - 1998) < 1e-9); /* of the last that was built */
        whole -= 0.19;
        search_verdict v = commit_sketched(&x, i, whole, 0);
        assert_true(v.ns <= 1000.0001 && v.ns >= 999 && v.stopped == GATE_NONE);
        assert_true(!v.reckoned && archive_holds(x.s, (uint64_t)i, true));
    }
    assert_true(fabs(draw_limit(&x) - 1998) < 1e-9);
    assert_true(commit_sketched(&x, 12, 1800, 900).is_best); /* built, as it should */
    assert_true(archive_holds(x.s, 12, false));
    unsigned other = 0;
    for (int i = 13; i < 63; i++) {
        double limit = draw_limit(&x);
        other += fabs(limit - 0.999 * 1800) < 1e-9;
        search_verdict v = commit_sketched(&x, i, 2200, 0); /* slower than any parent */
        assert_true(limit > 0 && v.ns > 1050 && v.ns < 1230 && !v.is_best);
    }
    assert_true(other > 10);
    search_free(x.s);
    json_decref(x.genome);
}

/* A sketch near its parent's on the small cases is not timed at full shape; its own children are,
 * and so is one that is let through the filter. */
static void test_near_sketches_are_not_timed(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    double near = 0;
    unsigned from_built = 0, from_near = 0;
    for (int i = 0; i < 2; i++) {
        (void)draw_limits(&x, &near);
        commit_sketched(&x, i, 2000, 1000);
    }
    for (int i = 2; i < 63; i++) {
        double due = draw_limits(&x, &near);
        assert_true(fabs(due - 1998) < 1e-9 && (near == 0 || near == 10));
        search_verdict v = commit_sketched(&x, i, near > 0 ? 0 : 2002, 0);
        assert_true(fabs(v.ns - 1001) < 1e-6 || (near > 0 && fabs(v.ns - 1000) < 1e-6));
        from_built += near > 0;
        from_near += near == 0;
    }
    assert_true(from_built > 5 && from_near > 5);
    search_free(x.s);
    json_decref(x.genome);
}

/* One in 64 is built all the same, and says what its estimate was worth. */
static void test_audits_of_estimates(void **state) {
    (void)state;
    static const double ns[] = {1000, 950, 1100}; /* the estimate is 1000 */
    for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++) {
        static const task_start textbook = {.name = "textbook"};
        search_start start;
        scripted x = begin_scripted(&textbook, &start);
        for (int i = 0; i < 63; i++) {
            double limit = draw_limit(&x);
            assert_true(i < 2 ? limit == 0 : limit > 0);
            assert_false(commit_sketched(&x, i, 2000, i < 2 ? 1000 : 0).reckoned);
        }
        assert_true(draw_limit(&x) == 0);
        search_verdict v = commit_sketched(&x, 63, 2000, ns[k]);
        assert_true(v.reckoned && !v.audited);
        assert_int_equal(v.reckoned_faster, ns[k] < 1000);
        assert_int_equal(v.reckoned_slower, ns[k] > 1000);
        search_free(x.s);
        json_decref(x.genome);
    }
}

/* One edit of six alone; what is crossed becomes known too. */
static json_t *one_of_six(int number) {
    char at[8];
    snprintf(at, sizeof at, "i%d", number % 6);
    return json_pack("{s:s,s:{},s:[{s:s,s:s}]}", "start", "textbook", "macros", "edits", "kind",
                     "delete", "at", at);
}

static void test_no_crossover_is_known(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    unsigned crossed = 0;
    for (int i = 0; i < 150; i++) {
        search_recipe recipe;
        assert_int_equal(search_draw(x.s, false, &recipe, NULL), EV_OK);
        json_t *child = json_array_get(json_object_get(recipe.message, "parents"), 0);
        bool is_crossed = json_is_true(json_object_get(recipe.message, "crossed"));
        uint64_t same_as = 0;
        assert_true(!is_crossed || !search_knows(x.s, child, SEARCH_BY_GENOME, "", &same_as));
        crossed += is_crossed;
        json_decref(x.genome);
        x.genome = is_crossed ? json_incref(child) : one_of_six(i);
        json_decref(recipe.message);
        char hash[24];
        snprintf(hash, sizeof hash, "code %d", is_crossed ? i : 1000 + i % 6);
        (void)commit(&x, hash, GATE_NONE, 1000 + i % 37, 100, false);
    }
    assert_in_range(crossed, 8, 63); /* there are no more than 64 sets of six */
    search_free(x.s);
    json_decref(x.genome);
}

/* ---- bandit ---- */

#define ARMS 10

static void begin(bandit *b, bandit_fates *fates) {
    bool open[ARMS];
    double odds[ARMS];
    for (unsigned i = 0; i < ARMS; i++) {
        open[i] = i != 4;
        odds[i] = 0.7;
    }
    bandit_expect(fates, odds, ARMS);
    bandit_begin(b, open, ARMS, fates);
}

static void test_bandit_shares(void **state) {
    (void)state;
    bandit b;
    bandit_fates fates;
    begin(&b, &fates);
    for (int i = 0; i < 200; i++) {
        for (unsigned arm = 3; arm < 8; arm++) {
            bandit_pay(&b, arm, arm == 3 ? 0.2 : 0);
            bandit_note(&fates, arm, arm <= 5);
        }
    }
    double sum = 0;
    for (unsigned i = 0; i < ARMS; i++)
        sum += bandit_share(&b, i);
    assert_true(fabs(sum - 1) < 1e-12);
    assert_true(bandit_share(&b, 4) == 0);
    assert_true(bandit_share(&b, 3) > 3 * bandit_share(&b, 0));
    assert_true(bandit_share(&b, 5) < bandit_share(&b, 0));
    assert_true(bandit_share(&b, 5) >= 0.3 / 9);                /* the floor */
    assert_true(bandit_share(&b, 6) < bandit_share(&b, 5) / 5); /* known code is a waste */
    assert_true(bandit_share(&b, 6) >= 0.05 * 0.3 / 9);         /* and yet not given up */
    assert_true(bandit_share(&b, 7) == bandit_share(&b, 6));    /* so is wrong code */
}

/* What is expected of an arm holds until it was tried, and not for long after. */
static void test_bandit_unlearns_what_it_expects(void **state) {
    (void)state;
    bandit b, even;
    bandit_fates fates;
    begin(&b, &fates);
    double odds[ARMS] = {[0] = 0.02};
    for (unsigned i = 1; i < ARMS; i++)
        odds[i] = 0.9;
    bandit_expect(&fates, odds, ARMS);
    double before = bandit_share(&b, 0);
    assert_true(before < bandit_share(&b, 1) / 10 && before > 0.002);
    for (int i = 0; i < 8; i++)
        bandit_note(&fates, 0, true);
    assert_true(bandit_share(&b, 0) > 5 * before);
    bandit_begin(&even, b.open, ARMS, NULL); /* baselines know nothing */
    for (unsigned i = 0; i < ARMS; i++)
        assert_true(!b.open[i] || fabs(bandit_share(&even, i) - 1.0 / 9) < 1e-12);
}

/* Each edit and operator has odds that can be. */
static void test_odds_are_probabilities(void **state) {
    (void)state;
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        double odds = arm_odds(arm);
        assert_true(odds >= 0 && odds <= 1);
    }
}

static void test_bandit_draws_its_shares(void **state) {
    (void)state;
    bandit b;
    bandit_fates fates;
    begin(&b, &fates);
    for (int i = 0; i < 50; i++) {
        bandit_pay(&b, 7, 0.1);
        bandit_note(&fates, 7, i % 2 == 0);
    }
    ev_pcg rng = ev_pcg_seed(1, 2);
    unsigned drawn[ARMS] = {0};
    const unsigned draws = 200000;
    for (unsigned i = 0; i < draws; i++)
        drawn[bandit_draw(&b, NULL, &rng)]++;
    for (unsigned i = 0; i < ARMS; i++) {
        double share = bandit_share(&b, i);
        double sigma = sqrt(share * (1 - share) / draws);
        assert_true(fabs(drawn[i] / (double)draws - share) <= 5 * sigma + 1e-12);
    }
}

static void test_bandit_skips(void **state) {
    (void)state;
    bandit b;
    bandit_fates fates;
    begin(&b, &fates);
    bool skip[ARMS] = {false};
    ev_pcg rng = ev_pcg_seed(3, 4);
    for (unsigned left = ARMS - 1; left > 0; left--) {
        unsigned arm = bandit_draw(&b, skip, &rng);
        assert_true(arm < ARMS && arm != 4 && !skip[arm]);
        skip[arm] = true;
    }
    assert_int_equal(bandit_draw(&b, skip, &rng), ARMS);
}

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
        json_t *genome = json_integer((json_int_t)child);
        member m = {.child = child,
                    .genome = genome,
                    .ns = 100 + ev_pcg_below(&rng, 1000),
                    .error = ev_pcg_below(&rng, 5)};
        best = fmin(best, m.ns);
        population_insert(&p, &m);
        json_decref(genome);
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
        json_t *genome = json_integer((json_int_t)child);
        member m = {.child = child, .genome = genome, .ns = child % 2 ? 10 : 20, .error = 1};
        population_insert(&p, &m);
        json_decref(genome);
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

/* ---- minimising ---- */

/* Edits are whole numbers; the gain needs 3 and 7 together, 11 gives another part; 5 without 3 is
 * lethal. */
typedef struct landscape {
    size_t trials;
} landscape;

static double time_of(const json_t *genome) {
    bool has[16] = {false};
    size_t at = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(genome, "edits"), at, edit) has[json_integer_value(edit)] =
        true;
    if (has[5] && !has[3])
        return 0;
    return 100 - (has[3] && has[7] ? 30 : 0) - (has[11] ? 10 : 0) - (has[2] ? 0.1 : 0);
}

static ev_status score_landscape(void *context, json_t *const *genomes, size_t count, double *ns,
                                 ev_error *err) {
    (void)err;
    landscape *l = context;
    l->trials += count;
    for (size_t i = 0; i < count; i++)
        ns[i] = time_of(genomes[i]);
    return EV_OK;
}

static char *minimised(const char *edits, double keep, size_t budget, size_t *trials) {
    ev_error err;
    landscape l = {0};
    json_t *genome = json_pack("{s:s,s:o}", "start", "a", "edits", json_loads(edits, 0, NULL));
    json_t *small = NULL;
    double ns = 0;
    minimise_request request = {.genome = genome,
                                .ns = time_of(genome),
                                .reference_ns = 100,
                                .keep = keep,
                                .budget = budget,
                                .score = score_landscape,
                                .context = &l};
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    assert_true(ns == time_of(small));
    char *text = ev_json_print(json_object_get(small, "edits"), true);
    json_decref(small);
    json_decref(genome);
    *trials = l.trials;
    return text;
}

static void expect_minimised(const char *edits, double keep, size_t budget, const char *want) {
    size_t trials = 0;
    char *got = minimised(edits, keep, budget, &trials);
    assert_string_equal(got, want);
    assert_true(trials <= budget);
    free(got);
}

static void test_minimise_keeps_what_pays(void **state) {
    (void)state;
    expect_minimised("[0,1,2,3,4,5,6,7,8,9,10,11,12]", 0.98, 300, "[3,7,11]");
    expect_minimised("[0,1,2,3,4,5,6,7,8,9,10,11,12]", 1.0, 300, "[2,3,7,11]");
    expect_minimised("[9,8,6,4]", 0.98, 300, "[]");
    expect_minimised("[]", 0.98, 300, "[]");
    expect_minimised("[3,7]", 0.98, 300, "[3,7]");
}

static void test_minimise_stays_in_its_budget(void **state) {
    (void)state;
    expect_minimised("[0,1,2,3,4,5,6,7,8,9,10,11,12]", 0.98, 0, "[0,1,2,3,4,5,6,7,8,9,10,11,12]");
    size_t trials = 0;
    char *got = minimised("[0,1,2,3,4,5,6,7,8,9,10,11,12]", 0.98, 10, &trials);
    assert_true(trials <= 10);
    free(got);
}

/* ---- shares ---- */

/* With 3, 7 and 11 the time is 60 of 100. Without 3, or 7, or both, it is 90: they depend on each
 * other, and on 11 neither does. 5 passes beside 3 alone. */
static void test_shares_tell_what_depends(void **state) {
    (void)state;
    ev_error err;
    landscape l = {0};
    json_t *genome =
        json_pack("{s:s,s:{},s:[i,i,i,i]}", "start", "a", "macros", "edits", 3, 7, 11, 5);
    json_t *shares = NULL;
    minimise_request request = {
        .genome = genome, .ns = 60, .reference_ns = 100, .score = score_landscape, .context = &l};
    assert_int_equal(shares_measure(&request, &shares, &err), EV_OK);
    assert_int_equal(l.trials, 4 + 6);
    const json_t *edits = json_object_get(shares, "edits");
    double gain = log(100.0 / 60);
    assert_true(json_is_null(json_array_get(edits, 0))); /* without 3, 5 is lethal */
    assert_true(fabs(json_real_value(json_array_get(edits, 1)) - log(90.0 / 60) / gain) < 1e-9);
    assert_true(fabs(json_real_value(json_array_get(edits, 2)) - log(70.0 / 60) / gain) < 1e-9);
    assert_true(json_real_value(json_array_get(edits, 3)) == 0);
    char *text = NULL;
    assert_int_equal(shares_tell(shares, genome, "three\nseven\neleven\nfive\n", &text, &err),
                     EV_OK);
    assert_string_equal(text,
                        "three: nothing passes without it\nseven: 79 % of the gain\n"
                        "eleven: 30 % of the gain\nfive: 0 % of the gain\n"
                        "edits 1 and 4 depend on each other: one passes only beside the other\n");
    free(text);
    json_decref(shares);
    json_decref(genome);
}

static void test_shares_of_a_pair(void **state) {
    (void)state;
    ev_error err;
    landscape l = {0};
    json_t *genome =
        json_pack("{s:s,s:{s:i},s:[i,i]}", "start", "a", "macros", "TILE", 4, "edits", 3, 7);
    json_t *shares = NULL;
    minimise_request request = {
        .genome = genome, .ns = 70, .reference_ns = 100, .score = score_landscape, .context = &l};
    assert_int_equal(shares_measure(&request, &shares, &err), EV_OK);
    char *text = NULL;
    assert_int_equal(shares_tell(shares, genome, "three\nseven\n", &text, &err), EV_OK);
    assert_string_equal(text,
                        "three: 100 % of the gain\nseven: 100 % of the gain\n"
                        "sets the macro TILE to 4\n"
                        "without any edit the macros bring 0 % of the gain\n"
                        "edits 1 and 2 depend on each other: without both 100 % of the gain is "
                        "lost, one by one 200 %\n");
    free(text);
    json_decref(shares);
    json_decref(genome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_blacklists_nothing),
        cmocka_unit_test(test_filtered_again_is_a_duplicate),
        cmocka_unit_test(test_what_runs_alike_is_recalled),
        cmocka_unit_test(test_what_gained_nothing_is_estimated),
        cmocka_unit_test(test_near_sketches_are_not_timed),
        cmocka_unit_test(test_audits_of_estimates),
        cmocka_unit_test(test_no_crossover_is_known),
        cmocka_unit_test(test_bandit_shares),
        cmocka_unit_test(test_bandit_unlearns_what_it_expects),
        cmocka_unit_test(test_odds_are_probabilities),
        cmocka_unit_test(test_bandit_draws_its_shares),
        cmocka_unit_test(test_bandit_skips),
        cmocka_unit_test(test_ranks_are_those_of_brute_force),
        cmocka_unit_test(test_crowding_is_the_gap_between_neighbours),
        cmocka_unit_test(test_front_is_that_of_brute_force),
        cmocka_unit_test(test_full_front_drops_the_slowest),
        cmocka_unit_test(test_population_keeps_its_best),
        cmocka_unit_test(test_population_keeps_few_equals),
        cmocka_unit_test(test_known_finds_what_was_added),
        cmocka_unit_test(test_minimise_keeps_what_pays),
        cmocka_unit_test(test_minimise_stays_in_its_budget),
        cmocka_unit_test(test_shares_tell_what_depends),
        cmocka_unit_test(test_shares_of_a_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
