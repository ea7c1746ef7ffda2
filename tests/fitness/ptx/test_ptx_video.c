/* Operands of video instructions: selectors, masks and signs that the assembler of CUDA 13.0 takes
 * load, and what it refuses is refused with what is expected. The results are goldens
 * (goldens_video.txt, goldens_rare.txt). */
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ev_status load(const char *insn, ev_error *err) {
    char text[600];
    int n = snprintf(text, sizeof text,
                     ".version 8.0\n.target sm_90\n.address_size 64\n"
                     ".visible .entry k()\n{\n"
                     ".reg .pred %%p<4>; .reg .b16 %%h<4>; .reg .b32 %%r<4>; .reg .b64 %%d<4>;\n"
                     "%s;\nret;\n}\n",
                     insn);
    vm_module *m = NULL;
    ev_status status = vm_module_load(text, (size_t)n, "t.ptx", &m, err);
    vm_module_free(m);
    return status;
}

static void test_taken(void **state) {
    (void)state;
    static const char *const good[] = {
        "vadd.u32.u32.u32 %r0, %r1, %r2, %r3",
        "vadd.u32.s32.u32.add.sat %r0, %r1.b0, %r2.h1, %r3",
        "vadd.u32.s32.u32 %r0.b1, %r1.b0, %r2.h1, %r3",
        "vadd.u32.u32.u32 %r0, %r1 .b0, 5",
        "vadd.s32.s32.s32.add %r0, -5, %r2, -7",
        "vadd.u32.add.u32.sat.u32 %r0, %r1, %r2, %r3",
        "vshl.clamp.u32.s32.u32 %r0, %r1.h1, %r2.b1",
        "vshr.u32.s32.u32.wrap %r0, %r1, %r2, %r3",
        "vset.lt.u32.u32.add %r0, %r1, %r2.h1, %r3",
        "vset.u32.u32.ge %r0.b2, %r1, %r2.h1, %r3",
        "vmad.u32.u32.u32.sat.po.shr7 %r0, %r1, %r2, %r3",
        "vmad.s32.u32.u32 %r0, - %r1.b1, %r2.h1, %r3",
        "vmad.s32.u32.u32 %r0, -%r1, -%r2, -%r3",
        "vmad.s32.s32.s32.po %r0, %r1, %r2, -5",
        "vadd2.u32.u32.u32 %r0.h10, %r1.h00, %r2.h13, %r3",
        "vadd4.u32.u32.u32.add %r0.b20, %r1.b7531, %r2, %r3",
        "vset2.ne.u32.u32 %r0.h1, %r1.h20, %r2.h33, %r3",
        "vset4.s32.u32.ge.add %r0.b31, %r1.b3210, %r2.b7654, %r3",
        "vadd2.u32.add.u32.u32 %r0, %r1, %r2, %r3",
        "@%p1 vavrg2.u32.u32.u32.sat %r0.h1, %r1, %r2, %r3",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ev_error err = {0};
        if (load(good[i], &err) != EV_OK)
            fail_msg("%s: %s", good[i], err.text);
    }
}

/* What the message must say, too. */
static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"vadd.u32.s32.u32.add %r0, %r1.b0, %r2.h1", "three operands; expected c"},
        {"vadd.u32.s32.u32 %r0.b1, %r1.b0, %r2.h1", "three operands; expected c"},
        {"vadd.u32.s32.u32.min %r0.b1, %r1, %r2, %r3", "'.b1' and a second operation"},
        {"vset.u32.u32.ge.min %r0.h0, %r1, %r2, %r3", "'.h0' and a second operation"},
        {"vadd.u32.s32.u32.sat %r0.h1, %r1, %r2, %r3.h0", "a selector; expected none here"},
        {"vadd.u32.u32.u32 %r0, -%r1, %r2", "a sign; expected none here"},
        {"vadd.u32.u32.u32 %r0, %r1.b10, %r2", "'.b10'; expected .b0, .b1, .b2, .b3, .h0 or .h1"},
        {"vadd.u32.u32.u32 %r0, %r1, %r2.h10", "'.h10'; expected .b0"},
        {"vadd.u32.u32.u32 %r0.b4, %r1, %r2, %r3", "'.b4'; expected .b0"},
        {"vadd.u32.u32.u32 %r0, %d1, %r2", "64"},
        {"vadd.u32.u32.u32 %r0, 1.0, %r2", "expected"},
        {"vadd.u32.u32.b32 %r0, %r1, %r2", "expected .u32, .s32"},
        {"vshl.u32.u32.u32 %r0, %r1, %r2", ".clamp, .wrap"},
        {"vshl.s32.s32.s32.wrap %r0, %r1, %r2", "expected .u32"},
        {"vset.u32.u32.sat.ge %r0, %r1, %r2", "'.sat'"},
        {"vmad.s32.u32.u32 %r0.b0, %r1, %r2, %r3", "a selector; expected none here"},
        {"vmad.s32.u32.u32 %r0, %r1, %r2, %r3.b0", "a selector; expected none here"},
        {"vmad.u32.u32.u32.po %r0, -%r1, %r2, %r3", ".po and a sign"},
        {"vmad.u32.u32.u32.po %r0, %r1, %r2, -%r3", ".po and a sign"},
        {"vmad.s32.u32.u32 %r0, -%r1, %r2, -%r3", "signs of the product and of the summand"},
        {"vmad.s32.u32.u32.add %r0, %r1, %r2, %r3", "'.add'"},
        {"vadd2.u32.u32.u32 %r0, %r1, %r2", "3 operands"},
        {"vadd2.u32.u32.u32 %r0.h01, %r1, %r2, %r3", "'.h01'; expected .h0, .h1 or .h10"},
        {"vadd2.u32.u32.u32 %r0.b0, %r1, %r2, %r3", "'.b0'; expected .h0"},
        {"vadd2.u32.u32.u32 %r0, %r1.h0, %r2, %r3", "'.h0'; expected .h and two digits"},
        {"vadd2.u32.u32.u32 %r0, %r1.h44, %r2, %r3", "'.h44'; expected .h and two digits"},
        {"vadd2.u32.u32.u32 %r0, 5, %r2, %r3", "expected a register"},
        {"vadd2.u32.u32.u32 %r0, %r1, %r2, 5", "expected a register"},
        {"vadd2.u32.u32.u32.min %r0, %r1, %r2, %r3", "'.min'"},
        {"vadd4.u32.u32.u32 %r0.b302, %r1, %r2, %r3", "'.b302'; expected .b and digits"},
        {"vadd4.u32.u32.u32 %r0, %r1.b8654, %r2, %r3", "'.b8654'; expected .b and four digits"},
        {"vadd4.u32.u32.u32 %r0, %r1.b654, %r2, %r3", "'.b654'; expected .b and four digits"},
        {"add.u32 %r0, %r1.b0, %r2", "expected"},
        {"add.u32 %r0, -%r1, %r2", "expected"},
        {"vavrg.u32.u32.u32 %r0, %r1, %r2", "expected an instruction that the machine has"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ev_error err = {0};
        if (load(bad[i][0], &err) != EV_BAD || !strstr(err.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
