/* Affine: by recursion over sums, products with constants and casts. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <llvm-c/Target.h>

#include <string.h>

static ir_affine of_constant(int64_t value) {
    return (ir_affine){.constant = value};
}

static ir_affine of_variable(LLVMValueRef value) {
    return (ir_affine){.terms = {{value, 1}}, .count = 1};
}

int64_t ir_affine_factor(const ir_affine *form, LLVMValueRef value) {
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->terms[i].value == value)
            return form->terms[i].factor;
    }
    return 0;
}

static void drop_term(ir_affine *form, uint32_t at) {
    form->count--;
    memmove(form->terms + at, form->terms + at + 1, (form->count - at) * sizeof *form->terms);
}

static bool add_term(ir_affine *form, LLVMValueRef value, int64_t factor) {
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->terms[i].value != value)
            continue;
        if (__builtin_add_overflow(form->terms[i].factor, factor, &form->terms[i].factor))
            return false;
        if (form->terms[i].factor == 0)
            drop_term(form, i);
        return true;
    }
    if (form->count == IR_AFFINE_TERMS)
        return false;
    form->terms[form->count++] = (ir_term){value, factor};
    return true;
}

bool ir_affine_add(ir_affine *a, const ir_affine *b, int64_t factor) {
    ir_affine sum = *a;
    int64_t scaled = 0;
    bool ok = !__builtin_mul_overflow(b->constant, factor, &scaled) &&
              !__builtin_add_overflow(sum.constant, scaled, &sum.constant);
    for (uint32_t i = 0; ok && i < b->count && factor != 0; i++)
        ok = !__builtin_mul_overflow(b->terms[i].factor, factor, &scaled) &&
             add_term(&sum, b->terms[i].value, scaled);
    if (ok)
        *a = sum;
    return ok;
}

/* ---- whole numbers ----------------------------------------------------------------------------
 */

enum { DEEPEST = 24 };

static bool form_of(LLVMValueRef value, unsigned depth, ir_affine *out);

static bool is_small_constant(LLVMValueRef value, int64_t *out) {
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    *out = LLVMConstIntGetSExtValue(value);
    return true;
}

static bool form_of_sum(LLVMValueRef value, int64_t sign, unsigned depth, ir_affine *out) {
    ir_affine right;
    return form_of(LLVMGetOperand(value, 0), depth, out) &&
           form_of(LLVMGetOperand(value, 1), depth, &right) && ir_affine_add(out, &right, sign);
}

static bool form_of_product(LLVMValueRef value, unsigned depth, ir_affine *out) {
    ir_affine part;
    int64_t factor = 0;
    unsigned side = is_small_constant(LLVMGetOperand(value, 1), &factor) ? 0 : 1;
    if (side == 1 && !is_small_constant(LLVMGetOperand(value, 0), &factor))
        return false;
    *out = of_constant(0);
    return form_of(LLVMGetOperand(value, side), depth, &part) && ir_affine_add(out, &part, factor);
}

static bool form_of_shift(LLVMValueRef value, unsigned depth, ir_affine *out) {
    ir_affine part;
    int64_t by = 0;
    *out = of_constant(0);
    return is_small_constant(LLVMGetOperand(value, 1), &by) && by >= 0 && by < 62 &&
           form_of(LLVMGetOperand(value, 0), depth, &part) &&
           ir_affine_add(out, &part, INT64_C(1) << by);
}

/* All bits of a value turned round are -1 - value. */
static bool form_of_complement(LLVMValueRef value, unsigned depth, ir_affine *out) {
    ir_affine part;
    int64_t mask = 0;
    *out = of_constant(-1);
    return is_small_constant(LLVMGetOperand(value, 1), &mask) && mask == -1 &&
           form_of(LLVMGetOperand(value, 0), depth, &part) && ir_affine_add(out, &part, -1);
}

/* Whether a narrow value may be computed in a wider type as well. */
static bool never_wraps(LLVMValueRef value) {
    if (!LLVMIsAInstruction(value))
        return true;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        return LLVMGetNSW(value);
    case LLVMOr:
        return LLVMGetIsDisjoint(value);
    default:
        return true;
    }
}

static bool form_of_instruction(LLVMValueRef value, unsigned depth, ir_affine *out) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return form_of_sum(value, 1, depth, out);
    case LLVMSub:
        return form_of_sum(value, -1, depth, out);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) && form_of_sum(value, 1, depth, out);
    case LLVMMul:
        return form_of_product(value, depth, out);
    case LLVMShl:
        return form_of_shift(value, depth, out);
    case LLVMXor:
        return form_of_complement(value, depth, out);
    case LLVMSExt:
        return never_wraps(LLVMGetOperand(value, 0)) &&
               form_of(LLVMGetOperand(value, 0), depth, out);
    case LLVMZExt:
        return LLVMGetNNeg(value) && never_wraps(LLVMGetOperand(value, 0)) &&
               form_of(LLVMGetOperand(value, 0), depth, out);
    default:
        return false;
    }
}

static bool form_of(LLVMValueRef value, unsigned depth, ir_affine *out) {
    int64_t constant = 0;
    if (is_small_constant(value, &constant))
        *out = of_constant(constant);
    else if (depth == 0 || !LLVMIsAInstruction(value) ||
             !form_of_instruction(value, depth - 1, out))
        *out = of_variable(value);
    return true;
}

ir_affine ir_affine_of(LLVMValueRef value) {
    ir_affine form;
    (void)form_of(value, DEEPEST, &form);
    return form;
}

bool ir_affine_of_condition(LLVMValueRef condition, ir_affine *out, LLVMIntPredicate *predicate) {
    if (!LLVMIsAICmpInst(condition) ||
        LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(condition, 0))) != LLVMIntegerTypeKind)
        return false;
    *out = ir_affine_of(LLVMGetOperand(condition, 0));
    *predicate = LLVMGetICmpPredicate(condition);
    ir_affine right = ir_affine_of(LLVMGetOperand(condition, 1));
    return ir_affine_add(out, &right, -1);
}

/* ---- addresses --------------------------------------------------------------------------------
 */

static bool add_index(ir_affine *form, LLVMValueRef index, uint64_t bytes) {
    ir_affine part = ir_affine_of(index);
    return bytes <= INT64_MAX && ir_affine_add(form, &part, (int64_t)bytes);
}

/* Adds the offset of one getelementptr; false: it has no affine form. */
static bool add_step(LLVMTargetDataRef layout, LLVMValueRef step, ir_affine *form) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    unsigned count = LLVMGetNumIndices(step);
    if (!add_index(form, LLVMGetOperand(step, 1), LLVMABISizeOfType(layout, type)))
        return false;
    for (unsigned i = 1; i < count; i++) {
        LLVMValueRef index = LLVMGetOperand(step, i + 1);
        if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            form->constant += (int64_t)LLVMOffsetOfElement(layout, type, member);
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        type = LLVMGetElementType(type);
        if (!add_index(form, index, LLVMABISizeOfType(layout, type)))
            return false;
    }
    return true;
}

ir_affine ir_affine_of_address(LLVMModuleRef module, LLVMValueRef pointer, LLVMValueRef *base) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module);
    ir_affine form = {0};
    for (*base = pointer;; *base = LLVMGetOperand(*base, 0)) {
        LLVMOpcode op = LLVMRet;
        if (LLVMIsAInstruction(*base))
            op = LLVMGetInstructionOpcode(*base);
        else if (LLVMIsAConstantExpr(*base))
            op = LLVMGetConstOpcode(*base);
        ir_affine next = form;
        if (op == LLVMGetElementPtr && add_step(layout, *base, &next))
            form = next;
        else if (op != LLVMAddrSpaceCast && op != LLVMBitCast)
            return form;
    }
}

static LLVMValueRef argument_of(LLVMModuleRef module, LLVMValueRef access) {
    LLVMValueRef pointer = ir_pointer_of(access), base = NULL;
    if (!pointer)
        return NULL;
    (void)ir_affine_of_address(module, pointer, &base);
    return base ? LLVMIsAArgument(base) : NULL;
}

static bool is_marked(LLVMValueRef argument) {
    LLVMValueRef function = LLVMIsAArgument(argument) ? LLVMGetParamParent(argument) : NULL;
    for (unsigned i = 0; function && i < LLVMCountParams(function); i++) {
        if (LLVMGetParam(function, i) == argument)
            return LLVMGetStringAttributeAtIndex(function, i + 1, IR_OVERLAPS,
                                                 sizeof IR_OVERLAPS - 1) != NULL;
    }
    return false;
}

bool ir_may_overlap(LLVMValueRef a, LLVMValueRef b) {
    return a != b && is_marked(a) && is_marked(b);
}

bool ir_affine_apart(LLVMModuleRef module, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef of_a = argument_of(module, a), of_b = argument_of(module, b);
    return of_a && of_b && of_a != of_b && !ir_may_overlap(of_a, of_b);
}
