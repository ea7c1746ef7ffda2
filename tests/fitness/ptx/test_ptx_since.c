/* Which .version and .target the loader asks for, by the notes of the PTX ISA on each instruction.
 */
#include "base/status.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static vm_module *load_whole(const char *head, const char *rest, ev_error *err) {
    char text[1200];
    int n = snprintf(text, sizeof text, "%s%s\n", head, rest);
    vm_module *m = NULL;
    return vm_module_load(text, (size_t)n, "t.ptx", &m, err) == EV_OK ? m : NULL;
}

/* NULL: it is refused. */
static vm_module *load_module(const char *head, const char *insn, ev_error *err) {
    char text[1000];
    snprintf(text, sizeof text,
             "\n.address_size 64\n.visible .entry k(.param .u64 input)\n{\n"
             ".reg .pred %%p<4>; .reg .b16 %%h<4>; .reg .b32 %%r<8>; .reg .b64 %%d<8>;\n"
             "%s;\nret;\n}\n",
             insn);
    return load_whole(head, text, err);
}

static ev_status load(const char *head, const char *insn, ev_error *err) {
    vm_module *m = load_module(head, insn, err);
    vm_module_free(m);
    return m != NULL ? EV_OK : EV_BAD;
}

/* An instruction, the first target and version that have it, and the last that do not. */
typedef struct since_case {
    const char *insn;
    int sm;
    const char *version;       /* or the first that has the target, where that is later */
    int below_sm;              /* 0: all targets have it */
    const char *below_version; /* "": no version before has the target */
} since_case;

static const since_case cases[] = {
    {"add.u32 %r0, %r1, %r2", 20, "3.0", 0, ""},
    {"add.s16x2 %r0, %r1, %r2", 90, "8.0", 89, "7.8"},
    {"min.relu.s32 %r0, %r1, %r2", 90, "8.0", 80, "7.8"},
    {"add.cc.u32 %r0, %r1, %r2", 20, "3.0", 0, ""},
    {"add.cc.u64 %d0, %d1, %d2", 20, "4.3", 0, "4.2"},
    {"addc.s64 %d0, %d1, %d2", 20, "4.3", 0, "4.2"},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3", 32, "4.0", 30, "3.0"},
    {"lop3.b32 %r0, %r1, %r2, %r3, 1", 50, "4.3", 37, "4.2"},
    {"dp4a.u32.u32 %r0, %r1, %r2, %r3", 61, "5.0", 60, ""},
    {"bmsk.clamp.b32 %r0, %r1, %r2", 70, "7.6", 62, "7.5"},
    {"fns.b32 %r0, %r1, %r2, %r3", 30, "6.0", 20, "5.0"},
    {"add.f16 %h0, %h1, %h2", 53, "4.2", 52, ""},
    {"add.bf16 %h0, %h1, %h2", 90, "7.8", 89, ""},
    {"fma.rn.f16 %h0, %h1, %h2, %h3", 53, "4.2", 52, ""},
    {"fma.rn.relu.f16 %h0, %h1, %h2, %h3", 80, "7.0", 75, ""},
    {"fma.rn.bf16 %h0, %h1, %h2, %h3", 80, "7.0", 75, ""},
    {"abs.f16 %h0, %h1", 53, "6.5", 52, "6.4"},
    {"neg.f16 %h0, %h1", 53, "6.0", 52, "5.0"},
    {"neg.bf16 %h0, %h1", 80, "7.0", 75, ""},
    {"max.f16 %h0, %h1, %h2", 80, "7.0", 75, ""},
    {"max.NaN.f32 %r0, %r1, %r2", 80, "7.0", 75, ""},
    {"max.xorsign.abs.f32 %r0, %r1, %r2", 86, "7.2", 80, "7.1"},
    {"tanh.approx.f32 %r0, %r1", 75, "7.0", 72, "6.5"},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1},{%r0,%r1},{%r2},{%r0,%r1}", 75,
     "6.5", 72, "6.4"},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0,%d1},{%d2},{%d3},{%d0,%d1}", 80, "7.0",
     75, ""},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%r0,%r1},{%r2},{%r3},{%r0,%r1}", 80,
     "7.1", 75, "7.0"},
    {"wmma.load.a.sync.row.m8n32k16.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%d0]", 70, "6.1", 62,
     "6.0"},
    {"wmma.load.a.sync.aligned.row.m16n16k16.u8 {%r0,%r1}, [%d0]", 72, "6.3", 70, "6.2"},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1]", 75, "6.5", 72, "6.4"},
    {"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1", 75, "7.8", 72, "7.7"},
    {"ex2.approx.ftz.bf16 %h0, %h1", 90, "7.8", 80, ""},
    {"rsqrt.approx.ftz.f64 %d0, %d1", 20, "4.0", 0, "3.2"},
    {"setp.lt.f16 %p0, %h1, %h2", 53, "4.2", 52, ""},
    {"setp.lt.bf16 %p0, %h1, %h2", 90, "7.8", 89, ""},
    {"cvt.rn.f16.f32 %h0, %r1", 20, "3.0", 0, ""},
    {"cvt.rn.bf16.f32 %h0, %r1", 80, "7.0", 75, ""},
    {"cvt.f32.bf16 %r0, %h1", 80, "7.1", 75, "7.0"},
    {"cvt.rn.bf16.s32 %h0, %r1", 90, "7.8", 89, ""},
    {"cvt.rn.f16x2.f32 %r0, %r1, %r2", 80, "7.0", 75, ""},
    {"cvt.rna.tf32.f32 %r0, %r1", 80, "7.0", 75, ""},
    {"cvt.rz.tf32.f32 %r0, %r1", 90, "7.8", 86, ""},
    {"isspacep.const %p0, %d0", 20, "3.1", 0, "3.0"},
    {"cvta.param.u64 %d0, %d1", 70, "7.7", 62, "7.6"},
    {"ld.global.nc.u32 %r0, [%d0]", 32, "4.0", 30, "3.0"},
    {"ld.relaxed.gpu.global.u32 %r0, [%d0]", 70, "6.0", 62, ""},
    {"ld.acquire.cluster.global.u32 %r0, [%d0]", 90, "7.8", 86, ""},
    {"st.release.cta.shared.u32 [%r0], %r1", 70, "6.0", 62, ""},
    {"ld.global.L1::no_allocate.u32 %r0, [%d0]", 70, "7.4", 62, "7.3"},
    {"ld.global.L2::128B.u32 %r0, [%d0]", 75, "7.4", 72, "7.3"},
    {"ld.global.L2::256B.u32 %r0, [%d0]", 80, "7.4", 75, "7.3"},
    {"ld.shared::cta.u32 %r0, [%r1]", 20, "7.8", 0, "7.7"},
    {"atom.global.add.u32 %r0, [%d0], %r1", 20, "3.0", 0, ""},
    {"atom.shared.min.u64 %d0, [%r0], %d1", 32, "4.0", 30, "3.0"},
    {"atom.gpu.global.add.u32 %r0, [%d0], %r1", 60, "5.0", 53, ""},
    {"atom.acq_rel.gpu.global.add.u32 %r0, [%d0], %r1", 70, "6.0", 62, ""},
    {"atom.global.add.f64 %d1, [%d0], %d2", 60, "5.0", 53, ""},
    {"red.global.add.noftz.f16x2 [%d0], %r0", 60, "6.2", 53, "6.1"},
    {"red.global.add.noftz.f16 [%d0], %h0", 70, "6.3", 62, "6.2"},
    {"atom.global.add.noftz.bf16 %h0, [%d0], %h1", 90, "7.8", 89, ""},
    {"atom.global.cas.b16 %h0, [%d0], %h1, %h2", 70, "6.3", 62, "6.2"},
    {"shfl.idx.b32 %r0, %r1, %r2, %r3", 30, "3.0", 20, ""},
    {"shfl.sync.idx.b32 %r0, %r1, %r2, %r3, -1", 30, "6.0", 20, "5.0"},
    {"match.any.sync.b32 %r0, %r1, -1", 70, "6.0", 62, ""},
    {"redux.sync.add.s32 %r0, %r1, -1", 80, "7.0", 75, ""},
    {"wmma.load.c.sync.row.m16n16k16.f16 {%r0, %r1, %r2, %r3}, [%d0]", 70, "6.0", 62, ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.f16 {%r0, %r1, %r2, %r3}, [%d0]", 70, "6.3", 62,
     "6.2"},
    {"elect.sync %r0|%p0, -1", 90, "8.0", 89, "7.8"},
    {"activemask.b32 %r0", 30, "6.2", 20, "6.1"},
    {"bar.warp.sync -1", 30, "6.0", 20, "5.0"},
    {"bar.cta.sync 0", 20, "7.8", 0, "7.7"},
    {"barrier.sync 0", 30, "6.0", 20, "5.0"},
    {"fence.acq_rel.gpu", 70, "6.0", 62, ""},
    {"fence.sc.cluster", 90, "7.8", 89, ""},
    {"nanosleep.u32 10", 70, "6.2", 62, "6.1"},
    {"mov.u32 %r0, %dynamic_smem_size", 20, "4.1", 0, "4.0"},
    {"mov.u64 %d0, %globaltimer", 30, "3.1", 20, "3.0"},
    {"mov.u32 %r0, %cluster_ctarank", 90, "7.8", 89, ""},
    {"tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}]", 20, "3.0", 0, ""},
    {"tex.base.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}]", 20, "3.1", 0, "3.0"},
    {"tex.level.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}], %r0", 20, "3.1", 0, "3.0"},
    {"tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%d0, {%r0, %r1}]", 53, "4.2", 52, ""},
    {"tex.2d.v2.f16x2.f32 {%r0, %r1}, [%d0, {%r0, %r1}]", 53, "4.2", 52, ""},
    {"tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}], {1, 1}", 30, "4.3", 20, "4.2"},
    {"tld4.r.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}]", 20, "3.0", 0, ""},
    {"tld4.r.a2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1, %r2, %r2}]", 30, "4.3", 20,
     "4.2"},
    {"txq.width.b32 %r0, [%d0]", 20, "3.0", 0, ""},
    {"txq.level.width.b32 %r0, [%d0], 0", 30, "4.3", 20, "4.2"},
    {"txq.array_size.b32 %r0, [%d0]", 30, "4.1", 20, "4.0"},
    {"suq.memory_layout.b32 %r0, [%d0]", 30, "4.2", 20, "4.1"},
    {"suld.b.1d.b32.trap %r0, [%d0, {%r0}]", 20, "3.0", 0, ""},
    {"istypep.texref %p0, %d0", 30, "4.0", 20, "3.2"},
};

static void expect(const since_case *c, const char *version, int sm, const char *needs) {
    char head[80];
    snprintf(head, sizeof head, ".version %s\n.target sm_%d", version, sm);
    ev_error err = {0};
    ev_status status = load(head, c->insn, &err);
    if ((status == EV_OK) != !needs || (needs && !strstr(err.text, needs)))
        fail_msg("%s, %s: expected %s, got %s", c->insn, head, needs ? needs : "to load",
                 status == EV_OK ? "none" : err.text);
}

static void test_first(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const since_case *c = &cases[i];
        char needs[80];
        expect(c, c->version, c->sm, NULL);
        snprintf(needs, sizeof needs, "needs .target sm_%d or higher; the module says sm_%d", c->sm,
                 c->below_sm);
        const char *version = c->version[0] < '6' ? "6.3" : "7.8";
        if (c->below_sm)
            expect(c, c->sm > 86 ? "8.5" : version, c->below_sm, needs);
        snprintf(needs, sizeof needs, "needs .version %s or higher; the module says %s", c->version,
                 c->below_version);
        if (*c->below_version)
            expect(c, c->below_version, c->sm, needs);
    }
}

static void test_message(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(load(".version 7.0 .target sm_70", "redux.sync.add.s32 %r0, %r1, -1", &err),
                     EV_BAD);
    assert_string_equal(err.text, "t.ptx:6:1: 'redux.sync.add.s32' needs .target sm_80 or higher; "
                                  "the module says sm_70");
}

/* shfl and vote without .sync: gone with sm_70, but only since PTX 6.4. */
static void test_gone(void **state) {
    (void)state;
    static const char *const insns[] = {"shfl.up.b32 %r0|%p0, %r1, %r2, %r3",
                                        "vote.any.pred %p0, %p1", "vote.ballot.b32 %r0, %p1"};
    static const char *const cures[] = {"use shfl.sync.up.b32", "use vote.sync.any.pred",
                                        "use vote.sync.ballot.b32"};
    for (size_t i = 0; i < sizeof insns / sizeof *insns; i++) {
        ev_error err = {0};
        assert_int_equal(load(".version 8.5 .target sm_62", insns[i], &err), EV_OK);
        assert_int_equal(load(".version 6.3 .target sm_70", insns[i], &err), EV_OK);
        assert_int_equal(load(".version 6.4 .target sm_70", insns[i], &err), EV_BAD);
        assert_non_null(strstr(err.text, cures[i]));
    }
}

/* Directives: what .version each needs, as the assembler of CUDA 13.0 says too. */
static void test_directives(void **state) {
    (void)state;
    static const struct {
        int sm;
        const char *below, *from, *text, *what;
    } rows[] = {
        {30, "6.3", "6.4", ".visible .func f() .noreturn { exit; }", ".noreturn"},
        {30, "6.2", "6.3", ".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;",
         ".alias"},
        {30, "4.3", "5.0", ".common .global .u32 x;", ".common"},
        {30, "3.2", "4.0", ".global .attribute(.managed) .u32 x;", ".attribute"},
        {90, "8.8", "9.0", ".global .attribute(.unified(1, 2)) .u32 x;", ".unified"},
        {90, "8.8", "9.0", ".func f() .abi_preserve 4 { ret; }", ".abi_preserve"},
        {75, "6.5", "7.0", ".entry k() { .loc 1 4 5, function_name f, inlined_at 1 3 4\nret; }",
         ".loc of what is inlined"},
        {90, "8.0", "8.1", ".entry k(.param .align 4 .b8 a[8000]) { ret; }",
         "more than 4352 bytes of parameters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ev_error err = {0};
        char head[80], needs[100];
        snprintf(head, sizeof head, ".version %s .target sm_%d\n", rows[i].below, rows[i].sm);
        snprintf(needs, sizeof needs, "'%s' needs .version %s or higher; the module says %s",
                 rows[i].what, rows[i].from, rows[i].below);
        assert_null(load_whole(head, rows[i].text, &err));
        if (strstr(err.text, needs) == NULL)
            fail_msg("%s: %s", rows[i].text, err.text);
        snprintf(head, sizeof head, ".version %s .target sm_%d\n", rows[i].from, rows[i].sm);
        vm_module *m = load_whole(head, rows[i].text, &err);
        if (m == NULL)
            fail_msg("%s", err.text);
        vm_module_free(m);
    }
    ev_error err = {0};
    assert_null(
        load_whole(".version 7.8 .target sm_80\n", ".entry k() .maxclusterrank 8 { ret; }", &err));
    assert_non_null(strstr(err.text, "'.maxclusterrank' needs .target sm_90"));
}

/* What a module needs, and which of its parts does; the text that says so. */
static void test_needs(void **state) {
    (void)state;
    static const struct {
        const char *head, *insn;
        int needs;
        const char *what, *head_then;
    } rows[] = {
        {".version 9.0 .target sm_20", "mov.u32 %r0, %r1", 20, "sm_20", ".version 3.0 "},
        {".version 9.0 .target sm_75", "mov.u32 %r0, %r1", 63, "sm_75", ".version 6.3 "},
        {".version 8.5 .target sm_90", "mov.u32 %r0, %r1", 78, "sm_90", ".version 7.8 "},
        {".version 8.5 .target sm_90", "elect.sync %r0|%p0, -1", 80, "elect.sync", ".version 8.0 "},
        {".version 8.5 .target sm_80", "redux.sync.add.s32 %r0, %r1, -1", 70, "sm_80",
         ".version 7.0 "},
        {".version 8.6 .target sm_75", "mov.u32 %r0, %dynamic_smem_size", 63, "sm_75",
         ".version 6.3 "},
        {".version 8.6 .target sm_75", "tanh.approx.f32 %r0, %r1", 70, "tanh.approx.f32",
         ".version 7.0 "},
        {".version 7.0 .target sm_75", "tanh.approx.f32 %r0, %r1", 70, "tanh.approx.f32",
         ".version 7.0 "},
        {".version 8.5 .version 8.5 .target sm_90", "mov.u32 %r0, %r1", 78, "sm_90",
         ".version 8.5 .version 8.5 "},
        {".version 8.50 .target sm_90", "mov.u32 %r0, %r1", 78, "sm_90", ".version 8.50 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ev_error err = {0};
        const char *what = NULL;
        vm_module *m = load_module(rows[i].head, rows[i].insn, &err);
        if (m == NULL)
            fail_msg("%s", err.text);
        assert_int_equal(vm_module_needs(m, &what), rows[i].needs);
        assert_string_equal(what, rows[i].what);
        char *text = vm_module_text_for(m, rows[i].needs);
        assert_non_null(text);
        if (strncmp(text, rows[i].head_then, strlen(rows[i].head_then)) != 0)
            fail_msg("%.60s", text);
        free(text);
        text = vm_module_text_for(m, rows[i].needs - 1);
        bool is_old = rows[i].needs <= 30; /* nothing older than 3.0 is read, or written */
        const char *head = is_old ? rows[i].head_then : rows[i].head;
        assert_int_equal(strncmp(text, head, strlen(head)), 0);
        free(text);
        vm_module_free(m);
    }
}

/* Heads of modules: which pairs of version and target there are. */
static void test_heads(void **state) {
    (void)state;
    static const struct {
        const char *head, *wrong; /* NULL: loads */
    } heads[] = {
        {".version 3.0 .target sm_20", NULL},
        {".version 9.0 .target sm_20", NULL},
        {".version 8.5 .target sm_90a", NULL},
        {".version 8.6 .target sm_100a", NULL},
        {".version 8.8 .target sm_100f", NULL},
        {".version 9.0 .target sm_110a", NULL},
        {".version 8.7 .target sm_120", NULL},
        {".version 8.8 .target sm_121f", NULL},
        {".version 9.1 .target sm_120f", NULL},
        {".version 8.5 .target sm_75, debug", NULL},
        {".version 2.3 .target sm_20", "t.ptx:1:10: found '2.3'; expected a version from 3.0"},
        {".version 10.0 .target sm_90", "expected a version from 3.0 to 9.9"},
        {".version 8 .target sm_90", "expected a version from 3.0 to 9.9"},
        {".version 822222222222222222222222222222.5 .target sm_90",
         "expected a version from 3.0 to 9.9"},
        {".version 8.5 .target sm_13", "t.ptx:1:22: found 'sm_13'; expected a target from sm_20"},
        {".version 8.5 .target sm_85", "expected a target from sm_20"},
        {".version 8.5 .target sm_130", "expected a target from sm_20"},
        {".version 8.5 .target sm_80a", "expected a target from sm_20"},
        {".version 8.5 .target sm_90f", "expected a target from sm_20"},
        {".version 8.5 .target sm_", "expected a target"},
        {".version 7.8 .target sm_90a", "'sm_90a' needs .version 8.0 or higher"},
        {".version 8.5 .target sm_100", "'sm_100' needs .version 8.6 or higher"},
        {".version 8.7 .target sm_120f", "'sm_120f' needs .version 8.8 or higher"},
        {".target sm_80 .version 8.5", "expected .version before .target"},
        {".version 8.5", "expected .version and .target before all else"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        ev_error err = {0};
        ev_status status = load(heads[i].head, "add.u32 %r0, %r1, %r2", &err);
        if ((status == EV_OK) != !heads[i].wrong ||
            (heads[i].wrong && !strstr(err.text, heads[i].wrong)))
            fail_msg("%s: expected %s, got %s", heads[i].head,
                     heads[i].wrong ? heads[i].wrong : "to load",
                     status == EV_OK ? "none" : err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),      cmocka_unit_test(test_message),
        cmocka_unit_test(test_gone),       cmocka_unit_test(test_heads),
        cmocka_unit_test(test_directives), cmocka_unit_test(test_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
