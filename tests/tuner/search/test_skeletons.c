/* The pool of skeletons of a search that is fed by hand: structural edits are drawn on skeletons
 * alone, and the share of such children follows their gains. */
#include "tests/tuner/search/skeleton_search.h"

/* How often a structural edit is the first that is drawn on the one skeleton of the pool, while all
 * children find no place (`misses`), or are wrong. */
static int draws_where(bool misses) {
    fed f;
    int draws = 0;
    open_search(&f, 30);
    for (int i = 0; i < 400; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        unsigned arm = r.step_count > 0 ? r.steps[0].arms[0] : 0;
        draws += i >= 200 && arm >= IR_EDIT_LOCAL_COUNT && arm < IR_EDIT_COUNT;
        child_result result = {.outcome = {.origin = SEARCH_TIMED, .stopped = GATE_VERIFY}};
        (void)snprintf(result.operators, sizeof result.operators, "%s",
                       misses || r.step_count == 0 ? "" : arm_name(arm));
        recipe_free(&r);
        search_verdict v;
        assert_int_equal(search_commit(f.s, &result, &v, NULL), EV_OK);
    }
    search_free(f.s);
    return draws;
}

static void test_what_has_no_place_is_seldom_drawn_again(void **state) {
    (void)state;
    int missed = draws_where(true), wrong = draws_where(false);
    assert_true(missed > 0 && wrong > 2 * missed);
}

static void test_without_places_none_is_drawn(void **state) {
    (void)state;
    fed f;
    open_search(&f, 0);
    for (int i = 0; i < 300; i++)
        (void)feed(&f, genome_of(0, i), "sink", 1000 + i);
    assert_int_equal(f.structure, 0);
    search_free(f.s);
}

static void test_structure_is_drawn_on_skeletons(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    for (int i = 0; i < 400; i++)
        (void)feed(&f, genome_of(i % 3 == 0 ? 2 + i : 0, i % 3 == 1 ? -1 : i), "sink", 1000 + i);
    assert_true(f.structure > 40 && f.local > 40);
    search_free(f.s);
}

/* Children of one kind always improve on the best; the other kind never does. */
static double share_where_gains(bool structure_gains) {
    fed f;
    double best = 1000;
    open_search(&f, 30);
    bool structural = false;
    for (int i = 0; i < 600; i++) {
        /* the next child's kind is not known before it is drawn: what the last one was decides */
        double ns = structural == structure_gains ? best * 0.999 : best * 1.5;
        best = ns < best ? ns : best;
        structural = feed(&f, genome_of(0, i), "sink", ns);
    }
    double share = (double)f.structure / (double)(f.structure + f.local);
    search_free(f.s);
    return share;
}

static void test_both_kinds_keep_a_share(void **state) {
    (void)state;
    double a = share_where_gains(true), b = share_where_gains(false);
    assert_true(a > 0.1 && a < 0.9);
    assert_true(b > 0.1 && b < 0.9);
}

/* ---- the pool ---- */

/* A coarsening, and blocks in another order behind it: that makes no place for more. */
static ir_genome *finished_of(int option) {
    return genome_from(json_pack("{s:s,s:[{s:s,s:s,s:i,s:s},{s:s,s:i}]}", "start", "textbook",
                                 "edits", "kind", "coarsen", "anchor", "x", "option", 4, "form",
                                 "strided", "kind", "relabel-blocks", "option", option));
}

/* Thirty fast skeletons of one outline leave a place to a slower one of another. */
static void test_an_outline_has_a_share_of_the_pool(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    for (int i = 0; i < 30; i++)
        (void)feed(&f, skeleton_of(false, 2 + i, 0), "coarsen-threads", 500 + 10 * i);
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 950);
    assert_true(count_parents(&f, true, 1) > 0);
    search_free(f.s);
}

static ir_genome *at_tile(int tile, int option) {
    ir_genome *genome = genome_of(option, -1);
    assert_int_equal(ir_genome_set_macro(genome, "TILE", tile, NULL), EV_OK);
    return genome;
}

/* Twelve fast skeletons at one setting of the macros leave a place to a slower one at another. */
static void test_a_setting_has_a_share_of_the_pool(void **state) {
    (void)state;
    static const int64_t values[] = {16, 32, 64};
    static const task_macro tile = {
        .name = "TILE", .values = values, .value_count = 3, .otherwise = 16};
    static const task_start tiled = {.name = "textbook", .macros = &tile, .macro_count = 1};
    size_t count = 0;
    fed f = {.start = {.start = &tiled, .sites = {[IR_EDIT_SINK] = 9, [IR_EDIT_COARSEN] = 30}}};
    begin_with(&f);
    for (int i = 0; i < 4; i++) /* the start, with the light pipeline, and other values */
        (void)feed(&f, genome_of(0, -1), "start", 1000);
    for (int i = 0; i < 12; i++)
        (void)feed(&f, at_tile(32, 2 + i), "relabel-blocks", 500 + 10 * i);
    (void)feed(&f, at_tile(64, 2), "relabel-blocks", 900);
    for (int i = 0; i < 600; i++) {
        recipe r;
        ir_genome *other = at_tile(64, 2);
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        count += is_structural(&r) && ir_genome_same_base(r.parents[0], other);
        ir_genome_free(other);
        recipe_free(&r);
        fail_child(&f);
    }
    assert_true(count > 0);
    search_free(f.s);
}

/* An edit that changes nothing makes no new skeleton; one that gains does, and so does a loss. */
static void test_an_edit_that_does_nothing_makes_no_skeleton(void **state) {
    (void)state;
    static const double times[] = {599, 601, 500, 700};
    for (size_t i = 0; i < 4; i++) {
        fed f;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 600);
        (void)feed(&f, skeleton_of(true, 4, 0), "coarsen-threads", times[i]);
        bool joins = count_parents(&f, true, 2) > 0;
        assert_true(joins == (i >= 2));
        search_free(f.s);
    }
}

/* An edit that makes no place for others has to gain. */
static void test_an_edit_that_only_finishes_has_to_gain(void **state) {
    (void)state;
    static const double times[] = {599, 700, 500};
    for (size_t i = 0; i < 3; i++) {
        fed f;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 600);
        (void)feed(&f, finished_of(4), "relabel-blocks", times[i]);
        bool joins = count_parents(&f, true, 2) > 0;
        assert_true(joins == (i == 2));
        search_free(f.s);
    }
}

/* A slow skeleton with one edit keeps its place among many fast ones with two, and the start its
 * own. */
static void test_each_depth_has_a_share_of_the_pool(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 900);
    for (int i = 0; i < 60; i++)
        (void)feed(&f, skeleton_of(i % 2 == 0, 2 + i, i % 2 == 0 ? 0 : 80 + i), "coarsen-threads",
                   100 + 5 * i);
    assert_true(count_parents(&f, true, 1) > 0);
    assert_true(count_parents(&f, false, 0) > 0);
    search_free(f.s);
}

/* A skeleton with a part of another one's edits that is as fast takes its place. */
static void test_a_part_that_is_as_fast_replaces_the_whole(void **state) {
    (void)state;
    static const double times[] = {601, 590, 700};
    for (size_t i = 0; i < 3; i++) {
        fed f;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(true, 4, 0), "coarsen-threads", 600);
        (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", times[i]);
        bool stays = count_parents(&f, true, 2) > 0;
        assert_true(stays == (i == 2));
        assert_true(count_parents(&f, true, 1) > 0);
        search_free(f.s);
    }
}

/* A newcomer that finds no place takes none from a skeleton that has its edits and more. */
static void test_what_does_not_join_replaces_nothing(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    for (int i = 0; i < 4; i++) /* the share of an outline */
        (void)feed(&f, skeleton_of(false, 2 + i, 0), "coarsen-threads", 100 + 10 * i);
    (void)feed(&f, skeleton_of(true, 9, 0), "coarsen-threads", 900);
    (void)feed(&f, skeleton_of(false, 9, 0), "coarsen-threads", 905);
    assert_true(count_parents(&f, true, 2) > 0);
    search_free(f.s);
}

/* How often a genome (taken over) is the parent of one of the next children, which all fail. */
static size_t count_parent(fed *f, ir_genome *genome) {
    size_t count = 0;
    for (int i = 0; i < 400; i++) {
        recipe r;
        assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
        count += is_structural(&r) && ir_genome_same_prefix(r.parents[0], genome);
        recipe_free(&r);
        fail_child(f);
    }
    ir_genome_free(genome);
    return count;
}

/* A newcomer that takes the place of a skeleton with its edits and more takes no other one's. */
static void test_who_finds_a_place_replaces_no_other(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(false, 3, 0), "coarsen-threads", 100);
    (void)feed(&f, skeleton_of(false, 5, 0), "coarsen-threads", 105);
    (void)feed(&f, skeleton_of(false, 2, 7), "coarsen-threads", 120);
    (void)feed(&f, skeleton_of(false, 8, 0), "coarsen-threads", 130); /* the share of an outline */
    (void)feed(&f, skeleton_of(false, 2, 0), "coarsen-threads", 118);
    assert_int_equal(count_parent(&f, skeleton_of(false, 2, 7)), 0);
    assert_true(count_parent(&f, skeleton_of(false, 8, 0)) > 0);
    assert_true(count_parent(&f, skeleton_of(false, 2, 0)) > 0);
    search_free(f.s);
}

/* A skeleton of the same places that takes the same time joins no pool: its options do nothing. */
static void test_a_twin_makes_no_skeleton(void **state) {
    (void)state;
    static const double times[] = {600.05, 601, 590};
    for (size_t i = 0; i < 3; i++) {
        fed f;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(false, 2, 0), "coarsen-threads", 600);
        (void)feed(&f, skeleton_of(false, 4, 0), "coarsen-threads", times[i]);
        assert_true(count_parent(&f, skeleton_of(false, 2, 0)) > 0);
        assert_true((count_parent(&f, skeleton_of(false, 4, 0)) > 0) == (i > 0));
        search_free(f.s);
    }
}

/* ---- places, and the sweep ---- */

/* Of two skeletons that divide the work into as many parts, in one edit or in two, one stays. */
static void test_an_extent_has_one_place(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(false, 8, 0), "coarsen-threads", 500);
    (void)feed(&f, skeleton_of(false, 2, 4), "coarsen-threads", 510);
    assert_int_equal(count_parents(&f, false, 2), 0);
    search_free(f.s);
}

/* Half of the children that are drawn before the first one is committed have structure. */
static void test_the_sweep_begins_before_any_child_is_known(void **state) {
    (void)state;
    fed f;
    size_t structural = 0;
    recipe r;
    begin(&f, 30);
    for (int i = 0; i < 16; i++) { /* so many are drawn ahead */
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        structural += i >= 2 && is_structural(&r) && r.steps[0].arms[0] == IR_EDIT_COARSEN;
        recipe_free(&r);
    }
    assert_true(structural >= 3 && structural <= 11);
    search_free(f.s);
}

/* Rows and columns of threads change no time, and are what edits of rows need. */
static void test_a_skeleton_of_other_places_stays(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    ir_genome *rows =
        genome_from(json_pack("{s:s,s:[{s:s,s:s,s:i}]}", "start", "textbook", "edits", "kind",
                              "delinearize", "anchor", "x by width", "option", 32));
    (void)feed(&f, rows, "delinearize", 1000);
    assert_true(count_parents(&f, false, 1) > 0);
    search_free(f.s);
}

/* All kinds of edits that open come early, however many places each has. */
static void test_edits_that_open_are_swept(void **state) {
    (void)state;
    fed f = {.start = {.start = &textbook,
                       .sites = {[IR_EDIT_SINK] = 9,
                                 [IR_EDIT_UNROLL_TURNS] = 90,
                                 [IR_EDIT_COARSEN] = 900,
                                 [IR_EDIT_COARSEN_THREADS] = 90,
                                 [IR_EDIT_STAGE] = 1}}};
    size_t drawn[ARM_COUNT] = {0};
    begin_with(&f);
    feed_starts(&f);
    for (int i = 0; i < 1500; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        if (r.step_count == 1 && r.parent_count == 1 && ir_genome_prefix_count(r.parents[0]) == 0)
            drawn[r.steps[0].arms[0]]++;
        recipe_free(&r);
        fail_child(&f);
    }
    assert_true(drawn[IR_EDIT_STAGE] >= 3 && drawn[IR_EDIT_COARSEN_THREADS] >= 3);
    assert_true(drawn[IR_EDIT_COARSEN] <
                4 * (drawn[IR_EDIT_STAGE] + drawn[IR_EDIT_COARSEN_THREADS])); /* 10 by places */
    search_free(f.s);
}

/* ---- arms without a place ---- */

/* A structural child takes the first arm that is no `stage`, which has no place; none gains. */
static void feed_without_stage(fed *f, size_t first_arms[ARM_COUNT]) {
    recipe r;
    assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
    static int option = 2;
    child_result result = {
        .outcome = {.origin = SEARCH_TIMED, .stopped = GATE_NONE, .ns = 1e5 + option}};
    for (unsigned i = 0; i < r.step_count && is_structural(&r); i++) {
        const recipe_step *at = &r.steps[i];
        unsigned k = at->arms[0] == IR_EDIT_STAGE && at->count > 1;
        first_arms[at->arms[0]]++;
        if (at->arms[k] == IR_EDIT_STAGE)
            continue;
        size_t used = strlen(result.operators);
        (void)snprintf(result.operators + used, sizeof result.operators - used, "%s%s",
                       used > 0 ? "," : "", arm_name(at->arms[k]));
    }
    if (result.operators[0])
        result.genome = genome_of(option++, -1);
    else
        result.outcome.stopped = GATE_VERIFY;
    recipe_free(&r);
    search_verdict v;
    assert_int_equal(search_commit(f->s, &result, &v, NULL), EV_OK);
    ir_genome_free((ir_genome *)result.genome);
}

/* An arm that never has a place must not keep the hope of one that was never tried. */
static void test_an_arm_without_a_place_is_tried_less(void **state) {
    (void)state;
    fed f;
    size_t first_arms[ARM_COUNT] = {0};
    begin(&f, 30);
    search_free(f.s);
    f.start.sites[IR_EDIT_STAGE] = 30;
    const search_settings settings = {
        .starts = &f.start, .start_count = 1, .seed = 5, .evaluations = 2000};
    assert_int_equal(search_new(&settings, &f.s, NULL), EV_OK);
    for (int i = 0; i < 2; i++)
        (void)feed(&f, genome_of(0, -1), "start", 1000);
    for (int i = 0; i < 300; i++)
        feed_without_stage(&f, first_arms);
    memset(first_arms, 0, sizeof first_arms);
    for (int i = 0; i < 400; i++)
        feed_without_stage(&f, first_arms);
    assert_true(first_arms[IR_EDIT_COARSEN] > 20);
    assert_true(first_arms[IR_EDIT_STAGE] < 2 * first_arms[IR_EDIT_COARSEN]);
    search_free(f.s);
}

/* ---- estimates ---- */

/* A child whose fast code takes `whole` at full shape. */
static void feed_sketched(fed *f, ir_genome *genome, search_origin origin, double ns,
                          double whole) {
    static int number;
    recipe r;
    assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
    recipe_free(&r);
    child_result result = {.genome = genome,
                           .outcome = {.origin = origin,
                                       .stopped = GATE_NONE,
                                       .ns = ns,
                                       .small = {.sketch = 10, .built = 10, .whole = whole}}};
    (void)snprintf(result.operators, sizeof result.operators, "coarsen");
    (void)snprintf(result.hashes[SEARCH_BY_IR], sizeof result.hashes[0], "sketched %d", number++);
    search_verdict v;
    assert_int_equal(search_commit(f->s, &result, &v, NULL), EV_OK);
    ir_genome_free(genome);
}

/* LLVM builds a skeleton unless its fast code takes twice as long at full shape; the small cases
 * decide nothing. */
static void test_a_skeleton_without_a_gain_is_estimated(void **state) {
    (void)state;
    fed f;
    size_t structural = 0, limited = 0;
    open_search(&f, 30);
    feed_sketched(&f, skeleton_of(true, 0, 0), SEARCH_TIMED, 600, 660);
    for (int i = 0; i < 300; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        bool is_child = is_structural(&r) && ir_genome_prefix_count(r.parents[0]) == 1;
        structural += is_child;
        limited += is_child && r.estimate.due > 660 && r.estimate.due < 2 * 660;
        assert_true(!is_structural(&r) || r.estimate.near == 0);
        recipe_free(&r);
        fail_child(&f);
    }
    assert_true(structural > 20 && limited > structural * 9 / 10); /* but for audits */
    search_free(f.s);
}

/* One that was estimated can be a parent, as the slower ones that were timed, but no winner. */
static void test_an_estimated_skeleton_joins_the_pool(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    ir_genome *genome = skeleton_of(true, 4, 0);
    bool structural = false;
    for (int i = 0; i < 200 && !structural; i++) { /* the child must be one of the pool */
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        structural = is_structural(&r);
        recipe_free(&r);
        child_result result = {.genome = structural ? genome : NULL,
                               .outcome = {.origin = structural ? SEARCH_ESTIMATED : SEARCH_TIMED,
                                           .stopped = structural ? GATE_NONE : GATE_VERIFY,
                                           .ns = 1100}};
        search_verdict v;
        assert_int_equal(search_commit(f.s, &result, &v, NULL), EV_OK);
    }
    assert_true(structural);
    ir_genome_free(genome);
    const search_best *best = NULL;
    assert_int_equal(search_archive(f.s, SEARCH_PRESERVING, SEARCH_STRUCTURED, &best), 0);
    assert_true(count_parents(&f, true, 2) > 0);
    search_free(f.s);
}

/* ---- the light pipeline ---- */

static ir_genome *light(void) {
    ir_genome *genome = genome_of(0, -1);
    assert_true(ir_genome_make_light(genome));
    return genome;
}

/* Whether the next structural children have the plain start as a parent. */
static bool grows_from_plain(fed *f) {
    size_t plain = 0, structural = 0;
    for (int i = 0; i < 400; i++) {
        recipe r;
        assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
        structural += is_structural(&r);
        plain += is_structural(&r) && ir_genome_edit_count(r.parents[0]) == 0;
        recipe_free(&r);
        fail_child(f);
    }
    assert_true(structural > 10);
    return plain > 0;
}

/* Skeletons grow by the light pipeline, unless that makes the start slower. */
static void test_skeletons_grow_by_the_light_pipeline(void **state) {
    (void)state;
    for (int slower = 0; slower < 2; slower++) {
        fed f;
        begin(&f, 30);
        (void)feed(&f, genome_of(0, -1), "start", 1000);
        (void)feed(&f, light(), "start", slower ? 1100 : 1000);
        assert_true(grows_from_plain(&f) == (slower == 1));
        search_free(f.s);
    }
}

/* ---- the archives ---- */

/* Fast variants of one skeleton push out neither other skeletons nor variants without structure. */
static void test_archives_are_shared_out(void **state) {
    (void)state;
    fed f;
    size_t own = 0, others = 0;
    const search_best *best = NULL;
    open_search(&f, 30);
    for (int i = 0; i < 300; i++) {
        (void)feed(&f, genome_of(2, i), "sink", 100 + i); /* the fastest, all of one skeleton */
        (void)feed(&f, genome_of(3 + i % 20, i), "sink", 500 + i); /* twenty others */
        (void)feed(&f, genome_of(0, i), "sink", 900 + i);
    }
    size_t count = search_archive(f.s, SEARCH_PRESERVING, SEARCH_STRUCTURED, &best);
    for (size_t i = 0; i < count; i++) {
        ir_genome *skeleton = genome_of(2, -1);
        bool is_own = ir_genome_same_base(best[i].genome, skeleton);
        own += is_own;
        others += !is_own;
        ir_genome_free(skeleton);
    }
    assert_true(own > 0 && own <= 8 && others > 40 && best[0].ns == 100);
    assert_int_equal(search_archive(f.s, SEARCH_PRESERVING, SEARCH_PLAIN, &best), 32);
    assert_true(best[0].ns == 900);
    search_free(f.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_places_none_is_drawn),
        cmocka_unit_test(test_what_has_no_place_is_seldom_drawn_again),
        cmocka_unit_test(test_structure_is_drawn_on_skeletons),
        cmocka_unit_test(test_both_kinds_keep_a_share),
        cmocka_unit_test(test_archives_are_shared_out),
        cmocka_unit_test(test_skeletons_grow_by_the_light_pipeline),
        cmocka_unit_test(test_an_arm_without_a_place_is_tried_less),
        cmocka_unit_test(test_a_skeleton_without_a_gain_is_estimated),
        cmocka_unit_test(test_an_estimated_skeleton_joins_the_pool),
        cmocka_unit_test(test_an_outline_has_a_share_of_the_pool),
        cmocka_unit_test(test_a_setting_has_a_share_of_the_pool),
        cmocka_unit_test(test_an_edit_that_only_finishes_has_to_gain),
        cmocka_unit_test(test_an_extent_has_one_place),
        cmocka_unit_test(test_edits_that_open_are_swept),
        cmocka_unit_test(test_the_sweep_begins_before_any_child_is_known),
        cmocka_unit_test(test_a_skeleton_of_other_places_stays),
        cmocka_unit_test(test_who_finds_a_place_replaces_no_other),
        cmocka_unit_test(test_a_twin_makes_no_skeleton),
        cmocka_unit_test(test_an_edit_that_does_nothing_makes_no_skeleton),
        cmocka_unit_test(test_each_depth_has_a_share_of_the_pool),
        cmocka_unit_test(test_a_part_that_is_as_fast_replaces_the_whole),
        cmocka_unit_test(test_what_does_not_join_replaces_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
