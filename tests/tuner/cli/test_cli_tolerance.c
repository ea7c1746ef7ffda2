/* Outputs with tolerances of their own, through the binary: a float beside a half that is rounded,
 * and a whole number that may be off by one. */
#include "tests/cli_run.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#define EXACT "y[i] = 2.1f * v"
#define ROUNDED "y[i] = __half2float(__float2half(2.1f * v))"

static const char source[] =
    "#include <cuda_fp16.h>\n"
    "extern \"C\" __global__ void twice(const float *x, float *y, __half *h, int *k, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= n)\n"
    "        return;\n"
    "    float v = x[i];\n"
    "    " EXACT ";\n"
    "    h[i] = __float2half(2.1f * v);\n"
    "    k[i] = (int)(100.0f * v);\n"
    "}\n";

static const char oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "#include <math.h>\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    const evoke_argument *x = &call->arguments[0];\n"
    "    for (uint64_t i = 0; i < call->count; i++) {\n"
    "        double v = evoke_element(x, call->first + i);\n"
    "        call->value[i] = call->output == 3 ? rint(100 * v) : 2.1 * v;\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static const char task[] =
    "{\"name\": \"twice\", \"family\": \"tests\", \"doc\": \"2.1 x\", \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"uniform\", \"low\": 0.5, \"high\": 1},\n"
    "   \"domain\": {\"min\": 0, \"max\": 30000, \"finite\": true}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"OF_Y},\n"
    "  {\"name\": \"h\", \"kind\": \"out\", \"type\": \"f16\", \"count\": \"n\"OF_H},\n"
    "  {\"name\": \"k\", \"kind\": \"out\", \"type\": \"s32\", \"count\": \"n\"OF_K},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"twice.cu\",\n"
    "   \"grid\": \"n\", \"block\": 1}],\n"
    " \"oracle\": \"twice.c\", \"tolerance\": {\"relative_l2\": 1e-6}, \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 1201}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "20000}},\n"
    "  {\"name\": \"held\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "30000}}]}\n";

#define LOOSE ", \"tolerance\": {\"relative_l2\": 1e-3}"
#define BY_ONE ", \"tolerance\": {\"max_abs\": 1}"

static const struct {
    const char *y, *h, *k, *does; /* tolerances, and what the kernel stores to y */
    const char *words;            /* NULL: it passes */
} rows[] = {
    {"", LOOSE, BY_ONE, EXACT, NULL},
    {"", "", BY_ONE, EXACT, "is over the tolerance 1e-06; h["},
    {"", LOOSE, "", EXACT, "the tolerance has no \"max_abs\" for them; k["},
    {"", LOOSE, BY_ONE, ROUNDED, "is over the tolerance 1e-06; y["},
    {LOOSE, LOOSE, BY_ONE, ROUNDED, NULL},
};

static void write_task(const char *y, const char *h, const char *k, const char *does) {
    cli_write("twice.c", oracle);
    cli_write("plain.cu", source);
    cli_copy_changed("plain.cu", "twice.cu", EXACT, does);
    cli_write("tolerance.json", task);
    cli_copy_changed("tolerance.json", "tolerance.json", "OF_Y", y);
    cli_copy_changed("tolerance.json", "tolerance.json", "OF_H", h);
    cli_copy_changed("tolerance.json", "tolerance.json", "OF_K", k);
}

static void an_output_has_a_tolerance_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *words = rows[i].words;
        write_task(rows[i].y, rows[i].h, rows[i].k, rows[i].does);
        ev_proc_result r = CLI_RUN("check", cli_path("tolerance.json"));
        if (r.exit_code != (words != NULL))
            fail_msg("row %zu: %s%s", i, ev_str_text(&r.out), ev_str_text(&r.err));
        if (words != NULL && strstr(ev_str_text(&r.out), words) == NULL)
            fail_msg("row %zu: no '%s' in: %s", i, words, ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
}

/* ---- data that are not the task's ---- */

/* The oracle knows neither the scalar nor how the kernel rounds whole numbers. */
static const char other_oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "#include <math.h>\n"
    "#include <string.h>\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    const evoke_argument *x = &call->arguments[0];\n"
    "    int is_whole = strcmp(call->arguments[call->output].type, \"s32\") == 0;\n"
    "    for (uint64_t i = 0; i < call->count; i++) {\n"
    "        double v = evoke_element(x, call->first + i);\n"
    "        call->value[i] = is_whole ? rint(100 * v) : (2.0 + 0.001f) * v;\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static const char other_source[] =
    "#include <cuda_fp16.h>\n"
    "extern \"C\" __global__ void both(const float *x, float *y, K_TYPE *k, int n, float s) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= n)\n"
    "        return;\n"
    "    float v = x[i], w = 2.0f * v + 0.001f * s * v;\n"
    "    y[i] = OF_Y;\n"
    "    k[i] = OF_K;\n"
    "}\n";

static const char other_task[] =
    "{\"name\": \"both\", \"family\": \"tests\", \"doc\": \"two outputs\", \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"uniform\", \"low\": 0.5, \"high\": 1},\n"
    "   \"domain\": {\"min\": 0, \"max\": 10000, \"finite\": true}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"OF_Y},\n"
    "  {\"name\": \"k\", \"kind\": \"out\", \"type\": \"K_TYPE\", \"count\": \"n\"OF_K},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"s\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": \"1.0\",\n"
    "   \"domain\": {\"min\": 1, \"max\": 1000}}],\n"
    " \"starts\": [\n"
    "  {\"name\": \"right\", \"source\": \"right.cu\", \"grid\": \"ceil_div(n, 64)\", \"block\": "
    "64},\n"
    "  {\"name\": \"other\", \"source\": \"other.cu\", \"grid\": \"ceil_div(n, 64)\", \"block\": "
    "64}],\n"
    " \"oracle\": \"other.c\", \"tolerance\": OF_ALL, \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 1201},\n"
    "   \"inputs\": INPUTS},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "20000}}]}\n";

#define WHOLE "s32", "int", "(int)(100.0f * s * v)"
#define HALF "f16", "__half", "__float2half(w)"
#define TIGHT ", \"tolerance\": {\"relative_l2\": 1e-6}"
#define SCALARS "{\"variation\": \"scalars\"}"
#define SCALED "{\"variation\": \"scaled\", \"power\": 3}"

static const struct {
    const char *all, *y, *k;             /* tolerances */
    const char *type, *c_type, *right_k; /* of k, and what is stored to it */
    const char *other_y, *other_k, *inputs;
    const char *words; /* NULL: the other start passes */
} others[] = {
    {"{\"relative_l2\": 1e-2}", TIGHT, BY_ONE, WHOLE, "w", "(int)(100.0f * s * v)", SCALARS, NULL},
    {"{\"relative_l2\": 1e-2}", TIGHT, BY_ONE, WHOLE, "w", "(int)(100.0f * v)", SCALARS, "; k["},
    {"{\"relative_l2\": 1e-2}", TIGHT, BY_ONE, WHOLE, "2.001f * v", "(int)(100.0f * s * v)",
     SCALARS, "is over the tolerance 1e-06; y["},
    {"{\"relative_l2\": 1e-6}", "", LOOSE, HALF, "w", "__float2half(w)", SCALED, NULL},
    {"{\"relative_l2\": 1e-6}", "", LOOSE, HALF, "v > 1.5f ? __half2float(__float2half(w)) : w",
     "__float2half(w)", SCALED, "is over the tolerance 1e-06; y["},
    {"{\"relative_l2\": 0.5, \"max_abs\": 1e-4}", "", BY_ONE, WHOLE, "v > 1.5f ? w + 0.5f : w",
     "(int)(100.0f * s * v)", SCALED, "largest error 0.5 is over the tolerance 0.0001; y["},
};

static void write_other(size_t i) {
    static const char *const names[] = {"right.cu", "other.cu"};
    cli_write("other.c", other_oracle);
    cli_write("plain.cu", other_source);
    for (int other = 0; other < 2; other++) {
        cli_copy_changed("plain.cu", names[other], "K_TYPE", others[i].c_type);
        cli_copy_changed(names[other], names[other], "OF_Y", other ? others[i].other_y : "w");
        cli_copy_changed(names[other], names[other], "OF_K",
                         other ? others[i].other_k : others[i].right_k);
    }
    cli_write("both.json", other_task);
    cli_copy_changed("both.json", "both.json", "OF_Y", others[i].y);
    cli_copy_changed("both.json", "both.json", "K_TYPE", others[i].type);
    cli_copy_changed("both.json", "both.json", "OF_K", others[i].k);
    cli_copy_changed("both.json", "both.json", "OF_ALL", others[i].all);
    cli_copy_changed("both.json", "both.json", "INPUTS", others[i].inputs);
}

/* Where the oracle does not know the data, the start has the answers; and the error of an output
 * with a tolerance of its own widens no other output's limit. */
static void other_data_have_limits_by_output(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *words = others[i].words;
        write_other(i);
        ev_proc_result r = CLI_RUN("check", cli_path("both.json"), "--split", "search");
        if (r.exit_code != (words != NULL) ||
            (words != NULL && strstr(ev_str_text(&r.out), words) == NULL))
            fail_msg("row %zu: %s%s", i, ev_str_text(&r.out), ev_str_text(&r.err));
        ev_proc_result_free(&r);
    }
}

/* Where whole numbers are held to the task's tolerance and the floats to one of their own, the
 * looser one counts for both. */
static void an_error_is_within_the_tolerance_beside_it(void **state) {
    (void)state;
    write_task(TIGHT, LOOSE, "", EXACT);
    cli_copy_changed("tolerance.json", "tolerance.json", "{\"relative_l2\": 1e-6}, \"cases\"",
                     "{\"relative_l2\": 3e-2, \"max_abs\": 1}, \"cases\"");
    json_t *json = cli_json(CLI_RUN("check", cli_path("tolerance.json"), "--json"), 0);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    double error = ev_json_number(row, "error", 0);
    assert_true(error > 1e-3 && error <= ev_json_number(row, "tolerance", 0));
    json_decref(json);
}

/* A baseline that is wrong leaves nothing to compare: its rows have no error. */
static void a_case_that_was_not_compared_has_no_error(void **state) {
    (void)state;
    write_task("", "", BY_ONE, EXACT);
    json_t *json = cli_json(CLI_RUN("check", cli_path("tolerance.json"), "--json"), 1);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(ev_json_text(row, "verdict", ""), "fail");
    assert_non_null(json_object_get(row, "tolerance"));
    assert_null(json_object_get(row, "error"));
    json_decref(json);
    write_task("", LOOSE, BY_ONE, EXACT);
    json = cli_json(CLI_RUN("check", cli_path("tolerance.json"), "--json"), 0);
    row = json_array_get(json_object_get(json, "rows"), 0);
    assert_true(ev_json_number(row, "error", 0) > 1e-5);
    json_decref(json);
}

/* A bundle's error is that of the half, which is over the task's tolerance and within its own. */
static void a_bundle_has_the_loosest(void **state) {
    (void)state;
    write_task("", LOOSE, BY_ONE, EXACT);
    ev_proc_result r = CLI_RUN("tune", cli_path("tolerance.json"), "--evaluations", "60", "--seed",
                               "1", "--records", cli_path("t.sqlite"), "--out", cli_path("out"));
    cli_expect(&r, 0);
    /* a start whose whole numbers are off by one has drawn cases all the same */
    assert_non_null(strstr(ev_str_text(&r.err), "cases drawn from the task's"));
    ev_proc_result_free(&r);
    json_t *manifest = cli_json(CLI_RUN("check", cli_path("out"), "--json"), 0);
    assert_string_equal(ev_json_text(manifest, "verdict", ""), "pass");
    json_decref(manifest);
    char *text = cli_read("out/manifest.json");
    assert_non_null(strstr(text, "\"tolerance\": 0.001"));
    free(text);
}

/* Nothing could be promoted without a held-out case that is timed. */
static void a_search_needs_a_held_out_time(void **state) {
    (void)state;
    write_task("", LOOSE, BY_ONE, EXACT);
    cli_copy_changed("tolerance.json", "tolerance.json", "\"held-out\"", "\"adversarial\"");
    cli_expect_error(CLI_RUN("tune", cli_path("tolerance.json"), "--evaluations", "8", "--records",
                             cli_path("t.sqlite")),
                     2, "the task twice has no held-out case that is timed");
}

static void mistakes_are_named(void **state) {
    static const cli_mistake mistakes[] = {
        {"\"type\": \"f16\"", "\"type\": \"f16\"" BY_ONE,
         "an output of floats needs \"relative_l2\""},
        {"\"type\": \"s32\"", "\"type\": \"s32\"" LOOSE,
         "an output of whole numbers has \"max_abs\" alone"},
        {"\"type\": \"f16\"", "\"type\": \"f16\", \"tolerance\": {\"relative_l2\": -1}",
         "a bound is negative"},
        {"\"domain\"", "\"tolerance\": {\"relative_l2\": 1}, \"domain\"",
         "only outputs are compared"},
    };
    (void)state;
    write_task("", "", "", EXACT);
    cli_expect_mistakes("tolerance.json", mistakes, sizeof mistakes / sizeof mistakes[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_has_a_tolerance_of_its_own),
        cmocka_unit_test(other_data_have_limits_by_output),
        cmocka_unit_test(an_error_is_within_the_tolerance_beside_it),
        cmocka_unit_test(a_case_that_was_not_compared_has_no_error),
        cmocka_unit_test(a_bundle_has_the_loosest),
        cmocka_unit_test(a_search_needs_a_held_out_time),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
