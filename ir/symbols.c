/* Symbols: module-level variables in constant and global memory that the host fills before a launch
 * (__constant__, __device__).
 *
 * A symbol that the task declares is opened: its contents are unknown to LLVM, its name stays, and
 * the PTX shows it. A symbol that the kernel reads, that has no initial values and that the task
 * does not declare would be zero at each launch, so a search would learn that it is zero. Therefore
 * such a symbol is refused, by one rule:
 *
 *   constant memory    the kernel reads it, or its address goes where this file cannot follow
 *   global memory      the same, and the kernel does not write it
 *
 * Global memory that the kernel writes is scratch (a counter, a flag). It is zero at each launch.
 */
#include "ir/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE_GLOBAL = 1, SPACE_CONST = 4 };

/* ---- opening ---- */

static const char *name_of(LLVMValueRef global) {
    size_t length = 0;
    return LLVMGetValueName2(global, &length);
}

/* The name as the source has it: that of a static variable is mangled, "_ZL4name". */
static const char *source_name(LLVMValueRef global) {
    const char *name = name_of(global);
    if (strncmp(name, "_ZL", 3) != 0)
        return name;
    const char *digits = name + 3, *rest = digits;
    while (isdigit((unsigned char)*rest))
        rest++;
    return rest > digits && strlen(rest) == strtoul(digits, NULL, 10) ? rest : name;
}

static bool is_symbol(LLVMValueRef global) {
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(global));
    return space == SPACE_CONST || space == SPACE_GLOBAL;
}

static bool is_declared(const ir_source *source, LLVMValueRef global) {
    for (size_t i = 0; i < source->symbol_count; i++) {
        if (strcmp(source->symbols[i], name_of(global)) == 0 ||
            strcmp(source->symbols[i], source_name(global)) == 0)
            return true;
    }
    return false;
}

/* Whether the source gives it no values. Zeros count as none: PTX does not tell them apart. */
static bool is_empty(LLVMValueRef global) {
    LLVMValueRef values = LLVMGetInitializer(global);
    return values == NULL || LLVMIsNull(values) || LLVMIsUndef(values);
}

static void open_declared(LLVMValueRef global) {
    const char *name = source_name(global);
    char *kept = name != name_of(global) ? strdup(name) : NULL;
    if (kept != NULL)
        LLVMSetValueName2(global, kept, strlen(kept));
    free(kept);
    if (LLVMIsDeclaration(global)) /* extern: this module is the only one */
        LLVMSetInitializer(global, LLVMConstNull(LLVMGlobalGetValueType(global)));
    LLVMSetLinkage(global, LLVMExternalLinkage);
    LLVMSetVisibility(global, LLVMDefaultVisibility);
    LLVMSetGlobalConstant(global, 0);
    LLVMSetExternallyInitialized(global, 1);
}

void ir_symbols_open(const ir_base *base, const ir_source *source) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(base->module); g; g = LLVMGetNextGlobal(g)) {
        if (!is_symbol(g))
            continue;
        if (is_declared(source, g))
            open_declared(g);
        else if (!LLVMIsDeclaration(g) && !LLVMIsGlobalConstant(g) && is_empty(g))
            LLVMSetExternallyInitialized(g, 1); /* so that its reads are there to be found */
    }
}

/* ---- accesses ---- */

enum { READS = 1, WRITES = 2, ESCAPES = 4 };

/* Values that hold an address in the symbol, found one from the other. */
typedef struct walk {
    LLVMValueRef *values;
    size_t count, room;
    unsigned found;
    bool failed; /* out of memory */
} walk;

static void add(walk *w, LLVMValueRef value) {
    for (size_t i = 0; i < w->count; i++) {
        if (w->values[i] == value)
            return;
    }
    if (w->count == w->room) {
        size_t room = w->room == 0 ? 32 : 2 * w->room;
        LLVMValueRef *more = realloc(w->values, room * sizeof(LLVMValueRef));
        w->failed = w->failed || more == NULL;
        if (more == NULL)
            return;
        w->values = more;
        w->room = room;
    }
    w->values[w->count++] = value;
}

/* What calls of LLVM's own functions do to the memory that an operand points to. */
static const struct {
    const char *prefix;
    unsigned first, others; /* for the first operand, and for the others */
} CALLS[] = {{"llvm.memcpy.", WRITES, READS},
             {"llvm.memmove.", WRITES, READS},
             {"llvm.memset.", WRITES, ESCAPES},
             {"llvm.nvvm.ldg.", READS, ESCAPES},
             {"llvm.nvvm.ldu.", READS, ESCAPES},
             {"llvm.nvvm.atomic.", READS | WRITES, ESCAPES},
             {"llvm.nvvm.cp.async.", WRITES, READS},
             {"llvm.lifetime.", 0, 0},
             {"llvm.assume", 0, 0},
             {"llvm.prefetch.", 0, 0}};

static unsigned effect_of(LLVMValueRef callee, unsigned operand) {
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        if (strncmp(name_of(callee), CALLS[i].prefix, strlen(CALLS[i].prefix)) == 0)
            return operand == 0 ? CALLS[i].first : CALLS[i].others;
    }
    return ESCAPES;
}

static void follow_call(walk *w, LLVMValueRef call, LLVMValueRef value) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    bool is_function = LLVMIsAFunction(callee) != NULL;
    if (callee == value)
        w->found |= ESCAPES;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        if (LLVMGetOperand(call, i) != value)
            continue;
        if (is_function && LLVMCountBasicBlocks(callee) > 0 && i < LLVMCountParams(callee))
            add(w, LLVMGetParam(callee, i));
        else
            w->found |= is_function ? effect_of(callee, i) : ESCAPES;
    }
}

static void follow_insn(walk *w, LLVMValueRef insn, LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(insn)) {
    case LLVMLoad:
        w->found |= READS;
        break;
    case LLVMStore:
        w->found |= LLVMGetOperand(insn, 1) == value ? WRITES : 0u;
        w->found |= LLVMGetOperand(insn, 0) == value ? ESCAPES : 0u;
        break;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        w->found |= LLVMGetOperand(insn, 0) == value ? READS | WRITES : ESCAPES;
        break;
    case LLVMGetElementPtr:
    case LLVMAddrSpaceCast:
    case LLVMBitCast:
    case LLVMPHI:
    case LLVMSelect:
    case LLVMFreeze:
        add(w, insn);
        break;
    case LLVMICmp:
        break;
    case LLVMCall:
        follow_call(w, insn, value);
        break;
    default:
        w->found |= ESCAPES;
    }
}

static void follow_constant(walk *w, LLVMValueRef user) {
    if (LLVMIsAGlobalVariable(user)) { /* LLVM's own lists are no use of a symbol */
        w->found |= strncmp(name_of(user), "llvm.", 5) == 0 ? 0u : ESCAPES;
        return;
    }
    LLVMOpcode code = LLVMIsAConstantExpr(user) ? LLVMGetConstOpcode(user) : LLVMBitCast;
    if (code == LLVMGetElementPtr || code == LLVMAddrSpaceCast || code == LLVMBitCast)
        add(w, user);
    else
        w->found |= ESCAPES;
}

/* What the module does with a symbol: a set of READS, WRITES, ESCAPES. */
static ev_status accesses_of(LLVMValueRef global, unsigned *found, ev_error *err) {
    walk w = {0};
    add(&w, global);
    for (size_t i = 0; i < w.count; i++) {
        LLVMValueRef value = w.values[i];
        for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            if (LLVMIsAInstruction(user))
                follow_insn(&w, user, value);
            else
                follow_constant(&w, user);
        }
    }
    free(w.values);
    *found = w.found;
    return w.failed ? ev_fail_memory(err, w.room * sizeof(LLVMValueRef)) : EV_OK;
}

/* ---- the rule ---- */

static bool is_filled_by_host(LLVMValueRef global, unsigned found) {
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == SPACE_CONST)
        return (found & (READS | ESCAPES)) != 0;
    return (found & (READS | ESCAPES)) != 0 && (found & WRITES) == 0;
}

static ev_status refuse(const ir_source *source, LLVMValueRef global, ev_error *err) {
    bool is_const = LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == SPACE_CONST;
    return ev_fail(
        err, EV_BAD,
        "%s: the kernel reads the %s variable '%s', which has no initial values and "
        "which it does not write; if the host fills it, list it under \"symbols\" of the "
        "task with its data, else give it its values in the source",
        source->path, is_const ? "__constant__" : "__device__", source_name(global));
}

ev_status ir_base_check_symbols(const ir_base *base, const ir_source *source, ev_error *err) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(base->module); g; g = LLVMGetNextGlobal(g)) {
        unsigned found = 0;
        bool is_weak = LLVMGetLinkage(g) == LLVMExternalWeakLinkage;
        if (!is_symbol(g) || is_weak || LLVMIsGlobalConstant(g) || !is_empty(g) ||
            is_declared(source, g))
            continue;
        EV_TRY(accesses_of(g, &found, err));
        if (is_filled_by_host(g, found))
            return refuse(source, g, err);
    }
    return EV_OK;
}
