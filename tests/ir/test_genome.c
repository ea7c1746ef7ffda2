/* Genomes: JSON round trip and refusals, keys, knobs, crossover. */
#include "base/json.h"
#include "ir/genome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ev_status parse(const char *text, ir_genome **out, ev_error *err) {
    ev_json *doc = NULL;
    ev_status status = ev_json_parse(text, "test", &doc, err);
    assert_int_equal(status, EV_OK);
    status = ir_genome_from_json(doc->root, out, err);
    ev_json_free(doc);
    return status;
}

static ir_genome *genome_of(const char *text) {
    ir_genome *genome = NULL;
    ev_error err;
    if (parse(text, &genome, &err) != EV_OK)
        fail_msg("%s", err.text);
    return genome;
}

static char *text_of(const ir_genome *genome) {
    json_t *json = ir_genome_to_json(genome);
    char *text = ev_json_print(json, true);
    json_decref(json);
    return text;
}

#define EDIT_A "{\"at\":\"i1\",\"kind\":\"delete\",\"repairs\":[[\"i2\",0,\"a3\"],[\"i4\",1,0.5]]}"
#define EDIT_B "{\"at\":\"i5\",\"kind\":\"operand\",\"operand\":1,\"value\":-7}"
#define EDIT_C                                                                                     \
    "{\"at\":\"i1\",\"kind\":\"copy\",\"repairs\":[[\"self.0\",1,\"i0\"]],\"to\":\"i7\","          \
    "\"use\":[\"i9\",0]}"
#define EDIT_D "{\"kind\":\"max-registers\",\"option\":32}"
#define EDIT_E "{\"kind\":\"max-registers\",\"option\":64}"
#define GENOME(macros, edits) "{\"edits\":[" edits "],\"macros\":{" macros "},\"start\":\"hand\"}"

static void json_comes_back_the_same(void **state) {
    (void)state;
    static const char text[] =
        GENOME("\"TILE\":16,\"UNROLL\":-1", EDIT_A "," EDIT_B "," EDIT_C "," EDIT_D);
    ir_genome *genome = genome_of(text);
    char *printed = text_of(genome);
    assert_string_equal(printed, text);
    assert_string_equal(ir_genome_start(genome), "hand");
    assert_int_equal(ir_genome_edit_count(genome), 4);
    ir_genome *clone = ir_genome_clone(genome);
    ev_sha256 a = ir_genome_sha256(genome), b = ir_genome_sha256(clone);
    ev_sha256 of_text = ev_sha256_of(text, strlen(text));
    assert_true(ev_sha256_equal(&a, &b));
    assert_true(ev_sha256_equal(&a, &of_text));
    free(printed);
    ir_genome_free(clone);
    ir_genome_free(genome);
}

/* The kind of base is part of the genome, comes back, and makes another genome. */
static void the_kind_of_base_comes_back(void **state) {
    (void)state;
    static const char text[] =
        "{\"base\":\"optimised\",\"edits\":[" EDIT_A "],\"macros\":{},\"start\":\"hand\"}";
    ir_genome *genome = genome_of(text), *rolled = genome_of(GENOME("", EDIT_A));
    assert_true(ir_genome_is_optimised(genome));
    assert_false(ir_genome_is_optimised(rolled));
    ir_genome *clone = ir_genome_clone(genome);
    ev_pcg rng = ev_pcg_seed(1, 2);
    ir_genome *child = ir_genome_crossover(genome, clone, &rng);
    char *printed = text_of(child);
    assert_string_equal(printed, text);
    ev_sha256 a = ir_genome_sha256(genome), b = ir_genome_sha256(rolled);
    assert_false(ev_sha256_equal(&a, &b));
    free(printed);
    ir_genome_free(child);
    ir_genome_free(clone);
    ir_genome_free(rolled);
    ir_genome_free(genome);
}

static void bad_json_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "not an object"},
        {"{\"edits\":[]}", "\"start\" is missing"},
        {"{\"start\":\"x\",\"edit\":[]}", "unknown key \"edit\""},
        {"{\"start\":\"x\",\"base\":\"rolled\"}", "\"base\" is not \"optimised\""},
        {"{\"start\":\"x\",\"macros\":{\"A\":1.5}}", "macros.A is no integer"},
        {"{\"start\":\"x\",\"edits\":{}}", "\"edits\" is no list"},
        {"{\"start\":\"x\",\"edits\":[{\"at\":\"i1\"}]}", "edits[0]: the key \"kind\" is missing"},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"explode\"}]}",
         "unknown edit \"explode\"; known: copy"},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"at\":\"i01\"}]}", "\"at\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"at\":\"i1x\"}]}", "\"at\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"at\":\"i99999999999\"}]}", "\"at\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"at\":\"t12.0\"}]}", "\"at\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"at\":7}]}", "\"at\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"wher\":\"i1\"}]}",
         "unknown key \"wher\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"operand\",\"operand\":-1}]}", "\"operand\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"unroll\",\"option\":\"4\"}]}", "\"option\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"operand\",\"value\":null}]}", "\"value\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"copy\",\"use\":[\"i1\"]}]}", "\"use\""},
        {"{\"start\":\"x\",\"edits\":[{\"kind\":\"delete\",\"repairs\":[[\"i1\",0]]}]}",
         "repairs[0]"},
        {"{\"start\":\"x\",\"edits\":[" EDIT_B "," EDIT_B "]}",
         "edits[1]: \"operand\" is given twice"},
        {"{\"start\":\"x\",\"edits\":[" EDIT_D "," EDIT_E "]}",
         "edits[1]: \"max-registers\" is given twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_genome *genome = NULL;
        ev_error err;
        assert_int_equal(parse(rows[i].text, &genome, &err), EV_BAD);
        assert_null(genome);
        if (!strstr(err.text, rows[i].message))
            fail_msg("%s\nsays: %s\nnot: %s", rows[i].text, err.text, rows[i].message);
    }
}

static void keys_tell_edits_apart(void **state) {
    (void)state;
    ir_genome *a = genome_of(GENOME("", EDIT_A "," EDIT_B));
    ir_genome *b = genome_of(GENOME("", EDIT_B));
    ev_sha256 a0 = ir_genome_edit_key(a, 0), a1 = ir_genome_edit_key(a, 1);
    ev_sha256 b0 = ir_genome_edit_key(b, 0);
    assert_false(ev_sha256_equal(&a0, &a1));
    assert_true(ev_sha256_equal(&a1, &b0));
    assert_false(ir_genome_append_from(b, a, 1));
    assert_true(ir_genome_append_from(b, a, 0));
    assert_int_equal(ir_genome_edit_count(b), 2);
    ir_genome_remove(b, 0);
    b0 = ir_genome_edit_key(b, 0);
    assert_true(ev_sha256_equal(&a0, &b0));
    ir_genome_free(a);
    ir_genome_free(b);
}

static void a_knob_takes_the_place_of_its_kind(void **state) {
    (void)state;
    ir_genome *a = genome_of(GENOME("", EDIT_D "," EDIT_B));
    ir_genome *b = genome_of(GENOME("", EDIT_E));
    assert_true(ir_genome_append_from(a, b, 0));
    char *text = text_of(a);
    assert_string_equal(text, GENOME("", EDIT_B "," EDIT_E));
    free(text);
    ir_genome_free(a);
    ir_genome_free(b);
}

static void macros_are_sorted(void **state) {
    (void)state;
    ir_genome *genome = ir_genome_new("x");
    assert_int_equal(ir_genome_set_macro(genome, "B", 2, NULL), EV_OK);
    assert_int_equal(ir_genome_set_macro(genome, "C", 3, NULL), EV_OK);
    assert_int_equal(ir_genome_set_macro(genome, "A", 1, NULL), EV_OK);
    assert_int_equal(ir_genome_set_macro(genome, "B", 5, NULL), EV_OK);
    assert_int_equal(ir_genome_macro_count(genome), 3);
    assert_string_equal(ir_genome_macro_name(genome, 1), "B");
    assert_int_equal(ir_genome_macro_value(genome, 1), 5);
    ir_genome_free(genome);
}

static bool holds(const ir_genome *genome, const ir_genome *of, size_t index) {
    ev_sha256 wanted = ir_genome_edit_key(of, index);
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        ev_sha256 key = ir_genome_edit_key(genome, i);
        if (ev_sha256_equal(&key, &wanted))
            return true;
    }
    return false;
}

/* Shared edits are always there, others now and then, and the same draw gives the same child. */
static void crossover_keeps_what_is_shared(void **state) {
    (void)state;
    ir_genome *a = genome_of(GENOME("\"T\":1", EDIT_A "," EDIT_B "," EDIT_D));
    ir_genome *b = genome_of(GENOME("\"T\":2", EDIT_B "," EDIT_C "," EDIT_E));
    int with[4] = {0};
    enum { CHILDREN = 200 };
    for (uint64_t seed = 0; seed < CHILDREN; seed++) {
        ev_pcg rng = ev_pcg_seed(seed, 3), again = rng;
        ir_genome *child = ir_genome_crossover(a, b, &rng);
        ir_genome *twin = ir_genome_crossover(a, b, &again);
        ev_sha256 one = ir_genome_sha256(child), two = ir_genome_sha256(twin);
        assert_true(ev_sha256_equal(&one, &two));
        assert_true(holds(child, a, 1));
        assert_false(holds(child, a, 2) && holds(child, b, 2));
        with[0] += holds(child, a, 0);
        with[1] += holds(child, b, 1);
        with[2] += holds(child, b, 2);
        with[3] += ir_genome_macro_value(child, 0) == 1;
        ir_genome_free(child);
        ir_genome_free(twin);
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(with[i], CHILDREN / 8, CHILDREN * 7 / 8);
    ir_genome_free(a);
    ir_genome_free(b);
}

/* An edit of what another inserted never comes without that other. */
static void crossover_keeps_what_is_needed(void **state) {
    (void)state;
    ir_genome *maker = genome_of(GENOME("", EDIT_C));
    ev_sha256 key = ir_genome_edit_key(maker, 0);
    char text[1024];
    snprintf(text, sizeof text,
             "{\"start\":\"hand\",\"edits\":[" EDIT_C
             ",{\"kind\":\"delete\",\"at\":\"t%.16s.0\"}]}",
             key.hex);
    ir_genome *a = genome_of(text);
    ir_genome *b = genome_of(GENOME("", EDIT_B));
    int both = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        ev_pcg rng = ev_pcg_seed(seed, 3);
        ir_genome *child = ir_genome_crossover(a, b, &rng);
        assert_true(!holds(child, a, 1) || holds(child, a, 0));
        both += holds(child, a, 1);
        ir_genome_free(child);
    }
    assert_true(both > 0);
    ir_genome_free(maker);
    ir_genome_free(a);
    ir_genome_free(b);
}

/* Parts share start, macros and kind of base, and leave the whole as it was. */
static void parts_of_genomes(void **state) {
    (void)state;
    ir_genome *whole = genome_of(GENOME("\"TILE\":16", EDIT_A "," EDIT_B "," EDIT_D));
    ir_genome *part = ir_genome_part(whole, 1, 2), *rest = ir_genome_without(whole, 1, 2);
    ir_genome *none = ir_genome_part(whole, 2, 2), *all = ir_genome_without(whole, 0, 0);
    char *text = text_of(part);
    assert_string_equal(text, GENOME("\"TILE\":16", EDIT_B));
    free(text);
    text = text_of(rest);
    assert_string_equal(text, GENOME("\"TILE\":16", EDIT_A "," EDIT_D));
    free(text);
    ev_sha256 a = ir_genome_sha256(whole), b = ir_genome_sha256(all);
    assert_true(ev_sha256_equal(&a, &b));
    a = ir_genome_base_sha256(whole);
    b = ir_genome_sha256(none);
    assert_true(ev_sha256_equal(&a, &b));
    assert_true(ir_genome_holds_all(whole, rest) && ir_genome_holds_all(whole, none));
    assert_false(ir_genome_holds_all(rest, whole));
    ev_sha256 key = ir_genome_edit_key(whole, 2);
    assert_int_equal(ir_genome_find(rest, &key), 1);
    assert_int_equal(ir_genome_find(part, &key), SIZE_MAX);
    assert_true(ir_genome_same_base(whole, none));
    ir_genome_unset_macro(none, "UNROLL"); /* not set: nothing */
    assert_true(ir_genome_same_base(whole, none));
    ir_genome_unset_macro(none, "TILE");
    assert_false(ir_genome_same_base(whole, none) || ir_genome_holds_all(whole, none));
    const ir_genome *each[] = {whole, part, rest, none, all};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        ir_genome_free(each[i]);
}

/* The hash is computed once, and again after a change. */
static void hashes_follow_changes(void **state) {
    (void)state;
    ir_genome *genome = genome_of(GENOME("", EDIT_A)), *other = genome_of(GENOME("", EDIT_B));
    ev_sha256 first = ir_genome_sha256(genome), base = ir_genome_base_sha256(genome);
    assert_true(ir_genome_append_from(genome, other, 0));
    ev_sha256 second = ir_genome_sha256(genome), same_base = ir_genome_base_sha256(genome);
    assert_false(ev_sha256_equal(&first, &second));
    assert_true(ev_sha256_equal(&base, &same_base));
    ir_genome_remove(genome, 1);
    second = ir_genome_sha256(genome);
    assert_true(ev_sha256_equal(&first, &second));
    assert_int_equal(ir_genome_set_macro(genome, "N", 2, NULL), EV_OK);
    second = ir_genome_sha256(genome);
    same_base = ir_genome_base_sha256(genome);
    assert_false(ev_sha256_equal(&first, &second) || ev_sha256_equal(&base, &same_base));
    const ir_genome *shared = ir_genome_ref(genome);
    ir_genome_free(genome);
    assert_string_equal(ir_genome_start(shared), "hand"); /* it lives until the last reference */
    ir_genome_free(shared);
    ir_genome_free(other);
    assert_null(ir_genome_ref(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_comes_back_the_same),
        cmocka_unit_test(parts_of_genomes),
        cmocka_unit_test(hashes_follow_changes),
        cmocka_unit_test(the_kind_of_base_comes_back),
        cmocka_unit_test(bad_json_is_refused),
        cmocka_unit_test(keys_tell_edits_apart),
        cmocka_unit_test(a_knob_takes_the_place_of_its_kind),
        cmocka_unit_test(macros_are_sorted),
        cmocka_unit_test(crossover_keeps_what_is_shared),
        cmocka_unit_test(crossover_keeps_what_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
