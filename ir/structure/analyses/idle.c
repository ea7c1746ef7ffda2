/* Idle: what members without work may do with the values of atomics, which they do not make, and
 * with what they load where the kernel writes: others may have written there since. What is
 * computed of such a value is followed through arithmetic, through arrays of the block or the
 * thread, and through branches to where they join. */
#include "ir/structure/analyses/vary_internal.h"

typedef struct idling {
    const ir_flow *flow;
    const ir_vary *vary;
    bool *reached;    /* by instruction: its value depends on one that such a member has not */
    bool *in_object;  /* by object: such a value was stored there */
    bool *is_decided; /* by block: its PHIs depend on a branch by such a value */
} idling;

static bool is_reached(const idling *d, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(d->flow, value);
    return insn != IR_NONE && d->reached[insn];
}

static bool has_reached_operand(const idling *d, LLVMValueRef insn) {
    for (int k = 0; k < LLVMGetNumOperands(insn); k++) {
        if (is_reached(d, LLVMGetOperand(insn, (unsigned)k)))
            return true;
    }
    return false;
}

/* Whether each way to a block comes by one edge of a branch. */
static bool is_on_one_side(const ir_flow *flow, uint32_t branch, uint32_t block) {
    for (uint32_t e = flow->next.first[branch]; e < flow->next.first[branch + 1]; e++) {
        uint32_t side = flow->next.succ[e];
        if (flow->back.first[side + 1] - flow->back.first[side] == 1 &&
            ir_dominance_over(&flow->over, side, block))
            return true;
    }
    return false;
}

/* Marks the blocks in which the ways behind a branch join. */
static void mark_joins(idling *d, uint32_t branch) {
    const ir_flow *flow = d->flow;
    uint32_t end = ir_flow_joins_at(flow, branch);
    for (uint32_t b = 0; b < flow->count; b++) {
        bool follows = flow->reaches[(size_t)branch * flow->count + b];
        bool is_before = end == IR_NONE || b == end || !ir_dominance_over(&flow->over, end, b);
        d->is_decided[b] |= follows && is_before && !is_on_one_side(flow, branch, b);
    }
}

static bool is_atomic(LLVMValueRef insn) {
    return ir_deed_of(insn) == IR_DEED_COUNTED && !LLVMIsALoadInst(insn);
}

/* The number of the object that an access goes to; the number of objects: none that is known. */
static uint32_t object_at(const idling *d, LLVMValueRef pointer) {
    const ir_object *object = ir_vary_object(d->vary, pointer);
    return object ? (uint32_t)(object - d->vary->objects) : d->vary->object_count;
}

/* Whether instruction `i` depends on a value that a member without work does not have. */
static bool depends(const idling *d, uint32_t i) {
    LLVMValueRef insn = d->flow->insns[i], pointer = ir_pointer_of(insn);
    if (is_atomic(insn) || has_reached_operand(d, insn))
        return true;
    if (LLVMIsAPHINode(insn))
        return d->is_decided[d->flow->home[i]];
    if (ir_deed_of(insn) != IR_DEED_LOAD || !LLVMIsALoadInst(insn))
        return false;
    uint32_t object = object_at(d, pointer);
    return object < d->vary->object_count ? d->in_object[object] : ir_may_change(d->flow, pointer);
}

static void follow(idling *d, uint32_t i) {
    LLVMValueRef insn = d->flow->insns[i], pointer = ir_pointer_of(insn);
    uint32_t object = pointer ? object_at(d, pointer) : d->vary->object_count;
    d->reached[i] = true;
    if (object < d->vary->object_count)
        d->in_object[object] = true;
    if (LLVMIsATerminatorInst(insn))
        mark_joins(d, d->flow->home[i]);
}

static bool leaves_loop(const ir_flow *flow, uint32_t block) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        for (uint32_t e = flow->next.first[block]; e < flow->next.first[block + 1]; e++) {
            if (flow->loops[l].holds[block] && !flow->loops[l].holds[flow->next.succ[e]])
                return true;
        }
    }
    return false;
}

/* Whether a member without work must not execute a reached instruction. */
static bool is_dangerous(const idling *d, uint32_t i) {
    LLVMValueRef insn = d->flow->insns[i], pointer = ir_pointer_of(insn);
    ir_deed deed = ir_deed_of(insn);
    if (LLVMIsALoadInst(insn))
        return is_reached(d, pointer);
    if (LLVMIsATerminatorInst(insn))
        return leaves_loop(d->flow, d->flow->home[i]);
    return ir_divides(insn) || deed == IR_DEED_LOAD || (deed == IR_DEED_WARP && !pointer);
}

static void follow_all(idling *d) {
    for (bool grows = true; grows;) {
        grows = false;
        for (uint32_t i = 0; i < d->flow->insn_count; i++) {
            if (d->reached[i] || !depends(d, i))
                continue;
            follow(d, i);
            grows = true;
        }
    }
}

static bool is_told(const idling *d, uint32_t insn) {
    return ir_is_led_by_told(d->flow, 0, d->flow->home[insn]);
}

/* A member without work does not store to a place that may be another thread's, so its own array
 * may lack what it loads there. Returns whether data decides if some load from such an array runs.
 */
static bool mark_guarded(idling *d) {
    bool is_hidden = false;
    for (uint32_t k = 0; k < d->vary->access_count; k++) {
        LLVMValueRef insn = d->flow->insns[d->vary->accesses[k]];
        const ir_object *object = d->vary->object_of[k];
        if (object && !LLVMIsALoadInst(insn) &&
            (d->vary->shared_is_one || ir_varies(d->vary, ir_pointer_of(insn))))
            d->in_object[object - d->vary->objects] = true;
    }
    for (uint32_t k = 0; k < d->vary->access_count; k++) {
        uint32_t insn = d->vary->accesses[k];
        const ir_object *object = d->vary->object_of[k];
        is_hidden |= object && LLVMIsALoadInst(d->flow->insns[insn]) &&
                     d->in_object[object - d->vary->objects] && !is_told(d, insn);
    }
    return is_hidden;
}

ev_status ir_check_idle(const ir_vary *vary, ev_error *err) {
    const ir_flow *flow = vary->flow;
    idling d = {.flow = flow, .vary = vary};
    d.reached = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
    d.in_object = EV_NEW_ARRAY(flow->arena, bool, vary->object_count + 1);
    d.is_decided = EV_NEW_ARRAY(flow->arena, bool, flow->count + 1);
    if (!d.reached || !d.in_object || !d.is_decided)
        return ev_fail_memory(err, flow->insn_count);
    follow_all(&d);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (d.reached[i] && is_dangerous(&d, i))
            return ev_fail(err, EV_BAD,
                           "the value of an atomic, or of what the kernel writes to, decides where "
                           "the kernel loads from, what it divides by or when a loop ends, and "
                           "threads without work have none");
    }
    bool is_hidden = mark_guarded(&d);
    follow_all(&d);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (d.reached[i] && is_dangerous(&d, i) && (is_hidden || !is_told(&d, i)))
            return ev_fail(err, EV_BAD,
                           "under a condition of data, values of a shared or local array decide "
                           "where the kernel loads from, what it divides by or when a loop ends, "
                           "and threads without work have not stored them");
    }
    return EV_OK;
}
