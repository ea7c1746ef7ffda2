/* Asserted facts as checks: a build of a genome in which each fact that an edit asserted is tested
 * where it is used, and ends the launch if a run breaks it. Gate 6 runs this build.
 *
 * The edit no-wrap asserts that integer arithmetic does not wrap (nsw, nuw). The check computes the
 * overflow bit beside the instruction, which loses the flag, and ends in `trap` behind a predicate.
 * The trap is inline assembly, so that the control flow stays as it is. Its line of PTX has a
 * comment that names the edit: a reader of the trap's line finds the fact (IR_ASSERT_MARK). */
#include "ir/internal.h"

#include <string.h>

bool ir_genome_asserts(const ir_genome *genome) {
    bool any = false;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        any |= ir_genome_edit(genome, i)->kind == IR_EDIT_NO_WRAP;
    return any;
}

uint64_t ir_genome_aligned(const ir_genome *genome) {
    uint64_t arguments = 0;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        if (edit->kind == IR_EDIT_ALIGN_ARGUMENT && edit->value.arg < 64)
            arguments |= UINT64_C(1) << edit->value.arg;
    }
    return arguments;
}

/* The overflow bit of an add, sub or mul. */
static LLVMValueRef overflow_by_intrinsic(ir_work *w, LLVMValueRef insn, const char *name) {
    LLVMTypeRef type = LLVMTypeOf(insn);
    LLVMValueRef args[] = {LLVMGetOperand(insn, 0), LLVMGetOperand(insn, 1)};
    LLVMValueRef pair = ir_intrinsic_call(w, name, &type, 1, args, 2);
    return LLVMBuildExtractValue(w->builder, pair, 1, "");
}

/* Whether a shift to the left loses bits: the shift back does not give the operand. */
static LLVMValueRef overflow_of_shift(const ir_work *w, LLVMValueRef insn, bool is_signed) {
    LLVMValueRef by = LLVMGetOperand(insn, 1);
    LLVMValueRef back = is_signed ? LLVMBuildAShr(w->builder, insn, by, "")
                                  : LLVMBuildLShr(w->builder, insn, by, "");
    return LLVMBuildICmp(w->builder, LLVMIntNE, back, LLVMGetOperand(insn, 0), "");
}

static LLVMValueRef overflow_of(ir_work *w, LLVMValueRef insn, bool is_signed) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMAdd:
        return overflow_by_intrinsic(
            w, insn, is_signed ? "llvm.sadd.with.overflow" : "llvm.uadd.with.overflow");
    case LLVMSub:
        return overflow_by_intrinsic(
            w, insn, is_signed ? "llvm.ssub.with.overflow" : "llvm.usub.with.overflow");
    case LLVMMul:
        return overflow_by_intrinsic(
            w, insn, is_signed ? "llvm.smul.with.overflow" : "llvm.umul.with.overflow");
    default:
        return overflow_of_shift(w, insn, is_signed);
    }
}

/* Words for a line of assembly, where a dollar sign and a newline have a meaning. */
static void append_words(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str words = EV_STR_EMPTY;
    ir_rule_of(edit->kind)->describe(w, edit, &words);
    for (size_t i = 0; i < words.length; i++)
        if (words.data[i] != '$' && words.data[i] != '\n')
            ev_str_char(out, words.data[i]);
    ev_str_free(&words);
}

static void build_trap(const ir_work *w, LLVMValueRef overflow, size_t index, const ir_edit *edit) {
    LLVMTypeRef word = LLVMInt32TypeInContext(w->context);
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(w->context), &word, 1, /*IsVarArg=*/false);
    ev_str text = EV_STR_EMPTY;
    ev_str_append(&text, "{ .reg .pred wraps; setp.ne.u32 wraps, $0, 0;\n"
                         "@wraps trap; " IR_ASSERT_MARK);
    ev_str_printf(&text, "edit %zu ", index);
    append_words(w, edit, &text);
    ev_str_append(&text, "\n}");
    LLVMValueRef code =
        LLVMGetInlineAsm(type, ev_str_text(&text), text.length, "r", 1, /*HasSideEffects=*/true,
                         /*IsAlignStack=*/false, LLVMInlineAsmDialectATT, /*CanThrow=*/false);
    LLVMValueRef wide = LLVMBuildZExt(w->builder, overflow, word, "");
    LLVMBuildCall2(w->builder, type, code, &wide, 1, "");
    ev_str_free(&text);
}

/* The instruction that the edit asserts something of; NULL: a later edit dropped it, or it has no
 * scalar type. */
static LLVMValueRef asserted(const ir_work *w, const ir_edit *edit) {
    uint32_t at = edit->kind == IR_EDIT_NO_WRAP ? ir_work_find(w, &edit->at) : IR_NONE;
    LLVMValueRef insn = at == IR_NONE ? NULL : w->nodes[at].value;
    bool is_scalar = insn && LLVMIsABinaryOperator(insn) &&
                     LLVMGetTypeKind(LLVMTypeOf(insn)) == LLVMIntegerTypeKind;
    return is_scalar && LLVMGetIntTypeWidth(LLVMTypeOf(insn)) <= 64 ? insn : NULL;
}

void ir_assert_checks(ir_work *w, const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        LLVMValueRef insn = asserted(w, edit);
        if (!insn)
            continue;
        bool is_signed = edit->option == 1;
        if (is_signed)
            LLVMSetNSW(insn, false);
        else
            LLVMSetNUW(insn, false);
        LLVMPositionBuilderBefore(w->builder, LLVMGetNextInstruction(insn));
        build_trap(w, overflow_of(w, insn, is_signed), i, edit);
    }
}
