/* Resize: a block gets other threads along an axis, and the grid as many blocks as it then takes.
 *
 * The number of a thread in the grid, block * size + thread, is what a thread's work depends on in
 * most kernels whose threads do not work together. It keeps its values; its blocks are others. What
 * the kernel computes from the block or thread alone takes number / size and number % size of the
 * old size.
 *
 * With the form `balanced`, the block keeps its number of threads: another axis, the partner, gives
 * or takes.
 *
 * The last blocks may have threads that the old grid had not. The kernel's own test that the number
 * is below something keeps them away, if there is one at its beginning and the grid is not capped
 * (a guess: that the test and the grid mean the same number), else a new test of the old grid's
 * size. */
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/flat_internal.h"

enum {
    MOST_THREADS = 1024, /* of a block; along z: 64 (CUDA C++ Programming Guide, compute
                            capabilities) */
    MOST_ALONG_Z = 64
};

/* One axis that changes. */
typedef struct change {
    uint32_t axis;
    uint32_t before, after; /* threads of a block */
    LLVMValueRef at, wide;  /* the number of the thread, i32 (modulo 2^32) and i64 */
    LLVMValueRef extent;    /* threads of the old grid, i64; NULL: not needed */
} change;

typedef struct resizing {
    ir_structure *s;
    ir_flow flow;
    LLVMBuilderRef builder;
    change changes[2];
    uint32_t count;
} resizing;

/* ---- what is found ----------------------------------------------------------------------------
 */

static bool kernel_reads(const resizing *r, const char *what, uint32_t axis) {
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        if (LLVMIsACallInst(r->flow.insns[i]) && ir_flat_reads(r->flow.insns[i], what, axis))
            return true;
    }
    return false;
}

/* Whether the old grid has each thread of the new one, or the kernel tests that itself. */
static bool is_tested(const resizing *r, const change *c) {
    return c->before % c->after == 0 ||
           (ir_flat_keeps_others_away(r->s, &r->flow, c->axis, c->before) &&
            !kernel_reads(r, "nctaid", c->axis));
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status add_change(resizing *r, uint32_t axis, uint64_t after, ev_error *err) {
    uint32_t before = r->s->base->block[axis];
    char name = "xyz"[axis];
    if (before == 0)
        return ev_fail(err, EV_BAD, "the threads of a block along %c are not always the same",
                       name);
    if (after < 1 || after > (axis == 2 ? MOST_ALONG_Z : MOST_THREADS))
        return ev_fail(err, EV_BAD, "no block has %llu threads along %c", (unsigned long long)after,
                       name);
    r->changes[r->count++] = (change){.axis = axis, .before = before, .after = (uint32_t)after};
    return EV_OK;
}

/* The partner's threads, such that the block keeps its number. */
static ev_status add_partner(resizing *r, ev_error *err) {
    const launch_rule *rule = ir_structure_rule(r->s);
    const change *c = &r->changes[0];
    uint32_t axis = rule ? ir_genome_partner_axis(rule, c->axis) : IR_AXES;
    if (axis == IR_AXES)
        return ev_fail(err, EV_BAD,
                       "the launch has no other axis, so the block cannot keep its number of "
                       "threads");
    uint64_t both = (uint64_t)r->s->base->block[axis] * c->before;
    if (both % c->after != 0)
        return ev_fail(err, EV_BAD, "%llu threads along %c and %c are no multiple of %u",
                       (unsigned long long)both, "xyz"[c->axis], "xyz"[axis], c -> after);
    return add_change(r, axis, both / c->after, err);
}

static ev_status check(resizing *r, const ir_edit *edit, ev_error *err) {
    const uint32_t *block = r->s->base->block;
    if (edit->anchor.kind != IR_ANCHOR_DIMENSION)
        return ev_fail(err, EV_BAD, "\"anchor\" is no dimension: \"x\", \"y\" or \"z\"");
    if (edit->form != IR_FORM_NONE && edit->form != IR_FORM_BALANCED)
        return ev_fail(err, EV_BAD, "\"form\" is not \"balanced\"");
    if (!edit->has_option || edit->option < 1)
        return ev_fail(err, EV_BAD, "\"option\" is no number of threads from 1 on");
    EV_TRY(add_change(r, edit->anchor.number, (uint64_t)edit->option, err));
    if (r->changes[0].before == r->changes[0].after)
        return ev_fail(err, EV_BAD, "a block has %u threads along %c already", r->changes[0].after,
                       "xyz"[edit->anchor.number]);
    if (edit->form == IR_FORM_BALANCED)
        EV_TRY(add_partner(r, err));
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    for (uint32_t i = 0; i < r->count; i++)
        threads = threads / r->changes[i].before * r->changes[i].after;
    if (threads == 0 || threads > MOST_THREADS)
        return ev_fail(err, EV_BAD, "a block of %llu threads is not known or too large",
                       (unsigned long long)threads);
    return ir_flat_check_alone(r->s, &r->flow, err);
}

/* ---- what is written --------------------------------------------------------------------------
 */

/* Writes the first block: the threads' numbers, and the tests that the kernel does not make. */
static ev_status write_entry(resizing *r, ev_error *err) {
    bool needs[2] = {false, false};
    for (uint32_t i = 0; i < r->count; i++)
        needs[i] = !is_tested(r, &r->changes[i]);
    ir_entry entry = ir_flat_open(r->s, &r->flow, r->builder);
    LLVMTypeRef narrow = LLVMInt32TypeInContext(r->s->base->context);
    LLVMTypeRef wide = LLVMInt64TypeInContext(r->s->base->context);
    LLVMValueRef stays = NULL;
    for (uint32_t i = 0; i < r->count; i++) {
        change *c = &r->changes[i];
        /* along y and z, a grid has at most 65,535 blocks */
        c->at = ir_flat_write(r->s, r->builder, c->axis, c->after, narrow, c->axis == 0);
        c->wide = ir_flat_write(r->s, r->builder, c->axis, c->after, wide, false);
        if (!needs[i] && !kernel_reads(r, "nctaid", c->axis))
            continue;
        c->extent = ir_flat_extent(r->s, r->builder, c->axis);
        if (!c->extent)
            return ev_fail(err, EV_BAD, "no argument tells the size of the grid along %c",
                           "xyz"[c->axis]);
        if (!needs[i])
            continue;
        LLVMValueRef inside = LLVMBuildICmp(r->builder, LLVMIntULT, c->wide, c->extent, "");
        stays = stays ? LLVMBuildAnd(r->builder, stays, inside, "") : inside;
    }
    if (stays)
        LLVMBuildCondBr(r->builder, stays, entry.body, entry.out);
    else
        LLVMBuildBr(r->builder, entry.body);
    return EV_OK;
}

/* The old block's number, or the thread's in it. Where one size divides the other, no number is
 * larger than those of the launch. */
static LLVMValueRef old_place(const resizing *r, const change *c, bool of_block) {
    LLVMBuilderRef b = r->builder;
    LLVMTypeRef type = LLVMInt32TypeInContext(r->s->base->context);
    LLVMValueRef block = ir_structure_read(r->s, b, "ctaid", c->axis);
    LLVMValueRef thread = ir_structure_read(r->s, b, "tid", c->axis);
    LLVMValueRef before = LLVMConstInt(type, c->before, false);
    LLVMValueRef after = LLVMConstInt(type, c->after, false);
    if (c->before % c->after == 0) {
        LLVMValueRef parts = LLVMConstInt(type, c->before / c->after, false);
        if (of_block)
            return LLVMBuildUDiv(b, block, parts, "");
        LLVMValueRef part = LLVMBuildURem(b, block, parts, "");
        return LLVMBuildAdd(b, LLVMBuildMul(b, part, after, ""), thread, "");
    }
    if (c->after % c->before == 0) {
        LLVMValueRef parts = LLVMConstInt(type, c->after / c->before, false);
        if (!of_block)
            return LLVMBuildURem(b, thread, before, "");
        LLVMValueRef part = LLVMBuildUDiv(b, thread, before, "");
        return LLVMBuildAdd(b, LLVMBuildMul(b, block, parts, ""), part, "");
    }
    LLVMValueRef size = LLVMConstInt(LLVMTypeOf(c->wide), c->before, false);
    LLVMValueRef place =
        of_block ? LLVMBuildUDiv(b, c->wide, size, "") : LLVMBuildURem(b, c->wide, size, "");
    return LLVMBuildTrunc(b, place, type, "");
}

/* What a read of a register along the axis is worth in the new launch; NULL: it is none. */
static LLVMValueRef value_of(const resizing *r, const change *c, LLVMValueRef read) {
    LLVMTypeRef type = LLVMInt32TypeInContext(r->s->base->context);
    if (ir_flat_reads(read, "tid", c->axis))
        return old_place(r, c, false);
    if (ir_flat_reads(read, "ctaid", c->axis))
        return old_place(r, c, true);
    if (ir_flat_reads(read, "ntid", c->axis))
        return LLVMConstInt(type, c->before, false);
    if (!ir_flat_reads(read, "nctaid", c->axis))
        return NULL;
    LLVMValueRef size = LLVMConstInt(LLVMTypeOf(c->extent), c->before, false);
    return LLVMBuildTrunc(r->builder, LLVMBuildUDiv(r->builder, c->extent, size, ""), type, "");
}

/* Whether an instruction adds up the thread's number; its extensions take the sum's new value. */
static bool is_sum(LLVMValueRef insn, const change *c) {
    return !LLVMIsASExtInst(insn) && !LLVMIsAZExtInst(insn) && ir_flat_is(insn, c->axis, c->before);
}

/* Gives the new values to the thread's number first, and to what else reads the axis then. */
static ev_status replace(resizing *r, const change *c, ev_error *err) {
    bool *flat = EV_NEW_ARRAY(r->s->arena, bool, r->flow.insn_count + 1);
    if (!flat)
        return ev_fail_memory(err, r->flow.insn_count);
    for (uint32_t i = 0; i < r->flow.insn_count; i++)
        flat[i] = is_sum(r->flow.insns[i], c);
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        LLVMValueRef insn = r->flow.insns[i];
        if (!flat[i])
            continue;
        LLVMPositionBuilderBefore(r->builder, insn);
        LLVMTypeRef type = LLVMTypeOf(insn);
        LLVMReplaceAllUsesWith(insn, LLVMTypeOf(c->at) == type
                                         ? c->at
                                         : LLVMBuildIntCast2(r->builder, c->wide, type, false, ""));
    }
    for (uint32_t i = 0; i < r->flow.insn_count; i++) {
        LLVMValueRef insn = r->flow.insns[i];
        if (!LLVMIsACallInst(insn))
            continue;
        LLVMPositionBuilderBefore(r->builder, insn);
        LLVMValueRef value = value_of(r, c, insn);
        if (value)
            LLVMReplaceAllUsesWith(insn, value);
    }
    return EV_OK;
}

static ev_status resize(resizing *r, const ir_edit *edit, ev_error *err) {
    EV_TRY(ir_flow_make(r->s->function, r->s->arena, &r->flow, err));
    EV_TRY(check(r, edit, err));
    EV_TRY(write_entry(r, err));
    for (uint32_t i = 0; i < r->count; i++)
        EV_TRY(replace(r, &r->changes[i], err));
    for (uint32_t i = 0; i < r->count; i++)
        r->s->base->block[r->changes[i].axis] = r->changes[i].after;
    return EV_OK;
}

ev_status ir_structure_resize(ir_structure *s, const ir_edit *edit, ev_error *err) {
    resizing r = {.s = s};
    r.builder = LLVMCreateBuilderInContext(s->base->context);
    LLVMSetCurrentDebugLocation2(r.builder, NULL);
    ev_status status = resize(&r, edit, err);
    LLVMDisposeBuilder(r.builder);
    return status;
}
