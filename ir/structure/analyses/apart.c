/* Apart: addresses of a loop's stores, as sums with the loop's counter. */
#include "ir/structure/analyses/apart_internal.h"

#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 16 };

/* ---- how a value goes with the turns ----------------------------------------------------------
 */

typedef enum course {
    COURSE_SAME,  /* in all turns */
    COURSE_MOVES, /* another one in each turn */
    COURSE_UNKNOWN
} course;

/* Of a sum. */
static course joined(course a, course b) {
    if (a == COURSE_SAME || b == COURSE_SAME)
        return a == COURSE_SAME ? b : a;
    return COURSE_UNKNOWN;
}

static bool is_in_loop(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(flow, value);
    return insn != IR_NONE && loop->holds[flow->home[insn]];
}

/* A step between turns, the same in all; not 0, as far as is guessed. */
static bool is_step(const ir_flow *flow, LLVMValueRef value) {
    return !(LLVMIsAConstantInt(value) && LLVMIsNull(value)) &&
           ir_is_plain(flow, value, IR_COUNTERS_NONE);
}

static course course_of(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                        unsigned depth);

/* Of a counter of the loop, or of one inside. */
static course course_of_phi(const ir_flow *flow, const ir_loop *loop, LLVMValueRef phi,
                            unsigned depth) {
    if (flow->home[ir_flow_insn(flow, phi)] == loop->header) {
        LLVMValueRef next = ir_flow_incoming(flow, phi, loop->latch);
        ir_affine step = ir_affine_of(next);
        const ir_affine old = {.terms = {{phi, 1}}, .count = 1};
        bool moves = ir_affine_add(&step, &old, -1) && step.count == 0 && step.constant != 0;
        return moves ? COURSE_MOVES : COURSE_UNKNOWN;
    }
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *inner = &flow->loops[l];
        if (inner->induction == phi)
            return course_of(flow, loop, inner->start, depth - 1) == COURSE_SAME ? COURSE_SAME
                                                                                 : COURSE_UNKNOWN;
    }
    return COURSE_UNKNOWN;
}

static course course_of_product(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                                unsigned depth) {
    LLVMValueRef left = LLVMGetOperand(value, 0), right = LLVMGetOperand(value, 1);
    course a = course_of(flow, loop, left, depth - 1), b = course_of(flow, loop, right, depth - 1);
    if (a == COURSE_SAME && b == COURSE_SAME)
        return COURSE_SAME;
    if (LLVMGetInstructionOpcode(value) == LLVMShl)
        return a == COURSE_MOVES && b == COURSE_SAME ? COURSE_MOVES : COURSE_UNKNOWN;
    bool moves = (a == COURSE_MOVES && b == COURSE_SAME && is_step(flow, right)) ||
                 (b == COURSE_MOVES && a == COURSE_SAME && is_step(flow, left));
    return moves ? COURSE_MOVES : COURSE_UNKNOWN;
}

/* Of a quotient or right shift. It moves if turns are as far apart as what divides the counter. */
static course course_of_quotient(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                                 unsigned depth) {
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    LLVMValueRef of = LLVMGetOperand(value, 0), by = LLVMGetOperand(value, 1);
    if (course_of(flow, loop, of, depth - 1) == COURSE_SAME &&
        course_of(flow, loop, by, depth - 1) == COURSE_SAME)
        return COURSE_SAME;
    if (of != loop->induction || !LLVMIsAConstantInt(by))
        return COURSE_UNKNOWN;
    uint64_t number = LLVMConstIntGetZExtValue(by);
    uint64_t divisor = op == LLVMLShr || op == LLVMAShr ? UINT64_C(1) << (number & 63) : number;
    return divisor > 0 && divisor <= (uint64_t)llabs(loop->step) ? COURSE_MOVES : COURSE_UNKNOWN;
}

/* Of what is the same if its operands are. */
static course course_of_operands(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                                 unsigned depth) {
    if (ir_is_field(value))
        return COURSE_SAME;
    if (ir_deed_of(value) != IR_DEED_PURE || LLVMIsAPHINode(value))
        return COURSE_UNKNOWN;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (course_of(flow, loop, LLVMGetOperand(value, (unsigned)k), depth - 1) != COURSE_SAME)
            return COURSE_UNKNOWN;
    }
    return COURSE_SAME;
}

/* Of a variable of a sum (affine_internal.h). */
static course course_of_variable(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                                 unsigned depth) {
    enum { NARROW = 32 };
    if (!is_in_loop(flow, loop, value))
        return COURSE_SAME;
    if (LLVMIsAPHINode(value))
        return course_of_phi(flow, loop, value, depth);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMMul:
    case LLVMShl:
        return course_of_product(flow, loop, value, depth);
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        return course_of_quotient(flow, loop, value, depth);
    case LLVMSExt:
    case LLVMZExt:
        return LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0))) < NARROW
                   ? course_of_operands(flow, loop, value, depth)
                   : course_of(flow, loop, LLVMGetOperand(value, 0), depth - 1);
    case LLVMTrunc:
        return LLVMGetIntTypeWidth(LLVMTypeOf(value)) < NARROW
                   ? course_of_operands(flow, loop, value, depth)
                   : course_of(flow, loop, LLVMGetOperand(value, 0), depth - 1);
    default:
        return course_of_operands(flow, loop, value, depth);
    }
}

static course course_of_form(const ir_flow *flow, const ir_loop *loop, const ir_affine *form,
                             unsigned depth) {
    enum { MOST_FACTOR = 1 << 20 }; /* times a counter of 32 bits, far from the end of 64 */
    course all = COURSE_SAME;
    for (uint32_t i = 0; i < form->count; i++) {
        course one = course_of_variable(flow, loop, form->terms[i].value, depth);
        if (one == COURSE_MOVES && llabs(form->terms[i].factor) > MOST_FACTOR)
            one = COURSE_UNKNOWN;
        all = joined(all, one);
    }
    return all;
}

static course course_of(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                        unsigned depth) {
    if (!is_in_loop(flow, loop, value))
        return COURSE_SAME;
    if (depth == 0)
        return COURSE_UNKNOWN;
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind)
        return course_of_operands(flow, loop, value, depth);
    ir_affine form = ir_affine_of(value);
    if (form.count == 1 && form.constant == 0 && form.terms[0].value == value)
        return course_of_variable(flow, loop, value, depth);
    return course_of_form(flow, loop, &form, depth - 1);
}

/* ---- two places -------------------------------------------------------------------------------
 */

/* Two loops whose counters stand for each other; NULL: none. */
typedef struct pairing {
    const ir_loop *a, *b;
} pairing;

/* Whether two values are computed alike. */
static bool is_same(pairing p, LLVMValueRef a, LLVMValueRef b, unsigned depth) {
    if (a == b || (p.a && a == p.a->induction && b == p.b->induction))
        return true;
    if (depth == 0 || !LLVMIsAInstruction(a) || !LLVMIsAInstruction(b) || LLVMIsAPHINode(a) ||
        LLVMGetInstructionOpcode(a) != LLVMGetInstructionOpcode(b) ||
        LLVMTypeOf(a) != LLVMTypeOf(b) || LLVMGetNumOperands(a) != LLVMGetNumOperands(b) ||
        ir_deed_of(a) != IR_DEED_PURE || LLVMIsAGetElementPtrInst(a) ||
        (LLVMIsAICmpInst(a) && LLVMGetICmpPredicate(a) != LLVMGetICmpPredicate(b)) ||
        LLVMIsAFCmpInst(a))
        return false;
    for (int k = 0; k < LLVMGetNumOperands(a); k++) {
        if (!is_same(p, LLVMGetOperand(a, (unsigned)k), LLVMGetOperand(b, (unsigned)k), depth - 1))
            return false;
    }
    return true;
}

/* a - b, in terms of a's values where b's are computed alike; false: too many terms. */
static bool difference(pairing p, const ir_affine *a, const ir_affine *b, ir_affine *out) {
    ir_affine alike = {.constant = b->constant};
    for (uint32_t i = 0; i < b->count; i++) {
        ir_affine term = {.terms = {b->terms[i]}, .count = 1};
        for (uint32_t k = 0; k < a->count; k++) {
            if (is_same(p, a->terms[k].value, b->terms[i].value, DEEPEST))
                term.terms[0].value = a->terms[k].value;
        }
        if (!ir_affine_add(&alike, &term, 1))
            return false;
    }
    *out = *a;
    return ir_affine_add(out, &alike, -1);
}

static bool same_form(pairing p, const ir_affine *a, const ir_affine *b) {
    ir_affine rest;
    return difference(p, a, b, &rest) && rest.count == 0 && rest.constant == 0;
}

static const pairing none;

static int64_t bytes_of(LLVMModuleRef module, LLVMValueRef insn) {
    LLVMTypeRef type = LLVMTypeOf(LLVMIsAStoreInst(insn) ? LLVMGetOperand(insn, 0) : insn);
    return (int64_t)LLVMABISizeOfType(LLVMGetModuleDataLayout(module), type);
}

/* Without casts, and without the PHIs behind loops that pass one value on. */
static LLVMValueRef without_casts(LLVMValueRef value) {
    while (LLVMIsASExtInst(value) || LLVMIsAZExtInst(value) ||
           (LLVMIsAPHINode(value) && LLVMCountIncoming(value) == 1))
        value = LLVMGetOperand(value, 0);
    return value;
}

/* Whether a value is the loop's bound, or a product with it. */
static bool has_bound(const ir_loop *loop, LLVMValueRef value, unsigned depth) {
    LLVMValueRef bound = without_casts(loop->bound);
    value = without_casts(value);
    if (value == bound)
        return true;
    LLVMOpcode op = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMRet;
    return depth > 0 && (op == LLVMMul || op == LLVMShl) &&
           (has_bound(loop, LLVMGetOperand(value, 0), depth - 1) ||
            (op == LLVMMul && has_bound(loop, LLVMGetOperand(value, 1), depth - 1)));
}

/* Whether the loop counts upwards from 0 or a number above, and ends before its bound. */
static bool counts_below_bound(const ir_loop *loop) {
    return (loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT) && loop->step > 0 &&
           LLVMIsAConstantInt(loop->start) && LLVMConstIntGetSExtValue(loop->start) >= 0;
}

/* Whether a distance is beyond all turns of a loop that begins at 0 or later, such as y[k] and y[n
 * + k] in n turns: as many times the bound as a turn moves, or more, and nothing against that.
 * Sizes are taken not to be negative. What other arguments tell apart need not be: windows may
 * overlap. */
static bool is_beyond_turns(const ir_flow *flow, const ir_loop *loop, int64_t factor,
                            const ir_affine *rest) {
    bool spans = false, is_up = rest->terms[0].factor > 0;
    if (!counts_below_bound(loop) || (is_up ? rest->constant < 0 : rest->constant > 0))
        return false;
    for (uint32_t i = 0; i < rest->count; i++) {
        LLVMValueRef value = rest->terms[i].value;
        if ((rest->terms[i].factor > 0) != is_up || !ir_is_plain(flow, value, IR_COUNTERS_NONE) ||
            course_of(flow, loop, value, DEEPEST) != COURSE_SAME)
            return false;
        spans |= has_bound(loop, value, 2) && llabs(rest->terms[i].factor) >= llabs(factor);
    }
    return spans && factor != 0;
}

/* Whether two accesses of a loop are to one place in one turn alone, or never. */
static bool are_apart(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                      LLVMValueRef a, LLVMValueRef b, const ir_affine *of_a,
                      const ir_affine *of_b) {
    ir_affine rest;
    if (!difference(none, of_b, of_a, &rest))
        return false;
    if (rest.count == 0 && rest.constant == 0)
        return true;
    int64_t factor = ir_affine_factor(of_a, loop->induction), stride = 0;
    if (rest.count > 0)
        return is_beyond_turns(flow, loop, factor, &rest);
    if (__builtin_mul_overflow(factor, loop->step, &stride) || stride == 0)
        return false;
    stride = llabs(stride);
    int64_t ahead = (rest.constant % stride + stride) % stride;
    return ahead >= bytes_of(module, a) && ahead + bytes_of(module, b) <= stride;
}

/* ---- the loop's accesses ----------------------------------------------------------------------
 */

static bool commutes(LLVMAtomicRMWBinOp op) {
    switch (op) {
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub:
    case LLVMAtomicRMWBinOpAnd:
    case LLVMAtomicRMWBinOpOr:
    case LLVMAtomicRMWBinOpXor:
    case LLVMAtomicRMWBinOpMax:
    case LLVMAtomicRMWBinOpMin:
    case LLVMAtomicRMWBinOpUMax:
    case LLVMAtomicRMWBinOpUMin:
    case LLVMAtomicRMWBinOpFAdd:
        return true;
    default: /* an exchange leaves the last turn's value */
        return false;
    }
}

/* Whether the turns' atomics may happen in another order: they are of one kind, and nothing else of
 * the loop meets what they change. */
static bool may_change_places(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                              LLVMValueRef atomic) {
    if (!LLVMIsAAtomicRMWInst(atomic) || !commutes(LLVMGetAtomicRMWBinOp(atomic)))
        return false;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef other = flow->insns[i];
        bool is_alike = LLVMIsAAtomicRMWInst(other) &&
                        LLVMGetAtomicRMWBinOp(other) == LLVMGetAtomicRMWBinOp(atomic);
        if (loop->holds[flow->home[i]] && ir_pointer_of(other) && !is_alike &&
            !ir_affine_apart(module, atomic, other))
            return false;
    }
    return true;
}

bool ir_is_one_base(LLVMModuleRef module, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef of_a = NULL, of_b = NULL;
    if (a == b || !ir_is_field(a) || !ir_is_field(b))
        return a == b;
    ir_affine at_a = ir_affine_of_address(module, LLVMGetOperand(a, 0), &of_a);
    ir_affine at_b = ir_affine_of_address(module, LLVMGetOperand(b, 0), &of_b);
    return of_a == of_b && same_form(none, &at_a, &at_b);
}

/* Whether a value has the counter of a loop inside. */
static bool has_inner_counter(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                              unsigned depth) {
    if (!is_in_loop(flow, loop, value) || value == loop->induction)
        return false;
    if (LLVMIsAPHINode(value) || depth == 0)
        return flow->home[ir_flow_insn(flow, value)] != loop->header;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (has_inner_counter(flow, loop, LLVMGetOperand(value, (unsigned)k), depth - 1))
            return true;
    }
    return false;
}

/* Bytes from the first to the last place that a term takes in a turn, if its value is a counter of
 * a loop inside with a constant number of turns; negative: not known. */
static int64_t span_of(const ir_flow *flow, const ir_affine *form, uint32_t term) {
    enum { MOST = 1 << 30 };
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *inner = &flow->loops[l];
        if (inner->induction != form->terms[term].value)
            continue;
        int64_t step = llabs(inner->step), factor = llabs(form->terms[term].factor);
        if (inner->trips < 1 || inner->trips > MOST || step > MOST / inner->trips || factor > MOST)
            return -1;
        return (inner->trips - 1) * step * factor;
    }
    return -1;
}

/* Whether what one turn writes by counters of loops inside ends before what the next turn writes:
 * it is known, or cases show it, as they run the store. */
static bool is_narrow(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                      LLVMValueRef store, const ir_affine *form) {
    int64_t stride = 0, bytes = bytes_of(module, store);
    bool has_counter = false, is_known = true;
    for (uint32_t i = 0; i < form->count; i++) {
        if (!has_inner_counter(flow, loop, form->terms[i].value, DEEPEST))
            continue;
        int64_t span = span_of(flow, form, i);
        has_counter = true;
        is_known = is_known && span >= 0 && !__builtin_add_overflow(bytes, span, &bytes);
    }
    int64_t factor = ir_affine_factor(form, loop->induction);
    is_known =
        is_known && !__builtin_mul_overflow(factor, loop->step, &stride) && bytes <= llabs(stride);
    return !has_counter || is_known ||
           ir_is_led_by_told(flow, loop->header, flow->home[ir_flow_insn(flow, store)]);
}

/* Whether no other turn loads or stores what the store writes. */
static bool is_alone(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                     LLVMValueRef store) {
    LLVMValueRef to = NULL, from = NULL;
    ir_affine form = ir_affine_of_address(module, LLVMGetOperand(store, 1), &to);
    if (course_of_form(flow, loop, &form, DEEPEST) != COURSE_MOVES ||
        (is_in_loop(flow, loop, to) && !ir_is_field(to)) ||
        !is_narrow(module, flow, loop, store, &form))
        return false;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef other = flow->insns[i], pointer = ir_pointer_of(other);
        if (other == store || !pointer || !loop->holds[flow->home[i]])
            continue;
        ir_affine at = ir_affine_of_address(module, pointer, &from);
        bool is_one = ir_is_one_base(module, from, to);
        if (!is_one && !(ir_is_own_base(from) && ir_is_own_base(to)))
            return false;
        if (!is_one)
            continue; /* the same turn's alone, or others apart: ir_check_overlap */
        if (LLVMIsALoadInst(other) ? !same_form(none, &at, &form)
                                   : !LLVMIsAStoreInst(other) ||
                                         !are_apart(module, flow, loop, store, other, &form, &at))
            return false;
    }
    return true;
}

bool ir_turns_are_apart(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef insn = flow->insns[i];
        ir_deed deed = ir_deed_of(insn);
        if (!loop->holds[flow->home[i]] || deed == IR_DEED_PURE || deed == IR_DEED_LOAD ||
            deed == IR_DEED_MARKER || may_change_places(module, flow, loop, insn))
            continue;
        if (deed != IR_DEED_STORE || !LLVMIsAStoreInst(insn) || !is_alone(module, flow, loop, insn))
            return false;
    }
    return true;
}

bool ir_turns_stay(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                   const ir_loop *around, LLVMValueRef access) {
    LLVMValueRef of = NULL;
    ir_affine at = ir_affine_of_address(module, ir_pointer_of(access), &of);
    int64_t own = llabs(ir_affine_factor(&at, loop->induction));
    uint32_t moving = 0;
    if (is_in_loop(flow, around, loop->start) || (is_in_loop(flow, around, of) && !ir_is_field(of)))
        return false;
    for (uint32_t i = 0; i < at.count; i++) {
        LLVMValueRef value = at.terms[i].value;
        if (value == loop->induction || !is_in_loop(flow, around, value))
            continue;
        if (!counts_below_bound(loop) || !has_bound(loop, value, 2) ||
            llabs(at.terms[i].factor) < own)
            return false;
        moving++;
    }
    return moving <= 1;
}

bool ir_turns_are_alike(LLVMModuleRef module, const ir_flow *flow, const ir_loop *a,
                        LLVMValueRef in_a, const ir_loop *b, LLVMValueRef in_b) {
    LLVMValueRef of_a = NULL, of_b = NULL;
    if (a->step != b->step || a->start != b->start)
        return false;
    ir_affine at_a = ir_affine_of_address(module, ir_pointer_of(in_a), &of_a);
    ir_affine at_b = ir_affine_of_address(module, ir_pointer_of(in_b), &of_b);
    return ir_is_one_base(module, of_a, of_b) &&
           (!is_in_loop(flow, a, of_a) || ir_is_field(of_a)) &&
           same_form((pairing){a, b}, &at_a, &at_b) &&
           course_of_form(flow, a, &at_a, DEEPEST) == COURSE_MOVES;
}

/* Whether the first turn, whose number is a constant, is beyond a place that is `at` bytes less
 * than the turn's. */
static bool begins_beyond(LLVMModuleRef module, const ir_loop *loop, const ir_affine *at,
                          LLVMValueRef in_loop, LLVMValueRef elsewhere) {
    enum { MOST = 1 << 30 };
    if (!LLVMIsAConstantInt(loop->start) || at->count != 1 || at->terms[0].value != loop->induction)
        return false;
    int64_t start = LLVMConstIntGetSExtValue(loop->start), factor = at->terms[0].factor;
    if (llabs(start) > MOST || llabs(factor) > MOST || llabs(at->constant) > MOST)
        return false;
    int64_t first = factor * start + at->constant;
    return (factor > 0) == (loop->step > 0) ? first >= bytes_of(module, elsewhere)
                                            : first <= -bytes_of(module, in_loop);
}

/* Whether one of two loops begins to count where the other one ends. */
static bool is_next_to(const ir_loop *a, const ir_loop *b) {
    return a->step > 0 && b->step > 0 &&
           (without_casts(a->bound) == without_casts(b->start) ||
            without_casts(b->bound) == without_casts(a->start));
}

/* Whether a value is computed of the counter of another loop, which may come to the same number. */
static bool has_other_counter(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                              unsigned depth) {
    if (LLVMIsAPHINode(value) && LLVMCountIncoming(value) > 1) {
        for (uint32_t l = 0; l < flow->loop_count; l++) {
            if (flow->loops[l].induction == value && is_next_to(loop, &flow->loops[l]))
                return false;
        }
        return value != loop->induction;
    }
    if (depth == 0 || !LLVMIsAInstruction(value))
        return depth == 0;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (has_other_counter(flow, loop, LLVMGetOperand(value, (unsigned)k), depth - 1))
            return true;
    }
    return false;
}

/* Whether a distance between places depends on the loop's counter, arguments and indices alone. The
 * counter of another loop may come to each turn's number. */
static bool are_told_apart(const ir_flow *flow, const ir_loop *loop, const ir_affine *at) {
    bool told = at->count > 1 || (at->count == 1 && at->terms[0].value != loop->induction);
    for (uint32_t i = 0; i < at->count; i++)
        told = told && ir_is_plain(flow, at->terms[i].value, IR_COUNTERS_SUMS) &&
               !has_other_counter(flow, loop, at->terms[i].value, DEEPEST);
    return told;
}

bool ir_turns_are_beyond(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                         LLVMValueRef in_loop, LLVMValueRef elsewhere, bool guesses) {
    LLVMValueRef of = NULL, of_elsewhere = NULL;
    ir_affine at = ir_affine_of_address(module, ir_pointer_of(in_loop), &of);
    ir_affine other = ir_affine_of_address(module, ir_pointer_of(elsewhere), &of_elsewhere);
    return ir_is_one_base(module, of, of_elsewhere) && difference(none, &at, &other, &at) &&
           (begins_beyond(module, loop, &at, in_loop, elsewhere) ||
            (guesses && are_told_apart(flow, loop, &at)));
}
