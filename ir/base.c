/* Base modules: from .cu, .ll or .bc to one kernel's IR with its instructions numbered. */
#include "base/file.h"
#include "ir/internal.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define TRIPLE "nvptx64-nvidia-cuda"

/* The oldest PTX version that LLVM 19 needs for a target (its NVPTX.td), not below 6.3, and for
 * sm_75 not below 6.5, which brought the shapes of mma.sync that sm_75 has: an older version loads
 * on more drivers. */
int ir_ptx_version(int sm) {
    static const int table[][2] = {{53, 63}, {60, 63}, {61, 63}, {62, 63}, {70, 63}, {72, 63},
                                   {75, 65}, {80, 70}, {86, 71}, {87, 74}, {89, 78}, {90, 78}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i][0] == sm)
            return table[i][1];
    }
    return 0;
}

int ir_base_ptx_version(const ir_base *base) {
    return ir_ptx_version(base->sm);
}

/* ---- LLVM's messages --------------------------------------------------------------------------
 */

/* Collects LLVM's messages. Without a handler, LLVM prints errors and ends the process. */
static void note_complaint(LLVMDiagnosticInfoRef info, void *of) {
    ir_base *base = of;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || base->complaint)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    base->complaint = strdup(text);
    LLVMDisposeMessage(text);
}

void ir_base_clear_complaint(ir_base *base) {
    free(base->complaint);
    base->complaint = NULL;
}

void ir_set_fatal_handler(void (*handler)(const char *reason)) {
    LLVMResetFatalErrorHandler();
    if (handler)
        LLVMInstallFatalErrorHandler(handler);
}

/* ---- compiling and parsing --------------------------------------------------------------------
 */

static bool has_suffix(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static ev_status parse_bitcode(const ir_base *base, const char *data, size_t bytes,
                               const char *path, LLVMModuleRef *out, ev_error *err) {
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(data, bytes, path);
    LLVMBool failed = LLVMParseBitcodeInContext2(base->context, buffer, out);
    LLVMDisposeMemoryBuffer(buffer);
    if (failed)
        return ev_fail(err, EV_BAD, "%s: not LLVM %s bitcode: %s", path, ir_llvm_version(),
                       base->complaint ? base->complaint : "unreadable");
    return EV_OK;
}

static ev_status read_compiled(const ir_base *base, const ir_source *source, LLVMModuleRef *out,
                               ev_error *err) {
    if (source->bitcode)
        return parse_bitcode(base, source->bitcode, source->bitcode_bytes, source->path, out, err);
    ev_str bitcode = EV_STR_EMPTY;
    ev_status status = ir_compile(source, &bitcode, err);
    if (status == EV_OK)
        status = parse_bitcode(base, bitcode.data, bitcode.length, source->path, out, err);
    ev_str_free(&bitcode);
    return status;
}

static ev_status parse_text(const ir_base *base, const char *data, size_t bytes, const char *path,
                            LLVMModuleRef *out, ev_error *err) {
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(data, bytes, path);
    char *message = NULL;
    if (!LLVMParseIRInContext(base->context, buffer, out, &message)) /* takes the buffer over */
        return EV_OK;
    /* LLVM's message begins with the path and ends with a blank line. */
    size_t length = message ? strlen(message) : 0;
    while (length > 0 && strchr("\n ^", message[length - 1]))
        length--;
    ev_status status = ev_fail(err, EV_BAD, "%.*s", (int)length, message ? message : "");
    LLVMDisposeMessage(message);
    return status;
}

static ev_status read_module(const ir_base *base, const ir_source *source, LLVMModuleRef *out,
                             ev_error *err) {
    if (ir_is_compiled(source))
        return read_compiled(base, source, out, err);
    bool text = has_suffix(source->path, ".ll");
    if (!text && !has_suffix(source->path, ".bc"))
        return ev_fail(err, EV_BAD, "%s: a kernel's source ends in .cu, .ll or .bc", source->path);
    char *data;
    size_t bytes;
    EV_TRY(ev_file_read(source->path, &data, &bytes, err));
    ev_status status = text ? parse_text(base, data, bytes, source->path, out, err)
                            : parse_bitcode(base, data, bytes, source->path, out, err);
    free(data);
    return status;
}

/* LLVM's passes may move a call under a branch unless it is marked so. They do not know of matrix
 * products that all lanes of a warp make them together. */
static void mark_convergent(const ir_base *base, LLVMModuleRef module) {
    static const char name[] = "convergent";
    LLVMAttributeRef mark = LLVMCreateEnumAttribute(
        base->context, LLVMGetEnumAttributeKindForName(name, sizeof name - 1), 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        size_t length = 0;
        const char *of = LLVMGetValueName2(f, &length);
        if (strncmp(of, "llvm.nvvm.wmma.", 15) != 0 && strncmp(of, "llvm.nvvm.mma.", 14) != 0 &&
            strncmp(of, "llvm.nvvm.ldmatrix.", 19) != 0)
            continue;
        for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetNextUse(use)) {
            if (LLVMIsACallInst(LLVMGetUser(use)))
                LLVMAddCallSiteAttribute(LLVMGetUser(use),
                                         (LLVMAttributeIndex)LLVMAttributeFunctionIndex, mark);
        }
    }
}

static bool has_prefix(const ir_source *source) {
    return source->genome && ir_genome_prefix_count(source->genome) > 0;
}

/* ---- the entry --------------------------------------------------------------------------------
 */

/* Marks the parameters that launches may pass one buffer for. Early IR that is kept has the marks,
 * too (ir_may_overlap). */
static void mark_overlapping(LLVMValueRef entry, uint64_t overlapping) {
    for (unsigned i = 0; i < LLVMCountParams(entry) && i < 64; i++) {
        if ((overlapping >> i & 1) == 0)
            continue;
        LLVMAttributeRef mark = LLVMCreateStringAttribute(
            LLVMGetTypeContext(LLVMTypeOf(entry)), IR_OVERLAPS, sizeof IR_OVERLAPS - 1, "", 0);
        LLVMAddAttributeAtIndex(entry, i + 1, mark);
    }
}

/* Finds the entry and the kernels of the plan's other launches, and makes all other definitions
 * internal, so that LLVM's passes remove the unused ones. */
static ev_status open_entry(const ir_base *base, const ir_source *source, ev_error *err) {
    LLVMValueRef kept[LAUNCH_PLAN_MOST + 1];
    size_t count = 1;
    EV_TRY(ir_entry_find(base->module, source, &kept[0], err));
    for (size_t i = 0; source->plan != NULL && i < source->plan->launch_count; i++) {
        ir_source other = *source;
        other.entry = source->plan->launches[i].entry;
        if (strcmp(other.entry, source->entry) == 0)
            continue;
        other.instance = NULL;
        EV_TRY(ir_entry_find(base->module, &other, &kept[count++], err));
    }
    ir_make_internal(base->module, kept, count);
    mark_overlapping(kept[0], source->overlapping);
    ir_symbols_open(base, source);
    return EV_OK;
}

/* What early IR still needs of default<O3>, in half of its time: early IR is inlined and simplified
 * already. Loops are unrolled where a pragma asks for it alone. */
static const char after_early[] =
    "globaldce,function(nvvm-intr-range,loop-mssa(licm<no-allowspeculation>,loop-rotate,"
    "licm<allowspeculation>),simplifycfg,instcombine<no-verify-fixpoint>,reassociate,"
    "loop(indvars,loop-deletion),"
    "loop-unroll<O3;full-unroll-max=0;no-partial;no-peeling;no-runtime;no-upperbound;"
    "no-profile-peeling>,"
    "sroa,gvn,adce,simplifycfg<hoist-common-insts;sink-common-insts>,infer-alignment,"
    "instcombine<no-verify-fixpoint>)";

/* Removes all that the entry does not need. CUDA C is optimised here as well, but its loops stay
 * rolled, except where a pragma unrolls them. An edit of a loop's body then acts on every
 * iteration, and each variant's own pipeline unrolls afterwards. */
static ev_status optimise(ir_base *base, const ir_source *source, ev_error *err) {
    const char *passes = ir_is_compiled(source) ? "default<O3>" : "globaldce";
    if (has_prefix(source))
        passes = source->optimised ? "default<O3>" : after_early;
    base->asked = has_prefix(source) || ir_is_compiled(source);
    LLVMPassBuilderOptionsSetLoopUnrolling(base->options, source->optimised);
    LLVMErrorRef failure = LLVMRunPasses(base->module, passes, base->machine, base->options);
    LLVMPassBuilderOptionsSetLoopUnrolling(base->options, 1);
    if (!failure)
        return EV_OK;
    char *text = LLVMGetErrorMessage(failure);
    ev_status status = ev_fail(err, EV_INFRA, "LLVM's %s: %s", passes, text);
    LLVMDisposeErrorMessage(text);
    return status;
}

/* ---- numbering --------------------------------------------------------------------------------
 */

static bool in_source(LLVMMetadataRef location, const char *file) {
    LLVMMetadataRef of = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    unsigned length = 0;
    const char *name = of ? LLVMDIFileGetFilename(of, &length) : "";
    size_t tail = strlen(file);
    return length >= tail && memcmp(name + length - tail, file, tail) == 0;
}

/* The source line of an instruction: the innermost line in the source file itself. A helper's line
 * says more than that of its call, but a line of an included header says nothing to the reader. */
static uint32_t line_of(LLVMValueRef insn, const char *file) {
    LLVMMetadataRef at = LLVMInstructionGetDebugLoc(insn);
    LLVMMetadataRef outermost = NULL;
    for (; at; at = LLVMDILocationGetInlinedAt(at)) {
        if (in_source(at, file))
            return LLVMDILocationGetLine(at);
        outermost = at;
    }
    return outermost ? LLVMDILocationGetLine(outermost) : 0;
}

/* Removes debug intrinsics, which are no instructions of the kernel, together with the debug info.
 */
static uint32_t visit_insns(ir_base *base, const char *file,
                            void (*visit)(ir_base *, const char *, LLVMValueRef, uint32_t)) {
    uint32_t count = 0;
    LLVMModuleRef module = base->module;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
                if (LLVMIsADbgInfoIntrinsic(i))
                    continue;
                if (visit)
                    visit(base, file, i, count);
                count++;
            }
    return count;
}

static void note_line(ir_base *base, const char *file, LLVMValueRef insn, uint32_t number) {
    base->lines[number] = line_of(insn, file);
}

static void note_insn(ir_base *base, const char *file, LLVMValueRef insn, uint32_t number) {
    (void)file;
    base->insns[number] = insn;
}

/* Lines are noted before the debug info is removed, instructions afterwards. */
static ev_status number_insns(ir_base *base, const char *path, ev_error *err) {
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    base->count = visit_insns(base, file, NULL);
    base->insns = calloc((size_t)base->count + 1, sizeof *base->insns);
    base->lines = calloc((size_t)base->count + 1, sizeof *base->lines);
    if (!base->insns || !base->lines)
        return ev_fail_memory(err, base->count * sizeof *base->insns);
    visit_insns(base, file, note_line);
    LLVMStripModuleDebugInfo(base->module);
    uint32_t left = visit_insns(base, file, note_insn);
    assert(left == base->count);
    (void)left;
    return EV_OK;
}

/* Sets triple and data layout from the target machine, and removes function attributes that would
 * override the machine. */
static void set_target(ir_base *base) {
    static const char *const own[] = {"target-cpu", "target-features", "tune-cpu"};
    LLVMSetTarget(base->module, TRIPLE);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(base->machine);
    LLVMSetModuleDataLayout(base->module, layout);
    LLVMDisposeTargetData(layout);
    LLVMModuleRef module = base->module;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                             own[i], (unsigned)strlen(own[i]));
}

static ev_status check_module(const ir_base *base, const char *path, ev_error *err) {
    char *message = NULL;
    ev_status status = EV_OK;
    if (LLVMVerifyModule(base->module, LLVMReturnStatusAction, &message))
        status = ev_fail(err, EV_BAD, "%s: IR that does not verify: %s", path, message);
    LLVMDisposeMessage(message);
    return status;
}

ev_sha256 ir_module_sha256(LLVMModuleRef module) {
    LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(module);
    ev_sha256 sha = ev_sha256_of(LLVMGetBufferStart(code), LLVMGetBufferSize(code));
    LLVMDisposeMemoryBuffer(code);
    return sha;
}

static void name_module(const ir_base *base) {
    LLVMSetModuleIdentifier(base->module, "evoke", 5);
    LLVMSetSourceFileName(base->module, "evoke", 5);
}

static ev_status number_module(ir_base *base, const ir_source *source, ev_error *err) {
    EV_TRY(number_insns(base, source->path, err));
    base->sha = ir_module_sha256(base->module);
    return EV_OK;
}

/* ---- loading ----------------------------------------------------------------------------------
 */

/* Sets LLVM's options, once a process.
 *
 * Build time: by default LICM looks for promotions among 250 accesses pair by pair, and GVN looks
 * 100 instructions back. On unrolled kernels that is half of a build (default<O3> of the hand-tuned
 * LSTM cell: 72 ms, of which LICM 52), and the code of all shipped starts is the same without it.
 *
 * Registers: machine sinking and InstCombine move an instruction into the block of its only use.
 * Of a sum that a guarded store writes, both move the chain of multiply-adds behind the guard and
 * leave the loads above it, so all loaded values are alive at once. The assembler sinks what it
 * likes by itself, with the registers in view.
 *
 * Wide accesses: clang makes four stores of one of a float4. Where the other side of a branch
 * stores the same elements one by one, simplifycfg sinks the equal stores of both sides, and what
 * is left is no wide store any more. nvcc does not sink them either. */
static void begin_llvm(void) {
    static const char *const options[] = {"evoke",
                                          "-licm-mssa-max-acc-promotion=32",
                                          "-memdep-block-scan-limit=30",
                                          "-disable-machine-sink",
                                          "-instcombine-code-sinking=0",
                                          "-sink-common-insts=0"};
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMParseCommandLineOptions(sizeof options / sizeof options[0], options, NULL);
}

static ev_status make_machine(ir_base *base, ev_error *err) {
    static once_flag begun = ONCE_FLAG_INIT;
    call_once(&begun, begin_llvm);
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(TRIPLE, &target, &message)) {
        ev_status status = ev_fail(err, EV_INFRA, "LLVM has no NVPTX: %s", message);
        LLVMDisposeMessage(message);
        return status;
    }
    char cpu[16], features[16];
    snprintf(cpu, sizeof cpu, "sm_%d", base->sm);
    snprintf(features, sizeof features, "+ptx%d", ir_ptx_version(base->sm));
    const struct {
        LLVMTargetMachineRef *out;
        LLVMCodeGenOptLevel level;
    } machines[] = {{&base->machine, LLVMCodeGenLevelAggressive},
                    {&base->light_machine, LLVMCodeGenLevelDefault}};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        *machines[i].out = LLVMCreateTargetMachine(target, TRIPLE, cpu, features, machines[i].level,
                                                   LLVMRelocDefault, LLVMCodeModelDefault);
        if (!*machines[i].out)
            return ev_fail(err, EV_INFRA, "LLVM makes no target machine for %s", cpu);
        LLVMSetTargetMachineAsmVerbosity(*machines[i].out, 0);
    }
    return EV_OK;
}

static int compare_constants(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static ev_status note_constants(ir_base *base, const ir_source *source, ev_error *err) {
    if (source->constant_count == 0)
        return EV_OK;
    base->constants = malloc(source->constant_count * sizeof *base->constants);
    if (!base->constants)
        return ev_fail_memory(err, source->constant_count * sizeof *base->constants);
    memcpy(base->constants, source->constants, source->constant_count * sizeof *base->constants);
    qsort(base->constants, source->constant_count, sizeof *base->constants, compare_constants);
    for (size_t i = 0; i < source->constant_count; i++) {
        if (i == 0 || base->constants[i] != base->constants[base->constant_count - 1])
            base->constants[base->constant_count++] = base->constants[i];
    }
    return EV_OK;
}

static ev_status note_aligns(ir_base *base, const ir_source *source, ev_error *err) {
    if (!source->aligns || source->argument_count == 0)
        return EV_OK;
    base->aligns = malloc(source->argument_count * sizeof *base->aligns);
    if (!base->aligns)
        return ev_fail_memory(err, source->argument_count * sizeof *base->aligns);
    memcpy(base->aligns, source->aligns, source->argument_count * sizeof *base->aligns);
    base->align_count = source->argument_count;
    return EV_OK;
}

static void strip_names(LLVMModuleRef module) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        for (unsigned i = 0; i < LLVMCountParams(f); i++)
            LLVMSetValueName2(LLVMGetParam(f, i), "", 0);
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
            LLVMSetValueName2(LLVMBasicBlockAsValue(b), "", 0);
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
                if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind)
                    LLVMSetValueName2(i, "", 0);
            }
        }
    }
}

static void dispose_module(ir_base *base) {
    if (base->module && base->asked)
        ir_passes_forget(base->machine, base->module);
    if (base->module)
        LLVMDisposeModule(base->module);
    base->module = NULL;
    base->asked = false;
}

static void make_context(ir_base *base) {
    base->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(base->context, note_complaint, base);
}

ev_status ir_base_read(ir_base *base, const ir_source *source, ev_error *err) {
    EV_TRY(read_module(base, source, &base->module, err));
    mark_convergent(base, base->module);
    /* Names are removed so that equal code has equal text. They are removed after reading, since
     * LLVM cannot read textual IR in a context that discards names. */
    strip_names(base->module);
    LLVMContextSetDiscardValueNames(base->context, true);
    set_target(base);
    name_module(base);
    EV_TRY(check_module(base, source->path, err));
    return open_entry(base, source, err);
}

ev_status ir_base_reread(ir_base *base, const char *bitcode, size_t bytes, ev_error *err) {
    dispose_module(base);
    LLVMContextDispose(base->context);
    make_context(base);
    LLVMContextSetDiscardValueNames(base->context, true);
    EV_TRY(parse_bitcode(base, bitcode, bytes, "kept IR", &base->module, err));
    name_module(base);
    return EV_OK;
}

ev_status ir_base_settle(ir_base *base, const ir_source *source, size_t edits, ev_error *err) {
    const ir_early_store *store = source->early;
    LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(base->module);
    ir_early early = {.bitcode = LLVMGetBufferStart(code), .bytes = LLVMGetBufferSize(code)};
    memcpy(early.block, base->block, sizeof early.block);
    ev_status status =
        store ? store->keep(store->context, source->genome, edits, &early, err) : EV_OK;
    if (status == EV_OK)
        status = ir_base_reread(base, early.bitcode, early.bytes, err);
    LLVMDisposeMemoryBuffer(code);
    return status;
}

/* Makes a base with a structural prefix, or reads one that is kept. As with early IR, what is made
 * is written and read again, so that both are the same. */
static ev_status read_optimised(ir_base *base, const ir_source *source, ev_error *err) {
    const ir_early_store *store = source->early;
    ir_early kept;
    if (store && store->find(store->context, source->genome, IR_OPTIMISED, &kept)) {
        memcpy(base->block, kept.block, sizeof base->block);
        return ir_base_reread(base, kept.bitcode, kept.bytes, err);
    }
    EV_TRY(ir_early_reach(base, source, err));
    EV_TRY(optimise(base, source, err));
    return ir_base_settle(base, source, IR_OPTIMISED, err);
}

static ev_status fill_base(ir_base *base, const ir_source *source, bool early, ev_error *err) {
    base->sm = source->sm;
    base->optimised = source->optimised;
    memcpy(base->block, source->block, sizeof base->block);
    base->entry = strdup(source->entry);
    if (!base->entry)
        return ev_fail_memory(err, strlen(source->entry) + 1);
    EV_TRY(note_constants(base, source, err));
    EV_TRY(note_aligns(base, source, err));
    EV_TRY(make_machine(base, err));
    base->options = LLVMCreatePassBuilderOptions();
    make_context(base);
    if (early)
        return ir_early_reach(base, source, err);
    if (has_prefix(source)) {
        EV_TRY(read_optimised(base, source, err));
    } else {
        EV_TRY(ir_base_read(base, source, err));
        EV_TRY(optimise(base, source, err));
    }
    return number_module(base, source, err);
}

static ev_status load(const ir_source *source, bool early, ir_base **out, ev_error *err) {
    if (ir_ptx_version(source->sm) == 0)
        return ev_fail(err, EV_BAD, "sm_%d: not one of 53, 60-62, 70, 72, 75, 80, 86, 87, 89, 90",
                       source->sm);
    ir_base *base = calloc(1, sizeof *base);
    if (!base)
        return ev_fail_memory(err, sizeof *base);
    ev_status status = fill_base(base, source, early, err);
    if (status != EV_OK) {
        ir_base_free(base);
        return status;
    }
    *out = base;
    return EV_OK;
}

ev_status ir_base_load(const ir_source *source, ir_base **out, ev_error *err) {
    return load(source, false, out, err);
}

ev_status ir_early_load(const ir_source *source, ir_base **out, ev_error *err) {
    return load(source, true, out, err);
}

void ir_base_free(ir_base *base) {
    if (!base)
        return;
    dispose_module(base);
    if (base->context)
        LLVMContextDispose(base->context);
    if (base->options)
        LLVMDisposePassBuilderOptions(base->options);
    if (base->machine)
        LLVMDisposeTargetMachine(base->machine);
    if (base->light_machine)
        LLVMDisposeTargetMachine(base->light_machine);
    free(base->insns);
    free(base->lines);
    free(base->constants);
    free(base->aligns);
    free(base->entry);
    free(base->complaint);
    free(base);
}

size_t ir_base_insn_count(const ir_base *base) {
    return base->count;
}
ev_sha256 ir_base_sha256(const ir_base *base) {
    return base->sha;
}

uint32_t ir_base_insn_line(const ir_base *base, size_t number) {
    assert(number < base->count);
    return base->lines[number];
}

char *ir_base_insn_text(const ir_base *base, size_t number) {
    assert(number < base->count);
    char *printed = LLVMPrintValueToString(base->insns[number]);
    char *text = strdup(printed + strspn(printed, " "));
    LLVMDisposeMessage(printed);
    return text;
}

uint64_t ir_base_may_alias(const ir_base *base) {
    static const char noalias[] = "noalias";
    unsigned kind = LLVMGetEnumAttributeKindForName(noalias, sizeof noalias - 1);
    LLVMValueRef entry = LLVMGetNamedFunction(base->module, base->entry);
    uint64_t may = 0;
    for (unsigned i = 0; entry && i < LLVMCountParams(entry) && i < 64; i++) {
        bool is_pointer =
            LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(entry, i))) == LLVMPointerTypeKind;
        if (is_pointer && !LLVMGetEnumAttributeAtIndex(entry, i + 1, kind))
            may |= UINT64_C(1) << i;
    }
    return may;
}
