/* Writes: what the kernel may write where it loads, and whether turns of a loop depend on each
 * other by a buffer that launches pass twice. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/apart_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"

/* Whether a write by a base cannot go to another argument: an argument of its own, a variable, an
 * array of the thread. A pointer that was loaded, chosen or made of a number may lead anywhere. */
static bool is_place_of_its_own(LLVMValueRef base) {
    return LLVMIsAArgument(base) || LLVMIsAAllocaInst(base) || LLVMIsAGlobalVariable(base);
}

bool ir_is_own_base(LLVMValueRef base) {
    return is_place_of_its_own(base) || ir_is_field(base);
}

/* Whether something gets an address that is computed from the argument, or that may be. */
static bool gets_address(LLVMModuleRef module, LLVMValueRef insn, LLVMValueRef argument) {
    int count = LLVMIsACallInst(insn) ? (int)LLVMGetNumArgOperands(insn) : LLVMGetNumOperands(insn);
    for (int k = 0; k < count; k++) {
        LLVMValueRef operand = LLVMGetOperand(insn, (unsigned)k), base = NULL;
        if (LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMPointerTypeKind)
            continue;
        (void)ir_affine_of_address(module, operand, &base);
        bool is_another = base != argument && (is_place_of_its_own(base) || LLVMIsALoadInst(base));
        if (!is_another)
            return true;
    }
    return false;
}

/* Whether the kernel keeps an address of the argument as a number or in memory. */
static bool is_kept(const ir_flow *flow, LLVMValueRef argument) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef insn = flow->insns[i], base = NULL;
        if (!LLVMIsAPtrToIntInst(insn) && !LLVMIsAStoreInst(insn))
            continue;
        LLVMValueRef value = LLVMGetOperand(insn, 0);
        if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMPointerTypeKind)
            continue;
        (void)ir_affine_of_address(module, value, &base);
        if (base == argument || !is_place_of_its_own(base))
            return true;
    }
    return false;
}

bool ir_reads_only(const ir_flow *flow, LLVMValueRef load, LLVMValueRef *base) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    LLVMValueRef to = NULL;
    (void)ir_affine_of_address(module, LLVMGetOperand(load, 0), base);
    if (!LLVMIsAArgument(*base))
        return false; /* shared memory and local arrays are near enough */
    bool is_alone = ir_param_has(*base, "noalias") && !is_kept(flow, *base);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        ir_deed deed = ir_deed_of(flow->insns[i]);
        LLVMValueRef pointer = ir_pointer_of(flow->insns[i]);
        bool may_write =
            deed == IR_DEED_UNKNOWN && (ir_call_memory(flow->insns[i]) & IR_MEMORY_WRITES) != 0;
        if (may_write && (!is_alone || gets_address(module, flow->insns[i], *base)))
            return false;
        if (!pointer || LLVMIsALoadInst(flow->insns[i]))
            continue;
        (void)ir_affine_of_address(module, pointer, &to);
        bool is_apart = is_place_of_its_own(to) || (is_alone && LLVMIsALoadInst(to));
        if (to == *base || !is_apart || ir_may_overlap(to, *base))
            return false;
    }
    return true;
}

/* Whether a base is memory that nobody writes to: a constant, a struct that is passed by value. */
static bool is_constant(LLVMValueRef base) {
    return (LLVMIsAGlobalVariable(base) && LLVMIsGlobalConstant(base)) ||
           (LLVMIsAArgument(base) && ir_param_has(base, "byval"));
}

bool ir_may_change(const ir_flow *flow, LLVMValueRef pointer) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    LLVMValueRef base = NULL, to = NULL;
    (void)ir_affine_of_address(module, pointer, &base);
    if (is_constant(base) || !ir_is_own_base(base))
        return !is_constant(base);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef insn = flow->insns[i], place = ir_pointer_of(insn);
        if (ir_deed_of(insn) == IR_DEED_UNKNOWN && (ir_call_memory(insn) & IR_MEMORY_WRITES) != 0)
            return true;
        if (!place || LLVMIsALoadInst(insn))
            continue;
        (void)ir_affine_of_address(module, place, &to);
        if (!ir_is_own_base(to) || ir_is_one_base(module, to, base) || ir_may_overlap(to, base))
            return true;
    }
    return false;
}

static bool has_term(const ir_affine *form, LLVMValueRef value, int64_t factor) {
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->terms[i].value == value)
            return factor == 0 || form->terms[i].factor == factor;
    }
    return false;
}

/* Whether two addresses are the same in each turn of the loop around, and others in other turns. */
static bool are_of_one_turn(const ir_flow *flow, uint32_t insn, const ir_affine *a,
                            const ir_affine *b) {
    uint32_t loop = ir_loop_of(flow, flow->home[insn]);
    if (loop == IR_NONE || !flow->loops[loop].induction ||
        !has_term(a, flow->loops[loop].induction, 0) || a->count != b->count ||
        a->constant != b->constant)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!has_term(b, a->terms[i].value, a->terms[i].factor))
            return false;
    }
    return true;
}

static bool has_marks(LLVMValueRef function) {
    for (unsigned i = 0; i < LLVMCountParams(function); i++) {
        if (LLVMGetStringAttributeAtIndex(function, i + 1, IR_OVERLAPS, sizeof IR_OVERLAPS - 1))
            return true;
    }
    return false;
}

/* Whether two bases may be one buffer. A pointer that was loaded, as a field of a struct, or chosen
 * may be each of those that the task names. */
static bool may_be_one(const ir_flow *flow, LLVMValueRef a, LLVMValueRef b) {
    bool are_known = is_place_of_its_own(a) && is_place_of_its_own(b);
    return ir_may_overlap(a, b) || (!are_known && a != b && has_marks(flow->function));
}

/* Whether a loop hands a value on to what follows: the threads that share its turns exchange it, so
 * all have made their turns before one goes on. */
static bool hands_on(const ir_flow *flow, const ir_loop *loop) {
    for (uint32_t i = flow->first[loop->header]; LLVMIsAPHINode(flow->insns[i]); i++) {
        for (LLVMUseRef u = LLVMGetFirstUse(flow->insns[i]); u; u = LLVMGetNextUse(u)) {
            uint32_t user = ir_flow_insn(flow, LLVMGetUser(u));
            if (user != IR_NONE && !loop->holds[flow->home[user]])
                return true;
        }
    }
    return false;
}

/* Whether all turns that load come before all that write, in a kernel whose turns are shared out.
 */
static bool comes_before(const ir_flow *flow, uint32_t load, uint32_t write) {
    uint32_t loop = ir_loop_of(flow, flow->home[load]);
    return loop != IR_NONE && !flow->loops[loop].holds[flow->home[write]] &&
           !ir_flow_leads(flow, write, load) && hands_on(flow, &flow->loops[loop]);
}

/* Whether a write may go where another turn's load reads. */
static bool meets_other_turn(const ir_flow *flow, uint32_t load, uint32_t write) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    LLVMValueRef from = NULL, to = NULL;
    ir_affine a = ir_affine_of_address(module, ir_pointer_of(flow->insns[load]), &from);
    ir_affine b = ir_affine_of_address(module, ir_pointer_of(flow->insns[write]), &to);
    return may_be_one(flow, from, to) && !are_of_one_turn(flow, load, &a, &b) &&
           !comes_before(flow, load, write);
}

/* Whether an instruction copies from memory that the kernel may write to. */
static bool copies_what_changes(const ir_flow *flow, LLVMValueRef insn) {
    LLVMValueRef source = ir_source_of(insn);
    return source && ir_may_change(flow, source);
}

ev_status ir_check_overlap(const ir_flow *flow, ev_error *err) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (copies_what_changes(flow, flow->insns[i]))
            return ev_fail(err, EV_BAD, "the kernel copies from memory that it may write to");
        for (uint32_t k = 0; LLVMIsALoadInst(flow->insns[i]) && k < flow->insn_count; k++) {
            bool is_write = !LLVMIsALoadInst(flow->insns[k]) && ir_pointer_of(flow->insns[k]);
            if (is_write && meets_other_turn(flow, i, k))
                return ev_fail(err, EV_BAD,
                               "launches may pass one buffer for an argument that the kernel loads "
                               "from and one that it writes to at another place");
        }
    }
    return EV_OK;
}
