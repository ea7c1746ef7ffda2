/* A search that is fed by hand: what the filter stops, what is recalled, what is estimated. */
#include "tuner/search/draw.h"
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

/* ---- the filter in the search ---- */

typedef struct scripted {
    search *s;
    const ir_genome *genome;
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

static void draw_next(scripted *x) {
    recipe r;
    assert_int_equal(search_draw(x->s, false, &r, NULL), EV_OK);
    x->reach = r.reach.built;
    recipe_free(&r);
}

static void put_hash(child_result *r, search_hash by, const char *hash) {
    snprintf(r->hashes[by], sizeof r->hashes[by], "%s", hash);
}

static search_verdict commit(scripted *x, const char *hash, gate stopped, double ns, double small,
                             bool filtered) {
    child_result r = {.genome = x->genome,
                      .operators = "delete",
                      .outcome = {.origin = filtered ? SEARCH_FILTERED : SEARCH_TIMED,
                                  .stopped = stopped,
                                  .ns = ns,
                                  .small = {.built = small}}};
    search_verdict v;
    put_hash(&r, SEARCH_BY_IR, hash);
    put_hash(&r, SEARCH_BY_PTX, hash);
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    return v;
}

static void name_genome(scripted *x, int number) {
    ir_genome_free(x->genome);
    x->genome = genome_from(json_pack("{s:s,s:[{s:s,s:s,s:i}]}", "start", "textbook", "edits",
                                      "kind", "delete", "at", "i0", "option", number));
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
        draw_next(&x);
        bool opens = i < 2; /* the start, and with the light pipeline */
        assert_true(!opens || x.reach == 0);
        bool slow = !opens && i % 2 == 0, stops = slow && x.reach > 0 && x.reach < 150;
        assert_true(x.reach == 0 || x.reach > 100);
        search_verdict v = commit(&x, hash, stops ? GATE_TIMED : GATE_NONE, stops ? 0 : 1000,
                                  slow ? 150 : 100, stops);
        assert_int_equal(v.outcome.origin, stops ? SEARCH_FILTERED : SEARCH_TIMED);
        assert_true(!stops || v.audits.filter == AUDIT_NONE);
        filtered += v.outcome.origin == SEARCH_FILTERED;
        probed += v.audits.filter != AUDIT_NONE;
        regretted += v.audits.filter == AUDIT_REFUTED;
        uint64_t same_as = 0;
        assert_int_equal(search_knows(x.s, x.genome, SEARCH_BY_GENOME, "", &same_as), !stops);
        assert_int_equal(search_knows(x.s, x.genome, SEARCH_BY_PTX, hash, &same_as), !stops);
    }
    assert_true(filtered > 120 && probed > 1 && probed < 25);
    assert_int_equal(regretted, probed); /* all were as fast as their parent */
    search_free(x.s);
    ir_genome_free(x.genome);
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
        draw_next(&x);
        first = search_committed(x.s);
        bool stops = i >= 2 && x.reach > 0;
        assert_false(is_over(&x, &same_as));
        search_verdict v = commit(&x, "", stops ? GATE_TIMED : GATE_NONE, stops ? 0 : 1000,
                                  stops ? 150 : 100, stops);
        assert_int_equal(v.outcome.origin, stops ? SEARCH_FILTERED : SEARCH_TIMED);
    }
    for (;; again++) {
        draw_next(&x);
        if (x.reach == 0)
            break;
        assert_true(is_over(&x, &same_as) && same_as == first);
        search_verdict v = commit(&x, "", GATE_TIMED, 0, 150, true);
        assert_true(v.outcome.origin == SEARCH_DUPLICATE && v.same_as == first);
        assert_int_equal(v.by, SEARCH_BY_GENOME);
        assert_false(search_knows(x.s, x.genome, SEARCH_BY_GENOME, "", &same_as));
    }
    assert_false(is_over(&x, &same_as));
    search_verdict v = commit(&x, "", GATE_NONE, 900, 150, false);
    assert_true(v.outcome.origin == SEARCH_TIMED && v.audits.filter == AUDIT_REFUTED && v.is_best);
    draw_next(&x); /* from now on it is known as what it is */
    assert_true(is_over(&x, &same_as) && same_as > first);
    assert_true(again > 0);
    commit(&x, "", GATE_NONE, 900, 150, false);
    name_genome(&x, 1000);
    unsigned reached = 0, missed = 0;
    for (bool was = false; missed < 1 || reached < 1; was = true) {
        draw_next(&x);
        bool out = x.reach > 0 && x.reach < 140;
        assert_int_equal(is_over(&x, &same_as), was && out);
        v = commit(&x, "", GATE_TIMED, 0, 140, true);
        assert_true((v.outcome.origin == SEARCH_DUPLICATE) == (was && out));
        missed += was && out;
        reached += was && x.reach > 140;
    }
    search_free(x.s);
    ir_genome_free(x.genome);
}

/* ---- children that run alike ---- */

/* As child `i` with its own code; the likeness of its sketch. */
static search_verdict commit_run(scripted *x, int i, const char *ran, gate stopped, double ns) {
    char code[24];
    snprintf(code, sizeof code, "code %d", i);
    name_genome(x, i);
    draw_next(x);
    child_result r = {
        .genome = x->genome, .operators = "delete", .outcome = {.stopped = stopped, .ns = ns}};
    search_verdict v;
    put_hash(&r, SEARCH_BY_IR, code);
    put_hash(&r, SEARCH_BY_SKETCH, code);
    put_hash(&r, SEARCH_SKETCH_RAN, ran);
    put_hash(&r, SEARCH_BY_PTX, code);
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
    assert_int_equal(commit_run(&x, 0, "start", GATE_NONE, 1000).outcome.origin, SEARCH_TIMED);
    assert_int_equal(commit_run(&x, 1, "wrong", GATE_TIMED, 0).outcome.origin, SEARCH_TIMED);
    assert_int_equal(commit_run(&x, 2, "fast", GATE_NONE, 900).outcome.origin, SEARCH_TIMED);
    search_verdict v = commit_run(&x, 3, "wrong", GATE_NONE, 950); /* that one did not pass */
    assert_true(v.outcome.origin == SEARCH_TIMED && v.outcome.ns == 950);
    v = commit_run(&x, 4, "fast", GATE_NONE, 700); /* measured before that was known */
    assert_true(v.outcome.origin == SEARCH_MEMOISED && v.by == SEARCH_SKETCH_RAN && v.same_as == 2);
    assert_true(v.outcome.ns == 900 && !v.is_best && v.outcome.stopped == GATE_NONE);
    v = commit_run(&x, 5, "fast", GATE_TIMED, 0); /* and stopped before it was */
    assert_int_equal(v.outcome.origin, SEARCH_MEMOISED);
    assert_true(search_knows(x.s, x.genome, SEARCH_BY_IR, "code 5", &same_as) && same_as == 5);
    assert_false(search_knows(x.s, x.genome, SEARCH_BY_PTX, "code 5", &same_as));
    for (int i = 6; i < 63; i++)
        assert_int_equal(commit_run(&x, i, "start", GATE_NONE, 1000).outcome.origin,
                         SEARCH_MEMOISED);
    v = commit_run(&x, 63, "start", GATE_NONE, 1000.5);
    assert_true(v.outcome.origin == SEARCH_TIMED && v.audits.memo == AUDIT_CONFIRMED &&
                v.outcome.ns == 1000.5);
    for (int i = 64; i < 127; i++)
        assert_int_equal(commit_run(&x, i, "fast", GATE_NONE, 900).audits.memo, AUDIT_NONE);
    v = commit_run(&x, 127, "fast", GATE_NONE, 600);
    assert_true(v.outcome.origin == SEARCH_TIMED && v.audits.memo == AUDIT_REFUTED && v.is_best);
    for (int i = 128; i < 191; i++)
        (void)commit_run(&x, i, "fast", GATE_NONE, 900);
    v = commit_run(&x, 2, "fast", GATE_NONE, 900); /* the 192nd, and the genome of child 2 */
    assert_true(v.outcome.origin == SEARCH_DUPLICATE && v.audits.memo == AUDIT_NONE);
    search_free(x.s);
    ir_genome_free(x.genome);
}

/* ---- children that gained nothing by their sketch ---- */

/* What the next child's worker may leave unbuilt: so slow a sketch; 0: nothing. `near`: of the
 * small cases; what is near to that need not be timed, either. */
static double draw_limits(scripted *x, double *near) {
    recipe r;
    assert_int_equal(search_draw(x->s, false, &r, NULL), EV_OK);
    assert_true(r.estimate.times);
    *near = r.estimate.near;
    double due = r.estimate.due;
    recipe_free(&r);
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
    child_result r = {.genome = x->genome,
                      .operators = "delete",
                      .outcome = {.origin = ns > 0 ? SEARCH_TIMED : SEARCH_ESTIMATED,
                                  .stopped = GATE_NONE,
                                  .ns = ns > 0 ? ns : reckoned,
                                  .error = error,
                                  .small = small}};
    search_verdict v;
    put_hash(&r, SEARCH_BY_IR, code);
    put_hash(&r, SEARCH_BY_PTX, ns > 0 ? code : "");
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    assert_int_equal(v.outcome.origin, r.outcome.origin);
    return v;
}

static bool archive_holds(const search *s, uint64_t child, bool untimed) {
    const search_best *best = NULL;
    size_t count = search_archive(s, SEARCH_ANY, SEARCH_PLAIN, &best);
    for (size_t i = 0; i < count; i++) {
        if (best[i].child == child)
            return best[i].untimed == untimed;
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
        assert_true(v.outcome.ns <= 1000.0001 && v.outcome.ns >= 999 &&
                    v.outcome.stopped == GATE_NONE);
        assert_int_equal(v.audits.estimate, ESTIMATE_NOT_AUDITED);
        assert_true(archive_holds(x.s, (uint64_t)i, true));
    }
    assert_true(fabs(draw_limit(&x) - 1998) < 1e-9);
    assert_true(commit_sketched(&x, 12, 1800, 900).is_best); /* built, as it should */
    assert_true(archive_holds(x.s, 12, false));
    unsigned other = 0;
    for (int i = 13; i < 63; i++) {
        double limit = draw_limit(&x);
        other += fabs(limit - 0.999 * 1800) < 1e-9;
        search_verdict v = commit_sketched(&x, i, 2200, 0); /* slower than any parent */
        assert_true(limit > 0 && v.outcome.ns > 1050 && v.outcome.ns < 1230 && !v.is_best);
    }
    assert_true(other > 10);
    search_free(x.s);
    ir_genome_free(x.genome);
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
        assert_true(fabs(v.outcome.ns - 1001) < 1e-6 ||
                    (near > 0 && fabs(v.outcome.ns - 1000) < 1e-6));
        from_built += near > 0;
        from_near += near == 0;
    }
    assert_true(from_built > 5 && from_near > 5);
    search_free(x.s);
    ir_genome_free(x.genome);
}

/* One in 64 is built all the same, and says what its estimate was worth. */
static void test_audits_of_estimates(void **state) {
    (void)state;
    static const double ns[] = {1000, 950, 1100}; /* the estimate is 1000 */
    static const estimate_audit found[] = {ESTIMATE_MET, ESTIMATE_BEATEN, ESTIMATE_MISSED};
    for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++) {
        static const task_start textbook = {.name = "textbook"};
        search_start start;
        scripted x = begin_scripted(&textbook, &start);
        for (int i = 0; i < 63; i++) {
            double limit = draw_limit(&x);
            assert_true(i < 2 ? limit == 0 : limit > 0);
            search_verdict v = commit_sketched(&x, i, 2000, i < 2 ? 1000 : 0);
            assert_int_equal(v.audits.estimate, ESTIMATE_NOT_AUDITED);
        }
        assert_true(draw_limit(&x) == 0);
        search_verdict v = commit_sketched(&x, 63, 2000, ns[k]);
        assert_int_equal(v.audits.memo, AUDIT_NONE);
        assert_int_equal(v.audits.estimate, found[k]);
        search_free(x.s);
        ir_genome_free(x.genome);
    }
}

/* ---- origins ---- */

static search_origin origin_of(const score *s) {
    child_result r = {0};
    child_result_take_score(&r, s);
    assert_true(r.outcome.stopped == s->stopped && strcmp(r.reason, s->reason) == 0);
    assert_int_equal(r.screen_overruled, s->sketch == SKETCH_IGNORED);
    return r.outcome.origin;
}

/* Every score has one origin, and audits of fast code that was wrong say whether it was. */
static void test_origins_of_scores(void **state) {
    (void)state;
    const score plain = {.stopped = GATE_NONE};
    const score memoised = {.stopped = GATE_NONE, .recalled = true};
    const score filtered = {.stopped = GATE_TIMED, .filtered = true};
    const score screened = {.stopped = GATE_SAFE, .sketch = SKETCH_STOPPED};
    const score ignored = {.stopped = GATE_SAFE, .sketch = SKETCH_IGNORED};
    const score estimated = {.stopped = GATE_NONE, .estimated = true};
    assert_int_equal(origin_of(&plain), SEARCH_TIMED);
    assert_int_equal(origin_of(&memoised), SEARCH_MEMOISED);
    assert_int_equal(origin_of(&filtered), SEARCH_FILTERED);
    assert_int_equal(origin_of(&screened), SEARCH_SCREENED);
    assert_int_equal(origin_of(&ignored), SEARCH_TIMED);
    assert_int_equal(origin_of(&estimated), SEARCH_ESTIMATED);
    for (int i = SEARCH_TIMED; i <= SEARCH_SCREENED; i++)
        assert_int_equal(search_is_known((search_origin)i),
                         i == SEARCH_DUPLICATE || i == SEARCH_MEMOISED);
}

static search_verdict commit_overruled(scripted *x, int i, gate stopped, search_origin origin) {
    name_genome(x, i);
    draw_next(x);
    child_result r = {
        .genome = x->genome,
        .operators = "delete",
        .outcome = {.origin = origin, .stopped = stopped, .ns = stopped == GATE_NONE ? 1000 : 0},
        .screen_overruled = origin == SEARCH_TIMED};
    search_verdict v;
    assert_int_equal(search_commit(x->s, &r, &v, NULL), EV_OK);
    return v;
}

static void test_audits_of_fast_code(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    uint64_t same_as = 0;
    assert_int_equal(commit_overruled(&x, 0, GATE_NONE, SEARCH_TIMED).audits.screen, AUDIT_REFUTED);
    assert_int_equal(commit_overruled(&x, 1, GATE_SAFE, SEARCH_TIMED).audits.screen,
                     AUDIT_CONFIRMED);
    search_verdict v = commit_overruled(&x, 2, GATE_SAFE, SEARCH_SCREENED);
    assert_true(v.outcome.origin == SEARCH_SCREENED && v.audits.screen == AUDIT_NONE);
    assert_false(search_knows(x.s, x.genome, SEARCH_BY_GENOME, "", &same_as));
    v = commit_overruled(&x, 1, GATE_SAFE, SEARCH_TIMED); /* as child 1: nothing is learned anew */
    assert_true(v.outcome.origin == SEARCH_DUPLICATE && v.audits.screen == AUDIT_NONE &&
                v.same_as == 1);
    search_free(x.s);
    ir_genome_free(x.genome);
}

/* A worker that drops a child as known has to be right. */
static void test_what_is_dropped_has_to_be_known(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    static const search_origin origins[] = {SEARCH_DUPLICATE, SEARCH_MEMOISED};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        search_start start;
        scripted x = begin_scripted(&textbook, &start);
        name_genome(&x, 0);
        draw_next(&x);
        child_result r = {.genome = x.genome,
                          .outcome = {.origin = origins[i], .stopped = GATE_NONE}};
        search_verdict v;
        assert_int_equal(search_commit(x.s, &r, &v, NULL), EV_INFRA);
        search_free(x.s);
        ir_genome_free(x.genome);
    }
}

/* One edit of six alone; what is crossed becomes known too. */
static const ir_genome *one_of_six(int number) {
    char at[8];
    snprintf(at, sizeof at, "i%d", number % 6);
    return genome_from(
        json_pack("{s:s,s:[{s:s,s:s}]}", "start", "textbook", "edits", "kind", "delete", "at", at));
}

static void test_no_crossover_is_known(void **state) {
    (void)state;
    static const task_start textbook = {.name = "textbook"};
    search_start start;
    scripted x = begin_scripted(&textbook, &start);
    unsigned crossed = 0;
    for (int i = 0; i < 150; i++) {
        recipe r;
        assert_int_equal(search_draw(x.s, false, &r, NULL), EV_OK);
        const ir_genome *child = r.parents[0];
        bool is_crossed = r.made == RECIPE_CROSSED;
        uint64_t same_as = 0;
        assert_true(!is_crossed || !search_knows(x.s, child, SEARCH_BY_GENOME, "", &same_as));
        crossed += is_crossed;
        ir_genome_free(x.genome);
        x.genome = is_crossed ? ir_genome_ref(child) : one_of_six(i);
        recipe_free(&r);
        char hash[24];
        snprintf(hash, sizeof hash, "code %d", is_crossed ? i : 1000 + i % 6);
        (void)commit(&x, hash, GATE_NONE, 1000 + i % 37, 100, false);
    }
    assert_in_range(crossed, 8, 63); /* there are no more than 64 sets of six */
    search_free(x.s);
    ir_genome_free(x.genome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_blacklists_nothing),
        cmocka_unit_test(test_filtered_again_is_a_duplicate),
        cmocka_unit_test(test_what_runs_alike_is_recalled),
        cmocka_unit_test(test_what_gained_nothing_is_estimated),
        cmocka_unit_test(test_near_sketches_are_not_timed),
        cmocka_unit_test(test_audits_of_estimates),
        cmocka_unit_test(test_origins_of_scores),
        cmocka_unit_test(test_audits_of_fast_code),
        cmocka_unit_test(test_what_is_dropped_has_to_be_known),
        cmocka_unit_test(test_no_crossover_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
