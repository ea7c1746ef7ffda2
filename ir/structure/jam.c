/* Jam: see jam_internal.h. The new function is written block by block in the order of the old one,
 * with a map from old to new values for each member, so no instruction of the old code is changed.
 *
 * A region around a varying branch has one entry edge and one exit. Its clones are chained: the
 * edges of clone j that leave the region lead to the block joins[j], which begins clone j + 1; the
 * last join leads on. What the PHIs behind the region take from it is merged in the joins.
 *
 * Effects of members that may have no work are guarded. Stores in a row wait in a queue until an
 * instruction that may read memory comes, and then share one guard for each member. */
#include "ir/structure/jam_internal.h"

#include <assert.h>
#include <stdlib.h>

typedef struct ir_jam_phi {
    LLVMValueRef old, made;
    uint32_t member;
} ir_jam_phi;

typedef struct ir_jam_join {
    LLVMValueRef old; /* the PHI behind the region */
    uint32_t region, member;
    LLVMValueRef made; /* in the member's join */
} ir_jam_join;

/* The place of an item's entry for one member in the tables of ir_jam. */
static size_t slot(const ir_jam *jam, uint32_t item, uint32_t member) {
    return (size_t)item * jam->members + member;
}

/* ---- what cannot be jammed --------------------------------------------------------------------
 */

static bool is_live_region(const ir_vary *vary, uint32_t region) {
    for (uint32_t b = 0; b < vary->flow->count; b++) {
        if (vary->branch_of[b] == region)
            return true;
    }
    return false;
}

static ev_status check_region(const ir_vary *vary, uint32_t at, ev_error *err) {
    const ir_region *region = &vary->regions[at];
    const ir_flow *flow = vary->flow;
    if (region->exit == IR_NONE)
        return ev_fail(err, EV_BAD, "a condition that differs ends the kernel in several places");
    for (uint32_t b = 0; b < flow->count; b++) {
        if (!region->holds[b])
            continue;
        if (vary->branch_of[b] != at)
            return ev_fail(err, EV_BAD, "two regions under conditions that differ overlap");
        for (uint32_t i = flow->first[b]; i < flow->first[b + 1]; i++) {
            if (vary->region_of[b] == at && ir_deed_of(flow->insns[i]) == IR_DEED_BARRIER)
                return ev_fail(err, EV_BAD, "a barrier is under a condition that differs");
        }
    }
    return EV_OK;
}

static ev_status check_insn(LLVMValueRef insn, ev_error *err) {
    if (ir_deed_of(insn) == IR_DEED_UNKNOWN) {
        const char *name = ir_call_name(insn);
        return ev_fail(err, EV_BAD, "the effect of %s %s is not known", name[0] ? "calling" : "an",
                       name[0] ? name : "instruction");
    }
    return EV_OK;
}

static bool is_sized_at_launch(LLVMValueRef global) {
    LLVMTypeRef type = LLVMGlobalGetValueType(global);
    return LLVMIsDeclaration(global) ||
           (LLVMGetTypeKind(type) == LLVMArrayTypeKind && LLVMGetArrayLength2(type) == 0);
}

static ev_status check_object(const ir_object *object, ev_error *err) {
    if (object->varies && object->is_shared && is_sized_at_launch(object->root))
        return ev_fail(err, EV_BAD, "the contents of dynamic shared memory differ");
    return EV_OK;
}

ev_status ir_jam_check(const ir_vary *vary, ev_error *err) {
    const ir_flow *flow = vary->flow;
    for (uint32_t i = 0; i < flow->insn_count; i++)
        EV_TRY(check_insn(flow->insns[i], err));
    EV_TRY(ir_check_near(flow, err));
    for (uint32_t o = 0; o < vary->object_count; o++)
        EV_TRY(check_object(&vary->objects[o], err));
    for (uint32_t r = 0; r < vary->region_count; r++) {
        if (is_live_region(vary, r))
            EV_TRY(check_region(vary, r, err));
    }
    return EV_OK;
}

/* ---- blocks -----------------------------------------------------------------------------------
 */

static LLVMBasicBlockRef new_block(const ir_jam *jam) {
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(jam->flow->function));
    return LLVMAppendBasicBlockInContext(context, jam->flow->function, "");
}

static void stand_at_end(const ir_jam *jam, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(jam->builder, block);
    LLVMSetCurrentDebugLocation2(jam->builder, NULL);
}

static void make_blocks(ir_jam *jam) {
    for (uint32_t b = 0; b < jam->flow->count; b++) {
        bool apart = jam->vary->region_of[b] != IR_NONE;
        for (uint32_t j = 0; j < jam->members; j++) {
            LLVMBasicBlockRef *begin = &jam->begin[slot(jam, b, 0)];
            begin[j] = j == 0 || apart ? new_block(jam) : begin[0];
        }
    }
    for (uint32_t r = 0; r < jam->vary->region_count; r++) {
        for (uint32_t j = 0; j < jam->members && is_live_region(jam->vary, r); j++)
            jam->joins[slot(jam, r, j)] = new_block(jam);
    }
}

ev_status ir_jam_begin(const ir_vary *vary, uint32_t members, LLVMBuilderRef builder, ir_jam *out,
                       ev_error *err) {
    const ir_flow *flow = vary->flow;
    ev_arena *arena = flow->arena;
    ir_jam jam = {.flow = flow, .vary = vary, .builder = builder, .members = members};
    assert(members >= 1 && members <= IR_MOST_MEMBERS);
    jam.map = EV_NEW_ARRAY(arena, LLVMValueRef, (size_t)members * (flow->insn_count + 1));
    jam.own = EV_NEW_ARRAY(arena, LLVMValueRef, (size_t)members * (vary->object_count + 1));
    jam.begin = EV_NEW_ARRAY(arena, LLVMBasicBlockRef, (size_t)members * (flow->count + 1));
    jam.end = EV_NEW_ARRAY(arena, LLVMBasicBlockRef, (size_t)members * (flow->count + 1));
    jam.joins = EV_NEW_ARRAY(arena, LLVMBasicBlockRef, (size_t)members * (vary->region_count + 1));
    /* A PHI may be merged in each region, and regions do not share edges. */
    jam.phi_capacity = members * (flow->insn_count + 1);
    jam.merged_capacity = members * (flow->insn_count + 1);
    jam.phis = EV_NEW_ARRAY(arena, ir_jam_phi, jam.phi_capacity);
    jam.merged = EV_NEW_ARRAY(arena, ir_jam_join, jam.merged_capacity);
    jam.queue = EV_NEW_ARRAY(arena, uint32_t, flow->insn_count + 1);
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, 1);
    *out = jam;
    return EV_OK;
}

/* ---- values -----------------------------------------------------------------------------------
 */

static LLVMValueRef mapped(const ir_jam *jam, LLVMValueRef value, uint32_t member) {
    uint32_t insn = ir_flow_insn(jam->flow, value);
    if (insn == IR_NONE)
        return value;
    LLVMValueRef made = jam->map[slot(jam, insn, member)];
    assert(made);
    return made;
}

static void set_map(ir_jam *jam, uint32_t insn, uint32_t member, LLVMValueRef value) {
    jam->map[slot(jam, insn, member)] = value;
}

/* Writes a pointer into an object's storage for one member. */
static LLVMValueRef rebased(const ir_jam *jam, LLVMValueRef pointer, uint32_t member) {
    for (uint32_t o = 0; o < jam->vary->object_count; o++) {
        if (jam->vary->objects[o].root == pointer)
            return jam->own[slot(jam, o, member)];
    }
    LLVMValueRef base = rebased(jam, LLVMGetOperand(pointer, 0), member);
    LLVMOpcode op = LLVMIsAInstruction(pointer) ? LLVMGetInstructionOpcode(pointer)
                                                : LLVMGetConstOpcode(pointer);
    if (op != LLVMGetElementPtr)
        return LLVMBuildAddrSpaceCast(jam->builder, base, LLVMTypeOf(pointer), "");
    LLVMValueRef index[16];
    unsigned count = LLVMGetNumIndices(pointer);
    assert(count <= 16);
    for (unsigned i = 0; i < count; i++)
        index[i] = mapped(jam, LLVMGetOperand(pointer, i + 1), member);
    /* What is built may be a constant, which LLVM keeps once: a flag that is set afterwards would
     * change it where others use it. */
    LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);
    return LLVMIsInBounds(pointer)
               ? LLVMBuildInBoundsGEP2(jam->builder, type, base, index, count, "")
               : LLVMBuildGEP2(jam->builder, type, base, index, count, "");
}

static unsigned pointer_operand(LLVMValueRef insn) {
    return LLVMIsAStoreInst(insn) ? 1 : 0;
}

static LLVMValueRef clone_insn(const ir_jam *jam, uint32_t insn, uint32_t member) {
    LLVMValueRef old = jam->flow->insns[insn], made = LLVMInstructionClone(old);
    int count = LLVMGetNumOperands(old);
    for (int k = 0; k < count; k++) {
        LLVMValueRef operand = LLVMGetOperand(old, (unsigned)k);
        if (ir_flow_insn(jam->flow, operand) != IR_NONE)
            LLVMSetOperand(made, (unsigned)k, mapped(jam, operand, member));
    }
    if (jam->vary->differs_in_memory[insn])
        LLVMSetOperand(made, pointer_operand(old), rebased(jam, ir_pointer_of(old), member));
    LLVMInsertIntoBuilder(jam->builder, made);
    return made;
}

static LLVMValueRef expression(ir_jam *jam, LLVMValueRef value, uint32_t member, unsigned depth) {
    uint32_t insn = ir_flow_insn(jam->flow, value);
    if (insn == IR_NONE)
        return value;
    LLVMValueRef replaced = jam->map[slot(jam, insn, member)];
    if (replaced)
        return replaced;
    if (depth == 0 || LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value) ||
        ir_deed_of(value) != IR_DEED_PURE)
        return NULL;
    LLVMValueRef operands[16];
    int count = LLVMGetNumOperands(value);
    for (int k = 0; k < count; k++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)k);
        operands[k < 16 ? k : 15] = expression(jam, operand, member, depth - 1);
        if (k >= 16 || !operands[k])
            return NULL;
    }
    LLVMValueRef made = LLVMInstructionClone(value);
    for (int k = 0; k < count; k++)
        LLVMSetOperand(made, (unsigned)k, operands[k]);
    LLVMInsertIntoBuilder(jam->builder, made);
    return made;
}

LLVMValueRef ir_jam_expression(ir_jam *jam, LLVMValueRef value, uint32_t member) {
    enum { DEEPEST = 24 };
    return expression(jam, value, member, DEEPEST);
}

/* ---- storage ----------------------------------------------------------------------------------
 */

static LLVMValueRef copy_shared(const ir_jam *jam, LLVMValueRef global) {
    LLVMModuleRef module = LLVMGetGlobalParent(jam->flow->function);
    LLVMValueRef made =
        LLVMAddGlobalInAddressSpace(module, LLVMGlobalGetValueType(global), "evoke_shared",
                                    LLVMGetPointerAddressSpace(LLVMTypeOf(global)));
    LLVMSetInitializer(made, LLVMGetUndef(LLVMGlobalGetValueType(global)));
    LLVMSetLinkage(made, LLVMInternalLinkage);
    LLVMSetAlignment(made, LLVMGetAlignment(global));
    return made;
}

void ir_jam_allocate(ir_jam *jam) {
    for (uint32_t o = 0; o < jam->vary->object_count; o++) {
        const ir_object *object = &jam->vary->objects[o];
        LLVMValueRef *own = &jam->own[slot(jam, o, 0)];
        for (uint32_t j = 0; j < jam->members; j++) {
            if (j > 0 && !object->varies)
                own[j] = own[0];
            else if (!object->is_shared)
                LLVMInsertIntoBuilder(jam->builder, own[j] = LLVMInstructionClone(object->root));
            else
                own[j] = j == 0 ? object->root : copy_shared(jam, object->root);
        }
        uint32_t insn = ir_flow_insn(jam->flow, object->root);
        for (uint32_t j = 0; j < jam->members && insn != IR_NONE; j++)
            set_map(jam, insn, j, own[0]);
    }
}

/* ---- instructions -----------------------------------------------------------------------------
 */

/* All members at once, or one of them. */
enum { ALL = UINT32_MAX };

static bool is_apart(const ir_jam *jam, uint32_t insn) {
    return jam->vary->varies[insn] || ir_deed_of(jam->flow->insns[insn]) == IR_DEED_COUNTED;
}

static void write_phi(ir_jam *jam, uint32_t insn, uint32_t member) {
    LLVMValueRef old = jam->flow->insns[insn];
    bool apart = member != ALL || is_apart(jam, insn);
    for (uint32_t j = 0; j < jam->members; j++) {
        if (member != ALL && j != member)
            continue;
        if (j > 0 && !apart) {
            set_map(jam, insn, j, jam->map[slot(jam, insn, 0)]);
            continue;
        }
        LLVMValueRef made = LLVMBuildPhi(jam->builder, LLVMTypeOf(old), "");
        jam->phis[jam->phi_count++] = (ir_jam_phi){old, made, j};
        set_map(jam, insn, j, made);
    }
}

static void write_plain(ir_jam *jam, uint32_t insn, uint32_t member) {
    bool apart = member != ALL || is_apart(jam, insn);
    for (uint32_t j = 0; j < jam->members; j++) {
        if (member != ALL && j != member)
            continue;
        set_map(jam, insn, j,
                j > 0 && !apart ? jam->map[slot(jam, insn, 0)] : clone_insn(jam, insn, j));
    }
}

/* The value of an atomic that a member without work did not execute is zero. */
static void merge_guarded(ir_jam *jam, uint32_t insn, uint32_t member, LLVMBasicBlockRef without,
                          LLVMBasicBlockRef with) {
    LLVMValueRef made = jam->map[slot(jam, insn, member)];
    LLVMTypeRef type = LLVMTypeOf(made);
    if (LLVMGetTypeKind(type) == LLVMVoidTypeKind)
        return;
    LLVMValueRef phi = LLVMBuildPhi(jam->builder, type, "");
    LLVMValueRef values[] = {made, LLVMConstNull(type)};
    LLVMBasicBlockRef from[] = {with, without};
    LLVMAddIncoming(phi, values, from, 2);
    set_map(jam, insn, member, phi);
}

static void write_guarded(ir_jam *jam, uint32_t member) {
    LLVMBasicBlockRef before = LLVMGetInsertBlock(jam->builder);
    LLVMBasicBlockRef with = NULL, after = NULL;
    if (jam->alive[member]) {
        with = new_block(jam);
        after = new_block(jam);
        LLVMBuildCondBr(jam->builder, jam->alive[member], with, after);
        stand_at_end(jam, with);
    }
    for (uint32_t q = 0; q < jam->queue_count; q++)
        set_map(jam, jam->queue[q], member, clone_insn(jam, jam->queue[q], member));
    if (!after)
        return;
    LLVMBuildBr(jam->builder, after);
    stand_at_end(jam, after);
    for (uint32_t q = 0; q < jam->queue_count; q++)
        merge_guarded(jam, jam->queue[q], member, before, with);
}

static void flush(ir_jam *jam, uint32_t member) {
    for (uint32_t j = 0; j < jam->members && jam->queue_count > 0; j++) {
        if (member == ALL || j == member)
            write_guarded(jam, j);
    }
    jam->queue_count = 0;
}

/* Whether an effect must not happen for a member without work. In storage of a member's own, a
 * store to the thread's own place does no harm. A place that differs among the members may be
 * another thread's, and an atomic adds to what others have. */
static bool needs_guard(const ir_jam *jam, uint32_t insn, uint32_t member) {
    LLVMValueRef value = jam->flow->insns[insn], pointer = ir_pointer_of(value);
    ir_deed deed = ir_deed_of(value);
    bool is_own = jam->vary->differs_in_memory[insn] && deed == IR_DEED_STORE && pointer &&
                  !ir_varies(jam->vary, pointer);
    if (LLVMIsALoadInst(value) || is_own)
        return false;
    bool writes = deed == IR_DEED_STORE || deed == IR_DEED_COUNTED || pointer; /* of a matrix */
    return writes && (member != ALL || is_apart(jam, insn));
}

static void write_insns(ir_jam *jam, uint32_t block, uint32_t member) {
    const ir_flow *flow = jam->flow;
    for (uint32_t i = flow->first[block]; i + 1 < flow->first[block + 1]; i++) {
        ir_deed deed = ir_deed_of(flow->insns[i]);
        if (deed == IR_DEED_MARKER || jam->map[slot(jam, i, member == ALL ? 0 : member)])
            continue;
        if (LLVMIsAPHINode(flow->insns[i])) {
            write_phi(jam, i, member);
            continue;
        }
        if (needs_guard(jam, i, member)) {
            jam->queue[jam->queue_count++] = i;
            if (deed == IR_DEED_COUNTED) /* its value may be used next */
                flush(jam, member);
            continue;
        }
        if (deed != IR_DEED_PURE)
            flush(jam, member);
        write_plain(jam, i, member);
    }
    flush(jam, member);
}

/* ---- branches ---------------------------------------------------------------------------------
 */

static bool is_inside(const ir_region *region, uint32_t block) {
    return region->holds[block] && (block != region->entry || region->whole);
}

/* Writes a block's terminator for one member. `region`: the one that the branch is in; IR_NONE:
 * none. */
static void write_branch(ir_jam *jam, uint32_t block, uint32_t member, uint32_t region) {
    const ir_flow *flow = jam->flow;
    uint32_t last = flow->first[block + 1] - 1;
    LLVMValueRef made = clone_insn(jam, last, member);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(made); s++) {
        uint32_t to = flow->next.succ[flow->next.first[block] + s];
        bool leaves = region != IR_NONE && !is_inside(&jam->vary->regions[region], to);
        LLVMBasicBlockRef target = leaves
                                       ? jam->joins[slot(jam, region, member)]
                                       : jam->begin[slot(jam, to, region == IR_NONE ? 0 : member)];
        LLVMSetSuccessor(made, s, target);
    }
    jam->end[slot(jam, block, member)] = LLVMGetInsertBlock(jam->builder);
}

/* Writes a region once for each member. The builder stands at the end of the entry's instructions,
 * or anywhere if the entry belongs to the region. */
static void write_region(ir_jam *jam, uint32_t at) {
    const ir_region *region = &jam->vary->regions[at];
    uint32_t n = jam->members;
    for (uint32_t j = 0; j < n; j++) {
        if (j > 0)
            stand_at_end(jam, jam->joins[slot(jam, at, j - 1)]);
        if (!region->whole)
            write_branch(jam, region->entry, j, at);
        else if (j > 0)
            LLVMBuildBr(jam->builder, jam->begin[slot(jam, region->entry, j)]);
        for (uint32_t b = 0; b < jam->flow->count; b++) {
            if (!is_inside(region, b))
                continue;
            stand_at_end(jam, jam->begin[slot(jam, b, j)]);
            write_insns(jam, b, j);
            write_branch(jam, b, j, at);
        }
    }
    stand_at_end(jam, jam->joins[slot(jam, at, n - 1)]);
    LLVMBuildBr(jam->builder, jam->begin[slot(jam, region->exit, 0)]);
}

static void write_block(ir_jam *jam, uint32_t block) {
    const ir_vary *vary = jam->vary;
    uint32_t inside = vary->region_of[block], branch = vary->branch_of[block];
    if (inside != IR_NONE) {
        if (vary->regions[inside].entry == block)
            write_region(jam, inside);
        return;
    }
    stand_at_end(jam, jam->begin[slot(jam, block, 0)]);
    write_insns(jam, block, ALL);
    if (branch != IR_NONE) {
        write_region(jam, branch);
        return;
    }
    write_branch(jam, block, 0, IR_NONE);
    for (uint32_t j = 1; j < jam->members; j++)
        jam->end[slot(jam, block, j)] = jam->end[slot(jam, block, 0)];
}

/* ---- PHIs -------------------------------------------------------------------------------------
 */

static uint32_t branch_region(const ir_jam *jam, LLVMValueRef phi, unsigned i) {
    uint32_t from = ir_flow_block(jam->flow, LLVMGetIncomingBlock(phi, i));
    return from == IR_NONE ? IR_NONE : jam->vary->branch_of[from];
}

static void add_edge(LLVMValueRef phi, LLVMValueRef value, LLVMBasicBlockRef from) {
    LLVMAddIncoming(phi, &value, &from, 1);
}

/* The edge of incoming value `i` as the old code has it, for one member. */
static void add_old_edge(const ir_jam *jam, LLVMValueRef to, LLVMValueRef phi, unsigned i,
                         uint32_t member) {
    uint32_t from = ir_flow_block(jam->flow, LLVMGetIncomingBlock(phi, i));
    if (from != IR_NONE) /* else unreachable */
        add_edge(to, mapped(jam, LLVMGetIncomingValue(phi, i), member),
                 jam->end[slot(jam, from, member)]);
}

/* What a PHI takes out of a region, merged in one member's join. */
static LLVMValueRef merged(ir_jam *jam, LLVMValueRef phi, uint32_t region, uint32_t member) {
    for (uint32_t m = 0; m < jam->merged_count; m++) {
        const ir_jam_join *row = &jam->merged[m];
        if (row->old == phi && row->region == region && row->member == member)
            return row->made;
    }
    LLVMBasicBlockRef join = jam->joins[slot(jam, region, member)];
    LLVMPositionBuilderBefore(jam->builder, LLVMGetFirstInstruction(join));
    LLVMSetCurrentDebugLocation2(jam->builder, NULL);
    LLVMValueRef made = LLVMBuildPhi(jam->builder, LLVMTypeOf(phi), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        if (branch_region(jam, phi, i) == region)
            add_old_edge(jam, made, phi, i, member);
    }
    assert(jam->merged_count < jam->merged_capacity);
    jam->merged[jam->merged_count++] = (ir_jam_join){phi, region, member, made};
    return made;
}

/* Whether an earlier incoming value comes out of the same region. */
static bool has_come(const ir_jam *jam, LLVMValueRef phi, unsigned i) {
    for (unsigned k = 0; k < i; k++) {
        if (branch_region(jam, phi, k) == branch_region(jam, phi, i))
            return true;
    }
    return false;
}

/* Adds the edge of incoming value `i` that comes from outside of `own`, the PHI's region. */
static void add_outer_edge(ir_jam *jam, const ir_jam_phi *row, unsigned i, uint32_t own) {
    uint32_t region = branch_region(jam, row->old, i), n = jam->members;
    bool follows = own != IR_NONE && row->member > 0;
    LLVMBasicBlockRef before = follows ? jam->joins[slot(jam, own, row->member - 1)] : NULL;
    if (region != IR_NONE) {
        if (!has_come(jam, row->old, i))
            add_edge(row->made, merged(jam, row->old, region, row->member),
                     follows ? before : jam->joins[slot(jam, region, n - 1)]);
    } else if (follows) {
        add_edge(row->made, mapped(jam, LLVMGetIncomingValue(row->old, i), row->member), before);
    } else {
        add_old_edge(jam, row->made, row->old, i, row->member);
    }
}

static void fill_phi(ir_jam *jam, const ir_jam_phi *row) {
    uint32_t block = jam->flow->home[ir_flow_insn(jam->flow, row->old)];
    uint32_t own = jam->vary->region_of[block];
    for (unsigned i = 0; i < LLVMCountIncoming(row->old); i++) {
        if (own != IR_NONE && branch_region(jam, row->old, i) == own)
            add_old_edge(jam, row->made, row->old, i, row->member);
        else
            add_outer_edge(jam, row, i, own);
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Removes the old blocks, whose instructions may use each other. */
static void remove_old(const ir_jam *jam) {
    for (uint32_t i = 0; i < jam->flow->insn_count; i++) {
        LLVMTypeRef type = LLVMTypeOf(jam->flow->insns[i]);
        if (LLVMGetTypeKind(type) != LLVMVoidTypeKind)
            LLVMReplaceAllUsesWith(jam->flow->insns[i], LLVMGetPoison(type));
    }
    for (uint32_t i = 0; i < jam->flow->insn_count; i++)
        LLVMInstructionEraseFromParent(jam->flow->insns[i]);
    for (uint32_t b = 0; b < jam->flow->count; b++)
        LLVMDeleteBasicBlock(jam->flow->blocks[b]);
}

ev_status ir_jam_write(ir_jam *jam, const LLVMBasicBlockRef *keep, size_t keep_count,
                       ev_error *err) {
    make_blocks(jam);
    LLVMBuildBr(jam->builder, jam->begin[0]);
    for (size_t i = 0; i < keep_count; i++)
        LLVMMoveBasicBlockBefore(keep[i], jam->flow->blocks[0]);
    for (uint32_t b = 0; b < jam->flow->count; b++)
        write_block(jam, b);
    for (uint32_t p = 0; p < jam->phi_count; p++)
        fill_phi(jam, &jam->phis[p]);
    remove_old(jam);
    return ev_arena_failed(jam->flow->arena) ? ev_fail_memory(err, 1) : EV_OK;
}
