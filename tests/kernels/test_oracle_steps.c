/* Oracles of optimisers' steps: gradients that are off by as much as an order of summation allows
 * make new parameters that are off by no more than the scale says, also where gradients cancel and
 * second moments are 0; and the legal ranges of the scalars are those of a step. */
#include "tests/kernels/task_inputs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 8

static evoke_argument *argument(task_inputs *in, const char *name) {
    return &in->arguments[task_inputs_index(in, name)];
}

static void fill(task_inputs *in, const char *name, float value) {
    const evoke_argument *a = argument(in, name);
    float *data = (float *)(uintptr_t)a->data;
    for (uint64_t i = 0; i < a->count; i++)
        data[i] = value;
}

/* Gradients of 8 ranks, [rank][n], whose sum is `off` times the sum of their sizes. */
static void fill_gradient(task_inputs *in, double off) {
    const evoke_argument *a = argument(in, "gradient");
    float *data = (float *)(uintptr_t)a->data;
    uint64_t n = a->count / RANKS;
    for (uint64_t i = 0; i < a->count; i++) {
        double size = 0.01 * (1 + (double)(i % n % 7));
        data[i] = (float)(i / n % 2 == 0 ? size : -size);
        if (i / n == 0)
            data[i] += (float)(off * RANKS * size * (i % n % 2 == 0 ? 1 : -1));
    }
}

static void must_bound(const char *name, float v, double beta2, double epsilon, double share) {
    enum { MOST = 8192 };
    static double value[MOST], scale[MOST], moved[MOST], unused[MOST];
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    if (task_open(name, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    task_inputs in = task_inputs_make(t, task_find_case(t, "cancelling-ranks"));
    size_t output = task_inputs_index(&in, "parameter");
    uint64_t count = in.arguments[output].count;
    double unit = 8 * ldexp(1, -24) * sqrt(RANKS);
    assert_in_range(count, RANKS, MOST);
    fill(&in, "v", v);
    argument(&in, "beta2")->value = beta2;
    argument(&in, "epsilon")->value = epsilon;
    fill_gradient(&in, 0);
    task_inputs_ask(&in, output, 0, count, value, scale);
    fill_gradient(&in, share * unit);
    task_inputs_ask(&in, output, 0, count, moved, unused);
    double most = 0;
    for (uint64_t i = 0; i < count; i++) {
        double off = fabs(moved[i] - value[i]);
        if (!(off <= unit * scale[i]))
            fail_msg("%s, parameter %llu: off by %g, not %g", name, (unsigned long long)i, off,
                     unit * scale[i]);
        most = fmax(most, off);
    }
    assert_true(most > 0);
    task_inputs_free(&in);
    task_free(t);
}

static void test_bounds(void **state) {
    (void)state;
    static const char *const names[] = {"ar_fused_adam", "ar_fused_lamb", "ar_then_adam",
                                        "ar_then_lamb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        must_bound(names[i], 1e-4F, 0.999, 1e-8, 0.99);
        must_bound(names[i], 1e-12F, 0.999, 1e-8, 0.99);
        must_bound(names[i], 0, 0.5, 1e-8, 0.99); /* a root of 0, or of the error's square */
        must_bound(names[i], 0, 0.5, 1e-14, 0.99);
        must_bound(names[i], 0, 0, 1e-14, 0.1);
    }
}

static const task_argument *find(const task *t, const char *name) {
    for (size_t i = 0; i < t->argument_count; i++)
        if (strcmp(t->arguments[i].name, name) == 0)
            return &t->arguments[i];
    fail_msg("no %s", name);
    return NULL;
}

/* A step keeps a part of the moments, but not all; its corrections are those of such betas, and
 * far from 0. */
static void test_ranges(void **state) {
    (void)state;
    static const char *const names[] = {"ar_fused_adam", "ar_fused_lamb", "ar_then_adam",
                                        "ar_then_lamb"};
    static const struct {
        const char *name;
        double legal, illegal;
    } scalars[] = {{"beta1", 0, 1},          {"beta1", 0.9, -0.1},        {"beta2", 0.999, 1},
                   {"beta2", 0.5, 0},        {"correction1", 0.1, 1e-5},  {"correction1", 1, 1.1},
                   {"correction2", 1e-3, 0}, {"correction2", 1e-3, 1e-8}, {"epsilon", 1e-8, 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        task *t = NULL;
        ev_error err = {EV_OK, ""};
        if (task_open(names[i], &t, &err) != EV_OK)
            fail_msg("%s", err.text);
        const task_case *c = task_find_case(t, "smoke");
        for (size_t k = 0; k < sizeof scalars / sizeof scalars[0]; k++) {
            task_range range;
            const task_argument *a = find(t, scalars[k].name);
            if (task_range_of(t, a, c, &range, &err) != EV_OK)
                fail_msg("%s", err.text);
            if (!task_range_has(&range, scalars[k].legal) ||
                task_range_has(&range, scalars[k].illegal))
                fail_msg("%s of %s", scalars[k].name, names[i]);
        }
        task_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
