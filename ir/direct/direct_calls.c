/* Calls of the direct emitter: each intrinsic is a row of direct_intrinsics.def, which names the
 * handler, the PTX instruction and the order of its arguments.
 *
 * The handlers call_NOTHING, call_PURE and so on are the ways to translate a row. A call of a
 * function that has no row is refused, and LLVM generates the code. Name suffixes of types are
 * ignored where all types are treated alike: "llvm.fma.v2f32" has the row of "llvm.fma.f32". */
#include "ir/direct/direct_internal.h"

#include <string.h>

typedef struct intrinsic {
    const char *name;
    void (*select)(ir_direct *d, LLVMValueRef call, const struct intrinsic *row);
    const char *op;
    const char *arguments;
} intrinsic;

/* ---- one instruction --------------------------------------------------------------------------
 */

static void call_NOTHING(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    (void)d, (void)call, (void)row;
}

static direct_operand argument(ir_direct *d, LLVMValueRef call, const intrinsic *row, unsigned i,
                               unsigned element) {
    direct_operand room[DIRECT_LEAVES];
    unsigned count;
    const direct_operand *parts =
        direct_parts(d, LLVMGetOperand(call, (unsigned)(row->arguments[i] - '0')), room, &count);
    return parts[element < count ? element : 0];
}

static void call_PURE(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_leaf leaves[DIRECT_LEAVES];
    direct_operand result[DIRECT_LEAVES], sources[4];
    unsigned count = direct_leaves(LLVMTypeOf(call), leaves);
    unsigned arguments = (unsigned)strlen(row->arguments);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < arguments; k++)
            sources[k] = direct_source(d, argument(d, call, row, k, i));
        result[i] = direct_pure(d, row->op, leaves[i].cls, leaves[i].bits, arguments, sources);
    }
    direct_define(d, call, result, count);
}

/* The operands that may be literals: a barrier's number and a warp's mask, but not a value that
 * moves between lanes. */
static void call_EFFECT(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_leaf leaves[DIRECT_LEAVES];
    direct_operand result[DIRECT_LEAVES], sources[4];
    bool silent = LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMVoidTypeKind;
    unsigned results = silent ? 0 : direct_leaves(LLVMTypeOf(call), leaves);
    unsigned arguments = (unsigned)strlen(row->arguments);
    for (unsigned k = 0; k < arguments; k++) {
        direct_operand source = argument(d, call, row, k, 0);
        sources[k] =
            k == 0 && results > 0 ? direct_register_of(d, source) : direct_source(d, source);
    }
    for (unsigned i = 0; i < results; i++)
        result[i] = direct_new(d, leaves[i].cls, leaves[i].bits);
    direct_insn_add(d, row->op, results == 2 ? DIRECT_PAIR : DIRECT_PLAIN, true, results, result,
                    arguments, sources);
    if (results > 0)
        direct_define(d, call, result, results);
}

static void call_FLAG(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    call_EFFECT(d, call, row);
}

static void call_SPECIAL(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand result = direct_pure(d, row->op, DIRECT_R, 32, 0, NULL);
    direct_define(d, call, &result, 1);
}

/* ---- several ----------------------------------------------------------------------------------
 */

/* Barriers with a reduction over all threads. */
static direct_operand barrier(ir_direct *d, LLVMValueRef call, const intrinsic *row,
                              direct_class cls) {
    direct_operand zero = direct_int(DIRECT_R, 0, 0);
    direct_operand says =
        direct_pure2(d, "setp.ne.s32", DIRECT_P, direct_part(d, LLVMGetOperand(call, 0)), zero);
    direct_operand result = direct_new(d, cls, cls == DIRECT_P ? 1 : 32);
    direct_operand sources[] = {zero, says};
    direct_insn_add(d, row->op, DIRECT_PLAIN, true, 1, &result, 2, sources);
    return result;
}

static void call_BARRIER_VOTE(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand vote = barrier(d, call, row, DIRECT_P);
    direct_operand result = direct_pure3(d, "selp.b32", DIRECT_R, direct_int(DIRECT_R, 0, 1),
                                         direct_int(DIRECT_R, 0, 0), vote);
    direct_define(d, call, &result, 1);
}

static void call_BARRIER_COUNT(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand result = barrier(d, call, row, DIRECT_R);
    direct_define(d, call, &result, 1);
}

static void call_LDG(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    (void)row;
    unsigned align = (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(call, 1));
    direct_load(d, call, LLVMGetOperand(call, 0), align, false, true);
}

static void call_MATRIX(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    size_t length;
    (void)row;
    direct_select_matrix(d, call, LLVMGetValueName2(LLVMGetCalledValue(call), &length));
}

static void call_COPY(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_select_copy(d, call, row->op, row->arguments);
}

/* copysign as LLVM emits it: the absolute value, negated if the sign bit is set. */
static void call_COPYSIGN(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand result[DIRECT_LEAVES];
    direct_leaf leaves[DIRECT_LEAVES];
    unsigned count = direct_leaves(LLVMTypeOf(call), leaves);
    for (unsigned i = 0; i < count; i++) {
        direct_operand size = direct_pure1(d, "abs.f32", DIRECT_F, argument(d, call, row, 0, i));
        direct_operand minus = direct_pure1(d, "neg.f32", DIRECT_F, size);
        direct_operand sign = argument(d, call, row, 1, i);
        direct_operand bits = direct_pure1(d, "mov.b32", DIRECT_R, direct_register_of(d, sign));
        direct_operand below =
            direct_pure2(d, "setp.lt.s32", DIRECT_P, bits, direct_int(DIRECT_R, 0, 0));
        result[i] = direct_pure3(d, "selp.f32", DIRECT_F, minus, size, below);
    }
    direct_define(d, call, result, count);
}

/* Counts of the bits of 64-bit values are 32-bit results. */
static void call_WIDE_COUNT(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand count = direct_pure1(d, row->op, DIRECT_R, argument(d, call, row, 0, 0));
    direct_operand result = direct_pure1(d, "cvt.u64.u32", DIRECT_RD, count);
    direct_define(d, call, &result, 1);
}

static void call_TRAILING(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand reversed = direct_pure1(d, "brev.b32", DIRECT_R, argument(d, call, row, 0, 0));
    direct_operand result = direct_pure1(d, row->op, DIRECT_R, reversed);
    direct_define(d, call, &result, 1);
}

/* A saturating difference: the larger of the two, less the second. */
static void call_FLOOR_ZERO(ir_direct *d, LLVMValueRef call, const intrinsic *row) {
    direct_operand from = argument(d, call, row, 0, 0), less = argument(d, call, row, 1, 0);
    direct_operand larger = direct_pure2(d, row->op, DIRECT_R, from, less);
    direct_operand result = direct_pure2(d, "sub.s32", DIRECT_R, larger, less);
    direct_define(d, call, &result, 1);
}

/* ---- the table --------------------------------------------------------------------------------
 */

static const intrinsic table[] = {
#define DIRECT_CALL(name, how, op, arguments) {name, call_##how, op, arguments},
#include "ir/direct/direct_intrinsics.def"
#undef DIRECT_CALL
};

static const intrinsic *find_row(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* "llvm.fma.v2f32" is found as "llvm.fma.f32", names of loads and of matrices by their beginning.
 */
static const intrinsic *find_intrinsic(const char *name) {
    const intrinsic *row = find_row(name);
    char scalar[96];
    size_t length = strlen(name);
    const char *dot = strrchr(name, '.');
    if (row || length >= sizeof scalar || !dot)
        return row;
    if (strncmp(name, "llvm.nvvm.ldg.global.", 21) == 0) {
        memcpy(scalar, name, 22);
        scalar[22] = '\0';
        return find_row(scalar);
    }
    if (strncmp(name, "llvm.nvvm.wmma.", 15) == 0)
        return find_row("llvm.nvvm.wmma");
    size_t digits = dot[1] == 'v' ? strspn(dot + 2, "0123456789") : 0;
    if (digits == 0)
        return NULL;
    memcpy(scalar, name, (size_t)(dot - name) + 1);
    memcpy(scalar + (dot - name) + 1, dot + 2 + digits, length - (size_t)(dot - name) - 1 - digits);
    row = find_row(scalar);
    return row && (row->select == call_PURE || row->select == call_COPYSIGN) ? row : NULL;
}

static const intrinsic *intrinsic_of(ir_direct *d, LLVMValueRef callee) {
    uint32_t known = ir_map_get(&d->callees, callee);
    if (known != IR_NONE)
        return known ? &table[known - 1] : NULL;
    size_t length;
    const char *name = LLVMGetValueName2(callee, &length);
    const intrinsic *row = LLVMIsAFunction(callee) ? find_intrinsic(name) : NULL;
    if (!ir_map_reserve(&d->callees, d->arena, d->callees.count + 1))
        direct_no_memory(d);
    else
        ir_map_put(&d->callees, callee, row ? (uint32_t)(row - table) + 1 : 0);
    return row;
}

void direct_select_call(ir_direct *d, LLVMValueRef insn) {
    const intrinsic *row = intrinsic_of(d, LLVMGetCalledValue(insn));
    if (row)
        row->select(d, insn, row);
    else
        direct_refuse(d, insn, "a call");
}
