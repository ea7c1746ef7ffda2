/* Range: constants, thread indices, turns of loops with constant trips, and what sums, masks,
 * shifts and divisions make of values. */
#include "ir/structure/analyses/range_internal.h"
#include "ir/structure/analyses/vary_internal.h"

enum { DEEPEST = 8 };

static bool range_of_thread(const ir_ranges *r, LLVMValueRef value, ir_range *out) {
    static const char *const names[] = {"tid.x", "tid.y", "tid.z"};
    for (int a = 0; a < 3; a++) {
        if (ir_reads_register(value, names[a]) && r->block[a] > 0) {
            *out = (ir_range){0, (int64_t)r->block[a] - 1};
            return true;
        }
    }
    return false;
}

/* Whether a loop's counter is read as a number without sign alone, other than to count. */
static bool is_read_without_sign(const ir_loop *loop) {
    for (LLVMUseRef use = LLVMGetFirstUse(loop->induction); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAZExtInst(user) &&
            !(LLVMIsABinaryOperator(user) && LLVMGetInstructionOpcode(user) == LLVMAdd &&
              LLVMIsAConstantInt(LLVMGetOperand(user, 1))))
            return false;
    }
    return true;
}

/* A loop's turn, as a place inside the loop sees it. */
static bool range_of_turn(const ir_ranges *r, LLVMValueRef value, uint32_t place, ir_range *out) {
    const ir_flow *flow = r->flow;
    enum { MOST_TRIPS = 1 << 20, MOST_STEP = 1 << 20 };
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *loop = &flow->loops[l];
        if (loop->induction != value || !loop->holds[place] || loop->trips < 1 ||
            loop->trips > MOST_TRIPS || !LLVMIsAConstantInt(loop->start) ||
            loop->step > MOST_STEP || loop->step < -MOST_STEP)
            continue;
        /* The header sees the value with which the loop ends as well. */
        int64_t turns = place == loop->header ? loop->trips : loop->trips - 1;
        int64_t start = LLVMConstIntGetSExtValue(loop->start), way = turns * loop->step;
        unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
        int64_t limit = width < 32 ? INT64_C(1) << width : INT64_C(1) << 31, end = start + way;
        if (start >= limit || start < -limit || end >= limit || end < -limit ||
            (width < 32 && end >= limit / 2 && !is_read_without_sign(loop)))
            return false;
        *out = way >= 0 ? (ir_range){start, start + way} : (ir_range){start + way, start};
        return true;
    }
    return false;
}

int64_t ir_right_of(LLVMValueRef value) {
    LLVMValueRef right = LLVMGetOperand(value, 1);
    int64_t number = LLVMIsAConstantInt(right) ? LLVMConstIntGetSExtValue(right) : 0;
    return number > 0 && number <= INT32_MAX ? number : 0;
}

static bool range_of(const ir_ranges *r, LLVMValueRef value, uint32_t place, unsigned depth,
                     ir_range *out);

/* The range of a ranged value, shifted or divided by a constant. */
static bool range_of_scaled(const ir_ranges *r, LLVMValueRef value, int64_t right, uint32_t place,
                            unsigned depth, ir_range *out) {
    enum { MOST = 1 << 24, MOST_SHIFT = 24 };
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    bool shifts = op == LLVMShl || op == LLVMLShr;
    ir_range of;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 32 || (shifts && right > MOST_SHIFT) ||
        (!shifts && op != LLVMUDiv) || depth == 0 ||
        !range_of(r, LLVMGetOperand(value, 0), place, depth - 1, &of) || of.least < 0 ||
        of.most > MOST >> (op == LLVMShl ? right : 0))
        return false;
    int64_t by = shifts ? INT64_C(1) << right : right;
    *out = op == LLVMShl ? (ir_range){of.least * by, of.most * by}
                         : (ir_range){of.least / by, of.most / by};
    return true;
}

/* Of two values that are not negative, where the sum has the bits for it. An `or` is at most the
 * sum, and at least each of the two. */
static bool range_of_sum(const ir_ranges *r, LLVMValueRef value, uint32_t place, unsigned depth,
                         ir_range *out) {
    ir_range left, right;
    if (depth == 0 || LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 32 ||
        !range_of(r, LLVMGetOperand(value, 0), place, depth - 1, &left) ||
        !range_of(r, LLVMGetOperand(value, 1), place, depth - 1, &right) || left.least < 0 ||
        right.least < 0 || left.most > INT32_MAX - right.most)
        return false;
    int64_t larger = left.least > right.least ? left.least : right.least;
    bool is_or = LLVMGetInstructionOpcode(value) == LLVMOr;
    *out = (ir_range){is_or ? larger : left.least + right.least, left.most + right.most};
    return true;
}

static bool adds(LLVMValueRef value) {
    if (!LLVMIsAInstruction(value) || LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind)
        return false;
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    return op == LLVMAdd || op == LLVMOr;
}

static bool range_of(const ir_ranges *r, LLVMValueRef value, uint32_t place, unsigned depth,
                     ir_range *out) {
    if (LLVMIsAConstantInt(value)) {
        int64_t number = LLVMConstIntGetSExtValue(value);
        *out = (ir_range){number, number};
        return number >= INT32_MIN && number <= INT32_MAX;
    }
    if (ir_flow_insn(r->flow, value) == IR_NONE)
        return false;
    if (adds(value))
        return range_of_sum(r, value, place, depth, out);
    if (range_of_thread(r, value, out) || range_of_turn(r, value, place, out))
        return true;
    if (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value)) {
        unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0)));
        int64_t limit =
            width < 32 && LLVMIsASExtInst(value) ? INT64_C(1) << (width - 1) : INT64_C(1) << 31;
        return depth > 0 && range_of(r, LLVMGetOperand(value, 0), place, depth - 1, out) &&
               out->least >= 0 && out->most < limit;
    }
    int64_t right = LLVMIsABinaryOperator(value) ? ir_right_of(value) : 0;
    if (right == 0)
        return false;
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    if (op != LLVMAnd && op != LLVMURem)
        return range_of_scaled(r, value, right, place, depth, out);
    *out = (ir_range){0, op == LLVMAnd ? right : right - 1};
    return true;
}

bool ir_range_of(const ir_ranges *r, LLVMValueRef value, uint32_t place, ir_range *out) {
    return range_of(r, value, place, DEEPEST, out);
}
