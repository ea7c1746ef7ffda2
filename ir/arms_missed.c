/* Arms that no case took: which bold edits of a genome change something that no run can have shown.
 *
 * The flags of the base's build (arms.c) tell which arms the start took. An edit that is bold where
 * it stands is refused if an instruction that it removes or alters
 *   - stands in code that never ran,
 *   - chooses between two arms, of which one was never taken,
 *   - is computed into such a choice, through arithmetic and compares alone,
 *   - is used by nothing but an arm that was never taken, or
 *   - loses an operand that is computed from such a choice.
 * An edit that rounds is refused where its values are seen in no case: what it rounds away is not
 * known there. Edits that preserve the meaning may touch all of that. Loads, stores and PHIs end
 * the way from an instruction to a choice: the edit is local. The source lines in `assumed` are the
 * user's word that the arms of their choices cannot be taken. */
#include "ir/arms_internal.h"

#include <string.h>

#define DEPTH_MOST 12   /* instructions on the way to a choice */
#define STEPS_MOST 4096 /* uses looked at for one instruction */

typedef struct judge {
    ir_work *w; /* the module before the edit at hand */
    const uint8_t *taken;
    const uint32_t *assumed;
    size_t assumed_count;
    unsigned steps; /* uses looked at */
    /* what was found */
    LLVMValueRef missed; /* the choice; NULL: none */
    unsigned arm;        /* of the choice, never taken; IR_ARM_RAN: the code never ran */
} judge;

static const uint8_t *flags_of(const judge *j, LLVMValueRef insn) {
    uint32_t id = ir_work_id(j->w, insn);
    if (id == IR_NONE || j->w->nodes[id].added)
        return NULL;
    return &j->taken[(size_t)j->w->nodes[id].number * IR_ARM_COUNT];
}

static bool is_assumed(const judge *j, LLVMValueRef insn) {
    uint32_t id = ir_work_id(j->w, insn), line = id == IR_NONE ? 0 : ir_work_line(j->w, id);
    for (size_t i = 0; line > 0 && i < j->assumed_count; i++) {
        if (j->assumed[i] == line)
            return true;
    }
    return false;
}

/* ---- code that never ran ---- */

static bool block_ran(const judge *j, LLVMBasicBlockRef block) {
    LLVMValueRef last = LLVMGetBasicBlockTerminator(block);
    const uint8_t *flags = last ? flags_of(j, last) : NULL;
    return !flags || flags[IR_ARM_RAN];
}

static bool ran(const judge *j, LLVMValueRef insn) {
    return block_ran(j, LLVMGetInstructionParent(insn));
}

/* Whether code that never ran lies behind choices that are assumed to go elsewhere. */
static bool is_cut_off(const judge *j, LLVMBasicBlockRef block, unsigned depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use && depth > 0;
         use = LLVMGetNextUse(use)) {
        LLVMValueRef from = LLVMGetUser(use);
        if (!LLVMIsATerminatorInst(from))
            continue;
        bool cut = ran(j, from) ? is_assumed(j, from)
                                : is_cut_off(j, LLVMGetInstructionParent(from), depth - 1);
        if (cut)
            return true;
    }
    return false;
}

/* ---- choices ---- */

/* The arm of a choice that was never taken, IR_ARM_COUNT: all were, or the instruction chooses
 * nothing. */
static unsigned missed_arm(const judge *j, LLVMValueRef insn) {
    const uint8_t *flags = ir_guard_of(insn) == IR_GUARD_NONE ? NULL : flags_of(j, insn);
    if (!flags || !ran(j, insn) || is_assumed(j, insn))
        return IR_ARM_COUNT;
    if (!flags[IR_ARM_FIRST])
        return IR_ARM_FIRST;
    return flags[IR_ARM_SECOND] ? IR_ARM_COUNT : IR_ARM_SECOND;
}

static bool find_missed(judge *j, LLVMValueRef insn) {
    unsigned arm = missed_arm(j, insn);
    if (arm == IR_ARM_COUNT)
        return false;
    j->missed = insn;
    j->arm = arm;
    return true;
}

/* Whether operand 1 or 2 of a select is on an arm that was never taken. */
static bool is_untaken_operand(const judge *j, LLVMValueRef select, LLVMValueRef value) {
    unsigned arm = missed_arm(j, select);
    return arm != IR_ARM_COUNT && LLVMGetOperand(select, 0) != value &&
           LLVMGetOperand(select, arm == IR_ARM_FIRST ? 2 : 1) != value;
}

/* Whether a branch takes the edge to the PHI's block at no case. */
static bool leads_nowhere(judge *j, LLVMValueRef branch, LLVMValueRef phi) {
    unsigned arm = missed_arm(j, branch);
    return arm != IR_ARM_COUNT && LLVMGetInstructionOpcode(branch) == LLVMBr &&
           LLVMGetSuccessor(branch, arm) == LLVMGetInstructionParent(phi) && find_missed(j, branch);
}

/* Whether a PHI takes the value on edges alone that were never taken. */
static bool is_untaken_edge(judge *j, LLVMValueRef phi, LLVMValueRef value) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        LLVMValueRef last = LLVMGetBasicBlockTerminator(from);
        if (LLVMGetIncomingValue(phi, i) == value && block_ran(j, from) &&
            !leads_nowhere(j, last, phi))
            return false;
    }
    return true;
}

/* The choice that keeps a user from being seen. */
static bool hides(judge *j, LLVMValueRef user, LLVMValueRef value) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(user);
    if (opcode == LLVMSelect && is_untaken_operand(j, user, value))
        return find_missed(j, user);
    if (opcode == LLVMPHI && is_untaken_edge(j, user, value)) {
        j->missed = user;
        j->arm = IR_ARM_RAN;
        return !is_cut_off(j, LLVMGetInstructionParent(user), 1);
    }
    return false;
}

/* Code that never ran, and that no assumption cuts off. */
static bool find_unran(judge *j, LLVMValueRef insn) {
    if (ran(j, insn) || is_assumed(j, insn) ||
        is_cut_off(j, LLVMGetInstructionParent(insn), DEPTH_MOST))
        return false;
    j->missed = insn;
    j->arm = IR_ARM_RAN;
    return true;
}

/* Whether nothing but arms that were never taken uses the value. */
static bool is_unseen(judge *j, LLVMValueRef value, unsigned depth) {
    bool any = false;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (depth == 0 || j->steps++ > STEPS_MOST)
            return false;
        if (!ran(j, user))
            any |= find_unran(j, user);
        else if (hides(j, user, value) || (ir_insn_is_pure(user) && is_unseen(j, user, depth - 1)))
            any = true;
        else
            return false;
    }
    return any;
}

/* Whether the value is computed into a choice of which an arm was never taken. */
static bool reaches_missed(judge *j, LLVMValueRef value, unsigned depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use && depth > 0; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool is_data = LLVMIsASelectInst(user) && LLVMGetOperand(user, 0) != value;
        if (j->steps++ > STEPS_MOST)
            return false;
        if (!ran(j, user))
            continue;
        if (!is_data && find_missed(j, user))
            return true;
        if (ir_insn_is_pure(user) && reaches_missed(j, user, depth - 1))
            return true;
    }
    return false;
}

/* Whether a PHI has a value that no run brought to it. */
static bool find_untaken_edge(judge *j, LLVMValueRef phi) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));
        if (find_unran(j, last) || (ran(j, last) && leads_nowhere(j, last, phi)))
            return true;
    }
    return false;
}

/* Whether the value is computed from a choice of which an arm was never taken. */
static bool comes_from_missed(judge *j, LLVMValueRef value, unsigned depth) {
    if (!LLVMIsAInstruction(value) || depth == 0 || j->steps++ > STEPS_MOST || !ran(j, value))
        return false;
    if (find_missed(j, value))
        return true;
    if (LLVMIsAPHINode(value))
        return find_untaken_edge(j, value);
    for (uint32_t i = 0; ir_insn_is_pure(value) && i < ir_operand_count(value); i++) {
        if (comes_from_missed(j, LLVMGetOperand(value, i), depth - 1))
            return true;
    }
    return false;
}

/* ---- edits ---- */

/* Whether the edit may give an instruction's uses another value: others move an access, or assert
 * where its memory is. */
static bool changes_values(ir_edit_kind kind) {
    switch (kind) {
    case IR_EDIT_CACHE:
    case IR_EDIT_WIDEN:
    case IR_EDIT_ALIGN:
    case IR_EDIT_HOIST:
    case IR_EDIT_SINK:
    case IR_EDIT_BRANCH_TO_SELECT:
    case IR_EDIT_SELECT_TO_BRANCH:
        return false;
    default:
        return true;
    }
}

/* Which operands of a touched instruction take other values. */
enum { OPERANDS_NONE = -1, OPERANDS_ALL = -2 };

static bool loses_missed(judge *j, LLVMValueRef insn, int64_t operand) {
    uint32_t count = ir_operand_count(insn);
    for (uint32_t i = 0; i < count; i++) {
        if ((operand == OPERANDS_ALL || operand == (int64_t)i) &&
            comes_from_missed(j, LLVMGetOperand(insn, i), DEPTH_MOST))
            return true;
    }
    return false;
}

static bool touches_missed(judge *j, const ir_name *name, bool values, int64_t operand) {
    uint32_t id = name->kind == IR_NAME_NONE ? IR_NONE : ir_work_find(j->w, name);
    LLVMValueRef insn = id == IR_NONE ? NULL : j->w->nodes[id].value;
    if (!insn)
        return false;
    j->steps = 0;
    if (find_unran(j, insn) || find_missed(j, insn))
        return true;
    if (!values || !ran(j, insn))
        return false;
    return reaches_missed(j, insn, DEPTH_MOST) || is_unseen(j, insn, DEPTH_MOST) ||
           loses_missed(j, insn, operand);
}

/* The operands that the edit takes from the instruction that it names first. */
static int64_t operands_lost(const ir_edit *edit) {
    if (edit->has_operand)
        return edit->operand;
    switch (edit->kind) {
    case IR_EDIT_DELETE:
    case IR_EDIT_REPLACE:
    case IR_EDIT_DROP_STORE:
    case IR_EDIT_FORWARD:
    case IR_EDIT_FORCE_CONDITION:
        return OPERANDS_ALL;
    default:
        return OPERANDS_NONE;
    }
}

static bool edit_misses(judge *j, const ir_edit *edit) {
    bool values = changes_values(edit->kind);
    bool is_copied = edit->kind == IR_EDIT_COPY; /* the copied instruction stays as it is */
    if (!is_copied && touches_missed(j, &edit->at, values, operands_lost(edit)))
        return true;
    if (edit->kind == IR_EDIT_SWAP && touches_missed(j, &edit->to, values, OPERANDS_NONE))
        return true;
    if (touches_missed(j, &edit->use.user, true, edit->use.operand))
        return true;
    for (size_t i = 0; i < edit->repair_count; i++) {
        const ir_use *use = &edit->repairs[i].use;
        if (touches_missed(j, &use->user, true, use->operand))
            return true;
    }
    return false;
}

enum { REACHED_MOST = 512 };

/* The shared or local array that a pointer leads to; else NULL. */
static LLVMValueRef own_array(LLVMValueRef pointer) {
    while (LLVMIsAGetElementPtrInst(pointer) || LLVMIsAAddrSpaceCastInst(pointer) ||
           LLVMIsAConstantExpr(pointer))
        pointer = LLVMGetOperand(pointer, 0);
    bool is_shared = LLVMIsAGlobalVariable(pointer) &&
                     LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == IR_SHARED_SPACE;
    return is_shared || LLVMIsAAllocaInst(pointer) ? pointer : NULL;
}

/* Values that an edit's value is a part of. */
typedef struct reached {
    LLVMValueRef of[REACHED_MOST];
    uint32_t count;
} reached;

static void add_reached(reached *r, LLVMValueRef value) {
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->of[i] == value)
            return;
    }
    if (r->count < REACHED_MOST)
        r->of[r->count++] = value;
}

/* Adds what is loaded from an array that a value is stored to. */
static void add_loads(const judge *j, reached *r, LLVMValueRef store) {
    LLVMValueRef array = own_array(LLVMGetOperand(store, 1));
    for (uint32_t i = 0; array && i < j->w->sequence_count; i++) {
        LLVMValueRef load = j->w->nodes[j->w->sequence[i]].value;
        if (load && LLVMIsALoadInst(load) && own_array(LLVMGetOperand(load, 0)) == array)
            add_reached(r, load);
    }
}

/* Whether a value leads into an arm that was never taken: by arithmetic, PHIs, and arrays of the
 * block's or the thread's own. Of very many values, the first ones are followed. */
static bool leads_to_unseen(judge *j, LLVMValueRef value) {
    reached r = {.of = {value}, .count = 1};
    for (uint32_t i = 0; i < r.count; i++) {
        for (LLVMUseRef use = LLVMGetFirstUse(r.of[i]); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            if (!LLVMIsAInstruction(user))
                continue;
            if (!ran(j, user)) {
                if (find_unran(j, user))
                    return true;
            } else if (hides(j, user, r.of[i])) {
                return true;
            } else if (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 0) == r.of[i]) {
                add_loads(j, &r, user);
            } else if (LLVMIsAPHINode(user) || ir_insn_is_pure(user)) {
                add_reached(&r, user);
            }
        }
    }
    return false;
}

/* Of an edit that rounds, whose values no case shows: whether it stands in code that never ran, or
 * leads into the arm of a choice that was never taken. */
static bool rounds_unseen(judge *j, const ir_edit *edit) {
    uint32_t id = edit->at.kind == IR_NAME_NONE ? IR_NONE : ir_work_find(j->w, &edit->at);
    LLVMValueRef insn = id == IR_NONE ? NULL : j->w->nodes[id].value;
    j->steps = 0;
    return insn && (find_unran(j, insn) || leads_to_unseen(j, insn));
}

/* ---- words ---- */

static const char *arm_in_words(LLVMValueRef choice, unsigned arm) {
    bool is_first = arm == IR_ARM_FIRST;
    if (arm == IR_ARM_RAN)
        return "no case ran it";
    if (ir_guard_of(choice) == IR_GUARD_ORDER)
        return is_first ? "its first operand was the lesser one in no case"
                        : "its first operand was the greater one in no case";
    return is_first ? "it was true in no case" : "it was false in no case";
}

static void explain(const judge *j, size_t index, const ir_edit *edit, ev_str *why) {
    uint32_t id = ir_work_id(j->w, j->missed);
    ir_name name = ir_work_name(j->w, id);
    ev_str_printf(why, "edit %zu ", index);
    ir_rule_of(edit->kind)->describe(j->w, edit, why);
    ev_str_append(why, "; this touches ");
    ir_describe_insn(j->w, &name, why);
    ev_str_printf(why, ", and %s", arm_in_words(j->missed, j->arm));
    uint32_t line = ir_work_line(j->w, id);
    ev_str_append(why, "; give the task a case or a domain that does it");
    if (line > 0)
        ev_str_printf(why, ", or, if no caller can, list line %u under \"assume\" of the start",
                      line);
}

static ev_status judge_edits(judge *j, const ir_genome *genome, ev_str *why, ev_error *err) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        bool bold = !ir_edit_is_structural(edit->kind) &&
                    (edit->repair_count > 0 || ir_is_bold_at(j->w, edit));
        j->w->tag = edit->tag;
        bool rounds = !bold && !ir_edit_is_structural(edit->kind) && ir_edit_may_round(edit->kind);
        if ((bold && edit_misses(j, edit)) || (rounds && rounds_unseen(j, edit))) {
            explain(j, i, edit, why);
            return ev_str_status(why, err);
        }
        ev_status status = ir_work_replay(j->w, edit, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "edit %zu (%s)", i, ir_edit_name(edit->kind));
    }
    return EV_OK;
}

ev_status ir_arms_missed(const ir_base *base, const ir_genome *genome, const ir_arms *arms,
                         ev_str *why, ev_error *err) {
    judge j = {
        .taken = arms->taken, .assumed = arms->assumed, .assumed_count = arms->assumed_count};
    EV_TRY(ir_work_open(base, &j.w, err));
    ev_status status = judge_edits(&j, genome, why, err);
    ir_work_close(j.w);
    return status;
}
