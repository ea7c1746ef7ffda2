/* What PTX has and the machine has not is refused when a module is loaded: with line and column, by
 * its name, what it is and what to have in its place. A row of ptx_absent.def without a sample
 * fails. */
#include "fitness/ptx/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/asserts.h"

#define HEAD ".version 9.0\n.target sm_120\n.address_size 64\n"
#define KERNEL                                                                                     \
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n"              \
         ".reg .b64 %d<8>;\n"
#define RUNTIME(name)                                                                              \
    ".extern .func " name "();\n.visible .entry e()\n{\ncall.uni ~" name ";\nret;\n}"

/* The name as it stands in the table, and a text that has it; an instruction, unless it begins with
 * a `!` and is then all that follows the head. `~` marks the place that must be named. */
typedef struct sample {
    const char *name, *text;
} sample;

static const sample samples[] = {
    {"*.2dms", "~tex.2dms.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r4, %r5, %r5, %r5}];"},
    {"*.a2dms", "~tex.a2dms.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r4, %r5, %r5, %r5}];"},
    {"sured.p", "~sured.p.add.1d.b32.trap [s, {%r0}], %r2;"},
    {".tex", "!~.tex .u32 t;"},
    {"wgmma", "@%p0 ~wgmma.fence.sync.aligned;"},
    {"tcgen05", "~tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%d0], 64;"},
    {"mma.sp",
     "~mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r1}, "
     "{%r2}, {%r3}, %r4, 0;"},
    {"*.kind",
     "~mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {%r0}, {%r1}, {%r2}, "
     "{%r3};"},
    {"*.e4m3", "~mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r0}, {%r1}, {%r2}, {%r3};"},
    {"*.e5m2", "~mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%r0}, {%r1}, {%r2}, {%r3};"},
    {"*.e2m1x2", "~cvt.rn.satfinite.e2m1x2.f32 %r0, %r1, %r2;"},
    {"*.e2m3x2", "~cvt.rn.satfinite.e2m3x2.f32 %r0, %r1, %r2;"},
    {"*.e3m2x2", "~cvt.rn.satfinite.e3m2x2.f32 %r0, %r1, %r2;"},
    {"*.ue8m0x2", "~cvt.rz.satfinite.ue8m0x2.f32 %r0, %r1, %r2;"},
    {"ldmatrix.sync.aligned.m16n16",
     "~ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];"},
    {"ldmatrix.sync.aligned.m8n16",
     "~ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r2];"},
    {"stmatrix.sync.aligned.m16n8",
     "~stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r2], {%r0};"},
    {"cp.async.bulk", "~cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
                      "bytes [%r0], [%d0, {%r1, "
                      "%r2}], [%r3];"},
    {"cp.reduce.async.bulk",
     "~cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r0], 16;"},
    {"tensormap", "~tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d0], 2;"},
    {"*.tensormap", "~prefetch.tensormap [%d0];"},
    {"st.async", "~st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r1, [%r2];"},
    {"red.async", "~red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                  "[%r0], %r1, [%r2];"},
    {"st.bulk", "~st.bulk.weak.shared::cta [%r0], 64, 0;"},
    {"barrier.cluster", "~barrier.cluster.arrive.aligned;"},
    {"mapa", "~mapa.shared::cluster.u32 %r0, %r1, 0;"},
    {"getctarank", "~getctarank.shared::cluster.u32 %r0, %r1;"},
    {"*.shared::cluster", "~ld.shared::cluster.u32 %r0, [%r1];"},
    {"*.multicast::cluster", "~frob.multicast::cluster.u32 %r0, [%r1];"},
    {"clusterlaunchcontrol",
     "~clusterlaunchcontrol.try_cancel.async.shared::cta.b128 [%r0], [%r1];"},
    {".reqnctapercluster", "!.visible .entry e()\n~.reqnctapercluster 2, 1\n{\nret;\n}"},
    {".blocksareclusters", "!.visible .entry e()\n~.blocksareclusters\n{\nret;\n}"},
    {"%is_explicit_cluster", "mov.pred %p0, ~%is_explicit_cluster;"},
    {"%aggr_smem_size", "mov.u32 %r0, ~%aggr_smem_size;"},
    {"multimem", "~multimem.ld_reduce.global.add.f32 %r0, [%d0];"},
    {"setmaxnreg", "~setmaxnreg.inc.sync.aligned.u32 96;"},
    {"createpolicy", "~createpolicy.fractional.L2::evict_last.b64 %d0;"},
    {"*.L2::cache_hint", "~ld.global.L2::cache_hint.u32 %r0, [%d0], %d1;"},
    {"applypriority", "~applypriority.global.L2::evict_normal [%d0], 128;"},
    {"discard", "~discard.global.L2 [%d0], 128;"},
    {"*.mmio", "~ld.mmio.relaxed.sys.global.u32 %r0, [%d0];"},
    {"pmevent.mask", "~pmevent.mask 3;"},
    {"%pm", "mov.u64 %d0, ~%pm0_64;"},
    {"%current_graph_exec", "mov.u64 %d0, ~%current_graph_exec;"},
    {"__cudaCDP*", "!" RUNTIME("__cudaCDP2LaunchDeviceV2_ptsz")},
    {"cudaGetParameterBuffer*", "!" RUNTIME("cudaGetParameterBufferV2")},
    {"cudaGraphSetConditional", "!" RUNTIME("cudaGraphSetConditional")},
    {"*.b128", ".reg ~.b128 %wide;"},
    {"*.v8", "~ld.global.v8.f32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d0];"},
    {"*.f32x2", "~fma.rn.f32x2 %d0, %d1, %d2, %d3;"},
    {"*.rs", "~cvt.rs.f16x2.f32 %r0, %r1, %r2, %r3;"},
    {"*.oob", "~fma.rn.oob.f16x2 %r0, %r1, %r2, %r3;"},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static const sample *find_sample(const char *name) {
    for (size_t i = 0; i < SAMPLES; i++)
        if (strcmp(samples[i].name, name) == 0)
            return &samples[i];
    return NULL;
}

/* Takes the `~` out of the text and tells its line and column. */
static void place_of_mark(char *text, unsigned *line, unsigned *column) {
    char *mark = strchr(text, '~');
    assert_non_null(mark);
    *line = *column = 1;
    for (const char *p = text; p < mark; p++) {
        *column = *p == '\n' ? 1 : *column + 1;
        *line += *p == '\n';
    }
    memmove(mark, mark + 1, strlen(mark));
}

static void expect_refused(const ptx_absent *row, const char *sample_text) {
    char text[1000], wanted[1000];
    bool whole = *sample_text == '!';
    snprintf(text, sizeof text, "%s%s%s", whole ? HEAD : KERNEL, sample_text + whole,
             whole ? "\n" : "\nret;\n}\n");
    unsigned line, column;
    place_of_mark(text, &line, &column);
    ev_error err = {0};
    vm_module *m = NULL;
    assert_int_equal(vm_module_load(text, strlen(text), "t.ptx", &m, &err), EV_BAD);
    assert_null(m);
    int n = snprintf(wanted, sizeof wanted, "t.ptx:%u:%u: found '", line, column);
    char name[64];
    snprintf(name, sizeof name, "%s", row->name + (*row->name == '*'));
    name[strcspn(name, "*")] = 0;
    const char *why = strstr(err.text, "': ");
    if (strncmp(err.text, wanted, (size_t)n) != 0 || !strstr(err.text, name) || !why)
        fail_msg("%s: expected it at %s, got: %s", row->name, wanted, err.text);
    snprintf(wanted, sizeof wanted, "': %s, which this machine does not have; expected %s",
             row->what, row->cure);
    assert_string_equal(why, wanted);
}

static void test_each_row(void **state) {
    (void)state;
    ptx_absent row;
    size_t count = 0;
    for (; ptx_absent_get(count, &row); count++) {
        const sample *s = find_sample(row.name);
        if (!s)
            fail_msg("%s has no sample in this test", row.name);
        ptx_absent first;
        const char *mark = strchr(s->text, '~') + 1;
        size_t length = strcspn(mark, " ;\n");
        assert_true(ptx_absent_find(mark, length, &first));
        if (strcmp(first.name, row.name) != 0)
            fail_msg("%s is shadowed by %s", row.name, first.name);
        expect_refused(&row, s->text);
    }
    assert_int_equal(count, SAMPLES);
}

/* No row hides an instruction, a modifier or a special register that the machine has. */
static void test_what_is_there(void **state) {
    (void)state;
    static const char *const there[] = {"cp.async.ca.shared.global",
                                        "mma.sync.aligned.m8n8k4",
                                        "barrier.sync",
                                        "st.global.v4.f32",
                                        "red.global.add.u32",
                                        "ldmatrix.sync.aligned.m8n8.x1",
                                        "vote.sync.all.pred",
                                        "%nclusterid.x",
                                        "pmevent",
                                        "cvt.rn.f16x2.f32",
                                        ".explicitcluster",
                                        "%pcount",
                                        "cudaGraphSetConditionalOf",
                                        "malloc",
                                        "__assertfail"};
    ptx_absent row;
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (ptx_absent_find(there[i], strlen(there[i]), &row))
            fail_msg("%s is taken for %s", there[i], row.name);
    for (unsigned i = 0; i < PTX_OP_COUNT; i++)
        if (ptx_absent_find(ptx_op_get(i)->name, strlen(ptx_op_get(i)->name), &row))
            fail_msg("%s is taken for %s", ptx_op_get(i)->name, row.name);
    for (unsigned i = 0; i < PTX_SR_COUNT; i++)
        if (ptx_absent_find(ptx_sreg_text((ptx_sreg)i), strlen(ptx_sreg_text((ptx_sreg)i)), &row))
            fail_msg("%s is taken for %s", ptx_sreg_text((ptx_sreg)i), row.name);
}

/* A call with a result has its place at the result; the name is the function's. */
static void test_call_with_result(void **state) {
    (void)state;
    const char *text = HEAD ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2"
                            "(.param .b64 f);\n.visible .entry e()\n{\n.reg .b64 %d<2>;\n"
                            "{\n.param .b64 a; .param .b64 b; mov.b64 %d0, 0;\n"
                            "st.param.b64 [a], %d0;\n"
                            "call.uni (b), __cudaCDP2GetParameterBufferV2, (a);\n}\nret;\n}\n";
    ev_error err = {0};
    vm_module *m = NULL;
    assert_int_equal(vm_module_load(text, strlen(text), "t.ptx", &m, &err), EV_BAD);
    assert_string_equal(err.text,
                        "t.ptx:11:10: found '__cudaCDP2GetParameterBufferV2': a call of CUDA's "
                        "device runtime (dynamic parallelism), which this machine does not have; "
                        "expected launches, streams and allocations by the host");
}

/* Clusters of one block are no clusters. */
static void test_cluster_of_one(void **state) {
    (void)state;
    const char *text =
        HEAD ".visible .entry e()\n.explicitcluster\n.reqnctapercluster 1, 1, 1\n{\nret;\n}\n";
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row),
        cmocka_unit_test(test_what_is_there),
        cmocka_unit_test(test_call_with_result),
        cmocka_unit_test(test_cluster_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
