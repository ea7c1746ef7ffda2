/* Bounds: moves the bound of a loop's test, and what its counters grow by, in front of the loop,
 * where no turn changes them.
 * `for (z = 1; z < n - 1; z++)` computes n - 1 in each turn, and `for (i = first[row]; i <
 * first[row + 1]; i++)` loads its end in each turn. Edits that share out or stage turns need the
 * bound before the first turn. */

#include "ir/structure/passes/passes_internal.h"

#include "ir/structure/analyses/vary_internal.h"

#include <llvm-c/Core.h>

enum { DEEPEST = 8 }; /* instructions between a bound and what comes from outside */

typedef struct hoist {
    const ir_flow *flow;
    const ir_loop *loop;
    LLVMBuilderRef builder; /* at the end of the preheader */
    bool only_reads;        /* no turn writes memory or waits */
} hoist;

static bool only_reads(const ir_flow *flow, const ir_loop *loop) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (loop->holds[flow->home[i]] && ir_has_effect(flow->insns[i]))
            return false;
    }
    return true;
}

/* By the block where the value stands now; the flow is of before the first move. */
static bool is_inside(const hoist *h, LLVMValueRef value) {
    return LLVMIsAInstruction(value) &&
           h->loop->holds[ir_flow_block(h->flow, LLVMGetInstructionParent(value))];
}

/* Whether a load in the loop's header finds the same in all turns. The header runs before any turn,
 * so the load's address is valid before the loop. */
static bool is_fixed_load(const hoist *h, LLVMValueRef value) {
    if (ir_load_is_invariant(value)) /* of a struct that is passed by value: valid everywhere */
        return true;
    return h->only_reads && ir_deed_of(value) == IR_DEED_LOAD &&
           LLVMGetInstructionParent(value) == h->flow->blocks[h->loop->header];
}

/* Whether the value is made of pure instructions, of loads that find the same in all turns, and of
 * what comes from outside the loop. */
static bool can_hoist(const hoist *h, LLVMValueRef value, unsigned depth) {
    if (!is_inside(h, value))
        return true;
    if (depth == 0 || !(ir_insn_is_pure(value) || is_fixed_load(h, value)))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        if (!can_hoist(h, LLVMGetOperand(value, (unsigned)i), depth - 1))
            return false;
    }
    return true;
}

/* Moves the value, and before it what it is made of. */
static void move_out(const hoist *h, LLVMValueRef value) {
    if (!is_inside(h, value))
        return;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        move_out(h, LLVMGetOperand(value, (unsigned)i));
    LLVMInstructionRemoveFromParent(value);
    LLVMInsertIntoBuilder(h->builder, value);
}

/* Hoists the bound of a test at the end of the block. */
static void hoist_bound(const hoist *h, uint32_t block) {
    LLVMValueRef last = ir_flow_last(h->flow, block);
    if (!LLVMIsABranchInst(last) || !LLVMIsConditional(last) ||
        !LLVMIsAICmpInst(LLVMGetCondition(last)))
        return;
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef value = LLVMGetOperand(LLVMGetCondition(last), side);
        if (can_hoist(h, value, DEEPEST))
            move_out(h, value);
    }
}

/* Hoists what a turn adds to the loop's counters: `i += blockDim.x * gridDim.x` computes the step
 * in each turn. */
static void hoist_steps(const hoist *h) {
    const ir_flow *flow = h->flow;
    for (uint32_t i = flow->first[h->loop->header]; LLVMIsAPHINode(flow->insns[i]); i++) {
        LLVMValueRef phi = flow->insns[i], next = ir_flow_incoming(flow, phi, h->loop->latch);
        if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd)
            continue;
        unsigned own = LLVMGetOperand(next, 0) == phi ? 0 : 1;
        LLVMValueRef step = LLVMGetOperand(next, 1 - own);
        if (LLVMGetOperand(next, own) == phi && can_hoist(h, step, DEEPEST))
            move_out(h, step);
    }
}

static void hoist_bounds(const ir_flow *flow) {
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(flow->function));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const hoist h = {.flow = flow,
                         .loop = &flow->loops[l],
                         .builder = builder,
                         .only_reads = only_reads(flow, &flow->loops[l])};
        if (h.loop->latch == IR_NONE || h.loop->preheader == IR_NONE)
            continue;
        LLVMPositionBuilderBefore(builder, ir_flow_last(flow, h.loop->preheader));
        hoist_bound(&h, h.loop->header);
        hoist_bound(&h, h.loop->latch);
        hoist_steps(&h);
    }
    LLVMDisposeBuilder(builder);
}

ev_status ir_structure_hoist_bounds(LLVMValueRef function, ev_error *err) {
    ir_flow flow;
    ev_error why = {0};
    ev_arena *arena = ev_arena_new();
    if (!arena)
        return ev_fail_memory(err, 1);
    ev_status status = ir_flow_make(function, arena, &flow, &why);
    if (status == EV_OK)
        hoist_bounds(&flow);
    ev_arena_free(arena);
    return status == EV_OK || status == EV_BAD ? EV_OK : ev_fail(err, status, "%s", why.text);
}
