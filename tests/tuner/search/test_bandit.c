/* The bandit: its shares by gain, what it expects of an arm, what it skips. */
#include "tuner/search/bandit.h"
#include "tuner/search/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARMS 10

static void begin(bandit *b, arm_statistics *statistics) {
    bool open[ARMS];
    double odds[ARMS];
    for (unsigned i = 0; i < ARMS; i++) {
        open[i] = i != 4;
        odds[i] = 0.7;
    }
    bandit_expect(statistics, odds, ARMS);
    bandit_begin(b, open, ARMS, statistics);
}

static void test_bandit_shares(void **state) {
    (void)state;
    bandit b;
    arm_statistics statistics;
    begin(&b, &statistics);
    for (int i = 0; i < 200; i++) {
        for (unsigned arm = 3; arm < 8; arm++) {
            bandit_pay(&b, arm, arm == 3 ? 0.2 : 0);
            bandit_note(&statistics, arm, arm <= 5);
        }
    }
    double sum = 0;
    for (unsigned i = 0; i < ARMS; i++)
        sum += bandit_share(&b, i);
    assert_true(fabs(sum - 1) < 1e-12);
    assert_true(bandit_share(&b, 4) == 0);
    assert_true(bandit_share(&b, 3) > 3 * bandit_share(&b, 0));
    assert_true(bandit_share(&b, 5) < bandit_share(&b, 0));
    assert_true(bandit_share(&b, 5) >= 0.3 / 9);                /* the floor */
    assert_true(bandit_share(&b, 6) < bandit_share(&b, 5) / 5); /* known code is a waste */
    assert_true(bandit_share(&b, 6) >= 0.05 * 0.3 / 9);         /* and yet not given up */
    assert_true(bandit_share(&b, 7) == bandit_share(&b, 6));    /* so is wrong code */
}

/* What is expected of an arm holds until it was tried, and not for long after. */
static void test_bandit_unlearns_what_it_expects(void **state) {
    (void)state;
    bandit b, even;
    arm_statistics statistics;
    begin(&b, &statistics);
    double odds[ARMS] = {[0] = 0.02};
    for (unsigned i = 1; i < ARMS; i++)
        odds[i] = 0.9;
    bandit_expect(&statistics, odds, ARMS);
    double before = bandit_share(&b, 0);
    assert_true(before < bandit_share(&b, 1) / 10 && before > 0.002);
    for (int i = 0; i < 8; i++)
        bandit_note(&statistics, 0, true);
    assert_true(bandit_share(&b, 0) > 5 * before);
    bandit_begin(&even, b.open, ARMS, NULL); /* baselines know nothing */
    for (unsigned i = 0; i < ARMS; i++)
        assert_true(!b.open[i] || fabs(bandit_share(&even, i) - 1.0 / 9) < 1e-12);
}

/* Where nothing is known, all arms begin alike, and few children tell them apart. */
static void test_bandit_begins_evenly(void **state) {
    (void)state;
    bandit b;
    arm_statistics statistics;
    begin(&b, &statistics);
    bandit_expect(&statistics, NULL, ARMS);
    for (unsigned i = 0; i < ARMS; i++)
        assert_true(!b.open[i] || fabs(bandit_share(&b, i) - 1.0 / 9) < 1e-12);
    for (int i = 0; i < 4; i++) {
        bandit_note(&statistics, 0, false);
        bandit_note(&statistics, 1, true);
    }
    assert_true(bandit_share(&b, 1) > 4 * bandit_share(&b, 0));
}

static void test_bandit_draws_its_shares(void **state) {
    (void)state;
    bandit b;
    arm_statistics statistics;
    begin(&b, &statistics);
    for (int i = 0; i < 50; i++) {
        bandit_pay(&b, 7, 0.1);
        bandit_note(&statistics, 7, i % 2 == 0);
    }
    ev_pcg rng = ev_pcg_seed(1, 2);
    unsigned drawn[ARMS] = {0};
    const unsigned draws = 200000;
    for (unsigned i = 0; i < draws; i++)
        drawn[bandit_draw(&b, NULL, &rng)]++;
    for (unsigned i = 0; i < ARMS; i++) {
        double share = bandit_share(&b, i);
        double sigma = sqrt(share * (1 - share) / draws);
        assert_true(fabs(drawn[i] / (double)draws - share) <= 5 * sigma + 1e-12);
    }
}

/* An arm of four times the weight has four times the share of an arm that is like it otherwise. */
static void test_bandit_weighs(void **state) {
    (void)state;
    bandit b;
    arm_statistics statistics;
    begin(&b, &statistics);
    b.weight[2] = 4;
    double sum = 0;
    for (unsigned i = 0; i < ARMS; i++)
        sum += bandit_share(&b, i);
    assert_true(fabs(sum - 1) < 1e-12);
    assert_true(fabs(bandit_share(&b, 2) - 4 * bandit_share(&b, 1)) < 1e-12);
    b.statistics = NULL;
    assert_true(fabs(bandit_share(&b, 2) - 4 * bandit_share(&b, 1)) < 1e-12);
}

static void test_bandit_skips(void **state) {
    (void)state;
    bandit b;
    arm_statistics statistics;
    begin(&b, &statistics);
    bool skip[ARMS] = {false};
    ev_pcg rng = ev_pcg_seed(3, 4);
    for (unsigned left = ARMS - 1; left > 0; left--) {
        unsigned arm = bandit_draw(&b, skip, &rng);
        assert_true(arm < ARMS && arm != 4 && !skip[arm]);
        skip[arm] = true;
    }
    assert_int_equal(bandit_draw(&b, skip, &rng), ARMS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bandit_shares),
        cmocka_unit_test(test_bandit_unlearns_what_it_expects),
        cmocka_unit_test(test_bandit_begins_evenly),
        cmocka_unit_test(test_bandit_draws_its_shares),
        cmocka_unit_test(test_bandit_weighs),
        cmocka_unit_test(test_bandit_skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
