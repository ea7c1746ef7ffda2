/* Rules: the parts that all edits share: the table of rules, facts about instructions, and words
 * for descriptions.
 *
 * ir/edits.def is the only list of edit kinds. Each row has an ir_rule of the same name (sites,
 * draw, apply, describe), which ir_rule_of finds. A new edit needs a new row and its rule. */
#include "ir/internal.h"

#include <assert.h>
#include <string.h>

const ir_rule *ir_rule_of(ir_edit_kind kind) {
    static const ir_rule *const rules[] = {
#define IR_EDIT(id, name, family, extent, meaning, needs, describes, because) &ir_rule_##id,
#include "ir/edits.def"
#undef IR_EDIT
    };
    return rules[kind];
}

void ir_sites_add(ir_sites *sites, uint32_t id, uint32_t index) {
    if (sites->count == sites->capacity) {
        uint32_t room = sites->capacity * 2 + 64;
        ir_site *grown = EV_NEW_ARRAY(sites->arena, ir_site, room);
        if (!grown)
            return; /* the arena notes that memory ran out */
        if (sites->count > 0)
            memcpy(grown, sites->items, sites->count * sizeof *grown);
        sites->items = grown;
        sites->capacity = room;
    }
    sites->items[sites->count++] = (ir_site){id, index};
}

/* ---- facts about instructions -----------------------------------------------------------------
 */

bool ir_insn_is_movable(LLVMValueRef insn) {
    return !LLVMIsATerminatorInst(insn) && !LLVMIsAPHINode(insn) &&
           LLVMGetTypeKind(LLVMTypeOf(insn)) != LLVMTokenTypeKind;
}

const char *ir_call_name(LLVMValueRef insn) {
    LLVMValueRef callee = LLVMIsACallInst(insn) ? LLVMGetCalledValue(insn) : NULL;
    size_t length;
    return callee && LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &length) : "";
}

bool ir_changes_by_itself(const char *intrinsic) {
    static const char stem[] = "llvm.nvvm.read.ptx.sreg.";
    static const char *const names[] = {"clock", "globaltimer", "warpid", "smid", "pm"};
    if (strncmp(intrinsic, stem, sizeof stem - 1) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(intrinsic + sizeof stem - 1, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Reads of special registers and arithmetic intrinsics have no effect, and accept any operands. */
static bool call_is_pure(LLVMValueRef insn) {
    static const char *const prefixes[] = {"llvm.nvvm.read.ptx.sreg.",
                                           "llvm.fma",
                                           "llvm.fmuladd",
                                           "llvm.fabs",
                                           "llvm.smin",
                                           "llvm.smax",
                                           "llvm.umin",
                                           "llvm.umax",
                                           "llvm.minnum",
                                           "llvm.maxnum",
                                           "llvm.sqrt",
                                           "llvm.fshl",
                                           "llvm.fshr",
                                           "llvm.abs",
                                           "llvm.ctpop"};
    const char *name = ir_call_name(insn);
    if (ir_changes_by_itself(name))
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

bool ir_insn_is_pure(LLVMValueRef insn) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem: /* division by zero is undefined */
        return LLVMIsAConstantInt(LLVMGetOperand(insn, 1)) &&
               LLVMConstIntGetZExtValue(LLVMGetOperand(insn, 1)) != 0;
    case LLVMCall:
        return call_is_pure(insn);
    case LLVMGetElementPtr:
    case LLVMSelect:
    case LLVMFNeg:
    case LLVMFreeze:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
    case LLVMExtractValue:
    case LLVMInsertValue:
    case LLVMICmp:
    case LLVMFCmp:
        return true;
    default:
        return LLVMIsABinaryOperator(insn) != NULL || LLVMIsACastInst(insn) != NULL;
    }
}

LLVMValueRef ir_intrinsic_call(ir_work *w, const char *name, LLVMTypeRef *overloads,
                               size_t overload_count, LLVMValueRef *args, size_t count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id != 0);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(w->module, id, overloads, overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(w->context, id, overloads, overload_count);
    return LLVMBuildCall2(w->builder, type, function, args, (unsigned)count, "");
}

/* ---- words ------------------------------------------------------------------------------------
 */

const char *ir_opcode_name(LLVMOpcode opcode) {
    static const char *const names[] = {
        [LLVMRet] = "return",
        [LLVMBr] = "branch",
        [LLVMSwitch] = "switch",
        [LLVMUnreachable] = "unreachable",
        [LLVMFNeg] = "fneg",
        [LLVMAdd] = "add",
        [LLVMFAdd] = "fadd",
        [LLVMSub] = "sub",
        [LLVMFSub] = "fsub",
        [LLVMMul] = "mul",
        [LLVMFMul] = "fmul",
        [LLVMUDiv] = "udiv",
        [LLVMSDiv] = "sdiv",
        [LLVMFDiv] = "fdiv",
        [LLVMURem] = "urem",
        [LLVMSRem] = "srem",
        [LLVMFRem] = "frem",
        [LLVMShl] = "shl",
        [LLVMLShr] = "lshr",
        [LLVMAShr] = "ashr",
        [LLVMAnd] = "and",
        [LLVMOr] = "or",
        [LLVMXor] = "xor",
        [LLVMAlloca] = "alloca",
        [LLVMLoad] = "load",
        [LLVMStore] = "store",
        [LLVMGetElementPtr] = "address",
        [LLVMTrunc] = "trunc",
        [LLVMZExt] = "zext",
        [LLVMSExt] = "sext",
        [LLVMFPToUI] = "fptoui",
        [LLVMFPToSI] = "fptosi",
        [LLVMUIToFP] = "uitofp",
        [LLVMSIToFP] = "sitofp",
        [LLVMFPTrunc] = "fptrunc",
        [LLVMFPExt] = "fpext",
        [LLVMPtrToInt] = "ptrtoint",
        [LLVMIntToPtr] = "inttoptr",
        [LLVMBitCast] = "bitcast",
        [LLVMAddrSpaceCast] = "addrspacecast",
        [LLVMICmp] = "icmp",
        [LLVMFCmp] = "fcmp",
        [LLVMPHI] = "PHI",
        [LLVMCall] = "call",
        [LLVMSelect] = "select",
        [LLVMExtractElement] = "extractelement",
        [LLVMInsertElement] = "insertelement",
        [LLVMShuffleVector] = "shufflevector",
        [LLVMExtractValue] = "extractvalue",
        [LLVMInsertValue] = "insertvalue",
        [LLVMFreeze] = "freeze",
        [LLVMFence] = "fence",
        [LLVMAtomicCmpXchg] = "cmpxchg",
        [LLVMAtomicRMW] = "atomicrmw",
    };
    size_t count = sizeof names / sizeof names[0];
    return (size_t)opcode < count && names[opcode] ? names[opcode] : "instruction";
}

void ir_describe_insn(const ir_work *w, const ir_name *name, ev_str *out) {
    char text[IR_NAME_TEXT];
    ir_name_print(name, text);
    uint32_t id = ir_work_find(w, name);
    if (id == IR_NONE) {
        ev_str_printf(out, "the missing %s", text);
        return;
    }
    LLVMValueRef insn = w->nodes[id].value;
    const char *call = ir_call_name(insn);
    ev_str_printf(out, "the %s", ir_opcode_name(LLVMGetInstructionOpcode(insn)));
    if (call[0])
        ev_str_printf(out, " of %s", call);
    uint32_t line = ir_work_line(w, id);
    if (line)
        ev_str_printf(out, " %s at line %u", text, line);
    else
        ev_str_printf(out, " %s", text);
}

void ir_describe_value(const ir_work *w, const ir_value *value, ev_str *out) {
    switch (value->kind) {
    case IR_VALUE_INSN:
        ir_describe_insn(w, &value->insn, out);
        break;
    case IR_VALUE_ARG:
        ev_str_printf(out, "argument %u", value->arg);
        break;
    case IR_VALUE_INT:
        ev_str_printf(out, "%lld", (long long)value->integer);
        break;
    case IR_VALUE_REAL:
        ev_str_printf(out, "%g", value->real);
        break;
    case IR_VALUE_NONE:
        ev_str_append(out, "nothing");
        break;
    }
}
