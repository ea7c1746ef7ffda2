/* Flow: numbers blocks and instructions, and makes the graphs that the analyses stand on.
 *
 * A region is grown from a branch block b: its exit is the immediate postdominator of b, its blocks
 * are those that b reaches without passing the exit. If they are not all dominated by b (b is in a
 * loop that the branch leaves or goes round), the region begins at their nearest common dominator;
 * if a block outside leads into it behind the entry, the exit moves down to its own immediate
 * postdominator. The region is grown anew until both hold. */
#include "ir/structure/analyses/flow_internal.h"

#include <assert.h>
#include <string.h>

uint32_t ir_flow_block(const ir_flow *flow, LLVMBasicBlockRef block) {
    return ir_map_get(&flow->block_map, block);
}

uint32_t ir_flow_insn(const ir_flow *flow, LLVMValueRef value) {
    return ir_map_get(&flow->insn_map, value);
}

LLVMValueRef ir_flow_last(const ir_flow *flow, uint32_t block) {
    return flow->insns[flow->first[block + 1] - 1];
}

LLVMValueRef ir_flow_incoming(const ir_flow *flow, LLVMValueRef phi, uint32_t block) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (LLVMGetIncomingBlock(phi, i) == flow->blocks[block])
            return LLVMGetIncomingValue(phi, i);
    }
    return NULL;
}

/* ---- numbering --------------------------------------------------------------------------------
 */

/* Lists the blocks in postorder, with a stack of blocks and of the next successor of each. */
static uint32_t list_postorder(LLVMValueRef function, ir_map *seen, LLVMBasicBlockRef *stack,
                               unsigned *next, LLVMBasicBlockRef *out) {
    uint32_t depth = 0, count = 0;
    stack[depth] = LLVMGetEntryBasicBlock(function);
    next[depth] = 0;
    ir_map_put(seen, stack[depth], 0);
    for (;;) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(stack[depth]);
        unsigned successors = LLVMGetNumSuccessors(last);
        if (next[depth] < successors) {
            /* The last successor first: the first one then comes first in the reverse order. */
            LLVMBasicBlockRef to = LLVMGetSuccessor(last, successors - 1 - next[depth]++);
            if (ir_map_get(seen, to) != IR_NONE)
                continue;
            ir_map_put(seen, to, 0);
            stack[++depth] = to;
            next[depth] = 0;
        } else {
            out[count++] = stack[depth];
            if (depth == 0)
                return count;
            depth--;
        }
    }
}

static bool number_blocks(ir_flow *flow) {
    uint32_t most = LLVMCountBasicBlocks(flow->function);
    LLVMBasicBlockRef *stack = EV_NEW_ARRAY(flow->arena, LLVMBasicBlockRef, most + 1);
    LLVMBasicBlockRef *order = EV_NEW_ARRAY(flow->arena, LLVMBasicBlockRef, most + 1);
    unsigned *next = EV_NEW_ARRAY(flow->arena, unsigned, most + 1);
    flow->blocks = EV_NEW_ARRAY(flow->arena, LLVMBasicBlockRef, most + 1);
    ir_map seen = {0};
    if (!stack || !order || !next || !flow->blocks || !ir_map_reserve(&seen, flow->arena, most) ||
        !ir_map_reserve(&flow->block_map, flow->arena, most))
        return false;
    flow->count = list_postorder(flow->function, &seen, stack, next, order);
    for (uint32_t b = 0; b < flow->count; b++) {
        flow->blocks[b] = order[flow->count - 1 - b];
        ir_map_put(&flow->block_map, flow->blocks[b], b);
    }
    return true;
}

static bool number_insns(ir_flow *flow) {
    uint32_t count = 0;
    for (uint32_t b = 0; b < flow->count; b++)
        for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[b]); i;
             i = LLVMGetNextInstruction(i))
            count++;
    flow->first = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 1);
    flow->insns = EV_NEW_ARRAY(flow->arena, LLVMValueRef, count + 1);
    flow->home = EV_NEW_ARRAY(flow->arena, uint32_t, count + 1);
    if (!flow->first || !flow->insns || !flow->home ||
        !ir_map_reserve(&flow->insn_map, flow->arena, count))
        return false;
    for (uint32_t b = 0; b < flow->count; b++) {
        flow->first[b] = flow->insn_count;
        for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[b]); i;
             i = LLVMGetNextInstruction(i)) {
            ir_map_put(&flow->insn_map, i, flow->insn_count);
            flow->home[flow->insn_count] = b;
            flow->insns[flow->insn_count++] = i;
        }
    }
    flow->first[flow->count] = flow->insn_count;
    return true;
}

/* ---- graphs -----------------------------------------------------------------------------------
 */

static uint32_t successor(const ir_flow *flow, uint32_t block, unsigned i) {
    return ir_flow_block(flow, LLVMGetSuccessor(ir_flow_last(flow, block), i));
}

static uint32_t successor_count(const ir_flow *flow, uint32_t block) {
    return LLVMGetNumSuccessors(ir_flow_last(flow, block));
}

static bool make_next(ir_flow *flow) {
    uint32_t edges = 0;
    for (uint32_t b = 0; b < flow->count; b++)
        edges += successor_count(flow, b);
    uint32_t *first = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 1);
    uint32_t *to = EV_NEW_ARRAY(flow->arena, uint32_t, edges + 1);
    if (!first || !to)
        return false;
    edges = 0;
    for (uint32_t b = 0; b < flow->count; b++) {
        first[b] = edges;
        for (uint32_t i = 0; i < successor_count(flow, b); i++)
            to[edges++] = successor(flow, b, i);
    }
    first[flow->count] = edges;
    flow->next = (ir_graph){flow->count, first, to};
    return ir_dominance_make(&flow->next, flow->arena, &flow->over);
}

static bool make_back(ir_flow *flow) {
    const ir_graph *next = &flow->next;
    uint32_t edges = next->first[next->count];
    uint32_t *first = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 2);
    uint32_t *to = EV_NEW_ARRAY(flow->arena, uint32_t, edges + 1);
    if (!first || !to)
        return false;
    for (uint32_t e = 0; e < edges; e++)
        first[next->succ[e] + 2]++;
    for (uint32_t b = 2; b < flow->count + 2; b++)
        first[b] += first[b - 1];
    for (uint32_t b = 0; b < flow->count; b++)
        for (uint32_t e = next->first[b]; e < next->first[b + 1]; e++)
            to[first[next->succ[e] + 1]++] = b;
    flow->back = (ir_graph){flow->count, first, to};
    return true;
}

/* The reversed graph with a node 0 that leads to every block without successors. */
static bool make_under(ir_flow *flow) {
    uint32_t *first = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 2);
    uint32_t *to =
        EV_NEW_ARRAY(flow->arena, uint32_t, flow->back.first[flow->count] + flow->count + 1);
    uint32_t edges = 0;
    if (!first || !to)
        return false;
    for (uint32_t b = 0; b < flow->count; b++) {
        if (successor_count(flow, b) == 0)
            to[edges++] = b + 1;
    }
    for (uint32_t b = 0; b < flow->count; b++) {
        first[b + 1] = edges;
        for (uint32_t e = flow->back.first[b]; e < flow->back.first[b + 1]; e++)
            to[edges++] = flow->back.succ[e] + 1;
    }
    first[flow->count + 1] = edges;
    ir_graph graph = {flow->count + 1, first, to};
    return ir_dominance_make(&graph, flow->arena, &flow->under);
}

uint32_t ir_flow_joins_at(const ir_flow *flow, uint32_t block) {
    uint32_t node = flow->under.idom[block + 1];
    return node == 0 || node == IR_NONE ? IR_NONE : node - 1;
}

/* ---- paths ------------------------------------------------------------------------------------
 */

/* Marks what paths from `block` enter, without passing through `stop` (IR_NONE: nowhere). */
static void mark_reached(const ir_flow *flow, uint32_t block, uint32_t stop, bool *reached) {
    for (uint32_t e = flow->next.first[block]; e < flow->next.first[block + 1]; e++)
        reached[flow->next.succ[e]] |= flow->next.succ[e] != stop;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < flow->count; b++) {
            for (uint32_t e = flow->next.first[b]; reached[b] && e < flow->next.first[b + 1]; e++) {
                uint32_t to = flow->next.succ[e];
                changed |= !reached[to] && to != stop;
                reached[to] |= to != stop;
            }
        }
    }
}

static bool make_paths(ir_flow *flow) {
    flow->reaches = EV_NEW_ARRAY(flow->arena, bool, (size_t)flow->count * flow->count + 1);
    for (uint32_t b = 0; flow->reaches && b < flow->count; b++)
        mark_reached(flow, b, IR_NONE, flow->reaches + (size_t)b * flow->count);
    return flow->reaches != NULL;
}

bool ir_flow_leads(const ir_flow *flow, uint32_t from, uint32_t to) {
    uint32_t a = flow->home[from], b = flow->home[to];
    return (a == b && from < to) || flow->reaches[(size_t)a * flow->count + b];
}

ev_status ir_flow_make(LLVMValueRef function, ev_arena *arena, ir_flow *out, ev_error *err) {
    *out = (ir_flow){.arena = arena, .function = function};
    if (!number_blocks(out) || !number_insns(out) || !make_next(out) || !make_back(out) ||
        !make_under(out))
        return ev_fail_memory(err, 1);
    for (uint32_t b = 0; b < out->count; b++) {
        if (!ir_dominance_reaches(&out->under, b + 1))
            return ev_fail(err, EV_BAD, "the kernel has a loop that never ends");
    }
    return make_paths(out) && ir_loops_make(out) ? EV_OK : ev_fail_memory(err, 1);
}

/* ---- regions ----------------------------------------------------------------------------------
 */

static uint32_t common_dominator(const ir_flow *flow, uint32_t a, uint32_t b) {
    while (!ir_dominance_over(&flow->over, a, b))
        a = flow->over.idom[a];
    return a;
}

/* Whether a block outside leads into the region behind its entry. */
static bool is_entered(const ir_flow *flow, const ir_region *region) {
    for (uint32_t b = 0; b < flow->count; b++) {
        for (uint32_t e = flow->back.first[b]; e < flow->back.first[b + 1]; e++) {
            if (region->holds[b] && b != region->entry && !region->holds[flow->back.succ[e]])
                return true;
        }
    }
    return false;
}

ev_status ir_region_around(const ir_flow *flow, uint32_t block, ir_region *out, ev_error *err) {
    ir_region region = {.entry = block, .exit = ir_flow_joins_at(flow, block)};
    region.holds = EV_NEW_ARRAY(flow->arena, bool, flow->count);
    if (!region.holds)
        return ev_fail_memory(err, flow->count);
    for (;;) {
        memset(region.holds, 0, flow->count * sizeof *region.holds);
        mark_reached(flow, region.entry, region.exit, region.holds);
        region.whole = region.holds[region.entry];
        region.holds[region.entry] = true;
        uint32_t entry = region.entry;
        for (uint32_t b = 0; b < flow->count; b++) {
            if (region.holds[b])
                entry = common_dominator(flow, entry, b);
        }
        if (entry == region.entry && !is_entered(flow, &region))
            break;
        if (entry == region.entry && region.exit == IR_NONE)
            break;
        if (entry == region.entry)
            region.exit = ir_flow_joins_at(flow, region.exit);
        region.entry = entry;
        while (region.exit != IR_NONE &&
               !ir_dominance_over(&flow->under, region.exit + 1, entry + 1))
            region.exit = ir_flow_joins_at(flow, region.exit);
    }
    *out = region;
    return EV_OK;
}
