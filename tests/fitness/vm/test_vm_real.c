/* PTX of two compilers (tests/fitness/ptx/real) in the virtual machine: every kernel of every file
 * loads, runs under all checks in several orders, and computes what the same program computes in C.
 */
#include "base/file.h"
#include "base/str.h"
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 64

static int input(int i) {
    return i % 8;
}

/* ---- the programs of tests/fitness/ptx/real in C: out[i] */

static int add(int a, int b) {
    return a + b;
}
static int mul(int a, int b) {
    return a * b;
}
static int less3(int a, int b) {
    return a - b * 3;
}

static int pointer_table(int i) {
    int a;
    if (input(i) % 3 == 0)
        a = add(input(i), i);
    else if (input(i) % 3 == 1)
        a = mul(input(i), i);
    else
        a = less3(input(i), i);
    return a + (i & 1 ? add(i, 3) : mul(i, 3));
}
static int pointer_list(int i) {
    return mul(add(less3(input(i), 3), 5), 7);
}
static int pointer_value(int i) {
    int (*even)(int, int) = input(i) & 2 ? mul : less3;
    int (*f)(int, int) = input(i) & 1 ? add : even;
    return f((i & 4 ? f : add)(i, 2), input(i));
}

static int triangle(int s, int k) {
    return s * s / 2 - k;
}
static int object_virtual(int i) {
    if (input(i) & 1)
        return 2 * (i * i + THREADS) + 1;
    return triangle(i, input(i)) + triangle(i + 1, input(i)) + 2;
}

typedef struct record {
    int a[5];
    float f;
    double d;
    char c[8];
} record;

static void change(record *r, int k) {
    r->a[k % 5] += k;
    r->f *= 2;
    r->d -= k;
    r->c[k % 3] = 'x';
}
static int object_value(int i) {
    record r = {{1, 2, 3, 4, i}, 1.5f, 8.25, "abcdefg"};
    change(&r, input(i));
    change(&r, i);
    return r.a[0] + r.a[1] + r.a[2] + r.a[3] + r.a[4] + (int)r.f + (int)r.d + r.c[0];
}
static int object_template(int i) {
    long long a = 0;
    for (int k = 0; k < input(i) + 3; k++)
        if (k >= input(i) + 3 - 5) /* the window keeps the last five */
            a += (long long)k * i;
    int s = (int)a + (int)(1.5f * (float)i);
    for (int k = 0; k < input(i); k++)
        s += k * input(i) + i;
    return s;
}

static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static int recursion_fibonacci(int i) {
    return fibonacci(input(i) + i % 5);
}
static int recursion_mutual(int i) {
    return (i % 2 == 0) * 2 + input(i) % 2;
}
static int recursion_locals(int i) {
    return input(i) + 3 * i * (3 * i + 1) / 2;
}
static int ackermann(int m, int n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
static int recursion_ackermann(int i) {
    return ackermann(input(i) % 3, i % 4);
}
static int choose(int k, int v) {
    const int of[] = {v + 1, v * 3, v ^ 0x55, v - 7, v << 2, v / 3, v % 5, -v, v | 1};
    return k < 9 ? of[k] : 0;
}
static int switch_table(int i) {
    return choose(input(i), i) + choose(i % 11, THREADS);
}

static int system_printf(int i) {
    return i < 3 ? 7 : 0;
}
static int system_malloc(int i) {
    int k = input(i);
    return k * (k + 1) / 2 + (k + 1) * i;
}

static int global_initialised(int i) {
    static const double weights[] = {1, 2, 3.5, -4, 0, 0.125}, factors[] = {1, -0.5, 0.25, 3};
    static const int lengths[] = {5, 4, 5}, behind[] = {3, -4, 0}, bytes[] = {1, 2, 3, 255};
    double s = 0;
    for (int k = 0; k < 6; k++)
        s += weights[k] * factors[k & 3];
    int m = input(i) % 3;
    return (int)(s * 8) + lengths[m] * 100 + behind[m] + 2 + 3 + 4 + (i & 1) * 3 + m + 1 +
           bytes[i & 3];
}
static int global_shared(int i) {
    return input(63 - i) * 2 + ((i + 1) & 63) + i % 8 * 8 + i / 8;
}
static int global_atomic(int i) {
    return i >= 0 ? THREADS / 8 : 0;
}
static int global_assembly(int i) {
    return input(i) + i + (input(i) > 3 ? 10 : 20) + i % 32;
}

static int lanes_sum(int i, bool index) {
    int s = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
        s += index ? k : input(k);
    return s;
}
static int warp_both_sides(int i) {
    int odd = 0; /* odd lanes give their index, even ones their input */
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
        odd += input(k) & 1 ? k : input(k);
    return input(i) & 1 ? odd + 1 : odd * 2;
}
static int block_total(bool index) {
    return lanes_sum(0, index) + lanes_sum(32, index);
}
static int warp_block_sum(int i) {
    return i >= 0 ? block_total(true) * 3 + block_total(false) : 0;
}
static int warp_votes(int i) {
    int up = i % 32 ? i - 1 : i, down = i % 8 < 6 ? i + 2 : i;
    return 16 + 2 + 4 + up + down * 3 + (i / 32 * 32 + 3) * 5;
}
static int warp_lock(int i) {
    return i >= 0 ? block_total(false) : 0;
}

static const struct {
    const char *name;
    int (*of)(int i);
} programs[] = {
    {"pointer_table", pointer_table},
    {"pointer_list", pointer_list},
    {"pointer_value", pointer_value},
    {"object_virtual", object_virtual},
    {"object_value", object_value},
    {"object_template", object_template},
    {"recursion_fibonacci", recursion_fibonacci},
    {"recursion_mutual", recursion_mutual},
    {"recursion_locals", recursion_locals},
    {"recursion_ackermann", recursion_ackermann},
    {"switch_table", switch_table},
    {"system_printf", system_printf},
    {"system_malloc", system_malloc},
    {"global_initialised", global_initialised},
    {"global_shared", global_shared},
    {"global_atomic", global_atomic},
    {"global_assembly", global_assembly},
    {"warp_both_sides", warp_both_sides},
    {"warp_block_sum", warp_block_sum},
    {"warp_votes", warp_votes},
    {"warp_lock", warp_lock},
};

/* ---- running them */

static const char *const files[] = {
    "pointers.nvcc_120_debug",     "pointers.clang_70_O0",  "objects.nvcc_75_O3",
    "objects.clang_90_O3",         "recursion.nvcc_100_O3", "recursion.nvcc_90_debug",
    "recursion.clang_80_O3_lines", "system.nvcc_90_O3",     "system.clang_70_O3_lines",
    "globals.nvcc_120_O3",         "globals.clang_80_O0",   "warps.nvcc_80_O3_lines",
    "warps.clang_70_O3",
};

typedef struct run {
    vm_memory *memory;
    uint64_t out, in;
    ev_str printed;
    vm_result result;
} run;

static void print(void *context, const char *text, size_t bytes) {
    ev_str_append_n(context, text, bytes);
}

static vm_module *load(const char *name) {
    char path[120];
    snprintf(path, sizeof path, "tests/fitness/ptx/real/%s.ptx", name);
    char *text = NULL;
    size_t bytes;
    ev_error err;
    vm_module *m = NULL;
    assert_int_equal(ev_file_read(path, &text, &bytes, &err), EV_OK);
    if (vm_module_load(text, bytes, name, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    free(text);
    return m;
}

static void launch(run *r, const vm_module *m, const vm_entry *entry, uint64_t seed) {
    struct {
        uint64_t out, in;
        int32_t n;
    } params = {r->out, r->in, THREADS};
    vm_launch l = {.module = m,
                   .entry = entry,
                   .grid = {1, 1, 1},
                   .block = {THREADS, 1, 1},
                   .dynamic_shared = THREADS * 4,
                   .params = &params,
                   .checks = VM_CHECK_ALL,
                   .fuel = 20000000,
                   .schedule_seed = seed,
                   .print = print,
                   .print_context = &r->printed};
    ev_error err;
    vm_memory_reset(r->memory, 0xcd);
    ev_str_clear(&r->printed);
    if (vm_run(r->memory, &l, &r->result, &err) != EV_OK)
        fail_msg("%s: %s", entry->name, err.text);
}

static void check_printed(const run *r) {
    assert_string_equal(ev_str_text(&r->printed), "lane 0 of 64:  0.00 even a% 0 ff\n"
                                                  "lane 1 of 64:  1.50 odd b% 1099511627776 100\n"
                                                  "lane 2 of 64:  3.00 even c% 2199023255552 101\n"
                                                  "end\n");
}

static void check_kernel(run *r, const char *file, const vm_module *m, const vm_entry *entry) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        launch(r, m, entry, seed);
        if (strcmp(entry->name, "system_assert") == 0) {
            assert_false(r->result.ok);
            assert_int_equal(r->result.trap.kind, VM_TRAP_ASSERTION);
            assert_non_null(strstr(r->result.trap.message, "system.cu:17: "));
            assert_non_null(strstr(r->result.trap.message, "assertion 'i != 5 || n == 0' failed"));
            assert_int_equal(r->result.trap.thread[0], 5);
            continue;
        }
        if (!r->result.ok)
            fail_msg("%s: %s: %s", file, entry->name, r->result.trap.message);
        const int32_t *out = vm_memory_host(r->memory, r->out);
        size_t p = 0;
        while (p < sizeof programs / sizeof *programs && strcmp(programs[p].name, entry->name) != 0)
            p++;
        assert_true(p < sizeof programs / sizeof *programs);
        for (int i = 0; i < THREADS; i++)
            if (out[i] != programs[p].of(i))
                fail_msg("%s: %s: out[%d] is %d, expected %d", file, entry->name, i, out[i],
                         programs[p].of(i));
        if (strcmp(entry->name, "system_printf") == 0)
            check_printed(r);
    }
}

static void test_files(void **state) {
    (void)state;
    run r = {.printed = EV_STR_EMPTY};
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &r.memory, &err), EV_OK);
    assert_int_equal(
        vm_memory_alloc(r.memory, (uint64_t)THREADS * 4, VM_BUFFER_OUT, "out", &r.out, &err),
        EV_OK);
    assert_int_equal(
        vm_memory_alloc(r.memory, (uint64_t)THREADS * 4, VM_BUFFER_IN, "in", &r.in, &err), EV_OK);
    int32_t *in = vm_memory_host(r.memory, r.in);
    for (int i = 0; i < THREADS; i++)
        in[i] = input(i);
    size_t kernels = 0;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        vm_module *m = load(files[f]);
        for (size_t e = 0; e < vm_module_entry_count(m); e++, kernels++)
            check_kernel(&r, files[f], m, vm_module_entry(m, e));
        vm_module_free(m);
    }
    assert_int_equal(kernels, 2 * 3 + 2 * 3 + 3 * 5 + 2 * 3 + 2 * 4 + 2 * 4);
    vm_memory_free(r.memory);
    ev_str_free(&r.printed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
