/* Buffers of structs through the binary: each field has data of its own and is compared by itself,
 * the bytes between fields are not compared, and messages name the field. */
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

/* 32 bytes a body: 23 of them fields. The second start writes junk between the fields. */
static const char source[] = "#include <cuda_fp16.h>\n"
                             "struct Body { float4 pos; int id; half w; unsigned char k; };\n"
                             "__device__ void move(Body &b, float dt) {\n"
                             "    b.pos.x += dt * __half2float(b.w);\n"
                             "    b.pos.y *= 0.5f;\n"
                             "    b.id = b.id * 3 + 1;\n"
                             "    b.k ^= 5;\n"
                             "}\n"
                             "__global__ void step(Body *b, int n, float dt) {\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        move(b[i], dt);\n"
                             "}\n"
                             "__global__ void junk(Body *b, int n, float dt) {\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i >= n)\n"
                             "        return;\n"
                             "    move(b[i], dt);\n"
                             "    for (int k = 23; k < 32; k++)\n"
                             "        ((unsigned char *)&b[i])[k] = (unsigned char)(i + k);\n"
                             "}\n"
                             "__global__ void twelfth(Body *b, int n, float dt) {\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i >= n)\n"
                             "        return;\n"
                             "    move(b[i], dt);\n"
                             "    if (i == 12)\n"
                             "        b[i].WRONG += 1;\n"
                             "}\n";

static const char task_text[] =
    "{\"name\": \"step\", \"family\": \"f\", \"doc\": \"d\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"b\", \"kind\": \"inout\", \"count\": \"n\", \"stride\": 32, \"fields\": [\n"
    "    {\"name\": \"pos\", \"type\": \"f32x4\", \"data\": {\"generator\": \"uniform\"}},\n"
    "    {\"name\": \"id\", \"type\": \"s32\", \"offset\": 16, \"data\": {\"generator\": "
    "\"uniform\", "
    "\"low\": 3, \"high\": 15}},\n"
    "    {\"name\": \"w\", \"type\": \"f16\", \"data\": {\"generator\": \"constant\", \"value\": "
    "2}},\n"
    "    {\"name\": \"k\", \"type\": \"u8\", \"data\": {\"generator\": \"uniform\", \"low\": 0, "
    "\"high\": 9}}]},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"dt\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": 0.5}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"step.cu\", \"grid\": \"ceil_div(n, 128)\", "
    "\"block\": 128},\n"
    "  {\"name\": \"second\", \"source\": \"step.cu\", \"entry\": \"junk\", \"grid\": "
    "\"ceil_div(n, 128)\", \"block\": 128}],\n"
    " \"oracle\": \"step.c\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [{\"name\": \"s\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": "
    "70}},\n"
    "  {\"name\": \"c\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 300}},\n"
    "  {\"name\": \"t\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 4096}},\n"
    "  {\"name\": \"h\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": 5000}}]}\n";

/* The oracle finds the fields as arguments of their own. */
static const char oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "int evoke_oracle(evoke_oracle_call *call);\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    const evoke_argument *own = &call->arguments[call->output], *w = own;\n"
    "    for (; strcmp(w->name, \"b.pos\") == 0 || strcmp(w->name, \"b.id\") == 0; w++)\n"
    "        ;\n"
    "    for (uint64_t i = 0; i < call->count; i++) {\n"
    "        uint64_t e = call->first + i;\n"
    "        double v = evoke_element(own, e);\n"
    "        if (strcmp(own->name, \"b.pos\") == 0)\n"
    "            v = e % 4 == 0 ? v + 0.5 * evoke_element(w, e / 4) : e % 4 == 1 ? 0.5 * v : v;\n"
    "        else if (strcmp(own->name, \"b.id\") == 0)\n"
    "            v = 3 * v + 1;\n"
    "        else if (strcmp(own->name, \"b.k\") == 0)\n"
    "            v = (double)((unsigned)v ^ 5u);\n"
    "        call->value[i] = v;\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0) {
        cli_write("wrong.cu", source);
        cli_copy_changed("wrong.cu", "step.cu", "WRONG", "pos.y");
        cli_write("step.c", oracle);
        cli_write("step.json", task_text);
        cli_copy_changed("step.json", "baseline.json", "\"step.c\"", "\"baseline\"");
    }
    return failed;
}

static void must_pass(ev_proc_result r) {
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* Both starts pass: what the second one writes between the fields is compared with nothing. */
static void only_fields_are_compared(void **state) {
    (void)state;
    must_pass(CLI_RUN("check", cli_path("step.json")));
    must_pass(CLI_RUN("check", cli_path("baseline.json")));
    must_pass(CLI_RUN("check", cli_path("step.json"), "--device", "cuda:0"));
    must_pass(CLI_RUN("check", cli_path("step.json"), "--stress", "6"));
}

/* A wrong number of one body is found in any field, and named. */
static void a_wrong_field_is_named(void **state) {
    (void)state;
    static const struct {
        const char *member, *words;
    } rows[] = {
        {"pos.y", "; b[12].pos.y: expected "},
        {"pos.w", "; b[12].pos.w: expected "},
        {"id", "whole numbers that differ from the answer"},
        {"id", "; b[12].id: expected "},
        {"k", "; b[12].k: expected "},
    };
    cli_copy_changed("baseline.json", "twelfth.json", "\"entry\": \"junk\"",
                     "\"entry\": \"twelfth\"");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("wrong.cu", "step.cu", "WRONG", rows[i].member);
        ev_proc_result r = CLI_RUN("check", cli_path("twelfth.json"));
        cli_expect(&r, 1);
        if (strstr(ev_str_text(&r.out), rows[i].words) == NULL)
            fail_msg("no '%s' in: %s", rows[i].words, ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
    cli_copy_changed("wrong.cu", "step.cu", "WRONG", "pos.y");
}

/* The contents of a .npy file, behind the header. */
static const unsigned char *elements_of(const char *npy) {
    size_t header = (size_t)(unsigned char)npy[8] + 256 * (size_t)(unsigned char)npy[9];
    return (const unsigned char *)npy + 10 + header;
}

/* The structs have each field's data at its place, and zeros between the fields. */
static void fields_have_data_of_their_own(void **state) {
    (void)state;
    static const struct {
        const char *file;
        size_t offset, bytes;
    } rows[] = {{"case/b.pos.npy", 0, 16},
                {"case/b.id.npy", 16, 4},
                {"case/b.w.npy", 20, 2},
                {"case/b.k.npy", 22, 1}};
    must_pass(CLI_RUN("corpus", cli_path("step.json"), "c", "--out", cli_path("case")));
    char *whole = cli_read("case/b.npy");
    const unsigned char *b = elements_of(whole);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char *own = cli_read(rows[r].file);
        for (size_t i = 0; i < 300; i++)
            assert_memory_equal(b + 32 * i + rows[r].offset, elements_of(own) + i * rows[r].bytes,
                                rows[r].bytes);
        free(own);
    }
    unsigned seen = 0;
    for (size_t i = 0; i < 300; i++) {
        int32_t id;
        memcpy(&id, b + 32 * i + 16, sizeof id);
        assert_in_range(id, 3, 15);
        seen |= 1u << id;
        assert_int_equal(b[32 * i + 20] + 256 * b[32 * i + 21], 0x4000); /* 2 */
        assert_in_range(b[32 * i + 22], 0, 9);
        for (size_t k = 23; k < 32; k++)
            assert_int_equal(b[32 * i + k], 0);
    }
    assert_int_equal(seen, 0xfff8); /* 3 to 15 */
    free(whole);
}

/* A file has all bytes of the structs; a case may have other data of one field. */
static void a_case_has_data_of_its_own(void **state) {
    (void)state;
    cli_copy_changed("step.json", "filed.json", "\"shape\": {\"n\": 300}",
                     "\"shape\": {\"n\": 300}, \"data\": {\"b\": {\"file\": \"case/b.npy\"}}");
    must_pass(CLI_RUN("corpus", cli_path("filed.json"), "c", "--out", cli_path("again")));
    char *first = cli_read("case/b.id.expected.npy"), *second = cli_read("again/b.id.expected.npy");
    assert_memory_equal(elements_of(first), elements_of(second), 300 * sizeof(int32_t));
    free(first);
    free(second);
    must_pass(CLI_RUN("check", cli_path("filed.json")));
    cli_copy_changed("step.json", "ones.json", "\"shape\": {\"n\": 300}",
                     "\"shape\": {\"n\": 300}, \"data\": {\"b.id\": {\"generator\": \"ones\"}}");
    must_pass(CLI_RUN("corpus", cli_path("ones.json"), "c", "--out", cli_path("ones")));
    char *ones = cli_read("ones/b.id.npy");
    assert_int_equal(elements_of(ones)[0], 1);
    assert_int_equal(elements_of(ones)[(size_t)4 * 299], 1);
    free(ones);
}

/* A field that begins with the same number everywhere hides what `+=` does there. */
static void constant_fields_are_warned_of(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("check", cli_path("step.json"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.err), "the inout argument 'b.w' begins with the same"));
    assert_null(strstr(ev_str_text(&r.err), "the inout argument 'b' "));
    ev_proc_result_free(&r);
    cli_copy_changed("step.json", "promised.json", "\"value\": 2}",
                     "\"value\": 2}, \"initial\": \"constant\"");
    r = CLI_RUN("check", cli_path("promised.json"));
    cli_expect(&r, 0);
    assert_null(strstr(ev_str_text(&r.err), "begins with the same"));
    ev_proc_result_free(&r);
}

/* A packed struct has numbers at odd places; an output's bytes between fields stay unwritten. */
static void packed_structs_and_outputs(void **state) {
    (void)state;
    cli_write("pack.cu",
              "struct __attribute__((packed)) Hit { unsigned char kind; float where; };\n"
              "struct Found { short kind; double where; };\n"
              "__global__ void pack(const Hit *in, Found *out, int n) {\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n) {\n"
              "        out[i].kind = in[i].kind;\n"
              "        out[i].where = 2 * in[i].where;\n"
              "    }\n"
              "}\n");
    cli_write(
        "pack.json",
        "{\"name\": \"pack\", \"family\": \"f\", \"doc\": \"d\", \"arguments\": [\n"
        " {\"name\": \"in\", \"kind\": \"in\", \"count\": \"n\", \"fields\": [\n"
        "  {\"name\": \"kind\", \"type\": \"u8\", \"data\": {\"generator\": \"uniform\", \"low\": "
        "0, \"high\": 9}},\n"
        "  {\"name\": \"where\", \"type\": \"f32\", \"offset\": 1, \"data\": {\"generator\": "
        "\"normal\"}}], \"stride\": 5},\n"
        " {\"name\": \"out\", \"kind\": \"out\", \"count\": \"n\", \"fields\": [\n"
        "  {\"name\": \"kind\", \"type\": \"s16\"}, {\"name\": \"where\", \"type\": \"f64\"}]},\n"
        " {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
        " \"starts\": [{\"name\": \"plain\", \"source\": \"pack.cu\", \"grid\": "
        "\"ceil_div(n, 64)\", \"block\": 64}],\n"
        " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
        " \"cases\": [{\"name\": \"s\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": "
        "{\"n\": 70}},\n"
        "  {\"name\": \"c\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 300}},\n"
        "  {\"name\": \"t\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 999}},\n"
        "  {\"name\": \"h\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
        "1001}}]}\n");
    must_pass(CLI_RUN("check", cli_path("pack.json")));
    must_pass(CLI_RUN("check", cli_path("pack.json"), "--device", "cuda:0"));
    /* An element that no thread wrote is one of the fields. */
    cli_copy_changed("pack.cu", "pack.cu", "out[i].kind = in[i].kind;",
                     "if (i != 7) out[i].kind = in[i].kind;");
    ev_proc_result r = CLI_RUN("check", cli_path("pack.json"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "1 of 140 elements were never written"));
    ev_proc_result_free(&r);
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const cli_mistake rows[] = {
        {"\"offset\": 16", "\"offset\": 12", "begins at or behind the end of the field before, 16"},
        {"\"stride\": 32", "\"stride\": 22", "a struct has from 23 bytes"},
        {"\"name\": \"id\"", "\"name\": \"pos\"", "a second field is named pos"},
        {"\"name\": \"id\"", "\"name\": \"id.\"", "\"id.\" is no member of a struct"},
        {"\"name\": \"id\"", "\"name\": \"id[x]\"", "is no member of a struct"},
        {"f32x4", "f32x5", "\"f32x5\" is no vector"},
        {"f32x4", "f33", "unknown type \"f33\""},
        {"\"inout\"", "\"scalar\"", "an argument with \"fields\" is"},
        {"\"inout\"", "\"out\"", "a field of an output has neither"},
        {", \"data\": {\"generator\": \"constant\", \"value\": 2}", "",
         "the field w of b needs \"data\""},
        {"\"stride\": 32", "\"stride\": 32, \"data\": {\"generator\": \"zeros\"}",
         "the data of structs stand in a \"file\""},
        {"\"stride\": 32", "\"type\": \"u8\"", "unknown key 'type'"},
        {"\"high\": 15}", "\"high\": 15}, \"domain\": {\"min\": 9}",
         "no caller passes such a value"},
        {"\"shape\": {\"n\": 300}",
         "\"shape\": {\"n\": 300}, \"data\": {\"b\": {\"generator\": \"ones\"}}",
         "its data are a \"file\", or those of its fields, as \"b.pos\""},
        {"\"shape\": {\"n\": 300}",
         "\"shape\": {\"n\": 300}, \"data\": {\"b.q\": {\"generator\": \"ones\"}}",
         "\"b.q\" is no input of the task"},
        {"\"type\": \"u8\"", "\"type\": \"u8\", \"tolerance\": {\"relative_l2\": 1}",
         "an output of whole numbers has \"max_abs\" alone"},
        {"\"type\": \"f16\"", "\"type\": \"f16\", \"tolerance\": {\"max_abs\": 1}",
         "an output of floats needs \"relative_l2\""},
        {"\"type\": \"u8\"", "\"type\": \"u8\", \"tolerance\": {\"max_abs\": -1}",
         "a bound is negative"},
        {"\"type\": \"u8\"", "\"type\": \"u8\", \"tolerance\": {\"most\": 1}",
         "unknown key 'most'"},
    };
    cli_expect_mistakes("step.json", rows, sizeof rows / sizeof rows[0]);
}

/* Checks a start that does `fault` to body 12, with tolerances of the task, of pos and of k. */
static ev_proc_result check_tolerances(const char *fault, const char *task, const char *pos,
                                       const char *k) {
    cli_copy_changed("wrong.cu", "step.cu", "WRONG += 1", fault);
    cli_copy_changed("step.json", "own0.json", "{\"relative_l2\": 1e-6}", task);
    cli_copy_changed("own0.json", "own1.json", "\"type\": \"f32x4\"", pos);
    cli_copy_changed("own1.json", "own2.json", "\"type\": \"u8\"", k);
    cli_copy_changed("own2.json", "own.json", "\"entry\": \"junk\"", "\"entry\": \"twelfth\"");
    return CLI_RUN("check", cli_path("own.json"));
}

/* What a field's own tolerance finds and the task's does not, and what it lets pass. */
static void a_field_has_a_tolerance_of_its_own(void **state) {
    (void)state;
    static const char loose[] = "{\"relative_l2\": 1e-2}", tight[] = "{\"relative_l2\": 1e-6}";
    static const char pos[] = "\"type\": \"f32x4\"", k[] = "\"type\": \"u8\"";
    static const char slightly[] = "pos.y *= 1.001f", by_one[] = "k += 1", by_two[] = "k += 2";
    static const struct {
        const char *fault, *task, *pos, *k, *words; /* NULL: it passes */
    } rows[] = {
        {slightly, loose, pos, k, NULL},
        {slightly, loose, "\"type\": \"f32x4\", \"tolerance\": {\"relative_l2\": 1e-6}", k,
         "is over the tolerance 1e-06; b[12].pos.y: expected "},
        {slightly, tight, pos, k, "is over the tolerance 1e-06; b[12].pos.y: expected "},
        {slightly, tight, "\"type\": \"f32x4\", \"tolerance\": {\"relative_l2\": 1e-2}", k, NULL},
        {slightly, loose,
         "\"type\": \"f32x4\", \"tolerance\": {\"relative_l2\": 1e-2, \"max_abs\": 1e-7}", k,
         "largest error "},
        {by_one, loose, pos, k, "whole numbers that differ from the answer"},
        {by_one, loose, pos, "\"type\": \"u8\", \"tolerance\": {\"max_abs\": 1}", NULL},
        {by_two, loose, pos, "\"type\": \"u8\", \"tolerance\": {\"max_abs\": 1}",
         "largest error 2 is over the tolerance 1; b[12].k: expected "},
        {by_one, "{\"relative_l2\": 0.1, \"max_abs\": 3}", pos, k, NULL},
        {by_one, "{\"relative_l2\": 0.1, \"max_abs\": 3}", pos,
         "\"type\": \"u8\", \"tolerance\": {}", "largest error 1 is over the tolerance 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *words = rows[i].words;
        ev_proc_result r = check_tolerances(rows[i].fault, rows[i].task, rows[i].pos, rows[i].k);
        if (r.exit_code != (words != NULL))
            fail_msg("row %zu: %s%s", i, ev_str_text(&r.out), ev_str_text(&r.err));
        if (words != NULL && strstr(ev_str_text(&r.out), words) == NULL)
            fail_msg("row %zu: no '%s' in: %s", i, words, ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
    cli_copy_changed("wrong.cu", "step.cu", "WRONG", "pos.y");
}

/* A variant's bundle takes the buffer as one of bytes, and its check knows the fields. */
static void a_bundle_has_the_buffer(void **state) {
    (void)state;
    must_pass(CLI_RUN("tune", cli_path("baseline.json"), "--evaluations", "8", "--seed", "1",
                      "--records", cli_path("b.sqlite"), "--out", cli_path("out")));
    must_pass(CLI_RUN("check", cli_path("out")));
    char *manifest = cli_read("out/manifest.json");
    assert_non_null(strstr(manifest, "\"(n) * 32\""));
    free(manifest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_fields_are_compared),
        cmocka_unit_test(a_wrong_field_is_named),
        cmocka_unit_test(fields_have_data_of_their_own),
        cmocka_unit_test(a_case_has_data_of_its_own),
        cmocka_unit_test(constant_fields_are_warned_of),
        cmocka_unit_test(packed_structs_and_outputs),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_field_has_a_tolerance_of_its_own),
        cmocka_unit_test(a_bundle_has_the_buffer),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
