/* `evoke check` and `evoke tune` on the device cuda:0, which is the stand-in's. */
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/tuner/cli/collective_rig.h"

static void test_check_command(void **state) {
    (void)state;
    json_t *json =
        cli_json(CLI_RUN("check", cli_path("task.json"), "--device", "cuda:0", "--json"), 0);
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 6);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(json_string_value(json_object_get(row, "device")), "cuda:0");
        assert_string_equal(json_string_value(json_object_get(row, "verdict")), "pass");
        const json_t *kind = json_object_get(row, "time_kind");
        assert_true(kind == NULL || strcmp(json_string_value(kind), "modelled") == 0);
    }
    json_decref(json);
    ev_proc_result r = CLI_RUN("devices");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "cuda:0"));
    ev_proc_result_free(&r);
    r = cli_shell("EVOKE_STANDIN= $EVOKE check --device cuda:0 ar_adam");
    cli_expect_error(r, 3, "CUDA_ERROR_NO_DEVICE");
    r = cli_shell("LD_LIBRARY_PATH=/nowhere $EVOKE check --device cuda:9 ar_adam");
    assert_true(r.exit_code == 3 || r.exit_code == 2); /* 2: this machine has a driver */
    ev_proc_result_free(&r);
}

static json_t *check_ranks(const char *gpus, int exit_code) {
    (void)setenv("EVOKE_STANDIN", gpus, 1);
    json_t *json = cli_json(CLI_RUN("check", cli_path("sum.json"), "--device", "cuda:0", "--split",
                                    "all", "--start", "other", "--json"),
                            exit_code);
    (void)unsetenv("EVOKE_STANDIN");
    return json;
}

/* All cases of a task with ranks pass, on streams of one GPU and on GPUs of their own; a kernel
 * that does not wait for its peers is stopped before a GPU runs it. */
static void test_check_ranks(void **state) {
    (void)state;
    static const char *const gpus[] = {"h200", "h200,h200,h200,h200"};
    cli_write("sum.cu", SUM_UP_SOURCE);
    cli_write("other.cu", SUM_UP_SOURCE);
    cli_write("sum.json", SUM_UP_TASK);
    for (size_t i = 0; i < 2; i++) {
        json_t *json = check_ranks(gpus[i], 0);
        const json_t *rows = json_object_get(json, "rows");
        assert_int_equal(json_array_size(rows), 4);
        for (size_t k = 0; k < 4; k++) {
            const json_t *row = json_array_get(rows, k);
            assert_string_equal(text_of(row, "verdict"), "pass");
            assert_string_equal(text_of(row, "device"), "cuda:0");
            bool timed = json_number_value(json_object_get(row, "ns")) > 0;
            assert_string_equal(text_of(row, "time_kind"), timed ? "modelled" : "");
            assert_true(timed || strcmp(text_of(row, "case"), "t") != 0);
        }
        json_decref(json);
    }
    cli_copy_changed("sum.cu", "other.cu", "- epoch) < 0", "- epoch) < -1");
    json_t *json = check_ranks(gpus[0], 1);
    const char *reason = text_of(json_array_get(json_object_get(json, "rows"), 0), "reason");
    assert_non_null(strstr(reason, "on vm:h200: "));
    assert_non_null(strstr(reason, "race-"));
    json_decref(json);
    cli_write("other.cu", SUM_UP_SOURCE);
}

/* A search, whose winner's bundle has its ranks. */
static void test_tune_ranks(void **state) {
    (void)state;
    cli_copy_changed("sum.json", "one.json",
                     ",\n  {\"name\": \"other\", \"source\": \"other.cu\", \"grid\": "
                     "\"ceil_div(n, 64)\", \"block\": 64}",
                     "");
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("one.json"), "--device", "cuda:0", "--evaluations", "1",
                         "--workers", "1", "--out", cli_path("ranks"), "--json"),
                 0);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(text_of(row, "time_kind"), "modelled");
    assert_string_equal(text_of(row, "device"), "cuda:0");
    json_decref(json);
    char *text = cli_read("ranks/manifest.json");
    json_t *manifest = json_loads(text, 0, NULL);
    const json_t *kernel = json_array_get(json_object_get(manifest, "kernels"), 0);
    assert_string_equal(text_of(json_object_get(kernel, "ranks"), "count"), "ranks");
    const json_t *base = json_array_get(json_object_get(kernel, "baselines"), 0);
    assert_int_equal(json_array_size(json_object_get(base, "resident")), 1);
    assert_string_equal(text_of(json_object_get(base, "gpu"), "id"), "h200");
    json_decref(manifest);
    free(text);
}

/* A whole search, its winner and its bundle; times of the stand-in are nowhere called measured. */
/* Number of cases with intervals of their baseline's time around that time. */
static size_t intervals(const json_t *cases) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        double low = json_number_value(json_object_get(c, "baseline_low_ns"));
        double high = json_number_value(json_object_get(c, "baseline_high_ns"));
        double ns = json_number_value(json_object_get(c, "baseline_ns"));
        count += low > 0 && low <= ns && ns <= high;
    }
    return count;
}

static void test_tune_command(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0", "--bold",
                                    "--evaluations", "40", "--workers", "2", "--out",
                                    cli_path("bundle"), "--json"),
                            0);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "device")), "cuda:0");
    assert_string_equal(json_string_value(json_object_get(row, "time_kind")), "modelled");
    assert_true(json_is_true(json_object_get(row, "promoted")));
    json_decref(json);
    char *text = cli_read("bundle/manifest.json");
    json_t *manifest = json_loads(text, 0, NULL);
    const json_t *kernel = json_array_get(json_object_get(manifest, "kernels"), 0);
    const json_t *variant = json_array_get(json_object_get(kernel, "variants"), 0);
    assert_string_equal(json_string_value(json_object_get(variant, "time_kind")), "modelled");
    const json_t *id = json_object_get(json_object_get(variant, "gpu"), "id");
    assert_string_equal(json_string_value(id), "h200");
    const json_t *versions = json_object_get(json_object_get(variant, "provenance"), "versions");
    const char *driver = json_string_value(json_object_get(versions, "driver"));
    assert_true(driver != NULL && strncmp(driver, "CUDA driver ", 12) == 0);
    assert_int_equal(intervals(json_object_get(variant, "cases")), 1);
    assert_int_equal(intervals(json_object_get(
                         json_array_get(json_object_get(kernel, "baselines"), 0), "cases")),
                     1);
    json_decref(manifest);
    free(text);
    cli_expect_error(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:7"), 2,
                     "the driver has 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_command),
        cmocka_unit_test(test_tune_command),
        cmocka_unit_test(test_check_ranks),
        cmocka_unit_test(test_tune_ranks),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
