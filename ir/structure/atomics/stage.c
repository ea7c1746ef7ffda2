/* Stage atomics: the threads of a block add to a copy of an array in shared memory, and add the
 * copy to the array when all of them meet.
 *
 *     if (i < n)                              for each of the copy's elements k, shared:
 *         atomicAdd(&y[x[i]], 1);                 copy[k] = nothing
 *                                   becomes   all threads meet
 *                                             if (i < n)
 *                                                 if (x[i] < elements of the copy)
 *                                                     atomicAdd(&copy[x[i]], 1)
 *                                                 else
 *                                                     atomicAdd(&y[x[i]], 1)
 *                                             all threads meet
 *                                             for each of the copy's elements k, shared:
 *                                                 if (copy[k] is something)
 *                                                     atomicAdd(&y[k], copy[k])
 *
 * The copy has the first elements of the array, as many as the option says, rounded up to a
 * multiple of the block's threads; others are added to in the array itself, so nothing is guessed
 * of the places or of the array's size. An element of the copy that nobody adds to is left out, as
 * the array may be shorter. The threads meet as in join.c. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/atomics/atomics_internal.h"

enum { MOST_ROUNDS = 16, MOST_ATOMICS = 64 };

typedef struct staging {
    ir_atomics a;
    LLVMValueRef argument; /* the array */
    LLVMValueRef atomics[MOST_ATOMICS];
    uint32_t numbers[MOST_ATOMICS]; /* of these instructions */
    uint32_t count;
    LLVMTypeRef type;   /* of an element */
    ir_sum_kind kind;   /* of all the atomics */
    uint32_t at;        /* the block of code where the threads meet */
    uint32_t rounds;    /* elements of the copy for each thread */
    LLVMValueRef array; /* the copy */
} staging;

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool goes_to(const staging *t, LLVMValueRef insn) {
    LLVMValueRef base = NULL;
    if (!LLVMIsAAtomicRMWInst(insn))
        return false;
    (void)ir_affine_of_address(t->a.s->base->module, LLVMGetOperand(insn, 0), &base);
    return base == t->argument;
}

/* Adds an atomic to those that are staged. */
static ev_status add_atomic(staging *t, uint32_t number, ev_error *err) {
    LLVMValueRef atomic = t->a.flow.insns[number];
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(atomic, 1));
    ir_sum_kind kind = ir_atomics_kind(atomic);
    EV_TRY(ir_atomics_check(&t->a, number, err));
    if (t->count == MOST_ATOMICS)
        return ev_fail(err, EV_BAD, "the array has more than %d atomics", MOST_ATOMICS);
    if (t->count > 0 && (type != t->type || kind != t->kind))
        return ev_fail(err, EV_BAD, "the array has atomics of several kinds");
    if (t->count > 0 && LLVMGetOrdering(atomic) != LLVMGetOrdering(t->atomics[0]))
        return ev_fail(err, EV_BAD, "the atomics of the array order other accesses differently");
    t->type = type;
    t->kind = kind;
    t->numbers[t->count] = number;
    t->atomics[t->count++] = atomic;
    return EV_OK;
}

/* Whether all ways from an atomic to the kernel's end go through a block of code. */
static bool leads_to(const staging *t, uint32_t block, uint32_t atomic) {
    uint32_t home = t->a.flow.home[atomic]; /* node b + 1 of the postdominators is block b */
    return ir_dominance_over(&t->a.flow.under, block + 1, home + 1);
}

/* Finds the first block of code that all threads come to behind all of the atomics. */
static ev_status find_meeting(staging *t, ev_error *err) {
    uint32_t at = t->a.flow.home[t->numbers[0]];
    for (uint32_t k = 0; at != IR_NONE && k < t->count;) {
        at = ir_atomics_meet_at(&t->a, at);
        if (at == IR_NONE || leads_to(t, at, t->numbers[k]))
            k++;
        else
            at = ir_flow_joins_at(&t->a.flow, at);
    }
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "the threads of a block do not meet behind the atomics");
    t->at = at;
    return EV_OK;
}

/* Lists the atomics that go to the argument. */
static ev_status find_atomics(staging *t, ev_error *err) {
    for (uint32_t i = 0; i < t->a.flow.insn_count; i++) {
        if (goes_to(t, t->a.flow.insns[i]))
            EV_TRY(add_atomic(t, i, err));
    }
    if (t->count == 0)
        return ev_fail(err, EV_BAD, "no atomic goes to the argument");
    EV_TRY(find_meeting(t, err));
    for (uint32_t k = 0; k < t->count; k++)
        EV_TRY(ir_atomics_check_wait(&t->a, t->numbers[k], t->at, err));
    return EV_OK;
}

static ev_status check_edit(staging *t, const ir_edit *edit, ev_error *err) {
    uint32_t threads = t->a.threads;
    bool has_argument = edit->anchor.kind == IR_ANCHOR_ARGUMENT &&
                        edit->anchor.number < LLVMCountParams(t->a.s->function);
    if (!has_argument)
        return ev_fail(err, EV_BAD, "\"anchor\" is no argument of the kernel");
    t->argument = LLVMGetParam(t->a.s->function, edit->anchor.number);
    if (!edit->has_option || edit->option < 1 || edit->option > (int64_t)MOST_ROUNDS * threads)
        return ev_fail(err, EV_BAD, "\"option\" is not from 1 to %u, %d elements for each thread",
                       MOST_ROUNDS * threads, MOST_ROUNDS);
    t->rounds = ((uint32_t)edit->option + threads - 1) / threads;
    return EV_OK;
}

/* ---- the copy ---------------------------------------------------------------------------------
 */

/* The number of the thread's element in a round, so that neighbours have elements side by side. */
static LLVMValueRef element_of(const staging *t, uint32_t round) {
    LLVMValueRef before = ir_share_number(&t->a.share, (uint64_t)round * t->a.threads);
    return LLVMBuildAdd(t->a.share.builder, t->a.thread, before, "");
}

static void meet(const staging *t) {
    (void)ir_share_call(&t->a.share, "llvm.nvvm.barrier0", NULL, 0);
}

/* Fills the copy at the kernel's beginning. */
static void write_beginning(staging *t) {
    LLVMBuilderRef b = t->a.share.builder;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(t->a.flow.blocks[0]));
    LLVMSetCurrentDebugLocation2(b, NULL);
    ir_atomics_number_threads(&t->a);
    t->array = ir_share_new_array(&t->a.share, t->type, (uint64_t)t->rounds * t->a.threads);
    for (uint32_t r = 0; r < t->rounds; r++)
        LLVMBuildStore(b, ir_sum_neutral(t->kind, t->type),
                       ir_share_place(&t->a.share, t->array, element_of(t, r)));
    meet(t);
}

/* Where an atomic goes: bytes behind the array's beginning, an i64. */
static LLVMValueRef offset_of(const staging *t, LLVMValueRef pointer) {
    LLVMBuilderRef b = t->a.share.builder;
    LLVMTypeRef word = LLVMInt64TypeInContext(t->a.s->base->context);
    LLVMValueRef at = LLVMBuildPtrToInt(b, pointer, word, "");
    LLVMValueRef from = LLVMBuildPtrToInt(b, t->argument, word, "");
    return LLVMBuildSub(b, at, from, "");
}

/* The place in the copy that is so many bytes behind its beginning. */
static LLVMValueRef place_behind(const staging *t, LLVMValueRef offset) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(t->a.s->base->context);
    return LLVMBuildGEP2(t->a.share.builder, byte, t->array, &offset, 1, "");
}

/* Lets an atomic go to the copy, or to the array where the copy has no such element. */
static void divert(const staging *t, LLVMValueRef atomic) {
    LLVMBuilderRef b = t->a.share.builder;
    LLVMContextRef context = t->a.s->base->context;
    uint64_t bytes = (uint64_t)t->rounds * t->a.threads * sizeof(uint32_t);
    LLVMValueRef next = LLVMGetNextInstruction(atomic), near = LLVMInstructionClone(atomic);
    LLVMBasicBlockRef head = ir_share_split_before(&t->a.share, next);
    LLVMBasicBlockRef rest = LLVMGetInstructionParent(next);
    LLVMBasicBlockRef near_block = LLVMInsertBasicBlockInContext(context, rest, "");
    LLVMBasicBlockRef far_block = LLVMInsertBasicBlockInContext(context, rest, "");
    ir_share_move(&t->a.share, atomic, far_block);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef offset = offset_of(t, LLVMGetOperand(atomic, 0));
    LLVMValueRef limit = LLVMConstInt(LLVMTypeOf(offset), bytes, false);
    LLVMValueRef is_near = LLVMBuildICmp(b, LLVMIntULT, offset, limit, "");
    LLVMBuildCondBr(b, is_near, near_block, far_block);
    LLVMPositionBuilderAtEnd(b, near_block);
    LLVMSetOperand(near, 0, place_behind(t, offset));
    LLVMInsertIntoBuilder(b, near);
    LLVMBuildBr(b, rest);
    LLVMPositionBuilderAtEnd(b, far_block);
    LLVMBuildBr(b, rest);
}

/* ---- where the threads meet -------------------------------------------------------------------
 */

static LLVMValueRef is_something(const staging *t, LLVMValueRef value) {
    LLVMValueRef nothing = ir_sum_neutral(t->kind, t->type);
    if (t->kind == IR_SUM_FADD) /* a zero of either sign adds nothing */
        return LLVMBuildFCmp(t->a.share.builder, LLVMRealUNE, value, nothing, "");
    return LLVMBuildICmp(t->a.share.builder, LLVMIntNE, value, nothing, "");
}

/* Adds the copy to the array, after all of its elements are read. */
static void write_end(const staging *t) {
    LLVMBuilderRef b = t->a.share.builder;
    LLVMValueRef end = ir_flow_last(&t->a.flow, t->at), values[MOST_ROUNDS];
    LLVMPositionBuilderBefore(b, end);
    LLVMSetCurrentDebugLocation2(b, NULL);
    meet(t);
    for (uint32_t r = 0; r < t->rounds; r++)
        values[r] =
            LLVMBuildLoad2(b, t->type, ir_share_place(&t->a.share, t->array, element_of(t, r)), "");
    for (uint32_t r = 0; r < t->rounds; r++) {
        LLVMValueRef element = element_of(t, r), atomic = LLVMInstructionClone(t->atomics[0]);
        LLVMSetOperand(atomic, 0, LLVMBuildGEP2(b, t->type, t->argument, &element, 1, ""));
        LLVMSetOperand(atomic, 1, values[r]);
        LLVMValueRef condition = is_something(t, values[r]);
        LLVMInsertIntoBuilder(b, atomic);
        ir_share_guard_run(&t->a.share, atomic, condition, NULL);
        LLVMPositionBuilderBefore(b, end);
    }
    if (!LLVMIsAReturnInst(end)) /* what a thread does next may tell others that all is added */
        meet(t);
}

static ev_status stage(staging *t, const ir_edit *edit, ev_error *err) {
    EV_TRY(check_edit(t, edit, err));
    EV_TRY(find_atomics(t, err));
    write_beginning(t);
    for (uint32_t k = 0; k < t->count; k++)
        divert(t, t->atomics[k]);
    write_end(t);
    return EV_OK;
}

ev_status ir_structure_stage_atomics(ir_structure *s, const ir_edit *edit, ev_error *err) {
    staging t = {.count = 0};
    t.a.share.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = ir_atomics_open(s, &t.a, err);
    if (status == EV_OK)
        status = stage(&t, edit, err);
    LLVMDisposeBuilder(t.a.share.builder);
    return status;
}
