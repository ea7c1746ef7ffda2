/* Tasks with ranks whose starts have several launches, through the binary: a right one passes, is
 * profiled as the sum of its launches and tuned; a wait that is forgotten between launches is found
 * in the launch that needs it. */
#include "tests/cli_run.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/tuner/cli/collective_rig.h"

static const char source[] = SUM_UP_STEPS_SOURCE;
static const char task_text[] = SUM_UP_STEPS_TASK;

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0) {
        cli_write("right.cu", source);
        cli_write("sum.cu", source);
        cli_write("sum.json", task_text);
    }
    return failed;
}

/* The rows of `evoke check`; the caller's reference. */
static json_t *rows_of(int exit_code) {
    json_t *all =
        cli_json(CLI_RUN("check", cli_path("sum.json"), "--split", "all", "--json"), exit_code);
    json_t *rows = json_incref(json_object_get(all, "rows"));
    json_decref(all);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

static void must_pass(void) {
    json_t *rows = rows_of(0);
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < json_array_size(rows); i++)
        assert_string_equal(text_of(json_array_get(rows, i), "verdict"), "pass");
    json_decref(rows);
}

static void must_fail(const char *old, const char *new, const char *first, const char *second) {
    cli_copy_changed("right.cu", "sum.cu", old, new);
    ev_proc_result r = CLI_RUN("check", cli_path("sum.json"), "--split", "all");
    assert_int_not_equal(r.exit_code, 0);
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s", ev_str_text(&r.out), ev_str_text(&r.err)) > 0);
    if (strstr(text, first) == NULL || strstr(text, second) == NULL)
        fail_msg("no '%s' and '%s': %s", first, second, text);
    free(text);
    ev_proc_result_free(&r);
    cli_write("sum.cu", source);
}

#define POLL "while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)"

static void test_right(void **state) {
    (void)state;
    must_pass();
}

/* Whatever the ranks do in which order, nothing says that the peers have put their numbers. */
static void test_no_wait(void **state) {
    (void)state;
    must_fail(POLL, "if (epoch == 12345)", "launch 2 of 2, kernel `get`: race-global",
              " in an earlier launch, which nothing of scope .sys orders");
}

static void test_narrow_fence(void **state) {
    (void)state;
    must_fail("__threadfence_system();\n        *(vol", "__threadfence();\n        *(vol",
              "launch 2 of 2, kernel `get`: race-global", "of rank ");
}

/* No launch of the peers can end a wait for what only the next launch tells. */
static void test_told_too_late(void **state) {
    (void)state;
    must_fail("    __syncthreads();\n    if (peer < ranks) {\n        __threadfence_system();\n",
              "    while (*(volatile unsigned *)&all_flags[rank][0] == epoch - 1)\n        ;\n"
              "    if (peer < ranks) {\n        __threadfence_system();\n",
              "launch 1 of 2, kernel `put`: deadlock", "polls 'flags'+0 of rank ");
}

/* The time is that of both launches, each with its own begin. */
static void test_profiled(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("profile", cli_path("sum.json"), "--json"), 0);
    assert_int_equal(json_integer_value(json_object_get(json, "ranks")), 4);
    assert_int_equal(json_integer_value(json_object_get(json, "launches")), 2);
    assert_string_equal(text_of(json, "time_kind"), "modelled");
    assert_true(json_number_value(json_object_get(json, "ns")) > 6000);
    json_decref(json);
}

static void test_tuned(void **state) {
    (void)state;
    json_t *all = cli_json(CLI_RUN("tune", cli_path("sum.json"), "--evaluations", "16", "--seed",
                                   "5", "--records", cli_path("r.sqlite"), "--json"),
                           0);
    assert_int_equal(json_array_size(json_object_get(all, "rows")), 1);
    json_decref(all);
    ev_proc_result r = CLI_RUN("explain", cli_path("r.sqlite"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* A changed task is refused, and the message has the words. */
static void must_refuse(const char *old, const char *new, const char *words) {
    cli_copy_changed("sum.json", "changed.json", old, new);
    cli_expect_error(CLI_RUN("check", cli_path("changed.json")), 2, words);
}

static void test_refused(void **state) {
    (void)state;
    must_refuse("\"of\": \"mine\"", "\"of\": \"stage\"",
                "the table all is of \"stage\", which is no scratch buffer before it; list");
    must_refuse("\"kind\": \"peers\", \"of\": \"mine\"", "\"kind\": \"peers\"", "'of' is missing");
    must_refuse("\"of\": \"mine\"", "\"of\": \"mine\", \"count\": 4", "unknown key 'count'");
    must_refuse("{\"entry\": \"get\"", "{\"entry\": \"got\"", "got");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),        cmocka_unit_test(test_no_wait),
        cmocka_unit_test(test_narrow_fence), cmocka_unit_test(test_told_too_late),
        cmocka_unit_test(test_profiled),     cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
