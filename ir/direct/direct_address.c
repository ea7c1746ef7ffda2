/* Memory of the direct emitter: addresses, loads, stores and atomics.
 *
 * An address is decomposed into a base register and a literal offset, because PTX adds a literal
 * offset for free ([reg+imm]; PTX ISA, "Operands: Addresses"). A getelementptr becomes a sum of
 * scaled indices. A constant is taken out of an extended index only where the sum cannot wrap: an
 * extension of a sum that may wrap is not the sum of the extensions. The address space is followed
 * through casts, so that an access names its space and a generic address is made only where one is
 * needed. The global loads that may use the read-only path (ld.global.nc) are those of LLVM 19's
 * canLowerToLDG. */
#include "ir/direct/direct_internal.h"

#include <assert.h>
#include <string.h>

/* ---- addresses --------------------------------------------------------------------------------
 */

/* The sum so far, as base + offset. */
typedef struct address {
    direct_operand base; /* without an offset of its own */
    int64_t offset;
} address;

static void add_term(ir_direct *d, address *to, direct_operand term) {
    direct_operand base = to->base;
    if (base.kind != DIRECT_REG)
        base = direct_register_of(d, base);
    uint8_t space = to->base.space;
    to->base = direct_pure2(d, "add.s64", DIRECT_RD, base, term);
    to->base.space = space;
}

static void add_scaled(ir_direct *d, address *to, direct_operand index, int64_t scale) {
    uint64_t u = (uint64_t)scale;
    if (scale == 1)
        add_term(d, to, index);
    else if (u && !(u & (u - 1)))
        add_term(d, to,
                 direct_pure2(d, "shl.b64", DIRECT_RD, index,
                              direct_int(DIRECT_R, 0, __builtin_ctzll(u))));
    else if (scale != 0)
        add_term(d, to,
                 direct_pure2(d, "mul.lo.s64", DIRECT_RD, index, direct_int(DIRECT_RD, 0, scale)));
}

static void add_extended(ir_direct *d, address *to, direct_operand index, bool is_signed,
                         int64_t scale) {
    if (index.kind == DIRECT_UNDEF)
        return;
    if (index.kind == DIRECT_INT) {
        to->offset += (is_signed ? index.imm : (int64_t)(uint32_t)index.imm) * scale;
        return;
    }
    if (scale == 1 || scale < 0 || scale > INT32_MAX) {
        const char *op = is_signed ? "cvt.s64.s32" : "cvt.u64.u32";
        add_scaled(d, to, direct_pure1(d, op, DIRECT_RD, index), scale);
    } else if (scale != 0) {
        add_term(d, to,
                 direct_pure2(d, is_signed ? "mul.wide.s32" : "mul.wide.u32", DIRECT_RD, index,
                              direct_int(DIRECT_R, 0, scale)));
    }
}

/* The extension that is applied to a sum. A sum that may wrap in this sense must not be taken
 * apart. */
typedef enum wraps { WRAPS_ANY, WRAPS_SIGNED, WRAPS_UNSIGNED } wraps;

/* x where value is x + constant. */
static LLVMValueRef strip_constant(ir_direct *d, LLVMValueRef value, wraps kind,
                                   int64_t *constant) {
    direct_value *known = direct_value_of(d, value);
    if (!known || (known->opcode != LLVMAdd && known->opcode != LLVMOr))
        return NULL;
    LLVMValueRef by = LLVMGetOperand(value, 1);
    if (!LLVMIsAConstantInt(by))
        return NULL;
    bool ok = true;
    if (known->opcode == LLVMOr)
        ok = LLVMGetIsDisjoint(value);
    else if (kind == WRAPS_SIGNED)
        ok = LLVMGetNSW(value);
    else if (kind == WRAPS_UNSIGNED)
        ok = LLVMGetNUW(value);
    /* of a signed number without the lowest bits, or with a constant of the sign's */
    if (!ok)
        return NULL;
    *constant += kind == WRAPS_UNSIGNED ? (int64_t)LLVMConstIntGetZExtValue(by)
                                        : LLVMConstIntGetSExtValue(by);
    return LLVMGetOperand(value, 0);
}

static LLVMValueRef strip_constants(ir_direct *d, LLVMValueRef value, wraps kind,
                                    int64_t *constant) {
    for (;;) {
        LLVMValueRef inner = strip_constant(d, value, kind, constant);
        if (!inner)
            return value;
        value = inner;
    }
}

static bool add_extension(ir_direct *d, address *to, LLVMValueRef index, int64_t scale) {
    direct_value *known = direct_value_of(d, index);
    if (!known || (known->opcode != LLVMSExt && known->opcode != LLVMZExt))
        return false;
    LLVMValueRef inner = LLVMGetOperand(index, 0);
    if (LLVMGetIntTypeWidth(LLVMTypeOf(inner)) != 32)
        return false;
    bool is_signed = known->opcode == LLVMSExt;
    int64_t constant = 0;
    LLVMValueRef stripped =
        strip_constants(d, inner, is_signed ? WRAPS_SIGNED : WRAPS_UNSIGNED, &constant);
    if (!is_signed && stripped == inner && LLVMGetNNeg(index)) {
        stripped = strip_constants(d, inner, WRAPS_SIGNED, &constant);
        is_signed = stripped != inner;
    }
    to->offset += constant * scale;
    add_extended(d, to, direct_part(d, stripped), is_signed, scale);
    return true;
}

static void add_index(ir_direct *d, address *to, LLVMValueRef index, int64_t scale) {
    if (LLVMIsAConstantInt(index)) {
        to->offset += LLVMConstIntGetSExtValue(index) * scale;
        return;
    }
    LLVMTypeRef type = LLVMTypeOf(index);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
        (LLVMGetIntTypeWidth(type) != 64 && LLVMGetIntTypeWidth(type) != 32)) {
        direct_refuse(d, index, "an index of this type");
        return;
    }
    int64_t constant = 0;
    if (LLVMGetIntTypeWidth(type) == 32) {
        LLVMValueRef inner = strip_constants(d, index, WRAPS_SIGNED, &constant);
        to->offset += constant * scale;
        add_extended(d, to, direct_part(d, inner), true, scale);
        return;
    }
    LLVMValueRef inner = strip_constants(d, index, WRAPS_ANY, &constant);
    to->offset += constant * scale;
    direct_value *known = direct_value_of(d, inner);
    if (known && (known->opcode == LLVMShl || known->opcode == LLVMMul) &&
        LLVMIsAConstantInt(LLVMGetOperand(inner, 1))) {
        int64_t by = LLVMConstIntGetSExtValue(LLVMGetOperand(inner, 1));
        if (known->opcode == LLVMMul ? by > 0 && by < (1 << 20) : by >= 0 && by < 20) {
            by = known->opcode == LLVMShl ? (int64_t)1 << by : by;
            add_index(d, to, LLVMGetOperand(inner, 0), scale * by);
            return;
        }
    }
    if (!add_extension(d, to, inner, scale)) {
        direct_operand part = direct_part(d, inner);
        if (part.kind == DIRECT_INT)
            to->offset += part.imm * scale;
        else if (part.kind == DIRECT_REG)
            add_scaled(d, to, part, scale);
    }
}

static int64_t size_of(ir_direct *d, LLVMTypeRef type) {
    return (int64_t)LLVMABISizeOfType(d->layout, type);
}

static LLVMTypeRef inner_type(ir_direct *d, LLVMTypeRef type, LLVMValueRef index, address *to,
                              bool *scaled) {
    *scaled = LLVMGetTypeKind(type) != LLVMStructTypeKind;
    if (*scaled)
        return LLVMGetElementType(type);
    unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
    to->offset += (int64_t)LLVMOffsetOfElement(d->layout, type, member);
    return LLVMStructGetTypeAtIndex(type, member);
}

static direct_operand element_address(ir_direct *d, LLVMValueRef gep, direct_operand base) {
    address at = {.base = base};
    if (base.kind != DIRECT_INT) {
        at.offset = base.imm;
        at.base.imm = 0;
    }
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned count = (unsigned)LLVMGetNumOperands(gep);
    for (unsigned i = 1; i < count; i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        bool scaled = true;
        if (i > 1)
            type = inner_type(d, type, index, &at, &scaled);
        if (scaled)
            add_index(d, &at, index, size_of(d, type));
    }
    at.base.imm = at.base.kind == DIRECT_INT ? at.base.imm + at.offset : at.offset;
    return at.base;
}

void direct_select_address(ir_direct *d, LLVMValueRef insn) {
    if (LLVMGetTypeKind(LLVMTypeOf(insn)) != LLVMPointerTypeKind) {
        direct_refuse(d, insn, "addresses in vectors");
        return;
    }
    direct_operand result = element_address(d, insn, direct_part(d, LLVMGetOperand(insn, 0)));
    direct_define(d, insn, &result, 1);
}

/* ---- variables --------------------------------------------------------------------------------
 */

/* Makes a valid name by the rules of LLVM's NVPTXAssignValidGlobalNames. */
static const char *symbol_name(ir_direct *d, LLVMValueRef variable) {
    size_t length;
    const char *name = LLVMGetValueName2(variable, &length);
    LLVMLinkage linkage = LLVMGetLinkage(variable);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    char *out = ev_arena_alloc(d->arena, 3 * length + 1), *at = out;
    if (!out) {
        direct_no_memory(d);
        return "";
    }
    for (size_t i = 0; i < length; i++) {
        bool odd = name[i] == '.' || name[i] == '@';
        if (odd && local)
            at = stpcpy(at, "_$_");
        else
            *at++ = name[i];
        if ((odd && !local) ||
            (!odd && name[i] != '_' && name[i] != '$' && !(name[i] >= '0' && name[i] <= '9') &&
             !((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z')))
            direct_refuse(d, NULL, "a variable's name");
    }
    if (length == 0)
        direct_refuse(d, NULL, "a variable without a name");
    return out;
}

static direct_operand symbol_of(ir_direct *d, LLVMValueRef variable) {
    uint8_t space = direct_space_of(d, variable);
    uint32_t i = 0;
    while (i < d->symbols.count && d->symbols.items[i].variable != variable)
        i++;
    if (i == d->symbols.count) {
        direct_symbol symbol = {
            .variable = variable, .name = symbol_name(d, variable), .space = space};
        DIRECT_PUSH(d, d->symbols, symbol);
    }
    return (direct_operand){
        .kind = DIRECT_SYMBOL, .cls = DIRECT_RD, .bits = 64, .space = space, .reg = i};
}

direct_operand direct_constant_address(ir_direct *d, LLVMValueRef value) {
    if (LLVMIsAGlobalVariable(value))
        return symbol_of(d, value);
    LLVMOpcode opcode = LLVMIsAConstantExpr(value) ? LLVMGetConstOpcode(value) : LLVMRet;
    if (opcode == LLVMGetElementPtr && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind)
        return element_address(d, value, direct_part(d, LLVMGetOperand(value, 0)));
    if (opcode == LLVMAddrSpaceCast) {
        direct_operand from = direct_part(d, LLVMGetOperand(value, 0));
        unsigned to = LLVMGetPointerAddressSpace(LLVMTypeOf(value));
        return to == 0 ? from : direct_to_space(d, from, to);
    }
    direct_refuse(d, value, "a constant");
    return (direct_operand){.cls = DIRECT_RD, .bits = 64};
}

/* ---- loads and stores -------------------------------------------------------------------------
 */

typedef struct access {
    const char *verb; /* ld, st */
    bool is_volatile, cached;
    direct_operand address;
    unsigned align;
    direct_leaf leaf;
    unsigned count, bytes; /* scalars, bytes of each */
} access;

static const char *const space_names[] = {"", ".global", "", ".shared", ".const", ".local"};

static const char *name_of(ir_direct *d, const char *const *parts, size_t count) {
    char name[48];
    char *at = name;
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, parts[i]);
    const char *copy = ev_arena_copy(d->arena, name, (size_t)(at - name) + 1);
    if (!copy)
        direct_no_memory(d);
    return copy ? copy : "";
}

static const char *width_name(unsigned together) {
    if (together == 4)
        return ".v4";
    if (together == 2)
        return ".v2";
    return "";
}

static const char *access_name(ir_direct *d, const access *a, unsigned together) {
    const char *const parts[] = {a->verb,
                                 a->is_volatile ? ".volatile" : "",
                                 space_names[a->address.space],
                                 a->cached ? ".nc" : "",
                                 width_name(together),
                                 direct_type_name(&a->leaf)};
    return name_of(d, parts, sizeof parts / sizeof parts[0]);
}

const char *direct_access_name(ir_direct *d, const char *verb, const direct_insn *like,
                               unsigned space, unsigned together) {
    const char *const parts[] = {verb, space_names[space], like->cached ? ".nc" : "",
                                 width_name(together), like->type};
    return name_of(d, parts, sizeof parts / sizeof parts[0]);
}

/* Notes the properties of the access just added, which lies `at` bytes from the address of the
 * whole. */
static void note_access(ir_direct *d, const access *a, unsigned together, unsigned at) {
    if (d->status != EV_OK || a->is_volatile)
        return;
    direct_insn *insn = &d->insns.items[d->insns.count - 1];
    unsigned align = a->align > 16 ? 16 : a->align;
    while (at % align)
        align /= 2;
    insn->bytes = (uint8_t)(together == 1 && a->bytes >= 4 ? a->bytes : 0);
    insn->align = (uint8_t)align;
    insn->cached = a->cached;
    insn->type = direct_type_name(&a->leaf);
}

/* The alignment of an access. LLVM gives an access to null 2^32 bytes, of which the function
 * returns the low bits. */
static unsigned align_of(LLVMValueRef insn) {
    unsigned align = LLVMGetAlignment(insn);
    return align > 0 ? align : 1u << 31;
}

direct_operand direct_address_of(ir_direct *d, LLVMValueRef insn, LLVMValueRef pointer) {
    direct_operand address = direct_part(d, pointer);
    if (address.space > 5 || address.space == 2)
        direct_refuse(d, insn, "an access to this address space");
    int64_t offset = address.kind == DIRECT_INT ? 0 : address.imm;
    if (address.kind == DIRECT_INT || address.kind == DIRECT_UNDEF || offset != (int32_t)offset)
        address = direct_register_of(d, address);
    return address;
}

const char *direct_space_name(unsigned space) {
    return space_names[space];
}

static bool access_make(ir_direct *d, LLVMValueRef insn, LLVMTypeRef type, LLVMValueRef pointer,
                        access *a) {
    direct_leaf leaves[DIRECT_LEAVES];
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    a->count = direct_leaves(type, leaves);
    a->leaf = leaves[0];
    a->bytes = leaves[0].bits == 1 ? 1 : leaves[0].bits / 8u;
    bool aggregate = kind == LLVMStructTypeKind || kind == LLVMArrayTypeKind;
    bool odd = leaves[0].bits != 1 && (leaves[0].bits & (leaves[0].bits - 1));
    if (a->count == 0 || aggregate || odd || (leaves[0].bits < 8 && a->count > 1) ||
        (leaves[0].bits < 8 && leaves[0].bits != 1)) {
        direct_refuse(d, insn, "an access of this type");
        return false;
    }
    a->address = direct_address_of(d, insn, pointer);
    return d->status == EV_OK;
}

/* The number of scalars from the `i`th on that form one access. */
static unsigned together_at(ir_direct *d, LLVMValueRef insn, const access *a, unsigned i) {
    unsigned at = i * a->bytes, align = a->align;
    while (at % align)
        align /= 2;
    for (unsigned n = 4; n >= 1; n /= 2)
        if (i + n <= a->count && n * a->bytes <= 16 && n * a->bytes <= align)
            return n;
    direct_refuse(d, insn, "an access of less than its type's alignment");
    return 1;
}

static direct_operand address_at(const access *a, unsigned i) {
    direct_operand at = a->address;
    at.imm += (int64_t)i * a->bytes;
    return at;
}

void direct_load(ir_direct *d, LLVMValueRef insn, LLVMValueRef pointer, unsigned align,
                 bool is_volatile, bool cached) {
    access a = {.verb = "ld", .is_volatile = is_volatile, .align = align};
    if (!access_make(d, insn, LLVMTypeOf(insn), pointer, &a))
        return;
    if (cached && a.address.space != 1) {
        a.address = direct_to_space(d, a.address, 1);
    }
    a.cached = cached;
    direct_operand result[DIRECT_LEAVES];
    bool bit = a.leaf.cls == DIRECT_P;
    for (unsigned i = 0, n; i < a.count; i += n) {
        n = together_at(d, insn, &a, i);
        for (unsigned k = 0; k < n; k++)
            result[i + k] = direct_new(d, bit ? DIRECT_RS : a.leaf.cls, bit ? 8 : a.leaf.bits);
        direct_operand from = address_at(&a, i);
        direct_insn_add(d, access_name(d, &a, n), DIRECT_LOAD, is_volatile, n, result + i, 1,
                        &from);
        note_access(d, &a, n, i * a.bytes);
    }
    if (bit) {
        direct_operand low =
            direct_pure2(d, "and.b16", DIRECT_RS, result[0], direct_int(DIRECT_RS, 0, 1));
        result[0] = direct_pure2(d, "setp.ne.s16", DIRECT_P, low, direct_int(DIRECT_RS, 0, 0));
    }
    for (unsigned i = 0; i < a.count; i++)
        result[i].space = a.leaf.space;
    direct_define(d, insn, result, a.count);
}

/* Whether nothing writes to the pointer's memory while the kernel runs, by NVPTX's canLowerToLDG.
 */
static bool is_read_only(ir_direct *d, LLVMValueRef pointer, unsigned depth) {
    if (LLVMIsAGlobalVariable(pointer))
        return LLVMIsGlobalConstant(pointer);
    direct_value *known = direct_value_of(d, pointer);
    if (!known || depth == 0)
        return false;
    if (LLVMIsAArgument(pointer))
        return d->read_only[known - d->values];
    switch (known->opcode) {
    case LLVMGetElementPtr:
    case LLVMAddrSpaceCast:
    case LLVMBitCast:
        return is_read_only(d, LLVMGetOperand(pointer, 0), depth - 1);
    case LLVMSelect:
        return is_read_only(d, LLVMGetOperand(pointer, 1), depth - 1) &&
               is_read_only(d, LLVMGetOperand(pointer, 2), depth - 1);
    case LLVMPHI:
        break;
    default:
        return false;
    }
    for (unsigned i = 0; i < LLVMCountIncoming(pointer); i++) {
        LLVMValueRef from = LLVMGetIncomingValue(pointer, i);
        direct_value *step = direct_value_of(d, from);
        /* a pointer that a loop advances */
        if (step && step->opcode == LLVMGetElementPtr && LLVMGetOperand(from, 0) == pointer)
            continue;
        if (from != pointer && !is_read_only(d, from, depth - 1))
            return false;
    }
    return true;
}

void direct_select_load(ir_direct *d, LLVMValueRef insn) {
    if (LLVMGetOrdering(insn) != LLVMAtomicOrderingNotAtomic) {
        direct_refuse(d, insn, "an atomic load");
        return;
    }
    LLVMValueRef pointer = LLVMGetOperand(insn, 0);
    bool is_volatile = LLVMGetVolatile(insn);
    bool cached = !is_volatile && direct_space_of(d, pointer) == 1 &&
                  (LLVMGetMetadata(insn, d->invariant_kind) != NULL || is_read_only(d, pointer, 6));
    direct_load(d, insn, pointer, align_of(insn), is_volatile, cached);
}

void direct_select_store(ir_direct *d, LLVMValueRef insn) {
    if (LLVMGetOrdering(insn) != LLVMAtomicOrderingNotAtomic) {
        direct_refuse(d, insn, "an atomic store");
        return;
    }
    LLVMValueRef value = LLVMGetOperand(insn, 0);
    access a = {.verb = "st", .is_volatile = LLVMGetVolatile(insn), .align = align_of(insn)};
    if (!access_make(d, insn, LLVMTypeOf(value), LLVMGetOperand(insn, 1), &a))
        return;
    direct_operand room[DIRECT_LEAVES], sources[1 + DIRECT_LEAVES];
    unsigned count;
    const direct_operand *parts = direct_parts(d, value, room, &count);
    for (unsigned i = 0, n; i < a.count; i += n) {
        n = together_at(d, insn, &a, i);
        sources[0] = address_at(&a, i);
        for (unsigned k = 0; k < n; k++) {
            direct_operand part = parts[i + k];
            if (a.leaf.is_pointer)
                part = direct_to_space(d, part, a.leaf.space);
            if (a.leaf.cls == DIRECT_P)
                part = direct_pure3(d, "selp.b16", DIRECT_RS, direct_int(DIRECT_RS, 0, 1),
                                    direct_int(DIRECT_RS, 0, 0), part);
            sources[1 + k] = direct_register_of(d, part);
        }
        direct_insn_add(d, access_name(d, &a, n), DIRECT_STORE, true, 0, NULL, 1 + n, sources);
        note_access(d, &a, n, i * a.bytes);
    }
}

/* ---- atomics ----------------------------------------------------------------------------------
 */

static const char *atomic_verb(LLVMAtomicRMWBinOp op, const direct_leaf *leaf) {
    bool wide = leaf->bits == 64;
    switch (op) {
    case LLVMAtomicRMWBinOpXchg:
        return wide ? ".exch.b64" : ".exch.b32";
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub:
        return wide ? ".add.u64" : ".add.u32";
    case LLVMAtomicRMWBinOpAnd:
        return wide ? ".and.b64" : ".and.b32";
    case LLVMAtomicRMWBinOpOr:
        return wide ? ".or.b64" : ".or.b32";
    case LLVMAtomicRMWBinOpXor:
        return wide ? ".xor.b64" : ".xor.b32";
    case LLVMAtomicRMWBinOpMax:
        return wide ? ".max.s64" : ".max.s32";
    case LLVMAtomicRMWBinOpMin:
        return wide ? ".min.s64" : ".min.s32";
    case LLVMAtomicRMWBinOpUMax:
        return wide ? ".max.u64" : ".max.u32";
    case LLVMAtomicRMWBinOpUMin:
        return wide ? ".min.u64" : ".min.u32";
    case LLVMAtomicRMWBinOpFAdd:
        if (leaf->cls == DIRECT_F)
            return ".add.f32";
        if (leaf->cls == DIRECT_FD)
            return ".add.f64";
        return NULL;
    case LLVMAtomicRMWBinOpUIncWrap:
        return wide ? NULL : ".inc.u32";
    case LLVMAtomicRMWBinOpUDecWrap:
        return wide ? NULL : ".dec.u32";
    default:
        return NULL;
    }
}

static void atomic(ir_direct *d, LLVMValueRef insn, const access *a, const char *verb,
                   unsigned count, const direct_operand *values, direct_operand *result) {
    if (!verb || a->bytes < 4 || a->align < a->bytes || a->count != 1 || a->leaf.is_pointer) {
        direct_refuse(d, insn, "this atomic");
        return;
    }
    const char *op = ev_arena_printf(d->arena, "atom%s%s", space_names[a->address.space], verb);
    direct_operand sources[3] = {a->address};
    for (unsigned i = 0; i < count; i++)
        sources[1 + i] = direct_register_of(d, values[i]);
    *result = direct_new(d, a->leaf.cls, a->leaf.bits);
    if (!op)
        direct_no_memory(d);
    else
        direct_insn_add(d, op, DIRECT_LOAD, true, 1, result, 1 + count, sources);
}

static void select_exchange(ir_direct *d, LLVMValueRef insn) {
    access a = {.align = align_of(insn)};
    LLVMValueRef expected = LLVMGetOperand(insn, 1);
    if (!access_make(d, insn, LLVMTypeOf(expected), LLVMGetOperand(insn, 0), &a))
        return;
    direct_operand values[] = {direct_part(d, expected), direct_part(d, LLVMGetOperand(insn, 2))};
    direct_operand result[2] = {{.imm = 0}};
    atomic(d, insn, &a, a.bytes == 8 ? ".cas.b64" : ".cas.b32", 2, values, result);
    if (d->status != EV_OK)
        return;
    result[1] = direct_pure2(d, a.bytes == 8 ? "setp.eq.s64" : "setp.eq.s32", DIRECT_P, result[0],
                             values[0]);
    result[1].bits = 1;
    direct_define(d, insn, result, 2);
}

void direct_select_atomic(ir_direct *d, LLVMValueRef insn) {
    if (LLVMGetInstructionOpcode(insn) == LLVMAtomicCmpXchg) {
        select_exchange(d, insn);
        return;
    }
    access a = {.align = align_of(insn)};
    if (!access_make(d, insn, LLVMTypeOf(insn), LLVMGetOperand(insn, 0), &a))
        return;
    LLVMAtomicRMWBinOp op = LLVMGetAtomicRMWBinOp(insn);
    direct_operand result, value = direct_part(d, LLVMGetOperand(insn, 1));
    if (op == LLVMAtomicRMWBinOpXchg && a.leaf.is_float) {
        direct_refuse(d, insn, "this atomic");
        return;
    }
    if (op == LLVMAtomicRMWBinOpSub)
        value = direct_integer(d, insn, LLVMSub, direct_int(a.leaf.cls, a.leaf.bits, 0), value);
    atomic(d, insn, &a, atomic_verb(op, &a.leaf), 1, &value, &result);
    if (d->status == EV_OK)
        direct_define(d, insn, &result, 1);
}
