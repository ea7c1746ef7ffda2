/* Unroll-loop: writes out all turns of a loop and of the loops inside it, on early IR. LLVM does
 * the work: the loops are marked, and its pass unrolls what is marked. What the edit adds is the
 * place: behind it, equal loads are merged (merge.c), and other structural edits see straight-line
 * code.
 *
 * With the form "interior", the kernel is peeled first where that applies, and the loop is unrolled
 * in the copy of the interior alone. Members of `coarsen` that may have no work select their
 * coordinates, which hides that they load the same values; in the interior, they do not. With the
 * form "members", the copy is that of threads whose members all have work (peel.c): it keeps the
 * tests in loops, such as those of a border, and merges loads that stand under equal ones. */
#include "ir/structure/structure_internal.h"

#include <llvm-c/DebugInfo.h>

enum { MOST_WRITTEN = 8192 }; /* instructions of all turns */

static const char passes[] =
    "function(loop-unroll<O3;full-unroll-max=0;no-partial;no-peeling;no-runtime;no-upperbound;"
    "no-profile-peeling>)";

/* Whether loop `inner` is `outer` or inside of it. */
static bool is_within(const ir_flow *flow, uint32_t inner, uint32_t outer) {
    return flow->loops[outer].holds[flow->loops[inner].header];
}

/* Instructions that block `block` becomes when `outer` is written out. 0: a loop has no constant
 * number of turns, or there are more than the limit. */
static uint64_t written(const ir_flow *flow, uint32_t block, uint32_t outer) {
    uint64_t count = flow->first[block + 1] - flow->first[block];
    for (uint32_t l = 0; l < flow->loop_count; l++) {
        const ir_loop *loop = &flow->loops[l];
        if (!loop->holds[block] || !is_within(flow, l, outer))
            continue;
        if (loop->trips < 1 || loop->trips > MOST_WRITTEN || !loop->induction)
            return 0;
        count *= (uint64_t)loop->trips;
        if (count > MOST_WRITTEN)
            return 0;
    }
    return count;
}

static ev_status check_loop(const ir_flow *flow, uint32_t outer, ev_error *err) {
    uint64_t all = 0;
    for (uint32_t b = 0; b < flow->count; b++) {
        uint64_t more = flow->loops[outer].holds[b] ? written(flow, b, outer) : 0;
        if (flow->loops[outer].holds[b] && more == 0)
            return ev_fail(err, EV_BAD,
                           "the loop, or one inside it, does not make a constant number of turns, "
                           "or has more than %d instructions in all turns",
                           MOST_WRITTEN);
        all += more;
    }
    return all <= MOST_WRITTEN
               ? EV_OK
               : ev_fail(err, EV_BAD, "all turns have %llu instructions, more than %d",
                         (unsigned long long)all, MOST_WRITTEN);
}

/* Asks LLVM to unroll the loop fully; hints of the source give way. */
static void mark(const ir_structure *s, const ir_flow *flow, uint32_t loop) {
    static const char name[] = "llvm.loop", full[] = "llvm.loop.unroll.full";
    LLVMContextRef context = s->base->context;
    LLVMMetadataRef text = LLVMMDStringInContext2(context, full, sizeof full - 1);
    LLVMMetadataRef parts[2] = {LLVMTemporaryMDNode(context, NULL, 0),
                                LLVMMDNodeInContext2(context, &text, 1)};
    /* A loop's node refers to itself first, which makes it distinct from those of other loops. */
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, parts, 2);
    LLVMMetadataReplaceAllUsesWith(parts[0], node);
    LLVMSetMetadata(ir_flow_last(flow, flow->loops[loop].latch),
                    LLVMGetMDKindIDInContext(context, name, sizeof name - 1),
                    LLVMMetadataAsValue(context, node));
}

/* Peels the kernel, or leaves it as it is where `peel` is refused. */
static ev_status try_peel(ir_structure *s, ir_form form, ev_error *err) {
    ev_error why = {0};
    LLVMModuleRef kept = LLVMCloneModule(s->base->module);
    ev_status status = ir_structure_peel(s, form, &why);
    if (status != EV_BAD) {
        LLVMDisposeModule(kept);
        return status == EV_OK ? ir_early_normalise(s->base, s->base->module, err)
                               : ev_fail(err, status, "%s", why.text);
    }
    LLVMDisposeModule(s->base->module);
    s->base->module = kept;
    s->function = LLVMGetNamedFunction(kept, s->base->entry);
    return EV_OK;
}

ev_status ir_structure_unroll_loop(ir_structure *s, const ir_edit *edit, ev_error *err) {
    ir_flow flow;
    if (edit->form != IR_FORM_NONE && edit->form != IR_FORM_INTERIOR &&
        edit->form != IR_FORM_MEMBERS)
        return ev_fail(err, EV_BAD, "\"form\" is neither left out nor \"interior\" or \"members\"");
    if (edit->form != IR_FORM_NONE)
        EV_TRY(try_peel(s, edit->form == IR_FORM_MEMBERS ? edit->form : IR_FORM_NONE, err));
    EV_TRY(ir_flow_make(s->function, s->arena, &flow, err));
    uint32_t at =
        edit->anchor.kind == IR_ANCHOR_LOOP ? ir_loop_find(&flow, edit->anchor.path) : IR_NONE;
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    EV_TRY(check_loop(&flow, at, err));
    for (uint32_t l = 0; l < flow.loop_count; l++) {
        if (is_within(&flow, l, at))
            mark(s, &flow, l);
    }
    return ir_early_run(s->base, s->base->module, passes, err);
}
