/* Dot-parts in any order: what nvcc writes loads, every permutation of a form means the same, and
 * each rule of ptx_order.def refuses its sample with the order that is expected. The assembler of
 * CUDA 13.0 agrees with each line here. */
#include "fitness/ptx/ptx_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ev_status load(const char *insn, vm_module **m, ev_error *err) {
    char text[1200];
    int n = snprintf(text, sizeof text,
                     ".version 9.0\n.target sm_90\n.address_size 64\n"
                     ".visible .entry k(.param .align 16 .b8 p[64])\n{\n"
                     ".reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%d<9>;\n"
                     "%s;\nret;\n}\n",
                     insn);
    *m = NULL;
    return vm_module_load(text, (size_t)n, "t.ptx", m, err);
}

typedef struct refusal {
    const char *parts, *insn, *expected; /* the rule's parts */
} refusal;

static const refusal refusals[] = {
    {"<type>", "cvt.rn.u32.f32 %r0, %r1", "'cvt"},
    {"lo hi wide", "mul.u32.lo %r0, %r1, %r2", "'mul.lo.u32'"},
    {"l r", "shf.wrap.l.b32 %r0, %r1, %r2, %r3", "'shf.l.wrap.b32'"},
    {"to", "cvta.global.to.u64 %d0, %d1", "'cvta.to.global.u64'"},
    {"full", "div.ftz.full.f32 %r0, %r1, %r2", "'div.full.ftz.f32'"},
    {"cta warp sync arrive red", "bar.popc.red.u32 %r0, %r1, %p0", "'bar.red.popc.u32'"},
    {"cta arrive red", "barrier.aligned.cta.sync 0", "'barrier.cta.sync.aligned'"},
    {"proxy", "fence.async.proxy", "'fence.proxy.async'"},
    {"pack", "cvt.sat.pack.u16.s32 %r0, %r1, %r2", "'cvt.pack.sat.u16.s32'"},
    {"async mbarrier arrive commit_group wait_group wait_all",
     "cp.ca.async.shared.global [%r0], [%d0], 4", "'cp.async.ca.shared.global'"},
    {"shared shared::cta global", "cp.async.ca.global.shared [%r0], [%d0], 4",
     "'cp.async.ca.shared.global'"},
    {"init inval arrive arrive_drop test_wait try_wait pending_count expect_tx complete_tx parity",
     "mbarrier.shared.arrive.b64 %d0, [%r0]", "'mbarrier.arrive.shared.b64'"},
    {"load store mma a b c d", "wmma.a.load.sync.aligned.row.m8n8k4.f64 {%d0}, [%d1]",
     "'wmma.load.a.sync.aligned.row.m8n8k4.f64'"},
    {"row col",
     "mma.sync.aligned.m8n8k4.col.row.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1}",
     "row.col"},
    {"and xor popc",
     "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.popc.and {%r0, %r1}, {%r2}, {%r3}, {%r0, "
     "%r1}",
     "'mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc'"},
};

static void test_each_rule_refuses_its_sample(void **state) {
    (void)state;
    ptx_order_rule rule;
    size_t i = 0;
    for (; ptx_order_get(i, &rule); i++) {
        assert_true(i < sizeof refusals / sizeof *refusals);
        assert_string_equal(rule.parts, refusals[i].parts);
        vm_module *m;
        ev_error err = {0};
        ev_status status = load(refusals[i].insn, &m, &err);
        vm_module_free(m);
        if (status != EV_BAD || !strstr(err.text, "expected") ||
            (*rule.parts != '<' && !strstr(err.text, refusals[i].expected)))
            fail_msg("%s: %d %s", refusals[i].insn, status, err.text);
    }
    assert_int_equal(i, sizeof refusals / sizeof *refusals);
}

/* As nvcc 13 writes them. */
static const char *const spellings[] = {
    "atom.global.sys.add.u32 %r0, [%d0], %r1",
    "atom.add.release.gpu.u32 %r0, [%d0], %r1",
    "atom.cas.acquire.sys.global.b32 %r0, [%d0], %r1, %r2",
    "red.gpu.global.relaxed.add.u32 [%d0], %r1",
    "vote.ballot.sync.b32 %r0, %p0, %r1",
    "vote.all.sync.pred %p0, %p1, %r1",
    "match.sync.any.b32 %r0, %r1, %r2",
    "shfl.down.sync.b32 %r0, %r1, %r2, %r3, %r4",
    "setp.and.lt.s32 %p0, %r1, %r2, %p1",
    "cvt.f32.rn.f64 %r0, %d0",
    "ld.u32.global.volatile %r0, [%d0]",
    "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1}",
    "barrier.aligned.sync 0",
};

static void test_other_orders_load(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        vm_module *m;
        ev_error err = {0};
        if (load(spellings[i], &m, &err) != EV_OK)
            fail_msg("%s: %s", spellings[i], err.text);
        vm_module_free(m);
    }
}

/* A mnemonic of four parts and its operands. */
typedef struct form {
    const char *name, *parts[4], *operands;
} form;

static const form forms[] = {
    {"atom", {"acquire", "gpu", "global", "add"}, "%r0, [%d0], %r1"}, /* with a type behind */
    {"fma", {"rz", "ftz", "sat", "f32"}, "%r0, %r1, %r2, %r3"},
    {"setp", {"ge", "or", "ftz", "f32"}, "%p0, %r1, %r2, %p1"},
    {"ld", {"relaxed", "sys", "global", "u32"}, "%r0, [%d0]"},
    {"min", {"ftz", "NaN", "xorsign", "abs"}, "%r0, %r1, %r2"},
};

static void expect_same(const form *f, const unsigned order[4], const ptx_insn *first) {
    char insn[200];
    const char *type = "";
    if (*f->name == 'a')
        type = ".u32";
    else if (strcmp(f->name, "min") == 0)
        type = ".f32";
    (void)snprintf(insn, sizeof insn, "%s.%s.%s%s.%s.%s %s", f->name, f->parts[order[0]],
                   f->parts[order[1]], type, f->parts[order[2]], f->parts[order[3]], f->operands);
    vm_module *m;
    ev_error err = {0};
    if (load(insn, &m, &err) != EV_OK)
        fail_msg("%s: %s", insn, err.text);
    const ptx_insn *got = &m->code[0];
    ptx_insn a = *first, b = *got;
    a.fn = b.fn = a.body = b.body = NULL;
    if (memcmp(&a, &b, sizeof a) != 0)
        fail_msg("%s is another instruction", insn);
    vm_module_free(m);
}

static void test_every_permutation_means_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        ptx_insn first = {0};
        for (unsigned n = 0; n < 256; n++) {
            unsigned order[4] = {n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6};
            unsigned seen = 1u << order[0] | 1u << order[1] | 1u << order[2] | 1u << order[3];
            if (seen != 15)
                continue;
            if (!first.fn) {
                const unsigned plain[4] = {0, 1, 2, 3};
                char insn[200];
                const form *f = &forms[i];
                const char *type = *f->name == 'a' ? ".u32" : "";
                (void)snprintf(insn, sizeof insn, "%s.%s.%s.%s.%s%s %s", f->name,
                               f->parts[plain[0]], f->parts[plain[1]], f->parts[plain[2]],
                               f->parts[plain[3]], strcmp(f->name, "min") ? type : ".f32",
                               f->operands);
                vm_module *m;
                ev_error err = {0};
                assert_int_equal(load(insn, &m, &err), EV_OK);
                first = m->code[0];
                vm_module_free(m);
            }
            expect_same(&forms[i], order, &first);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rule_refuses_its_sample),
        cmocka_unit_test(test_other_orders_load),
        cmocka_unit_test(test_every_permutation_means_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
