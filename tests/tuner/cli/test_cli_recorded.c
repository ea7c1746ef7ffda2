/* Data in files, through the binary: evoke corpus writes a case, a task reads the files again, they
 * belong to the task's identity, and a bundle carries them. */
#include "base/file.h"
#include "base/json.h"
#include "corpora/npy.h"
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

/* The elements of FOLDER/name, malloc'ed. */
static void *elements(const char *name, ev_type type, uint64_t count) {
    char *text = NULL;
    size_t bytes = 0, size = (size_t)count * ev_type_bytes(type);
    npy_header header = {0, 0};
    ev_error err = {0};
    assert_int_equal(ev_file_read(cli_path(name), &text, &bytes, &err), EV_OK);
    if (npy_header_read(name, text, bytes, type, &header, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(header.count, count);
    assert_int_equal(bytes - header.offset, size);
    memmove(text, text + header.offset, size);
    return text;
}

/* ---- evoke corpus ---- */

static void writes_inputs_and_answers(void **state) {
    (void)state;
    json_t *json = cli_json(
        CLI_RUN("corpus", cli_path("task.json"), "odd", "--out", cli_path("odd"), "--json"), 0);
    cli_keys(json, "task:s task_sha256:s case:s split:s oracle:s shape:o arguments:a");
    const json_t *list = json_object_get(json, "arguments");
    cli_keys(json_array_get(list, 0), "name:s kind:s type:s count:i file:s");
    cli_keys(json_array_get(list, 1), "name:s kind:s type:s count:i expected:s");
    cli_keys(json_array_get(list, 2), "name:s kind:s type:s value:i");
    assert_string_equal(ev_json_text(json_array_get(list, 1), "expected", ""), "y.expected.npy");
    char *text = cli_read("odd/case.json");
    json_t *kept = json_loads(text, 0, NULL);
    assert_true(json_equal(kept, json));
    free(text);
    json_decref(kept);
    json_decref(json);
    float *x = elements("odd/x.npy", EV_F32, 301), *y = elements("odd/y.expected.npy", EV_F32, 301);
    for (int i = 0; i < 301; i++)
        assert_true(x[i] != 0 && y[i] == 2 * x[i]);
    free(x);
    free(y);
    cli_expect_error(CLI_RUN("corpus", cli_path("task.json"), "odd", "--out", cli_path("odd")), 2,
                     "odd exists already; give another folder by --out DIR");
    cli_expect_error(CLI_RUN("corpus", cli_path("task.json"), "nix"), 2,
                     "has no case 'nix'; there are smoke, odd");
}

/* The baseline as oracle runs all blocks, at a timed case as well. */
static void the_baseline_answers(void **state) {
    (void)state;
    cli_copy_changed("task.json", "base.json", "\"oracle.c\"", "\"baseline\"");
    ev_proc_result r = CLI_RUN("corpus", cli_path("base.json"), "time", "--out", cli_path("timed"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    float *x = elements("timed/x.npy", EV_F32, 65536);
    float *y = elements("timed/y.expected.npy", EV_F32, 65536);
    for (int i = 0; i < 65536; i++)
        assert_true(y[i] == 2 * x[i]);
    free(x);
    free(y);
}

/* ---- 16-bit data ---- */

static const char halves_cu[] =
    "#include <cuda_fp16.h>\n"
    "extern \"C\" __global__ void halves(const half *x, const unsigned short *b, half *y, unsigned "
    "short *z, signed char *w, half s, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= n)\n"
    "        return;\n"
    "    float f = __half2float(x[i]) * __half2float(s), g = __uint_as_float((unsigned)b[i] << "
    "16);\n"
    "    unsigned r = __float_as_uint(f * g);\n"
    "    y[i] = __float2half(f + g);\n"
    "    z[i] = (unsigned short)((r + 0x7fffu + (r >> 16 & 1u)) >> 16);\n"
    "    w[i] = (signed char)(f < g ? -1 : 1);\n"
    "}\n";

static const char halves_oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "int evoke_oracle(evoke_oracle_call *call);\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    for (uint64_t i = 0; i < call->count; i++) {\n"
    "        double f = evoke_element(&call->arguments[0], call->first + i) *\n"
    "                   call->arguments[5].value;\n"
    "        double g = evoke_element(&call->arguments[1], call->first + i);\n"
    "        call->value[i] = call->output == 2 ? f + g : call->output == 3 ? f * g\n"
    "                         : f < g ? -1 : 1;\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static const char halves_arguments[] =
    "\"arguments\": [\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f16\", \"count\": \"n\", \"data\": "
    "{\"generator\": \"normal\"}},\n"
    "    {\"name\": \"b\", \"kind\": \"in\", \"type\": \"bf16\", \"count\": \"n\", \"data\": "
    "{\"generator\": \"normal\"}},\n"
    "    {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f16\", \"count\": \"n\"},\n"
    "    {\"name\": \"z\", \"kind\": \"out\", \"type\": \"bf16\", \"count\": \"n\"},\n"
    "    {\"name\": \"w\", \"kind\": \"out\", \"type\": \"s8\", \"count\": \"n\"},\n"
    "    {\"name\": \"s\", \"kind\": \"scalar\", \"type\": \"f16\", \"value\": 0.5},\n"
    "    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}\n"
    "  ],\n"
    "  \"starts\"";

static void write_halves(void) {
    char *text = cli_read("task.json");
    char *arguments = strstr(text, "\"arguments\""), *starts = strstr(text, "\"starts\"");
    ev_str all = EV_STR_EMPTY;
    assert_true(arguments != NULL && starts != NULL);
    ev_str_append_n(&all, text, (size_t)(arguments - text));
    ev_str_append(&all, halves_arguments);
    ev_str_append(&all, starts + strlen("\"starts\""));
    cli_write("h.json", ev_str_text(&all));
    ev_str_free(&all);
    free(text);
    cli_write("halves.cu", halves_cu);
    cli_write("halves.c", halves_oracle);
    cli_copy_changed("h.json", "i.json", "scale.cu\"", "halves.cu\", \"entry\": \"halves\"");
    cli_copy_changed("i.json", "j.json", "\"oracle.c\"", "\"halves.c\"");
    cli_copy_changed("j.json", "halves.json", "1e-6", "0.004");
}

/* Each type is checked, stressed, and written as NumPy has it. */
static void halves_go_all_ways(void **state) {
    (void)state;
    write_halves();
    ev_proc_result r = CLI_RUN("check", cli_path("halves.json"), "--stress", "5");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "pass: 5 shapes"));
    ev_proc_result_free(&r);
    r = CLI_RUN("corpus", cli_path("halves.json"), "smoke", "--out", cli_path("halves"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "note: b is bf16, which NumPy lacks"));
    ev_proc_result_free(&r);
    uint16_t *x = elements("halves/x.npy", EV_F16, 64), *b = elements("halves/b.npy", EV_BF16, 64);
    uint16_t *y = elements("halves/y.expected.npy", EV_F16, 64);
    int8_t *w = elements("halves/w.expected.npy", EV_S8, 64);
    for (size_t i = 0; i < 64; i++) {
        double f = 0.5 * ev_type_get(EV_F16, x, i), g = ev_type_get(EV_BF16, b, i);
        uint16_t want = 0;
        ev_type_set(EV_F16, &want, 0, f + g);
        assert_int_equal(y[i], want);
        assert_int_equal(w[i], f < g ? -1 : 1);
    }
    free(x);
    free(b);
    free(y);
    free(w);
}

/* ---- data from files ---- */

#define FROM_FILE "\"shape\": {\"n\": 301}, \"data\": {\"x\": {\"file\": \"data/x.npy\"}}"

/* recorded.json: the case odd takes x from a file, in which it is i. */
static void write_recorded(float factor) {
    float x[301];
    ev_error err = {0};
    for (int i = 0; i < 301; i++)
        x[i] = factor * (float)i;
    assert_int_equal(ev_dir_make(cli_path("data"), &err), EV_OK);
    assert_int_equal(npy_write(cli_path("data/x.npy"), EV_F32, 301, x, &err), EV_OK);
    cli_copy_changed("task.json", "recorded.json", "\"shape\": {\"n\": 301}", FROM_FILE);
}

static char *task_hash(void) {
    ev_error err = {0};
    json_t *json = cli_json(
        CLI_RUN("corpus", cli_path("recorded.json"), "odd", "--out", cli_path("again"), "--json"),
        0);
    char *hash = strdup(ev_json_text(json, "task_sha256", ""));
    json_decref(json);
    float *x = elements("again/x.npy", EV_F32, 301),
          *y = elements("again/y.expected.npy", EV_F32, 301);
    for (int i = 1; i < 301; i++)
        assert_true(x[i] == x[1] * (float)i && y[i] == 2 * x[i]);
    free(x);
    free(y);
    assert_int_equal(ev_dir_remove(cli_path("again"), &err), EV_OK);
    return hash;
}

static void files_are_part_of_the_task(void **state) {
    (void)state;
    write_recorded(1);
    char *first = task_hash(), *same = task_hash();
    write_recorded(3);
    char *other = task_hash();
    assert_string_equal(first, same);
    assert_string_not_equal(first, other);
    free(first);
    free(same);
    free(other);
}

static void bad_files_are_told(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } rows[] = {
        {"data/x.npy", "data/none.npy", "there is no file"},
        {"data/x.npy", "../x.npy", "leaves the task's folder"},
        {"{\"n\": 301}, \"data\"", "{\"n\": 300}, \"data\"",
         "its shape has 301 elements, and the buffer has 300"},
        {"data/x.npy", "scale.cu", "bytes of elements, and 301 f32 are 1204"},
    };
    write_recorded(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("recorded.json", "bad.json", rows[i].old, rows[i].new);
        cli_expect_error(CLI_RUN("check", cli_path("bad.json")), 2, rows[i].words);
    }
    cli_copy_changed("recorded.json", "bad.json", "\"type\": \"f32\", \"count\": \"n\",\n",
                     "\"type\": \"s32\", \"count\": \"n\",\n");
    cli_expect_error(CLI_RUN("check", cli_path("bad.json")), 2,
                     "its elements are '<f4', and s32 is '<i4'; save it as numpy.int32");
}

/* The bundle has the file in it, and checks a kernel by itself. */
static void bundles_carry_files(void **state) {
    (void)state;
    ev_error err = {0};
    write_recorded(1);
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("recorded.json"), "--evaluations", "40", "--seed", "1",
                         "--records", cli_path("r.sqlite"), "--out", cli_path("r-out"), "--json"),
                 0);
    json_decref(json);
    assert_int_equal(ev_dir_remove(cli_path("data"), &err), EV_OK);
    ev_proc_result r = CLI_RUN("check", cli_path("r-out"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    float *x = elements("r-out/tasks/scale/data/x.npy", EV_F32, 301);
    assert_true(x[300] == 300);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_inputs_and_answers), cmocka_unit_test(the_baseline_answers),
        cmocka_unit_test(halves_go_all_ways),        cmocka_unit_test(files_are_part_of_the_task),
        cmocka_unit_test(bad_files_are_told),        cmocka_unit_test(bundles_carry_files),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
