/* Specialise: a whole-number argument has a value, or is a multiple of one, in a copy of the
 * kernel.
 *
 * The test stands in the kernel itself (version_internal.h), so the edit needs no promise about
 * arguments. In the copy a value is a constant: loops unroll, divisions and remainders go,
 * addresses become offsets. A multiple loses its low bits by an `and` that changes nothing where
 * the test holds; LLVM's passes see the zeros. The test of a multiple looks at the bits in reverse
 * order: if it used the same `and`, LLVM would conclude that the other one does nothing, and remove
 * it. */
#include "ir/structure/version_internal.h"

enum { DEEPEST = 6, MOST_BITS = 30 };

/* The bits of a whole number; 0: it is none. */
static unsigned width_of(LLVMValueRef argument) {
    LLVMTypeRef type = LLVMTypeOf(argument);
    unsigned width = LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
    return width == 32 || width == 64 ? width : 0;
}

static ev_status check_form(const ir_edit *edit, LLVMValueRef argument, ev_error *err) {
    int64_t option = edit->has_option ? edit->option : 0;
    if (edit->form == IR_FORM_MULTIPLE) {
        if (option < 2 || option > INT64_C(1) << MOST_BITS || (option & (option - 1)) != 0)
            return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to 2^%d", MOST_BITS);
        return EV_OK;
    }
    if (edit->form != IR_FORM_EQUAL)
        return ev_fail(err, EV_BAD, "\"form\" is neither \"equal\" nor \"multiple\"");
    if (!edit->has_option ||
        (width_of(argument) == 32 && (option < INT32_MIN || option > INT32_MAX)))
        return ev_fail(err, EV_BAD, "\"option\" is no value of the argument");
    return EV_OK;
}

/* ---- what a known value is good for -----------------------------------------------------------
 */

static bool bounds_a_loop(const ir_flow *flow, LLVMValueRef value) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        if (flow->loops[l].bound == value || flow->loops[l].start == value)
            return true;
    }
    return false;
}

/* Whether arithmetic gets cheaper, or a loop's turns known, through the value. */
static bool is_good_for(const ir_flow *flow, LLVMValueRef value, unsigned depth) {
    if (bounds_a_loop(flow, value))
        return true;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use && depth > 0; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        switch (LLVMGetInstructionOpcode(user)) {
        case LLVMMul:
        case LLVMUDiv:
        case LLVMSDiv:
        case LLVMURem:
        case LLVMSRem:
        case LLVMGetElementPtr:
        case LLVMSIToFP:
        case LLVMUIToFP:
            return true;
        case LLVMAdd:
        case LLVMSub:
        case LLVMShl:
        case LLVMAnd:
        case LLVMOr:
        case LLVMSExt:
        case LLVMZExt:
        case LLVMTrunc:
        case LLVMCall: /* least and greatest */
            if (is_good_for(flow, user, depth - 1))
                return true;
            break;
        default:
            break;
        }
    }
    return false;
}

bool ir_structure_specialises(const ir_flow *flow, LLVMValueRef argument) {
    return width_of(argument) != 0 && is_good_for(flow, argument, DEEPEST);
}

/* ---- the edit ---------------------------------------------------------------------------------
 */

static LLVMValueRef test_multiple(const ir_version *v, LLVMValueRef argument, int64_t of) {
    LLVMTypeRef type = LLVMTypeOf(argument);
    const char *name = width_of(argument) == 32 ? "llvm.bitreverse.i32" : "llvm.bitreverse.i64";
    unsigned id = LLVMLookupIntrinsicID(name, sizeof "llvm.bitreverse.i32" - 1);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(v->s->base->module, id, &type, 1);
    LLVMValueRef turned =
        LLVMBuildCall2(v->builder, LLVMGlobalGetValueType(callee), callee, &argument, 1, "");
    unsigned zeros = (unsigned)__builtin_ctzll((uint64_t)of);
    LLVMValueRef least = LLVMConstInt(type, UINT64_C(1) << (width_of(argument) - zeros), false);
    return LLVMBuildICmp(v->builder, LLVMIntULT, turned, least, "");
}

/* The argument without its low bits. */
static LLVMValueRef multiple(const ir_version *v, LLVMValueRef argument, int64_t of) {
    LLVMValueRef mask = LLVMConstInt(LLVMTypeOf(argument), (uint64_t)-of, true);
    return LLVMBuildAnd(v->builder, argument, mask, "");
}

static ev_status specialise(ir_version *v, const ir_edit *edit, LLVMValueRef argument,
                            ev_error *err) {
    LLVMTypeRef type = LLVMTypeOf(argument);
    LLVMValueRef test = NULL;
    if (!ir_structure_specialises(&v->flow, argument))
        return ev_fail(err, EV_BAD,
                       "the argument is no factor, divisor or stride and bounds no loop, so its "
                       "value would change little");
    v->from = argument;
    if (edit->form == IR_FORM_MULTIPLE) {
        test = test_multiple(v, argument, edit->option);
        v->to = multiple(v, argument, edit->option);
    } else {
        v->to = LLVMConstInt(type, (uint64_t)edit->option, true);
        test = LLVMBuildICmp(v->builder, LLVMIntEQ, argument, v->to, "");
    }
    return ir_version_write(v, test, err);
}

ev_status ir_structure_specialise(ir_structure *s, const ir_edit *edit, ev_error *err) {
    if (edit->anchor.kind != IR_ANCHOR_ARGUMENT ||
        edit->anchor.number >= LLVMCountParams(s->function))
        return ev_fail(err, EV_BAD, "\"anchor\" is no argument of the kernel, like \"a3\"");
    LLVMValueRef argument = LLVMGetParam(s->function, edit->anchor.number);
    if (width_of(argument) == 0)
        return ev_fail(err, EV_BAD, "argument a%u is no whole number", edit->anchor.number);
    EV_TRY(check_form(edit, argument, err));
    ir_version v;
    uint32_t tested = edit->form == IR_FORM_EQUAL ? edit->anchor.number + 1 : 0;
    ev_status status = ir_version_open(s, tested, &v, err);
    if (status == EV_OK)
        status = specialise(&v, edit, argument, err);
    ir_version_close(&v);
    return status;
}
