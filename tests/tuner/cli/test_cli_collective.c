/* Tasks with ranks, through the binary: a right all-reduce passes and is tuned, the same seed twice
 * with the same result; each kind of wrong one is stopped, and the reason names it; commands that
 * know of no ranks say so. */
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

static const char source[] = SUM_UP_SOURCE;
static const char task_text[] = SUM_UP_TASK;

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0) {
        cli_write("sum.cu", source);
        cli_write("other.cu", source);
        cli_write("sum.json", task_text);
    }
    return failed;
}

/* The rows of `evoke check`; the caller's reference. */
static json_t *rows_of(const char *start, const char *device, int exit_code) {
    json_t *all = cli_json(CLI_RUN("check", cli_path("sum.json"), "--split", "all", "--start",
                                   start, "--device", device, "--json"),
                           exit_code);
    json_t *rows = json_incref(json_object_get(all, "rows"));
    json_decref(all);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

/* Both starts pass all cases, with the times of the slowest rank. */
static void test_right(void **state) {
    (void)state;
    json_t *rows = rows_of("all", "vm:h200", 0);
    assert_int_equal(json_array_size(rows), 8);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(text_of(row, "verdict"), "pass");
        if (strcmp(text_of(row, "case"), "t") == 0)
            assert_true(json_number_value(json_object_get(row, "ns")) > 3000);
    }
    json_decref(rows);
}

/* What the gates leave out is told, with the reason. */
static void test_not_applied(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("check", cli_path("sum.json"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.err), "not applied: samples of blocks, because flags"));
    assert_non_null(strstr(ev_str_text(&r.err), "not applied: two launches in a row, because"));
    ev_proc_result_free(&r);
}

/* A profile says how many ranks there are, and its time is a modelled one. */
static void test_profiled(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("profile", cli_path("sum.json"), "--json"), 0);
    assert_int_equal(json_integer_value(json_object_get(json, "ranks")), 4);
    assert_string_equal(text_of(json, "time_kind"), "modelled");
    assert_true(json_number_value(json_object_get(json, "ns")) > 3000);
    json_decref(json);
}

/* A start with `old` changed to `new` fails, and the reason of a case has all words. */
static void must_fail(const char *old, const char *new, const char *first, const char *second) {
    cli_copy_changed("sum.cu", "other.cu", old, new);
    json_t *rows = rows_of("other", "vm:h200", 1);
    bool found = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *reason = text_of(json_array_get(rows, i), "reason");
        found = found || (strstr(reason, first) != NULL && strstr(reason, second) != NULL);
    }
    if (!found)
        fail_msg("no reason has '%s' and '%s': %s", first, second,
                 text_of(json_array_get(rows, 0), "reason"));
    json_decref(rows);
    cli_write("other.cu", source);
}

#define WAIT "while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)"

static void test_no_wait(void **state) {
    (void)state;
    must_fail(WAIT, "if (epoch == 12345)", "race-begin", "of rank ");
}

static void test_narrow_fence(void **state) {
    (void)state;
    must_fail("__threadfence_system();\n        *(vol", "__threadfence();\n        *(vol",
              "race-global", "of rank ");
}

static void test_no_fence_behind(void **state) {
    (void)state;
    must_fail(";\n        __threadfence_system();\n    }", ";\n    }", "race-global", "of rank ");
}

static void test_own_first(void **state) {
    (void)state;
    must_fail("stages[r]", "stages[(r + rank) % ranks]", "the ranks disagree: element ",
              "of 'output'");
}

static void test_deadlock(void **state) {
    (void)state;
    must_fail(" - epoch) < 0", " - epoch - (rank == 1)) < 0", "deadlock", "of rank 1");
}

/* A launch would overwrite what peers still read for the launch before. */
static void test_one_half(void **state) {
    (void)state;
    must_fail("(epoch & 1)", "(n < 0)", "case s: relative L2 error", "");
}

static void test_outside(void **state) {
    (void)state;
    must_fail("[blockIdx.x * ranks + rank] = epoch", "[gridDim.x * ranks + rank] = epoch",
              "out-of-bounds", "buffer 'flags'");
}

/* Warp 0 tells the peers before warp 1 has stored its numbers: only an order in which a peer runs
 * between the two shows that. */
static void test_no_barrier(void **state) {
    (void)state;
    must_fail("    __syncthreads();\n    if (peer < ranks) {", "    if (peer < ranks) {",
              "race-global", "by warp 1 of block 0 of rank");
}

/* A rank that keeps its sum to itself leaves elements unwritten. */
static void test_one_rank_idle(void **state) {
    (void)state;
    must_fail("        output[i] = sum;", "        if (rank < ranks - 1) output[i] = sum;",
              "case c", "never written");
}

/* ---- ranks that begin and end apart ---- */

#define PUT "        stage[half + i] = input[i];"
/* What the peer has in the half that this launch leaves alone. */
#define PUT_EARLY                                                                                  \
    "        stage[half + i] = input[i] + 0.0f * stages[(rank + 1) % ranks][(size_t)(~epoch & 1)"  \
    " * ((n + 3) / 4 * 4) + i];"
#define LAST "        output[i] = sum;\n    }"
/* The flag that the peer has seen, once more. */
#define LAST_FLAG                                                                                  \
    LAST "\n    if (peer == 0)\n"                                                                  \
         "        *(volatile unsigned *)&all_flags[(rank + 1) % ranks][blockIdx.x * ranks + rank]" \
         " = epoch;"

/* Reads what a peer has from before its launch, and does not know whether that has begun. */
static void test_before_begin(void **state) {
    (void)state;
    must_fail(PUT, PUT_EARLY, "race-begin: a read of 4 bytes of rank ", "buffer 'stage' of rank ");
}

/* All outputs are right, but a peer may have ended before the last write into its memory. */
static void test_behind_end(void **state) {
    (void)state;
    must_fail(LAST, LAST_FLAG, "race-end: a write ", "buffer 'flags' of rank ");
}

/* The exit code of a check of the changed kernel, whose callers have these barriers. */
static void with_barriers(const char *barriers, int exit_code) {
    char *json = NULL;
    assert_true(asprintf(&json, "\"ranks\": \"ranks\", \"barriers\": [%s],", barriers) > 0);
    cli_copy_changed("sum.json", "together.json", "\"ranks\": \"ranks\",", json);
    ev_proc_result r = CLI_RUN("check", cli_path("together.json"), "--start", "other");
    cli_expect(&r, exit_code);
    ev_proc_result_free(&r);
    free(json);
}

static void test_barriers(void **state) {
    (void)state;
    cli_copy_changed("sum.cu", "other.cu", PUT, PUT_EARLY);
    with_barriers("\"before\"", 0);
    with_barriers("\"after\"", 1);
    cli_copy_changed("sum.cu", "other.cu", LAST, LAST_FLAG);
    with_barriers("\"before\"", 1);
    with_barriers("\"after\"", 0);
    cli_write("other.cu", source);
    with_barriers("\"during\"", 2);
}

/* ---- the search ---- */

/* All that the search found. */
static char *found_by(const char *records) {
    json_t *all = cli_json(CLI_RUN("tune", cli_path("sum.json"), "--evaluations", "40", "--seed",
                                   "5", "--workers", "2", "--records", records, "--json"),
                           0);
    assert_true(json_array_size(json_object_get(all, "rows")) > 0);
    ev_proc_result explained = CLI_RUN("explain", records);
    cli_expect(&explained, 0);
    json_t *rows = json_object_get(all, "rows");
    char *text = json_dumps(rows, JSON_SORT_KEYS), *both = NULL;
    assert_non_null(text);
    assert_true(asprintf(&both, "%s\n%s", text, ev_str_text(&explained.out)) > 0);
    free(text);
    ev_proc_result_free(&explained);
    json_decref(all);
    return both;
}

static void test_tuned_twice(void **state) {
    (void)state;
    char *first = found_by(cli_path("one.sqlite")), *second = found_by(cli_path("two.sqlite"));
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* ---- what knows of no ranks ---- */

static void test_refused(void **state) {
    (void)state;
    const char *task = cli_path("sum.json");
    cli_expect_error(CLI_RUN("corpus", task, "c", "--out", cli_path("c")), 2,
                     "no file has the addresses of a peer's buffers. Run it with evoke check");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),        cmocka_unit_test(test_not_applied),
        cmocka_unit_test(test_profiled),     cmocka_unit_test(test_no_wait),
        cmocka_unit_test(test_narrow_fence), cmocka_unit_test(test_no_fence_behind),
        cmocka_unit_test(test_own_first),    cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_one_half),     cmocka_unit_test(test_outside),
        cmocka_unit_test(test_no_barrier),   cmocka_unit_test(test_one_rank_idle),
        cmocka_unit_test(test_tuned_twice),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_before_begin), cmocka_unit_test(test_behind_end),
        cmocka_unit_test(test_barriers),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
