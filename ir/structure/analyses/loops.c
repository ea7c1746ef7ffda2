/* Loops: the natural loops of a function, the tree that they make, and what drives each.
 *
 * A loop's header dominates the blocks that branch back to it; the loop is all blocks that reach
 * such a branch without passing the header (Aho, Lam, Sethi, Ullman, "Compilers", 9.6). Early IR
 * tests its loops at the top: the branch that leaves stands in the header and compares the
 * induction variable itself. Loops that test at the bottom compare the next value. */
#include "ir/structure/analyses/flow_internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_back_edge(const ir_flow *flow, uint32_t from, uint32_t to) {
    return ir_dominance_over(&flow->over, to, from);
}

static bool is_header(const ir_flow *flow, uint32_t block) {
    for (uint32_t e = flow->back.first[block]; e < flow->back.first[block + 1]; e++) {
        if (is_back_edge(flow, flow->back.succ[e], block))
            return true;
    }
    return false;
}

/* Marks the loop's blocks: those that lead to `holds` without the header. */
static void fill(const ir_flow *flow, uint32_t header, bool *holds) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = flow->count; b-- > 0;) {
            for (uint32_t e = flow->next.first[b]; !holds[b] && e < flow->next.first[b + 1]; e++) {
                uint32_t to = flow->next.succ[e];
                if (holds[to] && to != header && ir_dominance_over(&flow->over, header, b))
                    holds[b] = changed = true;
            }
        }
    }
}

static void note_edges(const ir_flow *flow, ir_loop *loop) {
    uint32_t latches = 0, outsides = 0, exits = 0;
    loop->latch = loop->preheader = loop->exit = IR_NONE;
    for (uint32_t e = flow->back.first[loop->header]; e < flow->back.first[loop->header + 1]; e++) {
        uint32_t from = flow->back.succ[e];
        bool inside = loop->holds[from];
        *(inside ? &loop->latch : &loop->preheader) = from;
        *(inside ? &latches : &outsides) += 1;
    }
    for (uint32_t b = 0; b < flow->count; b++) {
        for (uint32_t e = flow->next.first[b]; e < flow->next.first[b + 1]; e++) {
            uint32_t to = flow->next.succ[e];
            if (loop->holds[b] && !loop->holds[to] && to != loop->exit) {
                loop->exit = to;
                exits++;
            }
        }
    }
    loop->latch = latches == 1 ? loop->latch : IR_NONE;
    loop->preheader = outsides == 1 ? loop->preheader : IR_NONE;
    loop->exit = exits == 1 ? loop->exit : IR_NONE;
}

/* ---- the induction variable -------------------------------------------------------------------
 */

/* The constant that `next` adds to `phi`; 0: `next` is something else. */
static int64_t step_of(LLVMValueRef phi, LLVMValueRef next) {
    LLVMOpcode op = LLVMIsAInstruction(next) ? LLVMGetInstructionOpcode(next) : LLVMRet;
    if ((op != LLVMAdd && op != LLVMSub) || LLVMGetOperand(next, 0) != phi ||
        !LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
        return 0;
    int64_t step = LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
    return op == LLVMAdd ? step : -step;
}

static bool is_outside(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(flow, value);
    return insn == IR_NONE || !loop->holds[flow->home[insn]];
}

LLVMIntPredicate ir_predicate_swapped(LLVMIntPredicate p) {
    switch (p) {
    case LLVMIntUGT:
        return LLVMIntULT;
    case LLVMIntUGE:
        return LLVMIntULE;
    case LLVMIntULT:
        return LLVMIntUGT;
    case LLVMIntULE:
        return LLVMIntUGE;
    case LLVMIntSGT:
        return LLVMIntSLT;
    case LLVMIntSGE:
        return LLVMIntSLE;
    case LLVMIntSLT:
        return LLVMIntSGT;
    case LLVMIntSLE:
        return LLVMIntSGE;
    default:
        return p;
    }
}

LLVMIntPredicate ir_predicate_inverse(LLVMIntPredicate p) {
    switch (p) {
    case LLVMIntEQ:
        return LLVMIntNE;
    case LLVMIntNE:
        return LLVMIntEQ;
    case LLVMIntUGT:
        return LLVMIntULE;
    case LLVMIntUGE:
        return LLVMIntULT;
    case LLVMIntULT:
        return LLVMIntUGE;
    case LLVMIntULE:
        return LLVMIntUGT;
    case LLVMIntSGT:
        return LLVMIntSLE;
    case LLVMIntSGE:
        return LLVMIntSLT;
    case LLVMIntSLT:
        return LLVMIntSGE;
    default:
        return LLVMIntSGT;
    }
}

/* Whether `test` compares `value` with something from outside; sets bound and predicate. */
static bool compares(const ir_flow *flow, ir_loop *loop, LLVMValueRef test, LLVMValueRef value) {
    LLVMIntPredicate p = LLVMGetICmpPredicate(test);
    for (unsigned side = 0; side < 2; side++) {
        if (LLVMGetOperand(test, side) != value ||
            !is_outside(flow, loop, LLVMGetOperand(test, 1 - side)))
            continue;
        loop->bound = LLVMGetOperand(test, 1 - side);
        loop->stays = side == 0 ? p : ir_predicate_swapped(p);
        return true;
    }
    return false;
}

/* Whether the branch at the end of `block` leaves the loop by a test of the PHI. */
static bool is_driven_at(const ir_flow *flow, ir_loop *loop, uint32_t block, LLVMValueRef phi,
                         LLVMValueRef next) {
    LLVMValueRef last = ir_flow_last(flow, block);
    if (!LLVMIsABranchInst(last) || !LLVMIsConditional(last) ||
        !LLVMIsAICmpInst(LLVMGetCondition(last)))
        return false;
    uint32_t yes = ir_flow_block(flow, LLVMGetSuccessor(last, 0));
    uint32_t no = ir_flow_block(flow, LLVMGetSuccessor(last, 1));
    if (loop->holds[yes] == loop->holds[no])
        return false;
    LLVMValueRef test = LLVMGetCondition(last);
    loop->compares_next = false;
    if (!compares(flow, loop, test, phi)) {
        if (!compares(flow, loop, test, next))
            return false;
        loop->compares_next = true;
    }
    if (!loop->holds[yes])
        loop->stays = ir_predicate_inverse(loop->stays);
    return true;
}

bool ir_loop_is_tested_at_top(const ir_flow *flow, LLVMValueRef phi, ir_loop *loop) {
    return is_driven_at(flow, loop, loop->header, phi, phi);
}

static int64_t number_of(LLVMValueRef constant, bool is_unsigned) {
    return is_unsigned ? (int64_t)LLVMConstIntGetZExtValue(constant)
                       : LLVMConstIntGetSExtValue(constant);
}

/* Whether the counter's type has the value behind the last turn: else the counter wraps around, and
 * the loop goes on. */
static bool is_in_type(const ir_loop *loop, int64_t from, int64_t trips, bool is_unsigned) {
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(loop->start));
    __int128 last = (__int128)trips * loop->step + from;
    __int128 most = (__int128)1 << (is_unsigned ? width : width - 1);
    return last < most && last >= (is_unsigned ? 0 : -most);
}

/* Turns of the body of a counted loop; -1: not constant, or more than 2^32. */
static int64_t count_trips(const ir_loop *loop) {
    if (!LLVMIsAConstantInt(loop->start) || !LLVMIsAConstantInt(loop->bound))
        return -1;
    bool is_unsigned = loop->stays == LLVMIntULT || loop->stays == LLVMIntULE ||
                       loop->stays == LLVMIntUGT || loop->stays == LLVMIntUGE;
    int64_t from = number_of(loop->start, is_unsigned), to = number_of(loop->bound, is_unsigned);
    int64_t step = loop->step, distance = 0;
    bool up = step > 0;
    if (is_unsigned && (from < 0 || to < 0)) /* 2^63 and more */
        return -1;
    if (loop->stays == LLVMIntNE)
        distance = up ? to - from : from - to;
    else if (up && (loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT))
        distance = to - from;
    else if (up && (loop->stays == LLVMIntSLE || loop->stays == LLVMIntULE))
        distance = to - from + 1;
    else if (!up && (loop->stays == LLVMIntSGT || loop->stays == LLVMIntUGT))
        distance = from - to;
    else if (!up && (loop->stays == LLVMIntSGE || loop->stays == LLVMIntUGE))
        distance = from - to + 1;
    else
        return -1;
    int64_t size = up ? step : -step;
    if (loop->stays == LLVMIntNE && (distance < 0 || distance % size != 0))
        return -1;
    int64_t trips = distance > 0 ? (distance + size - 1) / size : 0;
    /* A test at the bottom comes after the body's first turn. */
    if (loop->compares_next && trips == 0)
        trips = 1;
    bool ends = trips <= INT64_C(1) << 32 && is_in_type(loop, from, trips, is_unsigned);
    return ends ? trips : -1;
}

static void find_induction(const ir_flow *flow, ir_loop *loop) {
    loop->trips = -1;
    if (loop->latch == IR_NONE || loop->preheader == IR_NONE)
        return;
    for (uint32_t i = flow->first[loop->header]; LLVMIsAPHINode(flow->insns[i]); i++) {
        LLVMValueRef phi = flow->insns[i], next = ir_flow_incoming(flow, phi, loop->latch);
        loop->step = step_of(phi, next);
        if (loop->step == 0 || !(is_driven_at(flow, loop, loop->header, phi, next) ||
                                 is_driven_at(flow, loop, loop->latch, phi, next)))
            continue;
        loop->induction = phi;
        loop->start = ir_flow_incoming(flow, phi, loop->preheader);
        loop->trips = count_trips(loop);
        return;
    }
}

/* ---- the tree ---------------------------------------------------------------------------------
 */

static uint32_t size_of(const ir_flow *flow, const ir_loop *loop) {
    uint32_t size = 0;
    for (uint32_t b = 0; b < flow->count; b++)
        size += loop->holds[b];
    return size;
}

/* An outer loop's header comes before an inner one's in reverse postorder, so each loop finds its
 * parent in place. */
static void place_in_tree(ir_flow *flow, uint32_t at) {
    ir_loop *loop = &flow->loops[at];
    uint32_t least = UINT32_MAX;
    loop->parent = IR_NONE;
    for (uint32_t o = 0; o < at; o++) {
        uint32_t size = size_of(flow, &flow->loops[o]);
        if (flow->loops[o].holds[loop->header] && size < least) {
            least = size;
            loop->parent = o;
        }
    }
    loop->depth = loop->parent == IR_NONE ? 0 : flow->loops[loop->parent].depth + 1;
    for (uint32_t o = 0; o < at; o++)
        loop->place += flow->loops[o].parent == loop->parent;
}

bool ir_loops_make(ir_flow *flow) {
    uint32_t count = 0;
    for (uint32_t b = 0; b < flow->count; b++)
        count += is_header(flow, b);
    flow->loops = EV_NEW_ARRAY(flow->arena, ir_loop, count + 1);
    if (!flow->loops)
        return false;
    for (uint32_t b = 0; b < flow->count; b++) {
        if (!is_header(flow, b))
            continue;
        bool *holds = EV_NEW_ARRAY(flow->arena, bool, flow->count);
        if (!holds)
            return false;
        holds[b] = true;
        for (uint32_t e = flow->back.first[b]; e < flow->back.first[b + 1]; e++)
            holds[flow->back.succ[e]] |= is_back_edge(flow, flow->back.succ[e], b);
        fill(flow, b, holds);
        ir_loop *loop = &flow->loops[flow->loop_count];
        *loop = (ir_loop){.header = b, .holds = holds};
        note_edges(flow, loop);
        find_induction(flow, loop);
        place_in_tree(flow, flow->loop_count++);
    }
    return true;
}

/* ---- anchors ----------------------------------------------------------------------------------
 */

static uint32_t child_at(const ir_flow *flow, uint32_t parent, unsigned long place) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (flow->loops[l].parent == parent && flow->loops[l].place == place)
            return l;
    }
    return IR_NONE;
}

uint32_t ir_loop_find(const ir_flow *flow, const char *path) {
    uint32_t loop = IR_NONE;
    for (const char *at = path;; at++) {
        char *end = NULL;
        unsigned long place = strtoul(at, &end, 10);
        loop = end == at ? IR_NONE : child_at(flow, loop, place);
        if (loop == IR_NONE || *end == '\0')
            return loop;
        if (*end != '.')
            return IR_NONE;
        at = end;
    }
}

void ir_loop_path(const ir_flow *flow, uint32_t loop, ev_str *out) {
    if (flow->loops[loop].parent != IR_NONE) {
        ir_loop_path(flow, flow->loops[loop].parent, out);
        ev_str_char(out, '.');
    }
    ev_str_printf(out, "%u", flow->loops[loop].place);
}

uint32_t ir_loop_of(const ir_flow *flow, uint32_t block) {
    uint32_t found = IR_NONE;
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (flow->loops[l].holds[block] &&
            (found == IR_NONE || flow->loops[l].depth > flow->loops[found].depth))
            found = l;
    }
    return found;
}

/* ---- loops that edits of turns can share out --------------------------------------------------
 */

static bool grows_to_bound(const ir_loop *loop) {
    LLVMIntPredicate p = loop->stays;
    if (loop->step > 0)
        return p == LLVMIntSLT || p == LLVMIntULT || p == LLVMIntSLE || p == LLVMIntULE;
    return p == LLVMIntSGT || p == LLVMIntSGE;
}

bool ir_loop_is_left_once(const ir_flow *flow, const ir_loop *loop) {
    uint32_t exit = loop->exit;
    return exit != IR_NONE && flow->back.first[exit + 1] - flow->back.first[exit] == 1 &&
           flow->back.succ[flow->back.first[exit]] == loop->header;
}

ev_status ir_loop_check_counts(const ir_flow *flow, const ir_loop *loop, ev_error *err) {
    if (!loop->induction || loop->compares_next || !grows_to_bound(loop) || loop->exit == IR_NONE)
        return ev_fail(err, EV_BAD,
                       "the loop does not count from a start to a bound, tested at its top");
    if (!ir_loop_is_left_once(flow, loop))
        return ev_fail(err, EV_BAD, "the loop is left in more than one place");
    return EV_OK;
}
