/* Annotations: the bounds of launches that a kernel has as nvvm.annotations, {kernel, name, number,
 * name, number, ...}. */
#include "ir/internal.h"

#include <string.h>

enum { OPERANDS = 64, NODES = 256 };

static LLVMMetadataRef number(LLVMContextRef context, uint32_t value) {
    return LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), value, false));
}

static bool names(LLVMValueRef operand, const char *name) {
    unsigned length = 0;
    const char *text = operand && LLVMIsAMDString(operand) ? LLVMGetMDString(operand, &length) : "";
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* The node of the kernel's annotation, and the place of its number; NULL: none. */
static LLVMValueRef find(LLVMModuleRef module, const char *entry, const char *name,
                         unsigned *place) {
    LLVMValueRef kernel = LLVMGetNamedFunction(module, entry);
    unsigned count = LLVMGetNamedMetadataNumOperands(module, "nvvm.annotations");
    LLVMValueRef nodes[NODES], operands[OPERANDS];
    if (count > NODES)
        return NULL;
    LLVMGetNamedMetadataOperands(module, "nvvm.annotations", nodes);
    for (unsigned i = 0; i < count; i++) {
        unsigned size = LLVMGetMDNodeNumOperands(nodes[i]);
        if (size > OPERANDS)
            continue;
        LLVMGetMDNodeOperands(nodes[i], operands);
        for (unsigned k = 1; k + 1 < size && operands[0] == kernel; k += 2) {
            if (names(operands[k], name)) {
                *place = k + 1;
                return nodes[i];
            }
        }
    }
    return NULL;
}

uint32_t ir_annotation(LLVMModuleRef module, const char *entry, const char *name) {
    unsigned place = 0;
    LLVMValueRef node = find(module, entry, name, &place), operands[OPERANDS];
    if (!node)
        return 0;
    LLVMGetMDNodeOperands(node, operands);
    return LLVMIsAConstantInt(operands[place]) ? (uint32_t)LLVMConstIntGetZExtValue(operands[place])
                                               : 0;
}

void ir_annotate(LLVMModuleRef module, const char *entry, const char *name, uint32_t value) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned place = 0;
    LLVMValueRef node = find(module, entry, name, &place);
    if (node) {
        LLVMReplaceMDNodeOperandWith(node, place, number(context, value));
        return;
    }
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(LLVMGetNamedFunction(module, entry)),
                               LLVMMDStringInContext2(context, name, strlen(name)),
                               number(context, value)};
    LLVMMetadataRef made = LLVMMDNodeInContext2(context, parts, 3);
    LLVMAddNamedMetadataOperand(module, "nvvm.annotations", LLVMMetadataAsValue(context, made));
}
