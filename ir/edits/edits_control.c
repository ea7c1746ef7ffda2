/* Edits of control flow: conditions forced, branches replaced by selects (if-conversion), selects
 * replaced by branches.
 *
 * If-conversion takes a branch whose sides join again and whose instructions may run any time.
 * `apply` moves the instructions of both sides in front of the branch, and each PHI of the join
 * becomes a select. The sides stay as unreachable blocks, so the other entries of the PHIs remain
 * valid until the optimiser removes the blocks. The reverse edit sinks one arm of a select into a
 * new block, with branch weights that keep the optimiser from folding the branch back. */
#include "ir/internal.h"

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

static bool is_conditional(LLVMValueRef insn) {
    return LLVMIsABranchInst(insn) && LLVMIsConditional(insn);
}

/* ---- force-condition --------------------------------------------------------------------------
 */

/* The condition of a branch or select is its first operand. */
static bool has_condition(LLVMValueRef insn) {
    bool chooses = is_conditional(insn) || LLVMIsASelectInst(insn);
    return chooses &&
           LLVMTypeOf(LLVMGetOperand(insn, 0)) ==
               LLVMInt1TypeInContext(LLVMGetTypeContext(LLVMTypeOf(insn))) &&
           !LLVMIsAConstant(LLVMGetOperand(insn, 0));
}

static void condition_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (!has_condition(value_at(w, w->sequence[place])))
            continue;
        ir_sites_add(sites, w->sequence[place], 0);
        ir_sites_add(sites, w->sequence[place], 1);
    }
}

static bool draw_index(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    edit->has_option = true;
    edit->option = site.index;
    return true;
}

static ev_status apply_condition(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!has_condition(value_at(w, at)) || !edit->has_option || edit->option < 0 ||
        edit->option > 1)
        return ev_fail(err, EV_BAD,
                       "\"at\" is no branch or select with a condition, or \"option\" "
                       "is neither 0 nor 1");
    LLVMTypeRef type = LLVMInt1TypeInContext(w->context);
    LLVMSetOperand(value_at(w, at), 0, LLVMConstInt(type, (unsigned)edit->option, false));
    return EV_OK;
}

static void describe_condition(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "makes the condition of ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, edit->option == 1 ? " always true" : " always false");
}

const ir_rule ir_rule_FORCE_CONDITION = {condition_sites, draw_index, apply_condition,
                                         describe_condition};

/* ---- branch-to-select -------------------------------------------------------------------------
 */

/* A branch whose sides join again. `side[0]` runs if the condition holds; IR_NONE: the branch goes
 * straight to the join. */
typedef struct diamond {
    uint32_t head, side[2], join;
} diamond;

static uint32_t predecessors(const ir_work *w, uint32_t block) {
    uint32_t count = 0;
    for (uint32_t e = 0; e < w->graph.first[w->graph.count]; e++)
        count += w->graph.succ[e] == block + 1;
    return count;
}

/* Whether a block is a side: it has one predecessor and one successor, and LLVM may run its
 * instructions at any time. The gates judge whether its loads may run. */
static bool is_side(const ir_work *w, uint32_t block, uint32_t *next) {
    LLVMBasicBlockRef at = w->blocks[block].block;
    LLVMValueRef last = LLVMGetBasicBlockTerminator(at);
    if (!LLVMIsABranchInst(last) || LLVMIsConditional(last) || predecessors(w, block) != 1)
        return false;
    for (LLVMValueRef i = LLVMGetFirstInstruction(at); i != last; i = LLVMGetNextInstruction(i)) {
        if (!LLVMIsALoadInst(i) && !ir_insn_is_pure(i)) /* a PHI is not pure */
            return false;
    }
    *next = ir_work_block_of(w, LLVMGetSuccessor(last, 0));
    return true;
}

static bool find_diamond(const ir_work *w, uint32_t at, diamond *out) {
    LLVMValueRef branch = value_at(w, at);
    if (!is_conditional(branch))
        return false;
    uint32_t to[2], beyond[2] = {IR_NONE, IR_NONE};
    bool side[2];
    for (unsigned i = 0; i < 2; i++) {
        to[i] = ir_work_block_of(w, LLVMGetSuccessor(branch, i));
        side[i] = is_side(w, to[i], &beyond[i]);
    }
    *out = (diamond){w->nodes[at].block, {IR_NONE, IR_NONE}, IR_NONE};
    if (to[0] == to[1] || to[0] == out->head || to[1] == out->head)
        return false;
    if (side[0] && beyond[0] == to[1]) {
        out->side[0] = to[0];
        out->join = to[1];
    } else if (side[1] && beyond[1] == to[0]) {
        out->side[1] = to[1];
        out->join = to[0];
    } else if (side[0] && side[1] && beyond[0] == beyond[1] && beyond[0] != out->head) {
        out->side[0] = to[0];
        out->side[1] = to[1];
        out->join = beyond[0];
    } else {
        return false;
    }
    return LLVMIsAPHINode(LLVMGetFirstInstruction(w->blocks[out->join].block)) != NULL;
}

static void branch_sites(const ir_work *w, ir_sites *sites) {
    diamond unused;
    for (uint32_t b = 0; b < w->block_count; b++) {
        uint32_t last = w->sequence[w->blocks[b].last - 1];
        if (find_diamond(w, last, &unused))
            ir_sites_add(sites, last, 0);
    }
}

static bool draw_at(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static void lift_side(ir_work *w, uint32_t side, uint32_t before) {
    if (side == IR_NONE)
        return;
    const ir_block *block = &w->blocks[side];
    for (uint32_t i = block->first; i + 1 < block->last; i++)
        ir_work_move_before(w, w->sequence[i], before);
}

/* The value of a join's PHI if the branch goes to `side`. */
static LLVMValueRef incoming(const ir_work *w, const diamond *d, LLVMValueRef phi, int side,
                             unsigned *index) {
    uint32_t from = d->side[side] == IR_NONE ? d->head : d->side[side];
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (LLVMGetIncomingBlock(phi, i) == w->blocks[from].block) {
            *index = i;
            return LLVMGetIncomingValue(phi, i);
        }
    }
    return LLVMGetPoison(LLVMTypeOf(phi)); /* does not occur in a valid module */
}

/* Converts the branch. The sides stay as unreachable blocks, so that the PHIs' other entries stay
 * valid, and the optimiser removes them. */
static void select_phi(ir_work *w, const diamond *d, LLVMValueRef condition, LLVMValueRef phi) {
    unsigned index[2] = {0, 0};
    LLVMValueRef yes = incoming(w, d, phi, 0, &index[0]);
    LLVMValueRef no = incoming(w, d, phi, 1, &index[1]);
    LLVMValueRef chosen = LLVMBuildSelect(w->builder, condition, yes, no, "");
    if (LLVMIsAInstruction(chosen) && ir_work_id(w, chosen) == IR_NONE)
        ir_work_added(w, chosen);
    LLVMBasicBlockRef head = w->blocks[d->head].block;
    if (d->side[0] != IR_NONE && d->side[1] != IR_NONE)
        LLVMAddIncoming(phi, &chosen, &head, 1);
    else
        LLVMSetOperand(phi, d->side[0] == IR_NONE ? index[0] : index[1], chosen);
}

static ev_status apply_branch(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    diamond d;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!find_diamond(w, at, &d))
        return ev_fail(err, EV_BAD,
                       "\"at\" is no branch around loads and pure instructions to a join");
    LLVMValueRef branch = value_at(w, at);
    lift_side(w, d.side[0], at);
    lift_side(w, d.side[1], at);
    LLVMBasicBlockRef join = w->blocks[d.join].block;
    LLVMPositionBuilderBefore(w->builder, branch);
    for (LLVMValueRef phi = LLVMGetFirstInstruction(join); phi && LLVMIsAPHINode(phi);
         phi = LLVMGetNextInstruction(phi))
        select_phi(w, &d, LLVMGetCondition(branch), phi);
    ir_work_added(w, LLVMBuildBr(w->builder, join));
    ir_work_erase(w, at);
    w->cfg_changed = true;
    return EV_OK;
}

static bool side_loads(const ir_work *w, uint32_t side) {
    bool loads = false;
    for (uint32_t i = side == IR_NONE ? 0 : w->blocks[side].first;
         side != IR_NONE && i < w->blocks[side].last; i++)
        loads = loads || LLVMIsALoadInst(value_at(w, w->sequence[i]));
    return loads;
}

bool ir_branch_is_bold(const ir_work *w, const ir_edit *edit) {
    uint32_t at = ir_work_find(w, &edit->at);
    diamond d;
    return at == IR_NONE || !find_diamond(w, at, &d) || side_loads(w, d.side[0]) ||
           side_loads(w, d.side[1]);
}

static void describe_branch(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "computes both sides of ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " and selects");
}

const ir_rule ir_rule_BRANCH_TO_SELECT = {branch_sites, draw_at, apply_branch, describe_branch};

/* ---- select-to-branch -------------------------------------------------------------------------
 */

static bool has_one_use(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

/* The arm `index` (0: taken if true), if it is an instruction of the select's block that only the
 * select uses and that may move down to it; else IR_NONE. A load may cross stores by this move; the
 * gates judge that. */
static uint32_t movable_arm(const ir_work *w, uint32_t at, uint32_t index) {
    LLVMValueRef select = value_at(w, at);
    uint32_t arm = ir_work_id(w, LLVMGetOperand(select, 1 + index));
    if (arm == IR_NONE || w->nodes[arm].block != w->nodes[at].block)
        return IR_NONE;
    LLVMValueRef insn = value_at(w, arm);
    bool moves = LLVMIsALoadInst(insn) || ir_insn_is_pure(insn);
    return moves && has_one_use(insn) ? arm : IR_NONE;
}

static bool is_scalar_select(const ir_work *w, uint32_t at) {
    return LLVMIsASelectInst(value_at(w, at)) && has_condition(value_at(w, at));
}

static void select_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        for (uint32_t index = 0; is_scalar_select(w, id) && index < 2; index++) {
            if (movable_arm(w, id, index) != IR_NONE)
                ir_sites_add(sites, id, index);
        }
    }
}

/* Splits the block of `at`: makes a block in front of it, and moves all instructions before `at`
 * there. Branches to the old block then lead to the new one, and the PHIs behind keep their
 * entries. */
static LLVMBasicBlockRef split_before(ir_work *w, uint32_t at) {
    LLVMBasicBlockRef tail = w->blocks[w->nodes[at].block].block;
    LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(w->context, tail, "");
    LLVMValueRef last = LLVMGetBasicBlockTerminator(tail);
    /* If the terminator were in place, LLVM would rename the block in its successors' PHIs, too. */
    LLVMInstructionRemoveFromParent(last);
    LLVMReplaceAllUsesWith(LLVMBasicBlockAsValue(tail), LLVMBasicBlockAsValue(head));
    LLVMPositionBuilderAtEnd(w->builder, tail);
    LLVMInsertIntoBuilder(w->builder, last);
    LLVMPositionBuilderAtEnd(w->builder, head);
    for (LLVMValueRef i = LLVMGetFirstInstruction(tail); i != value_at(w, at);
         i = LLVMGetFirstInstruction(tail)) {
        LLVMInstructionRemoveFromParent(i);
        LLVMInsertIntoBuilder(w->builder, i);
    }
    return head;
}

/* Weights that keep the optimiser from folding the branch back into a select. */
static void mark_likely(const ir_work *w, LLVMValueRef branch, bool first) {
    static const char name[] = "branch_weights", prof[] = "prof";
    LLVMTypeRef i32 = LLVMInt32TypeInContext(w->context);
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(w->context, name, sizeof name - 1),
                               LLVMValueAsMetadata(LLVMConstInt(i32, first ? 2000 : 1, false)),
                               LLVMValueAsMetadata(LLVMConstInt(i32, first ? 1 : 2000, false))};
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(w->context, prof, sizeof prof - 1),
                    LLVMMetadataAsValue(w->context, LLVMMDNodeInContext2(w->context, parts, 3)));
}

static void branch_on_select(ir_work *w, uint32_t at, uint32_t arm, uint32_t index) {
    LLVMValueRef select = value_at(w, at);
    LLVMValueRef condition = LLVMGetOperand(select, 0), other = LLVMGetOperand(select, 2 - index);
    LLVMBasicBlockRef tail = w->blocks[w->nodes[at].block].block;
    LLVMBasicBlockRef head = split_before(w, at);
    LLVMBasicBlockRef side = LLVMInsertBasicBlockInContext(w->context, tail, "");
    LLVMValueRef branch =
        LLVMBuildCondBr(w->builder, condition, index == 0 ? side : tail, index == 0 ? tail : side);
    mark_likely(w, branch, index != 0);
    ir_work_added(w, branch);
    LLVMPositionBuilderAtEnd(w->builder, side);
    LLVMValueRef moved = value_at(w, arm);
    LLVMInstructionRemoveFromParent(moved);
    LLVMInsertIntoBuilder(w->builder, moved);
    ir_work_added(w, LLVMBuildBr(w->builder, tail));
    LLVMPositionBuilderBefore(w->builder, select);
    LLVMValueRef phi = LLVMBuildPhi(w->builder, LLVMTypeOf(select), "");
    ir_work_added(w, phi);
    LLVMAddIncoming(phi, (LLVMValueRef[]){moved, other}, (LLVMBasicBlockRef[]){side, head}, 2);
    LLVMReplaceAllUsesWith(select, phi);
    ir_work_doom(w, at);
    w->cfg_changed = true;
}

static ev_status apply_select(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    bool fits =
        edit->has_option && (edit->option == 0 || edit->option == 1) && is_scalar_select(w, at);
    uint32_t arm = fits ? movable_arm(w, at, (uint32_t)edit->option) : IR_NONE;
    if (arm == IR_NONE)
        return ev_fail(err, EV_BAD,
                       "\"at\" is no select whose arm \"option\" (0: the first) only "
                       "it uses");
    branch_on_select(w, at, arm, (uint32_t)edit->option);
    return EV_OK;
}

bool ir_arm_is_bold(const ir_work *w, const ir_edit *edit) {
    uint32_t at = ir_work_find(w, &edit->at);
    bool fits =
        at != IR_NONE && (edit->option == 0 || edit->option == 1) && is_scalar_select(w, at);
    uint32_t arm = fits ? movable_arm(w, at, (uint32_t)edit->option) : IR_NONE;
    if (arm == IR_NONE)
        return true;
    bool crosses = false;
    for (uint32_t i = w->nodes[arm].order; i < w->nodes[at].order; i++)
        crosses = crosses || ir_may_write(value_at(w, w->sequence[i]));
    return crosses && LLVMIsALoadInst(value_at(w, arm)) &&
           !ir_is_never_written(w, LLVMGetOperand(value_at(w, arm), 0));
}

static void describe_select(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_printf(out, "computes the %s arm only where it is taken, of ",
                  edit->option == 0 ? "first" : "second");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_SELECT_TO_BRANCH = {select_sites, draw_index, apply_select, describe_select};
