/* Starts of several launches, through the binary: examples/scan, a loop that swaps its buffers, and
 * each mistake in the launch that makes it. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

/* The inclusive scan in rounds, each of which adds what lies 2^k elements before (Hillis and
 * Steele, Data Parallel Algorithms, 1986). */
static const char rounds_source[] =
    "__global__ void copy(const float *from, float *to, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        to[i] = from[i];\n"
    "}\n"
    "__global__ void add(const float *a, float *b, int back, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        b[i] = a[i] + (i >= back ? a[i - back] : 0);\n"
    "}\n";

static const char rounds_task[] =
    "{\"name\": \"rounds\", \"family\": \"f\", \"doc\": \"d\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\", \"data\": "
    "{\"generator\": \"uniform\", \"low\": 0}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"rounds.cu\",\n"
    "  \"scratch\": [{\"name\": \"a\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "              {\"name\": \"b\", \"type\": \"f32\", \"count\": \"n\"}],\n"
    "  \"steps\": [\n"
    "   {\"entry\": \"copy\", \"grid\": \"ceil_div(n, 128)\", \"block\": 128, \"arguments\": "
    "[\"x\", \"a\", \"n\"]},\n"
    "   {\"repeat\": \"rounds\", \"counter\": \"k\", \"swap\": [[\"a\", \"b\"]], \"steps\": [\n"
    "    {\"entry\": \"add\", \"grid\": \"ceil_div(n, 128)\", \"block\": 128,\n"
    "     \"arguments\": [\"a\", \"b\", {\"type\": \"s32\", \"value\": \"pow(2, k)\"}, \"n\"]}]},\n"
    "   {\"entry\": \"copy\", \"grid\": \"ceil_div(n, 128)\", \"block\": 128, \"arguments\": "
    "[\"a\", \"y\", \"n\"]}]}],\n"
    " \"oracle\": \"oracle.c\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"s\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 300, "
    "\"rounds\": 9}},\n"
    "  {\"name\": \"c\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 1000, "
    "\"rounds\": 10}},\n"
    "  {\"name\": \"t\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 50000, "
    "\"rounds\": 16}},\n"
    "  {\"name\": \"none\", \"split\": \"adversarial\", \"use\": \"check\", \"shape\": {\"n\": 1, "
    "\"rounds\": 0}}]}\n";

static void take(const char *from, const char *to) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    if (ev_file_read(from, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    cli_write(to, text);
    free(text);
}

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0) {
        take("examples/scan/scan.cu", "scan.cu");
        take("examples/scan/oracle.c", "oracle.c");
        take("examples/scan/task.json", "whole.json");
        cli_copy_changed("whole.json", "scan.json", "1000000", "150000");
        cli_copy_changed("scan.json", "scan.json", "3000000", "200000");
        cli_write("rounds.cu", rounds_source);
        cli_write("rounds.json", rounds_task);
    }
    return failed;
}

static json_t *row_of(json_t *json, const char *name) {
    json_t *rows = json_object_get(json, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (strcmp(ev_json_text(json_array_get(rows, i), "case", ""), name) == 0)
            return json_array_get(rows, i);
    }
    fail_msg("no case %s", name);
    return NULL;
}

static double ns_of(json_t *json, const char *name) {
    return ev_json_number(row_of(json, name), "ns", 0);
}

static void all_cases_pass(void **state) {
    static const char *const names[] = {"whole.json", "rounds.json"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ev_proc_result r = CLI_RUN("check", cli_path(names[i]), "--split", "all");
        cli_expect(&r, 0);
        ev_proc_result_free(&r);
    }
}

/* The baseline may be the oracle of its launches, and a buffer may be read and written. */
static void a_baseline_answers(void **state) {
    (void)state;
    cli_copy_changed("scan.json", "own.json", "\"oracle.c\"", "\"baseline\"");
    cli_copy_changed("own.json", "own.json",
                     "\"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"",
                     "\"kind\": \"inout\", \"type\": \"f32\", \"count\": \"n\", \"data\": "
                     "{\"generator\": \"uniform\"}");
    ev_proc_result r = CLI_RUN("check", cli_path("own.json"), "--split", "all");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* Each launch costs its own overhead, and the times of all launches add up. */
static void times_are_sums(void **state) {
    (void)state;
    cli_copy_changed("rounds.json", "fewer.json", "\"rounds\": 16",
                     "\"rounds\": 16, \"unused\": 1");
    cli_copy_changed("fewer.json", "fewer.json", "\"repeat\": \"rounds\"",
                     "\"repeat\": \"rounds + 8\"");
    cli_copy_changed("fewer.json", "fewer.json", "pow(2, k)", "pow(2, min(k, 17))");
    json_t *less = cli_json(CLI_RUN("check", cli_path("rounds.json"), "--json"), 0);
    json_t *more = cli_json(CLI_RUN("check", cli_path("fewer.json"), "--json"), 0);
    double one = ns_of(less, "t") / 18; /* launches: copy, 16 rounds, copy */
    assert_true(one > 1000);            /* not less than the overhead of a launch */
    assert_true(ns_of(more, "t") > ns_of(less, "t") + 7 * one);
    assert_true(ns_of(more, "t") < ns_of(less, "t") + 9 * one);
    json_decref(less);
    json_decref(more);
}

#define ORDER_RIGHT                                                                                \
    "      {\"entry\": \"scan_sums\", \"grid\": 1, \"block\": \"BLOCK\",\n"                        \
    "       \"arguments\": [\"sums\", {\"type\": \"s32\", \"value\": \"ceil_div(n, BLOCK)\"}]},\n"

static void faults_are_found(void **state) {
    static const cli_mistake rows[] = {
        /* The last launch adds sums that nobody scanned. */
        {ORDER_RIGHT, "", "case smoke: relative L2 error"},
        /* Without the first launch, the second has nothing to scan. */
        {"{\"entry\": \"scan_tiles\", \"grid\": \"ceil_div(n, BLOCK)\", \"block\": \"BLOCK\", "
         "\"arguments\": [\"x\", \"y\", \"sums\", \"n\"]},",
         "", "case smoke, launch 1 of 2, kernel `scan_sums`: uninitialised-read"},
        /* In a wrong order: the sums are scanned before the tiles are. */
        {"\"steps\": [\n",
         "\"steps\": [\n"
         "      {\"entry\": \"scan_sums\", \"grid\": 1, \"block\": \"BLOCK\", \"arguments\": "
         "[\"sums\", {\"type\": \"s32\", \"value\": 1}]},\n",
         "case smoke, launch 1 of 4, kernel `scan_sums`: uninitialised-read"},
        {"\"f32\", \"count\": \"ceil_div(n, BLOCK)\"", "\"f32\", \"count\": \"max(1, n / BLOCK)\"",
         "case smoke, launch 1 of 3, kernel `scan_tiles`: out-of-bounds"},
        {"\"source\": \"scan.cu\"", "\"source\": \"race.cu\"",
         "case smoke, launch 2 of 3, kernel `scan_sums`: race-shared"},
        {"{\"entry\": \"add_sums\", \"grid\": \"ceil_div(n, BLOCK)\", \"block\": \"BLOCK\", "
         "\"arguments\": [\"y\"",
         "{\"entry\": \"add_sums\", \"grid\": \"ceil_div(n, BLOCK)\", \"block\": \"BLOCK\", "
         "\"arguments\": [\"x\"",
         "case smoke, launch 3 of 3, kernel `add_sums`: write-outside-outputs"},
        {"\"grid\": 1, \"block\": \"BLOCK\"",
         "\"grid\": 1, \"block\": \"BLOCK\", \"shared\": 232000",
         "launch 2 of 3, kernel `scan_sums`"},
    };
    (void)state;
    cli_copy_changed("scan.cu", "race.cu", "        __syncthreads();\n        before += last;",
                     "        before += last;");
    cli_expect_mistakes("scan.json", rows, sizeof rows / sizeof rows[0]);
}

/* Small cases cannot see what a kernel does in its thousandth block. The launches are timed one by
 * one, each on what the start's launches leave, so the run of all blocks has to see it. */
static void faults_at_full_shape_are_found(void **state) {
    static const cli_mistake rows[] = {
        {"add_sums(float *y, const float *sums, int n) {",
         "add_sums(float *y, const float *sums, int n) {\n    if (blockIdx.x > 999)\n"
         "        return;",
         "case vector: relative L2 error"},
        {"sums[blockIdx.x] = v;", "sums[blockIdx.x] = blockIdx.x > 999 ? 0 : v;",
         "case vector: relative L2 error"},
    };
    (void)state;
    cli_copy_changed("scan.json", "two.json", "\"starts\": [{",
                     "\"starts\": [{\"name\": \"right\", \"source\": \"scan.cu\", \"scratch\": "
                     "[{\"name\": \"s\", \"type\": \"f32\", \"count\": \"ceil_div(n, 64)\"}], "
                     "\"steps\": [{\"entry\": \"scan_tiles\", \"grid\": \"ceil_div(n, BLOCK)\", "
                     "\"block\": \"BLOCK\", \"arguments\": [\"x\", \"y\", \"s\", \"n\"]},\n"
                     "{\"entry\": \"scan_sums\", \"grid\": 1, \"block\": \"BLOCK\", \"arguments\": "
                     "[\"s\", {\"type\": \"s32\", \"value\": \"ceil_div(n, BLOCK)\"}]},\n"
                     "{\"entry\": \"add_sums\", \"grid\": \"ceil_div(n, BLOCK)\", \"block\": "
                     "\"BLOCK\", \"arguments\": [\"y\", \"s\", \"n\"]}], \"macros\": [{\"name\": "
                     "\"BLOCK\", \"default\": 64, \"values\": [64]}]}, {");
    cli_copy_changed("two.json", "two.json", "\"name\": \"plain\", \"source\": \"scan.cu\"",
                     "\"name\": \"plain\", \"source\": \"late.cu\"");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("scan.cu", "late.cu", rows[i].old, rows[i].new);
        ev_proc_result r = CLI_RUN("check", cli_path("two.json"), "--split", "search");
        cli_expect(&r, 1);
        if (strstr(ev_str_text(&r.err), rows[i].words) == NULL &&
            strstr(ev_str_text(&r.out), rows[i].words) == NULL)
            fail_msg("no '%s' in: %s%s", rows[i].words, ev_str_text(&r.err), ev_str_text(&r.out));
        assert_null(strstr(ev_str_text(&r.out), "case odd:"));
        ev_proc_result_free(&r);
    }
}

/* Turns that do not exchange the buffers add to the copy again and again. */
static void a_missing_swap_is_found(void **state) {
    static const cli_mistake rows[] = {
        {", \"swap\": [[\"a\", \"b\"]]", "", "case s: relative L2 error"},
        {"[\"a\", \"y\", \"n\"]", "[\"b\", \"y\", \"n\"]", "case s: relative L2 error"},
    };
    (void)state;
    cli_expect_mistakes("rounds.json", rows, sizeof rows / sizeof rows[0]);
}

static void mistakes_are_named(void **state) {
    static const cli_mistake scan[] = {
        {"[\"y\", \"sums\", \"n\"]", "[\"y\", \"sum\", \"n\"]",
         "\"sum\" is neither an argument nor a scratch buffer; there are x, y, n, sums"},
        {"\"name\": \"sums\"", "\"name\": \"y\"", "a second buffer or argument is named y"},
        {"\"source\": \"scan.cu\",", "\"source\": \"scan.cu\", \"grid\": 1,",
         "a start with \"steps\" has no \"grid\""},
        {"[\"y\", \"sums\", \"n\"]", "[\"y\", \"sums\"]", "'add_sums' takes 3 parameters"},
        {"[\"y\", \"sums\", \"n\"]", "[\"y\", \"n\", \"sums\"]", "argument 2 'n'"},
        {"\"entry\": \"add_sums\"", "\"entry\": \"add\"", "no kernel \"add\""},
        {"\"entry\": \"add_sums\"", "\"entry\": \"add<4>\"", "no instance of a template"},
        {"{\"entry\": \"add_sums\", \"grid\": \"ceil_div(n, BLOCK)\"",
         "{\"entry\": \"add_sums\", \"grid\": \"n - 300\"", "launch 2 (add_sums), grid[0]"},
    };
    static const cli_mistake rounds[] = {
        {"\"type\": \"f32\", \"count\": \"n\"},\n              {",
         "\"type\": \"f32\", \"count\": \"n + 1\"},\n              {",
         "buffers that are swapped are equally long"},
        {"[[\"a\", \"b\"]]", "[[\"a\", \"x\"]]", "x is an input, which no kernel writes"},
        {"[[\"a\", \"b\"]]", "[[\"a\", \"n\"]]", "n is no buffer"},
        {"[[\"a\", \"b\"]]", "[[\"a\"]]", "a swap is a pair of names"},
        {"[[\"a\", \"b\"]]", "[[\"a\", \"b\"], [\"b\", \"y\"]]", "name two buffers that are in no"},
        {"\"counter\": \"k\"", "\"counter\": \"n\"", "the counter n has the name of"},
        {"\"repeat\": \"rounds\"", "\"repeat\": \"rounds * 1000\"", "launch 1 (add), turns"},
        {"\"swap\": [[\"a\", \"b\"]], \"steps\": [\n",
         "\"steps\": [{\"repeat\": 2, \"steps\": []},\n",
         "steps that repeat stand in no others that do"},
    };
    (void)state;
    cli_expect_mistakes("scan.json", scan, sizeof scan / sizeof scan[0]);
    cli_expect_mistakes("rounds.json", rounds, sizeof rounds / sizeof rounds[0]);
}

/* The search chooses the block of all launches at once, and its winner passes gate 6. */
static void a_search_tunes_all_launches(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("tune", cli_path("whole.json"), "--evaluations", "24", "--seed", "1",
                               "--records", cli_path("s.sqlite"), "--json");
    json_t *json = cli_json(r, 0);
    json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_true(json_is_true(json_object_get(row, "promoted")));
    assert_true(ev_json_number(row, "speedup", 0) > 1.5);
    /* Every block size is right, though a sample has two blocks of add_sums that write less. */
    assert_int_equal(json_array_size(json_object_get(json, "wrong_settings")), 0);
    json_decref(json);
    ev_proc_result explained = CLI_RUN("explain", cli_path("s.sqlite"));
    cli_expect(&explained, 0);
    ev_proc_result_free(&explained);
}

/* ---- on cuda:0, which is the stand-in's ---- */

/* The same results as on the virtual machine, where the times are those of all launches together:
 * the stand-in models each launch by itself, so that they are near the sums. */
static void a_gpu_agrees(void **state) {
    static const char *const names[] = {"scan.json", "rounds.json"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *there = cli_json(
            CLI_RUN("check", cli_path(names[i]), "--split", "all", "--device", "cuda:0", "--json"),
            0);
        json_t *here =
            cli_json(CLI_RUN("check", cli_path(names[i]), "--split", "all", "--json"), 0);
        json_t *rows = json_object_get(there, "rows");
        assert_int_equal(json_array_size(rows), json_array_size(json_object_get(here, "rows")));
        for (size_t k = 0; k < json_array_size(rows); k++) {
            json_t *row = json_array_get(rows, k);
            json_t *like = row_of(here, ev_json_text(row, "case", ""));
            assert_string_equal(ev_json_text(row, "device", ""), "cuda:0");
            assert_string_equal(ev_json_text(row, "verdict", ""), "pass");
            double ns = ev_json_number(row, "ns", 0), by_vm = ev_json_number(like, "ns", 0);
            if (fabs(ns - by_vm) > 0.1 * by_vm)
                fail_msg("%s: %g ns on cuda:0, %g ns on vm:h200", names[i], ns, by_vm);
            double error = ev_json_number(row, "error", 1);
            assert_true(error <= ev_json_number(row, "tolerance", 0));
            if (strcmp(ev_json_text(row, "case", ""), "smoke") == 0) /* all elements are compared */
                assert_true(error == ev_json_number(like, "error", 1));
        }
        json_decref(there);
        json_decref(here);
    }
}

/* Launches that fail are named, and what only the queue or the end shows is of all of them. */
static void a_failing_launch_of_a_gpu_is_named(void **state) {
    static const struct {
        const char *rule, *words;
    } rows[] = {
        {"launch:2=address", "case s, launch 2 of 11, kernel `add`: out-of-bounds"},
        {"launch:11+=timeout", "case s, launch 11 of 11, kernel `copy`: fuel"},
        {"cuMemsetD8Async:0+=address", "case c, one of 12 launches in a row: out-of-bounds at PTX"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)setenv("EVOKE_STANDIN_FAIL", rows[i].rule, 1);
        ev_proc_result r =
            CLI_RUN("check", cli_path("rounds.json"), "--split", "search", "--device", "cuda:0");
        (void)unsetenv("EVOKE_STANDIN_FAIL");
        cli_expect(&r, 1);
        if (strstr(ev_str_text(&r.out), rows[i].words) == NULL)
            fail_msg("no '%s' in: %s", rows[i].words, ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
}

/* Wrong launches do not get past the twin, whose message names them. */
static void faults_are_found_before_the_gpu(void **state) {
    (void)state;
    cli_copy_changed("scan.json", "gpu.json", "\"source\": \"scan.cu\"", "\"source\": \"race.cu\"");
    cli_copy_changed("scan.cu", "race.cu", "        __syncthreads();\n        before += last;",
                     "        before += last;");
    cli_expect_error(CLI_RUN("check", cli_path("gpu.json"), "--device", "cuda:0"), 2,
                     "case smoke, launch 2 of 3, kernel `scan_sums`: race-shared");
}

static void a_search_on_a_gpu(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("tune", cli_path("scan.json"), "--device", "cuda:0", "--records",
                               cli_path("c.sqlite"), "--evaluations", "16", "--workers", "1",
                               "--seed", "1", "--json");
    json_t *json = cli_json(r, 0);
    json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_true(json_is_true(json_object_get(row, "promoted")));
    assert_string_equal(ev_json_text(row, "device", ""), "cuda:0");
    assert_true(ev_json_number(row, "speedup", 0) > 1.2);
    json_decref(json);
}

/* ---- bundles ---- */

static void change_bundle(const char *from, const char *to) {
    char line[600];
    (void)snprintf(line, sizeof line, "cd %s && rm -rf lie && cp -r b lie", cli_folder());
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_copy_changed("b/manifest.json", "lie/manifest.json", from, to);
}

/* The winner with its launches, checked against the task, and on the GPU, where it is qualified. */
static void a_bundle_has_all_launches(void **state) {
    (void)state;
    static const cli_mistake lies[] = {
        {"\"bytes\": \"(ceil_div", "\"bytes\": \"1 + (ceil_div",
         "the steps or scratch buffers are not those of the start plain"},
        {"\"value\": \"ceil_div(n, BLOCK)\"", "\"value\": \"ceil_div(n, BLOCK) - 1\"",
         "the steps or scratch buffers are not those of the start plain"},
        {"\"grid\": [\n                  \"1\"", "\"grid\": [\"2\"",
         "launch 2 of 3, kernel `scan_sums`: grid.x is 2 blocks, and should be 1"},
    };
    json_t *json = cli_json(CLI_RUN("tune", cli_path("scan.json"), "--evaluations", "24", "--seed",
                                    "1", "--out", cli_path("b"), "--json"),
                            0);
    json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_true(json_is_true(json_object_get(row, "promoted")));
    double floor = ev_json_number(row, "floor_ns", 0);
    assert_true(floor > 0);
    json_decref(json);
    /* of as many launches, wherever it is told */
    json = cli_json(CLI_RUN("explain", cli_path("b"), "--json"), 0);
    row = json_array_get(json_object_get(json, "variants"), 0);
    row = json_array_get(json_object_get(row, "times"), 0);
    assert_true(ev_json_number(row, "floor_ns", 0) == floor);
    json_decref(json);
    ev_proc_result r = CLI_RUN("check", cli_path("b"), "--split", "all");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        change_bundle(lies[i].old, lies[i].new);
        r = CLI_RUN("check", cli_path("lie"), "--split", "search");
        cli_expect(&r, 1);
        if (strstr(ev_str_text(&r.out), lies[i].words) == NULL)
            fail_msg("no '%s' in: %s", lies[i].words, ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
    r = CLI_RUN("qualify", cli_path("b"), "--device", "cuda:0", "--out", cli_path("q"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    char *text = cli_read("q/manifest.json");
    assert_non_null(strstr(text, "\"verdict\": \"pass\""));
    free(text);
    cli_expect_error(CLI_RUN("export", "--to", "c-header", cli_path("b"), "--out", cli_path("k.h")),
                     2, "which a C header does not have; launch them by libevoke-bundle");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases_pass),
        cmocka_unit_test(a_baseline_answers),
        cmocka_unit_test(times_are_sums),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(faults_at_full_shape_are_found),
        cmocka_unit_test(a_missing_swap_is_found),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_search_tunes_all_launches),
        cmocka_unit_test(a_gpu_agrees),
        cmocka_unit_test(a_failing_launch_of_a_gpu_is_named),
        cmocka_unit_test(faults_are_found_before_the_gpu),
        cmocka_unit_test(a_search_on_a_gpu),
        cmocka_unit_test(a_bundle_has_all_launches),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
