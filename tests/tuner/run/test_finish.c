/* What follows a search, in parts: blaming edits, confirming what is minimised, counting reasons.
 */
#include "tuner/run/bisect.h"
#include "tuner/run/finish_inside.h"
#include "tuner/run/minimise.h"
#include "tuner/search/genomes.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *genome_of(const char *edits) {
    json_t *genome =
        json_pack("{s:s,s:{},s:o}", "start", "a", "macros", "edits", json_loads(edits, 0, NULL));
    assert_non_null(genome);
    return genome;
}

static char *edits_of(const json_t *genome) {
    return ev_json_print(json_object_get(genome, "edits"), true);
}

static bool has(const json_t *genome, int edit) {
    json_t *one = json_integer(edit);
    bool found = genome_has_edit(genome, one);
    json_decref(one);
    return found;
}

/* ---- genomes ---- */

static void expect_edits(json_t *genome, const char *want) {
    char *got = edits_of(genome);
    assert_string_equal(got, want);
    free(got);
    json_decref(genome);
}

static void test_parts_of_genomes(void **state) {
    (void)state;
    json_t *g = genome_of("[5,6,7,8]"), *other = genome_of("[8,5]"), *more = genome_of("[5,9]");
    expect_edits(genome_part(g, 1, 3), "[6,7]");
    expect_edits(genome_part(g, 2, 2), "[]");
    expect_edits(genome_without(g, 1, 3), "[5,8]");
    expect_edits(genome_without(g, 0, 0), "[5,6,7,8]");
    assert_true(genome_holds(g, other));
    assert_false(genome_holds(other, g));
    assert_false(genome_holds(g, more));
    assert_int_equal(json_object_set_new(other, "start", json_string("b")), 0);
    assert_false(genome_holds(g, other));
    expect_edits(g, "[5,6,7,8]"); /* as it was */
    json_decref(other);
    json_decref(more);
}

/* ---- blame ---- */

/* What makes a genome wrong, and how often that was asked. */
typedef struct judge {
    bool (*wrong)(const json_t *genome);
    size_t tests;
} judge;

static ev_status ask_judge(void *context, json_t *genome, bool *wrong, ev_error *err) {
    (void)err;
    judge *j = context;
    j->tests++;
    *wrong = j->wrong(genome);
    return EV_OK;
}

static bool three_is_wrong(const json_t *g) {
    return has(g, 3);
}

static bool three_or_eleven_is_wrong(const json_t *g) {
    return has(g, 3) || has(g, 11);
}

/* 9 is wrong behind 4 alone. */
static bool four_and_nine_are_wrong(const json_t *g) {
    return has(g, 4) && has(g, 9);
}

/* 9 cures what 2 does: it does not where the edits end before it. */
static bool two_without_nine_or_twelve_is_wrong(const json_t *g) {
    return (has(g, 2) && !has(g, 9)) || has(g, 12);
}

static bool all_is_wrong(const json_t *g) {
    (void)g;
    return true;
}

/* `rest`: "": none; `wrong`: the edits of the wrong genomes. */
static void expect_bisection(bool (*judges)(const json_t *), const char *edits, size_t budget,
                             const char *rest, const char *wrong) {
    ev_error err;
    judge j = {.wrong = judges};
    json_t *genome = genome_of(edits), *lists = json_array();
    bisect_request request = {.genome = genome, .budget = budget, .test = ask_judge, .context = &j};
    bisect_result found;
    assert_int_equal(bisect_find(&request, &found, &err), EV_OK);
    assert_true(j.tests <= budget + 2); /* what was begun is brought to its end */
    if (found.rest) {
        assert_false(judges(found.rest));
        expect_edits(json_incref(found.rest), rest);
    } else {
        assert_string_equal(rest, "");
    }
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(found.wrong, at, one) {
        assert_true(judges(one));
        (void)json_array_append(lists, json_object_get(one, "edits"));
    }
    char *text = ev_json_print(lists, true);
    assert_string_equal(text, wrong);
    free(text);
    json_decref(lists);
    json_decref(genome);
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

static ev_status fail_at_once(void *context, json_t *genome, bool *wrong, ev_error *err) {
    (void)context;
    (void)genome;
    (void)wrong;
    return ev_fail(err, EV_INFRA, "the machine is gone");
}

static void test_bisection_gives_up_when_the_machine_fails(void **state) {
    (void)state;
    ev_error err;
    json_t *genome = genome_of(TWELVE);
    bisect_request request = {.genome = genome, .budget = 24, .test = fail_at_once};
    bisect_result found;
    assert_int_equal(bisect_find(&request, &found, &err), EV_INFRA);
    assert_null(found.rest);
    assert_null(found.wrong);
    json_decref(genome);
}

/* ---- minimising with a word from gate 6 ---- */

typedef struct guarded {
    size_t confirms;
} guarded;

/* 3 and 7 pay; nothing else does. */
static ev_status score_guarded(void *context, json_t *const *genomes, size_t count, double *ns,
                               ev_error *err) {
    (void)context;
    (void)err;
    for (size_t i = 0; i < count; i++)
        ns[i] = 100 - (has(genomes[i], 3) ? 30 : 0) - (has(genomes[i], 7) ? 20 : 0);
    return EV_OK;
}

/* 3 is right only beside 5 or 6. */
static ev_status confirm_guarded(void *context, json_t *genome, bool *good, ev_error *err) {
    (void)err;
    guarded *g = context;
    g->confirms++;
    assert_true(*good); /* none is asked for that does not keep the gain */
    *good = !has(genome, 3) || has(genome, 5) || has(genome, 6);
    return EV_OK;
}

static minimise_request guarded_request(const json_t *genome, guarded *g) {
    return (minimise_request){.genome = genome,
                              .ns = 50,
                              .reference_ns = 100,
                              .keep = 0.98,
                              .budget = 300,
                              .score = score_guarded,
                              .confirm = confirm_guarded,
                              .context = g};
}

static void expect_guarded(const json_t *small) {
    assert_int_equal(genome_edit_count(small), 3);
    assert_true(has(small, 3) && has(small, 7) && (has(small, 5) || has(small, 6)));
}

static void test_minimise_leaves_what_is_confirmed(void **state) {
    (void)state;
    ev_error err;
    guarded g = {0};
    json_t *genome = genome_of("[0,1,2,3,4,5,6,7,8,9]"), *small = NULL;
    double ns = 0;
    minimise_request request = guarded_request(genome, &g);
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_guarded(small);
    assert_true(ns == 50 && g.confirms > 0);
    json_decref(small);
    request.confirm = NULL;
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_edits(small, "[3,7]");
    json_decref(genome);
}

/* What its time alone left was too little: the fewest of the others are found that it wants. */
static void test_minimise_adds_to_a_core(void **state) {
    (void)state;
    ev_error err;
    guarded g = {0};
    json_t *genome = genome_of("[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]");
    json_t *core = genome_of("[3,7]"), *small = NULL;
    double ns = 0;
    minimise_request request = guarded_request(genome, &g);
    request.core = core;
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_guarded(small);
    json_decref(small);
    /* A core that is larger than need be does not stay so. */
    json_decref(core);
    request.core = core = genome_of("[3,7,5,9,11]");
    assert_int_equal(minimise_genome(&request, &small, &ns, &err), EV_OK);
    expect_edits(small, "[3,5,7]");
    json_decref(core);
    json_decref(genome);
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
        cmocka_unit_test(test_parts_of_genomes),
        cmocka_unit_test(test_bisection_finds_the_wrong_edits),
        cmocka_unit_test(test_bisection_of_a_pair_names_what_stands_before),
        cmocka_unit_test(test_bisection_of_the_base),
        cmocka_unit_test(test_bisection_stays_in_its_budget),
        cmocka_unit_test(test_bisection_gives_up_when_the_machine_fails),
        cmocka_unit_test(test_minimise_leaves_what_is_confirmed),
        cmocka_unit_test(test_minimise_adds_to_a_core),
        cmocka_unit_test(test_reasons_are_counted_by_kind),
        cmocka_unit_test(test_more_reasons_than_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
