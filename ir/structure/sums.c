/* Sums: see sums_internal.h. A PHI of the loop's header is a sum if what it takes from the latch is
 * the PHI combined with other values by operations of one kind, also under conditions. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/sums_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST_SUM = 16 };

/* ---- which sums a loop makes ------------------------------------------------------------------
 */

bool ir_sums_hold(const ir_sums *p, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(p->flow, value);
    return insn != IR_NONE && p->loop->holds[p->flow->home[insn]];
}

static const struct {
    ir_sum_kind kind;
    const char *name;
} extremes[] = {{IR_SUM_MAX, "llvm.maxnum"}, {IR_SUM_MIN, "llvm.minnum"},
                {IR_SUM_SMAX, "llvm.smax"},  {IR_SUM_SMIN, "llvm.smin"},
                {IR_SUM_UMAX, "llvm.umax"},  {IR_SUM_UMIN, "llvm.umin"}};

ir_sum_kind ir_sum_kind_of(LLVMValueRef insn, unsigned *first, unsigned *last) {
    const char *name = ir_call_name(insn);
    *first = 0;
    *last = 1;
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMFAdd:
        return IR_SUM_FADD;
    case LLVMAdd:
        return IR_SUM_ADD;
    case LLVMFSub:
        *last = 0;
        return IR_SUM_FADD;
    case LLVMSub:
        *last = 0;
        return IR_SUM_ADD;
    default:
        break;
    }
    if (strncmp(name, "llvm.fma.", 9) == 0 || strncmp(name, "llvm.fmuladd.", 13) == 0) {
        *first = *last = 2;
        return IR_SUM_FADD;
    }
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        size_t length = strlen(extremes[i].name);
        if (strncmp(name, extremes[i].name, length) == 0 && name[length] == '.')
            return extremes[i].kind;
    }
    return IR_SUM_NONE;
}

static bool leads_to(const ir_sums *p, LLVMValueRef value, LLVMValueRef phi, ir_sum_kind *kind,
                     unsigned depth);

static bool all_lead_to(const ir_sums *p, LLVMValueRef value, LLVMValueRef phi, ir_sum_kind *kind,
                        unsigned depth) {
    bool is_phi = LLVMIsAPHINode(value) != NULL;
    unsigned from = is_phi ? 0 : 1, to = is_phi ? LLVMCountIncoming(value) : 3;
    for (unsigned i = from; i < to; i++) {
        LLVMValueRef part = is_phi ? LLVMGetIncomingValue(value, i) : LLVMGetOperand(value, i);
        if (!leads_to(p, part, phi, kind, depth))
            return false;
    }
    return true;
}

/* Whether a loop inside goes on with the sum: its PHI begins with the sum so far, and what the PHI
 * takes from turn to turn is the PHI combined with other values. */
static bool goes_on(const ir_sums *p, const ir_loop *inner, LLVMValueRef value, LLVMValueRef phi,
                    ir_sum_kind *kind, unsigned depth) {
    return inner->preheader != IR_NONE && inner->latch != IR_NONE &&
           leads_to(p, ir_flow_incoming(p->flow, value, inner->preheader), phi, kind, depth) &&
           leads_to(p, ir_flow_incoming(p->flow, value, inner->latch), value, kind, depth);
}

/* Whether `value` is the PHI combined with other values by operations of one kind, whose results go
 * nowhere else in the loop. */
static bool leads_to(const ir_sums *p, LLVMValueRef value, LLVMValueRef phi, ir_sum_kind *kind,
                     unsigned depth) {
    if (value == phi)
        return true;
    if (depth == 0 || !ir_sums_hold(p, value))
        return false;
    const ir_loop *inner = ir_sums_inner(p, value);
    if (inner)
        return goes_on(p, inner, value, phi, kind, depth - 1);
    if (LLVMIsASelectInst(value) || (LLVMIsAPHINode(value) && LLVMGetInstructionParent(value) !=
                                                                  p->flow->blocks[p->loop->header]))
        return all_lead_to(p, value, phi, kind, depth - 1);
    unsigned first, last, found = 0;
    ir_sum_kind own = LLVMIsAPHINode(value) ? IR_SUM_NONE : ir_sum_kind_of(value, &first, &last);
    if (own == IR_SUM_NONE || (*kind != IR_SUM_NONE && *kind != own))
        return false;
    *kind = own;
    for (unsigned k = first; k <= last; k++)
        found += leads_to(p, LLVMGetOperand(value, k), phi, kind, depth - 1);
    return found == 1;
}

bool ir_sum_leads_to(const ir_sums *sums, LLVMValueRef value, LLVMValueRef phi, ir_sum_kind *kind) {
    return leads_to(sums, value, phi, kind, DEEPEST_SUM);
}

bool ir_sum_is_taken(LLVMValueRef user, LLVMValueRef value) {
    unsigned first = 0, last = UINT32_MAX;
    if (LLVMIsASelectInst(user))
        first = 1;
    else if (!LLVMIsAPHINode(user))
        (void)ir_sum_kind_of(user, &first, &last);
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(user); k++) {
        if (LLVMGetOperand(user, k) == value && (k < first || k > last))
            return false;
    }
    return true;
}

/* Whether every use in the loop of what is between the PHI and `end` is in the sum as well. */
static bool stays_in_sum(const ir_sums *p, LLVMValueRef value, LLVMValueRef phi, unsigned depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        ir_sum_kind kind = IR_SUM_NONE;
        if (!ir_sums_hold(p, user) || user == phi)
            continue;
        if (depth == 0 || !leads_to(p, user, phi, &kind, DEEPEST_SUM) ||
            !ir_sum_is_taken(user, value))
            return false;
        const ir_loop *inner = ir_sums_inner(p, user);
        bool is_back = inner && ir_flow_incoming(p->flow, user, inner->latch) == value;
        if (!is_back && !stays_in_sum(p, user, phi, depth - 1))
            return false;
    }
    return true;
}

bool ir_sum_is_word(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMFloatTypeKind ||
           (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 32);
}

static bool is_used_outside(const ir_sums *p, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        if (!ir_sums_hold(p, LLVMGetUser(use)))
            return true;
    }
    return false;
}

/* A constant step of a PHI that counts; 0: it does not. */
static int64_t count_step(LLVMValueRef phi, LLVMValueRef next) {
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetOperand(next, 0) != phi || !LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
        return 0;
    return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
}

/* ---- picks ------------------------------------------------------------------------------------
 */

/* The value that replaces `old` where the select's test has the value *takes_if; NULL: it is no
 * such select. */
static LLVMValueRef replaces(LLVMValueRef next, LLVMValueRef old, bool *takes_if) {
    if (!LLVMIsASelectInst(next))
        return NULL;
    *takes_if = LLVMGetOperand(next, 2) == old;
    if (!*takes_if && LLVMGetOperand(next, 1) != old)
        return NULL;
    return LLVMGetOperand(next, *takes_if ? 1 : 2);
}

/* Whether all uses of a value in the loop are one of two instructions. */
static bool is_used_by(const ir_sums *p, LLVMValueRef value, LLVMValueRef a, LLVMValueRef b) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (ir_sums_hold(p, user) && user != a && user != b)
            return false;
    }
    return true;
}

/* How `x predicate y` says that x replaces y. False: it does not order them, or a number that is
 * none may be taken. */
typedef struct ordering {
    bool is_real, is_greater, is_strict, is_signed;
} ordering;

static bool order_of_reals(LLVMRealPredicate p, bool takes_if, ordering *out) {
    static const LLVMRealPredicate inverse[] = {[LLVMRealULE] = LLVMRealOGT,
                                                [LLVMRealULT] = LLVMRealOGE,
                                                [LLVMRealUGE] = LLVMRealOLT,
                                                [LLVMRealUGT] = LLVMRealOLE};
    if (!takes_if && p != LLVMRealULE && p != LLVMRealULT && p != LLVMRealUGE && p != LLVMRealUGT)
        return false;
    p = takes_if ? p : inverse[p];
    *out = (ordering){.is_real = true,
                      .is_greater = p == LLVMRealOGT || p == LLVMRealOGE,
                      .is_strict = p == LLVMRealOGT || p == LLVMRealOLT};
    return out->is_greater || p == LLVMRealOLT || p == LLVMRealOLE;
}

static bool order_of_wholes(LLVMIntPredicate p, bool takes_if, ordering *out) {
    bool greater = p == LLVMIntSGT || p == LLVMIntSGE || p == LLVMIntUGT || p == LLVMIntUGE;
    bool strict = p == LLVMIntSGT || p == LLVMIntUGT || p == LLVMIntSLT || p == LLVMIntULT;
    bool is_signed = p == LLVMIntSGT || p == LLVMIntSGE || p == LLVMIntSLT || p == LLVMIntSLE;
    *out = (ordering){
        .is_greater = greater == takes_if, .is_strict = strict == takes_if, .is_signed = is_signed};
    return p != LLVMIntEQ && p != LLVMIntNE;
}

/* The kind of the greatest or least of whole numbers. */
static ir_sum_kind extreme_of(const ordering *o) {
    if (o->is_signed)
        return o->is_greater ? IR_SUM_SMAX : IR_SUM_SMIN;
    return o->is_greater ? IR_SUM_UMAX : IR_SUM_UMIN;
}

/* Notes the key of the picks: a PHI that the test compares with the value that replaces it. */
static bool note_key(ir_sums *p, LLVMValueRef test, bool takes_if) {
    bool is_real = LLVMIsAFCmpInst(test) != NULL;
    if (!is_real && !LLVMIsAICmpInst(test))
        return false;
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef key = LLVMGetOperand(test, side), value = LLVMGetOperand(test, 1 - side);
        if (!LLVMIsAPHINode(key) ||
            LLVMGetInstructionParent(key) != p->flow->blocks[p->loop->header])
            continue;
        LLVMValueRef next = ir_flow_incoming(p->flow, key, p->loop->latch);
        unsigned first, last;
        bool own = false;
        ordering o = {0};
        bool ordered = is_real ? order_of_reals(LLVMGetFCmpPredicate(test), takes_if, &o)
                               : order_of_wholes(LLVMGetICmpPredicate(test), takes_if, &o);
        if (side == 0) /* `key less than value` says that the value is greater */
            o.is_greater = !o.is_greater;
        ir_sum_kind kind =
            LLVMIsACallInst(next) ? ir_sum_kind_of(next, &first, &last) : IR_SUM_NONE;
        bool is_extreme = kind == extreme_of(&o);
        bool by_call = !is_real && is_extreme &&
                       (LLVMGetOperand(next, 0) == value || LLVMGetOperand(next, 1) == value) &&
                       (LLVMGetOperand(next, 0) == key || LLVMGetOperand(next, 1) == key);
        bool by_select = replaces(next, key, &own) == value && own == takes_if &&
                         LLVMGetOperand(next, 0) == test;
        if (!ordered || (!by_call && !by_select) || !ir_sum_is_word(LLVMTypeOf(key)) ||
            !is_used_by(p, key, test, next) || !is_used_by(p, next, key, key))
            continue;
        p->test = ir_flow_insn(p->flow, test);
        p->key_phi = key;
        p->takes_if = takes_if;
        p->is_real = is_real;
        p->is_greater = o.is_greater;
        p->is_strict = o.is_strict;
        p->is_signed = o.is_signed;
        return true;
    }
    return false;
}

/* Whether a PHI is replaced where the test of the loop's picks holds. A key that is an extreme of
 * whole numbers is a sum by itself and becomes a pick with the others (mark_key). */
static bool is_pick(ir_sums *p, LLVMValueRef phi, LLVMValueRef next) {
    bool takes_if = false;
    if (!replaces(next, phi, &takes_if))
        return false;
    LLVMValueRef test = LLVMGetOperand(next, 0);
    bool same = p->key_phi && p->flow->insns[p->test] == test && p->takes_if == takes_if;
    if (!same && (p->key_phi || !LLVMIsAInstruction(test) || !note_key(p, test, takes_if)))
        return false;
    return phi == p->key_phi || (is_used_by(p, phi, next, next) && is_used_by(p, next, phi, phi));
}

/* Makes the key one of the picks. */
static void mark_key(ir_sums *p) {
    for (uint32_t i = 0; p->key_phi && i < p->count; i++) {
        if (p->items[i].phi == p->key_phi) {
            p->key = i;
            p->items[i] = (ir_sum){.phi = p->key_phi, .kind = IR_SUM_PICK};
        }
    }
}

static ev_status add_sum(ir_sums *p, LLVMValueRef phi, ev_error *err) {
    LLVMValueRef next = ir_flow_incoming(p->flow, phi, p->loop->latch);
    ir_sum *it = &p->items[p->count];
    if (p->count == IR_MOST_SUMS)
        return ev_fail(err, EV_BAD, "the loop has more than %d sums", IR_MOST_SUMS);
    *it = (ir_sum){.phi = phi, .step = count_step(phi, next)};
    if (it->step != 0 && !is_used_outside(p, phi) && !is_used_outside(p, next)) {
        it->kind = IR_SUM_STEP;
        p->count++;
        return EV_OK;
    }
    bool is_sum = ir_sum_is_word(LLVMTypeOf(phi)) && ir_sum_leads_to(p, next, phi, &it->kind) &&
                  it->kind != IR_SUM_NONE;
    it->runs = is_sum && !stays_in_sum(p, phi, phi, DEEPEST_SUM);
    bool is_plain = is_sum && !it->runs;
    if (!is_plain && ir_sum_is_word(LLVMTypeOf(phi)) && is_pick(p, phi, next))
        *it = (ir_sum){.phi = phi, .kind = IR_SUM_PICK};
    else if (it->runs && ir_sums_nest(p, phi))
        return ev_fail(err, EV_BAD,
                       "a turn of the loop uses a sum that a loop inside it goes on with");
    else if (!is_sum)
        return ev_fail(err, EV_BAD,
                       "a value that the loop carries from turn to turn is no sum of 32-bit "
                       "numbers");
    p->count++;
    p->any = true;
    return EV_OK;
}

/* A lane compares with the greatest value of its own turns, so the test tells of these alone. */
static ev_status check_test(const ir_sums *p, ev_error *err) {
    LLVMValueRef test = p->key_phi ? p->flow->insns[p->test] : NULL;
    for (LLVMUseRef use = test ? LLVMGetFirstUse(test) : NULL; use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool is_pick = !ir_sums_hold(p, user);
        for (uint32_t i = 0; i < p->count; i++)
            is_pick |= p->items[i].kind == IR_SUM_PICK &&
                       ir_flow_incoming(p->flow, p->items[i].phi, p->loop->latch) == user;
        if (!is_pick)
            return ev_fail(err, EV_BAD,
                           "the loop uses the test for the greatest or least value for more than "
                           "to keep what belongs to that value");
    }
    return EV_OK;
}

/* Whether what is taken out of the loop are its sums alone. */
static ev_status check_results(const ir_sums *p, ev_error *err) {
    for (uint32_t i = 0; i < p->flow->insn_count; i++) {
        LLVMValueRef insn = p->flow->insns[i];
        bool is_sum = false;
        for (uint32_t k = 0; k < p->count; k++)
            is_sum |= p->items[k].phi == insn && p->items[k].kind != IR_SUM_STEP;
        if (ir_sums_hold(p, insn) && !is_sum && is_used_outside(p, insn))
            return ev_fail(err, EV_BAD,
                           "a value of the loop other than its sums is used behind it");
    }
    return EV_OK;
}

/* EV_BAD: a round of turns is further than the loop's counter, of up to 32 bits, holds. */
static ev_status check_round(const ir_sums *p, ev_error *err) {
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(p->loop->induction));
    uint64_t step = (uint64_t)(p->loop->step < 0 ? -p->loop->step : p->loop->step);
    uint64_t most = width > 32 ? UINT64_C(1) << 50 : (UINT64_C(1) << (width - 1)) - 1;
    if (step <= most / p->threads)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "%u turns of steps of %llu are more than a counter of %u bits holds", p->threads,
                   (unsigned long long)step, width);
}

ev_status ir_sums_find(const ir_flow *flow, const ir_loop *loop, uint32_t threads, ir_sums *out,
                       ev_error *err) {
    *out = (ir_sums){.flow = flow, .loop = loop, .threads = threads, .key = IR_NONE};
    EV_TRY(ir_loop_check_counts(out->flow, out->loop, err));
    for (uint32_t i = flow->first[loop->header]; LLVMIsAPHINode(flow->insns[i]); i++)
        EV_TRY(add_sum(out, flow->insns[i], err));
    mark_key(out);
    EV_TRY(check_test(out, err));
    for (uint32_t i = 0; i < out->count; i++)
        out->runs |= out->items[i].runs;
    EV_TRY(check_round(out, err));
    EV_TRY(ir_sums_check_wrap(out, err));
    return check_results(out, err);
}

/* ---- turns ------------------------------------------------------------------------------------
 */

LLVMValueRef ir_share_number(const ir_share *share, uint64_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(share->s->base->context), value, false);
}

LLVMValueRef ir_share_call(const ir_share *share, const char *intrinsic, LLVMValueRef *arguments,
                           unsigned count) {
    return ir_structure_call(share->s, share->builder, intrinsic, arguments, count);
}

void ir_share_set_incoming(const ir_flow *flow, LLVMValueRef phi, uint32_t block,
                           LLVMValueRef value) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (LLVMGetIncomingBlock(phi, i) == flow->blocks[block])
            LLVMSetOperand(phi, i, value);
    }
}

void ir_share_stand_at_end(const ir_share *share, const ir_flow *flow, uint32_t block) {
    LLVMPositionBuilderBefore(share->builder, ir_flow_last(flow, block));
    LLVMSetCurrentDebugLocation2(share->builder, NULL);
}

/* Whether a counter stops at the loop's bound. */
static bool stops(const ir_sums *sums, const ir_sum *it) {
    return sums->wraps && it->phi == sums->loop->induction;
}

/* A counter that is `from`, not above the bound, and `ahead` of it: the bound, if it is not below.
 */
static LLVMValueRef count_below(const ir_share *share, const ir_sums *sums, LLVMValueRef from,
                                LLVMValueRef ahead) {
    LLVMBuilderRef b = share->builder;
    LLVMValueRef left = LLVMBuildSub(b, sums->loop->bound, from, "");
    LLVMValueRef is_below = LLVMBuildICmp(b, LLVMIntUGT, left, ahead, "");
    return LLVMBuildSelect(b, is_below, LLVMBuildAdd(b, from, ahead, ""), sums->loop->bound, "");
}

void ir_share_count_on(const ir_share *share, const ir_sums *sums, const ir_sum *it) {
    const ir_flow *flow = sums->flow;
    LLVMTypeRef type = LLVMTypeOf(it->phi);
    LLVMValueRef old = ir_flow_incoming(flow, it->phi, sums->loop->latch);
    LLVMValueRef round = LLVMConstInt(type, (uint64_t)it->step * share->threads, true);
    ir_share_stand_at_end(share, flow, sums->loop->latch);
    LLVMValueRef next = stops(sums, it) ? count_below(share, sums, it->phi, round)
                                        : LLVMBuildAdd(share->builder, it->phi, round, "");
    if (!stops(sums, it) && LLVMIsAInstruction(next))
        LLVMSetNSW(next, LLVMGetNSW(old) && !sums->wraps);
    ir_share_set_incoming(flow, it->phi, sums->loop->latch, next);
}

/* A loop without a turn has its counter beyond the bound, where it stays. */
static void spread_count(const ir_share *share, const ir_sums *sums, const ir_sum *it) {
    const ir_flow *flow = sums->flow;
    LLVMBuilderRef b = share->builder;
    LLVMTypeRef type = LLVMTypeOf(it->phi);
    ir_share_stand_at_end(share, flow, sums->loop->preheader);
    LLVMValueRef place = LLVMBuildIntCast2(b, share->place, type, false, "");
    LLVMValueRef step = LLVMConstInt(type, (unsigned long long)it->step, true);
    LLVMValueRef start = ir_flow_incoming(flow, it->phi, sums->loop->preheader);
    LLVMValueRef ahead = LLVMBuildMul(b, place, step, "");
    LLVMValueRef own = NULL;
    if (stops(sums, it)) {
        LLVMValueRef any = LLVMBuildICmp(b, sums->loop->stays, start, sums->loop->bound, "");
        own = LLVMBuildSelect(b, any, count_below(share, sums, start, ahead), start, "");
    } else {
        own = LLVMBuildAdd(b, start, ahead, "");
    }
    ir_share_set_incoming(flow, it->phi, sums->loop->preheader, own);
    ir_share_count_on(share, sums, it);
}

/* Greatest and least values begin with the loop's own start in all threads. */
void ir_share_start(const ir_share *share, const ir_sums *sums, const ir_sum *it) {
    LLVMValueRef start = ir_flow_incoming(sums->flow, it->phi, sums->loop->preheader);
    if ((it->kind != IR_SUM_ADD && it->kind != IR_SUM_FADD) || LLVMIsNull(start))
        return;
    ir_share_stand_at_end(share, sums->flow, sums->loop->preheader);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(start));
    start = LLVMBuildSelect(share->builder, share->is_first, start, zero, "");
    ir_share_set_incoming(sums->flow, it->phi, sums->loop->preheader, start);
}

/* Writes the turn of the last pick, an i32 that grows from 1; 0: the start was not replaced. */
static LLVMValueRef write_when(const ir_share *share, const ir_sums *sums, LLVMValueRef start) {
    const ir_flow *flow = sums->flow;
    const ir_loop *loop = sums->loop;
    LLVMBuilderRef b = share->builder;
    LLVMTypeRef type = LLVMTypeOf(loop->induction);
    LLVMTypeRef word = LLVMInt32TypeInContext(share->s->base->context);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(flow->blocks[loop->header]));
    LLVMValueRef when = LLVMBuildPhi(b, word, "");
    LLVMValueRef test = flow->insns[sums->test];
    LLVMPositionBuilderBefore(b, ir_flow_last(flow, loop->latch));
    LLVMSetCurrentDebugLocation2(b, NULL);
    bool up = loop->step > 0;
    LLVMValueRef now = up ? LLVMBuildSub(b, loop->induction, start, "")
                          : LLVMBuildSub(b, start, loop->induction, "");
    LLVMValueRef one = LLVMConstInt(type, (unsigned long long)(up ? loop->step : -loop->step), 0);
    now = LLVMBuildAdd(b, now, one, "");
    if (LLVMGetIntTypeWidth(type) > 32) /* as a number of turns, which has 32 bits */
        now = LLVMBuildUDiv(b, now, one, "");
    now = LLVMBuildIntCast2(b, now, word, false, "");
    LLVMValueRef if_so = sums->takes_if ? now : when, if_not = sums->takes_if ? when : now;
    LLVMValueRef next = LLVMBuildSelect(b, test, if_so, if_not, "");
    LLVMValueRef values[] = {LLVMConstNull(word), next};
    LLVMBasicBlockRef from[] = {flow->blocks[loop->preheader], flow->blocks[loop->latch]};
    LLVMAddIncoming(when, values, from, 2);
    return when;
}

void ir_share_turns(const ir_share *share, const ir_sums *sums, ir_gather *out) {
    LLVMValueRef start = ir_flow_incoming(sums->flow, sums->loop->induction, sums->loop->preheader);
    *out = (ir_gather){.sums = sums};
    if (sums->key != IR_NONE)
        out->when = write_when(share, sums, start);
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->items[i].kind != IR_SUM_STEP)
            ir_share_start(share, sums, &sums->items[i]);
    }
    ir_share_counters(share, sums);
}

void ir_share_counters(const ir_share *share, const ir_sums *sums) {
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->items[i].kind == IR_SUM_STEP)
            spread_count(share, sums, &sums->items[i]);
    }
}

/* ---- what the threads end with ----------------------------------------------------------------
 */

/* The PHI behind the loop that takes a PHI of its header. */
static LLVMValueRef behind(const ir_share *share, const ir_sums *sums, LLVMValueRef phi) {
    LLVMBasicBlockRef exit = sums->flow->blocks[sums->loop->exit];
    LLVMValueRef at = LLVMGetFirstInstruction(exit);
    for (; LLVMIsAPHINode(at); at = LLVMGetNextInstruction(at)) {
        if (LLVMGetIncomingValue(at, 0) == phi)
            return at;
    }
    LLVMPositionBuilderBefore(share->builder, LLVMGetFirstInstruction(exit));
    LLVMSetCurrentDebugLocation2(share->builder, NULL);
    LLVMValueRef made = LLVMBuildPhi(share->builder, LLVMTypeOf(phi), "");
    LLVMAddIncoming(made, &phi, &sums->flow->blocks[sums->loop->header], 1);
    return made;
}

void ir_share_open(const ir_share *share, ir_gather *g) {
    const ir_sums *sums = g->sums;
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->items[i].kind != IR_SUM_STEP && !sums->items[i].runs)
            g->value[i] = behind(share, sums, sums->items[i].phi);
    }
    if (g->when)
        g->when = behind(share, sums, g->when);
    LLVMValueRef at = LLVMGetFirstInstruction(sums->flow->blocks[sums->loop->exit]);
    while (LLVMIsAPHINode(at))
        at = LLVMGetNextInstruction(at);
    LLVMPositionBuilderBefore(share->builder, at);
    LLVMSetCurrentDebugLocation2(share->builder, NULL);
    for (uint32_t i = 0; i < sums->count; i++) {
        if (!g->value[i])
            continue;
        LLVMValueRef none = LLVMGetUndef(LLVMTypeOf(g->value[i]));
        g->holder[i] = LLVMBuildFreeze(share->builder, none, "");
        LLVMReplaceAllUsesWith(g->value[i], g->holder[i]);
    }
}

void ir_share_close(const ir_gather *g) {
    for (uint32_t i = 0; i < g->sums->count; i++) {
        if (!g->value[i])
            continue;
        LLVMReplaceAllUsesWith(g->holder[i], g->value[i]);
        LLVMInstructionEraseFromParent(g->holder[i]);
    }
}

LLVMValueRef ir_sum_neutral(ir_sum_kind kind, LLVMTypeRef type) {
    switch (kind) {
    case IR_SUM_FADD:
        return LLVMConstReal(type, -0.0);
    case IR_SUM_SMAX:
        return LLVMConstInt(type, (uint64_t)INT32_MIN, true);
    case IR_SUM_SMIN:
        return LLVMConstInt(type, INT32_MAX, false);
    case IR_SUM_UMIN:
        return LLVMConstInt(type, UINT32_MAX, false);
    default:
        assert(kind == IR_SUM_ADD || kind == IR_SUM_UMAX);
        return LLVMConstNull(type);
    }
}

LLVMValueRef ir_share_combine(const ir_share *share, ir_sum_kind kind, LLVMValueRef a,
                              LLVMValueRef b) {
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef both[] = {a, b};
    if (kind == IR_SUM_ADD)
        return LLVMBuildAdd(share->builder, a, b, "");
    if (kind == IR_SUM_FADD)
        return LLVMBuildFAdd(share->builder, a, b, "");
    size_t row = 0;
    while (extremes[row].kind != kind)
        row++;
    unsigned id = LLVMLookupIntrinsicID(extremes[row].name, strlen(extremes[row].name));
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(share->s->base->module, id, &type, 1);
    return LLVMBuildCall2(share->builder, LLVMGlobalGetValueType(callee), callee, both, 2, "");
}

/* Whether the other thread's picks are those of the loop as it was: its key is better, or it is as
 * good and was met first (last, if the test takes equal ones). */
static LLVMValueRef is_better(const ir_share *share, const ir_gather *g, const ir_gather *other) {
    const ir_sums *sums = g->sums;
    LLVMBuilderRef b = share->builder;
    LLVMValueRef mine = g->value[sums->key], theirs = other->value[sums->key], more, same;
    if (sums->is_real) {
        more = LLVMBuildFCmp(b, sums->is_greater ? LLVMRealOGT : LLVMRealOLT, theirs, mine, "");
        same = LLVMBuildFCmp(b, LLVMRealOEQ, theirs, mine, "");
    } else {
        LLVMIntPredicate greater = sums->is_signed ? LLVMIntSGT : LLVMIntUGT;
        LLVMIntPredicate less = sums->is_signed ? LLVMIntSLT : LLVMIntULT;
        more = LLVMBuildICmp(b, sums->is_greater ? greater : less, theirs, mine, "");
        same = LLVMBuildICmp(b, LLVMIntEQ, theirs, mine, "");
    }
    LLVMIntPredicate before = sums->is_strict ? LLVMIntULT : LLVMIntUGT;
    LLVMValueRef first = LLVMBuildICmp(b, before, other->when, g->when, "");
    return LLVMBuildOr(b, more, LLVMBuildAnd(b, same, first, ""), "");
}

void ir_share_meet(const ir_share *share, ir_gather *g, const ir_gather *other) {
    const ir_sums *sums = g->sums;
    LLVMValueRef takes = g->when ? is_better(share, g, other) : NULL;
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->items[i].kind == IR_SUM_PICK)
            g->value[i] = LLVMBuildSelect(share->builder, takes, other->value[i], g->value[i], "");
        else if (g->value[i])
            g->value[i] =
                ir_share_combine(share, sums->items[i].kind, g->value[i], other->value[i]);
    }
    if (g->when)
        g->when = LLVMBuildSelect(share->builder, takes, other->when, g->when, "");
}

LLVMValueRef ir_share_mask(const ir_share *share, uint32_t lanes) {
    uint64_t all = lanes >= IR_WARP ? UINT32_MAX : (UINT64_C(1) << lanes) - 1;
    if (lanes >= IR_WARP)
        return ir_share_number(share, all);
    LLVMValueRef place = ir_share_call(share, "llvm.nvvm.read.ptx.sreg.laneid", NULL, 0);
    LLVMValueRef first =
        LLVMBuildAnd(share->builder, place, ir_share_number(share, IR_WARP - lanes), "");
    return LLVMBuildShl(share->builder, ir_share_number(share, all), first, "");
}

LLVMValueRef ir_share_shuffle(const ir_share *share, const char *mode, LLVMValueRef value,
                              uint32_t operand, uint32_t clamp) {
    char name[64];
    bool is_real = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind;
    snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.%s", mode, is_real ? "f32" : "i32");
    LLVMValueRef arguments[] = {share->mask, value, ir_share_number(share, operand),
                                ir_share_number(share, clamp)};
    return ir_share_call(share, name, arguments, 4);
}

static LLVMValueRef shuffled(const ir_share *share, LLVMValueRef value, uint32_t distance) {
    return ir_share_shuffle(share, "bfly", value, distance, IR_WARP - 1);
}

void ir_share_exchange(const ir_share *share, ir_gather *g, uint32_t lanes) {
    for (uint32_t distance = lanes / 2; distance > 0; distance /= 2) {
        ir_gather other = {0};
        for (uint32_t i = 0; i < g->sums->count; i++) {
            if (g->value[i])
                other.value[i] = shuffled(share, g->value[i], distance);
        }
        if (g->when)
            other.when = shuffled(share, g->when, distance);
        ir_share_meet(share, g, &other);
    }
}

/* ---- effects ----------------------------------------------------------------------------------
 */

static void redirect(const ir_share *share, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(share->s->function); b;
         b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
        for (unsigned i = 0; last && i < LLVMGetNumSuccessors(last); i++) {
            if (LLVMGetSuccessor(last, i) == from)
                LLVMSetSuccessor(last, i, to);
        }
    }
}

void ir_share_move(const ir_share *share, LLVMValueRef insn, LLVMBasicBlockRef block) {
    LLVMInstructionRemoveFromParent(insn);
    LLVMPositionBuilderAtEnd(share->builder, block);
    LLVMSetCurrentDebugLocation2(share->builder, NULL);
    LLVMInsertIntoBuilder(share->builder, insn);
}

bool ir_share_is_effect(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return deed == IR_DEED_STORE || (deed == IR_DEED_COUNTED && !LLVMIsALoadInst(insn));
}

/* Whether a base is an argument that points to memory which no other one points to. */
static bool is_apart(const ir_share *share, LLVMValueRef base) {
    uint64_t may_alias = ir_base_may_alias(share->s->base);
    for (unsigned i = 0; i < LLVMCountParams(share->s->function) && i < 64; i++) {
        if (LLVMGetParam(share->s->function, i) == base)
            return (may_alias >> i & 1) == 0;
    }
    return false;
}

/* The pointer that an instruction reads by; NULL: it reads no memory. */
static LLVMValueRef read_by(LLVMValueRef insn) {
    if (LLVMIsAMemCpyInst(insn) || LLVMIsAMemMoveInst(insn))
        return LLVMGetOperand(insn, 1);
    return LLVMIsAStoreInst(insn) ? NULL : ir_pointer_of(insn);
}

/* Whether the kernel reads by a base. */
static bool is_read(const ir_share *share, LLVMValueRef base) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(share->s->function); b;
         b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef from = NULL, pointer = read_by(i);
            if (!pointer)
                continue;
            (void)ir_affine_of_address(share->s->base->module, pointer, &from);
            if (from == base || (from && LLVMIsAInstruction(from))) /* that may lead anywhere */
                return true;
        }
    }
    return false;
}

/* Whether other lanes may read what an effect writes: in shared memory, in an array that the kernel
 * reads, or in one that callers may pass twice. */
static bool is_for_others(const ir_share *share, LLVMValueRef insn) {
    LLVMValueRef base = NULL, pointer = ir_pointer_of(insn);
    if (!pointer)
        return false;
    (void)ir_affine_of_address(share->s->base->module, pointer, &base);
    return !base || !is_apart(share, base) || is_read(share, base);
}

static void order_lanes(const ir_share *share, LLVMValueRef mask) {
    ir_share_call(share, "llvm.nvvm.bar.warp.sync", &mask, 1);
}

LLVMBasicBlockRef ir_share_split_before(const ir_share *share, LLVMValueRef first) {
    LLVMBasicBlockRef rest = LLVMGetInstructionParent(first);
    LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(share->s->base->context, rest, "");
    redirect(share, rest, head);
    for (LLVMValueRef i = LLVMGetFirstInstruction(rest), next; i != first; i = next) {
        next = LLVMGetNextInstruction(i);
        ir_share_move(share, i, head);
    }
    return head;
}

void ir_share_guard_run(const ir_share *share, LLVMValueRef first, LLVMValueRef condition,
                        LLVMValueRef order) {
    LLVMBasicBlockRef rest = LLVMGetInstructionParent(first);
    LLVMBasicBlockRef head = ir_share_split_before(share, first);
    LLVMBasicBlockRef body = LLVMInsertBasicBlockInContext(share->s->base->context, rest, "");
    bool waits = false;
    LLVMValueRef end = first;
    for (LLVMValueRef i = first;
         ir_share_is_effect(i) || (ir_deed_of(i) == IR_DEED_PURE && !LLVMIsATerminatorInst(i));
         i = end) {
        end = LLVMGetNextInstruction(i);
        waits |= order && is_for_others(share, i);
        ir_share_move(share, i, ir_share_is_effect(i) ? body : head);
    }
    LLVMPositionBuilderAtEnd(share->builder, body);
    LLVMBuildBr(share->builder, rest);
    if (waits) {
        LLVMPositionBuilderBefore(share->builder, end);
        order_lanes(share, order);
    }
    LLVMPositionBuilderAtEnd(share->builder, head);
    if (waits)
        order_lanes(share, order);
    LLVMBuildCondBr(share->builder, condition, body, rest);
}

void ir_share_guard_block(const ir_share *share, LLVMBasicBlockRef block, ir_share_leaves *leaves,
                          LLVMValueRef condition, LLVMValueRef order) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (!ir_share_is_effect(i) || (leaves && leaves(i)))
            continue;
        ir_share_guard_run(share, i, condition, order);
        next = LLVMGetFirstInstruction(block);
    }
}

/* ---- shared memory ----------------------------------------------------------------------------
 */

LLVMValueRef ir_share_new_array(const ir_share *share, LLVMTypeRef of, uint64_t count) {
    LLVMTypeRef type = LLVMArrayType2(of, count);
    LLVMValueRef array =
        LLVMAddGlobalInAddressSpace(share->s->base->module, type, "evoke_team", IR_SHARED_SPACE);
    LLVMSetInitializer(array, LLVMGetUndef(type));
    LLVMSetLinkage(array, LLVMInternalLinkage);
    LLVMSetAlignment(array, 16);
    return array;
}

LLVMValueRef ir_share_place(const ir_share *share, LLVMValueRef array, LLVMValueRef at) {
    LLVMValueRef indices[] = {ir_share_number(share, 0), at};
    return LLVMBuildInBoundsGEP2(share->builder, LLVMGlobalGetValueType(array), array, indices, 2,
                                 "");
}
