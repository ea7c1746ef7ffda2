/* Group-loads: several loads go out before the first of their values is used.
 *
 * A thread waits at the first use of a loaded value, and the assembler moves few loads ahead of
 * that, as they would take registers. So what uses loaded values is moved behind the loads that
 * follow, up to a number of loads. Loads and all that has an effect keep their order.
 *
 * Code under a condition that only computes and loads (a tap of a stencil that may lie outside)
 * would end a group. So such a block keeps its loads alone: what they need moves before the branch,
 * and what uses them behind it, where the condition chooses whether the results are taken. The
 * assembler makes predicated loads of the block in place of a branch. The same memory is read as
 * before. */
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

enum {
    MOST_CONVERTED = 24, /* instructions of a block that runs without need */
    MOST_LOADS = 256     /* of a group */
};

typedef struct grouping {
    ir_structure *s;
    ir_flow flow;
    uint32_t most; /* loads of a group */
    bool *loaded;  /* by instruction: its value depends on a load of the block, or of the group */
    LLVMBuilderRef builder;
} grouping;

/* A branch around one block. */
typedef struct detour {
    uint32_t before, inside, behind;
    LLVMValueRef condition;
    bool on_true; /* the inside runs where the condition holds */
} detour;

static bool is_plain_load(LLVMValueRef insn) {
    return LLVMIsALoadInst(insn) && ir_deed_of(insn) == IR_DEED_LOAD;
}

static bool has_ways_in(const grouping *c, uint32_t block, uint32_t count) {
    return c->flow.back.first[block + 1] - c->flow.back.first[block] == count;
}

/* Whether an instruction of the block depends on its loads. */
static bool depends_on_load(const grouping *c, uint32_t block, LLVMValueRef insn) {
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(insn); k++) {
        uint32_t of = ir_flow_insn(&c->flow, LLVMGetOperand(insn, k));
        if (of != IR_NONE && c->flow.home[of] == block && c->loaded[of])
            return true;
    }
    return false;
}

/* Whether all of the block but its loads may run where the source does not run it, and each load
 * needs no other one. Notes what depends on loads. */
static bool is_harmless(grouping *c, uint32_t block) {
    uint32_t from = c->flow.first[block], to = c->flow.first[block + 1], loads = 0;
    if (to - from > MOST_CONVERTED + 1)
        return false;
    for (uint32_t i = from; i + 1 < to; i++) {
        LLVMValueRef insn = c->flow.insns[i];
        bool reads = is_plain_load(insn);
        bool needs = depends_on_load(c, block, insn);
        if (LLVMIsAPHINode(insn) || ir_divides(insn) || (reads && needs) ||
            (!reads && !ir_may_run_anywhere(insn)))
            return false;
        c->loaded[i] = reads || needs;
        loads += reads;
    }
    return loads > 0 && to - from > loads + 1;
}

/* Whether the branch at the end of a block leads around one block on this side, and nothing else
 * leads to that block or behind it. */
static bool leads_around(const grouping *c, uint32_t block, unsigned side, detour *out) {
    const ir_flow *flow = &c->flow;
    LLVMValueRef branch = ir_flow_last(flow, block);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch))
        return false;
    uint32_t inside = ir_flow_block(flow, LLVMGetSuccessor(branch, side));
    uint32_t behind = ir_flow_block(flow, LLVMGetSuccessor(branch, 1 - side));
    LLVMValueRef last = ir_flow_last(flow, inside);
    *out = (detour){block, inside, behind, LLVMGetCondition(branch), side == 0};
    return inside != behind && has_ways_in(c, inside, 1) && has_ways_in(c, behind, 2) &&
           LLVMIsABranchInst(last) && !LLVMIsConditional(last) &&
           LLVMGetSuccessor(last, 0) == flow->blocks[behind];
}

/* The branch at the end of a block, if it is around one harmless block. */
static bool find_detour(grouping *c, uint32_t block, detour *out) {
    for (unsigned side = 0; side < 2; side++) {
        if (leads_around(c, block, side, out) && is_harmless(c, out->inside))
            return true;
    }
    return false;
}

static void move_before(const grouping *c, uint32_t insn, LLVMValueRef place) {
    LLVMValueRef moved = c->flow.insns[insn];
    LLVMInstructionRemoveFromParent(moved);
    LLVMPositionBuilderBefore(c->builder, place);
    LLVMInsertIntoBuilder(c->builder, moved);
}

/* Gives what uses a load behind the branch its value, or 0 where it did not run. */
static void carry_behind(const grouping *c, const detour *d, LLVMValueRef load) {
    LLVMBasicBlockRef from[2] = {c->flow.blocks[d->inside], c->flow.blocks[d->before]};
    LLVMValueRef values[2] = {load, LLVMConstNull(LLVMTypeOf(load))};
    LLVMPositionBuilderBefore(c->builder, LLVMGetFirstInstruction(c->flow.blocks[d->behind]));
    LLVMValueRef phi = LLVMBuildPhi(c->builder, LLVMTypeOf(load), "");
    LLVMReplaceAllUsesWith(load, phi);
    LLVMAddIncoming(phi, values, from, 2);
}

static LLVMValueRef choose(const grouping *c, const detour *d, LLVMValueRef inside,
                           LLVMValueRef outside) {
    return d->on_true ? LLVMBuildSelect(c->builder, d->condition, inside, outside, "")
                      : LLVMBuildSelect(c->builder, d->condition, outside, inside, "");
}

/* A PHI of the source becomes a choice by the condition. */
static void choose_phi(const grouping *c, const detour *d, LLVMValueRef phi, LLVMValueRef place) {
    LLVMValueRef inside = ir_flow_incoming(&c->flow, phi, d->inside);
    LLVMValueRef outside = ir_flow_incoming(&c->flow, phi, d->before);
    LLVMPositionBuilderBefore(c->builder, place);
    LLVMReplaceAllUsesWith(phi, inside == outside ? inside : choose(c, d, inside, outside));
    LLVMInstructionEraseFromParent(phi);
}

static void convert(const grouping *c, const detour *d) {
    const ir_flow *flow = &c->flow;
    LLVMValueRef branch = ir_flow_last(flow, d->before);
    LLVMValueRef place = LLVMGetFirstInstruction(flow->blocks[d->behind]);
    while (LLVMIsAPHINode(place))
        place = LLVMGetNextInstruction(place);
    for (uint32_t i = flow->first[d->inside]; i + 1 < flow->first[d->inside + 1]; i++) {
        if (LLVMIsALoadInst(flow->insns[i]))
            continue;
        move_before(c, i, c->loaded[i] ? place : branch);
    }
    for (uint32_t i = flow->first[d->behind]; LLVMIsAPHINode(flow->insns[i]); i++)
        choose_phi(c, d, flow->insns[i], place);
    for (uint32_t i = flow->first[d->inside]; i + 1 < flow->first[d->inside + 1]; i++) {
        if (LLVMIsALoadInst(flow->insns[i]))
            carry_behind(c, d, flow->insns[i]);
    }
}

/* Thins all blocks under conditions that can be thinned. */
static uint32_t thin_blocks(grouping *c) {
    uint32_t count = 0;
    for (uint32_t block = c->flow.count; block-- > 0;) {
        detour d;
        if (!find_detour(c, block, &d))
            continue;
        convert(c, &d);
        count++;
    }
    return count;
}

/* ---- groups ------------------------------------------------------------------------------------
 */

/* The group of loads at hand. */
typedef struct group {
    uint32_t loads;
    uint32_t *waiting; /* what uses their values and is moved behind them, in order */
    uint32_t count;
    uint32_t moved;        /* instructions so far that stand behind a load that they stood before */
    uint32_t loads_behind; /* loads since the first that waits */
} group;

/* Whether a value is one of the group's loads, or is computed from one. */
static bool uses_group(const grouping *c, LLVMValueRef insn) {
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(insn); k++) {
        uint32_t of = ir_flow_insn(&c->flow, LLVMGetOperand(insn, k));
        if (of != IR_NONE && c->loaded[of])
            return true;
    }
    return false;
}

/* Ends the group: what waits goes before `place`. */
static void end_group(grouping *c, group *g, LLVMValueRef place) {
    if (g->loads == 0)
        return;
    for (uint32_t i = 0; i < g->count; i++)
        move_before(c, g->waiting[i], place);
    g->moved += g->loads_behind > 0 ? g->count : 0;
    g->count = g->loads = g->loads_behind = 0;
    for (uint32_t i = 0; i < c->flow.insn_count; i++)
        c->loaded[i] = false;
}

static void add_load(grouping *c, group *g, uint32_t insn) {
    c->loaded[insn] = true;
    g->loads++;
    g->loads_behind += g->count > 0;
}

/* Takes an instruction that is neither a PHI nor a terminator into account. */
static void group_insn(grouping *c, group *g, uint32_t at) {
    LLVMValueRef insn = c->flow.insns[at];
    bool uses = uses_group(c, insn);
    ir_deed deed = ir_deed_of(insn);
    if (is_plain_load(insn)) {
        if (uses || g->loads >= c->most)
            end_group(c, g, insn);
        add_load(c, g, at);
    } else if (deed == IR_DEED_PURE && uses) {
        c->loaded[at] = true;
        g->waiting[g->count++] = at;
    } else if (deed != IR_DEED_PURE && deed != IR_DEED_MARKER) {
        end_group(c, g, insn);
    }
}

/* Whether a group may go on behind a branch around a block of loads alone: neither the branch nor
 * those loads wait for it, and there is room. */
static bool goes_on(const grouping *c, const group *g, const detour *d) {
    const ir_flow *flow = &c->flow;
    uint32_t from = flow->first[d->inside], to = flow->first[d->inside + 1];
    uint32_t branch = flow->first[d->before + 1] - 1;
    if (uses_group(c, flow->insns[branch]) || g->loads + (to - from - 1) > c->most)
        return false;
    for (uint32_t i = from; i + 1 < to; i++) {
        if (uses_group(c, flow->insns[i]))
            return false;
    }
    for (uint32_t i = flow->first[d->behind]; LLVMIsAPHINode(flow->insns[i]); i++) {
        if (uses_group(c, flow->insns[i]))
            return false;
    }
    return true;
}

/* Whether the branch at the end of a block leads around a block of loads alone. */
static bool is_thin(const grouping *c, uint32_t block, detour *out) {
    const ir_flow *flow = &c->flow;
    for (unsigned side = 0; side < 2; side++) {
        if (!leads_around(c, block, side, out) || out->behind <= block)
            continue;
        bool thin = true;
        uint32_t end = flow->first[out->inside + 1] - 1;
        for (uint32_t i = flow->first[out->inside]; thin && i < end; i++)
            thin = is_plain_load(flow->insns[i]);
        if (thin)
            return true;
    }
    return false;
}

/* The PHIs of a join are values of the group, if they carry its loads. */
static void add_carried(grouping *c, group *g, const detour *d) {
    const ir_flow *flow = &c->flow;
    for (uint32_t i = flow->first[d->inside]; i + 1 < flow->first[d->inside + 1]; i++)
        add_load(c, g, i);
    for (uint32_t i = flow->first[d->behind]; LLVMIsAPHINode(flow->insns[i]); i++)
        c->loaded[i] = uses_group(c, flow->insns[i]);
}

/* Groups the loads from block `block` on; *seen: by block, whether that is done. */
static void group_from(grouping *c, group *g, uint32_t block, bool *seen) {
    const ir_flow *flow = &c->flow;
    for (detour d; !seen[block]; block = d.behind) {
        seen[block] = true;
        for (uint32_t i = flow->first[block]; i + 1 < flow->first[block + 1]; i++) {
            if (!LLVMIsAPHINode(flow->insns[i]))
                group_insn(c, g, i);
        }
        LLVMValueRef last = ir_flow_last(flow, block);
        if (!is_thin(c, block, &d) || seen[d.behind]) {
            end_group(c, g, last);
            return;
        }
        if (!goes_on(c, g, &d))
            end_group(c, g, last);
        seen[d.inside] = true;
        add_carried(c, g, &d);
    }
}

/* Groups all loads. *moved: how many instructions stand behind loads that they stood before. */
static ev_status group_all(grouping *c, uint32_t *moved, ev_error *err) {
    EV_TRY(ir_flow_make(c->s->function, c->s->arena, &c->flow, err));
    c->loaded = EV_NEW_ARRAY(c->s->arena, bool, c->flow.insn_count + 1);
    bool *seen = EV_NEW_ARRAY(c->s->arena, bool, c->flow.count);
    group g = {.waiting = EV_NEW_ARRAY(c->s->arena, uint32_t, c->flow.insn_count + 1)};
    if (!c->loaded || !seen || !g.waiting)
        return ev_fail_memory(err, c->flow.insn_count);
    for (uint32_t block = 0; block < c->flow.count; block++)
        group_from(c, &g, block, seen);
    *moved = g.moved;
    return EV_OK;
}

/* Joins tests that lead to one place, up to this number of instructions between them. */
static const char joining[] =
    "function(simplifycfg<bonus-inst-threshold=16;no-sink-common-insts;no-hoist-common-insts>)";

static ev_status group_loads(grouping *c, ev_error *err) {
    uint32_t moved = 0;
    EV_TRY(ir_early_run(c->s->base, c->s->base->module, joining, err));
    EV_TRY(ir_flow_make(c->s->function, c->s->arena, &c->flow, err));
    c->loaded = EV_NEW_ARRAY(c->s->arena, bool, c->flow.insn_count + 1);
    if (!c->loaded)
        return ev_fail_memory(err, c->flow.insn_count);
    uint32_t thinned = thin_blocks(c);
    EV_TRY(group_all(c, &moved, err));
    return thinned > 0 || moved > 0
               ? EV_OK
               : ev_fail(err, EV_BAD, "no loads can go out before values of others are used");
}

ev_status ir_structure_group(ir_structure *s, const ir_edit *edit, ev_error *err) {
    grouping c = {.s = s, .most = edit->has_option ? (uint32_t)edit->option : 0};
    if (edit->option < 2 || edit->option > MOST_LOADS)
        return ev_fail(err, EV_BAD, "\"option\" is no number of loads from 2 to %d", MOST_LOADS);
    c.builder = LLVMCreateBuilderInContext(s->base->context);
    LLVMSetCurrentDebugLocation2(c.builder, NULL);
    ev_status status = group_loads(&c, err);
    LLVMDisposeBuilder(c.builder);
    return status;
}
