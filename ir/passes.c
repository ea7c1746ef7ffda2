/* Passes: runs a genome's pipeline on its module, in the two parts of ir/pipelines.def. */
#include "ir/internal.h"

#include <string.h>

static ev_status run(const ir_base *base, LLVMModuleRef module, const char *passes, ev_error *err) {
    LLVMErrorRef failure =
        passes ? LLVMRunPasses(module, passes, base->machine, base->options) : NULL;
    if (!failure)
        return EV_OK;
    char *text = LLVMGetErrorMessage(failure);
    ev_status status = ev_fail(err, EV_BAD, "LLVM's passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return status;
}

ev_status ir_passes_first(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                          ev_error *err) {
    return run(base, module, ir_passes_of(genome).first, err);
}

ev_status ir_passes_rest(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                         ev_error *err) {
    return run(base, module, ir_passes_of(genome).rest, err);
}

ev_status ir_emit_aside(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                        ev_str *ptx, ev_error *err) {
    EV_TRY(ir_passes_first(base, genome, module, err));
    EV_TRY(ir_passes_rest(base, genome, module, err));
    char *text = NULL;
    LLVMMemoryBufferRef code = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(ir_machine_of(base, genome), module, LLVMAssemblyFile,
                                            &text, &code)) {
        ev_status status =
            ev_fail(err, EV_BAD, "LLVM's code generation: %s", text ? text : "no words");
        LLVMDisposeMessage(text);
        return status;
    }
    ev_str_append_n(ptx, LLVMGetBufferStart(code), LLVMGetBufferSize(code));
    LLVMDisposeMemoryBuffer(code);
    return ev_str_status(ptx, err);
}

/* ---- unused globals after the passes */

static bool is_among(LLVMValueRef f, const LLVMValueRef *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list[i] == f)
            return true;
    }
    return false;
}

void ir_make_internal(LLVMModuleRef module, const LLVMValueRef *but, size_t count) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (is_among(f, but, count) || LLVMIsDeclaration(f))
            continue;
        LLVMSetLinkage(f, LLVMInternalLinkage);
        LLVMSetVisibility(f, LLVMDefaultVisibility);
    }
}

/* Makes all globals internal, so that globaldce removes the unused ones. */
static void empty_module(LLVMModuleRef module) {
    ir_make_internal(module, NULL, 0);
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (!LLVMIsDeclaration(g))
            LLVMSetLinkage(g, LLVMInternalLinkage);
    }
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMConsumeError(LLVMRunPasses(module, "globaldce", NULL, options));
    LLVMDisposePassBuilderOptions(options);
}

bool ir_passes_ask(const ir_genome *genome) {
    static const char asking[] = "default<";
    const char *first = ir_passes_of(genome).first;
    return first && strncmp(first, asking, sizeof asking - 1) == 0;
}

void ir_passes_forget(LLVMTargetMachineRef machine, LLVMModuleRef module) {
    char *message = NULL;
    LLVMMemoryBufferRef nothing = NULL;
    empty_module(module);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &message, &nothing))
        LLVMDisposeMessage(message);
    else
        LLVMDisposeMemoryBuffer(nothing);
}
