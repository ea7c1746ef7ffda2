/* Stage, the rewriting: a loop over whole tiles stands before the loop.
 *
 *     before                          what led to the loop
 *     top:  PHIs of the loop          while a whole tile of turns is left:
 *     fill: shared memory                 the block's threads load the boxes; barrier
 *     ...   a copy of the loop            `tile` turns, which load from shared memory
 *     back: barrier                       barrier, on to the top
 *     the loop as it was              the turns that are left, from global memory
 *
 * So no load of a tile needs a test of the loop's bound. */
#include "ir/structure/stage_internal.h"

#include <assert.h>
#include <string.h>

typedef struct tiling {
    ir_staging *g;
    LLVMBuilderRef builder;
    LLVMBasicBlockRef before, top, fill, filled, back; /* filled: the last block of `fill` */
    LLVMBasicBlockRef *copies;                         /* of the loop's blocks, by block */
    LLVMValueRef *map;                                 /* of the loop's instructions, by number */
    LLVMValueRef *carried;                             /* PHIs of the top, by number */
    LLVMValueRef *made; /* expressions at the coordinates, by number; NULL: not made yet */
    LLVMValueRef at[IR_MOST_DIMS]; /* the coordinates, i32 */
    LLVMValueRef turn;             /* within the tile */
    LLVMValueRef thread;           /* within the block */
} tiling;

static LLVMTypeRef word(const tiling *t) {
    return LLVMInt32TypeInContext(t->g->s->base->context);
}

static LLVMValueRef number(const tiling *t, uint64_t value) {
    return LLVMConstInt(word(t), value, false);
}

static LLVMBasicBlockRef block_before(const tiling *t, LLVMBasicBlockRef next) {
    return LLVMInsertBasicBlockInContext(t->g->s->base->context, next, "");
}

static void stand_at_end(const tiling *t, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(t->builder, block);
    LLVMSetCurrentDebugLocation2(t->builder, NULL);
}

static LLVMValueRef call_intrinsic(const tiling *t, const char *name) {
    return ir_structure_call(t->g->s, t->builder, name, NULL, 0);
}

/* a * b + c, of numbers that are not negative and small */
static LLVMValueRef place(const tiling *t, LLVMValueRef a, uint64_t b, LLVMValueRef c) {
    LLVMValueRef scaled = b == 1 ? a : LLVMBuildNUWMul(t->builder, a, number(t, b), "");
    LLVMSetNSW(scaled, LLVMIsABinaryOperator(scaled) && b != 1);
    LLVMValueRef sum = LLVMBuildNUWAdd(t->builder, scaled, c, "");
    if (LLVMIsABinaryOperator(sum))
        LLVMSetNSW(sum, true);
    return sum;
}

/* ---- blocks -----------------------------------------------------------------------------------
 */

static void redirect(const tiling *t, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(t->g->s->function); b;
         b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
        for (unsigned i = 0; last && i < LLVMGetNumSuccessors(last); i++) {
            if (LLVMGetSuccessor(last, i) == from)
                LLVMSetSuccessor(last, i, to);
        }
    }
}

/* Puts the blocks of the tiles between what the preheader did and the preheader, which keeps its
 * branch to the loop alone. */
static void split_preheader(tiling *t) {
    LLVMBasicBlockRef ahead = t->g->flow.blocks[t->g->loop->preheader];
    t->before = block_before(t, ahead);
    t->top = block_before(t, ahead);
    t->fill = block_before(t, ahead);
    t->back = block_before(t, ahead);
    redirect(t, ahead, t->before);
    stand_at_end(t, t->before);
    LLVMValueRef last = LLVMGetBasicBlockTerminator(ahead);
    for (LLVMValueRef i = LLVMGetFirstInstruction(ahead), next; i != last; i = next) {
        next = LLVMGetNextInstruction(i);
        LLVMInstructionRemoveFromParent(i);
        LLVMInsertIntoBuilder(t->builder, i);
    }
    LLVMBuildBr(t->builder, t->top);
}

/* Writes the PHIs that the tiles hand on, which the loop then starts from. */
static void write_carried(tiling *t) {
    const ir_staging *g = t->g;
    stand_at_end(t, t->top);
    for (uint32_t i = g->flow.first[g->loop->header]; LLVMIsAPHINode(g->flow.insns[i]); i++) {
        LLVMValueRef phi = g->flow.insns[i],
                     start = ir_flow_incoming(&t->g->flow, phi, g->loop->preheader);
        t->carried[i] = LLVMBuildPhi(t->builder, LLVMTypeOf(phi), "");
        LLVMAddIncoming(t->carried[i], &start, &t->before, 1);
        for (unsigned k = 0; k < LLVMCountIncoming(phi); k++) {
            if (LLVMGetIncomingBlock(phi, k) == g->flow.blocks[g->loop->preheader])
                LLVMSetOperand(phi, k, t->carried[i]);
        }
    }
}

/* The induction variable at the top. */
static LLVMValueRef first_turn(const tiling *t) {
    return t->carried[ir_flow_insn(&t->g->flow, t->g->loop->induction)];
}

/* Whether the last turn of a tile stays in the loop, where the first one does: the bound is further
 * than the turns of the tile, as a number without sign. So nothing wraps around. */
static LLVMValueRef reaches_bound(const tiling *t, LLVMValueRef first, LLVMValueRef bound) {
    const ir_loop *loop = t->g->loop;
    bool up = loop->step > 0;
    bool may_equal = loop->stays == LLVMIntSLE || loop->stays == LLVMIntULE ||
                     loop->stays == LLVMIntSGE || loop->stays == LLVMIntUGE;
    uint64_t span = (uint64_t)(up ? loop->step : -loop->step) * (t->g->tile - 1);
    LLVMValueRef any = LLVMBuildICmp(t->builder, loop->stays, first, bound, "");
    LLVMValueRef left = LLVMBuildSub(t->builder, up ? bound : first, up ? first : bound, "");
    LLVMValueRef fits = LLVMBuildICmp(t->builder, may_equal ? LLVMIntUGE : LLVMIntUGT, left,
                                      LLVMConstInt(LLVMTypeOf(first), span, false), "");
    return LLVMBuildAnd(t->builder, any, fits, "");
}

/* Goes on to a tile if all of its turns are in the loop. Numbers of 32 bits are compared as 64. */
static void write_top(const tiling *t) {
    const ir_loop *loop = t->g->loop;
    LLVMTypeRef wide = LLVMInt64TypeInContext(t->g->s->base->context);
    bool is_signed = loop->stays != LLVMIntULT && loop->stays != LLVMIntULE;
    int64_t span = loop->step * (int64_t)(t->g->tile - 1);
    LLVMValueRef first = LLVMBuildIntCast2(t->builder, first_turn(t), wide, is_signed, "");
    LLVMValueRef bound = LLVMBuildIntCast2(t->builder, loop->bound, wide, is_signed, "");
    LLVMValueRef last =
        LLVMBuildAdd(t->builder, first, LLVMConstInt(wide, (unsigned long long)span, true), "");
    bool is_wide = LLVMTypeOf(first_turn(t)) == wide && loop->stays != LLVMIntNE;
    LLVMValueRef fits = is_wide ? reaches_bound(t, first, bound)
                                : LLVMBuildICmp(t->builder, loop->stays, last, bound, "");
    LLVMBuildCondBr(t->builder, fits, t->fill, t->g->flow.blocks[loop->preheader]);
}

/* ---- expressions at coordinates ---------------------------------------------------------------
 */

static LLVMValueRef cast_to(const tiling *t, LLVMValueRef value, LLVMTypeRef type) {
    return LLVMBuildIntCast2(t->builder, value, type, false, "");
}

/* A counter of the staged loop, or of one inside, at the coordinates. */
static LLVMValueRef turn_value(const tiling *t, LLVMValueRef phi, uint32_t dim) {
    const ir_staging *g = t->g;
    LLVMValueRef from = NULL;
    if (dim == IR_DIM_TURN)
        from = t->carried[ir_flow_insn(&g->flow, phi)];
    for (uint32_t l = 0; l < g->flow.loop_count && !from; l++) {
        if (g->flow.loops[l].induction == phi)
            from = g->flow.loops[l].start;
    }
    uint64_t step = dim == IR_DIM_TURN ? (uint64_t)ir_stage_step(g, phi) : 1;
    LLVMValueRef turns = cast_to(t, t->at[dim], LLVMTypeOf(phi));
    LLVMValueRef by = LLVMConstInt(LLVMTypeOf(phi), step, true);
    return LLVMBuildAdd(t->builder, from, LLVMBuildMul(t->builder, turns, by, ""), "");
}

/* A divisor, or 1 for 0: the address is also computed where tests keep the kernel from it. */
static LLVMValueRef nonzero(const tiling *t, LLVMValueRef divisor) {
    if (LLVMIsAConstantInt(divisor))
        return divisor;
    LLVMTypeRef type = LLVMTypeOf(divisor);
    LLVMValueRef is_zero = LLVMBuildICmp(t->builder, LLVMIntEQ, divisor, LLVMConstNull(type), "");
    return LLVMBuildSelect(t->builder, is_zero, LLVMConstInt(type, 1, false), divisor, "");
}

/* Writes a value of the kernel as it is at the coordinates. */
static LLVMValueRef evaluate(tiling *t, LLVMValueRef value) {
    ir_staging *g = t->g;
    uint32_t insn = ir_flow_insn(&g->flow, value);
    if (insn == IR_NONE || (!ir_stage_is_in_loop(g, value) && ir_stage_mask(g, value) == 0))
        return value;
    if (t->made[insn])
        return t->made[insn];
    uint32_t dim = ir_stage_dim_of(g, value);
    LLVMValueRef made = NULL;
    if (dim != IR_NONE) {
        made = dim < IR_DIM_TURN ? t->at[dim] : turn_value(t, value, dim);
    } else {
        LLVMValueRef operands[16] = {0};
        int count = LLVMGetNumOperands(value);
        assert(count <= 16);
        for (int k = 0; k < count; k++)
            operands[k] = evaluate(t, LLVMGetOperand(value, (unsigned)k));
        if (ir_divides(value))
            operands[1] = nonzero(t, operands[1]);
        made = LLVMInstructionClone(value);
        for (int k = 0; k < count; k++)
            LLVMSetOperand(made, (unsigned)k, operands[k]);
        LLVMInsertIntoBuilder(t->builder, made);
    }
    t->made[insn] = made;
    return made;
}

/* ---- the boxes --------------------------------------------------------------------------------
 */

/* The values of one box that a thread loads in one round. */
typedef struct held {
    LLVMValueRef element, values[IR_MOST_STAGED];
} held;

/* Where element `element`, the number in the box without padding, stands in a padded box. */
static LLVMValueRef padded(const tiling *t, const ir_box *box, LLVMValueRef element) {
    if (box->pitch == box->axes[0].size)
        return element;
    LLVMValueRef row = LLVMBuildUDiv(t->builder, element, number(t, box->axes[0].size), "");
    LLVMValueRef column = LLVMBuildURem(t->builder, element, number(t, box->axes[0].size), "");
    return place(t, row, box->pitch, column);
}

/* Sets the coordinates of an element. The element of an axis of two dims belongs to the last
 * possible turn: the threads that it then belongs to are the first ones, which have work if any
 * has. */
static void set_coordinates(tiling *t, const ir_box *box, LLVMValueRef element) {
    LLVMValueRef rest = element;
    memset(t->made, 0, (t->g->flow.insn_count + 1) * sizeof *t->made);
    for (uint32_t d = 0; d < t->g->dim_count; d++)
        t->at[d] = number(t, 0);
    for (uint32_t a = 0; a < box->axis_count; a++) {
        const ir_axis *axis = &box->axes[a];
        LLVMValueRef size = number(t, axis->size), at = rest;
        if (a + 1 < box->axis_count) {
            at = LLVMBuildURem(t->builder, rest, size, "");
            rest = LLVMBuildUDiv(t->builder, rest, size, "");
        }
        if (axis->also != IR_NONE) {
            LLVMValueRef last = number(t, t->g->dims[axis->also].size - 1);
            LLVMValueRef less = LLVMBuildICmp(t->builder, LLVMIntULT, at, last, "");
            t->at[axis->also] = LLVMBuildSelect(t->builder, less, at, last, "");
            at = LLVMBuildSub(t->builder, at, t->at[axis->also], "");
        }
        t->at[axis->dim] = at;
    }
}

static LLVMValueRef clone_load(const tiling *t, LLVMValueRef load, LLVMValueRef pointer) {
    LLVMValueRef made = LLVMInstructionClone(load);
    LLVMSetOperand(made, 0, pointer);
    LLVMInsertIntoBuilder(t->builder, made);
    return made;
}

/* Loads at the coordinates where the kernel would; elsewhere the value is 0. */
static LLVMValueRef load_value(tiling *t, const ir_staged *staged) {
    LLVMValueRef pointer = evaluate(t, LLVMGetOperand(staged->load, 0)), runs = NULL;
    for (uint32_t k = 0; k < staged->path.count; k++) {
        LLVMValueRef test = evaluate(t, staged->path.tests[k].condition);
        if (!staged->path.tests[k].is)
            test = LLVMBuildNot(t->builder, test, "");
        runs = runs ? LLVMBuildAnd(t->builder, runs, test, "") : test;
    }
    if (!runs)
        return clone_load(t, staged->load, pointer);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(t->builder);
    LLVMBasicBlockRef with = block_before(t, t->back), join = block_before(t, t->back);
    LLVMBuildCondBr(t->builder, runs, with, join);
    stand_at_end(t, with);
    LLVMValueRef loaded = clone_load(t, staged->load, pointer);
    LLVMBuildBr(t->builder, join);
    stand_at_end(t, join);
    LLVMValueRef phi = LLVMBuildPhi(t->builder, LLVMTypeOf(loaded), "");
    LLVMValueRef values[] = {loaded, LLVMConstNull(LLVMTypeOf(loaded))};
    LLVMBasicBlockRef edges[] = {with, from};
    LLVMAddIncoming(phi, values, edges, 2);
    return phi;
}

static void load_round(tiling *t, uint32_t b, uint32_t round, held *out) {
    const ir_staging *g = t->g;
    uint64_t behind = (uint64_t)round * g->threads;
    out->element = place(t, t->thread, 1, number(t, behind));
    set_coordinates(t, &g->boxes[b], out->element);
    for (uint32_t l = 0; l < g->load_count; l++) {
        if (g->loads[l].box != b)
            continue;
        out->values[g->loads[l].member] = load_value(t, &g->loads[l]);
    }
}

static LLVMValueRef shared_pointer(const tiling *t, const ir_box *box, LLVMValueRef element,
                                   uint32_t member) {
    LLVMValueRef index = place(t, element, box->members, number(t, member));
    return LLVMBuildInBoundsGEP2(t->builder, box->type, box->storage, &index, 1, "");
}

static void store_round(const tiling *t, const ir_box *box, const held *from) {
    LLVMValueRef element = padded(t, box, from->element);
    for (uint32_t m = 0; m < box->members; m++)
        LLVMBuildStore(t->builder, from->values[m], shared_pointer(t, box, element, m));
}

static void allocate(const tiling *t, ir_box *box) {
    enum { VECTOR_BYTES = 16 };
    uint64_t count = (uint64_t)box->elements / box->axes[0].size * box->pitch * box->members;
    LLVMTypeRef type = LLVMArrayType2(box->type, count);
    box->storage =
        LLVMAddGlobalInAddressSpace(t->g->s->base->module, type, "evoke_shared", IR_SHARED_SPACE);
    LLVMSetInitializer(box->storage, LLVMGetUndef(type));
    LLVMSetLinkage(box->storage, LLVMInternalLinkage);
    LLVMSetAlignment(box->storage, VECTOR_BYTES);
}

/* The last round of a box whose elements are no multiple of the threads: some threads load none. */
static void write_rest(tiling *t, uint32_t b) {
    const ir_box *box = &t->g->boxes[b];
    uint32_t rounds = box->elements / t->g->threads, rest = box->elements % t->g->threads;
    held values = {0};
    if (rest == 0)
        return;
    LLVMBasicBlockRef with = block_before(t, t->back), join = block_before(t, t->back);
    LLVMValueRef is_in = LLVMBuildICmp(t->builder, LLVMIntULT, t->thread, number(t, rest), "");
    LLVMBuildCondBr(t->builder, is_in, with, join);
    stand_at_end(t, with);
    load_round(t, b, rounds, &values);
    store_round(t, box, &values);
    LLVMBuildBr(t->builder, join);
    stand_at_end(t, join);
}

static void write_thread(tiling *t) {
    const uint32_t *block = t->g->s->base->block;
    stand_at_end(t, t->before);
    LLVMPositionBuilderBefore(t->builder, LLVMGetBasicBlockTerminator(t->before));
    static const char *const names[] = {"llvm.nvvm.read.ptx.sreg.tid.x",
                                        "llvm.nvvm.read.ptx.sreg.tid.y",
                                        "llvm.nvvm.read.ptx.sreg.tid.z"};
    t->thread = call_intrinsic(t, names[0]);
    for (uint32_t a = 1, behind = block[0]; a < 3; behind *= block[a++]) {
        if (block[a] > 1)
            t->thread = place(t, call_intrinsic(t, names[a]), behind, t->thread);
    }
}

/* Writes the loads of all boxes, then their stores, so that no load waits for another. */
static ev_status write_fill(tiling *t, ev_error *err) {
    ir_staging *g = t->g;
    uint32_t rounds = 0, made = 0;
    for (uint32_t b = 0; b < g->box_count; b++)
        rounds += g->boxes[b].elements / g->threads;
    held *values = EV_NEW_ARRAY(g->s->arena, held, rounds + 1);
    if (!values)
        return ev_fail_memory(err, rounds);
    stand_at_end(t, t->fill);
    for (uint32_t b = 0; b < g->box_count; b++) {
        allocate(t, &g->boxes[b]);
        for (uint32_t r = 0; r < g->boxes[b].elements / g->threads; r++)
            load_round(t, b, r, &values[made++]);
    }
    made = 0;
    for (uint32_t b = 0; b < g->box_count; b++) {
        for (uint32_t r = 0; r < g->boxes[b].elements / g->threads; r++)
            store_round(t, &g->boxes[b], &values[made++]);
    }
    for (uint32_t b = 0; b < g->box_count; b++)
        write_rest(t, b);
    call_intrinsic(t, "llvm.nvvm.barrier0");
    t->filled = LLVMGetInsertBlock(t->builder);
    return EV_OK;
}

/* ---- the copy of the loop ---------------------------------------------------------------------
 */

static LLVMValueRef mapped(const tiling *t, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&t->g->flow, value);
    return insn != IR_NONE && t->map[insn] ? t->map[insn] : value;
}

static const ir_staged *find_staged(const ir_staging *g, LLVMValueRef load) {
    for (uint32_t l = 0; l < g->load_count; l++) {
        if (g->loads[l].load == load)
            return &g->loads[l];
    }
    return NULL;
}

/* The thread's own coordinate in a dim. */
static LLVMValueRef own_coordinate(const tiling *t, uint32_t dim) {
    static const char *const names[] = {"llvm.nvvm.read.ptx.sreg.tid.x",
                                        "llvm.nvvm.read.ptx.sreg.tid.y",
                                        "llvm.nvvm.read.ptx.sreg.tid.z"};
    if (dim < IR_DIM_TURN)
        return call_intrinsic(t, names[dim]);
    if (dim == IR_DIM_TURN)
        return t->turn;
    LLVMValueRef phi = t->g->dims[dim].phi, start = NULL;
    for (uint32_t l = 0; l < t->g->flow.loop_count; l++) {
        if (t->g->flow.loops[l].induction == phi)
            start = t->g->flow.loops[l].start;
    }
    return cast_to(t, LLVMBuildSub(t->builder, mapped(t, phi), start, ""), word(t));
}

static void write_shared_load(tiling *t, uint32_t insn, const ir_staged *staged) {
    const ir_box *box = &t->g->boxes[staged->box];
    LLVMValueRef element = number(t, 0);
    uint64_t pitch = 1;
    for (uint32_t a = 0; a < box->axis_count; a++) {
        LLVMValueRef at = own_coordinate(t, box->axes[a].dim);
        if (box->axes[a].also != IR_NONE)
            at = place(t, at, 1, own_coordinate(t, box->axes[a].also));
        element = place(t, at, pitch, element);
        pitch *= a == 0 ? box->pitch : box->axes[a].size;
    }
    LLVMValueRef pointer = shared_pointer(t, box, element, staged->member);
    LLVMValueRef made = LLVMBuildLoad2(t->builder, box->type, pointer, "");
    t->map[insn] = made;
}

static void copy_insn(tiling *t, uint32_t insn) {
    const ir_staging *g = t->g;
    LLVMValueRef old = g->flow.insns[insn];
    const ir_staged *staged = find_staged(g, old);
    if (staged) {
        write_shared_load(t, insn, staged);
        return;
    }
    if (LLVMIsAPHINode(old)) {
        t->map[insn] = LLVMBuildPhi(t->builder, LLVMTypeOf(old), "");
        return;
    }
    LLVMValueRef made = LLVMInstructionClone(old);
    for (int k = 0; k < LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (ir_flow_insn(&g->flow, operand) != IR_NONE)
            LLVMSetOperand(made, (unsigned)k, mapped(t, operand));
    }
    LLVMInsertIntoBuilder(t->builder, made);
    t->map[insn] = made;
}

/* Ends the copy of a block: the header counts the tile's turns, the latch goes to the next. */
static void copy_branch(tiling *t, uint32_t block) {
    const ir_staging *g = t->g;
    uint32_t insn = g->flow.first[block + 1] - 1;
    LLVMValueRef old = g->flow.insns[insn];
    if (block != g->loop->header) {
        copy_insn(t, insn);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(old); s++)
            LLVMSetSuccessor(t->map[insn], s,
                             t->copies[ir_flow_block(&g->flow, LLVMGetSuccessor(old, s))]);
        return;
    }
    uint32_t yes = ir_flow_block(&g->flow, LLVMGetSuccessor(old, 0));
    uint32_t no = ir_flow_block(&g->flow, LLVMGetSuccessor(old, 1));
    LLVMValueRef more = LLVMBuildICmp(t->builder, LLVMIntULT, t->turn, number(t, g->tile), "");
    LLVMBuildCondBr(t->builder, more, t->copies[g->loop->holds[yes] ? yes : no], t->back);
}

/* Gives the next tile what a PHI of the header is behind this one. A counter is counted anew, so
 * that the loop over tiles counts as well. */
static void hand_on(const tiling *t, uint32_t insn) {
    LLVMValueRef next = t->map[insn], phi = t->g->flow.insns[insn];
    int64_t step = ir_stage_step(t->g, phi) * (int64_t)t->g->tile;
    if (step != 0) {
        LLVMValueRef one = ir_flow_incoming(&t->g->flow, phi, t->g->loop->latch);
        LLVMValueRef by = LLVMConstInt(LLVMTypeOf(phi), (unsigned long long)step, true);
        stand_at_end(t, t->back);
        next = LLVMBuildAdd(t->builder, t->carried[insn], by, "");
        LLVMSetNSW(next, LLVMGetNSW(one));
        LLVMSetNUW(next, LLVMGetNUW(one));
    }
    LLVMBasicBlockRef from = t->back;
    LLVMAddIncoming(t->carried[insn], &next, &from, 1);
}

static void fill_phi(const tiling *t, uint32_t insn) {
    const ir_staging *g = t->g;
    LLVMValueRef old = g->flow.insns[insn];
    bool is_carried = g->flow.home[insn] == g->loop->header;
    for (unsigned k = 0; k < LLVMCountIncoming(old); k++) {
        uint32_t from = ir_flow_block(&g->flow, LLVMGetIncomingBlock(old, k));
        LLVMValueRef value = mapped(t, LLVMGetIncomingValue(old, k));
        LLVMBasicBlockRef edge = from == IR_NONE ? NULL : t->copies[from];
        if (is_carried && from == g->loop->preheader) {
            value = t->carried[insn];
            edge = t->filled;
        }
        if (edge)
            LLVMAddIncoming(t->map[insn], &value, &edge, 1);
    }
    if (is_carried)
        hand_on(t, insn);
}

static void count_turns(tiling *t) {
    const ir_staging *g = t->g;
    LLVMBasicBlockRef latch = t->copies[g->loop->latch];
    LLVMPositionBuilderBefore(t->builder, LLVMGetBasicBlockTerminator(latch));
    LLVMValueRef next = place(t, t->turn, 1, number(t, 1));
    LLVMValueRef values[] = {number(t, 0), next};
    LLVMBasicBlockRef from[] = {t->filled, latch};
    LLVMAddIncoming(t->turn, values, from, 2);
}

/* The loop's own hints for unrolling stay with the loop: two loops may not share one. */
static void forget_hints(const tiling *t) {
    unsigned kind = LLVMGetMDKindIDInContext(t->g->s->base->context, "llvm.loop", 9);
    LLVMValueRef last = LLVMGetBasicBlockTerminator(t->copies[t->g->loop->latch]);
    LLVMSetMetadata(last, kind, NULL);
}

static void copy_loop(tiling *t) {
    const ir_staging *g = t->g;
    for (uint32_t b = 0; b < g->flow.count; b++)
        t->copies[b] = g->loop->holds[b] ? block_before(t, t->back) : NULL;
    for (uint32_t b = 0; b < g->flow.count; b++) {
        if (!g->loop->holds[b])
            continue;
        stand_at_end(t, t->copies[b]);
        if (b == g->loop->header)
            t->turn = LLVMBuildPhi(t->builder, word(t), "");
        for (uint32_t i = g->flow.first[b]; i + 1 < g->flow.first[b + 1]; i++)
            copy_insn(t, i);
        copy_branch(t, b);
    }
    for (uint32_t i = 0; i < g->flow.insn_count; i++) {
        if (g->loop->holds[g->flow.home[i]] && LLVMIsAPHINode(g->flow.insns[i]))
            fill_phi(t, i);
    }
    count_turns(t);
    forget_hints(t);
}

ev_status ir_stage_write(ir_staging *g, ev_error *err) {
    tiling t = {.g = g, .builder = g->builder};
    t.copies = EV_NEW_ARRAY(g->s->arena, LLVMBasicBlockRef, g->flow.count + 1);
    t.map = EV_NEW_ARRAY(g->s->arena, LLVMValueRef, g->flow.insn_count + 1);
    t.carried = EV_NEW_ARRAY(g->s->arena, LLVMValueRef, g->flow.insn_count + 1);
    t.made = EV_NEW_ARRAY(g->s->arena, LLVMValueRef, g->flow.insn_count + 1);
    if (!t.copies || !t.map || !t.carried || !t.made)
        return ev_fail_memory(err, g->flow.insn_count);
    split_preheader(&t);
    write_carried(&t);
    write_top(&t);
    write_thread(&t);
    EV_TRY(write_fill(&t, err));
    copy_loop(&t);
    stand_at_end(&t, t.filled);
    LLVMBuildBr(t.builder, t.copies[g->loop->header]);
    stand_at_end(&t, t.back);
    call_intrinsic(&t, "llvm.nvvm.barrier0");
    LLVMBuildBr(t.builder, t.top);
    return EV_OK;
}
