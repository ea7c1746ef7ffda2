/* The figures of a ranking, on hand-made times; what is chosen of a set; and the kernels of the
 * ranking bench, run in the virtual machine against plain loops. */
#include "base/file.h"
#include "fitness/vm/vm.h"
#include "tuner/bench/ranking.h"
#include "tuner/bench/ranking_set.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- figures ---- */

static void test_tau(void **state) {
    (void)state;
    const ranking_pair alike[] = {{1, 10}, {2, 20}, {3, 30}};
    const ranking_pair turned[] = {{1, 30}, {2, 20}, {3, 10}};
    const ranking_pair one_off[] = {{1, 20}, {2, 10}, {3, 30}};
    assert_float_equal(ranking_tau(alike, 3, 0.05), 1, 0);
    assert_float_equal(ranking_tau(turned, 3, 0.05), -1, 0);
    assert_float_equal(ranking_tau(one_off, 3, 0.05), 1.0 / 3, 1e-12);
    /* 1 and 1.04 are no pair at 5 %; at 1 % they are, and ordered otherwise */
    const ranking_pair near[] = {{1, 20}, {1.04, 10}, {3, 30}};
    assert_float_equal(ranking_tau(near, 3, 0.05), 1, 0);
    assert_float_equal(ranking_tau(near, 3, 0.01), 1.0 / 3, 1e-12);
    /* equal modelled times, and refused ones, count for neither side */
    const ranking_pair ties[] = {{1, 10}, {2, 10}, {3, INFINITY}, {4, INFINITY}};
    assert_float_equal(ranking_tau(ties, 4, 0.05), 4.0 / 6, 1e-12);
    assert_float_equal(ranking_tau(alike, 1, 0.05), 0, 0);
}

/* Twenty configurations, of which two are the fastest tenth. */
static void test_top(void **state) {
    (void)state;
    ranking_pair all[20];
    for (size_t i = 0; i < 20; i++)
        all[i] = (ranking_pair){1 + (double)i, 1 + (double)i};
    assert_float_equal(ranking_tau_top(all, 20, 0.05), 1, 0);
    assert_float_equal(ranking_recall(all, 20), 1, 0);
    all[0].model = 2.5; /* after the second, before the third */
    assert_float_equal(ranking_tau_top(all, 20, 0.05), -1, 0);
    assert_float_equal(ranking_recall(all, 20), 1, 0);
    all[0].model = 50;
    assert_float_equal(ranking_recall(all, 20), 0.5, 0);
    all[0].model = INFINITY;
    assert_float_equal(ranking_recall(all, 20), 0.5, 0);
}

static void test_regret(void **state) {
    (void)state;
    const ranking_pair all[] = {{2, 4}, {3, 1}, {4, 2}, {5, 3}};
    assert_float_equal(ranking_regret(all, 4, 1), 0.5, 1e-12);
    assert_float_equal(ranking_regret(all, 4, 3), 0.5, 1e-12);
    assert_float_equal(ranking_regret(all, 4, 4), 0, 0);
    assert_float_equal(ranking_regret(all, 4, 50), 0, 0);
    const ranking_pair refused[] = {{1, INFINITY}, {3, 1}, {6, INFINITY}};
    assert_float_equal(ranking_regret(refused, 3, 3), 2, 1e-12);
    const ranking_pair none[] = {{1, INFINITY}, {6, INFINITY}};
    assert_float_equal(ranking_regret(none, 2, 1), 5, 1e-12);
}

static void test_scale(void **state) {
    (void)state;
    const ranking_pair all[] = {{2, 1}, {4, 2}, {3, 3}, {8, 2}, {5, INFINITY}};
    assert_float_equal(ranking_scale(all, 5), 2, 1e-12); /* of 1, 2, 2, 4 */
    assert_float_equal(ranking_mape(all, 5, 1), 100 * (0.5 + 0.5 + 0 + 0.75) / 4, 1e-9);
    assert_float_equal(ranking_mape(all, 5, 2), 100 * (0 + 0 + 1 + 0.5) / 4, 1e-9);
    assert_float_equal(ranking_scale(all + 4, 1), 1, 0);
}

/* ---- sets ---- */

static void read_text(const char *text, ranking_set *out, const char *words) {
    char path[] = "/tmp/test-ranking-XXXXXX";
    ev_error err = {.text = ""};
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(file);
    ev_status status = ranking_read(path, out, &err);
    (void)unlink(path);
    assert_int_equal(status, words == NULL ? EV_OK : EV_BAD);
    if (words != NULL && strstr(err.text, words) == NULL)
        fail_msg("'%s' has no '%s'", err.text, words);
}

#define HEAD "block_size_x,block_size_y,tile_size_x,tile_size_y,use_padding,read_only"

static void test_sets(void **state) {
    (void)state;
    ranking_set set;
    size_t chosen[8];
    read_text(HEAD ",p100_ms,v100_pcie_ms\n32,4,1,1,0,0,4,1\n32,4,1,2,0,0,3,2\n"
                   "32,4,1,3,0,0,2,\n32,4,1,4,0,0,1,4\n",
              &set, NULL);
    assert_int_equal(set.kernel, RANKING_CONVOLUTION);
    assert_int_equal(set.count, 4);
    assert_string_equal(set.gpus[1], "v100-pcie");
    assert_int_equal(set.configs[2].macros[3].value, 3);
    assert_float_equal(set.configs[1].ms[0], 3, 0);
    /* the two fastest of each GPU; the third was not measured on the second one */
    assert_int_equal(ranking_choose(&set, 0, 0, 2, chosen), 2);
    assert_true(chosen[0] == 2 && chosen[1] == 3);
    assert_int_equal(ranking_choose(&set, 1, 0, 2, chosen), 2);
    assert_true(chosen[0] == 0 && chosen[1] == 1);
    assert_int_equal(ranking_choose(&set, 1, 4, 0, chosen), 3);
    /* by the hash, in the order of the hashes; one more has those before as well */
    size_t first = 0;
    assert_int_equal(ranking_choose(&set, 0, 1, 0, &first), 1);
    for (size_t i = 0; i < 4; i++)
        assert_true(strcmp(set.configs[first].hash.hex, set.configs[i].hash.hex) <= 0);
    uint32_t grid[3], block[3];
    ranking_launch(set.kernel, set.configs[2].macros, grid, block);
    assert_true(grid[0] == 128 && grid[1] == 342 && block[0] == 32 && block[1] == 4);
    ranking_set_free(&set);
    read_text("gpu,ms\n", &set, ":1: the first line begins neither");
    read_text(HEAD "\n", &set, ":1: 0 columns of times");
    read_text(HEAD ",p100\n", &set, "the column 'p100' is not named GPU_ms");
    read_text(HEAD ",p100_ms\n", &set, "no line after the first");
    read_text(HEAD ",p100_ms\n32,4,1,1,0,0\n", &set, ":2: 6 fields; expected 7");
    read_text(HEAD ",p100_ms\n32,4,1,x,0,0,1\n", &set, ":2: 'x' is no value");
    read_text(HEAD ",p100_ms\n32,4,1,1,0,0,-1\n", &set, ":2: '-1' is no time");
    read_text(HEAD ",p100_ms\n64,32,1,1,0,0,1\n", &set, ":2: makes a grid of");
}

/* ---- kernels ---- */

typedef struct job {
    vm_module *module;
    vm_memory *memory;
    uint64_t params[6];
    size_t count;
} job;

/* The kernel with those macros, built by our own path. */
static job build_entry(const char *file, const char *kernel, const ir_macro *macros,
                       size_t macro_count) {
    job j = {.count = 0};
    ev_error err = {.text = ""};
    ev_str path = EV_STR_EMPTY, ptx = EV_STR_EMPTY;
    char *home = ev_path_home();
    ev_str_printf(&path, "%s/fitness/model/bench/%s.cu", home, file);
    if (variant_build_macros(ev_str_text(&path), kernel, macros, macro_count, 70, &ptx, &err) !=
            EV_OK ||
        vm_module_load(ptx.data, ptx.length, kernel, &j.module, &err) != EV_OK ||
        vm_memory_new(1u << 30, &j.memory, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_str_free(&path);
    ev_str_free(&ptx);
    free(home);
    return j;
}

static job build(const char *kernel, const ir_macro *macros, size_t macro_count) {
    return build_entry(kernel, kernel, macros, macro_count);
}

static float *add(job *j, size_t floats, vm_buffer_kind kind) {
    ev_error err = {.text = ""};
    uint64_t *address = &j->params[j->count++];
    if (vm_memory_alloc(j->memory, floats * sizeof(float), kind, "array", address, &err) != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(j->memory, *address);
}

static void run(job *j, const uint32_t grid[2], const uint32_t block[2], vm_checks checks) {
    vm_launch l = {.module = j->module,
                   .entry = vm_module_entry(j->module, 0),
                   .grid = {grid[0], grid[1], 1},
                   .block = {block[0], block[1], 1},
                   .checks = checks,
                   .params = j->params};
    vm_result result;
    ev_error err = {.text = ""};
    if (vm_run(j->memory, &l, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (!result.ok)
        fail_msg("line %u: %s", result.trap.line, result.trap.message);
}

static void done(job *j) {
    vm_module_free(j->module);
    vm_memory_free(j->memory);
}

/* Small whole numbers: every order of additions gives the same sum. */
static float number(size_t i) {
    return (float)((i * 2654435761u >> 7) % 7) - 3;
}

static void fill(float *to, size_t count, size_t from) {
    for (size_t i = 0; i < count; i++)
        to[i] = number(i + from);
}

enum { SIDE = 96, WIDE = SIDE + 14 };

static void check_convolution(const int64_t values[6]) {
    static const char *const names[] = {"block_size_x", "block_size_y", "tile_size_x",
                                        "tile_size_y",  "use_padding",  "read_only",
                                        "image_size"};
    ir_macro macros[7] = {{names[6], SIDE}};
    for (size_t i = 0; i < 6; i++)
        macros[i + 1] = (ir_macro){names[i], values[i]};
    job j = build("convolution", macros, 7);
    float *out = add(&j, (size_t)SIDE * SIDE, VM_BUFFER_OUT);
    float *in = add(&j, (size_t)WIDE * WIDE, VM_BUFFER_IN), filter[225];
    fill(in, (size_t)WIDE * WIDE, 1);
    fill(filter, 225, 999);
    vm_variable variable;
    assert_true(vm_module_variable(j.module, "filter", &variable));
    assert_int_equal(variable.bytes, sizeof filter);
    vm_module_fill(j.module, &variable, filter);
    const uint32_t block[2] = {(uint32_t)values[0], (uint32_t)values[1]};
    uint32_t tile[2] = {block[0] * (uint32_t)values[2], block[1] * (uint32_t)values[3]};
    run(&j, (uint32_t[2]){(SIDE + tile[0] - 1) / tile[0], (SIDE + tile[1] - 1) / tile[1]}, block,
        VM_CHECK_RACES); /* sums past the end read what was not copied, and are not stored */
    for (size_t at = 0; at < (size_t)SIDE * SIDE; at++) {
        float want = 0;
        for (size_t f = 0; f < 225; f++)
            want += in[(at / SIDE + f / 15) * WIDE + at % SIDE + f % 15] * filter[f];
        if (out[at] != want)
            fail_msg("%zu, %zu: %g, not %g", at / SIDE, at % SIDE, (double)out[at], (double)want);
    }
    done(&j);
}

/* Block, tile, padding, read-only: tiles that divide the image and tiles that do not. */
static void test_convolution(void **state) {
    (void)state;
    static const int64_t configs[][6] = {{32, 4, 1, 1, 0, 0}, {16, 8, 2, 3, 1, 1},
                                         {8, 8, 3, 2, 1, 0},  {48, 2, 2, 4, 0, 1},
                                         {4, 32, 5, 1, 1, 1}, {2, 32, 3, 2, 1, 0}};
    for (size_t i = 0; i < COUNT(configs); i++)
        check_convolution(configs[i]);
}

enum { M = 128, N = 128, K = 64 };

static void check_gemm(const int64_t values[14]) {
    static const char *const names[] = {"MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB",
                                        "KWI", "VWM", "VWN", "STRM",  "STRN",  "SA",    "SB"};
    ir_macro macros[14];
    for (size_t i = 0; i < 14; i++)
        macros[i] = (ir_macro){names[i], values[i]};
    job j = build("gemm", macros, 14);
    float *c = add(&j, (size_t)M * N, VM_BUFFER_INOUT), *a = add(&j, (size_t)M * K, VM_BUFFER_IN);
    float *b = add(&j, (size_t)N * K, VM_BUFFER_IN);
    fill(c, (size_t)M * N, 5);
    fill(a, (size_t)M * K, 77);
    fill(b, (size_t)N * K, 3333);
    j.params[3] = M | (uint64_t)N << 32;
    j.params[4] = K;
    const uint32_t block[2] = {(uint32_t)values[3], (uint32_t)values[4]};
    run(&j, (uint32_t[2]){M / (uint32_t)values[0], N / (uint32_t)values[1]}, block, VM_CHECK_ALL);
    for (size_t at = 0; at < (size_t)M * N; at++) {
        float want = number(at + 5);
        for (size_t k = 0; k < K; k++)
            want += a[k * M + at % M] * b[k * N + at / M];
        if (c[at] != want)
            fail_msg("%zu, %zu: %g, not %g", at / M, at % M, (double)c[at], (double)want);
    }
    done(&j);
}

/* All ways of sharing, strides and widths of vectors. */
static void test_gemm(void **state) {
    (void)state;
    static const int64_t configs[][14] = {{16, 16, 16, 8, 8, 8, 8, 2, 1, 2, 0, 0, 0, 0},
                                          {64, 64, 32, 16, 16, 16, 16, 2, 4, 2, 0, 1, 1, 1},
                                          {128, 32, 16, 16, 8, 32, 8, 2, 2, 4, 1, 0, 1, 0},
                                          {64, 128, 32, 8, 16, 8, 16, 2, 8, 8, 1, 1, 0, 1},
                                          {32, 64, 16, 8, 8, 16, 16, 2, 1, 1, 1, 1, 1, 1},
                                          {128, 128, 32, 16, 8, 16, 16, 2, 8, 4, 0, 0, 1, 1}};
    for (size_t i = 0; i < COUNT(configs); i++)
        check_gemm(configs[i]);
}

/* ---- ladder ---- */

static void check_step(const char *entry, uint32_t tile, uint32_t x, uint32_t y) {
    ir_macro none = {"UNUSED", 0};
    job j = build_entry("ladder", entry, &none, 1);
    float *c = add(&j, (size_t)M * N, VM_BUFFER_OUT), *a = add(&j, (size_t)M * N, VM_BUFFER_IN);
    float *b = add(&j, (size_t)M * N, VM_BUFFER_IN);
    fill(a, (size_t)M * N, 5);
    fill(b, (size_t)M * N, 77);
    j.params[3] = N;
    run(&j, (uint32_t[2]){M / tile, N / tile}, (uint32_t[2]){x, y}, VM_CHECK_ALL);
    for (size_t at = 0; at < (size_t)M * N; at++) {
        float want = 0;
        for (size_t k = 0; k < N; k++)
            want += a[at / N * N + k] * b[k * N + at % N];
        if (c[at] != want)
            fail_msg("%s %zu: %g, not %g", entry, at, (double)c[at], (double)want);
    }
    done(&j);
}

static void test_ladder(void **state) {
    (void)state;
    check_step("naive", 32, 32, 32);
    check_step("coalesced", 32, 32, 32);
    check_step("shared_tile", 32, 32, 32);
    check_step("rows", 64, 512, 1);
    check_step("squares", 128, 256, 1);
    check_step("vectors", 128, 256, 1);
    check_step("warps", 128, 128, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tau),    cmocka_unit_test(test_top),
        cmocka_unit_test(test_regret), cmocka_unit_test(test_scale),
        cmocka_unit_test(test_sets),   cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_gemm),   cmocka_unit_test(test_ladder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
