/* Stage, the dims: what the addresses of a loop's loads are made of, and under which conditions a
 * load runs. */
#include "ir/structure/stage_internal.h"

#include <llvm-c/Target.h>

#include <string.h>

enum { DEEPEST = 48 };

/* ---- dims -------------------------------------------------------------------------------------
 */

bool ir_stage_is_in_loop(const ir_staging *g, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&g->flow, value);
    return insn != IR_NONE && g->loop->holds[g->flow.home[insn]];
}

int64_t ir_stage_step(const ir_staging *g, LLVMValueRef phi) {
    if (!LLVMIsAPHINode(phi) || LLVMGetInstructionParent(phi) != g->flow.blocks[g->loop->header])
        return 0;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, i);
        if (LLVMGetIncomingBlock(phi, i) == g->flow.blocks[g->loop->latch] &&
            LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
            LLVMGetOperand(next, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
            return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
    }
    return 0;
}

uint32_t ir_stage_dim_of(const ir_staging *g, LLVMValueRef value) {
    static const char *const places[] = {"tid.x", "tid.y", "tid.z"};
    for (uint32_t a = 0; a < 3; a++) {
        if (ir_reads_register(value, places[a]))
            return a;
    }
    for (uint32_t d = IR_DIM_INNER; d < g->dim_count; d++) {
        if (g->dims[d].phi == value)
            return d;
    }
    return ir_stage_step(g, value) != 0 ? IR_DIM_TURN : IR_NONE;
}

bool ir_stage_is_of_block(LLVMValueRef value) {
    static const char *const names[] = {"ctaid.x", "ctaid.y",  "ctaid.z",  "ntid.x",  "ntid.y",
                                        "ntid.z",  "nctaid.x", "nctaid.y", "nctaid.z"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (ir_reads_register(value, names[i]))
            return true;
    }
    return false;
}

static uint32_t mask_of(ir_staging *g, LLVMValueRef value, unsigned depth);

/* Whether a load, in an address of another one, may be done for other coordinates as well. */
static bool is_free_to_load(const ir_staging *g, LLVMValueRef value) {
    LLVMValueRef base = NULL;
    ir_path path;
    return ir_deed_of(value) == IR_DEED_LOAD && ir_reads_only(&g->flow, value, &base) &&
           (!ir_stage_is_in_loop(g, value) ||
            (ir_stage_path(g, g->flow.home[ir_flow_insn(&g->flow, value)], &path) &&
             path.count == 0));
}

static uint32_t mask_of_operands(ir_staging *g, LLVMValueRef value, unsigned depth) {
    uint32_t mask = 0;
    if (depth == 0 || LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value) ||
        !(ir_may_run_anywhere(value) || ir_divides(value) || is_free_to_load(g, value)) ||
        (LLVMIsACallInst(value) && strstr(ir_call_name(value), "sreg")))
        return IR_NO_DIMS;
    for (int k = 0; k < LLVMGetNumOperands(value) && mask != IR_NO_DIMS; k++) {
        uint32_t part = mask_of(g, LLVMGetOperand(value, (unsigned)k), depth - 1);
        mask = part == IR_NO_DIMS ? IR_NO_DIMS : mask | part;
    }
    return mask;
}

static uint32_t mask_of(ir_staging *g, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&g->flow, value);
    if (insn == IR_NONE)
        return 0;
    if (g->masks[insn] != 0)
        return g->masks[insn] - 1;
    uint32_t dim = ir_stage_dim_of(g, value), mask = 0;
    bool is_fixed = !ir_stage_is_in_loop(g, value) && !ir_varies(&g->vary, value);
    if (dim != IR_NONE)
        mask = 1u << dim;
    else if (!is_fixed && !ir_stage_is_of_block(value))
        mask = mask_of_operands(g, value, depth);
    g->masks[insn] = mask + 1;
    return mask;
}

uint32_t ir_stage_mask(ir_staging *g, LLVMValueRef value) {
    return mask_of(g, value, DEEPEST);
}

/* ---- distances --------------------------------------------------------------------------------
 */

static LLVMValueRef without_casts(LLVMValueRef value) {
    while (LLVMIsAInstruction(value) && (LLVMGetInstructionOpcode(value) == LLVMSExt ||
                                         LLVMGetInstructionOpcode(value) == LLVMZExt))
        value = LLVMGetOperand(value, 0);
    return value;
}

static bool add_distance(ir_distance *to, ir_distance more, int64_t factor) {
    if (more.factor == 0 || factor == 0)
        return true;
    if (to->factor != 0 && to->by != more.by)
        return false;
    to->by = more.by;
    to->factor += more.factor * factor;
    return true;
}

static bool distance_of_product(ir_staging *g, LLVMValueRef value, uint32_t dim, ir_distance *out) {
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef factor = without_casts(LLVMGetOperand(value, side));
        ir_distance part = {0};
        if (ir_stage_mask(g, factor) != 0 ||
            !ir_stage_distance(g, LLVMGetOperand(value, 1 - side), dim, &part))
            continue;
        if (LLVMIsAConstantInt(factor))
            return add_distance(out, part, LLVMConstIntGetSExtValue(factor));
        if (part.by)
            return false;
        *out = (ir_distance){part.factor, factor};
        return true;
    }
    return false;
}

static bool distance_of_step(ir_staging *g, LLVMValueRef step, uint32_t dim, ir_distance *out) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(g->s->base->module);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    if (!ir_stage_distance(g, LLVMGetOperand(step, 0), dim, out))
        return false;
    for (unsigned i = 0; i < LLVMGetNumIndices(step); i++) {
        LLVMValueRef index = LLVMGetOperand(step, i + 1);
        ir_distance part = {0};
        if (i > 0 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (i > 0)
            type = LLVMGetElementType(type);
        if (!ir_stage_distance(g, index, dim, &part) ||
            !add_distance(out, part, (int64_t)LLVMABISizeOfType(layout, type)))
            return false;
    }
    return true;
}

/* A select among values that move alike; a place that is replaced by 0 moves as it is. */
static bool distance_of_select(ir_staging *g, LLVMValueRef value, uint32_t dim, ir_distance *out) {
    LLVMValueRef yes = LLVMGetOperand(value, 1), no = LLVMGetOperand(value, 2);
    ir_distance other = {0};
    if (LLVMIsAConstantInt(no) && LLVMConstIntGetZExtValue(no) == 0)
        return ir_stage_distance(g, yes, dim, out);
    return ir_stage_distance(g, yes, dim, out) && ir_stage_distance(g, no, dim, &other) &&
           out->factor == other.factor && out->by == other.by;
}

static bool distance_of_sum(ir_staging *g, LLVMValueRef value, int64_t sign, uint32_t dim,
                            ir_distance *out) {
    ir_distance right = {0};
    return ir_stage_distance(g, LLVMGetOperand(value, 0), dim, out) &&
           ir_stage_distance(g, LLVMGetOperand(value, 1), dim, &right) &&
           add_distance(out, right, sign);
}

/* Numbers of less than 32 bits wrap around where addresses do not. */
static bool is_narrow(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 32;
}

bool ir_stage_distance(ir_staging *g, LLVMValueRef value, uint32_t dim, ir_distance *out) {
    ir_distance part = {0};
    *out = part;
    if ((ir_stage_mask(g, value) & 1u << dim) == 0)
        return true;
    if (ir_stage_dim_of(g, value) == dim) {
        *out = (ir_distance){dim == IR_DIM_TURN ? ir_stage_step(g, value) : 1, NULL};
        return true;
    }
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return distance_of_sum(g, value, 1, dim, out);
    case LLVMSub:
        return distance_of_sum(g, value, -1, dim, out);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) && distance_of_sum(g, value, 1, dim, out);
    case LLVMMul:
        return distance_of_product(g, value, dim, out);
    case LLVMShl:
        return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) &&
               ir_stage_distance(g, LLVMGetOperand(value, 0), dim, &part) &&
               add_distance(out, part,
                            INT64_C(1)
                                << (LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1)) & 31));
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
        return !is_narrow(value) && !is_narrow(LLVMGetOperand(value, 0)) &&
               ir_stage_distance(g, LLVMGetOperand(value, 0), dim, out);
    case LLVMAddrSpaceCast:
        return ir_stage_distance(g, LLVMGetOperand(value, 0), dim, out);
    case LLVMGetElementPtr:
        return distance_of_step(g, value, dim, out);
    case LLVMSelect:
        return distance_of_select(g, value, dim, out);
    default:
        return false;
    }
}

/* Whether a condition stays the same where one dim grows as the other shrinks. */
bool ir_stage_is_balanced(ir_staging *g, LLVMValueRef condition, uint32_t a, uint32_t b) {
    ir_distance x, y;
    uint32_t both = 1u << a | 1u << b;
    if ((ir_stage_mask(g, condition) & both) == 0)
        return true;
    if (LLVMGetTypeKind(LLVMTypeOf(condition)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(condition)) != 1)
        return ir_stage_distance(g, condition, a, &x) && ir_stage_distance(g, condition, b, &y) &&
               x.factor == y.factor && x.by == y.by;
    for (int k = 0; k < LLVMGetNumOperands(condition); k++) {
        if (!ir_stage_is_balanced(g, LLVMGetOperand(condition, (unsigned)k), a, b))
            return false;
    }
    return true;
}

/* ---- paths ------------------------------------------------------------------------------------
 */

static bool is_over(const ir_flow *flow, uint32_t a, uint32_t b) {
    return ir_dominance_over(&flow->over, a, b);
}

/* Adds the test of block `from` that leads to block `to`, which `from` dominates at once. */
static bool add_test(const ir_flow *flow, uint32_t from, uint32_t to, ir_path *path) {
    LLVMValueRef last = ir_flow_last(flow, from);
    if (ir_dominance_over(&flow->under, to + 1, from + 1))
        return true;
    if (!LLVMIsABranchInst(last) || !LLVMIsConditional(last) ||
        path->count == IR_MOST_TESTS_OF_PATH)
        return false;
    uint32_t yes = ir_flow_block(flow, LLVMGetSuccessor(last, 0));
    uint32_t no = ir_flow_block(flow, LLVMGetSuccessor(last, 1));
    if (yes == no || (to != yes && to != no) ||
        flow->back.first[to + 1] - flow->back.first[to] != 1)
        return false;
    path->tests[path->count++] = (ir_path_test){LLVMGetCondition(last), to == yes};
    return true;
}

/* Whether a loop inside of the staged one makes the same constant turns always. */
static bool is_fixed_loop(const ir_flow *flow, const ir_loop *inner) {
    return ir_loop_is_left_once(flow, inner) && inner->trips >= 1 && inner->step == 1 &&
           !inner->compares_next && inner->exit != IR_NONE && inner->preheader != IR_NONE;
}

bool ir_stage_path(const ir_staging *g, uint32_t block, ir_path *out) {
    const ir_flow *flow = &g->flow;
    *out = (ir_path){0};
    if (block == g->loop->header || !is_over(flow, g->loop->header, block))
        return false;
    while (block != g->loop->header) {
        const ir_loop *inner = &flow->loops[ir_loop_of(flow, block)];
        uint32_t over = flow->over.idom[block];
        if (block == inner->header) {
            if (!is_fixed_loop(flow, inner))
                return false;
            block = inner->preheader;
        } else {
            if (over != inner->header && !add_test(flow, over, block, out))
                return false;
            block = over;
        }
    }
    return true;
}
