/* Split threads: the work of one thread is done by a team of L threads.
 *
 * Each loop that counts and makes sums, or writes in each turn elsewhere, has its turns spread over
 * the team: thread l of the team runs the turns l, l + L, l + 2 L, and what the loop sums up is
 * combined behind it, for all threads of the team and with the same bits from run to run. Where
 * turns use what was summed up before them, the threads of a team make a round of turns together
 * (running.c). All else is done by each thread of the team, and the first one has the effects. A
 * block takes fewer of the kernel's threads than before, so the grid grows, and long rows get a
 * block each.
 *
 *   neighbours  the threads of a team stand side by side along x: what neighbouring turns read is
 *               adjacent. Lanes of a warp exchange by shuffles, warps by shared memory.
 *   strided     the threads of a team stand a row of kernel threads apart, so neighbours along x
 *               stay neighbours: what neighbouring threads read is adjacent. They exchange by
 *               shared memory.
 *   nested      the threads of a team stand side by side along x, in rows of a warp at most. Rows
 *               share the turns of a loop, and the threads of a row those of the loop inside.
 *
 * Exchange by shared memory needs barriers, so early returns become predicates first
 * (predicate.c), unless a block is one team. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/apart_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"
#include "ir/structure/sums_internal.h"

#include <assert.h>
#include <string.h>

enum { MOST_THREADS = 1024, MOST_LOOPS = 8, AXES = 3 };

typedef struct teaming {
    ir_structure *s;
    ir_flow flow;
    uint32_t size;  /* threads of a team */
    uint32_t block; /* threads along x that the kernel was written for */
    uint32_t own;   /* of these, the ones whose work a block does */
    uint32_t rows;  /* threads of the block along y and z */
    bool is_strided;
    bool is_nested;
    uint32_t within; /* loops that hold this one are not spread; IR_NONE: no anchor was given */
    ir_sums loops[MOST_LOOPS];
    ir_nest nests[MOST_LOOPS]; /* without rows: the loop is spread alone */
    ir_gather gathers[MOST_LOOPS];
    uint32_t loop_count;
    bool *is_shared_out; /* by block of code: in a loop whose turns are spread */
    ir_share share;
    LLVMValueRef member; /* which of the block's kernel threads it is, in all dimensions */
} teaming;

/* Whether the threads of a team exchange by shared memory. */
static bool by_memory(const teaming *t) {
    return t->is_strided || t->size > IR_WARP;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_option(teaming *t, const ir_edit *edit, ev_error *err) {
    const uint32_t *block = t->s->base->block;
    int64_t size = edit->has_option ? edit->option : 0;
    if (size < 2 || size > MOST_THREADS || (size & (size - 1)) != 0)
        return ev_fail(err, EV_BAD, "\"option\" is no power of two from 2 to %d", MOST_THREADS);
    t->is_strided = edit->form == IR_FORM_STRIDED;
    t->is_nested = edit->form == IR_FORM_NESTED;
    if (edit->form != IR_FORM_NEIGHBOURS && !t->is_strided && !t->is_nested)
        return ev_fail(err, EV_BAD, "\"form\" is not \"neighbours\", \"strided\" or \"nested\"");
    if (t->is_nested && size < 4)
        return ev_fail(err, EV_BAD, "a nest needs a team of 4 threads at least");
    t->within = IR_NONE;
    if (edit->anchor.kind == IR_ANCHOR_LOOP) {
        t->within = ir_loop_find(&t->flow, edit->anchor.path);
        if (t->within == IR_NONE)
            return ev_fail(err, EV_BAD, "\"anchor\" is no loop of the kernel, like \"loop 0\"");
    }
    t->size = (uint32_t)size;
    t->block = block[0];
    t->rows = block[1] * block[2];
    uint32_t warp = t->block < IR_WARP ? t->block : IR_WARP;
    uint32_t least = t->is_strided ? warp : 1;
    uint32_t own = t->block / t->size;
    bool alone = !t->is_strided && t->size > IR_WARP; /* no two teams wait at one barrier */
    t->own = own > least && !alone ? own : least;
    if (t->block == 0 || t->rows == 0 || t->block % t->own != 0 ||
        (uint64_t)t->own * t->size * t->rows > MOST_THREADS)
        return ev_fail(err, EV_BAD,
                       "a block of %u x %u threads is not known, too large or no multiple of what "
                       "teams of %u leave",
                       t->block, t->rows, t->size);
    return EV_OK;
}

/* The threads of a block may have nothing in common, since they come into other blocks. */
static ev_status check_deeds(const teaming *t, ev_error *err) {
    EV_TRY(ir_check_overlap(&t->flow, err));
    EV_TRY(ir_check_near(&t->flow, err));
    for (uint32_t i = 0; i < t->flow.insn_count; i++) {
        LLVMValueRef insn = t->flow.insns[i], pointer = ir_pointer_of(insn), base = NULL;
        ir_deed deed = ir_deed_of(insn);
        if (deed == IR_DEED_UNKNOWN || deed == IR_DEED_WARP || ir_reads_warp_place(insn))
            return ev_fail(err, EV_BAD, "the kernel calls %s", ir_called(insn));
        if (deed == IR_DEED_BARRIER)
            return ev_fail(err, EV_BAD, "the threads of a block work together");
        if (deed == IR_DEED_COUNTED && LLVMGetFirstUse(insn))
            return ev_fail(err, EV_BAD, "the value of an atomic is used");
        if (pointer)
            (void)ir_affine_of_address(t->s->base->module, pointer, &base);
        if (base && LLVMIsAAllocaInst(base))
            return ev_fail(err, EV_BAD, "the kernel has a local array");
        if (base && LLVMGetPointerAddressSpace(LLVMTypeOf(base)) == IR_SHARED_SPACE)
            return ev_fail(err, EV_BAD, "the threads of a block work together");
    }
    return EV_OK;
}

/* ---- which loops are spread -------------------------------------------------------------------
 */

static bool is_in_spread(const teaming *t, uint32_t loop) {
    for (uint32_t up = t->flow.loops[loop].parent; up != IR_NONE; up = t->flow.loops[up].parent) {
        for (uint32_t k = 0; k < t->loop_count; k++) {
            if (t->loops[k].loop == &t->flow.loops[up])
                return true;
        }
    }
    return false;
}

/* Whether the loop holds the one of the anchor. */
static bool is_around(const teaming *t, uint32_t loop) {
    return t->within != IR_NONE && t->within != loop &&
           t->flow.loops[loop].holds[t->flow.loops[t->within].header];
}

/* Takes a loop with the one inside, if the edit is of such nests. `why`: what stands against it. */
static bool takes_nest(teaming *t, const ir_loop *loop, ev_error *why) {
    ir_nest *nest = &t->nests[t->loop_count];
    ir_sums *sums = &t->loops[t->loop_count];
    if (!t->is_nested || ir_nest_find(&t->flow, loop, t->size, sums, nest, why) != EV_OK) {
        nest->rows = 0;
        return false;
    }
    t->loop_count++;
    return true;
}

/* Lists the outermost loops whose turns can be spread. `why` tells of the last that cannot. */
static ev_status list_loops(teaming *t, ev_error *err) {
    ev_error why = {0};
    for (uint32_t l = 0; l < t->flow.loop_count && t->loop_count < MOST_LOOPS; l++) {
        ir_sums *sums = &t->loops[t->loop_count];
        const ir_loop *loop = &t->flow.loops[l];
        if (is_in_spread(t, l) || is_around(t, l) || takes_nest(t, loop, &why) ||
            ir_sums_find(&t->flow, loop, t->size, sums, &why) != EV_OK)
            continue;
        if (!ir_turns_are_apart(t->s->base->module, &t->flow, loop))
            (void)ev_fail(&why, EV_BAD,
                          "the loop's turns write to one place, to places that are not known to "
                          "differ, or wait");
        else if (sums->runs && by_memory(t))
            (void)ev_fail(&why, EV_BAD,
                          "a turn of the loop uses a sum that the loop makes, and the threads of "
                          "the team are not lanes side by side");
        else if (sums->runs && ir_running_check(&t->share, sums, &why) != EV_OK)
            continue;
        else if (sums->any || ir_share_writes(&t->flow, loop)) /* else it is not worth it */
            t->loop_count++;
    }
    bool nests = false;
    for (uint32_t k = 0; k < t->loop_count; k++)
        nests |= t->nests[k].rows > 0;
    if (t->loop_count == 0 || nests != t->is_nested)
        return ev_fail(err, EV_BAD, "no loop's turns can be spread: %s",
                       why.text[0] ? why.text : "no loop makes a sum or writes");
    t->is_shared_out = EV_NEW_ARRAY(t->s->arena, bool, t->flow.count + 1);
    if (!t->is_shared_out)
        return ev_fail_memory(err, t->flow.count);
    for (uint32_t k = 0; k < t->loop_count; k++) {
        for (uint32_t b = 0; b < t->flow.count; b++)
            t->is_shared_out[b] |= t->loops[k].loop->holds[b];
    }
    return EV_OK;
}

/* All threads of a block must reach the barriers behind the loops together. */
static ev_status check_barriers(const teaming *t, ev_error *err) {
    bool *is_seed = EV_NEW_ARRAY(t->s->arena, bool, t->flow.insn_count + 1);
    ir_vary vary;
    if (!is_seed)
        return ev_fail_memory(err, t->flow.insn_count);
    for (uint32_t i = 0; i < t->flow.insn_count; i++)
        is_seed[i] = ir_differs_in_block(t->flow.insns[i]);
    EV_TRY(ir_vary_make(&t->flow, is_seed, true, &vary, err));
    for (uint32_t k = 0; k < t->loop_count; k++) {
        const ir_loop *loop = t->loops[k].loop;
        if (t->loops[k].any && vary.region_of[loop->exit] != IR_NONE)
            return ev_fail(err, EV_BAD,
                           "the threads of a block do not all reach the end of a loop, where "
                           "they would wait for each other");
    }
    return EV_OK;
}

/* Whether each way between two instructions passes the end of a loop. */
static bool is_between(const teaming *t, const ir_loop *loop, uint32_t from, uint32_t to) {
    const ir_flow *flow = &t->flow;
    uint32_t a = flow->home[from], b = flow->home[to];
    return (loop->holds[a] && !loop->holds[b]) ||
           (ir_dominance_over(&flow->over, a, loop->header) &&
            ir_dominance_over(&flow->over, loop->exit, b));
}

/* Whether all threads of a team wait for each other between two instructions: at the end of a loop,
 * where they exchange what they summed up. Lanes of a warp exchange without a barrier. */
static bool is_met_between(const teaming *t, uint32_t from, uint32_t to) {
    bool meets = false;
    for (uint32_t k = 0; k < t->loop_count && by_memory(t); k++)
        meets |= t->loops[k].any && is_between(t, t->loops[k].loop, from, to);
    return meets;
}

/* The loop, of those whose turns are spread, that holds an instruction; NULL: none. */
static const ir_sums *spread_around(const teaming *t, uint32_t insn) {
    for (uint32_t k = 0; k < t->loop_count; k++) {
        if (t->loops[k].loop->holds[t->flow.home[insn]])
            return &t->loops[k];
    }
    return NULL;
}

/* The block that runs wherever the instruction does: the header of the loops around whose turns all
 * run it. */
static uint32_t runs_with(const teaming *t, uint32_t insn) {
    uint32_t block = t->flow.home[insn], l = ir_loop_of(&t->flow, block);
    while (l != IR_NONE && t->flow.loops[l].latch != IR_NONE &&
           ir_dominance_over(&t->flow.over, block, t->flow.loops[l].latch)) {
        block = t->flow.loops[l].header;
        l = t->flow.loops[l].parent;
    }
    return block;
}

/* Whether a thread of the team may read what the first one writes outside of the loops, at a time
 * that nothing orders: before the write, or behind one that stands under a condition which no case
 * needs to meet. */
static bool may_read(const teaming *t, uint32_t load, uint32_t store) {
    const ir_flow *flow = &t->flow;
    if (ir_deed_of(flow->insns[load]) != IR_DEED_LOAD ||
        ir_affine_apart(t->s->base->module, flow->insns[load], flow->insns[store]))
        return false;
    return !is_met_between(t, load, store) ||
           (ir_flow_leads(flow, store, load) && !is_met_between(t, store, load) &&
            !ir_is_led_by_told(flow, 0, runs_with(t, store)));
}

/* The first thread of a team writes what all have read, as soon as it has come so far. */
static ev_status check_reads(const teaming *t, ev_error *err) {
    for (uint32_t s = 0; s < t->flow.insn_count; s++) {
        if (!ir_share_is_effect(t->flow.insns[s]) || t->is_shared_out[t->flow.home[s]])
            continue;
        for (uint32_t l = 0; l < t->flow.insn_count; l++) {
            if (may_read(t, l, s))
                return ev_fail(err, EV_BAD,
                               "threads of a team read what its first one writes, and do not wait "
                               "for each other between");
        }
    }
    return EV_OK;
}

/* Whether where one of two accesses runs, the other one does, too, and cases show that. */
static bool run_together(const teaming *t, uint32_t a, uint32_t b) {
    const ir_flow *flow = &t->flow;
    uint32_t x = runs_with(t, a), y = runs_with(t, b);
    if (!ir_is_led_by_told(flow, 0, x))
        return false;
    return (ir_dominance_over(&flow->over, x, y) &&
            ir_dominance_over(&flow->under, y + 1, x + 1)) ||
           (ir_dominance_over(&flow->over, y, x) && ir_dominance_over(&flow->under, x + 1, y + 1));
}

/* Whether the team shares a loop with the one inside: no thread makes all of a turn. */
static bool is_nest(const teaming *t, const ir_sums *loop) {
    return t->nests[loop - t->loops].rows > 0;
}

/* Whether one thread makes the turns of one number of two loops, and both accesses are of a turn's
 * own place. */
static bool are_alike(const teaming *t, const ir_sums *of_a, const ir_sums *of_b, uint32_t a,
                      uint32_t b) {
    return of_b && !is_nest(t, of_a) && !is_nest(t, of_b) &&
           ir_turns_are_alike(t->s->base->module, &t->flow, of_a->loop, t->flow.insns[a],
                              of_b->loop, t->flow.insns[b]);
}

/* Whether two accesses, the first of them in a loop, may be of one place, by two threads that do
 * not wait for each other. */
static bool may_collide(const teaming *t, uint32_t a, uint32_t b) {
    LLVMModuleRef module = t->s->base->module;
    const ir_flow *flow = &t->flow;
    const ir_sums *of_a = spread_around(t, a), *of_b = spread_around(t, b);
    assert(of_a != NULL);
    if (of_a == of_b || ir_affine_apart(module, flow->insns[a], flow->insns[b]) ||
        are_alike(t, of_a, of_b, a, b) ||
        ir_turns_are_beyond(module, flow, of_a->loop, flow->insns[a], flow->insns[b],
                            run_together(t, a, b)))
        return false;
    return (ir_flow_leads(flow, a, b) && !is_met_between(t, a, b)) ||
           (ir_flow_leads(flow, b, a) && !is_met_between(t, b, a));
}

/* Whether a place that a loop writes to may be another thread's when a loop around runs that loop
 * again. Cases show it where they run the write. */
static bool moves_on(const teaming *t, uint32_t write) {
    const ir_flow *flow = &t->flow;
    const ir_loop *loop = spread_around(t, write)->loop, *around = loop;
    while (around->parent != IR_NONE)
        around = &flow->loops[around->parent];
    return around != loop && !LLVMIsAAtomicRMWInst(flow->insns[write]) &&
           !ir_is_led_by_told(flow, around->header, flow->home[write]) &&
           !ir_turns_stay(t->s->base->module, flow, loop, around, flow->insns[write]);
}

/* The turns of a loop write side by side, and what the kernel does with these places elsewhere may
 * be another thread's. */
static ev_status check_writes(const teaming *t, ev_error *err) {
    const ir_flow *flow = &t->flow;
    for (uint32_t a = 0; a < flow->insn_count; a++) {
        LLVMValueRef write = flow->insns[a];
        if (!ir_pointer_of(write) || LLVMIsALoadInst(write) || !t->is_shared_out[flow->home[a]])
            continue;
        if (moves_on(t, a))
            return ev_fail(err, EV_BAD,
                           "a loop around the spread one runs it again, and its turns may then "
                           "write what other threads of the team have written");
        for (uint32_t b = 0; b < flow->insn_count; b++) {
            bool commute = LLVMIsAAtomicRMWInst(write) && LLVMIsAAtomicRMWInst(flow->insns[b]) &&
                           LLVMGetAtomicRMWBinOp(write) == LLVMGetAtomicRMWBinOp(flow->insns[b]);
            if (ir_pointer_of(flow->insns[b]) && !ir_is_field(flow->insns[b]) && !commute &&
                may_collide(t, a, b))
                return ev_fail(err, EV_BAD,
                               "the turns of a loop write what other threads of the team read or "
                               "write elsewhere, and do not wait for each other between");
        }
    }
    return EV_OK;
}

/* ---- coordinates ------------------------------------------------------------------------------
 */

static LLVMValueRef read_register(const teaming *t, const char *which, uint32_t axis) {
    return ir_structure_read(t->s, t->share.builder, which, axis);
}

static LLVMValueRef number(const teaming *t, uint64_t value) {
    return ir_share_number(&t->share, value);
}

static LLVMValueRef times_plus(const teaming *t, LLVMValueRef a, uint32_t b, LLVMValueRef c) {
    LLVMBuilderRef builder = t->share.builder;
    return LLVMBuildAdd(builder, LLVMBuildMul(builder, a, number(t, b), ""), c, "");
}

static void replace_reads(const teaming *t, const char *name, LLVMValueRef by) {
    for (uint32_t i = 0; i < t->flow.insn_count; i++) {
        if (ir_reads_register(t->flow.insns[i], name))
            LLVMReplaceAllUsesWith(t->flow.insns[i], by);
    }
}

/* Writes the place in the team and the virtual coordinates at the kernel's beginning. */
static void write_coordinates(teaming *t) {
    LLVMBuilderRef b = t->share.builder;
    uint32_t parts = t->block / t->own;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(t->flow.blocks[0]));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMValueRef thread = read_register(t, "tid", 0);
    LLVMValueRef block = read_register(t, "ctaid", 0);
    LLVMValueRef by = number(t, t->is_strided ? t->own : t->size);
    LLVMValueRef high = LLVMBuildUDiv(b, thread, by, ""), low = LLVMBuildURem(b, thread, by, "");
    LLVMValueRef own = t->is_strided ? low : high;
    t->share.place = t->is_strided ? high : low;
    t->share.is_first = LLVMBuildICmp(b, LLVMIntEQ, t->share.place, number(t, 0), "");
    t->share.mask = by_memory(t) && t->size < IR_WARP ? NULL : ir_share_mask(&t->share, t->size);
    LLVMValueRef part = LLVMBuildURem(b, block, number(t, parts), "");
    LLVMValueRef first = LLVMBuildMul(b, part, number(t, t->own), "");
    LLVMValueRef row = NULL;
    if (by_memory(t) && t->rows > 1) {
        LLVMValueRef z = read_register(t, "tid", 2);
        row = times_plus(t, z, t->s->base->block[1], read_register(t, "tid", 1));
    }
    t->member = row ? times_plus(t, row, t->own, own) : own;
    LLVMValueRef grid = read_register(t, "nctaid", 0);
    replace_reads(t, "tid.x", LLVMBuildAdd(b, first, own, ""));
    replace_reads(t, "ctaid.x", LLVMBuildUDiv(b, block, number(t, parts), ""));
    replace_reads(t, "ntid.x", number(t, t->block));
    replace_reads(t, "nctaid.x", LLVMBuildUDiv(b, grid, number(t, parts), ""));
}

/* ---- exchange by shared memory ----------------------------------------------------------------
 */

typedef struct exchange {
    uint32_t writers;    /* of a team */
    LLVMValueRef writer; /* which one this thread is, or would be */
    LLVMValueRef arrays[IR_MOST_SUMS + 1];
} exchange;

/* The place of one of the team's writers. Writers of a strided team stand apart by the block's
 * kernel threads, so that a warp reads neighbouring places; warps of a team are side by side. */
static LLVMValueRef place_of(const teaming *t, const exchange *x, uint32_t array,
                             LLVMValueRef writer) {
    LLVMValueRef at = t->is_strided ? times_plus(t, writer, t->own * t->rows, t->member)
                                    : times_plus(t, t->member, x->writers, writer);
    return ir_share_place(&t->share, x->arrays[array], at);
}

static LLVMTypeRef element(const exchange *x, uint32_t array) {
    return LLVMGetElementType(LLVMGlobalGetValueType(x->arrays[array]));
}

static void put(const teaming *t, exchange *x, uint32_t array, LLVMValueRef value,
                LLVMValueRef *first) {
    LLVMBuilderRef b = t->share.builder;
    /* a place for each kernel thread of the block and each writer of a team */
    uint64_t places = (uint64_t)t->own * t->rows * x->writers;
    x->arrays[array] = ir_share_new_array(&t->share, LLVMTypeOf(value), places);
    LLVMValueRef at = place_of(t, x, array, x->writer);
    LLVMValueRef store = LLVMBuildStore(b, value, at);
    *first = *first ? *first : store;
}

static LLVMValueRef take(const teaming *t, const exchange *x, uint32_t array, uint32_t writer) {
    LLVMValueRef at = place_of(t, x, array, number(t, writer));
    return LLVMBuildLoad2(t->share.builder, element(x, array), at, "");
}

/* What writer `writer` of the team has put there. */
static ir_gather taken(const teaming *t, const exchange *x, const ir_gather *g, uint32_t writer) {
    ir_gather other = {.sums = g->sums};
    for (uint32_t i = 0; i < g->sums->count; i++) {
        if (g->value[i])
            other.value[i] = take(t, x, i, writer);
    }
    if (g->when)
        other.when = take(t, x, IR_MOST_SUMS, writer);
    return other;
}

/* Combines what the team's writers have, in their order. Returns the first store, which is done
 * by all threads so far. */
static LLVMValueRef exchange_by_memory(const teaming *t, ir_gather *g) {
    LLVMBuilderRef b = t->share.builder;
    exchange x = {.writers = t->is_strided ? t->size : t->size / IR_WARP};
    LLVMValueRef first = NULL;
    x.writer =
        t->is_strided ? t->share.place : LLVMBuildUDiv(b, t->share.place, number(t, IR_WARP), "");
    for (uint32_t i = 0; i < g->sums->count; i++) {
        if (g->value[i])
            put(t, &x, i, g->value[i], &first);
    }
    if (g->when)
        put(t, &x, IR_MOST_SUMS, g->when, &first);
    ir_share_call(&t->share, "llvm.nvvm.barrier0", NULL, 0);
    ir_gather all = taken(t, &x, g, 0);
    for (uint32_t w = 1; w < x.writers; w++) {
        ir_gather other = taken(t, &x, g, w);
        ir_share_meet(&t->share, &all, &other);
    }
    memcpy(g->value, all.value, sizeof g->value);
    g->when = all.when;
    if (g->sums->loop->parent != IR_NONE) /* before the arrays are written again */
        ir_share_call(&t->share, "llvm.nvvm.barrier0", NULL, 0);
    return first;
}

/* Gives the code behind a loop what the whole team has summed up. */
static void gather(teaming *t, uint32_t loop) {
    ir_gather *g = &t->gathers[loop];
    LLVMValueRef first = NULL, leads = NULL;
    if (!g->sums->any)
        return;
    ir_share_open(&t->share, g);
    if (!t->is_strided)
        ir_share_exchange(&t->share, g, t->size < IR_WARP ? t->size : IR_WARP);
    if (by_memory(t) && !t->is_strided) {
        LLVMValueRef lane =
            LLVMBuildAnd(t->share.builder, t->share.place, number(t, IR_WARP - 1), "");
        leads = LLVMBuildICmp(t->share.builder, LLVMIntEQ, lane, number(t, 0), "");
    }
    if (by_memory(t))
        first = exchange_by_memory(t, g);
    ir_share_close(g);
    if (leads)
        ir_share_guard_run(&t->share, first, leads, NULL);
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static bool is_own_store(LLVMValueRef insn) {
    return LLVMIsAStoreInst(insn) &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(insn, 1))) == IR_SHARED_SPACE;
}

/* Lets the first thread of a team alone have the effects outside of the loops. Lanes of a warp wait
 * for it where they may read what it writes; threads of other warps cannot, and the gates see that.
 */
static void guard_effects(const teaming *t) {
    LLVMValueRef order = by_memory(t) ? NULL : t->share.mask;
    for (uint32_t b = 0; b < t->flow.count; b++) {
        if (!t->is_shared_out[b])
            ir_share_guard_block(&t->share, t->flow.blocks[b], is_own_store, t->share.is_first,
                                 order);
    }
}

static ev_status team(teaming *t, const ir_edit *edit, ev_error *err) {
    EV_TRY(ir_flow_make(t->s->function, t->s->arena, &t->flow, err));
    EV_TRY(check_option(t, edit, err));
    EV_TRY(check_deeds(t, err));
    bool waits = by_memory(t) && (uint64_t)t->own * t->rows > 1;
    if (waits) {
        EV_TRY(ir_predicate(t->s, err));
        EV_TRY(ir_flow_make(t->s->function, t->s->arena, &t->flow, err));
        EV_TRY(check_option(t, edit, err)); /* the anchor's loop, as it is now */
    }
    t->share.s = t->s;
    t->share.threads = t->size;
    EV_TRY(list_loops(t, err));
    if (waits)
        EV_TRY(check_barriers(t, err));
    if (by_memory(t))
        EV_TRY(check_reads(t, err));
    EV_TRY(check_writes(t, err));
    write_coordinates(t);
    for (uint32_t k = 0; k < t->loop_count; k++) {
        if (t->nests[k].rows > 0)
            ir_nest_share(&t->share, &t->nests[k], &t->gathers[k]);
        else if (t->loops[k].runs)
            EV_TRY(ir_share_rounds(&t->share, &t->loops[k], &t->gathers[k], err));
        else
            ir_share_turns(&t->share, &t->loops[k], &t->gathers[k]);
        gather(t, k);
    }
    guard_effects(t);
    t->s->base->block[0] = t->own * t->size;
    return EV_OK;
}

ev_status ir_structure_team(ir_structure *s, const ir_edit *edit, ev_error *err) {
    teaming t = {.s = s};
    t.share.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = team(&t, edit, err);
    LLVMDisposeBuilder(t.share.builder);
    return status;
}
