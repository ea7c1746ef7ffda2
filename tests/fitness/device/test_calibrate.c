/* Calibration: on vm:MODEL the micro-benchmarks give back the description's own numbers, also where
 * those are not the base's; on the stand-in for the driver the same ones run, and what fails keeps
 * the base's number. */
#include "base/file.h"
#include "base/json.h"
#include "fitness/device/calibrate/calibrate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

#define WITHIN 0.05

static ev_error err;
static bool again;

static gpu *load(const char *id) {
    gpu *g = NULL;
    OK(gpu_load(id, &g, &err));
    return g;
}

static calibration run(const char *device_id, const gpu *base, const char *only) {
    calibrate_options options = {.only = only};
    calibration c;
    device *d = NULL;
    OK(device_open(device_id, &d, &err));
    OK(calibrate_run(d, base, &options, &c, &again, &err));
    device_close(d);
    return c;
}

/* Every row that was measured is as `truth` says; returns how many were. */
static size_t expect(const calibration *c, const gpu *truth) {
    size_t measured = 0;
    for (size_t i = 0; i < c->count; i++) {
        const calibrate_row *row = &c->rows[i];
        double is = gpu_get(truth, row->key);
        if (row->why[0] != '\0') {
            assert_true(row->value == 0);
            continue;
        }
        measured++;
        if (!(fabs(row->value / is - 1) <= WITHIN))
            fail_msg("%s %s: %g, the description has %g", truth->id, row->probe, row->value, is);
    }
    return measured;
}

static void gives_back(void **state) {
    (void)state;
    static const struct {
        const char *id;
        size_t measured;
    } models[] = {{"v100", 35}, {"h200", 37}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "vm:%s", models[i].id);
        gpu *g = load(models[i].id);
        calibration c = run(id, g, NULL);
        assert_int_equal(c.count, 38);
        size_t measured = expect(&c, g);
        if (measured != models[i].measured)
            fail_msg("%s: %zu figures, expected %zu", id, measured, models[i].measured);
        calibrate_free(&c);
        gpu_free(g);
    }
}

/* ---- another GPU than the base ---- */

/* Writes `g` to a file with the numbers of the rows changed, each in its own way; the caller frees
 * the path. */
static char *write_changed(const gpu *g, const calibration *rows) {
    char path[] = "/tmp/evoke-calibrate-XXXXXX.json";
    json_t *o = json_pack("{s:s, s:s}", "name", "changed", "cc", "8.0");
    for (int k = 0; k < GPU_KEY_COUNT; k++)
        json_object_set_new(o, gpu_key_name((gpu_key)k),
                            json_pack("{s:f}", "v", gpu_get(g, (gpu_key)k)));
    for (size_t i = 0; i < rows->count; i++) {
        gpu_key key = rows->rows[i].key;
        double factor = 0.7 + 0.05 * (double)(i % 5); /* 0.7 to 0.9 */
        if (key == GPU_BOOST_MHZ || key == GPU_LAT_L2 || key == GPU_LAT_DRAM)
            continue;
        json_object_set_new(o, gpu_key_name(key),
                            json_pack("{s:f}", "v", ceil(factor * gpu_get(g, key))));
    }
    int fd = mkstemps(path, 5);
    char *text = json_dumps(o, 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    free(text);
    json_decref(o);
    return strdup(path);
}

static void follows_the_device(void **state) {
    (void)state;
    gpu *base = load("a100");
    calibrate_options options = {.only = NULL};
    device *d = NULL;
    char id[64];
    OK(device_open("vm:a100", &d, &err));
    calibration first, second;
    OK(calibrate_run(d, base, &options, &first, &again, &err));
    device_close(d);
    assert_int_equal(expect(&first, base), 37);
    char *path = write_changed(base, &first);
    (void)snprintf(id, sizeof id, "vm:%s", path);
    gpu *changed = load(path);
    second = run(id, base, NULL);
    assert_int_equal(expect(&second, changed), 37);
    unlink(path);
    free(path);
    calibrate_free(&first);
    calibrate_free(&second);
    gpu_free(changed);
    gpu_free(base);
}

/* ---- the description ---- */

static void writes(const char *device_id, const gpu *base, const calibration *c, const char *path) {
    device *d = NULL;
    OK(device_open(device_id, &d, &err));
    OK(calibrate_write(d, base, c, "2026-01-31", path, &err));
    device_close(d);
}

static void source_is(const gpu *g, gpu_key key, const char *source) {
    assert_string_equal(g->numbers[key].source, source);
}

static void describes(void **state) {
    (void)state;
    gpu *base = load("v100");
    calibration c = run("vm:v100", base, "lat_l1");
    assert_int_equal(c.count, 1);
    const char *path = "/tmp/evoke-calibrate-v100.json";
    writes("vm:v100", base, &c, path);
    gpu *made = load(path);
    source_is(made, GPU_LAT_L1, "modelled");
    source_is(made, GPU_LAT_L2, base->numbers[GPU_LAT_L2].source);
    /* what was derived is derived anew */
    assert_true(strncmp(made->numbers[GPU_LAT_DRAM].source, "derived", 7) != 0);
    source_is(made, GPU_START_CLK, base->numbers[GPU_START_CLK].source);
    for (int k = 0; k < GPU_KEY_COUNT; k++)
        assert_true(fabs(gpu_get(made, (gpu_key)k) / fmax(1e-9, gpu_get(base, (gpu_key)k)) - 1) <
                        WITHIN ||
                    gpu_get(base, (gpu_key)k) == 0);
    ev_json *doc = NULL;
    OK(ev_json_load(path, &doc, &err));
    const json_t *how = json_object_get(doc->root, "calibrated");
    assert_string_equal(ev_json_text(how, "device", ""), "vm:v100");
    assert_string_equal(ev_json_text(how, "times", ""), "modelled");
    assert_string_equal(ev_json_text(how, "date", ""), "2026-01-31");
    ev_json_free(doc);
    calibrate_free(&c);
    gpu_free(made);
    gpu_free(base);
    unlink(path);
}

static void refuses(void **state) {
    (void)state;
    gpu *base = load("v100");
    calibrate_options options = {.only = "warp_speed"};
    calibration c;
    device *d = NULL;
    OK(device_open("vm:v100", &d, &err));
    assert_int_equal(calibrate_run(d, base, &options, &c, &again, &err), EV_BAD);
    assert_non_null(strstr(err.text, "LAT_DRAM"));
    device_close(d);
    gpu_free(base);
}

/* ---- the stand-in for the driver ---- */

static void on_the_driver(void **state) {
    (void)state;
    static const char *const cheap[] = {"lat_alu", "LAT_L1", "LAT_DRAM", "lat_atomic",
                                        "FP64",    "START",  "LAUNCH",   "smem_bw_meas_GBs"};
    gpu *base = load("t4");
    for (size_t i = 0; i < sizeof cheap / sizeof cheap[0]; i++) {
        calibration c = run("cuda:0", base, cheap[i]);
        assert_int_equal(expect(&c, base), 1);
        if (i == 0) {
            const char *path = "/tmp/evoke-calibrate-cuda.json";
            writes("cuda:0", base, &c, path);
            gpu *made = load(path);
            source_is(made, GPU_LAT_ALU, "modelled"); /* nothing measured it */
            source_is(made, GPU_SM_COUNT, "the driver");
            assert_true(gpu_get(made, GPU_SM_COUNT) == 40);
            assert_true(fabs(gpu_get(made, GPU_DRAM_PEAK) / 320 - 1) < 1e-3);
            assert_non_null(strstr(made->name, "(modelled)"));
            gpu_free(made);
            unlink(path);
        }
        calibrate_free(&c);
    }
    (void)setenv("EVOKE_STANDIN_FAIL", "launch:0+=address", 1);
    calibration c = run("cuda:0", base, "LAT_L1");
    assert_int_equal(expect(&c, base), 0);
    assert_non_null(strstr(c.rows[0].why, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    calibrate_free(&c);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuEventQuery:0+=lost", 1);
    device *d = NULL;
    calibrate_options options = {.only = "LAT_L1"};
    OK(device_open("cuda:0", &d, &err));
    assert_int_equal(calibrate_run(d, base, &options, &c, &again, &err), EV_INFRA);
    device_close(d);
    gpu_free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back),    cmocka_unit_test(follows_the_device),
        cmocka_unit_test(describes),     cmocka_unit_test(refuses),
        cmocka_unit_test(on_the_driver), /* loses the device: the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
