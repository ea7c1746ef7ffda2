/* Matrices of a warp and asynchronous copies in the direct emitter (PTX ISA, wmma.load, wmma.store,
 * wmma.mma, cp.async).
 *
 * The intrinsics of matrices are many, and their names are the instructions' in another order:
 *
 *   llvm.nvvm.wmma.m16n16k16.load.a.row.stride.bf16.p0
 *   wmma.load.a.sync.aligned.row.m16n16k16.bf16
 *
 * so the instruction is made from the name. Matrices of half are vectors in LLVM, and are refused.
 */
#include "ir/direct/direct_internal.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 12, FIRST = 3 }; /* of a name; the first behind "llvm.nvvm.wmma" */

typedef struct words {
    char text[96];
    const char *at[WORDS];
    unsigned count;
} words;

/* False: the name is too long. */
static bool split_name(const char *name, words *w) {
    size_t length = strlen(name);
    if (length >= sizeof w->text)
        return false;
    memcpy(w->text, name, length + 1);
    w->count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(w->text, ".", &rest); word != NULL;
         word = strtok_r(NULL, ".", &rest)) {
        if (w->count == WORDS)
            return false;
        w->at[w->count++] = word;
    }
    return true;
}

static bool word_is(const words *w, unsigned i, const char *text) {
    return i < w->count && strcmp(w->at[i], text) == 0;
}

/* Whether all are registers of 32 or 64 bits. */
static bool are_wide(const direct_leaf *leaves, unsigned count) {
    bool wide = count > 0;
    for (unsigned i = 0; i < count; i++)
        wide = wide && (leaves[i].bits == 32 || leaves[i].bits == 64);
    return wide;
}

/* "load", fragment, layout, "stride", type, address space. */
static void load(ir_direct *d, LLVMValueRef call, const words *w) {
    direct_leaf leaves[DIRECT_LEAVES];
    direct_operand result[DIRECT_LEAVES];
    unsigned count = direct_leaves(LLVMTypeOf(call), leaves);
    if (w->count != FIRST + 7 || !word_is(w, FIRST + 4, "stride") || !are_wide(leaves, count)) {
        direct_refuse(d, call, "a load of this matrix");
        return;
    }
    direct_operand sources[] = {direct_address_of(d, call, LLVMGetOperand(call, 0)),
                                direct_source(d, direct_part(d, LLVMGetOperand(call, 1)))};
    if (d->status != EV_OK)
        return;
    const char *op = ev_arena_printf(d->arena, "wmma.load.%s.sync.aligned.%s.%s%s.%s",
                                     w->at[FIRST + 2], w->at[FIRST + 3], w->at[FIRST],
                                     direct_space_name(sources[0].space), w->at[FIRST + 5]);
    for (unsigned i = 0; i < count; i++)
        result[i] = direct_new(d, leaves[i].cls, leaves[i].bits);
    if (op == NULL)
        direct_no_memory(d);
    else
        direct_insn_add(d, op, DIRECT_LOAD, true, count, result, 2, sources);
    direct_define(d, call, result, count);
}

/* "store", "d", layout, "stride", type, address space. */
static void store(ir_direct *d, LLVMValueRef call, const words *w) {
    direct_operand sources[DIRECT_LEAVES];
    unsigned count = LLVMGetNumArgOperands(call);
    if (w->count != FIRST + 7 || !word_is(w, FIRST + 4, "stride") || count > DIRECT_LEAVES ||
        word_is(w, FIRST + 5, "f16")) {
        direct_refuse(d, call, "a store of this matrix");
        return;
    }
    sources[0] = direct_address_of(d, call, LLVMGetOperand(call, 0));
    for (unsigned i = 1; i + 1 < count; i++)
        sources[i] = direct_register_of(d, direct_part(d, LLVMGetOperand(call, i)));
    sources[count - 1] = direct_source(d, direct_part(d, LLVMGetOperand(call, count - 1)));
    if (d->status != EV_OK)
        return;
    const char *op =
        ev_arena_printf(d->arena, "wmma.store.d.sync.aligned.%s.%s%s.%s", w->at[FIRST + 3],
                        w->at[FIRST], direct_space_name(sources[0].space), w->at[FIRST + 5]);
    if (op == NULL)
        direct_no_memory(d);
    else
        direct_insn_add(d, op, DIRECT_MATRIX_STORE, true, 0, NULL, count, sources);
}

/* The types of D, A, B and C by the name's last words; NULL: another product. */
static const char *types_of(const words *w) {
    static const char *const types[][2] = {{"bf16", "f32.bf16.bf16.f32"},
                                           {"tf32", "f32.tf32.tf32.f32"},
                                           {"s8", "s32.s8.s8.s32"},
                                           {"u8", "s32.u8.u8.s32"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (word_is(w, FIRST + 4, types[i][0]))
            return types[i][1];
    }
    return NULL;
}

/* Registers of A, of `both` for A and B: a matrix of 32 x 16 has four times those of one of 8 x 16.
 */
static unsigned rows_of(const char *shape, unsigned both) {
    if (strcmp(shape, "m32n8k16") == 0)
        return both / 5 * 4;
    return strcmp(shape, "m8n32k16") == 0 ? both / 5 : both / 2;
}

/* "mma", layouts of A and B, types, perhaps "satfinite". */
static void product(ir_direct *d, LLVMValueRef call, const words *w) {
    enum { MOST = 3 * DIRECT_LEAVES };
    direct_leaf leaves[DIRECT_LEAVES];
    direct_operand result[DIRECT_LEAVES], sources[MOST];
    unsigned sums = direct_leaves(LLVMTypeOf(call), leaves), count = LLVMGetNumArgOperands(call);
    const char *types = types_of(w);
    bool saturates = word_is(w, FIRST + 5, "satfinite");
    if (types == NULL || w->count != FIRST + (saturates ? 6u : 5u) || !are_wide(leaves, sums) ||
        count > MOST || count <= sums) {
        direct_refuse(d, call, "a product of these matrices");
        return;
    }
    for (unsigned i = 0; i < count; i++)
        sources[i] = direct_register_of(d, direct_part(d, LLVMGetOperand(call, i)));
    if (d->status != EV_OK)
        return;
    const char *op =
        ev_arena_printf(d->arena, "wmma.mma.sync.aligned.%s.%s.%s.%s%s", w->at[FIRST + 2],
                        w->at[FIRST + 3], w->at[FIRST], types, saturates ? ".satfinite" : "");
    for (unsigned i = 0; i < sums; i++)
        result[i] = direct_new(d, leaves[i].cls, leaves[i].bits);
    if (op == NULL)
        direct_no_memory(d);
    else
        direct_insn_add(d, op, DIRECT_PRODUCT, true, sums, result, count, sources);
    if (d->status == EV_OK) {
        direct_insn *insn = &d->insns.items[d->insns.count - 1];
        insn->rows = (uint8_t)rows_of(w->at[FIRST], count - sums);
        insn->columns = (uint8_t)(count - sums - insn->rows);
    }
    direct_define(d, call, result, sums);
}

void direct_select_matrix(ir_direct *d, LLVMValueRef call, const char *name) {
    words w;
    if (!split_name(name, &w))
        direct_refuse(d, call, "a call");
    else if (word_is(&w, FIRST + 1, "load"))
        load(d, call, &w);
    else if (word_is(&w, FIRST + 1, "store"))
        store(d, call, &w);
    else
        product(d, call, &w);
}

void direct_select_copy(ir_direct *d, LLVMValueRef call, const char *op, const char *bytes) {
    direct_operand sources[4] = {direct_address_of(d, call, LLVMGetOperand(call, 0)),
                                 direct_address_of(d, call, LLVMGetOperand(call, 1)),
                                 direct_int(DIRECT_R, 32, strtol(bytes, NULL, 10))};
    bool has_size = LLVMGetNumArgOperands(call) == 3;
    if (has_size)
        sources[3] = direct_source(d, direct_part(d, LLVMGetOperand(call, 2)));
    direct_insn_add(d, op, DIRECT_COPY, true, 0, NULL, has_size ? 4 : 3, sources);
}
