/* Split lanes: the turns of a loop that sums are spread over 2 to 32 lanes of a warp.
 *
 * Each thread of the kernel becomes a group of lanes, side by side along x. The lanes of a group
 * have the same virtual thread, so they take the same branches; lane l of L runs the turns l, l +
 * L, l + 2 L of the loop, and a butterfly of shuffles behind the loop gives all lanes the whole
 * sum, with the same bits from run to run. Lane 0 alone writes. The block grows by L. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"
#include "ir/structure/sums_internal.h"

enum { MOST_THREADS = 1024 };

typedef struct splitting {
    ir_structure *s;
    const ir_edit *edit;
    ir_flow flow;
    const ir_loop *loop;
    uint32_t lanes;
    ir_sums sums;
    ir_share share;
} splitting;

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_deeds(const splitting *p, ev_error *err) {
    EV_TRY(ir_check_overlap(&p->flow, err));
    EV_TRY(ir_check_near(&p->flow, err));
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        LLVMValueRef insn = p->flow.insns[i];
        ir_deed deed = ir_deed_of(insn);
        bool inside = p->loop->holds[p->flow.home[i]];
        if (deed == IR_DEED_UNKNOWN || ir_binds_warp(insn))
            return ev_fail(err, EV_BAD, "the kernel calls %s", ir_called(insn));
        if (ir_is_block_vote(insn))
            return ev_fail(err, EV_BAD, "the threads of a block vote");
        if (inside && ir_has_effect(insn))
            return ev_fail(err, EV_BAD, "the loop does more than to sum: it stores or waits");
        if (deed == IR_DEED_COUNTED && LLVMGetFirstUse(insn))
            return ev_fail(err, EV_BAD, "the value of an atomic is used");
    }
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (ir_reads_warp_place(p->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the kernel reads its place in the warp");
    }
    return EV_OK;
}

/* A lane that does not write may not read back what lane 0 wrote. */
static ev_status check_reads(const splitting *p, ev_error *err) {
    const ir_flow *flow = &p->flow;
    LLVMModuleRef module = p->s->base->module;
    for (uint32_t s = 0; s < flow->insn_count; s++) {
        LLVMValueRef to = NULL, from = NULL;
        if (!ir_pointer_of(flow->insns[s]) || LLVMIsALoadInst(flow->insns[s]))
            continue;
        (void)ir_affine_of_address(module, ir_pointer_of(flow->insns[s]), &to);
        if (LLVMIsAAllocaInst(to) && ir_deed_of(flow->insns[s]) == IR_DEED_STORE)
            return ev_fail(err, EV_BAD, "the kernel has a local array");
        for (uint32_t l = 0; l < flow->insn_count; l++) {
            if (!LLVMIsALoadInst(flow->insns[l]) || !ir_flow_leads(flow, s, l))
                continue;
            (void)ir_affine_of_address(module, ir_pointer_of(flow->insns[l]), &from);
            if (to == from && LLVMIsAArgument(to))
                return ev_fail(err, EV_BAD, "the kernel reads back what it wrote");
        }
    }
    return EV_OK;
}

static ev_status check_block(const splitting *p, ev_error *err) {
    const uint32_t *block = p->s->base->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads == 0 || (threads * p->lanes > MOST_THREADS) ||
        (block[0] * p->lanes) % p->lanes != 0)
        return ev_fail(err, EV_BAD,
                       "a block of %llu threads, %u times as large, is not known or too large",
                       (unsigned long long)threads, p->lanes);
    return EV_OK;
}

static ev_status check_option(splitting *p, ev_error *err) {
    const ir_edit *edit = p->edit;
    int64_t lanes = edit->has_option ? edit->option : 0;
    if (lanes < 2 || lanes > IR_WARP || (lanes & (lanes - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to %d", IR_WARP);
    p->lanes = (uint32_t)lanes;
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&p->flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    p->loop = &p->flow.loops[at];
    return EV_OK;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Writes the lane and the virtual thread at the kernel's beginning, and gives the kernel the
 * virtual thread and block size. */
static void write_lanes(splitting *p) {
    const ir_share *share = &p->share;
    LLVMBuilderRef builder = share->builder;
    LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(p->flow.blocks[0]));
    LLVMSetCurrentDebugLocation2(builder, NULL);
    LLVMValueRef real = ir_share_call(share, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0);
    LLVMValueRef thread = LLVMBuildUDiv(builder, real, ir_share_number(share, p->lanes), "");
    LLVMValueRef lane = LLVMBuildAnd(builder, real, ir_share_number(share, p->lanes - 1), "");
    LLVMValueRef zero = ir_share_number(share, 0);
    p->share.place = lane;
    p->share.is_first = LLVMBuildICmp(builder, LLVMIntEQ, lane, zero, "");
    p->share.mask = ir_share_mask(share, p->lanes);
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (ir_reads_register(p->flow.insns[i], "tid.x"))
            LLVMReplaceAllUsesWith(p->flow.insns[i], thread);
        else if (ir_reads_register(p->flow.insns[i], "ntid.x"))
            LLVMReplaceAllUsesWith(p->flow.insns[i], ir_share_number(share, p->s->base->block[0]));
    }
}

static void guard_effects(const splitting *p) {
    for (uint32_t b = 0; b < p->flow.count; b++)
        ir_share_guard_block(&p->share, p->flow.blocks[b], NULL, p->share.is_first, p->share.mask);
}

static ev_status split(splitting *p, ev_error *err) {
    ir_gather gather;
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(check_option(p, err));
    EV_TRY(check_block(p, err));
    EV_TRY(check_deeds(p, err));
    EV_TRY(check_reads(p, err));
    EV_TRY(ir_sums_find(&p->flow, p->loop, p->lanes, &p->sums, err));
    if (!p->sums.any)
        return ev_fail(err, EV_BAD, "the loop makes no sum");
    if (p->sums.runs)
        return ev_fail(err, EV_BAD, "a turn of the loop uses a sum that the loop makes");
    p->share.s = p->s;
    p->share.threads = p->lanes;
    write_lanes(p);
    ir_share_turns(&p->share, &p->sums, &gather);
    ir_share_open(&p->share, &gather);
    ir_share_exchange(&p->share, &gather, p->lanes);
    ir_share_close(&gather);
    guard_effects(p);
    p->s->base->block[0] *= p->lanes;
    return EV_OK;
}

ev_status ir_structure_split(ir_structure *s, const ir_edit *edit, ev_error *err) {
    splitting p = {.s = s, .edit = edit};
    p.share.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = split(&p, err);
    LLVMDisposeBuilder(p.share.builder);
    return status;
}
