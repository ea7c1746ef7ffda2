/* Rows of compared searches: read from a file, refused where a mean would be of different sets, and
 * the figures of the tables, on hand-made speed-ups. */
#include "base/file.h"
#include "tuner/bench/comparison.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROW(strategy, kernel, start, seed, speedup, more)                                          \
    "{\"strategy\": \"" strategy "\", \"kernel\": \"" kernel "\", \"start\": \"" start             \
    "\", \"seed\": " seed ", \"evaluations\": 9, \"duplicates\": 1, \"speedup\": " speedup more    \
    "}\n"

static void read_text(comparison *m, const char *text, ev_status expected, ev_error *err) {
    char path[] = "/tmp/evoke-test-comparison-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    size_t length = strlen(text);
    assert_int_equal(write(file, text, length), (ssize_t)length);
    assert_int_equal(close(file), 0);
    assert_int_equal(comparison_read(m, path, err), expected);
    assert_int_equal(unlink(path), 0);
}

static void expect_bad_line(const char *text, const char *message) {
    comparison m = {0};
    ev_error err = {0};
    read_text(&m, text, EV_BAD, &err);
    assert_non_null(strstr(err.text, message));
    comparison_free(&m);
}

static void expect_bad_set(const char *text, const char *message) {
    comparison m = {0};
    ev_error err = {0};
    read_text(&m, text, EV_OK, &err);
    assert_int_equal(comparison_check(&m, &err), EV_BAD);
    assert_non_null(strstr(err.text, message));
    comparison_free(&m);
}

static double at(const json_t *all, const char *key, const char *inner, const char *innermost) {
    const json_t *value = json_object_get(all, key);
    value = inner ? json_object_get(value, inner) : value;
    value = innermost ? json_object_get(value, innermost) : value;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char two_seeds[] =
    ROW("evolve", "k", "hand", "1", "4", "") "\n" ROW("evolve", "k", "hand", "2", "9", "")
        ROW("evolve", "l", "hand", "1", "1", "") ROW("evolve", "l", "hand", "2", "1", "")
            ROW("hill", "k", "hand", "1", "2", "") ROW("hill", "k", "hand", "2", "2", "")
                ROW("hill", "l", "hand", "1", "2", "") ROW("hill", "l", "hand", "2", "2", "");

/* Seed 1 has the mean 2, seed 2 the mean 3: logarithms ln 2 and ln 3, one degree of freedom. */
static void test_means(void **state) {
    (void)state;
    comparison m = {0};
    ev_error err = {0};
    read_text(&m, two_seeds, EV_OK, &err);
    assert_int_equal(m.count, 8);
    assert_int_equal(comparison_check(&m, &err), EV_OK);
    json_t *all = comparison_json(&m);
    assert_float_equal(at(all, "geomean", "evolve", "mean"), sqrt(6), 1e-12);
    double half = (log(3) - log(2)) / 2;
    assert_float_equal(at(all, "geomean", "evolve", "low"), sqrt(6) * exp(-12.706 * half), 1e-9);
    assert_float_equal(at(all, "geomean", "hill", "high"), 2, 1e-12);
    assert_int_equal(json_array_size(json_object_get(all, "without")), 0);
    assert_null(json_object_get(json_object_get(all, "geomean_by_start"), "textbook"));
    json_decref(all);
    ev_str out = {0};
    assert_int_equal(comparison_print(&m, &out, &err), EV_OK);
    assert_non_null(strstr(ev_str_text(&out), "mean over 2 seeds"));
    assert_null(strstr(ev_str_text(&out), "ratio"));
    ev_str_free(&out);
    comparison_free(&m);
}

/* A search without an edit stands against the same seed with all edits, and in no mean. */
static void test_without(void **state) {
    (void)state;
    comparison m = {0};
    ev_error err = {0};
    read_text(&m, two_seeds, EV_OK, &err);
    read_text(&m, ROW("evolve", "k", "hand", "2", "3", ", \"without\": \"stage\""), EV_OK, &err);
    read_text(&m, ROW("evolve", "k", "hand", "1", "3", ", \"without\": \"stage\""), EV_OK, &err);
    assert_int_equal(comparison_check(&m, &err), EV_OK);
    json_t *all = comparison_json(&m);
    assert_float_equal(at(all, "geomean", "evolve", "mean"), sqrt(6), 1e-12);
    const json_t *losses = json_object_get(all, "without");
    assert_int_equal(json_array_size(losses), 1);
    const json_t *loss = json_array_get(losses, 0);
    assert_string_equal(json_string_value(json_object_get(loss, "without")), "stage");
    assert_float_equal(at(loss, "speedup_all", NULL, NULL), 6, 1e-12);
    assert_float_equal(at(loss, "ratio", NULL, NULL), 0.5, 1e-12);
    json_decref(all);
    ev_str out = {0};
    assert_int_equal(comparison_print(&m, &out, &err), EV_OK);
    assert_non_null(strstr(ev_str_text(&out), "0.33, 0.75"));
    ev_str_free(&out);
    comparison_free(&m);
}

/* Where all rows lack an edit, they are the table. */
static void test_all_without(void **state) {
    (void)state;
    comparison m = {0};
    ev_error err = {0};
    read_text(&m, ROW("evolve", "k", "hand", "1", "3", ", \"without\": \"stage\""), EV_OK, &err);
    assert_int_equal(comparison_check(&m, &err), EV_OK);
    json_t *all = comparison_json(&m);
    assert_float_equal(at(all, "geomean", "evolve", "mean"), 3, 1e-12);
    assert_int_equal(json_array_size(json_object_get(all, "without")), 0);
    json_decref(all);
    ev_str out = {0};
    assert_int_equal(comparison_print(&m, &out, &err), EV_OK);
    assert_non_null(strstr(ev_str_text(&out), "promoted: seed 1, at most 9"));
    assert_non_null(strstr(ev_str_text(&out), "without stage"));
    assert_null(strstr(ev_str_text(&out), "interval")); /* one seed has none */
    ev_str_free(&out);
    comparison_free(&m);
}

/* What a row says comes back from its line. */
static void test_row(void **state) {
    (void)state;
    comparison m = {0};
    ev_error err = {0};
    read_text(&m,
              ROW("hill", "k", "textbook", "7", "1.5",
                  ", \"device\": \"vm:a100\", \"without\": \"pad,stage\", \"genome\": {\"a\": 1}"),
              EV_OK, &err);
    json_t *row = comparison_row_json(&m.rows[0]);
    json_t *expected =
        json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:f,s:s,s:s,s:{s:i}}", "strategy", "hill", "kernel",
                  "k", "start", "textbook", "seed", 7, "evaluations", 9, "duplicates", 1, "speedup",
                  1.5, "device", "vm:a100", "without", "pad,stage", "genome", "a", 1);
    assert_true(json_equal(row, expected));
    json_decref(row);
    json_decref(expected);
    comparison_free(&m);
}

static void test_bad_lines(void **state) {
    (void)state;
    expect_bad_line("{", "line 1:");
    expect_bad_line(ROW("hill", "k", "hand", "1", "2", "") "[]\n", "line 2:");
    expect_bad_line(ROW("hil", "k", "hand", "1", "2", ""), "no strategy");
    expect_bad_line(ROW("hill", "k", "foot", "1", "2", ""), "neither textbook nor hand");
    expect_bad_line(ROW("hill", "k", "hand", "1", "0", ""), "not above 0");
    expect_bad_line(ROW("hill", "k", "hand", "1", "2", ", \"speed\": 1"), "speed");
    comparison m = {0};
    ev_error err = {0};
    assert_int_equal(comparison_read(&m, "/tmp/evoke-no-such-file", &err), EV_BAD);
}

static void test_bad_sets(void **state) {
    (void)state;
    expect_bad_set("", "no rows");
    expect_bad_set(ROW("hill", "k", "hand", "1", "2", "") ROW("hill", "k", "hand", "1", "2", ""),
                   "two rows");
    expect_bad_set(ROW("hill", "k", "hand", "1", "2", "")
                       ROW("hill", "k", "textbook", "2", "2", ""),
                   "no row of this search, which the means need: hill, k, textbook, seed 1");
    expect_bad_set(ROW("hill", "k", "hand", "1", "2", ", \"device\": \"vm:a100\"")
                       ROW("hill", "k", "hand", "2", "2", ", \"device\": \"vm:h200\""),
                   "'vm:a100' and of 'vm:h200'");
    expect_bad_set(ROW("hill", "k", "hand", "1", "2", "")
                       ROW("hill", "k", "hand", "2", "2", ", \"without\": \"pad\""),
                   "beside which one without an edit stands: hill, k, hand, seed 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),       cmocka_unit_test(test_without),
        cmocka_unit_test(test_all_without), cmocka_unit_test(test_row),
        cmocka_unit_test(test_bad_lines),   cmocka_unit_test(test_bad_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
