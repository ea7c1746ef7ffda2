/* Flat: see flat_internal.h. */
#include "ir/structure/flat_internal.h"

#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <stdio.h>

LLVMValueRef ir_flat_without_casts(LLVMValueRef value) {
    while (LLVMIsASExtInst(value) || LLVMIsAZExtInst(value))
        value = LLVMGetOperand(value, 0);
    return value;
}

bool ir_flat_reads(LLVMValueRef value, const char *what, uint32_t axis) {
    char name[16];
    (void)snprintf(name, sizeof name, "%s.%c", what, "xyz"[axis]);
    return ir_reads_register(ir_flat_without_casts(value), name);
}

/* How often a term has block index * threads of a block; 0: the term is another one. */
static int64_t first_threads(const ir_term *term, uint32_t axis, uint32_t size) {
    if (ir_flat_reads(term->value, "ctaid", axis))
        return size > 0 && term->factor % (int64_t)size == 0 ? term->factor / (int64_t)size : 0;
    if (!LLVMIsAInstruction(term->value) || LLVMGetInstructionOpcode(term->value) != LLVMMul)
        return 0;
    ir_affine a = ir_affine_of(LLVMGetOperand(term->value, 0));
    ir_affine b = ir_affine_of(LLVMGetOperand(term->value, 1));
    if (a.count != 1 || b.count != 1 || a.constant != 0 || b.constant != 0 ||
        a.terms[0].factor != 1 || b.terms[0].factor != 1)
        return 0;
    LLVMValueRef x = a.terms[0].value, y = b.terms[0].value;
    bool is_first = (ir_flat_reads(x, "ctaid", axis) && ir_flat_reads(y, "ntid", axis)) ||
                    (ir_flat_reads(y, "ctaid", axis) && ir_flat_reads(x, "ntid", axis));
    return is_first ? term->factor : 0;
}

int64_t ir_flat_factor(const ir_affine *form, uint32_t axis, uint32_t size) {
    int64_t thread = 0, block = 0;
    for (uint32_t i = 0; i < form->count; i++) {
        if (ir_flat_reads(form->terms[i].value, "tid", axis))
            thread = form->terms[i].factor;
        else if (block == 0)
            block = first_threads(&form->terms[i], axis, size);
    }
    return block == thread ? thread : 0;
}

bool ir_flat_is(LLVMValueRef value, uint32_t axis, uint32_t size) {
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind)
        return false;
    ir_affine form = ir_affine_of(ir_flat_without_casts(value));
    return form.count == 2 && form.constant == 0 && ir_flat_factor(&form, axis, size) == 1;
}

/* Whether threads stay only if their number is below something. */
static bool bounds(const ir_test *test, uint32_t axis, uint32_t size) {
    ir_affine form;
    LLVMIntPredicate p = LLVMIntEQ;
    if (!ir_affine_of_condition(test->condition, &form, &p))
        return false;
    int64_t factor = ir_flat_factor(&form, axis, size);
    bool below = p == LLVMIntSLT || p == LLVMIntSLE || p == LLVMIntULT || p == LLVMIntULE;
    bool above = p == LLVMIntSGT || p == LLVMIntSGE || p == LLVMIntUGT || p == LLVMIntUGE;
    return ((test->leaves_if ? above : below) && factor > 0) ||
           ((test->leaves_if ? below : above) && factor < 0);
}

bool ir_flat_is_bounded(const ir_flow *flow, uint32_t axis, uint32_t size) {
    ir_guards guards;
    bool bounded = false;
    ir_guards_find(flow, &guards);
    for (uint32_t t = 0; t < guards.test_count; t++)
        bounded |= bounds(&guards.tests[t], axis, size);
    return bounded;
}

LLVMValueRef ir_flat_write(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis,
                           int64_t threads) {
    LLVMTypeRef type = LLVMInt32TypeInContext(s->base->context);
    LLVMValueRef size = LLVMConstInt(type, (uint64_t)threads, false);
    LLVMValueRef first =
        LLVMBuildNSWMul(builder, ir_structure_read(s, builder, "ctaid", axis), size, "");
    if (LLVMIsAInstruction(first))
        LLVMSetNUW(first, true);
    LLVMValueRef at =
        LLVMBuildNSWAdd(builder, first, ir_structure_read(s, builder, "tid", axis), "");
    LLVMSetNUW(at, true);
    return at;
}

LLVMValueRef ir_flat_extent(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis) {
    const launch_rule *rule = ir_structure_rule(s);
    const char *text =
        rule ? ev_arena_printf(s->arena, "(%s) * (%s)", rule->grid[axis], rule->block[axis]) : NULL;
    return text ? ir_extent_write(s, builder, text) : NULL;
}

ev_status ir_flat_check_alone(const ir_structure *s, const ir_flow *flow, ev_error *err) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        ir_deed deed = ir_deed_of(flow->insns[i]);
        LLVMValueRef pointer = ir_pointer_of(flow->insns[i]), base = NULL;
        if (pointer)
            (void)ir_affine_of_address(s->base->module, pointer, &base);
        bool shared = base && LLVMIsAGlobalVariable(base) &&
                      LLVMGetPointerAddressSpace(LLVMTypeOf(base)) == IR_SHARED_SPACE;
        if (deed == IR_DEED_BARRIER || deed == IR_DEED_WARP || deed == IR_DEED_UNKNOWN || shared)
            return ev_fail(err, EV_BAD, "the threads of a block work together");
    }
    return EV_OK;
}

ir_entry ir_flat_open(const ir_structure *s, const ir_flow *flow, LLVMBuilderRef builder) {
    LLVMContextRef context = s->base->context;
    ir_entry entry = {.body = flow->blocks[0]};
    LLVMBasicBlockRef first = LLVMInsertBasicBlockInContext(context, entry.body, "");
    entry.out = LLVMAppendBasicBlockInContext(context, s->function, "");
    LLVMPositionBuilderAtEnd(builder, entry.out);
    LLVMBuildRetVoid(builder);
    LLVMPositionBuilderAtEnd(builder, first);
    for (LLVMValueRef i = LLVMGetFirstInstruction(entry.body), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (!LLVMIsAAllocaInst(i))
            continue;
        LLVMInstructionRemoveFromParent(i);
        LLVMInsertIntoBuilder(builder, i);
    }
    return entry;
}
