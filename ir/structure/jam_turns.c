/* Jam turns: several turns of a loop run side by side, through the loops inside it.
 *
 *     main: while u turns are left:
 *               the head of u turns, side by side
 *               the tail of each of them, one after the other
 *     rest: the loop as it was, from where the main loop ends
 *
 * The tail of a turn is what follows the loops inside. What does not depend on the turn is computed
 * once in the head: a value that a loop inside loads is loaded for u turns together. The head
 * has no effects, and takes the same way in each turn. What a turn hands on to the next, such as
 * the least value so far, is used in tails alone, which run in the order of the turns with all that
 * they store: so each value is computed as before. */
#include "ir/structure/turns_internal.h"

#include "ir/structure/analyses/vary_internal.h"

/* What an instruction depends on. */
typedef enum tie {
    ALIKE,  /* is the same in each turn */
    OWN,    /* differs with the turn's number */
    CHAINED /* takes what the turn before handed on */
} tie;

typedef struct jamming {
    ir_turns *t;
    uint32_t tail;             /* the tail's first block; the others are those that it dominates */
    tie *ties;                 /* by instruction */
    LLVMValueRef *values;      /* [turn * instructions + instruction] */
    LLVMBasicBlockRef *blocks; /* copies of the tails: [turn * blocks + block] */
} jamming;

static LLVMValueRef *value_at(const jamming *j, uint32_t turn, uint32_t insn) {
    return &j->values[(size_t)turn * j->t->flow.insn_count + insn];
}

static bool in_loop(const jamming *j, uint32_t insn) {
    return insn != IR_NONE && j->t->loop->holds[j->t->flow.home[insn]];
}

static bool is_of_tail(const jamming *j, uint32_t block) {
    return j->t->loop->holds[block] && ir_dominance_over(&j->t->flow.over, j->tail, block);
}

static bool is_in_head(const jamming *j, uint32_t insn) {
    return in_loop(j, insn) && !is_of_tail(j, j->t->flow.home[insn]);
}

/* The PHIs where the tail begins choose among values of the head, for all turns at once. */
static bool begins_tail(const jamming *j, uint32_t insn) {
    return j->t->flow.home[insn] == j->tail && LLVMIsAPHINode(j->t->flow.insns[insn]);
}

static LLVMValueRef mapped(const jamming *j, uint32_t turn, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&j->t->flow, value);
    LLVMValueRef made = in_loop(j, insn) ? *value_at(j, turn, insn) : NULL;
    return made ? made : value;
}

static LLVMBasicBlockRef block_at(const jamming *j, uint32_t turn, uint32_t block) {
    return is_of_tail(j, block) ? j->blocks[(size_t)turn * j->t->flow.count + block]
                                : j->t->blocks[block];
}

/* ---- head and tail ----------------------------------------------------------------------------
 */

/* Finds the first block that each turn passes behind the loops inside: blocks are numbered such
 * that no path within a turn leads to a lower number. EV_BAD: there is no loop inside. */
static ev_status find_tail(jamming *j, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    const ir_loop *outer = j->t->loop;
    uint32_t last = IR_NONE;
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *loop = &flow->loops[l];
        if (loop != outer && outer->holds[loop->header] && (last == IR_NONE || last < loop->header))
            last = loop->header;
    }
    if (last == IR_NONE)
        return ev_fail(err, EV_BAD, "the loop has no loop inside it");
    for (j->tail = last + 1; j->tail < flow->count; j->tail++) {
        if (outer->holds[j->tail] && &flow->loops[ir_loop_of(flow, j->tail)] == outer &&
            ir_dominance_over(&flow->over, j->tail, outer->latch))
            return EV_OK;
    }
    return ev_fail(err, EV_BAD, "no block of the loop follows the loops inside it");
}

/* The most that an operand of the instruction is. */
static tie tie_of_operands(const jamming *j, uint32_t insn) {
    LLVMValueRef value = j->t->flow.insns[insn];
    tie most = ALIKE;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        uint32_t of = ir_flow_insn(&j->t->flow, LLVMGetOperand(value, (unsigned)k));
        if (in_loop(j, of) && j->ties[of] > most)
            most = j->ties[of];
    }
    return most;
}

/* Goes around until nothing changes, as values come back to the PHIs of loops inside. */
static void find_ties(const jamming *j) {
    const ir_flow *flow = &j->t->flow;
    bool changed = true;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_turns_is_phi(j->t, i))
            j->ties[i] = ir_turns_count_step(j->t, flow->insns[i]) != 0 ? OWN : CHAINED;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < flow->insn_count; i++) {
            if (!in_loop(j, i) || ir_turns_is_phi(j->t, i))
                continue;
            tie now = tie_of_operands(j, i);
            changed |= now > j->ties[i];
            j->ties[i] = now;
        }
    }
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool has_effect(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return deed != IR_DEED_PURE && deed != IR_DEED_LOAD && deed != IR_DEED_MARKER;
}

static ev_status check_head(const jamming *j, uint32_t insn, bool has_effects, ev_error *err) {
    LLVMValueRef value = j->t->flow.insns[insn], base = NULL;
    if (has_effect(value))
        return ev_fail(err, EV_BAD,
                       "the loop stores, waits or exchanges values before the end of the loops "
                       "inside it");
    if (has_effects && LLVMIsALoadInst(value) && !ir_reads_only(&j->t->flow, value, &base))
        return ev_fail(err, EV_BAD,
                       "the loop has effects, and loads from what may be written before the end of "
                       "the loops inside it");
    if (ir_turns_is_phi(j->t, insn) || ir_turns_is_test(j->t, insn))
        return EV_OK;
    if (LLVMIsATerminatorInst(value) && j->ties[insn] != ALIKE)
        return ev_fail(err, EV_BAD,
                       "the turns do not take the same way: a branch before the end of the loops "
                       "inside depends on the turn");
    if (j->ties[insn] == CHAINED)
        return ev_fail(err, EV_BAD,
                       "a turn takes what the turn before hands on before the end of the loops "
                       "inside");
    return EV_OK;
}

static ev_status check(const jamming *j, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    bool has_effects = false;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (in_loop(j, i) && ir_deed_of(flow->insns[i]) == IR_DEED_UNKNOWN)
            return ev_fail(err, EV_BAD, "the effect of an instruction in the loop is not known");
        has_effects |= in_loop(j, i) && has_effect(flow->insns[i]);
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (is_in_head(j, i))
            EV_TRY(check_head(j, i, has_effects, err));
    }
    return EV_OK;
}

/* ---- the turns --------------------------------------------------------------------------------
 */

/* Gives each tail blocks of its own; the first has the loop's copies. */
static void make_tails(const jamming *j) {
    const ir_flow *flow = &j->t->flow;
    for (uint32_t turn = 0; turn < j->t->turns; turn++) {
        for (uint32_t b = 0; b < flow->count; b++) {
            if (turn > 0 && is_of_tail(j, b))
                j->t->blocks[b] = LLVMInsertBasicBlockInContext(
                    j->t->s->base->context, flow->blocks[j->t->loop->header], "");
            j->blocks[(size_t)turn * flow->count + b] = j->t->blocks[b];
        }
    }
}

/* The numbers of the turns, from those of the first. */
static void write_numbers(const jamming *j) {
    const ir_turns *t = j->t;
    for (uint32_t i = t->flow.first[t->loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++) {
        LLVMValueRef first = *value_at(j, 0, i);
        int64_t step = ir_turns_count_step(t, t->flow.insns[i]);
        for (uint32_t turn = 1; turn < t->turns && step != 0; turn++) {
            uint64_t by = (uint64_t)step * turn;
            *value_at(j, turn, i) =
                LLVMBuildAdd(t->builder, first, LLVMConstInt(LLVMTypeOf(first), by, true), "");
        }
    }
}

/* Clones an instruction for one turn where the builder stands; operands still are the loop's own.
 * PHIs are made without what comes in. */
static void clone(const jamming *j, uint32_t insn, uint32_t turn) {
    LLVMValueRef old = j->t->flow.insns[insn], made;
    if (LLVMIsAPHINode(old)) {
        made = LLVMBuildPhi(j->t->builder, LLVMTypeOf(old), "");
    } else {
        made = LLVMInstructionClone(old);
        LLVMInsertIntoBuilder(j->t->builder, made);
    }
    *value_at(j, turn, insn) = made;
}

/* The same for all turns: once for what is alike. */
static void clone_all(const jamming *j, uint32_t insn) {
    for (uint32_t turn = 0; turn < j->t->turns; turn++) {
        if (turn > 0 && j->ties[insn] == ALIKE)
            *value_at(j, turn, insn) = *value_at(j, 0, insn);
        else
            clone(j, insn, turn);
    }
}

static void stand_at_end(const jamming *j, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(j->t->builder, block);
    LLVMSetCurrentDebugLocation2(j->t->builder, NULL);
}

static void write_head(const jamming *j, uint32_t block) {
    const ir_turns *t = j->t;
    uint32_t last = t->flow.first[block + 1] - 1;
    stand_at_end(j, t->blocks[block]);
    if (block == t->loop->header)
        write_numbers(j);
    for (uint32_t i = t->flow.first[block]; i < last; i++) {
        if (!ir_turns_is_phi(t, i) && ir_deed_of(t->flow.insns[i]) != IR_DEED_MARKER)
            clone_all(j, i);
    }
    if (block == t->loop->header)
        LLVMBuildBr(t->builder, t->blocks[ir_turns_first(t)]);
    else
        clone(j, last, 0);
}

static void write_tail(const jamming *j, uint32_t turn, uint32_t block) {
    const ir_turns *t = j->t;
    stand_at_end(j, block_at(j, turn, block));
    for (uint32_t i = t->flow.first[block]; i < t->flow.first[block + 1]; i++) {
        if (!begins_tail(j, i))
            clone(j, i, turn);
        else if (turn == 0)
            clone_all(j, i);
    }
}

/* What each turn takes from the one before, once all turns have their copies. */
static void hand_on(const jamming *j) {
    const ir_turns *t = j->t;
    for (uint32_t turn = 1; turn < t->turns; turn++) {
        for (uint32_t i = t->flow.first[t->loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++) {
            LLVMValueRef next = ir_flow_incoming(&t->flow, t->flow.insns[i], t->loop->latch);
            if (j->ties[i] == CHAINED)
                *value_at(j, turn, i) = mapped(j, turn - 1, next);
        }
    }
}

/* Lets a branch of a turn lead to copies: behind a tail stands the next one, or `top`. */
static void redirect(const jamming *j, LLVMValueRef branch, uint32_t turn, LLVMBasicBlockRef top) {
    const ir_turns *t = j->t;
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
        uint32_t to = ir_flow_block(&t->flow, LLVMGetSuccessor(branch, k));
        bool ends = to == t->loop->header;
        LLVMBasicBlockRef next = ends && turn + 1 < t->turns ? block_at(j, turn + 1, j->tail) : top;
        LLVMSetSuccessor(branch, k, ends ? next : block_at(j, turn, to));
    }
}

/* Gives a cloned instruction the values of its turn. */
static void settle(const jamming *j, uint32_t insn, uint32_t turn, LLVMBasicBlockRef top) {
    LLVMValueRef old = j->t->flow.insns[insn], made = *value_at(j, turn, insn);
    if (LLVMIsAPHINode(old)) {
        for (unsigned k = 0; k < LLVMCountIncoming(old); k++) {
            uint32_t from = ir_flow_block(&j->t->flow, LLVMGetIncomingBlock(old, k));
            LLVMValueRef value = mapped(j, turn, LLVMGetIncomingValue(old, k));
            LLVMBasicBlockRef block = block_at(j, turn, from);
            LLVMAddIncoming(made, &value, &block, 1);
        }
        return;
    }
    for (int k = 0; k < LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (!LLVMValueIsBasicBlock(operand))
            LLVMSetOperand(made, (unsigned)k, mapped(j, turn, operand));
    }
    if (LLVMIsATerminatorInst(old))
        redirect(j, made, turn, top);
}

/* How many copies of an instruction there are. */
static uint32_t copies_of(const jamming *j, uint32_t insn) {
    LLVMValueRef value = j->t->flow.insns[insn];
    if (!in_loop(j, insn) || ir_turns_is_phi(j->t, insn) || ir_turns_is_test(j->t, insn))
        return 0;
    if (!is_in_head(j, insn) && !begins_tail(j, insn))
        return j->t->turns;
    if (ir_deed_of(value) == IR_DEED_MARKER)
        return 0;
    return LLVMIsATerminatorInst(value) || j->ties[insn] == ALIKE ? 1 : j->t->turns;
}

static void write_all(const jamming *j, LLVMBasicBlockRef top) {
    const ir_flow *flow = &j->t->flow;
    make_tails(j);
    for (uint32_t b = 0; b < flow->count; b++) {
        if (j->t->loop->holds[b] && !is_of_tail(j, b))
            write_head(j, b);
    }
    for (uint32_t turn = 0; turn < j->t->turns; turn++) {
        for (uint32_t b = 0; b < flow->count; b++) {
            if (is_of_tail(j, b))
                write_tail(j, turn, b);
        }
    }
    hand_on(j);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        for (uint32_t turn = 0, copies = copies_of(j, i); turn < copies; turn++)
            settle(j, i, turn, top);
    }
}

ev_status ir_turns_write_jammed(ir_turns *t, LLVMBasicBlockRef top, LLVMBasicBlockRef *begin,
                                ev_error *err) {
    const ir_flow *flow = &t->flow;
    jamming j = {.t = t};
    j.ties = EV_NEW_ARRAY(t->s->arena, tie, flow->insn_count + 1);
    j.values = EV_NEW_ARRAY(t->s->arena, LLVMValueRef, (size_t)t->turns * flow->insn_count + 1);
    j.blocks = EV_NEW_ARRAY(t->s->arena, LLVMBasicBlockRef, (size_t)t->turns * flow->count + 1);
    if (!j.ties || !j.values || !j.blocks)
        return ev_fail_memory(err, flow->insn_count);
    EV_TRY(find_tail(&j, err));
    find_ties(&j);
    EV_TRY(check(&j, err));
    for (uint32_t i = flow->first[t->loop->header]; LLVMIsAPHINode(flow->insns[i]); i++)
        *value_at(&j, 0, i) = t->values[i];
    ir_turns_make_blocks(t);
    *begin = t->blocks[t->loop->header];
    write_all(&j, top);
    for (uint32_t i = 0; i < flow->insn_count; i++)
        t->values[i] = in_loop(&j, i) ? *value_at(&j, t->turns - 1, i) : NULL;
    return EV_OK;
}
