/* The strategies `macros` and `knobs`, fed by hand: all settings of all starts, none twice. */
#include "tuner/search/draw.h"
#include "tuner/search/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SETTINGS 26 /* 4 * 3 * 2 of the first start, 2 of the second */

static const int64_t of_four[] = {1, 2, 4, 8}, of_three[] = {16, 32, 64}, of_two[] = {0, 1};
static const task_macro macros[] = {
    {.name = "A", .values = of_four, .value_count = 4, .otherwise = 1},
    {.name = "B", .values = of_three, .value_count = 3, .otherwise = 32},
    {.name = "C", .values = of_two, .value_count = 2, .otherwise = 0},
};
static const task_start textbook = {.name = "textbook", .macros = macros, .macro_count = 3};
static const task_start hand = {.name = "hand", .macros = &macros[2], .macro_count = 1};

typedef struct fed {
    search *s;
    search_start starts[2];
    char seen[512][EV_SHA256_HEX];
    size_t seen_count;
    size_t repeats, with_steps, other_steps; /* children; steps that are no knob */
} fed;

static void begin(fed *f, strategy of, uint64_t evaluations, uint64_t seed) {
    *f = (fed){.starts = {{.start = &textbook}, {.start = &hand}}};
    for (int i = 0; i < 2; i++)
        for (unsigned kind = 0; kind < IR_EDIT_COUNT; kind++)
            f->starts[i].sites[kind] = 5;
    const search_settings settings = {.starts = f->starts,
                                      .start_count = 2,
                                      .seed = seed,
                                      .evaluations = evaluations,
                                      .strategy = of};
    assert_int_equal(search_new(&settings, &f->s, NULL), EV_OK);
}

static void note_steps(fed *f, const recipe *r) {
    f->with_steps += r->step_count > 0;
    for (unsigned i = 0; i < r->step_count; i++) {
        for (unsigned k = 0; k < r->steps[i].count; k++) {
            unsigned arm = r->steps[i].arms[k];
            f->other_steps +=
                arm >= IR_EDIT_COUNT || strcmp(ir_edit_family((ir_edit_kind)arm), "launch") != 0;
        }
    }
}

static void note_setting(fed *f, const recipe *r) {
    ev_sha256 sha = ir_genome_sha256(r->parents[0]);
    bool is_new = r->step_count == 0;
    for (size_t i = 0; i < f->seen_count; i++)
        is_new = is_new && strcmp(f->seen[i], sha.hex) != 0;
    f->repeats += r->step_count == 0 && !is_new;
    if (is_new)
        memcpy(f->seen[f->seen_count++], sha.hex, sizeof f->seen[0]);
}

/* Draws and commits until the strategy is exhausted, `most` children at most. Returns their number,
 * without the unmodified starts. */
static size_t feed(fed *f, size_t most) {
    size_t count = 0;
    while (search_committed(f->s) < most && search_may_draw(f->s)) {
        recipe r;
        search_verdict v;
        assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
        child_result result = {.outcome = {.origin = SEARCH_TIMED, .stopped = GATE_SAFE}};
        bool opens = r.stream.child < 2;
        if (!opens) {
            note_steps(f, &r);
            note_setting(f, &r);
        }
        count += !opens;
        recipe_free(&r);
        assert_int_equal(search_commit(f->s, &result, &v, NULL), EV_OK);
    }
    return count;
}

static void test_all_settings_are_tried_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        fed f;
        begin(&f, STRATEGY_MACROS, 1000, seed);
        assert_int_equal(feed(&f, 1000), SETTINGS);
        assert_true(search_is_exhausted(f.s) && !search_may_draw(f.s));
        assert_true(f.seen_count == SETTINGS && f.repeats == 0 && f.with_steps == 0);
        search_free(f.s);
    }
}

static void test_a_part_has_no_repeats(void **state) {
    (void)state;
    fed f;
    begin(&f, STRATEGY_MACROS, 12, 1);
    assert_int_equal(feed(&f, 12), 10);
    assert_true(f.seen_count == 10 && f.repeats == 0 && !search_is_exhausted(f.s));
    search_free(f.s);
}

static void test_knobs_come_after_the_settings(void **state) {
    (void)state;
    fed f;
    begin(&f, STRATEGY_KNOBS, 200, 1);
    assert_int_equal(feed(&f, 200), 198);
    assert_true(f.seen_count == SETTINGS && f.repeats == 0);
    assert_true(f.with_steps == 198 - SETTINGS && f.other_steps == 0);
    search_free(f.s);
    begin(&f, STRATEGY_KNOBS, 30, 1); /* too few for all settings first */
    assert_int_equal(feed(&f, 30), 28);
    assert_true(f.seen_count == 14 && f.with_steps == 14 && f.other_steps == 0);
    search_free(f.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_settings_are_tried_once),
        cmocka_unit_test(test_a_part_has_no_repeats),
        cmocka_unit_test(test_knobs_come_after_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
