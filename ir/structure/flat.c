/* Flat: see flat_internal.h. Also the calls of intrinsics that read special registers. */
#include "ir/structure/flat_internal.h"

#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Whether a form has places of threads or blocks beside the number along the axis. */
static bool has_other_places(const ir_flow *flow, const bool *is_place, const ir_affine *form,
                             uint32_t axis, uint32_t size) {
    for (uint32_t i = 0; i < form->count; i++) {
        const ir_term *term = &form->terms[i];
        bool own = ir_flat_reads(term->value, "tid", axis) || first_threads(term, axis, size) != 0;
        if (!own && ir_depends_on(flow, is_place, term->value))
            return true;
    }
    return false;
}

/* Whether a form less its places is an argument, times -1 or 1 against the places' factor. */
static bool is_against(const ir_affine *form, LLVMValueRef argument, int64_t factor) {
    if (form->constant != 0)
        return false;
    for (uint32_t i = 0; i < form->count; i++) {
        if (ir_flat_without_casts(form->terms[i].value) == argument)
            return form->terms[i].factor == -factor;
    }
    return false;
}

/* The terms of a form that are no places along the axis. */
static uint32_t other_terms(const ir_affine *form, uint32_t axis, uint32_t size) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->count; i++)
        count += !ir_flat_reads(form->terms[i].value, "tid", axis) &&
                 first_threads(&form->terms[i], axis, size) == 0;
    return count;
}

/* Whether threads stay only if their number is below the argument. */
static bool bounds(const ir_flow *flow, const bool *is_place, const ir_test *test,
                   LLVMValueRef argument, uint32_t axis, uint32_t size) {
    ir_affine form;
    LLVMIntPredicate p = LLVMIntEQ;
    if (!ir_affine_of_condition(test->condition, &form, &p) ||
        has_other_places(flow, is_place, &form, axis, size))
        return false;
    int64_t factor = ir_flat_factor(&form, axis, size);
    if ((factor != 1 && factor != -1) || other_terms(&form, axis, size) != 1 ||
        !is_against(&form, argument, factor))
        return false;
    bool below = p == LLVMIntSLT || p == LLVMIntULT;
    bool above = p == LLVMIntSGT || p == LLVMIntUGT;
    if (test->leaves_if) { /* a thread goes where its number is not below */
        below = p == LLVMIntSLE || p == LLVMIntULE;
        above = p == LLVMIntSGE || p == LLVMIntUGE;
    }
    return ((test->leaves_if ? above : below) && factor > 0) ||
           ((test->leaves_if ? below : above) && factor < 0);
}

/* Whether one of the kernel's tests at its beginning does so for the number along the axis. */
static bool is_bounded(const ir_flow *flow, LLVMValueRef argument, uint32_t axis, uint32_t size) {
    ir_guards guards;
    bool bounded = false;
    bool *is_place = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
    for (uint32_t i = 0; is_place && i < flow->insn_count; i++) {
        for (uint32_t a = 0; a < IR_AXES; a++)
            is_place[i] |=
                LLVMIsACallInst(flow->insns[i]) && (ir_flat_reads(flow->insns[i], "tid", a) ||
                                                    ir_flat_reads(flow->insns[i], "ctaid", a));
    }
    ir_guards_find(flow, false, &guards);
    for (uint32_t t = 0; is_place && t < guards.test_count; t++)
        bounded |= bounds(flow, is_place, &guards.tests[t], argument, axis, size);
    return bounded;
}

/* A whole number or a macro's name, up to the bracket that ends the text; -1: it is more. */
static int64_t last_number(const ir_structure *s, const char *text) {
    text += strspn(text, " ");
    size_t length = strcspn(text, " ()");
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    if (strcmp(text + length, ")") != 0)
        return -1;
    if (end == text + length && length > 0)
        return number;
    for (size_t i = 0; i < s->source->name_count; i++) {
        const ir_macro *macro = &s->source->names[i];
        if (strlen(macro->name) == length && strncmp(macro->name, text, length) == 0)
            return macro->value;
    }
    return -1;
}

/* The argument n of a grid that has just the blocks for n threads, "ceil_div(n, size)"; NULL: the
 * grid is another one. A grid that is capped, or of larger blocks, may have fewer threads than the
 * kernel's test lets pass, and a test by another number lets more pass. */
static LLVMValueRef extent_argument(const ir_structure *s, uint32_t axis, uint32_t size) {
    static const char call[] = "ceil_div(";
    const launch_rule *rule = ir_structure_rule(s);
    const char *at = rule ? rule->grid[axis] : "";
    if (strncmp(at, call, sizeof call - 1) != 0)
        return NULL;
    at += sizeof call - 1;
    size_t length = strcspn(at, ",");
    if (at[length] != ',' || last_number(s, at + length + 1) != size)
        return NULL;
    for (size_t i = 0; i < s->source->argument_count; i++) {
        const char *name = s->source->arguments[i];
        if (i < LLVMCountParams(s->function) && strlen(name) == length &&
            strncmp(name, at, length) == 0)
            return LLVMGetParam(s->function, (unsigned)i);
    }
    return NULL;
}

bool ir_flat_keeps_others_away(const ir_structure *s, const ir_flow *flow, uint32_t axis,
                               uint32_t size) {
    LLVMValueRef argument = extent_argument(s, axis, size);
    return argument && is_bounded(flow, argument, axis, size);
}

static LLVMValueRef never_wraps(LLVMValueRef value) {
    if (LLVMIsABinaryOperator(value)) {
        LLVMSetNSW(value, true);
        LLVMSetNUW(value, true);
    }
    return value;
}

LLVMValueRef ir_flat_write(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis,
                           int64_t threads, LLVMTypeRef type, bool may_wrap) {
    LLVMValueRef block = ir_structure_read(s, builder, "ctaid", axis);
    LLVMValueRef thread = ir_structure_read(s, builder, "tid", axis);
    block = LLVMBuildIntCast2(builder, block, type, false, "");
    thread = LLVMBuildIntCast2(builder, thread, type, false, "");
    LLVMValueRef first =
        LLVMBuildMul(builder, block, LLVMConstInt(type, (uint64_t)threads, false), "");
    LLVMValueRef at = LLVMBuildAdd(builder, may_wrap ? first : never_wraps(first), thread, "");
    return may_wrap ? at : never_wraps(at);
}

LLVMValueRef ir_flat_extent(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis) {
    const launch_rule *rule = ir_structure_rule(s);
    const char *text =
        rule ? ev_arena_printf(s->arena, "(%s) * (%s)", rule->grid[axis], rule->block[axis]) : NULL;
    return text ? ir_extent_write(s, builder, text) : NULL;
}

ev_status ir_flat_check_alone(const ir_structure *s, const ir_flow *flow, ev_error *err) {
    EV_TRY(ir_check_near(flow, err));
    EV_TRY(ir_check_waits(flow, err)); /* more blocks may not all be on the GPU at once */
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        ir_deed deed = ir_deed_of(flow->insns[i]);
        LLVMValueRef pointer = ir_pointer_of(flow->insns[i]), base = NULL;
        if (pointer)
            (void)ir_affine_of_address(s->base->module, pointer, &base);
        bool shared = base && LLVMIsAGlobalVariable(base) &&
                      LLVMGetPointerAddressSpace(LLVMTypeOf(base)) == IR_SHARED_SPACE;
        if (deed == IR_DEED_BARRIER || deed == IR_DEED_WARP || shared)
            return ev_fail(err, EV_BAD, "the threads of a block work together");
        if (deed == IR_DEED_UNKNOWN) {
            const char *name = ir_call_name(flow->insns[i]);
            return ev_fail(err, EV_BAD, "the effect of %s %s is not known",
                           name[0] ? "calling" : "an", name[0] ? name : "instruction");
        }
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_reads_warp_place(flow->insns[i]))
            return ev_fail(err, EV_BAD, "the kernel reads its place in the warp");
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
