/* Guards: followed from the entry, as long as one side of a branch ends the kernel and nothing has
 * had an effect. */
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/vary_internal.h"

static bool ends_at_once(LLVMBasicBlockRef block) {
    return LLVMIsAReturnInst(LLVMGetFirstInstruction(block)) != NULL;
}

static bool has_effects(LLVMBasicBlockRef block) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        if (ir_has_effect(i))
            return true;
    }
    return false;
}

/* Whether a block computes something that may fail where an earlier guard has ended the thread. */
static bool needs_guard(LLVMBasicBlockRef block) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        if (ir_deed_of(i) == IR_DEED_PURE && !ir_may_run_anywhere(i))
            return true;
    }
    return false;
}

static bool has_one_way_in(const ir_flow *flow, LLVMBasicBlockRef block) {
    uint32_t b = ir_flow_block(flow, block);
    return flow->back.first[b + 1] - flow->back.first[b] == 1;
}

bool ir_is_bit(LLVMValueRef value, bool bit) {
    return LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 1 &&
           LLVMConstIntGetZExtValue(value) == (bit ? 1 : 0);
}

bool ir_is_either(LLVMValueRef condition, bool leaves_if, LLVMValueRef parts[2]) {
    if (!LLVMIsAInstruction(condition))
        return false;
    LLVMOpcode op = LLVMGetInstructionOpcode(condition);
    parts[0] = LLVMGetOperand(condition, 0);
    if (op == (leaves_if ? LLVMOr : LLVMAnd)) {
        parts[1] = LLVMGetOperand(condition, 1);
        return true;
    }
    if (op != LLVMSelect)
        return false;
    parts[1] = LLVMGetOperand(condition, leaves_if ? 2 : 1);
    return ir_is_bit(LLVMGetOperand(condition, leaves_if ? 1 : 2), leaves_if);
}

static void add_tests(ir_guards *out, LLVMValueRef condition, bool leaves_if, unsigned depth) {
    LLVMValueRef parts[2];
    if (depth > 0 && LLVMIsAInstruction(condition) &&
        LLVMGetInstructionOpcode(condition) == LLVMXor &&
        ir_is_bit(LLVMGetOperand(condition, 1), true)) {
        add_tests(out, LLVMGetOperand(condition, 0), !leaves_if, depth - 1);
    } else if (depth > 0 && ir_is_either(condition, leaves_if, parts)) {
        add_tests(out, parts[0], leaves_if, depth - 1);
        add_tests(out, parts[1], leaves_if, depth - 1);
    } else {
        out->tests[out->test_count++] = (ir_test){condition, leaves_if};
    }
}

/* Whether a condition is arithmetic of arguments, constants and places. */
static bool is_arithmetic(LLVMValueRef value, unsigned depth) {
    if (!LLVMIsAInstruction(value))
        return true;
    if (depth == 0 || LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value) ||
        ir_deed_of(value) != IR_DEED_PURE)
        return false;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!is_arithmetic(LLVMGetOperand(value, (unsigned)k), depth - 1))
            return false;
    }
    return true;
}

void ir_guards_find(const ir_flow *flow, bool arithmetic, ir_guards *out) {
    enum { DEEPEST_CONDITION = 24 };
    enum { DEEPEST = 2 }; /* four tests a guard, so that there is room for all */
    LLVMBasicBlockRef at = flow->blocks[0];
    _Static_assert(IR_MOST_GUARDS << DEEPEST <= IR_MOST_TESTS, "room for the tests of all guards");
    *out = (ir_guards){0};
    while (out->count < IR_MOST_GUARDS && !has_effects(at)) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(at);
        LLVMBasicBlockRef next = NULL;
        if (!LLVMIsABranchInst(last))
            return;
        if (!LLVMIsConditional(last)) {
            next = LLVMGetSuccessor(last, 0);
        } else {
            LLVMBasicBlockRef yes = LLVMGetSuccessor(last, 0), no = LLVMGetSuccessor(last, 1);
            if (ends_at_once(yes) == ends_at_once(no))
                return;
            if (arithmetic && !is_arithmetic(LLVMGetCondition(last), DEEPEST_CONDITION))
                return;
            if (arithmetic && out->count > 0 && needs_guard(at))
                return;
            next = ends_at_once(yes) ? no : yes;
            out->block[out->count] = at;
            out->goes_on[out->count++] = next;
            add_tests(out, LLVMGetCondition(last), ends_at_once(yes), DEEPEST);
        }
        if (!has_one_way_in(flow, next))
            return;
        at = next;
    }
}

void ir_guards_open(const ir_guards *guards, LLVMBuilderRef builder) {
    for (uint32_t g = 0; g < guards->count; g++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(guards->block[g]);
        LLVMPositionBuilderBefore(builder, last);
        LLVMBuildBr(builder, guards->goes_on[g]);
        LLVMInstructionEraseFromParent(last);
    }
}

static bool depends(const ir_flow *flow, const bool *is_seed, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(flow, value);
    if (insn == IR_NONE)
        return false;
    if (is_seed[insn] || depth == 0)
        return true;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (depends(flow, is_seed, LLVMGetOperand(value, (unsigned)k), depth - 1))
            return true;
    }
    return false;
}

bool ir_depends_on(const ir_flow *flow, const bool *is_seed, LLVMValueRef value) {
    enum { DEEPEST = 32 };
    return depends(flow, is_seed, value, DEEPEST);
}
