/* Wait: which atomics may wait until the threads of a block meet. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/atomics/atomics_internal.h"

#include <string.h>

ir_sum_kind ir_atomics_kind(LLVMValueRef atomic) {
    switch (LLVMGetAtomicRMWBinOp(atomic)) {
    case LLVMAtomicRMWBinOpAdd:
        return IR_SUM_ADD;
    case LLVMAtomicRMWBinOpFAdd:
        return IR_SUM_FADD;
    case LLVMAtomicRMWBinOpMax:
        return IR_SUM_SMAX;
    case LLVMAtomicRMWBinOpMin:
        return IR_SUM_SMIN;
    case LLVMAtomicRMWBinOpUMax:
        return IR_SUM_UMAX;
    case LLVMAtomicRMWBinOpUMin:
        return IR_SUM_UMIN;
    default:
        return IR_SUM_NONE;
    }
}

static bool is_in_loop(const ir_atomics *a, uint32_t block) {
    return ir_loop_of(&a->flow, block) != IR_NONE;
}

uint32_t ir_atomics_meet_at(const ir_atomics *a, uint32_t block) {
    while (block != IR_NONE && (a->vary.region_of[block] != IR_NONE || is_in_loop(a, block)))
        block = ir_flow_joins_at(&a->flow, block);
    return block;
}

/* Whether an access goes to memory of the block or the thread, or to constants: to none that an
 * argument points to. */
static bool is_near(const ir_atomics *a, LLVMValueRef access) {
    enum { CONST_SPACE = 4, LOCAL_SPACE = 5 };
    LLVMValueRef pointer = ir_pointer_of(access), base = NULL;
    if (!pointer || LLVMIsACallInst(access)) /* a copy has a second pointer */
        return false;
    (void)ir_affine_of_address(a->s->base->module, pointer, &base);
    if (!base || !LLVMIsAGlobalVariable(base))
        return base && LLVMIsAAllocaInst(base);
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(base));
    return space == IR_SHARED_SPACE || space == CONST_SPACE || space == LOCAL_SPACE ||
           LLVMIsGlobalConstant(base);
}

static bool is_apart(const ir_atomics *a, LLVMValueRef atomic, LLVMValueRef access) {
    if (LLVMIsACallInst(access)) /* which may read elsewhere as well */
        return false;
    return is_near(a, access) || ir_affine_apart(a->s->base->module, atomic, access);
}

static bool is_unused_atomic(LLVMValueRef insn) {
    return LLVMIsAAtomicRMWInst(insn) && !LLVMGetFirstUse(insn) && !LLVMGetVolatile(insn);
}

static bool is_plain_access(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return deed == IR_DEED_LOAD || deed == IR_DEED_STORE;
}

/* Whether `other`, which may run between an atomic and its meeting, lets the atomic pass. */
static bool lets_pass(const ir_atomics *a, LLVMValueRef atomic, LLVMValueRef other) {
    ir_deed deed = ir_deed_of(other);
    if (deed == IR_DEED_PURE || deed == IR_DEED_MARKER)
        return true;
    if (is_unused_atomic(other)) /* sums of one kind may change places */
        return LLVMGetAtomicRMWBinOp(other) == LLVMGetAtomicRMWBinOp(atomic) ||
               is_apart(a, atomic, other);
    /* others may wait for what the atomic adds */
    return is_plain_access(other) && is_apart(a, atomic, other);
}

/* Whether a fence may run before an atomic, which then tells others that something is written. */
static bool is_behind_fence(const ir_atomics *a, uint32_t atomic) {
    for (uint32_t i = 0; i < a->flow.insn_count; i++) {
        LLVMValueRef insn = a->flow.insns[i];
        const char *name = ir_call_name(insn);
        bool may_fence = ir_deed_of(insn) == IR_DEED_UNKNOWN && ir_call_memory(insn) != 0;
        bool is_fence = LLVMIsAFenceInst(insn) || may_fence ||
                        strncmp(name, "llvm.nvvm.membar.", 17) == 0 ||
                        strncmp(name, "llvm.nvvm.fence", 15) == 0;
        if (is_fence && ir_flow_leads(&a->flow, i, atomic))
            return true;
    }
    return false;
}

/* Whether an access somewhere in the kernel may wait for what an atomic writes, or takes it: a
 * volatile or atomic load, an exchange, an atomic whose value is used. */
static bool is_awaited(const ir_atomics *a, LLVMValueRef atomic) {
    for (uint32_t i = 0; i < a->flow.insn_count; i++) {
        LLVMValueRef insn = a->flow.insns[i];
        if (ir_deed_of(insn) == IR_DEED_COUNTED && !is_unused_atomic(insn) &&
            !is_apart(a, atomic, insn))
            return true;
    }
    return false;
}

ev_status ir_atomics_check(const ir_atomics *a, uint32_t atomic, ev_error *err) {
    LLVMValueRef insn = a->flow.insns[atomic];
    if (ir_atomics_kind(insn) == IR_SUM_NONE ||
        !ir_sum_is_word(LLVMTypeOf(LLVMGetOperand(insn, 1))) || LLVMGetFirstUse(insn) ||
        LLVMGetVolatile(insn))
        return ev_fail(err, EV_BAD,
                       "an atomic is no sum, greatest or least value of 32 bits, or its value is "
                       "used");
    EV_TRY(ir_check_waits(&a->flow, err));
    EV_TRY(ir_check_stays(&a->flow, NULL, err));
    EV_TRY(ir_check_near(&a->flow, err));
    if (is_behind_fence(a, atomic))
        return ev_fail(err, EV_BAD, "a fence before an atomic orders what the thread has written");
    if (is_awaited(a, insn))
        return ev_fail(err, EV_BAD, "the kernel may wait for what an atomic writes");
    return EV_OK;
}

ev_status ir_atomics_check_wait(const ir_atomics *a, uint32_t atomic, uint32_t at, ev_error *err) {
    const ir_flow *flow = &a->flow;
    LLVMValueRef insn = flow->insns[atomic];
    uint32_t end = flow->first[at + 1] - 1;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        bool behind = i != atomic && ir_flow_leads(flow, atomic, i);
        bool between = behind && (i == end || ir_flow_leads(flow, i, end));
        bool meets_it = behind && is_plain_access(flow->insns[i]);
        bool may_meet = behind && ir_deed_of(flow->insns[i]) == IR_DEED_UNKNOWN &&
                        ir_call_memory(flow->insns[i]) != 0;
        if (may_meet || (between && !lets_pass(a, insn, flow->insns[i])) ||
            (meets_it && !is_apart(a, insn, flow->insns[i])))
            return ev_fail(err, EV_BAD,
                           "behind an atomic the kernel accesses what the atomic may write, or "
                           "waits before the threads meet");
    }
    return EV_OK;
}

/* Whether a load reads from an argument that the kernel writes: another thread of the block may
 * have read something else. */
static bool reads_what_is_written(const ir_flow *flow, LLVMValueRef insn) {
    LLVMValueRef base = NULL;
    return LLVMIsALoadInst(insn) && !ir_reads_only(flow, insn, &base) && LLVMIsAArgument(base);
}

ev_status ir_atomics_open(ir_structure *s, ir_atomics *out, ev_error *err) {
    const uint32_t *block = s->base->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads == 0 || threads > IR_MOST_THREADS)
        return ev_fail(err, EV_BAD, "the number of threads of a block is not known");
    out->s = out->share.s = s;
    out->threads = (uint32_t)threads;
    EV_TRY(ir_flow_make(s->function, s->arena, &out->flow, err));
    bool *is_seed = EV_NEW_ARRAY(s->arena, bool, out->flow.insn_count + 1);
    if (!is_seed)
        return ev_fail_memory(err, out->flow.insn_count);
    for (uint32_t i = 0; i < out->flow.insn_count; i++)
        is_seed[i] = ir_differs_in_block(out->flow.insns[i]) ||
                     reads_what_is_written(&out->flow, out->flow.insns[i]);
    return ir_vary_make(&out->flow, is_seed, true, &out->vary, err);
}

void ir_atomics_number_threads(ir_atomics *a) {
    LLVMBuilderRef b = a->share.builder;
    const uint32_t *block = a->s->base->block;
    a->thread = ir_structure_read(a->s, b, "tid", 0);
    for (uint32_t axis = 1, before = block[0]; axis < 3; before *= block[axis++]) {
        LLVMValueRef at = ir_structure_read(a->s, b, "tid", axis);
        at = LLVMBuildMul(b, at, ir_share_number(&a->share, before), "");
        a->thread = LLVMBuildAdd(b, a->thread, at, "");
    }
}
