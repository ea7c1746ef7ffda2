/* Links of edits: what is learned from which outcomes, what goes to a crossover, and that the
 * crossover keeps it. */
#include "tuner/search/draw.h"
#include "tuner/search/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A genome of one edit a letter, each the deletion of another instruction; `n`: macro N, 0: unset.
 */
static json_t *genome_of(const char *letters, int n) {
    json_t *edits = json_array(), *macros = json_object();
    for (; *letters; letters++) {
        char at[8];
        snprintf(at, sizeof at, "i%d", *letters - 'A');
        json_t *edit = json_pack("{s:s,s:s}", "kind", "delete", "at", at);
        assert_int_equal(json_array_append_new(edits, edit), 0);
    }
    if (n)
        assert_int_equal(json_object_set_new(macros, "N", json_integer(n)), 0);
    return json_pack("{s:s,s:o,s:o}", "start", "textbook", "macros", macros, "edits", edits);
}

static char letter_of(const json_t *edit) {
    const char *at = json_string_value(json_object_get(edit, "at"));
    char *end;
    assert_int_equal(*at, 'i');
    long number = strtol(at + 1, &end, 10);
    assert_true(end > at + 1);
    return (char)('A' + number);
}

static void letters_of(const json_t *genome, char out[16]) {
    size_t i = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(genome, "edits"), i, edit) out[i] = letter_of(edit);
    out[i] = '\0';
}

/* Outcomes by letters: "AB+ B-" says that AB passed and B did not. */
static bool written(const void *context, const json_t *genome, bool *passed) {
    char letters[16], word[18];
    letters_of(genome, letters);
    for (int i = 0; i < 2; i++) {
        snprintf(word, sizeof word, " %s%c", letters, i ? '-' : '+');
        if (strstr(context, word)) {
            *passed = i == 0;
            return true;
        }
    }
    return false;
}

static void expect_links(const links *l, const char *want) {
    char got[64] = "";
    for (size_t i = 0; i < l->count; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%c>%c", i ? " " : "", letter_of(l->list[i].edit),
                 letter_of(l->list[i].needs));
    }
    assert_string_equal(got, want);
}

static void learn_passed(links *l, const char *whole, const char *outcomes) {
    json_t *genome = genome_of(whole, 0);
    links_learn_from_passed(l, genome, written, outcomes);
    json_decref(genome);
}

static void learn_failed(links *l, const char *part, const char *whole, const char *outcomes) {
    json_t *a = genome_of(part, 0), *b = genome_of(whole, 0);
    links_learn_from_failed(l, a, b, written, outcomes);
    json_decref(a);
    json_decref(b);
}

static void test_learning(void **state) {
    (void)state;
    static const struct {
        const char *whole, *outcomes, *want;
    } rows[] = {
        {"AB", " A+ B-", "B>A"},          /* B alone fails, with A it passes */
        {"AB", " A+ B+", ""},             /* both stand alone */
        {"AB", " A+", ""},                /* nobody tried B alone */
        {"AB", " A- B-", "B>A A>B"},      /* they need each other */
        {"ABC", " BC- B+ C-", "C>A"},     /* of B and C without A, it passes when C goes too... */
        {"ABC", " AC- A+ C+", "A>B C>B"}, /* either would do */
        {"ABC", " BC-", ""},              /* which of them is not known */
        {"A", " A+", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        links l = {0};
        learn_passed(&l, rows[i].whole, rows[i].outcomes);
        expect_links(&l, rows[i].want);
        learn_passed(&l, rows[i].whole, rows[i].outcomes); /* once is enough */
        expect_links(&l, rows[i].want);
        links_free(&l);
    }
}

static void test_learning_from_a_drop(void **state) {
    (void)state;
    links l = {0};
    learn_failed(&l, "B", "AB", "");
    expect_links(&l, "B>A");
    learn_failed(&l, "BC", "ABD", ""); /* not one edit less */
    learn_failed(&l, "BC", "ABC", ""); /* B or C? */
    expect_links(&l, "B>A");
    learn_failed(&l, "CD", "CDE", " C+");
    expect_links(&l, "B>A D>E");
    links_free(&l);
}

static void test_oldest_goes(void **state) {
    (void)state;
    links l = {0};
    for (int i = 0; i < LINKS_MOST + 1; i++) {
        char part[2] = {(char)('B' + i), '\0'}, whole[3] = {'A', (char)('B' + i), '\0'};
        learn_failed(&l, part, whole, "");
    }
    assert_int_equal(l.count, LINKS_MOST);
    assert_int_equal(letter_of(l.list[0].edit), 'B' + LINKS_MOST); /* the newest, over the oldest */
    assert_int_equal(letter_of(l.list[1].edit), 'C');
    links_free(&l);
}

static void test_only_what_a_parent_holds(void **state) {
    (void)state;
    links l = {0};
    learn_failed(&l, "B", "AB", "");
    learn_failed(&l, "D", "CD", "");
    json_t *ab = genome_of("ABE", 0), *cf = genome_of("CF", 0), *other = genome_of("ABE", 2);
    json_t *list = links_of(&l, ab, cf);
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(letter_of(json_array_get(json_array_get(list, 0), 0)), 'B');
    json_decref(list);
    list = links_of(&l, other, cf); /* another base module: the numbers mean other instructions */
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    json_decref(ab);
    json_decref(cf);
    json_decref(other);
    links_free(&l);
}

/* ---- crossover ---- */

static bool has(const json_t *genome, char letter) {
    char letters[16];
    letters_of(genome, letters);
    return strchr(letters, letter) != NULL;
}

/* Of 64 children: how many have B without A. */
static unsigned count_broken(const json_t *needs) {
    unsigned broken = 0, with = 0;
    json_t *a = genome_of("ABC", 0), *b = genome_of("DEF", 0);
    ev_pcg rng = ev_pcg_seed(1, 2);
    for (int i = 0; i < 64; i++) {
        json_t *child = draw_crossed(a, b, needs, &rng);
        assert_non_null(child);
        with += has(child, 'B');
        broken += has(child, 'B') && !has(child, 'A');
        json_decref(child);
    }
    json_decref(a);
    json_decref(b);
    assert_in_range(with, 16, 48);
    return broken;
}

static void test_crossover_keeps_links(void **state) {
    (void)state;
    links l = {0};
    learn_failed(&l, "B", "AB", "");
    json_t *ab = genome_of("ABC", 0), *none = json_array(), *list = links_of(&l, ab, NULL);
    assert_true(count_broken(none) > 5);
    assert_int_equal(count_broken(list), 0);
    json_decref(ab);
    json_decref(none);
    json_decref(list);
    links_free(&l);
}

static json_t *with_pipeline(json_t *genome, int option) {
    json_t *edit = json_pack("{s:s,s:i}", "kind", "pipeline", "option", option);
    assert_int_equal(json_array_append_new(json_object_get(genome, "edits"), edit), 0);
    return genome;
}

static unsigned count_pipelines(const json_t *genome) {
    unsigned count = 0;
    size_t i = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(genome, "edits"), i, edit) count +=
        strcmp(json_string_value(json_object_get(edit, "kind")), "pipeline") == 0;
    return count;
}

/* Of 64 children: how many have no pipeline. */
static unsigned count_without(json_t *a, json_t *b) {
    unsigned without = 0;
    ev_pcg rng = ev_pcg_seed(3, 4);
    for (int i = 0; i < 64; i++) {
        json_t *child = draw_crossed(a, b, NULL, &rng);
        assert_non_null(child);
        assert_in_range(count_pipelines(child), 0, 1);
        without += count_pipelines(child) == 0;
        json_decref(child);
    }
    json_decref(a);
    json_decref(b);
    return without;
}

static void test_crossover_keeps_a_pipeline(void **state) {
    (void)state;
    assert_int_equal(count_without(with_pipeline(genome_of("ABC", 0), 11),
                                   with_pipeline(genome_of("DEF", 0), 12)),
                     0);
    assert_int_equal(count_without(genome_of("ABC", 0), with_pipeline(genome_of("DEF", 0), 12)), 0);
    assert_int_equal(count_without(genome_of("ABC", 0), genome_of("DEF", 0)), 64);
}

/* The coordinator's own crossover, and what its recipe says of it. */
static void test_crossed_before_it_is_sent(void **state) {
    (void)state;
    json_t *a = genome_of("ABC", 0), *b = genome_of("DEF", 0), *bad = json_pack("{}");
    ev_pcg rng = ev_pcg_seed(4, 5), same = rng;
    json_t *child = draw_crossed(a, b, NULL, &rng), *again = draw_crossed(a, b, NULL, &same);
    json_t *other = draw_crossed(a, b, NULL, &rng);
    assert_true(json_equal(child, again) && !json_equal(child, other)); /* the stream goes on */
    assert_true(!json_equal(child, a) && !json_equal(child, b));
    assert_null(draw_crossed(a, bad, NULL, &rng));
    const recipe r = {
        .parents = {child}, .parent_count = 1, .crossed = true, .stream = {.seed = 1, .child = 1}};
    draw_bases bases = {0};
    drawn_child out = {0};
    ev_str operators = EV_STR_EMPTY;
    ev_error err;
    assert_int_equal(draw_child(NULL, &bases, &r, &out, &operators, &err), EV_OK);
    assert_string_equal(ev_str_text(&operators), "crossover");
    json_t *got = ir_genome_to_json(out.genome);
    assert_true(json_equal(got, child));
    assert_null(out.edited);
    drawn_child_free(&out);
    ev_str_free(&operators);
    json_t *all[] = {a, b, bad, child, again, other, got};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        json_decref(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_learning_from_a_drop),
        cmocka_unit_test(test_oldest_goes),
        cmocka_unit_test(test_only_what_a_parent_holds),
        cmocka_unit_test(test_crossover_keeps_links),
        cmocka_unit_test(test_crossover_keeps_a_pipeline),
        cmocka_unit_test(test_crossed_before_it_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
