/* The cache of early IR: what is kept is found under its own start, macros and edits alone; what
 * was used least recently goes first, and borrowed places stay. */
#include "tuner/worker/early.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"
#include "tests/ok.h"

static ev_error err;

static ir_genome *genome_of(const char *start, int first, int second) {
    json_t *edits = json_pack("[{s:s,s:i},{s:s,s:i}]", "kind", "relabel-blocks", "option", first,
                              "kind", "relabel-threads", "option", second);
    return genome_from(json_pack("{s:s,s:o}", "start", start, "edits", edits));
}

static void keep(early *e, const ir_genome *genome, size_t edits, const char *text, size_t bytes) {
    OK(early_keep(e, genome, edits,
                  &(ir_early){.bitcode = text, .bytes = bytes, .block = {8, 4, 1}}, &err));
}

static void test_each_part_of_a_prefix_is_found(void **state) {
    (void)state;
    early *e = early_new(1 << 20);
    ir_genome *one = genome_of("hand", 2, 4), *sibling = genome_of("hand", 2, 8);
    ir_genome *other = genome_of("textbook", 2, 4);
    ir_early found;
    keep(e, one, 1, "first", 6);
    keep(e, one, 2, "both", 5);
    keep(e, one, IR_OPTIMISED, "optimised", 10);
    assert_true(early_find(e, one, 2, &found));
    assert_string_equal(found.bitcode, "both");
    assert_true(found.bytes == 5 && found.block[0] == 8 && found.block[1] == 4);
    assert_true(early_find(e, one, IR_OPTIMISED, &found));
    assert_string_equal(found.bitcode, "optimised");
    assert_true(early_find(e, sibling, 1, &found));
    assert_string_equal(found.bitcode, "first");
    assert_false(early_find(e, sibling, 2, &found));
    assert_false(early_find(e, sibling, IR_OPTIMISED, &found));
    assert_false(early_find(e, one, 0, &found));
    assert_false(early_find(e, other, 1, &found));
    ir_genome_free(one);
    ir_genome_free(sibling);
    ir_genome_free(other);
    early_free(e);
}

static void test_the_oldest_goes_and_borrowed_places_stay(void **state) {
    (void)state;
    enum { BYTES = 100000, COUNT = 12 };
    static char text[BYTES] = "early IR";
    early *e = early_new((size_t)5 * (BYTES + 30000)); /* five entries */
    ir_genome *genomes[COUNT];
    ir_early found;
    for (int i = 0; i < COUNT; i++)
        genomes[i] = genome_of("hand", i + 2, 4);
    keep(e, genomes[0], 2, text, BYTES);
    ir_places *places = early_places(e, genomes[0]);
    assert_non_null(places);
    for (int i = 1; i < COUNT; i++) {
        keep(e, genomes[i], 2, text, BYTES);
        assert_true(early_find(e, genomes[1], 2, &found)); /* used again and again */
    }
    assert_true(early_find(e, genomes[COUNT - 1], 2, &found));
    assert_false(early_find(e, genomes[2], 2, &found));
    assert_true(early_find(e, genomes[0], 2, &found)); /* held */
    assert_ptr_equal(early_places(e, genomes[0]), places);
    for (int i = 0; i < COUNT; i++)
        ir_genome_free(genomes[i]);
    early_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_part_of_a_prefix_is_found),
        cmocka_unit_test(test_the_oldest_goes_and_borrowed_places_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
