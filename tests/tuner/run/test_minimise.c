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

#include "tests/genomes.h"

/* ---- minimising ---- */

/* Edits delete numbered instructions. The gain needs 3 and 7 together, 11 gives another part; 5
 * without 3 is lethal. */
typedef struct landscape {
    size_t trials;
} landscape;

static double time_of(const ir_genome *genome) {
    bool has[16] = {false};
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        has[genome_deleted(genome, i)] = true;
    if (has[5] && !has[3])
        return 0;
    return 100 - (has[3] && has[7] ? 30 : 0) - (has[11] ? 10 : 0) - (has[2] ? 0.1 : 0);
}

static ev_status score_landscape(void *context, const ir_genome *const *genomes, size_t count,
                                 double *ns, ev_error *err) {
    (void)err;
    landscape *l = context;
    l->trials += count;
    for (size_t i = 0; i < count; i++)
        ns[i] = time_of(genomes[i]);
    return EV_OK;
}

static ir_genome *genome_of(const char *numbers) {
    json_t *list = json_loads(numbers, 0, NULL);
    ir_genome *genome = genome_bare();
    for (size_t i = 0; i < json_array_size(list); i++)
        genome_delete(genome, (int)json_integer_value(json_array_get(list, i)));
    json_decref(list);
    return genome;
}

/* "[3,7]"; malloc'ed. */
static char *numbers_of(const ir_genome *genome) {
    json_t *list = json_array();
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        (void)json_array_append_new(list, json_integer(genome_deleted(genome, i)));
    char *text = ev_json_print(list, true);
    json_decref(list);
    return text;
}

static char *minimised(const char *edits, double keep, size_t budget, size_t *trials) {
    ev_error err;
    landscape l = {0};
    ir_genome *genome = genome_of(edits);
    const ir_genome *small = NULL;
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
    char *text = numbers_of(small);
    ir_genome_free(small);
    ir_genome_free(genome);
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
    ir_genome *genome = genome_of("[3,7,11,5]");
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
    ir_genome_free(genome);
}

static void test_shares_of_a_pair(void **state) {
    (void)state;
    ev_error err;
    landscape l = {0};
    ir_genome *genome = genome_of("[3,7]");
    assert_int_equal(ir_genome_set_macro(genome, "TILE", 4, &err), EV_OK);
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
    ir_genome_free(genome);
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
