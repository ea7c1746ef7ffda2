/* Facts: see facts_internal.h. The facts of a block are those of the edges on its way down the tree
 * of dominators. An edge says something where it is the only one into its block. */
#include "ir/structure/analyses/facts_internal.h"
#include "ir/structure/analyses/guards_internal.h"

enum { DEEPEST = 6 }; /* conditions of conditions that are taken apart */

struct ir_facts_of {
    const ir_flow *flow;
    ir_polynomials *sums;
    ir_facts **blocks; /* by block; NULL: not asked for yet */
    bool failed;
};

static void add(ir_facts *to, const ir_fact *fact) {
    if (to->count == IR_MOST_FACTS)
        to->is_full = true;
    else
        to->items[to->count++] = *fact;
}

/* ---- comparisons ---- */

static bool is_unsigned(LLVMIntPredicate p) {
    return p == LLVMIntUGT || p == LLVMIntUGE || p == LLVMIntULT || p == LLVMIntULE;
}

static bool is_greater(LLVMIntPredicate p) {
    return p == LLVMIntUGT || p == LLVMIntUGE || p == LLVMIntSGT || p == LLVMIntSGE;
}

static bool has_equals(LLVMIntPredicate p) {
    return p == LLVMIntUGE || p == LLVMIntULE || p == LLVMIntSGE || p == LLVMIntSLE;
}

/* The difference that a comparison tests; false: it is no sum. */
static bool subtract(ir_facts_of *f, LLVMValueRef from, LLVMValueRef what, bool is_signed,
                     ir_spot *out) {
    f->failed |= !ir_polynomials_difference(f->sums, from, what, is_signed, out);
    return !f->failed && out->sum != IR_NONE;
}

/* Equality says the same of left - right and right - left: that with the smaller number stands. */
static bool equality(ir_facts_of *f, LLVMValueRef left, LLVMValueRef right, ir_spot *out) {
    ir_spot back;
    if (!subtract(f, left, right, true, out) || !subtract(f, right, left, true, &back))
        return false;
    if (back.sum < out->sum)
        *out = back;
    return true;
}

static bool read_comparison(ir_facts_of *f, LLVMValueRef condition, bool truth, ir_fact *out) {
    if (!LLVMIsAICmpInst(condition))
        return false;
    LLVMIntPredicate p = LLVMGetICmpPredicate(condition);
    LLVMValueRef left = LLVMGetOperand(condition, 0), right = LLVMGetOperand(condition, 1);
    if (!truth)
        p = ir_predicate_inverse(p);
    if (p == LLVMIntEQ || p == LLVMIntNE) {
        out->kind = p == LLVMIntEQ ? IR_FACT_ZERO : IR_FACT_OTHER;
        return equality(f, left, right, &out->sum);
    }
    out->kind = IR_FACT_BELOW;
    bool ok = is_greater(p) ? subtract(f, right, left, !is_unsigned(p), &out->sum)
                            : subtract(f, left, right, !is_unsigned(p), &out->sum);
    out->sum.constant -= has_equals(p); /* at most 0 is below 1 */
    return ok;
}

/* ---- conditions ---- */

static void add_condition(ir_facts_of *f, LLVMValueRef condition, bool truth, unsigned depth,
                          ir_facts *to) {
    LLVMValueRef parts[2];
    ir_fact fact = {.kind = IR_FACT_TRUE, .value = condition, .truth = truth};
    if (depth > 0 && LLVMIsAInstruction(condition) &&
        LLVMGetInstructionOpcode(condition) == LLVMXor &&
        ir_is_bit(LLVMGetOperand(condition, 1), true)) {
        add_condition(f, LLVMGetOperand(condition, 0), !truth, depth - 1, to);
    } else if (depth > 0 && ir_is_either(condition, !truth, parts)) {
        add_condition(f, parts[0], truth, depth - 1, to);
        add_condition(f, parts[1], truth, depth - 1, to);
    } else {
        ir_fact compared = {.kind = IR_FACT_BELOW};
        add(to, read_comparison(f, condition, truth, &compared) ? &compared : &fact);
    }
}

/* ---- blocks ---- */

/* Whether an edge leads from the dominator `from` to `to`, under a condition and as the only one
 * into `to`. */
static bool is_tested(const ir_flow *flow, uint32_t from, uint32_t to) {
    LLVMValueRef last = ir_flow_last(flow, from);
    return flow->back.first[to + 1] - flow->back.first[to] == 1 &&
           flow->back.succ[flow->back.first[to]] == from && LLVMIsABranchInst(last) &&
           LLVMIsConditional(last) && LLVMGetSuccessor(last, 0) != LLVMGetSuccessor(last, 1);
}

static void add_edge(ir_facts_of *f, uint32_t from, uint32_t to, ir_facts *out) {
    LLVMValueRef last = ir_flow_last(f->flow, from);
    bool truth = LLVMGetSuccessor(last, 0) == f->flow->blocks[to];
    add_condition(f, LLVMGetCondition(last), truth, DEEPEST, out);
}

/* What holds in a block. NULL: out of memory. */
static const ir_facts *facts_of(ir_facts_of *f, uint32_t block) {
    if (f->blocks[block])
        return f->blocks[block];
    ir_facts *out = EV_NEW(f->flow->arena, ir_facts);
    f->failed |= out == NULL;
    for (uint32_t at = block; out && at != 0; at = f->flow->over.idom[at]) {
        if (is_tested(f->flow, f->flow->over.idom[at], at))
            add_edge(f, f->flow->over.idom[at], at, out);
    }
    return f->blocks[block] = out;
}

static bool follows_from(const ir_facts_of *f, const ir_fact *fact, const ir_fact *known) {
    if (fact->kind != known->kind)
        return false;
    if (fact->kind == IR_FACT_TRUE)
        return fact->value == known->value && fact->truth == known->truth;
    if (fact->kind == IR_FACT_BELOW)
        return ir_polynomials_at_most(f->sums, &fact->sum, &known->sum);
    return fact->sum.sum == known->sum.sum && fact->sum.constant == known->sum.constant;
}

static bool follow_from(const ir_facts_of *f, const ir_facts *facts, const ir_facts *known) {
    for (uint32_t i = 0; i < facts->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < known->count && !found; k++)
            found = follows_from(f, &facts->items[i], &known->items[k]);
        if (!found)
            return false;
    }
    return !facts->is_full;
}

/* Whether control comes from a dominator `from` to `to` whenever these facts hold. */
static bool is_reached(ir_facts_of *f, uint32_t from, uint32_t to, const ir_facts *known) {
    const ir_flow *flow = f->flow;
    if (ir_dominance_over(&flow->under, to + 1, from + 1))
        return true;
    if (!is_tested(flow, from, to))
        return false;
    ir_facts needed = {.count = 0};
    add_edge(f, from, to, &needed);
    return follow_from(f, &needed, known);
}

bool ir_facts_runs_before(ir_facts_of *f, uint32_t a, uint32_t b, uint32_t *fork) {
    const ir_flow *flow = f->flow;
    const ir_facts *known = facts_of(f, b);
    uint32_t at = a;
    while (known && !ir_dominance_over(&flow->over, at, b)) {
        uint32_t from = flow->over.idom[at];
        if (!is_reached(f, from, at, known))
            return false;
        at = from;
    }
    *fork = at;
    if (at == a)
        return known != NULL;
    uint32_t join = ir_flow_joins_at(flow, at);
    return known && join != IR_NONE && ir_dominance_over(&flow->over, join, b) &&
           ir_loop_of(flow, a) == ir_loop_of(flow, at);
}

bool ir_facts_failed(const ir_facts_of *facts) {
    return facts->failed;
}

ir_facts_of *ir_facts_new(const ir_flow *flow, ir_polynomials *sums) {
    ir_facts_of *f = EV_NEW(flow->arena, ir_facts_of);
    if (!f)
        return NULL;
    *f = (ir_facts_of){.flow = flow, .sums = sums};
    f->blocks = EV_NEW_ARRAY(flow->arena, ir_facts *, flow->count);
    return f->blocks ? f : NULL;
}
