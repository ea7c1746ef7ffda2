/* What tests/gpu/run.sh runs on a machine with a GPU, here on the stand-in for the driver: goldens
 * of the PTX table, and whether the model ranks variants as the device does. */
#include "tests/cli_run.h"
#include "tuner/bench/silicon.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double number(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static double tau(const double *measured, const double *modelled, size_t count) {
    silicon_point points[8];
    memset(points, 0, sizeof points);
    for (size_t i = 0; i < count; i++) {
        points[i].measured = measured[i];
        points[i].modelled = modelled[i];
    }
    return silicon_kendall(points, count, 0);
}

/* By hand from the definition: (agreed - disagreed) / sqrt(pairs apart here x there). */
static void kendall(void **state) {
    (void)state;
    const double up[] = {1, 2, 3, 4}, down[] = {4, 3, 2, 1}, swapped[] = {1, 3, 2, 4},
                 tied[] = {1, 1, 2, 3}, flat[] = {5, 5, 5, 5};
    assert_float_equal(tau(up, up, 4), 1, 1e-12);
    assert_float_equal(tau(up, down, 4), -1, 1e-12);
    assert_float_equal(tau(up, swapped, 4), 4.0 / 6, 1e-12);
    assert_true(fabs(tau(up, tied, 4) - 5 / sqrt(6.0 * 5)) < 1e-12);
    assert_float_equal(tau(tied, tied, 4), 1, 1e-12);
    assert_float_equal(tau(up, flat, 4), 0, 0);
    assert_float_equal(tau(up, up, 1), 0, 0);
    /* noise: 1 and 1.004 are the same, so that one pair less is told apart */
    const silicon_point noisy[] = {{.measured = 1, .modelled = 2},
                                   {.measured = 1.004, .modelled = 1},
                                   {.measured = 2, .modelled = 3}};
    assert_float_equal(silicon_kendall(noisy, 3, 0), 1.0 / 3, 1e-12);
    assert_true(fabs(silicon_kendall(noisy, 3, 0.01) - 2 / sqrt(2.0 * 3)) < 1e-12);
}

/* The stand-in, as the driver, refuses to work in a child of a process that started it. */
static void ranks(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("bench", "rank", "--device", "cuda:0", "--variants", "8",
                                    "--only", cli_path("task.json"), "--json"),
                            0);
    cli_keys(json, "bench:s device:s against:s variants:i kendall:n kendall_apart:n spearman:n "
                   "mape:n refused:i "
                   "rows:a");
    assert_string_equal(json_string_value(json_object_get(json, "against")), "vm:h200");
    assert_int_equal((int)number(json, "variants"), 8);
    assert_int_equal((int)number(json, "refused"), 0);
    /* the stand-in's times are the same model's, of all blocks and not of a sample */
    assert_true(number(json, "kendall") > 0.9 && number(json, "mape") < 5);
    json_decref(json);
    json = cli_json(CLI_RUN("bench", "rank", "--device", "vm:t4", "--against", "vm:h200",
                            "--variants", "8", "--only", cli_path("task.json"), "--json"),
                    0);
    /* another GPU: other times, and still mostly the same order */
    assert_true(number(json, "mape") > 5 && number(json, "kendall") > 0.3);
    json_decref(json);
    cli_expect_error(CLI_RUN("bench", "rank", "--variants", "0"), 2, "--variants 0");
}

static json_t *goldens(const char *device, int exit_code) {
    char line[200];
    (void)snprintf(line, sizeof line, "%s/tests/goldens %s logic atomic", EVOKE_BINARY_DIR, device);
    return cli_json(cli_shell(line), exit_code);
}

static void golden_bits(void **state) {
    (void)state;
    static const char *const devices[] = {"cuda:0", "vm:h200"};
    for (size_t i = 0; i < 2; i++) {
        json_t *json = goldens(devices[i], 0);
        assert_true(number(json, "rows") > 20 && number(json, "values") > 1000);
        assert_int_equal((int)number(json, "differed"), 0);
        assert_int_equal((int)number(json, "refused"), 0);
        json_decref(json);
    }
    /* On a slow machine no golden has its turn in that time, which is exit code 1. */
    json_t *all =
        cli_json(cli_shell(EVOKE_BINARY_DIR "/tests/goldens cuda:0 --seconds 0.05 || true"), 0);
    const json_t *tensor = json_object_get(all, "tensor");
    assert_int_equal((int)number(tensor, "forms"), 146);
    assert_int_equal(json_array_size(json_object_get(tensor, "differed")), 0);
    assert_int_equal(json_array_size(json_object_get(tensor, "refused")), 0);
    json_decref(all);
    json_t *short_of_time =
        cli_json(cli_shell(EVOKE_BINARY_DIR "/tests/goldens vm:h200 --seconds 0.05 || true"), 0);
    assert_true(number(short_of_time, "unfinished") > 0);
    json_decref(short_of_time);
    /* what an older GPU has not is refused, and no difference */
    json_t *json = goldens("vm:v100", 0);
    assert_true(number(json, "refused") > 0 && number(json, "plans") > number(json, "refused"));
    json_decref(json);
    /* a device on which every launch fails differs in all */
    (void)setenv("EVOKE_STANDIN_FAIL", "launch:0+=address", 1);
    json = goldens("cuda:0", 1);
    assert_true(number(json, "differed") == number(json, "plans"));
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    json_decref(json);
}

/* What the driver 550 takes is PTX 8.4. Nothing that runs on a GPU says more than it needs. */
static void an_older_driver(void **state) {
    (void)state;
    (void)setenv("EVOKE_STANDIN_DRIVER", "550", 1);
    json_t *json =
        cli_json(cli_shell(EVOKE_BINARY_DIR "/tests/goldens cuda:0 convert warp compare"), 0);
    assert_true(number(json, "rows") > 20);
    assert_int_equal((int)number(json, "differed"), 0);
    assert_int_equal((int)number(json, "refused"), 0);
    json_decref(json);
    json = cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0", "--evaluations",
                            "20", "--json"),
                    0);
    json_decref(json);
    json = cli_json(CLI_RUN("calibrate", "--device", "cuda:0", "--only", "LAT_ALU", "--json"), 0);
    json_decref(json);
    /* a driver from before this GPU: the message has the version that it takes */
    (void)setenv("EVOKE_STANDIN_DRIVER", "11.0", 1);
    cli_expect_error(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0"), 2, "7.0");
    (void)unsetenv("EVOKE_STANDIN_DRIVER");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kendall),
        cmocka_unit_test(ranks),
        cmocka_unit_test(golden_bits),
        cmocka_unit_test(an_older_driver),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
