/* Coarsen: one thread does the work of several, from neighbouring blocks or neighbouring threads.
 *
 * The new function begins with a prologue of virtual coordinates. For each member, it computes the
 * block and thread that the member stands for, and whether that member has work: the block must be
 * in the grid that the kernel was written for, and the tests of coordinates at the kernel's
 * beginning ("if (i >= n) return;") must not send it home. A thread whose members all have no work
 * ends. A member without work takes the coordinates of one that has some, so it loads what that
 * one loads, takes the same branches, and its effects are skipped. The body is then jammed
 * (jam_internal.h). */
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/jam_internal.h"
#include "ir/structure/structure_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char axes[] = "xyz";

enum { MOST_KEPT = 4 };

typedef struct coarsening {
    ir_structure *s;
    const ir_edit *edit;
    uint32_t axis, members;
    ir_flow flow;
    ir_vary vary;
    ir_jam jam;
    LLVMBuilderRef builder;
    bool *is_seed;
    ir_guards guards;
    bool differs[IR_MOST_TESTS]; /* the test depends on the coordinates that differ */
    bool guards_differ;          /* one of the tests does */
    bool knows_grid;             /* the plan's grid can be computed from the kernel's arguments */
    LLVMValueRef
        extent; /* blocks of the grid that the kernel was written for, i32; NULL: unknown */
} coarsening;

/* ---- special registers ------------------------------------------------------------------------
 */

static LLVMValueRef read_register(const coarsening *c, const char *which) {
    return ir_structure_read(c->s, c->builder, which, c->axis);
}

static bool reads(const coarsening *c, LLVMValueRef value, const char *stem) {
    char name[32];
    snprintf(name, sizeof name, "%s.%c", stem, axes[c->axis]);
    return ir_reads_register(value, name);
}

static LLVMValueRef number(const coarsening *c, uint64_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(c->s->base->context), value, false);
}

/* ---- seeds ------------------------------------------------------------------------------------
 */

static bool of_threads(const coarsening *c) {
    return c->edit->kind == IR_EDIT_COARSEN_THREADS;
}

static bool is_neighbours(const coarsening *c) {
    return c->edit->form == IR_FORM_NEIGHBOURS;
}

/* The grid stays as it is, and all blocks behind its first k-th part end at once. */
static bool is_kept(const coarsening *c) {
    return c->edit->form == IR_FORM_KEPT;
}

static bool takes_block(const coarsening *c) {
    return !of_threads(c);
}

static bool takes_thread(const coarsening *c) {
    return of_threads(c) || is_neighbours(c);
}

/* Whether an instruction reads the coordinates that each member gets anew. */
static bool is_place(const coarsening *c, LLVMValueRef value) {
    return (takes_block(c) && reads(c, value, "ctaid")) ||
           (takes_thread(c) && reads(c, value, "tid"));
}

static ev_status mark_seeds(coarsening *c, ev_error *err) {
    bool any = false;
    c->is_seed = EV_NEW_ARRAY(c->s->arena, bool, c->flow.insn_count + 1);
    if (!c->is_seed)
        return ev_fail_memory(err, c->flow.insn_count);
    for (uint32_t i = 0; i < c->flow.insn_count; i++) {
        LLVMValueRef value = c->flow.insns[i];
        ir_deed deed = ir_deed_of(value); /* an atomic gives each member a value of its own */
        c->is_seed[i] = is_place(c, value) || deed == IR_DEED_COUNTED || deed == IR_DEED_UNKNOWN;
        any |= is_place(c, value);
    }
    return any ? EV_OK
               : ev_fail(err, EV_BAD, "the kernel reads no %s index in dimension %c",
                         of_threads(c) ? "thread" : "block", axes[c->axis]);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

/* Threads of several blocks may change places only where a block's threads have nothing in common.
 */
static ev_status check_neighbours(const coarsening *c, ev_error *err) {
    for (uint32_t i = 0; i < c->flow.insn_count; i++) {
        ir_deed deed = ir_deed_of(c->flow.insns[i]);
        LLVMValueRef pointer = ir_pointer_of(c->flow.insns[i]);
        const ir_object *object = pointer ? ir_vary_object(&c->vary, pointer) : NULL;
        if (deed == IR_DEED_BARRIER || deed == IR_DEED_WARP || (object && object->is_shared))
            return ev_fail(err, EV_BAD,
                           "the threads of a block work together (by a barrier, a warp function or "
                           "shared memory), so threads of several blocks cannot change places; "
                           "the form \"strided\" keeps them");
    }
    for (uint32_t i = 0; i < c->flow.insn_count; i++) {
        if (ir_reads_warp_place(c->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the kernel reads its place in the warp");
    }
    return EV_OK;
}

/* Whether threads of a warp stay together: the block is one warp, or the members of a thread are so
 * far apart that each warp is as it was. */
static bool keeps_warps(const coarsening *c) {
    const uint32_t *block = c->s->base->block;
    bool is_whole = !is_neighbours(c) && c->axis == 0 && block[0] / c->members % IR_WARP == 0;
    return is_whole || (uint64_t)block[0] * block[1] * block[2] <= IR_WARP;
}

static ev_status check_threads(const coarsening *c, ev_error *err) {
    uint32_t block = c->s->base->block[c->axis];
    for (uint32_t i = 0; i < c->flow.insn_count; i++) {
        if (ir_deed_of(c->flow.insns[i]) == IR_DEED_WARP ||
            (ir_binds_warp(c->flow.insns[i]) && !keeps_warps(c)))
            return ev_fail(err, EV_BAD, "the threads of a warp exchange values or wait");
        if (ir_is_block_vote(c->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the threads of a block vote");
        if (ir_reads_warp_place(c->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the kernel reads its place in the warp");
    }
    if (block == 0 || block % c->members != 0)
        return ev_fail(err, EV_BAD,
                       "the threads of a block in dimension %c are not always the same, or no "
                       "multiple of %u",
                       axes[c->axis], c->members);
    return EV_OK;
}

/* A thread that ends early takes no part in a vote. As a member without work, it would. */
static ev_status check_votes(const coarsening *c, ev_error *err) {
    for (uint32_t i = 0; i < c->flow.insn_count && c->guards_differ; i++) {
        if (ir_counts_threads(c->flow.insns[i]))
            return ev_fail(err, EV_BAD, "threads vote, and some of them end early");
        if (!ir_names_all_lanes(c->flow.insns[i]) &&
            ir_varies(&c->vary, LLVMGetOperand(c->flow.insns[i], 0)))
            return ev_fail(err, EV_BAD,
                           "the threads of a warp exchange values or wait by a mask that differs "
                           "among members, and some of them end early");
    }
    return EV_OK;
}

static ev_status check_guards(const coarsening *c, ev_error *err) {
    if (is_kept(c) && c->knows_grid)
        return ev_fail(err, EV_BAD,
                       "the grid can be computed in dimension %c, so that no block need be kept",
                       axes[c->axis]);
    if (takes_block(c) && !c->extent && !is_kept(c))
        return ev_fail(err, EV_BAD,
                       "the grid cannot be computed from the kernel's arguments in dimension %c; "
                       "the form \"kept\" keeps the grid",
                       axes[c->axis]);
    return EV_OK;
}

/* Whether a test lets some threads of a block end and others not. */
static bool ends_threads(const coarsening *c) {
    bool *is_thread = EV_NEW_ARRAY(c->s->arena, bool, c->flow.insn_count + 1);
    bool ends = false;
    for (uint32_t i = 0; is_thread && i < c->flow.insn_count; i++)
        is_thread[i] = ir_differs_in_block(c->flow.insns[i]);
    for (uint32_t t = 0; t < c->guards.test_count; t++)
        ends |= !is_thread || ir_depends_on(&c->flow, is_thread, c->guards.tests[t].condition);
    return ends;
}

/* A thread without work stores to its place of a shared array, as others read from the place. It
 * may not take away what another thread stored there for it. */
static ev_status check_shared(const coarsening *c, ev_error *err) {
    if (of_threads(c) || !ends_threads(c))
        return EV_OK;
    for (uint32_t o = 0; o < c->vary.object_count; o++) {
        const ir_object *object = &c->vary.objects[o];
        uint32_t writes = 0;
        for (uint32_t k = 0; k < c->vary.access_count; k++) {
            uint32_t insn = c->vary.accesses[k];
            bool repeats = ir_loop_of(&c->flow, c->flow.home[insn]) != IR_NONE;
            if (c->vary.object_of[k] == object && !LLVMIsALoadInst(c->flow.insns[insn]))
                writes += repeats ? 2 : 1;
        }
        if (object->is_shared && writes > 1)
            return ev_fail(err, EV_BAD,
                           "some threads of a block end early, and the kernel writes a shared "
                           "array in several places or in a loop");
    }
    return EV_OK;
}

static ev_status check_option(coarsening *c, ev_error *err) {
    const ir_edit *edit = c->edit;
    if (edit->anchor.kind != IR_ANCHOR_DIMENSION)
        return ev_fail(err, EV_BAD, "\"anchor\" is no dimension: \"x\", \"y\" or \"z\"");
    if (!edit->has_option || edit->option < 2 || edit->option > IR_MOST_MEMBERS)
        return ev_fail(err, EV_BAD, "\"option\" is not from 2 to %d", IR_MOST_MEMBERS);
    bool fits = edit->form == IR_FORM_NEIGHBOURS || edit->form == IR_FORM_STRIDED ||
                ((edit->form == IR_FORM_FAR || is_kept(c)) && !of_threads(c));
    if (!fits)
        return ev_fail(err, EV_BAD, "\"form\" is not \"neighbours\"%s or \"strided\"",
                       of_threads(c) ? "" : ", \"far\", \"kept\"");
    c->axis = edit->anchor.number;
    c->members = (uint32_t)edit->option;
    return EV_OK;
}

/* ---- virtual coordinates ----------------------------------------------------------------------
 */

/* The block and thread of each member, as they come from the registers. */
typedef struct coordinates {
    LLVMValueRef block[IR_MOST_MEMBERS], thread[IR_MOST_MEMBERS];
    LLVMValueRef alive[IR_MOST_MEMBERS]; /* NULL: has work if all have */
    LLVMValueRef all_alive; /* else no member has work; the same for all. NULL: there is no test */
} coordinates;

/* The threads of a block in the dimension, as the kernel knows them. */
static LLVMValueRef block_size(const coarsening *c) {
    uint32_t block = c->s->base->block[c->axis];
    return block > 0 ? number(c, block) : read_register(c, "ntid");
}

static LLVMValueRef times_plus(const coarsening *c, LLVMValueRef a, uint64_t b, LLVMValueRef d) {
    return LLVMBuildAdd(c->builder, LLVMBuildMul(c->builder, a, number(c, b), ""), d, "");
}

/* Sets the place k t + j in a row of k blocks. Where k divides the block, all members of a thread
 * are in one block, and the code says so: their coordinates then differ by constants. */
static void set_neighbour(const coarsening *c, LLVMValueRef block, LLVMValueRef thread, uint32_t j,
                          coordinates *at) {
    uint32_t size = c->s->base->block[c->axis], groups = size / c->members;
    if (groups > 0 && size % c->members == 0) {
        LLVMValueRef behind = LLVMBuildUDiv(c->builder, thread, number(c, groups), "");
        LLVMValueRef group = LLVMBuildURem(c->builder, thread, number(c, groups), "");
        at->block[j] = times_plus(c, block, c->members, behind);
        at->thread[j] = times_plus(c, group, c->members, number(c, j));
        return;
    }
    LLVMValueRef place = times_plus(c, thread, c->members, number(c, j));
    LLVMValueRef behind = LLVMBuildUDiv(c->builder, place, block_size(c), "");
    at->block[j] = times_plus(c, block, c->members, behind);
    at->thread[j] = LLVMBuildURem(c->builder, place, block_size(c), "");
}

static void set_block_coordinates(const coarsening *c, coordinates *at) {
    LLVMValueRef block = read_register(c, "ctaid"), thread = read_register(c, "tid");
    for (uint32_t j = 0; j < c->members; j++) {
        at->thread[j] = thread;
        if (c->edit->form == IR_FORM_STRIDED || is_kept(c)) {
            at->block[j] = times_plus(c, block, c->members, number(c, j));
        } else if (c->edit->form == IR_FORM_FAR) {
            LLVMValueRef grid = read_register(c, "nctaid");
            at->block[j] = times_plus(c, grid, j, block);
        } else {
            set_neighbour(c, block, thread, j, at);
        }
    }
}

static void set_thread_coordinates(const coarsening *c, coordinates *at) {
    LLVMValueRef thread = read_register(c, "tid"), block = read_register(c, "ctaid");
    uint32_t size = c->s->base->block[c->axis] / c->members;
    for (uint32_t j = 0; j < c->members; j++) {
        at->block[j] = block;
        at->thread[j] = is_neighbours(c)
                            ? times_plus(c, thread, c->members, number(c, j))
                            : LLVMBuildAdd(c->builder, thread, number(c, (uint64_t)j * size), "");
    }
}

static LLVMValueRef both(const coarsening *c, LLVMValueRef a, LLVMValueRef b) {
    return a ? LLVMBuildAnd(c->builder, a, b, "") : b;
}

/* Gives a member's coordinates to the expressions of the old code. */
static void map_member(coarsening *c, const coordinates *at, LLVMValueRef block, uint32_t j) {
    for (uint32_t i = 0; i < c->flow.insn_count; i++) {
        LLVMValueRef value = c->flow.insns[i];
        LLVMValueRef made = NULL;
        if (is_place(c, value))
            made = reads(c, value, "ctaid") ? block : at->thread[j];
        else if (takes_block(c) && c->extent && reads(c, value, "nctaid"))
            made = c->extent;
        else if (of_threads(c) && reads(c, value, "ntid"))
            made = number(c, c->s->base->block[c->axis]);
        if (made)
            c->jam.map[i * c->members + j] = made;
    }
}

/* Writes whether test `t` lets a member stay. */
static ev_status write_test(coarsening *c, uint32_t t, uint32_t j, LLVMValueRef *stays,
                            ev_error *err) {
    const ir_test *test = &c->guards.tests[t];
    *stays = ir_jam_expression(&c->jam, test->condition, j);
    if (!*stays)
        return ev_fail(err, EV_BAD, "a test at the kernel's beginning is too long");
    if (test->leaves_if)
        *stays = LLVMBuildNot(c->builder, *stays, "");
    return EV_OK;
}

/* Whether an instruction divides by what is not known, which may be 0 for a block outside of the
 * grid. */
static bool may_fail(LLVMValueRef insn) {
    return ir_deed_of(insn) == IR_DEED_PURE && !ir_may_run_anywhere(insn);
}

/* The block that a member's tests are evaluated for: its own, or, outside of the grid, the first if
 * the tests divide. */
static LLVMValueRef block_for_tests(const coarsening *c, const coordinates *at, uint32_t j) {
    bool any = false;
    for (uint32_t t = 0; t < c->guards.test_count; t++)
        any |= c->differs[t] && ir_has_part(c->guards.tests[t].condition, may_fail);
    return any && at->alive[j]
               ? LLVMBuildSelect(c->builder, at->alive[j], at->block[j], number(c, 0), "")
               : at->block[j];
}

/* Writes whether each member has work. EV_BAD: a test is more than arithmetic of coordinates. */
static ev_status write_alive(coarsening *c, coordinates *at, ev_error *err) {
    LLVMValueRef stays = NULL;
    for (uint32_t j = 0; j < c->members; j++) {
        /* The first of neighbouring blocks is in the grid, since the launch's one is. */
        bool is_first = j == 0 && !takes_thread(c) && !is_kept(c);
        bool inside = !takes_block(c) || !c->extent || is_first;
        if (!inside)
            at->alive[j] = LLVMBuildICmp(c->builder, LLVMIntULT, at->block[j], c->extent, "");
        map_member(c, at, block_for_tests(c, at, j), j);
        for (uint32_t t = 0; t < c->guards.test_count; t++) {
            if (!c->differs[t])
                continue;
            EV_TRY(write_test(c, t, j, &stays, err));
            at->alive[j] = both(c, at->alive[j], stays);
        }
    }
    for (uint32_t t = 0; t < c->guards.test_count; t++) {
        if (c->differs[t])
            continue;
        EV_TRY(write_test(c, t, 0, &stays, err));
        at->all_alive = both(c, at->all_alive, stays);
    }
    return EV_OK;
}

/* The value of the first member that has work. */
static LLVMValueRef first_alive(const coarsening *c, const coordinates *at,
                                const LLVMValueRef *values) {
    LLVMValueRef first = values[c->members - 1];
    for (uint32_t j = c->members - 1; j-- > 0;)
        first = at->alive[j] ? LLVMBuildSelect(c->builder, at->alive[j], values[j], first, "")
                             : values[j];
    return first;
}

/* Gives members without work the coordinates of one that has some. */
static void share_coordinates(const coarsening *c, coordinates *at, LLVMValueRef *values) {
    LLVMValueRef first = first_alive(c, at, values);
    for (uint32_t j = 0; j < c->members; j++) {
        if (at->alive[j])
            values[j] = LLVMBuildSelect(c->builder, at->alive[j], values[j], first, "");
    }
}

/* ---- the prologue -----------------------------------------------------------------------------
 */

static LLVMBasicBlockRef new_block(const coarsening *c) {
    return LLVMAppendBasicBlockInContext(c->s->base->context, c->s->function, "");
}

/* Ends the threads whose members all have no work. The builder goes on in the returned block; NULL:
 * in the same, since no thread ends. */
static LLVMBasicBlockRef write_exit(const coarsening *c, const coordinates *at) {
    LLVMValueRef any = NULL;
    bool is_tested = true;
    for (uint32_t j = 0; j < c->members; j++)
        is_tested &= at->alive[j] != NULL;
    for (uint32_t j = 0; j < c->members && is_tested; j++)
        any = any ? LLVMBuildOr(c->builder, any, at->alive[j], "") : at->alive[j];
    if (at->all_alive)
        any = both(c, any, at->all_alive);
    if (!any)
        return NULL;
    LLVMBasicBlockRef body = new_block(c), out = new_block(c);
    LLVMBuildCondBr(c->builder, any, body, out);
    LLVMPositionBuilderAtEnd(c->builder, out);
    LLVMBuildRetVoid(c->builder);
    LLVMPositionBuilderAtEnd(c->builder, body);
    return body;
}

static ev_status write_prologue(coarsening *c, LLVMBasicBlockRef keep[MOST_KEPT], size_t *kept,
                                ev_error *err) {
    coordinates at = {0};
    ir_jam_allocate(&c->jam);
    if (of_threads(c))
        set_thread_coordinates(c, &at);
    else
        set_block_coordinates(c, &at);
    EV_TRY(write_alive(c, &at, err));
    LLVMBasicBlockRef body = write_exit(c, &at);
    if (body)
        keep[(*kept)++] = body;
    if (takes_block(c))
        share_coordinates(c, &at, at.block);
    if (takes_thread(c))
        share_coordinates(c, &at, at.thread);
    for (uint32_t j = 0; j < c->members; j++) {
        map_member(c, &at, at.block[j], j);
        c->jam.alive[j] = at.alive[j];
    }
    return EV_OK;
}

static ev_status check_idle(const coarsening *c, ev_error *err) {
    bool any = false;
    for (uint32_t j = 0; j < c->members; j++)
        any |= c->jam.alive[j] != NULL;
    return any ? ir_check_idle(&c->vary, err) : EV_OK;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Reads the kernel anew; its guards are open, and their conditions stay in the code. */
static ev_status read_open(coarsening *c, ev_error *err) {
    EV_TRY(ir_flow_make(c->s->function, c->s->arena, &c->flow, err));
    EV_TRY(mark_seeds(c, err));
    for (uint32_t t = 0; t < c->guards.test_count; t++) {
        c->differs[t] = ir_depends_on(&c->flow, c->is_seed, c->guards.tests[t].condition);
        c->guards_differ |= c->differs[t];
    }
    return ir_vary_make(&c->flow, c->is_seed, of_threads(c), &c->vary, err);
}

static void write_extent(coarsening *c) {
    LLVMTypeRef type = LLVMInt32TypeInContext(c->s->base->context);
    const launch_rule *rule = ir_structure_rule(c->s);
    LLVMValueRef wide = rule ? ir_extent_write(c->s, c->builder, rule->grid[c->axis]) : NULL;
    c->extent = wide ? LLVMBuildTrunc(c->builder, wide, type, "") : NULL;
    c->knows_grid = wide != NULL;
    if (is_kept(c))
        c->extent = read_register(c, "nctaid");
}

static ev_status coarsen(coarsening *c, ev_error *err) {
    EV_TRY(check_option(c, err));
    EV_TRY(ir_flow_make(c->s->function, c->s->arena, &c->flow, err));
    ir_guards_find(&c->flow, true, &c->guards);
    ir_guards_open(&c->guards, c->builder);
    EV_TRY(read_open(c, err));
    if (of_threads(c))
        EV_TRY(check_threads(c, err));
    else if (is_neighbours(c))
        EV_TRY(check_neighbours(c, err));
    EV_TRY(check_votes(c, err));
    EV_TRY(check_shared(c, err));
    EV_TRY(ir_check_waits(&c->flow, err));
    EV_TRY(ir_jam_check(&c->vary, err));
    EV_TRY(ir_jam_begin(&c->vary, c->members, c->builder, &c->jam, err));
    LLVMBasicBlockRef keep[MOST_KEPT] = {new_block(c)};
    size_t kept = 1;
    LLVMPositionBuilderAtEnd(c->builder, keep[0]);
    LLVMSetCurrentDebugLocation2(c->builder, NULL);
    if (takes_block(c))
        write_extent(c);
    EV_TRY(check_guards(c, err));
    EV_TRY(write_prologue(c, keep, &kept, err));
    EV_TRY(check_idle(c, err));
    return ir_jam_write(&c->jam, keep, kept, err);
}

ev_status ir_structure_coarsen(ir_structure *s, const ir_edit *edit, ev_error *err) {
    coarsening c = {.s = s, .edit = edit};
    c.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = coarsen(&c, err);
    LLVMDisposeBuilder(c.builder);
    if (status == EV_OK && edit->kind == IR_EDIT_COARSEN_THREADS)
        s->base->block[c.axis] /= c.members;
    return status;
}
