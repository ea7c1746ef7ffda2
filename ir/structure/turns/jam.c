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
#include "ir/structure/turns/turns_internal.h"

#include "ir/structure/analyses/vary_internal.h"

/* Finds the first block that each turn passes behind the loops inside: blocks are numbered such
 * that no path within a turn leads to a lower number. EV_BAD: there is no loop inside. */
static ev_status find_tail(ir_turns *t, ev_error *err) {
    const ir_flow *flow = &t->flow;
    uint32_t last = IR_NONE;
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        uint32_t header = flow->loops[l].header;
        bool is_inside = header != t->loop->header && t->loop->holds[header];
        if (is_inside && (last == IR_NONE || last < header))
            last = header;
    }
    if (last == IR_NONE)
        return ev_fail(err, EV_BAD, "the loop has no loop inside it");
    for (t->tail = last + 1; t->tail < flow->count; t->tail++) {
        if (t->loop->holds[t->tail] &&
            flow->loops[ir_loop_of(flow, t->tail)].header == t->loop->header &&
            ir_dominance_over(&flow->over, t->tail, t->loop->latch))
            return EV_OK;
    }
    return ev_fail(err, EV_BAD, "no block of the loop follows the loops inside it");
}

/* The most that an operand of the instruction is. */
static ir_tie tie_of_operands(const ir_turns *t, uint32_t insn) {
    LLVMValueRef value = t->flow.insns[insn];
    ir_tie most = IR_TIE_ALIKE;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        uint32_t of = ir_flow_insn(&t->flow, LLVMGetOperand(value, (unsigned)k));
        if (ir_turns_in_loop(t, of) && t->ties[of] > most)
            most = t->ties[of];
    }
    return most;
}

/* Goes around until nothing changes, as values come back to the PHIs of loops inside. */
static void find_ties(const ir_turns *t) {
    const ir_flow *flow = &t->flow;
    bool changed = true;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_turns_is_phi(t, i))
            t->ties[i] = ir_turns_growth(t, flow->insns[i]) ? IR_TIE_OWN : IR_TIE_CHAINED;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < flow->insn_count; i++) {
            if (!ir_turns_in_loop(t, i) || ir_turns_is_phi(t, i))
                continue;
            ir_tie now = tie_of_operands(t, i);
            changed |= now > t->ties[i];
            t->ties[i] = now;
        }
    }
}

/* An instruction of the head, or a PHI where the tail begins, which takes values of the head. */
static ev_status check_insn(const ir_turns *t, uint32_t insn, bool has_effects, ev_error *err) {
    LLVMValueRef value = t->flow.insns[insn], base = NULL;
    if (ir_has_effect(value))
        return ev_fail(err, EV_BAD,
                       "the loop stores, waits or exchanges values before its inner loops end");
    if (has_effects && LLVMIsALoadInst(value) && !ir_reads_only(&t->flow, value, &base))
        return ev_fail(err, EV_BAD,
                       "the loop has effects, and loads, before its inner loops end, from memory "
                       "that they may write");
    if (ir_turns_is_phi(t, insn) || ir_turns_is_test(t, insn))
        return EV_OK;
    if (LLVMIsATerminatorInst(value) && t->ties[insn] != IR_TIE_ALIKE)
        return ev_fail(err, EV_BAD,
                       "the turns take different ways: a branch before the end of the inner loops "
                       "depends on the turn");
    if (t->ties[insn] == IR_TIE_CHAINED)
        return ev_fail(err, EV_BAD,
                       "a turn needs a value of the previous turn before its inner loops end");
    return EV_OK;
}

static ev_status check(const ir_turns *t, ev_error *err) {
    const ir_flow *flow = &t->flow;
    bool has_effects = false;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_turns_in_loop(t, i) && ir_deed_of(flow->insns[i]) == IR_DEED_UNKNOWN)
            return ev_fail(err, EV_BAD, "the effect of an instruction in the loop is not known");
        has_effects |= ir_turns_in_loop(t, i) && ir_has_effect(flow->insns[i]);
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_turns_in_head(t, i) || ir_turns_begins_tail(t, i))
            EV_TRY(check_insn(t, i, has_effects, err));
    }
    return EV_OK;
}

ev_status ir_turns_plan_jam(ir_turns *t, ev_error *err) {
    EV_TRY(find_tail(t, err));
    find_ties(t);
    return check(t, err);
}
