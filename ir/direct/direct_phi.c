/* Registers of the direct emitter: dead code, liveness, and the PHIs that share a register with
 * the values copied into them.
 *
 * Need is propagated backward from stores, branches and barriers; everything else is dead and is
 * not printed. Liveness is computed one use at a time, backward from the use to the definition,
 * which SSA form makes possible (Appel and Palsberg, "Modern Compiler Implementation", 2nd
 * edition, 19.6).
 *
 * A PHI is defined at the begin of its block, and its operands are read at the ends of the
 * preceding blocks. Coalescing joins the classes of a PHI and of a copied value if no two members
 * are live at once. Two SSA values interfere only if the definition of one dominates the
 * definition of the other and the first is live there (Budimlic and others, "Fast Copy Coalescing
 * and Live-Range Identification", PLDI 2002). Classes are a union-find forest. */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* ---- what is needed ---------------------------------------------------------------------------
 */

typedef struct needs {
    uint32_t *stack;
    uint32_t depth;
} needs;

static void need(ir_direct *d, needs *n, const direct_operand *operand) {
    if (operand->kind != DIRECT_REG || d->registers.items[operand->reg].needed)
        return;
    d->registers.items[operand->reg].needed = true;
    n->stack[n->depth++] = operand->reg;
}

static void need_sources(ir_direct *d, needs *n, const direct_insn *insn) {
    for (unsigned i = 0; i < insn->sources; i++)
        need(d, n, &d->operands.items[insn->first + insn->results + i]);
}

static unsigned test_count(const direct_block *block) {
    return block->test ? (unsigned)LLVMGetNumOperands(block->last) / 2 - 1 : 0;
}

static void need_ends(ir_direct *d, needs *n) {
    for (uint32_t b = 0; b < d->block_count; b++) {
        const direct_block *block = &d->blocks[b];
        need(d, n, &block->condition);
        for (unsigned i = 0; i < test_count(block); i++)
            need(d, n, &d->operands.items[block->test + i]);
    }
}

static void find_needed(ir_direct *d) {
    needs n = {.stack = EV_NEW_ARRAY(d->arena, uint32_t, d->registers.count + 1)};
    if (!n.stack) {
        direct_no_memory(d);
        return;
    }
    need_ends(d, &n);
    for (uint32_t i = 0; i < d->insns.count; i++)
        if (d->insns.items[i].needed)
            need_sources(d, &n, &d->insns.items[i]);
    while (n.depth > 0) {
        const direct_register *reg = &d->registers.items[n.stack[--n.depth]];
        if (reg->insn != IR_NONE && !d->insns.items[reg->insn].needed) {
            d->insns.items[reg->insn].needed = true;
            need_sources(d, &n, &d->insns.items[reg->insn]);
        }
        /* all that it writes has a register */
        for (unsigned i = 0; reg->insn != IR_NONE && i < d->insns.items[reg->insn].results; i++)
            d->registers.items[d->operands.items[d->insns.items[reg->insn].first + i].reg].needed =
                true;
        for (uint32_t c = reg->copies; c != IR_NONE; c = d->copies.items[c].next_of_phi)
            need(d, &n, &d->copies.items[c].from);
    }
}

/* ---- uses and liveness ------------------------------------------------------------------------
 */

static void add_use(ir_direct *d, const direct_operand *operand, uint32_t block, uint32_t at) {
    if (operand->kind != DIRECT_REG)
        return;
    direct_register *reg = &d->registers.items[operand->reg];
    direct_use use = {.block = block, .at = at, .next = reg->uses};
    reg->uses = d->uses.count;
    DIRECT_PUSH(d, d->uses, use);
}

/* Copies are read at the block's end, and its condition after them. */
static void list_uses_of_block(ir_direct *d, uint32_t b) {
    const direct_block *block = &d->blocks[b];
    for (uint32_t i = block->first; i < block->end; i++) {
        const direct_insn *insn = &d->insns.items[i];
        for (unsigned k = 0; insn->needed && k < insn->sources; k++)
            add_use(d, &d->operands.items[insn->first + insn->results + k], b, i);
    }
    for (uint32_t e = 0; e < block->edges; e++) {
        const direct_edge *edge = &d->edges.items[block->edge + e];
        for (uint32_t c = edge->first; c < edge->first + edge->count; c++)
            if (d->registers.items[d->copies.items[c].phi].needed)
                add_use(d, &d->copies.items[c].from, b, block->end);
    }
    add_use(d, &block->condition, b, block->end + 1);
    for (unsigned i = 0; i < test_count(block); i++)
        add_use(d, &d->operands.items[block->test + i], b, block->end + 1);
}

bool direct_live_into(const ir_direct *d, uint32_t reg, uint32_t block) {
    return d->live[(size_t)block * d->live_words + reg / 64] >> (reg % 64) & 1;
}

static bool live_out_of(const ir_direct *d, uint32_t reg, uint32_t b) {
    const direct_block *block = &d->blocks[b];
    for (uint32_t e = 0; e < block->edges; e++)
        if (direct_live_into(d, reg, d->edges.items[block->edge + e].to))
            return true;
    return false;
}

typedef struct before {
    uint32_t *first, *blocks; /* of each block, those before it */
    uint32_t *stack;
} before;

static bool before_make(ir_direct *d, before *p) {
    p->first = EV_NEW_ARRAY(d->arena, uint32_t, d->block_count + 2);
    p->blocks = EV_NEW_ARRAY(d->arena, uint32_t, d->edges.count + 1);
    p->stack = EV_NEW_ARRAY(d->arena, uint32_t, d->block_count + 1);
    if (!p->first || !p->blocks || !p->stack)
        return false;
    for (uint32_t e = 0; e < d->edges.count; e++)
        p->first[d->edges.items[e].to + 2]++;
    for (uint32_t b = 2; b < d->block_count + 2; b++)
        p->first[b] += p->first[b - 1];
    for (uint32_t b = 0; b < d->block_count; b++)
        for (uint32_t e = 0; e < d->blocks[b].edges; e++)
            p->blocks[p->first[d->edges.items[d->blocks[b].edge + e].to + 1]++] = b;
    return true;
}

/* Notes the block, which is then on the stack, once. */
static uint32_t enter(ir_direct *d, before *p, uint32_t depth, uint32_t reg, uint32_t block) {
    uint64_t *word = &d->live[(size_t)block * d->live_words + reg / 64];
    if (*word >> (reg % 64) & 1)
        return depth;
    *word |= (uint64_t)1 << (reg % 64);
    p->stack[depth] = block;
    return depth + 1;
}

/* Marks the register as live from its definition to one use in `block`. */
static void make_live(ir_direct *d, before *p, uint32_t reg, uint32_t block) {
    uint32_t home = d->registers.items[reg].block;
    uint32_t depth = block == home ? 0 : enter(d, p, 0, reg, block);
    while (depth > 0) {
        uint32_t b = p->stack[--depth];
        for (uint32_t i = p->first[b]; i < p->first[b + 1]; i++)
            if (p->blocks[i] != home)
                depth = enter(d, p, depth, reg, p->blocks[i]);
    }
}

static void find_live(ir_direct *d) {
    for (uint32_t b = 0; b < d->block_count; b++)
        list_uses_of_block(d, b);
    before p;
    d->live_words = d->registers.count / 64 + 1;
    d->live = EV_NEW_ARRAY(d->arena, uint64_t, (size_t)d->live_words * d->block_count);
    if (!d->live || !before_make(d, &p)) {
        direct_no_memory(d);
        return;
    }
    for (uint32_t r = 0; r < d->registers.count; r++)
        for (uint32_t u = d->registers.items[r].uses; u != IR_NONE; u = d->uses.items[u].next)
            make_live(d, &p, r, d->uses.items[u].block);
}

/* ---- sharing registers ------------------------------------------------------------------------
 */

uint32_t direct_class_of(ir_direct *d, uint32_t reg) {
    direct_register *items = d->registers.items;
    while (items[reg].parent != reg) {
        items[reg].parent = items[items[reg].parent].parent;
        reg = items[reg].parent;
    }
    return reg;
}

/* The position of a definition among its block's instructions. PHIs come before all. */
static int64_t place_of(const ir_direct *d, const direct_register *reg) {
    return reg->insn == IR_NONE ? (int64_t)d->blocks[reg->block].first - 1 : (int64_t)reg->insn;
}

static bool dominates(const ir_direct *d, const direct_register *a, const direct_register *b) {
    if (a->block == b->block)
        return place_of(d, a) <= place_of(d, b);
    return ir_dominance_over(&d->dominance, a->block, b->block);
}

/* Whether `a`, whose definition comes first, is still read after `b`'s. */
static bool outlives(const ir_direct *d, uint32_t a, const direct_register *b) {
    int64_t place = place_of(d, b);
    for (uint32_t u = d->registers.items[a].uses; u != IR_NONE; u = d->uses.items[u].next)
        if (d->uses.items[u].block == b->block && (int64_t)d->uses.items[u].at > place)
            return true;
    return live_out_of(d, a, b->block);
}

static bool interfere(const ir_direct *d, uint32_t a, uint32_t b) {
    const direct_register *x = &d->registers.items[a], *y = &d->registers.items[b];
    if (dominates(d, x, y) && outlives(d, a, y))
        return true;
    return dominates(d, y, x) && outlives(d, b, x);
}

static void try_join(ir_direct *d, uint32_t *next, uint32_t a, uint32_t b) {
    a = direct_class_of(d, a);
    b = direct_class_of(d, b);
    if (a == b || d->registers.items[a].cls != d->registers.items[b].cls)
        return;
    uint32_t x = a, y = b;
    do {
        do {
            if (interfere(d, x, y))
                return;
            y = next[y];
        } while (y != b);
        x = next[x];
    } while (x != a);
    d->registers.items[b].parent = a;
    uint32_t after = next[a];
    next[a] = next[b];
    next[b] = after;
}

/* Coalesces the copies in loops first, since these run most often. */
static void join_classes(ir_direct *d) {
    uint32_t *next = EV_NEW_ARRAY(d->arena, uint32_t, d->registers.count + 1);
    if (!next) {
        direct_no_memory(d);
        return;
    }
    d->ring = next;
    for (uint32_t r = 0; r < d->registers.count; r++)
        next[r] = r;
    for (int loops = 1; loops >= 0; loops--)
        for (uint32_t b = d->block_count; b-- > 0;)
            for (uint32_t e = d->blocks[b].edge; e < d->blocks[b].edge + d->blocks[b].edges; e++) {
                const direct_edge *edge = &d->edges.items[e];
                if ((edge->to <= b) != loops)
                    continue;
                for (uint32_t c = edge->first; c < edge->first + edge->count; c++) {
                    const direct_copy *copy = &d->copies.items[c];
                    if (copy->from.kind == DIRECT_REG && d->registers.items[copy->phi].needed)
                        try_join(d, next, copy->phi, copy->from.reg);
                }
            }
}

void direct_allocate(ir_direct *d) {
    find_needed(d);
    if (d->status == EV_OK)
        find_live(d);
    if (d->status == EV_OK)
        join_classes(d);
}
