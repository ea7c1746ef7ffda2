/* The tabu list: what is noted, what is told again, and that a search tells it to its workers. */
#include "tuner/search/draw.h"
#include "tuner/search/search.h"
#include "tuner/search/tabu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"

/* A genome of `count` deletions, the last at `at`; `n`: macro N, 0: unset. */
static ir_genome *genome_of(int count, int at, int n) {
    json_t *edits = json_array(), *macros = json_object();
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%d", i + 1 == count ? at : 1000 + i);
        json_t *edit = json_pack("{s:s,s:s}", "kind", "delete", "at", name);
        assert_int_equal(json_array_append_new(edits, edit), 0);
    }
    if (n)
        assert_int_equal(json_object_set_new(macros, "N", json_integer(n)), 0);
    return genome_from(
        json_pack("{s:s,s:o,s:o}", "start", "textbook", "macros", macros, "edits", edits));
}

static uint64_t mark_of(int at) {
    ir_genome *genome = genome_of(1, at, 0);
    uint64_t mark = ir_genome_edit_mark(genome, 0);
    ir_genome_free(genome);
    return mark;
}

static void note(tabu_list *s, int count, int at, int n, bool worked) {
    ir_genome *genome = genome_of(count, at, n);
    tabu_note(s, genome, worked);
    ir_genome_free(genome);
}

static bool lists(const uint64_t *marks, unsigned count, int at) {
    for (unsigned i = 0; i < count; i++) {
        if (marks[i] == mark_of(at))
            return true;
    }
    return false;
}

static uint64_t marks[TABU_MOST];

/* How many there are of a parent with macro N = n; they are in `marks`. */
static unsigned marks_for(const tabu_list *s, int n, ir_edit_kind kind) {
    bool kinds[IR_EDIT_COUNT] = {false};
    kinds[kind] = true;
    ir_genome *parent = genome_of(2, 7, n);
    unsigned count = tabu_marks(s, parent, kinds, marks);
    ir_genome_free(parent);
    return count;
}

static void test_what_is_told(void **state) {
    (void)state;
    tabu_list s = {0};
    note(&s, 1, 5, 0, false);
    note(&s, 3, 6, 0, false); /* the last edit, whatever came before it */
    note(&s, 1, 8, 0, true);
    note(&s, 1, 8, 0, false); /* it worked once */
    note(&s, 1, 9, 2, false); /* of another base */
    note(&s, 1, 4, 0, false);
    note(&s, 2, 4, 0, true); /* works after all */
    assert_int_equal(marks_for(&s, 0, IR_EDIT_DELETE), 2);
    assert_true(lists(marks, 2, 5) && lists(marks, 2, 6));
    assert_int_equal(marks_for(&s, 2, IR_EDIT_DELETE), 1);
    assert_true(lists(marks, 1, 9));
    assert_int_equal(marks_for(&s, 0, IR_EDIT_MOVE), 0);
    tabu_free(&s);
}

static void test_the_newest_are_told(void **state) {
    (void)state;
    tabu_list s = {0};
    for (int at = 0; at < TABU_MOST + 20; at++)
        note(&s, 1, at, 0, false);
    assert_int_equal(marks_for(&s, 0, IR_EDIT_DELETE), TABU_MOST);
    assert_true(lists(marks, TABU_MOST, TABU_MOST + 19) && lists(marks, TABU_MOST, 20));
    assert_false(lists(marks, TABU_MOST, 19));
    tabu_free(&s);
}

/* What was repaired otherwise is the same edit all the same. */
static void test_repairs_make_no_other_mark(void **state) {
    (void)state;
    json_t *bare = json_pack("{s:s,s:s}", "kind", "delete", "at", "i3");
    json_t *repaired =
        json_pack("{s:s,s:s,s:[[s,i,s]]}", "kind", "delete", "at", "i3", "repairs", "i4", 0, "i2");
    assert_true(ir_edit_mark(bare) == ir_edit_mark(repaired) && ir_edit_mark(bare) == mark_of(3));
    assert_true(mark_of(3) != mark_of(4));
    assert_non_null(json_object_get(repaired, "repairs"));
    json_decref(bare);
    json_decref(repaired);
}

/* ---- in a search ---- */

/* Children of the textbook start, each by one deletion; the search is told what became of them. */
typedef struct scripted {
    search *s;
    unsigned asked, told; /* messages that may draw a deletion; those that list the tabu one */
} scripted;

static bool may_delete(const recipe *r) {
    for (unsigned i = 0; i < r->step_count; i++) {
        for (unsigned k = 0; k < r->steps[i].count; k++) {
            if (r->steps[i].arms[k] == IR_EDIT_DELETE)
                return true;
        }
    }
    return false;
}

static void one_child(scripted *x, int number, gate stopped) {
    recipe r;
    assert_int_equal(search_draw(x->s, false, &r, NULL), EV_OK);
    size_t edits = ir_genome_edit_count(r.parents[0]);
    bool asks = may_delete(&r);
    x->asked += asks;
    x->told += asks && lists(r.tabu, r.tabu_count, 5);
    recipe_free(&r);
    char hash[24];
    snprintf(hash, sizeof hash, "code %d", number);
    ir_genome *genome = genome_of((int)edits + 1, 5, 0);
    search_result result = {.genome = genome,
                            .operators = "delete",
                            .hashes = {[SEARCH_BY_IR] = hash, [SEARCH_BY_PTX] = hash},
                            .stopped = number == 0 ? GATE_NONE : stopped,
                            .ns = 1000};
    search_verdict v;
    assert_int_equal(search_commit(x->s, &result, &v, NULL), EV_OK);
    ir_genome_free(genome);
}

static scripted run(gate stopped) {
    const task_start textbook = {.name = "textbook"};
    search_start start = {.start = &textbook};
    start.sites[IR_EDIT_DELETE] = 9;
    const search_settings settings = {
        .starts = &start, .start_count = 1, .seed = 3, .evaluations = 400};
    scripted x = {0};
    assert_int_equal(search_new(&settings, &x.s, NULL), EV_OK);
    for (int i = 0; i < 200; i++)
        one_child(&x, i, stopped);
    search_free(x.s);
    return x;
}

/* Most children are told, one in eight is not; what works is not told at all. */
static void test_a_search_tells_what_is_wrong(void **state) {
    (void)state;
    scripted wrong = run(GATE_ACCURATE);
    assert_true(wrong.asked > 40);
    assert_true(wrong.told > wrong.asked * 7 / 10 && wrong.told < wrong.asked);
    scripted right = run(GATE_NONE);
    assert_true(right.asked > 40);
    assert_int_equal(right.told, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_told),
        cmocka_unit_test(test_the_newest_are_told),
        cmocka_unit_test(test_repairs_make_no_other_mark),
        cmocka_unit_test(test_a_search_tells_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
