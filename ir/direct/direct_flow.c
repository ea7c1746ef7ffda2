/* Blocks of the direct emitter: reachable blocks, their order, their edges, and the values at
 * their ends.
 *
 * Blocks are numbered in reverse postorder, so every dominator comes before the blocks that it
 * dominates. The text keeps the order of LLVM's function. An edge carries the copies that the PHIs
 * of its target need (SSA deconstruction by parallel copies; direct_phi.c coalesces them,
 * direct_print.c orders them). A branch on a constant has only the successor that is taken. A
 * switch becomes one predicate a case. */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* ---- reachable blocks -------------------------------------------------------------------------
 */

/* The successors of a block, each once, without those that a constant condition excludes. */
static uint32_t list_successors(LLVMValueRef last, LLVMBasicBlockRef *out, uint32_t room) {
    uint32_t count = 0, all = LLVMGetNumSuccessors(last), from = 0;
    if (LLVMGetInstructionOpcode(last) == LLVMBr && all == 2) {
        LLVMValueRef condition = LLVMGetCondition(last);
        if (LLVMIsAConstantInt(condition)) {
            from = LLVMConstIntGetZExtValue(condition) ? 0 : 1;
            all = from + 1;
        }
    }
    for (uint32_t i = from; i < all; i++) {
        LLVMBasicBlockRef to = LLVMGetSuccessor(last, i);
        uint32_t k = 0;
        while (k < count && out[k] != to)
            k++;
        if (k == count && count < room)
            out[count++] = to;
    }
    return count;
}

typedef struct walk {
    LLVMBasicBlockRef *all;  /* in the function's order */
    LLVMBasicBlockRef *succ; /* of all, in one array */
    uint32_t *first;         /* [count + 1] into it */
    uint32_t *rank;          /* in reverse postorder; IR_NONE: not reached */
    uint32_t count;
} walk;

static bool walk_make(ir_direct *d, walk *w) {
    w->count = LLVMCountBasicBlocks(d->function);
    w->all = EV_NEW_ARRAY(d->arena, LLVMBasicBlockRef, w->count);
    w->first = EV_NEW_ARRAY(d->arena, uint32_t, w->count + 1);
    w->rank = EV_NEW_ARRAY(d->arena, uint32_t, w->count);
    if (!w->all || !w->first || !w->rank || !ir_map_reserve(&d->block_map, d->arena, w->count))
        return false;
    LLVMGetBasicBlocks(d->function, w->all);
    uint32_t edges = 0;
    for (uint32_t b = 0; b < w->count; b++) {
        ir_map_put(&d->block_map, w->all[b], b);
        edges += LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(w->all[b]));
        w->rank[b] = IR_NONE;
    }
    w->succ = EV_NEW_ARRAY(d->arena, LLVMBasicBlockRef, edges + 1);
    if (!w->succ)
        return false;
    uint32_t used = 0;
    for (uint32_t b = 0; b < w->count; b++) {
        w->first[b] = used;
        used +=
            list_successors(LLVMGetBasicBlockTerminator(w->all[b]), w->succ + used, edges - used);
    }
    w->first[w->count] = used;
    return true;
}

/* A depth-first search that visits the last successor first, so that the first successor follows
 * its block. */
static bool walk_rank(ir_direct *d, walk *w) {
    uint32_t *stack = EV_NEW_ARRAY(d->arena, uint32_t, w->count + 1);
    uint32_t *next = EV_NEW_ARRAY(d->arena, uint32_t, w->count + 1);
    uint32_t *post = EV_NEW_ARRAY(d->arena, uint32_t, w->count + 1);
    if (!stack || !next || !post)
        return false;
    uint32_t depth = 1, done = 0;
    stack[0] = 0;
    w->rank[0] = 0;
    while (depth > 0) {
        uint32_t b = stack[depth - 1];
        if (next[b] == w->first[b + 1] - w->first[b]) {
            post[done++] = b;
            depth--;
            continue;
        }
        uint32_t to = ir_map_get(&d->block_map, w->succ[w->first[b + 1] - 1 - next[b]++]);
        if (w->rank[to] != IR_NONE)
            continue;
        w->rank[to] = 0;
        stack[depth++] = to;
    }
    for (uint32_t i = 0; i < done; i++)
        w->rank[post[i]] = done - 1 - i;
    d->block_count = done;
    return true;
}

static void note_edges(ir_direct *d, const walk *w, uint32_t b) {
    direct_block *block = &d->blocks[w->rank[b]];
    block->edge = d->edges.count;
    block->edges = w->first[b + 1] - w->first[b];
    for (uint32_t e = w->first[b]; e < w->first[b + 1]; e++) {
        direct_edge edge = {.to = w->rank[ir_map_get(&d->block_map, w->succ[e])]};
        DIRECT_PUSH(d, d->edges, edge);
    }
}

static bool note_dominance(ir_direct *d) {
    uint32_t *first = EV_NEW_ARRAY(d->arena, uint32_t, d->block_count + 1);
    uint32_t *succ = EV_NEW_ARRAY(d->arena, uint32_t, d->edges.count + 1);
    if (!first || !succ)
        return false;
    uint32_t used = 0;
    for (uint32_t b = 0; b < d->block_count; b++) {
        first[b] = used;
        for (uint32_t e = 0; e < d->blocks[b].edges; e++)
            succ[used++] = d->edges.items[d->blocks[b].edge + e].to;
    }
    first[d->block_count] = used;
    ir_graph graph = {.count = d->block_count, .first = first, .succ = succ};
    return ir_dominance_make(&graph, d->arena, &d->dominance);
}

/* The map gives ranks of blocks only after all edges are noted. */
void direct_find_blocks(ir_direct *d) {
    walk w = {0};
    if (!walk_make(d, &w) || !walk_rank(d, &w)) {
        direct_no_memory(d);
        return;
    }
    d->blocks = EV_NEW_ARRAY(d->arena, direct_block, d->block_count);
    d->order = EV_NEW_ARRAY(d->arena, uint32_t, d->block_count);
    if (!d->blocks || !d->order) {
        direct_no_memory(d);
        return;
    }
    uint32_t placed = 0;
    for (uint32_t b = 0; b < w.count; b++) {
        if (w.rank[b] == IR_NONE)
            continue;
        direct_block *block = &d->blocks[w.rank[b]];
        block->block = w.all[b];
        block->last = LLVMGetBasicBlockTerminator(w.all[b]);
        block->place = placed;
        d->order[placed++] = w.rank[b];
        note_edges(d, &w, b);
    }
    for (uint32_t b = 0; b < w.count; b++)
        ir_map_put(&d->block_map, w.all[b], w.rank[b]);
    if (d->status == EV_OK && !note_dominance(d))
        direct_no_memory(d);
}

/* ---- ends of blocks ---------------------------------------------------------------------------
 */

static LLVMValueRef incoming(LLVMValueRef phi, LLVMBasicBlockRef from, unsigned *guess) {
    unsigned count = LLVMCountIncoming(phi);
    if (*guess < count && LLVMGetIncomingBlock(phi, *guess) == from)
        return LLVMGetIncomingValue(phi, *guess);
    for (unsigned i = 0; i < count; i++) {
        if (LLVMGetIncomingBlock(phi, i) != from)
            continue;
        *guess = i;
        return LLVMGetIncomingValue(phi, i);
    }
    return NULL;
}

/* The value that a PHI takes: a register, or a literal of its address space. */
static direct_operand copied(ir_direct *d, direct_operand from, direct_operand phi,
                             bool is_pointer) {
    if (from.kind == DIRECT_UNDEF)
        return from;
    if (is_pointer)
        from = direct_to_space(d, from, phi.space);
    if (from.kind == DIRECT_SYMBOL || (from.kind == DIRECT_REG && from.imm != 0))
        from = direct_register_of(d, from);
    return from;
}

static void copy_into(ir_direct *d, LLVMValueRef phi, LLVMValueRef from, direct_edge *edge) {
    const direct_value *value = direct_value_of(d, phi);
    bool is_pointer = LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMPointerTypeKind;
    direct_operand room[DIRECT_LEAVES];
    unsigned count;
    const direct_operand *parts = direct_parts(d, from, room, &count);
    for (unsigned i = 0; i < count && d->status == EV_OK; i++) {
        direct_operand source = copied(d, parts[i], value->parts[i], is_pointer);
        uint32_t reg = value->parts[i].reg;
        if (source.kind == DIRECT_UNDEF)
            continue;
        direct_copy copy = {
            .phi = reg, .from = source, .next_of_phi = d->registers.items[reg].copies};
        d->registers.items[reg].copies = d->copies.count;
        DIRECT_PUSH(d, d->copies, copy);
        edge->count++;
    }
}

static void copy_along(ir_direct *d, LLVMBasicBlockRef from, direct_edge *edge) {
    unsigned guess = 0;
    edge->first = d->copies.count;
    LLVMBasicBlockRef to = d->blocks[edge->to].block;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(to);
         phi && LLVMGetInstructionOpcode(phi) == LLVMPHI && d->status == EV_OK;
         phi = LLVMGetNextInstruction(phi)) {
        LLVMValueRef value = incoming(phi, from, &guess);
        if (value)
            copy_into(d, phi, value, edge);
    }
}

/* One predicate a case; operands of a switch are its value, the default, then pairs. */
static void test_cases(ir_direct *d, direct_block *block) {
    LLVMValueRef last = block->last;
    direct_operand value = direct_extended(d, direct_part(d, LLVMGetOperand(last, 0)), false);
    unsigned count = (unsigned)LLVMGetNumOperands(last) / 2 - 1;
    static const char *const ops[] = {"xor.pred", "setp.eq.s16", "setp.eq.s32", "setp.eq.s64"};
    direct_operand *tests = EV_NEW_ARRAY(d->arena, direct_operand, count + 1);
    if (!tests || value.cls == DIRECT_P) {
        direct_refuse(d, last, "a switch of one bit");
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        direct_operand by = direct_part(d, LLVMGetOperand(last, 2 * i + 2));
        by.cls = value.cls;
        by = direct_extended(d, by, false);
        tests[i] = direct_register_of(d, direct_pure2(d, ops[value.cls], DIRECT_P, value, by));
    }
    block->test = d->operands.count;
    for (unsigned i = 0; i < count; i++)
        DIRECT_PUSH(d, d->operands, tests[i]);
}

void direct_end_block(ir_direct *d, uint32_t b) {
    direct_block *block = &d->blocks[b];
    switch (LLVMGetInstructionOpcode(block->last)) {
    case LLVMBr:
        if (block->edges == 2)
            block->condition = direct_register_of(d, direct_part(d, LLVMGetCondition(block->last)));
        break;
    case LLVMSwitch:
        if (block->edges > 1)
            test_cases(d, block);
        break;
    case LLVMRet:
    case LLVMUnreachable:
        break;
    default:
        direct_refuse(d, block->last, "this end of a block");
    }
    for (uint32_t e = 0; e < block->edges && d->status == EV_OK; e++)
        copy_along(d, block->block, &d->edges.items[block->edge + e]);
}
