/* Unroll turns: a loop that counts gets a copy before it whose body does u turns at a time, without
 * the tests between them.
 *
 *     main: while u turns are left: u turns
 *     rest: the loop as it was, from where the main loop ends
 *
 * Each value is computed as before, in the same order. What the turns load can then be under way
 * together, in early IR already: later edits spread, pipeline and stage both loops. The main loop
 * counts to a bound of its own, which is computed before it, and the rest begins there. */
#include "ir/structure/turns_internal.h"

#include <string.h>

static LLVMBasicBlockRef block_of(const ir_turns *u, uint32_t block) {
    return u->flow.blocks[block];
}

bool ir_turns_is_phi(const ir_turns *t, uint32_t insn) {
    return t->flow.home[insn] == t->loop->header && LLVMIsAPHINode(t->flow.insns[insn]);
}

bool ir_turns_is_test(const ir_turns *t, uint32_t insn) {
    return t->flow.insns[insn] == ir_flow_last(&t->flow, t->loop->header);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_anchor(ir_turns *u, const ir_edit *edit, ev_error *err) {
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&u->flow, edit->anchor.path) : IR_NONE;
    int64_t turns = edit->has_option ? edit->option : 0;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    if (turns < 2 || turns > IR_MOST_TURNS || (turns & (turns - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to %d", IR_MOST_TURNS);
    u->loop = &u->flow.loops[at];
    u->turns = (uint32_t)turns;
    return EV_OK;
}

static ev_status check_loop(const ir_turns *u, ev_error *err) {
    const ir_loop *loop = u->loop;
    bool counts = loop->induction && !loop->compares_next && loop->step > 0 &&
                  (loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT) &&
                  loop->exit != IR_NONE && loop->step <= INT32_MAX / IR_MOST_TURNS &&
                  LLVMGetNumSuccessors(ir_flow_last(&u->flow, loop->latch)) == 1;
    if (!counts)
        return ev_fail(err, EV_BAD,
                       "the loop does not count up to a bound that it stays below, tested at its "
                       "top");
    for (uint32_t e = u->flow.back.first[loop->exit]; e < u->flow.back.first[loop->exit + 1]; e++) {
        if (u->flow.back.succ[e] != loop->header)
            return ev_fail(err, EV_BAD, "the loop is left in more than one place");
    }
    if (loop->trips >= 0 && loop->trips < u->turns)
        return ev_fail(err, EV_BAD, "the loop has fewer than %u turns", u->turns);
    return EV_OK;
}

/* ---- the main loop ----------------------------------------------------------------------------
 */

static LLVMValueRef count_of(const ir_turns *u, uint64_t value) {
    return LLVMConstInt(LLVMTypeOf(u->loop->induction), value, false);
}

/* Writes how many turns are full and where they end, before the loop. The distance is taken as
 * a number without sign, so that it cannot wrap. */
static void write_bound(ir_turns *u) {
    const ir_loop *loop = u->loop;
    LLVMBuilderRef b = u->builder;
    LLVMPositionBuilderBefore(b, ir_flow_last(&u->flow, loop->preheader));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef any = LLVMBuildICmp(b, loop->stays, loop->start, loop->bound, "");
    LLVMValueRef distance = LLVMBuildSub(b, loop->bound, loop->start, "");
    distance = LLVMBuildSelect(b, any, distance, count_of(u, 0), "");
    LLVMValueRef step = count_of(u, (uint64_t)loop->step);
    /* ceil_div, written such that it does not wrap */
    LLVMValueRef whole = LLVMBuildUDiv(b, distance, step, "");
    LLVMValueRef rest = LLVMBuildURem(b, distance, step, "");
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntNE, rest, count_of(u, 0), "");
    LLVMValueRef turns =
        LLVMBuildAdd(b, whole, LLVMBuildZExt(b, more, LLVMTypeOf(distance), ""), "");
    LLVMTypeRef type = LLVMTypeOf(u->loop->induction);
    LLVMValueRef mask = LLVMConstInt(type, ~(uint64_t)(u->turns - 1), true);
    u->full = LLVMBuildAnd(b, turns, mask, "");
    u->bound = LLVMBuildAdd(b, loop->start, LLVMBuildMul(b, u->full, step, ""), "");
}

static LLVMValueRef mapped(const ir_turns *u, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&u->flow, value);
    return insn != IR_NONE && u->values[insn] ? u->values[insn] : value;
}

void ir_turns_make_blocks(ir_turns *t) {
    for (uint32_t b = 0; b < t->flow.count; b++) {
        if (t->loop->holds[b])
            t->blocks[b] = LLVMInsertBasicBlockInContext(t->s->base->context,
                                                         block_of(t, t->loop->header), "");
    }
}

/* Clones an instruction at the builder's place; operands still are the loop's own. PHIs are made
 * without what comes in. */
static void clone(ir_turns *u, uint32_t i) {
    LLVMValueRef old = u->flow.insns[i], made;
    if (LLVMIsAPHINode(old)) {
        made = LLVMBuildPhi(u->builder, LLVMTypeOf(old), "");
    } else {
        made = LLVMInstructionClone(old);
        LLVMInsertIntoBuilder(u->builder, made);
    }
    u->values[i] = made;
}

/* Lets a branch of the copy lead to the copy's blocks, and to `next` in place of the header. */
static void redirect(const ir_turns *u, LLVMValueRef branch, LLVMBasicBlockRef next) {
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
        uint32_t to = ir_flow_block(&u->flow, LLVMGetSuccessor(branch, k));
        LLVMSetSuccessor(branch, k, to == u->loop->header ? next : u->blocks[to]);
    }
}

/* Gives a cloned instruction the values of its copy. */
static void settle(const ir_turns *u, uint32_t i, LLVMBasicBlockRef next) {
    LLVMValueRef old = u->flow.insns[i], made = u->values[i];
    if (LLVMIsAPHINode(old)) {
        for (unsigned k = 0; k < LLVMCountIncoming(old); k++) {
            uint32_t from = ir_flow_block(&u->flow, LLVMGetIncomingBlock(old, k));
            LLVMValueRef value = mapped(u, LLVMGetIncomingValue(old, k));
            LLVMAddIncoming(made, &value, &u->blocks[from], 1);
        }
        return;
    }
    bool leads = LLVMIsATerminatorInst(old) != NULL;
    for (int k = 0; k < LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (!LLVMValueIsBasicBlock(operand))
            LLVMSetOperand(made, (unsigned)k, mapped(u, operand));
    }
    if (leads)
        redirect(u, made, next);
}

/* Writes one turn, whose header's PHIs have their values already. The header's own branch is
 * left out: `in`, the block behind it, is where the turn goes on. */
static void write_turn(ir_turns *u, LLVMBasicBlockRef next) {
    for (uint32_t i = 0; i < u->flow.insn_count; i++) {
        uint32_t home = u->flow.home[i];
        if (!u->loop->holds[home] || ir_turns_is_phi(u, i) || ir_turns_is_test(u, i))
            continue;
        LLVMPositionBuilderAtEnd(u->builder, u->blocks[home]);
        LLVMSetCurrentDebugLocation2(u->builder, NULL);
        clone(u, i);
    }
    for (uint32_t i = 0; i < u->flow.insn_count; i++) {
        if (u->loop->holds[u->flow.home[i]] && !ir_turns_is_phi(u, i) && !ir_turns_is_test(u, i))
            settle(u, i, next);
    }
}

uint32_t ir_turns_first(const ir_turns *t) {
    LLVMValueRef last = ir_flow_last(&t->flow, t->loop->header);
    uint32_t yes = ir_flow_block(&t->flow, LLVMGetSuccessor(last, 0));
    return t->loop->holds[yes] ? yes : ir_flow_block(&t->flow, LLVMGetSuccessor(last, 1));
}

/* The turn after a turn: the header's PHIs have what its latch gave them. */
static void step_phis(ir_turns *u, LLVMValueRef *next) {
    uint32_t from = u->flow.first[u->loop->header];
    for (uint32_t i = from; LLVMIsAPHINode(u->flow.insns[i]); i++)
        next[i - from] = mapped(u, ir_flow_incoming(&u->flow, u->flow.insns[i], u->loop->latch));
    for (uint32_t i = from; LLVMIsAPHINode(u->flow.insns[i]); i++)
        u->values[i] = next[i - from];
}

/* The turns one after the other: an ir_turns_writer. */
static ev_status write_in_order(ir_turns *u, LLVMBasicBlockRef top, LLVMBasicBlockRef *begin,
                                ev_error *err) {
    const ir_flow *flow = &u->flow;
    uint32_t from = flow->first[u->loop->header];
    uint32_t count = flow->first[u->loop->header + 1] - from;
    LLVMValueRef *next = EV_NEW_ARRAY(u->s->arena, LLVMValueRef, count);
    if (!next)
        return ev_fail_memory(err, count);
    for (uint32_t turn = 0; turn < u->turns; turn++) {
        LLVMBasicBlockRef before = turn > 0 ? u->blocks[u->loop->latch] : NULL;
        if (turn > 0)
            step_phis(u, next);
        ir_turns_make_blocks(u);
        LLVMBasicBlockRef first = u->blocks[u->loop->header];
        if (before)
            LLVMSetSuccessor(LLVMGetBasicBlockTerminator(before), 0, first);
        else
            *begin = first;
        write_turn(u, top);
        LLVMPositionBuilderAtEnd(u->builder, first);
        LLVMBuildBr(u->builder, u->blocks[ir_turns_first(u)]);
    }
    return EV_OK;
}

static ev_status write_main(ir_turns *u, ir_turns_writer *write, LLVMBasicBlockRef top,
                            LLVMBasicBlockRef rest, ev_error *err) {
    LLVMBuilderRef b = u->builder;
    LLVMBasicBlockRef begin = NULL;
    const ir_flow *flow = &u->flow;
    uint32_t from = flow->first[u->loop->header], count = 0;
    for (; LLVMIsAPHINode(flow->insns[from + count]); count++) {
    }
    LLVMValueRef *phis = EV_NEW_ARRAY(u->s->arena, LLVMValueRef, count + 1);
    if (!phis)
        return ev_fail_memory(err, count);
    LLVMPositionBuilderAtEnd(b, top);
    LLVMSetCurrentDebugLocation2(b, NULL);
    for (uint32_t k = 0; k < count; k++)
        phis[k] = u->values[from + k] = LLVMBuildPhi(b, LLVMTypeOf(flow->insns[from + k]), "");
    LLVMValueRef test =
        LLVMBuildICmp(b, u->loop->stays, mapped(u, u->loop->induction), u->bound, "");
    LLVMValueRef branch = LLVMBuildCondBr(b, test, rest, rest);
    EV_TRY(write(u, top, &begin, err));
    LLVMSetSuccessor(branch, 0, begin);
    for (uint32_t k = 0; k < count; k++) {
        LLVMValueRef phi = flow->insns[from + k];
        LLVMValueRef values[] = {ir_flow_incoming(flow, phi, u->loop->preheader),
                                 mapped(u, ir_flow_incoming(flow, phi, u->loop->latch))};
        LLVMBasicBlockRef blocks[] = {block_of(u, u->loop->preheader), u->blocks[u->loop->latch]};
        LLVMAddIncoming(phis[k], values, blocks, 2);
    }
    for (uint32_t k = 0; k < count; k++)
        u->values[from + k] = phis[k];
    return EV_OK;
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

int64_t ir_turns_count_step(const ir_turns *t, LLVMValueRef phi) {
    LLVMValueRef next = ir_flow_incoming(&t->flow, phi, t->loop->latch);
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetOperand(next, 0) != phi || !LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
        return 0;
    return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
}

/* What a PHI of the rest begins with. Counts are computed before the main loop: so neither loop
 * takes a value of the other one but its sums. */
static LLVMValueRef start_of_rest(const ir_turns *u, uint32_t insn) {
    LLVMValueRef phi = u->flow.insns[insn],
                 start = ir_flow_incoming(&u->flow, phi, u->loop->preheader);
    LLVMTypeRef type = LLVMTypeOf(phi);
    int64_t step = ir_turns_count_step(u, phi);
    if (phi == u->loop->induction)
        return u->bound;
    if (step == 0 || LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return u->values[insn];
    LLVMPositionBuilderBefore(u->builder, ir_flow_last(&u->flow, u->loop->preheader));
    LLVMSetCurrentDebugLocation2(u->builder, NULL);
    LLVMValueRef full = LLVMBuildIntCast2(u->builder, u->full, type, false, "");
    LLVMValueRef by = LLVMConstInt(type, (unsigned long long)step, true);
    return LLVMBuildAdd(u->builder, start, LLVMBuildMul(u->builder, full, by, ""), "");
}

/* Makes the PHIs of the loop's header anew: they come from the main loop. */
static void enter_rest(const ir_turns *u, LLVMBasicBlockRef rest) {
    for (uint32_t i = u->flow.first[u->loop->header]; LLVMIsAPHINode(u->flow.insns[i]); i++) {
        LLVMValueRef phi = u->flow.insns[i], start = start_of_rest(u, i);
        LLVMPositionBuilderBefore(u->builder, phi);
        LLVMSetCurrentDebugLocation2(u->builder, NULL);
        LLVMValueRef made = LLVMBuildPhi(u->builder, LLVMTypeOf(phi), "");
        LLVMValueRef values[] = {start, ir_flow_incoming(&u->flow, phi, u->loop->latch)};
        LLVMBasicBlockRef from[] = {rest, block_of(u, u->loop->latch)};
        LLVMAddIncoming(made, values, from, 2);
        LLVMReplaceAllUsesWith(phi, made);
        LLVMInstructionEraseFromParent(phi);
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static ev_status unroll(ir_turns *u, const ir_edit *edit, ir_turns_writer *write, ev_error *err) {
    LLVMContextRef context = u->s->base->context;
    EV_TRY(ir_flow_make(u->s->function, u->s->arena, &u->flow, err));
    EV_TRY(check_anchor(u, edit, err));
    EV_TRY(check_loop(u, err));
    u->blocks = EV_NEW_ARRAY(u->s->arena, LLVMBasicBlockRef, u->flow.count + 1);
    u->values = EV_NEW_ARRAY(u->s->arena, LLVMValueRef, u->flow.insn_count + 1);
    if (!u->blocks || !u->values)
        return ev_fail_memory(err, u->flow.insn_count);
    LLVMBasicBlockRef header = block_of(u, u->loop->header);
    write_bound(u);
    LLVMBasicBlockRef top = LLVMInsertBasicBlockInContext(context, header, "");
    LLVMBasicBlockRef rest = LLVMInsertBasicBlockInContext(context, header, "");
    EV_TRY(write_main(u, write, top, rest, err));
    LLVMPositionBuilderAtEnd(u->builder, rest);
    LLVMBuildBr(u->builder, header);
    enter_rest(u, rest);
    LLVMValueRef last = ir_flow_last(&u->flow, u->loop->preheader);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(last); k++) {
        if (LLVMGetSuccessor(last, k) == header)
            LLVMSetSuccessor(last, k, top);
    }
    return EV_OK;
}

static ev_status write_with(ir_structure *s, const ir_edit *edit, ir_turns_writer *write,
                            ev_error *err) {
    ir_turns u = {.s = s};
    u.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = unroll(&u, edit, write, err);
    LLVMDisposeBuilder(u.builder);
    return status;
}

ev_status ir_structure_unroll_turns(ir_structure *s, const ir_edit *edit, ev_error *err) {
    return write_with(s, edit, write_in_order, err);
}

ev_status ir_structure_jam_turns(ir_structure *s, const ir_edit *edit, ev_error *err) {
    return write_with(s, edit, ir_turns_write_jammed, err);
}
