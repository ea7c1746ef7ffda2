/* The direct emitter: fast code generation for one kernel, about a microsecond a line of PTX, for
 * a first run of a variant.
 *
 * LLVM's code generation is half of the cost of a variant. The direct emitter computes the same
 * bits in a tenth of the time, because it does less. It makes one pass over the blocks in reverse
 * postorder, so a definition is seen before its uses, except for uses by PHIs. A value is a list
 * of scalars; a scalar is a register, a literal, or a register plus an offset. Pure instructions
 * are hashed, so a value computed in a dominating place is not computed again (dominator-based
 * value numbering: Briggs, Cooper and Simpson, "Value Numbering", 1997). Unneeded instructions are
 * dropped at the end. A construct without a rule is refused (EV_BAD), and LLVM generates the code
 * instead.
 *
 *   direct_flow.c      blocks, edges, and the values that PHIs take along edges
 *   direct_values.c    scalars, constants, registers, value numbering
 *   direct_ops.c       integers, comparisons, selections, conversions; direct_divide.c: division
 *   direct_float.c     floating point, with LLVM's choice of fused multiply-adds
 *   direct_divisors.c  divisions that share a divisor
 *   direct_moves.c     instructions that LLVM moves to another block before it selects
 *   direct_address.c   addresses, loads, stores, atomics
 *   direct_join.c      neighbouring accesses as one vector access
 *   direct_calls.c     intrinsics, by direct_intrinsics.def
 *   direct_phi.c       dead code, liveness, and the registers that PHIs share
 *   direct_print.c     the text of the body; direct_module.c: the text around the body */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* ---- setting up -------------------------------------------------------------------------------
 */

static bool has_word(LLVMValueRef function, const char *key, const char *word) {
    LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, key, (unsigned)strlen(key));
    unsigned length = 0;
    const char *value = attribute ? LLVMGetStringAttributeValue(attribute, &length) : "";
    return length >= strlen(word) && memcmp(value, word, strlen(word)) == 0;
}

/* Attributes that change the meaning of instructions. */
/* Whether the module has another kernel than the entry, as of a start with steps. */
static bool has_other_kernel(const ir_direct *d) {
    for (LLVMValueRef f = LLVMGetFirstFunction(d->module); f; f = LLVMGetNextFunction(f)) {
        if (f != d->function && !LLVMIsDeclaration(f) && LLVMGetLinkage(f) != LLVMInternalLinkage)
            return true;
    }
    return false;
}

static void check_attributes(ir_direct *d) {
    if (has_other_kernel(d))
        direct_refuse(d, NULL, "a module of several kernels");
    if (has_word(d->function, "unsafe-fp-math", "true") ||
        has_word(d->function, "denormal-fp-math", "preserve-sign") ||
        has_word(d->function, "denormal-fp-math", "positive-zero") ||
        has_word(d->function, "denormal-fp-math-f32", "preserve-sign") ||
        has_word(d->function, "denormal-fp-math-f32", "positive-zero"))
        direct_refuse(d, NULL, "unsafe or flushing mathematics of a whole function");
    if (LLVMGetTypeKind(LLVMGetReturnType(LLVMGlobalGetValueType(d->function))) != LLVMVoidTypeKind)
        direct_refuse(d, NULL, "a kernel that returns something");
}

static unsigned attribute_kind(const char *name) {
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static bool has_attribute(ir_direct *d, unsigned argument, const char *name) {
    return LLVMGetEnumAttributeAtIndex(d->function, argument + 1, attribute_kind(name)) != NULL;
}

static void number_arguments(ir_direct *d) {
    for (uint32_t i = 0; i < d->argument_count; i++) {
        LLVMValueRef argument = LLVMGetParam(d->function, i);
        LLVMTypeRef type = LLVMTypeOf(argument);
        uint8_t space = 0;
        if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
            unsigned own = LLVMGetPointerAddressSpace(type);
            space = (uint8_t)(own ? own : 1); /* a kernel's pointer arguments point to global
                                                 memory */
            if (LLVMGetEnumAttributeAtIndex(d->function, i + 1, attribute_kind("byval")))
                direct_refuse(d, argument, "an argument in memory");
        }
        d->values[i] = (direct_value){.value = argument, .space = space, .block = IR_NONE};
        d->read_only[i] = has_attribute(d, i, "noalias") &&
                          (has_attribute(d, i, "readonly") || has_attribute(d, i, "readnone"));
        ir_map_put(&d->map, argument, i);
    }
    d->value_count = d->argument_count;
}

static uint8_t first_space(LLVMValueRef insn, LLVMOpcode opcode) {
    LLVMTypeRef type = LLVMTypeOf(insn);
    if (LLVMGetTypeKind(type) != LLVMPointerTypeKind)
        return 0;
    bool open = opcode == LLVMPHI || opcode == LLVMSelect || opcode == LLVMGetElementPtr ||
                opcode == LLVMAddrSpaceCast || opcode == LLVMFreeze;
    unsigned own = LLVMGetPointerAddressSpace(type);
    return own == 0 && open ? DIRECT_ANY_SPACE : (uint8_t)own;
}

static uint32_t count_insns(const ir_direct *d) {
    uint32_t count = 0;
    for (uint32_t b = 0; b < d->block_count; b++)
        for (LLVMValueRef i = LLVMGetFirstInstruction(d->blocks[b].block); i;
             i = LLVMGetNextInstruction(i))
            count++;
    return count;
}

static void number_insns(ir_direct *d) {
    for (uint32_t b = 0; b < d->block_count; b++) {
        d->blocks[b].value = d->value_count;
        for (LLVMValueRef i = LLVMGetFirstInstruction(d->blocks[b].block); i;
             i = LLVMGetNextInstruction(i)) {
            LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
            d->values[d->value_count] = (direct_value){
                .value = i, .opcode = (uint8_t)opcode, .block = b, .space = first_space(i, opcode)};
            ir_map_put(&d->map, i, d->value_count++);
        }
        d->blocks[b].value_end = d->value_count;
    }
}

static bool number_values(ir_direct *d) {
    d->argument_count = LLVMCountParams(d->function);
    uint32_t count = d->argument_count + count_insns(d);
    d->values = EV_NEW_ARRAY(d->arena, direct_value, count + 1);
    d->read_only = EV_NEW_ARRAY(d->arena, bool, d->argument_count + 1);
    if (!d->values || !d->read_only || !ir_map_reserve(&d->map, d->arena, count + 1))
        return false;
    number_arguments(d);
    number_insns(d);
    return true;
}

/* ---- address spaces of pointers ---------------------------------------------------------------
 */

static uint8_t meet(uint8_t a, uint8_t b) {
    if (a == DIRECT_ANY_SPACE || a == b)
        return b;
    return b == DIRECT_ANY_SPACE ? a : 0;
}

static uint8_t space_from(ir_direct *d, const direct_value *value) {
    LLVMValueRef insn = value->value;
    uint8_t space = DIRECT_ANY_SPACE;
    switch (value->opcode) {
    case LLVMPHI:
        for (unsigned i = 0; i < LLVMCountIncoming(insn); i++)
            if (ir_map_get(&d->block_map, LLVMGetIncomingBlock(insn, i)) != IR_NONE)
                space = meet(space, direct_space_of(d, LLVMGetIncomingValue(insn, i)));
        return space;
    case LLVMSelect:
        return meet(direct_space_of(d, LLVMGetOperand(insn, 1)),
                    direct_space_of(d, LLVMGetOperand(insn, 2)));
    default:
        return direct_space_of(d, LLVMGetOperand(insn, 0));
    }
}

/* Infers address spaces: a generic pointer that can only be of one space gets this space. Starts
 * from "any", and repeats until nothing changes. */
static void infer_spaces(ir_direct *d) {
    uint32_t *open = EV_NEW_ARRAY(d->arena, uint32_t, d->value_count + 1), count = 0;
    if (!open) {
        direct_no_memory(d);
        return;
    }
    for (uint32_t v = d->argument_count; v < d->value_count; v++)
        if (d->values[v].space == DIRECT_ANY_SPACE)
            open[count++] = v;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            direct_value *value = &d->values[open[i]];
            uint8_t space = space_from(d, value);
            changed |= space != value->space;
            value->space = space;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (d->values[open[i]].space == DIRECT_ANY_SPACE)
            d->values[open[i]].space = 0;
}

/* ---- selection --------------------------------------------------------------------------------
 */

static void load_arguments(ir_direct *d) {
    for (uint32_t i = 0; i < d->argument_count; i++) {
        direct_leaf leaf;
        LLVMTypeRef type = LLVMTypeOf(d->values[i].value);
        if (!direct_leaf_of(type, &leaf) || (leaf.bits != 1 && leaf.bits < 8) ||
            (leaf.bits & (leaf.bits - 1))) {
            direct_refuse(d, d->values[i].value, "an argument of this type");
            return;
        }
        bool bit = leaf.cls == DIRECT_P;
        direct_operand loaded = direct_new(d, bit ? DIRECT_RS : leaf.cls, bit ? 8 : leaf.bits);
        direct_operand index = {.kind = DIRECT_INT, .imm = i};
        direct_insn_add(d, direct_param_load(&leaf), DIRECT_PARAM, false, 1, &loaded, 1, &index);
        if (bit) {
            direct_operand low =
                direct_pure2(d, "and.b16", DIRECT_RS, loaded, direct_int(DIRECT_RS, 0, 1));
            loaded = direct_pure2(d, "setp.ne.s16", DIRECT_P, low, direct_int(DIRECT_RS, 0, 0));
        }
        loaded.space = leaf.space;
        if (leaf.is_pointer)
            loaded = direct_to_space(d, loaded, d->values[i].space);
        direct_define(d, d->values[i].value, &loaded, 1);
    }
}

static void define_phis(ir_direct *d, uint32_t b) {
    d->block = b;
    for (uint32_t v = d->blocks[b].value;
         v < d->blocks[b].value_end && d->values[v].opcode == LLVMPHI; v++) {
        direct_operand parts[DIRECT_LEAVES];
        direct_leaf leaves[DIRECT_LEAVES];
        unsigned count = direct_leaves(LLVMTypeOf(d->values[v].value), leaves);
        if (count == 0) {
            direct_refuse(d, d->values[v].value, "a PHI of this type");
            return;
        }
        for (unsigned i = 0; i < count; i++) {
            parts[i] = direct_new(d, leaves[i].cls, leaves[i].bits);
            parts[i].space = leaves[i].is_pointer ? d->values[v].space : 0;
        }
        direct_define(d, d->values[v].value, parts, count);
    }
}

static void select_forward(ir_direct *d, LLVMValueRef insn) {
    direct_operand room[DIRECT_LEAVES];
    unsigned count;
    const direct_operand *parts = direct_parts(d, LLVMGetOperand(insn, 0), room, &count);
    direct_define(d, insn, parts, count);
}

/* The number of scalars before member `index` of a type. */
static unsigned leaves_before(LLVMTypeRef type, unsigned index, LLVMTypeRef *member) {
    direct_leaf leaves[DIRECT_LEAVES];
    unsigned total = 0;
    bool is_struct = LLVMGetTypeKind(type) == LLVMStructTypeKind;
    for (unsigned i = 0; i <= index; i++) {
        *member = is_struct ? LLVMStructGetTypeAtIndex(type, i) : LLVMGetElementType(type);
        if (i < index)
            total += direct_leaves(*member, leaves);
    }
    return total;
}

/* The index of an element's or member's first scalar. False: the index is not constant. */
static bool place_of_part(LLVMValueRef insn, LLVMOpcode opcode, LLVMTypeRef type, unsigned *at,
                          unsigned *count) {
    direct_leaf leaves[DIRECT_LEAVES];
    if (opcode == LLVMExtractElement || opcode == LLVMInsertElement) {
        LLVMValueRef index = LLVMGetOperand(insn, opcode == LLVMExtractElement ? 1 : 2);
        *at = LLVMIsAConstantInt(index) ? (unsigned)LLVMConstIntGetZExtValue(index) : UINT32_MAX;
        *count = 1;
        return *at < LLVMGetVectorSize(type);
    }
    const unsigned *indices = LLVMGetIndices(insn);
    *at = 0;
    for (unsigned i = 0; i < LLVMGetNumIndices(insn); i++)
        *at += leaves_before(type, indices[i], &type);
    *count = direct_leaves(type, leaves);
    return *count > 0;
}

static void select_part(ir_direct *d, LLVMValueRef insn) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(insn);
    bool inserts = opcode == LLVMInsertElement || opcode == LLVMInsertValue;
    LLVMValueRef whole = LLVMGetOperand(insn, 0);
    direct_operand room[DIRECT_LEAVES], other[DIRECT_LEAVES], result[DIRECT_LEAVES];
    unsigned count, at, size, n;
    const direct_operand *parts = direct_parts(d, whole, room, &count);
    if (count == 0 || !place_of_part(insn, opcode, LLVMTypeOf(whole), &at, &size) ||
        at + size > count) {
        direct_refuse(d, insn, "an element of no known place");
        return;
    }
    if (!inserts) {
        direct_define(d, insn, parts + at, size);
        return;
    }
    memcpy(result, parts, count * sizeof *parts);
    const direct_operand *part = direct_parts(d, LLVMGetOperand(insn, 1), other, &n);
    memcpy(result + at, part, size * sizeof *part);
    direct_define(d, insn, result, count);
}

static void select_shuffle(ir_direct *d, LLVMValueRef insn) {
    direct_operand left[DIRECT_LEAVES], right[DIRECT_LEAVES], result[DIRECT_LEAVES];
    unsigned n, m, count = LLVMGetNumMaskElements(insn);
    const direct_operand *a = direct_parts(d, LLVMGetOperand(insn, 0), left, &n);
    const direct_operand *b = direct_parts(d, LLVMGetOperand(insn, 1), right, &m);
    if (count > DIRECT_LEAVES || n == 0 || m == 0) {
        direct_refuse(d, insn, "a shuffle");
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        int from = LLVMGetMaskValue(insn, i);
        direct_operand none = {.cls = a[0].cls, .bits = a[0].bits};
        if (from < 0)
            result[i] = none;
        else if ((unsigned)from < n)
            result[i] = a[from];
        else
            result[i] = b[(unsigned)from - n];
    }
    direct_define(d, insn, result, count);
}

static void select_nothing(ir_direct *d, LLVMValueRef insn) {
    (void)d, (void)insn;
}

typedef void (*selector)(ir_direct *d, LLVMValueRef insn);

static selector selector_of(LLVMOpcode opcode) {
    static const selector selectors[] = {
        [LLVMRet] = select_nothing,
        [LLVMBr] = select_nothing,
        [LLVMSwitch] = select_nothing,
        [LLVMUnreachable] = select_nothing,
        [LLVMPHI] = select_nothing,
        [LLVMAdd] = direct_select_binary,
        [LLVMSub] = direct_select_binary,
        [LLVMMul] = direct_select_binary,
        [LLVMUDiv] = direct_select_binary,
        [LLVMSDiv] = direct_select_binary,
        [LLVMURem] = direct_select_binary,
        [LLVMSRem] = direct_select_binary,
        [LLVMShl] = direct_select_binary,
        [LLVMLShr] = direct_select_binary,
        [LLVMAShr] = direct_select_binary,
        [LLVMAnd] = direct_select_binary,
        [LLVMOr] = direct_select_binary,
        [LLVMXor] = direct_select_binary,
        [LLVMFAdd] = direct_select_float,
        [LLVMFSub] = direct_select_float,
        [LLVMFMul] = direct_select_float,
        [LLVMFDiv] = direct_select_float,
        [LLVMFNeg] = direct_select_float,
        [LLVMICmp] = direct_select_compare,
        [LLVMFCmp] = direct_select_compare,
        [LLVMSelect] = direct_select_select,
        [LLVMTrunc] = direct_select_cast,
        [LLVMZExt] = direct_select_cast,
        [LLVMSExt] = direct_select_cast,
        [LLVMFPToUI] = direct_select_cast,
        [LLVMFPToSI] = direct_select_cast,
        [LLVMUIToFP] = direct_select_cast,
        [LLVMSIToFP] = direct_select_cast,
        [LLVMFPTrunc] = direct_select_cast,
        [LLVMFPExt] = direct_select_cast,
        [LLVMPtrToInt] = direct_select_cast,
        [LLVMIntToPtr] = direct_select_cast,
        [LLVMBitCast] = direct_select_cast,
        [LLVMAddrSpaceCast] = direct_select_cast,
        [LLVMGetElementPtr] = direct_select_address,
        [LLVMLoad] = direct_select_load,
        [LLVMStore] = direct_select_store,
        [LLVMAtomicRMW] = direct_select_atomic,
        [LLVMAtomicCmpXchg] = direct_select_atomic,
        [LLVMExtractElement] = select_part,
        [LLVMInsertElement] = select_part,
        [LLVMExtractValue] = select_part,
        [LLVMInsertValue] = select_part,
        [LLVMShuffleVector] = select_shuffle,
        [LLVMFreeze] = select_forward,
        [LLVMCall] = direct_select_call,
    };
    return (size_t)opcode < sizeof selectors / sizeof selectors[0] ? selectors[opcode] : NULL;
}

static bool is_brain(LLVMTypeRef type) {
    while (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMBFloatTypeKind;
}

/* Arithmetic of bfloats, whose leaves look like those of halves. */
static bool computes_brains(LLVMOpcode opcode, LLVMValueRef insn) {
    switch (opcode) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFNeg:
    case LLVMFCmp:
    case LLVMFPToUI:
    case LLVMFPToSI:
    case LLVMUIToFP:
    case LLVMSIToFP:
    case LLVMFPTrunc:
    case LLVMFPExt:
        return is_brain(LLVMTypeOf(insn)) || is_brain(LLVMTypeOf(LLVMGetOperand(insn, 0)));
    default:
        return false;
    }
}

static void select_block(ir_direct *d, uint32_t b) {
    d->block = b;
    d->blocks[b].first = d->insns.count;
    if (b == 0)
        load_arguments(d);
    direct_fuse_block(d, d->blocks[b].value, d->blocks[b].value_end);
    for (uint32_t v = d->blocks[b].value; v < d->blocks[b].value_end && d->status == EV_OK; v++) {
        LLVMOpcode opcode = (LLVMOpcode)d->values[v].opcode;
        selector select = selector_of(opcode);
        if (computes_brains(opcode, d->values[v].value))
            direct_refuse(d, d->values[v].value, "arithmetic of bfloat");
        else if (select)
            select(d, d->values[v].value);
        else
            direct_refuse(d, d->values[v].value, "this instruction");
    }
    if (d->status == EV_OK)
        direct_end_block(d, b);
    d->blocks[b].end = d->insns.count;
    direct_join_accesses(d, d->blocks[b].first, d->blocks[b].end);
}

enum { KNOWN_PER_VALUE = 8, KNOWN_LEAST = 1024 };

static bool open_lists(ir_direct *d) {
    while (d->known.capacity < KNOWN_LEAST || d->known.capacity < KNOWN_PER_VALUE * d->value_count)
        d->known.capacity = d->known.capacity ? 2 * d->known.capacity : KNOWN_LEAST;
    d->known.items = EV_NEW_ARRAY(d->arena, uint32_t, d->known.capacity);
    DIRECT_ROOM(d, d->insns);
    DIRECT_ROOM(d, d->operands);
    DIRECT_ROOM(d, d->registers);
    DIRECT_ROOM(d, d->copies);
    return d->known.items && ir_map_reserve(&d->callees, d->arena, 16);
}

static void emit(ir_direct *d, ev_str *out) {
    check_attributes(d);
    if (d->status == EV_OK)
        direct_find_blocks(d);
    if (d->status == EV_OK && (!number_values(d) || !open_lists(d)))
        direct_no_memory(d);
    if (d->status == EV_OK) {
        infer_spaces(d);
        direct_note_moves(d);
    }
    for (uint32_t b = 0; b < d->block_count && d->status == EV_OK; b++)
        define_phis(d, b);
    for (uint32_t b = 0; b < d->block_count && d->status == EV_OK; b++)
        select_block(d, b);
    if (d->status == EV_OK)
        direct_allocate(d);
    if (d->status == EV_OK)
        direct_print(d, out);
}

ev_status ir_emit_direct(const ir_base *base, LLVMModuleRef module, ev_str *out, ev_error *err) {
    ir_direct d = {.base = base,
                   .module = module,
                   .function = LLVMGetNamedFunction(module, base->entry),
                   .layout = LLVMGetModuleDataLayout(module),
                   .name = base->entry,
                   .arena = ev_arena_new(),
                   .err = err,
                   .invariant_kind = LLVMGetMDKindIDInContext(base->context, "invariant.load", 14),
                   .loop_kind = LLVMGetMDKindIDInContext(base->context, "llvm.loop", 9)};
    if (!d.arena)
        return ev_fail_memory(err, 1);
    emit(&d, out);
    ev_arena_free(d.arena);
    return d.status;
}
