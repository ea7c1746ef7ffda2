/* GEVO's six edits: copy, delete, move, replace, swap and operand-replace (Liou, Wang, Forrest,
 * Wu, "GEVO: GPU Code Optimization Using Evolutionary Computation", TACO 2020).
 *
 * The edits know nothing of the meaning of an instruction. Each changes the text, and ir/work.c
 * repairs the uses that break. Terminators, PHIs and tokens never move, so the control-flow graph
 * stays. */
#include "ir/internal.h"

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

static LLVMValueRef function_at(const ir_work *w, uint32_t id) {
    return w->blocks[w->nodes[id].block].function;
}

static void movable_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (ir_insn_is_movable(value_at(w, w->sequence[place])))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static ev_status need_movable(const ir_work *w, const ir_name *name, const char *what,
                              uint32_t *out, ev_error *err) {
    uint32_t id;
    EV_TRY(ir_work_need(w, name, what, &id, err));
    if (!ir_insn_is_movable(value_at(w, id)))
        return ev_fail(err, EV_BAD, "\"%s\" is a terminator or PHI, which stays where it is", what);
    *out = id;
    return EV_OK;
}

/* Whether an instruction is a place to insert before: any but a PHI, since only PHIs may stand
 * before a PHI. */
static ev_status need_place(const ir_work *w, const ir_edit *edit, uint32_t at, uint32_t *out,
                            ev_error *err) {
    uint32_t id;
    EV_TRY(ir_work_need(w, &edit->to, "to", &id, err));
    if (LLVMIsAPHINode(value_at(w, id)))
        return ev_fail(err, EV_BAD, "\"to\" is a PHI; nothing can come before it");
    if (id == at || function_at(w, id) != function_at(w, at))
        return ev_fail(err, EV_BAD, "\"to\" is \"at\" itself or in another function");
    *out = id;
    return EV_OK;
}

/* Draws another instruction that `fits`, uniformly over the module. False after some tries. */
static bool draw_other(const ir_work *w, uint32_t at, bool place, ev_pcg *rng, ir_name *out) {
    enum { TRIES = 16 };
    for (int i = 0; i < TRIES; i++) {
        uint32_t id = w->sequence[ev_pcg_below(rng, w->sequence_count)];
        bool fits = place ? !LLVMIsAPHINode(value_at(w, id)) : ir_insn_is_movable(value_at(w, id));
        if (fits && id != at && function_at(w, id) == function_at(w, at)) {
            *out = ir_work_name(w, id);
            return true;
        }
    }
    return false;
}

/* ---- delete -----------------------------------------------------------------------------------
 */

static bool draw_delete(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static ev_status apply_delete(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at = 0;
    EV_TRY(need_movable(w, &edit->at, "at", &at, err));
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_delete(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "deletes ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_DELETE = {movable_sites, draw_delete, apply_delete, describe_delete};

/* ---- copy -------------------------------------------------------------------------------------
 */

/* Whether an instruction inserted before `place` would reach the use. The inserted one has no node
 * yet. */
static bool place_reaches(const ir_work *w, uint32_t place, uint32_t user, uint32_t operand) {
    return place == user || ir_work_dominates(w, place, user, operand);
}

/* Draws a use of the type behind the place for the copy's value, without which the copy would be
 * dead. */
static bool draw_use(const ir_work *w, uint32_t place, LLVMTypeRef type, LLVMValueRef original,
                     ev_pcg *rng, ir_use *out) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < w->sequence_count; i++) {
        uint32_t user = w->sequence[i];
        LLVMValueRef insn = value_at(w, user);
        for (uint32_t k = 0; k < ir_operand_count(insn); k++) {
            LLVMValueRef value = LLVMGetOperand(insn, k);
            if (LLVMTypeOf(value) != type || value == original || LLVMIsAPHINode(insn) ||
                !ir_operand_is_free(insn, k) || !place_reaches(w, place, user, k))
                continue;
            /* Reservoir sampling: each use so far is equally likely. */
            if (ev_pcg_below(rng, ++seen) == 0)
                *out = (ir_use){ir_work_name(w, user), k};
        }
    }
    return seen > 0;
}

static bool draw_copy(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    edit->at = ir_work_name(w, site.id);
    if (!draw_other(w, site.id, true, rng, &edit->to))
        return false;
    LLVMValueRef insn = value_at(w, site.id);
    LLVMTypeRef type = LLVMTypeOf(insn);
    return !ir_type_is_value(type) ||
           draw_use(w, ir_work_find(w, &edit->to), type, insn, rng, &edit->use);
}

static ev_status need_use(const ir_work *w, const ir_use *use, LLVMTypeRef type, uint32_t *out,
                          ev_error *err) {
    uint32_t user;
    EV_TRY(ir_work_need(w, &use->user, "use", &user, err));
    LLVMValueRef insn = value_at(w, user);
    if (use->operand >= ir_operand_count(insn) || !ir_operand_is_free(insn, use->operand) ||
        LLVMTypeOf(LLVMGetOperand(insn, use->operand)) != type)
        return ev_fail(err, EV_BAD, "\"use\": operand %u cannot take the copy's value",
                       use->operand);
    *out = user;
    return EV_OK;
}

static LLVMValueRef insert_copy(ir_work *w, uint32_t of, uint32_t before) {
    LLVMValueRef copy = LLVMInstructionClone(value_at(w, of));
    LLVMPositionBuilderBefore(w->builder, value_at(w, before));
    LLVMInsertIntoBuilder(w->builder, copy);
    ir_work_added(w, copy);
    return copy;
}

static ev_status apply_copy(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at = 0, to = 0, user = IR_NONE;
    EV_TRY(need_movable(w, &edit->at, "at", &at, err));
    EV_TRY(need_place(w, edit, at, &to, err));
    if (edit->use.user.kind != IR_NAME_NONE)
        EV_TRY(need_use(w, &edit->use, LLVMTypeOf(value_at(w, at)), &user, err));
    LLVMValueRef copy = insert_copy(w, at, to);
    if (user != IR_NONE)
        LLVMSetOperand(value_at(w, user), edit->use.operand, copy);
    return EV_OK;
}

static void describe_copy(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "copies ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " to before ");
    ir_describe_insn(w, &edit->to, out);
    if (edit->use.user.kind == IR_NAME_NONE)
        return;
    ev_str_printf(out, " and uses it as operand %u of ", edit->use.operand);
    ir_describe_insn(w, &edit->use.user, out);
}

const ir_rule ir_rule_COPY = {movable_sites, draw_copy, apply_copy, describe_copy};

/* ---- move -------------------------------------------------------------------------------------
 */

static bool draw_move(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    edit->at = ir_work_name(w, site.id);
    if (!draw_other(w, site.id, true, rng, &edit->to))
        return false;
    LLVMValueRef next = LLVMGetNextInstruction(value_at(w, site.id));
    return ir_work_id(w, next) != ir_work_find(w, &edit->to);
}

static ev_status apply_move(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at = 0, to = 0;
    EV_TRY(need_movable(w, &edit->at, "at", &at, err));
    EV_TRY(need_place(w, edit, at, &to, err));
    ir_work_move_before(w, at, to);
    return EV_OK;
}

static void describe_move(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "moves ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " to before ");
    ir_describe_insn(w, &edit->to, out);
}

const ir_rule ir_rule_MOVE = {movable_sites, draw_move, apply_move, describe_move};

/* ---- replace and swap -------------------------------------------------------------------------
 */

static bool draw_pair(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    edit->at = ir_work_name(w, site.id);
    return draw_other(w, site.id, false, rng, &edit->to);
}

static ev_status need_pair(const ir_work *w, const ir_edit *edit, uint32_t *at, uint32_t *to,
                           ev_error *err) {
    EV_TRY(need_movable(w, &edit->at, "at", at, err));
    EV_TRY(need_movable(w, &edit->to, "to", to, err));
    if (*at == *to || function_at(w, *at) != function_at(w, *to))
        return ev_fail(err, EV_BAD, "\"to\" is \"at\" itself or in another function");
    return EV_OK;
}

static ev_status apply_replace(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at = 0, to = 0;
    EV_TRY(need_pair(w, edit, &at, &to, err));
    LLVMTypeRef type = LLVMTypeOf(value_at(w, at));
    LLVMValueRef copy = insert_copy(w, to, at);
    if (LLVMTypeOf(copy) == type && ir_type_is_value(type)) {
        ir_work_replace_uses(w, value_at(w, at), copy);
        /* The copy may use the instruction that it replaces. That use is broken, since the copy
         * would be its own operand, and gets repaired. */
    }
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_replace(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "replaces ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " by a copy of ");
    ir_describe_insn(w, &edit->to, out);
}

const ir_rule ir_rule_REPLACE = {movable_sites, draw_pair, apply_replace, describe_replace};

static ev_status apply_swap(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at = 0, to = 0;
    EV_TRY(need_pair(w, edit, &at, &to, err));
    uint32_t after_at = ir_work_id(w, LLVMGetNextInstruction(value_at(w, at)));
    if (after_at == to) {
        ir_work_move_before(w, to, at);
    } else {
        ir_work_move_before(w, at, to);
        if (ir_work_id(w, LLVMGetNextInstruction(value_at(w, to))) != after_at)
            ir_work_move_before(w, to, after_at);
    }
    return EV_OK;
}

static void describe_swap(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "swaps ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " and ");
    ir_describe_insn(w, &edit->to, out);
}

const ir_rule ir_rule_SWAP = {movable_sites, draw_pair, apply_swap, describe_swap};

/* ---- operand ----------------------------------------------------------------------------------
 */

static void operand_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        LLVMValueRef insn = value_at(w, id);
        if (!ir_insn_is_movable(insn))
            continue;
        for (uint32_t k = 0; k < ir_operand_count(insn); k++) {
            if (ir_operand_is_free(insn, k))
                ir_sites_add(sites, id, k);
        }
    }
}

static bool draw_operand(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    LLVMValueRef now = LLVMGetOperand(value_at(w, site.id), site.index);
    edit->at = ir_work_name(w, site.id);
    edit->has_operand = true;
    edit->operand = site.index;
    edit->value = ir_value_draw(w, site.id, site.index, now, rng);
    return edit->value.kind != IR_VALUE_NONE;
}

const ir_rule ir_rule_OPERAND = {operand_sites, draw_operand, ir_apply_operand,
                                 ir_describe_operand};
