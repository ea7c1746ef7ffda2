/* Building: turns one genome into PTX, stage by stage, and notes the cost of each stage. */
#include "base/proc.h"
#include "ir/internal.h"

#include <llvm-c/Analysis.h>

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct ir_build {
    ir_base *base;
    ir_genome *genome;
    LLVMModuleRef module;
    LLVMMemoryBufferRef ptx;
    ev_str renumbered; /* the PTX with calls numbered from 0; empty: the PTX has no calls */
    ev_str sketch;
    size_t bold; /* number of bold edits; after EDIT */
    ir_stage next;
    bool failed;
    bool checks_asserts; /* asserted facts are checks */
    ev_sha256 ir_sha;
    bool is_hashed; /* ir_sha is valid */
    ev_sha256 ptx_sha;
    ir_build_cost cost;
};

static const char *const stage_names[] = {"edit", "verify", "optimise", "emit"};
_Static_assert(sizeof stage_names / sizeof stage_names[0] == IR_STAGE_COUNT, "one name a stage");

const char *ir_stage_name(ir_stage stage) {
    return stage_names[stage];
}

ev_status ir_build_new(const ir_base *base, const ir_genome *genome, ir_build **out,
                       ev_error *err) {
    assert(ir_genome_is_optimised(genome) == base->optimised);
    ir_build *build = calloc(1, sizeof *build);
    if (!build)
        return ev_fail_memory(err, sizeof *build);
    build->base = (ir_base *)base; /* the build changes the base's context and target machine
                                      only */
    build->genome = ir_genome_clone(genome);
    if (!build->genome) {
        free(build);
        return ev_fail_memory(err, 1);
    }
    *out = build;
    return EV_OK;
}

static void dispose_module(const ir_build *build) {
    if (!build->ptx && build->next > IR_STAGE_OPTIMISE && ir_passes_ask(build->genome))
        ir_passes_forget(build->base->machine, build->module);
    LLVMDisposeModule(build->module);
}

void ir_build_free(ir_build *build) {
    if (!build)
        return;
    if (build->module)
        dispose_module(build);
    if (build->ptx)
        LLVMDisposeMemoryBuffer(build->ptx);
    ev_str_free(&build->renumbered);
    ev_str_free(&build->sketch);
    ir_genome_free(build->genome);
    free(build);
}

void ir_build_take_edited(ir_build *build, ir_edited *edited) {
    assert(build->next == IR_STAGE_EDIT && !build->module);
    assert(!edited || edited->base == build->base);
    if (edited) {
        build->bold = edited->bold;
        build->module = ir_work_take_module(edited);
    }
    ir_work_close(edited);
}

void ir_build_check_asserts(ir_build *build) {
    assert(build->next == IR_STAGE_EDIT && !build->module);
    build->checks_asserts = true;
}

static ev_status stage_edit(ir_build *build, double *llvm, ev_error *err) {
    (void)llvm;
    if (build->module)
        return EV_OK;
    ir_work *work;
    EV_TRY(ir_work_open(build->base, &work, err));
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < ir_genome_edit_count(build->genome); i++) {
        const ir_edit *edit = ir_genome_edit(build->genome, i);
        status = ir_work_replay(work, edit, err);
        if (status != EV_OK)
            status = ev_wrap(err, status, "edit %zu (%s)", i, ir_edit_name(edit->kind));
    }
    build->bold = work->bold;
    if (status == EV_OK && build->checks_asserts)
        ir_assert_checks(work, build->genome);
    if (status == EV_OK)
        build->module = ir_work_take_module(work);
    ir_work_close(work);
    return status;
}

size_t ir_build_bold(const ir_build *build) {
    assert(build->next > IR_STAGE_EDIT);
    return build->bold;
}

bool ir_build_rounds(const ir_build *build) {
    bool any = false;
    for (size_t i = 0; i < ir_genome_edit_count(build->genome); i++) {
        ir_edit_kind kind = ir_genome_edit(build->genome, i)->kind;
        any |= !ir_edit_is_structural(kind) && ir_edit_may_round(kind);
    }
    return any;
}

static ev_status stage_verify(ir_build *build, double *llvm, ev_error *err) {
    (void)llvm;
    char *message = NULL;
    ev_status status = EV_OK;
    if (LLVMVerifyModule(build->module, LLVMReturnStatusAction, &message))
        status = ev_fail(err, EV_BAD, "the edited IR does not verify: %s", message);
    LLVMDisposeMessage(message);
    return status == EV_OK ? ir_refuse_fatal(build->module, err) : status;
}

/* Mixes the code-generation level into the hash, because equal hashes must mean equal PTX: LLVM
 * generates other PTX of the same IR at another level. Otherwise results would depend on which
 * variant asked first. */
ev_sha256 ir_build_salt(const ir_build *build, ev_sha256 sha) {
    bool usual = ir_machine_of(build->base, build->genome) == build->base->machine;
    return usual ? sha : ev_sha256_of(sha.hex, strlen(sha.hex));
}

static ev_status stage_optimise(ir_build *build, double *llvm, ev_error *err) {
    ir_base *base = build->base;
    ir_base_clear_complaint(base);
    double start = ev_clock_cpu();
    ev_status status = ir_passes_first(base, build->genome, build->module, err);
    *llvm = ev_clock_cpu() - start;
    EV_TRY(status);
    if (base->complaint)
        return ev_fail(err, EV_BAD, "LLVM's passes: %s", base->complaint);
    return EV_OK;
}

/* Runs the code generator, which changes the module. */
static ev_status emit(ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                      LLVMMemoryBufferRef *out, ev_error *err) {
    ir_base_clear_complaint(base);
    EV_TRY(ir_passes_rest(base, genome, module, err));
    char *message = NULL;
    LLVMBool failed = LLVMTargetMachineEmitToMemoryBuffer(ir_machine_of(base, genome), module,
                                                          LLVMAssemblyFile, &message, out);
    if (!failed && !base->complaint)
        return EV_OK;
    const char *why = base->complaint ? base->complaint : message;
    ev_status status = ev_fail(err, EV_BAD, "LLVM's NVPTX: %s", why ? why : "no words");
    LLVMDisposeMessage(message);
    return status;
}

static void hash_ir(ir_build *build) {
    if (!build->is_hashed)
        build->ir_sha = ir_build_salt(build, ir_module_sha256(build->module));
    build->is_hashed = true;
}

/* ---- numbers of calls
 *
 * LLVM 19's NVPTX numbers call sites across all modules of the process ("// callseq 7, 0",
 * "prototype_7 :"). Without a change the PTX of a variant with calls, and so its hash, would depend
 * on what the process compiled before. Within one module the numbers are consecutive, so the least
 * one is subtracted from all of them. */

static const char *const call_marks[] = {"// callseq ", "prototype_"};

/* The next number behind a mark at or after `at`; NULL: none. */
static const char *next_call_number(const char *at) {
    const char *first = NULL;
    for (size_t i = 0; i < sizeof call_marks / sizeof call_marks[0]; i++) {
        size_t length = strlen(call_marks[i]);
        const char *found = strstr(at, call_marks[i]);
        while (found && (found[length] < '0' || found[length] > '9'))
            found = strstr(found + length, call_marks[i]);
        if (found && (!first || found + length < first))
            first = found + length;
    }
    return first;
}

/* Renumbers calls from 0. `out` stays empty if the text has no call. */
static ev_status renumber_calls(const char *text, ev_str *out, ev_error *err) {
    unsigned long least = ULONG_MAX;
    for (const char *at = next_call_number(text); at; at = next_call_number(at)) {
        unsigned long number = strtoul(at, NULL, 10);
        least = number < least ? number : least;
    }
    if (least == ULONG_MAX)
        return EV_OK;
    const char *from = text;
    for (const char *at = next_call_number(text); at; at = next_call_number(at)) {
        char *end = NULL;
        unsigned long number = strtoul(at, &end, 10);
        ev_str_append_n(out, from, (size_t)(at - from));
        ev_str_printf(out, "%lu", number - least);
        from = end;
    }
    ev_str_append(out, from);
    return ev_str_status(out, err);
}

static ev_status stage_emit(ir_build *build, double *llvm, ev_error *err) {
    hash_ir(build); /* the last chance to hash the IR */
    double start = ev_clock_cpu();
    ev_status status = emit(build->base, build->genome, build->module, &build->ptx, err);
    *llvm = ev_clock_cpu() - start;
    if (status != EV_OK)
        return status;
    EV_TRY(renumber_calls(LLVMGetBufferStart(build->ptx), &build->renumbered, err));
    size_t bytes = 0;
    const char *ptx = ir_build_ptx(build, &bytes);
    build->ptx_sha = ev_sha256_of(ptx, bytes);
    return EV_OK;
}

ev_status ir_build_sketch(ir_build *build, bool *covered, ev_error *err) {
    assert(build->next == IR_STAGE_OPTIMISE || build->next == IR_STAGE_EMIT);
    assert(!build->failed);
    ev_str_clear(&build->sketch);
    ev_status status = ir_emit_direct(build->base, build->module, &build->sketch, err);
    *covered = status == EV_OK;
    return status == EV_BAD ? EV_OK : status;
}

const char *ir_build_sketch_ptx(const ir_build *build, size_t *bytes) {
    *bytes = build->sketch.length;
    return ev_str_text(&build->sketch);
}

ev_sha256 ir_build_sketch_sha256(const ir_build *build) {
    return ir_build_salt(build, ev_sha256_of(ev_str_text(&build->sketch), build->sketch.length));
}

ev_status ir_build_run(ir_build *build, ir_stage stage, ev_error *err) {
    static ev_status (*const stages[])(ir_build *, double *, ev_error *) = {
        stage_edit, stage_verify, stage_optimise, stage_emit};
    _Static_assert(sizeof stages / sizeof stages[0] == IR_STAGE_COUNT, "one function a stage");
    assert(stage == build->next && !build->failed);
    double start = ev_clock_cpu();
    ev_status status = stages[stage](build, &build->cost.llvm[stage], err);
    build->cost.own[stage] = ev_clock_cpu() - start - build->cost.llvm[stage];
    build->next = (ir_stage)(stage + 1);
    build->failed = status != EV_OK;
    return status;
}

ev_status ir_build_run_all(ir_build *build, ev_error *err) {
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++)
        EV_TRY(ir_build_run(build, (ir_stage)stage, err));
    return EV_OK;
}

ev_sha256 ir_build_ir_sha256(ir_build *build) {
    assert(build->next > IR_STAGE_OPTIMISE);
    hash_ir(build);
    return build->ir_sha;
}

ev_sha256 ir_build_ptx_sha256(const ir_build *build) {
    assert(build->ptx);
    return build->ptx_sha;
}

const char *ir_build_ptx(const ir_build *build, size_t *bytes) {
    assert(build->ptx);
    if (build->renumbered.length > 0) {
        *bytes = build->renumbered.length;
        return ev_str_text(&build->renumbered);
    }
    /* LLVM's buffers end in NUL, which the size does not count. */
    *bytes = LLVMGetBufferSize(build->ptx);
    return LLVMGetBufferStart(build->ptx);
}

ir_build_cost ir_build_cost_of(const ir_build *build) {
    return build->cost;
}
