/* Calls: writes calls of LLVM's intrinsics. */
#include "ir/structure/structure_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

LLVMValueRef ir_structure_call(const ir_structure *s, LLVMBuilderRef builder, const char *intrinsic,
                               LLVMValueRef *arguments, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    assert(id != 0);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(s->base->module, id, NULL, 0);
    return LLVMBuildCall2(builder, LLVMGlobalGetValueType(callee), callee, arguments, count, "");
}

LLVMValueRef ir_structure_read(const ir_structure *s, LLVMBuilderRef builder, const char *which,
                               uint32_t axis) {
    char name[64];
    assert(axis < IR_AXES);
    (void)snprintf(name, sizeof name, "llvm.nvvm.read.ptx.sreg.%s.%c", which, "xyz"[axis]);
    return ir_structure_call(s, builder, name, NULL, 0);
}
