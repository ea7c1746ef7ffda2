/* The loader: what it reads, how it refuses, how fast it is, and that broken text never hurts it.
 */
#include "base/file.h"
#include "base/pcg.h"
#include "base/proc.h"
#include "fitness/vm/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define KERNEL                                                                                     \
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<4>;\n"              \
         ".reg .f32 %f<4>;\n.reg .b64 %rd<4>;\n"
#define MUTATIONS 2000

static ev_status load(const char *text, vm_module **m, ev_error *err) {
    return vm_module_load(text, strlen(text), "t.ptx", m, err);
}

typedef struct refusal {
    const char *text, *place, *found, *expected;
} refusal;

/* Instructions stand on line 9, column 1. */
static const refusal refusals[] = {
    {"", "t.ptx:1:1", "end of the text", ".version"},
    {".version 8.5\n.target sm_10\n", "t.ptx:2:9", "sm_10", "sm_20"},
    {HEAD ".address_size 32\n", "t.ptx:4:15", "32", "64"},
    {HEAD ".texref t;\n", "t.ptx:4:1", ".texref", "buffer"},
    {KERNEL "frobnicate.u32 %r1, %r2;\nret;\n}\n", "t.ptx:10:1", "frobnicate", "instruction"},
    {KERNEL "wgmma.fence.sync.aligned;\n}\n", "t.ptx:10:1", "wgmma", "mma.sync"},
    {KERNEL "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [t, {%r0}];\n}\n", "t.ptx:10:1", "tex",
     "ld.global.nc"},
    {KERNEL "add.u8 %r1, %r2, %r3;\n}\n", "t.ptx:10:5", ".u8", ".u32"},
    {KERNEL "add.frn.f32 %f1, %f2, %f3;\n}\n", "t.ptx:10:5", ".frn", ".rn"},
    {KERNEL "setp.lt %p1, %r1, %r2;\n}\n", "t.ptx:10:1", "setp.lt", ".s32"},
    {KERNEL "add.u32 %r1, %r2;\n}\n", "t.ptx:10:1", "2 operands", "d,s,s"},
    {KERNEL "add.u32 %r1, %r2, %rd3;\n}\n", "t.ptx:10:19", "64 bits", "32 bits"},
    {KERNEL "add.u32 %r1, %r2, %r9;\n}\n", "t.ptx:10:19", "%r9", "declared register"},
    {KERNEL "add.f32 %f1, %f2, 3;\n}\n", "t.ptx:10:19", "integer", "floating-point"},
    {KERNEL "@%r1 bra L;\nL: ret;\n}\n", "t.ptx:10:2", "%r1", "predicate"},
    {KERNEL "bra nowhere;\n}\n", "t.ptx:10:5", "nowhere", "label"},
    {KERNEL "call.uni nobody, (p);\n}\n", "t.ptx:10:10", "nobody", "declared function"},
    {KERNEL "ld.param.u64 %rd1, [p+8];\n}\n", "t.ptx:10:20", "offset 8", "8 bytes"},
    {KERNEL "ld.global.v2.u32 {%r1}, [%rd1];\n}\n", "t.ptx:10:18", "1 elements", "2"},
    {KERNEL "mov.u32 %r1, 0x;\n}\n", "t.ptx:10:14", "0x", "operand"},
    {KERNEL "L: ret;\nL: ret;\n}\n", "t.ptx:11:1", "second declaration", "new name"},
    {KERNEL "ret;\n", "t.ptx:11:1", "end of the text", "'}'"},
    {KERNEL "setp.geu.s32 %p1, %r1, %r2;\n}\n", "t.ptx:10:1", "setp.geu.s32", "comparison"},
    {KERNEL "setp.eq.ftz.s32 %p1, %r1, %r2;\n}\n", "t.ptx:10:1", ".ftz", ".f32"},
    {KERNEL "st.const.u32 [%rd1], %r2;\n}\n", "t.ptx:10:1", "st.const.u32", "space"},
    {KERNEL "ld.param.u32 %r1, [p+2];\n}\n", "t.ptx:10:19", "offset 2", "aligned"},
    {KERNEL ".reg .b32 %q<99999999>;\n}\n", "t.ptx:10:14", "99999999", "2^20"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        vm_module *m = NULL;
        ev_error err = {0};
        assert_int_equal(load(r->text, &m, &err), EV_BAD);
        assert_null(m);
        const char *expected = strstr(err.text, "expected");
        if (strncmp(err.text, r->place, strlen(r->place)) != 0 || !strstr(err.text, r->found) ||
            !expected || !strstr(expected, r->expected))
            fail_msg("refusal %zu: %s", i, err.text);
    }
}

static const char rich[] =
    HEAD ".global .align 4 .u32 counter = 5;\n"
         ".visible .global .align 8 .u64 where = counter;\n"
         ".const .align 4 .b8 bytes[4] = {1, 2, 0x03, 0b100};\n"
         ".shared .align 16 .b8 tile[64];\n"
         ".extern .shared .align 16 .b8 more[];\n"
         ".file 1 \"a.cu\"\n"
         ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<3>;\n"
         "ld.param.u32 %r1, [a];\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [r+0], %r2;\nret;\n}\n"
         ".visible .entry k(.param .u64 .ptr .global .align 4 p, .param .align 8 .b8 s[16],\n"
         " .param .f32 x)\n.maxntid 8, 4, 2\n.minnctapersm 2\n.maxnreg 64\n"
         "{\n.local .align 8 .b8 depot[24];\n.reg .pred %p<2>;\n.reg .b32 %r<5>, %a;\n"
         ".reg .b64 %rd<4>;\n.loc 1 42 7\n"
         "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd2, %rd1;\n"
         "{ .param .b32 param0; st.param.b32 [param0+0], 21; .param .b32 retval0;\n"
         "call.uni (retval0), twice, (param0); ld.param.b32 %r1, [retval0+0]; }\n"
         "setp.eq.s32 %p1, %r1, 42;\n@!%p1 bra $L;\n"
         "ld.global.u32 %r2, [counter];\nadd.u32 %r1, %r1, %r2;\n"
         "$L: st.global.u32 [%rd2], %r1;\nret;\n}\n";

static void test_declarations(void **state) {
    (void)state;
    vm_module *m = NULL;
    ev_error err = {0};
    if (load(rich, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_module_sm(m), 90);
    const vm_entry *e = vm_module_find(m, NULL);
    assert_non_null(e);
    assert_int_equal(e->param_count, 3);
    assert_int_equal(e->params[1].offset, 8);
    assert_int_equal(e->params[1].bytes, 16);
    assert_int_equal(e->params[2].type, EV_F32);
    assert_int_equal(e->param_bytes, 28);
    assert_int_equal(e->max_threads, 64);
    assert_int_equal(e->min_blocks, 2);
    assert_int_equal(e->max_registers, 64);
    assert_int_equal(e->shared_bytes, 64);
    assert_int_equal(e->local_bytes, 24);
    vm_insn_info info;
    vm_module_info(m, e->first_pc, &info);
    assert_string_equal(info.name, "ld.param.u64");
    assert_int_equal(info.source_line, 42);
    assert_int_equal(info.def_count, 1);
    assert_int_equal(vm_module_register_words(m, info.defs[0]), 2);
    vm_module_free(m);
}

static void test_global_variables(void **state) {
    (void)state;
    vm_module *m = NULL;
    vm_memory *memory = NULL;
    ev_error err = {0};
    assert_int_equal(load(rich, &m, &err), EV_OK);
    assert_int_equal(vm_memory_new(1 << 16, &memory, &err), EV_OK);
    struct {
        uint64_t p;
        uint8_t s[16];
        float x;
    } params = {0};
    assert_int_equal(vm_memory_alloc(memory, 4, VM_BUFFER_OUT, "o", &params.p, &err), EV_OK);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {1, 1, 1},
                        .params = &params,
                        .checks = VM_CHECK_ALL};
    vm_result result;
    assert_int_equal(vm_run(memory, &launch, &result, &err), EV_OK);
    if (!result.ok)
        fail_msg("%s", result.trap.message);
    assert_int_equal(*(uint32_t *)vm_memory_host(memory, params.p), 47);
    vm_memory_free(memory);
    vm_module_free(m);
}

static void test_disassembly(void **state) {
    (void)state;
    static const char *const lines[] = {"@!%p1 add.u32 %r1, %r2, -5;",
                                        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1+16];",
                                        "setp.lt.s32 %p1|%p2, %r1, %r2;",
                                        "fma.rn.f32 %f1, %f2, 0f3F800000, %f3;",
                                        "st.shared.u32 [%r1-4], %r2;",
                                        "mov.u32 %r1, %tid.x;",
                                        "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;"};
    char text[2000] = KERNEL;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        strcat(strcat(text, lines[i]), "\n");
    strcat(text, "ret;\n}\n");
    vm_module *m = NULL;
    ev_error err = {0};
    if (load(text, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *got = vm_module_disassemble(m, i);
        assert_string_equal(got, lines[i]);
        free(got);
    }
    size_t bytes;
    assert_int_equal(strncmp(vm_module_line(m, 10, &bytes), lines[0], strlen(lines[0])), 0);
    assert_int_equal(bytes, strlen(lines[0]));
    vm_module_free(m);
}

/* ---- broken text */

static void load_and_run(const char *text, size_t bytes) {
    vm_module *m = NULL;
    ev_error err = {0};
    if (vm_module_load(text, bytes, "m.ptx", &m, &err) != EV_OK) {
        assert_true(strstr(err.text, "expected") || strstr(err.text, "needs"));
        return;
    }
    for (uint32_t pc = 0; pc < vm_module_insn_count(m); pc++)
        free(vm_module_disassemble(m, pc));
    vm_memory *memory = NULL;
    assert_int_equal(vm_memory_new(1 << 16, &memory, &err), EV_OK);
    uint64_t params[64] = {0};
    assert_int_equal(vm_memory_alloc(memory, 1024, VM_BUFFER_INOUT, "b", &params[0], &err), EV_OK);
    params[1] = params[2] = params[0];
    const vm_entry *entry = vm_module_entry(m, 0);
    if (entry && entry->param_bytes <= sizeof params) {
        vm_launch launch = {.module = m,
                            .entry = entry,
                            .grid = {2, 1, 1},
                            .block = {40, 1, 1},
                            .params = params,
                            .checks = VM_CHECK_ALL,
                            .fuel = 20000};
        vm_result result;
        (void)!vm_run(memory, &launch, &result, &err);
    }
    vm_memory_free(memory);
    vm_module_free(m);
}

static void mutate(const char *text, size_t bytes, uint64_t seed, unsigned count) {
    static const char alphabet[] = " \n.,;:{}[]()<>@!%+-|_$\"/*abcfprtux0123456789";
    char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    ev_pcg rng = ev_pcg_seed(seed, 7);
    for (unsigned i = 0; i < count; i++) {
        memcpy(copy, text, bytes);
        uint32_t at = ev_pcg_below(&rng, (uint32_t)bytes);
        size_t now = bytes;
        uint32_t how = ev_pcg_below(&rng, 4);
        if (how == 0)
            copy[at] = (char)ev_pcg_below(&rng, 256);
        else if (how == 1) {
            memmove(copy + at, copy + at + 1, bytes - at - 1);
            now--;
        } else if (how == 2)
            now = at; /* the text breaks off */
        else
            copy[at] = alphabet[ev_pcg_below(&rng, sizeof alphabet - 1)];
        load_and_run(copy, now);
    }
    free(copy);
}

static void test_mutations(void **state) {
    (void)state;
    mutate(rich, sizeof rich - 1, 1, MUTATIONS);
}

static void test_mutated_zoo(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    ev_error err;
    assert_int_equal(ev_file_read("tests/ptx/zoo/good.ptx", &text, &bytes, &err), EV_OK);
    mutate(text, bytes, 2, 100);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_global_variables), cmocka_unit_test(test_disassembly),
        cmocka_unit_test(test_mutations),        cmocka_unit_test(test_mutated_zoo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
