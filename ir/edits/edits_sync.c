/* Edits of synchronisation: barriers, fences and votes dropped or weakened.
 *
 * A weaker barrier or a narrower scope is correct only if the threads involved need no more order
 * (PTX ISA, "Memory Consistency Model"). The edits assert that, and the race detector and the
 * schedules of gate 6 refute a wrong assertion. */
#include "ir/internal.h"

#include <string.h>

typedef bool predicate(LLVMValueRef insn);

static void sites_where(const ir_work *w, ir_sites *sites, predicate *fits) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (fits(w->nodes[w->sequence[place]].value))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static bool in_list(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0)
            return true;
    }
    return false;
}

#define IN_LIST(name, list) in_list((name), (list), sizeof(list) / sizeof(list)[0])

static bool is_block_barrier(LLVMValueRef insn) {
    static const char *const names[] = {"llvm.nvvm.barrier0", "llvm.nvvm.bar.sync",
                                        "llvm.nvvm.barrier.sync", "llvm.nvvm.barrier.n"};
    return IN_LIST(ir_call_name(insn), names);
}

static bool is_barrier(LLVMValueRef insn) {
    static const char *const names[] = {"llvm.nvvm.bar.warp.sync", "llvm.nvvm.barrier",
                                        "llvm.nvvm.barrier.sync.cnt"};
    return is_block_barrier(insn) || IN_LIST(ir_call_name(insn), names);
}

/* The scopes, from the widest to the narrowest. */
static const char *const fences[] = {"llvm.nvvm.membar.sys", "llvm.nvvm.membar.gl",
                                     "llvm.nvvm.membar.cta"};
enum { FENCES = sizeof fences / sizeof fences[0] };

static bool is_fence(LLVMValueRef insn) {
    return LLVMIsAFenceInst(insn) || IN_LIST(ir_call_name(insn), fences);
}

static bool is_wide_fence(LLVMValueRef insn) {
    return is_fence(insn) && !LLVMIsAFenceInst(insn) &&
           strcmp(ir_call_name(insn), fences[FENCES - 1]) != 0;
}

static bool is_mask(LLVMValueRef insn) {
    static const char *const names[] = {"llvm.nvvm.activemask", "llvm.nvvm.vote.ballot",
                                        "llvm.nvvm.vote.ballot.sync"};
    return IN_LIST(ir_call_name(insn), names);
}

static bool is_vote(LLVMValueRef insn) {
    static const char *const names[] = {"llvm.nvvm.vote.all",      "llvm.nvvm.vote.any",
                                        "llvm.nvvm.vote.uni",      "llvm.nvvm.vote.all.sync",
                                        "llvm.nvvm.vote.any.sync", "llvm.nvvm.vote.uni.sync"};
    return is_mask(insn) || IN_LIST(ir_call_name(insn), names);
}

static bool draw_at(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static ev_status need(const ir_work *w, const ir_edit *edit, predicate *fits, const char *what,
                      uint32_t *out, ev_error *err) {
    EV_TRY(ir_work_need(w, &edit->at, "at", out, err));
    if (!fits(w->nodes[*out].value))
        return ev_fail(err, EV_BAD, "\"at\" is no %s", what);
    return EV_OK;
}

/* Describes an edit: "drops the barrier at line 31". */
static void describe(const ir_work *w, const ir_edit *edit, const char *what, ev_str *out) {
    uint32_t id = ir_work_find(w, &edit->at);
    uint32_t line = id == IR_NONE ? 0 : ir_work_line(w, id);
    char text[IR_NAME_TEXT];
    ir_name_print(&edit->at, text);
    ev_str_printf(out, "%s %s", what, text);
    if (line)
        ev_str_printf(out, " at line %u", line);
}

/* ---- barriers ---------------------------------------------------------------------------------
 */

static void barrier_sites(const ir_work *w, ir_sites *sites) {
    sites_where(w, sites, is_barrier);
}

static ev_status apply_drop_barrier(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need(w, edit, is_barrier, "barrier", &at, err));
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_drop_barrier(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe(w, edit, "drops the barrier", out);
}

const ir_rule ir_rule_DROP_BARRIER = {barrier_sites, draw_at, apply_drop_barrier,
                                      describe_drop_barrier};

static void block_barrier_sites(const ir_work *w, ir_sites *sites) {
    sites_where(w, sites, is_block_barrier);
}

static ev_status apply_weaken_barrier(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need(w, edit, is_block_barrier, "barrier of the block", &at, err));
    LLVMValueRef all = LLVMConstAllOnes(LLVMInt32TypeInContext(w->context));
    LLVMPositionBuilderBefore(w->builder, w->nodes[at].value);
    ir_work_added(w, ir_intrinsic_call(w, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1));
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_weaken_barrier(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe(w, edit, "narrows to the warp the barrier", out);
}

const ir_rule ir_rule_WEAKEN_BARRIER = {block_barrier_sites, draw_at, apply_weaken_barrier,
                                        describe_weaken_barrier};

/* ---- fences -----------------------------------------------------------------------------------
 */

static void fence_sites(const ir_work *w, ir_sites *sites) {
    sites_where(w, sites, is_fence);
}

static ev_status apply_drop_fence(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need(w, edit, is_fence, "fence", &at, err));
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_drop_fence(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe(w, edit, "drops the memory fence", out);
}

const ir_rule ir_rule_DROP_FENCE = {fence_sites, draw_at, apply_drop_fence, describe_drop_fence};

static void wide_fence_sites(const ir_work *w, ir_sites *sites) {
    sites_where(w, sites, is_wide_fence);
}

static ev_status apply_weaken_fence(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need(w, edit, is_wide_fence, "fence of the GPU or the system", &at, err));
    LLVMValueRef insn = w->nodes[at].value;
    bool system = strcmp(ir_call_name(insn), fences[0]) == 0;
    LLVMPositionBuilderBefore(w->builder, insn);
    ir_work_added(w, ir_intrinsic_call(w, fences[system ? 1 : 2], NULL, 0, NULL, 0));
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_weaken_fence(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe(w, edit, "narrows the scope of the memory fence", out);
}

const ir_rule ir_rule_WEAKEN_FENCE = {wide_fence_sites, draw_at, apply_weaken_fence,
                                      describe_weaken_fence};

/* ---- votes ------------------------------------------------------------------------------------
 */

static void vote_sites(const ir_work *w, ir_sites *sites) {
    sites_where(w, sites, is_vote);
}

static ev_status apply_drop_vote(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(need(w, edit, is_vote, "vote", &at, err));
    LLVMValueRef insn = w->nodes[at].value;
    /* The predicate is the last argument: .sync forms have the mask before it. */
    LLVMValueRef value = is_mask(insn) ? LLVMConstAllOnes(LLVMTypeOf(insn))
                                       : LLVMGetOperand(insn, LLVMGetNumArgOperands(insn) - 1);
    ir_work_replace_uses(w, insn, value);
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_drop_vote(const ir_work *w, const ir_edit *edit, ev_str *out) {
    describe(w, edit, "drops the vote", out);
}

const ir_rule ir_rule_DROP_VOTE = {vote_sites, draw_at, apply_drop_vote, describe_drop_vote};
