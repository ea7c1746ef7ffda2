/* Pipeline: a loop's loads from global memory run a turn ahead.
 *
 * The loads of the first turn stand before the loop, and each turn begins with the loads of the
 * next one; a PHI carries what was loaded. So a turn's arithmetic need not wait for the turn's own
 * loads. The last turn has no next one: its counters stay where they are, so it loads its own
 * addresses once more, which are valid. */
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/pipeline_internal.h"

bool piping_holds(const piping *p, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&p->flow, value);
    return insn != IR_NONE && p->loop->holds[p->flow.home[insn]];
}

LLVMBasicBlockRef piping_header(const piping *p) {
    return p->flow.blocks[p->loop->header];
}

const early_load *piping_find(const piping *p, LLVMValueRef value) {
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->loads[i].load == value)
            return &p->loads[i];
    }
    return NULL;
}

/* ---- which loads ------------------------------------------------------------------------------
 */

static bool is_known(const piping *p, LLVMValueRef value, unsigned depth) {
    if (!piping_holds(p, value) || (piping_find(p, value) && p->takes_chains))
        return true;
    if (depth == 0)
        return false;
    if (LLVMIsAPHINode(value)) {
        LLVMValueRef next = LLVMGetInstructionParent(value) == piping_header(p)
                                ? ir_flow_incoming(&p->flow, value, p->loop->latch)
                                : NULL;
        return next && LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
               LLVMGetOperand(next, 0) == value && !piping_holds(p, LLVMGetOperand(next, 1));
    }
    if (!ir_may_run_anywhere(value) &&
        !(ir_divides(value) && !piping_holds(p, LLVMGetOperand(value, 1))))
        return false;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!is_known(p, LLVMGetOperand(value, (unsigned)k), depth - 1))
            return false;
    }
    return true;
}

bool piping_knows(const piping *p, LLVMValueRef value) {
    return is_known(p, value, PIPING_DEEPEST);
}

static bool runs_each_turn(const piping *p, uint32_t block) {
    return block != p->loop->header && ir_dominance_over(&p->flow.over, block, p->loop->latch) &&
           &p->flow.loops[ir_loop_of(&p->flow, block)] == p->loop;
}

static ev_status list_loads(piping *p, ev_error *err) {
    for (uint32_t i = 0; i < p->flow.insn_count && p->count < PIPING_LOADS; i++) {
        LLVMValueRef load = p->flow.insns[i], base = NULL;
        if (!piping_holds(p, load) || ir_deed_of(load) != IR_DEED_LOAD ||
            !runs_each_turn(p, p->flow.home[i]) || !ir_reads_only(&p->flow, load, &base) ||
            !piping_knows(p, LLVMGetOperand(load, 0)))
            continue;
        p->loads[p->count++] = (early_load){.load = load};
    }
    return p->count > 0 ? EV_OK
                        : ev_fail(err, EV_BAD,
                                  "no load from an argument that the kernel does not write runs "
                                  "in each turn at an address that is known ahead");
}

static bool leaves_at_top(const piping *p) {
    uint32_t block = p->loop->header, at = p->flow.next.first[block];
    return p->flow.next.first[block + 1] == at + 2 &&
           p->loop->holds[p->flow.next.succ[at]] != p->loop->holds[p->flow.next.succ[at + 1]];
}

static ev_status check_loop(const piping *p, ev_error *err) {
    const ir_loop *loop = p->loop;
    LLVMValueRef last = ir_flow_last(&p->flow, loop->header);
    if (loop->latch == IR_NONE || loop->preheader == IR_NONE || loop->exit == IR_NONE ||
        !LLVMIsABranchInst(last) || !leaves_at_top(p) || !piping_knows(p, LLVMGetCondition(last)))
        return ev_fail(err, EV_BAD, "the loop does not count to a bound, tested at its top");
    if (!ir_loop_is_left_once(&p->flow, loop))
        return ev_fail(err, EV_BAD, "a turn of the loop may leave it before the next one loads");
    return ir_check_stays(&p->flow, loop, err);
}

/* ---- expressions of a turn --------------------------------------------------------------------
 */

LLVMValueRef piping_write(const piping *p, LLVMValueRef value, turn at) {
    if (!piping_holds(p, value))
        return value;
    const early_load *load = piping_find(p, value);
    if (load)
        return at == FIRST ? load->before : load->next;
    if (LLVMIsAPHINode(value)) {
        if (at == FIRST)
            return ir_flow_incoming(&p->flow, value, p->loop->preheader);
        LLVMValueRef next = LLVMInstructionClone(ir_flow_incoming(&p->flow, value, p->loop->latch));
        LLVMInsertIntoBuilder(p->builder, next);
        return at == NEXT ? next : LLVMBuildSelect(p->builder, p->more, next, value, "");
    }
    LLVMValueRef made = LLVMInstructionClone(value);
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)k);
        if (piping_holds(p, operand))
            LLVMSetOperand(made, (unsigned)k, piping_write(p, operand, at));
    }
    LLVMInsertIntoBuilder(p->builder, made);
    return made;
}

LLVMValueRef piping_goes_on(const piping *p, turn at) {
    LLVMValueRef last = ir_flow_last(&p->flow, p->loop->header);
    LLVMValueRef test = piping_write(p, LLVMGetCondition(last), at);
    bool stays_if = p->loop->holds[ir_flow_block(&p->flow, LLVMGetSuccessor(last, 0))];
    return stays_if ? test : LLVMBuildNot(p->builder, test, "");
}

LLVMValueRef piping_clone_load(const piping *p, LLVMValueRef load, LLVMValueRef pointer) {
    LLVMValueRef made = LLVMInstructionClone(load);
    LLVMSetOperand(made, 0, pointer);
    LLVMInsertIntoBuilder(p->builder, made);
    return made;
}

/* ---- the first turn ---------------------------------------------------------------------------
 */

/* Writes the first turn's loads between the preheader and the loop, under the loop's own test, and
 * the PHIs that take what was loaded. */
static LLVMBasicBlockRef write_first(piping *p, LLVMValueRef *taken) {
    LLVMContextRef context = p->s->base->context;
    LLVMBasicBlockRef before = p->flow.blocks[p->loop->preheader];
    LLVMBasicBlockRef with = LLVMInsertBasicBlockInContext(context, piping_header(p), "");
    LLVMBasicBlockRef join = LLVMInsertBasicBlockInContext(context, piping_header(p), "");
    LLVMValueRef last = LLVMGetBasicBlockTerminator(before);
    LLVMPositionBuilderBefore(p->builder, last);
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMBuildCondBr(p->builder, piping_goes_on(p, FIRST), with, join);
    LLVMInstructionEraseFromParent(last);
    LLVMPositionBuilderAtEnd(p->builder, with);
    for (uint32_t i = 0; i < p->count; i++) {
        LLVMValueRef load = p->loads[i].load;
        p->loads[i].before =
            piping_clone_load(p, load, piping_write(p, LLVMGetOperand(load, 0), FIRST));
    }
    LLVMBuildBr(p->builder, join);
    LLVMPositionBuilderAtEnd(p->builder, join);
    for (uint32_t i = 0; i < p->count; i++) {
        LLVMTypeRef type = LLVMTypeOf(p->loads[i].load);
        LLVMValueRef values[] = {p->loads[i].before, LLVMConstNull(type)};
        LLVMBasicBlockRef from[] = {with, before};
        taken[i] = LLVMBuildPhi(p->builder, type, "");
        LLVMAddIncoming(taken[i], values, from, 2);
    }
    LLVMBuildBr(p->builder, piping_header(p));
    return join;
}

void ir_structure_renew_phi(LLVMBuilderRef builder, LLVMValueRef phi, LLVMBasicBlockRef before,
                            LLVMBasicBlockRef after) {
    LLVMPositionBuilderBefore(builder, phi);
    LLVMValueRef made = LLVMBuildPhi(builder, LLVMTypeOf(phi), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        from = from == before ? after : from;
        LLVMAddIncoming(made, &value, &from, 1);
    }
    LLVMReplaceAllUsesWith(phi, made);
    LLVMInstructionEraseFromParent(phi);
}

/* ---- the next turn ----------------------------------------------------------------------------
 */

/* Writes the next turn's loads at the beginning of the block of this turn's. */
static void write_next(piping *p) {
    LLVMBasicBlockRef body = LLVMGetInstructionParent(p->loads[0].load);
    LLVMValueRef at = LLVMGetFirstInstruction(body);
    while (LLVMIsAPHINode(at))
        at = LLVMGetNextInstruction(at);
    LLVMPositionBuilderBefore(p->builder, at);
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    p->more = piping_goes_on(p, NEXT);
    for (uint32_t i = 0; i < p->count; i++) {
        LLVMValueRef load = p->loads[i].load;
        p->loads[i].next =
            piping_clone_load(p, load, piping_write(p, LLVMGetOperand(load, 0), AHEAD));
    }
}

/* Gives the loop what was loaded ahead in place of its own loads. */
static void carry(piping *p, LLVMBasicBlockRef join, LLVMValueRef *taken) {
    for (uint32_t i = 0; i < p->count; i++) {
        early_load *it = &p->loads[i];
        LLVMPositionBuilderBefore(p->builder, LLVMGetFirstInstruction(piping_header(p)));
        LLVMSetCurrentDebugLocation2(p->builder, NULL);
        it->phi = LLVMBuildPhi(p->builder, LLVMTypeOf(it->load), "");
        LLVMValueRef values[] = {taken[i], it->next};
        LLVMBasicBlockRef from[] = {join, p->flow.blocks[p->loop->latch]};
        LLVMAddIncoming(it->phi, values, from, 2);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        LLVMReplaceAllUsesWith(p->loads[i].load, p->loads[i].phi);
        LLVMInstructionEraseFromParent(p->loads[i].load);
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static ev_status check_anchor(piping *p, const ir_edit *edit, ev_error *err) {
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&p->flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    if (!edit->has_option || edit->option < 1 || edit->option > 2)
        return ev_fail(err, EV_BAD,
                       "\"option\" is not 1 (loads at addresses that are counted) or 2 "
                       "(loads at loaded addresses as well)");
    if (edit->form != IR_FORM_NONE && edit->form != IR_FORM_GUARDED)
        return ev_fail(err, EV_BAD, "\"form\" is not guarded; leave the form out or write guarded");
    p->loop = &p->flow.loops[at];
    p->takes_chains = edit->option == 2;
    return EV_OK;
}

static ev_status pipeline(piping *p, const ir_edit *edit, ev_error *err) {
    LLVMValueRef taken[PIPING_LOADS];
    if (edit->form == IR_FORM_GUARDED && edit->anchor.kind == IR_ANCHOR_LOOP)
        EV_TRY(ir_unroll_single_turns(p->s, edit->anchor.path, err));
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(check_anchor(p, edit, err));
    EV_TRY(check_loop(p, err));
    if (edit->form == IR_FORM_GUARDED)
        return piping_guarded(p, err);
    EV_TRY(list_loads(p, err));
    LLVMBasicBlockRef join = write_first(p, taken);
    write_next(p);
    for (uint32_t i = p->flow.first[p->loop->header]; LLVMIsAPHINode(p->flow.insns[i]); i++)
        ir_structure_renew_phi(p->builder, p->flow.insns[i], p->flow.blocks[p->loop->preheader],
                               join);
    carry(p, join, taken);
    return EV_OK;
}

ev_status ir_structure_pipeline(ir_structure *s, const ir_edit *edit, ev_error *err) {
    piping p = {.s = s};
    p.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = pipeline(&p, edit, err);
    LLVMDisposeBuilder(p.builder);
    return status;
}
