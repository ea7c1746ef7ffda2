/* Arithmetic of the direct emitter: integers, comparisons, selections and conversions.
 *
 * One table a group of operations gives the PTX instruction by register class (predicate, 16, 32,
 * 64 bits). PTX has no registers of 1 or 8 bits for arithmetic: a narrow integer is kept in a
 * wider register, and `direct_extended` sets the bits above its width before an operation that
 * reads them. A shift amount is 32 bits wide in PTX whatever the type of the value (PTX ISA, shl
 * and shr). Comparisons are indexed by LLVM's predicate numbers. */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* One name for each class of integer registers, from the predicates on. */
typedef const char *const names[4];

static names adds = {"xor.pred", "add.s16", "add.s32", "add.s64"};
static names subs = {"xor.pred", "sub.s16", "sub.s32", "sub.s64"};
static names muls = {"and.pred", "mul.lo.s16", "mul.lo.s32", "mul.lo.s64"};
static names ands = {"and.pred", "and.b16", "and.b32", "and.b64"};
static names ors = {"or.pred", "or.b16", "or.b32", "or.b64"};
static names xors = {"xor.pred", "xor.b16", "xor.b32", "xor.b64"};
static names nots = {"not.pred", "not.b16", "not.b32", "not.b64"};
static names shls = {NULL, "shl.b16", "shl.b32", "shl.b64"};
static names lshrs = {NULL, "shr.u16", "shr.u32", "shr.u64"};
static names ashrs = {NULL, "shr.s16", "shr.s32", "shr.s64"};
static names mads = {NULL, NULL, "mad.lo.s32", "mad.lo.s64"};

static bool is_int(direct_operand a, int64_t value) {
    return a.kind == DIRECT_INT && a.imm == value;
}

static direct_operand sized(direct_operand a, unsigned bits) {
    a.bits = (uint8_t)bits;
    return a;
}

/* ---- integers ---------------------------------------------------------------------------------
 */

static int exponent_of(int64_t value, unsigned bits) {
    uint64_t u = bits < 64 ? (uint64_t)value & (((uint64_t)1 << bits) - 1) : (uint64_t)value;
    return u && !(u & (u - 1)) ? __builtin_ctzll(u) : -1;
}

/* Shift amounts have 32 bits in PTX, for every type. */
static direct_operand shift_amount(ir_direct *d, direct_operand by) {
    if (by.kind != DIRECT_REG)
        return direct_int(DIRECT_R, 0, by.kind == DIRECT_INT ? by.imm : 0);
    by = direct_extended(d, by, false);
    if (by.cls == DIRECT_R)
        return by;
    return direct_pure1(d, by.cls == DIRECT_RD ? "cvt.u32.u64" : "cvt.u32.u16", DIRECT_R, by);
}

static direct_operand shift(ir_direct *d, const char *op, direct_operand a, direct_operand by) {
    return direct_pure2(d, op, a.cls, a, shift_amount(d, by));
}

static bool fold(LLVMOpcode opcode, int64_t a, int64_t b, int64_t *out) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (opcode) {
    case LLVMAdd:
        *out = (int64_t)(x + y);
        return true;
    case LLVMSub:
        *out = (int64_t)(x - y);
        return true;
    case LLVMMul:
        *out = (int64_t)(x * y);
        return true;
    case LLVMAnd:
        *out = a & b;
        return true;
    case LLVMOr:
        *out = a | b;
        return true;
    case LLVMXor:
        *out = a ^ b;
        return true;
    default:
        return false;
    }
}

static direct_operand simple(ir_direct *d, LLVMOpcode opcode, direct_operand a, direct_operand b) {
    switch (opcode) {
    case LLVMAdd:
        return is_int(b, 0) ? a : direct_pure2(d, adds[a.cls], a.cls, a, b);
    case LLVMSub:
        if (b.kind == DIRECT_INT && a.cls != DIRECT_P && b.imm != INT64_MIN)
            return simple(d, LLVMAdd, a, direct_int(a.cls, a.bits, -b.imm));
        return direct_pure2(d, subs[a.cls], a.cls, a, b);
    case LLVMAnd:
        return direct_pure2(d, ands[a.cls], a.cls, a, b);
    case LLVMOr:
        return direct_pure2(d, ors[a.cls], a.cls, a, b);
    default:
        if (is_int(b, -1))
            return direct_pure1(d, nots[a.cls], a.cls, a);
        return direct_pure2(d, xors[a.cls], a.cls, a, b);
    }
}

static direct_operand multiply(ir_direct *d, direct_operand a, direct_operand b) {
    int power = b.kind == DIRECT_INT ? exponent_of(b.imm, b.bits) : -1;
    if (power == 0)
        return a;
    if (power > 0 && a.cls != DIRECT_P)
        return direct_pure2(d, shls[a.cls], a.cls, a, direct_int(DIRECT_R, 0, power));
    return direct_pure2(d, muls[a.cls], a.cls, a, b);
}

static direct_operand integer(ir_direct *d, LLVMValueRef insn, LLVMOpcode opcode, direct_operand a,
                              direct_operand b) {
    int64_t folded;
    if (a.kind == DIRECT_INT && b.kind == DIRECT_INT && fold(opcode, a.imm, b.imm, &folded))
        return direct_int(a.cls, a.bits, folded);
    bool commutes = opcode == LLVMAdd || opcode == LLVMMul || opcode == LLVMAnd ||
                    opcode == LLVMOr || opcode == LLVMXor;
    if (commutes && a.kind == DIRECT_INT)
        return integer(d, insn, opcode, b, a);
    if (a.cls == DIRECT_P &&
        (opcode == LLVMShl || opcode == LLVMLShr || opcode == LLVMAShr || opcode == LLVMUDiv ||
         opcode == LLVMSDiv || opcode == LLVMURem || opcode == LLVMSRem)) {
        direct_refuse(d, insn, "arithmetic of single bits");
        return a;
    }
    switch (opcode) {
    case LLVMMul:
        return multiply(d, a, b);
    case LLVMShl:
        return shift(d, shls[a.cls], a, b);
    case LLVMLShr:
        return shift(d, lshrs[a.cls], direct_extended(d, a, false), b);
    case LLVMAShr:
        return shift(d, ashrs[a.cls], direct_extended(d, a, true), b);
    case LLVMUDiv:
    case LLVMURem:
        return direct_divide(d, opcode, direct_extended(d, a, false), direct_extended(d, b, false));
    case LLVMSDiv:
    case LLVMSRem:
        return direct_divide(d, opcode, direct_extended(d, a, true), direct_extended(d, b, true));
    default:
        return simple(d, opcode, a, b);
    }
}

direct_operand direct_integer(ir_direct *d, LLVMValueRef insn, LLVMOpcode opcode, direct_operand a,
                              direct_operand b) {
    return sized(integer(d, insn, opcode, a, b), a.bits);
}

/* The 32-bit source of a 64-bit value that is an extension. */
static bool is_extended(ir_direct *d, LLVMValueRef value, bool is_signed, direct_operand *out) {
    direct_value *known = direct_value_of(d, value);
    if (!known || known->opcode != (is_signed ? LLVMSExt : LLVMZExt))
        return false;
    LLVMValueRef from = LLVMGetOperand(value, 0);
    if (LLVMGetTypeKind(LLVMTypeOf(from)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(from)) != 32)
        return false;
    *out = direct_part(d, from);
    return true;
}

/* 64-bit products of 32-bit numbers. */
static bool select_wide(ir_direct *d, LLVMValueRef insn, LLVMOpcode opcode, direct_operand *out) {
    LLVMTypeRef type = LLVMTypeOf(insn);
    if ((opcode != LLVMMul && opcode != LLVMShl) || LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(type) != 64)
        return false;
    LLVMValueRef left = LLVMGetOperand(insn, 0), right = LLVMGetOperand(insn, 1);
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        direct_operand a, b;
        if (!is_extended(d, left, is_signed, &a))
            continue;
        if (LLVMIsAConstantInt(right)) {
            int64_t by = LLVMConstIntGetSExtValue(right);
            if (opcode == LLVMShl)
                by = by < 31 ? (int64_t)1 << by : -1;
            if (by < 0 || by > INT32_MAX)
                continue;
            b = direct_int(DIRECT_R, 0, by);
        } else if (opcode == LLVMShl || !is_extended(d, right, is_signed, &b)) {
            continue;
        }
        *out = direct_pure2(d, is_signed ? "mul.wide.s32" : "mul.wide.u32", DIRECT_RD, a, b);
        return true;
    }
    return false;
}

static bool is_single_product(ir_direct *d, LLVMValueRef value) {
    direct_value *known = direct_value_of(d, value);
    if (!known || known->opcode != LLVMMul || known->block != d->block)
        return false;
    LLVMUseRef use = LLVMGetFirstUse(value);
    if (!use || LLVMGetNextUse(use))
        return false;
    LLVMValueRef by = LLVMGetOperand(value, 1);
    return !LLVMIsAConstantInt(by) || exponent_of(LLVMConstIntGetSExtValue(by), 64) < 0;
}

/* Only 32 bits wide: a 64-bit product may be one of 32-bit numbers. */
static bool select_mad(ir_direct *d, LLVMValueRef insn, LLVMOpcode opcode, direct_operand *out) {
    direct_leaf leaf;
    if (opcode != LLVMAdd || !direct_leaf_of(LLVMTypeOf(insn), &leaf) || leaf.cls != DIRECT_R)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef product = LLVMGetOperand(insn, i);
        if (!is_single_product(d, product))
            continue;
        *out = direct_pure3(d, mads[leaf.cls], leaf.cls, direct_part(d, LLVMGetOperand(product, 0)),
                            direct_part(d, LLVMGetOperand(product, 1)),
                            direct_part(d, LLVMGetOperand(insn, 1 - i)));
        return true;
    }
    return false;
}

void direct_select_binary(ir_direct *d, LLVMValueRef insn) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(insn);
    direct_operand result[DIRECT_LEAVES], left[DIRECT_LEAVES], right[DIRECT_LEAVES];
    if (select_wide(d, insn, opcode, result) || select_mad(d, insn, opcode, result)) {
        direct_leaf leaf;
        direct_leaf_of(LLVMTypeOf(insn), &leaf);
        result[0].bits = leaf.bits;
        direct_define(d, insn, result, 1);
        return;
    }
    unsigned count, other;
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 0), left, &count);
    const direct_operand *b = direct_parts(d, LLVMGetOperand(insn, 1), right, &other);
    for (unsigned i = 0; i < count; i++)
        result[i] = direct_integer(d, insn, opcode, a[i], b[i]);
    direct_define(d, insn, result, count);
}

/* ---- comparisons ------------------------------------------------------------------------------
 */

/* Indexed by LLVM's predicate from equal on, then by class. */
static const char *const int_compares[10][3] = {
    {"setp.eq.s16", "setp.eq.s32", "setp.eq.s64"}, {"setp.ne.s16", "setp.ne.s32", "setp.ne.s64"},
    {"setp.gt.u16", "setp.gt.u32", "setp.gt.u64"}, {"setp.ge.u16", "setp.ge.u32", "setp.ge.u64"},
    {"setp.lt.u16", "setp.lt.u32", "setp.lt.u64"}, {"setp.le.u16", "setp.le.u32", "setp.le.u64"},
    {"setp.gt.s16", "setp.gt.s32", "setp.gt.s64"}, {"setp.ge.s16", "setp.ge.s32", "setp.ge.s64"},
    {"setp.lt.s16", "setp.lt.s32", "setp.lt.s64"}, {"setp.le.s16", "setp.le.s32", "setp.le.s64"}};

/* Comparison of single bits: unsigned, 1 is the larger; signed, 1 is -1 and the smaller. */
static direct_operand compare_bits(ir_direct *d, LLVMIntPredicate predicate, direct_operand a,
                                   direct_operand b) {
    direct_operand swap;
    switch (predicate) {
    case LLVMIntEQ:
        return direct_pure1(d, "not.pred", DIRECT_P, direct_integer(d, NULL, LLVMXor, a, b));
    case LLVMIntNE:
        return direct_integer(d, NULL, LLVMXor, a, b);
    case LLVMIntULT:
    case LLVMIntSGT:
    case LLVMIntULE:
    case LLVMIntSGE:
        swap = a, a = b, b = swap;
        break;
    default:
        break;
    }
    /* now: a is 1 and b is 0, or for the inclusive ones a is 1 or b is 0 */
    direct_operand other = direct_pure1(d, "not.pred", DIRECT_P, b);
    bool strict = predicate == LLVMIntUGT || predicate == LLVMIntULT || predicate == LLVMIntSGT ||
                  predicate == LLVMIntSLT;
    return direct_pure2(d, strict ? "and.pred" : "or.pred", DIRECT_P, a, other);
}

static direct_operand compare_integers(ir_direct *d, LLVMIntPredicate predicate, direct_operand a,
                                       direct_operand b) {
    if (a.cls == DIRECT_P)
        return compare_bits(d, predicate, a, b);
    bool is_signed = predicate >= LLVMIntSGT;
    a = direct_extended(d, a, is_signed);
    b = direct_extended(d, b, is_signed);
    return direct_pure2(d, int_compares[predicate - LLVMIntEQ][a.cls - DIRECT_RS], DIRECT_P, a, b);
}

static void meet_spaces(ir_direct *d, direct_operand *a, direct_operand *b) {
    if (a->space == b->space)
        return;
    *a = direct_to_space(d, *a, 0);
    *b = direct_to_space(d, *b, 0);
}

/* Indexed by LLVM's predicate from "ordered and equal" on. */
static const char *const real_compares[14][2] = {
    {"setp.eq.f32", "setp.eq.f64"},   {"setp.gt.f32", "setp.gt.f64"},
    {"setp.ge.f32", "setp.ge.f64"},   {"setp.lt.f32", "setp.lt.f64"},
    {"setp.le.f32", "setp.le.f64"},   {"setp.ne.f32", "setp.ne.f64"},
    {"setp.num.f32", "setp.num.f64"}, {"setp.nan.f32", "setp.nan.f64"},
    {"setp.equ.f32", "setp.equ.f64"}, {"setp.gtu.f32", "setp.gtu.f64"},
    {"setp.geu.f32", "setp.geu.f64"}, {"setp.ltu.f32", "setp.ltu.f64"},
    {"setp.leu.f32", "setp.leu.f64"}, {"setp.neu.f32", "setp.neu.f64"}};

static direct_operand compare_reals(ir_direct *d, LLVMValueRef insn, direct_operand a,
                                    direct_operand b) {
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(insn);
    if (predicate == LLVMRealPredicateFalse || predicate == LLVMRealPredicateTrue)
        return direct_int(DIRECT_P, 1, predicate == LLVMRealPredicateTrue ? -1 : 0);
    if (a.cls != DIRECT_F && a.cls != DIRECT_FD) {
        direct_refuse(d, insn, "comparing half precision");
        return a;
    }
    return direct_pure2(d, real_compares[predicate - LLVMRealOEQ][a.cls - DIRECT_F], DIRECT_P, a,
                        b);
}

void direct_select_compare(ir_direct *d, LLVMValueRef insn) {
    bool real = LLVMGetInstructionOpcode(insn) == LLVMFCmp;
    direct_operand result[DIRECT_LEAVES], left[DIRECT_LEAVES], right[DIRECT_LEAVES];
    unsigned count, other;
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 0), left, &count);
    const direct_operand *b = direct_parts(d, LLVMGetOperand(insn, 1), right, &other);
    for (unsigned i = 0; i < count; i++) {
        direct_operand x = a[i], y = b[i];
        meet_spaces(d, &x, &y);
        result[i] = real ? compare_reals(d, insn, x, y)
                         : compare_integers(d, LLVMGetICmpPredicate(insn), x, y);
    }
    direct_define(d, insn, result, count);
}

/* ---- selections -------------------------------------------------------------------------------
 */

static direct_operand select_bit(ir_direct *d, direct_operand c, direct_operand a,
                                 direct_operand b) {
    if (is_int(b, 0))
        return is_int(a, -1) ? c : direct_pure2(d, "and.pred", DIRECT_P, c, a);
    if (is_int(a, -1))
        return direct_pure2(d, "or.pred", DIRECT_P, c, b);
    direct_operand yes = direct_pure2(d, "and.pred", DIRECT_P, c, a);
    direct_operand not_c = direct_pure1(d, "not.pred", DIRECT_P, c);
    return direct_pure2(d, "or.pred", DIRECT_P, yes,
                        direct_pure2(d, "and.pred", DIRECT_P, not_c, b));
}

static direct_operand select_scalar(ir_direct *d, direct_operand c, direct_operand a,
                                    direct_operand b) {
    static const char *const ops[] = {NULL,       "selp.b16", "selp.b32",
                                      "selp.b64", "selp.f32", "selp.f64"};
    if (c.kind != DIRECT_REG)
        return c.kind == DIRECT_INT && c.imm == 0 ? b : a;
    if (a.cls == DIRECT_P)
        return select_bit(d, c, a, b);
    if (a.kind == DIRECT_UNDEF || memcmp(&a, &b, sizeof a) == 0)
        return b;
    return b.kind == DIRECT_UNDEF ? a : direct_pure3(d, ops[a.cls], a.cls, a, b, c);
}

void direct_select_select(ir_direct *d, LLVMValueRef insn) {
    direct_operand result[DIRECT_LEAVES], conditions[DIRECT_LEAVES], left[DIRECT_LEAVES],
        right[DIRECT_LEAVES];
    unsigned count, n;
    const direct_operand *c = direct_parts(d, LLVMGetOperand(insn, 0), conditions, &n);
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 1), left, &count);
    const direct_operand *b = direct_parts(d, LLVMGetOperand(insn, 2), right, &count);
    uint8_t space = direct_value_of(d, insn)->space;
    bool is_pointer = LLVMGetTypeKind(LLVMTypeOf(insn)) == LLVMPointerTypeKind;
    for (unsigned i = 0; i < count; i++) {
        direct_operand x = is_pointer ? direct_to_space(d, a[i], space) : a[i];
        direct_operand y = is_pointer ? direct_to_space(d, b[i], space) : b[i];
        result[i] = sized(select_scalar(d, c[n == 1 ? 0 : i], x, y), a[i].bits);
        result[i].space = x.space;
    }
    direct_define(d, insn, result, count);
}

/* ---- conversions ------------------------------------------------------------------------------
 */

static direct_operand truncate_to(ir_direct *d, direct_operand a, const direct_leaf *to) {
    if (a.kind == DIRECT_INT || a.kind == DIRECT_UNDEF) {
        direct_operand folded = direct_int(to->cls, to->bits, a.imm);
        folded.kind = a.kind;
        return folded;
    }
    if (to->cls == a.cls)
        return a;
    if (to->cls == DIRECT_P) {
        static names tests = {NULL, "setp.ne.s16", "setp.ne.s32", "setp.ne.s64"};
        direct_operand bit = direct_pure2(d, ands[a.cls], a.cls, a, direct_int(a.cls, 0, 1));
        return direct_pure2(d, tests[a.cls], DIRECT_P, bit, direct_int(a.cls, 0, 0));
    }
    const char *op = "cvt.u16.u64";
    if (a.cls == DIRECT_R)
        op = "cvt.u16.u32";
    else if (to->cls == DIRECT_R)
        op = "cvt.u32.u64";
    return direct_pure1(d, op, to->cls, a);
}

static direct_operand extend_to(ir_direct *d, direct_operand a, const direct_leaf *to,
                                bool is_signed) {
    if (a.kind == DIRECT_INT || a.kind == DIRECT_UNDEF) {
        uint64_t mask = a.bits < 64 ? ((uint64_t)1 << a.bits) - 1 : UINT64_MAX;
        return direct_int(to->cls, to->bits, is_signed ? a.imm : (int64_t)((uint64_t)a.imm & mask));
    }
    if (a.cls == DIRECT_P) {
        static names picks = {NULL, "selp.b16", "selp.b32", "selp.b64"};
        return direct_pure3(d, picks[to->cls], to->cls, direct_int(to->cls, 0, is_signed ? -1 : 1),
                            direct_int(to->cls, 0, 0), a);
    }
    static const char *const ops[2][2][2] = {
        {{"cvt.u32.u16", "cvt.u64.u16"}, {"cvt.u32.u8", "cvt.u64.u8"}},
        {{"cvt.s32.s16", "cvt.s64.s16"}, {"cvt.s32.s8", "cvt.s64.s8"}}};
    bool byte = a.bits == 8;
    if (a.cls == to->cls || !byte)
        a = direct_extended(d, a, is_signed);
    if (a.cls == to->cls)
        return a;
    if (a.cls == DIRECT_R)
        return direct_pure1(d, is_signed ? "cvt.s64.s32" : "cvt.u64.u32", DIRECT_RD, a);
    return direct_pure1(d, ops[is_signed][byte][to->cls - DIRECT_R], to->cls, a);
}

static direct_operand from_real(ir_direct *d, LLVMValueRef insn, direct_operand a,
                                const direct_leaf *to, bool is_signed) {
    static const char *const ops[2][2][3] = {
        {{"cvt.rzi.u16.f32", "cvt.rzi.u32.f32", "cvt.rzi.u64.f32"},
         {"cvt.rzi.u16.f64", "cvt.rzi.u32.f64", "cvt.rzi.u64.f64"}},
        {{"cvt.rzi.s16.f32", "cvt.rzi.s32.f32", "cvt.rzi.s64.f32"},
         {"cvt.rzi.s16.f64", "cvt.rzi.s32.f64", "cvt.rzi.s64.f64"}}};
    if ((a.cls != DIRECT_F && a.cls != DIRECT_FD) || to->cls == DIRECT_P) {
        direct_refuse(d, insn, "this conversion");
        return a;
    }
    return direct_pure1(d, ops[is_signed][a.cls - DIRECT_F][to->cls - DIRECT_RS], to->cls, a);
}

static direct_operand to_real(ir_direct *d, LLVMValueRef insn, direct_operand a,
                              const direct_leaf *to, bool is_signed) {
    static const char *const ops[2][2][3] = {
        {{"cvt.rn.f32.u16", "cvt.rn.f32.u32", "cvt.rn.f32.u64"},
         {"cvt.rn.f64.u16", "cvt.rn.f64.u32", "cvt.rn.f64.u64"}},
        {{"cvt.rn.f32.s16", "cvt.rn.f32.s32", "cvt.rn.f32.s64"},
         {"cvt.rn.f64.s16", "cvt.rn.f64.s32", "cvt.rn.f64.s64"}}};
    if (to->cls != DIRECT_F && to->cls != DIRECT_FD) {
        direct_refuse(d, insn, "this conversion");
        return a;
    }
    if (a.cls == DIRECT_P)
        a = extend_to(d, a, &(direct_leaf){.cls = DIRECT_R, .bits = 32}, is_signed);
    a = direct_extended(d, a, is_signed);
    return direct_pure1(d, ops[is_signed][to->cls - DIRECT_F][a.cls - DIRECT_RS], to->cls, a);
}

static direct_operand between_reals(ir_direct *d, LLVMValueRef insn, direct_operand a,
                                    const direct_leaf *to) {
    const char *op = NULL;
    if (a.cls == DIRECT_FD)
        op = to->cls == DIRECT_F ? "cvt.rn.f32.f64" : "cvt.rn.f16.f64";
    else if (a.cls == DIRECT_F)
        op = to->cls == DIRECT_FD ? "cvt.f64.f32" : "cvt.rn.f16.f32";
    else
        op = to->cls == DIRECT_FD ? "cvt.f64.f16" : "cvt.f32.f16";
    (void)insn;
    return direct_pure1(d, op, to->cls, a);
}

static direct_operand convert(ir_direct *d, LLVMValueRef insn, direct_operand a,
                              const direct_leaf *to) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMTrunc:
        return truncate_to(d, a, to);
    case LLVMZExt:
        return extend_to(d, a, to, false);
    case LLVMSExt:
        return extend_to(d, a, to, true);
    case LLVMFPToUI:
        return from_real(d, insn, a, to, false);
    case LLVMFPToSI:
        return from_real(d, insn, a, to, true);
    case LLVMUIToFP:
        return to_real(d, insn, a, to, false);
    case LLVMSIToFP:
        return to_real(d, insn, a, to, true);
    case LLVMFPTrunc:
    case LLVMFPExt:
        return between_reals(d, insn, a, to);
    case LLVMPtrToInt:
        a = direct_register_of(d, direct_to_space(d, a, 0));
        a.space = 0;
        return truncate_to(d, a, to);
    case LLVMIntToPtr:
        a = extend_to(d, a, to, false);
        a.space = to->space;
        return a;
    default:
        direct_refuse(d, insn, "this conversion");
        return a;
    }
}

/* ---- the same bits as another type ------------------------------------------------------------
 */

static const char *const bit_moves[] = {NULL,      "mov.b16", "mov.b32",
                                        "mov.b64", "mov.b32", "mov.b64"};

static direct_operand recast(ir_direct *d, direct_operand a, const direct_leaf *to) {
    if (a.cls == to->cls || a.kind != DIRECT_REG) {
        a.cls = (uint8_t)to->cls;
        a.bits = to->bits;
        return a;
    }
    return direct_pure1(d, bit_moves[to->cls], to->cls, a);
}

/* One of many: `ratio` neighbours joined, the first lowest. */
static direct_operand join(ir_direct *d, const direct_operand *a, unsigned ratio,
                           const direct_leaf *to) {
    direct_operand result = direct_new(d, to->cls, to->bits), sources[DIRECT_LEAVES];
    for (unsigned i = 0; i < ratio; i++)
        sources[i] = direct_register_of(d, a[i]);
    direct_insn_add(d, bit_moves[to->cls], DIRECT_PACK, false, 1, &result, ratio, sources);
    return result;
}

static void split(ir_direct *d, direct_operand a, unsigned ratio, const direct_leaf *to,
                  direct_operand *results) {
    direct_operand source = direct_register_of(d, a);
    for (unsigned i = 0; i < ratio; i++)
        results[i] = direct_new(d, to->cls, to->bits);
    direct_insn_add(d, bit_moves[a.cls], DIRECT_PLAIN, false, ratio, results, 1, &source);
}

static void select_bitcast(ir_direct *d, LLVMValueRef insn) {
    direct_operand result[DIRECT_LEAVES], room[DIRECT_LEAVES];
    direct_leaf leaves[DIRECT_LEAVES];
    unsigned count, wanted = direct_leaves(LLVMTypeOf(insn), leaves);
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 0), room, &count);
    unsigned narrowest = wanted > count ? leaves[0].bits : a[0].bits;
    if (wanted == 0 || count == 0 || (wanted != count && narrowest < 16) ||
        (wanted > count ? wanted % count : count % wanted) != 0 ||
        leaves[0].bits * wanted != a[0].bits * count || a[0].cls == DIRECT_P) {
        direct_refuse(d, insn, "a bitcast");
        return;
    }
    for (unsigned i = 0; wanted == count && i < count; i++)
        result[i] = recast(d, a[i], &leaves[i]);
    for (unsigned i = 0; wanted < count && i < wanted; i++)
        result[i] = join(d, a + (size_t)i * (count / wanted), count / wanted, &leaves[i]);
    for (unsigned i = 0; wanted > count && i < count; i++)
        split(d, a[i], wanted / count, leaves, result + (size_t)i * (wanted / count));
    direct_define(d, insn, result, wanted);
}

static void select_space_cast(ir_direct *d, LLVMValueRef insn) {
    direct_operand a = direct_part(d, LLVMGetOperand(insn, 0));
    unsigned to = LLVMGetPointerAddressSpace(LLVMTypeOf(insn));
    if (to != 0)
        a = direct_to_space(d, a, to);
    direct_define(d, insn, &a, 1);
}

void direct_select_cast(ir_direct *d, LLVMValueRef insn) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(insn);
    if (opcode == LLVMBitCast) {
        select_bitcast(d, insn);
        return;
    }
    if (opcode == LLVMAddrSpaceCast) {
        select_space_cast(d, insn);
        return;
    }
    direct_operand result[DIRECT_LEAVES], room[DIRECT_LEAVES];
    direct_leaf leaves[DIRECT_LEAVES];
    unsigned count, wanted = direct_leaves(LLVMTypeOf(insn), leaves);
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 0), room, &count);
    for (unsigned i = 0; i < count && i < wanted; i++)
        result[i] = sized(convert(d, insn, a[i], &leaves[i]), leaves[i].bits);
    direct_define(d, insn, result, count);
}
