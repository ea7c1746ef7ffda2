/* The timing model against real GPUs, through the binary: the bars that the project holds itself
 * to, and clear words for data that cannot be read. */
#include "tests/cli_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAM "gpu,kernel,threads_per_block,blocks_per_sm,gb_per_s\n"
#define STRIDES "gpu,type,pattern,parameter,cycles_per_warp_load\n"

static double number(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

static const json_t *row_of(const json_t *rows, const char *gpu, const char *set) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "gpu")), gpu) == 0 &&
            strcmp(json_string_value(json_object_get(row, "set")), set) == 0)
            return row;
    }
    fail_msg("no row %s %s", gpu, set);
    return NULL;
}

static void holds_the_bars(void **state) {
    (void)state;
    static const struct {
        const char *gpu, *set;
        double points, mape, spearman;
    } bars[] = {{"A100-80", "stream", 234, 12, 0.93},
                {"V100", "stream", 234, 12, 0.80},
                {"A100-40", "strides", 130, 10, 0.80}};
    json_t *json = cli_json(CLI_RUN("bench", "model", "--json"), 0);
    cli_keys(json, "bench:s rows:a");
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = row_of(rows, bars[i].gpu, bars[i].set);
        cli_keys(row, "gpu:s set:s points:i mape:n spearman:n");
        assert_true(number(row, "points") == bars[i].points);
        if (number(row, "mape") > bars[i].mape || number(row, "spearman") < bars[i].spearman)
            fail_msg("%s %s: error %.1f %%, rank correlation %.3f", bars[i].gpu, bars[i].set,
                     number(row, "mape"), number(row, "spearman"));
    }
    json_decref(json);
}

/* Another GPU's description, from a file: the same points come out otherwise. */
static void takes_other_gpus(void **state) {
    (void)state;
    cli_write("mine.csv", STREAM "my-gpu,scale,256,2,1000\nmy-gpu,scale,128,2,600\n");
    json_t *a = cli_json(CLI_RUN("bench", "model", "--data", cli_path("mine.csv"), "--description",
                                 "a100", "--json"),
                         0);
    json_t *b = cli_json(CLI_RUN("bench", "model", "--data", cli_path("mine.csv"), "--description",
                                 "h200", "--json"),
                         0);
    const json_t *of_a = row_of(json_object_get(a, "rows"), "my-gpu", "stream");
    const json_t *of_b = row_of(json_object_get(b, "rows"), "my-gpu", "stream");
    assert_true(number(of_a, "points") == 2 && number(of_a, "spearman") == 1);
    assert_true(number(of_a, "mape") != number(of_b, "mape"));
    json_decref(a);
    json_decref(b);
}

/* What the model costs, each way of blocks in a row of its own. */
static void tells_its_cost(void **state) {
    (void)state;
    static const char *const blocks[] = {"repeats recalled", "all followed"};
    json_t *json = cli_json(CLI_RUN("bench", "model", "--only", "vector_add", "--json"), 0);
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(json_string_value(json_object_get(row, "kernel")), "vector_add");
        assert_string_equal(json_string_value(json_object_get(row, "blocks")), blocks[i]);
        assert_true(number(row, "vm_seconds") > 0 && number(row, "checked_vm_seconds") > 0);
        assert_true(number(row, "model_seconds") > 0 && number(row, "checked_model_seconds") > 0);
        /* a median of ratios: near the ratio of the medians, on a busy machine too */
        double more = 100 * (number(row, "model_seconds") / number(row, "vm_seconds") - 1);
        assert_true(fabs(number(row, "overhead_percent") - more) < 50);
        assert_true(number(row, "rounds") >= 15);
    }
    json_decref(json);
}

static void refuse(const char *text, const char *words) {
    cli_write("bad.csv", text);
    cli_expect_error(
        CLI_RUN("bench", "model", "--data", cli_path("bad.csv"), "--description", "a100"), 2,
        words);
}

static void refuses_bad_data(void **state) {
    (void)state;
    refuse("", "bad.csv:1: the first line is neither");
    refuse("gpu,kernel\n", "bad.csv:1: the first line is neither");
    refuse(STREAM, "no line after the first");
    refuse(STREAM "A100,scale,256,2\n", "bad.csv:2: 4 fields");
    refuse(STREAM "A100,scale,256,2,1,1\n", "bad.csv:2: 6 fields");
    refuse(STREAM "A100,copy,256,2,1\n", "bad.csv:2: there is no kernel 'copy'");
    refuse(STREAM "A100,scale,256,2,100\n\nA100,scale,256,2,fast\n", "bad.csv:4: 'fast'");
    refuse(STREAM "A100,scale,2.5,2,1\n", "bad.csv:2: '2.5'");
    refuse(STREAM "A100,scale,0,2,1\n", "bad.csv:2: '0'");
    refuse(STREAM "A100,scale,256,2,nan\n", "bad.csv:2: 'nan'");
    refuse(STREAM ",scale,256,2,1\n", "bad.csv:2: '' is no name");
    refuse(STRIDES "A100,half,stride,1,1\n", "there is no type 'half'");
    refuse(STRIDES "A100,float,random,1,1\n", "there is no pattern 'random'");
    refuse(STRIDES "A100,float,stride,-1,1\n", "'-1' is no stride");
    cli_expect_error(CLI_RUN("bench", "model", "--data", cli_path("none.csv")), 2, "none.csv");
    cli_expect_error(CLI_RUN("bench", "model", "--description", "a100"), 2, "give both");
    cli_expect_error(CLI_RUN("bench", "model", "--only", "all"), 2, "it has silicon, overhead");
    cli_write("bad.csv", STREAM "NOSUCH-1,scale,256,2,100\n");
    cli_expect_error(CLI_RUN("bench", "model", "--data", cli_path("bad.csv")), 2, "nosuch");
}

/* A few configurations of one kernel, whose order is beyond doubt: the bench ranks them by their
 * modelled times, and leaves a line for each. */
static void ranks_configurations(void **state) {
    (void)state;
    cli_write(
        "few.csv",
        "block_size_x,block_size_y,tile_size_x,tile_size_y,use_padding,read_only,v100_pcie_ms\n"
        "2,32,1,1,0,0,9.68\n32,4,1,1,0,0,1.3\n4,32,1,1,0,0,2.78\n");
    json_t *json = cli_json(CLI_RUN("bench", "model", "--only", "ranking", "--data",
                                    cli_path("few.csv"), "--rows", cli_path("few.jsonl"), "--json"),
                            0);
    const json_t *row = row_of(json_object_get(json, "rows"), "v100-pcie", "convolution");
    cli_keys(row, "compiler:s n:i refused:i tau:n tau_top:n recall_top:n regret_1:n regret_10:n "
                  "regret_50:n mape:n scale:n mape_scaled:n");
    assert_true(number(row, "n") == 3 && number(row, "refused") == 0);
    assert_true(number(row, "tau") == 1 && number(row, "regret_10") == 0);
    json_decref(json);
    char *lines = cli_read("few.jsonl");
    size_t count = 0;
    for (const char *at = lines; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    assert_int_equal(count, 3);
    json_t *line = json_loads(lines, JSON_DISABLE_EOF_CHECK, NULL);
    cli_keys(line, "gpu:s set:s compiler:s macros:o silicon_ms:n refused:b model_ms:n terms_ms:o "
                   "registers:i spilled:i blocks_per_sm:i");
    json_decref(line);
    free(lines);
}

/* Each product of the ladder is faster than the one before, and none faster than its floor. */
static void climbs_the_ladder(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("bench", "model", "--only", "ladder", "--json"), 0);
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 7);
    double before = INFINITY;
    for (size_t i = 0; i < 7; i++) {
        const json_t *row = json_array_get(rows, i);
        cli_keys(row, "gpu:s kernel:s model_ms:n share_of_floor:n share_of_last:n "
                      "published_of_last:n bound_by:s registers:i spilled:i");
        assert_string_equal(json_string_value(json_object_get(row, "gpu")), "a6000");
        assert_true(number(row, "model_ms") < before);
        assert_true(number(row, "share_of_floor") > 0 && number(row, "share_of_floor") <= 1);
        before = number(row, "model_ms");
    }
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_the_bars),    cmocka_unit_test(takes_other_gpus),
        cmocka_unit_test(tells_its_cost),    cmocka_unit_test(ranks_configurations),
        cmocka_unit_test(climbs_the_ladder), cmocka_unit_test(refuses_bad_data),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
