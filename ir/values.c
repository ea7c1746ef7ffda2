/* Values: lists the values that a use may take (values in reach and constants), and draws one. */
#include "ir/internal.h"

#include <string.h>

bool ir_type_is_value(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMLabelTypeKind:
    case LLVMMetadataTypeKind:
    case LLVMTokenTypeKind:
    case LLVMFunctionTypeKind:
        return false;
    default:
        return true;
    }
}

bool ir_param_has(LLVMValueRef value, const char *attribute) {
    LLVMValueRef function = LLVMIsAArgument(value) ? LLVMGetParamParent(value) : NULL;
    unsigned kind = LLVMGetEnumAttributeKindForName(attribute, strlen(attribute));
    for (unsigned i = 0; function && i < LLVMCountParams(function); i++) {
        if (LLVMGetParam(function, i) == value)
            return LLVMGetEnumAttributeAtIndex(function, i + 1, kind) != NULL;
    }
    return false;
}

uint64_t ir_call_memory(LLVMValueRef call) {
    static const char name[] = "memory";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAttributeIndex of_function = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    if (!LLVMIsACallInst(call))
        return UINT64_MAX;
    LLVMAttributeRef memory = LLVMGetCallSiteEnumAttribute(call, of_function, kind);
    if (!memory && LLVMIsAFunction(LLVMGetCalledValue(call)))
        memory = LLVMGetEnumAttributeAtIndex(LLVMGetCalledValue(call), of_function, kind);
    return memory ? LLVMGetEnumAttributeValue(memory) : UINT64_MAX;
}

bool ir_load_is_invariant(LLVMValueRef load) {
    static const char name[] = "invariant.load";
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(load));
    unsigned kind = LLVMGetMDKindIDInContext(context, name, sizeof name - 1);
    return LLVMIsALoadInst(load) && LLVMGetMetadata(load, kind) != NULL;
}

static bool is_float(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return true;
    default:
        return false;
    }
}

/* ---- operands ---------------------------------------------------------------------------------
 */

static bool call_operand_is_free(LLVMValueRef call, uint32_t operand) {
    static const char immarg[] = "immarg";
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (operand >= LLVMGetNumArgOperands(call)) /* the callee, bundles */
        return false;
    /* Many nvvm intrinsics accept only literals, and not all of them state that by immarg. */
    if (LLVMIsAConstantInt(LLVMGetOperand(call, operand)) &&
        strncmp(ir_call_name(call), "llvm.nvvm.", 10) == 0)
        return false;
    unsigned kind = LLVMGetEnumAttributeKindForName(immarg, sizeof immarg - 1);
    bool fixed = LLVMGetCallSiteEnumAttribute(call, operand + 1, kind) != NULL;
    if (LLVMIsAFunction(callee))
        fixed |= LLVMGetEnumAttributeAtIndex(callee, operand + 1, kind) != NULL;
    return !fixed;
}

/* Indices into structs must stay constant; indices into arrays may vary. */
static bool index_is_free(LLVMValueRef gep, uint32_t operand) {
    if (operand <= 1)
        return true;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    for (uint32_t i = 2; i < operand && LLVMGetTypeKind(type) == LLVMArrayTypeKind; i++)
        type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMArrayTypeKind;
}

bool ir_operand_is_free(LLVMValueRef user, uint32_t operand) {
    LLVMValueRef value = LLVMGetOperand(user, operand);
    if (!value || !ir_type_is_value(LLVMTypeOf(value)))
        return false;
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMCall:
    case LLVMInvoke:
    case LLVMCallBr:
        return call_operand_is_free(user, operand);
    case LLVMGetElementPtr:
        return index_is_free(user, operand);
    case LLVMSwitch:
        return operand == 0;
    case LLVMAlloca:
    case LLVMLandingPad:
        return false;
    default:
        return true;
    }
}

/* ---- constants --------------------------------------------------------------------------------
 */

LLVMValueRef ir_value_constant(const ir_value *value, LLVMTypeRef type) {
    bool real = value->kind == IR_VALUE_REAL;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        enum { LANES = 16 };
        LLVMValueRef lanes[LANES];
        unsigned count = LLVMGetVectorSize(type);
        LLVMValueRef lane = ir_value_constant(value, LLVMGetElementType(type));
        if (!lane || count > LANES)
            return NULL;
        for (unsigned i = 0; i < count; i++)
            lanes[i] = lane;
        return LLVMConstVector(lanes, count);
    }
    if (is_float(type))
        return LLVMConstReal(type, real ? value->real : (double)value->integer);
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && !real)
        return LLVMConstInt(type, (unsigned long long)value->integer, true);
    bool zero = real ? value->real == 0 : value->integer == 0;
    return zero && ir_type_is_value(type) ? LLVMConstNull(type) : NULL;
}

static ir_value draw_real(const ir_work *w, ev_pcg *rng) {
    static const double fixed[] = {0.0, 1.0, -1.0, 2.0, 4.0, 8.0, 16.0, 0.5, 0.25, 0.125, 0.0625};
    uint32_t known = (uint32_t)(sizeof fixed / sizeof fixed[0]);
    uint32_t pick = ev_pcg_below(rng, known + (uint32_t)w->base->constant_count);
    double real = pick < known ? fixed[pick] : (double)w->base->constants[pick - known];
    return (ir_value){.kind = IR_VALUE_REAL, .real = real};
}

static ir_value draw_integer(const ir_work *w, unsigned bits, ev_pcg *rng) {
    uint32_t powers = bits > 11 ? 10 : bits - 1; /* 2, 4 .. 1024, and below the sign bit */
    uint32_t launch = bits >= 16 ? (uint32_t)w->base->constant_count : 0;
    uint32_t fixed = bits == 1 ? 2 : 3;
    uint32_t pick = ev_pcg_below(rng, fixed + powers + launch);
    ir_value value = {.kind = IR_VALUE_INT};
    if (pick < fixed)
        value.integer = pick == 2 ? -1 : (int64_t)pick;
    else if (pick < fixed + powers)
        value.integer = (int64_t)2 << (pick - fixed);
    else
        value.integer = w->base->constants[pick - fixed - powers];
    return value;
}

ir_value ir_value_draw_constant(const ir_work *w, LLVMTypeRef type, ev_pcg *rng) {
    LLVMTypeRef scalar = type;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind && LLVMGetVectorSize(type) <= 16)
        scalar = LLVMGetElementType(type);
    if (is_float(scalar))
        return draw_real(w, rng);
    if (LLVMGetTypeKind(scalar) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(scalar) <= 64)
        return draw_integer(w, LLVMGetIntTypeWidth(scalar), rng);
    if (!ir_type_is_value(type))
        return (ir_value){0};
    return (ir_value){.kind = IR_VALUE_INT, .integer = 0};
}

/* ---- values in reach --------------------------------------------------------------------------
 */

static LLVMValueRef function_of(const ir_work *w, uint32_t id) {
    return w->blocks[w->nodes[id].block].function;
}

/* The list that each query fills anew. */
static ir_value *scratch(ir_work *w, uint32_t count) {
    if (count > w->scratch_capacity || !w->scratch) {
        w->scratch_capacity = 2 * count + 32;
        w->scratch = EV_NEW_ARRAY(w->arena, ir_value, w->scratch_capacity);
    }
    return w->scratch;
}

ir_values ir_values_in_reach(ir_work *w, uint32_t user, uint32_t operand, LLVMTypeRef type) {
    LLVMValueRef function = function_of(w, user);
    unsigned args = LLVMCountParams(function);
    ir_values values = {scratch(w, w->sequence_count + args), 0};
    if (!values.items)
        return values;
    for (unsigned i = 0; i < args; i++) {
        if (LLVMTypeOf(LLVMGetParam(function, i)) == type)
            values.items[values.count++] = (ir_value){.kind = IR_VALUE_ARG, .arg = i};
    }
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        const ir_node *node = &w->nodes[id];
        if (id != user && !node->doomed && LLVMTypeOf(node->value) == type &&
            ir_work_dominates(w, id, user, operand))
            values.items[values.count++] =
                (ir_value){.kind = IR_VALUE_INSN, .insn = ir_work_name(w, id)};
    }
    return values;
}

LLVMValueRef ir_value_resolve(const ir_work *w, const ir_value *value, uint32_t user,
                              uint32_t operand) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(w->nodes[user].value, operand));
    LLVMValueRef found = NULL;
    if (value->kind == IR_VALUE_INSN) {
        uint32_t id = ir_work_find(w, &value->insn);
        if (id != IR_NONE && !w->nodes[id].doomed &&
            (id != user || LLVMIsAPHINode(w->nodes[user].value)) &&
            ir_work_dominates(w, id, user, operand))
            found = w->nodes[id].value;
    } else if (value->kind == IR_VALUE_ARG) {
        LLVMValueRef function = function_of(w, user);
        found = value->arg < LLVMCountParams(function) ? LLVMGetParam(function, value->arg) : NULL;
    } else if (value->kind != IR_VALUE_NONE) {
        found = ir_value_constant(value, type);
    }
    return found && LLVMTypeOf(found) == type ? found : NULL;
}

/* Draws a value. One draw in four is a constant, if the type has any but zero. A pointer becomes
 * null only if nothing else is in reach. */
ir_value ir_value_draw(ir_work *w, uint32_t user, uint32_t operand, LLVMValueRef except,
                       ev_pcg *rng) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(w->nodes[user].value, operand));
    ir_values values = ir_values_in_reach(w, user, operand, type);
    bool pointer = LLVMGetTypeKind(type) == LLVMPointerTypeKind;
    enum { TRIES = 8 };
    for (int i = 0; i < TRIES; i++) {
        bool constant = values.count == 0 || (!pointer && ev_pcg_below(rng, 4) == 0);
        ir_value value = constant ? ir_value_draw_constant(w, type, rng)
                                  : values.items[ev_pcg_below(rng, values.count)];
        LLVMValueRef found = ir_value_resolve(w, &value, user, operand);
        if (found && found != except)
            return value;
    }
    return (ir_value){0};
}

ev_status ir_apply_operand(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    LLVMValueRef insn = w->nodes[at].value;
    if (!edit->has_operand || edit->operand >= ir_operand_count(insn) ||
        !ir_operand_is_free(insn, edit->operand))
        return ev_fail(err, EV_BAD, "\"operand\" is missing or names no operand that may change");
    LLVMValueRef value = ir_value_resolve(w, &edit->value, at, edit->operand);
    if (!value)
        return ev_fail(err, EV_BAD,
                       "\"value\" is missing, of another type, or does not dominate the use");
    LLVMSetOperand(insn, edit->operand, value);
    return EV_OK;
}
