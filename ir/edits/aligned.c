/* Alignment that the module proves of an address, for the edits `align` and `widen`.
 *
 * An address is aligned as its base and as each index times the size of an element. The base is an
 * argument, of which every launch grants an alignment, or a variable, which the edits align as they
 * need. An index has as many zero bits at its end as its operations give it; wrapping does not
 * change them. A PHI is a multiple of what all its values are multiples of: a value that is
 * computed from the PHI itself counts as 0, since each supported operation keeps the zero bits of
 * its operands (induction over the turns of the loop). */
#include "ir/internal.h"

#include <string.h>

enum {
    ALL_ZERO = 64,    /* trailing zero bits of 0 */
    MOST_BITS = 4,    /* 16 bytes, the most that an edit asks for */
    DEEPEST = 16,     /* operations behind each other */
    PHIS_MOST = 8,    /* under way */
    VARIABLE_BITS = 4 /* ir_raise_alignment gives a variable what an edit needs */
};

typedef struct proof {
    const ir_work *w;
    LLVMValueRef phis[PHIS_MOST];
    unsigned phi_count;
} proof;

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static unsigned zeros_of_constant(uint64_t value) {
    return value == 0 ? ALL_ZERO : (unsigned)__builtin_ctzll(value);
}

static unsigned zeros_of(proof *p, LLVMValueRef value, unsigned depth);

static unsigned zeros_of_phi(proof *p, LLVMValueRef phi, unsigned depth) {
    unsigned zeros = ALL_ZERO;
    for (unsigned i = 0; i < p->phi_count; i++) {
        if (p->phis[i] == phi)
            return ALL_ZERO;
    }
    if (p->phi_count == PHIS_MOST)
        return 0;
    p->phis[p->phi_count++] = phi;
    for (unsigned i = 0; i < LLVMCountIncoming(phi) && zeros > 0; i++)
        zeros = least(zeros, zeros_of(p, LLVMGetIncomingValue(phi, i), depth));
    p->phi_count--;
    return zeros;
}

static unsigned zeros_of_operation(proof *p, LLVMValueRef value, unsigned depth) {
    LLVMValueRef right = LLVMGetOperand(value, 1);
    unsigned a = zeros_of(p, LLVMGetOperand(value, 0), depth);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
        return a == 0 ? 0 : least(a, zeros_of(p, right, depth));
    case LLVMAnd: {
        unsigned b = zeros_of(p, right, depth);
        return a > b ? a : b;
    }
    case LLVMMul:
        return least(ALL_ZERO, a + zeros_of(p, right, depth));
    case LLVMShl:
        if (!LLVMIsAConstantInt(right) || LLVMConstIntGetZExtValue(right) >= ALL_ZERO)
            return a;
        return least(ALL_ZERO, a + (unsigned)LLVMConstIntGetZExtValue(right));
    default:
        return 0;
    }
}

/* Zero bits at the end of an integer; ALL_ZERO: it is 0. */
static unsigned zeros_of(proof *p, LLVMValueRef value, unsigned depth) {
    if (LLVMIsAConstantInt(value))
        return zeros_of_constant((uint64_t)LLVMConstIntGetSExtValue(value));
    if (depth == 0)
        return 0;
    if (LLVMIsAPHINode(value))
        return zeros_of_phi(p, value, depth - 1);
    if (LLVMIsABinaryOperator(value))
        return zeros_of_operation(p, value, depth - 1);
    if (LLVMIsASExtInst(value) || LLVMIsAZExtInst(value) || LLVMIsATruncInst(value))
        return zeros_of(p, LLVMGetOperand(value, 0), depth - 1);
    if (LLVMIsASelectInst(value))
        return least(zeros_of(p, LLVMGetOperand(value, 1), depth - 1),
                     zeros_of(p, LLVMGetOperand(value, 2), depth - 1));
    return 0;
}

static unsigned zeros_of_argument(const ir_work *w, LLVMValueRef argument) {
    LLVMValueRef entry = LLVMGetNamedFunction(w->module, w->base->entry);
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    if (LLVMGetParamParent(argument) != entry)
        return 0;
    unsigned at = 0;
    while (LLVMGetParam(entry, at) != argument)
        at++;
    LLVMAttributeRef has = LLVMGetEnumAttributeAtIndex(entry, at + 1, kind);
    uint64_t declared = has ? LLVMGetEnumAttributeValue(has) : 1;
    uint64_t granted = at < w->base->align_count ? w->base->aligns[at] : 1;
    return zeros_of_constant(declared > granted ? declared : granted);
}

/* Of the steps of one address computation. */
static unsigned zeros_of_steps(proof *p, LLVMValueRef gep) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(p->w->module);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned zeros = ALL_ZERO;
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep) && zeros > 0; i++) {
        if (i > 1) {
            if (LLVMGetTypeKind(type) != LLVMArrayTypeKind)
                return 0;
            type = LLVMGetElementType(type);
        }
        unsigned size = zeros_of_constant(LLVMABISizeOfType(layout, type));
        zeros = least(zeros, size + zeros_of(p, LLVMGetOperand(gep, i), DEEPEST));
    }
    return zeros;
}

unsigned ir_known_alignment(const ir_work *w, LLVMValueRef address) {
    proof p = {.w = w};
    unsigned zeros = MOST_BITS;
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address)) {
        if (LLVMIsAGetElementPtrInst(address))
            zeros = least(zeros, zeros_of_steps(&p, address));
        address = LLVMGetOperand(address, 0);
    }
    if (LLVMIsAArgument(address))
        zeros = least(zeros, zeros_of_argument(w, address));
    else if (LLVMIsAGlobalVariable(address) || LLVMIsAAllocaInst(address))
        zeros = least(zeros, VARIABLE_BITS);
    else
        zeros = 0;
    return 1u << zeros;
}
