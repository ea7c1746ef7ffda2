/* Outputs seen before: found by every byte and the limits they were held against, kept as long as
 * they are met. */
#include "fitness/gates/fitness_impl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A case of two outputs with an input between them. */
typedef struct rig {
    fit_argument arguments[3];
    fit_output outputs[2];
    fit_case c;
    float first[4];
    double second[2];
} rig;

static void rig_make(rig *r) {
    *r =
        (rig){.arguments = {{.bytes = sizeof r->first}, {.bytes = 64}, {.bytes = sizeof r->second}},
              .outputs = {{.argument = 0}, {.argument = 2}},
              .first = {1, 2, 3, 4},
              .second = {5, 6}};
    r->c = (fit_case){.arguments = r->arguments, .outputs = r->outputs, .output_count = 2};
}

static void keep(rig *r, const accuracy_limits *limits, double error) {
    const void *got[] = {r->first, r->second};
    fit_seen_keep(&r->c, limits, got, &(accuracy){.relative_l2 = error});
}

/* The relative L2 that is known of them; -1: none. */
static double find(rig *r, const accuracy_limits *limits) {
    const void *got[] = {r->first, r->second};
    accuracy a = {0};
    return fit_seen_find(&r->c, limits, got, &a) ? a.relative_l2 : -1;
}

static void test_every_byte_counts(void **state) {
    (void)state;
    rig r;
    rig_make(&r);
    const accuracy_limits limits = {.relative_l2 = 1e-3, .depth = 8};
    assert_true(find(&r, &limits) == -1);
    keep(&r, &limits, 0.25);
    assert_true(find(&r, &limits) == 0.25);
    for (size_t i = 0; i < sizeof r.first + sizeof r.second; i++) {
        unsigned char *byte = i < sizeof r.first ? (unsigned char *)r.first + i
                                                 : (unsigned char *)r.second + i - sizeof r.first;
        *byte ^= 1;
        assert_true(find(&r, &limits) == -1);
        *byte ^= 1;
    }
    assert_true(find(&r, &limits) == 0.25);
    fit_seen_free(&r.c);
    assert_true(find(&r, &limits) == -1);
}

/* What passes under one tolerance, or beside one baseline, says nothing under another. */
static void test_limits_count(void **state) {
    (void)state;
    rig r;
    rig_make(&r);
    const accuracy_limits limits = {.relative_l2 = 1e-3,
                                    .scaled_max = 2,
                                    .max_abs = 3,
                                    .depth = 4,
                                    .baseline_l2 = 5,
                                    .baseline_factor = 6};
    keep(&r, &limits, 0.5);
    for (int i = 0; i < 6; i++) {
        accuracy_limits other = limits;
        double *each[] = {&other.relative_l2, &other.scaled_max,  &other.max_abs,
                          &other.depth,       &other.baseline_l2, &other.baseline_factor};
        *each[i] += 1;
        assert_true(find(&r, &other) == -1);
    }
    assert_true(find(&r, &limits) == 0.5);
    fit_seen_free(&r.c);
}

static void test_keeps_what_is_met(void **state) {
    (void)state;
    rig r;
    rig_make(&r);
    const accuracy_limits limits = {.relative_l2 = 1e-3};
    for (int i = 0; i < FIT_SEEN_KEPT + 1; i++) {
        r.second[1] = i;
        keep(&r, &limits, i);
        r.second[1] = 0;
        assert_true(find(&r, &limits) == 0); /* the first is met again and again */
    }
    r.second[1] = 1; /* met the longest ago */
    assert_true(find(&r, &limits) == -1);
    for (int i = 2; i < FIT_SEEN_KEPT + 1; i++) {
        r.second[1] = i;
        assert_true(find(&r, &limits) == i);
    }
    fit_seen_free(&r.c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_limits_count),
        cmocka_unit_test(test_keeps_what_is_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
