/* evoke check --stress, through the binary: kernels that are right on all cases of their task and
 * wrong beside them are found, and shrunk to the smallest case that fails. That case, pasted into
 * task.json, makes a plain check fail. Right kernels pass. */
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

/* y[r, c] = 2 x[r, c], tripled where the element before it in x is equal; NaN gives 7. */
static const char baseline[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void twice(const float *x, float *y, int rows, int cols) {\n"
    "    int n = rows * cols, i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= n)\n"
    "        return;\n"
    "    float v = x[i], before = i > 0 ? x[i - 1] : -v;\n"
    "    y[i] = v != v ? 7.0f : v == before ? 3.0f * v : 2.0f * v;\n"
    "}\n";

static const char task[] =
    "{\"name\": \"twice\", \"family\": \"tests\", \"doc\": \"2 x, or 3 x\", \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"rows * cols\",\n"
    "   \"data\": {\"generator\": \"uniform\", \"low\": 0.5, \"high\": 1}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"rows * cols\"},\n"
    "  {\"name\": \"rows\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"cols\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [\n"
    "  {\"name\": \"base\", \"source\": \"base.cu\", \"entry\": \"twice\",\n"
    "   \"grid\": \"ceil_div(rows * cols, 64)\", \"block\": 64},\n"
    "  {\"name\": \"other\", \"source\": \"FORM.cu\", \"entry\": \"twice\",\n"
    "   \"grid\": \"ceil_div(rows * cols, 64)\", \"block\": 64}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6}, \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\",\n"
    "   \"shape\": {\"rows\": 2, \"cols\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\",\n"
    "   \"shape\": {\"rows\": 40, \"cols\": 30}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\",\n"
    "   \"shape\": {\"rows\": 100, \"cols\": 100}},\n"
    "  {\"name\": \"one\", \"split\": \"adversarial\", \"use\": \"check\",\n"
    "   \"shape\": {\"rows\": 1, \"cols\": 1}}]}\n";

/* A form of the kernel: the baseline with a text changed. */
static const struct form {
    const char *name, *old, *new;
    /* The smallest case: its sizes, variation and power. rows 0: the form is right; -1: `cols` is
     * about the product of both sizes, which is what matters. */
    int rows, cols;
    const char *variation;
    int power;
    bool has_schedule;
} forms[] = {
    {.name = "right-order", .old = "2.0f * v;", .new = "v + v;"},
    {.name = "right-select",
     .old = "v != v ? 7.0f : v == before ? 3.0f * v : 2.0f * v;",
     .new = "v != v ? 7.0f : v * (v == before ? 3.0f : 2.0f);"},
    {"odd-columns", "2.0f * v;", "(cols % 2 == 1 && cols > 1 ? 5.0f : 2.0f) * v;", 1, 3, NULL, 0,
     false},
    {"more-columns", "2.0f * v;", "(cols > rows && rows > 2 ? 5.0f : 2.0f) * v;", 3, 4, NULL, 0,
     false},
    {"past-many", "2.0f * v;", "(n > 777 && n < 1200 ? 5.0f : 2.0f) * v;", -1, 778, NULL, 0, false},
    {"below-block", "2.0f * v;", "(n < 64 && i > 0 ? 5.0f : 2.0f) * v;", 1, 2, NULL, 0, false},
    {"large-values", "2.0f * v;", "(v >= 131072.0f ? 5.0f : 2.0f) * v;", 1, 1, "scaled", 18, false},
    {"nan", "v != v ? 7.0f", "v != v ? 2.0f * v", 1, 1, "non-finite", 0, false},
    {"ties", "v == before", "v == before && n < 0", 1, 2, "ties", 0, false},
    {"negative", "2.0f * v;", "2.0f * (v < 0.0f ? 0.0f : v);", 1, 1, "negated", 0, false},
    /* Blocks that take their tickets in another order write nothing right. */
    {"by-turns", "float v = x[i]",
     "__shared__ unsigned ticket;\n"
     "    static __device__ unsigned turn;\n"
     "    if (threadIdx.x == 0) {\n"
     "        ticket = gridDim.x < 100 ? atomicAdd(&turn, 1u) : blockIdx.x;\n"
     "        if (ticket == gridDim.x - 1)\n"
     "            atomicAdd(&turn, 0u - gridDim.x);\n"
     "    }\n"
     "    __syncthreads();\n"
     "    float v = x[i] * (ticket == blockIdx.x ? 1.0f : 2.0f)",
     -1, 65, NULL, 0, true},
};

/* ---- one form ---- */

static void write_form(const struct form *form) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s.cu", form->name);
    cli_write("base.cu", baseline);
    cli_copy_changed("base.cu", name, form->old, form->new);
    cli_write("form.json", task);
    cli_copy_changed("form.json", "form.json", "FORM.cu", name);
}

static json_t *stress(int exit_code) {
    return cli_json(
        CLI_RUN("check", cli_path("form.json"), "--start", "other", "--stress", "--json"),
        exit_code);
}

static const json_t *only_stress(const json_t *json) {
    const json_t *all = json_object_get(json, "stresses");
    char *text = ev_json_print(json, true);
    if (json_array_size(all) != 1)
        fail_msg("the check itself fails: %s", text);
    free(text);
    return json_array_get(all, 0);
}

static void expect_case(const struct form *form, const json_t *row) {
    const json_t *found = json_object_get(row, "case");
    const json_t *shape = json_object_get(found, "shape"),
                 *inputs = json_object_get(found, "inputs");
    int rows = (int)ev_json_integer(shape, "rows", 0),
        cols = (int)ev_json_integer(shape, "cols", 0);
    char *text = ev_json_print(row, true);
    bool is_size = form->rows < 0 ? rows * cols >= form->cols && rows * cols < form->cols + 12
                                  : rows == form->rows && cols == form->cols;
    if (!is_size ||
        strcmp(ev_json_text(inputs, "variation", ""),
               form->variation != NULL ? form->variation : "") != 0 ||
        ev_json_integer(inputs, "power", 0) != form->power ||
        (ev_json_integer(inputs, "schedule", 0) != 0) != form->has_schedule)
        fail_msg("%s: another smallest case: %s", form->name, text);
    free(text);
    cli_keys(row, "kernel:s role:s start:s device:s seed:i shapes:i runs:i unfit:i verdict:s "
                  "reason:s case:o output:s index:i");
    assert_string_equal(ev_json_text(row, "output", ""), "y");
    assert_non_null(json_object_get(row, "got"));
    assert_non_null(json_object_get(row, "want"));
}

/* Pastes the case into the task, whose plain check fails there and nowhere else. */
static void expect_paste(const struct form *form, const json_t *row) {
    const json_t *found = json_object_get(row, "case");
    char *text = ev_json_print(found, true);
    char cases[1000];
    (void)snprintf(cases, sizeof cases, "\"cases\": [%s,", text);
    free(text);
    cli_copy_changed("form.json", "pasted.json", "\"cases\": [", cases);
    json_t *json =
        cli_json(CLI_RUN("check", cli_path("pasted.json"), "--start", "other", "--json"), 1);
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 5);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *one = json_array_get(rows, i);
        bool is_pasted =
            strcmp(ev_json_text(one, "case", ""), ev_json_text(found, "name", "")) == 0;
        if (is_pasted != (strcmp(ev_json_text(one, "verdict", ""), "fail") == 0))
            fail_msg("%s: case %s: %s", form->name, ev_json_text(one, "case", ""),
                     ev_json_text(one, "reason", "passes"));
    }
    json_decref(json);
    cli_copy_changed("pasted.json", "right.json", form->name, "base");
    json = cli_json(CLI_RUN("check", cli_path("right.json"), "--json"), 0);
    json_decref(json);
}

static void check_form(const struct form *form) {
    write_form(form);
    json_t *json = stress(form->rows == 0 ? 0 : 1);
    const json_t *row = only_stress(json);
    if (form->rows == 0) {
        assert_string_equal(ev_json_text(row, "verdict", ""), "pass");
        assert_int_equal(ev_json_integer(row, "shapes", 0), 100);
    } else {
        expect_case(form, row);
        expect_paste(form, row);
    }
    json_decref(json);
}

static void wrong_forms_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        check_form(&forms[i]);
}

/* ---- the options ---- */

static void same_seed_same_cases(void **state) {
    (void)state;
    write_form(&forms[2]);
    json_t *once = stress(1), *again = stress(1);
    assert_true(json_equal(once, again));
    json_decref(again);
    json_t *other = cli_json(CLI_RUN("check", cli_path("form.json"), "--start", "other", "--stress",
                                     "7", "--seed", "2", "--json"),
                             1);
    assert_false(json_equal(once, other));
    json_decref(once);
    json_decref(other);
}

static void limits_end_it(void **state) {
    (void)state;
    write_form(&forms[0]);
    json_t *json = cli_json(CLI_RUN("check", cli_path("form.json"), "--stress", "3", "--json"), 0);
    const json_t *all = json_object_get(json, "stresses");
    assert_int_equal(json_array_size(all), 2); /* both starts */
    assert_int_equal(ev_json_integer(json_array_get(all, 1), "shapes", 0), 3);
    json_decref(json);
    json = cli_json(CLI_RUN("check", cli_path("form.json"), "--start", "other", "--stress",
                            "1000000000", "--seconds", "0.5", "--json"),
                    0);
    assert_in_range(ev_json_integer(only_stress(json), "shapes", 0), 1, 100000);
    json_decref(json);
    cli_expect_error(CLI_RUN("check", cli_path("form.json"), "--seconds", "3"), 2,
                     "are for --stress");
    cli_expect_error(CLI_RUN("check", cli_path("form.json"), "--stress=x"), 2,
                     "--stress needs a whole number");
}

static void printed_for_readers(void **state) {
    (void)state;
    write_form(&forms[2]);
    ev_proc_result r = CLI_RUN("check", cli_path("form.json"), "--stress");
    cli_expect(&r, 1);
    const char *out = ev_str_text(&r.out);
    assert_non_null(strstr(out, "stress of twice (start, base): pass: 100 shapes"));
    assert_non_null(strstr(out, "stress of twice (start, other): fail: "));
    assert_non_null(strstr(out, "  y["));
    assert_non_null(strstr(out, "the smallest case that fails, for \"cases\" in task.json:"));
    assert_non_null(strstr(out, "\"cols\": 3"));
    ev_proc_result_free(&r);
}

/* A case of the inputs that cannot be. */
static void mistakes_in_inputs(void **state) {
    (void)state;
    static const struct {
        const char *inputs, *words;
    } rows[] = {
        {"{\"variation\": \"tie\"}", "unknown variation \"tie\"; there are: plain, scaled"},
        {"{\"variation\": \"scaled\", \"power\": 21}", "21 must be from -20 to 20"},
        {"{\"variation\": \"ties\", \"power\": 2}",
         "only \"scaled\" and the variations with a shared buffer have a power"},
        {"{\"fresh\": -1}", "-1 must be from 0"},
        {"{\"seed\": 1}", "unknown key"},
    };
    write_form(&forms[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char use[120];
        (void)snprintf(use, sizeof use, "\"use\": \"smoke\", \"inputs\": %s", rows[i].inputs);
        cli_copy_changed("form.json", "bad.json", "\"use\": \"smoke\"", use);
        cli_expect_error(CLI_RUN("check", cli_path("bad.json")), 2, rows[i].words);
    }
    cli_copy_changed("form.json", "bad.json", "\"use\": \"time\"",
                     "\"use\": \"time\", \"inputs\": {\"fresh\": 1}");
    cli_expect_error(CLI_RUN("check", cli_path("bad.json")), 2, "a timed case has no \"inputs\"");
}

/* ---- a genome, and a bundle ---- */

static void genome_and_bundle(void **state) {
    (void)state;
    write_form(&forms[0]);
    cli_write("genome.json", "{\"start\":\"other\",\"macros\":{},\"edits\":[]}");
    json_t *json = cli_json(CLI_RUN("check", cli_path("form.json"), "--genome",
                                    cli_path("genome.json"), "--stress", "5", "--json"),
                            0);
    assert_string_equal(ev_json_text(only_stress(json), "role", ""), "genome");
    json_decref(json);
    ev_proc_result r = CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120",
                               "--records", cli_path("s.sqlite"), "--out", cli_path("bundle"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    json = cli_json(CLI_RUN("check", cli_path("bundle"), "--stress", "5", "--json"), 0);
    assert_string_equal(ev_json_text(only_stress(json), "role", ""), "bold variant");
    assert_int_equal(ev_json_integer(only_stress(json), "shapes", 0), 5);
    json_decref(json);
}

/* ---- winners ---- */

/* The factor is more than 2 at sizes between those of the cases, and costs a loop to compute. A
 * variant without the loop is faster, and right at all cases of the search, drawn ones and held-out
 * ones. No arm tells the sizes apart, which gate 6 would see (fitness/gates/arms.c). */
static const char late[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    unsigned h = (unsigned)n;\n"
    "#pragma unroll 1\n"
    "    for (int k = 0; k < 64; k++)\n"
    "        h = (h * 1664525u + 1013904223u) ^ (h >> 3);\n"
    "    unsigned between = (unsigned)n / 650u * (3900u / ((unsigned)n + 1u));\n"
    "    float factor = 2.0f + (float)(between * (h >> 28 | 1u));\n"
    "    if (i < n)\n"
    "        y[i] = x[i] * factor;\n"
    "}\n";

/* Gate 6 passes such variants, and the stress refuses them, so that no winner is one. A short
 * search ends with a right variant, a longer one has wrong leaders. */
static void no_winner_is_wrong_between_the_cases(void **state) {
    (void)state;
    static const char *const evaluations[] = {"200", "600"};
    bool refuses = false, promotes = false;
    cli_write("late.cu", late);
    cli_copy_changed("task.json", "late.json", "scale.cu", "late.cu");
    cli_copy_changed("late.json", "late.json", "\"oracle.c\"", "\"baseline\"");
    for (size_t i = 0; i < sizeof evaluations / sizeof evaluations[0]; i++) {
        ev_proc_result r = CLI_RUN("tune", cli_path("late.json"), "--bold", "--evaluations",
                                   evaluations[i], "--out", cli_path("late"));
        cli_expect(&r, 0);
        refuses |= strstr(ev_str_text(&r.err), "stress: case stress-plain-1-") != NULL;
        ev_proc_result_free(&r);
        json_t *json = cli_json(CLI_RUN("check", cli_path("late"), "--stress", "--json"), 0);
        promotes |= strstr(ev_json_text(only_stress(json), "role", ""), "variant") != NULL;
        json_decref(json);
        assert_int_equal(ev_dir_remove(cli_path("late"), NULL), EV_OK);
    }
    assert_true(refuses);
    assert_true(promotes);
}

/* Winners of searches that a stress refused, though they are right, and the cases where it did. The
 * name of a case is part of the seed of its data. */
static const struct {
    const char *folder, *name, *genome, *shape, *inputs;
} right_ones[] = {
    /* Adds in another order than its start. Where one of the gates' sums cancels, its error is a
     * quarter of u sqrt(K) |terms| (fitness/gates/condition.c), and the start's is less by chance.
     */
    {"lstm/sd_lstm_fp", "stress-textbook-1-60",
     "{\"start\": \"textbook\", \"macros\": {}, \"edits\": [\n"
     "  {\"kind\": \"specialise\", \"anchor\": \"a10\", \"form\": \"equal\", \"option\": 525},\n"
     "  {\"kind\": \"split-threads\", \"form\": \"neighbours\", \"option\": 16},\n"
     "  {\"kind\": \"pipeline-loads\", \"anchor\": \"loop 1\", \"option\": 1}]}\n",
     "{\"B\": 1, \"H\": 32, \"g_sigma\": 40.029443316354119, \"k\": 16, \"x_sigma\": 1}",
     "{\"fresh\": 863312946, \"variation\": \"spread\"}"},
    /* Differs from its start where epsilon is below 0, as no caller's is. */
    {"collectives/ar_adam", "stress-hand-1-15",
     "{\"start\": \"hand\", \"macros\": {}, \"edits\": [\n"
     "  {\"kind\": \"resize-block\", \"anchor\": \"x\", \"option\": 16}]}\n",
     "{\"n\": 11, \"ranks\": 1, \"step\": 1}", "{\"fresh\": 3, \"variation\": \"far-scalars\"}"},
};

static void check_right_one(size_t i) {
    char line[2000], cases[1000];
    const char *from = EVOKE_SOURCE_DIR "/kernels";
    (void)snprintf(line, sizeof line,
                   "cp '%1$s/%2$s'/*.cu '%3$s' && cp '%1$s/%2$s/task.json' '%3$s/one.json'", from,
                   right_ones[i].folder, cli_folder());
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    (void)snprintf(cases, sizeof cases,
                   "\"cases\": [{\"name\": \"%s\", \"split\": \"held-out\", \"use\": \"check\", "
                   "\"shape\": %s, \"inputs\": %s},",
                   right_ones[i].name, right_ones[i].shape, right_ones[i].inputs);
    cli_copy_changed("one.json", "pasted.json", "\"cases\": [", cases);
    cli_write("genome.json", right_ones[i].genome);
    json_t *json = cli_json(CLI_RUN("check", cli_path("pasted.json"), "--genome",
                                    cli_path("genome.json"), "--split", "held-out", "--json"),
                            0);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(ev_json_text(row, "case", ""), right_ones[i].name);
    json_decref(json);
}

static void right_winners_pass(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof right_ones / sizeof right_ones[0]; i++)
        check_right_one(i);
}

/* The shipped starts stand it: what a start does not bear, such as the NaN that a transform
 * spreads, its task excludes by a domain. */
static void shipped_starts_stand_it(void **state) {
    static const char *const kernels[] = {"ar_adam",    "bp_data_masked",    "fft_conv2d",
                                          "sd_lstm_fp", "fft_conv2d_cached", "sd_lstm_seq"};
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        json_t *json = cli_json(CLI_RUN("check", kernels[i], "--stress", "4", "--json"), 0);
        const json_t *all = json_object_get(json, "stresses");
        assert_true(json_array_size(all) >= 2); /* one a start */
        for (size_t k = 0; k < json_array_size(all); k++)
            assert_string_equal(ev_json_text(json_array_get(all, k), "verdict", ""), "pass");
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_forms_are_found),
        cmocka_unit_test(right_winners_pass),
        cmocka_unit_test(shipped_starts_stand_it),
        cmocka_unit_test(same_seed_same_cases),
        cmocka_unit_test(limits_end_it),
        cmocka_unit_test(printed_for_readers),
        cmocka_unit_test(mistakes_in_inputs),
        cmocka_unit_test(genome_and_bundle),
        cmocka_unit_test(no_winner_is_wrong_between_the_cases),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
