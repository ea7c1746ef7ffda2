/* Nests: two loops, one in the other, that make the same sums. A team of threads shares the turns
 * of both: its rows take turns of the outer loop, and the threads of a row turns of the inner one.
 * So neighbouring threads read neighbouring places in rows that are short or many.
 *
 * What a thread has summed up in one turn of the outer loop goes on in its next turn, so the team
 * exchanges once, behind the outer loop. */
#include "ir/structure/sums_internal.h"

/* ---- sums that a loop inside goes on with -------------------------------------------------------
 */

const ir_loop *ir_sums_inner(const ir_sums *sums, LLVMValueRef phi) {
    for (uint32_t l = 0; LLVMIsAPHINode(phi) && l < sums->flow->loop_count; l++) {
        const ir_loop *loop = &sums->flow->loops[l];
        if (loop != sums->loop && sums->loop->holds[loop->header] &&
            sums->flow->blocks[loop->header] == LLVMGetInstructionParent(phi))
            return loop;
    }
    return NULL;
}

bool ir_sums_nest(const ir_sums *sums, LLVMValueRef phi) {
    for (uint32_t i = 0; i < sums->flow->insn_count; i++) {
        LLVMValueRef insn = sums->flow->insns[i];
        ir_sum_kind kind = IR_SUM_NONE;
        if (ir_sums_hold(sums, insn) && ir_sums_inner(sums, insn) &&
            ir_sum_leads_to(sums, insn, phi, &kind))
            return true;
    }
    return false;
}

/* ---- two loops --------------------------------------------------------------------------------
 */

/* The one loop in another one; NULL: there is none, or several. */
static const ir_loop *only_child(const ir_flow *flow, const ir_loop *outer) {
    const ir_loop *child = NULL;
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *loop = &flow->loops[l];
        if (loop->parent == IR_NONE || &flow->loops[loop->parent] != outer)
            continue;
        if (child)
            return NULL;
        child = loop;
    }
    return child;
}

/* The value that PHIs with one edge stand for. */
static LLVMValueRef handed_on(LLVMValueRef value) {
    while (LLVMIsAPHINode(value) && LLVMCountIncoming(value) == 1)
        value = LLVMGetIncomingValue(value, 0);
    return value;
}

/* The item of the inner loop that goes on with a sum of the outer one, which adds nothing itself;
 * NULL: there is none. */
static const ir_sum *inner_part(const ir_nest *n, const ir_sum *sum) {
    const ir_flow *flow = n->outer->flow;
    LLVMValueRef last = handed_on(ir_flow_incoming(flow, sum->phi, n->outer->loop->latch));
    for (uint32_t i = 0; i < n->inner.count; i++) {
        const ir_sum *it = &n->inner.items[i];
        if (it->phi == last && it->kind == sum->kind &&
            ir_flow_incoming(flow, it->phi, n->inner.loop->preheader) == sum->phi)
            return it;
    }
    return NULL;
}

static uint32_t count_sums(const ir_sums *sums) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < sums->count; i++)
        count += sums->items[i].kind != IR_SUM_STEP;
    return count;
}

bool ir_share_writes(const ir_flow *flow, const ir_loop *loop) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (loop->holds[flow->home[i]] && ir_share_is_effect(flow->insns[i]))
            return true;
    }
    return false;
}

ev_status ir_nest_find(const ir_flow *flow, const ir_loop *outer, uint32_t threads, ir_sums *sums,
                       ir_nest *out, ev_error *err) {
    const ir_loop *inner = only_child(flow, outer);
    if (!inner)
        return ev_fail(err, EV_BAD, "the loop does not have one loop inside");
    if (ir_share_writes(flow, outer))
        return ev_fail(err, EV_BAD, "the turns of the loop write");
    *out = (ir_nest){.rows = threads > 2 * IR_WARP ? threads / IR_WARP : 2, .outer = sums};
    EV_TRY(ir_sums_find(flow, outer, out->rows, sums, err));
    EV_TRY(ir_sums_find(flow, inner, threads / out->rows, &out->inner, err));
    bool runs = sums->runs || out->inner.runs;
    bool picks = sums->key != IR_NONE || out->inner.key != IR_NONE;
    bool goes_on = sums->any && count_sums(sums) == count_sums(&out->inner);
    for (uint32_t i = 0; i < sums->count; i++) {
        const ir_sum *it = &sums->items[i];
        goes_on = goes_on && (it->kind == IR_SUM_STEP || inner_part(out, it));
    }
    if (!runs && !picks && goes_on)
        return EV_OK;
    return ev_fail(err, EV_BAD, "the loop inside does not make the sums of the loop alone");
}

void ir_nest_share(const ir_share *share, const ir_nest *nest, ir_gather *out) {
    LLVMBuilderRef b = share->builder;
    ir_share row = *share, column = *share;
    row.threads = nest->outer->threads;
    column.threads = nest->inner.threads;
    LLVMValueRef columns = ir_share_number(share, column.threads);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(share->place));
    LLVMSetCurrentDebugLocation2(b, NULL);
    row.place = LLVMBuildUDiv(b, share->place, columns, "");
    column.place = LLVMBuildURem(b, share->place, columns, "");
    ir_share_turns(&row, nest->outer, out);
    ir_share_counters(&column, &nest->inner);
}
