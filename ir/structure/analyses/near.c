/* Near: memory of the block or the thread, and where its addresses go. */
#include "ir/structure/analyses/vary_internal.h"

bool ir_is_step(LLVMValueRef value) {
    LLVMOpcode op = LLVMRet;
    if (LLVMIsAInstruction(value))
        op = LLVMGetInstructionOpcode(value);
    else if (LLVMIsAConstantExpr(value))
        op = LLVMGetConstOpcode(value);
    return op == LLVMGetElementPtr || op == LLVMAddrSpaceCast || op == LLVMBitCast;
}

bool ir_is_shared_array(LLVMValueRef global) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == IR_SHARED_SPACE;
}

static bool escapes(const ir_flow *flow, LLVMValueRef value);

/* Whether a use of an object's address is other than to load and store there. */
static bool escapes_by(const ir_flow *flow, LLVMValueRef user, LLVMValueRef value) {
    if (ir_is_step(user))
        return escapes(flow, user);
    if (!LLVMIsAInstruction(user))
        return true;
    if (ir_flow_insn(flow, user) == IR_NONE || ir_deed_of(user) == IR_DEED_MARKER)
        return false; /* code that nothing reaches, or none */
    if (ir_pointer_of(user) != value)
        return true;
    return (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 0) == value) ||
           (LLVMIsACallInst(user) && LLVMGetOperand(user, 1) == value);
}

/* Whether the address of an array goes elsewhere than into loads and stores: a chosen pointer, a
 * call, memory. */
static bool escapes(const ir_flow *flow, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        if (escapes_by(flow, LLVMGetUser(use), value))
            return true;
    }
    return false;
}

bool ir_is_only_read(LLVMValueRef address) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool reads = LLVMIsALoadInst(user) || ir_source_of(user) == address ||
                     (LLVMIsACallInst(user) && ir_deed_of(user) == IR_DEED_MARKER);
        if (ir_is_step(user) ? !ir_is_only_read(user) : !reads)
            return false;
    }
    return true;
}

ev_status ir_check_near(const ir_flow *flow, ev_error *err) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    bool is_lost = false, is_shared = false;
    for (unsigned i = 0; i < LLVMCountParams(flow->function); i++) {
        LLVMValueRef param = LLVMGetParam(flow->function, i);
        if (ir_param_has(param, "byval") && !ir_is_only_read(param))
            return ev_fail(err, EV_BAD,
                           "the kernel writes to a struct that is passed by value, or its address "
                           "goes elsewhere than into loads");
    }
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g && !is_lost; g = LLVMGetNextGlobal(g))
        is_lost = is_shared = ir_is_shared_array(g) && escapes(flow, g);
    for (uint32_t i = 0; i < flow->insn_count && !is_lost; i++)
        is_lost = LLVMIsAAllocaInst(flow->insns[i]) && escapes(flow, flow->insns[i]);
    return is_lost ? ev_fail(err, EV_BAD,
                             "the address of a %s array goes elsewhere than into loads and stores",
                             is_shared ? "shared" : "local")
                   : EV_OK;
}
