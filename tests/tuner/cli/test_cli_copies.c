/* Code that only large or certain sizes run, from end to end: a copy for one value of an argument
 * is wrong where the task's small cases do not run it. The gates bring it under all checks. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli_run.h"
#include "tests/ok.h"
#include "tuner/run/shipped.h"

#define HEAD "#include \"evoke_cuda.h\"\nextern \"C\" __global__ void "
#define ROW                                                                                        \
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"                                                 \
    "    if (i >= rows)\n"                                                                         \
    "        return;\n"

/* A tap along each column; with x and y in one buffer, a recurrence, and the task allows that. */
static const char fir[] =
    HEAD "fir(const float *x, float *y, int rows, int n) {\n" ROW "    y[i] = x[i];\n"
         "    for (int j = 1; j < n; j++)\n"
         "        y[j * rows + i] = 0.5f * x[j * rows + i] + 0.25f * x[(j - 1) * rows + i];\n"
         "}\n";
/* Two loops over a row; the second one reads what the first one wrote. */
static const char two[] = HEAD
    "two(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z, int rows,\n"
    "    int n) {\n" ROW "    for (int j = 0; j < n; j++)\n"
    "        y[i * n + j] = 0.5f * x[i * n + j];\n"
    "    for (int j = 0; j < n; j++)\n"
    "        z[i * n + j] = y[i * n + j] + 1.0f;\n"
    "}\n";
/* Threads exchange values of a row by shared memory. */
static const char swap[] =
    HEAD "swap(const float *__restrict__ x, float *__restrict__ y, int rows, int n) {\n"
         "    __shared__ float s[64];\n"
         "    int i = blockIdx.x * 64 + threadIdx.x;\n"
         "#pragma unroll 1\n"
         "    for (int j = 0; j < n; j++) {\n"
         "        s[threadIdx.x] = i < rows ? x[j * rows + i] : 0.0f;\n"
         "        __syncthreads();\n"
         "        if (i < rows)\n"
         "            y[j * rows + i] = s[63 - threadIdx.x];\n"
         "        __syncthreads();\n"
         "    }\n"
         "}\n";
/* As fir, with one more input. */
static const char taps[] = HEAD
    "taps(const float *w, const float *x, float *y, int rows, int n) {\n" ROW "    y[i] = x[i];\n"
    "    for (int j = 1; j < n; j++)\n"
    "        y[j * rows + i] = w[j * rows + i] * x[j * rows + i] + 0.25f * x[(j - 1) * rows + i];\n"
    "}\n";
/* Takes numbers of a row by their places. */
static const char pick[] =
    HEAD "pick(const float *x, const int *at, float *y, int rows, int n) {\n" ROW
         "    for (int j = 0; j < n; j++)\n"
         "        y[i * 2 * n + j] = x[i * 2 * n + at[i * n + j]];\n"
         "}\n";
/* A start that takes a shuffle to order memory between lanes. */
static const char trusting[] =
    HEAD "trusting(const float *__restrict__ x, float *__restrict__ y, int rows, int n) {\n"
         "    __shared__ float s[64];\n"
         "    int i = blockIdx.x * 64 + threadIdx.x;\n"
         "    s[threadIdx.x] = i < rows * n ? x[i] : 0.0f;\n"
         "    int all = __shfl_sync(0xffffffff, i, 0);\n"
         "    if (i < rows * n)\n"
         "        y[i] = s[threadIdx.x] + s[threadIdx.x & 32] * (float)(all >= 0);\n"
         "}\n";

#define FLOATS(name, kind, count, generator)                                                       \
    "  {\"name\": \"" name "\", \"kind\": \"" kind "\", \"type\": \"f32\", \"count\": \"" count    \
    "\", \"data\": {\"generator\": \"" generator "\"}},\n"
#define OUT(name)                                                                                  \
    "  {\"name\": \"" name "\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"rows * n\"},\n"
#define X FLOATS("x", "in", "rows * n", "normal")
#define SIZES                                                                                      \
    "  {\"name\": \"rows\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"                           \
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"

#define CASE(split, use, rows, n)                                                                  \
    "  {\"name\": \"" use " " n "\", \"split\": \"" split "\", \"use\": \"" use                    \
    "\", \"shape\": {\"rows\": " rows ", \"n\": " n "}}"
#define SMALL                                                                                      \
    CASE("search", "smoke", "3", "9")                                                              \
    ",\n" CASE("search", "check", "70", "37") ",\n" CASE("held-out", "check", "65", "101") ",\n"
#define TIMED CASE("search", "time", "2048", "640") ",\n" CASE("held-out", "time", "1000", "641")
#define CASES " \"cases\": [\n" SMALL TIMED "]}\n"

#define SPECIALISE(argument)                                                                       \
    "{\"kind\": \"specialise\", \"anchor\": \"" argument "\", \"option\": 640, \"form\": "         \
    "\"equal\"}"
#define AHEAD "{\"kind\": \"pipeline-loads\", \"anchor\": \"loop 0\", \"option\": 1}"
#define TWO_AHEAD "{\"kind\": \"pipeline-loads\", \"anchor\": \"loop 0\", \"option\": 2}"
#define TURNS "{\"kind\": \"unroll-turns\", \"anchor\": \"loop 0\", \"option\": 4}"
#define SPLIT "{\"kind\": \"split-threads\", \"option\": 32, \"form\": \"neighbours\"}"

/* `reason`: why `genome` is refused. `right`: a genome that passes, of the same task. */
static const struct copy {
    const char *kernel, *source, *arguments, *beside, *genome, *reason, *right;
} copies[] = {
    /* The load of the next turn moves past the store, in the copy alone. Callers may pass one
     * buffer: the pointers are not __restrict__. */
    {"fir", fir, X OUT("y") SIZES, "", SPECIALISE("a3") ", " AHEAD,
     "with an input and an output in one buffer", SPECIALISE("a3")},
    /* w and y in one buffer are right in the copy, x and y are not. */
    {"taps", taps, FLOATS("w", "in", "rows * n", "normal") X OUT("y") SIZES, "",
     SPECIALISE("a4") ", " AHEAD, "with an input and an output in one buffer", SPECIALISE("a4")},
    /* The places of a row ascend in the task's own data: what is loaded ahead was not written yet.
     */
    {"pick", pick,
     FLOATS("x", "in", "rows * 2 * n",
            "normal") "  {\"name\": \"at\", \"kind\": \"in\", \"type\": \"s32\", \"count\": \"rows "
                      "* n\",\n"
                      "   \"data\": {\"generator\": \"dropout_indices\", \"of\": \"2 * n\", "
                      "\"each\": \"n\"}},\n" FLOATS("y", "inout", "rows * 2 * n", "zeros") SIZES,
     "", TWO_AHEAD, "and small whole numbers among the inputs", TURNS}};

static void write_copy(const struct copy *c, const char *edits) {
    char task[4000], genome[1000], name[16];
    int length = snprintf(task, sizeof task,
                          "{\"name\": \"%1$s\", \"family\": \"tests\", \"doc\": \"a copy\",\n"
                          " \"arguments\": [\n%2$s%3$s \"starts\": [{\"name\": \"plain\", "
                          "\"source\": \"%1$s.cu\", \"grid\": \"ceil_div(rows, 64)\", "
                          "\"block\": 64}],\n \"oracle\": \"baseline\", \"tolerance\": "
                          "{\"relative_l2\": 1e-6},\n" CASES,
                          c->kernel, c->arguments, c->beside);
    assert_in_range(length, 1, sizeof task - 1);
    (void)snprintf(genome, sizeof genome, "{\"start\": \"plain\", \"macros\": {}, \"edits\": [%s]}",
                   edits);
    (void)snprintf(name, sizeof name, "%s.cu", c->kernel);
    cli_write(name, c->source);
    cli_write("copy.json", task);
    cli_write("genome.json", genome);
}

static ev_proc_result check(const char *stress) {
    const char *words[12] = {
        "check", cli_path("copy.json"), "--genome", cli_path("genome.json"), "--device", "vm:h200",
        "--json"};
    if (stress) {
        words[7] = "--stress";
        words[8] = stress;
    }
    return cli_run(words);
}

static void expect_words(const json_t *json, const char *words) {
    char *text = ev_json_print(json, true);
    assert_non_null(text);
    assert_non_null(strstr(text, words));
    free(text);
}

/* Where the task says that callers pass one buffer, the edit knows. */
static void an_edit_knows_the_alias(void **state) {
    (void)state;
    static const struct copy c = {.kernel = "fir",
                                  .source = fir,
                                  .arguments = X OUT("y") SIZES,
                                  .beside = " \"alias\": [\"x\", \"y\"],\n"};
    write_copy(&c, SPECIALISE("a3") ", " AHEAD);
    cli_expect_error(check(NULL), 2, "no load from an argument that the kernel does not write");
    write_copy(&c, SPECIALISE("a3"));
    json_decref(cli_json(check("8"), 0));
}

/* The stress finds those that the task's cases do not show. */
static void copies_are_reached(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        write_copy(&copies[i], copies[i].genome);
        json_t *json = cli_json(check("8"), 1);
        expect_words(json, copies[i].reason);
        json_decref(json);
        write_copy(&copies[i], copies[i].right);
        json = cli_json(check("8"), 0);
        const json_t *row = json_array_get(json_object_get(json, "stresses"), 0);
        assert_string_equal(ev_json_text(row, "verdict", ""), "pass");
        assert_in_range(ev_json_integer(row, "unreached", -1), 0, 99);
        json_decref(json);
    }
}

/* Lane l writes elements 4 l to 4 l + 3, and reads element l. Without the copy for one value, the
 * loops count alike. */
static void an_edit_knows_other_turns(void **state) {
    (void)state;
    static const struct copy c = {
        .kernel = "two", .source = two, .arguments = X OUT("y") OUT("z") SIZES, .beside = ""};
    write_copy(&c, SPECIALISE("a4") ", " TURNS ", " SPLIT);
    cli_expect_error(check(NULL), 2, "and do not wait for each other between");
    write_copy(&c, SPECIALISE("a4") ", " SPLIT);
    json_decref(cli_json(check("8"), 0));
}

/* Timed cases run a few blocks under all checks: a barrier is missing in the copy alone. */
static void a_timed_case_shows_a_race(void **state) {
    (void)state;
    static const struct copy swapped = {
        .kernel = "swap", .source = swap, .arguments = X OUT("y") SIZES, .beside = ""};
    const struct copy *c = &swapped;
    write_copy(c, SPECIALISE("a3") ", {\"kind\": \"drop-barrier\", \"at\": \"i56\"}");
    json_t *json = cli_json(check(NULL), 1), *row = NULL;
    size_t i = 0, failed = 0;
    json_array_foreach(json_object_get(json, "rows"), i, row) {
        bool is_wrong = strcmp(ev_json_text(row, "verdict", ""), "fail") == 0;
        const char *name = ev_json_text(row, "case", "");
        assert_true(is_wrong == (strcmp(name, "time 640") == 0));
        failed += is_wrong;
        if (is_wrong)
            assert_non_null(strstr(ev_json_text(row, "reason", ""), "uninitialised-read"));
    }
    assert_int_equal(failed, 1);
    json_decref(json);
}

/* Its variants are held to no more. */
static void a_start_may_trust_shuffles(void **state) {
    (void)state;
    static const struct copy c = {
        .kernel = "trusting", .source = trusting, .arguments = X OUT("y") SIZES, .beside = ""};
    write_copy(&c, "{\"kind\": \"pipeline\", \"option\": 19}");
    cli_copy_changed("copy.json", "copy.json", "ceil_div(rows, 64)", "ceil_div(rows * n, 64)");
    json_decref(cli_json(check("4"), 0));
}

/* The arguments of a kernel's start that a caller may pass one buffer for: a bit each. */
static uint64_t may_alias_of(const struct copy *c) {
    task *t = NULL;
    ev_error err = {0};
    write_copy(c, c->right);
    OK(task_load(cli_path("copy.json"), &t, &err));
    candidate of = {.plan = t->starts[0].plan, .start = &t->starts[0]};
    origin own = {.ptx = EV_STR_EMPTY};
    OK(origin_build(t, 90, &of, &own, &err));
    origin_free(&own);
    task_free(t);
    return of.may_alias;
}

/* A bundle does not say it; the start of a variant does, which is built to check the variant. */
static void a_start_tells_of_its_pointers(void **state) {
    (void)state;
    assert_int_equal(may_alias_of(&copies[0]), 3); /* x and y */
    static const struct copy c = {.kernel = "two",
                                  .source = two,
                                  .arguments = X OUT("y") OUT("z") SIZES,
                                  .beside = "",
                                  .right = SPLIT};
    assert_int_equal(may_alias_of(&c), 0); /* __restrict__ */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_reached),
                                       cmocka_unit_test(an_edit_knows_the_alias),
                                       cmocka_unit_test(a_start_tells_of_its_pointers),
                                       cmocka_unit_test(an_edit_knows_other_turns),
                                       cmocka_unit_test(a_start_may_trust_shuffles),
                                       cmocka_unit_test(a_timed_case_shows_a_race)};
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
