/* Minimising a winner, and the shares of its edits. */
#include "tuner/run/ablation.h"
#include "tuner/run/minimise.h"

#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    assert_int_equal(ablation_measure(&request, &shares, &err), EV_OK);
    assert_int_equal(l.trials, 4 + 6);
    const json_t *edits = json_object_get(shares, "edits");
    double gain = log(100.0 / 60);
    assert_true(json_is_null(json_array_get(edits, 0))); /* without 3, 5 is lethal */
    assert_true(fabs(json_real_value(json_array_get(edits, 1)) - log(90.0 / 60) / gain) < 1e-9);
    assert_true(fabs(json_real_value(json_array_get(edits, 2)) - log(70.0 / 60) / gain) < 1e-9);
    assert_true(json_real_value(json_array_get(edits, 3)) == 0);
    char *text = NULL;
    assert_int_equal(ablation_tell(shares, genome, "three\nseven\neleven\nfive\n", &text, &err),
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
    assert_int_equal(ablation_measure(&request, &shares, &err), EV_OK);
    char *text = NULL;
    assert_int_equal(ablation_tell(shares, genome, "three\nseven\n", &text, &err), EV_OK);
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
        cmocka_unit_test(test_minimise_keeps_what_pays),
        cmocka_unit_test(test_minimise_stays_in_its_budget),
        cmocka_unit_test(test_shares_tell_what_depends),
        cmocka_unit_test(test_shares_of_a_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
