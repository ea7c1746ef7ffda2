/* The structural prefix of a genome: JSON, order, equality of bases, crossover, launch plans. */
#include "base/json.h"
#include "ir/genome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

#define COARSEN "{\"anchor\":\"y\",\"form\":\"strided\",\"kind\":\"coarsen\",\"option\":4}"
#define THREADS                                                                                    \
    "{\"anchor\":\"x\",\"form\":\"neighbours\",\"kind\":\"coarsen-threads\",\"option\":2}"
#define SPLIT "{\"anchor\":\"loop 0.1\",\"kind\":\"split-lanes\",\"option\":8}"
#define SPECIALISE                                                                                 \
    "{\"anchor\":\"a4\",\"form\":\"equal\",\"kind\":\"specialise\",\"option\":-36},"               \
    "{\"anchor\":\"a3\",\"form\":\"multiple\",\"kind\":\"specialise\",\"option\":4},"              \
    "{\"kind\":\"peel\"},{\"anchor\":\"s0\",\"kind\":\"pad\",\"option\":1},"                       \
    "{\"anchor\":\"s1\",\"kind\":\"swizzle\",\"option\":2}"
#define LOCAL "{\"at\":\"i5\",\"kind\":\"operand\",\"operand\":1,\"value\":-7}"
#define OTHER "{\"at\":\"i6\",\"kind\":\"operand\",\"operand\":0,\"value\":3}"
#define GENOME(edits) "{\"edits\":[" edits "],\"macros\":{},\"start\":\"hand\"}"

static ev_status parse(const char *text, ir_genome **out) {
    ev_json *doc = NULL;
    OK(ev_json_parse(text, "test", &doc, &err));
    ev_status status = ir_genome_from_json(doc->root, out, &err);
    ev_json_free(doc);
    return status;
}

static ir_genome *genome_of(const char *text) {
    ir_genome *genome = NULL;
    OK(parse(text, &genome));
    return genome;
}

static void json_comes_back_the_same(void **state) {
    (void)state;
    static const char text[] = GENOME(COARSEN "," THREADS "," SPLIT "," SPECIALISE "," LOCAL);
    ir_genome *genome = genome_of(text);
    json_t *json = ir_genome_to_json(genome);
    char *printed = ev_json_print(json, true);
    assert_string_equal(printed, text);
    assert_int_equal(ir_genome_prefix_count(genome), 8);
    free(printed);
    json_decref(json);
    ir_genome_free(genome);
}

static void bad_places_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {GENOME(LOCAL "," COARSEN), "structural edits come first"},
        {GENOME(COARSEN "," COARSEN), "given twice"},
        {GENOME("{\"kind\":\"coarsen\",\"anchor\":\"w\"}"), "anchors like"},
        {GENOME("{\"kind\":\"coarsen\",\"anchor\":\"loop \"}"), "anchors like"},
        {GENOME("{\"kind\":\"coarsen\",\"anchor\":\"loop 0..1\"}"), "anchors like"},
        {GENOME("{\"kind\":\"coarsen\",\"anchor\":3}"), "anchors like"},
        {GENOME("{\"kind\":\"coarsen\",\"form\":\"near\"}"), "forms like"},
        {GENOME("{\"kind\":\"coarsen\",\"form\":\"\"}"), "forms like"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_genome *genome = NULL;
        assert_int_equal(parse(rows[i].text, &genome), EV_BAD);
        if (!strstr(err.text, rows[i].words))
            fail_msg("'%s' lacks '%s'", err.text, rows[i].words);
    }
}

static bool same_base_key(const ir_genome *a, const ir_genome *b) {
    ev_sha256 x = ir_genome_base_sha256(a), y = ir_genome_base_sha256(b);
    return ev_sha256_equal(&x, &y);
}

static void the_prefix_belongs_to_the_base(void **state) {
    (void)state;
    ir_genome *plain = genome_of(GENOME("")), *one = genome_of(GENOME(COARSEN));
    ir_genome *edited = genome_of(GENOME(COARSEN "," LOCAL));
    ir_genome *two = genome_of(GENOME(COARSEN "," SPLIT));
    assert_true(ir_genome_same_base(one, edited) && same_base_key(one, edited));
    assert_false(ir_genome_same_base(one, plain) || same_base_key(one, plain));
    assert_false(ir_genome_same_base(one, two) || same_base_key(one, two));
    ev_str a = EV_STR_EMPTY, b = EV_STR_EMPTY;
    OK(ir_genome_prefix_text(one, ir_genome_prefix_count(one), &a, &err));
    OK(ir_genome_prefix_text(edited, ir_genome_prefix_count(edited), &b, &err));
    assert_string_equal(ev_str_text(&a), ev_str_text(&b));
    ev_str_free(&a);
    ev_str_free(&b);
    /* A structural edit that is appended goes to the end of the prefix. */
    assert_true(ir_genome_append_from(edited, two, 1));
    assert_int_equal(ir_genome_prefix_count(edited), 2);
    assert_true(ir_genome_same_base(edited, two));
    ir_genome_free(plain);
    ir_genome_free(one);
    ir_genome_free(edited);
    ir_genome_free(two);
}

static void parents_with_other_prefixes_are_not_mixed(void **state) {
    (void)state;
    ir_genome *a = genome_of(GENOME(COARSEN "," LOCAL)), *b = genome_of(GENOME(SPLIT "," OTHER));
    ir_genome *c = genome_of(GENOME(COARSEN "," OTHER));
    for (uint64_t seed = 0; seed < 20; seed++) {
        ev_pcg rng = ev_pcg_seed(seed, 1);
        ir_genome *mixed = ir_genome_crossover(a, b, &rng);
        ir_genome *child = ir_genome_crossover(a, c, &rng);
        ev_sha256 x = ir_genome_sha256(mixed), y = ir_genome_sha256(a);
        assert_true(ev_sha256_equal(&x, &y));
        assert_true(ir_genome_same_base(child, a));
        ir_genome_free(mixed);
        ir_genome_free(child);
    }
    ir_genome_free(a);
    ir_genome_free(b);
    ir_genome_free(c);
}

static void the_launch_plan_follows(void **state) {
    (void)state;
    launch_rule rule = {"k", {"n / 2", "m + 1", "1"}, {"32", "4", "1"}, "0", NULL, 0};
    launch_plan plan = {.launches = &rule, .launch_count = 1};
    const launch_plan *after = NULL;
    ev_arena *arena = ev_arena_new();
    ir_genome *all = genome_of(GENOME(COARSEN "," THREADS "," SPLIT "," SPECIALISE "," LOCAL));
    ir_genome *none = genome_of(GENOME(LOCAL));
    OK(ir_genome_plan(none, &plan, arena, &after, &err));
    assert_ptr_equal(after, &plan);
    OK(ir_genome_plan(all, &plan, arena, &after, &err));
    expr_name names[] = {{"n", expr_of_whole(10)}, {"m", expr_of_whole(8)}};
    expr_scope scope = {names, 2};
    launch_geometry at;
    OK(launch_plan_geometry(after, 0, &scope, &LAUNCH_LIMITS_CUDA, &at, &err));
    assert_true(at.grid[0] == 5 && at.grid[1] == 3 && at.block[0] == 128 && at.block[1] == 4);
    assert_string_equal(rule.grid[1], "m + 1");
    ir_genome_free(all);
    ir_genome_free(none);
    ev_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_comes_back_the_same),
        cmocka_unit_test(bad_places_are_refused),
        cmocka_unit_test(the_prefix_belongs_to_the_base),
        cmocka_unit_test(parents_with_other_prefixes_are_not_mixed),
        cmocka_unit_test(the_launch_plan_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
