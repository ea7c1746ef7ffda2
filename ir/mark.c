/* Marks: maps PTX lines to the instructions of a base module, or to source lines.
 *
 * The module is cloned, and each instruction gets the source line "its number + 1", or its own
 * line. Passes and code generator carry the lines along, and .loc directives state them in the PTX.
 * PTX that comes from no single instruction has line 0. */
#include "ir/internal.h"

#include <llvm-c/DebugInfo.h>

#include <stdlib.h>
#include <string.h>

static const char file_name[] = "base", producer[] = "evoke";

static LLVMMetadataRef make_unit(LLVMDIBuilderRef builder, LLVMMetadataRef *file) {
    *file = LLVMDIBuilderCreateFile(builder, file_name, sizeof file_name - 1, "", 0);
    return LLVMDIBuilderCreateCompileUnit(builder, LLVMDWARFSourceLanguageC, *file, producer,
                                          sizeof producer - 1, 1, "", 0, 0, "", 0,
                                          LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
}

static LLVMMetadataRef make_function(LLVMDIBuilderRef builder, LLVMMetadataRef file,
                                     LLVMValueRef function) {
    size_t length = 0;
    const char *name = LLVMGetValueName2(function, &length);
    LLVMMetadataRef type =
        LLVMDIBuilderCreateSubroutineType(builder, file, NULL, 0, LLVMDIFlagZero);
    return LLVMDIBuilderCreateFunction(builder, file, name, length, "", 0, file, 1, type, 0, 1, 1,
                                       LLVMDIFlagZero, 1);
}

/* Sets the lines, in the order of ir_base_load's numbers. `lines`: by number; NULL: the numbers
 * plus 1. */
static void mark_module(LLVMModuleRef module, LLVMContextRef context, const uint32_t *lines) {
    LLVMDIBuilderRef builder = LLVMCreateDIBuilder(module);
    LLVMMetadataRef file, unit = make_unit(builder, &file);
    (void)unit;
    unsigned number = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        LLVMMetadataRef scope = make_function(builder, file, f);
        LLVMSetSubprogram(f, scope);
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
                unsigned line = lines ? lines[number] : number + 1;
                LLVMInstructionSetDebugLoc(
                    i, LLVMDIBuilderCreateDebugLocation(context, line, 0, scope, NULL));
                number++;
            }
    }
    LLVMDIBuilderFinalize(builder);
    LLVMDisposeDIBuilder(builder);
    static const char flag[] = "Debug Info Version";
    LLVMValueRef version =
        LLVMConstInt(LLVMInt32TypeInContext(context), LLVMDebugMetadataVersion(), 0);
    LLVMAddModuleFlag(module, LLVMModuleFlagBehaviorWarning, flag, sizeof flag - 1,
                      LLVMValueAsMetadata(version));
}

static ev_status marked(const ir_base *base, const uint32_t *lines, const ir_genome *genome,
                        char **ptx, size_t *bytes, ev_error *err) {
    LLVMModuleRef module = LLVMCloneModule(base->module);
    mark_module(module, base->context, lines);
    ev_str text = EV_STR_EMPTY;
    ev_status status = ir_emit_aside(base, genome, module, &text, err);
    LLVMDisposeModule(module);
    *bytes = text.length;
    *ptx = status == EV_OK ? ev_str_take(&text) : NULL;
    ev_str_free(&text);
    return status == EV_OK && !*ptx ? ev_fail_memory(err, *bytes) : status;
}

ev_status ir_base_marked_ptx(const ir_base *base, char **ptx, size_t *bytes, ev_error *err) {
    ir_genome *light = ir_genome_new("");
    ev_status status = light && ir_genome_make_light(light)
                           ? marked(base, NULL, light, ptx, bytes, err)
                           : ev_fail_memory(err, 1);
    ir_genome_free(light);
    return status;
}

ev_status ir_base_lined_ptx(const ir_base *base, char **ptx, size_t *bytes, ev_error *err) {
    ir_genome *plain = ir_genome_new("");
    ev_status status =
        plain ? marked(base, base->lines, plain, ptx, bytes, err) : ev_fail_memory(err, 1);
    ir_genome_free(plain);
    return status;
}
