/* The portfolio: which shapes it is for, and which members it chooses. */
#include "tuner/search/portfolio.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* Rows of candidates, columns of shapes. */
static portfolio_problem problem(const portfolio_times *list, size_t count, size_t most) {
    static const double weights[] = {1, 1, 1, 1}, base[] = {100, 100, 100, 100};
    return (portfolio_problem){.list = list,
                               .count = count,
                               .weights = weights,
                               .base_ns = base,
                               .shapes = 4,
                               .most = most,
                               .least_gain = 0.01};
}

static void expect_members(const portfolio_problem *p, size_t count, size_t first, size_t second,
                           double cost) {
    size_t members[PORTFOLIO_MOST];
    assert_int_equal(portfolio_choose(p, members), count);
    assert_int_equal(members[0], first);
    if (count > 1)
        assert_int_equal(members[1], second);
    assert_true(portfolio_cost(p, members, count) == cost);
}

/* One generalist, and two specialists that only pay together. */
static const portfolio_times pair[] = {
    {.ns = {60, 60, 60, 60}}, {.ns = {40, 45, 200, 200}}, {.ns = {200, 0, 40, 45}}};

static void one_member_is_the_best_alone(void **state) {
    (void)state;
    portfolio_problem p = problem(pair, 3, 1);
    expect_members(&p, 1, 0, 0, 240);
}

/* The generalist comes first by greedy steps, and both members change at once. */
static void two_members_are_the_specialists(void **state) {
    (void)state;
    portfolio_problem p = problem(pair, 3, 2);
    expect_members(&p, 2, 1, 2, 170);
}

/* A third member that saves nothing is not taken, and the shape that no member is faster at stays
 * with the base. */
static void no_member_is_idle(void **state) {
    (void)state;
    static const portfolio_times list[] = {
        {.ns = {40, 0, 300, 100}}, {.ns = {40, 50, 300, 100}}, {.ns = {39.9, 300, 300, 300}}};
    portfolio_problem p = problem(list, 3, 3);
    expect_members(&p, 1, 1, 0, 290);
    p.least_gain = 0;
    expect_members(&p, 2, 1, 2, 289.9);
}

static void weights_decide(void **state) {
    (void)state;
    static const double weights[] = {1, 1, 50, 1};
    portfolio_problem p = problem(pair, 3, 1);
    p.weights = weights;
    expect_members(&p, 1, 2, 0, 100 + 100 + 50 * 40 + 45);
}

/* Of equal candidates the one with fewer edits, then the earlier one; never one that is out. */
static void ties_go_to_fewer_edits(void **state) {
    (void)state;
    static portfolio_times list[] = {{.ns = {50, 50, 50, 50}, .edits = 3},
                                     {.ns = {50, 50, 50, 50}, .edits = 1},
                                     {.ns = {50, 50, 50, 50}, .edits = 1},
                                     {.ns = {10, 10, 10, 10}, .is_out = true}};
    portfolio_problem p = problem(list, 4, 4);
    expect_members(&p, 1, 1, 0, 200);
}

static void nothing_gains(void **state) {
    (void)state;
    static const portfolio_times list[] = {{.ns = {100, 120, 0, 100}}};
    size_t members[PORTFOLIO_MOST];
    portfolio_problem p = problem(list, 1, 4);
    assert_int_equal(portfolio_choose(&p, members), 0);
    p.count = 0;
    assert_int_equal(portfolio_choose(&p, members), 0);
}

/* Against all subsets of made-up matrices: never worse than greedy steps alone, and mostly the
 * optimum; with one member always the optimum. */
static void it_is_near_the_optimum(void **state) {
    (void)state;
    enum { CANDIDATES = 9, ROUNDS = 200 };
    unsigned state_of = 12345, exact = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        portfolio_times list[CANDIDATES] = {0};
        size_t members[PORTFOLIO_MOST];
        double best = 1e9;
        for (size_t i = 0; i < CANDIDATES; i++) {
            for (size_t s = 0; s < 4; s++) {
                state_of = state_of * 1664525u + 1013904223u;
                list[i].ns[s] = 1 + (double)(state_of >> 16 & 127);
            }
        }
        portfolio_problem p = problem(list, CANDIDATES, 2);
        p.least_gain = 0;
        for (size_t i = 0; i < CANDIDATES; i++) {
            for (size_t k = 0; k < CANDIDATES; k++) {
                size_t both[] = {i, k};
                double cost = portfolio_cost(&p, both, 2);
                best = cost < best ? cost : best;
            }
        }
        double got = portfolio_cost(&p, members, portfolio_choose(&p, members));
        assert_true(got <= best * 1.2);
        exact += got <= best;
    }
    assert_true(exact >= ROUNDS * 9 / 10);
}

/* ---- shapes ---- */

static void fails(const task *t, const char *text, const char *words) {
    portfolio_shapes shapes;
    assert_int_equal(portfolio_read_shapes(text, t, &shapes, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
}

static void shapes_are_timed_cases_of_the_search(void **state) {
    (void)state;
    task *t = NULL;
    portfolio_shapes shapes;
    OK(task_load("tests/fitness/gates/task.json", &t, &err));
    OK(portfolio_read_shapes("large", t, &shapes, &err));
    assert_true(shapes.count == 1 && shapes.weights[0] == 1);
    assert_string_equal(shapes.at[0]->name, "large");
    fails(t, "", "names no case");
    fails(t, "large,large", "named twice");
    fails(t, "larger", "is no case of the task; the search times large");
    fails(t, "held-large", "no timed case");
    fails(t, ",large", "no name");
    fails(t, "odd", "no timed case");
    fails(t, "no/file", "no/file");
    task_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_member_is_the_best_alone),
        cmocka_unit_test(two_members_are_the_specialists),
        cmocka_unit_test(no_member_is_idle),
        cmocka_unit_test(weights_decide),
        cmocka_unit_test(ties_go_to_fewer_edits),
        cmocka_unit_test(nothing_gains),
        cmocka_unit_test(it_is_near_the_optimum),
        cmocka_unit_test(shapes_are_timed_cases_of_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
