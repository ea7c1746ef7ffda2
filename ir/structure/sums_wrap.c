/* Sums: whether the counter of a loop may come near the end of its type, where threads that begin
 * up to a round of turns behind its start would wrap around. */
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/sums_internal.h"

#include <stdlib.h>

enum { DEEPEST = 12 };

static const ir_loop *loop_of_counter(const ir_flow *flow, LLVMValueRef phi) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (flow->loops[l].induction == phi)
            return &flow->loops[l];
    }
    return NULL;
}

enum {
    LARGE_FACTOR = 4096, /* a place times so much nears the end of 32 bits */
    LARGE_START = 1 << 30
};

/* Whether a value comes from scalar arguments or from memory, from a place times a large number, or
 * from a large number. `times`: what the way here multiplies the value by. A loop's counter comes
 * from where its start does. */
static bool is_of_data(const ir_flow *flow, LLVMValueRef value, uint64_t times, unsigned depth) {
    if (LLVMIsAConstantInt(value))
        return LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64 &&
               llabs(LLVMConstIntGetSExtValue(value)) > LARGE_START;
    if (LLVMIsAArgument(value))
        return LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMPointerTypeKind;
    if (ir_flow_insn(flow, value) == IR_NONE)
        return false;
    ir_deed deed = ir_deed_of(value);
    if (depth == 0 || deed == IR_DEED_LOAD || deed == IR_DEED_COUNTED)
        return true;
    if (LLVMIsAPHINode(value)) {
        const ir_loop *loop = loop_of_counter(flow, value);
        return !loop || loop->step > LARGE_FACTOR ||
               is_of_data(flow, loop->start, times, depth - 1);
    }
    uint64_t by = ir_multiplier(value);
    times *= by;
    if (by >= LARGE_FACTOR || times > LARGE_FACTOR)
        return true;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (is_of_data(flow, LLVMGetOperand(value, (unsigned)k), times, depth - 1))
            return true;
    }
    return false;
}

/* Whether the loop's counter may begin anywhere, or end anywhere if it counts down.
 * Threads begin up to a round of turns behind its start, and count on by as many: such a counter
 * would wrap around near the end of its type, where the loop's own does not. */
static bool may_wrap(const ir_flow *flow, const ir_loop *loop) {
    LLVMValueRef from = loop->step > 0 ? loop->start : loop->bound;
    bool is_high = loop->stays == LLVMIntULT && LLVMIsAConstantInt(from) &&
                   LLVMConstIntGetZExtValue(from) > LARGE_START;
    return is_high || is_of_data(flow, from, 1, DEEPEST);
}

/* Whether the loop's own counter may pass its bound by wrapping around, and go on from there. */
static bool may_go_round(const ir_flow *flow, const ir_loop *loop) {
    LLVMValueRef next = ir_flow_incoming(flow, loop->induction, loop->latch);
    bool is_add = LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd;
    bool ends = is_add && (loop->stays == LLVMIntSLT ? LLVMGetNSW(next) : LLVMGetNUW(next));
    return loop->step != 1 && !ends;
}

/* Whether a round of turns is long beside the type. Other counters of 32 bits are taken not to come
 * within a round of the end of their type. Running sums have a rule of their own (running.c). */
static bool has_long_rounds(const ir_sums *p) {
    enum { LONG = 1 << 15 };
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(p->loop->induction));
    bool is_long = llabs(p->loop->step) > LONG / p->threads;
    return !p->runs && (width < 32 || (width == 32 && is_long));
}

/* The counter stops at its bound (count_below) if turns run below it. */
ev_status ir_sums_check_wrap(ir_sums *p, ev_error *err) {
    const ir_loop *loop = p->loop;
    p->wraps = may_wrap(p->flow, loop) || has_long_rounds(p);
    bool is_below = loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT;
    if (!p->wraps || (is_below && !p->runs && !may_go_round(p->flow, loop) &&
                      LLVMTypeOf(loop->bound) == LLVMTypeOf(loop->induction)))
        return EV_OK;
    return ev_fail(
        err, EV_BAD,
        "the loop's counter may wrap around: it has less than 32 bits, takes large steps, "
        "begins at an argument or at a value from memory, or counts down to one");
}
