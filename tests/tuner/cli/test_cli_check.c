/* evoke check, through the binary: a kernel that leaves out work at full shape, where no small case
 * looks, is found on each device and in a bundle, and one that writes where it has to add over
 * zeros; the same kernels with all of their work pass. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

/* Runs check on a task of the folder, and expects the verdict. `words`: part of the reason of a
 * failed row; NULL: the check passes. */
static void expect_row(const char *task, const char *device, const char *words) {
    json_t *json = cli_json(CLI_RUN("check", cli_path(task), "--device", device, "--json"),
                            words != NULL ? 1 : 0);
    const json_t *rows = json_object_get(json, "rows");
    bool found = words == NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *reason = ev_json_text(row, "reason", "");
        if (words == NULL && strcmp(ev_json_text(row, "verdict", ""), "pass") != 0)
            fail_msg("%s on %s: %s", task, device, reason);
        if (words != NULL && strstr(reason, words) != NULL) {
            assert_null(json_object_get(row, "ns")); /* a wrong kernel has no time */
            found = true;
        }
    }
    if (!found)
        fail_msg("%s on %s: no reason has '%s'", task, device, words);
    json_decref(json);
}

/* ---- the shipped ar_adam, launched for STEPS 4 ---- */

static void copy_shipped(const char *path, const char *to) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    cli_write(to, text);
    free(text);
}

/* The folder gets ar_adam with a task of STEPS 4, whose hand-written source is right: adam.json.
 * The source of half.json does two steps whatever it is told. */
static void copy_adam(void) {
    copy_shipped("kernels/collectives/ar_adam/task.json", "shipped.json");
    copy_shipped("kernels/collectives/ar_adam/textbook.cu", "textbook.cu");
    copy_shipped("kernels/collectives/ar_adam/hand.cu", "hand.cu");
    cli_copy_changed("hand.cu", "half.cu", "#ifndef STEPS", "#undef STEPS\n#ifndef STEPS");
    cli_copy_changed("shipped.json", "adam.json", "\"STEPS\", \"default\": 2",
                     "\"STEPS\", \"default\": 4");
    cli_copy_changed("adam.json", "half.json", "hand.cu", "half.cu");
}

static void half_of_the_steps(void **state) {
    (void)state;
    copy_adam();
    expect_row("half.json", "vm:h200",
               "case coconet.2p20-p4: it skips its work: 2097152 of 4194304 elements of "
               "'parameter' are not written");
}

/* The default of the task is that of the compiler as well, so launch and code agree. */
static void defaults_reach_the_compiler(void **state) {
    (void)state;
    copy_adam();
    expect_row("adam.json", "vm:h200", NULL);
    cli_copy_changed("hand.cu", "bare.cu", "#ifndef STEPS\n#define STEPS 2\n#endif\n", "");
    cli_copy_changed("adam.json", "bare.json", "hand.cu", "bare.cu");
    expect_row("bare.json", "vm:h200", NULL);
}

/* ---- work left out at full shape ---- */

/* The blocks that a sample takes work; a stretch between them does not, at large shapes. */
#define LAZY "if (i < n && !(n > 30000 && blockIdx.x > 100 && blockIdx.x < 120))"

/* The only start, so there is no other to compare it with. */
static void lazy_first_start(void **state) {
    (void)state;
    cli_copy_changed("scale.cu", "lazy.cu", "if (i < n)", LAZY);
    cli_copy_changed("task.json", "lazy.json", "scale.cu", "lazy.cu");
    expect_row("lazy.json", "vm:h200", "of 'y' are not written");
    expect_row("lazy.json", "cuda:0", "case time");
    expect_row("task.json", "vm:h200", NULL);
    expect_row("task.json", "cuda:0", NULL);
}

/* An output that begins with data, and of which every second element stays: what is not written
 * may be right. */
static void makes_accumulator(const char *to, const char *condition) {
    ev_str source = EV_STR_EMPTY;
    ev_str_printf(&source,
                  "#include \"evoke_cuda.h\"\n"
                  "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n"
                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                  "    if (i < n && i %% 2 == 0 %s)\n"
                  "        y[i] += x[i] * 2.0f;\n"
                  "}\n",
                  condition);
    cli_write(to, ev_str_text(&source));
    ev_str_free(&source);
}

static void lazy_accumulator(void **state) {
    (void)state;
    makes_accumulator("sum.cu", "");
    makes_accumulator("lazysum.cu", "&& !(n > 30000 && blockIdx.x > 100 && blockIdx.x < 120)");
    cli_copy_changed("task.json", "a.json",
                     "\"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"",
                     "\"kind\": \"inout\", \"type\": \"f32\", \"count\": \"n\", \"data\": "
                     "{\"generator\": \"normal\"}");
    cli_copy_changed("a.json", "b.json", "\"oracle.c\"", "\"baseline\"");
    cli_copy_changed("b.json", "sum.json", "scale.cu\"", "sum.cu\", \"entry\": \"scale\"");
    cli_copy_changed("sum.json", "both.json", "\"starts\": [",
                     "\"starts\": [\n{\"name\": \"first\", \"source\": \"sum.cu\", \"grid\": "
                     "\"ceil_div(n, 128)\", \"block\": 128},");
    cli_copy_changed("both.json", "lazysum.json", "\"plain\", \"source\": \"sum.cu\"",
                     "\"plain\", \"source\": \"lazysum.cu\"");
    expect_row("both.json", "vm:h200", NULL);
    expect_row("both.json", "cuda:0", NULL);
    expect_row("lazysum.json", "vm:h200", "case time: it skips its work: ");
    expect_row("lazysum.json", "cuda:0", "case time: it skips its work: ");
}

/* ---- outputs that begin as zeros ---- */

/* The task whose y begins by `data`, with the starts `add` (y += 2 x) and `write` (y = 2 x). */
static void make_two(const char *to, const char *data) {
    ev_str inout = EV_STR_EMPTY;
    ev_str_printf(&inout, "\"kind\": \"inout\", \"type\": \"f32\", \"count\": \"n\", %s", data);
    static const char kernel[] =
        "#include \"evoke_cuda.h\"\n"
        "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n)\n"
        "        y[i] += x[i] * 2.0f;\n"
        "}\n";
    cli_write("add.cu", kernel);
    cli_copy_changed("add.cu", "write.cu", "+=", "=");
    cli_copy_changed("task.json", "a.json",
                     "\"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"", ev_str_text(&inout));
    cli_copy_changed("a.json", "b.json", "\"oracle.c\"", "\"baseline\"");
    cli_copy_changed("b.json", "c.json", "scale.cu\"", "write.cu\", \"entry\": \"scale\"");
    cli_copy_changed("c.json", to, "\"starts\": [",
                     "\"starts\": [\n{\"name\": \"add\", \"source\": \"add.cu\", \"entry\": "
                     "\"scale\", \"grid\": \"ceil_div(n, 128)\", \"block\": 128},");
    ev_str_free(&inout);
}

static void expect_warning(const char *task, int exit_code, const char *words) {
    ev_proc_result r = CLI_RUN("check", cli_path(task));
    cli_expect(&r, exit_code);
    const char *found = strstr(ev_str_text(&r.err), "warning: task scale: the inout argument 'y'");
    if (words == NULL)
        assert_null(found);
    else
        assert_true(found != NULL && strstr(found, words) != NULL);
    ev_proc_result_free(&r);
}

#define ZEROS "\"data\": {\"generator\": \"zeros\"}"

static void adds_or_writes(void **state) {
    (void)state;
    make_two("zeros.json", ZEROS);
    expect_row("zeros.json", "vm:h200", "begin with other data");
    expect_row("zeros.json", "cuda:0", "begin with other data");
    expect_warning("zeros.json", 1, "\"initial\": \"constant\"");
    make_two("threes.json", "\"data\": {\"generator\": \"constant\", \"value\": 3}");
    expect_row("threes.json", "vm:h200", "case smoke: relative L2 error");
}

/* A promise of the callers, data, or one start: there is nothing to tell apart. */
static void begins_as_promised(void **state) {
    (void)state;
    make_two("promised.json", ZEROS ", \"initial\": \"constant\"");
    expect_row("promised.json", "vm:h200", NULL);
    expect_warning("promised.json", 0, NULL);
    make_two("data.json", "\"data\": {\"generator\": \"normal\"}");
    expect_warning("data.json", 1, NULL);
    make_two("zeros.json", ZEROS);
    cli_copy_changed("zeros.json", "adds.json", "write.cu", "add.cu");
    expect_row("adds.json", "vm:h200", NULL);
    expect_warning("adds.json", 0, "'y'");
}

/* An oracle that knows the sum over zeros alone: other contents are no case of this task. */
static void oracle_of_zeros(void **state) {
    (void)state;
    make_two("zeros.json", ZEROS);
    cli_copy_changed("zeros.json", "known.json", "\"baseline\"", "\"oracle.c\"");
    expect_row("known.json", "vm:h200", NULL);
    expect_warning("known.json", 0, "if the baseline is right there");
}

static void mistakes_in_initial(void **state) {
    (void)state;
    make_two("a4.json", ZEROS ", \"initial\": \"zero\"");
    cli_expect_error(CLI_RUN("check", cli_path("a4.json")), 2, "\"zero\" is no promise");
    make_two("a4.json", "\"data\": {\"generator\": \"normal\"}, \"initial\": \"constant\"");
    cli_expect_error(CLI_RUN("check", cli_path("a4.json")), 2, "makes no constant");
    cli_copy_changed("task.json", "a4.json", "\"kind\": \"out\"",
                     "\"initial\": \"constant\", \"kind\": \"out\"");
    cli_expect_error(CLI_RUN("check", cli_path("a4.json")), 2,
                     "of kind \"out\" has no \"initial\"");
}

/* ---- a bundle ---- */

/* Gate 6 looks at variants alone, so a baseline that is wrong at full shape gets into a bundle. */
static void lazy_baseline_of_a_bundle(void **state) {
    (void)state;
    cli_copy_changed("scale.cu", "lazy.cu", "if (i < n)", LAZY);
    cli_copy_changed("task.json", "lazy.json", "scale.cu", "lazy.cu");
    ev_proc_result r = CLI_RUN("tune", cli_path("lazy.json"), "--evaluations", "1", "--records",
                               cli_path("lazy.sqlite"), "--out", cli_path("lazy-out"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("lazy-out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "of 'y' are not written"));
    ev_proc_result_free(&r);
}

/* ---- a genome in place of the starts ---- */

#define STRUCTURE(edits) "{\"start\":\"textbook\",\"macros\":{},\"edits\":[" edits "]}"
#define COARSEN(anchor)                                                                            \
    "{\"kind\":\"coarsen\",\"anchor\":\"" anchor "\",\"option\":2,\"form\":\"strided\"}"

static void genome_of_a_task(void **state) {
    (void)state;
    cli_write("genome.json", STRUCTURE(COARSEN("y")));
    json_t *json = cli_json(CLI_RUN("check", "fft_conv2d", "--genome", cli_path("genome.json"),
                                    "--split", "search", "--json"),
                            0);
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 5);
    const json_t *last = json_array_get(rows, 4);
    assert_string_equal(ev_json_text(last, "role", ""), "genome");
    assert_string_equal(ev_json_text(last, "verdict", ""), "pass");
    assert_true(ev_json_number(last, "ns", 0) < ev_json_number(last, "baseline_ns", 0));
    json_decref(json);
}

/* A grid whose blocks differ: those in the interior load more. The genome's blocks are chosen from
 * its own grid, not from the start's. */
static void genome_on_a_grid_of_its_own(void **state) {
    (void)state;
    cli_write("window.cu",
              "#include \"evoke_cuda.h\"\n"
              "extern \"C\" __global__ void window(const float *x, float *y, int m, int n) {\n"
              "    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;\n"
              "    if (i >= m || j >= n) return;\n"
              "    float sum = 0;\n"
              "    for (int u = -2; u <= 2; u++)\n"
              "        if (i + u >= 0 && i + u < m) sum += x[(i + u) * n + j];\n"
              "    y[i * n + j] = sum;\n}\n");
    cli_write(
        "window.json",
        "{\"name\":\"window\",\"family\":\"tests\",\"doc\":\"sums of five rows\",\"arguments\":["
        "{\"name\":\"x\",\"kind\":\"in\",\"type\":\"f32\",\"count\":\"m*n\","
        "\"data\":{\"generator\":\"normal\"}},"
        "{\"name\":\"y\",\"kind\":\"out\",\"type\":\"f32\",\"count\":\"m*n\"},"
        "{\"name\":\"m\",\"kind\":\"scalar\",\"type\":\"s32\"},"
        "{\"name\":\"n\",\"kind\":\"scalar\",\"type\":\"s32\"}],\"starts\":[{\"name\":"
        "\"textbook\",\"source\":\"window.cu\",\"grid\":[\"ceil_div(n,32)\","
        "\"ceil_div(m,8)\"],\"block\":[32,8]}],\"oracle\":\"baseline\",\"tolerance\":"
        "{\"relative_l2\":2e-6},\"cases\":["
        "{\"name\":\"a\",\"split\":\"search\",\"use\":\"smoke\",\"shape\":{\"m\":9,\"n\":33}},"
        "{\"name\":\"b\",\"split\":\"search\",\"use\":\"check\",\"shape\":{\"m\":20,\"n\":70}},"
        "{\"name\":\"c\",\"split\":\"search\",\"use\":\"time\",\"shape\":"
        "{\"m\":512,\"n\":512}}]}");
    cli_write("window-genome.json", STRUCTURE(COARSEN("y")));
    json_t *checked =
        cli_json(CLI_RUN("check", cli_path("window.json"), "--genome",
                         cli_path("window-genome.json"), "--split", "search", "--json"),
                 0);
    json_t *profiled = cli_json(CLI_RUN("profile", cli_path("window.json"), "--genome",
                                        cli_path("window-genome.json"), "--json"),
                                0);
    const json_t *rows = json_object_get(checked, "rows");
    double ns = ev_json_number(json_array_get(rows, json_array_size(rows) - 1), "ns", -1);
    assert_true(ns > 0);
    assert_true(ev_json_number(profiled, "ns", 0) == ns);
    /* 512 rows by 8 threads, two blocks a block */
    assert_int_equal(json_integer_value(json_array_get(
                         json_object_get(json_object_get(profiled, "launch"), "grid"), 1)),
                     32);
    json_decref(profiled);
    json_decref(checked);
}

static void genomes_that_cannot_be_profiled(void **state) {
    (void)state;
    cli_write("coarse.json", STRUCTURE(COARSEN("y")));
    cli_write("copy.ptx", "");
    const char *genome = cli_path("coarse.json");
    cli_expect_error(CLI_RUN("profile", "sd_lstm_fp", "--genome", genome, "--start", "textbook"), 2,
                     "leave --start out");
    cli_expect_error(CLI_RUN("profile", cli_path("copy.ptx"), "--genome", genome), 2,
                     "--genome is of a task");
    cli_write("unknown.json", "{\"start\":\"none\",\"edits\":[]}");
    cli_expect_error(CLI_RUN("profile", "sd_lstm_fp", "--genome", cli_path("unknown.json")), 2,
                     "has no start 'none'");
}

static void genomes_that_cannot_be_checked(void **state) {
    (void)state;
    cli_write("refused.json", STRUCTURE(COARSEN("z")));
    cli_expect_error(
        CLI_RUN("check", "sd_lstm_fp", "--genome", cli_path("refused.json"), "--split", "search"),
        2, "reads no block index in dimension z");
    cli_write("unknown.json", "{\"start\":\"none\",\"edits\":[]}");
    cli_expect_error(
        CLI_RUN("check", "sd_lstm_fp", "--genome", cli_path("unknown.json"), "--split", "search"),
        2, "has no start 'none'");
    cli_expect_error(CLI_RUN("check", "sd_lstm_fp", "--genome", cli_path("absent.json")), 2,
                     "absent.json");
}

/* The row of gate 6 beside the cases; NULL: there is none. */
static json_t *row_of_gate(const json_t *found) {
    const json_t *rows = json_object_get(found, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (strcmp(ev_json_text(json_array_get(rows, i), "case", ""), "gate 6") == 0)
            return json_array_get(rows, i);
    }
    return NULL;
}

/* A bold edit forces a condition whose other arm no case takes: the cases pass, and gate 6 refuses
 * the edit, unless the task assumes that the arm is not taken. With some of the splits, gate 6 is
 * not asked. */
static void genome_that_no_case_tries(void **state) {
    (void)state;
    static const char arms[] = "tests/fitness/gates/arms/task.json";
    static const char assumed[] = "tests/fitness/gates/arms/assumed.json";
    const char *genome = cli_path("forced.json");
    cli_write("forced.json", "{\"start\": \"plain\", \"edits\": [{\"kind\": "
                             "\"force-condition\", \"at\": \"i22\", \"option\": 0}]}");
    json_t *found = cli_json(CLI_RUN("check", arms, "--genome", genome, "--json"), 1);
    const json_t *row = row_of_gate(found);
    assert_string_equal(ev_json_text(row, "verdict", ""), "fail");
    assert_non_null(strstr(ev_json_text(row, "reason", ""), "\"assume\""));
    json_decref(found);
    found = cli_json(CLI_RUN("check", assumed, "--genome", genome, "--json"), 0);
    assert_string_equal(ev_json_text(row_of_gate(found), "verdict", ""), "pass");
    json_decref(found);
    found = cli_json(CLI_RUN("check", arms, "--genome", genome, "--split", "search", "--json"), 0);
    assert_null(row_of_gate(found));
    json_decref(found);
}

/* --all has the tasks of evoke list, and keeps the exit code of what it finds. */
static void all_tasks_that_ship(void **state) {
    (void)state;
    json_t *listed = cli_json(CLI_RUN("list", "--json"), 0);
    json_t *found = cli_json(
        CLI_RUN("check", "--all", "--split", "adversarial", "--start", "textbook", "--json"), 0);
    const json_t *kernels = json_object_get(found, "kernels");
    const json_t *tasks = json_object_get(listed, "tasks");
    assert_true(json_array_size(kernels) > 4);
    assert_int_equal(json_array_size(kernels), json_array_size(tasks));
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_object_get(json_array_get(kernels, i), "kernel");
        assert_true(json_equal(kernel, json_object_get(json_array_get(tasks, i), "kernel")));
    }
    json_decref(found);
    json_decref(listed);
    cli_expect_error(CLI_RUN("check", "--all", "--start", "none"), 2, "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_the_steps),
        cmocka_unit_test(defaults_reach_the_compiler),
        cmocka_unit_test(lazy_first_start),
        cmocka_unit_test(lazy_accumulator),
        cmocka_unit_test(adds_or_writes),
        cmocka_unit_test(begins_as_promised),
        cmocka_unit_test(oracle_of_zeros),
        cmocka_unit_test(mistakes_in_initial),
        cmocka_unit_test(lazy_baseline_of_a_bundle),
        cmocka_unit_test(genome_of_a_task),
        cmocka_unit_test(genome_on_a_grid_of_its_own),
        cmocka_unit_test(genomes_that_cannot_be_checked),
        cmocka_unit_test(genome_that_no_case_tries),
        cmocka_unit_test(genomes_that_cannot_be_profiled),
        cmocka_unit_test(all_tasks_that_ship),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
