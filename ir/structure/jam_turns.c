/* Jam turns: several turns of a loop run side by side, through the loops inside it.
 *
 *     main: while u turns are left: for each turn of the loops inside: that of all u turns
 *     rest: the loop as it was, from where the main loop ends
 *
 * What does not depend on the turn is computed once: a value that a loop inside loads is loaded for
 * u turns together. The loops inside must make the same turns in each turn. What a turn hands on to
 * the next, such as the least value so far, goes from one to the other behind these loops, in the
 * order of the turns, so each value is computed as before. */
#include "ir/structure/turns_internal.h"

#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <stdlib.h>

/* What an instruction depends on. */
typedef enum tie {
    ALIKE,  /* is the same in each turn */
    OWN,    /* differs with the turn's number */
    CHAINED /* takes what the turn before handed on */
} tie;

typedef struct jamming {
    ir_turns *t;
    tie *ties;            /* by instruction */
    LLVMValueRef *values; /* [turn * instructions + instruction] */
} jamming;

static LLVMValueRef *value_at(const jamming *j, uint32_t turn, uint32_t insn) {
    return &j->values[(size_t)turn * j->t->flow.insn_count + insn];
}

static bool in_loop(const jamming *j, uint32_t insn) {
    return insn != IR_NONE && j->t->loop->holds[j->t->flow.home[insn]];
}

static LLVMValueRef mapped(const jamming *j, uint32_t turn, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&j->t->flow, value);
    LLVMValueRef made = in_loop(j, insn) ? *value_at(j, turn, insn) : NULL;
    return made ? made : value;
}

/* ---- what differs -----------------------------------------------------------------------------
 */

static bool has_loop_inside(const jamming *j) {
    const ir_flow *flow = &j->t->flow;
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (&flow->loops[l] != j->t->loop && j->t->loop->holds[flow->loops[l].header])
            return true;
    }
    return false;
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
            now = now == ALIKE && ir_deed_of(flow->insns[i]) == IR_DEED_STORE ? OWN : now;
            changed |= now > j->ties[i];
            j->ties[i] = now;
        }
    }
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool is_store(const jamming *j, uint32_t insn) {
    return in_loop(j, insn) && LLVMIsAStoreInst(j->t->flow.insns[insn]);
}

static ir_affine place_of(const jamming *j, uint32_t store, LLVMValueRef *base) {
    return ir_affine_of_address(LLVMGetGlobalParent(j->t->flow.function),
                                ir_pointer_of(j->t->flow.insns[store]), base);
}

static bool is_inside(const jamming *j, uint32_t insn) {
    uint32_t loop = ir_loop_of(&j->t->flow, j->t->flow.home[insn]);
    return &j->t->flow.loops[loop] != j->t->loop;
}

/* By how many bytes a place moves on in each turn; 0: by a number that is not known here, or not
 * at all. */
static int64_t stride_of(const jamming *j, const ir_affine *place) {
    const ir_turns *t = j->t;
    int64_t stride = 0;
    for (uint32_t i = t->flow.first[t->loop->header]; LLVMIsAPHINode(t->flow.insns[i]); i++)
        stride +=
            ir_affine_factor(place, t->flow.insns[i]) * ir_turns_count_step(t, t->flow.insns[i]);
    return stride;
}

/* Whether two stores may go to one place in different turns: they are fewer turns apart than run
 * side by side, or as many as an argument says. Guessed: other places are apart, as rows are. */
static bool may_meet(const jamming *j, ir_affine a, const ir_affine *b) {
    enum { WIDEST = 16 };
    int64_t stride = stride_of(j, b);
    bool is_told = false;
    if (!ir_affine_add(&a, b, -1))
        return true;
    for (uint32_t k = 0; k < a.count; k++)
        is_told |= LLVMIsAArgument(a.terms[k].value) != NULL;
    if (stride == 0 || a.count > 0)
        return stride != 0 && is_told;
    return llabs(a.constant) < llabs(stride) * j->t->turns + WIDEST;
}

/* The stores of a block keep their order, turn by turn. So those to one argument must stand in one
 * block or go to other places, and one in a loop inside must go to the same places in each turn:
 * the last turn's stays. */
static ev_status check_store(const jamming *j, uint32_t insn, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    LLVMValueRef base = NULL, to = NULL;
    ir_affine place = place_of(j, insn, &base);
    uint32_t address = ir_flow_insn(flow, ir_pointer_of(flow->insns[insn]));
    bool inside = is_inside(j, insn);
    bool keeps = !inside || !in_loop(j, address) || j->ties[address] == ALIKE;
    if (!LLVMIsAArgument(base))
        return ev_fail(err, EV_BAD, "the loop stores elsewhere than to an argument");
    for (uint32_t i = 0; i < flow->insn_count && keeps; i++) {
        if (i == insn || !is_store(j, i))
            continue;
        ir_affine other = place_of(j, i, &to);
        bool apart = flow->home[i] == flow->home[insn] || !may_meet(j, place, &other);
        keeps = to != base || (!inside && apart);
    }
    return keeps ? EV_OK
                 : ev_fail(err, EV_BAD, "the order of the stores to an argument would change");
}

static ev_status check_deed(const jamming *j, uint32_t insn, bool has_stores, ev_error *err) {
    LLVMValueRef value = j->t->flow.insns[insn], base = NULL;
    ir_deed deed = ir_deed_of(value);
    if ((deed > IR_DEED_STORE && deed != IR_DEED_MARKER) ||
        (deed == IR_DEED_STORE && !is_store(j, insn)))
        return ev_fail(err, EV_BAD,
                       "the loop has an atomic, a barrier, an exchange within the warp, a copy or "
                       "a call of unknown effect");
    if (deed == IR_DEED_LOAD && has_stores && !ir_reads_only(&j->t->flow, value, &base))
        return ev_fail(err, EV_BAD, "the loop stores, and loads what it may have stored");
    return EV_OK;
}

static ev_status check_deeds(const jamming *j, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    bool has_stores = false;
    for (uint32_t i = 0; i < flow->insn_count; i++)
        has_stores |= is_store(j, i);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (in_loop(j, i))
            EV_TRY(check_deed(j, i, has_stores, err));
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (is_store(j, i))
            EV_TRY(check_store(j, i, err));
    }
    return EV_OK;
}

/* Whether the value that turn k hands on in a PHI of the header is there where turn k + 1 takes it,
 * in block `user`: it is computed in each turn, and not behind that block. */
static bool is_handed_on(const jamming *j, LLVMValueRef phi, uint32_t user) {
    const ir_flow *flow = &j->t->flow;
    uint32_t from = ir_flow_insn(flow, ir_flow_incoming(flow, phi, j->t->loop->latch));
    if (!in_loop(j, from))
        return true;
    return !ir_turns_is_phi(j->t, from) && ir_dominance_over(&flow->over, flow->home[from], user);
}

static ev_status check_chain(const jamming *j, uint32_t insn, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    LLVMValueRef value = flow->insns[insn];
    bool is_late = LLVMIsAPHINode(value);
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        uint32_t of = ir_flow_insn(flow, LLVMGetOperand(value, (unsigned)k));
        if (in_loop(j, of) && ir_turns_is_phi(j->t, of) && j->ties[of] == CHAINED)
            is_late |= !is_handed_on(j, flow->insns[of], flow->home[insn]);
    }
    if (is_late)
        return ev_fail(err, EV_BAD,
                       "a turn takes what the turn before hands on under a condition, or before it "
                       "is computed");
    return EV_OK;
}

static ev_status check_ties(const jamming *j, ev_error *err) {
    const ir_flow *flow = &j->t->flow;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (!in_loop(j, i) || ir_turns_is_phi(j->t, i) || ir_turns_is_test(j->t, i))
            continue;
        if (LLVMIsATerminatorInst(flow->insns[i]) && j->ties[i] != ALIKE)
            return ev_fail(err, EV_BAD,
                           "the turns do not take the same way: a branch in the loop depends on "
                           "the turn");
        if (j->ties[i] == CHAINED)
            EV_TRY(check_chain(j, i, err));
    }
    return EV_OK;
}

/* ---- the turns --------------------------------------------------------------------------------
 */

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
    if (turn > 0 && j->ties[insn] == ALIKE) {
        *value_at(j, turn, insn) = *value_at(j, 0, insn);
        return;
    }
    if (LLVMIsAPHINode(old)) {
        made = LLVMBuildPhi(j->t->builder, LLVMTypeOf(old), "");
    } else {
        made = LLVMInstructionClone(old);
        LLVMInsertIntoBuilder(j->t->builder, made);
    }
    *value_at(j, turn, insn) = made;
}

/* Whether the turns have copies of the instruction. */
static bool is_written(const jamming *j, uint32_t insn) {
    return in_loop(j, insn) && !ir_turns_is_phi(j->t, insn) && !ir_turns_is_test(j->t, insn) &&
           ir_deed_of(j->t->flow.insns[insn]) != IR_DEED_MARKER;
}

/* Whether it is written turn by turn. */
static bool in_turns(const jamming *j, uint32_t insn) {
    return j->ties[insn] == CHAINED || is_store(j, insn);
}

/* Side by side, then, turn by turn, what takes from the turn before, and stores. */
static void write_block(const jamming *j, uint32_t block) {
    const ir_turns *t = j->t;
    uint32_t from = t->flow.first[block], last = t->flow.first[block + 1] - 1;
    LLVMPositionBuilderAtEnd(t->builder, t->blocks[block]);
    LLVMSetCurrentDebugLocation2(t->builder, NULL);
    if (block == t->loop->header)
        write_numbers(j);
    for (uint32_t i = from; i < last; i++) {
        for (uint32_t turn = 0; turn < t->turns && is_written(j, i); turn++) {
            if (!in_turns(j, i))
                clone(j, i, turn);
        }
    }
    for (uint32_t turn = 0; turn < t->turns; turn++) {
        for (uint32_t i = from; i < last; i++) {
            if (is_written(j, i) && in_turns(j, i))
                clone(j, i, turn);
        }
    }
    if (is_written(j, last))
        clone(j, last, 0);
    else
        LLVMBuildBr(t->builder, t->blocks[ir_turns_first(t)]);
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

/* Gives a cloned instruction the values of its turn. */
static void settle(const jamming *j, uint32_t insn, uint32_t turn) {
    LLVMValueRef old = j->t->flow.insns[insn], made = *value_at(j, turn, insn);
    if (LLVMIsAPHINode(old)) {
        for (unsigned k = 0; k < LLVMCountIncoming(old); k++) {
            uint32_t from = ir_flow_block(&j->t->flow, LLVMGetIncomingBlock(old, k));
            LLVMValueRef value = mapped(j, turn, LLVMGetIncomingValue(old, k));
            LLVMAddIncoming(made, &value, &j->t->blocks[from], 1);
        }
        return;
    }
    for (int k = 0; k < LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (!LLVMValueIsBasicBlock(operand))
            LLVMSetOperand(made, (unsigned)k, mapped(j, turn, operand));
    }
}

static void settle_all(const jamming *j, LLVMBasicBlockRef top) {
    const ir_turns *t = j->t;
    for (uint32_t i = 0; i < t->flow.insn_count; i++) {
        if (!is_written(j, i))
            continue;
        bool leads = LLVMIsATerminatorInst(t->flow.insns[i]) != NULL;
        uint32_t copies = leads || j->ties[i] == ALIKE ? 1 : t->turns;
        for (uint32_t turn = 0; turn < copies; turn++)
            settle(j, i, turn);
        if (leads)
            ir_turns_redirect(t, *value_at(j, 0, i), top);
    }
}

ev_status ir_turns_write_jammed(ir_turns *t, LLVMBasicBlockRef top, LLVMBasicBlockRef *begin,
                                ev_error *err) {
    const ir_flow *flow = &t->flow;
    jamming j = {.t = t};
    j.ties = EV_NEW_ARRAY(t->s->arena, tie, flow->insn_count + 1);
    j.values = EV_NEW_ARRAY(t->s->arena, LLVMValueRef, (size_t)t->turns * flow->insn_count + 1);
    if (!j.ties || !j.values)
        return ev_fail_memory(err, flow->insn_count);
    if (!has_loop_inside(&j))
        return ev_fail(err, EV_BAD, "the loop has no loop inside it");
    find_ties(&j);
    EV_TRY(check_deeds(&j, err));
    EV_TRY(check_ties(&j, err));
    for (uint32_t i = flow->first[t->loop->header]; LLVMIsAPHINode(flow->insns[i]); i++)
        *value_at(&j, 0, i) = t->values[i];
    ir_turns_make_blocks(t);
    for (uint32_t b = 0; b < flow->count; b++) {
        if (t->loop->holds[b])
            write_block(&j, b);
    }
    hand_on(&j);
    settle_all(&j, top);
    *begin = t->blocks[t->loop->header];
    for (uint32_t i = 0; i < flow->insn_count; i++)
        t->values[i] = in_loop(&j, i) ? *value_at(&j, t->turns - 1, i) : NULL;
    return EV_OK;
}
