/* The loader: what it reads; test_ptx_refusals and test_ptx_mutants hold what it refuses. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define KERNEL                                                                                     \
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<4>;\n"              \
         ".reg .f32 %f<4>;\n.reg .b64 %rd<4>;\n"

static ev_status load(const char *text, vm_module **m, ev_error *err) {
    return vm_module_load(text, strlen(text), "t.ptx", m, err);
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
    char text[2000] = KERNEL, *at = text + strlen(text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        at = stpcpy(stpcpy(at, lines[i]), "\n");
    memcpy(at, "ret;\n}\n", sizeof "ret;\n}\n");
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

/* What instruction `pc` touches, first of what it writes. */
static void check_touched(const vm_module *m, uint32_t pc, uint16_t def, unsigned uses) {
    vm_insn_info info;
    vm_module_info(m, pc, &info);
    assert_int_equal(info.def_count, 1);
    assert_int_equal(info.defs[0], def);
    assert_int_equal(info.use_count, uses);
}

/* A register of a range, one that is named like a member of it, and a range that hides another. */
static void test_names_of_registers(void **state) {
    (void)state;
    static const char text[] =
        HEAD ".entry k()\n{\n.reg .b32 %r<4>;\n.reg .b64 %r2;\n"
             "mov.u32 %r1, 1;\nmov.u64 %r2, 2;\n"
             "{\n.reg .b64 %r<4>;\nmov.u64 %r1, 3;\n}\nadd.u32 %r3, %r1, %r1;\nret;\n}\n";
    vm_module *m = NULL;
    ev_error err = {0};
    if (load(text, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    static const unsigned words[] = {1, 2, 2, 1};
    assert_int_equal(vm_module_register_count(m), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(vm_module_register_words(m, i), words[i]);
        check_touched(m, i, (uint16_t)i, i == 3 ? 2 : 0);
    }
    const uint16_t *touched = vm_module_touched(m);
    assert_int_equal(touched[3], 0); /* the sum's sources, then its result */
    assert_int_equal(touched[4], 0);
    assert_int_equal(touched[5], 3);
    vm_module_free(m);
}

/* Modules that share words have names of their own, and each is refused for itself. */
static void test_shared_words(void **state) {
    (void)state;
    static const char good[] = KERNEL "add.u32 %r1, %r2, 1;\nret;\n}\n";
    static const char bad[] = KERNEL "add.u32 %r1, %rd2, 1;\nret;\n}\n";
    static const char unknown[] = KERNEL "add.u33 %r1, %r2, 1;\nret;\n}\n";
    vm_words *words = NULL;
    vm_module *m[2] = {NULL, NULL}, *none = NULL;
    ev_error err = {0};
    assert_int_equal(vm_words_new(&words, &err), EV_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            vm_module_load_with(words, VM_PLACE_PACKED, good, sizeof good - 1, "t", &m[i], &err),
            EV_OK);
        assert_int_equal(
            vm_module_load_with(words, VM_PLACE_PACKED, bad, sizeof bad - 1, "t", &none, &err),
            EV_BAD);
        assert_non_null(strstr(err.text, "t:10:14: found %rd2 of 64"));
        assert_int_equal(vm_module_load_with(words, VM_PLACE_PACKED, unknown, sizeof unknown - 1,
                                             "t", &none, &err),
                         EV_BAD);
        assert_non_null(strstr(err.text, "found '.u33'"));
    }
    vm_words_free(words);
    vm_module_free(m[0]);
    char *line = vm_module_disassemble(m[1], 0);
    assert_string_equal(line, "add.u32 %r1, %r2, 1;");
    free(line);
    vm_module_free(m[1]);
}

/* One type stands before several names, each with dimensions and values of its own. */
static void test_lists_of_variables(void **state) {
    (void)state;
    static const char text[] =
        HEAD ".global .align 8 .u32 ga[2] = {1, 2}, gb = 3, gc;\n"
             ".visible .entry k()\n{\n.shared .align 1 .b8 sa[3], sb[5];\n"
             ".local .u64 la, lb;\n.reg .b32 %r<3>;\n{\n.param .b32 pa, pb[2];\n"
             "ld.global.u32 %r1, [gb];\nst.shared.u8 [sb], %r1;\nst.shared.u8 [sa], %r1;\n"
             "st.local.u32 [lb+4], %r1;\nst.param.b32 [pb+4], %r1;\n}\nret;\n}\n";
    vm_module *m = NULL;
    ev_error err = {0};
    if (load(text, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_module_find(m, "k")->shared_bytes, 8);
    assert_int_equal(vm_module_find(m, "k")->local_bytes, 16);
    vm_module_free(m);
    m = NULL;
    assert_int_equal(load(HEAD ".global .u32 ga, .u32 gb;\n", &m, &err), EV_BAD);
    assert_string_equal(err.text, "t.ptx:4:18: found '.u32'; expected a name");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_variables), cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_global_variables),   cmocka_unit_test(test_disassembly),
        cmocka_unit_test(test_names_of_registers), cmocka_unit_test(test_shared_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
