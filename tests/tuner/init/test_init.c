/* evoke init on plain CUDA files of different style: the tasks check without an edit by hand, and
 * what no task can have is refused by name. */
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Makes the task of a source in the folder of that name; the file's text is the caller's. */
static char *make(const char *source, const char *kernel, const char *name) {
    char path[128], json[128];
    snprintf(path, sizeof path, "tests/tuner/init/sources/%s", source);
    snprintf(json, sizeof json, "%s/task.json", name);
    ev_proc_result r = kernel != NULL ? CLI_RUN("init", path, kernel, "--out", cli_path(name))
                                      : CLI_RUN("init", path, "--out", cli_path(name));
    cli_expect(&r, 0);
    assert_non_null(strstr(r.out.data, "evoke check"));
    ev_proc_result_free(&r);
    return cli_read(json);
}

static void must_have(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fail_msg("there is no '%s' in:\n%s", part, text);
}

/* A source, and what its task.json must have. */
typedef struct init_row {
    const char *source, *kernel;
    const char *parts[3];
} init_row;

/* A task of each file passes evoke check, on every split. */
static void become_tasks_that_check(const init_row *rows, size_t count, const char *folder) {
    for (size_t i = 0; i < count; i++) {
        char name[32], json[64];
        snprintf(name, sizeof name, "%s%zu", folder, i);
        snprintf(json, sizeof json, "%s/task.json", name);
        char *text = make(rows[i].source, rows[i].kernel, name);
        for (size_t k = 0; k < 3 && rows[i].parts[k] != NULL; k++)
            must_have(text, rows[i].parts[k]);
        ev_proc_result r = CLI_RUN("check", cli_path(json));
        if (r.exit_code != 0)
            fail_msg("%s: %s\n%s", rows[i].source, r.out.data, text);
        ev_proc_result_free(&r);
        free(text);
    }
}

static void plain_files_become_tasks_that_check(void **state) {
    (void)state;
    static const init_row rows[] = {
        {"saxpy.cu",
         NULL,
         {"\"grid\": \"(n + 255) / 256\"",
          "\"kind\": \"inout\", \"type\": \"f32\", \"count\": \"n\"",
          "\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}"}},
        {"matmul.cu",
         NULL,
         {"\"grid\": [\"(N + TILE - 1) / TILE\", \"(M + TILE - 1) / TILE\"]",
          "\"name\": \"TILE\", \"default\": 16, \"values\": [4, 8, 16, 32]",
          "\"name\": \"B\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"N * K\""}},
        {"reduce.cu", NULL, {"\"shared\"", "\"kind\": \"out\"", "ceil_div(n, 256)"}},
        {"templated.cu", NULL, {"\"type\": \"u64\"", "\"block\": \"128\"", "\"count\": \"count\""}},
        {"stencil.cu", NULL, {"\"f64\"", "\"ceil_div(nx, 32)\"", "\"count\": \"nx * ny\""}},
        {"nbody.cu", NULL, {"\"count\": \"3 * count\"", "\"4 * count\"", "\"block\": \"128\""}},
        {"rows.cu", "softmax", {"\"grid\": \"rows\"", "\"rows\": ", "\"block\": \"256\""}},
        {"transpose.cu", NULL, {"\"nx / 32\"", "\"nx\": 32", "\"ny\": 64"}},
        {"clib_types.cu", NULL, {"\"name\": \"by\", \"kind\": \"scalar\", \"type\": \"s64\""}},
        {"particles.cu", NULL, {"\"7 * count\"", "\"inout\"", "\"block\": \"64\""}},
        {"convolution.cu",
         NULL,
         {"\"BLOCK_X\", \"default\": 16", "\"BLOCK_Y\"", "(2 * radius + 1)"}},
        {"structarg.cu",
         NULL,
         {"\"kind\": \"struct\", \"bytes\": 12", "\"name\": \"height\"", "\"value\": 0.5"}},
        {"mixed.cu",
         NULL,
         {"\"name\": \"bodies\", \"kind\": \"inout\", \"count\": \"n\", \"stride\": 64",
          "{\"name\": \"box[1].low\", \"type\": \"f32\", \"offset\": 40, \"count\": 3, \"data\"",
          "\"name\": \"found\", \"kind\": \"out\", \"count\": \"n\", \"stride\": 8, \"fields\": [\n"
          "      {\"name\": \"kind\", \"type\": \"u8\", \"offset\": 0},\n"}},
        {"matrices.cu",
         NULL,
         {"\"name\": \"weight\", \"kind\": \"struct\", \"bytes\": 12",
          "\"name\": \"to\", \"kind\": \"out\"", "\"value\": \"b_width\""}},
    };
    become_tasks_that_check(rows, sizeof rows / sizeof rows[0], "plain");
}

/* Accesses wider than an element, outputs of two precisions, an enumerator in the launch, shuffles
 * of 64 bits. */
static void halves_enumerators_and_doubles(void **state) {
    (void)state;
    static const init_row rows[] = {
        {"haxpy.cu",
         NULL,
         {"\"name\": \"x\", \"kind\": \"in\", \"type\": \"f16\", \"count\": \"n\"",
          "\"entry\": \"haxpy<4>\"", "\"type\": \"f16\", \"value\": 1.5"}},
        {"scaleboth.cu",
         NULL,
         {"\"type\": \"f32\", \"count\": \"n\", \"tolerance\": {\"relative_l2\": 2e-6}}",
          "\"type\": \"f16\", \"count\": \"n\"}", "\"tolerance\": {\"relative_l2\": 2e-3},\n"}},
        {"rowbins.cu",
         NULL,
         {"\"shared\": \"(64 * 4)\"", "\"shape\": {\"width\": 1000, \"height\": 600}",
          "\"count\": \"height\""}},
        {"warprows.cu",
         NULL,
         {"\"type\": \"f64\"", "\"entry\": \"rows::norms<double>\"", "\"count\": \"count\""}},
    };
    become_tasks_that_check(rows, sizeof rows / sizeof rows[0], "wide");
}

/* Lengths of four sizes, of a number in the kernel, of a size that the launch says, and of one that
 * has the value of the block. An output that is too long would be "inout". */
static void lengths_are_made_of_the_sizes(void **state) {
    (void)state;
    static const init_row rows[] = {
        {"depthwise.cu",
         NULL,
         {"\"type\": \"f32\", \"count\": \"9 * channels\"",
          "\"kind\": \"out\", \"type\": \"f32\", \"count\": \"batch * channels * height * width\"",
          "{\"batch\": 4, \"channels\": 32, \"height\": 28, \"width\": 30}"}},
        {"scores.cu",
         NULL,
         {"\"name\": \"k\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"heads * length * "
          "depth\"",
          "\"kind\": \"out\", \"type\": \"f32\", \"count\": \"heads * length * length\"",
          "{\"heads\": 8, \"length\": 160, \"depth\": 64}"}},
        {"groupnorm.cu",
         NULL,
         {"\"name\": \"gain\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"channels\"",
          "\"count\": \"batch * channels * area\"",
          "{\"batch\": 4, \"channels\": 256, \"area\": 512, \"groups\": 32}"}},
    };
    become_tasks_that_check(rows, sizeof rows / sizeof rows[0], "lengths");
}

/* The largest size of a launch that a check cannot run is halved; the other keeps its value. */
static void sizes_of_the_launch_are_halved(void **state) {
    (void)state;
    char *text = make("rowsums.cu", NULL, "halved");
    const char *large = strstr(text, "\"name\": \"large\"");
    assert_non_null(large);
    const char *rows = strstr(large, "\"rows\": ");
    assert_non_null(rows);
    long count = strtol(rows + strlen("\"rows\": "), NULL, 10);
    if (count <= 1000 || count >= 65536 || 65536 % count != 0)
        fail_msg("there are %ld rows in place of a half of 65536, or a half of that", count);
    must_have(large, "\"columns\": 7000");
    free(text);
}

/* The numbers of the source's launch are the values of the cases. */
static void the_launch_says_the_values(void **state) {
    (void)state;
    static const init_row rows[] = {
        /* A count of turns and a seed stay; fewer turns where the check would take too long. */
        {"montecarlo.cu",
         NULL,
         {"\"use\": \"time\", \"shape\": {\"trials\": 1000, \"seed\": 42}",
          "\"use\": \"check\", \"shape\": {\"trials\": 3, \"seed\": 42}"}},
        /* Powers of two of a loop around the launch. */
        {"bitonic.cu", NULL, {"\"j\": 1, \"k\": 2"}},
        {"mandelbrot.cu",
         NULL,
         {"\"value\": 0.00375", "\"width\": 800, \"height\": 600", "\"max_iter\": 4096"}},
        /* A literal of the grid is the size that has its value. */
        {"axpy.cu",
         NULL,
         {"\"grid\": \"(n + 128 - 1) / 128\"", "\"count\": \"n * incy\"",
          "\"n\": 100000, \"incx\": 3, \"incy\": 2"}},
        /* Fields of a struct; the pitch stays above the width. */
        {"pitch.cu",
         NULL,
         {"\"value\": 1.5", "{\"width\": 640, \"height\": 480, \"pitch\": 704}", "height / 8"}},
        {"prescan.cu", NULL, {"\"block\": \"n\"", "\"n\": 1024"}},
        /* The template arguments of the function that launches. */
        {"launcher.cu", NULL, {"row_softmax<__half, 128>", "\"value\": 0.7"}},
        {"letters.cu", NULL, {"\"value\": 101", "\"count\": \"length\""}},
        /* What the grid is divided by is no size. */
        {"items.cu",
         NULL,
         {"\"value\": -10", "\"hi\": 100", "\"grid\": \"(n + 256 * 4 - 1) / (256 * 4)\""}},
        {"life.cu", NULL, {"\"high\": 1}", "\"w\": 1024, \"h\": 1024"}},
    };
    become_tasks_that_check(rows, sizeof rows / sizeof rows[0], "said");
}

/* The instance of a template is the entry; the source is left as it is. */
static void a_template_becomes_the_entry(void **state) {
    (void)state;
    free(make("templated.cu", "activate<double, 2>", "instance"));
    char *copy = cli_read("instance/templated.cu");
    assert_null(strstr(copy, "activate<double, 2>"));
    free(copy);
    char *text = cli_read("instance/task.json");
    must_have(text, "\"type\": \"f64\"");
    must_have(text, "\"entry\": \"ops::activate<double, 2>\"");
    free(text);
}

/* Each number of a struct is a field, at its place. */
static void structs_are_laid_out(void **state) {
    (void)state;
    cli_write("laid.cu",
              "struct __align__(16) Inner { char tag; double weight; static const int k = 4; };\n"
              "struct Outer {\n    short first;\n    Inner inner;\n    float4 place;\n"
              "    int row[2], n;\n    const float *x;\n    float *__restrict__ y;\n"
              "    __device__ float at(int i) const { return x[i] * row[1]; }\n};\n"
              "__global__ void k(const Outer o, unsigned char flag) {\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < o.n) o.y[i] = o.at(i) * o.place.z + o.inner.weight + flag;\n}\n");
    ev_proc_result r = CLI_RUN("init", cli_path("laid.cu"), "--out", cli_path("laid"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    char *text = cli_read("laid/task.json");
    static const char *const parts[] = {
        "\"kind\": \"struct\", \"bytes\": 80",
        "\"name\": \"inner_tag\", \"kind\": \"scalar\", \"type\": \"s8\", \"value\"",
        "\"name\": \"inner_weight\"",
        "\"name\": \"place_w\"",
        "\"name\": \"row_1\"",
        "\"name\": \"y\", \"kind\": \"out\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        must_have(text, parts[i]);
    free(text);
    r = CLI_RUN("check", cli_path("laid/task.json"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* Counts of a histogram's bins are whole numbers that a run showed. */
static void atomics_are_read_and_written(void **state) {
    (void)state;
    char *text = make("histogram.cu", NULL, "histogram");
    must_have(text,
              "\"name\": \"bins\", \"kind\": \"inout\", \"type\": \"u32\", \"count\": \"16\"");
    must_have(text, "\"grid\": \"min((n + BLOCK_SIZE - 1) / BLOCK_SIZE, 1024)\"");
    free(text);
    /* A sample of blocks would make a part of each sum, so timed cases run all of them. */
    ev_proc_result r = CLI_RUN("check", cli_path("histogram/task.json"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static void what_no_task_has_is_refused(void **state) {
    (void)state;
    static const char *const structs[] = {
        "struct P { float *x; int id; };\n",
        "struct P { float x; unsigned a : 3, b : 5; };\n",
        "struct B { int id; }; struct P : B { float x; };\n",
        "struct __attribute__((packed)) P { char k; float x; };\n",
        "struct P { char k; float x; } __attribute__((packed));\n",
        "#pragma pack(push, 1)\nstruct P { char k; float x; };\n",
    };
    for (size_t i = 0; i < sizeof structs / sizeof structs[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s__global__ void k(P *p) { p[0].id = 1; }\n", structs[i]);
        cli_write("mixed.cu", text);
        cli_expect_error(CLI_RUN("init", cli_path("mixed.cu"), "--out", cli_path("a")), 2,
                         i + 1 < sizeof structs / sizeof structs[0]
                             ? "mixed.cu:2: p has the type 'P'"
                             : "mixed.cu:3: p has the type 'P'");
    }
    cli_expect_error(CLI_RUN("init", "tests/tuner/init/sources/rows.cu", "--out", cli_path("a")), 2,
                     "has several kernels; name one: fill, softmax");
    cli_expect_error(
        CLI_RUN("init", "tests/tuner/init/sources/rows.cu", "sofmax", "--out", cli_path("a")), 2,
        "no kernel \"sofmax\"; it has: fill, softmax");
    cli_expect_error(CLI_RUN("init", "tests/tuner/init/sources/absent.cu"), 2, "absent.cu");
    cli_expect_error(CLI_RUN("init", "tests/tuner/init/sources/saxpy.cu", "--out", cli_folder()), 2,
                     "exists already; give another folder by --out DIR");
    cli_write("host.cu", "int main() { return 0; }\n");
    cli_expect_error(CLI_RUN("init", cli_path("host.cu"), "--out", cli_path("a")), 2,
                     "no kernel (a __global__ function with a body)");
    cli_write("table.cu", "__global__ void k(float **rows) { rows[0][0] = 1; }\n");
    cli_expect_error(CLI_RUN("init", cli_path("table.cu"), "--out", cli_path("a")), 2,
                     "rows is a pointer to pointers");
    cli_write("tex.cu",
              "__global__ void k(float *y,\n    cudaTextureObject_t image) { y[0] = 1; }\n");
    cli_expect_error(CLI_RUN("init", cli_path("tex.cu"), "--out", cli_path("a")), 2,
                     "tex.cu:2: image is a texture, and Evoke has neither textures nor surfaces");
    cli_write("ref.cu", "__constant__ cudaTextureObject_t image;\n"
                        "__global__ void k(float *y) { y[0] = 1; }\n");
    ev_proc_result r = CLI_RUN("init", cli_path("ref.cu"), "--out", cli_path("a"));
    assert_int_equal(r.exit_code, 2);
    must_have(r.err.data, "ref.cu:1:");
    must_have(r.err.data, "a task has no textures and no surfaces: pass a const pointer");
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("a/task.json"));
    assert_int_equal(r.exit_code, 2); /* nothing was left */
    ev_proc_result_free(&r);
}

/* A source that does not compile leaves no folder behind, and clang's words are shown. */
static void clang_has_the_last_word(void **state) {
    (void)state;
    cli_write("wrong.cu", "#include <cuda_fp8.h>\n__global__ void k(float *x, int n) {\n"
                          "    if (n > 0) x[threadIdx.x] = curand(n);\n}\n");
    ev_proc_result r = CLI_RUN("init", cli_path("wrong.cu"), "--out", cli_path("wrong"));
    assert_int_equal(r.exit_code, 2);
    must_have(r.err.data, "<cuda_fp8.h> is not supported");
    must_have(r.err.data, cli_path("wrong.cu:3:")); /* the user's file, not a copy */
    assert_null(strstr(r.err.data, ".new"));
    ev_proc_result_free(&r);
    /* A function that Evoke lacks, never one of floats in its place. */
    cli_write("wide.cu",
              "#include <cmath>\n__global__ void k(double *x, int n) {\n"
              "    if (threadIdx.x < n) x[threadIdx.x] = std::asinh(x[threadIdx.x]);\n}\n");
    r = CLI_RUN("init", cli_path("wide.cu"), "--out", cli_path("wide"));
    assert_int_equal(r.exit_code, 2);
    must_have(r.err.data, "asinh");
    must_have(r.err.data, "wide.cu:3:");
    ev_proc_result_free(&r);
    /* cuRAND: Philox is there, the seeds of XORWOW are not. */
    cli_write("draw.cu", "#include <curand_kernel.h>\n__global__ void k(float *x, int n) {\n"
                         "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "    curandStatePhilox4_32_10_t s;\n    curand_init(7, i, 0, &s);\n"
                         "    if (i < n) x[i] = curand_normal(&s);\n}\n");
    r = CLI_RUN("init", cli_path("draw.cu"), "--out", cli_path("draw"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_copy_changed("draw.cu", "weyl.cu", "curandStatePhilox4_32_10_t", "curandState");
    r = CLI_RUN("init", cli_path("weyl.cu"), "--out", cli_path("weyl"));
    assert_int_equal(r.exit_code, 2);
    must_have(r.err.data, "weyl.cu:5:");
    must_have(r.err.data, "does not document how XORWOW's seed becomes a state");
    ev_proc_result_free(&r);
    /* Mathematics that only a macro names, and a source that names none. */
    cli_write("named.cu", "#define F(x) exp(x)\n__global__ void k(double *x, int n) {\n"
                          "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] "
                          "= F(-x[i] * x[i]);\n}\n");
    r = CLI_RUN("init", cli_path("named.cu"), "--out", cli_path("named"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_write("plain.cu", "__global__ void k(float *x, int n) {\n"
                          "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] "
                          "= expf(-x[i]) + sqrt(x[i]);\n}\n");
    r = CLI_RUN("init", cli_path("plain.cu"), "--out", cli_path("plain"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    ev_proc_result again =
        CLI_RUN("init", "tests/tuner/init/sources/saxpy.cu", "--out", cli_path("wrong"));
    cli_expect(&again, 0); /* the name is free */
    ev_proc_result_free(&again);
}

/* A kernel that no guess can run becomes a draft, with the trap and exit code 1. */
static void a_kernel_that_traps_is_a_draft(void **state) {
    (void)state;
    cli_write("race.cu", "__global__ void k(int *x, int n) { x[0] = threadIdx.x + n; }\n");
    ev_proc_result r = CLI_RUN("init", cli_path("race.cu"), "--out", cli_path("race"));
    assert_int_equal(r.exit_code, 1);
    must_have(r.out.data, "The task is a draft");
    must_have(r.out.data, "race-global");
    ev_proc_result_free(&r);
    char *text = cli_read("race/task.json");
    must_have(text, "\"name\": \"k\"");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_become_tasks_that_check),
        cmocka_unit_test(halves_enumerators_and_doubles),
        cmocka_unit_test(lengths_are_made_of_the_sizes),
        cmocka_unit_test(sizes_of_the_launch_are_halved),
        cmocka_unit_test(the_launch_says_the_values),
        cmocka_unit_test(a_template_becomes_the_entry),
        cmocka_unit_test(structs_are_laid_out),
        cmocka_unit_test(atomics_are_read_and_written),
        cmocka_unit_test(what_no_task_has_is_refused),
        cmocka_unit_test(clang_has_the_last_word),
        cmocka_unit_test(a_kernel_that_traps_is_a_draft),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
