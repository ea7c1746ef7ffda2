/* Speculation: finds the instructions that LLVM may move into another block before it selects
 * instructions.
 *
 * NVPTX runs SpeculativeExecution (LLVM 19, lib/Transforms/Scalar/SpeculativeExecution.cpp). The
 * pass moves the instructions of a short conditional block up into the block that branches to it.
 * Fusion of products and sums (direct_float.c) and shared divisors (direct_divisors.c) work within
 * one block, so such a move changes the bits.
 *
 * The costs are LLVM's and are only estimated here from below: an instruction of unknown behaviour
 * counts as movable at no cost. So the file finds a superset of the blocks that LLVM may empty.
 * `direct_unsettled` tells whether two values may or may not end up in one block, and the caller
 * then refuses. */
#include "ir/direct/direct_internal.h"

enum { COST_AT_MOST = 7, LEFT_AT_MOST = 5 };

/* Whether LLVM moves an instruction of this opcode, and its cost. Unknown instructions may move and
 * cost nothing. */
static direct_moves moves_alone(LLVMOpcode opcode, unsigned *cost) {
    switch (opcode) {
    case LLVMPHI:
    case LLVMLoad:
    case LLVMStore:
    case LLVMBr:
    case LLVMSwitch:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMFence:
        *cost = 0;
        return DIRECT_STAYS;
    case LLVMFDiv:
        *cost = 4;
        return DIRECT_MOVES;
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
        *cost = 1;
        return DIRECT_MOVES;
    case LLVMFNeg:
    case LLVMFCmp:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMGetElementPtr:
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
        *cost = 0;
        return DIRECT_MOVES;
    default:
        *cost = 0;
        return DIRECT_MAY_MOVE;
    }
}

/* Whether LLVM moves the value: only together with its operands. */
static direct_moves moves_of(const ir_direct *d, const direct_value *value, unsigned *cost) {
    direct_moves moves = moves_alone((LLVMOpcode)value->opcode, cost);
    unsigned count = (unsigned)LLVMGetNumOperands(value->value);
    for (unsigned i = 0; i < count && moves != DIRECT_STAYS; i++) {
        const direct_value *operand = direct_value_of(d, LLVMGetOperand(value->value, i));
        if (operand && operand->block == value->block && operand->moves < moves)
            moves = (direct_moves)operand->moves;
    }
    return moves;
}

static void consider(ir_direct *d, uint32_t from, uint32_t to) {
    unsigned left = 0, total = 0;
    for (uint32_t v = d->blocks[from].value; v < d->blocks[from].value_end; v++) {
        unsigned cost;
        d->values[v].moves = (uint8_t)moves_of(d, &d->values[v], &cost);
        left += d->values[v].moves == DIRECT_STAYS;
        total += d->values[v].moves == DIRECT_MOVES ? cost : 0;
    }
    if (left <= LEFT_AT_MOST && total <= COST_AT_MOST)
        d->blocks[from].into = to;
}

static bool leads_only_to(const ir_direct *d, uint32_t block, uint32_t to) {
    return d->blocks[block].edges == 1 && d->edges.items[d->blocks[block].edge].to == to;
}

/* Of a branch with two ways, whether the block on one leads to where the other leads without doing
 * anything. */
static bool is_aside(const ir_direct *d, const uint32_t *entries, uint32_t side, uint32_t other) {
    const direct_block *beside = &d->blocks[other];
    if (entries[side] != 1)
        return false;
    if (leads_only_to(d, side, other))
        return true;
    return beside->edges == 1 && entries[other] == 1 && beside->value_end - beside->value == 1 &&
           leads_only_to(d, side, d->edges.items[beside->edge].to);
}

void direct_note_moves(ir_direct *d) {
    uint32_t *entries = EV_NEW_ARRAY(d->arena, uint32_t, d->block_count + 1);
    if (!entries) {
        direct_no_memory(d);
        return;
    }
    for (uint32_t b = 0; b < d->block_count; b++)
        d->blocks[b].into = IR_NONE;
    for (uint32_t e = 0; e < d->edges.count; e++)
        entries[d->edges.items[e].to]++;
    for (uint32_t b = 0; b < d->block_count; b++) {
        if (d->blocks[b].edges != 2)
            continue;
        const direct_edge *edges = &d->edges.items[d->blocks[b].edge];
        for (uint32_t i = 0; i < 2; i++)
            if (edges[i].to != b && is_aside(d, entries, edges[i].to, edges[1 - i].to))
                consider(d, edges[i].to, b);
    }
}

/* The most blocks above that are examined. */
enum { CHAIN = 8 };

static bool may_reach(const ir_direct *d, const direct_value *value, uint32_t block) {
    uint32_t at = value->block;
    for (unsigned i = 0; i < CHAIN && value->moves != DIRECT_STAYS; i++) {
        at = d->blocks[at].into;
        if (at == block || at == IR_NONE)
            return at == block;
    }
    return false;
}

bool direct_unsettled(const ir_direct *d, const direct_value *a, const direct_value *b) {
    if (a->block == IR_NONE || b->block == IR_NONE)
        return false;
    if (a->block == b->block)
        return d->blocks[a->block].into != IR_NONE &&
               (a->moves != b->moves || a->moves == DIRECT_MAY_MOVE);
    return may_reach(d, a, b->block) || may_reach(d, b, a->block);
}
