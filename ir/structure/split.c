/* Split lanes: the turns of a loop that sums are spread over 2 to 32 lanes of a warp.
 *
 * Each thread of the kernel becomes a group of lanes, side by side along x. The lanes of a group
 * have the same virtual thread, so they take the same branches; lane l of L runs the turns l, l +
 * L, l + 2 L of the loop, and a butterfly of shuffles behind the loop gives all lanes the whole
 * sum, with the same bits from run to run. Lane 0 alone writes. The block grows by L. */
#include "ir/structure/affine_internal.h"
#include "ir/structure/structure_internal.h"
#include "ir/structure/vary_internal.h"

#include <stdio.h>
#include <string.h>

enum { WARP = 32, MOST_SUMS = 32, MOST_THREADS = 1024 };

typedef enum sum_kind { SUM_NONE, SUM_ADD, SUM_FADD, SUM_MAX, SUM_MIN, SUM_STEP } sum_kind;

/* A PHI of the loop's header. */
typedef struct sum {
    LLVMValueRef phi;
    sum_kind kind; /* SUM_STEP: it counts, as the induction variable does */
    int64_t step;
} sum;

typedef struct splitting {
    ir_structure *s;
    const ir_edit *edit;
    ir_flow flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    uint32_t lanes;
    sum sums[MOST_SUMS];
    uint32_t sum_count;
    LLVMValueRef lane, is_first, mask;
} splitting;

/* ---- which sums the loop makes ----------------------------------------------------------------
 */

static bool is_in_loop(const splitting *p, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&p->flow, value);
    return insn != IR_NONE && p->loop->holds[p->flow.home[insn]];
}

/* How an instruction combines two values; *operands: how many of its operands may be the sum. */
static sum_kind kind_of(LLVMValueRef insn, unsigned *first, unsigned *last) {
    const char *name = ir_call_name(insn);
    *first = 0;
    *last = 1;
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMFAdd:
        return SUM_FADD;
    case LLVMAdd:
        return SUM_ADD;
    case LLVMFSub:
        *last = 0;
        return SUM_FADD;
    case LLVMSub:
        *last = 0;
        return SUM_ADD;
    default:
        break;
    }
    if (strncmp(name, "llvm.fma.", 9) == 0 || strncmp(name, "llvm.fmuladd.", 13) == 0) {
        *first = *last = 2;
        return SUM_FADD;
    }
    if (strncmp(name, "llvm.maxnum.", 12) == 0)
        return SUM_MAX;
    return strncmp(name, "llvm.minnum.", 12) == 0 ? SUM_MIN : SUM_NONE;
}

static bool leads_to(const splitting *p, LLVMValueRef value, LLVMValueRef phi, sum_kind *kind,
                     unsigned depth);

static bool all_lead_to(const splitting *p, LLVMValueRef value, LLVMValueRef phi, sum_kind *kind,
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

/* Whether `value` is the PHI combined with other values by operations of one kind, whose results go
 * nowhere else in the loop. */
static bool leads_to(const splitting *p, LLVMValueRef value, LLVMValueRef phi, sum_kind *kind,
                     unsigned depth) {
    if (value == phi)
        return true;
    if (depth == 0 || !is_in_loop(p, value))
        return false;
    if (LLVMIsASelectInst(value) || (LLVMIsAPHINode(value) && LLVMGetInstructionParent(value) !=
                                                                  p->flow.blocks[p->loop->header]))
        return all_lead_to(p, value, phi, kind, depth - 1);
    unsigned first, last, found = 0;
    sum_kind own = LLVMIsAPHINode(value) ? SUM_NONE : kind_of(value, &first, &last);
    if (own == SUM_NONE || (*kind != SUM_NONE && *kind != own))
        return false;
    *kind = own;
    for (unsigned k = first; k <= last; k++)
        found += leads_to(p, LLVMGetOperand(value, k), phi, kind, depth - 1);
    return found == 1;
}

/* Whether every use in the loop of what is between the PHI and `end` is in the sum as well. */
static bool stays_in_sum(const splitting *p, LLVMValueRef value, LLVMValueRef phi, unsigned depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        sum_kind kind = SUM_NONE;
        if (!is_in_loop(p, user) || user == phi)
            continue;
        if (depth == 0 || !leads_to(p, user, phi, &kind, 16) ||
            !stays_in_sum(p, user, phi, depth - 1))
            return false;
    }
    return true;
}

static LLVMValueRef incoming(const ir_flow *flow, LLVMValueRef phi, uint32_t block) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (LLVMGetIncomingBlock(phi, i) == flow->blocks[block])
            return LLVMGetIncomingValue(phi, i);
    }
    return NULL;
}

static bool is_word(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMFloatTypeKind ||
           (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 32);
}

static bool is_used_outside(const splitting *p, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        if (!is_in_loop(p, LLVMGetUser(use)))
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

static ev_status add_sum(splitting *p, LLVMValueRef phi, ev_error *err) {
    LLVMValueRef next = incoming(&p->flow, phi, p->loop->latch);
    sum *it = &p->sums[p->sum_count];
    if (p->sum_count == MOST_SUMS)
        return ev_fail(err, EV_BAD, "the loop has more than %d sums", MOST_SUMS);
    *it = (sum){.phi = phi, .step = count_step(phi, next)};
    if (it->step != 0 && !is_used_outside(p, phi) && !is_used_outside(p, next)) {
        it->kind = SUM_STEP;
        p->sum_count++;
        return EV_OK;
    }
    if (!is_word(LLVMTypeOf(phi)) || !leads_to(p, next, phi, &it->kind, 16) ||
        it->kind == SUM_NONE || !stays_in_sum(p, phi, phi, 16))
        return ev_fail(err, EV_BAD,
                       "a value that the loop carries from turn to turn is no sum of 32-bit "
                       "numbers");
    p->sum_count++;
    return EV_OK;
}

static ev_status list_sums(splitting *p, ev_error *err) {
    bool any = false;
    for (uint32_t i = p->flow.first[p->loop->header]; LLVMIsAPHINode(p->flow.insns[i]); i++) {
        EV_TRY(add_sum(p, p->flow.insns[i], err));
        any |= p->sums[p->sum_count - 1].kind != SUM_STEP;
    }
    return any ? EV_OK : ev_fail(err, EV_BAD, "the loop makes no sum");
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool grows_to_bound(const ir_loop *loop) {
    LLVMIntPredicate p = loop->stays;
    if (loop->step > 0)
        return p == LLVMIntSLT || p == LLVMIntULT || p == LLVMIntSLE || p == LLVMIntULE;
    return p == LLVMIntSGT || p == LLVMIntSGE;
}

static ev_status check_loop(const splitting *p, ev_error *err) {
    const ir_loop *loop = p->loop;
    if (!loop->induction || loop->compares_next || !grows_to_bound(loop) || loop->exit == IR_NONE)
        return ev_fail(err, EV_BAD,
                       "the loop does not count from a start to a bound, tested at "
                       "its top");
    uint32_t exit = loop->exit;
    if (p->flow.back.first[exit + 1] - p->flow.back.first[exit] != 1 ||
        p->flow.back.succ[p->flow.back.first[exit]] != loop->header)
        return ev_fail(err, EV_BAD, "the loop is left in more than one place");
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        LLVMValueRef insn = p->flow.insns[i];
        ir_deed deed = ir_deed_of(insn);
        bool inside = loop->holds[p->flow.home[i]];
        if (deed == IR_DEED_UNKNOWN || deed == IR_DEED_WARP)
            return ev_fail(err, EV_BAD, "the kernel calls %s", ir_call_name(insn));
        if (inside && deed != IR_DEED_PURE && deed != IR_DEED_LOAD && deed != IR_DEED_MARKER)
            return ev_fail(err, EV_BAD, "the loop does more than to sum: it stores or waits");
        if (deed == IR_DEED_COUNTED && LLVMGetFirstUse(insn))
            return ev_fail(err, EV_BAD, "the value of an atomic is used");
    }
    return EV_OK;
}

/* A lane that does not write may not read back what lane 0 wrote. */
static ev_status check_reads(const splitting *p, ev_error *err) {
    const ir_flow *flow = &p->flow;
    LLVMModuleRef module = p->s->base->module;
    for (uint32_t s = 0; s < flow->insn_count; s++) {
        LLVMValueRef to = NULL, from = NULL;
        if (ir_deed_of(flow->insns[s]) != IR_DEED_STORE)
            continue;
        (void)ir_affine_of_address(module, ir_pointer_of(flow->insns[s]), &to);
        if (LLVMIsAAllocaInst(to))
            return ev_fail(err, EV_BAD, "the kernel has a local array");
        for (uint32_t l = 0; l < flow->insn_count; l++) {
            if (!LLVMIsALoadInst(flow->insns[l]) || !ir_flow_leads(flow, s, l))
                continue;
            (void)ir_affine_of_address(module, ir_pointer_of(flow->insns[l]), &from);
            if (to == from && LLVMIsAArgument(to))
                return ev_fail(err, EV_BAD, "the kernel reads back what it wrote");
        }
    }
    return EV_OK;
}

static ev_status check_block(const splitting *p, ev_error *err) {
    const uint32_t *block = p->s->base->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads == 0 || (threads * p->lanes > MOST_THREADS) ||
        (block[0] * p->lanes) % p->lanes != 0)
        return ev_fail(err, EV_BAD,
                       "a block of %llu threads, %u times as large, is not known or too large",
                       (unsigned long long)threads, p->lanes);
    return EV_OK;
}

static ev_status check_option(splitting *p, ev_error *err) {
    const ir_edit *edit = p->edit;
    int64_t lanes = edit->has_option ? edit->option : 0;
    if (lanes < 2 || lanes > WARP || (lanes & (lanes - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to %d", WARP);
    p->lanes = (uint32_t)lanes;
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&p->flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    p->loop = &p->flow.loops[at];
    return EV_OK;
}

/* ---- lanes and virtual threads ----------------------------------------------------------------
 */

static LLVMTypeRef word(const splitting *p) {
    return LLVMInt32TypeInContext(p->s->base->context);
}

static LLVMValueRef number(const splitting *p, uint64_t value) {
    return LLVMConstInt(word(p), value, false);
}

static LLVMValueRef call_intrinsic(const splitting *p, const char *name, LLVMValueRef *arguments,
                                   unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(p->s->base->module, id, NULL, 0);
    return LLVMBuildCall2(p->builder, LLVMGlobalGetValueType(callee), callee, arguments, count, "");
}

/* Writes the lane and the virtual thread at the kernel's beginning, and gives the kernel the
 * virtual thread and block size. */
static void write_lanes(splitting *p) {
    LLVMPositionBuilderBefore(p->builder, LLVMGetFirstInstruction(p->flow.blocks[0]));
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMValueRef real = call_intrinsic(p, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0);
    LLVMValueRef thread = LLVMBuildUDiv(p->builder, real, number(p, p->lanes), "");
    p->lane = LLVMBuildAnd(p->builder, real, number(p, p->lanes - 1), "");
    p->is_first = LLVMBuildICmp(p->builder, LLVMIntEQ, p->lane, number(p, 0), "");
    LLVMValueRef place = call_intrinsic(p, "llvm.nvvm.read.ptx.sreg.laneid", NULL, 0);
    LLVMValueRef first = LLVMBuildAnd(p->builder, place, number(p, WARP - p->lanes), "");
    uint64_t all = p->lanes == WARP ? UINT32_MAX : (UINT64_C(1) << p->lanes) - 1;
    p->mask =
        p->lanes == WARP ? number(p, all) : LLVMBuildShl(p->builder, number(p, all), first, "");
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (ir_reads_register(p->flow.insns[i], "tid.x"))
            LLVMReplaceAllUsesWith(p->flow.insns[i], thread);
        else if (ir_reads_register(p->flow.insns[i], "ntid.x"))
            LLVMReplaceAllUsesWith(p->flow.insns[i], number(p, p->s->base->block[0]));
    }
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

static void set_incoming(const splitting *p, LLVMValueRef phi, uint32_t block, LLVMValueRef value) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (LLVMGetIncomingBlock(phi, i) == p->flow.blocks[block])
            LLVMSetOperand(phi, i, value);
    }
}

/* Lane l begins at the l-th turn and goes on by as many turns as there are lanes. */
static void spread_count(const splitting *p, const sum *it) {
    LLVMTypeRef type = LLVMTypeOf(it->phi);
    LLVMPositionBuilderBefore(p->builder, ir_flow_last(&p->flow, p->loop->preheader));
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMValueRef lane = LLVMBuildIntCast2(p->builder, p->lane, type, false, "");
    LLVMValueRef step = LLVMConstInt(type, (unsigned long long)it->step, true);
    LLVMValueRef start = incoming(&p->flow, it->phi, p->loop->preheader);
    LLVMValueRef own =
        LLVMBuildAdd(p->builder, start, LLVMBuildMul(p->builder, lane, step, ""), "");
    set_incoming(p, it->phi, p->loop->preheader, own);
    /* The old sum of the next turn may have other uses. It did not wrap; this one may only where
     * the bound is within a few turns of the type's greatest number. */
    LLVMPositionBuilderBefore(p->builder, ir_flow_last(&p->flow, p->loop->latch));
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    int64_t turns_step = it->step * p->lanes;
    LLVMValueRef turns = LLVMConstInt(type, (unsigned long long)turns_step, true);
    LLVMValueRef next = LLVMBuildNSWAdd(p->builder, it->phi, turns, "");
    set_incoming(p, it->phi, p->loop->latch, next);
}

static LLVMValueRef combine(const splitting *p, sum_kind kind, LLVMValueRef a, LLVMValueRef b) {
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef both[] = {a, b};
    if (kind == SUM_ADD)
        return LLVMBuildAdd(p->builder, a, b, "");
    if (kind == SUM_FADD)
        return LLVMBuildFAdd(p->builder, a, b, "");
    const char *name = kind == SUM_MAX ? "llvm.maxnum" : "llvm.minnum";
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(p->s->base->module, id, &type, 1);
    return LLVMBuildCall2(p->builder, LLVMGlobalGetValueType(callee), callee, both, 2, "");
}

static LLVMValueRef shuffled(const splitting *p, LLVMValueRef value, uint32_t distance) {
    bool is_float = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind;
    LLVMValueRef arguments[] = {p->mask, value, number(p, distance), number(p, WARP - 1)};
    return call_intrinsic(
        p, is_float ? "llvm.nvvm.shfl.sync.bfly.f32" : "llvm.nvvm.shfl.sync.bfly.i32", arguments,
        4);
}

/* Gives one PHI behind the loop, which takes a lane's sum, the sum of all lanes. */
static void gather(const splitting *p, const sum *it, LLVMValueRef behind) {
    LLVMValueRef at = LLVMGetFirstInstruction(p->flow.blocks[p->loop->exit]);
    while (LLVMIsAPHINode(at))
        at = LLVMGetNextInstruction(at);
    LLVMPositionBuilderBefore(p->builder, at);
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMValueRef holder = LLVMBuildFreeze(p->builder, LLVMGetUndef(LLVMTypeOf(behind)), "");
    LLVMReplaceAllUsesWith(behind, holder);
    LLVMValueRef value = behind;
    for (uint32_t distance = p->lanes / 2; distance > 0; distance /= 2)
        value = combine(p, it->kind, value, shuffled(p, value, distance));
    LLVMReplaceAllUsesWith(holder, value);
    LLVMInstructionEraseFromParent(holder);
}

static void spread_sum(const splitting *p, const sum *it) {
    LLVMValueRef start = incoming(&p->flow, it->phi, p->loop->preheader);
    if ((it->kind == SUM_ADD || it->kind == SUM_FADD) && !LLVMIsNull(start)) {
        LLVMPositionBuilderBefore(p->builder, ir_flow_last(&p->flow, p->loop->preheader));
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(start));
        start = LLVMBuildSelect(p->builder, p->is_first, start, zero, "");
        set_incoming(p, it->phi, p->loop->preheader, start);
    }
    for (uint32_t i = p->flow.first[p->loop->exit]; LLVMIsAPHINode(p->flow.insns[i]); i++) {
        if (LLVMGetIncomingValue(p->flow.insns[i], 0) == it->phi)
            gather(p, it, p->flow.insns[i]);
    }
}

/* Whether what is taken out of the loop are its sums alone. */
static ev_status check_results(const splitting *p, ev_error *err) {
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        LLVMValueRef insn = p->flow.insns[i];
        bool is_sum = false;
        for (uint32_t k = 0; k < p->sum_count; k++)
            is_sum |= p->sums[k].phi == insn && p->sums[k].kind != SUM_STEP;
        if (is_in_loop(p, insn) && !is_sum && is_used_outside(p, insn))
            return ev_fail(err, EV_BAD,
                           "a value of the loop other than its sums is used behind it");
    }
    return EV_OK;
}

/* ---- effects of lane 0 ------------------------------------------------------------------------
 */

static void redirect(const splitting *p, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(p->s->function); b;
         b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
        for (unsigned i = 0; last && i < LLVMGetNumSuccessors(last); i++) {
            if (LLVMGetSuccessor(last, i) == from)
                LLVMSetSuccessor(last, i, to);
        }
    }
}

static void move_to_end(const splitting *p, LLVMValueRef insn, LLVMBasicBlockRef block) {
    LLVMInstructionRemoveFromParent(insn);
    LLVMPositionBuilderAtEnd(p->builder, block);
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    LLVMInsertIntoBuilder(p->builder, insn);
}

static bool is_effect(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return deed == IR_DEED_STORE || (deed == IR_DEED_COUNTED && !LLVMIsALoadInst(insn));
}

static bool is_shared_store(LLVMValueRef insn) {
    if (!LLVMIsAStoreInst(insn))
        return false;
    LLVMTypeRef pointer = LLVMTypeOf(LLVMGetOperand(insn, 1));
    return LLVMGetPointerAddressSpace(pointer) != 1; /* generic ones may lead there */
}

/* Orders the group's lanes: all read before lane 0 writes, or after that. */
static void order_lanes(const splitting *p) {
    LLVMValueRef mask = p->mask;
    call_intrinsic(p, "llvm.nvvm.bar.warp.sync", &mask, 1);
}

/* Puts a run of effects, beginning at `first`, under the test for lane 0. What stands before stays
 * before it in a block of its own; arithmetic between the effects moves there. The other lanes read
 * what lane 0 writes to shared memory, since they stand for the same thread. */
static void guard_run(const splitting *p, LLVMValueRef first) {
    LLVMBasicBlockRef rest = LLVMGetInstructionParent(first);
    LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(p->s->base->context, rest, "");
    LLVMBasicBlockRef body = LLVMInsertBasicBlockInContext(p->s->base->context, rest, "");
    redirect(p, rest, head);
    for (LLVMValueRef i = LLVMGetFirstInstruction(rest), next; i != first; i = next) {
        next = LLVMGetNextInstruction(i);
        move_to_end(p, i, head);
    }
    bool shared = false;
    LLVMValueRef end = first;
    for (LLVMValueRef i = first;
         is_effect(i) || (ir_deed_of(i) == IR_DEED_PURE && !LLVMIsATerminatorInst(i)); i = end) {
        end = LLVMGetNextInstruction(i);
        shared |= is_shared_store(i);
        move_to_end(p, i, is_effect(i) ? body : head);
    }
    LLVMPositionBuilderAtEnd(p->builder, body);
    LLVMBuildBr(p->builder, rest);
    if (shared) {
        LLVMPositionBuilderBefore(p->builder, end);
        order_lanes(p);
    }
    LLVMPositionBuilderAtEnd(p->builder, head);
    if (shared)
        order_lanes(p);
    LLVMBuildCondBr(p->builder, p->is_first, body, rest);
}

static void guard_effects(const splitting *p) {
    for (uint32_t b = 0; b < p->flow.count; b++) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(p->flow.blocks[b]), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            if (!is_effect(i))
                continue;
            guard_run(p, i);
            next = LLVMGetFirstInstruction(p->flow.blocks[b]);
        }
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static ev_status split(splitting *p, ev_error *err) {
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(check_option(p, err));
    EV_TRY(check_block(p, err));
    EV_TRY(check_loop(p, err));
    EV_TRY(check_reads(p, err));
    EV_TRY(list_sums(p, err));
    EV_TRY(check_results(p, err));
    write_lanes(p);
    for (uint32_t i = 0; i < p->sum_count; i++) {
        if (p->sums[i].kind == SUM_STEP)
            spread_count(p, &p->sums[i]);
        else
            spread_sum(p, &p->sums[i]);
    }
    guard_effects(p);
    p->s->base->block[0] *= p->lanes;
    return EV_OK;
}

ev_status ir_structure_split(ir_structure *s, const ir_edit *edit, ev_error *err) {
    splitting p = {.s = s, .edit = edit};
    p.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = split(&p, err);
    LLVMDisposeBuilder(p.builder);
    return status;
}
