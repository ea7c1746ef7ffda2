/* Floating-point divisions that share a divisor, with reciprocals allowed. Where a block has
 * several, LLVM computes 1 / d once and multiplies, which changes the bits, so the direct emitter
 * has to do the same.
 *
 * The rules are those of combineRepeatedFPDivisors in DAGCombiner.cpp of LLVM 19, for a target
 * that applies the rule from two divisions on. LLVM visits the last division of a block first.
 * That division takes all divisions by the same divisor that have the flag arcp, and the products
 * get the flags of that division. A division 1 / d counts towards the two, but does not start a
 * group. Products that LLVM could transform further are refused. */
#include "ir/direct/direct_internal.h"

#include <string.h>

static bool is_number(LLVMValueRef value, double number) {
    LLVMBool lost;
    return LLVMIsAConstantFP(value) && LLVMConstRealGetDouble(value, &lost) == number;
}

bool direct_is_unit(LLVMValueRef value) {
    return is_number(value, 1.0) || is_number(value, -1.0);
}

/* The user as a division by `by`; NULL: it is none. */
static direct_value *division_by(const ir_direct *d, LLVMUseRef use, LLVMValueRef by) {
    direct_value *user = direct_value_of(d, LLVMGetUser(use));
    return user && user->opcode == LLVMFDiv && LLVMGetOperand(user->value, 1) == by ? user : NULL;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool is_sum(const direct_value *value) {
    return value->opcode == LLVMFAdd || value->opcode == LLVMFSub;
}

static bool has_constant(LLVMValueRef insn) {
    return LLVMIsConstant(LLVMGetOperand(insn, 0)) || LLVMIsConstant(LLVMGetOperand(insn, 1));
}

static bool is_reassociated(const ir_direct *d, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        const direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (user && is_sum(user) && direct_has_flag(user->value, LLVMFastMathAllowReassoc))
            return true;
    }
    return false;
}

/* Negations and sums of the product that LLVM takes apart further. */
static bool used_beyond(const ir_direct *d, const direct_value *division) {
    bool constant = LLVMIsConstant(LLVMGetOperand(division->value, 0));
    if (is_reassociated(d, division->value))
        return true;
    for (LLVMUseRef use = LLVMGetFirstUse(division->value); use; use = LLVMGetNextUse(use)) {
        const direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (!user || user->opcode == LLVMFCmp || user->opcode == LLVMStore)
            continue;
        bool twice =
            is_sum(user) && LLVMGetOperand(user->value, 0) == LLVMGetOperand(user->value, 1);
        bool reassociates = is_sum(user) && is_reassociated(d, user->value);
        if (constant || user->opcode == LLVMFNeg || twice || reassociates)
            return true;
    }
    return false;
}

/* Whether a dividend is more than a plain factor. */
static bool is_odd_dividend(const ir_direct *d, LLVMValueRef dividend) {
    LLVMBool lost;
    const direct_value *value = direct_value_of(d, dividend);
    if (LLVMIsAConstantFP(dividend)) {
        double number = LLVMConstRealGetDouble(dividend, &lost);
        return !__builtin_isnormal(number);
    }
    return LLVMIsConstant(dividend) ||
           (value && value->block != IR_NONE && is_sum(value) && has_constant(dividend));
}

/* The divisor: neither a product nor what becomes one, nor a root of the dividend. */
static bool is_odd_divisor(const ir_direct *d, const direct_value *division, LLVMValueRef by) {
    const direct_value *value = direct_value_of(d, by);
    if (value->block == IR_NONE)
        return false;
    return value->opcode == LLVMFMul || value->opcode == LLVMFDiv ||
           (value->opcode == LLVMCall &&
            LLVMGetOperand(by, 0) == LLVMGetOperand(division->value, 0));
}

/* Another division of the same two values, which LLVM may take for this one, or the same but for
 * where a PHI comes from. */
static bool is_repeated(const ir_direct *d, const direct_value *division) {
    LLVMValueRef dividend = LLVMGetOperand(division->value, 0);
    LLVMValueRef by = LLVMGetOperand(division->value, 1);
    const direct_value *value = direct_value_of(d, dividend);
    bool phi = value && value->block == division->block && value->opcode == LLVMPHI;
    for (LLVMUseRef use = LLVMGetFirstUse(by); use; use = LLVMGetNextUse(use)) {
        const direct_value *other = division_by(d, use, by);
        if (other && other != division &&
            (LLVMGetOperand(other->value, 0) == dividend ||
             (phi && other->block != division->block)))
            return true;
    }
    return false;
}

static bool is_beyond(const ir_direct *d, const direct_value *division) {
    LLVMValueRef dividend = LLVMGetOperand(division->value, 0);
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(division->value));
    if (kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind)
        return true;
    if (is_repeated(d, division) || is_odd_divisor(d, division, LLVMGetOperand(division->value, 1)))
        return true;
    return !is_number(dividend, 1.0) && (is_odd_dividend(d, dividend) || used_beyond(d, division));
}

/* ---- the group --------------------------------------------------------------------------------
 */

/* Counts the divisions in this one's block, itself included, that allow reciprocals. */
static unsigned count_allowed(ir_direct *d, const direct_value *division, LLVMValueRef by) {
    unsigned count = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(by); use; use = LLVMGetNextUse(use)) {
        const direct_value *other = division_by(d, use, by);
        if (!other || !direct_has_flag(other->value, LLVMFastMathAllowReciprocal))
            continue;
        if (LLVMGetOperand(other->value, 0) == by) /* two uses of one */
            direct_refuse(d, other->value, "a division of a value by itself");
        if (other != division && direct_unsettled(d, division, other))
            direct_refuse(d, division->value, "divisions that LLVM may bring together");
        count += other->block == division->block;
    }
    return count;
}

bool direct_share_divisor(ir_direct *d, direct_value *division) {
    LLVMValueRef by = LLVMGetOperand(division->value, 1);
    if (!direct_has_flag(division->value, LLVMFastMathAllowReciprocal) ||
        division->fuse != DIRECT_ALONE)
        return false;
    if (LLVMIsConstant(by)) {
        direct_refuse(d, division->value, "a division by a constant with reciprocals allowed");
        return false;
    }
    if (direct_is_unit(LLVMGetOperand(division->value, 0)) || count_allowed(d, division, by) < 2)
        return false;
    bool contract = direct_has_flag(division->value, LLVMFastMathAllowContract);
    for (LLVMUseRef use = LLVMGetFirstUse(by); use; use = LLVMGetNextUse(use)) {
        direct_value *other = division_by(d, use, by);
        if (!other || other->block != division->block ||
            !direct_has_flag(other->value, LLVMFastMathAllowReciprocal))
            continue;
        if (is_beyond(d, other))
            direct_refuse(d, other->value, "divisions by one divisor with reciprocals allowed");
        if (!is_number(LLVMGetOperand(other->value, 0), 1.0))
            other->fuse = contract ? DIRECT_RECIPROCAL_CONTRACT : DIRECT_RECIPROCAL;
    }
    return true;
}

/* ---- selection --------------------------------------------------------------------------------
 */

/* LLVM takes a difference's 1 / d for the sum with -1 / d, and looks for that through products. */
static bool keeps_sign(const ir_direct *d, const direct_value *division) {
    if (division->fuse != DIRECT_ALONE)
        return true; /* 1 / d has other uses */
    for (LLVMUseRef use = LLVMGetFirstUse(division->value); use; use = LLVMGetNextUse(use)) {
        const direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (user && user->opcode != LLVMStore && user->opcode != LLVMFCmp &&
            user->opcode != LLVMPHI &&
            (user->opcode != LLVMFAdd || direct_has_flag(user->value, LLVMFastMathNoSignedZeros)))
            return false;
    }
    return true;
}

/* Emits the reciprocal. The reciprocal of an approximate root in the same block is one instruction,
 * as in NVPTXIntrinsics.td. */
direct_operand direct_reciprocal(ir_direct *d, const direct_value *division, direct_operand by) {
    LLVMValueRef divisor = LLVMGetOperand(division->value, 1);
    const direct_value *value = direct_value_of(d, divisor);
    const char *op = by.cls == DIRECT_FD ? "rcp.rn.f64" : "rcp.rn.f32";
    const char *name = value && value->opcode == LLVMCall ? ir_call_name(divisor) : "";
    bool flushed = strcmp(name, "llvm.nvvm.sqrt.approx.ftz.f") == 0;
    if (!flushed && strcmp(name, "llvm.nvvm.sqrt.approx.f") != 0)
        return direct_pure1(d, op, by.cls, by);
    if (direct_unsettled(d, division, value))
        direct_refuse(d, division->value, "a root that LLVM may bring together with its division");
    if (!keeps_sign(d, division))
        direct_refuse(d, division->value, "what is done with the reciprocal of a root");
    if (value->block != division->block)
        return direct_pure1(d, op, by.cls, by);
    direct_operand of = direct_part(d, LLVMGetOperand(divisor, 0));
    return direct_pure1(d, flushed ? "rsqrt.approx.ftz.f32" : "rsqrt.approx.f32", by.cls, of);
}
