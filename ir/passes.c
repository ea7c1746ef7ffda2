/* Passes: a genome's pipeline run on its module, in the two parts that ir/pipelines.def has. */
#include "ir/internal.h"

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
