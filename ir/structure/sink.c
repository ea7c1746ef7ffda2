/* Sink: a loop whose results are used under conditions only runs under them.
 *
 * The conditions are computed before the loop, so they may not depend on it: they are made of
 * arithmetic and of loads that run in any case, from arguments that the kernel does not write. The
 * loop runs if one of its results is needed; else they are zero, and nothing uses them. */
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

enum { DEEPEST = 12, MOST_OPERANDS = 16 };

typedef struct sinking {
    ir_structure *s;
    ir_flow flow;
    const ir_loop *loop;
    LLVMBuilderRef builder; /* stands at the end of the loop's preheader */
    LLVMValueRef *made;     /* by instruction: its value before the loop; NULL: not made yet */
    LLVMValueRef always;    /* the condition that always holds */
} sinking;

static bool is_over(const sinking *p, uint32_t a, uint32_t b) {
    return ir_dominance_over(&p->flow.over, a, b);
}

/* ---- conditions before the loop ---------------------------------------------------------------
 */

/* Whether a block runs whenever the loop does. */
static bool runs_always(const sinking *p, uint32_t block) {
    return ir_dominance_over(&p->flow.under, block + 1, p->loop->header + 1);
}

/* Whether an instruction behind the loop may run before it. */
static bool may_move(const sinking *p, uint32_t insn) {
    LLVMValueRef value = p->flow.insns[insn], base = NULL;
    if (p->loop->holds[p->flow.home[insn]] || LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value) ||
        LLVMGetNumOperands(value) > MOST_OPERANDS)
        return false;
    if (ir_deed_of(value) == IR_DEED_LOAD)
        return runs_always(p, p->flow.home[insn]) && ir_reads_only(&p->flow, value, &base);
    return ir_may_run_anywhere(value) ||
           (ir_deed_of(value) == IR_DEED_PURE && runs_always(p, p->flow.home[insn]));
}

/* Writes a value before the loop. NULL: it depends on the loop, or on what cannot move. */
static LLVMValueRef moved(sinking *p, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&p->flow, value);
    LLVMValueRef operands[MOST_OPERANDS];
    if (insn == IR_NONE || is_over(p, p->flow.home[insn], p->loop->preheader))
        return value;
    if (p->made[insn])
        return p->made[insn];
    if (depth == 0 || !may_move(p, insn))
        return NULL;
    int count = LLVMGetNumOperands(value);
    for (int k = 0; k < count; k++) {
        operands[k] = moved(p, LLVMGetOperand(value, (unsigned)k), depth - 1);
        if (!operands[k])
            return NULL;
    }
    LLVMValueRef made = LLVMInstructionClone(value);
    for (int k = 0; k < count; k++)
        LLVMSetOperand(made, (unsigned)k, operands[k]);
    LLVMInsertIntoBuilder(p->builder, made);
    p->made[insn] = made;
    return made;
}

/* The condition, or its opposite, before the loop; one that cannot move counts as one that holds.
 */
static LLVMValueRef test(sinking *p, LLVMValueRef condition, bool is) {
    LLVMValueRef made = moved(p, condition, DEEPEST);
    if (!made)
        return p->always;
    return is ? made : LLVMBuildNot(p->builder, made, "");
}

static LLVMValueRef both(const sinking *p, LLVMValueRef a, LLVMValueRef b) {
    if (a == p->always || b == p->always)
        return a == p->always ? b : a;
    return LLVMBuildAnd(p->builder, a, b, "");
}

/* NULL: never. */
static LLVMValueRef either(const sinking *p, LLVMValueRef a, LLVMValueRef b) {
    if (!a || !b)
        return a ? a : b;
    return a == p->always || b == p->always ? p->always : LLVMBuildOr(p->builder, a, b, "");
}

/* ---- where results are needed -----------------------------------------------------------------
 */

/* The test with which block `from` goes on to block `to`. */
static LLVMValueRef edge(sinking *p, uint32_t from, uint32_t to) {
    LLVMValueRef last = ir_flow_last(&p->flow, from);
    if (!LLVMIsABranchInst(last) || !LLVMIsConditional(last) ||
        LLVMGetSuccessor(last, 0) == LLVMGetSuccessor(last, 1))
        return p->always;
    if (LLVMGetSuccessor(last, 0) == p->flow.blocks[to])
        return test(p, LLVMGetCondition(last), true);
    if (LLVMGetSuccessor(last, 1) == p->flow.blocks[to])
        return test(p, LLVMGetCondition(last), false);
    return p->always;
}

/* The conditions under which a block behind the loop runs. */
static LLVMValueRef way_to(sinking *p, uint32_t block) {
    const ir_flow *flow = &p->flow;
    LLVMValueRef way = p->always;
    while (block != p->loop->exit && is_over(p, p->loop->exit, block)) {
        uint32_t over = flow->over.idom[block];
        bool is_only_way = flow->back.first[block + 1] - flow->back.first[block] == 1;
        if (is_only_way)
            way = both(p, way, edge(p, over, block));
        block = over;
    }
    return way;
}

static LLVMValueRef need(sinking *p, LLVMValueRef value, unsigned depth);

/* When the loop's result that `value` is made of is needed by one of its users. A division by the
 * result needs it wherever it runs: a loop that did not run leaves 0. */
static LLVMValueRef need_of(sinking *p, LLVMValueRef user, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&p->flow, user);
    if (insn == IR_NONE)
        return NULL; /* code that nothing reaches */
    uint32_t block = p->flow.home[insn];
    LLVMValueRef when = NULL;
    if (LLVMIsAPHINode(user)) {
        for (unsigned i = 0; i < LLVMCountIncoming(user); i++) {
            uint32_t from = ir_flow_block(&p->flow, LLVMGetIncomingBlock(user, i));
            if (LLVMGetIncomingValue(user, i) == value && from != IR_NONE)
                when = either(p, when, both(p, way_to(p, from), edge(p, from, block)));
        }
        return when;
    }
    when = way_to(p, block);
    if (when == p->always && LLVMIsASelectInst(user) && LLVMGetOperand(user, 0) != value &&
        LLVMGetOperand(user, 1) != LLVMGetOperand(user, 2))
        when = test(p, LLVMGetOperand(user, 0), LLVMGetOperand(user, 1) == value);
    bool divides_by = ir_divides(user) && LLVMGetOperand(user, 1) == value;
    if (when == p->always && depth > 0 && ir_deed_of(user) == IR_DEED_PURE && !divides_by &&
        !LLVMIsATerminatorInst(user))
        return need(p, user, depth - 1);
    return when;
}

/* When a value behind the loop is needed; NULL: never. */
static LLVMValueRef need(sinking *p, LLVMValueRef value, unsigned depth) {
    LLVMValueRef when = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use && when != p->always;
         use = LLVMGetNextUse(use))
        when = either(p, when, need_of(p, LLVMGetUser(use), value, depth));
    return when;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static ev_status check_loop(sinking *p, const ir_edit *edit, ev_error *err) {
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&p->flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    p->loop = &p->flow.loops[at];
    uint32_t exit = p->loop->exit;
    if (exit == IR_NONE || p->loop->preheader == IR_NONE ||
        p->flow.back.first[exit + 1] - p->flow.back.first[exit] != 1)
        return ev_fail(err, EV_BAD, "the loop is left in more than one place");
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (p->loop->holds[p->flow.home[i]] && ir_has_effect(p->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the loop does more than to compute: it stores or waits");
    }
    return EV_OK;
}

/* Lets the preheader go round the loop unless `when` holds. */
static void guard(const sinking *p, LLVMValueRef when) {
    LLVMBasicBlockRef ahead = p->flow.blocks[p->loop->preheader];
    LLVMBasicBlockRef header = p->flow.blocks[p->loop->header];
    LLVMBasicBlockRef exit = p->flow.blocks[p->loop->exit];
    LLVMValueRef last = LLVMGetBasicBlockTerminator(ahead);
    LLVMBuildCondBr(p->builder, when, header, exit);
    LLVMInstructionEraseFromParent(last);
    for (LLVMValueRef i = LLVMGetFirstInstruction(exit); LLVMIsAPHINode(i);
         i = LLVMGetNextInstruction(i)) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(i));
        LLVMAddIncoming(i, &zero, &ahead, 1);
    }
}

static ev_status sink(sinking *p, const ir_edit *edit, ev_error *err) {
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(check_loop(p, edit, err));
    p->made = EV_NEW_ARRAY(p->s->arena, LLVMValueRef, p->flow.insn_count + 1);
    if (!p->made)
        return ev_fail_memory(err, p->flow.insn_count);
    p->always = LLVMConstInt(LLVMInt1TypeInContext(p->s->base->context), 1, false);
    LLVMPositionBuilderBefore(p->builder, ir_flow_last(&p->flow, p->loop->preheader));
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMValueRef when = NULL;
    LLVMBasicBlockRef exit = p->flow.blocks[p->loop->exit];
    for (LLVMValueRef i = LLVMGetFirstInstruction(exit); LLVMIsAPHINode(i);
         i = LLVMGetNextInstruction(i))
        when = either(p, when, need(p, i, DEEPEST));
    if (!when || when == p->always)
        return ev_fail(err, EV_BAD,
                       "the loop's results are used under no condition that is known before it");
    guard(p, when);
    return EV_OK;
}

ev_status ir_structure_sink(ir_structure *s, const ir_edit *edit, ev_error *err) {
    sinking p = {.s = s};
    p.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = sink(&p, edit, err);
    LLVMDisposeBuilder(p.builder);
    return status;
}
