/* Merge: loads of one address become one load, and addresses that differ by a constant share their
 * arithmetic.
 *
 * Jammed members and unrolled turns often load the same values: the window of one output slides
 * along with the next one's. Their addresses are compared as polynomials (polynomials_internal.h).
 * A load takes the value of an earlier one of the same address that dominates it, if nothing
 * between the two may write there. An earlier load that stands under conditions serves, too, if
 * they hold wherever the later load runs (facts_internal.h): neighbours at the border of an image
 * test the same columns. Its value then goes through a variable in memory, which LLVM makes a PHI
 * of. Every other address of the same polynomial is written as an earlier one plus a constant, so
 * that LLVM sees which accesses are neighbours, and joins them into vectors. */
#include "ir/structure/analyses/facts_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/passes/passes_internal.h"

enum { MOST_LOOKS = 256, FARTHEST = 1 << 20 };

typedef struct access {
    uint32_t insn;
    ir_spot spot;
    LLVMValueRef pointer, root; /* root: what the address begins at */
    uint32_t before;            /* the last access of the same sum; IR_NONE: none */
    LLVMValueRef variable;      /* holds a load's value for loads that it does not dominate ... */
    uint32_t fork;              /* ... and holds 0 from the branch of this block on */
} access;

typedef struct merging {
    ir_flow flow;
    ir_facts_of *facts;
    access *accesses, *writes; /* writes: root NULL: it may write anywhere */
    uint32_t count, write_count;
    uint32_t *last; /* by sum: its last access, plus 1 */
    uint32_t last_capacity;
    LLVMValueRef *merged; /* loads without uses */
    uint32_t merged_count;
    LLVMBuilderRef builder;
    bool changed;
} merging;

static LLVMValueRef root_of(LLVMValueRef pointer) {
    for (;; pointer = LLVMGetOperand(pointer, 0)) {
        LLVMOpcode op = LLVMRet;
        if (LLVMIsAInstruction(pointer))
            op = LLVMGetInstructionOpcode(pointer);
        else if (LLVMIsAConstantExpr(pointer))
            op = LLVMGetConstOpcode(pointer);
        if (op != LLVMGetElementPtr && op != LLVMAddrSpaceCast && op != LLVMBitCast)
            return pointer;
    }
}

static bool is_shared_array(LLVMValueRef root) {
    return LLVMIsAGlobalVariable(root) &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(root)) == IR_SHARED_SPACE;
}

/* Whether two addresses are never the same, by what they begin at. */
static bool are_apart(LLVMValueRef a, LLVMValueRef b) {
    if (!a || !b || a == b)
        return false;
    return (is_shared_array(a) && (is_shared_array(b) || LLVMIsAArgument(b))) ||
           (is_shared_array(b) && LLVMIsAArgument(a));
}

static bool is_over(const ir_flow *flow, uint32_t a, uint32_t b) {
    if (flow->home[a] == flow->home[b])
        return a < b;
    return ir_dominance_over(&flow->over, flow->home[a], flow->home[b]);
}

/* Whether something between two loads, the first over the second, may write what they read. */
static bool is_written_between(const merging *m, const access *a, const access *b) {
    const ir_flow *flow = &m->flow;
    bool same_block = flow->home[a->insn] == flow->home[b->insn];
    for (uint32_t w = 0; w < m->write_count; w++) {
        uint32_t at = m->writes[w].insn;
        bool between = same_block
                           ? at > a->insn && at < b->insn
                           : ir_flow_leads(flow, a->insn, at) && ir_flow_leads(flow, at, b->insn);
        if (between && !are_apart(m->writes[w].root, a->root))
            return true;
    }
    return false;
}

/* Whether `b` is a load of what `a` loads. */
static bool loads_the_same(const merging *m, const access *b, const access *a) {
    LLVMValueRef load = m->flow.insns[a->insn], other = m->flow.insns[b->insn];
    return b->spot.constant == a->spot.constant && LLVMIsALoadInst(other) &&
           LLVMTypeOf(other) == LLVMTypeOf(load);
}

/* Takes the value of an earlier load that dominates this one; false: there is none. */
static bool take_earlier(merging *m, const access *a) {
    const ir_flow *flow = &m->flow;
    uint32_t looks = 0;
    for (uint32_t at = a->before; at != IR_NONE && looks < MOST_LOOKS; looks++) {
        const access *b = &m->accesses[at];
        at = b->before;
        if (!loads_the_same(m, b, a) || !is_over(flow, b->insn, a->insn) ||
            is_written_between(m, b, a))
            continue;
        LLVMReplaceAllUsesWith(flow->insns[a->insn], flow->insns[b->insn]);
        return true;
    }
    return false;
}

/* The variable that holds the value of a load where it has run, and 0 where the branch at the end
 * of `fork` has passed it by. */
static LLVMValueRef variable_of(const merging *m, access *b, uint32_t fork) {
    if (b->variable && b->fork == fork)
        return b->variable;
    LLVMValueRef load = m->flow.insns[b->insn];
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMPositionBuilderBefore(m->builder, LLVMGetFirstInstruction(m->flow.blocks[0]));
    b->variable = LLVMBuildAlloca(m->builder, type, "");
    b->fork = fork;
    LLVMPositionBuilderBefore(m->builder, ir_flow_last(&m->flow, fork));
    LLVMBuildStore(m->builder, LLVMConstNull(type), b->variable);
    LLVMPositionBuilderBefore(m->builder, LLVMGetNextInstruction(load));
    LLVMBuildStore(m->builder, load, b->variable);
    return b->variable;
}

/* Takes the value of an earlier load that has run wherever this one runs; false: there is none. */
static bool take_guarded(merging *m, const access *a) {
    const ir_flow *flow = &m->flow;
    LLVMValueRef load = flow->insns[a->insn];
    uint32_t looks = 0, fork = 0;
    for (uint32_t at = a->before; at != IR_NONE && looks < MOST_LOOKS; looks++) {
        access *b = &m->accesses[at];
        at = b->before;
        if (!loads_the_same(m, b, a) ||
            !ir_facts_runs_before(m->facts, flow->home[b->insn], flow->home[a->insn], &fork) ||
            fork == flow->home[b->insn] || is_written_between(m, b, a))
            continue;
        LLVMValueRef variable = variable_of(m, b, fork);
        LLVMPositionBuilderBefore(m->builder, load);
        LLVMReplaceAllUsesWith(load, LLVMBuildLoad2(m->builder, LLVMTypeOf(load), variable, ""));
        return true;
    }
    return false;
}

/* Writes the address as the first one of its sum that dominates, plus a constant. */
static void write_address(merging *m, const access *a) {
    const access *first = NULL;
    uint32_t looks = 0;
    for (uint32_t at = a->before; at != IR_NONE && looks < MOST_LOOKS; looks++) {
        const access *b = &m->accesses[at];
        at = b->before;
        if (is_over(&m->flow, b->insn, a->insn) && LLVMTypeOf(b->pointer) == LLVMTypeOf(a->pointer))
            first = b;
    }
    int64_t way = first ? a->spot.constant - first->spot.constant : 0;
    if (!first || first->pointer == a->pointer || way > FARTHEST || way < -FARTHEST)
        return;
    LLVMValueRef insn = m->flow.insns[a->insn], pointer = first->pointer;
    if (way != 0) {
        LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(insn));
        LLVMValueRef by = LLVMConstInt(LLVMInt64TypeInContext(context), (uint64_t)way, true);
        LLVMPositionBuilderBefore(m->builder, insn);
        pointer = LLVMBuildGEP2(m->builder, LLVMInt8TypeInContext(context), pointer, &by, 1, "");
    }
    LLVMSetOperand(insn, LLVMIsAStoreInst(insn) ? 1 : 0, pointer);
    m->changed = true;
}

static bool is_plain_access(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return (LLVMIsALoadInst(insn) && deed == IR_DEED_LOAD) ||
           (LLVMIsAStoreInst(insn) && deed == IR_DEED_STORE);
}

/* Notes the access as the last one of its sum. False: out of memory. */
static bool note(merging *m, ir_polynomials *sums, access *a) {
    if (!ir_polynomials_spot(sums, a->pointer, &a->spot))
        return false;
    a->before = IR_NONE;
    if (a->spot.sum == IR_NONE)
        return true;
    if (a->spot.sum >= m->last_capacity) {
        uint32_t capacity = 2 * ir_polynomials_count(sums) + 64;
        uint32_t *last = EV_NEW_ARRAY(m->flow.arena, uint32_t, capacity);
        if (!last)
            return false;
        for (uint32_t i = 0; i < m->last_capacity; i++)
            last[i] = m->last[i];
        m->last = last;
        m->last_capacity = capacity;
    }
    a->before = m->last[a->spot.sum] - 1; /* 0 - 1 is IR_NONE */
    m->last[a->spot.sum] = ++m->count;
    return true;
}

static void list_writes(merging *m) {
    for (uint32_t i = 0; i < m->flow.insn_count; i++) {
        LLVMValueRef insn = m->flow.insns[i];
        ir_deed deed = ir_deed_of(insn);
        if (!ir_has_effect(insn) || (deed == IR_DEED_WARP && !ir_pointer_of(insn)))
            continue;
        LLVMValueRef pointer = deed == IR_DEED_STORE ? ir_pointer_of(insn) : NULL;
        m->writes[m->write_count++] =
            (access){.insn = i, .root = pointer ? root_of(pointer) : NULL};
    }
}

static bool merge_all(merging *m) {
    ir_polynomials *sums = ir_polynomials_new(LLVMGetGlobalParent(m->flow.function), m->flow.arena);
    m->accesses = EV_NEW_ARRAY(m->flow.arena, access, m->flow.insn_count + 1);
    m->writes = EV_NEW_ARRAY(m->flow.arena, access, m->flow.insn_count + 1);
    m->merged = EV_NEW_ARRAY(m->flow.arena, LLVMValueRef, m->flow.insn_count + 1);
    m->facts = sums ? ir_facts_new(&m->flow, sums) : NULL;
    if (!m->facts || !m->accesses || !m->writes || !m->merged)
        return false;
    list_writes(m);
    for (uint32_t i = 0; i < m->flow.insn_count; i++) {
        LLVMValueRef insn = m->flow.insns[i];
        if (!is_plain_access(insn))
            continue;
        access *a = &m->accesses[m->count];
        *a = (access){.insn = i, .pointer = ir_pointer_of(insn)};
        a->root = root_of(a->pointer);
        if (!note(m, sums, a))
            return false;
        if (a->before == IR_NONE)
            continue;
        if (LLVMIsALoadInst(insn) && (take_earlier(m, a) || take_guarded(m, a))) {
            m->merged[m->merged_count++] = insn;
            m->last[a->spot.sum] = a->before + 1;
            m->count--;
            continue;
        }
        write_address(m, a);
        a->pointer = ir_pointer_of(insn);
    }
    return !ir_facts_failed(m->facts);
}

ev_status ir_merge_loads(LLVMValueRef function, ev_arena *arena, bool *changed, ev_error *err) {
    merging m = {.changed = false};
    EV_TRY(ir_flow_make(function, arena, &m.flow, err));
    m.builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(function)));
    LLVMSetCurrentDebugLocation2(m.builder, NULL);
    bool ok = merge_all(&m);
    LLVMDisposeBuilder(m.builder);
    for (uint32_t i = 0; i < m.merged_count; i++)
        LLVMInstructionEraseFromParent(m.merged[i]);
    *changed = m.changed || m.merged_count > 0;
    return ok ? EV_OK : ev_fail_memory(err, m.flow.insn_count);
}
