/* The reader of CUDA C text: functions, macros, launches, and the device part. */
#include "base/source/device_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static cuda_text *read_text(const char *text) {
    ev_error err;
    cuda_text *t = NULL;
    OK(cuda_text_read(text, strlen(text), &t, &err));
    return t;
}

static const cuda_function *function_of(const cuda_text *t, const char *name) {
    for (size_t i = 0; i < t->function_count; i++) {
        if (strcmp(t->functions[i].name, name) == 0)
            return &t->functions[i];
    }
    fail_msg("no function %s", name);
    return NULL;
}

static const char source[] =
    "#include <vector> // a { in a comment\n"
    "#include \"mine.h\"\n"
    "#define TILE 16 /* threads */\n"
    "#define BOTH __host__ __device__\n"
    "#define SQUARE(x) ((x) * (x))\n"
    "struct point { float x; point() : x{0} { host(); } BOTH float get() const { return x; } };\n"
    "namespace a { namespace {\n"
    "template <typename T, int N = (1 > 0)>\n"
    "__global__ void __launch_bounds__(256, 2) scale(const T *__restrict__ x, T *y, int n) {\n"
    "    if (n < 3) { y[0] = x[0]; }\n"
    "}\n"
    "} }\n"
    "BOTH inline float twice(float v) { return 2 * v; }\n"
    "constexpr int half(int v) { return v / 2; }\n"
    "static void check(const char *what) { puts(\"} {\"); puts(R\"x(}\")x\"); char c = '}'; }\n"
    "extern \"C\" { __global__ void plain(int *p); }\n"
    "int main(int argc, char **argv) {\n"
    "#define INNER 3\n"
    "    std::vector<std::vector<int>> v(3 << 2);\n"
    "    a::scale<float, 4><<<dim3(v.size(), 2), TILE * 2, 0, stream>>>(x, y + 1, f(1, 2));\n"
    "    plain<<<1, 32>>>(p);\n"
    "}\n"
    "int last;\n";

static void functions_are_found(void **state) {
    (void)state;
    cuda_text *t = read_text(source);
    assert_true(t->is_balanced);
    const cuda_function *scale = function_of(t, "scale");
    assert_true(scale->is_kernel);
    assert_string_equal(scale->space, "a::");
    assert_string_equal(cuda_range_text(t, scale->types), "typename T, int N = (1 > 0)");
    assert_string_equal(cuda_range_text(t, scale->bounds), "256, 2");
    cuda_range parts[4];
    assert_int_equal(cuda_range_split(t, scale->params, parts, 4), 3);
    assert_string_equal(cuda_range_text(t, parts[0]), "const T *__restrict__ x");
    assert_string_equal(cuda_range_text(t, parts[2]), "int n");
    assert_true(function_of(t, "twice")->is_device);
    assert_true(function_of(t, "half")->is_device);
    assert_true(function_of(t, "get")->is_device && function_of(t, "get")->in_class);
    assert_false(function_of(t, "check")->is_device);
    assert_true(function_of(t, "plain")->is_kernel);
    assert_int_equal(function_of(t, "plain")->body.end, 0);
    assert_false(function_of(t, "main")->is_kernel || function_of(t, "main")->is_device);
    cuda_text_free(t);
}

static void macros_and_includes_are_found(void **state) {
    (void)state;
    cuda_text *t = read_text(source);
    assert_string_equal(cuda_text_macro(t, "TILE")->value, "16");
    assert_string_equal(cuda_text_macro(t, "INNER")->value, "3");
    assert_null(cuda_text_macro(t, "SQUARE"));
    assert_int_equal(t->include_count, 2);
    assert_string_equal(t->includes[0].file, "vector");
    assert_false(t->includes[0].is_quoted);
    assert_true(t->includes[1].is_quoted);
    cuda_text_free(t);
}

static void launches_are_found(void **state) {
    (void)state;
    cuda_text *t = read_text(source);
    assert_int_equal(t->launch_count, 2);
    const cuda_launch *l = &t->launches[0];
    assert_string_equal(l->kernel, "scale");
    assert_string_equal(l->within->name, "main");
    assert_string_equal(cuda_range_text(t, l->types), "float, 4");
    assert_int_equal(l->config_count, 4);
    assert_string_equal(cuda_range_text(t, l->config[0]), "dim3(v.size(), 2)");
    assert_string_equal(cuda_range_text(t, l->config[1]), "TILE * 2");
    cuda_range parts[4];
    assert_int_equal(cuda_range_split(t, l->arguments, parts, 4), 3);
    assert_string_equal(cuda_range_text(t, parts[2]), "f(1, 2)");
    assert_string_equal(t->launches[1].kernel, "plain");
    cuda_text_free(t);
}

static char *device_part(const char *text, const char *macro, bool *changed) {
    ev_error err;
    ev_str out = EV_STR_EMPTY;
    cuda_text *t = read_text(text);
    OK(cuda_device_part(t, &macro, macro != NULL, false, &out, changed, &err));
    cuda_text_free(t);
    return ev_str_take(&out);
}

static size_t lines_of(const char *text) {
    size_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* What device code needs stays at its place, and host functions go. */
static void host_functions_are_cut(void **state) {
    (void)state;
    bool changed = false;
    char *part = device_part(source, NULL, &changed);
    assert_true(changed);
    assert_int_equal(strlen(part), strlen(source));
    assert_int_equal(lines_of(part), lines_of(source));
    static const char *const kept[] = {"__launch_bounds__(256, 2) scale",
                                       "return 2 * v;",
                                       "return v / 2;",
                                       "return x;",
                                       "#define INNER 3",
                                       "int last;",
                                       "point() : x{0} {"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (strstr(part, kept[i]) == NULL ||
            strstr(part, kept[i]) - part != strstr(source, kept[i]) - source)
            fail_msg("\"%s\" is not where it was in:\n%s", kept[i], part);
    }
    static const char *const gone[] = {"main", "host()", "puts", "check", "<<<", "argc"};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        if (strstr(part, gone[i]) != NULL)
            fail_msg("\"%s\" is still in:\n%s", gone[i], part);
    }
    free(part);
}

/* A source without host code is compiled as it is. */
static void device_code_alone_is_left(void **state) {
    (void)state;
    bool changed = true;
    char *part =
        device_part("#ifndef N\n#define N 8\n#endif\n__global__ void k() {}\n", "N", &changed);
    assert_false(changed);
    free(part);
}

/* A macro makes the head of a kernel, over several lines or through another macro, or the macro
 * is another file's. */
static void functions_of_macros_stay(void **state) {
    (void)state;
    static const char *const texts[] = {
        "#define STREAM(name) \\\n    extern \"C\" __global__ void name(int *a)\nSTREAM(read) { *a "
        "= 1; "
        "}\n",
        "#define ON_GPU __device__\n#define HELPER static ON_GPU\nHELPER int twice(int v) { return "
        "2 * "
        "v; }\n",
        "KERNEL(read) { *a = 1; }\n",
        "#include \"own.h\"\nstatic ON_BOTH int twice(int v) { return 2 * v; }\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool changed = true;
        char *part = device_part(texts[i], NULL, &changed);
        assert_string_equal(part, texts[i]);
        assert_false(changed);
        free(part);
    }
}

static void set_macros_lose_their_define(void **state) {
    (void)state;
    bool changed = false;
    char *part = device_part("#define N 8\n#define N2 9\n__global__ void k() {}\n", "N", &changed);
    assert_true(changed);
    assert_null(strstr(part, "N 8"));
    assert_non_null(strstr(part, "#define N2 9"));
    free(part);
}

static void host_libraries_are_left_out(void **state) {
    (void)state;
    bool changed = false;
    char *part = device_part("#include <cublas_v2.h>\n#include <thrust/sort.h>\n#include <cmath>\n",
                             NULL, &changed);
    assert_true(changed);
    assert_string_equal(part + strspn(part, " \n"), "#include <cmath>\n");
    free(part);
}

/* A text whose brackets do not match, as by #if around one of them, is not cut. */
static void unmatched_brackets_leave_the_text(void **state) {
    (void)state;
    bool changed = true;
    static const char text[] = "#if A\nint main() {\n#else\nint other() {\n#endif\n}\n";
    char *part = device_part(text, NULL, &changed);
    assert_false(changed);
    assert_string_equal(part, text);
    free(part);
}

/* Any bytes can be read. */
static void odd_texts_are_read(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",           "<<<",      "a<<<>>>",    "\"",    "/*",         "R\"(",         "#define",
        "{",          "template", "template <", "(",     "a<b<<<1>>>", "f()",          "'",
        "#include <", "a ::",     "= {",        ": b()", "x<<<1,2>>>", "> <<<1,1>>>()"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool changed;
        char *part = device_part(texts[i], "a", &changed);
        assert_string_equal(part != NULL ? part : "", texts[i]);
        free(part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(macros_and_includes_are_found),
        cmocka_unit_test(launches_are_found),
        cmocka_unit_test(host_functions_are_cut),
        cmocka_unit_test(device_code_alone_is_left),
        cmocka_unit_test(functions_of_macros_stay),
        cmocka_unit_test(set_macros_lose_their_define),
        cmocka_unit_test(host_libraries_are_left_out),
        cmocka_unit_test(unmatched_brackets_leave_the_text),
        cmocka_unit_test(odd_texts_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
