/* Structs by value and instances of templates, through the binary: fields have values and buffers
 * of their own, a variant gets them, and mistakes are named. */
#include "tests/cli_run.h"

#include "base/json.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

/* y = scale x + shift for i < n, with all numbers and a buffer in a struct. */
static const char source[] =
    "struct Line { const float *x; short more; int n; double scale; float shift[2]; };\n"
    "template <typename T, int Extra>\n"
    "__global__ void line(T *y, Line line) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < line.n + line.more)\n"
    "        y[i] = T(line.scale) * line.x[i] + line.shift[1] + T(Extra);\n"
    "}\n";

static const char task_text[] =
    "{\"name\": \"line\", \"family\": \"f\", \"doc\": \"d\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"line.n\"},\n"
    "  {\"name\": \"line\", \"kind\": \"struct\", \"fields\": [\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\", \"data\": "
    "{\"generator\": \"uniform\"}},\n"
    "    {\"name\": \"more\", \"kind\": \"scalar\", \"type\": \"s16\", \"value\": 0},\n"
    "    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "    {\"name\": \"scale\", \"kind\": \"scalar\", \"type\": \"f64\", \"value\": 3},\n"
    "    {\"name\": \"shift\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": 0.25, "
    "\"offset\": 28}]}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"line.cu\", \"entry\": \"line<float, 5>\",\n"
    "   \"grid\": \"ceil_div(line.n, 128)\", \"block\": 128}],\n"
    " \"oracle\": \"line.c\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [{\"name\": \"s\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": "
    "70}},\n"
    "  {\"name\": \"c\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 300}},\n"
    "  {\"name\": \"t\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 4096}},\n"
    "  {\"name\": \"h\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": 5000}}]}\n";

/* The oracle takes the fields by their names. */
static const char oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "int evoke_oracle(evoke_oracle_call *call);\n"
    "static const evoke_argument *find(const evoke_oracle_call *call, const char *name) {\n"
    "    const evoke_argument *a = call->arguments;\n"
    "    while (strcmp(a->name, name) != 0)\n"
    "        a++;\n"
    "    return a;\n"
    "}\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    const float *x = find(call, \"line.x\")->data;\n"
    "    for (uint64_t i = 0; i < call->count; i++)\n"
    "        call->value[i] = find(call, \"line.scale\")->value * x[call->first + i] +\n"
    "                         find(call, \"line.shift\")->value + 5;\n"
    "    return 0;\n"
    "}\n";

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0) {
        cli_write("line.cu", source);
        cli_write("line.c", oracle);
        cli_write("line.json", task_text);
    }
    return failed;
}

static void must_pass(ev_proc_result r) {
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static void devices_get_the_fields(void **state) {
    (void)state;
    must_pass(CLI_RUN("check", cli_path("line.json")));
    must_pass(CLI_RUN("check", cli_path("line.json"), "--device", "cuda:0"));
    must_pass(CLI_RUN("check", cli_path("line.json"), "--stress", "6"));
}

/* The bundle's manifest has the fields' places, and its check rebuilds the instance. */
static void a_bundle_has_the_layout(void **state) {
    (void)state;
    must_pass(CLI_RUN("tune", cli_path("line.json"), "--evaluations", "8", "--seed", "1",
                      "--records", cli_path("l.sqlite"), "--out", cli_path("out")));
    must_pass(CLI_RUN("check", cli_path("out")));
    char *manifest = cli_read("out/manifest.json");
    json_t *json = json_loads(manifest, 0, NULL);
    const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    const json_t *arguments = json_object_get(kernel, "arguments");
    assert_int_equal(json_array_size(arguments), 6);
    const json_t *shift = json_array_get(arguments, 5);
    assert_string_equal(ev_json_text(shift, "name", ""), "line.shift");
    assert_int_equal(ev_json_integer(shift, "offset", 0), 28);
    assert_int_equal(ev_json_integer(shift, "struct_bytes", 0), 32);
    assert_null(json_object_get(json_array_get(arguments, 0), "offset"));
    (void)json_object_set_new(json_array_get(arguments, 5), "offset", json_integer(24));
    char *lie = json_dumps(json, JSON_INDENT(2));
    cli_write("out/manifest.json", lie);
    free(lie);
    ev_proc_result r = CLI_RUN("check", cli_path("out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "the offset of a field is 24, and should be 28"));
    ev_proc_result_free(&r);
    json_decref(json);
    free(manifest);
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const cli_mistake rows[] = {
        {"\"offset\": 28", "\"offset\": 20", "begins at or behind the end of the field before, 24"},
        {"\"fields\"", "\"bytes\": 31, \"fields\"", "a struct has from 32 bytes"},
        {"\"fields\"", "\"bytes\": 40, \"fields\"", "has 40 bytes, and parameter"},
        {"\"name\": \"more\"", "\"name\": \"x\"", "a second argument is named line.x"},
        {"\"name\": \"more\", \"kind\": \"scalar\"", "\"name\": \"more\", \"kind\": \"struct\"",
         "a field is no struct"},
        {"\"type\": \"f32\", \"count\": \"line.n\"",
         "\"type\": \"f32\", \"offset\": 0, \"count\": \"line.n\"",
         "only the fields of a struct have"},
        {"\"count\": \"line.n\"", "\"count\": \"line.m\"", "unknown name \"line.m\""},
        {"line<float, 5>", "line<float, 5", "is no instance of a template"},
        {"line<float, 5>", "line<5, float>", "the entry line<5, float>:1:"},
        {"line<float, 5>", "lime<float, 5>", "use of undeclared identifier 'lime'"},
    };
    cli_expect_mistakes("line.json", rows, sizeof rows / sizeof rows[0]);
}

/* Other instances of the source are no choice, and the source's own needs no second one. */
static void instances_of_the_source(void **state) {
    (void)state;
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text,
                  "%stemplate __global__ void line< float,5 >(float *, Line);\n"
                  "template __global__ void line<float, 6>(float *, Line);\n",
                  source);
    cli_write("line.cu", ev_str_text(&text));
    ev_str_free(&text);
    must_pass(CLI_RUN("check", cli_path("line.json")));
    cli_copy_changed("line.json", "bad.json", "line<float, 5>", "line");
    ev_proc_result r = CLI_RUN("check", cli_path("bad.json"));
    assert_int_not_equal(r.exit_code, 0);
    if (strstr(ev_str_text(&r.err), "line<float, 5>, line<float, 6>") == NULL &&
        strstr(ev_str_text(&r.err), "line<float, 6>, line<float, 5>") == NULL)
        fail_msg("%s", ev_str_text(&r.err));
    ev_proc_result_free(&r);
    cli_write("line.cu", source);
}

/* evoke run: struct Plate { const float *x; int n; double step; short two[2]; }, 32 bytes, and y.
 */
static const char plate_ptx[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry plate(.param .align 8 .b8 p[32], .param .u64 y) {\n"
    "  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .f64 %fd<3>; .reg .b16 %h<3>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [p+8]; ld.param.f64 %fd1, [p+16];\n"
    "  ld.param.s16 %h1, [p+26]; ld.param.u64 %rd2, [y];\n"
    "  ld.global.f32 %f1, [%rd1]; cvt.f64.f32 %fd2, %f1; add.f64 %fd2, %fd2, %fd1;\n"
    "  cvt.rn.f32.f64 %f2, %fd2; st.global.f32 [%rd2], %f2;\n"
    "  cvt.s32.s16 %r2, %h1; add.s32 %r2, %r2, %r1; st.global.u32 [%rd2+4], %r2; ret;\n}\n";

#define RUN_PLATE(first) CLI_RUN("run", cli_path("plate.ptx"), "--arg", first, "--arg", "out:8")

static void run_takes_structs(void **state) {
    (void)state;
    cli_write("plate.ptx", plate_ptx);
    /* x[0] = 1 and step = 0.25 make 1.25; -7 and 1000 make 993. */
    static const char *const whole[] = {
        "struct:in:0000803f;s32:1000;f64:0.25;s16:5;s16:-7",
        "struct@32:in:0000803f;s32@8:1000;f64@16:0.25;s16@26:-7",
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        ev_proc_result r = RUN_PLATE(whole[i]);
        cli_expect(&r, 0);
        assert_non_null(strstr(ev_str_text(&r.out), "output 0: 0000a03fe1030000"));
        ev_proc_result_free(&r);
    }
    static const struct {
        const char *spec, *words;
    } bad[] = {
        {"struct:in:0000803f;s32:1", "has 16 bytes, and parameter 0 (p) of plate has 32"},
        {"struct@24:in:0000803f;s32:1", "has 24 bytes"},
        {"struct:in:0000803f;s32:1;s32@8:1", "must begin at 12"},
        {"struct:f64@28:1", "bytes 28 to 36"},
        {"struct:f64@x:1", "'x' is no number of bytes"},
        {"struct:in:0000803f;s33:1", "field 1 of parameter 0 (p)"},
        {"struct:", "needs KIND:VALUE"},
        {"struct:f64:1;", "field 1 of parameter 0 (p)"},
        {"u32:1", "a struct is given like struct:"},
        {"struct:in:0000803f;s32:1;f64:1;next:9", "argument 9 is no buffer"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cli_expect_error(RUN_PLATE(bad[i].spec), 2, bad[i].words);
    /* A rank's struct has the address of the next rank's field of a struct. */
    cli_write("links.ptx", ".version 7.8\n.target sm_70\n.address_size 64\n"
                           ".visible .entry links(.param .align 8 .b8 p[16]) {\n"
                           "  .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
                           "  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [p+8];\n"
                           "  ld.volatile.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1;\n"
                           "  st.global.u32 [%rd2+4], %r1; ret;\n}\n");
    ev_proc_result r = CLI_RUN("run", cli_path("links.ptx"), "--ranks", "2", "--arg",
                               "struct:inout:0500000000000000,0700000000000000;next:0.0");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "output 0: 0500000008000000"));
    assert_non_null(strstr(ev_str_text(&r.out), "output 0: 0700000006000000"));
    ev_proc_result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_get_the_fields),  cmocka_unit_test(a_bundle_has_the_layout),
        cmocka_unit_test(mistakes_are_named),      cmocka_unit_test(run_takes_structs),
        cmocka_unit_test(instances_of_the_source),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
