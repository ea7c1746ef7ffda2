/* Edits of arithmetic: constants, fast-math flags, approximate instructions, precision, wrapping.
 *
 * Each edit kind has four functions (ir_rule in ir/internal.h): `sites` lists its places, `draw`
 * completes an edit, `apply` changes the module, `describe` prints the edit. Most edits here
 * change no operands: they allow LLVM more (fast-math and nsw/nuw flags; LLVM Language Reference)
 * or select another instruction, and the gates measure the error that results. */
#include "ir/internal.h"

#include <string.h>

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

static void set_option(const ir_work *w, ir_edit *edit, ir_site site, int64_t option) {
    edit->at = ir_work_name(w, site.id);
    edit->has_option = true;
    edit->option = option;
}

static bool draw_index(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    set_option(w, edit, site, site.index);
    return true;
}

/* ---- constant ---------------------------------------------------------------------------------
 */

static bool takes_constant(LLVMValueRef insn, uint32_t operand) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(insn, operand));
    return ir_operand_is_free(insn, operand) && LLVMGetTypeKind(type) != LLVMPointerTypeKind;
}

static void constant_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        if (LLVMIsATerminatorInst(value_at(w, id)))
            continue;
        for (uint32_t k = 0; k < ir_operand_count(value_at(w, id)); k++) {
            if (takes_constant(value_at(w, id), k))
                ir_sites_add(sites, id, k);
        }
    }
}

static bool draw_constant(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    LLVMValueRef now = LLVMGetOperand(value_at(w, site.id), site.index);
    edit->at = ir_work_name(w, site.id);
    edit->has_operand = true;
    edit->operand = site.index;
    edit->value = ir_value_draw_constant(w, LLVMTypeOf(now), rng);
    return edit->value.kind != IR_VALUE_NONE &&
           ir_value_constant(&edit->value, LLVMTypeOf(now)) != now;
}

static ev_status apply_constant(ir_work *w, const ir_edit *edit, ev_error *err) {
    if (edit->value.kind != IR_VALUE_INT && edit->value.kind != IR_VALUE_REAL)
        return ev_fail(err, EV_BAD, "\"value\" is no number");
    return ir_apply_operand(w, edit, err);
}

void ir_describe_operand(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_printf(out, "makes operand %u of ", edit->operand);
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " ");
    ir_describe_value(w, &edit->value, out);
}

const ir_rule ir_rule_CONSTANT = {constant_sites, draw_constant, apply_constant,
                                  ir_describe_operand};

/* ---- fast-math --------------------------------------------------------------------------------
 */

static const struct {
    LLVMFastMathFlags flags;
    const char *name;
} math_options[] = {
    {LLVMFastMathAllowContract, "contraction"},
    {LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros, "reassociation"},
    {LLVMFastMathAllowReciprocal, "reciprocals"},
    {LLVMFastMathApproxFunc, "approximate functions"},
    {LLVMFastMathNoNaNs | LLVMFastMathNoInfs | LLVMFastMathNoSignedZeros,
     "no NaN, no infinity, no sign of zero"},
    {LLVMFastMathAll, "all of fast-math"},
    {LLVMFastMathAllowContract | LLVMFastMathAllowReassoc | LLVMFastMathAllowReciprocal |
         LLVMFastMathApproxFunc | LLVMFastMathNoSignedZeros,
     "all that rounds"},
};
enum { MATH_OPTIONS = sizeof math_options / sizeof math_options[0] };

static bool has_flags(LLVMValueRef insn) {
    return LLVMCanValueUseFastMathFlags(insn);
}

static bool lacks_flags(LLVMValueRef insn, LLVMFastMathFlags flags) {
    return has_flags(insn) && (LLVMGetFastMathFlags(insn) & flags) != flags;
}

static void math_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        for (uint32_t option = 0; option < MATH_OPTIONS; option++) {
            if (lacks_flags(value_at(w, w->sequence[place]), math_options[option].flags))
                ir_sites_add(sites, w->sequence[place], option);
        }
    }
}

static ev_status need_math(const ir_work *w, const ir_edit *edit, uint32_t *at, ev_error *err) {
    EV_TRY(ir_work_need(w, &edit->at, "at", at, err));
    if (!edit->has_option || edit->option < 0 || edit->option >= MATH_OPTIONS)
        return ev_fail(err, EV_BAD, "\"option\" is missing or not from 0 to %d", MATH_OPTIONS - 1);
    if (!has_flags(value_at(w, *at)))
        return ev_fail(err, EV_BAD, "\"at\" is no floating-point arithmetic");
    return EV_OK;
}

static void add_flags(LLVMValueRef insn, LLVMFastMathFlags flags) {
    LLVMSetFastMathFlags(insn, LLVMGetFastMathFlags(insn) | flags);
}

static ev_status apply_fast_math(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need_math(w, edit, &at, err));
    if (!lacks_flags(value_at(w, at), math_options[edit->option].flags))
        return ev_fail(err, EV_BAD, "\"at\" has that flag already");
    add_flags(value_at(w, at), math_options[edit->option].flags);
    return EV_OK;
}

static void describe_math(const ir_work *w, const ir_edit *edit, const char *whom, ev_str *out) {
    bool known = edit->option >= 0 && edit->option < MATH_OPTIONS;
    ev_str_printf(out, "allows %s on ", known ? math_options[edit->option].name : "something");
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, whom);
}

static void describe_fast_math(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe_math(w, edit, "", out);
}

const ir_rule ir_rule_FAST_MATH = {math_sites, draw_index, apply_fast_math, describe_fast_math};

bool ir_math_is_bold(const ir_edit *edit) {
    const LLVMFastMathFlags asserts = LLVMFastMathNoNaNs | LLVMFastMathNoInfs;
    return edit->option < 0 || edit->option >= MATH_OPTIONS ||
           (math_options[edit->option].flags & asserts) != 0;
}

/* ---- chain-math -------------------------------------------------------------------------------
 */

/* Marks `at` and all floating-point instructions that it is computed from, also through PHIs, by a
 * work list. Returns the number of marked instructions; 0: out of memory. */
static uint32_t mark_chain(const ir_work *w, uint32_t at, bool *marks, uint32_t *list) {
    uint32_t waiting = 1, marked = 1;
    list[0] = at;
    marks[at] = true;
    while (waiting > 0) {
        LLVMValueRef insn = value_at(w, list[--waiting]);
        for (uint32_t k = 0; k < ir_operand_count(insn); k++) {
            uint32_t id = ir_work_id(w, LLVMGetOperand(insn, k));
            if (id == IR_NONE || marks[id] || !has_flags(value_at(w, id)))
                continue;
            marks[id] = true;
            list[waiting++] = id;
            marked++;
        }
    }
    return marked;
}

static bool is_computed(const ir_work *w, LLVMValueRef insn) {
    for (uint32_t k = 0; has_flags(insn) && k < ir_operand_count(insn); k++) {
        uint32_t id = ir_work_id(w, LLVMGetOperand(insn, k));
        if (id != IR_NONE && has_flags(value_at(w, id)))
            return true;
    }
    return false;
}

static void chain_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        LLVMValueRef insn = value_at(w, w->sequence[place]);
        if (!is_computed(w, insn))
            continue;
        for (uint32_t option = 0; option < MATH_OPTIONS; option++) {
            if (lacks_flags(insn, math_options[option].flags))
                ir_sites_add(sites, w->sequence[place], option);
        }
    }
}

static ev_status apply_chain_math(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need_math(w, edit, &at, err));
    bool *marks = EV_NEW_ARRAY(w->arena, bool, w->count);
    uint32_t *list = EV_NEW_ARRAY(w->arena, uint32_t, w->count);
    if (!marks || !list)
        return ev_fail_memory(err, w->count * sizeof *list);
    mark_chain(w, at, marks, list);
    for (uint32_t id = 0; id < w->count; id++) {
        if (marks[id])
            add_flags(value_at(w, id), math_options[edit->option].flags);
    }
    return EV_OK;
}

static void describe_chain_math(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe_math(w, edit, " and all that it is computed from", out);
}

const ir_rule ir_rule_CHAIN_MATH = {chain_sites, draw_index, apply_chain_math, describe_chain_math};

/* ---- approx-math ------------------------------------------------------------------------------
 */

/* `option` 1 also flushes subnormals (.ftz). */
static const char *const approximate[][3] = {
    {"llvm.nvvm.div.rn.f", "llvm.nvvm.div.approx.f", "llvm.nvvm.div.approx.ftz.f"},
    {"llvm.sqrt.f32", "llvm.nvvm.sqrt.approx.f", "llvm.nvvm.sqrt.approx.ftz.f"},
    {"llvm.nvvm.sqrt.f", "llvm.nvvm.sqrt.approx.f", "llvm.nvvm.sqrt.approx.ftz.f"},
    {"llvm.nvvm.sqrt.rn.f", "llvm.nvvm.sqrt.approx.f", "llvm.nvvm.sqrt.approx.ftz.f"},
    {"llvm.nvvm.rcp.rn.f", "llvm.nvvm.rcp.approx.ftz.f", "llvm.nvvm.rcp.approx.ftz.f"},
    {"llvm.nvvm.ex2.approx.f", "llvm.nvvm.ex2.approx.ftz.f", "llvm.nvvm.ex2.approx.ftz.f"},
    {"llvm.nvvm.lg2.approx.f", "llvm.nvvm.lg2.approx.ftz.f", "llvm.nvvm.lg2.approx.ftz.f"},
};
enum { APPROXIMATE = sizeof approximate / sizeof approximate[0] };

static bool is_single(LLVMValueRef insn) {
    return LLVMGetTypeKind(LLVMTypeOf(insn)) == LLVMFloatTypeKind;
}

static bool is_one(LLVMValueRef value) {
    LLVMBool lossy;
    return LLVMIsAConstantFP(value) && LLVMConstRealGetDouble(value, &lossy) == 1.0;
}

/* The approximate function for an instruction; NULL: none. Its arguments are `*args` from `*skip`
 * on. */
static const char *approximation(LLVMValueRef insn, int64_t option, unsigned *skip) {
    *skip = 0;
    if (!is_single(insn) || option < 0 || option > 1)
        return NULL;
    if (LLVMGetInstructionOpcode(insn) == LLVMFDiv) {
        *skip = is_one(LLVMGetOperand(insn, 0)) ? 1 : 0;
        return *skip ? "llvm.nvvm.rcp.approx.ftz.f" : approximate[0][1 + option];
    }
    const char *name = ir_call_name(insn);
    for (size_t i = 0; i < APPROXIMATE; i++) {
        if (strcmp(name, approximate[i][0]) == 0)
            return approximate[i][1 + option];
    }
    return NULL;
}

static void approx_sites(const ir_work *w, ir_sites *sites) {
    unsigned skip;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        LLVMValueRef insn = value_at(w, w->sequence[place]);
        for (uint32_t option = 0; option < 2; option++) {
            if (approximation(insn, option, &skip))
                ir_sites_add(sites, w->sequence[place], option);
        }
    }
}

static ev_status apply_approx(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    unsigned skip;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    LLVMValueRef insn = value_at(w, at);
    const char *name = edit->has_option ? approximation(insn, edit->option, &skip) : NULL;
    if (!name)
        return ev_fail(err, EV_BAD,
                       "\"at\" has no approximate instruction, or \"option\" is "
                       "neither 0 nor 1");
    LLVMValueRef args[2] = {LLVMGetOperand(insn, skip), NULL};
    size_t count = 1;
    if (LLVMGetInstructionOpcode(insn) == LLVMFDiv || LLVMGetNumArgOperands(insn) > 1) {
        if (skip == 0)
            args[count++] = LLVMGetOperand(insn, 1);
    }
    LLVMPositionBuilderBefore(w->builder, insn);
    LLVMValueRef made = ir_intrinsic_call(w, name, NULL, 0, args, count);
    ir_work_added(w, made);
    ir_work_replace_uses(w, insn, made);
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_approx(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "approximates ");
    ir_describe_insn(w, &edit->at, out);
    if (edit->option == 1)
        ev_str_append(out, ", flushing subnormals");
}

const ir_rule ir_rule_APPROX = {approx_sites, draw_index, apply_approx, describe_approx};

/* ---- narrow -----------------------------------------------------------------------------------
 */

static bool is_rounded(LLVMValueRef value, unsigned depth, unsigned *steps);

static bool is_rounding_call(LLVMValueRef call) {
    static const char *const names[] = {"llvm.floor.",      "llvm.ceil.",      "llvm.trunc.",
                                        "llvm.rint.",       "llvm.round",      "llvm.nearbyint.",
                                        "llvm.nvvm.floor.", "llvm.nvvm.ceil.", "llvm.nvvm.d2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(ir_call_name(call), names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Whether a call computes a number of numbers. */
static bool computes(LLVMValueRef call) {
    const char *name = ir_call_name(call);
    return strncmp(name, "llvm.", 5) == 0 &&
           LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMIntegerTypeKind &&
           LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMVoidTypeKind;
}

/* Whether the use decides by the value, or makes a whole number or bits of it, be it after more
 * arithmetic. */
static bool rounds(LLVMValueRef user, unsigned depth, unsigned *steps) {
    switch (LLVMIsAInstruction(user) ? LLVMGetInstructionOpcode(user) : LLVMRet) {
    case LLVMFPToSI:
    case LLVMFPToUI:
    case LLVMFCmp:
    case LLVMBitCast:
        return true;
    case LLVMCall:
        return !computes(user) || is_rounding_call(user) || is_rounded(user, depth - 1, steps);
    case LLVMPHI:
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFNeg:
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMSelect:
        return is_rounded(user, depth - 1, steps);
    default:
        return false;
    }
}

static bool is_rounded(LLVMValueRef value, unsigned depth, unsigned *steps) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use && depth > 0; use = LLVMGetNextUse(use)) {
        if (*steps == 0)
            return true;
        --*steps;
        if (rounds(LLVMGetUser(use), depth, steps))
            return true;
    }
    return false;
}

/* Single precision has 24 bits: a whole number made of it is another one from 2^24 on. Where too
 * many uses are to be looked at, it is taken to be made. */
static bool can_narrow(LLVMValueRef insn) {
    enum { DEEPEST = 8, MOST_STEPS = 1000 };
    unsigned steps = MOST_STEPS;
    if (LLVMGetTypeKind(LLVMTypeOf(insn)) != LLVMDoubleTypeKind ||
        is_rounded(insn, DEEPEST, &steps))
        return false;
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFNeg:
        return true;
    default:
        return false;
    }
}

static void narrow_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (can_narrow(value_at(w, w->sequence[place])))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static bool draw_narrow(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static LLVMValueRef added(ir_work *w, LLVMValueRef made) {
    if (LLVMIsAInstruction(made)) /* a constant is no instruction: it was folded */
        ir_work_added(w, made);
    return made;
}

static ev_status apply_narrow(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    LLVMValueRef insn = value_at(w, at);
    if (!can_narrow(insn))
        return ev_fail(err, EV_BAD, "\"at\" is no arithmetic in double precision");
    LLVMTypeRef single = LLVMFloatTypeInContext(w->context);
    LLVMPositionBuilderBefore(w->builder, insn);
    LLVMValueRef args[2] = {NULL, NULL};
    uint32_t count = ir_operand_count(insn);
    for (uint32_t k = 0; k < count; k++)
        args[k] = added(w, LLVMBuildFPTrunc(w->builder, LLVMGetOperand(insn, k), single, ""));
    LLVMOpcode opcode = LLVMGetInstructionOpcode(insn);
    LLVMValueRef result = count == 1 ? LLVMBuildFNeg(w->builder, args[0], "")
                                     : LLVMBuildBinOp(w->builder, opcode, args[0], args[1], "");
    if (LLVMIsAInstruction(result))
        LLVMSetFastMathFlags(result, LLVMGetFastMathFlags(insn));
    result = added(w, result);
    result = added(w, LLVMBuildFPExt(w->builder, result, LLVMTypeOf(insn), ""));
    ir_work_replace_uses(w, insn, result);
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_narrow(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "computes in single precision ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_NARROW = {narrow_sites, draw_narrow, apply_narrow, describe_narrow};

/* ---- no-wrap ----------------------------------------------------------------------------------
 */

/* `option` 1: signed, 2: unsigned. */
static bool can_assert(LLVMValueRef insn, int64_t option) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        return (option == 1 && !LLVMGetNSW(insn)) || (option == 2 && !LLVMGetNUW(insn));
    default:
        return false;
    }
}

static void wrap_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        for (uint32_t option = 1; option <= 2; option++) {
            if (can_assert(value_at(w, w->sequence[place]), option))
                ir_sites_add(sites, w->sequence[place], option);
        }
    }
}

static ev_status apply_no_wrap(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!edit->has_option || !can_assert(value_at(w, at), edit->option))
        return ev_fail(err, EV_BAD,
                       "\"at\" is no add, sub, mul or shl that may wrap, or \"option\" "
                       "is neither 1 (signed) nor 2 (unsigned)");
    if (edit->option == 1)
        LLVMSetNSW(value_at(w, at), true);
    else
        LLVMSetNUW(value_at(w, at), true);
    return EV_OK;
}

static void describe_no_wrap(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "asserts that ");
    ir_describe_insn(w, &edit->at, out);
    ev_str_printf(out, " does not wrap (%s)", edit->option == 1 ? "signed" : "unsigned");
}

const ir_rule ir_rule_NO_WRAP = {wrap_sites, draw_index, apply_no_wrap, describe_no_wrap};
