/* GPU descriptions: the shipped ones load, defaults are derived, and a bad file is named to the
 * column. */
#include "fitness/model/gpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_shipped(void **state) {
    (void)state;
    char **ids = NULL;
    size_t count = 0;
    assert_int_equal(gpu_list(&ids, &count, NULL), EV_OK);
    assert_true(count >= 7);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            assert_true(strcmp(ids[i - 1], ids[i]) < 0);
        gpu *g = NULL;
        ev_error err = {.text = ""};
        if (gpu_load(ids[i], &g, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_string_equal(g->id, ids[i]);
        assert_true(g->sm >= 60 && g->sm <= 120);
        for (int k = 0; k < GPU_KEY_COUNT; k++) {
            assert_true(isfinite(g->numbers[k].value));
            assert_non_null(g->numbers[k].source);
            assert_true(strlen(g->numbers[k].source) > 3);
        }
        /* What is measured cannot be above what is on paper. */
        assert_true(gpu_get(g, GPU_DRAM_GBS) <= gpu_get(g, GPU_DRAM_PEAK));
        assert_true(gpu_get(g, GPU_LAT_SHARED) < gpu_get(g, GPU_LAT_L2));
        gpu_free(g);
    }
    gpu_list_free(ids, count);
}

static void test_values(void **state) {
    (void)state;
    gpu *h200 = NULL, *h100 = NULL, *p100 = NULL;
    assert_int_equal(gpu_load("h200", &h200, NULL), EV_OK);
    assert_int_equal(gpu_load("h100", &h100, NULL), EV_OK);
    assert_int_equal(gpu_load("p100", &p100, NULL), EV_OK);
    assert_string_equal(h200->name, "NVIDIA H200 SXM 141GB");
    assert_int_equal(h200->sm, 90);
    assert_int_equal((int)gpu_get(h200, GPU_SM_COUNT), 132);
    assert_int_equal((int)gpu_get(h200, GPU_DRAM_GBS), 4554);
    /* Unknown ones are derived, and say so. */
    assert_float_equal(gpu_get(h100, GPU_DRAM_GBS), 0.9 * 3350, 1e-9);
    assert_true(strncmp(h100->numbers[GPU_DRAM_GBS].source, "derived: 0.9", 12) == 0);
    assert_float_equal(gpu_get(h100, GPU_LAUNCH_US), 2.5, 0);
    assert_float_equal(gpu_get(p100, GPU_LAT_DRAM), 2 * 234, 0);
    assert_int_equal((int)gpu_get(p100, GPU_UNIFIED_L1), 0);
    assert_int_equal((int)gpu_get(h100, GPU_UNIFIED_L1), 1);
    gpu_free(h200);
    gpu_free(h100);
    gpu_free(p100);
}

static void test_keys(void **state) {
    (void)state;
    for (int k = 0; k < GPU_KEY_COUNT; k++) {
        gpu_key found = GPU_KEY_COUNT;
        assert_true(gpu_key_find(gpu_key_name((gpu_key)k), &found));
        assert_int_equal(found, k);
        assert_true(strlen(gpu_key_doc((gpu_key)k)) > 3);
    }
    gpu_key untouched = GPU_FP32;
    assert_false(gpu_key_find("fp128_per_clk_sm", &untouched));
}

/* Loads `text` as a description; returns the message. */
static char message[1500];

static ev_status load_text(const char *text, gpu **out) {
    char path[] = "/tmp/evoke-gpu-XXXXXX.json";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ev_error err = {.text = ""};
    ev_status status = gpu_load(path, out, &err);
    (void)snprintf(message, sizeof message, "%s", err.text);
    unlink(path);
    return status;
}

#define LEAST                                                                                      \
    "\"name\": \"X\", \"cc\": \"8.6\", \"boost_MHz\": {\"v\": 1000}, "                             \
    "\"max_warps_per_sm\": {\"v\": 48}, \"max_blocks_per_sm\": {\"v\": 16}, "                      \
    "\"smem_per_sm_B\": {\"v\": 102400}, \"l1_size_B\": {\"v\": 131072}, "                         \
    "\"fp32_per_clk_sm\": {\"v\": 128}, \"fp64_per_clk_sm\": {\"v\": 2}, "                         \
    "\"lat_shared\": {\"v\": 23}, \"lat_l1\": {\"v\": 33}, \"lat_l2\": {\"v\": 200}, "             \
    "\"l2_size_B\": {\"v\": 4e6}, \"l2_bw_GBs\": {\"v\": 1000}, \"dram_GB\": {\"v\": 8}, "         \
    "\"dram_bw_peak_GBs\": {\"v\": 400}"

static void test_own_file(void **state) {
    (void)state;
    gpu *g = NULL;
    assert_int_equal(load_text("{" LEAST ", \"sm_count\": {\"v\": 28, \"src\": \"measured\"}}", &g),
                     EV_OK);
    assert_int_equal(g->sm, 86);
    assert_string_equal(g->numbers[GPU_SM_COUNT].source, "measured");
    assert_int_equal((int)gpu_get(g, GPU_LAT_FP64), 45); /* two lanes a clock: a slow pipe */
    gpu_free(g);
}

static void check_refused(const char *text, const char *place, const char *what) {
    gpu *g = NULL;
    assert_int_equal(load_text(text, &g), EV_BAD);
    if (strstr(message, place) == NULL || strstr(message, what) == NULL)
        fail_msg("'%s' lacks '%s' or '%s'", message, place, what);
}

static void test_bad_files(void **state) {
    (void)state;
    check_refused("{\"name\": \"X\",\n \"cc\" 3}", ":2:", "");
    check_refused("{" LEAST ",\n \"sm_cuont\": {\"v\": 28}}", ":2:2:", "did you mean 'sm_count'");
    check_refused("{" LEAST "}", ":1:", "'sm_count' is not given");
    check_refused("{" LEAST ",\n\"sm_count\": {\"v\": null}}", ":2:", "'sm_count' is not given");
    check_refused("{" LEAST ",\n\"sm_count\": {\"v\": 0}}", ":2:19", "must be from 1");
    check_refused("{" LEAST ",\n\"sm_count\": {\"v\": \"many\"}}", ":2:19", "number or null");
    check_refused("{" LEAST ",\n\"sm_count\": 28}", ":2:", "must be an object");
    check_refused("{" LEAST ", \"sm_count\": {\"v\": 28},\n\"lat_dram\": {\"v\": 100}}",
                  ":2:", "below lat_l2");
    check_refused("{\"name\": \"X\",\n\"cc\": \"nine\"}", ":2:", "no compute capability");
    static const char *const BAD[] = {" 9.0", "+9.0", "9", "9.", "9.0a", "9.10", "0.9", "100.0"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "{\"name\": \"X\",\n\"cc\": \"%s\"}", BAD[i]);
        check_refused(text, ":2:", "no compute capability");
    }
}

static void test_unknown(void **state) {
    (void)state;
    gpu *g = NULL;
    ev_error err = {.text = ""};
    assert_int_equal(gpu_load("h300", &g, &err), EV_BAD);
    assert_non_null(strstr(err.text, "h200"));
    assert_int_equal(gpu_load("", &g, &err), EV_BAD);
    assert_int_equal(gpu_load("no/such.json", &g, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no/such.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_own_file),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
