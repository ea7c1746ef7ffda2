/* Variables that the host fills, through the binary: a task that says nothing of them is refused by
 * name, what the kernel fills itself is not, and a kernel with its data in constant memory is tuned
 * with that data. */
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

/* FOLDER/kernel.cu with `variables` before the kernel, and `value` as what it adds to 2 x. */
static void write_kernel(const char *variables, const char *value) {
    ev_str source = EV_STR_EMPTY;
    ev_str_printf(&source,
                  "#include \"evoke_cuda.h\"\n%s\n"
                  "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n"
                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                  "    if (i < n)\n"
                  "        y[i] = x[i] * 2.0f + %s;\n"
                  "}\n",
                  variables, value);
    cli_write("kernel.cu", ev_str_text(&source));
    ev_str_free(&source);
}

/* FOLDER/to.json: the task of that kernel; `symbols`: the key's text, or "". */
static void write_task(const char *to, const char *symbols) {
    ev_str all = EV_STR_EMPTY;
    ev_str_printf(&all, "%s\"starts\"", symbols);
    cli_copy_changed("task.json", "a.json", "\"oracle.c\"", "\"baseline\"");
    cli_copy_changed("a.json", "b.json", "scale.cu\"", "kernel.cu\", \"entry\": \"scale\"");
    cli_copy_changed("b.json", to, "\"starts\"", ev_str_text(&all));
    ev_str_free(&all);
}

#define TABLE                                                                                      \
    "\"symbols\": [{\"name\": \"table\", \"type\": \"f32\", \"count\": 32, \"data\": "             \
    "{\"generator\": \"normal\"}}],\n  "

/* ---- without data ---- */

static const struct {
    const char *variables, *value;
} FILLED_BY_HOST[] = {
    {"__constant__ float table[32];", "table[i % 32]"},
    {"static __constant__ float table[32];", "table[i % 32]"},
    {"extern __constant__ float table[32];", "table[i % 32]"},
    {"__constant__ float table[32] = {0.0f};", "table[i % 32]"},
    {"__device__ float table[32];", "table[i % 32]"},
    {"static __device__ float table[32];", "table[i % 32]"},
    {"extern __device__ float table[32];", "table[i % 32]"},
    {"struct two { float *at; };\n__constant__ two table;", "table.at[i % 32]"},
    {"__device__ float table[32];\n__device__ __noinline__ float get(const float *t, int i) "
     "{ return t[i]; }",
     "get(table, i % 32)"},
};

static void refuses_what_the_host_fills(void **state) {
    (void)state;
    write_task("kernel.json", "");
    for (size_t i = 0; i < sizeof FILLED_BY_HOST / sizeof FILLED_BY_HOST[0]; i++) {
        write_kernel(FILLED_BY_HOST[i].variables, FILLED_BY_HOST[i].value);
        ev_proc_result r = CLI_RUN("check", cli_path("kernel.json"));
        if (r.exit_code != 2 || strstr(ev_str_text(&r.err), "variable 'table'") == NULL ||
            strstr(ev_str_text(&r.err), "\"symbols\"") == NULL)
            fail_msg("%s: %d: %s", FILLED_BY_HOST[i].variables, r.exit_code, ev_str_text(&r.err));
        ev_proc_result_free(&r);
    }
    write_kernel(FILLED_BY_HOST[0].variables, FILLED_BY_HOST[0].value);
    cli_expect_error(CLI_RUN("check", cli_path("kernel.json")), 2,
                     "the kernel reads the __constant__ variable 'table'");
    ev_proc_result r = CLI_RUN("tune", cli_path("kernel.json"), "--evaluations", "3");
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "variable 'table'"));
    ev_proc_result_free(&r);
}

static const struct {
    const char *variables, *value;
} OF_THE_KERNEL[] = {
    {"__constant__ float table[2] = {1.0f, 2.0f};", "table[i % 2]"},
    {"static __constant__ float table[2] = {1.0f, 2.0f};", "table[i % 2]"},
    {"__device__ const float table[2] = {1.0f, 2.0f};", "table[i % 2]"},
    {"__constant__ float table[32];", "1.0f"},                           /* not read */
    {"__device__ unsigned table;", "(atomicAdd(&table, 1u) > 1000000)"}, /* a counter */
    {"static __device__ unsigned table;", "(atomicAdd(&table, 1u) > 1000000)"},
    {"__device__ float table[65536];", "(table[i] = x[i])"}, /* scratch */
    {"__device__ __constant__ float unread[4];\n__device__ float table[65536];",
     "((table[i] = 1.0f) + table[i])"},
};

static void takes_what_the_kernel_fills(void **state) {
    (void)state;
    write_task("kernel.json", "");
    for (size_t i = 0; i < sizeof OF_THE_KERNEL / sizeof OF_THE_KERNEL[0]; i++) {
        write_kernel(OF_THE_KERNEL[i].variables, OF_THE_KERNEL[i].value);
        ev_proc_result r = CLI_RUN("check", cli_path("kernel.json"));
        if (r.exit_code != 0)
            fail_msg("%s: %d: %s%s", OF_THE_KERNEL[i].variables, r.exit_code, ev_str_text(&r.err),
                     ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
}

/* ---- with data ---- */

/* y = 2 x + table, in C: so the kernel has to read the very numbers that the oracle is given. */
static const char table_oracle[] =
    "#include \"evoke_oracle.h\"\n"
    "int evoke_oracle(evoke_oracle_call *call);\n"
    "int evoke_oracle(evoke_oracle_call *call) {\n"
    "    const float *x = call->arguments[0].data, *table = call->arguments[3].data;\n"
    "    if (call->argument_count != 4)\n"
    "        return 1;\n"
    "    for (uint64_t i = 0; i < call->count; i++)\n"
    "        call->value[i] = 2.0 * x[call->first + i] + table[(call->first + i) % 32];\n"
    "    return 0;\n"
    "}\n";

/* However the source declares it, and on each device. */
static void fills_symbols(void **state) {
    (void)state;
    cli_write("table.c", table_oracle);
    write_task("t.json", TABLE);
    cli_copy_changed("t.json", "table.json", "\"baseline\"", "\"table.c\"");
    for (size_t i = 0; i < 7; i++) {
        write_kernel(FILLED_BY_HOST[i].variables, FILLED_BY_HOST[i].value);
        ev_proc_result r =
            CLI_RUN("check", cli_path("table.json"), "--device", i % 2 ? "cuda:0" : "vm:h200");
        if (r.exit_code != 0)
            fail_msg("%s: %d: %s%s", FILLED_BY_HOST[i].variables, r.exit_code, ev_str_text(&r.err),
                     ev_str_text(&r.out));
        ev_proc_result_free(&r);
    }
    write_kernel("__constant__ float table[16];", "table[i % 16]");
    ev_proc_result r = CLI_RUN("check", cli_path("table.json"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "the variable 'table' has 64 bytes"));
    ev_proc_result_free(&r);
}

static void mistakes_in_symbols(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } rows[] = {
        {"\"f32\", \"count\": 32", "\"f23\", \"count\": 32", "f23"},
        {"\"count\": 32", "\"cuont\": 32", "did you mean 'count'"},
        {"\"count\": 32", "\"count\": \"m\"", "unknown name"},
        {"\"name\": \"table\"", "\"name\": \"x\"", "a second argument is named x"},
        {"\"name\": \"table\"", "\"name\": \"3\"", "no name"},
        {"\"name\": \"table\"", "\"name\": \"tabel\"", "variable 'table'"},
    };
    write_kernel("__constant__ float table[32];", "table[i % 32]");
    write_task("t.json", TABLE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("t.json", "bad.json", rows[i].old, rows[i].new);
        cli_expect_error(CLI_RUN("check", cli_path("bad.json")), 2, rows[i].words);
    }
}

/* ---- a search ---- */

/* The second barrier is of no use, so there is something to win. */
static const char nearest_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "__constant__ float centres[32];\n"
    "extern \"C\" __global__ void nearest(const float *x, float *y, int n) {\n"
    "    __shared__ float part[128];\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    part[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
    "    __syncthreads();\n"
    "    __syncthreads();\n"
    "    float best = 3e38f;\n"
    "    int at = 0;\n"
    "    for (int k = 0; k < 8 && i < n; k++) {\n"
    "        float t = part[threadIdx.x] - centres[k * 4], d = t * t;\n"
    "        for (int f = 1; f < 4; f++) {\n"
    "            t = x[f * n + i] - centres[k * 4 + f];\n"
    "            d += t * t;\n"
    "        }\n"
    "        if (d < best) {\n"
    "            best = d;\n"
    "            at = k;\n"
    "        }\n"
    "    }\n"
    "    if (i < n)\n"
    "        y[i] = (float)at;\n"
    "}\n";

static void write_nearest(void) {
    cli_write("nearest.cu", nearest_cu);
    cli_copy_changed("task.json", "a.json", "\"oracle.c\"", "\"baseline\"");
    cli_copy_changed("a.json", "b.json", "scale.cu\"", "nearest.cu\", \"entry\": \"nearest\"");
    cli_copy_changed("b.json", "c.json", "\"count\": \"n\"", "\"count\": \"4 * n\"");
    cli_copy_changed("c.json", "nearest.json", "\"starts\"",
                     "\"symbols\": [{\"name\": \"centres\", \"type\": \"f32\", \"count\": \"32\", "
                     "\"data\": {\"generator\": \"normal\"}}],\n  \"starts\"");
}

/* The winner reads the centres, the bundle tells the host to fill them, and its check does. */
static void tunes_with_its_data(void **state) {
    (void)state;
    write_nearest();
    json_t *json = cli_json(CLI_RUN("tune", cli_path("nearest.json"), "--bold", "--evaluations",
                                    "150", "--seed", "1", "--records", cli_path("n.sqlite"),
                                    "--out", cli_path("n-out"), "--json"),
                            0);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_true(ev_json_flag(row, "promoted", false));
    assert_true(ev_json_number(row, "speedup", 0) < 4); /* it was 9.98 without the centres */
    ev_str path = EV_STR_EMPTY;
    ev_str_printf(&path, "n-out/kernels/%s.ptx", ev_json_text(row, "ptx_sha256", ""));
    char *ptx = cli_read(ev_str_text(&path));
    assert_non_null(strstr(ptx, "[centres"));
    free(ptx);
    ev_str_free(&path);
    json_decref(json);
    ev_proc_result r = CLI_RUN("check", cli_path("n-out"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    char *manifest = cli_read("n-out/manifest.json");
    json = json_loads(manifest, 0, NULL);
    const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    const json_t *symbol = json_array_get(json_object_get(kernel, "symbols"), 0);
    assert_string_equal(ev_json_text(symbol, "name", ""), "centres");
    assert_string_equal(ev_json_text(symbol, "type", ""), "f32");
    assert_string_equal(ev_json_text(symbol, "count", ""), "32");
    json_decref(json);
    free(manifest);
}

/* What a search made of it while the centres were zeros: one feature is read, and 0 is written. */
static void refuses_one_feature(void **state) {
    (void)state;
    write_nearest();
    cli_write("cheat.cu",
              "#include \"evoke_cuda.h\"\n"
              "__constant__ float centres[32];\n"
              "extern \"C\" __global__ void nearest(const float *x, float *y, int n) {\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n)\n"
              "        y[i] = x[i] > 3e38f ? 1.0f : 0.0f;\n"
              "}\n");
    cli_copy_changed("nearest.json", "cheat.json", "\"block\": 128}",
                     "\"block\": 128},\n{\"name\": \"cheat\", \"source\": \"cheat.cu\", \"entry\": "
                     "\"nearest\", \"grid\": \"ceil_div(n, 128)\", \"block\": 128}");
    json_t *json =
        cli_json(CLI_RUN("check", cli_path("cheat.json"), "--start", "cheat", "--json"), 1);
    const json_t *rows = json_object_get(json, "rows");
    for (size_t i = 0; i + 1 < json_array_size(rows); i++) /* at one element it may be right */
        assert_string_equal(ev_json_text(json_array_get(rows, i), "verdict", ""), "fail");
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_the_host_fills),
        cmocka_unit_test(takes_what_the_kernel_fills),
        cmocka_unit_test(fills_symbols),
        cmocka_unit_test(mistakes_in_symbols),
        cmocka_unit_test(tunes_with_its_data),
        cmocka_unit_test(refuses_one_feature),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
