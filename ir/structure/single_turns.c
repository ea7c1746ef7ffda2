/* Single turns: a loop that is known to run at most one turn becomes straight code.
 *
 * A block copies a tile by `for (i = thread; i < 256; i += 256)`: with 256 threads, each thread
 * takes one turn at most. The branch back then leads to a copy of the loop's test instead, which
 * only hands on what the loop leaves behind. */
#include "ir/structure/structure_internal.h"

#include "ir/structure/analyses/range_internal.h"

enum { MOST_ROUNDS = 16, DEEPEST_SUM = 4 };

typedef struct ending {
    const ir_flow *flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    LLVMValueRef *behind; /* by instruction of the header: its value behind the turn */
} ending;

/* Of a constant, of a sum, and of what ir_range_of knows. */
static bool range_of_sum(const ir_ranges *ranges, LLVMValueRef value, uint32_t place,
                         unsigned depth, ir_range *out) {
    if (LLVMIsAConstantInt(value)) {
        int64_t number = LLVMConstIntGetSExtValue(value);
        *out = (ir_range){number, number};
        return number >= 0 && number <= INT32_MAX;
    }
    ir_range left, right;
    bool adds = LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMAdd;
    if (!adds || depth == 0)
        return ir_range_of(ranges, value, place, out);
    if (!range_of_sum(ranges, LLVMGetOperand(value, 0), place, depth - 1, &left) ||
        !range_of_sum(ranges, LLVMGetOperand(value, 1), place, depth - 1, &right) ||
        left.least < 0 || right.least < 0 || left.most + right.most > INT32_MAX)
        return false;
    *out = (ir_range){left.least + right.least, left.most + right.most};
    return true;
}

/* The loop's second test fails: the least value there is past the greatest bound. *always: the
 * first test never does. */
static bool is_single(const ir_ranges *ranges, const ir_loop *loop, bool *always) {
    ir_range start, bound;
    bool counts_up = loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT;
    if (loop->induction == NULL || loop->compares_next || loop->step <= 0 || !counts_up ||
        loop->latch == loop->header || ir_loop_check_counts(ranges->flow, loop, NULL) != EV_OK ||
        !range_of_sum(ranges, loop->start, loop->header, DEEPEST_SUM, &start) ||
        !range_of_sum(ranges, loop->bound, loop->header, DEEPEST_SUM, &bound))
        return false;
    *always = start.most < bound.least;
    return start.least >= 0 && start.most + loop->step <= INT32_MAX &&
           start.least + loop->step >= bound.most;
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
        e.behind = ev_arena_alloc(s->arena, flow.insn_count * sizeof(LLVMValueRef));
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
