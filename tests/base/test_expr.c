/* Expressions of task files: values, wholeness, and every error with its column. */
#include "base/expr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const expr_name NAMES[] = {
    {"M", {false, 100, 100.0}},
    {"TILE", {false, 16, 16.0}},
    {"p", {true, 0, 0.35}},
    {"big", {false, INT64_MAX, 9.2233720368547758e18}},
    {"plate.rows", {false, 12, 12.0}},
};
static const expr_scope SCOPE = {NAMES, sizeof NAMES / sizeof NAMES[0]};

static void test_whole(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"7", 7},
        {" M ", 100},
        {"1+2*3", 7},
        {"(1+2)*3", 9},
        {"10-3-2", 5},
        {"100/7/2", 7},
        {"-7/2", -3},
        {"-7%3", -1},
        {"- -3", 3},
        {"2*-3", -6},
        {"ceil_div(M, TILE)", 7},
        {"ceil_div(96,16)", 6},
        {"ceil_div(-7, 2)", -3},
        {"ceil_div(M,TILE)*2", 14},
        {"min(M, 5)", 5},
        {"max(M, 5)", 100},
        {"div(9, 2)", 4},
        {"pow(2, 10)", 1024},
        {"pow(-1, 3)", -1},
        {"pow(0, 0)", 1},
        {"pow(1, 1000000000000)", 1},
        {"M > 99", 1},
        {"M < 100", 0},
        {"M >= 100", 1},
        {"M<=99", 0},
        {"M == 100", 1},
        {"M != 100", 0},
        {"(M > 5) * 3", 3},
        {"big == 9223372036854775807", 1},
        {"big == 9223372036854775806", 0},
        {"min(max(1,2),3)", 2},
        {"plate.rows*2", 24},
        {"M-plate.rows", 88},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expr_value value;
        ev_error err = {EV_OK, ""};
        if (expr_eval(rows[i].text, &SCOPE, &value, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_false(value.is_real);
        if (value.whole != rows[i].value)
            fail_msg("%s is %lld", rows[i].text, (long long)value.whole);
        assert_true(value.real == (double)value.whole);
    }
}

static void test_real(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"0.5", 0.5},
        {".5", 0.5},
        {"1e-8", 1e-8},
        {"2E3", 2000.0},
        {"1.0 * 650 / 325", 2.0},
        {"p * 2", 0.7},
        {"7.5 % 2", 1.5},
        {"ceil_div(7.5, 2)", 4.0},
        {"min(p, 1)", 0.35},
        {"1 - pow(0.9, 10)", 0.6513215599},
        {"pow(2, -2)", 0.25},
        {"pow(0.5, 0)", 1.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expr_value value;
        ev_error err = {EV_OK, ""};
        if (expr_eval(rows[i].text, &SCOPE, &value, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_true(value.is_real);
        if (fabs(value.real - rows[i].value) > 1e-12)
            fail_msg("%s is %.17g", rows[i].text, value.real);
    }
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "column 1: expected a number"},
        {"1 +", "column 4: expected a number"},
        {"(1", "column 3: expected \")\""},
        {"1 2", "column 3: expected an operator"},
        {"K * 2", "column 1: unknown name \"K\"; known here: M, TILE, p, big, "
                  "plate.rows"},
        {"p.rows", "column 1: unknown name \"p.rows\""},
        {"plate.", "column 1: unknown name \"plate\""},
        {"plate.2", "column 1: unknown name \"plate\""},
        {"M.5", "column 2:"},
        {"M / 0", "column 3: division by zero"},
        {"M % (TILE - 16)", "division by zero"},
        {"ceil_div(M, 0)", "division by zero"},
        {"div(1.0, 0.0)", "division by zero"},
        {"big + 1", "column 5: the result does not fit in 64 bits"},
        {"big * 2", "does not fit"},
        {"(-big - 1) / -1", "does not fit"},
        {"pow(10, 19)", "does not fit"},
        {"99999999999999999999", "column 1: the number does not fit"},
        {"sqrt(2)", "column 1: unknown function; there are ceil_div"},
        {"min(1)", "expected \",\""},
        {"min(1,2,3)", "expected \")\""},
        {"pow(2, 0.5)", "exponent"},
        {"1e999", "not finite"},
        {"1e300 * 1e300", "not finite"},
        {"3x", "neither a number nor a name"},
        {"1.2.3", "neither a number nor a name"},
        {"M $ 2", "column 3"},
        {"1 < 2 < 3", "expected an operator"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expr_value value;
        ev_error err = {EV_OK, ""};
        assert_int_equal(expr_eval(rows[i].text, &SCOPE, &value, &err), EV_BAD);
        if (strstr(err.text, rows[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].words);
    }
}

static void test_depth(void **state) {
    (void)state;
    char text[4096];
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    expr_value value;
    ev_error err = {EV_OK, ""};
    assert_int_equal(expr_eval(text, &SCOPE, &value, &err), EV_BAD);
    memset(text, '-', sizeof text - 1);
    assert_int_equal(expr_eval(text, &SCOPE, &value, &err), EV_BAD);
    assert_non_null(strstr(err.text, "nested too deeply"));
}

static void test_range(void **state) {
    (void)state;
    int64_t out = -1;
    ev_error err = {EV_OK, ""};
    assert_int_equal(expr_eval_whole("M", &SCOPE, 1, 100, &out, &err), EV_OK);
    assert_int_equal(out, 100);
    assert_int_equal(expr_eval_whole("M + 1", &SCOPE, 1, 100, &out, &err), EV_BAD);
    assert_non_null(strstr(err.text, "is 101; it must be in [1, 100]"));
    assert_int_equal(expr_eval_whole("0.5", &SCOPE, 0, 1, &out, &err), EV_BAD);
    assert_non_null(strstr(err.text, "a whole number is needed"));
    assert_int_equal(out, 100);
}

/* ---- without values ----------------------------------------------------------------------------
 */

static void test_check(void **state) {
    (void)state;
    static const char *const known[] = {"M", "TILE"};
    static const expr_names names = {known, 2};
    static const struct {
        const char *text;
        const char *words; /* NULL: fine */
        bool constant;
    } rows[] = {
        {"ceil_div(M, TILE) * 2", NULL, false},
        {"pow(2, 10) - 1", NULL, true},
        {"1 / 0", NULL, true}, /* no matter of syntax */
        {"1 / (M - M)", NULL, false},
        {"K + 1", "column 1: unknown name \"K\"; known here: M, TILE", false},
        {"min(M)", "expected \",\" here", false},
        {"abs(M, 1)", "unknown function", false},
        {"", "column 1: expected a number", false},
        {"M M", "column 3: expected an operator", false},
        {"99999999999999999999", "does not fit in 64 bits", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool constant = false;
        ev_error err = {EV_OK, ""};
        ev_status status = expr_check(rows[i].text, &names, &constant, &err);
        assert_int_equal(status, rows[i].words == NULL ? EV_OK : EV_BAD);
        if (rows[i].words == NULL)
            assert_int_equal(constant, rows[i].constant);
        else if (strstr(err.text, rows[i].words) == NULL)
            fail_msg("%s: %s", rows[i].text, err.text);
    }
    bool constant = true;
    assert_int_equal(expr_check("K + 1", NULL, &constant, NULL), EV_OK);
    assert_false(constant);
}

static void test_values_shown(void **state) {
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"ceil_div(M, TILE) * TILE", "M = 100, TILE = 16"},
        {"MM + M2 + 2", ""},
        {"p * 1e5", "p = 0.35"},
        {"min(TILE,M)", "M = 100, TILE = 16"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_str shown = EV_STR_EMPTY;
        expr_print_values(rows[i].text, &SCOPE, &shown);
        assert_string_equal(ev_str_text(&shown), rows[i].shown);
        ev_str_free(&shown);
    }
}

static void test_eval_as(void **state) {
    (void)state;
    expr_value value;
    ev_error err = {EV_OK, ""};
    assert_int_equal(expr_eval_as("M * 2 + 55", EV_U8, &SCOPE, &value, &err), EV_OK);
    assert_int_equal(value.whole, 255);
    assert_int_equal(expr_eval_as("M * 2 + 56", EV_U8, &SCOPE, &value, &err), EV_BAD);
    assert_non_null(strstr(err.text, "it must be in [0, 255]"));
    assert_int_equal(expr_eval_as("-M - 28", EV_S8, &SCOPE, &value, &err), EV_OK);
    assert_int_equal(value.whole, -128);
    assert_int_equal(expr_eval_as("p", EV_S32, &SCOPE, &value, &err), EV_BAD);
    assert_int_equal(expr_eval_as("p", EV_F32, &SCOPE, &value, &err), EV_OK);
    assert_true(value.is_real && value.real == (double)0.35f);
    assert_int_equal(expr_eval_as("1e6", EV_F16, &SCOPE, &value, &err), EV_BAD);
    assert_non_null(strstr(err.text, "which f16 cannot hold"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_real),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_range),        cmocka_unit_test(test_check),
        cmocka_unit_test(test_values_shown), cmocka_unit_test(test_eval_as),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
