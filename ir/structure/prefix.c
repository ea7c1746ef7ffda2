/* Prefix: brings a kernel into early form and applies a genome's structural edits to it.
 *
 * After each edit, the early IR is written as bitcode and read again in a context of its own. So
 * what follows is the same whether the bitcode was made just now or kept from an earlier genome
 * with the same beginning (ir_early_store), and a genome that adds one edit pays for that edit
 * alone.
 *
 * Early IR is what clang makes, with calls inlined, scalars in registers, equal computations merged
 * and loops in simplified, loop-closed form, still rolled and tested at the top. */
#include "base/expr.h"
#include "ir/structure/passes/passes_internal.h"
#include "ir/structure/structure_internal.h"

#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/flat_internal.h"

#include <llvm-c/Analysis.h>

#include <string.h>

#define MOST_INSNS 8000 /* of a kernel that an edit jams */

/* Sinking and hoisting common code would join the two sides of a branch behind selected addresses,
 * which hides what an address is made of. */
#define TIDY "simplifycfg<no-sink-common-insts;no-hoist-common-insts>"
static const char inlining[] = "always-inline,inline,globaldce";
static const char normal[] =
    "globaldce,function(sroa,early-cse<memssa>," TIDY ",instcombine<no-verify-fixpoint>," TIDY
    ",early-cse<memssa>,adce,loop-simplify,lcssa)";

ev_status ir_early_run(const ir_base *base, LLVMModuleRef module, const char *passes,
                       ev_error *err) {
    LLVMErrorRef failure = LLVMRunPasses(module, passes, base->machine, base->options);
    if (!failure)
        return EV_OK;
    char *text = LLVMGetErrorMessage(failure);
    ev_status status = ev_fail(err, EV_INFRA, "LLVM's %s: %s", passes, text);
    LLVMDisposeErrorMessage(text);
    return status;
}

/* Lets the inliner take every function that the source did not mark as one to keep. */
static void ask_to_inline(LLVMModuleRef module, LLVMValueRef entry) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned always = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    unsigned never = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (f != entry && !LLVMIsDeclaration(f) && !LLVMGetEnumAttributeAtIndex(f, at, never))
            LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(context, always, 0));
    }
}

/* Whether nothing leads to a block: LLVM's adce takes a branch that decides nothing, and leaves the
 * blocks of its other side. */
static bool has_lost_block(LLVMValueRef function) {
    for (LLVMBasicBlockRef b = LLVMGetNextBasicBlock(LLVMGetEntryBasicBlock(function)); b;
         b = LLVMGetNextBasicBlock(b)) {
        if (!LLVMGetFirstUse(LLVMBasicBlockAsValue(b)))
            return true;
    }
    return false;
}

/* Removes such blocks. Edits write the blocks anew that something leads to; the others would hold
 * on to the old ones. */
static ev_status remove_lost_blocks(const ir_base *base, LLVMModuleRef module, ev_error *err) {
    if (!has_lost_block(LLVMGetNamedFunction(module, base->entry)))
        return EV_OK;
    return ir_early_run(base, module, "function(" TIDY ",loop-simplify,lcssa)", err);
}

/* What a special register can be: of all launches, since edits change them. Not by LLVM's
 * nvvm-intr-range, which keeps annotations of modules beyond their end (ir_passes_forget). */
static const struct {
    const char *name;
    uint32_t least, end; /* without the end */
} registers[] = {
    {"tid.x", 0, 1024},        {"tid.y", 0, 1024},     {"tid.z", 0, 64},
    {"ntid.x", 1, 1025},       {"ntid.y", 1, 1025},    {"ntid.z", 1, 65},
    {"ctaid.x", 0, INT32_MAX}, {"ctaid.y", 0, 65535},  {"ctaid.z", 0, 65535},
    {"nctaid.x", 1, 1u << 31}, {"nctaid.y", 1, 65536}, {"nctaid.z", 1, 65536},
};

static void say_range(LLVMContextRef context, LLVMValueRef read) {
    static const char name[] = "range";
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
        if (!ir_reads_register(read, registers[i].name))
            continue;
        const uint64_t least = registers[i].least, end = registers[i].end;
        LLVMAttributeRef range = LLVMCreateConstantRangeAttribute(
            context, LLVMGetEnumAttributeKindForName(name, sizeof name - 1), 32, &least, &end);
        LLVMAddCallSiteAttribute(read, LLVMAttributeReturnIndex, range);
    }
}

/* Tells LLVM the ranges of the numbers of threads and blocks, so that sums of them that cannot wrap
 * are known as such, and members' addresses are seen to be equal. */
static void say_ranges(const ir_base *base, LLVMModuleRef module) {
    LLVMValueRef function = LLVMGetNamedFunction(module, base->entry);
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            if (LLVMIsACallInst(i))
                say_range(LLVMGetModuleContext(module), i);
        }
    }
}

ev_status ir_early_normalise(const ir_base *base, LLVMModuleRef module, ev_error *err) {
    say_ranges(base, module);
    EV_TRY(ir_early_run(base, module, normal, err));
    EV_TRY(remove_lost_blocks(base, module, err));
    return ir_structure_hoist_bounds(LLVMGetNamedFunction(module, base->entry), err);
}

/* Behind an edit: merges loads that have become equal, and normalises the rest. */
static ev_status renormalise(const ir_structure *s, ev_error *err) {
    static const char again[] =
        "function(sroa,instcombine<no-verify-fixpoint>,early-cse<memssa>,adce,lcssa)";
    bool changed = false;
    EV_TRY(ir_early_normalise(s->base, s->base->module, err));
    EV_TRY(ir_merge_loads(s->function, s->arena, &changed, err));
    if (changed)
        EV_TRY(ir_early_run(s->base, s->base->module, again, err));
    return remove_lost_blocks(s->base, s->base->module, err);
}

/* Whether an instruction multiplies by the number of the block, or is a cast of a factor of such a
 * product. */
static bool numbers_blocks(LLVMValueRef insn) {
    bool found = false;
    if (LLVMGetInstructionOpcode(insn) == LLVMMul) {
        for (uint32_t axis = 0; axis < IR_AXES; axis++)
            found |= ir_flat_reads(LLVMGetOperand(insn, 0), "ctaid", axis) ||
                     ir_flat_reads(LLVMGetOperand(insn, 1), "ctaid", axis);
        return found;
    }
    bool is_cast = LLVMIsASExtInst(insn) || LLVMIsAZExtInst(insn);
    for (LLVMUseRef use = is_cast ? LLVMGetFirstUse(insn) : NULL; use; use = LLVMGetNextUse(use))
        found |= LLVMIsABinaryOperator(LLVMGetUser(use)) && numbers_blocks(LLVMGetUser(use));
    return found;
}

/* Writes the size of the block in place of an operand that reads it. */
static bool write_size(const ir_base *base, LLVMValueRef insn, unsigned operand) {
    LLVMValueRef read = LLVMGetOperand(insn, operand);
    for (uint32_t axis = 0; axis < IR_AXES; axis++) {
        if (base->block[axis] == 0 || !LLVMIsACallInst(read) || !ir_flat_reads(read, "ntid", axis))
            continue;
        LLVMSetOperand(insn, operand, LLVMConstInt(LLVMTypeOf(read), base->block[axis], false));
        return true;
    }
    return false;
}

/* Where the size of the block is known, loops that step by it count. It stays in products with the
 * number of the block, by which edits know the thread's number in the grid. Whether it wrote
 * anything. */
static bool write_sizes(const ir_base *base) {
    LLVMValueRef function = LLVMGetNamedFunction(base->module, base->entry);
    bool changed = false;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            for (int o = LLVMGetNumOperands(i); !numbers_blocks(i) && o-- > 0;)
                changed |= write_size(base, i, (unsigned)o);
        }
    }
    return changed;
}

static void say_invariant(LLVMContextRef context, LLVMValueRef address) {
    static const char name[] = "invariant.load";
    unsigned kind = LLVMGetMDKindIDInContext(context, name, sizeof name - 1);
    LLVMValueRef empty = LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0));
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        if (LLVMIsALoadInst(LLVMGetUser(use)))
            LLVMSetMetadata(LLVMGetUser(use), kind, empty);
        else if (ir_is_step(LLVMGetUser(use)))
            say_invariant(context, LLVMGetUser(use));
    }
}

/* A struct that is passed by value, and that the kernel only reads, has the same fields in all
 * turns of a loop that stores elsewhere: LLVM does not know that nobody else writes there. */
static void say_structs(const ir_base *base) {
    LLVMValueRef function = LLVMGetNamedFunction(base->module, base->entry);
    for (unsigned i = 0; i < LLVMCountParams(function); i++) {
        LLVMValueRef param = LLVMGetParam(function, i);
        if (ir_param_has(param, "byval") && ir_is_only_read(param))
            say_invariant(LLVMGetModuleContext(base->module), param);
    }
}

static ev_status make_early(const ir_base *base, ev_error *err) {
    ask_to_inline(base->module, LLVMGetNamedFunction(base->module, base->entry));
    EV_TRY(ir_early_run(base, base->module, inlining, err));
    say_structs(base);
    EV_TRY(ir_early_normalise(base, base->module, err));
    return write_sizes(base) ? ir_early_normalise(base, base->module, err) : EV_OK;
}

static ev_status dispatch(ir_structure *s, const ir_edit *edit, ev_error *err) {
    switch (edit->kind) {
    case IR_EDIT_COARSEN:
    case IR_EDIT_COARSEN_THREADS:
        return ir_structure_coarsen(s, edit, err);
    case IR_EDIT_SPLIT_LANES:
        return ir_structure_split(s, edit, err);
    case IR_EDIT_SPLIT_THREADS:
        return ir_structure_team(s, edit, err);
    case IR_EDIT_UNROLL_TURNS:
        return ir_structure_unroll_turns(s, edit, err);
    case IR_EDIT_JAM_TURNS:
        return ir_structure_jam_turns(s, edit, err);
    case IR_EDIT_PIPELINE_LOADS:
        return ir_structure_pipeline(s, edit, err);
    case IR_EDIT_RELABEL_THREADS:
    case IR_EDIT_RELABEL_BLOCKS:
        return ir_structure_relabel(s, edit, err);
    case IR_EDIT_SINK_LOOP:
        return ir_structure_sink(s, edit, err);
    case IR_EDIT_RAISE_LOOP:
        return ir_structure_raise(s, edit, err);
    case IR_EDIT_STAGE:
        return ir_structure_stage(s, edit, err);
    case IR_EDIT_SPECIALISE:
        return ir_structure_specialise(s, edit, err);
    case IR_EDIT_DELINEARIZE:
        return ir_structure_delinearize(s, edit, err);
    case IR_EDIT_RESIZE_BLOCK:
        return ir_structure_resize(s, edit, err);
    case IR_EDIT_JOIN_ATOMICS:
        return ir_structure_join_atomics(s, edit, err);
    case IR_EDIT_STAGE_ATOMICS:
        return ir_structure_stage_atomics(s, edit, err);
    case IR_EDIT_PEEL:
        return ir_structure_peel(s, edit->form, err);
    case IR_EDIT_UNROLL_LOOP:
        return ir_structure_unroll_loop(s, edit, err);
    case IR_EDIT_GROUP_LOADS:
        return ir_structure_group(s, edit, err);
    case IR_EDIT_PAD:
    case IR_EDIT_SWIZZLE:
        return ir_structure_pitch(s, edit, err);
    default:
        return ev_fail(err, EV_BAD, "%s is no structural edit", ir_edit_name(edit->kind));
    }
}

static ev_status check(const ir_structure *s, ev_error *err) {
    char *message = NULL;
    ev_status status = EV_OK;
    if (LLVMVerifyModule(s->base->module, LLVMReturnStatusAction, &message))
        status = ev_fail(err, EV_BAD, "the IR does not verify: %s", message);
    LLVMDisposeMessage(message);
    return status;
}

/* How often an edit writes the kernel's body, or the loop that it names, at most. */
static uint64_t times_of(const ir_edit *edit) {
    switch (edit->kind) {
    case IR_EDIT_COARSEN:
    case IR_EDIT_COARSEN_THREADS:
    case IR_EDIT_UNROLL_TURNS:
    case IR_EDIT_JAM_TURNS:
        return edit->option > 1 && edit->option < MOST_INSNS ? (uint64_t)edit->option : 1;
    case IR_EDIT_SPECIALISE:
    case IR_EDIT_PEEL:
        return 2;
    case IR_EDIT_UNROLL_LOOP: /* which counts its turns itself */
        return edit->form == IR_FORM_NONE ? 1 : 2;
    default:
        return 1;
    }
}

uint64_t ir_structure_grown(const ir_edit *edit, uint64_t insns, uint64_t in_loop) {
    bool is_of_turns = edit->kind == IR_EDIT_UNROLL_TURNS || edit->kind == IR_EDIT_JAM_TURNS;
    bool is_of_loop = is_of_turns && in_loop > 0;
    return is_of_loop ? insns + times_of(edit) * in_loop : insns * times_of(edit);
}

uint64_t ir_structure_loop_insns(const ir_flow *flow, const ir_loop *loop) {
    uint64_t count = 0;
    for (uint32_t b = 0; b < flow->count; b++)
        count += loop->holds[b] ? flow->first[b + 1] - flow->first[b] : 0;
    return count;
}

/* Refuses an edit that would write the body so often that LLVM takes seconds for the result. */
static ev_status check_size(const ir_structure *s, const ir_edit *edit, ev_error *err) {
    ir_flow flow;
    EV_TRY(ir_flow_make(s->function, s->arena, &flow, err));
    uint32_t loop =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&flow, edit->anchor.path) : IR_NONE;
    uint64_t in_loop = loop != IR_NONE ? ir_structure_loop_insns(&flow, &flow.loops[loop]) : 0;
    uint64_t grown = ir_structure_grown(edit, flow.insn_count, in_loop);
    if (grown > MOST_INSNS && grown > flow.insn_count)
        return ev_fail(err, EV_BAD,
                       "the kernel has %u instructions, and would have up to %llu, more than %d",
                       flow.insn_count, (unsigned long long)grown, MOST_INSNS);
    return EV_OK;
}

uint64_t ir_shared_bytes(LLVMModuleRef module, LLVMValueRef without) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module);
    uint64_t bytes = 0;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (g != without && LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == IR_SHARED_SPACE &&
            LLVMGetFirstUse(g))
            bytes += LLVMABISizeOfType(layout, LLVMGlobalGetValueType(g));
    }
    return bytes;
}

/* The first launch of the kernel whose dynamic shared memory depends on more than numbers and
 * macros; NULL: there is none. */
static const launch_rule *find_dynamic(const ir_structure *s, const expr_names *macros) {
    const launch_plan *plan = s->plan;
    bool ignored = false;
    ev_error why;
    for (size_t i = 0; plan && i < plan->launch_count; i++) {
        const launch_rule *rule = &plan->launches[i];
        if (strcmp(rule->entry, plan->launches[plan->main].entry) == 0 &&
            expr_check(rule->shared, macros, &ignored, &why) != EV_OK)
            return rule;
    }
    return NULL;
}

/* EV_BAD: a launch may leave no room for more shared memory. */
static ev_status check_dynamic(const ir_structure *s, ev_error *err) {
    const ir_source *source = s->source;
    const char **names = EV_NEW_ARRAY(s->arena, const char *, source->name_count + 1);
    if (!names)
        return ev_fail_memory(err, source->name_count);
    for (size_t i = 0; i < source->name_count; i++)
        names[i] = source->names[i].name;
    const launch_rule *rule = find_dynamic(s, &(const expr_names){names, source->name_count});
    return rule ? ev_fail(err, EV_BAD,
                          "the arrays would take more shared memory, and a launch takes %s bytes "
                          "of dynamic shared memory already",
                          rule->shared)
                : EV_OK;
}

/* Blocks that wait for others must all be on the GPU at once, so none may take more of a
 * multiprocessor. */
static ev_status check_resident(const ir_structure *s, ev_error *err) {
    ir_flow flow;
    EV_TRY(ir_flow_make(s->function, s->arena, &flow, err));
    return ir_check_waits(&flow, err);
}

/* Refuses copies of shared arrays and tiles that the assembler or a launch would not take together.
 * `before`: the bytes of the arrays before the edit. */
static ev_status check_shared(const ir_structure *s, uint64_t before, ev_error *err) {
    uint64_t bytes = ir_shared_bytes(s->base->module, NULL);
    if (bytes > before) {
        EV_TRY(check_dynamic(s, err));
        EV_TRY(check_resident(s, err));
    }
    if (bytes > IR_MOST_SHARED)
        return ev_fail(err, EV_BAD,
                       "the arrays would take %llu bytes of static shared memory, more than %d",
                       (unsigned long long)bytes, IR_MOST_SHARED);
    return EV_OK;
}

/* Raises the kernel's own bound of threads (__launch_bounds__) to the block's, and lowers the least
 * number of blocks by as much. */
static void raise_bound(const ir_structure *s) {
    static const char *const names[IR_AXES] = {"maxntidx", "maxntidy", "maxntidz"};
    LLVMModuleRef module = s->base->module;
    const char *entry = s->base->entry;
    uint64_t bound = ir_annotation(module, entry, names[0]);
    uint64_t threads = (uint64_t)s->base->block[0] * s->base->block[1] * s->base->block[2];
    for (size_t axis = 1; axis < IR_AXES; axis++) {
        uint32_t more = ir_annotation(module, entry, names[axis]);
        bound *= more > 0 ? more : 1;
    }
    if (bound == 0 || threads <= bound)
        return;
    uint64_t blocks = ir_annotation(module, entry, "minctasm") * bound / threads;
    for (size_t axis = 0; axis < IR_AXES; axis++)
        ir_annotate(module, entry, names[axis], axis == 0 ? (uint32_t)threads : 1);
    if (ir_annotation(module, entry, "minctasm") > 0)
        ir_annotate(module, entry, "minctasm", blocks > 0 ? (uint32_t)blocks : 1);
}

ev_status ir_structure_apply(ir_structure *s, const ir_edit *edit, ev_error *err) {
    uint64_t before = ir_shared_bytes(s->base->module, NULL);
    EV_TRY(check_size(s, edit, err));
    EV_TRY(dispatch(s, edit, err));
    EV_TRY(check(s, err));
    raise_bound(s);
    return check_shared(s, before, err);
}

/* ---- step by step ---- */

static size_t prefix_of(const ir_source *source) {
    return source->genome ? ir_genome_prefix_count(source->genome) : 0;
}

static ev_status begin(ir_base *base, const ir_source *source, ev_error *err) {
    EV_TRY(ir_base_read(base, source, err));
    EV_TRY(make_early(base, err));
    return ir_base_settle(base, source, 0, err);
}

/* Begins with the longest part of the prefix whose early IR is kept. *edits: how many edits it has.
 */
static ev_status begin_kept(ir_base *base, const ir_source *source, size_t *edits, ev_error *err) {
    const ir_early_store *store = source->early;
    ir_early early;
    for (size_t count = store ? prefix_of(source) + 1 : 0; count-- > 0;) {
        if (!store->find(store->context, source->genome, count, &early))
            continue;
        *edits = count;
        memcpy(base->block, early.block, sizeof base->block);
        return ir_base_reread(base, early.bitcode, early.bytes, err);
    }
    *edits = 0;
    return begin(base, source, err);
}

/* Applies the edit at place `at` of the prefix; the base's module and `plan` are those before it.
 */
static ev_status apply(ir_base *base, const ir_source *source, size_t at, const launch_plan *plan,
                       ev_arena *arena, ev_error *err) {
    const ir_edit *edit = ir_genome_edit(source->genome, at);
    ir_structure s = {.base = base,
                      .function = LLVMGetNamedFunction(base->module, base->entry),
                      .arena = arena,
                      .source = source,
                      .plan = plan};
    ev_status status = ir_structure_apply(&s, edit, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "edit %zu (%s)", at, ir_edit_name(edit->kind));
    EV_TRY(renormalise(&s, err));
    return ir_base_settle(base, source, at + 1, err);
}

static ev_status step_plan(const ir_source *source, size_t at, ev_arena *arena,
                           const launch_plan **plan, ev_error *err) {
    const ir_edit *edit = ir_genome_edit(source->genome, at);
    if (!*plan)
        return EV_OK;
    ev_status status = ir_genome_plan_step(edit, *plan, arena, plan, err);
    return status == EV_OK ? status
                           : ev_wrap(err, status, "edit %zu (%s)", at, ir_edit_name(edit->kind));
}

ev_status ir_early_reach(ir_base *base, const ir_source *source, ev_error *err) {
    size_t kept = 0;
    const launch_plan *plan = source->plan;
    EV_TRY(begin_kept(base, source, &kept, err));
    ev_arena *arena = ev_arena_new();
    if (!arena)
        return ev_fail_memory(err, 1);
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < prefix_of(source); i++) {
        if (source->reached)
            *source->reached = i;
        if (i >= kept)
            status = apply(base, source, i, plan, arena, err);
        if (status == EV_OK)
            status = step_plan(source, i, arena, &plan, err);
    }
    if (source->reached && status == EV_OK)
        *source->reached = prefix_of(source);
    ev_arena_free(arena);
    return status;
}
