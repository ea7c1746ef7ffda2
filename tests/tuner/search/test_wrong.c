/* Wrong settings: what is noted, that a search tells its workers, and that no child gets one. */
#include "tuner/search/draw.h"
#include "tuner/search/search.h"
#include "tuner/search/wrong.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"

/* A genome with macro N = n (0: unset) and, if asked, a deletion. */
static ir_genome *genome_of(int n, bool is_edited) {
    json_t *edits = json_array(), *macros = json_object();
    if (is_edited)
        assert_int_equal(
            json_array_append_new(edits, json_pack("{s:s,s:s}", "kind", "delete", "at", "i3")), 0);
    if (n)
        assert_int_equal(json_object_set_new(macros, "N", json_integer(n)), 0);
    return genome_from(
        json_pack("{s:s,s:o,s:o}", "start", "textbook", "macros", macros, "edits", edits));
}

static bool note(wrong_list *w, int n, bool is_edited) {
    ir_genome *genome = genome_of(n, is_edited);
    bool noted = wrong_note(w, genome, GATE_ACCURATE, "it is wrong");
    ir_genome_free(genome);
    return noted;
}

static void test_starts_at_other_macros_are_noted_once(void **state) {
    (void)state;
    wrong_list w = {0};
    uint64_t marks[WRONG_MOST];
    assert_false(note(&w, 0, false)); /* the start at its defaults */
    assert_false(note(&w, 3, true));  /* the edit may be to blame */
    assert_true(note(&w, 3, false));
    assert_false(note(&w, 3, false));
    assert_true(note(&w, 5, false));
    assert_int_equal(wrong_marks(&w, marks), 2);
    ir_genome *five = genome_of(5, true), *six = genome_of(6, true);
    assert_true(marks[0] == wrong_mark(five) && marks[0] != wrong_mark(six));
    assert_string_equal(w.list[0].macros, "N=3");
    assert_string_equal(w.list[0].start, "textbook");
    assert_int_equal(w.list[0].at, GATE_ACCURATE);
    ir_genome_free(five);
    ir_genome_free(six);
    wrong_free(&w);
}

/* ---- in a search ---- */

static const int64_t values[] = {2, 3, 4};
static const task_macro macro = {.name = "N", .otherwise = 4, .values = values, .value_count = 3};
static const task_start textbook = {.name = "textbook", .macros = &macro, .macro_count = 1};

static uint64_t mark_of(int n) {
    ir_genome *genome = genome_of(n, false);
    uint64_t mark = wrong_mark(genome);
    ir_genome_free(genome);
    return mark;
}

/* Commits the next child, stopped if its macro is 3; returns whether it is told that 3 is wrong. */
static bool one_child(search *s, int number) {
    recipe r;
    search_verdict v;
    assert_int_equal(search_draw(s, false, &r, NULL), EV_OK);
    bool told = r.wrong_count == 1 && r.wrong[0] == mark_of(3);
    ir_genome *genome = ir_genome_clone(r.parents[0]);
    bool is_wrong = wrong_mark(genome) == mark_of(3);
    recipe_free(&r);
    child_result result = {
        .genome = genome,
        .operators = "start",
        .outcome = {.stopped = is_wrong ? GATE_ACCURATE : GATE_NONE, .ns = 1000}};
    snprintf(result.hashes[SEARCH_BY_IR], EV_SHA256_HEX, "code %d", number);
    snprintf(result.hashes[SEARCH_BY_PTX], EV_SHA256_HEX, "code %d", number);
    assert_int_equal(search_commit(s, &result, &v, NULL), EV_OK);
    ir_genome_free(genome);
    return told;
}

static void test_a_search_tells_and_lists_them(void **state) {
    (void)state;
    search_start start = {.start = &textbook};
    start.sites[IR_EDIT_DELETE] = 9;
    const search_settings settings = {
        .starts = &start, .start_count = 1, .seed = 3, .evaluations = 400};
    search *s = NULL;
    const wrong_setting *list = NULL;
    assert_int_equal(search_new(&settings, &s, NULL), EV_OK);
    bool told = false;
    for (int i = 0; i < 12; i++)
        told = one_child(s, i);
    assert_true(told);
    assert_int_equal(search_wrong(s, &list), 1);
    assert_string_equal(list[0].macros, "N=3");
    search_free(s);
}

/* ---- in a worker ---- */

static ir_genome *draw(uint64_t child, unsigned wrong_count) {
    const task t = {.starts = &textbook, .start_count = 1};
    draw_bases bases = {0};
    recipe r = {.parents = {genome_of(0, false)},
                .parent_count = 1,
                .steps = {{.arms = {ARM_OF(MACRO)}, .count = 1}},
                .step_count = 1,
                .wrong = {mark_of(3)},
                .wrong_count = wrong_count,
                .stream = {.seed = 1, .child = child}};
    drawn_child out = {0};
    ev_str operators = EV_STR_EMPTY;
    assert_int_equal(draw_child(&t, &bases, &r, &out, &operators, NULL), EV_OK);
    ev_str_free(&operators);
    recipe_free(&r);
    return out.genome;
}

static void test_no_child_gets_a_wrong_value(void **state) {
    (void)state;
    unsigned with = 0, without = 0;
    for (uint64_t i = 0; i < 40; i++) {
        ir_genome *free_choice = draw(i, 0), *told = draw(i, 1);
        with += wrong_mark(free_choice) == mark_of(3);
        without += wrong_mark(told) == mark_of(3);
        assert_true(wrong_mark(told) == mark_of(2) || wrong_mark(told) == mark_of(3));
        ir_genome_free(free_choice);
        ir_genome_free(told);
    }
    assert_true(with > 5);
    assert_int_equal(without, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_at_other_macros_are_noted_once),
        cmocka_unit_test(test_a_search_tells_and_lists_them),
        cmocka_unit_test(test_no_child_gets_a_wrong_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
