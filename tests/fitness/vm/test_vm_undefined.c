/* Undefined bits of local memory: they travel through registers, calls and local memory, and trap
 * where they decide. Kernels read fresh stack bytes as code without optimisation does. */
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define WORDS 128u

typedef struct outcome {
    vm_result result;
    uint32_t words[WORDS];
    uint64_t observed; /* instructions of warps */
} outcome;

static void on_batch(void *context, const vm_batch *batch) {
    outcome *out = context;
    for (size_t i = 0; i < batch->count; i++)
        out->observed += batch->events[i].count;
}

static void run_text(const char *text, uint32_t grid, uint32_t jobs, outcome *out) {
    const vm_observer observer = {.context = out, .batch = on_batch};
    out->observed = 0;
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
        fail_msg("%s\n%s", err.text, text);
    vm_memory *memory = NULL;
    uint64_t buffer = 0;
    assert_int_equal(vm_memory_new(1 << 20, &memory, &err), EV_OK);
    assert_int_equal(
        vm_memory_alloc(memory, sizeof out->words, VM_BUFFER_INOUT, "b", &buffer, &err), EV_OK);
    vm_launch l = {.module = m,
                   .entry = vm_module_find(m, "k"),
                   .grid = {grid, 1, 1},
                   .block = {32, 1, 1},
                   .checks = VM_CHECK_ALL,
                   .jobs = jobs,
                   .observer = jobs > 1 ? NULL : &observer, /* one job alone has one */
                   .params = &buffer};
    assert_int_equal(vm_run(memory, &l, &out->result, &err), EV_OK);
    memcpy(out->words, vm_memory_host(memory, buffer), sizeof out->words);
    vm_memory_free(memory);
    vm_module_free(m);
}

/* `body`: each thread has 16 fresh bytes at %d4 (generic) and the buffer's word of its own at %d1.
 */
static void run_body(const char *functions, const char *body, outcome *out) {
    char text[4000];
    int n = snprintf(
        text, sizeof text,
        HEAD "%s.visible .entry k(.param .u64 p)\n{\n.local .align 16 .b8 stack[16];\n"
             ".reg .pred %%p<8>;\n.reg .b16 %%h<8>;\n.reg .b32 %%r<20>;\n.reg .b64 %%d<20>;\n"
             "ld.param.u64 %%d1, [p];\nmov.u32 %%r1, %%tid.x;\nmul.wide.u32 %%d2, %%r1, 4;\n"
             "add.u64 %%d1, %%d1, %%d2;\nmov.u64 %%d3, stack;\ncvta.local.u64 %%d4, %%d3;\n"
             "%s\nret;\n}\n",
        functions, body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    run_text(text, 1, 1, out);
}

static void expect_words(const char *functions, const char *body, uint32_t word) {
    outcome o;
    run_body(functions, body, &o);
    if (!o.result.ok)
        fail_msg("%s\n%s", o.result.trap.message, body);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(o.words[i], word);
}

static void expect_trap(const char *functions, const char *body, const char *says) {
    outcome o;
    run_body(functions, body, &o);
    assert_false(o.result.ok);
    if (o.result.trap.kind != VM_TRAP_UNINITIALISED || !strstr(o.result.trap.message, says))
        fail_msg("%s\n%s", o.result.trap.message, body);
}

/* ---- bits that nothing decides by */

static const char *const fine[] = {
    /* a field of a fresh word */
    "ld.u32 %r2, [%d4];\nmov.u32 %r3, 5;\nbfi.b32 %r2, %r3, %r2, 4, 3;\nst.u32 [%d4], %r2;\n"
    "ld.u32 %r4, [%d4];\nbfe.u32 %r5, %r4, 4, 3;\nst.global.u32 [%d1], %r5;",
    /* the same by and, or and shift */
    "ld.local.u32 %r2, [%d3];\nand.b32 %r2, %r2, -113;\nor.b32 %r2, %r2, 80;\n"
    "st.local.u32 [%d3], %r2;\nld.local.u32 %r4, [%d3];\nshr.u32 %r4, %r4, 4;\n"
    "and.b32 %r5, %r4, 7;\nst.global.u32 [%d1], %r5;",
    /* a struct with padding, copied by words of 8 bytes */
    "mov.u16 %h1, 5;\nst.local.u8 [%d3], %h1;\nmov.u32 %r2, 7;\nst.local.u32 [%d3+4], %r2;\n"
    "ld.local.u64 %d5, [%d3];\nst.local.u64 [%d3+8], %d5;\nld.local.u8 %r5, [%d3+8];\n"
    "st.global.u32 [%d1], %r5;",
    /* bytes of a vector, chosen by prmt; lop3 that drops a bit */
    "ld.local.v2.u32 {%r2, %r3}, [%d3];\nmov.u32 %r4, 5;\nprmt.b32 %r5, %r4, %r2, 0x3210;\n"
    "mov.u32 %r6, 0xffffff00;\nlop3.b32 %r7, %r2, %r6, %r4, 0xea;\nlop3.b32 %r8, %r2, 0, 5, 0xea;\n"
    "max.u32 %r9, %r3, 3;\nst.global.u32 [%d1], %r8;",
    /* 16 bits in one word, of which one half is written */
    "mov.u16 %h1, 5;\nst.local.u16 [%d3], %h1;\nld.local.u32 %r2, [%d3];\n"
    "mov.b32 {%h2, %h3}, %r2;\ncvt.u32.u16 %r5, %h2;\nst.global.u32 [%d1], %r5;",
    /* the lower bits of a sum are defined; a choice that is defined */
    "ld.local.u32 %r2, [%d3];\nand.b32 %r2, %r2, 0xffffff00;\nadd.u32 %r3, %r2, 5;\n"
    "and.b32 %r4, %r3, 0xff;\nsetp.eq.u32 %p1, %r4, 5;\nselp.b32 %r5, %r4, %r2, %p1;\n"
    "st.global.u32 [%d1], %r5;",
    /* unequal whatever the other bits are */
    "ld.local.u32 %r2, [%d3];\nor.b32 %r2, %r2, 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra OUT;\n"
    "mov.u32 %r5, 5;\nst.global.u32 [%d1], %r5;\nOUT:",
    /* 16 bits of a word whose other half nothing has written, compared, and a byte of them */
    "mov.u16 %h1, 5;\nst.local.u16 [%d3], %h1;\nld.local.u32 %r2, [%d3];\ncvt.u16.u32 %h2, %r2;\n"
    "setp.ne.u16 %p1, %h2, 5;\n@%p1 bra OUT;\ncvt.u8.u32 %r3, %r2;\nsetp.ne.u32 %p2, %r3, 5;\n"
    "@%p2 bra OUT;\ncvt.s32.s16 %r5, %h2;\nst.global.u32 [%d1], %r5;\nOUT:",
    /* the upper byte of 16 bits, of which the lower is a sum of bits that nothing has written */
    "ld.local.u16 %h1, [%d3];\nadd.u16 %h1, %h1, 1;\nshr.u16 %h2, %h1, 8;\nand.b16 %h2, %h2, "
    "-256;\n"
    "cvt.u32.u16 %r5, %h2;\nadd.u32 %r5, %r5, 5;\nsetp.ne.u32 %p1, %r5, 5;\n@%p1 bra OUT;\n"
    "st.global.u32 [%d1], %r5;\nOUT:",
    /* read, and written before its next use; %r3 stays unused */
    "ld.local.u32 %r2, [%d3];\nadd.u32 %r3, %r2, %r2;\nmov.u32 %r2, 5;\nst.local.u32 [%d3], %r2;\n"
    "ld.local.u32 %r4, [%d3];\nst.global.u32 [%d1], %r4;",
};

static const char twice[] = ".func (.param .b64 o) both(.param .b64 a)\n{\n.reg .b64 %q<3>;\n"
                            "ld.param.u64 %q1, [a];\nst.param.u64 [o], %q1;\nret;\n}\n"
                            ".func (.reg .b32 o) low(.reg .b32 a)\n{\nand.b32 o, a, 7;\nret;\n}\n";

static const char through_calls[] =
    "mov.u32 %r2, 5;\nst.local.u32 [%d3], %r2;\nld.local.u64 %d5, [%d3];\n"
    "{\n.param .b64 x;\n.param .b64 y;\nst.param.u64 [x], %d5;\ncall (y), both, (x);\nld.param.u64 "
    "%d6, "
    "[y];\n}\n"
    "cvt.u32.u64 %r3, %d6;\nst.global.u32 [%d1], %r3;";

static void test_unused_bits_do_no_harm(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        expect_words("", fine[i], 5);
    expect_words(twice, through_calls, 5);
}

/* ---- bits that decide */

typedef struct bad {
    const char *body, *says;
} bad;

static const bad decided[] = {
    {"ld.local.u32 %r2, [%d3];\nsetp.eq.u32 %p1, %r2, 5;\n@%p1 bra OUT;\nst.global.u32 [%d1], "
     "%r1;\n"
     "OUT:",
     "a branch depends on local memory that nothing has written"},
    {"ld.local.u32 %r2, [%d3];\nsetp.lt.s32 %p1, %r2, 5;\n@%p1 st.global.u32 [%d1], %r1;",
     "a guard depends on local memory"},
    {"ld.local.u32 %r2, [%d3];\nmul.wide.u32 %d5, %r2, 4;\nadd.u64 %d5, %d1, %d5;\n"
     "ld.global.u32 %r3, [%d5];",
     "an address depends on local memory"},
    {"ld.local.u32 %r2, [%d3];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%d1], %r2;",
     "a stored value depends on local memory"},
    {"ld.local.u32 %r2, [%d3];\nbfe.u32 %r3, %r2, 4, 3;\nst.global.u32 [%d1], %r3;",
     "a stored value depends"},
    {"mov.u16 %h1, 5;\nst.local.u16 [%d3], %h1;\nld.local.u32 %r2, [%d3];\nshr.u32 %r3, %r2, 15;\n"
     "st.global.u32 [%d1], %r3;",
     "a stored value depends"},
    {"ld.local.s8 %r2, [%d3];\nand.b32 %r2, %r2, 0x80000000;\nst.global.u32 [%d1], %r2;",
     "a stored value depends"},
    {"ld.local.f32 %r2, [%d3];\nadd.f32 %r2, %r2, 0f3f800000;\nst.global.f32 [%d1], %r2;",
     "a stored value depends"},
    {"ld.local.u32 %r2, [%d3];\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\nst.global.u32 [%d1], %r3;",
     "a stored value depends"},
    {"ld.local.u32 %r2, [%d3];\nadd.cc.u32 %r3, %r2, 1;\naddc.u32 %r4, 0, 0;\n"
     "st.global.u32 [%d1], %r4;",
     "a stored value depends"},
    {"ld.local.u32 %r2, [%d3];\natom.global.add.u32 %r3, [%d1], %r2;",
     "an operand depends on local memory"},
    {"mov.u32 %r2, 5;\nst.local.u32 [%d3], %r2;\nld.local.u64 %d5, [%d3];\n"
     "{\n.param .b64 x;\n.param .b64 y;\nst.param.u64 [x], %d5;\ncall (y), both, "
     "(x);\nld.param.u64 %d6, [y];\n"
     "}\nshr.u64 %d6, %d6, 32;\ncvt.u32.u64 %r3, %d6;\nst.global.u32 [%d1], %r3;",
     "a stored value depends"},
    {"ld.local.u32 %r2, [%d3];\ncall (%r3), low, (%r2);\nst.global.u32 [%d1], %r3;",
     "a stored value depends"},
};

static const char system_calls[] =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".global .align 1 .b8 format[4] = {37, 100, 10, 0};\n";

/* What a system call prints or takes is seen by others. */
static const bad called[] = {
    {"ld.local.u32 %r2, [%d3+8];\nst.local.u32 [%d3], %r2;\nmov.u64 %d5, format;\n"
     "cvta.global.u64 %d5, %d5;\n{\n.param .b64 x;\n.param .b64 y;\n.param .b32 z;\n"
     "st.param.u64 [x], %d5;\nst.param.u64 [y], %d4;\ncall (z), vprintf, (x, y);\n}",
     "an argument of 'vprintf' depends on local memory that nothing has written"},
    {"ld.local.u64 %d5, [%d3];\n{\n.param .b64 x;\n.param .b64 z;\nst.param.u64 [x], %d5;\n"
     "call (z), malloc, (x);\n}",
     "an argument of 'malloc' depends on local memory that nothing has written"},
};

static void test_deciding_bits_trap(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        expect_trap(system_calls, called[i].body, called[i].says);
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        expect_trap(twice, decided[i].body, decided[i].says);
}

/* The line that decides is named, not the one that read. */
static void test_the_place_is_the_decision(void **state) {
    (void)state;
    outcome o;
    run_body("", "ld.local.u32 %r2, [%d3];\nmov.u32 %r3, %r2;\n\nst.global.u32 [%d1], %r3;", &o);
    assert_false(o.result.ok);
    assert_non_null(strstr(o.result.trap.message, "thread (0, 0, 0)"));
    assert_int_equal(o.result.trap.line, 20);
    assert_non_null(strstr(o.result.trap.message,
                           "; the launch's first read of such bytes was in line 17 at address 0x0, "
                           "offset 0 in local variable 'stack'"));
}

/* The trap is that of one job: with its first read, too. */
static void test_jobs_change_no_trap(void **state) {
    (void)state;
    static const char text[] =
        HEAD ".visible .entry k(.param .u64 p)\n{\n.local .align 16 .b8 stack[64];\n"
             ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %ctaid.x;\n"
             "and.b32 %r1, %r1, 12;\ncvt.u64.u32 %d2, %r1;\nmov.u64 %d3, stack;\n"
             "add.u64 %d3, %d3, %d2;\nst.local.u32 [%d3+16], %r1;\nst.local.u32 [%d3+20], %r1;\n"
             "ld.local.u32 %r2, [%d3+32];\nshr.u32 %r3, %r1, 2;\nshl.b32 %r2, %r2, %r3;\n"
             "st.global.u32 [%d1], %r2;\nret;\n}\n";
    outcome one, many;
    run_text(text, 100, 1, &one);
    run_text(text, 100, 4, &many);
    assert_false(one.result.ok);
    assert_non_null(strstr(one.result.trap.message, "offset 32 in local variable 'stack'"));
    assert_string_equal(one.result.trap.message, many.result.trap.message);
}

/* As many instructions as when the bytes were written first, but for the write; the observer sees
 * each of them. */
static void test_counters_are_those_of_a_plain_run(void **state) {
    (void)state;
    outcome plain, travelling;
    run_body("",
             "st.local.u32 [%d3], %r1;\nld.local.u32 %r2, [%d3];\nand.b32 %r2, %r2, 0;\n"
             "st.global.u32 [%d1], %r2;",
             &plain);
    run_body("", "ld.local.u32 %r2, [%d3];\nand.b32 %r2, %r2, 0;\nst.global.u32 [%d1], %r2;",
             &travelling);
    assert_true(plain.result.ok && travelling.result.ok);
    assert_int_equal(plain.result.counters.thread_instructions,
                     travelling.result.counters.thread_instructions + 32);
    assert_int_equal(plain.result.counters.warp_instructions,
                     travelling.result.counters.warp_instructions + 1);
    assert_int_equal(plain.result.counters.global_store_requests,
                     travelling.result.counters.global_store_requests);
    assert_int_equal(travelling.result.counters.local_requests, 1);
    assert_int_equal(plain.observed, plain.result.counters.warp_instructions);
    assert_int_equal(travelling.observed, travelling.result.counters.warp_instructions);
}

/* Later blocks begin with fresh stacks, and jobs change nothing. */
static void test_more_blocks(void **state) {
    (void)state;
    static const char text[] = HEAD
        ".visible .entry k(.param .u64 p)\n{\n.local .align 16 .b8 stack[64];\n.reg .pred %p<3>;\n"
        ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %ctaid.x;\n"
        "mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nmov.u64 %d3, stack;\n"
        "ld.local.u32 %r2, [%d3+32];\nbfi.b32 %r2, %r1, %r2, 0, 8;\nst.local.u32 [%d3+32], %r2;\n"
        "ld.local.u8 %r3, [%d3+32];\nmov.u32 %r4, %tid.x;\nsetp.ne.u32 %p1, %r4, 0;\n"
        "@%p1 bra OUT;\nst.global.u32 [%d1], %r3;\nOUT:\nret;\n}\n";
    outcome one, many;
    run_text(text, 100, 1, &one);
    run_text(text, 100, 3, &many);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(one.words[i], i);
    assert_true(one.result.ok && many.result.ok);
    assert_memory_equal(one.words, many.words, sizeof one.words);
    assert_memory_equal(&one.result.counters, &many.result.counters, sizeof(vm_counters));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unused_bits_do_no_harm),
        cmocka_unit_test(test_deciding_bits_trap),
        cmocka_unit_test(test_the_place_is_the_decision),
        cmocka_unit_test(test_jobs_change_no_trap),
        cmocka_unit_test(test_counters_are_those_of_a_plain_run),
        cmocka_unit_test(test_more_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
