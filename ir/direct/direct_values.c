/* Values of the direct emitter: their scalars, constants and registers, and the table of pure
 * instructions that are computed once.
 *
 * A value of LLVM has up to DIRECT_LEAVES scalars, one for each leaf of a structure or vector.
 * direct_pure1, direct_pure2 and the like add an instruction without side effects, or return the
 * result of an equal instruction that dominates the current place. Equality ignores the bits of a
 * register above the value's width. `direct_refuse` records the first construct that the emitter
 * cannot translate; the first refusal ends the translation. */
#include "ir/direct/direct_internal.h"

#include <assert.h>
#include <string.h>

/* ---- failing ----------------------------------------------------------------------------------
 */

void direct_refuse(ir_direct *d, LLVMValueRef insn, const char *why) {
    if (d->status != EV_OK)
        return;
    char *text = insn ? LLVMPrintValueToString(insn) : NULL;
    d->status = ev_fail(d->err, EV_BAD, "the direct emitter has no way for %s%s%.200s", why,
                        text ? ":" : "", text ? text : "");
    LLVMDisposeMessage(text);
}

void direct_no_memory(ir_direct *d) {
    if (d->status == EV_OK)
        d->status = ev_fail_memory(d->err, 1);
}

void *direct_grow(ir_direct *d, void *items, uint32_t *capacity, uint32_t count, size_t size) {
    uint32_t room = count ? 2 * count : 256;
    void *grown = ev_arena_array(d->arena, room, size);
    if (!grown) {
        direct_no_memory(d);
        return NULL;
    }
    if (count > 0)
        memcpy(grown, items, count * size);
    *capacity = room;
    return grown;
}

/* ---- types ------------------------------------------------------------------------------------
 */

static bool leaf_of_integer(unsigned bits, direct_leaf *out) {
    if (bits > 64)
        return false;
    out->bits = (uint8_t)bits;
    if (bits == 1)
        out->cls = DIRECT_P;
    else if (bits <= 16)
        out->cls = DIRECT_RS;
    else if (bits <= 32)
        out->cls = DIRECT_R;
    else
        out->cls = DIRECT_RD;
    return true;
}

bool direct_leaf_of(LLVMTypeRef type, direct_leaf *out) {
    *out = (direct_leaf){0};
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return leaf_of_integer(LLVMGetIntTypeWidth(type), out);
    case LLVMFloatTypeKind:
        *out = (direct_leaf){.cls = DIRECT_F, .bits = 32, .is_float = true};
        return true;
    case LLVMDoubleTypeKind:
        *out = (direct_leaf){.cls = DIRECT_FD, .bits = 64, .is_float = true};
        return true;
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind: /* only moved: direct.c refuses arithmetic */
        *out = (direct_leaf){.cls = DIRECT_RS, .bits = 16, .is_float = true};
        return true;
    case LLVMPointerTypeKind:
        *out = (direct_leaf){.cls = DIRECT_RD,
                             .bits = 64,
                             .is_pointer = true,
                             .space = (uint8_t)LLVMGetPointerAddressSpace(type)};
        return true;
    default:
        return false;
    }
}

static unsigned leaves_of_many(LLVMTypeRef type, unsigned count,
                               direct_leaf leaves[DIRECT_LEAVES]) {
    bool is_struct = LLVMGetTypeKind(type) == LLVMStructTypeKind;
    unsigned total = 0;
    for (unsigned i = 0; i < count; i++) {
        direct_leaf inner[DIRECT_LEAVES];
        LLVMTypeRef part = is_struct ? LLVMStructGetTypeAtIndex(type, i) : LLVMGetElementType(type);
        unsigned n = direct_leaves(part, inner);
        if (n == 0 || total + n > DIRECT_LEAVES)
            return 0;
        memcpy(leaves + total, inner, n * sizeof *inner);
        total += n;
    }
    return total;
}

unsigned direct_leaves(LLVMTypeRef type, direct_leaf leaves[DIRECT_LEAVES]) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMVectorTypeKind:
        return leaves_of_many(type, LLVMGetVectorSize(type), leaves);
    case LLVMArrayTypeKind: {
        uint64_t count = LLVMGetArrayLength2(type);
        return count <= DIRECT_LEAVES ? leaves_of_many(type, (unsigned)count, leaves) : 0;
    }
    case LLVMStructTypeKind:
        return leaves_of_many(type, LLVMCountStructElementTypes(type), leaves);
    default:
        return direct_leaf_of(type, leaves) ? 1 : 0;
    }
}

/* ---- constants --------------------------------------------------------------------------------
 */

direct_operand direct_int(direct_class cls, unsigned bits, int64_t value) {
    unsigned unused = 64 - (bits ? bits : 64);
    return (direct_operand){.kind = DIRECT_INT,
                            .cls = (uint8_t)cls,
                            .bits = (uint8_t)bits,
                            .imm = (int64_t)((uint64_t)value << unused) >> unused};
}

static direct_operand constant_real(LLVMValueRef value, const direct_leaf *leaf) {
    LLVMBool lost;
    double number = LLVMConstRealGetDouble(value, &lost);
    int64_t bits = 0;
    bool is_brain = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMBFloatTypeKind;
    if (leaf->cls == DIRECT_FD) {
        memcpy(&bits, &number, sizeof number);
    } else if (leaf->cls == DIRECT_F) {
        float narrow = (float)number;
        uint32_t half;
        memcpy(&half, &narrow, sizeof narrow);
        bits = half;
    } else if (is_brain) { /* the upper half of a float */
        float narrow = (float)number;
        int32_t whole;
        memcpy(&whole, &narrow, sizeof narrow);
        bits = whole >> 16;
    } else {
        _Float16 narrow = (_Float16)number;
        uint16_t half;
        memcpy(&half, &narrow, sizeof narrow);
        bits = (int16_t)half;
    }
    return (direct_operand){
        .kind = DIRECT_INT, .cls = (uint8_t)leaf->cls, .bits = leaf->bits, .imm = bits};
}

static direct_operand constant_scalar(ir_direct *d, LLVMValueRef value, const direct_leaf *leaf) {
    switch (LLVMGetValueKind(value)) {
    case LLVMConstantIntValueKind:
        return direct_int(leaf->cls, leaf->bits, LLVMConstIntGetSExtValue(value));
    case LLVMConstantFPValueKind:
        return constant_real(value, leaf);
    case LLVMConstantPointerNullValueKind:
        return (direct_operand){
            .kind = DIRECT_INT, .cls = DIRECT_RD, .bits = 64, .space = leaf->space};
    case LLVMUndefValueValueKind:
    case LLVMPoisonValueValueKind:
        return (direct_operand){
            .cls = (uint8_t)leaf->cls, .bits = leaf->bits, .space = leaf->space};
    case LLVMConstantAggregateZeroValueKind:
        return direct_int(leaf->cls, leaf->bits, 0);
    default:
        return direct_constant_address(d, value);
    }
}

static unsigned constant_parts(ir_direct *d, LLVMValueRef value, LLVMTypeRef type,
                               direct_operand *room) {
    direct_leaf leaf;
    if (direct_leaf_of(type, &leaf)) {
        room[0] = constant_scalar(d, value, &leaf);
        return 1;
    }
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    unsigned count;
    if (kind == LLVMVectorTypeKind)
        count = LLVMGetVectorSize(type);
    else if (kind == LLVMArrayTypeKind)
        count = (unsigned)LLVMGetArrayLength2(type);
    else
        count = LLVMCountStructElementTypes(type);
    unsigned total = 0;
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef part = kind == LLVMStructTypeKind ? LLVMStructGetTypeAtIndex(type, i)
                                                      : LLVMGetElementType(type);
        LLVMValueRef element = LLVMGetAggregateElement(value, i);
        total += constant_parts(d, element ? element : LLVMGetUndef(part), part, room + total);
    }
    return total;
}

/* ---- parts of values --------------------------------------------------------------------------
 */

direct_value *direct_value_of(const ir_direct *d, LLVMValueRef value) {
    uint32_t index = ir_map_get(&d->map, value);
    return index == IR_NONE ? NULL : &d->values[index];
}

const direct_operand *direct_parts(ir_direct *d, LLVMValueRef value,
                                   direct_operand room[DIRECT_LEAVES], unsigned *count) {
    direct_value *known = direct_value_of(d, value);
    if (known && known->parts) {
        *count = known->part_count;
        return known->parts;
    }
    direct_leaf leaves[DIRECT_LEAVES];
    *count = direct_leaves(LLVMTypeOf(value), leaves);
    memset(room, 0, DIRECT_LEAVES * sizeof *room);
    if (*count == 0 || known)
        direct_refuse(d, value, known ? "a use before its definition" : "a value's type");
    else
        constant_parts(d, value, LLVMTypeOf(value), room);
    return room;
}

direct_operand direct_part(ir_direct *d, LLVMValueRef value) {
    direct_value *known = direct_value_of(d, value);
    if (known && known->part_count == 1)
        return known->parts[0];
    direct_operand room[DIRECT_LEAVES];
    unsigned count;
    const direct_operand *parts = direct_parts(d, value, room, &count);
    if (count != 1)
        direct_refuse(d, value, "many values in one's place");
    return parts[0];
}

void direct_define(ir_direct *d, LLVMValueRef value, const direct_operand *parts, unsigned count) {
    direct_value *known = direct_value_of(d, value);
    assert(known);
    direct_operand *copy = EV_NEW_ARRAY(d->arena, direct_operand, count ? count : 1);
    if (!copy) {
        direct_no_memory(d);
        return;
    }
    memcpy(copy, parts, count * sizeof *parts);
    known->parts = copy;
    known->part_count = (uint8_t)count;
}

/* ---- instructions -----------------------------------------------------------------------------
 */

direct_operand direct_new(ir_direct *d, direct_class cls, unsigned bits) {
    direct_register reg = {.insn = IR_NONE,
                           .block = d->block,
                           .copies = IR_NONE,
                           .parent = d->registers.count,
                           .uses = IR_NONE,
                           .cls = (uint8_t)cls};
    DIRECT_PUSH(d, d->registers, reg);
    return (direct_operand){.kind = DIRECT_REG,
                            .cls = (uint8_t)cls,
                            .bits = (uint8_t)bits,
                            .reg = d->registers.count - 1};
}

void direct_insn_add(ir_direct *d, const char *op, direct_shape shape, bool effect,
                     unsigned results, const direct_operand *result, unsigned sources,
                     const direct_operand *source) {
    direct_insn insn = {.op = op,
                        .first = d->operands.count,
                        .results = (uint8_t)results,
                        .sources = (uint8_t)sources,
                        .shape = (uint8_t)shape,
                        .needed = effect};
    if (d->operands.capacity - d->operands.count < results + sources)
        DIRECT_ROOM(d, d->operands);
    if (d->status != EV_OK)
        return; /* operands that got no room must not be looked for */
    for (unsigned i = 0; i < results; i++) {
        d->registers.items[result[i].reg].insn = d->insns.count;
        DIRECT_PUSH(d, d->operands, result[i]);
    }
    for (unsigned i = 0; i < sources; i++)
        DIRECT_PUSH(d, d->operands, source[i]);
    DIRECT_PUSH(d, d->insns, insn);
}

static uint64_t hash_of(const char *op, unsigned count, const direct_operand *sources) {
    uint64_t hash = (uint64_t)(uintptr_t)op;
    for (unsigned i = 0; i < count; i++) {
        uint64_t words[2];
        memcpy(words, &sources[i], sizeof words);
        hash = (hash ^ words[0]) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ (hash >> 32) ^ words[1]) * 0xc2b2ae3d27d4eb4fu;
    }
    return hash ^ (hash >> 29);
}

_Static_assert(sizeof(direct_operand) == 16, "two words, hashed and compared as such");

/* The slot of the instruction in the table, or the empty one where it belongs. */
static uint32_t *find_known(ir_direct *d, const char *op, unsigned count,
                            const direct_operand *sources) {
    uint32_t mask = d->known.capacity - 1;
    uint32_t slot = (uint32_t)hash_of(op, count, sources) & mask;
    for (;; slot = (slot + 1) & mask) {
        uint32_t *at = &d->known.items[slot];
        if (*at == 0)
            return at;
        const direct_insn *insn = &d->insns.items[*at - 1];
        const direct_operand *known = &d->operands.items[insn->first + 1];
        if (insn->op == op && insn->sources == count &&
            (count == 0 || memcmp(known, sources, count * sizeof *sources) == 0))
            return at;
    }
}

direct_operand direct_pure(ir_direct *d, const char *op, direct_class cls, unsigned bits,
                           unsigned count, const direct_operand *sources) {
    uint32_t *slot = find_known(d, op, count, sources);
    if (*slot) {
        direct_operand known = d->operands.items[d->insns.items[*slot - 1].first];
        uint32_t home = d->registers.items[known.reg].block;
        if (ir_dominance_over(&d->dominance, home, d->block)) {
            known.bits = (uint8_t)bits;
            return known;
        }
    }
    direct_operand result = direct_new(d, cls, bits);
    direct_insn_add(d, op, DIRECT_PLAIN, false, 1, &result, count, sources);
    if (2 * d->known.count < d->known.capacity) {
        d->known.count += *slot == 0;
        *slot = d->insns.count;
    }
    return result;
}

static unsigned bits_of_class(direct_class cls) {
    static const uint8_t bits[] = {1, 16, 32, 64, 32, 64};
    return bits[cls];
}

direct_operand direct_pure1(ir_direct *d, const char *op, direct_class cls, direct_operand a) {
    direct_operand source = direct_source(d, a);
    return direct_pure(d, op, cls, bits_of_class(cls), 1, &source);
}

direct_operand direct_pure2(ir_direct *d, const char *op, direct_class cls, direct_operand a,
                            direct_operand b) {
    direct_operand sources[] = {direct_source(d, a), direct_source(d, b)};
    return direct_pure(d, op, cls, bits_of_class(cls), 2, sources);
}

direct_operand direct_pure3(ir_direct *d, const char *op, direct_class cls, direct_operand a,
                            direct_operand b, direct_operand c) {
    direct_operand sources[] = {direct_source(d, a), direct_source(d, b), direct_source(d, c)};
    return direct_pure(d, op, cls, bits_of_class(cls), 3, sources);
}

/* ---- forms of an operand ----------------------------------------------------------------------
 */

static const char *const moves[] = {"mov.pred", "mov.u16", "mov.u32",
                                    "mov.u64",  "mov.f32", "mov.f64"};

/* An operand for comparison: the width of a value and its address space do not distinguish
 * instructions. */
static direct_operand canonical(direct_operand operand) {
    operand.bits = 0;
    operand.space = 0;
    return operand;
}

direct_operand direct_source(ir_direct *d, direct_operand operand) {
    if (operand.kind == DIRECT_UNDEF) {
        operand.kind = DIRECT_INT;
        operand.imm = 0;
    }
    /* a predicate is no literal either */
    if (operand.kind == DIRECT_SYMBOL || (operand.kind == DIRECT_REG && operand.imm != 0) ||
        (operand.kind == DIRECT_INT && operand.cls == DIRECT_P))
        operand = direct_register_of(d, operand);
    return canonical(operand);
}

direct_operand direct_register_of(ir_direct *d, direct_operand operand) {
    unsigned bits = operand.bits, space = operand.space;
    int64_t offset = operand.kind == DIRECT_INT ? 0 : operand.imm;
    if (operand.kind == DIRECT_REG && offset == 0)
        return operand;
    direct_operand source = canonical(operand);
    if (operand.kind == DIRECT_UNDEF)
        source.kind = DIRECT_INT;
    if (operand.kind == DIRECT_SYMBOL || operand.kind == DIRECT_REG)
        source.imm = 0;
    if (operand.kind != DIRECT_REG)
        source = canonical(direct_pure(d, moves[operand.cls], operand.cls, bits, 1, &source));
    if (offset != 0) {
        direct_operand sum[] = {source, direct_int(DIRECT_RD, 0, offset)};
        source = direct_pure(d, "add.s64", DIRECT_RD, bits, 2, sum);
    }
    source.bits = (uint8_t)bits;
    source.space = (uint8_t)space;
    return source;
}

direct_operand direct_to_space(ir_direct *d, direct_operand pointer, unsigned space) {
    static const char *const to_generic[] = {
        NULL, "cvta.global.u64", NULL, "cvta.shared.u64", "cvta.const.u64", "cvta.local.u64"};
    static const char *const from_generic[] = {NULL,
                                               "cvta.to.global.u64",
                                               NULL,
                                               "cvta.to.shared.u64",
                                               "cvta.to.const.u64",
                                               "cvta.to.local.u64"};
    unsigned from = pointer.space;
    if (from == space || pointer.kind == DIRECT_UNDEF) {
        pointer.space = (uint8_t)space;
        return pointer;
    }
    const char *op = NULL;
    if (from == 0 && space <= 5)
        op = from_generic[space];
    else if (space == 0 && from <= 5)
        op = to_generic[from];
    if (!op) {
        direct_refuse(d, NULL, "a pointer from one named address space to another");
        return pointer;
    }
    direct_operand source = direct_register_of(d, pointer);
    direct_operand result = direct_pure1(d, op, DIRECT_RD, source);
    result.space = (uint8_t)space;
    return result;
}

direct_operand direct_extended(ir_direct *d, direct_operand operand, bool is_signed) {
    unsigned bits = operand.bits, full = 64;
    if (operand.cls == DIRECT_RS)
        full = 16;
    else if (operand.cls == DIRECT_R)
        full = 32;
    if (operand.kind == DIRECT_UNDEF || bits == full)
        return operand;
    if (operand.kind == DIRECT_INT) {
        uint64_t mask = ((uint64_t)1 << bits) - 1;
        return direct_int(operand.cls, full,
                          is_signed ? operand.imm : (int64_t)((uint64_t)operand.imm & mask));
    }
    if (bits == 8)
        return direct_pure1(d, is_signed ? "cvt.s16.s8" : "cvt.u16.u8", DIRECT_RS, operand);
    static const char *const left[] = {"shl.b16", "shl.b32", "shl.b64"};
    static const char *const down[] = {"shr.s16", "shr.s32", "shr.s64"};
    static const char *const mask[] = {"and.b16", "and.b32", "and.b64"};
    unsigned at = (unsigned)operand.cls - DIRECT_RS;
    if (!is_signed)
        return direct_pure2(d, mask[at], operand.cls, operand,
                            direct_int(operand.cls, 0, (int64_t)(((uint64_t)1 << bits) - 1)));
    direct_operand by = direct_int(DIRECT_R, 32, full - bits);
    direct_operand high = direct_pure2(d, left[at], operand.cls, operand, by);
    return direct_pure2(d, down[at], operand.cls, high, by);
}

/* ---- address spaces ---------------------------------------------------------------------------
 */

uint8_t direct_space_of(ir_direct *d, LLVMValueRef pointer) {
    direct_value *known = direct_value_of(d, pointer);
    if (known)
        return known->space;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
    if (LLVMIsUndef(pointer))
        return DIRECT_ANY_SPACE;
    if (LLVMIsAGlobalVariable(pointer))
        return (uint8_t)(space ? space : 1);
    if (LLVMIsAConstantExpr(pointer)) {
        LLVMOpcode opcode = LLVMGetConstOpcode(pointer);
        LLVMValueRef from = LLVMGetOperand(pointer, 0);
        if (opcode == LLVMGetElementPtr ||
            (opcode == LLVMAddrSpaceCast && LLVMGetPointerAddressSpace(LLVMTypeOf(from)) != 0))
            return direct_space_of(d, from);
    }
    return (uint8_t)space;
}
