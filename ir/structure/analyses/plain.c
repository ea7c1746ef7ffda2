/* Plain: by recursion over what values are computed of. */
#include "ir/structure/analyses/plain_internal.h"

#include "ir/structure/analyses/vary_internal.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 16 };

/* ---- fields of structs ------------------------------------------------------------------------
 */

/* Early IR says of loads that nothing writes to what they read (prefix.c). */
static bool is_invariant(LLVMValueRef load) {
    static const char name[] = "invariant.load";
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(load));
    return LLVMGetMetadata(load, LLVMGetMDKindIDInContext(context, name, sizeof name - 1)) != NULL;
}

bool ir_is_field(LLVMValueRef value) {
    LLVMValueRef from = LLVMIsALoadInst(value) ? LLVMGetOperand(value, 0) : NULL;
    while (from && (LLVMIsAGetElementPtrInst(from) || LLVMIsAAddrSpaceCastInst(from))) {
        for (int k = 1; k < LLVMGetNumOperands(from); k++) {
            if (!LLVMIsAConstantInt(LLVMGetOperand(from, (unsigned)k)))
                return false;
        }
        from = LLVMGetOperand(from, 0);
    }
    return from && ir_param_has(from, "byval") && is_invariant(value);
}

/* ---- what a value is computed by --------------------------------------------------------------
 */

static bool has_part(LLVMValueRef value, bool (*is)(LLVMValueRef insn), unsigned depth) {
    if (!LLVMIsAInstruction(value) || LLVMIsAPHINode(value) || depth == 0)
        return false;
    bool any = is(value);
    for (int k = 0; !any && k < LLVMGetNumOperands(value); k++)
        any = has_part(LLVMGetOperand(value, (unsigned)k), is, depth - 1);
    return any;
}

bool ir_has_part(LLVMValueRef value, bool (*is)(LLVMValueRef insn)) {
    return has_part(value, is, DEEPEST);
}

uint64_t ir_multiplier(LLVMValueRef value) {
    enum { MOST_SHIFT = 32 };
    const uint64_t most = UINT64_C(1) << MOST_SHIFT;
    LLVMOpcode op = LLVMIsABinaryOperator(value) ? LLVMGetInstructionOpcode(value) : LLVMRet;
    LLVMValueRef by = op == LLVMShl || op == LLVMMul ? LLVMGetOperand(value, 1) : NULL;
    if (!by || !LLVMIsAConstantInt(by))
        return 1;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(by)) > 64)
        return most;
    int64_t number = LLVMConstIntGetSExtValue(by);
    if (op == LLVMShl)
        return number < 0 || number > MOST_SHIFT ? most : UINT64_C(1) << number;
    return number == INT64_MIN || (uint64_t)llabs(number) > most ? most : (uint64_t)llabs(number);
}

/* ---- plain numbers ----------------------------------------------------------------------------
 */

static bool is_plain(const ir_flow *flow, LLVMValueRef value, ir_counters counters, unsigned depth);
static bool is_plain_call(const ir_flow *flow, LLVMValueRef call, ir_counters counters,
                          unsigned depth);
static bool is_plain_counter(const ir_flow *flow, LLVMValueRef phi, unsigned depth);

/* What of counters a quotient or the less of two may have in it. */
static ir_counters inner(ir_counters counters) {
    return counters == IR_COUNTERS_ALL ? IR_COUNTERS_ALL : IR_COUNTERS_NONE;
}

bool ir_orders_two(LLVMValueRef call) {
    static const char *const names[] = {"llvm.smin.", "llvm.umin.", "llvm.smax.", "llvm.umax."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(ir_call_name(call), names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static bool divides_by_little(LLVMValueRef value) {
    enum { LITTLE = 64 };
    LLVMValueRef by = LLVMGetOperand(value, 1);
    return LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) <= LITTLE;
}

/* To a multiple of a small power of two, of a number whose highest bit may be known to be 0. */
static bool rounds_down(LLVMValueRef value) {
    enum { LITTLE = 64 };
    LLVMValueRef mask = LLVMGetOperand(value, 1);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    if (!LLVMIsAConstantInt(mask) || width < 2 || width > 64)
        return false;
    uint64_t low = ~LLVMConstIntGetZExtValue(mask) & ((UINT64_C(1) << (width - 1)) - 1);
    return low < LITTLE && (low & (low + 1)) == 0;
}

/* Whether a choice is made by which of two plain numbers is less, as the least of two is. */
static bool is_by_order(const ir_flow *flow, LLVMValueRef choice, ir_counters counters,
                        unsigned depth) {
    LLVMValueRef test = LLVMGetOperand(choice, 0);
    LLVMIntPredicate p = LLVMIsAICmpInst(test) ? LLVMGetICmpPredicate(test) : LLVMIntEQ;
    return p != LLVMIntEQ && p != LLVMIntNE &&
           is_plain(flow, LLVMGetOperand(test, 0), counters, depth) &&
           is_plain(flow, LLVMGetOperand(test, 1), counters, depth);
}

static bool is_plain(const ir_flow *flow, LLVMValueRef value, ir_counters counters,
                     unsigned depth) {
    if (LLVMIsAConstantInt(value) || LLVMIsAArgument(value) || ir_is_field(value))
        return true;
    if (depth == 0 || ir_flow_insn(flow, value) == IR_NONE)
        return false;
    if (LLVMIsACallInst(value))
        return is_plain_call(flow, value, inner(counters), depth - 1);
    if (LLVMIsASelectInst(value))
        return is_by_order(flow, value, inner(counters), depth - 1) &&
               is_plain(flow, LLVMGetOperand(value, 1), inner(counters), depth - 1) &&
               is_plain(flow, LLVMGetOperand(value, 2), inner(counters), depth - 1);
    if (LLVMIsAPHINode(value) && LLVMCountIncoming(value) == 1) /* behind a loop */
        return is_plain(flow, LLVMGetIncomingValue(value, 0), counters, depth - 1);
    if (LLVMIsAPHINode(value))
        return counters != IR_COUNTERS_NONE && is_plain_counter(flow, value, depth - 1);
    bool divides = false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
        break;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        if (!divides_by_little(value))
            return false;
        divides = true;
        break;
    case LLVMOr:
        if (!LLVMGetIsDisjoint(value))
            return false;
        break;
    case LLVMAnd:
        if (!rounds_down(value))
            return false;
        divides = true;
        break;
    default:
        return false;
    }
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!is_plain(flow, LLVMGetOperand(value, (unsigned)k),
                      divides ? inner(counters) : counters, depth - 1))
            return false;
    }
    return true;
}

/* A special register, or the less or greater of two numbers. */
static bool is_plain_call(const ir_flow *flow, LLVMValueRef call, ir_counters counters,
                          unsigned depth) {
    if (!ir_orders_two(call))
        return ir_reads_any_register(call) && ir_deed_of(call) == IR_DEED_PURE;
    return is_plain(flow, LLVMGetOperand(call, 0), counters, depth) &&
           is_plain(flow, LLVMGetOperand(call, 1), counters, depth);
}

/* The counter of a loop that runs from a plain number to another one. */
static bool is_plain_counter(const ir_flow *flow, LLVMValueRef phi, unsigned depth) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *loop = &flow->loops[l];
        if (loop->induction == phi)
            return is_plain(flow, loop->start, IR_COUNTERS_ALL, depth) &&
                   is_plain(flow, loop->bound, IR_COUNTERS_ALL, depth);
    }
    return false;
}

bool ir_is_plain(const ir_flow *flow, LLVMValueRef value, ir_counters counters) {
    return is_plain(flow, value, counters, DEEPEST);
}

/* ---- what cases tell --------------------------------------------------------------------------
 */

/* Whether a value is computed of the thread's place in its block and numbers alone. */
static bool is_of_thread(LLVMValueRef value, unsigned depth) {
    if (LLVMIsAConstantInt(value) || ir_reads_place(value))
        return true;
    if (depth == 0 || !LLVMIsAInstruction(value) || LLVMIsAPHINode(value) ||
        LLVMIsACallInst(value) || ir_deed_of(value) != IR_DEED_PURE)
        return false;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!is_of_thread(LLVMGetOperand(value, (unsigned)k), depth - 1))
            return false;
    }
    return true;
}

/* Whether a comparison is with a number that the small cases do not come to: no block has the
 * number 12,000 there. */
static bool is_beside_much(LLVMValueRef compare) {
    enum { LITTLE = 64 };
    for (unsigned k = 0; k < 2; k++) {
        LLVMValueRef number = LLVMGetOperand(compare, k), other = LLVMGetOperand(compare, 1 - k);
        if (LLVMIsAConstantInt(number) && LLVMGetIntTypeWidth(LLVMTypeOf(number)) > 1 &&
            LLVMGetIntTypeWidth(LLVMTypeOf(number)) <= 64 &&
            llabs(LLVMConstIntGetSExtValue(number)) > LITTLE && !is_of_thread(other, DEEPEST))
            return true;
    }
    return false;
}

static bool is_told(const ir_flow *flow, LLVMValueRef value, bool in_order, unsigned depth);

static bool are_operands_told(const ir_flow *flow, LLVMValueRef value, bool in_order,
                              unsigned depth) {
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!is_told(flow, LLVMGetOperand(value, (unsigned)k), in_order, depth))
            return false;
    }
    return true;
}

static bool is_told(const ir_flow *flow, LLVMValueRef value, bool in_order, unsigned depth) {
    if (LLVMIsAConstantInt(value))
        return true;
    if (in_order && ir_is_plain(flow, value, IR_COUNTERS_ALL))
        return true;
    if (depth == 0 || !LLVMIsAInstruction(value) || ir_deed_of(value) != IR_DEED_PURE)
        return false;
    if (ir_orders_two(value))
        return is_told(flow, LLVMGetOperand(value, 0), in_order, depth - 1) &&
               is_told(flow, LLVMGetOperand(value, 1), in_order, depth - 1);
    if (LLVMIsACallInst(value) || LLVMIsAPHINode(value))
        return ir_is_plain(flow, value, IR_COUNTERS_ALL);
    LLVMIntPredicate p = LLVMIsAICmpInst(value) ? LLVMGetICmpPredicate(value) : LLVMIntEQ;
    if (LLVMIsAICmpInst(value) && is_beside_much(value))
        return false;
    if (LLVMIsAICmpInst(value))
        return are_operands_told(flow, value, p != LLVMIntEQ && p != LLVMIntNE, depth - 1);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMSDiv:
    case LLVMUDiv:
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMSelect:
        return are_operands_told(flow, value, in_order, depth - 1);
    case LLVMURem:
    case LLVMSRem:
        return is_told(flow, LLVMGetOperand(value, 0), false, depth - 1) &&
               is_told(flow, LLVMGetOperand(value, 1), in_order, depth - 1);
    default:
        return are_operands_told(flow, value, false, depth - 1);
    }
}

bool ir_is_told(const ir_flow *flow, LLVMValueRef value, bool in_order) {
    return is_told(flow, value, in_order, DEEPEST);
}
