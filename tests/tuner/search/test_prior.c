/* The prior of a search: what is read from counts, what is refused, and that it steers the draws.
 */
#include "tuner/search/prior.h"
#include "tuner/search/search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static ev_status read_text(const char *text, prior *out, ev_error *err) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    return prior_read(path, out, err);
}

static int set_up(void **state) {
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/evoke-prior-%ld.json", (long)getpid());
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)unlink(path);
    return 0;
}

static unsigned arm_of(const char *name) {
    unsigned arm = 0;
    assert_true(arm_find(name, &arm));
    return arm;
}

static void test_odds_follow_the_counts(void **state) {
    (void)state;
    prior p;
    ev_error err;
    assert_int_equal(
        read_text("{\"edits\": [{\"edit\": \"unroll\", \"drawn\": 98, \"valid\": 74, "
                  "\"better\": 3}, {\"edit\": \"macro\", \"drawn\": 8, \"valid\": 0}]}",
                  &p, &err),
        EV_OK);
    assert_true(fabs(p.odds[arm_of("unroll")] - 0.75) < 1e-12);
    assert_true(fabs(p.odds[arm_of("macro")] - 0.1) < 1e-12);
    assert_true(fabs(p.odds[arm_of("sink")] - 0.5) < 1e-12);
}

static void test_what_is_no_prior_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"[]", "evoke edits RECORDS"},
        {"{\"edits\": 3}", "evoke edits RECORDS"},
        {"{\"edits\": [{\"edit\": \"unrol\", \"drawn\": 1, \"valid\": 1}]}", "'unrol'"},
        {"{\"edits\": [{\"edit\": \"unroll\", \"drawn\": 1, \"valid\": 2}]}", "'unroll'"},
        {"{\"edits\": [{\"edit\": \"unroll\"}]}", "'unroll'"},
        {"{\"edits\": [", ":1:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        prior p;
        ev_error err;
        assert_int_equal(read_text(rows[i].text, &p, &err), EV_BAD);
        if (strstr(err.text, rows[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", err.text, rows[i].words);
    }
}

/* The share of the first children whose first step is `arm`. */
static double share_of(const double *odds, unsigned arm) {
    static const task_start textbook = {.name = "textbook"};
    unsigned with = 0, all = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        search_start start = {.start = &textbook,
                              .sites = {[IR_EDIT_SINK] = 9, [IR_EDIT_UNROLL] = 9}};
        const search_settings settings = {
            .starts = &start, .start_count = 1, .seed = seed, .evaluations = 100, .odds = odds};
        search *s = NULL;
        assert_int_equal(search_new(&settings, &s, NULL), EV_OK);
        while (search_may_draw(s)) {
            recipe r;
            assert_int_equal(search_draw(s, false, &r, NULL), EV_OK);
            all += r.step_count > 0;
            with += r.step_count > 0 && r.steps[0].arms[0] == arm;
            recipe_free(&r);
        }
        search_free(s);
    }
    assert_true(all > 100);
    return with / (double)all;
}

static void test_a_prior_steers_the_draws(void **state) {
    (void)state;
    double odds[ARM_COUNT];
    unsigned sink = arm_of("sink");
    for (unsigned arm = 0; arm < ARM_COUNT; arm++)
        odds[arm] = arm == sink ? 0.95 : 0.1;
    double even = share_of(NULL, sink), steered = share_of(odds, sink);
    assert_true(steered > 1.5 * even);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odds_follow_the_counts),
        cmocka_unit_test(test_what_is_no_prior_is_refused),
        cmocka_unit_test(test_a_prior_steers_the_draws),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
