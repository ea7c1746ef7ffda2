/* Version: copies blocks and instructions one by one. The branch that chooses a copy carries
 * metadata, by which the next edit finds the copies; the metadata's loss would only mean that the
 * next edit copies more. */
#include "ir/structure/version_internal.h"

#include <string.h>

static const char mark[] = "evoke.version";

static unsigned mark_kind(const ir_version *v) {
    return LLVMGetMDKindIDInContext(v->s->base->context, mark, sizeof mark - 1);
}

/* The choice at the end of a block. */
typedef struct choice {
    uint64_t number;   /* counted from 1, in the order of the edits; 0: there is no choice */
    uint64_t argument; /* whose value is tested, counted from 1; 0: another test */
    uint32_t to[2];    /* where the test holds, and where not */
} choice;

static choice choice_at(const ir_version *v, uint32_t block) {
    LLVMValueRef last = ir_flow_last(&v->flow, block), numbers[2];
    if (!LLVMIsABranchInst(last) || !LLVMIsConditional(last))
        return (choice){.number = 0};
    LLVMValueRef node = LLVMGetMetadata(last, mark_kind(v));
    if (!node || LLVMGetMDNodeNumOperands(node) != 2)
        return (choice){.number = 0};
    LLVMGetMDNodeOperands(node, numbers);
    return (choice){LLVMConstIntGetZExtValue(numbers[0]),
                    LLVMConstIntGetZExtValue(numbers[1]),
                    {ir_flow_block(&v->flow, LLVMGetSuccessor(last, 0)),
                     ir_flow_block(&v->flow, LLVMGetSuccessor(last, 1))}};
}

static void mark_choice(const ir_version *v, LLVMValueRef branch) {
    LLVMTypeRef type = LLVMInt32TypeInContext(v->s->base->context);
    LLVMMetadataRef numbers[2] = {
        LLVMValueAsMetadata(LLVMConstInt(type, v->choices + 1, false)),
        LLVMValueAsMetadata(LLVMConstInt(type, v->argument, false)),
    };
    LLVMMetadataRef node = LLVMMDNodeInContext2(v->s->base->context, numbers, 2);
    LLVMSetMetadata(branch, mark_kind(v), LLVMMetadataAsValue(v->s->base->context, node));
}

/* The first choice on the way to block `to` that asks for another value of the argument; IR_NONE:
 * there is none. */
static uint32_t other_value(const ir_version *v, uint32_t to) {
    uint32_t found = IR_NONE;
    for (uint32_t b = to; b != 0 && v->argument != 0; b = v->flow.over.idom[b]) {
        choice c = choice_at(v, v->flow.over.idom[b]);
        if (c.number != 0 && c.argument == v->argument)
            found = v->flow.over.idom[b];
    }
    return found;
}

/* A new fact is one more of the latest copy. Another value of an argument that has a copy already
 * begins anew, where none of its values holds. */
static uint32_t find_root(ir_version *v) {
    uint32_t root = 0;
    for (uint32_t b = 0; b < v->flow.count; b++) {
        choice c = choice_at(v, b);
        if (c.number > v->choices) {
            v->choices = c.number;
            root = c.to[0];
        }
    }
    uint32_t other = other_value(v, root);
    while (other != IR_NONE) {
        choice c = choice_at(v, other);
        if (c.argument != v->argument || c.number == 0)
            return other;
        other = c.to[1];
    }
    return root;
}

static ev_status check_root(const ir_version *v, ev_error *err) {
    const ir_flow *flow = &v->flow;
    uint32_t ways = flow->back.first[v->root + 1] - flow->back.first[v->root];
    if (v->root != 0 && (ways != 1 || LLVMIsAPHINode(flow->insns[flow->first[v->root]])))
        return ev_fail(err, EV_BAD, "the copies of the kernel are joined at their beginning");
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (LLVMIsAAllocaInst(flow->insns[i]) && flow->home[i] != 0)
            return ev_fail(err, EV_BAD, "a local array is made behind the kernel's beginning");
    }
    return EV_OK;
}

/* Local arrays go into the entry block, where both copies see them. */
static void move_arrays(ir_version *v) {
    for (uint32_t i = v->flow.first[v->root]; i < v->flow.first[v->root + 1]; i++) {
        if (!LLVMIsAAllocaInst(v->flow.insns[i]))
            continue;
        LLVMInstructionRemoveFromParent(v->flow.insns[i]);
        LLVMInsertIntoBuilder(v->builder, v->flow.insns[i]);
    }
}

ev_status ir_version_open(ir_structure *s, uint32_t argument, ir_version *out, ev_error *err) {
    *out = (ir_version){.s = s, .argument = argument};
    out->builder = LLVMCreateBuilderInContext(s->base->context);
    ir_version *v = out;
    EV_TRY(ir_flow_make(s->function, s->arena, &v->flow, err));
    v->root = find_root(v);
    EV_TRY(check_root(v, err));
    v->holds = EV_NEW_ARRAY(s->arena, bool, v->flow.count);
    v->blocks = EV_NEW_ARRAY(s->arena, LLVMBasicBlockRef, v->flow.count);
    v->copies = EV_NEW_ARRAY(s->arena, LLVMValueRef, v->flow.insn_count + 1);
    if (!v->holds || !v->blocks || !v->copies)
        return ev_fail_memory(err, v->flow.insn_count);
    for (uint32_t b = 0; b < v->flow.count; b++)
        v->holds[b] = b == v->root || v->flow.reaches[v->root * v->flow.count + b];
    v->test = LLVMInsertBasicBlockInContext(s->base->context, v->flow.blocks[v->root], "");
    LLVMPositionBuilderAtEnd(v->builder, v->test);
    LLVMSetCurrentDebugLocation2(v->builder, NULL);
    if (v->root == 0)
        move_arrays(v);
    return EV_OK;
}

void ir_version_close(ir_version *v) {
    LLVMDisposeBuilder(v->builder);
}

/* ---- the copy ---------------------------------------------------------------------------------
 */

static bool is_copied(const ir_version *v, uint32_t insn) {
    return v->holds[v->flow.home[insn]] && !LLVMIsAAllocaInst(v->flow.insns[insn]);
}

/* What the copy uses in place of a value. */
static LLVMValueRef mapped(const ir_version *v, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&v->flow, value);
    if (insn != IR_NONE && v->copies[insn])
        return v->copies[insn];
    return v->from && value == v->from ? v->to : value;
}

static void copy_insn(ir_version *v, uint32_t insn) {
    LLVMValueRef old = v->flow.insns[insn];
    if (!LLVMIsAPHINode(old)) {
        LLVMInsertIntoBuilder(v->builder, v->copies[insn] = LLVMInstructionClone(old));
        return;
    }
    v->copies[insn] = LLVMBuildPhi(v->builder, LLVMTypeOf(old), "");
    if (LLVMCanValueUseFastMathFlags(old))
        LLVMSetFastMathFlags(v->copies[insn], LLVMGetFastMathFlags(old));
}

static void fill_phi(const ir_version *v, LLVMValueRef old, LLVMValueRef copy) {
    for (unsigned i = 0; i < LLVMCountIncoming(old); i++) {
        uint32_t from = ir_flow_block(&v->flow, LLVMGetIncomingBlock(old, i));
        if (from == IR_NONE || !v->holds[from])
            continue;
        LLVMValueRef value = mapped(v, LLVMGetIncomingValue(old, i));
        LLVMAddIncoming(copy, &value, &v->blocks[from], 1);
    }
}

/* Gives a copied instruction the copies of its operands. */
static void fill_insn(const ir_version *v, uint32_t insn) {
    LLVMValueRef old = v->flow.insns[insn], copy = v->copies[insn];
    if (LLVMIsAPHINode(old)) {
        fill_phi(v, old, copy);
        return;
    }
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(old); k++) {
        LLVMValueRef operand = LLVMGetOperand(old, k);
        if (!LLVMValueIsBasicBlock(operand) && mapped(v, operand) != operand)
            LLVMSetOperand(copy, k, mapped(v, operand));
    }
    for (unsigned k = 0; LLVMIsATerminatorInst(old) && k < LLVMGetNumSuccessors(old); k++)
        LLVMSetSuccessor(copy, k, v->blocks[ir_flow_block(&v->flow, LLVMGetSuccessor(old, k))]);
}

static void write_copy(ir_version *v) {
    LLVMContextRef context = v->s->base->context;
    for (uint32_t b = 0; b < v->flow.count; b++) {
        if (!v->holds[b])
            continue;
        v->blocks[b] = LLVMAppendBasicBlockInContext(context, v->s->function, "");
        LLVMPositionBuilderAtEnd(v->builder, v->blocks[b]);
        for (uint32_t i = v->flow.first[b]; i < v->flow.first[b + 1]; i++) {
            if (is_copied(v, i))
                copy_insn(v, i);
        }
    }
    for (uint32_t i = 0; i < v->flow.insn_count; i++) {
        if (v->copies[i])
            fill_insn(v, i);
    }
}

/* Lets the earlier tests lead to this one. */
static void lead_in(const ir_version *v) {
    if (v->root == 0)
        return;
    const ir_flow *flow = &v->flow;
    LLVMValueRef last = ir_flow_last(flow, flow->back.succ[flow->back.first[v->root]]);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(last); k++) {
        if (LLVMGetSuccessor(last, k) == flow->blocks[v->root])
            LLVMSetSuccessor(last, k, v->test);
    }
}

ev_status ir_version_write(ir_version *v, LLVMValueRef test, ev_error *err) {
    write_copy(v);
    LLVMPositionBuilderAtEnd(v->builder, v->test);
    LLVMValueRef branch =
        LLVMBuildCondBr(v->builder, test, v->blocks[v->root], v->flow.blocks[v->root]);
    mark_choice(v, branch);
    lead_in(v);
    return ev_arena_failed(v->s->arena) ? ev_fail_memory(err, 1) : EV_OK;
}
