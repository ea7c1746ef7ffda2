/* Links of edits: what is learned from which outcomes, what goes to a crossover, and that the
 * crossover keeps it. */
#include "tuner/search/draw.h"
#include "tuner/search/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"

/* A genome of one edit a letter, each the deletion of another instruction; `n`: macro N, 0: unset.
 */
static ir_genome *genome_of(const char *letters, int n) {
    ir_genome *genome = genome_bare();
    for (; *letters; letters++)
        genome_delete(genome, *letters - 'A');
    if (n)
        assert_int_equal(ir_genome_set_macro(genome, "N", n, NULL), EV_OK);
    return genome;
}

/* The letter whose deletion has the key. */
static char letter_of(ev_sha256 key) {
    for (int letter = 'A'; letter <= 'z'; letter++) {
        char text[2] = {(char)letter, '\0'};
        ir_genome *one = genome_of(text, 0);
        ev_sha256 own = ir_genome_edit_key(one, 0);
        ir_genome_free(one);
        if (ev_sha256_equal(&own, &key))
            return (char)letter;
    }
    return '?';
}

static void letters_of(const ir_genome *genome, char out[16]) {
    size_t count = 0;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        if (ir_genome_edit_kind(genome, i) == IR_EDIT_DELETE)
            out[count++] = (char)('A' + genome_deleted(genome, i));
    }
    out[count] = '\0';
}

/* Outcomes by letters: "AB+ B-" says that AB passed and B did not. */
static bool written(const void *context, const ir_genome *genome, bool *passed) {
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
        snprintf(got + used, sizeof got - used, "%s%c>%c", i ? " " : "",
                 letter_of(l->list[i].pair.edit), letter_of(l->list[i].pair.needs));
    }
    assert_string_equal(got, want);
}

static void learn_passed(links *l, const char *whole, const char *outcomes) {
    ir_genome *genome = genome_of(whole, 0);
    links_learn_from_passed(l, genome, written, outcomes);
    ir_genome_free(genome);
}

static void learn_failed(links *l, const char *part, const char *whole, const char *outcomes) {
    ir_genome *a = genome_of(part, 0), *b = genome_of(whole, 0);
    links_learn_from_failed(l, a, b, written, outcomes);
    ir_genome_free(a);
    ir_genome_free(b);
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
    assert_int_equal(letter_of(l.list[0].pair.edit),
                     'B' + LINKS_MOST); /* the newest, over the oldest */
    assert_int_equal(letter_of(l.list[1].pair.edit), 'C');
    links_free(&l);
}

static void test_only_what_a_parent_holds(void **state) {
    (void)state;
    links l = {0};
    learn_failed(&l, "B", "AB", "");
    learn_failed(&l, "D", "CD", "");
    ir_genome *ab = genome_of("ABE", 0), *cf = genome_of("CF", 0), *other = genome_of("ABE", 2);
    edit_pair pairs[LINKS_MOST];
    assert_int_equal(links_of(&l, ab, cf, pairs), 1);
    assert_int_equal(letter_of(pairs[0].edit), 'B');
    assert_int_equal(letter_of(pairs[0].needs), 'A');
    /* another base module: the numbers mean other instructions */
    assert_int_equal(links_of(&l, other, cf, pairs), 0);
    ir_genome_free(ab);
    ir_genome_free(cf);
    ir_genome_free(other);
    links_free(&l);
}

/* ---- crossover ---- */

static bool has(const ir_genome *genome, char letter) {
    char letters[16];
    letters_of(genome, letters);
    return strchr(letters, letter) != NULL;
}

/* Of 64 children: how many have B without A. */
static unsigned count_broken(const draw_links *needs) {
    unsigned broken = 0, with = 0;
    ir_genome *a = genome_of("ABC", 0), *b = genome_of("DEF", 0);
    ev_pcg rng = ev_pcg_seed(1, 2);
    for (int i = 0; i < 64; i++) {
        ir_genome *child = draw_crossed(a, b, needs, &rng);
        assert_non_null(child);
        with += has(child, 'B');
        broken += has(child, 'B') && !has(child, 'A');
        ir_genome_free(child);
    }
    ir_genome_free(a);
    ir_genome_free(b);
    assert_in_range(with, 16, 48);
    return broken;
}

static void test_crossover_keeps_links(void **state) {
    (void)state;
    links l = {0};
    learn_failed(&l, "B", "AB", "");
    ir_genome *ab = genome_of("ABC", 0);
    edit_pair pairs[LINKS_MOST];
    const draw_links needs = {pairs, links_of(&l, ab, NULL, pairs)};
    assert_true(count_broken(NULL) > 5);
    assert_int_equal(count_broken(&needs), 0);
    ir_genome_free(ab);
    links_free(&l);
}

/* Takes the genome. */
static ir_genome *with_pipeline(ir_genome *genome, int option) {
    ir_genome *one = genome_from(json_pack("{s:s,s:[{s:s,s:i}]}", "start", "a", "edits", "kind",
                                           "pipeline", "option", option));
    assert_true(ir_genome_append_from(genome, one, 0));
    ir_genome_free(one);
    return genome;
}

static unsigned count_pipelines(const ir_genome *genome) {
    unsigned count = 0;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        count += ir_genome_edit_kind(genome, i) == IR_EDIT_PIPELINE;
    return count;
}

/* Of 64 children: how many have no pipeline. */
static unsigned count_without(ir_genome *a, ir_genome *b) {
    unsigned without = 0;
    ev_pcg rng = ev_pcg_seed(3, 4);
    for (int i = 0; i < 64; i++) {
        ir_genome *child = draw_crossed(a, b, NULL, &rng);
        assert_non_null(child);
        assert_in_range(count_pipelines(child), 0, 1);
        without += count_pipelines(child) == 0;
        ir_genome_free(child);
    }
    ir_genome_free(a);
    ir_genome_free(b);
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

static bool same(const ir_genome *a, const ir_genome *b) {
    ev_sha256 x = ir_genome_sha256(a), y = ir_genome_sha256(b);
    return ev_sha256_equal(&x, &y);
}

/* The coordinator's own crossover, and what its recipe says of it. */
static void test_crossed_before_it_is_sent(void **state) {
    (void)state;
    ir_genome *a = genome_of("ABC", 0), *b = genome_of("DEF", 0);
    ev_pcg rng = ev_pcg_seed(4, 5), again_rng = rng;
    ir_genome *child = draw_crossed(a, b, NULL, &rng);
    ir_genome *again = draw_crossed(a, b, NULL, &again_rng);
    ir_genome *other = draw_crossed(a, b, NULL, &rng);
    assert_true(same(child, again) && !same(child, other)); /* the stream goes on */
    assert_true(!same(child, a) && !same(child, b));
    const recipe r = {.parents = {child},
                      .parent_count = 1,
                      .made = RECIPE_CROSSED,
                      .stream = {.seed = 1, .child = 1}};
    draw_bases bases = {0};
    drawn_child out = {0};
    ev_str operators = EV_STR_EMPTY;
    ev_error err;
    assert_int_equal(draw_child(NULL, &bases, &r, &out, &operators, &err), EV_OK);
    assert_string_equal(ev_str_text(&operators), "crossover");
    assert_true(same(out.genome, child) && out.genome != child); /* one of its own, to change */
    assert_null(out.edited);
    drawn_child_free(&out);
    ev_str_free(&operators);
    const ir_genome *all[] = {a, b, child, again, other};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ir_genome_free(all[i]);
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
