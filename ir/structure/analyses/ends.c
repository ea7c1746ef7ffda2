/* Ends: how the sides of comparisons grow over the threads of a block. */
#include "ir/structure/analyses/ends_internal.h"

#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"

typedef struct ending {
    const ir_flow *flow;
    const bool *is_place; /* by instruction */
    bool is_unsigned;     /* the comparison in question reads its sides as numbers without sign */
} ending;

static bool is_place(const ending *p, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(p->flow, value);
    return insn != IR_NONE && p->is_place[insn];
}

/* How a value behaves over the threads of a block. */
typedef enum course {
    COURSE_SAME,
    COURSE_ROOT, /* least at the first thread, where the value is 0 */
    COURSE_UP,   /* least at the first thread */
    COURSE_DOWN, /* greatest there */
    COURSE_UNKNOWN
} course;

static course turned(course c) {
    if (c == COURSE_UP || c == COURSE_ROOT)
        return COURSE_DOWN;
    return c == COURSE_DOWN ? COURSE_UP : c;
}

static course joined(course a, course b) {
    if (a == COURSE_ROOT && b == COURSE_ROOT)
        return COURSE_ROOT;
    a = a == COURSE_ROOT ? COURSE_UP : a;
    b = b == COURSE_ROOT ? COURSE_UP : b;
    if (a == COURSE_SAME || b == COURSE_SAME)
        return a == COURSE_SAME ? b : a;
    return a == b ? a : COURSE_UNKNOWN;
}

static course course_of(const ending *p, LLVMValueRef value, unsigned depth);

enum { MOST_FACTOR = 1 << 16 }; /* times an index of up to 2^16, fits into 32 bits */

/* Whether an operation of small numbers may give one below 0, which is a large one without sign. */
static bool may_fall_below(LLVMValueRef value) {
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    if (op == LLVMSub)
        return true;
    for (int k = 0; k < LLVMGetNumOperands(value) && op != LLVMAnd; k++) {
        LLVMValueRef number = LLVMGetOperand(value, (unsigned)k);
        if (LLVMIsAConstantInt(number) && LLVMGetIntTypeWidth(LLVMTypeOf(number)) > 1 &&
            LLVMGetIntTypeWidth(LLVMTypeOf(number)) <= 64 && LLVMConstIntGetSExtValue(number) < 0)
            return true;
    }
    return false;
}

/* By how much, at most, a value multiplies an index: arithmetic of special registers and numbers
 * alone, and choices between such. MOST_FACTOR + 1: by more, or it is something else. */
static uint64_t factor_of(const ending *p, LLVMValueRef value, unsigned depth) {
    uint64_t factor = 0;
    if (LLVMIsAConstantInt(value))
        return 0;
    if (ir_reads_any_register(value))
        return 1;
    if (depth == 0 || !LLVMIsAInstruction(value))
        return MOST_FACTOR + 1;
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    bool orders = LLVMIsACallInst(value) && ir_orders_two(value);
    bool is_known =
        LLVMIsABinaryOperator(value) || LLVMIsACastInst(value) || op == LLVMSelect || orders;
    if (!is_known || (p->is_unsigned && may_fall_below(value)))
        return MOST_FACTOR + 1;
    for (int k = op == LLVMSelect ? 1 : 0; k < LLVMGetNumOperands(value) - (orders ? 1 : 0); k++)
        factor += factor_of(p, LLVMGetOperand(value, (unsigned)k), depth - 1);
    factor *= ir_multiplier(value);
    return factor > MOST_FACTOR ? MOST_FACTOR + 1 : factor;
}

/* Whether a value is as great as its operands say, read as the comparison reads it: nothing wraps
 * around, and nothing is cut off. */
static bool is_whole(const ending *p, LLVMValueRef value) {
    enum { DEEPEST_FACTOR = 12 };
    if (factor_of(p, value, DEEPEST_FACTOR) <= MOST_FACTOR)
        return true; /* the number of a thread, far from the end of 32 bits */
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        return p->is_unsigned ? LLVMGetNUW(value) : LLVMGetNSW(value);
    case LLVMOr:
        return LLVMGetIsDisjoint(value);
    case LLVMTrunc:
    case LLVMLShr:
    case LLVMUDiv:
    case LLVMURem:
    case LLVMAnd:
        return p->is_unsigned && LLVMGetInstructionOpcode(value) != LLVMTrunc;
    case LLVMSExt:
    case LLVMSDiv:
    case LLVMAShr:
    case LLVMSRem:
        return !p->is_unsigned;
    default:
        return true;
    }
}

/* Of a product, quotient or remainder with a factor that is the same for all threads, and taken to
 * be positive. */
static course course_of_part(const ending *p, LLVMValueRef value, unsigned depth) {
    course a = course_of(p, LLVMGetOperand(value, 0), depth - 1);
    course b = course_of(p, LLVMGetOperand(value, 1), depth - 1);
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    LLVMValueRef by = LLVMGetOperand(value, op == LLVMMul && a == COURSE_SAME ? 0 : 1);
    bool turns = LLVMIsAConstantInt(by) && LLVMConstIntGetSExtValue(by) < 0;
    if (op == LLVMMul && a == COURSE_SAME)
        return turns ? turned(b) : b;
    if (b != COURSE_SAME)
        return COURSE_UNKNOWN;
    if (op == LLVMURem || op == LLVMSRem || op == LLVMAnd)
        return a == COURSE_ROOT || a == COURSE_SAME ? a : COURSE_UNKNOWN;
    return turns && op != LLVMShl ? turned(a) : a;
}

static course course_of(const ending *p, LLVMValueRef value, unsigned depth) {
    if (!ir_depends_on(p->flow, p->is_place, value))
        return COURSE_SAME;
    if (is_place(p, value))
        return COURSE_ROOT;
    if (depth == 0 || !LLVMIsAInstruction(value) || !is_whole(p, value))
        return COURSE_UNKNOWN;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return course_of(p, LLVMGetOperand(value, 0), depth - 1);
    case LLVMAdd:
    case LLVMOr: /* of bits that the other one has not */
        return joined(course_of(p, LLVMGetOperand(value, 0), depth - 1),
                      course_of(p, LLVMGetOperand(value, 1), depth - 1));
    case LLVMSub:
        return joined(course_of(p, LLVMGetOperand(value, 0), depth - 1),
                      turned(course_of(p, LLVMGetOperand(value, 1), depth - 1)));
    case LLVMMul:
    case LLVMShl:
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMURem:
    case LLVMSRem:
    case LLVMAnd:
        return course_of_part(p, value, depth);
    case LLVMSelect: /* an idle thread takes the first one's place */
        return LLVMIsNull(LLVMGetOperand(value, 2)) &&
                       course_of(p, LLVMGetOperand(value, 1), depth - 1) == COURSE_ROOT
                   ? COURSE_ROOT
                   : COURSE_UNKNOWN;
    default:
        return COURSE_UNKNOWN;
    }
}

/* Whether a - b has its least value at the first thread if `greater`, else its greatest. */
static bool ends_by(ending *p, LLVMValueRef compare, bool greater) {
    enum { DEEPEST = 16 };
    LLVMIntPredicate is = LLVMGetICmpPredicate(compare);
    p->is_unsigned = is == LLVMIntUGT || is == LLVMIntUGE || is == LLVMIntULT || is == LLVMIntULE;
    course a = course_of(p, LLVMGetOperand(compare, 0), DEEPEST);
    course b = course_of(p, LLVMGetOperand(compare, 1), DEEPEST);
    course rest = joined(a, turned(b));
    return greater ? rest == COURSE_UP : rest == COURSE_DOWN;
}

/* Whether a condition has the value at all threads of a block if the first one has it. */
static bool decides(ending *p, LLVMValueRef condition, bool value, unsigned depth) {
    LLVMValueRef parts[2];
    if (!ir_depends_on(p->flow, p->is_place, condition))
        return true;
    if (depth == 0)
        return false;
    if (LLVMGetInstructionOpcode(condition) == LLVMXor &&
        ir_is_bit(LLVMGetOperand(condition, 1), true))
        return decides(p, LLVMGetOperand(condition, 0), !value, depth - 1);
    if (ir_is_either(condition, true, parts) || ir_is_either(condition, false, parts))
        return decides(p, parts[0], value, depth - 1) && decides(p, parts[1], value, depth - 1);
    if (!LLVMIsAICmpInst(condition))
        return false;
    LLVMIntPredicate is = LLVMGetICmpPredicate(condition);
    switch (value ? is : ir_predicate_inverse(is)) {
    case LLVMIntSGT:
    case LLVMIntSGE:
    case LLVMIntUGT:
    case LLVMIntUGE:
        return ends_by(p, condition, true);
    case LLVMIntSLT:
    case LLVMIntSLE:
    case LLVMIntULT:
    case LLVMIntULE:
        return ends_by(p, condition, false);
    default:
        return false;
    }
}

bool ir_first_decides(const ir_flow *flow, const bool *is_place, LLVMValueRef condition,
                      bool value) {
    enum { DEEPEST = 24 };
    ending p = {.flow = flow, .is_place = is_place};
    return decides(&p, condition, value, DEEPEST);
}
