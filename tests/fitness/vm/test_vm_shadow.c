/* Shadow memory: races of accesses smaller than a word, reads of shared memory that are too early,
 * and what the shadow costs. */
#include "fitness/vm/vm_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES (1u << 20)

typedef struct params {
    uint64_t both;
    uint32_t n;
} params;

/* r0: thread, r1: block, r2: lane, r3: warp, r4: the tile, d0: a buffer; p1, p2: warp 0, 1. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 both, .param .u32 n) {\n"
    ".reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%d<8>;\n"
    ".shared .align 16 .b8 tile[4096];\n"
    "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; and.b32 %%r2, %%r0, 31;"
    "shr.u32 %%r3, %%r0, 5; mov.u32 %%r4, tile; ld.param.u64 %%d0, [both];"
    "setp.eq.u32 %%p1, %%r3, 0; setp.eq.u32 %%p2, %%r3, 1; ld.param.u32 %%r15, [n];\n"
    "%s\nret;\n}\n";

static vm_result run_with(vm_checks checks, const char *body, unsigned isa, uint64_t seed,
                          uint32_t blocks) {
    char ptx[4096];
    int length = snprintf(ptx, sizeof ptx, text, body);
    ev_error err;
    vm_module *module;
    vm_memory *memory;
    if (vm_module_load(ptx, (size_t)length, "shadow", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(module, isa);
    params p = {.n = 100000};
    assert_int_equal(vm_memory_new(2ul * BYTES, &memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(memory, BYTES, VM_BUFFER_INOUT, "both", &p.both, &err), EV_OK);
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {blocks, 1, 1},
                        .block = {64, 1, 1},
                        .params = &p,
                        .checks = checks,
                        .fuel = 1u << 24,
                        .schedule_seed = seed};
    vm_result result;
    assert_int_equal(vm_run(memory, &launch, &result, &err), EV_OK);
    vm_module_free(module);
    vm_memory_free(memory);
    return result;
}

static vm_result run(const char *body, unsigned isa, uint64_t seed, uint32_t blocks) {
    return run_with(VM_CHECK_ALL, body, isa, seed, blocks);
}

typedef struct row {
    const char *what, *body;
    vm_trap_kind expected;
} row;

static void check_rows(const row *rows, size_t count) {
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < count; i++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                vm_result r = run(rows[i].body, isa, seed, 2);
                vm_trap_kind kind = r.ok ? VM_TRAP_NONE : r.trap.kind;
                if (kind != rows[i].expected)
                    fail_msg("%s: expected %s, got %s", rows[i].what,
                             vm_trap_name(rows[i].expected), r.ok ? "none" : r.trap.message);
            }
}

#define FILL "mad.lo.u32 %r5, %r0, 4, %r4; st.shared.u32 [%r5], %r0; bar.sync 0;"
/* Shared address r5 = tile + thread * a + warp * b; lane instead of thread with LANE. */
#define AT(a, b) "mad.lo.u32 %r5, %r3, " #b ", %r4; mad.lo.u32 %r5, %r0, " #a ", %r5;"
#define LANE(a, b) "mad.lo.u32 %r5, %r3, " #b ", %r4; mad.lo.u32 %r5, %r2, " #a ", %r5;"
/* Global address d1 = buffer + thread * a + block * b. */
#define GLOBAL(a, b)                                                                               \
    "mul.wide.u32 %d1, %r0, " #a "; mul.wide.u32 %d2, %r1, " #b "; add.u64 %d1, %d1, %d2;"         \
    "add.u64 %d1, %d1, %d0;"
/* All threads of a block store halves from thread + n * block * b on, 100,000 of them. */
#define HALVES(b)                                                                                  \
    "mov.u32 %r6, %r0; mul.lo.u32 %r8, %r15, %r1; mul.lo.u32 %r8, %r8, " #b ";"                    \
    "L: add.u32 %r7, %r6, %r8; mul.wide.u32 %d1, %r7, 2; add.u64 %d1, %d1, %d0;"                   \
    "st.global.u16 [%d1], 1; add.u32 %r6, %r6, 64; setp.lt.u32 %p3, %r6, %r15; @%p3 bra L;"

static const row parts[] = {
    {"bytes side by side", AT(1, 0) "st.shared.u8 [%r5], %r0;", VM_TRAP_NONE},
    {"bytes of a word from two warps", LANE(2, 1) "st.shared.u8 [%r5], %r0;", VM_TRAP_NONE},
    {"halves of a word from two warps", LANE(4, 2) "st.shared.u16 [%r5], 7;", VM_TRAP_NONE},
    {"the same byte from two warps", LANE(1, 0) "st.shared.u8 [%r5], %r0;", VM_TRAP_RACE_SHARED},
    {"the same half from two warps", LANE(4, 0) "st.shared.u16 [%r5], 7;", VM_TRAP_RACE_SHARED},
    {"a half over a byte",
     LANE(4, 0) "@%p1 st.shared.u8 [%r5+1], %r0; @%p2 st.shared.u16 [%r5], 7;",
     VM_TRAP_RACE_SHARED},
    {"a half beside a byte",
     LANE(4, 0) "@%p1 st.shared.u8 [%r5+1], %r0; @%p2 st.shared.u16 [%r5+2], 7;", VM_TRAP_NONE},
    {"a byte read beside one written",
     FILL LANE(4, 0) "@%p1 st.shared.u8 [%r5], 1; @%p2 ld.shared.u8 %r6, [%r5+1];", VM_TRAP_NONE},
    {"a byte read and written",
     FILL LANE(4, 0) "@%p1 st.shared.u8 [%r5+1], 1; @%p2 ld.shared.u8 %r6, [%r5+1];",
     VM_TRAP_RACE_SHARED},
    {"a byte read by both, the next one written",
     FILL LANE(4, 0) "ld.shared.u8 %r6, [%r5]; @%p2 st.shared.u8 [%r5+1], 1;", VM_TRAP_NONE},
    {"a byte read by both, then written",
     FILL LANE(4, 0) "ld.shared.u8 %r6, [%r5]; @%p2 st.shared.u8 [%r5], 1;", VM_TRAP_RACE_SHARED},
    {"a word read over a byte",
     FILL LANE(4, 0) "@%p1 st.shared.u8 [%r5+3], 1; @%p2 ld.shared.u32 %r6, [%r5];",
     VM_TRAP_RACE_SHARED},
    {"a byte over a word", LANE(4, 0) "@%p1 st.shared.u32 [%r5], 1; @%p2 st.shared.u8 [%r5+2], 1;",
     VM_TRAP_RACE_SHARED},
    {"bytes, a barrier, words",
     LANE(2, 1) "st.shared.u8 [%r5], %r0; bar.sync 0; mad.lo.u32 %r6, %r2, 4, %r4;"
                "@%p2 st.shared.u32 [%r6], 1; bar.sync 0; @%p1 ld.shared.u32 %r7, [%r6];",
     VM_TRAP_NONE},
    {"words, a barrier, bytes",
     FILL LANE(2, 1) "st.shared.u8 [%r5], %r0; bar.sync 0; ld.shared.u8 %r7, [%r5+2];",
     VM_TRAP_NONE},
    {"the same value into one byte", "@%p1 st.shared.u8 [%r4], 3;", VM_TRAP_NONE},
    {"different values into one byte", "@%p1 st.shared.u8 [%r4], %r0;", VM_TRAP_RACE_SHARED},
    {"a neighbour's byte without a sync",
     AT(1, 0) "st.shared.u8 [%r5], %r0; xor.b32 %r6, %r5, 1; ld.shared.u8 %r7, [%r6];",
     VM_TRAP_RACE_SHARED},
    {"a neighbour's byte after a sync",
     AT(1, 0) "st.shared.u8 [%r5], %r0; bar.warp.sync 0xffffffff; xor.b32 %r6, %r5, 1;"
              "ld.shared.u8 %r7, [%r6];",
     VM_TRAP_NONE},
    {"the own byte again", AT(1, 0) "st.shared.u8 [%r5], %r0; ld.shared.u8 %r7, [%r5];",
     VM_TRAP_NONE},
    {"bytes of a word from two blocks", GLOBAL(2, 1) "st.global.u8 [%d1], %r0;", VM_TRAP_NONE},
    {"the same byte from two blocks", GLOBAL(2, 0) "st.global.u8 [%d1], 1;", VM_TRAP_RACE_GLOBAL},
    {"a byte read beside another block's",
     GLOBAL(4, 1) "ld.global.u8 %r6, [%d1]; st.global.u8 [%d1], %r6;", VM_TRAP_NONE},
    {"a byte read that another block writes",
     GLOBAL(4, 1) "ld.global.u8 %r6, [%d1]; mul.wide.u32 %d3, %r0, 4; add.u64 %d3, %d3, %d0;"
                  "setp.eq.u32 %p3, %r1, 1; @%p3 st.global.u8 [%d3], %r6;",
     VM_TRAP_RACE_GLOBAL},
    {"more halves than the table holds", HALVES(1), VM_TRAP_NONE},
    {"the same, from two blocks", HALVES(0), VM_TRAP_RACE_GLOBAL},
};

static void test_parts(void **state) {
    (void)state;
    check_rows(parts, sizeof parts / sizeof parts[0]);
}

#define WRITE1 "@%p2 st.shared.u32 [%r5], 1;"
static const row early[] = {
    {"nobody writes it", LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5];", VM_TRAP_UNINITIALISED},
    {"another warp writes it", LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5];" WRITE1,
     VM_TRAP_RACE_SHARED},
    {"another warp writes it after a barrier",
     LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5]; bar.sync 0;" WRITE1, VM_TRAP_UNINITIALISED},
    {"another warp writes something else", LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5+128];" WRITE1,
     VM_TRAP_UNINITIALISED},
    {"the same lane writes it later",
     LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5]; @%p1 st.shared.u32 [%r5], 1;",
     VM_TRAP_UNINITIALISED},
    {"another byte of it is written",
     LANE(4, 0) "@%p1 ld.shared.u8 %r6, [%r5]; @%p2 st.shared.u8 [%r5+1], 1;",
     VM_TRAP_UNINITIALISED},
    {"what was read leads out of bounds",
     LANE(4, 0) "@%p1 ld.shared.u32 %r6, [%r5]; mad.lo.u32 %r6, %r6, 4, 0xfffff0;"
                "st.shared.u32 [%r6], 1;",
     VM_TRAP_UNINITIALISED},
    {"what was read ends no loop",
     LANE(4, 0) "L: ld.shared.u32 %r6, [%r5]; setp.eq.u32 %p3, %r6, 0; @%p3 bra L;",
     VM_TRAP_UNINITIALISED},
};

static void test_early_reads(void **state) {
    (void)state;
    /* the order of the two warps decides what is seen of a race */
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < sizeof early / sizeof early[0]; i++) {
            vm_result r = run(early[i].body, isa, 0, 1);
            if (r.ok || r.trap.kind != early[i].expected)
                fail_msg("%s: expected %s, got %s", early[i].what, vm_trap_name(early[i].expected),
                         r.ok ? "none" : r.trap.message);
        }
}

/* ---- reads of global memory with a barrier between */

#define READ_ALL "ld.global.u32 %r6, [%d0]; bar.sync 0; setp.eq.u32 %p3, %r0, 0;"
static const row barriers[] = {
    {"read by all, then read and written by one",
     READ_ALL "@%p3 ld.global.u32 %r7, [%d0]; @%p3 st.global.u32 [%d0], %r7;", VM_TRAP_NONE},
    {"read by all, then by a warp, and written by one lane of it after a sync",
     READ_ALL "@%p1 ld.global.u32 %r7, [%d0]; bar.warp.sync 0xffffffff;"
              "@%p3 st.global.u32 [%d0], %r7;",
     VM_TRAP_NONE},
    {"read by all, then by a warp, and written by one lane of it",
     READ_ALL "@%p1 ld.global.u32 %r7, [%d0]; @%p3 st.global.u32 [%d0], %r7;", VM_TRAP_RACE_GLOBAL},
    {"read by all twice, written by one",
     READ_ALL "ld.global.u32 %r7, [%d0];"
              "@%p3 st.global.u32 [%d0], %r7;",
     VM_TRAP_RACE_GLOBAL},
    {"rows read by all, then read and written by one warp",
     GLOBAL(0, 0) "mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d1, %d0; ld.global.u32 %r6, [%d1];"
                  "bar.sync 0; @%p2 ld.global.u32 %r7, [%d1]; @%p2 st.global.u32 [%d1], %r7;",
     VM_TRAP_NONE},
    {"rows read by all, then read by all and written by one warp",
     GLOBAL(0, 0) "mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d1, %d0; ld.global.u32 %r6, [%d1];"
                  "bar.sync 0; ld.global.u32 %r7, [%d1]; @%p2 st.global.u32 [%d1], %r7;",
     VM_TRAP_RACE_GLOBAL},
};

/* One block: a barrier orders its reads before its writes. Two: it orders nothing between them. */
static void test_barriers(void **state) {
    (void)state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < sizeof barriers / sizeof barriers[0]; i++)
            for (uint32_t blocks = 1; blocks <= 2; blocks++) {
                vm_result r = run(barriers[i].body, isa, 0, blocks);
                vm_trap_kind kind = r.ok ? VM_TRAP_NONE : r.trap.kind;
                vm_trap_kind expected = blocks == 2 ? VM_TRAP_RACE_GLOBAL : barriers[i].expected;
                if (kind != expected)
                    fail_msg("%s, %u blocks: expected %s, got %s", barriers[i].what, blocks,
                             vm_trap_name(expected), r.ok ? "none" : r.trap.message);
            }
}

/* ---- what a launch may take */

/* Of two blocks; `taken`: the trap without the check. */
static const struct {
    const char *what, *body;
    vm_checks check;
    vm_trap_kind taken;
} waived[] = {
    {"plain loads of what atomics change", "ld.global.u32 %r6, [%d0]; red.global.add.u32 [%d0], 1;",
     VM_CHECK_PLAIN, VM_TRAP_NONE},
    {"plain loads of bytes, and atomics of words",
     "ld.global.u8 %r6, [%d0+1]; red.global.add.u32 [%d0], 1;", VM_CHECK_PLAIN, VM_TRAP_NONE},
    {"plain loads of what plain stores change",
     GLOBAL(4, 0) "ld.global.u32 %r6, [%d1]; st.global.u32 [%d1+4], 1;", VM_CHECK_PLAIN,
     VM_TRAP_RACE_GLOBAL},
    {"plain loads behind plain stores of others and an atomic",
     "st.global.u32 [%d0], 1; red.global.add.u32 [%d0], 1;", VM_CHECK_PLAIN, VM_TRAP_RACE_GLOBAL},
    {"one value from all threads", "st.global.u32 [%d0], 7;", VM_CHECK_SAME, VM_TRAP_NONE},
    {"one pair of values", "st.global.v2.u32 [%d0], {%r15, 7};", VM_CHECK_SAME, VM_TRAP_NONE},
    {"one byte of many", "st.global.u8 [%d0+3], %r15;", VM_CHECK_SAME, VM_TRAP_NONE},
    {"two values from two blocks", "st.global.u32 [%d0], %r1;", VM_CHECK_SAME, VM_TRAP_RACE_GLOBAL},
    {"pairs that differ in one value", "st.global.v2.u32 [%d0], {7, %r1};", VM_CHECK_SAME,
     VM_TRAP_RACE_GLOBAL},
    {"one value, which others load", "st.global.u32 [%d0], 7; ld.global.u32 %r6, [%d0];",
     VM_CHECK_SAME, VM_TRAP_RACE_GLOBAL},
};

static void expect_kind(const char *what, const vm_result *r, vm_trap_kind expected) {
    vm_trap_kind kind = r->ok ? VM_TRAP_NONE : r->trap.kind;
    if (kind != expected)
        fail_msg("%s: expected %s, got %s", what, vm_trap_name(expected),
                 r->ok ? "none" : r->trap.message);
}

static void test_waived(void **state) {
    (void)state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < sizeof waived / sizeof waived[0]; i++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                vm_checks without = VM_CHECK_ALL & ~waived[i].check;
                vm_result r = run(waived[i].body, isa, seed, 2);
                expect_kind(waived[i].what, &r, VM_TRAP_RACE_GLOBAL);
                r = run_with(without, waived[i].body, isa, seed, 2);
                expect_kind(waived[i].what, &r, waived[i].taken);
            }
}

/* ---- what it costs */

#define MEMORY (64u << 20)
/* Reads and writes a word of every `stride` bytes of 64 MiB. */
static const char walk[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 both, .param .u32 stride) {\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 256, %r0;"
    "ld.param.u64 %d0, [both]; ld.param.u32 %r2, [stride]; mul.wide.u32 %d1, %r0, %r2;"
    "add.u64 %d0, %d0, %d1; ld.global.u32 %r3, [%d0]; add.u32 %r3, %r3, 1;"
    "st.global.u32 [%d0], %r3; ret; }\n";

static void test_cost(void **state) {
    (void)state;
    ev_error err;
    vm_module *module;
    assert_int_equal(vm_module_load(walk, sizeof walk - 1, "walk", &module, &err), EV_OK);
    for (uint32_t stride = 4; stride <= 1 << 16; stride <<= 7) {
        vm_memory *m;
        params p = {.n = stride};
        assert_int_equal(vm_memory_new(MEMORY + (1 << 20), &m, &err), EV_OK);
        assert_int_equal(vm_memory_alloc(m, MEMORY, VM_BUFFER_INOUT, "both", &p.both, &err), EV_OK);
        vm_launch launch = {.module = module,
                            .entry = vm_module_find(module, "k"),
                            .grid = {MEMORY / stride / 256, 1, 1},
                            .block = {256, 1, 1},
                            .params = &p,
                            .checks = VM_CHECK_ALL};
        vm_result result;
        assert_int_equal(vm_run(m, &launch, &result, &err), EV_OK);
        assert_true(result.ok);
        vm_usage use;
        vm_memory_usage(m, &use);
        assert_true(use.contents >= (uint64_t)MEMORY / stride * 4);
        if (use.shadow > 2 * use.contents || use.lists > use.contents / 64 + (64u << 10))
            fail_msg("stride %u: %llu bytes in use, %llu of shadow, %llu of lists", stride,
                     (unsigned long long)use.contents, (unsigned long long)use.shadow,
                     (unsigned long long)use.lists);
        vm_memory_free(m);
    }
    vm_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_barriers),
                                       cmocka_unit_test(test_early_reads),
                                       cmocka_unit_test(test_waived), cmocka_unit_test(test_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
