/* Raise: a loop that stands under a condition runs in any case, and its results are taken where the
 * condition holds.
 *
 * `if (j <= i) for (...) sum += ...;` is a loop that some threads of a block run and some do not.
 * No tile can be staged for such a loop, and members of a coarsened thread cannot share its turns.
 * Raised, all threads run the loop, the branch stands behind it, and what the loop is there for
 * stays under the condition. The option is the number of conditions, from the innermost outwards.
 *
 * Refused: the kernel's own tests at its beginning, which send threads home; a loop, or a way from
 * the condition to the loop, that does more than to compute and load, that divides by what is not
 * known, or that loads from places which memory names; a loop inside that does not count. Refused
 * as well: a number of turns that is loaded or chosen, which may be large where the condition does
 * not hold. Guessed: what the loop loads may be loaded there. The gates see an address that is out
 * of bounds or was never written. What was known because the condition held, such as an assumption,
 * is forgotten. */
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

#include <string.h>

enum { MOST_CONDITIONS = 4 };

typedef struct raising {
    ir_structure *s;
    ir_flow flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    uint32_t branch; /* the block that ends with the condition */
    bool runs_if;    /* the value of the condition with which the loop ran */
} raising;

/* ---- what is refused --------------------------------------------------------------------------
 */

/* Whether a value is computed from memory. seen: by instruction. */
static bool comes_from_memory(const ir_flow *flow, LLVMValueRef value, bool *seen) {
    uint32_t insn = ir_flow_insn(flow, value);
    if (insn == IR_NONE || seen[insn])
        return false;
    seen[insn] = true;
    if (ir_deed_of(value) != IR_DEED_PURE)
        return true;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (comes_from_memory(flow, LLVMGetOperand(value, (unsigned)k), seen))
            return true;
    }
    return false;
}

/* The condition may keep the loop from places that stand in memory and are none. */
static ev_status check_addresses(const raising *r, uint32_t block, ev_error *err) {
    bool *seen = EV_NEW_ARRAY(r->s->arena, bool, r->flow.insn_count + 1);
    if (!seen)
        return ev_fail_memory(err, r->flow.insn_count);
    for (uint32_t i = r->flow.first[block]; i < r->flow.first[block + 1]; i++) {
        LLVMValueRef pointer = ir_pointer_of(r->flow.insns[i]);
        if (pointer && comes_from_memory(&r->flow, pointer, seen))
            return ev_fail(err, EV_BAD,
                           "what runs under the condition loads from places that memory names");
    }
    return EV_OK;
}

/* The edit guesses that no load is out of bounds where the condition does not hold. Cases refute a
 * wrong guess only where they run the load. */
static ev_status check_shown(const raising *r, uint32_t block, ev_error *err) {
    bool loads = false;
    for (uint32_t i = r->flow.first[block]; i < r->flow.first[block + 1]; i++)
        loads |= ir_pointer_of(r->flow.insns[i]) != NULL;
    if (!loads || ir_is_led_by_told(&r->flow, r->loop->header, block))
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "data decide whether a load of the loop runs, so no case may show that the "
                   "load is out of bounds where the condition does not hold");
}

/* EV_BAD: a block does what a thread must not do if the condition does not hold. */
static ev_status check_block(const raising *r, uint32_t block, ev_error *err) {
    for (uint32_t i = r->flow.first[block]; i < r->flow.first[block + 1]; i++) {
        LLVMValueRef insn = r->flow.insns[i];
        if (ir_has_effect(insn))
            return ev_fail(err, EV_BAD, "what runs under the condition stores or waits");
        if (ir_deed_of(insn) == IR_DEED_PURE && !ir_may_run_anywhere(insn))
            return ev_fail(err, EV_BAD,
                           "what runs under the condition divides by a number that is not known, "
                           "or calls a function");
    }
    return EV_OK;
}

/* The loop counts, and as often where the condition does not hold. */
static ev_status check_turns(const raising *r, const ir_loop *loop, ev_error *err) {
    EV_TRY(ir_loop_check_counts(&r->flow, loop, err));
    if (!ir_is_plain(&r->flow, loop->start, IR_COUNTERS_ALL) ||
        !ir_is_plain(&r->flow, loop->bound, IR_COUNTERS_ALL))
        return ev_fail(err, EV_BAD,
                       "the loop's number of turns depends on a choice or on memory, and the "
                       "condition may keep the loop from running too often");
    return EV_OK;
}

static ev_status find_loop(raising *r, const ir_edit *edit, ev_error *err) {
    const ir_flow *flow = &r->flow;
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    r->loop = &flow->loops[at];
    if (r->loop->preheader == IR_NONE)
        return ev_fail(err, EV_BAD, "the loop is entered in more than one place");
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (r->loop->holds[flow->loops[l].header])
            EV_TRY(check_turns(r, &flow->loops[l], err));
    }
    for (uint32_t b = 0; b < flow->count; b++) {
        if (!r->loop->holds[b])
            continue;
        EV_TRY(check_block(r, b, err));
        EV_TRY(check_addresses(r, b, err));
        EV_TRY(check_shown(r, b, err));
    }
    return EV_OK;
}

/* The only block that leads to `block`; IR_NONE: there are several, or none. */
static uint32_t only_before(const ir_flow *flow, uint32_t block) {
    uint32_t first = flow->back.first[block];
    return flow->back.first[block + 1] - first == 1 ? flow->back.succ[first] : IR_NONE;
}

static bool reads_memory(LLVMValueRef insn) {
    return ir_deed_of(insn) != IR_DEED_PURE;
}

/* Whether cases show the condition's other arm: cases differ in data, and in the order of arguments
 * and indices. How large an array is may depend on whether an argument is a certain number. */
static bool is_shown(const raising *r, LLVMValueRef condition, unsigned depth) {
    LLVMValueRef parts[2];
    if (depth > 0 &&
        (ir_is_either(condition, true, parts) || ir_is_either(condition, false, parts)))
        return is_shown(r, parts[0], depth - 1) && is_shown(r, parts[1], depth - 1);
    return ir_has_part(condition, reads_memory) || ir_is_told(&r->flow, condition, false);
}

/* Finds the innermost condition around the loop, through blocks that always lead there. */
static ev_status find_condition(raising *r, ev_error *err) {
    const ir_flow *flow = &r->flow;
    uint32_t block = r->loop->preheader, before = IR_NONE;
    for (;; block = before) {
        before = only_before(flow, block);
        LLVMValueRef last = before == IR_NONE ? NULL : ir_flow_last(flow, before);
        if (!last || !LLVMIsABranchInst(last))
            return ev_fail(err, EV_BAD, "the loop does not stand under a condition of its own");
        EV_TRY(check_block(r, block, err));
        EV_TRY(check_addresses(r, block, err));
        if (!LLVMIsConditional(last))
            continue;
        r->branch = before;
        r->runs_if = LLVMGetSuccessor(last, 0) == flow->blocks[block];
        break;
    }
    enum { DEEPEST = 8 };
    if (!is_shown(r, LLVMGetCondition(ir_flow_last(flow, r->branch)), DEEPEST))
        return ev_fail(err, EV_BAD,
                       "the condition asks whether an argument is a certain number, and where it "
                       "does not hold, arrays may be smaller");
    ir_guards guards;
    ir_guards_find(flow, false, &guards);
    for (uint32_t g = 0; g < guards.count; g++) {
        if (guards.block[g] == flow->blocks[r->branch])
            return ev_fail(err, EV_BAD, "the condition sends threads home");
    }
    uint32_t inner = ir_loop_of(flow, r->branch);
    if (inner != IR_NONE && flow->loops[inner].header == r->branch)
        return ev_fail(err, EV_BAD, "the condition is that of a loop around it");
    return EV_OK;
}

/* ---- what is written --------------------------------------------------------------------------
 */

/* Lets the PHIs of a block take from `to` what came from `from`. */
static void move_edge(const raising *r, LLVMBasicBlockRef block, LLVMBasicBlockRef from,
                      LLVMBasicBlockRef to) {
    LLVMValueRef next = NULL;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(block); LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        ir_structure_renew_phi(r->builder, phi, from, to);
    }
}

/* Takes from a block what was known because the condition held: assumptions, and what loads say of
 * their values. */
static void forget(const raising *r, uint32_t block) {
    static const char *const kinds[] = {"range", "noundef", "nonnull", "align", "dereferenceable"};
    LLVMContextRef context = r->s->base->context;
    for (uint32_t i = r->flow.first[block]; i < r->flow.first[block + 1]; i++) {
        LLVMValueRef insn = r->flow.insns[i];
        for (size_t k = 0; LLVMIsALoadInst(insn) && k < sizeof kinds / sizeof kinds[0]; k++) {
            unsigned kind = LLVMGetMDKindIDInContext(context, kinds[k], (unsigned)strlen(kinds[k]));
            LLVMSetMetadata(insn, kind, NULL);
        }
        if (strcmp(ir_call_name(insn), "llvm.assume") == 0)
            LLVMInstructionEraseFromParent(insn);
    }
}

static void forget_all(const raising *r) {
    for (uint32_t b = 0; b < r->flow.count; b++) {
        bool is_way = b != r->branch && ir_dominance_over(&r->flow.over, r->branch, b) &&
                      ir_dominance_over(&r->flow.over, b, r->loop->header);
        if (is_way || r->loop->holds[b])
            forget(r, b);
    }
}

/* Moves the branch behind the loop: the loop's exit gets a block before it, which decides. */
static void write(const raising *r) {
    const ir_flow *flow = &r->flow;
    LLVMBasicBlockRef branch = flow->blocks[r->branch], exit = flow->blocks[r->loop->exit];
    LLVMValueRef last = ir_flow_last(flow, r->branch), condition = LLVMGetCondition(last);
    LLVMBasicBlockRef runs = LLVMGetSuccessor(last, r->runs_if ? 0 : 1);
    LLVMBasicBlockRef rest = LLVMGetSuccessor(last, r->runs_if ? 1 : 0);
    LLVMBasicBlockRef decides = LLVMInsertBasicBlockInContext(r->s->base->context, exit, "");
    LLVMValueRef out = ir_flow_last(flow, r->loop->header); /* the only way there */
    for (unsigned k = 0; k < LLVMGetNumSuccessors(out); k++) {
        if (LLVMGetSuccessor(out, k) == exit)
            LLVMSetSuccessor(out, k, decides);
    }
    LLVMPositionBuilderAtEnd(r->builder, decides);
    LLVMValueRef next = NULL;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(exit); LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        LLVMInstructionRemoveFromParent(phi);
        LLVMInsertIntoBuilder(r->builder, phi);
    }
    LLVMBuildCondBr(r->builder, condition, r->runs_if ? exit : rest, r->runs_if ? rest : exit);
    move_edge(r, rest, branch, decides);
    LLVMPositionBuilderBefore(r->builder, last);
    LLVMBuildBr(r->builder, runs);
    LLVMInstructionEraseFromParent(last);
}

static ev_status raise_once(raising *r, const ir_edit *edit, ev_error *err) {
    EV_TRY(ir_flow_make(r->s->function, r->s->arena, &r->flow, err));
    EV_TRY(find_loop(r, edit, err));
    EV_TRY(find_condition(r, err));
    write(r);
    forget_all(r);
    return EV_OK;
}

ev_status ir_structure_raise(ir_structure *s, const ir_edit *edit, ev_error *err) {
    raising r = {.s = s};
    if (edit->has_option && (edit->option < 1 || edit->option > MOST_CONDITIONS))
        return ev_fail(err, EV_BAD, "\"option\" is not from 1 to %d", MOST_CONDITIONS);
    r.builder = LLVMCreateBuilderInContext(s->base->context);
    LLVMSetCurrentDebugLocation2(r.builder, NULL);
    ev_status status = EV_OK;
    for (int64_t i = 0; status == EV_OK && i < (edit->has_option ? edit->option : 1); i++)
        status = raise_once(&r, edit, err);
    LLVMDisposeBuilder(r.builder);
    return status;
}
