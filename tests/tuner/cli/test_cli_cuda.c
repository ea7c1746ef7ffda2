/* `evoke check` and `evoke tune` on the device cuda:0, which is the stand-in's. */
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

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

static size_t rows_with(const json_t *rows, const char *verdict) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        count += strcmp(json_string_value(json_object_get(json_array_get(rows, i), "verdict")),
                        verdict) == 0;
    return count;
}

/* A GPU runs no ranks: such tasks are named with the cure, and the others checked. */
static void test_check_leaves_out(void **state) {
    (void)state;
    ev_proc_result r =
        CLI_RUN("check", "ar_oneshot", cli_path("task.json"), "ar_ring", "--device", "cuda:0",
                "--json", "--rows", cli_path("rows"), "--junit", cli_path("j.xml"));
    assert_non_null(
        strstr(ev_str_text(&r.err), "note: task ar_oneshot is left out: cuda:0: times"));
    assert_non_null(strstr(ev_str_text(&r.err), "note: task ar_ring is left out: cuda:0: times"));
    json_t *json = cli_json(r, 0);
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "pass");
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 8);
    assert_int_equal(rows_with(rows, "pass"), 6);
    assert_int_equal(rows_with(rows, "left_out"), 2);
    const char *reason = json_string_value(json_object_get(json_array_get(rows, 0), "reason"));
    assert_non_null(strstr(reason, "give --device vm:MODEL"));
    const json_t *kernels = json_object_get(json, "kernels");
    assert_int_equal(rows_with(kernels, "left_out"), 2);
    assert_int_equal(rows_with(kernels, "ok"), 1);
    json_decref(json);
    char *text = cli_read("rows");
    assert_non_null(strstr(text, "\"kernel\":\"ar_ring\""));
    free(text);
    text = cli_read("j.xml");
    assert_non_null(strstr(text, "tests=\"8\" failures=\"0\" errors=\"0\" skipped=\"2\""));
    free(text);
    r = CLI_RUN("check", "ar_oneshot", "ar_ring", "--device", "cuda:0");
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "note: task ar_oneshot is left out"));
    ev_proc_result_free(&r);
    cli_expect_error(CLI_RUN("check", "ar_ring", "--device", "cuda:0"), 2,
                     "give --device vm:MODEL");
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
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
