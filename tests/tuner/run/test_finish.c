/* What follows a search, in parts: blaming edits, confirming what is minimised, counting reasons.
 */
#include "tuner/run/bisect.h"
#include "tuner/run/finish_inside.h"
#include "tuner/run/minimise.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"

static ir_genome *genome_of(const char *numbers) {
    json_t *list = json_loads(numbers, 0, NULL);
    ir_genome *genome = genome_bare();
    for (size_t i = 0; i < json_array_size(list); i++)
        genome_delete(genome, (int)json_integer_value(json_array_get(list, i)));
    json_decref(list);
    return genome;
}

static json_t *numbers_of(const ir_genome *genome) {
    json_t *list = json_array();
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        (void)json_array_append_new(list, json_integer(genome_deleted(genome, i)));
    return list;
}

static bool has(const ir_genome *genome, int edit) {
    bool found = false;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        found = found || genome_deleted(genome, i) == edit;
    return found;
}

/* ---- genomes ---- */

/* Takes the reference. */
static void expect_edits(const ir_genome *genome, const char *want) {
    json_t *list = numbers_of(genome);
    char *got = ev_json_print(list, true);
    assert_string_equal(got, want);
    free(got);
    json_decref(list);
    ir_genome_free(genome);
}

/* ---- what a finish remembers ---- */

static void test_a_memo_keeps_the_last_entry(void **state) {
    (void)state;
    ev_error err;
    memo m = {0};
    ir_genome *g = genome_of("[5,6]"), *other = genome_of("[6,5]");
    ev_sha256 a = ir_genome_sha256(g), b = ir_genome_sha256(other);
    assert_null(memo_find(&m, &a));
    assert_int_equal(memo_put(&m, &a, &(memo_entry){.ns = 3, .verdict = PROMOTED}, &err), EV_OK);
    assert_int_equal(memo_put(&m, &b, &(memo_entry){.ns = 5}, &err), EV_OK);
    assert_int_equal(memo_put(&m, &a, &(memo_entry){.ns = 4, .verdict = SLOW}, &err), EV_OK);
    assert_true(memo_find(&m, &a)->ns == 4 && memo_find(&m, &a)->verdict == SLOW);
    assert_true(memo_find(&m, &b)->ns == 5 && m.count == 2);
    memo_free(&m);
    ir_genome_free(g);
    ir_genome_free(other);
}

/* ---- bisection ---- */

/* What makes a genome wrong, and how often that was asked. */
typedef struct judge {
    bool (*wrong)(const ir_genome *genome);
    size_t tests;
} judge;

static ev_status ask_judge(void *context, const ir_genome *genome, bool *wrong, ev_error *err) {
    (void)err;
    judge *j = context;
    j->tests++;
    *wrong = j->wrong(genome);
    return EV_OK;
}

static bool three_is_wrong(const ir_genome *g) {
    return has(g, 3);
}

static bool three_or_eleven_is_wrong(const ir_genome *g) {
    return has(g, 3) || has(g, 11);
}

/* 9 is wrong behind 4 alone. */
static bool four_and_nine_are_wrong(const ir_genome *g) {
    return has(g, 4) && has(g, 9);
}

/* 9 cures what 2 does: it does not where the edits end before it. */
static bool two_without_nine_or_twelve_is_wrong(const ir_genome *g) {
    return (has(g, 2) && !has(g, 9)) || has(g, 12);
}

static bool all_is_wrong(const ir_genome *g) {
    (void)g;
    return true;
}

/* `rest`: "": none; `wrong`: the edits of the wrong genomes. */
static void expect_bisection(bool (*judges)(const ir_genome *), const char *edits, size_t budget,
                             const char *rest, const char *wrong) {
    ev_error err;
    judge j = {.wrong = judges};
    ir_genome *genome = genome_of(edits);
    json_t *lists = json_array();
    bisect_request request = {.genome = genome, .budget = budget, .test = ask_judge, .context = &j};
    bisect_result found;
    assert_int_equal(bisect_find(&request, &found, &err), EV_OK);
    assert_true(j.tests <= budget + 2); /* what was begun is brought to its end */
    if (found.rest) {
        assert_false(judges(found.rest));
        expect_edits(ir_genome_ref(found.rest), rest);
    } else {
        assert_string_equal(rest, "");
    }
    for (size_t i = 0; i < found.wrong_count; i++) {
        assert_true(judges(found.wrong[i]));
        (void)json_array_append_new(lists, numbers_of(found.wrong[i]));
    }
    char *text = ev_json_print(lists, true);
    assert_string_equal(text, wrong);
    free(text);
    json_decref(lists);
    ir_genome_free(genome);
    bisect_clear(&found);
}

#define TWELVE "[1,2,3,4,5,6,7,8,9,10,11,12]"

static void test_bisection_finds_the_wrong_edits(void **state) {
    (void)state;
    expect_bisection(three_is_wrong, TWELVE, 24, "[1,2,4,5,6,7,8,9,10,11,12]", "[[3]]");
    expect_bisection(three_is_wrong, "[3]", 24, "[]", "[[3]]");
    expect_bisection(three_is_wrong, "[1,3]", 24, "[1]", "[[3]]");
    expect_bisection(three_or_eleven_is_wrong, TWELVE, 24, "[1,2,4,5,6,7,8,9,10,12]", "[[3],[11]]");
    expect_bisection(three_or_eleven_is_wrong, "[11,3]", 24, "[]", "[[11],[3]]");
}

static void test_bisection_of_a_pair_names_what_stands_before(void **state) {
    (void)state;
    expect_bisection(four_and_nine_are_wrong, TWELVE, 24, "[1,2,3,4,5,6,7,8,10,11,12]",
                     "[[1,2,3,4,5,6,7,8,9]]");
    expect_bisection(four_and_nine_are_wrong, "[9,4]", 24, "[9]", "[[9,4]]");
    expect_bisection(two_without_nine_or_twelve_is_wrong, TWELVE, 24, "[1,3,4,5,6,7,8,9,10,11]",
                     "[[2],[12]]");
}

static void test_bisection_of_the_base(void **state) {
    (void)state;
    expect_bisection(all_is_wrong, TWELVE, 24, "", "[[]]");
    expect_bisection(all_is_wrong, "[]", 24, "", "[[]]");
}

static void test_bisection_stays_in_its_budget(void **state) {
    (void)state;
    expect_bisection(three_is_wrong, TWELVE, 2, "", "[]");
    expect_bisection(three_or_eleven_is_wrong, TWELVE, 6, "", "[[3]]");
}

static ev_status fail_at_once(void *context, const ir_genome *genome, bool *wrong, ev_error *err) {
    (void)context;
    (void)genome;
    (void)wrong;
    return ev_fail(err, EV_INFRA, "the machine is gone");
}

static void test_bisection_gives_up_when_the_machine_fails(void **state) {
    (void)state;
    ev_error err;
    ir_genome *genome = genome_of(TWELVE);
    bisect_request request = {.genome = genome, .budget = 24, .test = fail_at_once};
    bisect_result found;
    assert_int_equal(bisect_find(&request, &found, &err), EV_INFRA);
    assert_null(found.rest);
    assert_int_equal(found.wrong_count, 0);
    ir_genome_free(genome);
}

/* ---- minimising with a word from gate 6 ---- */

typedef struct guarded {
    size_t confirms;
} guarded;

/* 3 and 7 pay; nothing else does. */
static ev_status score_guarded(void *context, const ir_genome *const *genomes, size_t count,
                               double *ns, ev_error *err) {
    (void)context;
    (void)err;
    for (size_t i = 0; i < count; i++)
        ns[i] = 100 - (has(genomes[i], 3) ? 30 : 0) - (has(genomes[i], 7) ? 20 : 0);
    return EV_OK;
}

/* 3 is right only beside 5 or 6. */
static ev_status confirm_guarded(void *context, const ir_genome *genome, bool *good,
                                 ev_error *err) {
    (void)err;
    guarded *g = context;
    g->confirms++;
    assert_true(*good); /* none is asked for that does not keep the gain */
    *good = !has(genome, 3) || has(genome, 5) || has(genome, 6);
    return EV_OK;
}

static minimise_request guarded_request(const ir_genome *genome, guarded *g) {
    return (minimise_request){.genome = genome,
                              .ns = 50,
                              .reference_ns = 100,
                              .keep = 0.98,
                              .budget = 300,
                              .score = score_guarded,
                              .confirm = confirm_guarded,
                              .context = g};
}

static void expect_guarded(const ir_genome *small) {
    assert_int_equal(ir_genome_edit_count(small), 3);
    assert_true(has(small, 3) && has(small, 7) && (has(small, 5) || has(small, 6)));
}

static void test_minimise_leaves_what_is_confirmed(void **state) {
    (void)state;
    ev_error err;
    guarded g = {0};
    ir_genome *genome = genome_of("[0,1,2,3,4,5,6,7,8,9]");
    const ir_genome *small = NULL;
    double ns = 0;
    minimise_request request = guarded_request(genome, &g);
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_guarded(small);
    assert_true(ns == 50 && g.confirms > 0);
    ir_genome_free(small);
    request.confirm = NULL;
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_edits(small, "[3,7]");
    ir_genome_free(genome);
}

/* What its time alone left was too little: the fewest of the others are found that it wants. */
static void test_minimise_adds_to_a_core(void **state) {
    (void)state;
    ev_error err;
    guarded g = {0};
    ir_genome *genome = genome_of("[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]");
    ir_genome *core = genome_of("[3,7]");
    const ir_genome *small = NULL;
    double ns = 0;
    minimise_request request = guarded_request(genome, &g);
    request.core = core;
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_guarded(small);
    ir_genome_free(small);
    /* A core that is larger than need be does not stay so. */
    ir_genome_free(core);
    request.core = core = genome_of("[3,7,5,9,11]");
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_edits(small, "[3,5,7]");
    ir_genome_free(core);
    ir_genome_free(genome);
}

/* ---- candidates by skeleton ---- */

/* A genome with the relabel-blocks edits `blocks`, in this order, and perhaps a local edit. */
static ir_genome *structured(const char *blocks, int local) {
    json_t *list = json_loads(blocks, 0, NULL), *edits = json_array();
    for (size_t i = 0; i < json_array_size(list); i++)
        (void)json_array_append_new(edits, json_pack("{s:s,s:O}", "kind", "relabel-blocks",
                                                     "option", json_array_get(list, i)));
    json_decref(list);
    ir_genome *genome = genome_from(json_pack("{s:s,s:o}", "start", "a", "edits", edits));
    if (local >= 0)
        genome_delete(genome, local);
    return genome;
}

static finish *begin_finish(void) {
    static tune_options options = {.device = "vm:h200"};
    static tune_state run = {.options = &options};
    static course c = {.run = &run};
    finish *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->c = &c;
    f->limit_ns = 1000;
    return f;
}

static void end_finish(finish *f) {
    finish_drop_candidates(f);
    for (size_t i = 0; i < f->skeleton_count; i++)
        ir_genome_free(f->skeletons[i].genome);
    for (size_t i = 0; i < f->wrong_count; i++)
        ir_genome_free(f->wrong[i]);
    free((void *)f->wrong);
    ir_genome_free(f->winner.genome);
    memo_free(&f->judged);
    free(f);
}

static bool add(finish *f, ir_genome *genome, double ns) {
    bool is_new = finish_add(f, genome, ns, false) != NULL;
    ir_genome_free(genome);
    return is_new;
}

/* The time of the next candidate, which counts as tried; 0: there is none. */
static double next_ns(finish *f) {
    candidate_entry *e = finish_next(f, false);
    if (!e)
        return 0;
    e->used = true;
    return e->ns;
}

/* A skeleton that is refused, or used up its share, leaves the turn to others. */
static void test_candidates_of_a_used_up_skeleton_are_passed_over(void **state) {
    (void)state;
    finish *f = begin_finish();
    for (int i = 0; i < 6; i++)
        assert_true(add(f, structured("[2]", i), 100 + i));
    for (int i = 0; i < 3; i++)
        assert_true(add(f, structured("[4]", i), 200 + i));
    assert_true(add(f, genome_of("[1]"), 300));
    assert_false(add(f, genome_of("[1]"), 300)); /* it is there */
    assert_true(next_ns(f) == 100 && next_ns(f) == 101);
    ir_genome *two = structured("[2]", -1), *four = structured("[4]", -1);
    finish_skeleton(f, two)->spent = 1000;
    assert_true(next_ns(f) == 200);
    finish_skeleton(f, four)->refused = true;
    assert_true(next_ns(f) == 300 && next_ns(f) == 0);
    assert_non_null(finish_next(f, true));
    ir_genome_free(two);
    ir_genome_free(four);
    end_finish(f);
}

static ir_genome *at_tile(int tile, const char *edits) {
    return genome_from(json_pack("{s:s,s:{s:i},s:o}", "start", "a", "macros", "TILE", tile, "edits",
                                 json_loads(edits, 0, NULL)));
}

static void judge_as(finish *f, const ir_genome *genome, verdict v) {
    const memo_entry entry = {.ns = 1, .verdict = v};
    ev_sha256 key = ir_genome_sha256(genome);
    assert_int_equal(memo_put(&f->judged, &key, &entry, NULL), EV_OK);
}

/* A winner is held against macros alone: no edit but knobs, faster than the limit, each setting
 * once, not the winner's own, and none that was refused. */
static void test_settings_are_macros_alone(void **state) {
    (void)state;
    static const char light[] = "[{\"kind\":\"pipeline\",\"option\":19}]";
    finish *f = begin_finish();
    search_best best[] = {
        {.genome = genome_of("[]"), .ns = 90}, /* the start */
        {.genome = at_tile(1, "[]"), .ns = 100},
        {.genome = at_tile(1, light), .ns = 101}, /* the same macros */
        {.genome = at_tile(2, light), .ns = 102},
        {.genome = at_tile(3, "[{\"kind\":\"sink\",\"at\":\"i3\"}]"), .ns = 103},
        {.genome = at_tile(4, "[{\"kind\":\"relabel-blocks\",\"option\":4}]"), .ns = 104},
        {.genome = at_tile(5, "[]"), .ns = 105},
        {.genome = at_tile(5, light), .ns = 106},
        {.genome = at_tile(6, "[]"), .ns = 107}};
    enum { COUNT = sizeof best / sizeof best[0] };
    const search_best *out[FINISH_SETTINGS];
    size_t found = 0;
    assert_int_equal(finish_settings(f, best, COUNT, out, &found, NULL), EV_OK);
    assert_int_equal(found, 3);
    assert_ptr_equal(out[0], &best[1]);
    assert_ptr_equal(out[1], &best[3]);
    assert_ptr_equal(out[2], &best[6]);
    f->limit_ns = 105;
    assert_int_equal(finish_settings(f, best, COUNT, out, &found, NULL), EV_OK);
    assert_int_equal(found, 2);
    f->limit_ns = 1000;
    f->winner.genome = at_tile(2, "[]");
    judge_as(f, best[1].genome, SLOW); /* with other knobs it would be slow, too */
    judge_as(f, best[6].genome, WRONG);
    assert_int_equal(finish_settings(f, best, COUNT, out, &found, NULL), EV_OK);
    assert_int_equal(found, 2);
    assert_ptr_equal(out[0], &best[7]);
    assert_ptr_equal(out[1], &best[8]);
    for (size_t i = 0; i < COUNT; i++)
        ir_genome_free(best[i].genome);
    end_finish(f);
}

/* A winner is held against the fastest variants with edits at other settings, in order of time. */
static void test_the_fastest_at_other_settings(void **state) {
    (void)state;
    static const char edited[] = "[{\"kind\":\"relabel-blocks\",\"option\":4}]",
                      other[] = "[{\"kind\":\"relabel-blocks\",\"option\":8}]";
    finish *f = begin_finish();
    ir_genome *first = at_tile(1, edited), *second = at_tile(2, edited);
    assert_true(add(f, at_tile(1, edited), 100));
    assert_true(add(f, at_tile(3, "[{\"kind\":\"pipeline\",\"option\":19}]"), 110));
    assert_true(add(f, at_tile(2, other), 130));
    assert_true(add(f, at_tile(2, edited), 120));
    assert_true(add(f, at_tile(3, edited), 140));
    const ir_genome *listed[] = {first, second};
    candidate_entry *e = finish_fastest_at(f, listed, 1, NULL);
    assert_true(e && e->ns == 120);
    e->used = true;
    assert_true(finish_fastest_at(f, NULL, 0, second)->ns == 130);
    assert_true(finish_fastest_at(f, listed, 2, NULL)->ns == 140);
    finish_fastest_at(f, listed, 2, NULL)->used = true;
    assert_null(finish_fastest_at(f, listed, 2, NULL)); /* macros alone are no edits */
    ir_genome_free(first);
    ir_genome_free(second);
    end_finish(f);
}

/* Structured candidates do not use up the promotions of the others. */
static void test_each_form_has_its_own_budget(void **state) {
    (void)state;
    finish *f = begin_finish();
    assert_true(add(f, structured("[2]", 1), 100) && add(f, genome_of("[1]"), 300));
    f->spent[SEARCH_STRUCTURED] = 1000;
    assert_true(finish_may_promote_any(f, false) && next_ns(f) == 300);
    finish_renew(f);
    assert_true(finish_may_promote(f, SEARCH_STRUCTURED) && next_ns(f) == 100);
    end_finish(f);
}

/* Strips a genome of what is known as wrong; takes the reference. */
static size_t stripped_count(const finish *f, ir_genome *genome) {
    const ir_genome *rest = NULL;
    ev_error err;
    assert_int_equal(finish_strip(f, genome, &rest, &err), EV_OK);
    assert_non_null(rest);
    size_t count = ir_genome_edit_count(rest);
    ir_genome_free(rest);
    ir_genome_free(genome);
    return count;
}

/* A wrong skeleton speaks against its last edit in other skeletons as well. */
static void test_a_wrong_skeleton_is_blamed_in_others(void **state) {
    (void)state;
    finish *f = begin_finish();
    f->wrong = calloc(1, sizeof(const ir_genome *));
    f->wrong[f->wrong_count++] = structured("[8]", -1);
    assert_int_equal(stripped_count(f, structured("[8,2]", 5)), 1); /* its local edit goes, too */
    assert_int_equal(stripped_count(f, structured("[2]", 5)), 2);
    assert_int_equal(stripped_count(f, genome_of("[5]")), 1);
    end_finish(f);
}

/* ---- reasons ---- */

static void test_reasons_are_counted_by_kind(void **state) {
    (void)state;
    static tally t;
    tally_add(&t, "case even-p4: relative L2 error 0.00165 is over the tolerance 2e-06");
    tally_add(&t, "case even-p4: relative L2 error 1.5e-05 is over the tolerance 2e-06");
    tally_add(&t, "case even-p8: relative L2 error 0.00165 is over the tolerance 2e-06");
    tally_add(&t, "case odd: race-global at PTX line 341: address 0x700004cd1490");
    tally_add(&t, "case odd: race-global at PTX line 9: address 0x700004cc28b0");
    tally_add(&t, "case odd: race-global at PTX line");
    assert_int_equal(t.kind_count, 4);
    assert_int_equal(t.kinds[0].count, 2);
    assert_string_equal(t.kinds[0].first,
                        "case even-p4: relative L2 error 0.00165 is over the tolerance 2e-06");
    assert_int_equal(t.kinds[1].count, 1); /* a case's name is no number */
    assert_int_equal(t.kinds[2].count, 2);
    assert_int_equal(t.kinds[3].count, 1);
    assert_int_equal(t.others, 0);
}

static void test_more_reasons_than_are_told_apart(void **state) {
    (void)state;
    static tally t;
    char reason[2 * TALLY_TEXT];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    for (int i = 0; i < TALLY_KINDS + 3; i++) {
        reason[0] = (char)('a' + i);
        tally_add(&t, reason);
        tally_add(&t, reason);
    }
    assert_int_equal(t.kind_count, TALLY_KINDS);
    assert_int_equal(t.kinds[TALLY_KINDS - 1].count, 2);
    assert_int_equal(strlen(t.kinds[0].first), TALLY_TEXT - 1);
    assert_int_equal(t.others, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_memo_keeps_the_last_entry),
        cmocka_unit_test(test_bisection_finds_the_wrong_edits),
        cmocka_unit_test(test_bisection_of_a_pair_names_what_stands_before),
        cmocka_unit_test(test_bisection_of_the_base),
        cmocka_unit_test(test_bisection_stays_in_its_budget),
        cmocka_unit_test(test_bisection_gives_up_when_the_machine_fails),
        cmocka_unit_test(test_minimise_leaves_what_is_confirmed),
        cmocka_unit_test(test_minimise_adds_to_a_core),
        cmocka_unit_test(test_candidates_of_a_used_up_skeleton_are_passed_over),
        cmocka_unit_test(test_settings_are_macros_alone),
        cmocka_unit_test(test_the_fastest_at_other_settings),
        cmocka_unit_test(test_each_form_has_its_own_budget),
        cmocka_unit_test(test_a_wrong_skeleton_is_blamed_in_others),
        cmocka_unit_test(test_reasons_are_counted_by_kind),
        cmocka_unit_test(test_more_reasons_than_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
