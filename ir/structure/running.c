/* Running sums: a loop whose turns use what it has summed up so far, such as a sum along a row that
 * is written at each place. A group of L lanes makes L turns at a time, a *round*:
 *
 *     while the round's first turn is there
 *         v = what this lane's turn adds; nothing, where the turn is behind the bound
 *         p = the sum of v over the lanes before this one, by log2 L shuffles
 *         the lane's turn uses sum + p and, behind its own addition, sum + p + v
 *         sum = sum + the whole round's v
 *
 * (Hillis and Steele, "Data parallel algorithms", 1986.) The counters stay those of the round's
 * first turn, so all lanes leave the loop together. A lane behind the bound repeats the first turn
 * of the round, whose addresses are valid, and its effects are skipped. What uses a sum moves
 * behind the shuffles; what the turn loads for its addition stays before them. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/sums_internal.h"

#include <string.h>

enum { MOST_CHAIN = 64 };

/* What a running sum is computed by, and what uses it. */
typedef struct chain {
    const ir_sums *sums;
    const ir_sum *it;
    LLVMValueRef next;               /* what the latch gives to the PHI */
    uint32_t block;                  /* of `next`: where the lanes exchange */
    LLVMValueRef values[MOST_CHAIN]; /* the sum behind each addition; `next` is one of them */
    uint32_t count;
    bool *is_user; /* by instruction: its value, or whether it runs, depends on the sum */
} chain;

static bool is_header_phi(const ir_sums *sums, LLVMValueRef value) {
    return LLVMIsAPHINode(value) &&
           LLVMGetInstructionParent(value) == sums->flow->blocks[sums->loop->header];
}

static bool is_in_chain(const chain *c, LLVMValueRef value) {
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->values[i] == value)
            return true;
    }
    return false;
}

/* Which operands of a value of the chain may be the sum so far. */
static void sum_operands(LLVMValueRef value, unsigned *first, unsigned *last) {
    *first = 0;
    if (LLVMIsAPHINode(value)) {
        *last = LLVMCountIncoming(value) - 1;
    } else if (LLVMIsASelectInst(value)) {
        *first = 1;
        *last = 2;
    } else {
        (void)ir_sum_kind_of(value, first, last);
    }
}

static bool is_sum(const chain *c, LLVMValueRef value) {
    ir_sum_kind kind = IR_SUM_NONE;
    return ir_sum_leads_to(c->sums, value, c->it->phi, &kind);
}

/* Lists the values between the PHI and `value`; false: they are too many. */
static bool list_chain(chain *c, LLVMValueRef value) {
    unsigned first, last;
    if (value == c->it->phi || is_in_chain(c, value))
        return true;
    if (c->count == MOST_CHAIN)
        return false;
    c->values[c->count++] = value;
    sum_operands(value, &first, &last);
    for (unsigned k = first; k <= last; k++) {
        LLVMValueRef operand = LLVMGetOperand(value, k);
        if (is_sum(c, operand) && !list_chain(c, operand))
            return false;
    }
    return true;
}

/* ---- what uses the sum ------------------------------------------------------------------------
 */

/* Whether a use is the addition itself, or hands the sum on to the next turn. */
static bool is_within(const chain *c, LLVMUseRef use) {
    LLVMValueRef user = LLVMGetUser(use);
    return user == c->it->phi ||
           (is_in_chain(c, user) && ir_sum_is_taken(user, LLVMGetUsedValue(use)));
}

static void note_users(const chain *c, LLVMValueRef value);

/* Notes that an instruction depends on the sum. A PHI of the header is the next turn's value. */
static void note_user(const chain *c, LLVMValueRef user) {
    uint32_t insn = ir_flow_insn(c->sums->flow, user);
    if (!ir_sums_hold(c->sums, user) || c->is_user[insn])
        return;
    c->is_user[insn] = true;
    note_users(c, user);
    if (LLVMGetInstructionOpcode(user) != LLVMBr && LLVMGetInstructionOpcode(user) != LLVMSwitch)
        return;
    for (uint32_t i = 0; i < c->sums->count; i++) { /* what is added up depends on the branch */
        if (c->sums->items[i].kind != IR_SUM_STEP && &c->sums->items[i] != c->it)
            note_user(c, c->sums->items[i].phi);
    }
}

static void note_users(const chain *c, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        bool of_sum = value == c->it->phi || is_in_chain(c, value);
        if (!of_sum || !is_within(c, use))
            note_user(c, LLVMGetUser(use));
    }
}

/* Whether `user`, which moves behind `other`, leaves what both do to memory as it is. Guessed: no
 * two arguments overlap. */
static bool may_pass(const chain *c, LLVMValueRef user, LLVMValueRef other) {
    ir_deed mine = ir_deed_of(user), theirs = ir_deed_of(other);
    bool pure = mine == IR_DEED_PURE || mine == IR_DEED_MARKER || theirs == IR_DEED_PURE ||
                theirs == IR_DEED_MARKER;
    if (pure || (mine == IR_DEED_LOAD && theirs == IR_DEED_LOAD))
        return true;
    bool plain = (mine == IR_DEED_LOAD || mine == IR_DEED_STORE) &&
                 (theirs == IR_DEED_LOAD || theirs == IR_DEED_STORE);
    return plain && ir_affine_apart(LLVMGetGlobalParent(c->sums->flow->function), user, other);
}

/* Whether all that uses the sum stands behind the exchange, or can move there. */
static bool users_can_follow(const chain *c) {
    const ir_flow *flow = c->sums->flow;
    uint32_t next = ir_flow_insn(flow, c->next);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (!c->is_user[i])
            continue;
        uint32_t home = flow->home[i];
        bool behind = home == c->block ? i > next : ir_dominance_over(&flow->over, c->block, home);
        if (behind && !(home == c->block && LLVMIsAPHINode(flow->insns[i])))
            continue;
        if (is_header_phi(c->sums, flow->insns[i]))
            continue;
        if (home != c->block || LLVMIsAPHINode(flow->insns[i]) || LLVMIsAPHINode(c->next))
            return false;
        for (uint32_t k = i + 1; k <= next; k++) {
            if (!c->is_user[k] && !may_pass(c, flow->insns[i], flow->insns[k]))
                return false;
        }
    }
    return true;
}

/* Fills in the chain of one running sum. EV_BAD, with the reason: its turns depend on the sum, or
 * the lanes do not all come to its addition. */
static ev_status find_chain(const ir_sums *sums, const ir_sum *it, ev_arena *arena, chain *c,
                            ev_error *err) {
    const ir_flow *flow = sums->flow;
    *c = (chain){.sums = sums, .it = it};
    c->next = ir_flow_incoming(flow, it->phi, sums->loop->latch);
    c->is_user = EV_NEW_ARRAY(arena, bool, flow->insn_count + 1);
    if (!c->is_user)
        return ev_fail_memory(err, flow->insn_count);
    if (!list_chain(c, c->next))
        return ev_fail(err, EV_BAD, "a turn of the loop adds more than %d values to a sum",
                       MOST_CHAIN);
    c->block = flow->home[ir_flow_insn(flow, c->next)];
    if (c->block == sums->loop->header ||
        ir_loop_of(flow, c->block) != (uint32_t)(sums->loop - flow->loops) ||
        !ir_dominance_over(&flow->over, c->block, sums->loop->latch))
        return ev_fail(err, EV_BAD, "not every turn of the loop comes to the addition of a sum");
    note_users(c, it->phi);
    for (uint32_t i = 0; i < c->count; i++)
        note_users(c, c->values[i]);
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t insn = ir_flow_insn(flow, c->values[i]);
        if (c->is_user[insn])
            return ev_fail(err, EV_BAD, "what the loop adds to a sum depends on the sum");
    }
    if (!users_can_follow(c))
        return ev_fail(err, EV_BAD, "a sum is used before all is known that the turn adds to it");
    return EV_OK;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

/* The header is to test and to count alone. */
static bool header_only_tests(const ir_sums *sums) {
    const ir_flow *flow = sums->flow;
    uint32_t header = sums->loop->header;
    uint32_t insn = flow->first[header];
    while (LLVMIsAPHINode(flow->insns[insn]))
        insn++;
    return insn + 2 == flow->first[header + 1] && LLVMIsAICmpInst(flow->insns[insn]);
}

/* Whether the turns of a round are less than a quarter of the type's numbers apart. */
static bool steps_are_short(const ir_share *share, const ir_sums *sums) {
    for (uint32_t i = 0; i < sums->count; i++) {
        const ir_sum *it = &sums->items[i];
        if (it->kind != IR_SUM_STEP)
            continue;
        uint64_t size = it->step < 0 ? 0 - (uint64_t)it->step : (uint64_t)it->step;
        if (size > (UINT64_C(1) << (LLVMGetIntTypeWidth(LLVMTypeOf(it->phi)) - 2)) / share->threads)
            return false;
    }
    return true;
}

ev_status ir_running_check(const ir_share *share, const ir_sums *sums, ev_error *err) {
    chain c;
    if (sums->key != IR_NONE)
        return ev_fail(err, EV_BAD, "the loop has a running sum beside the place of a value");
    if (!header_only_tests(sums))
        return ev_fail(err, EV_BAD, "the loop computes more than its test before the test");
    if (!steps_are_short(share, sums))
        return ev_fail(err, EV_BAD, "a counter of the loop takes long steps");
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->items[i].runs)
            EV_TRY(find_chain(sums, &sums->items[i], share->s->arena, &c, err));
    }
    return EV_OK;
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

/* The turns of a loop, made in rounds. */
typedef struct rounds {
    const ir_share *share;
    const ir_sums *sums;
    LLVMValueRef is_there; /* the lane's turn is before the bound */
    LLVMValueRef lane;     /* the place of the turn that the lane makes, an i32 */
} rounds;

/* Writes, at the end of the header, whether the lane has a turn. The distance to the bound is not
 * negative in a round, so its type without sign holds it; the check of steps bounds the product. */
static void write_turn(rounds *r) {
    const ir_loop *loop = r->sums->loop;
    const ir_share *share = r->share;
    LLVMBuilderRef b = share->builder;
    LLVMTypeRef type = LLVMTypeOf(loop->induction);
    bool up = loop->step > 0;
    bool strict = loop->stays == LLVMIntSLT || loop->stays == LLVMIntULT ||
                  loop->stays == LLVMIntSGT || loop->stays == LLVMIntUGT;
    ir_share_stand_at_end(share, r->sums->flow, loop->header);
    LLVMValueRef left = up ? LLVMBuildSub(b, loop->bound, loop->induction, "")
                           : LLVMBuildSub(b, loop->induction, loop->bound, "");
    LLVMValueRef step = LLVMConstInt(type, (uint64_t)(up ? loop->step : -loop->step), false);
    LLVMValueRef place = LLVMBuildIntCast2(b, share->place, type, false, "");
    LLVMValueRef ahead = LLVMBuildMul(b, place, step, "");
    r->is_there = LLVMBuildICmp(b, strict ? LLVMIntULT : LLVMIntULE, ahead, left, "");
    r->lane = LLVMBuildSelect(b, r->is_there, share->place, ir_share_number(share, 0), "");
}

static void replace_operand(LLVMValueRef user, LLVMValueRef value, LLVMValueRef by) {
    for (int k = 0; k < LLVMGetNumOperands(user); k++) {
        if (LLVMGetOperand(user, (unsigned)k) == value)
            LLVMSetOperand(user, (unsigned)k, by);
    }
}

/* Gives the uses of a counter in the turn the lane's own count. */
static void write_count(const rounds *r, const ir_sum *it) {
    const ir_flow *flow = r->sums->flow;
    LLVMBuilderRef b = r->share->builder;
    LLVMTypeRef type = LLVMTypeOf(it->phi);
    ir_share_stand_at_end(r->share, flow, r->sums->loop->header);
    LLVMValueRef lane = LLVMBuildIntCast2(b, r->lane, type, false, "");
    LLVMValueRef step = LLVMConstInt(type, (uint64_t)it->step, true);
    LLVMValueRef own = LLVMBuildAdd(b, it->phi, LLVMBuildMul(b, lane, step, ""), "");
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (r->sums->loop->holds[flow->home[i]] && flow->home[i] != r->sums->loop->header)
            replace_operand(flow->insns[i], it->phi, own);
    }
    ir_share_count_on(r->share, r->sums, it);
}

/* A sum that is used behind the loop alone: a turn that is not there adds nothing. */
static void write_plain(const rounds *r, const ir_sum *it) {
    const ir_flow *flow = r->sums->flow;
    uint32_t latch = r->sums->loop->latch;
    LLVMValueRef next = ir_flow_incoming(flow, it->phi, latch);
    ir_share_start(r->share, r->sums, it);
    ir_share_stand_at_end(r->share, flow, latch);
    next = LLVMBuildSelect(r->share->builder, r->is_there, next, it->phi, "");
    ir_share_set_incoming(flow, it->phi, latch, next);
}

/* ---- the exchange -----------------------------------------------------------------------------
 */

/* The value of the lane `distance` below, or of the group's last one. Lanes of other groups do not
 * take part (PTX ISA, "shfl.sync": bits 8 to 12 of the clamp have the segment). */
static LLVMValueRef of_below(const ir_share *share, LLVMValueRef value, uint32_t distance) {
    return ir_share_shuffle(share, "up", value, distance, (IR_WARP - share->threads) << 8);
}

static LLVMValueRef of_last(const ir_share *share, LLVMValueRef value) {
    uint32_t clamp = (IR_WARP - share->threads) << 8 | (IR_WARP - 1);
    return ir_share_shuffle(share, "idx", value, share->threads - 1, clamp);
}

static bool adds(const ir_sum *it) {
    return it->kind == IR_SUM_ADD || it->kind == IR_SUM_FADD;
}

/* A sum begins with what adds nothing, an extreme with the loop's own. */
static LLVMValueRef neutral_of(const ir_sum *it) {
    return adds(it) ? ir_sum_neutral(it->kind, LLVMTypeOf(it->phi)) : it->phi;
}

/* Lets the chain begin with the neutral value in place of the sum. */
static void take_sum_out(const chain *c) {
    LLVMValueRef neutral = neutral_of(c->it);
    for (uint32_t i = 0; i < c->count; i++) {
        unsigned first, last;
        sum_operands(c->values[i], &first, &last);
        for (unsigned k = first; k <= last; k++) {
            if (LLVMGetOperand(c->values[i], k) == c->it->phi)
                LLVMSetOperand(c->values[i], k, neutral);
        }
    }
}

/* Moves what uses the sum in the block of the exchange behind it, in its order. */
static void move_users(const chain *c, const ir_share *share) {
    const ir_flow *flow = c->sums->flow;
    LLVMBuilderRef b = share->builder;
    LLVMValueRef behind = LLVMGetNextInstruction(c->next);
    for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[c->block]), then; i != c->next;
         i = then) {
        uint32_t insn = ir_flow_insn(flow, i);
        then = LLVMGetNextInstruction(i);
        if (insn == IR_NONE || !c->is_user[insn])
            continue;
        LLVMInstructionRemoveFromParent(i);
        LLVMPositionBuilderBefore(b, behind);
        LLVMInsertIntoBuilder(b, i);
    }
}

/* Gives what depends on the sum another value. */
static void replace_in_users(const chain *c, LLVMValueRef value, LLVMValueRef by) {
    for (uint32_t i = 0; i < c->sums->flow->insn_count; i++) {
        if (c->is_user[i])
            replace_operand(c->sums->flow->insns[i], value, by);
    }
}

/* Writes the exchange behind the turn's last addition. */
static void write_exchange(const rounds *r, const chain *c) {
    const ir_share *share = r->share;
    const ir_sum *it = c->it;
    LLVMBuilderRef b = share->builder;
    take_sum_out(c);
    move_users(c, share);
    LLVMValueRef at = LLVMGetNextInstruction(c->next);
    while (LLVMIsAPHINode(at))
        at = LLVMGetNextInstruction(at);
    LLVMPositionBuilderBefore(b, at);
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef sum = c->next;
    if (adds(it))
        sum = LLVMBuildSelect(b, r->is_there, sum, neutral_of(it), "");
    for (uint32_t d = 1; d < share->threads; d *= 2) {
        LLVMValueRef below = of_below(share, sum, d);
        LLVMValueRef both = ir_share_combine(share, it->kind, below, sum);
        LLVMValueRef has =
            LLVMBuildICmp(b, LLVMIntUGE, share->place, ir_share_number(share, d), "");
        sum = LLVMBuildSelect(b, has, both, sum, "");
    }
    LLVMValueRef below = ir_share_combine(share, it->kind, it->phi, of_below(share, sum, 1));
    LLVMValueRef repeats = LLVMBuildNot(b, r->is_there, ""); /* the round's first turn */
    LLVMValueRef is_first = LLVMBuildOr(b, share->is_first, repeats, "");
    LLVMValueRef before = LLVMBuildSelect(b, is_first, it->phi, below, "");
    LLVMValueRef round = of_last(share, sum);
    LLVMValueRef total = ir_share_combine(share, it->kind, it->phi, round);
    LLVMValueRef behind[MOST_CHAIN] = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t home = r->sums->flow->home[ir_flow_insn(r->sums->flow, c->values[i])];
        if (ir_dominance_over(&r->sums->flow->over, home, c->block))
            behind[i] = ir_share_combine(share, it->kind, before, c->values[i]);
    }
    replace_in_users(c, it->phi, before);
    for (uint32_t i = 0; i < c->count; i++) {
        if (behind[i])
            replace_in_users(c, c->values[i], behind[i]);
    }
    ir_share_set_incoming(r->sums->flow, it->phi, r->sums->loop->latch, total);
}

/* Lanes wait for each other around stores of what others may read, where all turns come by once:
 * inner loops may make unlike numbers of turns. */
static void guard_turns(const rounds *r) {
    const ir_flow *flow = r->sums->flow;
    const ir_loop *loop = r->sums->loop;
    for (uint32_t b = 0; b < flow->count; b++) {
        bool is_own = ir_loop_of(flow, b) == (uint32_t)(loop - flow->loops);
        bool is_common = is_own && ir_dominance_over(&flow->over, b, loop->latch);
        if (loop->holds[b])
            ir_share_guard_block(r->share, flow->blocks[b], NULL, r->is_there,
                                 is_common ? r->share->mask : NULL);
    }
}

/* The next chain to be written: no other that is left leads to it. NULL: none is left. */
static const chain *next_chain(const chain *chains, uint32_t count, const bool *is_left) {
    for (uint32_t i = 0; i < count; i++) {
        bool waits = !is_left[i];
        for (uint32_t k = 0; k < count && !waits; k++)
            waits = is_left[k] && k != i &&
                    chains[k].is_user[ir_flow_insn(chains[i].sums->flow, chains[i].next)];
        if (!waits)
            return &chains[i];
    }
    return NULL;
}

ev_status ir_share_rounds(const ir_share *share, const ir_sums *sums, ir_gather *out,
                          ev_error *err) {
    rounds r = {.share = share, .sums = sums};
    chain *chains = EV_NEW_ARRAY(share->s->arena, chain, IR_MOST_SUMS);
    bool is_left[IR_MOST_SUMS];
    uint32_t count = 0;
    *out = (ir_gather){.sums = sums};
    if (!chains)
        return ev_fail_memory(err, IR_MOST_SUMS * sizeof *chains);
    for (uint32_t i = 0; i < sums->count; i++) {
        if (!sums->items[i].runs)
            continue;
        EV_TRY(find_chain(sums, &sums->items[i], share->s->arena, &chains[count], err));
        is_left[count++] = true;
    }
    write_turn(&r);
    for (uint32_t i = 0; i < sums->count; i++) {
        const ir_sum *it = &sums->items[i];
        if (it->kind == IR_SUM_STEP)
            write_count(&r, it);
        else if (!it->runs)
            write_plain(&r, it);
    }
    const chain *c = NULL;
    while ((c = next_chain(chains, count, is_left)) != NULL) {
        write_exchange(&r, c);
        is_left[c - chains] = false;
    }
    guard_turns(&r);
    return EV_OK;
}
