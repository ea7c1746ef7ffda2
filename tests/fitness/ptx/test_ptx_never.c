/* Forms that the columns of the instruction table could spell and PTX has not: each rule of
 * ptx_never.def refuses its sample with what is expected, and what the assembler of CUDA 13.0 takes
 * beside them loads. */
#include "fitness/ptx/ptx_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ev_status load(const char *insn, ev_error *err) {
    char text[1000];
    int n = snprintf(text, sizeof text,
                     ".version 9.0\n.target sm_100\n.address_size 64\n"
                     ".visible .entry k(.param .align 16 .b8 p[64])\n{\n"
                     ".reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%d<9>;\n"
                     "%s;\nret;\n}\n",
                     insn);
    vm_module *m = NULL;
    ev_status status = vm_module_load(text, (size_t)n, "t.ptx", &m, err);
    vm_module_free(m);
    return status;
}

/* In the order of the rules, with their `parts`; the first rule that holds is the one that speaks.
 */
typedef struct sample {
    const char *insn, *parts;
} sample;

static const sample samples[] = {
    {"ld.relaxed.local.u8 %h1, [%d7]", "<sem> <space> !.weak !.global !.shared !.shared::cta"},
    {"ld.release.u8 %h1, [%d7]", ".release"},
    {"ld.acq_rel.u8 %h1, [%d7]", ".acq_rel"},
    {"ld.sc.u8 %h1, [%d7]", ".sc"},
    {"st.acquire.u8 [%d7], %h1", ".acquire"},
    {"st.acq_rel.u8 [%d7], %h1", ".acq_rel"},
    {"st.sc.u8 [%d7], %h1", ".sc"},
    {"ld.relaxed.u8 %h1, [%d7]", "<sem> !.weak !<scope>"},
    {"ld.weak.cta.u8 %h1, [%d7]", ".weak <scope>"},
    {"ld.volatile.local.u32 %r1, [%d7]", "<volatile> <space> !.global !.shared !.shared::cta"},
    {"ld.volatile.ca.u32 %r1, [%d7]", "<volatile> <cop>"},
    {"ld.volatile.L1::evict_normal.u32 %r1, [%d7]", "<volatile> <l1>"},
    {"ld.ca.L1::evict_normal.u32 %r1, [%d7]", "<cop> <l1>"},
    {"ld.ca.L2::evict_first.u32 %r1, [%d7]", "<cop> <l2>"},
    {"ld.wb.u8 %h1, [%d7]", ".wb"},
    {"ld.wt.u8 %h1, [%d7]", ".wt"},
    {"st.ca.u8 [%d7], %h1", ".ca"},
    {"st.lu.u8 [%d7], %h1", ".lu"},
    {"st.cv.u8 [%d7], %h1", ".cv"},
    {"ld.global.lu.nc.u8 %h1, [%d7]", ".lu.nc"},
    {"ld.global.cv.nc.u8 %h1, [%d7]", ".cv.nc"},
    {"ld.shared.nc.u8 %h1, [%d7]", ".nc !.global"},
    {"ld.shared.L2::64B.u32 %r1, [%d7]", "<pre> <space> !.global"},
    {"ld.shared.L1::evict_normal.u32 %r1, [%d7]", "<l1> <space> !.global"},
    {"ld.shared.L2::evict_first.u32 %r1, [%d7]", "<l2> <space> !.global"},
    {"ld.L2::evict_first.u8 %h1, [%d7]", "<l2> !.v4.b64 !.v4.u64 !.v4.s64 !.v4.f64"},
    {"ldu.shared.u8 %h1, [%d7]", "<space> !.global"},
    {"ldu.v4.b64 {%d0,%d1,%d2,%d3}, [%d7]", ".v4.b64"},
    {"ldu.v4.u64 {%d0,%d1,%d2,%d3}, [%d7]", ".v4.u64"},
    {"ldu.v4.s64 {%d0,%d1,%d2,%d3}, [%d7]", ".v4.s64"},
    {"ldu.v4.f64 {%d0,%d1,%d2,%d3}, [%d7]", ".v4.f64"},
    {"prefetch.shared.L1 [%d7]", "<space> <level> !.global !.local"},
    {"prefetch.shared.L2::evict_first [%d7]", "<l2> <space> !.global"},
    {"prefetch.L2::evict_first [%d7]", ".L2::evict_first"},
    {"cvta.param::func.u64 %d0, %d1", ".param::func"},
    {"cp.async.ca.shared.global.L2::64B.L2::cache_hint.L2::64B [%d7], [%d6], 4, %d3",
     ".L2::64B.L2::cache_hint.L2::64B"},
    {"cp.async.ca.shared.global.L2::64B.L2::cache_hint.L2::128B [%d7], [%d6], 4, %d3",
     ".L2::64B.L2::cache_hint.L2::128B"},
    {"cp.async.ca.shared.global.L2::64B.L2::cache_hint.L2::256B [%d7], [%d6], 4, %d3",
     ".L2::64B.L2::cache_hint.L2::256B"},
    {"cp.async.ca.shared.global.L2::128B.L2::cache_hint.L2::64B [%d7], [%d6], 4, %d3",
     ".L2::128B.L2::cache_hint.L2::64B"},
    {"cp.async.ca.shared.global.L2::128B.L2::cache_hint.L2::128B [%d7], [%d6], 4, %d3",
     ".L2::128B.L2::cache_hint.L2::128B"},
    {"cp.async.ca.shared.global.L2::128B.L2::cache_hint.L2::256B [%d7], [%d6], 4, %d3",
     ".L2::128B.L2::cache_hint.L2::256B"},
    {"cp.async.ca.shared.global.L2::256B.L2::cache_hint.L2::64B [%d7], [%d6], 4, %d3",
     ".L2::256B.L2::cache_hint.L2::64B"},
    {"cp.async.ca.shared.global.L2::256B.L2::cache_hint.L2::128B [%d7], [%d6], 4, %d3",
     ".L2::256B.L2::cache_hint.L2::128B"},
    {"cp.async.ca.shared.global.L2::256B.L2::cache_hint.L2::256B [%d7], [%d6], 4, %d3",
     ".L2::256B.L2::cache_hint.L2::256B"},
    {"atom.local.add.u32 %r0, [%d7], %r1", "<space> !.global !.shared !.shared::cta"},
    {"atom.weak.add.u32 %r0, [%d7], %r1", ".weak"},
    {"atom.sc.add.u32 %r0, [%d7], %r1", ".sc"},
    {"red.acquire.add.u32 [%d7], %r1", ".acquire"},
    {"red.acq_rel.add.u32 [%d7], %r1", ".acq_rel"},
    {"fence.weak.cta", ".weak"},
    {"fence.relaxed.cta", ".relaxed"},
    {"fence.proxy.alias.global", ".proxy.alias <proxyspace>"},
    {"bar.red.popc.pred %p0, %r1, %p2", ".popc T:P"},
    {"mbarrier.arrive.release.b64 %d0, [%d7]", "<arrival> !<mbscope>"},
    {"mbarrier.test_wait.acquire.b64 %p0, [%d7], %d1", "<waiting> !<mbscope>"},
    {"mbarrier.arrive.cta.b64 %d0, [%d7]", "<mbscope> !<arrival> !<waiting>"},
    {"mbarrier.arrive.noComplete.relaxed.cta.b64 %d0, [%d7], %r1", ".noComplete.relaxed"},
    {"mbarrier.arrive.noComplete.release.cluster.b64 %d0, [%d7], %r1", ".noComplete .cluster"},
    {"mbarrier.expect_tx.release.cta.b64 [%d7], %r1", ".expect_tx.release !.arrive !.arrive_drop"},
    {"mbarrier.complete_tx.release.cta.b64 [%d7], %r1", ".complete_tx.release"},
    {"add.rna.f32 %r0, %r1, %r2", ".rna"},
    {"add.rz.f16 %h0, %h1, %h2", "<rnd> !.rn T:HX"},
    {"fma.rz.f16 %h0, %h1, %h2, %h3", "<rnd> !.rn .f16"},
    {"fma.rz.f16x2 %r0, %r1, %r2, %r3", "<rnd> !.rn .f16x2"},
    {"fma.rz.bf16 %h0, %h1, %h2, %h3", "<rnd> !.rn .bf16"},
    {"fma.rm.bf16x2 %r0, %r1, %r2, %r3", "<rnd> !.rn .bf16x2"},
    {"add.ftz.bf16 %h0, %h1, %h2", "<ftz> .bf16"},
    {"add.ftz.bf16x2 %r0, %r1, %r2", "<ftz> .bf16x2"},
    {"add.sat.bf16 %h0, %h1, %h2", "<sat> .bf16"},
    {"add.sat.bf16x2 %r0, %r1, %r2", "<sat> .bf16x2"},
    {"add.sat.f64 %d0, %d1, %d2", "<sat> .f64"},
    {"fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3", "<relu> <sat>"},
    {"mad.f32 %r0, %r1, %r2, %r3", "!<rnd> T:F"},
    {"min.xorsign.f32 %r0, %r1, %r2", ".xorsign !.abs"},
    {"min.abs.f32 %r0, %r1, %r2", ".abs !.xorsign"},
    {"min.xorsign.abs.f64 %d0, %d1, %d2", ".xorsign .f64"},
    {"min.NaN.f64 %d0, %d1, %d2", ".NaN .f64"},
    {"ex2.approx.ftz.f16 %h0, %h1", ".ftz.f16"},
    {"ex2.approx.ftz.f16x2 %r0, %r1", ".ftz.f16x2"},
    {"ex2.approx.bf16 %h0, %h1", ".bf16 !<ftz>"},
    {"ex2.approx.bf16x2 %r0, %r1", ".bf16x2 !<ftz>"},
    {"dp2a.wide.u32.u32 %r0, %r1, %r2, %r3", ".wide"},
    {"setp.eq.ftz.u16 %p0, %h1, %h2", "<ftz> !.f32 !.f16 !.f16x2"},
    {"set.eq.ftz.f32.u16 %r0, %h1, %h2", "<ftz> U:FSUB !T:FHX"},
    {"set.eq.f16.bf16 %h0, %h1, %h2", ".f16.bf16"},
    {"set.eq.bf16x2.f16x2 %r0, %r1, %r2", "U:X T:X !.f16x2.f16x2 !.bf16x2.bf16x2"},
    {"set.eq.f32.f16 %r0, %h1, %h2", "U:F T:H"},
    {"set.eq.ftz.f32.f64 %r0, %d1, %d2", "<ftz> .f64"},
    {"setp.lt.b16 %p0, %h1, %h2", "T:B !.eq !.ne"},
    {"slct.ftz.u16.s32 %h0, %h1, %h2, %r3", "<ftz> U:S"},
    {"lop3.xor.b32 %r0|%p1, %r1, %r2, %r3, 1, %p2", ".xor"},
    {"vset.u32.u32.ltu %r0, %r1, %r2", "<cmp> !.eq !.ne !.lt !.le !.gt !.ge"},
    {"vadd2.u32.u32.u32.sat.add %r0, %r1, %r2, %r3", "<sat> <sums>"},
    {"cvt.rni.rn.u8.u8 %h0, %h1", "<irnd> <rnd>"},
    {"cvt.rna.u8.u8 %h0, %h1", ".rna !.tf32"},
    {"cvt.rn.u8.u8 %h0, %h1", "<rnd> T:US"},
    {"cvt.rni.u8.u8 %h0, %h1", "<irnd> U:US"},
    {"cvt.u8.f16 %h0, %h1", "T:US U:FH !<irnd>"},
    {"cvt.f16.u8 %h0, %h1", "T:FH U:US !<rnd>"},
    {"cvt.f32.f64 %r0, %d1", ".f32.f64 !<rnd>"},
    {"cvt.f16.f32 %h0, %r1", "T:H U:F !<rnd>"},
    {"cvt.ftz.u8.u8 %h0, %h1", "<ftz> !.f32"},
    {"cvt.relu.u8.u8 %h0, %h1",
     "<relu> !.f16.f32 !.bf16.f32 !.f16x2.f32 !.bf16x2.f32 !.tf32.f32 !.e4m3x2 !.e5m2x2"},
    {"cvt.rm.relu.f16.f32 %h0, %r1", "<relu> .rm"},
    {"cvt.rp.relu.f16.f32 %h0, %r1", "<relu> .rp"},
    {"cvt.rna.relu.tf32.f32 %r0, %r1", "<relu> .rna"},
    {"cvt.rn.f32.f32 %r0, %r1", "T:F U:F <rnd> !.f32.f64 !.tf32"},
    {"cvt.rn.f32.f16 %r0, %h1", "T:F .f16 <rnd>"},
    {"cvt.rni.f32.f16 %r0, %h1", "T:F U:H <irnd>"},
    {"cvt.rn.f16.f16 %h0, %h1", ".f16.f16 <rnd>"},
    {"cvt.rn.bf16.bf16 %h0, %h1", ".bf16.bf16 <rnd>"},
    {"cvt.rni.f64.f32 %d0, %r1", "<irnd> .f64.f32"},
    {"cvt.rni.f16.bf16 %h0, %h1", "<irnd> .f16.bf16"},
    {"cvt.rni.bf16.f16 %h0, %h1", "<irnd> .bf16.f16"},
    {"cvt.rm.tf32.f32 %r0, %r1", ".rm .tf32"},
    {"cvt.rp.tf32.f32 %r0, %r1", ".rp .tf32"},
    {"cvt.rm.f16x2.f32 %r0, %r1, %r2", ".rm .f16x2"},
    {"cvt.rp.f16x2.f32 %r0, %r1, %r2", ".rp .f16x2"},
    {"cvt.rm.bf16x2.f32 %r0, %r1, %r2", ".rm .bf16x2"},
    {"cvt.rp.bf16x2.f32 %r0, %r1, %r2", ".rp .bf16x2"},
    {"cvt.rm.bf16.u8 %h0, %h1", ".bf16.u8"},
    {"cvt.rp.bf16.s8 %h0, %h1", ".bf16.s8"},
    {"cvt.rmi.sat.u8.bf16 %h0, %h1", ".u8.bf16"},
    {"cvt.rpi.s8.bf16 %h0, %h1", ".s8.bf16"},
    {"cvt.sat.f16.bf16 %h0, %h1", "<sat> .bf16"},
    {"cvt.rn.sat.f16x2.f32 %r0, %r1, %r2", "<sat> .f16x2"},
    {"cvt.rn.sat.bf16x2.f32 %r0, %r1, %r2", "<sat> .bf16x2"},
    {"cvt.sat.u8.u8 %h0, %h1", "<sat> fits"},
    {"tex.cube.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2, %r3, %r4}]", ".cube U:S"},
    {"tex.acube.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2, %r3, %r4}]", ".acube U:S"},
    {"tld4.r.1d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d1, {%r1}]", ".1d"},
    {"tld4.r.3d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2, %r3, %r4}]", ".3d"},
    {"tld4.r.a1d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2}]", ".a1d"},
    {"suld.b.cube.b32.trap %r1, [%d1, {%r1, %r2, %r3, %r4}]", ".cube"},
    {"sust.b.acube.b32.trap [%d1, {%r1, %r2, %r3, %r4}], %r1", ".acube"},
    {"sured.b.add.a1d.u32.trap [%d1, {%r1, %r2}], %r1", ".a1d"},
    {"sured.b.add.a2d.u32.trap [%d1, {%r1, %r2, %r3, %r4}], %r1", ".a2d"},
    {"suld.b.1d.wb.b32.trap %r1, [%d1, {%r1}]", ".wb"},
    {"suld.b.1d.wt.b32.trap %r1, [%d1, {%r1}]", ".wt"},
    {"suld.b.1d.lu.b32.trap %r1, [%d1, {%r1}]", ".lu"},
    {"sust.b.1d.ca.b32.trap [%d1, {%r1}], %r1", ".ca"},
    {"sust.b.1d.lu.b32.trap [%d1, {%r1}], %r1", ".lu"},
    {"sust.b.1d.cv.b32.trap [%d1, {%r1}], %r1", ".cv"},
    {"suld.b.1d.v4.b64.trap {%d1, %d2, %d3, %d4}, [%d1, {%r1}]", ".v4.b64"},
    {"txq.memory_layout.b32 %r1, [%d1]", ".memory_layout"},
    {"txq.level.array_size.b32 %r1, [%d1], 0", ".level !.width !.height !.depth"},
    {"suq.normalized_coords.b32 %r1, [%d1]", ".normalized_coords"},
    {"suq.num_mipmap_levels.b32 %r1, [%d1]", ".num_mipmap_levels"},
    {"suq.num_samples.b32 %r1, [%d1]", ".num_samples"},
    {"suq.force_unnormalized_coords.b32 %r1, [%d1]", ".force_unnormalized_coords"},
    {"suq.filter_mode.b32 %r1, [%d1]", ".filter_mode"},
    {"suq.addr_mode_0.b32 %r1, [%d1]", ".addr_mode_0"},
    {"suq.addr_mode_1.b32 %r1, [%d1]", ".addr_mode_1"},
    {"suq.addr_mode_2.b32 %r1, [%d1]", ".addr_mode_2"},
};

static const char *const good[] = {
    "ld.L1::evict_normal.L2::64B.u32 %r1, [%d7]",
    "ld.L2::128B.u16 %h1, [%d7]",
    "ld.acquire.cluster.L1::evict_normal.u32 %r1, [%d7]",
    "ld.global.nc.L2::128B.f32 %r1, [%d7]",
    "ld.shared.f32 %r1, [%d7]",
    "ld.weak.L2::64B.u64 %d1, [%d7]",
    "ld.weak.local.v4.u32 {%r0,%r1,%r2,%r3}, [%d7]",
    "ld.weak.v4.s8 {%h0,%h1,%h2,%h3}, [%d7]",
    "st.L1::evict_last.v2.u32 [%d7], {%r0,%r1}",
    "st.L1::no_allocate.b16 [%d7], %h1",
    "st.local.u16 [%d7], %h1",
    "st.relaxed.sys.u64 [%d7], %d1",
    "st.release.cta.b32 [%d7], %r1",
    "st.weak.L1::evict_last.b16 [%d7], %h1",
    "st.weak.L1::evict_last.u8 [%d7], %h1",
    "st.weak.local.v4.u32 [%d7], {%r0,%r1,%r2,%r3}",
    "ldu.u16 %h1, [%d7]",
    "ldu.v4.s8 {%h0,%h1,%h2,%h3}, [%d7]",
    "prefetch.L2::evict_last [%d7]",
    "prefetch.global.L2 [%d7]",
    "cvta.const.u64 %d0, %d1",
    "cvta.shared::cta.u64 %d0, %d1",
    "isspacep.local %p0, %d7",
    "isspacep.param::entry %p0, %d7",
    "cp.async.ca.shared::cta.global [%d7], [%d6], 4, %r5",
    "cp.async.cg.shared.global.L2::128B [%d7], [%d6], 16",
    "atom.add.noftz.f16x2 %r0, [%d7], %r1",
    "atom.relaxed.sys.xor.b32 %r0, [%d7], %r1",
    "atom.release.gpu.add.f32 %r0, [%d7], %r1",
    "atom.release.shared::cta.dec.u32 %r0, [%d7], %r1",
    "red.add.s32 [%d7], %r1",
    "red.add.u32 [%d7], %r1",
    "red.cta.shared.add.f32 [%d7], %r1",
    "red.cta.xor.b32 [%d7], %r1",
    "fence.acquire.gpu",
    "fence.proxy.async.shared::cluster",
    "bar.arrive %r1, %r2",
    "bar.cta.arrive %r1, %r2",
    "barrier.cta.arrive %r1, %r2",
    "barrier.cta.red.popc.u32 %r0, %r1, %r2, %p2",
    "mbarrier.arrive.expect_tx.shared.b64 %d0, [%d7], %r1",
    "mbarrier.arrive_drop.shared::cta.b64 %d0, [%d7], %r1",
    "mbarrier.test_wait.parity.relaxed.cluster.b64 %p0, [%d7], %r1",
    "mbarrier.try_wait.parity.shared.b64 %p0, [%d7], %r1",
    "add.f32 %r0, %r1, %r2",
    "add.ftz.f16 %h0, %h1, %h2",
    "sub.f32 %r0, %r1, %r2",
    "sub.rn.f16x2 %r0, %r1, %r2",
    "mul.rn.ftz.f32 %r0, %r1, %r2",
    "mul.wide.u16 %r0, %h1, %h2",
    "fma.rn.bf16x2 %r0, %r1, %r2, %r3",
    "fma.rn.relu.f16x2 %r0, %r1, %r2, %r3",
    "fma.rn.sat.f32 %r0, %r1, %r2, %r3",
    "fma.rp.f64 %d0, %d1, %d2, %d3",
    "mad.hi.s16 %h0, %h1, %h2, %h3",
    "mad.hi.s32 %r0, %r1, %r2, %r3",
    "div.rn.ftz.f32 %r0, %r1, %r2",
    "div.u64 %d0, %d1, %d2",
    "rcp.rz.f64 %d0, %d1",
    "rcp.rz.ftz.f32 %r0, %r1",
    "sqrt.approx.ftz.f32 %r0, %r1",
    "sqrt.rp.f32 %r0, %r1",
    "min.bf16x2 %r0, %r1, %r2",
    "min.u16 %h0, %h1, %h2",
    "max.xorsign.abs.f16 %h0, %h1, %h2",
    "max.xorsign.abs.f16x2 %r0, %r1, %r2",
    "abs.ftz.f16x2 %r0, %r1",
    "abs.ftz.f32 %r0, %r1",
    "neg.f64 %d0, %d1",
    "neg.s32 %r0, %r1",
    "ex2.approx.f16 %h0, %h1",
    "ex2.approx.ftz.bf16x2 %r0, %r1",
    "dp2a.hi.s32.s32 %r0, %r1, %r2, %r3",
    "dp2a.hi.u32.s32 %r0, %r1, %r2, %r3",
    "setp.leu.f16 %p0, %h1, %h2",
    "setp.ne.and.s32 %p0, %r1, %r2, %p2",
    "set.ge.or.ftz.s32.f32 %r0, %r1, %r2, %p2",
    "set.ge.or.s32.s16 %r0, %h1, %h2, %p2",
    "set.nan.and.u32.f16 %r0, %h1, %h2, %p2",
    "set.nan.u32.f64 %r0, %d1, %d2",
    "slct.b64.s32 %d0, %d1, %d2, %r3",
    "slct.u32.f32 %r0, %r1, %r2, %r3",
    "lop3.and.b32 %r0|%p1, %r1, %r2, %r3, 1, %p2",
    "lop3.b32 %r0, %r1, %r2, %r3, 1",
    "cvt.rmi.ftz.s64.f32 %d0, %r1",
    "cvt.rmi.s32.f16 %r0, %h1",
    "cvt.rn.sat.f64.u64 %d0, %d1",
    "cvt.rni.f64.f64 %d0, %d1",
    "cvt.rn.bf16.u16 %h0, %h1",
    "cvt.rmi.s16.bf16 %h0, %h1",
    "cvt.rn.f16.u8 %h0, %h1",
    "cvt.rmi.u8.f16 %h0, %h1",
    "cvt.rp.bf16.f64 %h0, %d1",
    "cvt.rp.f64.u16 %d0, %h1",
    "cvt.rp.ftz.f32.s64 %r0, %d1",
    "cvt.rp.sat.f64.u32 %d0, %r1",
    "cvt.rzi.ftz.u16.f32 %h0, %r1",
    "cvt.s16.s64 %h0, %d1",
    "cvt.u16.u16 %h0, %h1",
    "cvt.u32.u32 %r0, %r1",
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void test_each_rule(void **state) {
    (void)state;
    ptx_never_rule rule;
    size_t count = 0;
    for (; ptx_never_get(count, &rule); count++) {
        assert_true(count < SAMPLES);
        const sample *s = &samples[count];
        if (strcmp(s->parts, rule.parts) != 0)
            fail_msg("rule %zu, \"%s\": its sample is for \"%s\"", count, rule.parts, s->parts);
        ev_error err = {0};
        char wanted[400];
        snprintf(wanted, sizeof wanted, "t.ptx:7:1: found '%.*s'; expected %s",
                 (int)strcspn(s->insn, " "), s->insn, rule.expected);
        if (load(s->insn, &err) != EV_BAD || strcmp(err.text, wanted) != 0)
            fail_msg("%s (\"%s\"): %s", s->insn, rule.parts, err.text);
    }
    assert_int_equal(count, SAMPLES);
}

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ev_error err = {0};
        if (load(good[i], &err) != EV_OK)
            fail_msg("%s", err.text);
    }
}

/* What no rule says: types that an instruction has not, and operands. */
static void test_types(void **state) {
    (void)state;
    static const char *const bad[] = {
        "atom.global.add.s64 %d0, [%d1], %d2", "red.global.add.s64 [%d1], %d2", "mov.f16 %h0, %h1",
        "set.eq.b32.u32 %r0, %r1, %r2",        "cvta.shared.u32 %r0, %r1",      "mov.bf16 %h0, %h1",
        "setp.eq.f16 %p0|%p1, %h0, %h1",       "add.ftz.f64 %d0, %d1, %d2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ev_error err = {0};
        if (load(bad[i], &err) != EV_BAD || !strstr(err.text, "expected"))
            fail_msg("%s: %s", bad[i], err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rule),
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
