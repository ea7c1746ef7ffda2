/* Vary: a fixed point over the function's instructions. Each round goes through the code once, and
 * what varies only grows, so the rounds end. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"

#include <assert.h>
#include <string.h>

/* ---- deeds ------------------------------------------------------------------------------------
 */

static const char registers[] = "llvm.nvvm.read.ptx.sreg.";

static bool begins(const char *text, const char *stem) {
    return strncmp(text, stem, strlen(stem)) == 0;
}

static bool has_attribute(LLVMValueRef function, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       kind) != NULL;
}

static bool depends_on_thread(LLVMValueRef function, unsigned depth);

/* What a call inside a function without effects may read: the number of the thread or block, which
 * is no memory, and other threads of the warp. */
static bool call_depends_on_thread(LLVMValueRef call, unsigned depth) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(callee)) /* assembly, or a pointer */
        return true;
    if (ir_reads_any_register(call))
        return true;
    if (LLVMIsDeclaration(callee))
        return has_attribute(callee, "convergent");
    return depth == 0 || depends_on_thread(callee, depth - 1);
}

/* Whether a defined function may give threads other results for the same arguments. */
static bool depends_on_thread(LLVMValueRef function, unsigned depth) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            if (LLVMIsACallInst(i) && call_depends_on_thread(i, depth))
                return true;
        }
    }
    return false;
}

typedef struct deed_row {
    const char *stem;
    ir_deed deed;
} deed_row;

static const deed_row deeds[] = {
    {"llvm.nvvm.barrier", IR_DEED_BARRIER},
    {"llvm.nvvm.bar.", IR_DEED_BARRIER},
    {"llvm.nvvm.membar.", IR_DEED_BARRIER},
    {"llvm.nvvm.fence", IR_DEED_BARRIER},
    {"llvm.nvvm.shfl.", IR_DEED_WARP},
    {"llvm.nvvm.vote.", IR_DEED_WARP},
    {"llvm.nvvm.match.", IR_DEED_WARP},
    {"llvm.nvvm.redux.", IR_DEED_WARP},
    {"llvm.nvvm.activemask", IR_DEED_WARP},
    {"llvm.nvvm.wmma.", IR_DEED_WARP}, /* LLVM knows these as computing alone */
    {"llvm.nvvm.mma.", IR_DEED_WARP},
    {"llvm.nvvm.ldmatrix.", IR_DEED_WARP},
    {"llvm.nvvm.elect.", IR_DEED_WARP},
    {"llvm.lifetime.", IR_DEED_MARKER},
    {"llvm.assume", IR_DEED_MARKER},
    {"llvm.experimental.noalias", IR_DEED_MARKER},
    {"llvm.nvvm.read.ptx.sreg.", IR_DEED_PURE},
    {"llvm.memset.", IR_DEED_STORE},
    {"llvm.nvvm.ldg.", IR_DEED_LOAD},
    {"llvm.nvvm.ldu.", IR_DEED_LOAD},
    {"llvm.memcpy.", IR_DEED_STORE},
    {"llvm.memmove.", IR_DEED_STORE},
};

/* A barrier for a number of threads that the source counts, which an edit may change. */
static bool is_counted_barrier(const char *name) {
    return begins(name, "llvm.nvvm.barrier.sync.cnt") || strcmp(name, "llvm.nvvm.barrier") == 0;
}

static ir_deed deed_of_call(LLVMValueRef call) {
    const char *name = ir_call_name(call);
    if (is_counted_barrier(name) || ir_changes_by_itself(name))
        return IR_DEED_UNKNOWN;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        if (begins(name, deeds[i].stem))
            return deeds[i].deed;
    }
    enum { DEEPEST_CALL = 4 };
    LLVMValueRef callee = LLVMGetCalledValue(call);
    bool is_pure = LLVMIsAFunction(callee) && ir_call_memory(call) == 0 &&
                   !depends_on_thread(callee, DEEPEST_CALL);
    return is_pure ? IR_DEED_PURE : IR_DEED_UNKNOWN;
}

ir_deed ir_deed_of(LLVMValueRef insn) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMLoad:
        return LLVMGetVolatile(insn) || LLVMGetOrdering(insn) != LLVMAtomicOrderingNotAtomic
                   ? IR_DEED_COUNTED
                   : IR_DEED_LOAD;
    case LLVMStore:
        return LLVMGetVolatile(insn) || LLVMGetOrdering(insn) != LLVMAtomicOrderingNotAtomic
                   ? IR_DEED_COUNTED
                   : IR_DEED_STORE;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return IR_DEED_COUNTED;
    case LLVMFence:
        return IR_DEED_BARRIER;
    case LLVMCall:
        return deed_of_call(insn);
    case LLVMInvoke:
    case LLVMCallBr:
    case LLVMVAArg:
        return IR_DEED_UNKNOWN;
    default:
        return IR_DEED_PURE;
    }
}

/* A special register that may differ among the threads of a block. */
static bool reads_own_register(LLVMValueRef insn) {
    static const char *const of_block[] = {"ctaid.", "nctaid.", "ntid."};
    const char *name = ir_call_name(insn);
    if (!ir_reads_any_register(insn))
        return false;
    for (size_t i = 0; i < sizeof of_block / sizeof of_block[0]; i++) {
        if (begins(name + sizeof registers - 1, of_block[i]))
            return false;
    }
    return true;
}

bool ir_differs_in_block(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return reads_own_register(insn) || deed == IR_DEED_WARP || deed == IR_DEED_COUNTED ||
           deed == IR_DEED_UNKNOWN;
}

bool ir_is_block_vote(LLVMValueRef insn) {
    return ir_deed_of(insn) == IR_DEED_BARRIER &&
           LLVMGetTypeKind(LLVMTypeOf(insn)) != LLVMVoidTypeKind;
}

bool ir_has_effect(LLVMValueRef insn) {
    ir_deed deed = ir_deed_of(insn);
    return deed != IR_DEED_PURE && deed != IR_DEED_LOAD && deed != IR_DEED_MARKER;
}

/* Whether the lanes of a warp store a matrix together. */
static bool stores_matrix(LLVMValueRef call) {
    const char *name = ir_call_name(call);
    return begins(name, "llvm.nvvm.wmma.") && strstr(name, ".store.") != NULL;
}

LLVMValueRef ir_source_of(LLVMValueRef insn) {
    return LLVMIsAMemCpyInst(insn) || LLVMIsAMemMoveInst(insn) ? LLVMGetOperand(insn, 1) : NULL;
}

LLVMValueRef ir_pointer_of(LLVMValueRef insn) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMLoad:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return LLVMGetOperand(insn, 0);
    case LLVMStore:
        return LLVMGetOperand(insn, 1);
    case LLVMCall: /* memset and its kin write to their first operand */
        return deed_of_call(insn) == IR_DEED_STORE || stores_matrix(insn) ? LLVMGetOperand(insn, 0)
                                                                          : NULL;
    default:
        return NULL;
    }
}

bool ir_divides(LLVMValueRef value) {
    switch (LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMRet) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return true;
    default:
        return false;
    }
}

/* Whether an instruction may fail or run for ever where the source does not run it. */
static bool may_fail(LLVMValueRef insn) {
    if (ir_divides(insn))
        return !LLVMIsAConstantInt(LLVMGetOperand(insn, 1)) ||
               LLVMConstIntGetZExtValue(LLVMGetOperand(insn, 1)) == 0;
    return LLVMIsACallInst(insn) && !begins(ir_call_name(insn), "llvm.");
}

bool ir_may_run_anywhere(LLVMValueRef insn) {
    return ir_deed_of(insn) == IR_DEED_PURE && !may_fail(insn);
}

bool ir_reads_any_register(LLVMValueRef value) {
    return LLVMIsACallInst(value) && begins(ir_call_name(value), registers);
}

bool ir_reads_register(LLVMValueRef value, const char *name) {
    if (!LLVMIsACallInst(value))
        return false;
    const char *callee = ir_call_name(value);
    return begins(callee, registers) && strcmp(callee + sizeof registers - 1, name) == 0;
}

bool ir_reads_place(LLVMValueRef value) {
    static const char *const names[] = {"tid.x", "tid.y", "tid.z"};
    for (size_t a = 0; a < sizeof names / sizeof names[0]; a++) {
        if (ir_reads_register(value, names[a]))
            return true;
    }
    return false;
}

/* Operands of assembly begin with $. */
bool ir_names_register(LLVMValueRef value) {
    LLVMValueRef callee = LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : value;
    size_t length = 0;
    const char *text = LLVMIsAInlineAsm(callee) ? LLVMGetInlineAsmAsmString(callee, &length) : NULL;
    return length > 0 && memchr(text, '%', length) != NULL;
}

const char *ir_called(LLVMValueRef insn) {
    const char *name = ir_call_name(insn);
    return name[0] != '\0' ? name : "assembly";
}

static bool may_end_thread(LLVMValueRef insn) {
    static const char *const words[] = {"exit", "trap", "ret", "bra", "brx", "brkpt"};
    if (begins(ir_call_name(insn), "llvm.nvvm.exit"))
        return true;
    if (ir_deed_of(insn) != IR_DEED_UNKNOWN)
        return false;
    LLVMValueRef callee = LLVMIsACallInst(insn) ? LLVMGetCalledValue(insn) : NULL;
    size_t length = 0;
    const char *text =
        callee && LLVMIsAInlineAsm(callee) ? LLVMGetInlineAsmAsmString(callee, &length) : NULL;
    bool ends = text == NULL &&
                (!callee || !LLVMIsAFunction(callee) || !begins(ir_call_name(insn), "llvm."));
    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        ends |= memmem(text, length, words[i], strlen(words[i])) != NULL;
    return ends;
}

ev_status ir_check_stays(const ir_flow *flow, const ir_loop *loop, ev_error *err) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        uint32_t home = flow->home[i];
        bool matters =
            !loop || loop->holds[home] || flow->reaches[(size_t)home * flow->count + loop->header];
        if (matters && may_end_thread(flow->insns[i]))
            return ev_fail(err, EV_BAD, "a thread may end early: it calls %s",
                           ir_called(flow->insns[i]));
    }
    return EV_OK;
}

bool ir_reads_warp_place(LLVMValueRef value) {
    const char *name = ir_call_name(value);
    if (ir_names_register(value))
        return true;
    return ir_reads_any_register(value) &&
           (strstr(name, "laneid") || strstr(name, "lanemask") || strstr(name, "warpid"));
}

bool ir_binds_warp(LLVMValueRef insn) {
    return ir_deed_of(insn) == IR_DEED_WARP ||
           (LLVMIsACallInst(insn) && begins(ir_call_name(insn), "llvm.nvvm.bar.warp."));
}

bool ir_names_all_lanes(LLVMValueRef insn) {
    const char *name = ir_call_name(insn);
    bool waits = begins(name, "llvm.nvvm.bar.warp.");
    bool has_mask = waits || (begins(name, "llvm.nvvm.shfl.") && strstr(name, ".sync.") != NULL);
    LLVMValueRef mask = has_mask ? LLVMGetOperand(insn, 0) : NULL;
    return !has_mask || (LLVMIsAConstantInt(mask) && LLVMConstIntGetSExtValue(mask) == -1);
}

bool ir_counts_threads(LLVMValueRef insn) {
    static const char *const others[] = {"llvm.nvvm.shfl.", "llvm.nvvm.wmma.", "llvm.nvvm.mma.",
                                         "llvm.nvvm.ldmatrix."};
    if (ir_deed_of(insn) != IR_DEED_WARP)
        return ir_is_block_vote(insn);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (begins(ir_call_name(insn), others[i]))
            return false;
    }
    return true;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Whether a value is one that the place of a compare-and-swap had: it is loaded there, or the last
 * try gave it. The first try may guess. */
static bool is_of_place(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value,
                        LLVMValueRef swap, unsigned depth) {
    uint32_t insn = ir_flow_insn(flow, value);
    if (insn == IR_NONE || !loop->holds[flow->home[insn]])
        return true;
    if (depth == 0)
        return false;
    if (LLVMIsALoadInst(value))
        return LLVMGetOperand(value, 0) == LLVMGetOperand(swap, 0);
    if (LLVMIsAExtractValueInst(value))
        return LLVMGetOperand(value, 0) == swap;
    bool passes_on = LLVMIsAPHINode(value) || LLVMIsACastInst(value);
    for (int k = 0; passes_on && k < LLVMGetNumOperands(value); k++)
        passes_on = is_of_place(flow, loop, LLVMGetOperand(value, (unsigned)k), swap, depth - 1);
    return passes_on;
}

/* Whether an instruction of a loop gives what others may change. A compare-and-swap with what its
 * place had tries again. */
static bool looks_at_others(const ir_flow *flow, const ir_loop *loop, LLVMValueRef insn) {
    enum { DEEPEST = 6 };
    ir_deed deed = ir_deed_of(insn);
    if (!LLVMIsAAtomicCmpXchgInst(insn))
        return deed == IR_DEED_COUNTED || deed == IR_DEED_UNKNOWN;
    uint32_t wanted = ir_flow_insn(flow, LLVMGetOperand(insn, 1));
    return wanted == IR_NONE || !loop->holds[flow->home[wanted]] ||
           !is_of_place(flow, loop, flow->insns[wanted], insn, DEEPEST);
}

static bool waits_by(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value, bool *seen);

/* Whether what others may change decides a branch of the loop's turn, and so which value a PHI
 * takes. */
static bool is_decided_by(const ir_flow *flow, const ir_loop *loop, LLVMValueRef phi, bool *seen) {
    if (flow->home[ir_flow_insn(flow, phi)] == loop->header && LLVMCountIncoming(phi) == 2)
        return false; /* the turn before, by its one end */
    for (uint32_t b = 0; b < flow->count; b++) {
        LLVMValueRef last = ir_flow_last(flow, b);
        if (loop->holds[b] && LLVMGetNumSuccessors(last) > 1 && waits_by(flow, loop, last, seen))
            return true;
    }
    return false;
}

/* Whether a value is computed in the loop from what others may change. seen: by instruction. */
static bool waits_by(const ir_flow *flow, const ir_loop *loop, LLVMValueRef value, bool *seen) {
    uint32_t insn = ir_flow_insn(flow, value);
    if (insn == IR_NONE || seen[insn] || !loop->holds[flow->home[insn]])
        return false;
    seen[insn] = true;
    if (looks_at_others(flow, loop, value))
        return true;
    if (LLVMIsAAtomicCmpXchgInst(value)) /* tries again */
        return false;
    if (LLVMIsAPHINode(value) && is_decided_by(flow, loop, value, seen))
        return true;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (waits_by(flow, loop, LLVMGetOperand(value, (unsigned)k), seen))
            return true;
    }
    return false;
}

static bool is_left_from(const ir_flow *flow, const ir_loop *loop, uint32_t block) {
    bool leaves = false;
    for (uint32_t e = flow->next.first[block]; e < flow->next.first[block + 1]; e++)
        leaves |= !loop->holds[flow->next.succ[e]];
    return leaves && loop->holds[block];
}

ev_status ir_check_waits(const ir_flow *flow, ev_error *err) {
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        bool *seen = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
        if (!seen)
            return ev_fail_memory(err, flow->insn_count);
        for (uint32_t b = 0; b < flow->count; b++) {
            if (is_left_from(flow, &flow->loops[l], b) &&
                waits_by(flow, &flow->loops[l], ir_flow_last(flow, b), seen))
                return ev_fail(err, EV_BAD, "threads wait in a loop for what others do");
        }
    }
    return EV_OK;
}

/* ---- objects ----------------------------------------------------------------------------------
 */

const ir_object *ir_vary_object(const ir_vary *vary, LLVMValueRef pointer) {
    while (ir_is_step(pointer))
        pointer = LLVMGetOperand(pointer, 0);
    for (uint32_t o = 0; o < vary->object_count; o++) {
        if (vary->objects[o].root == pointer)
            return &vary->objects[o];
    }
    return NULL;
}

static bool list_objects(ir_vary *vary) {
    const ir_flow *flow = vary->flow;
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    uint32_t count = 0;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g))
        count += ir_is_shared_array(g);
    for (uint32_t i = 0; i < flow->insn_count; i++)
        count += LLVMIsAAllocaInst(flow->insns[i]) != NULL;
    vary->objects = EV_NEW_ARRAY(flow->arena, ir_object, count + 1);
    if (!vary->objects)
        return false;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (ir_is_shared_array(g))
            vary->objects[vary->object_count++] = (ir_object){.root = g, .is_shared = true};
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (LLVMIsAAllocaInst(flow->insns[i]))
            vary->objects[vary->object_count++] = (ir_object){.root = flow->insns[i]};
    }
    return true;
}

/* ---- values -----------------------------------------------------------------------------------
 */

bool ir_varies(const ir_vary *vary, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(vary->flow, value);
    return insn != IR_NONE && vary->varies[insn];
}

static bool an_operand_varies(const ir_vary *vary, LLVMValueRef insn) {
    int count = LLVMGetNumOperands(insn);
    for (int k = 0; k < count; k++) {
        if (ir_varies(vary, LLVMGetOperand(insn, (unsigned)k)))
            return true;
    }
    return false;
}

/* Whether an edge into the PHI's block comes out of a region that ends there. */
static bool joins_members(const ir_vary *vary, LLVMValueRef phi, uint32_t block) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        uint32_t from = ir_flow_block(vary->flow, LLVMGetIncomingBlock(phi, i));
        uint32_t region = from == IR_NONE ? IR_NONE : vary->branch_of[from];
        if (region != IR_NONE && vary->regions[region].exit == block)
            return true;
    }
    return false;
}

static bool is_in_region(const ir_vary *vary, uint32_t insn) {
    return vary->region_of[vary->flow->home[insn]] != IR_NONE;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static bool is_write(LLVMValueRef insn) {
    return !LLVMIsALoadInst(insn) && ir_pointer_of(insn) != NULL;
}

/* Whether a write leaves nothing of what stood there before. An atomic reads the old contents. */
static bool overwrites(LLVMValueRef insn) {
    return is_write(insn) && !LLVMIsAAtomicRMWInst(insn) && !LLVMIsAAtomicCmpXchgInst(insn);
}

static bool list_accesses(ir_vary *vary) {
    const ir_flow *flow = vary->flow;
    vary->accesses = EV_NEW_ARRAY(flow->arena, uint32_t, flow->insn_count + 1);
    vary->object_of = EV_NEW_ARRAY(flow->arena, ir_object *, flow->insn_count + 1);
    for (uint32_t i = 0; vary->accesses && vary->object_of && i < flow->insn_count; i++) {
        LLVMValueRef pointer = ir_pointer_of(flow->insns[i]);
        if (!pointer)
            continue;
        vary->accesses[vary->access_count] = i;
        vary->object_of[vary->access_count++] = (ir_object *)ir_vary_object(vary, pointer);
    }
    return vary->accesses && vary->object_of;
}

/* Whether access number `access` is a write to the object that varies. */
static bool is_varying_write(const ir_vary *vary, uint32_t access, const ir_object *object) {
    uint32_t insn = vary->accesses[access];
    return vary->object_of[access] == object && vary->varies[insn] &&
           is_write(vary->flow->insns[insn]);
}

/* Whether a store that varies may have run before instruction `at`. */
static bool follows_varying(const ir_vary *vary, const ir_object *object, uint32_t at) {
    for (uint32_t k = 0; k < vary->access_count; k++) {
        if (is_varying_write(vary, k, object) && ir_flow_leads(vary->flow, vary->accesses[k], at))
            return true;
    }
    return false;
}

static bool insn_over(const ir_flow *flow, uint32_t a, uint32_t b) {
    if (flow->home[a] == flow->home[b])
        return a < b;
    return ir_dominance_over(&flow->over, flow->home[a], flow->home[b]);
}

/* Whether two accesses of a thread are to one place. */
static bool is_one_place(const ir_flow *flow, LLVMValueRef a, LLVMValueRef b) {
    LLVMModuleRef module = LLVMGetGlobalParent(flow->function);
    LLVMValueRef of_a = NULL, of_b = NULL;
    ir_affine at_a = ir_affine_of_address(module, ir_pointer_of(a), &of_a);
    ir_affine at_b = ir_affine_of_address(module, ir_pointer_of(b), &of_b);
    return of_a == of_b && ir_affine_add(&at_a, &at_b, -1) && at_a.count == 0 && at_a.constant == 0;
}

/* Whether wherever one instruction runs, another one runs behind it. */
static bool runs_behind(const ir_flow *flow, uint32_t first, uint32_t second) {
    return ir_dominance_over(&flow->under, flow->home[second] + 1, flow->home[first] + 1);
}

bool ir_is_led_by_told(const ir_flow *flow, uint32_t from, uint32_t to) {
    for (uint32_t b = 0; b < flow->count; b++) {
        LLVMValueRef last = ir_flow_last(flow, b);
        bool between = (b == from || flow->reaches[(size_t)from * flow->count + b]) &&
                       (b == to || flow->reaches[(size_t)b * flow->count + to]);
        if (between && LLVMGetNumSuccessors(last) > 1 &&
            !ir_dominance_over(&flow->under, to + 1, b + 1) &&
            !(LLVMIsABranchInst(last) && ir_is_told(flow, LLVMGetCondition(last), false)))
            return false;
    }
    return true;
}

/* Whether the place of a load is told. */
static bool is_at_told(const ir_flow *flow, LLVMValueRef load) {
    LLVMValueRef base = NULL;
    ir_affine at =
        ir_affine_of_address(LLVMGetGlobalParent(flow->function), ir_pointer_of(load), &base);
    for (uint32_t i = 0; i < at.count; i++) {
        if (!ir_is_told(flow, at.terms[i].value, true))
            return false;
    }
    return true;
}

/* Whether a varying store follows `store` and dominates the load, so that the load reads nothing of
 * what `store` wrote: both write one place, or (guessed) all places. Where such a load runs in each
 * case, the gates see what no store wrote. */
static bool is_renewed(const ir_vary *vary, const ir_object *object, uint32_t store,
                       uint32_t load) {
    for (uint32_t k = 0; k < vary->access_count; k++) {
        uint32_t s = vary->accesses[k];
        if (s != store && is_varying_write(vary, k, object) && overwrites(vary->flow->insns[s]) &&
            insn_over(vary->flow, s, load) && ir_flow_leads(vary->flow, store, s) &&
            ((runs_behind(vary->flow, store, s) &&
              is_one_place(vary->flow, vary->flow->insns[store], vary->flow->insns[s])) ||
             (is_at_told(vary->flow, vary->flow->insns[load]) &&
              ir_is_led_by_told(vary->flow, vary->flow->home[s], vary->flow->home[load]))))
            return true;
    }
    return false;
}

/* Whether varying stores dominate every varying load that `store` leads to. */
static bool is_overwritten(const ir_vary *vary, const ir_object *object, uint32_t store) {
    const ir_flow *flow = vary->flow;
    for (uint32_t k = 0; k < vary->access_count; k++) {
        uint32_t load = vary->accesses[k];
        bool matters = vary->object_of[k] == object && vary->differs_in_memory[load] &&
                       !overwrites(flow->insns[load]) && ir_flow_leads(flow, store, load);
        if (matters && !is_renewed(vary, object, store, load))
            return false;
    }
    return true;
}

/* Whether an access of an object meets contents of its member's own. */
static bool meets_own(const ir_vary *vary, uint32_t access) {
    uint32_t insn = vary->accesses[access];
    ir_object *object = vary->object_of[access];
    if (!object || (object->is_shared && vary->shared_is_one))
        return false;
    if (!is_write(vary->flow->insns[insn]))
        return object->varies && follows_varying(vary, object, insn);
    if (vary->varies[insn]) {
        object->varies = true;
        return true;
    }
    return object->varies &&
           (follows_varying(vary, object, insn) || !is_overwritten(vary, object, insn));
}

/* ---- the fixed point --------------------------------------------------------------------------
 */

static bool grow(bool *fact, bool now) {
    bool grown = now && !*fact;
    *fact |= now;
    return grown;
}

/* *access: the number of the next access, which follows the instructions. */
static bool visit_insn(ir_vary *vary, uint32_t i, uint32_t *access) {
    LLVMValueRef insn = vary->flow->insns[i];
    bool changed = false;
    bool varies = vary->is_seed[i] || an_operand_varies(vary, insn) ||
                  (LLVMIsAPHINode(insn) && joins_members(vary, insn, vary->flow->home[i]));
    if (is_write(insn) && is_in_region(vary, i))
        varies = true;
    changed |= grow(&vary->varies[i], varies);
    if (*access < vary->access_count && vary->accesses[*access] == i)
        changed |= grow(&vary->differs_in_memory[i], meets_own(vary, (*access)++));
    if (vary->differs_in_memory[i])
        changed |= grow(&vary->varies[i], true);
    return changed;
}

/* Adds the region around a varying branch. Regions inside of the new one are given up. */
static ev_status add_region(ir_vary *vary, uint32_t block, ev_error *err) {
    ir_region region;
    EV_TRY(ir_region_around(vary->flow, block, &region, err));
    uint32_t at = vary->region_count;
    if (at == vary->region_capacity)
        return ev_fail_memory(err, at);
    vary->regions[vary->region_count++] = region;
    for (uint32_t b = 0; b < vary->flow->count; b++) {
        if (!region.holds[b])
            continue;
        vary->branch_of[b] = at;
        if (b != region.entry || region.whole)
            vary->region_of[b] = at;
    }
    return EV_OK;
}

static bool is_varying_branch(const ir_vary *vary, uint32_t block) {
    LLVMValueRef last = ir_flow_last(vary->flow, block);
    return LLVMGetNumSuccessors(last) > 1 && an_operand_varies(vary, last);
}

static ev_status visit_all(ir_vary *vary, bool *changed, ev_error *err) {
    const ir_flow *flow = vary->flow;
    uint32_t access = 0;
    for (uint32_t b = 0; b < flow->count; b++) {
        for (uint32_t i = flow->first[b]; i < flow->first[b + 1]; i++)
            *changed |= visit_insn(vary, i, &access);
        if (is_varying_branch(vary, b) && vary->branch_of[b] == IR_NONE) {
            EV_TRY(add_region(vary, b, err));
            *changed = true;
        }
    }
    return EV_OK;
}

ev_status ir_vary_make(const ir_flow *flow, const bool *is_seed, bool shared_is_one, ir_vary *out,
                       ev_error *err) {
    ir_vary vary = {.flow = flow, .is_seed = is_seed, .shared_is_one = shared_is_one};
    vary.varies = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
    vary.differs_in_memory = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
    vary.region_of = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 1);
    vary.branch_of = EV_NEW_ARRAY(flow->arena, uint32_t, flow->count + 1);
    vary.region_capacity = flow->count;
    vary.regions = EV_NEW_ARRAY(flow->arena, ir_region, flow->count + 1);
    if (!vary.varies || !vary.differs_in_memory || !vary.region_of || !vary.branch_of ||
        !vary.regions || !list_objects(&vary) || !list_accesses(&vary))
        return ev_fail_memory(err, 1);
    for (uint32_t b = 0; b < flow->count; b++)
        vary.region_of[b] = vary.branch_of[b] = IR_NONE;
    for (bool changed = true; changed;) {
        changed = false;
        EV_TRY(visit_all(&vary, &changed, err));
    }
    *out = vary;
    return ev_arena_failed(flow->arena) ? ev_fail_memory(err, 1) : EV_OK;
}
