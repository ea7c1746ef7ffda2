/* Pipeline, guarded: loads under conditions run a turn ahead as well.
 *
 * The turn's first part, down to the last load that is taken, is written twice more: before the
 * loop for the first turn, and at the beginning of each turn for the next one. The copies have the
 * branches, the loads, and the PHIs that only choose among what was loaded; the conditions are
 * computed for the copy's own turn. A PHI of the loop carries each value that the turn computes
 * with. In the next turn the same conditions hold, so what was not loaded is not used.
 *
 * A block is open if each path to it from the turn's beginning has conditions that are known ahead.
 * Loads are taken from open blocks alone. */
#include "ir/structure/pipeline_internal.h"

#include "ir/structure/analyses/vary_internal.h"

typedef struct guarding {
    piping *p;
    uint32_t entry;          /* the block where a turn begins, behind the test */
    bool *open;              /* by block */
    bool *copied;            /* by block */
    bool *loaded;            /* by instruction: a load that is taken, or made of such ones alone */
    LLVMValueRef *made;      /* by instruction: in the copy that is being written */
    LLVMBasicBlockRef *copy; /* by block */
    LLVMValueRef *slot;      /* by instruction: where a copy leaves a carried value; else NULL */
    uint32_t carried[PIPING_LOADS];
    uint32_t count;
} guarding;

/* What one copy gives, in the order of `carried`, where all of its paths meet. */
typedef struct given {
    LLVMValueRef values[PIPING_LOADS];
    LLVMBasicBlockRef join;
} given;

/* ---- what is copied ---------------------------------------------------------------------------
 */

static bool branches_as_known(const guarding *g, uint32_t block) {
    LLVMValueRef last = ir_flow_last(&g->p->flow, block);
    return LLVMIsABranchInst(last) &&
           (!LLVMIsConditional(last) || piping_knows(g->p, LLVMGetCondition(last)));
}

static bool is_open(const guarding *g, uint32_t block) {
    const ir_flow *flow = &g->p->flow;
    uint32_t loop = ir_loop_of(flow, block);
    if (loop == IR_NONE || &flow->loops[loop] != g->p->loop || block == g->p->loop->header)
        return false;
    for (uint32_t i = flow->back.first[block]; i < flow->back.first[block + 1]; i++) {
        uint32_t from = flow->back.succ[i];
        if (block == g->entry ? from != g->p->loop->header
                              : !g->open[from] || !branches_as_known(g, from))
            return false;
    }
    return true;
}

static void list_loads(guarding *g) {
    piping *p = g->p;
    for (uint32_t i = 0; i < p->flow.insn_count && p->count < PIPING_LOADS; i++) {
        LLVMValueRef load = p->flow.insns[i], base = NULL;
        if (!g->open[p->flow.home[i]] || ir_deed_of(load) != IR_DEED_LOAD ||
            !ir_reads_only(&p->flow, load, &base) || !piping_knows(p, LLVMGetOperand(load, 0)))
            continue;
        p->loads[p->count++] = (early_load){.load = load};
        g->loaded[i] = true;
    }
}

static bool is_loaded(const guarding *g, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&g->p->flow, value);
    return insn != IR_NONE && g->loaded[insn];
}

/* A part of something loaded, or the same bits as another type. */
static bool is_view(const guarding *g, LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMExtractElement:
        return is_loaded(g, LLVMGetOperand(value, 0)) && LLVMIsConstant(LLVMGetOperand(value, 1));
    case LLVMExtractValue:
    case LLVMBitCast:
    case LLVMFreeze:
        return is_loaded(g, LLVMGetOperand(value, 0));
    default:
        return false;
    }
}

/* A PHI that chooses among loaded values and others that are known ahead. */
static bool is_choice(const guarding *g, LLVMValueRef phi) {
    bool some = false;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        bool loaded = is_loaded(g, value);
        if (!loaded && piping_holds(g->p, value))
            return false;
        some = some || loaded;
    }
    return some;
}

/* Instructions stand in the order of the blocks, so an operand comes before its use. */
static void follow_loads(guarding *g) {
    const ir_flow *flow = &g->p->flow;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef value = flow->insns[i];
        if (!g->open[flow->home[i]] || g->loaded[i])
            continue;
        g->loaded[i] = LLVMIsAPHINode(value) ? flow->home[i] != g->entry && is_choice(g, value)
                                             : is_view(g, value);
    }
}

static bool is_computed_with(const guarding *g, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        if (!is_loaded(g, LLVMGetUser(use)))
            return true;
    }
    return false;
}

static ev_status list_carried(guarding *g, ev_error *err) {
    const ir_flow *flow = &g->p->flow;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (!g->loaded[i] || !is_computed_with(g, flow->insns[i]))
            continue;
        if (g->count == PIPING_LOADS)
            return ev_fail(err, EV_BAD, "the loop would carry more than %d loaded values",
                           PIPING_LOADS);
        g->carried[g->count++] = i;
    }
    return g->count > 0 ? EV_OK
                        : ev_fail(err, EV_BAD,
                                  "no load from an argument that the kernel does not write runs "
                                  "under conditions and at an address that are known ahead");
}

/* The open blocks that lead to a loaded value within the turn. */
static void mark_copied(guarding *g) {
    const ir_flow *flow = &g->p->flow;
    for (uint32_t b = flow->count; b-- > 0;) {
        for (uint32_t i = flow->first[b]; i < flow->first[b + 1]; i++)
            g->copied[b] = g->copied[b] || g->loaded[i];
        for (uint32_t i = flow->next.first[b]; i < flow->next.first[b + 1] && g->open[b]; i++)
            g->copied[b] =
                g->copied[b] || (flow->next.succ[i] > b && g->copied[flow->next.succ[i]]);
    }
}

static ev_status choose(guarding *g, ev_error *err) {
    const ir_flow *flow = &g->p->flow;
    uint32_t header = g->p->loop->header, at = flow->next.first[header];
    g->entry = flow->next.succ[at];
    if (!g->p->loop->holds[g->entry])
        g->entry = flow->next.succ[at + 1];
    ev_arena *arena = g->p->s->arena;
    g->open = EV_NEW_ARRAY(arena, bool, flow->count);
    g->copied = EV_NEW_ARRAY(arena, bool, flow->count);
    g->copy = EV_NEW_ARRAY(arena, LLVMBasicBlockRef, flow->count);
    g->loaded = EV_NEW_ARRAY(arena, bool, flow->insn_count);
    g->made = EV_NEW_ARRAY(arena, LLVMValueRef, flow->insn_count);
    g->slot = EV_NEW_ARRAY(arena, LLVMValueRef, flow->insn_count);
    if (!g->slot || !g->open || !g->copied || !g->copy || !g->loaded || !g->made)
        return ev_fail_memory(err, flow->insn_count);
    for (uint32_t b = 0; b < flow->count; b++)
        g->open[b] = is_open(g, b);
    list_loads(g);
    follow_loads(g);
    EV_TRY(list_carried(g, err));
    mark_copied(g);
    return EV_OK;
}

/* ---- a copy -----------------------------------------------------------------------------------
 */

static void write_load(guarding *g, LLVMValueRef load, uint32_t insn, turn at) {
    piping *p = g->p;
    early_load *it = &p->loads[piping_find(p, load) - p->loads];
    LLVMValueRef made = piping_clone_load(p, load, piping_write(p, LLVMGetOperand(load, 0), at));
    if (at == FIRST)
        it->before = made;
    else
        it->next = made;
    g->made[insn] = made;
}

static void write_view(guarding *g, LLVMValueRef value, uint32_t insn) {
    LLVMValueRef made = LLVMInstructionClone(value);
    LLVMSetOperand(made, 0, g->made[ir_flow_insn(&g->p->flow, LLVMGetOperand(value, 0))]);
    LLVMInsertIntoBuilder(g->p->builder, made);
    g->made[insn] = made;
}

static void write_choice(guarding *g, LLVMValueRef phi, uint32_t insn) {
    const ir_flow *flow = &g->p->flow;
    LLVMValueRef made = LLVMBuildPhi(g->p->builder, LLVMTypeOf(phi), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        LLVMBasicBlockRef from = g->copy[ir_flow_block(flow, LLVMGetIncomingBlock(phi, i))];
        if (is_loaded(g, value))
            value = g->made[ir_flow_insn(flow, value)];
        LLVMAddIncoming(made, &value, &from, 1);
    }
    g->made[insn] = made;
}

/* Where a copied block's edge leads to: to a copy, or out of the copies. */
static LLVMBasicBlockRef target(const guarding *g, uint32_t block, LLVMBasicBlockRef join) {
    return g->copied[block] ? g->copy[block] : join;
}

static void write_branch(guarding *g, uint32_t block, turn at, LLVMBasicBlockRef join) {
    const ir_flow *flow = &g->p->flow;
    LLVMBasicBlockRef to[2] = {join, join};
    uint32_t count = 0;
    for (uint32_t i = flow->next.first[block]; i < flow->next.first[block + 1] && count < 2; i++)
        to[count++] = target(g, flow->next.succ[i], join);
    if (count < 2 || to[0] == to[1]) {
        LLVMBuildBr(g->p->builder, to[0]);
        return;
    }
    LLVMValueRef last = ir_flow_last(flow, block);
    for (unsigned i = 0; i < 2; i++)
        to[i] = target(g, ir_flow_block(flow, LLVMGetSuccessor(last, i)), join);
    LLVMValueRef test = piping_write(g->p, LLVMGetCondition(last), at);
    LLVMBuildCondBr(g->p->builder, test, to[0], to[1]);
}

static void write_block(guarding *g, uint32_t block, turn at) {
    const ir_flow *flow = &g->p->flow;
    LLVMPositionBuilderAtEnd(g->p->builder, g->copy[block]);
    for (uint32_t i = flow->first[block]; i < flow->first[block + 1]; i++) {
        LLVMValueRef value = flow->insns[i];
        if (!g->loaded[i])
            continue;
        if (piping_find(g->p, value))
            write_load(g, value, i, at);
        else if (LLVMIsAPHINode(value))
            write_choice(g, value, i);
        else
            write_view(g, value, i);
    }
    for (uint32_t i = flow->first[block]; i < flow->first[block + 1]; i++) {
        if (g->slot[i])
            LLVMBuildStore(g->p->builder, g->made[i], g->slot[i]);
    }
}

/* A variable for each carried value, which LLVM makes PHIs of. */
static void make_slots(guarding *g) {
    const ir_flow *flow = &g->p->flow;
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(flow->function));
    LLVMPositionBuilderBefore(g->p->builder, first);
    for (uint32_t i = 0; i < g->count; i++)
        g->slot[g->carried[i]] =
            LLVMBuildAlloca(g->p->builder, LLVMTypeOf(flow->insns[g->carried[i]]), "");
}

/* Writes the copy for a turn behind `from`, which has no terminator yet and gets the test whether
 * there is such a turn. All paths meet in out->join, before the block `before`; the caller writes
 * the terminator of out->join. */
static void write_copy(guarding *g, LLVMBasicBlockRef from, LLVMBasicBlockRef before, turn at,
                       given *out) {
    piping *p = g->p;
    const ir_flow *flow = &p->flow;
    LLVMContextRef context = p->s->base->context;
    out->join = LLVMInsertBasicBlockInContext(context, before, "");
    for (uint32_t b = 0; b < flow->count; b++)
        g->copy[b] = g->copied[b] ? LLVMInsertBasicBlockInContext(context, out->join, "") : NULL;
    make_slots(g);
    LLVMPositionBuilderAtEnd(p->builder, from);
    LLVMBuildCondBr(p->builder, piping_goes_on(p, at), g->copy[g->entry], out->join);
    for (uint32_t b = 0; b < flow->count; b++) {
        if (g->copied[b]) {
            write_block(g, b, at);
            write_branch(g, b, at, out->join);
        }
    }
    LLVMPositionBuilderAtEnd(p->builder, out->join);
    for (uint32_t i = 0; i < g->count; i++) {
        LLVMTypeRef type = LLVMTypeOf(flow->insns[g->carried[i]]);
        out->values[i] = LLVMBuildLoad2(p->builder, type, g->slot[g->carried[i]], "");
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* PHIs of a block, from its edge `before`, take that edge from `join`. */
static void renew_phis(const guarding *g, uint32_t block, LLVMBasicBlockRef before,
                       LLVMBasicBlockRef join) {
    const ir_flow *flow = &g->p->flow;
    for (uint32_t i = flow->first[block]; LLVMIsAPHINode(flow->insns[i]); i++)
        ir_structure_renew_phi(g->p->builder, flow->insns[i], before, join);
}

static void write_first(guarding *g, given *out) {
    piping *p = g->p;
    LLVMBasicBlockRef before = p->flow.blocks[p->loop->preheader];
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    write_copy(g, before, piping_header(p), FIRST, out);
    LLVMBuildBr(p->builder, piping_header(p));
}

static void write_next(guarding *g, given *out) {
    piping *p = g->p;
    LLVMBasicBlockRef body = p->flow.blocks[g->entry];
    LLVMBasicBlockRef asks = LLVMInsertBasicBlockInContext(p->s->base->context, body, "");
    write_copy(g, asks, body, NEXT, out);
    LLVMBuildBr(p->builder, body);
    LLVMValueRef last = LLVMGetBasicBlockTerminator(piping_header(p));
    for (unsigned i = 0; i < 2; i++) {
        if (LLVMGetSuccessor(last, i) == body)
            LLVMSetSuccessor(last, i, asks);
    }
}

/* Gives the turn what was loaded ahead in place of its own loads, which nothing uses then. */
static void carry(guarding *g, const given *first, const given *next) {
    piping *p = g->p;
    LLVMValueRef phis[PIPING_LOADS];
    for (uint32_t i = 0; i < g->count; i++) {
        LLVMPositionBuilderBefore(p->builder, LLVMGetFirstInstruction(piping_header(p)));
        phis[i] = LLVMBuildPhi(p->builder, LLVMTypeOf(p->flow.insns[g->carried[i]]), "");
        LLVMValueRef values[] = {first->values[i], next->values[i]};
        LLVMBasicBlockRef from[] = {first->join, p->flow.blocks[p->loop->latch]};
        LLVMAddIncoming(phis[i], values, from, 2);
    }
    for (uint32_t i = 0; i < g->count; i++)
        LLVMReplaceAllUsesWith(p->flow.insns[g->carried[i]], phis[i]);
}

ev_status piping_guarded(piping *p, ev_error *err) {
    guarding g = {.p = p};
    given first, next;
    EV_TRY(choose(&g, err));
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    write_first(&g, &first);
    write_next(&g, &next);
    renew_phis(&g, p->loop->header, p->flow.blocks[p->loop->preheader], first.join);
    renew_phis(&g, g.entry, piping_header(p), next.join);
    carry(&g, &first, &next);
    return EV_OK;
}
