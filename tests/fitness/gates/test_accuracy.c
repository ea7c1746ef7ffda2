/* Accuracy: metrics worked out by hand, negative references, what is not finite, zeros and
 * unwritten elements; and sums that cancel. */
#include "fitness/gates/accuracy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const accuracy_limits TIGHT = {.relative_l2 = 1e-3};

static accuracy check_f32(const accuracy_limits *limits, const float *got, const double *want,
                          uint64_t count) {
    accuracy_check check;
    accuracy_part part = {.type = EV_F32, .got = got, .want = want, .count = count};
    accuracy_begin(&check, limits);
    accuracy_begin_output(&check, EV_F32);
    accuracy_add(&check, &part);
    accuracy_end_output(&check);
    return accuracy_end(&check);
}

static void test_by_hand(void **state) {
    (void)state;
    const float got[] = {3.0f, 4.5f};
    const double want[] = {3, 4};
    accuracy a = check_f32(&TIGHT, got, want, 2);
    assert_float_equal(a.relative_l2, 0.1, 1e-15); /* 0.5 / 5 */
    assert_float_equal(a.max_abs, 0.5, 0);
    assert_float_equal(a.max_ulp, 0.5 / ldexp(1, 2 - 23), 0);
    assert_float_equal(a.normalised, 100, 1e-9);
    assert_int_equal(a.checked, 2);
}

/* Dividing by a negative reference, without its absolute value, would pass anything. */
static void test_negative_reference(void **state) {
    (void)state;
    const float got[] = {100.0f, 7.0f};
    const double want[] = {-1, -2};
    const accuracy_limits all = {
        .relative_l2 = 0.5, .max_abs = 0.5, .baseline_factor = 2, .baseline_l2 = 0.1};
    accuracy a = check_f32(&all, got, want, 2);
    assert_true(a.relative_l2 > 40 && a.normalised > 80);
    assert_float_equal(a.max_abs, 101, 0);
    const float close[] = {-1.0f, -2.0f};
    assert_float_equal(check_f32(&all, close, want, 2).normalised, 0, 0);
}

static void test_not_finite(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const double want[] = {1, 2, 1e30};
    const accuracy_limits loose = {.relative_l2 = 1e9};
    for (int i = 0; i < 3; i++) {
        float got[] = {1.0f, 2.0f, 1e30f};
        got[i] = bad[i];
        accuracy a = check_f32(&loose, got, want, 3);
        assert_int_equal(a.not_finite, 1);
        assert_true(isinf(a.normalised) && isinf(a.relative_l2));
    }
    /* An answer that is no number passes nothing either, not even itself. */
    const double no_answer[] = {NAN};
    assert_true(isinf(check_f32(&loose, bad, no_answer, 1).normalised));
    /* Too large for the type: infinity of the same sign is the right rounding. */
    const double large[] = {1e300};
    const float right[] = {INFINITY}, wrong[] = {-INFINITY};
    assert_float_equal(check_f32(&loose, right, large, 1).normalised, 0, 0);
    assert_true(isinf(check_f32(&loose, wrong, large, 1).normalised));
}

static void test_zero_reference(void **state) {
    (void)state;
    const double want[] = {0, 0};
    const float exact[] = {0.0f, -0.0f}, near[] = {0.0f, 1e-30f};
    assert_float_equal(check_f32(&TIGHT, exact, want, 2).normalised, 0, 0);
    assert_true(isinf(check_f32(&TIGHT, near, want, 2).normalised));
}

static accuracy check_masks(const uint8_t *written, const uint8_t *must_zero) {
    const float got[] = {1.0f, 1e-9f};
    const double want[] = {1, 0};
    accuracy_check check;
    accuracy_part part = {.type = EV_F32,
                          .got = got,
                          .want = want,
                          .written = written,
                          .must_zero = must_zero,
                          .count = 2};
    accuracy_begin(&check, &TIGHT);
    accuracy_begin_output(&check, EV_F32);
    accuracy_add(&check, &part);
    accuracy_end_output(&check);
    return accuracy_end(&check);
}

static void test_masks(void **state) {
    (void)state;
    const uint8_t second[] = {0, 1}, first[] = {1, 0};
    assert_true(check_masks(NULL, NULL).normalised <= 1);
    accuracy a = check_masks(NULL, second);
    assert_true(isinf(a.normalised) && a.not_zero == 1);
    a = check_masks(first, NULL);
    assert_true(isinf(a.normalised) && a.unwritten == 1);
}

/* One wrong whole number among large ones is far below any relative L2. */
static void test_whole_numbers(void **state) {
    (void)state;
    const int32_t got[] = {1 << 30, 1};
    const double want[] = {1 << 30, 2};
    const accuracy_part part = {.type = EV_S32, .got = got, .want = want, .count = 2};
    const accuracy_limits limits[] = {{.relative_l2 = 1e-6, .depth = 1},
                                      {.relative_l2 = 1e-6, .depth = 1, .inexact_most = 1},
                                      {.relative_l2 = 1e-6, .depth = 1, .max_abs = 1}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        accuracy_check check;
        accuracy_begin(&check, &limits[i]);
        accuracy_begin_output(&check, EV_S32);
        accuracy_add(&check, &part);
        accuracy_end_output(&check);
        accuracy a = accuracy_end(&check);
        assert_int_equal(a.not_exact, 1);
        assert_true(a.relative_l2 < 1e-8);
        assert_true(i == 0 ? isinf(a.normalised) : a.normalised <= 1);
    }
}

/* A double rounds 64-bit whole numbers beyond 2^53: the exact answer tells 2^60 from 2^60 + 1. */
static void test_wide_numbers(void **state) {
    (void)state;
    const uint64_t got[] = {(UINT64_C(1) << 60) + 1, UINT64_C(3)};
    const double want[] = {0x1p60, 4};
    const uint64_t exact[] = {UINT64_C(1) << 60, UINT64_C(3)}; /* the second is another number */
    const ev_type types[] = {EV_U64, EV_S64};
    for (size_t i = 0; i < 4; i++) {
        const accuracy_limits limits = {.relative_l2 = 1, .depth = 1, .inexact_most = 1};
        accuracy_check check;
        accuracy_part part = {.type = types[i / 2], .got = got, .want = want, .count = 2};
        part.exact = i % 2 == 1 ? exact : NULL;
        accuracy_begin(&check, &limits);
        accuracy_begin_output(&check, part.type);
        accuracy_add(&check, &part);
        accuracy_end_output(&check);
        accuracy a = accuracy_end(&check);
        assert_int_equal(a.not_exact, i % 2 == 1 ? 2 : 1);
        assert_float_equal(a.max_abs, 1, 0);
        assert_true(i % 2 == 1 ? isinf(a.normalised) : a.normalised <= 1);
    }
}

static void test_scaled(void **state) {
    (void)state;
    const float got[] = {1.0f + 0x1p-20f};
    const double want[] = {1}, scale[] = {16};
    accuracy_limits limits = {.relative_l2 = 1, .scaled_max = 2, .depth = 4};
    accuracy_check check;
    accuracy_part part = {.type = EV_F32, .got = got, .want = want, .scale = scale, .count = 1};
    accuracy_begin(&check, &limits);
    accuracy_begin_output(&check, EV_F32);
    accuracy_add(&check, &part);
    accuracy_end_output(&check);
    /* 2^-20 / (2^-24 * sqrt(4) * 16) */
    assert_float_equal(accuracy_end(&check).scaled_max, 0.5, 1e-12);
    assert_float_equal(accuracy_end(&check).normalised, 0.25, 1e-12);
}

/* Where terms cancel, an output may be as inexact as its terms are large, if the check says so. */
static void test_conditioned(void **state) {
    (void)state;
    const float got[] = {1.0f + 0x1p-10f};
    const double want[] = {1}, scale[] = {0x1p12};
    accuracy_part part = {.type = EV_F32, .got = got, .want = want, .scale = scale, .count = 1};
    const struct {
        double conditioned, allowed;
    } rows[] = {{0, 1e-3}, {8, 0x1p-8}, {0.25, 1e-3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        accuracy_limits limits = {.relative_l2 = 1e-3, .depth = 4};
        accuracy_check check;
        accuracy_begin(&check, &limits);
        accuracy_begin_output(&check, EV_F32);
        check.conditioned = rows[i].conditioned;
        accuracy_add(&check, &part);
        accuracy_output o = accuracy_end_output(&check);
        assert_float_equal(o.condition, 0x1p-11, 1e-12); /* 2^-24 * sqrt(4) * 2^12 */
        assert_float_equal(o.relative_l2, 0x1p-10, 1e-12);
        assert_float_equal(accuracy_end(&check).normalised, 0x1p-10 / rows[i].allowed, 1e-9);
    }
}

static void test_baseline_factor(void **state) {
    (void)state;
    const float got[] = {1.0f + 4 * 0x1p-23f};
    const double want[] = {1};
    accuracy_limits limits = {.relative_l2 = 1, .baseline_factor = 2, .baseline_l2 = 0x1p-23};
    assert_float_equal(check_f32(&limits, got, want, 1).normalised, 2, 1e-6);
    /* A baseline without any error leaves one ulp. */
    limits.baseline_l2 = 0;
    assert_float_equal(check_f32(&limits, got, want, 1).normalised, 4, 1e-6);
}

/* Each output has its own norm: a small one is not lost beside a large one. */
static void test_outputs_apart(void **state) {
    (void)state;
    const float large[] = {1e10f}, small[] = {2e-5f};
    const double want_large[] = {1e10}, want_small[] = {1e-5};
    accuracy_check check;
    accuracy_begin(&check, &TIGHT);
    accuracy_part parts[] = {{.type = EV_F32, .got = large, .want = want_large, .count = 1},
                             {.type = EV_F32, .got = small, .want = want_small, .count = 1}};
    for (int i = 0; i < 2; i++) {
        accuracy_begin_output(&check, EV_F32);
        accuracy_add(&check, &parts[i]);
        accuracy_end_output(&check);
    }
    assert_float_equal(accuracy_end(&check).relative_l2, 1, 1e-5);
}

static void test_sums(void **state) {
    (void)state;
    accuracy_sum s = {0, 0};
    const double terms[] = {1, 1e100, 1, -1e100};
    for (int i = 0; i < 4; i++)
        accuracy_sum_add(&s, terms[i]);
    assert_float_equal(accuracy_sum_of(&s), 2, 0);
}

/* The fast form of the ulp is base's. */
static void test_ulp(void **state) {
    (void)state;
    const double values[] = {1, 0.75, 3.9, 1e-40, 1e-45, 65504, 3e38, -2.5, 0};
    const ev_type types[] = {EV_F16, EV_BF16, EV_F32, EV_F64, EV_S32};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            uint64_t got = 0;
            ev_type_set(types[t], &got, 0, values[i]);
            double stored = ev_type_get(types[t], &got, 0);
            if (!isfinite(stored))
                continue;
            double want = stored + 8 * ev_type_ulp(types[t], stored);
            accuracy_check check;
            accuracy_part part = {.type = types[t], .got = &got, .want = &want, .count = 1};
            accuracy_begin(&check, &TIGHT);
            accuracy_begin_output(&check, types[t]);
            accuracy_add(&check, &part);
            accuracy_end_output(&check);
            assert_float_equal(accuracy_end(&check).max_ulp,
                               (fabs(want - stored) / ev_type_ulp(types[t], want)), 1e-6);
        }
    }
}

/* An output with limits of its own is held to these, and the others to the check's. */
static void test_own_limits(void **state) {
    (void)state;
    static const struct {
        double limit, most, own_l2, own_abs; /* of the check, then of the second output */
        bool passes;
    } rows[] = {
        {1e-2, 0, 1e-2, 0, true},      {1e-2, 0, 1e-4, 0, false}, {1e-2, 0, 1, 0.01, true},
        {1e-2, 0, 1, 0.001, false},    {1e-2, 0.001, 1, 0, true}, {1e-4, 0, 1, 0, true},
        {1e-2, 0.001, 1e-4, 0, false},
    };
    const float first[] = {1, 2}, second[] = {1.002f, 2};
    const double want[] = {1, 2};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const accuracy_limits limits = {.relative_l2 = rows[i].limit, .max_abs = rows[i].most};
        accuracy_part part = {.type = EV_F32, .got = first, .want = want, .count = 2};
        accuracy_check check;
        accuracy_begin(&check, &limits);
        accuracy_begin_output(&check, EV_F32);
        accuracy_add(&check, &part);
        accuracy_end_output(&check);
        accuracy_begin_output(&check, EV_F32);
        accuracy_own(&check, rows[i].own_l2, rows[i].own_abs);
        part.got = second;
        accuracy_add(&check, &part);
        accuracy_end_output(&check);
        accuracy a = accuracy_end(&check);
        if ((a.normalised <= 1) != rows[i].passes)
            fail_msg("row %zu: %g", i, a.normalised);
        assert_true(fabs(a.max_abs - 0.002) < 1e-6);
    }
}

/* Whole numbers with a limit of their own have no relative error, also where all answers are 0. */
static void test_own_limit_of_whole_numbers(void **state) {
    (void)state;
    const int32_t got[] = {1, 0};
    const double want[] = {0, 0};
    const accuracy_limits limits = {.relative_l2 = 1e-6, .baseline_factor = 2, .baseline_l2 = 1e-9};
    accuracy_part part = {.type = EV_S32, .got = got, .want = want, .count = 2};
    for (int most = 0; most < 3; most++) {
        accuracy_check check;
        accuracy_begin(&check, &limits);
        accuracy_begin_output(&check, EV_S32);
        accuracy_own(&check, INFINITY, most);
        accuracy_add(&check, &part);
        accuracy_output o = accuracy_end_output(&check);
        accuracy a = accuracy_end(&check);
        assert_true(a.normalised == (most == 0 ? INFINITY : 1.0 / most));
        assert_true(o.beyond == a.normalised && a.relative_l2 == 0);
    }
}

static void check_words(const accuracy *a, const accuracy_limits *limits, const char *words) {
    ev_str text = EV_STR_EMPTY;
    accuracy_explain(a, limits, &text);
    if (strstr(ev_str_text(&text), words) == NULL)
        fail_msg("'%s' lacks '%s'", ev_str_text(&text), words);
    ev_str_free(&text);
}

static void test_explain(void **state) {
    (void)state;
    const accuracy_limits limits = {
        .relative_l2 = 0.1, .scaled_max = 2, .max_abs = 3, .baseline_factor = 2};
    check_words(&(accuracy){.not_finite = 3, .checked = 9}, &limits, "3 of 9 elements are NaN");
    check_words(&(accuracy){.unwritten = 1}, &limits, "never written");
    check_words(&(accuracy){.not_zero = 1}, &limits, "exactly zero");
    check_words(&(accuracy){.not_exact = 2, .checked = 9}, &(accuracy_limits){.relative_l2 = 1},
                "2 of 9 elements are whole numbers that differ");
    check_words(&(accuracy){.spoilt = 1}, &limits, "padding behind rows");
    check_words(&(accuracy){.over_l2 = 0.2, .allowed_l2 = 0.1}, &limits,
                "relative L2 error 0.2 is over the tolerance 0.1");
    check_words(&(accuracy){.scaled_max = 4}, &limits, "scaled");
    check_words(&(accuracy){.over_abs = 4, .allowed_abs = 3}, &limits, "largest error 4");
    check_words(&(accuracy){.relative_l2 = 0.05}, &limits, "baseline");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_negative_reference),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_zero_reference),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_wide_numbers),
        cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_conditioned),
        cmocka_unit_test(test_baseline_factor),
        cmocka_unit_test(test_outputs_apart),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ulp),
        cmocka_unit_test(test_own_limits),
        cmocka_unit_test(test_own_limit_of_whole_numbers),
        cmocka_unit_test(test_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
