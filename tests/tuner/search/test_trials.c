/* The trials of a search that is fed by hand: what is tried on the skeletons of the pool, each
 * once. */
#include "tests/tuner/search/skeleton_search.h"

/* The fastest skeleton is drawn once without each of its edits, unless that is known. */
static void test_the_fastest_is_tried_without_each_edit(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(true, 4, 0), "coarsen", 700); /* the fastest without its last */
    (void)feed(&f, skeleton_of(true, 4, 8), "coarsen-threads", 600);
    ir_genome *wanted[] = {skeleton_of(true, 8, 0), skeleton_of(false, 4, 8)};
    size_t seen[2] = {0}, reduced = 0;
    for (int i = 0; i < 300; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        reduced += r.made == RECIPE_REDUCED;
        for (size_t k = 0; r.made == RECIPE_REDUCED && k < 2; k++)
            seen[k] += ir_genome_same_prefix(r.parents[0], wanted[k]);
        assert_true(r.made != RECIPE_REDUCED || (r.step_count == 0 && r.estimate.due == 0));
        recipe_free(&r);
        fail_child(&f);
    }
    assert_true(reduced <= 4); /* two may be of the first skeleton */
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 1);
    ir_genome_free(wanted[0]);
    ir_genome_free(wanted[1]);
    search_free(f.s);
}

/* ---- neighbours, limits of registers ---- */

/* Options and forms one step from those of a member are tried, each once, built only where the fast
 * code gains. */
static void test_neighbours_are_tried_once(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
    static const struct {
        int option;
        const char *form;
    } steps[] = {{8, "strided"}, {2, "strided"}, {4, "neighbours"}, {4, "far"}};
    size_t seen[4] = {0}, tuned = 0;
    for (int i = 0; i < 300; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        for (size_t k = 0; r.made == RECIPE_TUNED && k < 4; k++) {
            ir_genome *wanted = genome_from(json_pack(
                "{s:s,s:[{s:s,s:s,s:i,s:s}]}", "start", "textbook", "edits", "kind", "coarsen",
                "anchor", "x", "option", steps[k].option, "form", steps[k].form));
            seen[k] += ir_genome_same_prefix(r.parents[0], wanted);
            ir_genome_free(wanted);
        }
        int64_t registers = 0;
        tuned += r.made == RECIPE_TUNED && !is_limited(&r, &registers);
        assert_true(r.made != RECIPE_TUNED || r.step_count == 0);
        recipe_free(&r);
        fail_child(&f);
    }
    assert_int_equal(tuned, 4);
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(seen[k], 1);
    search_free(f.s);
}

/* A skeleton is tried with each limit of registers, once, unless the start says how many there are:
 * then the first try is the last. */
static void test_limits_are_tried_once(void **state) {
    (void)state;
    for (int verifies = 0; verifies < 2; verifies++) {
        fed f;
        size_t at_start = 0, at_structure = 0;
        int64_t product = 1, registers = 0;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
        for (int i = 0; i < 600; i++) {
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            if (is_limited(&r, &registers)) {
                bool has_structure = ir_genome_prefix_count(r.parents[0]) > 0;
                at_structure += has_structure;
                at_start += !has_structure;
                product *= has_structure ? registers : 1;
                assert_true(r.step_count == 0);
            }
            recipe_free(&r);
            stop_child(&f, verifies ? GATE_TIMED : GATE_VERIFY);
        }
        assert_int_equal(at_start + at_structure, verifies ? 4 : 1); /* the start leads no more */
        assert_int_equal(at_structure, verifies ? 4 : at_structure);
        assert_true(!verifies || product == 128 * 80 * 64 * 40);
        search_free(f.s);
    }
}

/* A limit that is no lower than the registers that a skeleton takes changes nothing. */
static void test_limits_that_bind_nothing_are_not_tried(void **state) {
    (void)state;
    fed f;
    int64_t product = 1, registers = 0;
    open_search(&f, 30);
    f.registers = 80;
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
    for (int i = 0; i < 600; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        if (is_limited(&r, &registers) && ir_genome_prefix_count(r.parents[0]) > 0)
            product *= registers;
        recipe_free(&r);
        stop_child(&f, GATE_TIMED);
    }
    assert_int_equal(product, 64 * 40);
    search_free(f.s);
}

/* Two skeletons of one edit each are joined once, by whichever is extended. */
static void test_skeletons_are_extended_by_each_other(void **state) {
    (void)state;
    fed f;
    open_search(&f, 30);
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
    (void)feed(&f, skeleton_of(false, 8, 0), "coarsen-threads", 600);
    size_t joined = 0;
    for (int i = 0; i < 300; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        const ir_genome *parent = r.parents[0];
        joined += r.made == RECIPE_JOINED && ir_genome_prefix_count(parent) == 2 &&
                  ir_genome_edit_kind(parent, 0) != ir_genome_edit_kind(parent, 1);
        recipe_free(&r);
        fail_child(&f);
    }
    /* in either order, finished as either; perhaps as the gain of the one or of the other, too */
    assert_true(joined >= 4 && joined <= 6);
    search_free(f.s);
}

/* An edit that opens may have places on a skeleton alone that has such an edit: each is drawn
 * there, and no more than three times for that reason. */
static void test_edits_that_open_are_tried_on_each_skeleton(void **state) {
    (void)state;
    size_t drawn[2] = {0};
    for (size_t is_open = 0; is_open < 2; is_open++) {
        fed f = {
            .start = {
                .start = &textbook,
                .sites = {
                    [IR_EDIT_SINK] = 9, [IR_EDIT_COARSEN] = 900, [IR_EDIT_DELINEARIZE] = is_open}}};
        begin_with(&f);
        feed_starts(&f);
        (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
        for (int i = 0; i < 600; i++) {
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            drawn[is_open] += r.step_count == 1 && r.steps[0].count == 1 &&
                              ir_genome_prefix_count(r.parents[0]) == 1 &&
                              r.steps[0].arms[0] == IR_EDIT_DELINEARIZE;
            child_result slow = {.outcome = {.origin = SEARCH_TIMED, .stopped = GATE_TIMED}};
            if (r.step_count > 0)
                (void)snprintf(slow.operators, sizeof slow.operators, "%s",
                               arm_name(r.steps[0].arms[0]));
            recipe_free(&r);
            search_verdict v;
            assert_int_equal(search_commit(f.s, &slow, &v, NULL), EV_OK);
        }
        search_free(f.s);
    }
    assert_int_equal(drawn[0], 0);
    assert_int_equal(drawn[1], 3 + 1); /* once as an edit that a leader lacks */
}

/* ---- leaders: settings, gains, places ---- */

static task_macro macros[] = {
    {.name = "TILE", .values = (int64_t[]){8, 16, 32, 64}, .value_count = 4, .otherwise = 16},
    {.name = "ROWS", .values = (int64_t[]){1, 2}, .value_count = 2, .otherwise = 1}};
static const task_start tiled = {.name = "textbook", .macros = macros, .macro_count = 2};

/* A skeleton of one edit at a setting of the macros. */
static ir_genome *at_setting(int option, int tile, int rows) {
    ir_genome *genome = skeleton_of(false, option, 0);
    if (tile != 16)
        assert_int_equal(ir_genome_set_macro(genome, "TILE", tile, NULL), EV_OK);
    if (rows != 1)
        assert_int_equal(ir_genome_set_macro(genome, "ROWS", rows, NULL), EV_OK);
    return genome;
}

static void open_tiled(fed *f) {
    *f = (fed){.start = {.start = &tiled, .sites = {[IR_EDIT_SINK] = 9, [IR_EDIT_COARSEN] = 30}}};
    begin_with(f);
    for (int i = 0; i < 6; i++) /* the start, with the light pipeline, and other values */
        (void)feed(f, genome_of(0, -1), "start", 1000);
}

/* The edits of the fastest are tried once at each setting that another skeleton has, and with each
 * macro one value further; not at a setting at which the start is known to be wrong. */
static void test_settings_are_tried_once(void **state) {
    (void)state;
    static const struct {
        int tile, rows;
    } wanted[] = {{64, 2}, {8, 1}, {32, 1}, {16, 2}}, wrong = {8, 1};
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        fed f;
        size_t seen[4] = {0}, set = 0;
        open_tiled(&f);
        if (is_wrong) {
            ir_genome *start = genome_of(0, -1);
            assert_int_equal(ir_genome_set_macro(start, "TILE", wrong.tile, NULL), EV_OK);
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            recipe_free(&r);
            child_result result = {.genome = start,
                                   .outcome = {.origin = SEARCH_TIMED, .stopped = GATE_ACCURATE}};
            search_verdict v;
            assert_int_equal(search_commit(f.s, &result, &v, NULL), EV_OK);
            ir_genome_free(start);
        }
        (void)feed(&f, at_setting(4, 64, 2), "coarsen-threads", 900); /* is behind: no leader */
        (void)feed(&f, at_setting(8, 16, 1), "coarsen-threads", 500);
        for (int i = 0; i < 600; i++) {
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            for (size_t k = 0; r.made == RECIPE_SET && k < 4; k++) {
                ir_genome *genome = at_setting(8, wanted[k].tile, wanted[k].rows);
                seen[k] += ir_genome_same_base(r.parents[0], genome);
                ir_genome_free(genome);
            }
            set += r.made == RECIPE_SET;
            assert_true(r.made != RECIPE_SET || (r.step_count == 0 && r.origin_count == 1));
            recipe_free(&r);
            fail_child(&f);
        }
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(seen[k], is_wrong && k == 1 ? 0 : 1);
        assert_int_equal(set, is_wrong ? 3 : 4);
        search_free(f.s);
    }
}

/* With few evaluations a start, no trials of leaders are drawn. */
static void test_few_evaluations_draw_no_trials_of_leaders(void **state) {
    (void)state;
    static const uint64_t budgets[] = {400, 500, 0};
    for (size_t k = 0; k < 3; k++) {
        size_t set = 0;
        fed f = {.start = {.start = &tiled, .sites = {[IR_EDIT_SINK] = 9, [IR_EDIT_COARSEN] = 30}}};
        const search_settings settings = {
            .starts = &f.start, .start_count = 1, .seed = 5, .evaluations = budgets[k]};
        assert_int_equal(search_new(&settings, &f.s, NULL), EV_OK);
        for (int i = 0; i < 6; i++)
            (void)feed(&f, genome_of(0, -1), "start", 1000);
        (void)feed(&f, at_setting(8, 16, 1), "coarsen-threads", 500);
        for (int i = 0; i < 300; i++) {
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            set += r.made == RECIPE_SET;
            recipe_free(&r);
            fail_child(&f);
        }
        assert_true((set > 0) == (budgets[k] != 400));
        search_free(f.s);
    }
}

/* The edits by which a child of the pool gained are tried on the other leaders, once; those of a
 * child that gained nothing are not. */
static void test_gains_are_tried_on_leaders(void **state) {
    (void)state;
    for (int gains = 0; gains < 2; gains++) {
        fed f;
        size_t joined = 0;
        open_search(&f, 30);
        (void)feed(&f, skeleton_of(false, 8, 0), "coarsen-threads", 1100); /* no gain */
        bool is_fed = false;
        for (int i = 0; i < 300 && !is_fed; i++) { /* a child of the start gains by another edit */
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            is_fed = r.step_count > 0 && !r.by_heat && ir_genome_prefix_count(r.parents[0]) == 0;
            recipe_free(&r);
            child_result result = {.genome = is_fed ? genome_of(4, -1) : NULL,
                                   .outcome = {.origin = SEARCH_TIMED,
                                               .stopped = is_fed ? GATE_NONE : GATE_VERIFY,
                                               .ns = gains ? 900 : 999}};
            (void)snprintf(result.operators, sizeof result.operators, "relabel-blocks");
            search_verdict v;
            assert_int_equal(search_commit(f.s, &result, &v, NULL), EV_OK);
            ir_genome_free((ir_genome *)result.genome);
        }
        assert_true(is_fed);
        for (int i = 0; i < 400; i++) {
            recipe r;
            assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
            const ir_genome *made = r.parents[0];
            joined += r.made == RECIPE_JOINED && ir_genome_prefix_count(made) == 2 &&
                      ir_genome_edit_kind(made, 0) == IR_EDIT_COARSEN_THREADS &&
                      ir_genome_edit_kind(made, 1) == IR_EDIT_RELABEL_BLOCKS;
            recipe_free(&r);
            fail_child(&f);
        }
        assert_int_equal(joined, gains);
        search_free(f.s);
    }
}

/* A leader is tried with each kind of edit as often as it has places and forms, at most eight
 * times. Random steps have a stock of the other skeleton's edit; trials have none. */
static void test_a_leader_is_tried_with_each_kind(void **state) {
    (void)state;
    static const struct {
        ir_edit_kind kind;
        size_t sites, wanted;
    } rows[] = {{IR_EDIT_SINK_LOOP, 1, 1},
                {IR_EDIT_RELABEL_BLOCKS, 3, 3},
                {IR_EDIT_PIPELINE_LOADS, 2, 4},
                {IR_EDIT_UNROLL_TURNS, 30, 8}};
    size_t drawn[ARM_COUNT] = {0};
    fed f = {.start = {.start = &textbook, .sites = {[IR_EDIT_SINK] = 9}}};
    for (size_t i = 0; i < 4; i++)
        f.start.sites[rows[i].kind] = rows[i].sites;
    begin_with(&f);
    feed_starts(&f);
    (void)feed(&f, skeleton_of(true, 0, 0), "coarsen", 500);
    (void)feed(&f, skeleton_of(false, 4, 0), "coarsen-threads", 900); /* is behind: no leader */
    for (int i = 0; i < 2000; i++) {
        recipe r;
        assert_int_equal(search_draw(f.s, false, &r, NULL), EV_OK);
        if (r.step_count == 1 && r.stock_count == 0 && ir_genome_prefix_count(r.parents[0]) == 1 &&
            ir_genome_edit_kind(r.parents[0], 0) == IR_EDIT_COARSEN && !r.by_heat)
            drawn[r.steps[0].arms[0]]++;
        child_result slow = {.outcome = {.origin = SEARCH_TIMED, .stopped = GATE_TIMED}};
        if (r.step_count > 0)
            (void)snprintf(slow.operators, sizeof slow.operators, "%s",
                           arm_name(r.steps[0].arms[0]));
        recipe_free(&r);
        search_verdict v;
        assert_int_equal(search_commit(f.s, &slow, &v, NULL), EV_OK);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(drawn[rows[i].kind], rows[i].wanted);
    search_free(f.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skeletons_are_extended_by_each_other),
        cmocka_unit_test(test_neighbours_are_tried_once),
        cmocka_unit_test(test_limits_are_tried_once),
        cmocka_unit_test(test_limits_that_bind_nothing_are_not_tried),
        cmocka_unit_test(test_edits_that_open_are_tried_on_each_skeleton),
        cmocka_unit_test(test_the_fastest_is_tried_without_each_edit),
        cmocka_unit_test(test_settings_are_tried_once),
        cmocka_unit_test(test_few_evaluations_draw_no_trials_of_leaders),
        cmocka_unit_test(test_gains_are_tried_on_leaders),
        cmocka_unit_test(test_a_leader_is_tried_with_each_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
