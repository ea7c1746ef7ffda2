/* What nvcc writes and LLVM does not: vector registers as parameters, declarations without a
 * semicolon, barriers of the whole grid and of several warps. The texts are short forms of what
 * nvcc 13 made of small kernels. */
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define WORDS 256u

/* Runs entry `k` with a buffer of WORDS words, which hold their numbers and then what is left. */
static vm_result run(const char *text, uint32_t grid, uint32_t block, uint32_t *words) {
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_memory *memory = NULL;
    uint64_t buffer = 0;
    assert_int_equal(vm_memory_new(1 << 20, &memory, &err), EV_OK);
    assert_int_equal(
        vm_memory_alloc(memory, sizeof(uint32_t[WORDS]), VM_BUFFER_INOUT, "b", &buffer, &err),
        EV_OK);
    uint32_t *host = vm_memory_host(memory, buffer);
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = i;
    vm_launch l = {.module = m,
                   .entry = vm_module_find(m, "k"),
                   .grid = {grid, 1, 1},
                   .block = {block, 1, 1},
                   .checks = VM_CHECK_ALL,
                   .params = &buffer};
    vm_result r;
    assert_int_equal(vm_run(memory, &l, &r, &err), EV_OK);
    memcpy(words, host, sizeof(uint32_t[WORDS]));
    vm_memory_free(memory);
    vm_module_free(m);
    return r;
}

static void expect_ok(const vm_result *r) {
    if (!r->ok)
        fail_msg("%s", r->trap.message);
}

static const char vectors[] = HEAD
    ".func (.reg .v4 .u32 o) turn(.reg .v2 .u32 a, .reg .v4 .u32 b)\n"
    ".func (.reg .v4 .u32 o) turn(.reg .v2 .u32 a, .reg .v4 .u32 b)\n{\n"
    "add.u32 o.x, a.x, b.w;\nadd.u32 o.y, a.y, b.z;\nmov.v2.u32 {o.z, o.w}, {b.y, b.x};\nret;\n}\n"
    ".visible .entry k(.param .u64 p)\n{\n"
    ".reg .b64 %d<4>;\n.reg .b32 %r<4>;\n.reg .v4 .u32 v, u;\n.reg .v2 .u32 w<2>;\n"
    "ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 16;\n"
    "add.u64 %d1, %d1, %d2;\nld.global.v4.u32 v, [%d1];\nmov.u32 w1.x, 100;\nmov.u32 w1.y, 200;\n"
    "call.uni (u), turn, (w1, v);\nst.global.v4.u32 [%d1], u;\nret;\n}\n";

static void test_vectors_as_parameters(void **state) {
    (void)state;
    uint32_t words[WORDS];
    vm_result r = run(vectors, 1, 40, words);
    expect_ok(&r);
    for (uint32_t i = 0; i < 160; i += 4) {
        assert_int_equal(words[i], 100 + i + 3);
        assert_int_equal(words[i + 1], 200 + i + 2);
        assert_int_equal(words[i + 2], i + 1);
        assert_int_equal(words[i + 3], i);
    }
    assert_int_equal(words[160], 160);
}

/* Each thread adds one to its word, all threads of the grid meet, and each reads the word of a
 * thread of another block. */
static const char barrier[] = HEAD
    ".visible .entry k(.param .u64 p)\n{\n"
    ".reg .pred %p<8>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n"
    "ld.param.u64 %d1, [p];\nmov.u32 %r1, %envreg2;\nmov.u32 %r2, %envreg1;\n"
    "cvt.u64.u32 %d2, %r1;\ncvt.u64.u32 %d3, %r2;\nbfi.b64 %d4, %d3, %d2, 32, 32;\n"
    "setp.ne.s64 %p1, %d4, 0;\n@%p1 bra HAVE;\ntrap;\nHAVE:\n"
    "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmov.u32 %r6, %nctaid.x;\n"
    "mad.lo.u32 %r7, %r3, %r4, %r5;\nmul.wide.u32 %d5, %r7, 4;\nadd.u64 %d6, %d1, %d5;\n"
    "ld.global.u32 %r8, [%d6];\nadd.u32 %r8, %r8, 1;\nst.global.u32 [%d6], %r8;\n"
    "barrier.sync 0;\nsetp.ne.u32 %p2, %r5, 0;\n@%p2 bra MET;\n"
    "add.s64 %d7, %d4, 4;\nsetp.eq.u32 %p3, %r3, 0;\nmov.u32 %r9, -2147483647;\n"
    "sub.u32 %r9, %r9, %r6;\nselp.b32 %r9, %r9, 1, %p3;\n"
    "atom.add.release.gpu.u32 %r10, [%d7], %r9;\nTURN:\nld.acquire.gpu.u32 %r11, [%d7];\n"
    "xor.b32 %r12, %r11, %r10;\nsetp.gt.s32 %p4, %r12, -1;\n@%p4 bra TURN;\nMET:\n"
    "barrier.sync 0;\nadd.u32 %r13, %r7, %r4;\nmul.lo.u32 %r14, %r4, %r6;\n"
    "rem.u32 %r13, %r13, %r14;\nmul.wide.u32 %d8, %r13, 4;\nadd.u64 %d9, %d1, %d8;\n"
    "ld.global.u32 %r15, [%d9];\nst.global.u32 [%d6+512], %r15;\nret;\n}\n";

static void test_a_barrier_of_the_grid(void **state) {
    (void)state;
    uint32_t words[WORDS];
    vm_result r = run(barrier, 4, 32, words);
    expect_ok(&r);
    for (uint32_t i = 0; i < 128; i++) {
        assert_int_equal(words[i], i + 1);
        assert_int_equal(words[128 + i], (i + 32) % 128 + 1);
    }
}

/* The fetches and the accesses to surfaces of CUDA's functions, such as tex2DLayered and
 * surf3Dread. */
static const char *const textures[] = {
    "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r1}];",
    "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1}];",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2}];",
    "tex.2d.v4.u32.f32 {%r2, %r3, %r0, %r1}, [%t, {%f1, %f2}];",
    "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2, %f3, %f3}];",
    "tex.a1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%r1, %f1}];",
    "tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%r1, %f1, %f2, %f2}];",
    "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2, %f3, %f3}];",
    "tex.acube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%r1, %f1, %f2, %f3}];",
    "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2}], %f3;",
    "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2}], {%f1, %f2}, {%f2, %f3};",
    "tld4.g.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1, %f2}];",
    "tex.level.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f1}], %f3;",
    "tex.level.3d.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%t, {%f1, %f2, %f3, %f3}], %f0;",
    "tex.level.a2d.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%t, {%r1, %f1, %f2, %f2}], %f3;",
    "tld4.b.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%t, {%f1, %f2}];",
    "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r1}];",
    "tex.2d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%t, {%f1, %f2}];",
    ("tex.grad.3d.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%t, {%f1, %f2, %f3, %f3}], "
     "{%f1, %f2, %f3, %f3}, {%f2, %f1, %f3, %f3};"),
    "tex.level.cube.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%t, {%f1, %f2, %f3, %f3}], %f0;",
    "suld.b.1d.b32.trap {%r2}, [%s, {%r1}];",
    "suld.b.2d.b32.clamp {%r0}, [%s, {%r1, %r3}];",
    "suld.b.2d.v4.b8.zero {%rs1, %rs2, %rs3, %rs0}, [%s, {%r1, %r3}];",
    "suld.b.3d.b32.trap {%r2}, [%s, {%r1, %r3, %r1, %r1}];",
    "suld.b.a1d.b32.trap {%r3}, [%s, {%r2, %r1}];",
    "suld.b.a2d.b32.trap {%r0}, [%s, {%r2, %r1, %r1, %r1}];",
    "sust.b.1d.b32.trap [%s, {%r1}], {%r0};",
    "sust.b.2d.b32.trap [%s, {%r1, %r1}], {%r1};",
    "sust.b.2d.v4.b8.zero [%s, {%r1, %r1}], {%rs1, %rs2, %rs3, %rs0};",
    "sust.b.3d.b32.clamp [%s, {%r1, %r1, %r1, %r1}], {%r2};",
    "sust.b.a1d.b32.trap [%s, {%r2, %r1}], {%r3};",
    "sust.b.a2d.v4.b32.trap [%s, {%r2, %r1, %r1, %r1}], {%r0, %r1, %r2, %r3};",
    "sust.b.a2d.b32.trap [%s, {%r2, %r1, %r1, %r1}], {%r0};",
    "sust.b.2d.b8.trap [%s, {%r1, %r1}], {%rs2};",
    "sust.b.2d.b16.trap [%s, {%r1, %r1}], {%rs1};",
    "sust.b.2d.v2.b32.trap [%s, {%r1, %r1}], {%r1, %r1};",
    "sust.b.2d.b64.trap [%s, {%r1, %r1}], {%d};"};

static void test_textures(void **state) {
    (void)state;
    char text[1000];
    for (size_t i = 0; i < sizeof textures / sizeof *textures; i++) {
        ev_error err = {0};
        vm_module *m = NULL;
        snprintf(text, sizeof text,
                 HEAD
                 ".visible .entry k(.param .u64 p) {\n.reg .b64 %%t, %%s, %%d; .reg .pred %%p1;\n"
                 ".reg .b32 %%r<4>; .reg .f32 %%f<4>; .reg .b16 %%rs<4>;\n%s\nret;\n}\n",
                 textures[i]);
        if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
            fail_msg("%s: %s", textures[i], err.text);
        vm_module_free(m);
    }
}

/* Barriers of groups of several warps lie in shared memory that the system reserves, in the window
 * of generic addresses. Each of two groups of two warps counts its warps there. */
#define GROUPS(last)                                                                               \
    HEAD ".visible .entry k(.param .u64 p)\n{\n"                                                   \
         ".reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.shared .align 4 .b8 s[512];\n"   \
         "ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\n"               \
         "add.u64 %d1, %d1, %d2;\nmov.u64 %d3, s;\nadd.u64 %d3, %d3, %d2;\n"                       \
         "st.shared.u32 [%d3], %r1;\nmov.u32 %r2, %reserved_smem_offset_1;\n"                      \
         "shr.u32 %r3, %r1, 6;\nshl.b32 %r3, %r3, 2;\nadd.u32 %r2, %r2, %r3;\n"                    \
         "cvt.u64.u32 %d4, %r2;\ncvta.shared.u64 %d4, %d4;\n"                                      \
         "and.b32 %r4, %r1, 31;\nsetp.eq.u32 %p1, %r4, 0;\n"                                       \
         "@%p1 red.release.cta.and.b32 [%d4], 0;\nbar.sync 0;\n"                                   \
         "@%p1 red.release.cta.add.u32 [%d4], 1;\nbar.sync 0;\n"                                   \
         "ld.u32 %r5, [%d4];\nld.shared.u32 %r6, [%d3];\nmad.lo.u32 %r5, %r5, 1000, %r6;\n"        \
         "st.global.u32 [%d1], %r5;\n" last "ret;\n}\n"

static void test_reserved_shared(void **state) {
    (void)state;
    static const char *const beyond[] = {
        GROUPS("mov.u32 %r7, %reserved_smem_offset_end;\nst.shared.u32 [%r7], 0;\n"),
        GROUPS("mov.u32 %r7, %reserved_smem_offset_begin;\nst.shared.u32 [%r7+-4], 0;\n")};
    uint32_t words[WORDS];
    vm_result r = run(GROUPS(""), 1, 128, words);
    expect_ok(&r);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(words[i], 2000 + i);
    for (size_t i = 0; i < 2; i++) {
        r = run(beyond[i], 1, 128, words);
        assert_false(r.ok);
        assert_int_equal(r.trap.kind, VM_TRAP_OUT_OF_BOUNDS);
    }
}

/* What the system reserves is not counted for a kernel, nor are variables of another kernel, which
 * stand above a function. */
static void test_counted_shared(void **state) {
    (void)state;
    static const char text[] = HEAD ".func f();\n"
                                    ".visible .entry a()\n{\n.shared .align 16 .b8 s[40000];\n"
                                    ".reg .b32 %r1;\nmov.u32 %r1, %reserved_smem_offset_1;\n"
                                    "call f;\nret;\n}\n.func f()\n{\nret;\n}\n"
                                    ".visible .entry b()\n{\n.shared .align 16 .b8 s[20000];\n"
                                    "call f;\nret;\n}\n";
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_module_find(m, "a")->shared_bytes, 40000);
    assert_int_equal(vm_module_find(m, "b")->shared_bytes, 20000);
    vm_module_free(m);
}

/* A function's variables count for a kernel above it, too, which may call it. */
static void test_counted_behind(void **state) {
    (void)state;
    static const char text[] = HEAD ".func f();\n"
                                    ".visible .entry a()\n{\n.shared .align 16 .b8 s[20000];\n"
                                    "call f;\nret;\n}\n"
                                    ".func f()\n{\n.shared .align 16 .b8 t[16000];\nret;\n}\n"
                                    ".visible .entry b()\n{\n.shared .align 16 .b8 s[4000];\n"
                                    "call f;\nret;\n}\n";
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_module_find(m, "a")->shared_bytes, 36000);
    assert_int_equal(vm_module_find(m, "b")->shared_bytes, 20000);
    vm_module_free(m);
}

/* A function's shared variable lies apart from those of all kernels that may call the function,
 * also of one far above it. */
static const char apart[] =
    HEAD ".func f();\n"
         ".visible .entry k(.param .u64 p)\n{\n"
         ".reg .pred %p<2>;\n.reg .b32 %r<5>;\n.reg .b64 %d<5>;\n.shared .align 4 .b8 s[2048];\n"
         "ld.param.u64 %d1, [p];\nmov.u32 %r1, 0;\nmov.u32 %r3, s;\n"
         "L: st.shared.u32 [%r3], 1;\nadd.u32 %r3, %r3, 4;\nadd.u32 %r1, %r1, 1;\n"
         "setp.lt.u32 %p1, %r1, 512;\n@%p1 bra L;\ncall f;\nmov.u32 %r1, 0;\nmov.u32 %r2, 0;\n"
         "mov.u32 %r3, s;\n"
         "M: ld.shared.u32 %r4, [%r3];\nadd.u32 %r2, %r2, %r4;\nadd.u32 %r3, %r3, 4;\n"
         "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 512;\n@%p1 bra M;\n"
         "st.global.u32 [%d1], %r2;\nret;\n}\n"
         ".visible .entry other()\n{\n.shared .align 4 .b8 s[4];\nst.shared.u32 [s], 0;\nret;\n}\n"
         ".func f()\n{\n.shared .align 4 .b8 t[1024];\n.reg .pred %p1;\n.reg .b32 %r<3>;\n"
         "mov.u32 %r1, 0;\nmov.u32 %r2, t;\n"
         "L: st.shared.u32 [%r2], 9;\nadd.u32 %r2, %r2, 4;\nadd.u32 %r1, %r1, 1;\n"
         "setp.lt.u32 %p1, %r1, 256;\n@%p1 bra L;\nret;\n}\n";

static void test_shared_of_a_function(void **state) {
    (void)state;
    uint32_t words[WORDS];
    vm_result r = run(apart, 1, 1, words);
    expect_ok(&r);
    assert_int_equal(words[0], 512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_as_parameters),
        cmocka_unit_test(test_a_barrier_of_the_grid),
        cmocka_unit_test(test_textures),
        cmocka_unit_test(test_reserved_shared),
        cmocka_unit_test(test_counted_shared),
        cmocka_unit_test(test_counted_behind),
        cmocka_unit_test(test_shared_of_a_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
