/* Relabel: which thread or block has which coordinates. Both edits are bijections.
 *
 * relabel-threads gives each warp a tile of threads, `option` wide and 32 / option high, in place
 * of a row of 32; the threads of a block keep their work among them. relabel-blocks runs the blocks
 * of a grid in groups of `option` rows, down the columns of each group, so that blocks which run at
 * the same time share what they load. */
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

#include <string.h>

enum { MOST_ROWS = 64 };

typedef struct relabelling {
    ir_structure *s;
    ir_flow flow;
    LLVMBuilderRef builder;
} relabelling;

static LLVMValueRef number(const relabelling *r, uint64_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(r->s->base->context), value, false);
}

static LLVMValueRef read_register(const relabelling *r, const char *which, uint32_t axis) {
    return ir_structure_read(r->s, r->builder, which, axis);
}

static LLVMValueRef quotient(const relabelling *r, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildUDiv(r->builder, a, b, "");
}

static LLVMValueRef rest(const relabelling *r, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildURem(r->builder, a, b, "");
}

/* a * b + c */
static LLVMValueRef place(const relabelling *r, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    return LLVMBuildAdd(r->builder, LLVMBuildMul(r->builder, a, b, ""), c, "");
}

/* Replaces the kernel's own reads of a register. */
static void replace_reads(const relabelling *r, const char *name, LLVMValueRef by) {
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        if (ir_reads_register(r->flow.insns[i], name))
            LLVMReplaceAllUsesWith(r->flow.insns[i], by);
    }
}

static bool kernel_reads(const relabelling *r, const char *name) {
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        if (ir_reads_register(r->flow.insns[i], name))
            return true;
    }
    return false;
}

/* ---- threads ----------------------------------------------------------------------------------
 */

/* Calls and assembly may read the registers that the kernel's own code is given other values for.
 * An intrinsic of LLVM reads what its operands name, and no other register. */
static ev_status check_calls(const relabelling *r, ev_error *err) {
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        LLVMValueRef insn = r->flow.insns[i];
        bool is_other =
            ir_deed_of(insn) == IR_DEED_UNKNOWN && strncmp(ir_call_name(insn), "llvm.", 5) != 0;
        if (is_other || ir_names_register(insn))
            return ev_fail(err, EV_BAD, "the kernel calls %s", ir_called(insn));
    }
    return EV_OK;
}

static ev_status check_threads(const relabelling *r, const ir_edit *edit, ev_error *err) {
    const uint32_t *block = r->s->base->block;
    int64_t width = edit->has_option ? edit->option : 0;
    if (width < 1 || width > IR_WARP || (width & (width - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 1 to %d", IR_WARP);
    uint32_t w = (uint32_t)width, h = IR_WARP / w;
    if (block[0] == 0 || block[0] % w != 0 || block[1] % h != 0)
        return ev_fail(err, EV_BAD, "the block is not made of whole tiles of %u by %u threads", w,
                       h);
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        if (ir_binds_warp(r->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the threads of a warp exchange values or wait");
        if (ir_reads_warp_place(r->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the kernel reads its place in the warp");
    }
    return EV_OK;
}

static ev_status relabel_threads(const relabelling *r, const ir_edit *edit, ev_error *err) {
    EV_TRY(check_threads(r, edit, err));
    EV_TRY(check_calls(r, err));
    uint32_t w = (uint32_t)edit->option, h = IR_WARP / w, wide = r->s->base->block[0];
    LLVMValueRef x = read_register(r, "tid", 0);
    LLVMValueRef y = read_register(r, "tid", 1);
    LLVMValueRef at = place(r, y, number(r, wide), x);
    LLVMValueRef warp = quotient(r, at, number(r, IR_WARP)), lane = rest(r, at, number(r, IR_WARP));
    LLVMValueRef row = quotient(r, warp, number(r, wide / w));
    LLVMValueRef column = rest(r, warp, number(r, wide / w));
    replace_reads(r, "tid.x", place(r, column, number(r, w), rest(r, lane, number(r, w))));
    replace_reads(r, "tid.y", place(r, row, number(r, h), quotient(r, lane, number(r, w))));
    return EV_OK;
}

/* ---- blocks -----------------------------------------------------------------------------------
 */

static ev_status relabel_blocks(const relabelling *r, const ir_edit *edit, ev_error *err) {
    if (!edit->has_option || edit->option < 2 || edit->option > MOST_ROWS)
        return ev_fail(err, EV_BAD, "\"option\" is not from 2 to %d", MOST_ROWS);
    if (!kernel_reads(r, "ctaid.x") || !kernel_reads(r, "ctaid.y"))
        return ev_fail(err, EV_BAD, "the kernel does not read the block index in x and y");
    EV_TRY(ir_check_waits(&r->flow, err));
    EV_TRY(check_calls(r, err));
    LLVMValueRef rows = number(r, (uint64_t)edit->option);
    LLVMValueRef wide = read_register(r, "nctaid", 0);
    LLVMValueRef high = read_register(r, "nctaid", 1);
    LLVMValueRef x = read_register(r, "ctaid", 0);
    LLVMValueRef y = read_register(r, "ctaid", 1);
    LLVMValueRef at = place(r, y, wide, x);
    LLVMValueRef group = LLVMBuildMul(r->builder, wide, rows, ""); /* blocks of a group */
    LLVMValueRef first = LLVMBuildMul(r->builder, quotient(r, at, group), rows, "");
    LLVMValueRef left = LLVMBuildSub(r->builder, high, first, "");
    LLVMValueRef is_last = LLVMBuildICmp(r->builder, LLVMIntULT, left, rows, "");
    LLVMValueRef size = LLVMBuildSelect(r->builder, is_last, left, rows, "");
    LLVMValueRef inside = rest(r, at, group);
    LLVMValueRef row = LLVMBuildAdd(r->builder, first, rest(r, inside, size), "");
    replace_reads(r, "ctaid.x", quotient(r, inside, size));
    replace_reads(r, "ctaid.y", row);
    return EV_OK;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

ev_status ir_structure_relabel(ir_structure *s, const ir_edit *edit, ev_error *err) {
    relabelling r = {.s = s};
    r.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = ir_flow_make(s->function, s->arena, &r.flow, err);
    if (status == EV_OK) {
        LLVMPositionBuilderBefore(r.builder, LLVMGetFirstInstruction(r.flow.blocks[0]));
        LLVMSetCurrentDebugLocation2(r.builder, NULL);
        status = edit->kind == IR_EDIT_RELABEL_THREADS ? relabel_threads(&r, edit, err)
                                                       : relabel_blocks(&r, edit, err);
    }
    LLVMDisposeBuilder(r.builder);
    return status;
}
