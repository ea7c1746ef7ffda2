/* Single turns: a loop that is known to run at most one turn becomes straight code.
 *
 * A block copies a tile by `for (i = thread; i < 256; i += 256)`: with 256 threads, each thread
 * takes one turn at most. The branch back then leads to a copy of the loop's test instead, which
 * only hands on what the loop leaves behind. */
#include "ir/structure/structure_internal.h"

#include "ir/structure/analyses/range_internal.h"

enum { MOST_ROUNDS = 16 };

typedef struct ending {
    const ir_flow *flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    LLVMValueRef *behind; /* by instruction of the header: its value behind the turn */
} ending;

/* The loop's second test fails, since what the first turn makes of `phi` is past the greatest
 * bound. *always: the first test never does. */
static bool is_single_by(const ir_ranges *ranges, const ir_loop *loop, LLVMValueRef phi,
                         bool *always) {
    const ir_flow *flow = ranges->flow;
    ir_loop tested = *loop;
    ir_range start, next, bound;
    if (LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(phi)) < 32 ||
        !ir_loop_is_tested_at_top(flow, phi, &tested) || tested.compares_next ||
        (tested.stays != LLVMIntSLT && tested.stays != LLVMIntULT) ||
        !ir_range_of(ranges, ir_flow_incoming(flow, phi, loop->preheader), loop->header, &start) ||
        !ir_range_of(ranges, tested.bound, loop->header, &bound))
        return false;
    *always = start.most < bound.least;
    if (start.least < 0 || bound.least < 0)
        return false;
    if (loop->induction == phi)
        return loop->step > 0 && start.most + loop->step <= INT32_MAX &&
               start.least + loop->step >= bound.most;
    /* LLVM may have written a sum of the start in place of one of the PHI. */
    return ir_range_of(ranges, ir_flow_incoming(flow, phi, loop->latch), loop->latch, &next) &&
           next.least >= bound.most && next.most <= INT32_MAX;
}

static bool is_single(const ir_ranges *ranges, const ir_loop *loop, bool *always) {
    const ir_flow *flow = ranges->flow;
    if (loop->latch == IR_NONE || loop->preheader == IR_NONE || loop->latch == loop->header ||
        !ir_loop_is_left_once(flow, loop))
        return false;
    for (uint32_t i = flow->first[loop->header]; LLVMIsAPHINode(flow->insns[i]); i++) {
        if (is_single_by(ranges, loop, flow->insns[i], always))
            return true;
    }
    return false;
}

static LLVMValueRef value_behind(const ending *e, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(e->flow, value);
    return insn != IR_NONE && e->behind[insn] ? e->behind[insn] : value;
}

/* Writes what the header computes, behind the turn. */
static void write_test(ending *e) {
    const ir_flow *flow = e->flow;
    uint32_t header = e->loop->header, end = flow->first[header + 1] - 1, i = flow->first[header];
    for (; LLVMIsAPHINode(flow->insns[i]); i++)
        e->behind[i] = ir_flow_incoming(flow, flow->insns[i], e->loop->latch);
    for (; i < end; i++) {
        LLVMValueRef made = LLVMInstructionClone(flow->insns[i]);
        for (int k = 0; k < LLVMGetNumOperands(made); k++)
            LLVMSetOperand(made, (unsigned)k, value_behind(e, LLVMGetOperand(made, (unsigned)k)));
        LLVMInsertIntoBuilder(e->builder, made);
        e->behind[i] = made;
    }
}

static void end_loop(ending *e) {
    const ir_flow *flow = e->flow;
    const ir_loop *loop = e->loop;
    LLVMBasicBlockRef exit = flow->blocks[loop->exit];
    LLVMBasicBlockRef tail = LLVMInsertBasicBlockInContext(
        LLVMGetModuleContext(LLVMGetGlobalParent(flow->function)), exit, "");
    LLVMPositionBuilderAtEnd(e->builder, tail);
    write_test(e);
    LLVMBuildBr(e->builder, exit);
    for (uint32_t i = flow->first[loop->exit]; LLVMIsAPHINode(flow->insns[i]); i++) {
        LLVMValueRef value = value_behind(e, ir_flow_incoming(flow, flow->insns[i], loop->header));
        LLVMAddIncoming(flow->insns[i], &value, &tail, 1);
    }
    LLVMValueRef last = ir_flow_last(flow, loop->latch);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(last); i++) {
        if (LLVMGetSuccessor(last, i) == flow->blocks[loop->header])
            LLVMSetSuccessor(last, i, tail);
    }
    for (uint32_t i = flow->first[loop->header]; LLVMIsAPHINode(flow->insns[i]); i++) {
        LLVMValueRef first = ir_flow_incoming(flow, flow->insns[i], loop->preheader);
        LLVMReplaceAllUsesWith(flow->insns[i], first);
        LLVMInstructionEraseFromParent(flow->insns[i]);
    }
}

static void enter_always(const ir_flow *flow, const ir_loop *loop) {
    LLVMValueRef last = ir_flow_last(flow, loop->header);
    bool stays_if = loop->holds[ir_flow_block(flow, LLVMGetSuccessor(last, 0))];
    LLVMSetCondition(last, LLVMConstInt(LLVMTypeOf(LLVMGetCondition(last)), stays_if, 0));
}

/* *ended: whether the loop at `path` held such a loop; the flow is out of date then. */
static ev_status end_one(const ir_structure *s, const char *path, LLVMBuilderRef builder,
                         bool *ended, ev_error *err) {
    ir_flow flow;
    EV_TRY(ir_flow_make(s->function, s->arena, &flow, err));
    ir_ranges ranges = {.flow = &flow, .block = s->base->block};
    uint32_t around = ir_loop_find(&flow, path);
    *ended = false;
    for (uint32_t i = 0; around != IR_NONE && i < flow.loop_count && !*ended; i++) {
        ending e = {.flow = &flow, .loop = &flow.loops[i], .builder = builder};
        bool always = false;
        if (i == around || !flow.loops[around].holds[e.loop->header] ||
            !is_single(&ranges, e.loop, &always))
            continue;
        e.behind = EV_NEW_ARRAY(s->arena, LLVMValueRef, flow.insn_count);
        if (!e.behind)
            return ev_fail_memory(err, flow.insn_count);
        end_loop(&e);
        if (always)
            enter_always(&flow, e.loop);
        *ended = true;
    }
    return EV_OK;
}

ev_status ir_unroll_single_turns(const ir_structure *s, const char *path, ev_error *err) {
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(s->base->context);
    bool ended = true;
    ev_status status = EV_OK;
    for (int round = 0; status == EV_OK && ended && round < MOST_ROUNDS; round++) {
        status = end_one(s, path, builder, &ended, err);
        if (status == EV_OK && ended)
            status = ir_early_normalise(s->base, s->base->module, err);
    }
    LLVMDisposeBuilder(builder);
    return status;
}
