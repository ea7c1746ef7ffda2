/* A bundle as a C header: gcc and clang compile it without a warning, and a program of nothing but
 * the header and the driver's stand-in resolves and launches as the library does. */
#include "base/file.h"
#include "base/proc.h"
#include "bundle/bundle.h"
#include "bundle/header/c_header.h"
#include "tests/bundle/sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COMPILE_SECONDS 100

static const bundle_number at_64[] = {{"N", false, 64}};
static const bundle_number at_1024[] = {{"N", false, 1024}};

/* The variant is the faster at 64, the start at 1024, and the baseline for the A100. */
static void fill(sample *s, bundle_case cases[4], bundle_variant *start) {
    sample_fill(s);
    cases[0] = (bundle_case){"small", "search", at_64, 1, 50, 50, 50, 100, 0, 0, 0};
    cases[1] = (bundle_case){"large", "held-out", at_1024, 1, 90, 90, 90, 100, 0, 0, 0};
    cases[2] = (bundle_case){"small", "search", at_64, 1, 70, 70, 70, 100, 0, 0, 0};
    cases[3] = (bundle_case){"large", "held-out", at_1024, 1, 80, 80, 80, 100, 0, 0, 0};
    s->variant.cases = cases;
    *start = s->variant;
    start->cases = cases + 2;
    start->start = "hand";
    start->ptx = SAMPLE_BASE_PTX;
    s->kernel.starts = start;
    s->kernel.start_count = 1;
}

static const char program[] =
    "#include \"kernels.h\"\n#include <stdio.h>\n"
    "typedef struct CUctx_st *CUcontext;\n"
    "int cuInit(unsigned);\nint cuCtxCreate_v2(CUcontext *, unsigned, int);\n"
    "int cuMemAlloc_v2(CUdeviceptr *, size_t);\n"
    "int cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);\n"
    "int cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);\n"
    "static int is(const evoke_h_variant *v, int role) { return v != NULL && v->role == role; }\n"
    "int main(void) {\n"
    "    const add_shape small = {64}, large = {1024}, odd = {96}, none = {0};\n"
    "    const add_shape huge = {INT64_MAX};\n"
    "    const char *gpu = \"NVIDIA H200 SXM 141GB (modelled)\";\n"
    "    float x[1024], y[1024];\n"
    "    CUcontext context; CUmodule module; CUfunction f; CUdeviceptr a, b;\n"
    "    evoke_h_geometry at;\n"
    "    if (!is(add_resolve(gpu, 90, 132, &small), EVOKE_H_VARIANT)) return 1;\n"
    "    if (!is(add_resolve(gpu, 90, 132, &large), EVOKE_H_START)) return 2;\n"
    "    if (!is(add_resolve(gpu, 90, 132, &odd), EVOKE_H_UNTUNED)) return 3;\n"
    "    if (!is(add_resolve(NULL, 80, 108, &small), EVOKE_H_VARIANT)) return 4;\n"
    "    if (add_resolve(NULL, 60, 56, &small) != NULL) return 5;\n"
    "    const evoke_h_variant *v = add_resolve(gpu, 90, 132, &large);\n"
    "    if (add_geometry(v, &large, &at) != NULL || at.grid[0] != 16 || at.block[0] != 64 ||\n"
    "        at.grid[2] != 1 || at.shared_bytes != 0) return 6;\n"
    "    if (add_geometry(v, &none, &at) == NULL || add_geometry(v, &huge, &at) == NULL) return "
    "7;\n"
    "    for (int i = 0; i < 1024; i++) x[i] = (float)i;\n"
    "    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&a, sizeof x) ||\n"
    "        cuMemAlloc_v2(&b, sizeof y) || cuMemcpyHtoD_v2(a, x, sizeof x)) return 8;\n"
    "    const char *why = evoke_h_load(v, &module, &f);\n"
    "    if (why == NULL) why = add_launch(v, f, &large, a, b, NULL);\n"
    "    if (why != NULL) { puts(why); return 9; }\n"
    "    if (cuMemcpyDtoH_v2(y, b, sizeof y)) return 10;\n"
    "    for (int i = 0; i < 1024; i++) if (y[i] != 2 * x[i]) return 11;\n"
    "    if (add_launch(v, f, &large, a + 2, b, NULL) == NULL) return 12;\n"
    "    if (add_launch(v, f, &huge, a, b, NULL) == NULL) return 13;\n"
    "    return 0;\n}\n";

/* The same kernel, whose numbers are fields of a struct. */
static const char struct_program[] =
    "#include \"kernels.h\"\n#include <stdio.h>\n"
    "typedef struct CUctx_st *CUcontext;\n"
    "int cuInit(unsigned);\nint cuCtxCreate_v2(CUcontext *, unsigned, int);\n"
    "int cuMemAlloc_v2(CUdeviceptr *, size_t);\n"
    "int cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);\n"
    "int cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);\n"
    "int main(void) {\n"
    "    const add_shape shape = {100};\n"
    "    float x[100], y[100] = {0};\n"
    "    CUcontext context; CUmodule module; CUfunction f; CUdeviceptr a, b;\n"
    "    for (int i = 0; i < 100; i++) x[i] = (float)i;\n"
    "    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&a, sizeof x) ||\n"
    "        cuMemAlloc_v2(&b, sizeof y) || cuMemcpyHtoD_v2(a, x, sizeof x) ||\n"
    "        cuMemcpyHtoD_v2(b, y, sizeof y)) return 1;\n"
    "    const evoke_h_variant *v = add_resolve(NULL, 90, 132, &shape);\n"
    "    const char *why = v == NULL ? \"no variant\" : evoke_h_load(v, &module, &f);\n"
    "    if (why == NULL) why = add_launch(v, f, &shape, a, b, NULL);\n"
    "    if (why != NULL) { puts(why); return 2; }\n"
    "    if (cuMemcpyDtoH_v2(y, b, sizeof y)) return 3;\n"
    "    for (int i = 0; i < 100; i++) if (y[i] != (i < DONE ? 2 * x[i] : 0)) return 4;\n"
    "    return 0;\n}\n";

/* The count has the name of the shape's number, and another value: the shape's name is the shape's
 * number in all expressions, and the kernel gets the argument's value. */
static const bundle_argument named_as_the_shape[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"y", "out", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"N", "scalar", "s32", "N - 50", 0, false, 0, 0, NULL, NULL, false},
    {"scale", "scalar", "f32", "N / 50", 0, false, 0, 0, NULL, NULL, false}};

static void write_text(const char *name, const char *text) {
    ev_error err = {0};
    if (ev_file_write(sample_path(name), text, strlen(text), &err) != EV_OK)
        fail_msg("%s", err.text);
}

static void write_header(const bundle_content *content, const char *name) {
    ev_error err = {0};
    bundle *b = NULL;
    ev_str text = EV_STR_EMPTY;
    if (bundle_write(sample_path("b.tar"), content, &err) != EV_OK ||
        bundle_open(sample_path("b.tar"), &b, &err) != EV_OK ||
        c_header_make(b, &text, &err) != EV_OK)
        fail_msg("%s", err.text);
    write_text(name, ev_str_text(&text));
    ev_str_free(&text);
    bundle_close(b);
}

/* The language and compiler by turns. 0: it compiled; with `run`, it ran to its end. */
static int compile(const char *compiler, const char *source, bool run) {
    char line[1500];
    (void)snprintf(line, sizeof line,
                   "cd '%s' && %s -Wall -Wextra -Werror %s -o p -L\"$LD_LIBRARY_PATH\" "
                   "-lcuda -lm%s",
                   sample_path("."), compiler, source, run ? " && ./p" : "");
    const char *const shell[] = {"sh", "-c", line, NULL};
    ev_proc_result result = {0};
    ev_error err = {0};
    if (ev_proc_run(shell, NULL, COMPILE_SECONDS, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    int code = result.exit_code;
    if (code != 0)
        print_error("%s%s", ev_str_text(&result.out), ev_str_text(&result.err));
    ev_proc_result_free(&result);
    return code;
}

static void compilers_take_it_and_it_runs(void **state) {
    (void)state;
    static const char *const compilers[] = {"gcc -std=c11 -O1", "clang-19 -std=c11 -O1"};
    sample s;
    bundle_case cases[4];
    bundle_variant start;
    fill(&s, cases, &start);
    write_header(&s.content, "kernels.h");
    write_text("main.c", program);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(compile(compilers[i], "main.c", true), 0);
    sample_use_struct(&s);
    s.kernel.start_count = 0;
    write_header(&s.content, "kernels.h");
    write_text("struct.c", struct_program);
    assert_int_equal(compile(compilers[0], "-DDONE=100 struct.c", true), 0);
}

/* A search may promote nothing: the kernel then has its baseline alone, and the shape is that
 * one's. */
static void a_baseline_alone_will_do(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    s.kernel.variant_count = 0;
    write_header(&s.content, "kernels.h");
    write_text("struct.c", struct_program);
    assert_int_equal(compile("gcc -std=c11", "-DDONE=100 struct.c", true), 0);
}

static void a_scalar_may_be_named_as_the_shape(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    s.kernel.arguments = named_as_the_shape;
    write_header(&s.content, "kernels.h");
    write_text("struct.c", struct_program);
    assert_int_equal(compile("gcc -std=c11", "-DDONE=50 struct.c", true), 0);
}

/* The variant is wrong on an H100, and right on its own H200: a header cannot tell them apart. */
static void what_is_wrong_somewhere_is_left_out(void **state) {
    (void)state;
    static const char *const gpus[] = {"h100", "h200", "a100"};
    static const bundle_verdict verdicts[] = {BUNDLE_VERDICT_WRONG, BUNDLE_VERDICT_SLOWER,
                                              BUNDLE_VERDICT_SLOWER};
    for (size_t i = 0; i < 3; i++) {
        const bundle_qualified both[] = {
            {.gpu_id = gpus[i],
             .gpu_name = gpus[i],
             .driver = "",
             .verdict = verdicts[i],
             .reason = "no"},
            {.gpu_id = "b200", .gpu_name = "b200", .driver = "", .reason = ""}};
        ev_arena *arena = ev_arena_new();
        ev_error err = {0};
        sample s;
        sample_fill(&s);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(bundle_qualify(arena, &s.variant, &both[k], &err), EV_OK);
        write_header(&s.content, "kernels.h");
        char *text = NULL;
        size_t bytes = 0;
        assert_int_equal(ev_file_read(sample_path("kernels.h"), &text, &bytes, &err), EV_OK);
        ev_sha256 tuned = ev_sha256_of(SAMPLE_PTX, strlen(SAMPLE_PTX));
        ev_sha256 base = ev_sha256_of(SAMPLE_BASE_PTX, strlen(SAMPLE_BASE_PTX));
        assert_int_equal(strstr(text, tuned.hex) != NULL, i == 2);
        assert_non_null(strstr(text, base.hex));
        free(text);
        ev_arena_free(arena);
    }
}

/* Each expression, in the header and by the library's own evaluation. */
static void expressions_mean_the_same(void **state) {
    (void)state;
    static const char *const texts[] = {"1 + 2 * 3",
                                        "(1 + 2) * 3",
                                        "N - 3 - 2",
                                        "100 / 7 % 5",
                                        "ceil_div(N, 7)",
                                        "ceil_div(0 - 7, 2)",
                                        "min(N, 5) + max(3, N)",
                                        "pow(2, 10)",
                                        "-N + 1000",
                                        "1 - -1",
                                        "N < 65",
                                        "N <= 63",
                                        "N == 64",
                                        "(N != 64) + 1",
                                        "div(N, 3) >= 21",
                                        "N * 0.5",
                                        "pow(2, 0 - 1) * N",
                                        "010 + 1",
                                        "N / 0",
                                        "9223372036854775807 + N",
                                        "pow(3, 50)",
                                        "1.5e3 / N",
                                        ".5 * N",
                                        "min(1.5, N)"};
    static const expr_name row = {"N", {false, 64, 64}};
    static const expr_scope scope = {&row, 1};
    static const char *const name = "N";
    static const expr_names names = {&name, 1};
    ev_str text = EV_STR_EMPTY;
    ev_error err = {0};
    for (size_t i = 0; c_header_fixed[i] != NULL; i++)
        ev_str_printf(&text, "%s\n", c_header_fixed[i]);
    ev_str_append(&text, "int main(void) {\n    const evoke_h_value v_N = evoke_h_whole(64);\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expr_value value = expr_of_whole(0);
        ev_str_append(&text, "    {\n        int bad = 0;\n        evoke_h_value r = ");
        if (c_header_expr(texts[i], &names, &text, &err) != EV_OK)
            fail_msg("%s", err.text);
        if (expr_eval(texts[i], &scope, &value, &err) == EV_OK)
            ev_str_printf(&text, ";\n        if (bad || r.is_real != %d || r.real != %.17g)",
                          value.is_real, value.real);
        else
            ev_str_append(&text, ";\n        (void)r;\n        if (!bad)");
        ev_str_printf(&text, "\n            return %zu;\n    }\n", i + 1);
    }
    ev_str_append(&text, "    return 0;\n}\n");
    write_text("expressions.c", ev_str_text(&text));
    ev_str_free(&text);
    assert_int_equal(compile("gcc -std=c11", "expressions.c", true), 0);
    assert_int_equal(c_header_expr("M + 1", &names, &text, &err), EV_BAD);
    assert_int_equal(c_header_expr("N +", &names, &text, &err), EV_BAD);
    ev_str_free(&text);
}

/* 16-bit floats have the same bits as in a launch by the library. */
static void halves_mean_the_same(void **state) {
    (void)state;
    static const double values[] = {0,          -0.0,        1,         -1.5,     0.1,
                                    65504,      65519.99,    65520,     -65536,   0x1p-14,
                                    0x1p-24,    -0x1.8p-24,  0x1p-25,   0x1p-30,  1.00048828125,
                                    1.00390625, 1.01171875,  0x1p-126,  0x1p-133, -0x1.8p-134,
                                    0x1.fep127, 0x1.ff8p127, 1.0 / 3.0, 1e300};
    ev_str text = EV_STR_EMPTY;
    for (size_t i = 0; c_header_fixed[i] != NULL; i++)
        ev_str_printf(&text, "%s\n", c_header_fixed[i]);
    ev_str_append(&text, "int main(void) {\n    int bad = 0;\n");
    for (size_t i = 0; i < 2 * sizeof values / sizeof values[0]; i++) {
        ev_type type = i % 2 ? EV_BF16 : EV_F16;
        uint16_t bits = 0;
        ev_type_set(type, &bits, 0, values[i / 2]);
        ev_str_printf(&text, "    bad = 0;\n    if (evoke_h_half(%a, %d, &bad) != %u && !bad)\n",
                      values[i / 2], i % 2 ? 7 : 10, bits);
        ev_str_printf(&text, "        return %zu;\n    if (bad != %d)\n        return %zu;\n",
                      i + 1, isinf(ev_type_get(type, &bits, 0)) != 0, i + 101);
    }
    ev_str_append(&text, "    return 0;\n}\n");
    write_text("halves.c", ev_str_text(&text));
    ev_str_free(&text);
    assert_int_equal(compile("gcc -std=c11", "halves.c", true), 0);
}

static void what_c_cannot_say_is_refused(void **state) {
    (void)state;
    static const bundle_argument word[] = {
        {"int", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false}};
    static const bundle_argument longer[] = {{"a23456789_123456789_123456789_123456789_123456789_"
                                              "123456789_123456789_123456789_123456789_"
                                              "123456789.n",
                                              "scalar", "s32", "1", 0, true, 0, 4, NULL, NULL,
                                              false}};
    static const bundle_argument equal[] = {
        {"a_b.c", "scalar", "s32", "1", 0, true, 0, 4, NULL, NULL, false},
        {"a.b_c", "scalar", "s32", "1", 0, true, 0, 4, NULL, NULL, false}};
    static const struct {
        const bundle_argument *arguments;
        size_t count;
        const char *name, *words;
    } rows[] = {{word, 1, "add", "'int' is no name in C"},
                {longer, 1, "add", "has more than 95 letters"},
                {equal, 2, "add", "a_b.c and the argument a.b_c have one name in C"},
                {word, 0, "while", "'while' is no name in C"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sample s;
        bundle *b = NULL;
        ev_error err = {0};
        ev_str text = EV_STR_EMPTY;
        sample_fill(&s);
        s.kernel.arguments = rows[i].arguments;
        s.kernel.argument_count = rows[i].count;
        s.kernel.name = rows[i].name;
        assert_int_equal(bundle_write(sample_path("r"), &s.content, &err), EV_OK);
        assert_int_equal(bundle_open(sample_path("r"), &b, &err), EV_OK);
        if (c_header_make(b, &text, &err) != EV_BAD || strstr(err.text, rows[i].words) == NULL)
            fail_msg("'%s' is not in: %s", rows[i].words, err.text);
        ev_str_free(&text);
        bundle_close(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compilers_take_it_and_it_runs),
        cmocka_unit_test(a_baseline_alone_will_do),
        cmocka_unit_test(a_scalar_may_be_named_as_the_shape),
        cmocka_unit_test(what_is_wrong_somewhere_is_left_out),
        cmocka_unit_test(expressions_mean_the_same),
        cmocka_unit_test(halves_mean_the_same),
        cmocka_unit_test(what_c_cannot_say_is_refused),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
