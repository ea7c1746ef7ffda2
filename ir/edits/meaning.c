/* Meaning: whether an edit at its place preserves the meaning of the program, up to rounding, or is
 * bold. ir/edits.def says it for most kinds; this file decides for the rest.
 *
 * A preserving edit is one for which the module itself proves that no input shows a difference. A
 * load may move, or take the read-only path, if no write of the kernel can reach its memory: writes
 * go to shared or local memory, or to other arguments that the source declares as not overlapping
 * (__restrict__, LLVM's noalias). Everything else counts as bold: a proof that is missing costs a
 * gain, a wrong one costs a wrong winner. */
#include "ir/internal.h"

#include <string.h>

enum { SPACE_GENERIC = 0, SPACE_GLOBAL = 1 }; /* NVPTX address spaces */

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

/* The argument, variable or instruction that an address is computed from. */
static LLVMValueRef origin_of(LLVMValueRef address) {
    for (;;) {
        bool steps =
            LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address) ||
            (LLVMIsAConstantExpr(address) && (LLVMGetConstOpcode(address) == LLVMGetElementPtr ||
                                              LLVMGetConstOpcode(address) == LLVMAddrSpaceCast));
        if (!steps)
            return address;
        address = LLVMGetOperand(address, 0);
    }
}

/* Whether a write to `to` can reach the memory of the argument `argument`: not, if the source
 * declares of one of them that nothing else points there (__restrict__). */
static bool may_reach(LLVMValueRef to, LLVMValueRef argument) {
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(to));
    LLVMValueRef origin = origin_of(to);
    if (space > SPACE_GLOBAL || LLVMIsAAllocaInst(origin))
        return false;
    if (LLVMIsAGlobalVariable(origin))
        return LLVMGetPointerAddressSpace(LLVMTypeOf(origin)) <= SPACE_GLOBAL;
    if (!LLVMIsAArgument(origin) || origin == argument)
        return true;
    return !ir_param_has(argument, "noalias") && !ir_param_has(origin, "noalias");
}

/* Whether LLVM knows that a call writes no memory. */
static bool call_is_silent(LLVMValueRef insn) {
    return ir_insn_is_pure(insn) || (ir_call_memory(insn) & IR_MEMORY_WRITES) == 0;
}

bool ir_may_write(LLVMValueRef insn) {
    return LLVMIsAStoreInst(insn) || LLVMIsAAtomicRMWInst(insn) || LLVMIsAAtomicCmpXchgInst(insn) ||
           LLVMIsAFenceInst(insn) || (LLVMIsACallInst(insn) && !call_is_silent(insn));
}

static bool call_is_barrier(LLVMValueRef insn) {
    const char *name = ir_call_name(insn);
    return strncmp(name, "llvm.nvvm.barrier", 17) == 0 ||
           strncmp(name, "llvm.nvvm.bar.", 14) == 0 || strncmp(name, "llvm.nvvm.membar", 16) == 0 ||
           strncmp(name, "llvm.nvvm.shfl", 14) == 0 || strncmp(name, "llvm.nvvm.vote", 14) == 0;
}

/* Whether one instruction of the kernel can write to the memory of `argument`. */
static bool writes_to(LLVMValueRef insn, LLVMValueRef argument) {
    if (LLVMIsAStoreInst(insn))
        return may_reach(LLVMGetOperand(insn, 1), argument);
    if (LLVMIsAAtomicRMWInst(insn) || LLVMIsAAtomicCmpXchgInst(insn))
        return may_reach(LLVMGetOperand(insn, 0), argument);
    return LLVMIsACallInst(insn) && !call_is_silent(insn) && !call_is_barrier(insn);
}

bool ir_is_never_written(const ir_work *w, LLVMValueRef address) {
    LLVMValueRef origin = origin_of(address);
    if (!LLVMIsAArgument(origin) ||
        LLVMGetParamParent(origin) != LLVMGetNamedFunction(w->module, w->base->entry))
        return false;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (writes_to(value_at(w, w->sequence[place]), origin))
            return false;
    }
    return true;
}

/* cache-policy: back to the plain path, or the read-only path for memory that nothing writes. */
static bool cache_is_bold(const ir_work *w, const ir_edit *edit) {
    uint32_t at = ir_work_find(w, &edit->at);
    LLVMValueRef insn = at == IR_NONE ? NULL : value_at(w, at);
    if (!insn || !LLVMIsALoadInst(insn) || LLVMGetVolatile(insn))
        return true;
    if (ir_load_is_invariant(insn))
        return false;
    return !ir_is_never_written(w, LLVMGetOperand(insn, 0));
}

/* hoist and sink: a pure instruction may run anywhere, since its result is used where it was. A
 * load of memory that nothing writes may run later, in the block of its uses, but not earlier,
 * where its address may be outside its buffer. */
static bool move_is_bold(const ir_work *w, const ir_edit *edit, bool loads_may) {
    uint32_t at = ir_work_find(w, &edit->at);
    if (at == IR_NONE)
        return true;
    LLVMValueRef insn = value_at(w, at);
    if (ir_insn_is_pure(insn))
        return false;
    return !loads_may || !LLVMIsALoadInst(insn) || LLVMGetVolatile(insn) ||
           LLVMGetOrdering(insn) != LLVMAtomicOrderingNotAtomic ||
           !ir_is_never_written(w, LLVMGetOperand(insn, 0));
}

bool ir_is_bold_at(const ir_work *w, const ir_edit *edit) {
    if (!ir_edit_may_be_bold(edit->kind))
        return false;
    switch (edit->kind) {
    case IR_EDIT_CACHE:
        return cache_is_bold(w, edit);
    case IR_EDIT_WIDEN:
        return ir_widen_is_bold(w, edit);
    case IR_EDIT_ALIGN:
        return ir_align_is_bold(w, edit);
    case IR_EDIT_FAST_MATH:
    case IR_EDIT_CHAIN_MATH:
        return ir_math_is_bold(edit);
    case IR_EDIT_BRANCH_TO_SELECT:
        return ir_branch_is_bold(w, edit);
    case IR_EDIT_SELECT_TO_BRANCH:
        return ir_arm_is_bold(w, edit);
    case IR_EDIT_HOIST:
        return move_is_bold(w, edit, false);
    case IR_EDIT_SINK:
        return move_is_bold(w, edit, true);
    default:
        return true;
    }
}
