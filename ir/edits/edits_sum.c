/* The edit that splits the floating-point sum of a loop into two, so that one addition need not
 * wait for the other. LLVM's optimiser does not split a sum even where reassociation is allowed.
 *
 * The edit recognises a PHI that is updated by a chain of additions in the loop, and gives every
 * second addition to a second PHI. The second sum starts at -0, because x + (-0) = x for every x
 * (IEEE 754). The two sums are added after the loop. */
#include "ir/internal.h"

#include <string.h>

enum { MOST_TERMS = 64 };

/* A sum: sum = PHI(start, last), and a chain sum -> adds[0] -> adds[1] ... -> last, each adding to
 * the one before. */
typedef struct chain {
    LLVMValueRef phi;
    unsigned from_loop; /* index of the PHI's entry that comes from the loop */
    LLVMValueRef adds[MOST_TERMS];
    uint32_t operands[MOST_TERMS]; /* operand of each addition that takes the sum so far */
    uint32_t count;
} chain;

static bool is_floating(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    /* not of halves: a part of their sum may pass 65,504 where the sum does not */
    return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}

/* Whether `insn` adds to `sum`, and the operand that is `sum`. */
static bool adds_to(LLVMValueRef insn, LLVMValueRef sum, uint32_t *operand) {
    if (LLVMGetInstructionOpcode(insn) == LLVMFAdd) {
        *operand = LLVMGetOperand(insn, 0) == sum ? 0 : 1;
        return LLVMGetOperand(insn, *operand) == sum && LLVMGetOperand(insn, 1 - *operand) != sum;
    }
    const char *name = ir_call_name(insn);
    if (strncmp(name, "llvm.fma.", 9) != 0 && strncmp(name, "llvm.fmuladd.", 13) != 0)
        return false;
    *operand = 2;
    return LLVMGetOperand(insn, 2) == sum && LLVMGetOperand(insn, 0) != sum &&
           LLVMGetOperand(insn, 1) != sum;
}

/* The only user of a value; NULL: it has none or several uses. */
static LLVMValueRef only_user(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
}

/* The index of the PHI's entry with `value`; 2: none. */
static unsigned entry_of(LLVMValueRef phi, LLVMValueRef value) {
    unsigned i = 0;
    while (i < 2 && LLVMGetIncomingValue(phi, i) != value)
        i++;
    return i;
}

static bool find_chain(const ir_work *w, uint32_t at, chain *out) {
    LLVMValueRef phi = w->nodes[at].value;
    if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) != 2 || !is_floating(LLVMTypeOf(phi)) ||
        LLVMGetIncomingBlock(phi, 0) == LLVMGetIncomingBlock(phi, 1))
        return false;
    out->phi = phi;
    out->count = 0;
    LLVMValueRef sum = phi, next = only_user(phi);
    while (next && out->count < MOST_TERMS && adds_to(next, sum, &out->operands[out->count])) {
        if (out->count > 0 && LLVMGetInstructionParent(next) != LLVMGetInstructionParent(sum))
            return false;
        out->adds[out->count++] = sum = next;
        out->from_loop = entry_of(phi, sum);
        if (out->from_loop < 2)
            return out->count >= 2;
        next = only_user(sum);
    }
    return false;
}

static void sum_sites(const ir_work *w, ir_sites *sites) {
    chain unused;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (find_chain(w, w->sequence[place], &unused))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static bool draw_sum(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

/* The start of the second sum, -0, which changes nothing when added. */
static LLVMValueRef build_second(ir_work *w, const chain *c) {
    LLVMTypeRef type = LLVMTypeOf(c->phi);
    LLVMPositionBuilderBefore(w->builder, c->phi);
    LLVMValueRef second = LLVMBuildPhi(w->builder, type, "");
    ir_work_added(w, second);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef value = i == c->from_loop ? LLVMGetUndef(type) : LLVMConstReal(type, -0.0);
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(c->phi, i);
        LLVMAddIncoming(second, &value, &from, 1);
    }
    return second;
}

static ev_status apply_sum(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    chain c;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!find_chain(w, at, &c))
        return ev_fail(err, EV_BAD, "\"at\" is no PHI that a loop adds two or more terms to");
    LLVMValueRef sums[2] = {c.phi, build_second(w, &c)}, phis[2] = {c.phi, sums[1]};
    LLVMValueRef last = c.adds[c.count - 1];
    LLVMPositionBuilderBefore(w->builder, LLVMGetNextInstruction(last));
    LLVMValueRef total = LLVMBuildFAdd(w->builder, last, last, "");
    LLVMSetFastMathFlags(total, LLVMGetFastMathFlags(last));
    ir_work_added(w, total);
    /* All users of the sum get the total; the PHIs and the total itself are set below. */
    ir_work_replace_uses(w, last, total);
    for (uint32_t i = 0; i < c.count; i++) {
        LLVMSetOperand(c.adds[i], c.operands[i], sums[i % 2]);
        ir_work_touch(w, ir_work_id(w, c.adds[i]));
        sums[i % 2] = c.adds[i];
    }
    for (unsigned i = 0; i < 2; i++) {
        LLVMSetOperand(phis[i], c.from_loop, sums[i]);
        ir_work_touch(w, ir_work_id(w, phis[i]));
        LLVMSetOperand(total, i, sums[i]);
    }
    return EV_OK;
}

static void describe_sum(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "splits in two the sum of ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_SPLIT_SUM = {sum_sites, draw_sum, apply_sum, describe_sum};
