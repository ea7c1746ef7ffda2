/* The good half of the zoo: no kernel raises a false alarm, and what it computes depends neither on
 * the order of warps and blocks nor on the instruction set. */
#include "base/file.h"
#include "fitness/vm/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS 4
#define THREADS 64
#define N (BLOCKS * THREADS)

typedef struct params {
    uint64_t in, out, both;
    int32_t n;
} params;

typedef struct zoo {
    vm_module *good;
    vm_memory *memory;
    params params;
    int32_t *in, *out, *both;
} zoo;

static vm_module *load(const char *path) {
    char *text = NULL;
    size_t bytes;
    ev_error err;
    vm_module *m = NULL;
    assert_int_equal(ev_file_read(path, &text, &bytes, &err), EV_OK);
    if (vm_module_load(text, bytes, path, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    free(text);
    return m;
}

static int32_t input(int i) {
    return (i * 37 + 11) % 101;
}

static void *buffer(vm_memory *m, vm_buffer_kind kind, const char *name, uint64_t *address) {
    ev_error err;
    assert_int_equal(vm_memory_alloc(m, N * 4, kind, name, address, &err), EV_OK);
    return vm_memory_host(m, *address);
}

static int set_up(void **state) {
    static zoo z;
    ev_error err;
    z.good = load("tests/ptx/zoo/good.ptx");
    assert_int_equal(vm_memory_new(1 << 20, &z.memory, &err), EV_OK);
    z.in = buffer(z.memory, VM_BUFFER_IN, "in", &z.params.in);
    z.out = buffer(z.memory, VM_BUFFER_OUT, "out", &z.params.out);
    z.both = buffer(z.memory, VM_BUFFER_INOUT, "both", &z.params.both);
    z.params.n = N;
    for (int i = 0; i < N; i++)
        z.in[i] = input(i);
    *state = &z;
    return 0;
}

static int tear_down(void **state) {
    zoo *z = *state;
    vm_module_free(z->good);
    vm_memory_free(z->memory);
    return 0;
}

static vm_result run(zoo *z, const vm_module *m, const char *name, uint32_t blocks,
                     uint32_t threads, uint64_t seed, uint64_t fuel) {
    const vm_entry *entry = vm_module_find(m, name);
    if (!entry)
        fail_msg("no kernel '%s'", name);
    vm_memory_reset(z->memory, 0xcd);
    memset(z->both, 0, N * 4);
    vm_launch launch = {.module = m,
                        .entry = entry,
                        .grid = {blocks, 1, 1},
                        .block = {threads, 1, 1},
                        .params = &z->params,
                        .checks = VM_CHECK_ALL,
                        .fuel = fuel,
                        .schedule_seed = seed};
    if (strcmp(name, "dynamic_shared") == 0)
        launch.dynamic_shared = THREADS * 4;
    vm_result result;
    ev_error err;
    if (vm_run(z->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s: %s", name, err.text);
    return result;
}

/* ---- good: expected out[i] and, where given, both[k] */

static int block_sum(int block) {
    int s = 0;
    for (int k = 0; k < THREADS; k++)
        s += input(block * THREADS + k);
    return s;
}
static int warp_sum(int i) {
    int s = 0;
    for (int k = 0; k < 32; k++)
        s += input(i / 32 * 32 + k);
    return s;
}
static int total(void) {
    int s = 0;
    for (int b = 0; b < BLOCKS; b++)
        s += block_sum(b);
    return s;
}
static int is_zero(int i) {
    return i * 0;
}
static int is_input(int i) {
    return input(i);
}
static int is_block_sum(int i) {
    return block_sum(i / THREADS);
}
static int is_scan(int i) {
    int s = 0;
    for (int k = i / THREADS * THREADS; k <= i; k++)
        s += input(k);
    return s;
}
static int is_transposed(int i) {
    int t = i % THREADS;
    return input(i - t + t % 8 * 8 + t / 8);
}
static int is_stencil(int i) {
    return (i > 0 ? input(i - 1) : 0) + input(i) + (i + 1 < N ? input(i + 1) : 0);
}
static int is_flagged(int i) {
    return i / THREADS == BLOCKS - 1 ? 0 : input(i % THREADS) + 1;
}
static int is_collatz(int i) {
    int x = input(i) + 1, steps = 0;
    for (; x != 1; steps++)
        x = x % 2 ? 3 * x + 1 : x / 2;
    return steps;
}
static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static int is_fibonacci(int i) {
    return fibonacci(input(i) & 7);
}
static int is_early(int i) {
    int t = i % THREADS;
    return t >= 40 ? 0 : input(i - t + 39 - t);
}
static int is_local(int i) {
    int a[16];
    for (int k = 0; k < 16; k++)
        a[(k * 5 + input(i)) & 15] = k;
    return a[i % THREADS & 15];
}
static int is_swapped(int i) {
    return input(i - i % THREADS + (i % THREADS ^ 33));
}
static int is_table(int i) {
    static const int table[8] = {1, 3, 5, 7, 11, 13, 17, 19};
    return table[input(i) & 7];
}
static int is_compact(int i) {
    int at = i / 32 * 32, k = at;
    for (int j = at; j < at + 32; j++)
        if (input(j) & 1 && k++ == i)
            return input(j);
    return 0;
}
static int is_count(int i) {
    int s = 0;
    for (int k = 0; k < THREADS; k++)
        s += input(i / THREADS * THREADS + k) & 1;
    return s;
}
static int is_handed(int i) {
    int t = i % THREADS;
    return t < 32 ? 0 : input(i - t + 63 - t);
}
static int is_doubled(int i) {
    return 2 * input(i);
}
static int both_histogram(int k) {
    int s = 0;
    for (int i = 0; i < N; i++)
        s += (input(i) & 15) == k;
    return s;
}
static int both_total_at_1(int k) {
    return k == 1 ? total() : -1;
}
static int both_consumed(int k) {
    return k >= 32 && k < 40 ? input(k - 32) : -1;
}
static int both_seven(int k) {
    return k == 0 ? 7 : -1;
}
static int both_maximum(int k) {
    float most = 0;
    int32_t bits;
    for (int i = 0; i < N; i++)
        most = (float)input(i) > most ? (float)input(i) : most;
    memcpy(&bits, &most, sizeof bits);
    return k == 0 ? bits : -1;
}

typedef struct good_kernel {
    const char *name;
    int (*out)(int i);
    int (*both)(int k); /* of the first 64; -1: any */
} good_kernel;

static const good_kernel good_kernels[] = {
    {"copy", is_input, NULL},
    {"copy_vector", is_input, NULL},
    {"copy_bytes", is_input, NULL},
    {"sum_shared", is_block_sum, NULL},
    {"sum_shuffle", warp_sum, NULL},
    {"sum_syncwarp", NULL, NULL},
    {"scan", is_scan, NULL},
    {"histogram", is_zero, both_histogram},
    {"transpose", is_transposed, NULL},
    {"stencil", is_stencil, NULL},
    {"lock_in_warp", is_zero, both_total_at_1},
    {"lock_spin", is_zero, both_total_at_1},
    {"flag_between_blocks", is_flagged, NULL},
    {"last_block_sums", is_zero, both_total_at_1},
    {"producer_consumer", is_zero, both_consumed},
    {"collatz", is_collatz, NULL},
    {"recursion", is_fibonacci, NULL},
    {"exits_early", is_early, NULL},
    {"local_array", is_local, NULL},
    {"dynamic_shared", is_swapped, NULL},
    {"constant_table", is_table, NULL},
    {"compact", is_compact, NULL},
    {"count_barrier", is_count, NULL},
    {"named_barriers", is_handed, NULL},
    {"same_value", is_zero, both_seven},
    {"float_maximum", is_zero, both_maximum},
    {"persistent", is_doubled, NULL},
    {"doubles", is_input, NULL},
};
#define GOOD_COUNT (sizeof good_kernels / sizeof *good_kernels)

static unsigned check_good(zoo *z, const good_kernel *k, uint64_t seed, unsigned isa) {
    vm_result r = run(z, z->good, k->name, BLOCKS, THREADS, seed, 100000000);
    if (!r.ok) {
        print_error("%s (seed %llu, isa %u): %s\n", k->name, (unsigned long long)seed, isa,
                    r.trap.message);
        return 1;
    }
    unsigned wrong = 0;
    for (int i = 0; i < N && k->out; i++)
        wrong += z->out[i] != k->out(i);
    for (int i = 0; i < 64 && k->both; i++) {
        int want = k->both(i < 16 || k->both != both_histogram ? i : -1);
        wrong += k->both == both_histogram ? i < 16 && z->both[i] != want
                                           : want != -1 && z->both[i] != want;
    }
    if (wrong)
        print_error("%s (seed %llu, isa %u): %u wrong values\n", k->name, (unsigned long long)seed,
                    isa, wrong);
    return wrong;
}

static void test_good(void **state) {
    zoo *z = *state;
    unsigned wrong = 0;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(z->good, isa);
        for (size_t i = 0; i < GOOD_COUNT; i++)
            for (uint64_t seed = 0; seed < 5; seed++)
                wrong += check_good(z, &good_kernels[i], seed, isa);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(vm_module_entry_count(z->good), GOOD_COUNT);
}

/* What is counted does not depend on the executor, nor on whether someone watches. */
static void test_counters(void **state) {
    zoo *z = *state;
    for (size_t i = 0; i < GOOD_COUNT; i++) {
        vm_module_set_isa(z->good, VM_ISA_BASELINE);
        vm_result a = run(z, z->good, good_kernels[i].name, BLOCKS, THREADS, 0, 0);
        vm_module_set_isa(z->good, vm_isa_best());
        vm_result b = run(z, z->good, good_kernels[i].name, BLOCKS, THREADS, 0, 0);
        assert_memory_equal(&a.counters, &b.counters, sizeof a.counters);
        assert_true(a.counters.thread_instructions <= a.counters.warp_instructions * 32);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
