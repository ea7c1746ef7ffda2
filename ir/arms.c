/* Arms: a build of a base that notes what each of its instructions ever chose.
 *
 * A conditional branch, a select and a compare have a true and a false arm, and a minimum or
 * maximum has a lesser and a greater first operand. The build stores a byte for each arm that a
 * thread takes, and one for each block that runs, into a buffer whose address the host writes into
 * a variable of the module. Instructions are named by their base numbers, as edits name them. Gate
 * 6 runs the build at all cases and then asks which edits touch what no case showed
 * (arms_missed.c). */
#include "ir/arms_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE_GLOBAL = 1, SPACE_CONSTANT = 4 }; /* NVPTX address spaces */

/* ---- guards ---- */

static const struct {
    const char *stem;
    ir_order order;
} orders[] = {
    {"llvm.smin.", IR_ORDER_SIGNED},     {"llvm.smax.", IR_ORDER_SIGNED},
    {"llvm.umin.", IR_ORDER_UNSIGNED},   {"llvm.umax.", IR_ORDER_UNSIGNED},
    {"llvm.minnum.", IR_ORDER_FLOAT},    {"llvm.maxnum.", IR_ORDER_FLOAT},
    {"llvm.minimum.", IR_ORDER_FLOAT},   {"llvm.maximum.", IR_ORDER_FLOAT},
    {"llvm.nvvm.fmin.", IR_ORDER_FLOAT}, {"llvm.nvvm.fmax.", IR_ORDER_FLOAT},
};

/* The row of a minimum or maximum; SIZE_MAX: the instruction is none. */
static size_t order_row(LLVMValueRef insn) {
    const char *name = ir_call_name(insn);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strncmp(name, orders[i].stem, strlen(orders[i].stem)) == 0)
            return i;
    }
    return SIZE_MAX;
}

static bool is_scalar(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMIntegerTypeKind || kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind ||
           kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
}

ir_order ir_order_of(LLVMValueRef insn) {
    size_t row = order_row(insn);
    assert(row != SIZE_MAX);
    return orders[row].order;
}

ir_guard ir_guard_of(LLVMValueRef insn) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMBr:
        return LLVMIsConditional(insn) ? IR_GUARD_BRANCH : IR_GUARD_NONE;
    case LLVMSelect:
        return is_scalar(LLVMTypeOf(LLVMGetOperand(insn, 0))) ? IR_GUARD_SELECT : IR_GUARD_NONE;
    case LLVMICmp:
    case LLVMFCmp:
        return is_scalar(LLVMTypeOf(insn)) ? IR_GUARD_COMPARE : IR_GUARD_NONE;
    case LLVMCall:
        return is_scalar(LLVMTypeOf(insn)) && order_row(insn) != SIZE_MAX ? IR_GUARD_ORDER
                                                                          : IR_GUARD_NONE;
    default:
        return IR_GUARD_NONE;
    }
}

/* ---- the build ---- */

typedef struct noting {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef variable; /* holds the buffer's address */
    LLVMValueRef buffer;   /* the address, in the function at hand */
    LLVMTypeRef byte, word;
} noting;

/* Stores 1 to the flag whose index is a value. */
static void store_flag(const noting *n, LLVMValueRef index) {
    LLVMValueRef at = LLVMBuildGEP2(n->builder, n->byte, n->buffer, &index, 1, "");
    LLVMBuildStore(n->builder, LLVMConstInt(n->byte, 1, 0), at);
}

static LLVMValueRef flag_of(const noting *n, uint32_t number, unsigned arm) {
    return LLVMConstInt(n->word, (uint64_t)number * IR_ARM_COUNT + arm, 0);
}

static void note_condition(const noting *n, LLVMValueRef condition, uint32_t number) {
    store_flag(n, LLVMBuildSelect(n->builder, condition, flag_of(n, number, IR_ARM_FIRST),
                                  flag_of(n, number, IR_ARM_SECOND), ""));
}

/* Equal operands, and NaN, take no arm: their store goes to the unused flag. */
static void note_order(const noting *n, LLVMValueRef insn, uint32_t number) {
    LLVMValueRef a = LLVMGetOperand(insn, 0), b = LLVMGetOperand(insn, 1), less, more;
    ir_order order = ir_order_of(insn);
    if (order == IR_ORDER_FLOAT) {
        less = LLVMBuildFCmp(n->builder, LLVMRealOLT, a, b, "");
        more = LLVMBuildFCmp(n->builder, LLVMRealOGT, a, b, "");
    } else {
        bool is_signed = order == IR_ORDER_SIGNED;
        less = LLVMBuildICmp(n->builder, is_signed ? LLVMIntSLT : LLVMIntULT, a, b, "");
        more = LLVMBuildICmp(n->builder, is_signed ? LLVMIntSGT : LLVMIntUGT, a, b, "");
    }
    LLVMValueRef other = LLVMBuildSelect(n->builder, more, flag_of(n, number, IR_ARM_SECOND),
                                         flag_of(n, number, IR_ARM_COUNT - 1), "");
    store_flag(n, LLVMBuildSelect(n->builder, less, flag_of(n, number, IR_ARM_FIRST), other, ""));
}

static void note_insn(const noting *n, LLVMValueRef insn, uint32_t number) {
    ir_guard guard = ir_guard_of(insn);
    bool is_last = LLVMIsATerminatorInst(insn) != NULL;
    LLVMPositionBuilderBefore(n->builder,
                              guard == IR_GUARD_COMPARE ? LLVMGetNextInstruction(insn) : insn);
    if (is_last)
        store_flag(n, flag_of(n, number, IR_ARM_RAN));
    if (guard == IR_GUARD_BRANCH)
        note_condition(n, LLVMGetCondition(insn), number);
    else if (guard == IR_GUARD_SELECT)
        note_condition(n, LLVMGetOperand(insn, 0), number);
    else if (guard == IR_GUARD_COMPARE)
        note_condition(n, insn, number);
    else if (guard == IR_GUARD_ORDER)
        note_order(n, insn, number);
}

static void begin_function(noting *n, LLVMValueRef function) {
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    LLVMPositionBuilderBefore(n->builder, LLVMGetFirstInstruction(entry));
    n->buffer = LLVMBuildLoad2(n->builder, LLVMPointerTypeInContext(n->context, SPACE_GLOBAL),
                               n->variable, "");
}

/* The instructions in the order of the base's numbers. NULL: out of memory. */
static LLVMValueRef *list_insns(LLVMModuleRef module, uint32_t count) {
    LLVMValueRef *insns = calloc((size_t)count + 1, sizeof(*insns));
    uint32_t number = 0;
    if (!insns)
        return NULL;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                insns[number++] = i;
    assert(number == count);
    return insns;
}

static void add_variable(noting *n) {
    LLVMTypeRef address = LLVMPointerTypeInContext(n->context, SPACE_GLOBAL);
    n->variable = LLVMAddGlobalInAddressSpace(n->module, address, IR_ARMS_VARIABLE, SPACE_CONSTANT);
    LLVMSetInitializer(n->variable, LLVMConstNull(address));
    LLVMSetExternallyInitialized(n->variable, true);
}

static ev_status note_module(const ir_base *base, LLVMModuleRef module, ev_error *err) {
    LLVMContextRef context = base->context;
    noting n = {.context = context,
                .module = module,
                .builder = LLVMCreateBuilderInContext(context),
                .byte = LLVMInt8TypeInContext(context),
                .word = LLVMInt64TypeInContext(context)};
    LLVMValueRef *insns = list_insns(module, base->count), function = NULL;
    add_variable(&n);
    for (uint32_t i = 0; insns && i < base->count; i++) {
        LLVMValueRef own = LLVMGetBasicBlockParent(LLVMGetInstructionParent(insns[i]));
        if (own != function)
            begin_function(&n, own);
        function = own;
        note_insn(&n, insns[i], i);
    }
    LLVMDisposeBuilder(n.builder);
    ev_status status = insns ? EV_OK : ev_fail_memory(err, base->count * sizeof(*insns));
    free(insns);
    return status;
}

size_t ir_base_arms_bytes(const ir_base *base) {
    return (size_t)base->count * IR_ARM_COUNT;
}

ev_status ir_base_arms_ptx(const ir_base *base, ev_str *ptx, ev_error *err) {
    ir_genome *light = ir_genome_new("");
    if (!light)
        return ev_fail_memory(err, 1);
    ir_genome_set_optimised(light, base->optimised);
    if (!ir_genome_make_light(light)) {
        ir_genome_free(light);
        return ev_fail_memory(err, 1);
    }
    LLVMModuleRef module = LLVMCloneModule(base->module);
    ev_status status = note_module(base, module, err);
    if (status == EV_OK)
        status = ir_emit_aside(base, light, module, ptx, err);
    LLVMDisposeModule(module);
    ir_genome_free(light);
    return status;
}
