/* Refuse: finds IR that is known to make LLVM 19's NVPTX back end fail or abort, before it does.
 * Each row was found by running llc 19.1.7 on a kernel with one such instruction. */
#include "ir/internal.h"

#include <string.h>

/* Intrinsics that NVPTX cannot select and has no library call for; names without the type suffix.
 */
static const char *const lost_calls[] = {
    "llvm.acos",  "llvm.asin", "llvm.atan",      "llvm.canonicalize", "llvm.cosh", "llvm.exp",
    "llvm.exp10", "llvm.exp2", "llvm.log",       "llvm.log10",        "llvm.log2", "llvm.pow",
    "llvm.powi",  "llvm.sinh", "llvm.stacksave", "llvm.stackrestore", "llvm.tan",  "llvm.tanh",
};

/* True for "llvm.exp" and "llvm.exp.f32", not for "llvm.expect". */
static bool is_intrinsic(const char *name, const char *stem) {
    size_t length = strlen(stem);
    return strncmp(name, stem, length) == 0 && (name[length] == '.' || name[length] == '\0');
}

static bool allows_unsafe_math(LLVMValueRef function) {
    static const char key[] = "unsafe-fp-math";
    LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, key, sizeof key - 1);
    unsigned length = 0;
    const char *value = attribute ? LLVMGetStringAttributeValue(attribute, &length) : "";
    return length == 4 && memcmp(value, "true", 4) == 0;
}

/* Barriers whose number must be a literal, which LLVM's own table does not state. */
static bool needs_literal(LLVMValueRef insn, const char *name) {
    return strcmp(name, "llvm.nvvm.bar.sync") == 0 && !LLVMIsAConstantInt(LLVMGetOperand(insn, 0));
}

static bool call_is_fatal(LLVMValueRef function, LLVMValueRef insn, const char **why) {
    const char *name = ir_call_name(insn);
    if (strncmp(name, "llvm.", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof lost_calls / sizeof lost_calls[0]; i++) {
        if (is_intrinsic(name, lost_calls[i])) {
            *why = name;
            return true;
        }
    }
    if (is_intrinsic(name, "llvm.sin") || is_intrinsic(name, "llvm.cos")) {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(insn));
        *why = "llvm.sin or llvm.cos outside a function with unsafe-fp-math, or not of float";
        return kind != LLVMFloatTypeKind || !allows_unsafe_math(function);
    }
    *why = "llvm.nvvm.bar.sync with a number that is no literal";
    return needs_literal(insn, name);
}

static bool is_fatal(LLVMValueRef function, LLVMValueRef insn, const char **why) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMFence:
        *why = "a fence instruction (llvm.nvvm.membar.* works)";
        return true;
    case LLVMIndirectBr:
        *why = "indirectbr";
        return true;
    case LLVMLoad:
        *why = "an atomic load stronger than monotonic";
        return LLVMGetOrdering(insn) > LLVMAtomicOrderingMonotonic;
    case LLVMStore:
        *why = "an atomic store stronger than monotonic";
        return LLVMGetOrdering(insn) > LLVMAtomicOrderingMonotonic;
    case LLVMCall:
        return call_is_fatal(function, insn, why);
    default:
        return false;
    }
}

ev_status ir_refuse_fatal(LLVMModuleRef module, ev_error *err) {
    const char *why = "";
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
                if (is_fatal(f, i, &why))
                    return ev_fail(err, EV_BAD,
                                   "LLVM %s cannot make PTX of %s; take an nvvm intrinsic instead",
                                   ir_llvm_version(), why);
            }
    return EV_OK;
}
