/* Join atomics: threads that add to one address combine what they add, and one thread adds it.
 *
 *     slot = nothing                          slot = nothing
 *     if (i < n)                              if (i < n)
 *         atomicAdd(y, x[i]);      becomes        slot = slot + x[i]
 *                                             all threads meet: total = the sum of their slots
 *                                             if (first thread, and one has added)
 *                                                 atomicAdd(y, total);
 *
 * The address must be the same for all threads of a block and known at the beginning, so a
 * thread's atomics may stand in loops and under conditions: a thread adds them up first. The
 * threads meet at the end of the first block of code behind the atomic that all of them come to,
 * outside of all loops. With the option 32, lanes of a warp combine by shuffles; with 1,024, warps
 * combine by shared memory as well. Atomics of one kind at one address become one. */
#include "ir/structure/atomics/atomics_internal.h"

enum { MOST_MEETINGS = 8, DEEPEST = 16 };

/* Atomics that become one. */
typedef struct meeting {
    LLVMValueRef pointer;
    LLVMAtomicRMWBinOp op;
    ir_sum_kind kind;
    uint32_t at;        /* the block of code where the threads meet */
    bool always;        /* each thread adds something */
    LLVMValueRef slot;  /* what the thread has added so far */
    LLVMValueRef added; /* whether it has added something, an i32 */
    LLVMValueRef last;  /* the atomic that stays */
} meeting;

typedef struct joining {
    ir_atomics a;
    bool of_block;   /* all threads of a block combine */
    uint32_t *joins; /* by instruction: its meeting, counted from 1; 0: it stays as it is */
    meeting meetings[MOST_MEETINGS];
    uint32_t count;
} joining;

/* ---- which atomics ----------------------------------------------------------------------------
 */

/* Whether a value is the same for all threads of a block in all turns of loops, and can be computed
 * at the kernel's beginning. */
static bool is_known_early(const joining *j, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&j->a.flow, value);
    if (insn == IR_NONE)
        return LLVMIsAArgument(value) || LLVMIsAConstant(value);
    if (depth == 0 || j->a.vary.varies[insn] || !ir_may_run_anywhere(value) ||
        LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value))
        return false;
    unsigned operands = (unsigned)LLVMGetNumOperands(value);
    operands -= LLVMIsACallInst(value) ? 1 : 0;
    for (unsigned k = 0; k < operands; k++) {
        if (!is_known_early(j, LLVMGetOperand(value, k), depth - 1))
            return false;
    }
    return true;
}

/* Moves a value that is known early, and what it is computed from, to the end of the kernel's first
 * block. */
static void move_early(const joining *j, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&j->a.flow, value);
    LLVMBuilderRef b = j->a.share.builder;
    if (insn == IR_NONE || LLVMGetInstructionParent(value) == j->a.flow.blocks[0])
        return;
    for (int k = 0; k < LLVMGetNumOperands(value); k++)
        move_early(j, LLVMGetOperand(value, (unsigned)k));
    LLVMInstructionRemoveFromParent(value);
    LLVMPositionBuilderBefore(b, ir_flow_last(&j->a.flow, 0));
    LLVMInsertIntoBuilder(b, value);
}

static meeting *meeting_for(joining *j, LLVMValueRef atomic, uint32_t at) {
    LLVMValueRef pointer = LLVMGetOperand(atomic, 0);
    LLVMAtomicRMWBinOp op = LLVMGetAtomicRMWBinOp(atomic);
    for (uint32_t k = 0; k < j->count; k++) {
        meeting *m = &j->meetings[k];
        if (m->pointer == pointer && m->op == op && m->at == at &&
            LLVMTypeOf(m->slot) == LLVMTypeOf(LLVMGetOperand(atomic, 1)))
            return m;
    }
    if (j->count == MOST_MEETINGS)
        return NULL;
    meeting *m = &j->meetings[j->count++];
    *m = (meeting){.pointer = pointer, .op = op, .kind = ir_atomics_kind(atomic), .at = at};
    m->slot = LLVMGetUndef(LLVMTypeOf(LLVMGetOperand(atomic, 1))); /* its type, so far */
    return m;
}

/* Adds an atomic to a meeting. EV_BAD, with the reason: it has to stay. */
static ev_status add_atomic(joining *j, uint32_t insn, ev_error *err) {
    LLVMValueRef atomic = j->a.flow.insns[insn], pointer = LLVMGetOperand(atomic, 0);
    EV_TRY(ir_atomics_check(&j->a, insn, err));
    if (!is_known_early(j, pointer, DEEPEST))
        return ev_fail(err, EV_BAD,
                       "the threads of a block do not all add to one address that is known "
                       "at the beginning");
    uint32_t at = ir_atomics_meet_at(&j->a, j->a.flow.home[insn]);
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "the threads of a block do not meet behind an atomic");
    EV_TRY(ir_atomics_check_wait(&j->a, insn, at, err));
    meeting *m = meeting_for(j, atomic, at);
    if (m == NULL)
        return ev_fail(err, EV_BAD, "the kernel has atomics at more than %d places", MOST_MEETINGS);
    m->always |= ir_dominance_over(&j->a.flow.over, j->a.flow.home[insn], at);
    j->joins[insn] = (uint32_t)(m - j->meetings) + 1;
    return EV_OK;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_option(joining *j, const ir_edit *edit, ev_error *err) {
    if (!edit->has_option || (edit->option != IR_WARP && edit->option != IR_MOST_THREADS))
        return ev_fail(err, EV_BAD, "\"option\" is neither %d nor %d", IR_WARP, IR_MOST_THREADS);
    j->of_block = edit->option == IR_MOST_THREADS;
    if (j->a.threads % IR_WARP != 0)
        return ev_fail(err, EV_BAD, "a block of %u threads is not made of warps", j->a.threads);
    if (j->of_block && j->a.threads == IR_WARP)
        return ev_fail(err, EV_BAD, "a block is one warp");
    if (j->of_block &&
        ir_shared_bytes(j->a.s->base->module, NULL) + 4 * IR_WARP * MOST_MEETINGS > IR_MOST_SHARED)
        return ev_fail(err, EV_BAD, "the block has no shared memory left");
    return EV_OK;
}

/* Lists the atomics that can be joined; `err` tells of the first that cannot, if none can. */
static ev_status find_atomics(joining *j, ev_error *err) {
    ev_error why = {0};
    for (uint32_t i = 0; i < j->a.flow.insn_count; i++) {
        if (!LLVMIsAAtomicRMWInst(j->a.flow.insns[i]))
            continue;
        ev_error one = {0};
        ev_status status = add_atomic(j, i, &one);
        if (status != EV_OK && status != EV_BAD)
            return ev_fail(err, status, "%s", one.text);
        if (status == EV_BAD && why.text[0] == '\0')
            why = one;
    }
    if (j->count == 0)
        return ev_fail(err, EV_BAD, "no atomics can be joined: %s",
                       why.text[0] ? why.text : "the kernel has none");
    return EV_OK;
}

/* ---- what a thread adds -----------------------------------------------------------------------
 */

/* Writes the slots and the thread's place at the kernel's beginning. */
static void write_slots(joining *j) {
    const ir_share *share = &j->a.share;
    LLVMBuilderRef b = share->builder;
    LLVMTypeRef flag = LLVMInt32TypeInContext(j->a.s->base->context);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(j->a.flow.blocks[0]));
    LLVMSetCurrentDebugLocation2(b, NULL);
    for (uint32_t k = 0; k < j->count; k++) {
        meeting *m = &j->meetings[k];
        LLVMTypeRef type = LLVMTypeOf(m->slot);
        m->slot = LLVMBuildAlloca(b, type, "");
        LLVMBuildStore(b, ir_sum_neutral(m->kind, type), m->slot);
        m->added = LLVMBuildAlloca(b, flag, "");
        LLVMBuildStore(b, LLVMConstNull(flag), m->added);
    }
    ir_atomics_number_threads(&j->a);
}

static void add_to_slot(const joining *j, meeting *m, LLVMValueRef atomic) {
    LLVMBuilderRef b = j->a.share.builder;
    LLVMValueRef value = LLVMGetOperand(atomic, 1);
    LLVMPositionBuilderBefore(b, atomic);
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef had = LLVMBuildLoad2(b, LLVMTypeOf(value), m->slot, "");
    LLVMBuildStore(b, ir_share_combine(&j->a.share, m->kind, had, value), m->slot);
    LLVMBuildStore(b, ir_share_number(&j->a.share, 1), m->added);
    LLVMInstructionRemoveFromParent(atomic);
    if (m->last)
        LLVMDeleteInstruction(m->last);
    m->last = atomic;
}

/* ---- where threads meet -----------------------------------------------------------------------
 */

/* Combines the values of the lanes of each warp. */
static LLVMValueRef of_warp(const joining *j, const meeting *m, LLVMValueRef value) {
    const ir_sums sums = {.items = {{.kind = m->kind}}, .count = 1};
    ir_gather all = {.sums = &sums, .value = {value}};
    ir_share_exchange(&j->a.share, &all, IR_WARP);
    return all.value[0];
}

static LLVMValueRef is_zero(const joining *j, LLVMValueRef value) {
    return LLVMBuildICmp(j->a.share.builder, LLVMIntEQ, value, ir_share_number(&j->a.share, 0), "");
}

/* Whether one of the threads that combine has added something; the threads of a block wait for each
 * other. NULL: always. */
static LLVMValueRef any_added(const joining *j, const meeting *m) {
    LLVMBuilderRef b = j->a.share.builder;
    LLVMTypeRef flag = LLVMInt32TypeInContext(j->a.s->base->context);
    LLVMValueRef mine = m->always ? NULL : LLVMBuildLoad2(b, flag, m->added, "");
    if (j->of_block && !mine)
        ir_share_call(&j->a.share, "llvm.nvvm.barrier0", NULL, 0);
    if (!mine)
        return NULL;
    if (j->of_block) {
        LLVMValueRef all = ir_share_call(&j->a.share, "llvm.nvvm.barrier0.or", &mine, 1);
        return LLVMBuildNot(b, is_zero(j, all), "");
    }
    LLVMValueRef arguments[] = {j->a.share.mask, LLVMBuildNot(b, is_zero(j, mine), "")};
    return ir_share_call(&j->a.share, "llvm.nvvm.vote.any.sync", arguments, 2);
}

/* Puts what each warp has where the block's first thread finds it. */
static LLVMValueRef put_of_warps(const joining *j, LLVMValueRef end, LLVMValueRef value,
                                 LLVMValueRef leads) {
    LLVMBuilderRef b = j->a.share.builder;
    LLVMValueRef array = ir_share_new_array(&j->a.share, LLVMTypeOf(value), j->a.threads / IR_WARP);
    LLVMValueRef warp = LLVMBuildUDiv(b, j->a.thread, ir_share_number(&j->a.share, IR_WARP), "");
    LLVMValueRef store = LLVMBuildStore(b, value, ir_share_place(&j->a.share, array, warp));
    ir_share_guard_run(&j->a.share, store, leads, NULL);
    LLVMPositionBuilderBefore(b, end);
    return array;
}

/* Reads what the warps have put down, where the builder stands. */
static LLVMValueRef sum_of_warps(const joining *j, const meeting *m, LLVMValueRef array,
                                 LLVMTypeRef type) {
    LLVMValueRef sum = NULL;
    for (uint32_t w = 0; w < j->a.threads / IR_WARP; w++) {
        LLVMValueRef at = ir_share_place(&j->a.share, array, ir_share_number(&j->a.share, w));
        LLVMValueRef one = LLVMBuildLoad2(j->a.share.builder, type, at, "");
        sum = sum ? ir_share_combine(&j->a.share, m->kind, sum, one) : one;
    }
    return sum;
}

/* Writes the meeting at the end of its block of code, with the atomic that stays. */
static void meet(const joining *j, meeting *m) {
    LLVMBuilderRef b = j->a.share.builder;
    LLVMValueRef end = ir_flow_last(&j->a.flow, m->at), array = NULL;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(m->last, 1));
    LLVMPositionBuilderBefore(b, end);
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef value = of_warp(j, m, LLVMBuildLoad2(b, type, m->slot, ""));
    LLVMValueRef lane = LLVMBuildAnd(b, j->a.thread, ir_share_number(&j->a.share, IR_WARP - 1), "");
    LLVMValueRef leads = is_zero(j, lane);
    if (j->of_block) {
        array = put_of_warps(j, end, value, leads);
        leads = is_zero(j, j->a.thread);
    }
    LLVMValueRef any = any_added(j, m);
    LLVMValueRef condition = any ? LLVMBuildAnd(b, leads, any, "") : leads;
    LLVMInsertIntoBuilder(b, m->last);
    LLVMSetOperand(m->last, 1, value);
    ir_share_guard_run(&j->a.share, m->last, condition, NULL);
    if (!LLVMIsAReturnInst(end)) { /* what a thread does next may tell others that all is added */
        LLVMPositionBuilderBefore(b, end);
        LLVMValueRef all = j->a.share.mask;
        if (j->of_block)
            ir_share_call(&j->a.share, "llvm.nvvm.barrier0", NULL, 0);
        else
            ir_share_call(&j->a.share, "llvm.nvvm.bar.warp.sync", &all, 1);
    }
    if (!array)
        return;
    LLVMPositionBuilderBefore(b, m->last);
    LLVMSetOperand(m->last, 1, sum_of_warps(j, m, array, type));
}

static ev_status join(joining *j, const ir_edit *edit, ev_error *err) {
    EV_TRY(check_option(j, edit, err));
    j->joins = EV_NEW_ARRAY(j->a.s->arena, uint32_t, j->a.flow.insn_count + 1);
    if (!j->joins)
        return ev_fail_memory(err, j->a.flow.insn_count);
    EV_TRY(find_atomics(j, err));
    j->a.share.threads = IR_WARP;
    j->a.share.mask = ir_share_number(&j->a.share, UINT32_MAX);
    for (uint32_t k = 0; k < j->count; k++)
        move_early(j, j->meetings[k].pointer);
    write_slots(j);
    for (uint32_t i = 0; i < j->a.flow.insn_count; i++) {
        if (j->joins[i] > 0)
            add_to_slot(j, &j->meetings[j->joins[i] - 1], j->a.flow.insns[i]);
    }
    for (uint32_t k = 0; k < j->count; k++)
        meet(j, &j->meetings[k]);
    return EV_OK;
}

ev_status ir_structure_join_atomics(ir_structure *s, const ir_edit *edit, ev_error *err) {
    joining j = {.count = 0};
    j.a.share.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = ir_atomics_open(s, &j.a, err);
    if (status == EV_OK)
        status = join(&j, edit, err);
    LLVMDisposeBuilder(j.a.share.builder);
    return status;
}
