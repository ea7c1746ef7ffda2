/* Unroll turns: a loop that counts gets a copy before it whose body does u turns at a time, without
 * the tests between them.
 *
 *     main: while u turns are left: u turns
 *     rest: the loop as it was, from where the main loop ends
 *
 * Each value is computed as before, in the same order. What the turns load can then be under way
 * together, in early IR already: later edits spread, pipeline and stage both loops. The main loop
 * counts to a bound of its own, which is computed before it, and the rest begins there.
 *
 * jam-turns (jam.c) writes the same copy with the heads of the turns side by side. Here, a turn is
 * all tail. */
#include "ir/structure/turns/turns_internal.h"

#include "ir/structure/analyses/vary_internal.h"

#include <string.h>

enum { MOST_TURNS = 16 };

static LLVMBasicBlockRef block_of(const ir_turns *t, uint32_t block) {
    return t->flow.blocks[block];
}

bool ir_turns_is_phi(const ir_turns *t, uint32_t insn) {
    return t->flow.home[insn] == t->loop->header && LLVMIsAPHINode(t->flow.insns[insn]);
}

bool ir_turns_is_test(const ir_turns *t, uint32_t insn) {
    return t->flow.insns[insn] == ir_flow_last(&t->flow, t->loop->header);
}

bool ir_turns_in_loop(const ir_turns *t, uint32_t insn) {
    return insn != IR_NONE && t->loop->holds[t->flow.home[insn]];
}

static bool is_of_tail(const ir_turns *t, uint32_t block) {
    return t->loop->holds[block] && ir_dominance_over(&t->flow.over, t->tail, block);
}

bool ir_turns_in_head(const ir_turns *t, uint32_t insn) {
    return ir_turns_in_loop(t, insn) && !is_of_tail(t, t->flow.home[insn]);
}

bool ir_turns_begins_tail(const ir_turns *t, uint32_t insn) {
    return t->flow.home[insn] == t->tail && LLVMIsAPHINode(t->flow.insns[insn]);
}

static LLVMValueRef growth_of(const ir_turns *t, LLVMValueRef phi) {
    LLVMValueRef next = ir_flow_incoming(&t->flow, phi, t->loop->latch);
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetTypeKind(LLVMTypeOf(next)) != LLVMIntegerTypeKind)
        return NULL;
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef by = LLVMGetOperand(next, 1 - side);
        if (LLVMGetOperand(next, side) == phi && !ir_turns_in_loop(t, ir_flow_insn(&t->flow, by)))
            return by;
    }
    return NULL;
}

LLVMValueRef ir_turns_growth(const ir_turns *t, LLVMValueRef phi) {
    LLVMValueRef growth = growth_of(t, phi);
    return growth && (t->step || LLVMIsAConstantInt(growth)) ? growth : NULL;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_anchor(ir_turns *t, const ir_edit *edit, ev_error *err) {
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&t->flow, edit->anchor.path) : IR_NONE;
    int64_t turns = edit->has_option ? edit->option : 0;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    if (turns < 2 || turns > MOST_TURNS || (turns & (turns - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to %d", MOST_TURNS);
    t->loop = &t->flow.loops[at];
    t->turns = (uint32_t)turns;
    return EV_OK;
}

/* Finds the counter of a loop whose step is no constant, as `i += blockDim.x * gridDim.x`. */
static void find_counter(ir_turns *t) {
    const ir_loop *loop = t->loop;
    t->own = *loop;
    if (loop->induction || loop->latch == IR_NONE || loop->preheader == IR_NONE)
        return;
    for (uint32_t i = t->flow.first[loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++) {
        LLVMValueRef phi = t->flow.insns[i], growth = growth_of(t, phi);
        if (!growth || LLVMIsAConstantInt(growth) ||
            !ir_loop_is_tested_at_top(&t->flow, phi, &t->own))
            continue;
        t->own.induction = phi;
        t->own.start = ir_flow_incoming(&t->flow, phi, loop->preheader);
        t->loop = &t->own;
        t->step = growth;
        return;
    }
}

static ev_status check_loop(ir_turns *t, ev_error *err) {
    find_counter(t);
    const ir_loop *loop = t->loop;
    bool grows = t->step || (loop->step > 0 && loop->step <= INT32_MAX / MOST_TURNS);
    bool counts = loop->induction && !loop->compares_next && grows &&
                  (loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT) &&
                  loop->exit != IR_NONE &&
                  LLVMGetNumSuccessors(ir_flow_last(&t->flow, loop->latch)) == 1;
    if (!counts)
        return ev_fail(err, EV_BAD,
                       "the loop does not count up to a bound that it stays below, tested at its "
                       "top");
    for (uint32_t e = t->flow.back.first[loop->exit]; e < t->flow.back.first[loop->exit + 1]; e++) {
        if (t->flow.back.succ[e] != loop->header)
            return ev_fail(err, EV_BAD, "the loop is left in more than one place");
    }
    if (loop->trips >= 0 && loop->trips < t->turns)
        return ev_fail(err, EV_BAD, "the loop has fewer than %u turns", t->turns);
    return EV_OK;
}

/* ---- the main loop ----------------------------------------------------------------------------
 */

static LLVMValueRef count_of(const ir_turns *t, uint64_t value) {
    return LLVMConstInt(LLVMTypeOf(t->loop->induction), value, false);
}

/* Whether the flags of the counter's sum say that it does not wrap around, as the test reads it. */
static bool never_wraps(const ir_turns *t) {
    LLVMValueRef next = ir_flow_incoming(&t->flow, t->loop->induction, t->loop->latch);
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd)
        return false;
    return t->loop->stays == LLVMIntSLT ? LLVMGetNSW(next) : LLVMGetNUW(next);
}

/* Writes how many turns are full and where they end, before the loop. The distance is taken as
 * a number without sign, so that it cannot wrap. */
static void write_bound(ir_turns *t) {
    const ir_loop *loop = t->loop;
    LLVMBuilderRef b = t->builder;
    LLVMPositionBuilderBefore(b, ir_flow_last(&t->flow, loop->preheader));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef any = LLVMBuildICmp(b, loop->stays, loop->start, loop->bound, "");
    LLVMValueRef distance = LLVMBuildSub(b, loop->bound, loop->start, "");
    distance = LLVMBuildSelect(b, any, distance, count_of(t, 0), "");
    LLVMValueRef step = t->step ? t->step : count_of(t, (uint64_t)loop->step);
    if (t->step) { /* where it is not positive, the loop itself does all turns */
        LLVMValueRef zero = count_of(t, 0);
        bool is_signed = loop->stays == LLVMIntSLT;
        LLVMValueRef grows =
            LLVMBuildICmp(b, is_signed ? LLVMIntSGT : LLVMIntNE, t->step, zero, "");
        distance = LLVMBuildSelect(b, grows, distance, zero, "");
        step = LLVMBuildSelect(b, grows, t->step, count_of(t, 1), "");
    }
    /* ceil_div, written such that it does not wrap */
    LLVMValueRef whole = LLVMBuildUDiv(b, distance, step, "");
    LLVMValueRef rest = LLVMBuildURem(b, distance, step, "");
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntNE, rest, count_of(t, 0), "");
    LLVMValueRef turns =
        LLVMBuildAdd(b, whole, LLVMBuildZExt(b, more, LLVMTypeOf(distance), ""), "");
    LLVMTypeRef type = LLVMTypeOf(t->loop->induction);
    LLVMValueRef mask = LLVMConstInt(type, ~(uint64_t)(t->turns - 1), true);
    t->full = LLVMBuildAnd(b, turns, mask, "");
    t->bound = LLVMBuildAdd(b, loop->start, LLVMBuildMul(b, t->full, step, ""), "");
    if (!never_wraps(t)) { /* where the counter wraps around, the loop itself does all turns */
        LLVMValueRef wraps = LLVMBuildICmp(b, loop->stays, t->bound, loop->start, "");
        t->full = LLVMBuildSelect(b, wraps, count_of(t, 0), t->full, "");
        t->bound = LLVMBuildSelect(b, wraps, loop->start, t->bound, "");
    }
}

/* ---- copies of the turns ----------------------------------------------------------------------
 */

static LLVMValueRef *value_at(const ir_turns *t, uint32_t turn, uint32_t insn) {
    return &t->values[(size_t)turn * t->flow.insn_count + insn];
}

static LLVMBasicBlockRef block_at(const ir_turns *t, uint32_t turn, uint32_t block) {
    return t->blocks[(size_t)turn * t->flow.count + block];
}

static LLVMValueRef mapped(const ir_turns *t, uint32_t turn, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&t->flow, value);
    LLVMValueRef made = ir_turns_in_loop(t, insn) ? *value_at(t, turn, insn) : NULL;
    return made ? made : value;
}

/* Gives each block of a tail a copy in each turn, and each block of the head one. */
static void make_blocks(const ir_turns *t) {
    LLVMBasicBlockRef before = block_of(t, t->loop->header);
    for (uint32_t turn = 0; turn < t->turns; turn++) {
        LLVMBasicBlockRef *of = &t->blocks[(size_t)turn * t->flow.count];
        for (uint32_t b = 0; b < t->flow.count; b++) {
            if (turn == 0 ? t->loop->holds[b] : is_of_tail(t, b))
                of[b] = LLVMInsertBasicBlockInContext(t->s->base->context, before, "");
            else
                of[b] = t->blocks[b];
        }
    }
}

/* Clones an instruction for one turn where the builder stands; operands still are the loop's own.
 * PHIs are made without what comes in. */
static void clone(const ir_turns *t, uint32_t insn, uint32_t turn) {
    LLVMValueRef old = t->flow.insns[insn], made;
    if (LLVMIsAPHINode(old)) {
        made = LLVMBuildPhi(t->builder, LLVMTypeOf(old), "");
    } else {
        made = LLVMInstructionClone(old);
        LLVMInsertIntoBuilder(t->builder, made);
    }
    *value_at(t, turn, insn) = made;
}

/* The same for all turns: once for what is alike. */
static void clone_all(const ir_turns *t, uint32_t insn) {
    for (uint32_t turn = 0; turn < t->turns; turn++) {
        if (turn > 0 && t->ties[insn] == IR_TIE_ALIKE)
            *value_at(t, turn, insn) = *value_at(t, 0, insn);
        else
            clone(t, insn, turn);
    }
}

/* The numbers of the turns, from those of the first: they wrap no more than the loop's own do. */
static void write_numbers(const ir_turns *t) {
    for (uint32_t i = t->flow.first[t->loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++) {
        LLVMValueRef first = *value_at(t, 0, i);
        LLVMValueRef step = ir_turns_growth(t, t->flow.insns[i]);
        LLVMValueRef next = ir_flow_incoming(&t->flow, t->flow.insns[i], t->loop->latch);
        for (uint32_t turn = 1; turn < t->turns && t->ties[i] == IR_TIE_OWN; turn++) {
            LLVMValueRef times = LLVMConstInt(LLVMTypeOf(first), turn, false);
            LLVMValueRef by = LLVMBuildMul(t->builder, step, times, "");
            LLVMValueRef made = LLVMBuildAdd(t->builder, first, by, "");
            LLVMSetNSW(made, LLVMGetNSW(next));
            LLVMSetNUW(made, LLVMGetNUW(next));
            *value_at(t, turn, i) = made;
        }
    }
}

static void stand_at_end(const ir_turns *t, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(t->builder, block);
    LLVMSetCurrentDebugLocation2(t->builder, NULL);
}

/* The block in the loop that its header's branch leads to. */
static uint32_t first_in_loop(const ir_turns *t) {
    LLVMValueRef last = ir_flow_last(&t->flow, t->loop->header);
    uint32_t yes = ir_flow_block(&t->flow, LLVMGetSuccessor(last, 0));
    return t->loop->holds[yes] ? yes : ir_flow_block(&t->flow, LLVMGetSuccessor(last, 1));
}

/* Clones the end of a block: a turn goes on behind the loop's test without it. */
static void write_end(const ir_turns *t, uint32_t turn, uint32_t block) {
    uint32_t last = t->flow.first[block + 1] - 1;
    if (ir_turns_is_test(t, last))
        LLVMBuildBr(t->builder, block_at(t, turn, first_in_loop(t)));
    else
        clone(t, last, turn);
}

static void write_head(const ir_turns *t, uint32_t block) {
    stand_at_end(t, block_at(t, 0, block));
    if (block == t->loop->header)
        write_numbers(t);
    for (uint32_t i = t->flow.first[block]; i + 1 < t->flow.first[block + 1]; i++) {
        if (!ir_turns_is_phi(t, i) && ir_deed_of(t->flow.insns[i]) != IR_DEED_MARKER)
            clone_all(t, i);
    }
    write_end(t, 0, block);
}

static void write_tail(const ir_turns *t, uint32_t turn, uint32_t block) {
    stand_at_end(t, block_at(t, turn, block));
    for (uint32_t i = t->flow.first[block]; i + 1 < t->flow.first[block + 1]; i++) {
        if (ir_turns_is_phi(t, i))
            continue;
        if (!ir_turns_begins_tail(t, i))
            clone(t, i, turn);
        else if (turn == 0)
            clone_all(t, i);
    }
    write_end(t, turn, block);
}

/* What each turn takes from the one before, once all turns have their copies. */
static void hand_on(const ir_turns *t) {
    for (uint32_t turn = 1; turn < t->turns; turn++) {
        for (uint32_t i = t->flow.first[t->loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++) {
            LLVMValueRef next = ir_flow_incoming(&t->flow, t->flow.insns[i], t->loop->latch);
            if (t->ties[i] == IR_TIE_CHAINED)
                *value_at(t, turn, i) = mapped(t, turn - 1, next);
        }
    }
}

/* Lets a branch of a turn lead to copies: behind a tail stands the next one, or `top`. */
static void redirect(const ir_turns *t, LLVMValueRef branch, uint32_t turn, LLVMBasicBlockRef top) {
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
        uint32_t to = ir_flow_block(&t->flow, LLVMGetSuccessor(branch, k));
        bool ends = to == t->loop->header;
        LLVMBasicBlockRef next = turn + 1 < t->turns ? block_at(t, turn + 1, t->tail) : top;
        LLVMSetSuccessor(branch, k, ends ? next : block_at(t, turn, to));
    }
}

/* Gives a cloned instruction the values of its turn. */
static void settle(const ir_turns *t, uint32_t insn, uint32_t turn, LLVMBasicBlockRef top) {
    LLVMValueRef old = t->flow.insns[insn], made = *value_at(t, turn, insn);
    if (LLVMIsAPHINode(old)) {
        for (unsigned k = 0; k < LLVMCountIncoming(old); k++) {
            uint32_t from = ir_flow_block(&t->flow, LLVMGetIncomingBlock(old, k));
            LLVMValueRef value = mapped(t, turn, LLVMGetIncomingValue(old, k));
            LLVMBasicBlockRef block = block_at(t, turn, from);
            LLVMAddIncoming(made, &value, &block, 1);
        }
        return;
    }
    for (int k = 0; k < LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (!LLVMValueIsBasicBlock(operand))
            LLVMSetOperand(made, (unsigned)k, mapped(t, turn, operand));
    }
    if (LLVMIsATerminatorInst(old))
        redirect(t, made, turn, top);
}

/* How many copies of an instruction there are. */
static uint32_t copies_of(const ir_turns *t, uint32_t insn) {
    LLVMValueRef value = t->flow.insns[insn];
    if (!ir_turns_in_loop(t, insn) || ir_turns_is_phi(t, insn) || ir_turns_is_test(t, insn))
        return 0;
    if (!ir_turns_in_head(t, insn) && !ir_turns_begins_tail(t, insn))
        return t->turns;
    if (ir_deed_of(value) == IR_DEED_MARKER)
        return 0;
    return LLVMIsATerminatorInst(value) || t->ties[insn] == IR_TIE_ALIKE ? 1 : t->turns;
}

/* Writes the turns of the main loop. `top`: its header, whose PHIs the first turn takes. */
static void write_turns(const ir_turns *t, LLVMBasicBlockRef top) {
    const ir_flow *flow = &t->flow;
    make_blocks(t);
    for (uint32_t b = 0; b < flow->count; b++) {
        if (t->loop->holds[b] && !is_of_tail(t, b))
            write_head(t, b);
    }
    for (uint32_t turn = 0; turn < t->turns; turn++) {
        for (uint32_t b = 0; b < flow->count; b++) {
            if (is_of_tail(t, b))
                write_tail(t, turn, b);
        }
    }
    hand_on(t);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        for (uint32_t turn = 0, copies = copies_of(t, i); turn < copies; turn++)
            settle(t, i, turn, top);
    }
}

static void write_main(const ir_turns *t, LLVMBasicBlockRef top, LLVMBasicBlockRef rest) {
    const ir_flow *flow = &t->flow;
    uint32_t from = flow->first[t->loop->header], last = t->turns - 1;
    stand_at_end(t, top);
    for (uint32_t i = from; LLVMIsAPHINode(flow->insns[i]); i++)
        *value_at(t, 0, i) = LLVMBuildPhi(t->builder, LLVMTypeOf(flow->insns[i]), "");
    LLVMValueRef test =
        LLVMBuildICmp(t->builder, t->loop->stays, mapped(t, 0, t->loop->induction), t->bound, "");
    LLVMValueRef branch = LLVMBuildCondBr(t->builder, test, rest, rest);
    write_turns(t, top);
    LLVMSetSuccessor(branch, 0, block_at(t, 0, t->loop->header));
    for (uint32_t i = from; LLVMIsAPHINode(flow->insns[i]); i++) {
        LLVMValueRef phi = flow->insns[i];
        LLVMValueRef values[] = {ir_flow_incoming(flow, phi, t->loop->preheader),
                                 mapped(t, last, ir_flow_incoming(flow, phi, t->loop->latch))};
        LLVMBasicBlockRef blocks[] = {block_of(t, t->loop->preheader),
                                      block_at(t, last, t->loop->latch)};
        LLVMAddIncoming(*value_at(t, 0, i), values, blocks, 2);
    }
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

/* What a PHI of the rest begins with. Counts are computed before the main loop: so neither loop
 * takes a value of the other one but its sums. */
static LLVMValueRef start_of_rest(const ir_turns *t, uint32_t insn) {
    LLVMValueRef phi = t->flow.insns[insn],
                 start = ir_flow_incoming(&t->flow, phi, t->loop->preheader);
    LLVMTypeRef type = LLVMTypeOf(phi);
    LLVMValueRef step = ir_turns_growth(t, phi);
    if (phi == t->loop->induction)
        return t->bound;
    if (!step)
        return *value_at(t, 0, insn);
    LLVMPositionBuilderBefore(t->builder, ir_flow_last(&t->flow, t->loop->preheader));
    LLVMSetCurrentDebugLocation2(t->builder, NULL);
    LLVMValueRef full = LLVMBuildIntCast2(t->builder, t->full, type, false, "");
    return LLVMBuildAdd(t->builder, start, LLVMBuildMul(t->builder, full, step, ""), "");
}

/* Makes the PHIs of the loop's header anew: they come from the main loop. */
static void enter_rest(const ir_turns *t, LLVMBasicBlockRef rest) {
    uint32_t first = t->flow.first[t->loop->header];
    for (uint32_t i = first; LLVMIsAPHINode(t->flow.insns[i]); i++)
        t->starts[i] = start_of_rest(t, i);
    for (uint32_t i = first; LLVMIsAPHINode(t->flow.insns[i]); i++) {
        LLVMValueRef phi = t->flow.insns[i], start = t->starts[i];
        LLVMPositionBuilderBefore(t->builder, phi);
        LLVMSetCurrentDebugLocation2(t->builder, NULL);
        LLVMValueRef made = LLVMBuildPhi(t->builder, LLVMTypeOf(phi), "");
        LLVMValueRef values[] = {start, ir_flow_incoming(&t->flow, phi, t->loop->latch)};
        LLVMBasicBlockRef from[] = {rest, block_of(t, t->loop->latch)};
        LLVMAddIncoming(made, values, from, 2);
        LLVMReplaceAllUsesWith(phi, made);
        LLVMInstructionEraseFromParent(phi);
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static ev_status make_room(ir_turns *t, ev_error *err) {
    size_t insns = t->flow.insn_count + 1, blocks = t->flow.count + 1;
    t->blocks = EV_NEW_ARRAY(t->s->arena, LLVMBasicBlockRef, t->turns * blocks);
    t->values = EV_NEW_ARRAY(t->s->arena, LLVMValueRef, t->turns * insns);
    t->ties = EV_NEW_ARRAY(t->s->arena, ir_tie, insns);
    t->starts = EV_NEW_ARRAY(t->s->arena, LLVMValueRef, insns);
    return t->blocks && t->values && t->ties && t->starts ? EV_OK
                                                          : ev_fail_memory(err, t->turns * insns);
}

static ev_status write_copy(ir_turns *t, const ir_edit *edit, ir_turns_plan *plan, ev_error *err) {
    LLVMContextRef context = t->s->base->context;
    EV_TRY(ir_flow_make(t->s->function, t->s->arena, &t->flow, err));
    EV_TRY(check_anchor(t, edit, err));
    EV_TRY(check_loop(t, err));
    EV_TRY(make_room(t, err));
    EV_TRY(plan(t, err));
    LLVMBasicBlockRef header = block_of(t, t->loop->header);
    write_bound(t);
    LLVMBasicBlockRef top = LLVMInsertBasicBlockInContext(context, header, "");
    LLVMBasicBlockRef rest = LLVMInsertBasicBlockInContext(context, header, "");
    write_main(t, top, rest);
    LLVMPositionBuilderAtEnd(t->builder, rest);
    LLVMBuildBr(t->builder, header);
    enter_rest(t, rest);
    LLVMValueRef last = ir_flow_last(&t->flow, t->loop->preheader);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(last); k++) {
        if (LLVMGetSuccessor(last, k) == header)
            LLVMSetSuccessor(last, k, top);
    }
    return EV_OK;
}

static ev_status write_by(ir_structure *s, const ir_edit *edit, ir_turns_plan *plan,
                          ev_error *err) {
    ir_turns t = {.s = s};
    t.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = write_copy(&t, edit, plan, err);
    LLVMDisposeBuilder(t.builder);
    return status;
}

/* The turns one after the other: all of a turn takes what the turn before handed on. */
static ev_status plan_in_order(ir_turns *t, ev_error *err) {
    (void)err;
    t->tail = t->loop->header;
    for (uint32_t i = 0; i < t->flow.insn_count; i++)
        t->ties[i] = IR_TIE_CHAINED;
    return EV_OK;
}

ev_status ir_structure_unroll_turns(ir_structure *s, const ir_edit *edit, ev_error *err) {
    return write_by(s, edit, plan_in_order, err);
}

ev_status ir_structure_jam_turns(ir_structure *s, const ir_edit *edit, ev_error *err) {
    return write_by(s, edit, ir_turns_plan_jam, err);
}
