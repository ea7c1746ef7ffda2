/* Stage, the plan: which loads of a loop go through shared memory, and in which boxes. */
#include "ir/structure/analyses/ends_internal.h"
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/stage_internal.h"
#include "ir/structure/structure_internal.h"

#include <llvm-c/Target.h>

#include <string.h>

enum { MOST_TILE = 64, MOST_ROUNDS = 64 };

/* ---- boxes ------------------------------------------------------------------------------------
 */

static uint64_t bytes_of(const ir_staging *g, LLVMTypeRef type) {
    return LLVMABISizeOfType(LLVMGetModuleDataLayout(g->s->base->module), type);
}

/* How far apart adjacent values along an axis are: 0 for neighbours, 1 for a few values, or where
 * addresses are loaded, which mostly grow, 2 for other distances. */
static unsigned spread_of(ir_staging *g, LLVMValueRef pointer, uint32_t dim, LLVMTypeRef type) {
    enum { NEAR = 4 };
    ir_distance d;
    if (!ir_stage_distance(g, pointer, dim, &d))
        return 1;
    int64_t bytes = (int64_t)bytes_of(g, type);
    if (d.by || d.factor > NEAR * bytes || d.factor < -NEAR * bytes)
        return 2;
    return d.factor == bytes || d.factor == -bytes ? 0 : 1;
}

/* Puts the axis along which addresses are adjacent first. */
static void order_axes(ir_staging *g, LLVMValueRef pointer, ir_box *box) {
    uint32_t first = 0;
    unsigned least = spread_of(g, pointer, box->axes[0].dim, box->type);
    for (uint32_t a = 1; a < box->axis_count; a++) {
        unsigned spread = spread_of(g, pointer, box->axes[a].dim, box->type);
        first = spread < least ? a : first;
        least = spread < least ? spread : least;
    }
    ir_axis axis = box->axes[first];
    memmove(box->axes + 1, box->axes, first * sizeof axis);
    box->axes[0] = axis;
}

/* Whether two dims move the address by the same distance. */
static bool move_alike(ir_staging *g, LLVMValueRef pointer, uint32_t a, uint32_t b) {
    ir_distance x, y;
    return ir_stage_distance(g, pointer, a, &x) && ir_stage_distance(g, pointer, b, &y) &&
           x.factor != 0 && x.factor == y.factor && x.by == y.by;
}

/* Adds a dim as an axis of its own, or to a thread's place that moves the address alike. */
static void add_axis(ir_staging *g, LLVMValueRef pointer, uint32_t dim, ir_box *box) {
    uint32_t size = g->dims[dim].size;
    for (uint32_t a = 0; a < box->axis_count; a++) {
        ir_axis *axis = &box->axes[a];
        if (dim >= IR_DIM_TURN && axis->dim < IR_DIM_TURN && axis->also == IR_NONE &&
            move_alike(g, pointer, axis->dim, dim)) {
            axis->also = dim;
            axis->size += size - 1;
            return;
        }
    }
    box->axes[box->axis_count++] = (ir_axis){dim, IR_NONE, size};
}

static ir_box box_of(ir_staging *g, LLVMValueRef load, LLVMValueRef argument) {
    LLVMValueRef pointer = LLVMGetOperand(load, 0);
    uint32_t mask = ir_stage_mask(g, pointer);
    ir_box box = {.argument = argument, .type = LLVMTypeOf(load), .elements = 1, .members = 1};
    for (uint32_t d = 0; d < g->dim_count; d++) {
        if ((mask & 1u << d) && g->dims[d].size > 1)
            add_axis(g, pointer, d, &box);
    }
    if (box.axis_count == 0)
        box.axes[box.axis_count++] = (ir_axis){IR_DIM_TURN, IR_NONE, 1};
    order_axes(g, pointer, &box);
    for (uint32_t a = 0; a < box.axis_count; a++)
        box.elements *= box.axes[a].size;
    box.pitch = box.axes[0].size + (g->is_padded ? 1 : 0);
    return box;
}

static bool is_same_box(const ir_box *a, const ir_box *b) {
    bool same = a->argument == b->argument && a->type == b->type && a->axis_count == b->axis_count;
    for (uint32_t i = 0; i < a->axis_count && same; i++)
        same = a->axes[i].dim == b->axes[i].dim && a->axes[i].also == b->axes[i].also;
    return same;
}

static void add_load(ir_staging *g, LLVMValueRef load, const ir_box *box, const ir_path *path) {
    uint32_t b = 0;
    while (b < g->box_count && !is_same_box(&g->boxes[b], box))
        b++;
    if (b == g->box_count)
        g->boxes[g->box_count++] = *box;
    else
        g->boxes[b].members++;
    g->loads[g->load_count++] = (ir_staged){load, b, g->boxes[b].members - 1, *path};
}

/* ---- loads ------------------------------------------------------------------------------------
 */

/* Values that all threads load in a tile. */
static uint64_t uses_of(const ir_staging *g, LLVMValueRef load) {
    uint64_t uses = (uint64_t)g->threads * g->tile;
    uint32_t block = g->flow.home[ir_flow_insn(&g->flow, load)];
    for (uint32_t l = ir_loop_of(&g->flow, block); &g->flow.loops[l] != g->loop;
         l = g->flow.loops[l].parent)
        uses *= (uint64_t)g->flow.loops[l].trips;
    return uses;
}

/* Whether the threads along x load far from each other, but a tile's turns near to each other. */
static bool is_scattered(ir_staging *g, LLVMValueRef load, const ir_box *box) {
    enum { X = 0 };
    LLVMValueRef pointer = LLVMGetOperand(load, 0);
    return box->axes[0].dim >= IR_DIM_TURN && box->axes[0].size > 1 && g->dims[X].size > 1 &&
           (ir_stage_mask(g, pointer) & 1u << X) != 0 &&
           spread_of(g, pointer, X, box->type) > spread_of(g, pointer, box->axes[0].dim, box->type);
}

/* Whether the tests on the way to a load are known for each element of its box. */
static bool are_tests_known(ir_staging *g, LLVMValueRef load, const ir_box *box,
                            const ir_path *path) {
    uint32_t mask = ir_stage_mask(g, LLVMGetOperand(load, 0));
    for (uint32_t t = 0; t < path->count; t++) {
        LLVMValueRef condition = path->tests[t].condition;
        uint32_t needs = ir_stage_mask(g, condition);
        if (needs == IR_NO_DIMS || (needs & ~mask) != 0)
            return false;
        for (uint32_t a = 0; a < box->axis_count; a++) {
            if (box->axes[a].also != IR_NONE &&
                !ir_stage_is_balanced(g, condition, box->axes[a].dim, box->axes[a].also))
                return false;
        }
    }
    return true;
}

static bool loads(LLVMValueRef insn) {
    return LLVMIsALoadInst(insn) != NULL;
}

/* Whether a value is true where the condition is alone: it is a conjunction with it. */
static bool implies(LLVMValueRef value, LLVMValueRef condition, unsigned depth) {
    LLVMValueRef parts[2];
    if (value == condition)
        return true;
    return depth > 0 && ir_is_either(value, false, parts) &&
           (implies(parts[0], condition, depth - 1) || implies(parts[1], condition, depth - 1));
}

/* Whether a block runs where the condition holds alone: a branch by it leads there. */
static bool is_under(const ir_flow *flow, uint32_t block, LLVMValueRef condition) {
    enum { DEEPEST = 8 };
    for (uint32_t b = block; b != 0; b = flow->over.idom[b]) {
        uint32_t above = flow->over.idom[b];
        LLVMValueRef last = ir_flow_last(flow, above);
        if (LLVMIsABranchInst(last) && LLVMIsConditional(last) &&
            implies(LLVMGetCondition(last), condition, DEEPEST) &&
            LLVMGetSuccessor(last, 0) == flow->blocks[b] &&
            flow->back.first[b + 1] - flow->back.first[b] == 1)
            return true;
    }
    return false;
}

/* Conditions, of which one holds where a value is not what a choice made of it. */
typedef struct conditions {
    LLVMValueRef of[8];
    uint32_t count;
} conditions;

static bool is_under_any(const ir_flow *flow, uint32_t block, const conditions *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        if (is_under(flow, block, c->of[i]))
            return true;
    }
    return false;
}

static bool is_reached(const ir_flow *flow, const bool *reached, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(flow, value);
    return insn != IR_NONE && reached[insn];
}

/* Whether a choice takes a reached value where its condition does not hold, and depends on it in no
 * other way. */
static bool is_second_choice(const ir_flow *flow, const bool *reached, LLVMValueRef insn) {
    return LLVMIsASelectInst(insn) && !is_reached(flow, reached, LLVMGetOperand(insn, 0)) &&
           !is_reached(flow, reached, LLVMGetOperand(insn, 1));
}

/* Marks what is computed from a value, up to choices that may take another one. */
static bool grow_reached(const ir_flow *flow, bool *reached) {
    bool grows = false;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef insn = flow->insns[i];
        bool now = false;
        for (int k = 0; k < LLVMGetNumOperands(insn) && !now; k++)
            now = is_reached(flow, reached, LLVMGetOperand(insn, (unsigned)k));
        now = now && !reached[i] && !is_second_choice(flow, reached, insn);
        grows |= now;
        reached[i] |= now;
    }
    return grows;
}

/* Whether what follows from a branch is under one of the conditions, other than to wait. */
static bool keeps_behind(const ir_flow *flow, uint32_t branch, const conditions *c) {
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (ir_has_effect(flow->insns[i]) && ir_deed_of(flow->insns[i]) != IR_DEED_BARRIER &&
            ir_dominance_over(&flow->over, branch, flow->home[i]) &&
            !is_under_any(flow, flow->home[i], c))
            return false;
    }
    return true;
}

/* Whether what a thread does with a choice, and what the choice decides, is under one of the
 * conditions, or the choice's own. *choices: how many more may be looked at. */
static bool keeps_from_effects(const ir_staging *g, LLVMValueRef choice, conditions c,
                               unsigned *choices) {
    const ir_flow *flow = &g->flow;
    bool *reached = EV_NEW_ARRAY(flow->arena, bool, flow->insn_count + 1);
    if (!reached || c.count == sizeof c.of / sizeof c.of[0] || *choices == 0)
        return false;
    --*choices;
    c.of[c.count++] = LLVMGetOperand(choice, 0);
    reached[ir_flow_insn(flow, choice)] = true;
    while (grow_reached(flow, reached)) {
    }
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        LLVMValueRef insn = flow->insns[i];
        if (!reached[i]) {
            bool goes_on =
                LLVMIsASelectInst(insn) && is_reached(flow, reached, LLVMGetOperand(insn, 2));
            if (goes_on && !keeps_from_effects(g, insn, c, choices))
                return false;
        } else if (!is_under_any(flow, flow->home[i], &c) &&
                   (ir_has_effect(insn) ||
                    (LLVMIsATerminatorInst(insn) && !keeps_behind(flow, flow->home[i], &c)))) {
            return false;
        }
    }
    return true;
}

/* Whether a choice is that of a thread without work, which takes another one's place: of places
 * alone, by arithmetic of places, and the first thread has work if any has. Its effects are skipped
 * by the same condition. */
static bool is_of_idle_threads(ir_staging *g, LLVMValueRef choice) {
    enum { MOST_CHOICES = 64 };
    unsigned choices = MOST_CHOICES;
    LLVMValueRef condition = LLVMGetOperand(choice, 0);
    uint32_t mask =
        ir_stage_mask(g, LLVMGetOperand(choice, 1)) | ir_stage_mask(g, LLVMGetOperand(choice, 2));
    return mask >> IR_DIM_TURN == 0 && !ir_has_part(condition, loads) &&
           ir_first_decides(&g->flow, g->is_place, condition, false) &&
           keeps_from_effects(g, choice, (conditions){0}, &choices);
}

/* Whether threads that share an element of the box make a choice alike. */
static bool is_balanced(ir_staging *g, LLVMValueRef choice, const ir_box *box) {
    for (uint32_t a = 0; a < box->axis_count; a++) {
        if (box->axes[a].also != IR_NONE &&
            !ir_stage_is_balanced(g, LLVMGetOperand(choice, 0), box->axes[a].dim,
                                  box->axes[a].also))
            return false;
    }
    return true;
}

/* The same of all choices that an address is computed with. seen: by instruction. */
static bool are_balanced(ir_staging *g, LLVMValueRef value, const ir_box *box, bool *seen) {
    uint32_t insn = ir_flow_insn(&g->flow, value);
    if (insn == IR_NONE || seen[insn] || LLVMIsAPHINode(value) ||
        ir_deed_of(value) != IR_DEED_PURE || ir_stage_mask(g, value) == 0)
        return true;
    seen[insn] = true;
    if (LLVMIsASelectInst(value) && !is_of_idle_threads(g, value) && !is_balanced(g, value, box))
        return false;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (!are_balanced(g, LLVMGetOperand(value, (unsigned)k), box, seen))
            return false;
    }
    return true;
}

static bool are_choices_known(ir_staging *g, LLVMValueRef load, const ir_box *box) {
    bool is_shared = false;
    for (uint32_t a = 0; a < box->axis_count; a++)
        is_shared |= box->axes[a].also != IR_NONE;
    if (!is_shared)
        return true;
    bool *seen = EV_NEW_ARRAY(g->s->arena, bool, g->flow.insn_count + 1);
    return seen && are_balanced(g, LLVMGetOperand(load, 0), box, seen);
}

/* Why a load cannot be staged; NULL: it can, in the box. */
static const char *refusal(ir_staging *g, LLVMValueRef load, ir_box *box, ir_path *path) {
    LLVMValueRef argument = NULL;
    if (!ir_reads_only(&g->flow, load, &argument))
        return "the kernel writes to the argument that the loop loads from";
    if (!ir_stage_path(g, g->flow.home[ir_flow_insn(&g->flow, load)], path))
        return "a load runs more or less often than once in a turn";
    if (ir_stage_mask(g, LLVMGetOperand(load, 0)) == IR_NO_DIMS)
        return "a load's address is more than arithmetic of places, turns and arguments";
    *box = box_of(g, load, argument);
    if (!are_tests_known(g, load, box, path) || !are_choices_known(g, load, box))
        return "a load depends on a condition that its address does not tell";
    if ((uint64_t)box->elements * 3 > uses_of(g, load) * 2 && !is_scattered(g, load, box))
        return "the threads of a block hardly load the same values in a tile, and the addresses "
               "of a warp are as near to each other as the tile's";
    return NULL;
}

static bool is_wanted(const ir_staging *g, const ir_edit *edit, LLVMValueRef load) {
    if (edit->anchor.kind != IR_ANCHOR_ARGUMENT)
        return true;
    LLVMValueRef argument = NULL;
    (void)ir_reads_only(&g->flow, load, &argument);
    return argument == LLVMGetParam(g->s->function, edit->anchor.number);
}

static ev_status list_loads(ir_staging *g, const ir_edit *edit, ev_error *err) {
    const char *reason = "the loop loads nothing from an argument";
    for (uint32_t i = 0; i < g->flow.insn_count && g->load_count < IR_MOST_STAGED; i++) {
        LLVMValueRef load = g->flow.insns[i], base = NULL;
        ir_box box;
        ir_path path;
        if (!ir_stage_is_in_loop(g, load) || ir_deed_of(load) != IR_DEED_LOAD)
            continue;
        (void)ir_reads_only(&g->flow, load, &base);
        if (!LLVMIsAArgument(base) || !is_wanted(g, edit, load))
            continue;
        const char *why = refusal(g, load, &box, &path);
        if (!why)
            add_load(g, load, &box, &path);
        else
            reason = why;
    }
    return g->load_count > 0 ? EV_OK : ev_fail(err, EV_BAD, "%s", reason);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_sizes(const ir_staging *g, ev_error *err) {
    uint64_t bytes = ir_shared_bytes(g->s->base->module, NULL), rounds = 0;
    for (uint32_t b = 0; b < g->box_count; b++) {
        const ir_box *box = &g->boxes[b];
        bytes += (uint64_t)box->elements / box->axes[0].size * box->pitch * box->members *
                 bytes_of(g, box->type);
        rounds += (uint64_t)(box->elements + g->threads - 1) / g->threads * box->members;
    }
    if (bytes > IR_MOST_SHARED)
        return ev_fail(err, EV_BAD, "the tile takes %llu bytes of shared memory, more than %d",
                       (unsigned long long)bytes, IR_MOST_SHARED);
    if (rounds > MOST_ROUNDS)
        return ev_fail(err, EV_BAD, "a thread would load %llu values for a tile, more than %d",
                       (unsigned long long)rounds, MOST_ROUNDS);
    return EV_OK;
}

static ev_status check_loop(const ir_staging *g, ev_error *err) {
    const ir_loop *loop = g->loop;
    const ir_flow *flow = &g->flow;
    EV_TRY(ir_loop_check_counts(flow, loop, err));
    if (loop->trips >= 0 && loop->trips < g->tile)
        return ev_fail(err, EV_BAD, "the loop has %lld turns, fewer than a tile",
                       (long long)loop->trips);
    LLVMValueRef test = LLVMGetCondition(ir_flow_last(flow, loop->header));
    if (g->vary.region_of[loop->header] != IR_NONE || ir_varies(&g->vary, test))
        return ev_fail(err, EV_BAD, "the threads of a block do not take the loop's turns together");
    return EV_OK;
}

/* ---- the anchor -------------------------------------------------------------------------------
 */

/* The innermost loop of the first load from an argument. */
static uint32_t loop_of_argument(const ir_staging *g, uint32_t number) {
    for (uint32_t i = 0; i < g->flow.insn_count; i++) {
        LLVMValueRef base = NULL;
        uint32_t loop = ir_loop_of(&g->flow, g->flow.home[i]);
        if (loop == IR_NONE || ir_deed_of(g->flow.insns[i]) != IR_DEED_LOAD)
            continue;
        (void)ir_reads_only(&g->flow, g->flow.insns[i], &base);
        if (number < LLVMCountParams(g->s->function) &&
            base == LLVMGetParam(g->s->function, number))
            return loop;
    }
    return IR_NONE;
}

static ev_status find_loop(ir_staging *g, const ir_edit *edit, ev_error *err) {
    uint32_t at = IR_NONE;
    if (edit->anchor.kind == IR_ANCHOR_LOOP)
        at = ir_loop_find(&g->flow, edit->anchor.path);
    else if (edit->anchor.kind == IR_ANCHOR_ARGUMENT)
        at = loop_of_argument(g, edit->anchor.number);
    if (at == IR_NONE)
        return ev_fail(err, EV_BAD,
                       "\"anchor\" is no loop of the kernel, like \"loop 0\", and no argument that "
                       "a loop loads from, like \"a0\"");
    g->loop = &g->flow.loops[at];
    return EV_OK;
}

static ev_status check_option(ir_staging *g, const ir_edit *edit, ev_error *err) {
    const uint32_t *block = g->s->base->block;
    if (!edit->has_option || edit->option < 1 || edit->option > MOST_TILE)
        return ev_fail(err, EV_BAD, "\"option\" is not from 1 to %d", MOST_TILE);
    if (edit->form != IR_FORM_NONE && edit->form != IR_FORM_PADDED)
        return ev_fail(err, EV_BAD, "\"form\" is neither left out nor \"padded\"");
    g->tile = (uint32_t)edit->option;
    g->is_padded = edit->form == IR_FORM_PADDED;
    g->threads = block[0] * block[1] * block[2];
    return g->threads > 0 ? EV_OK
                          : ev_fail(err, EV_BAD, "the threads of a block are not always the same");
}

static void list_dims(ir_staging *g) {
    for (uint32_t a = 0; a < 3; a++)
        g->dims[a] = (ir_dim){.size = g->s->base->block[a]};
    g->dims[IR_DIM_TURN] = (ir_dim){.size = g->tile, .phi = g->loop->induction};
    g->dim_count = IR_DIM_INNER;
    for (uint32_t l = 0; l < g->flow.loop_count && g->dim_count < IR_MOST_DIMS; l++) {
        const ir_loop *inner = &g->flow.loops[l];
        if (inner != g->loop && g->loop->holds[inner->header] && inner->trips >= 1 &&
            inner->trips <= MOST_TILE && inner->step == 1)
            g->dims[g->dim_count++] =
                (ir_dim){.size = (uint32_t)inner->trips, .phi = inner->induction};
    }
}

static ev_status mark_threads(ir_staging *g, ev_error *err) {
    bool *is_seed = EV_NEW_ARRAY(g->s->arena, bool, g->flow.insn_count + 1);
    g->is_place = EV_NEW_ARRAY(g->s->arena, bool, g->flow.insn_count + 1);
    g->masks = EV_NEW_ARRAY(g->s->arena, uint32_t, g->flow.insn_count + 1);
    if (!is_seed || !g->is_place || !g->masks)
        return ev_fail_memory(err, g->flow.insn_count);
    for (uint32_t i = 0; i < g->flow.insn_count; i++) {
        g->is_place[i] = ir_reads_place(g->flow.insns[i]);
        is_seed[i] =
            ir_differs_in_block(g->flow.insns[i]) ||
            (ir_reads_any_register(g->flow.insns[i]) && !ir_stage_is_of_block(g->flow.insns[i]));
    }
    return ir_vary_make(&g->flow, is_seed, true, &g->vary, err);
}

ev_status ir_stage_plan(ir_staging *g, const ir_edit *edit, ev_error *err) {
    EV_TRY(check_option(g, edit, err));
    EV_TRY(ir_flow_make(g->s->function, g->s->arena, &g->flow, err));
    EV_TRY(find_loop(g, edit, err));
    EV_TRY(ir_predicate(g->s, err));
    EV_TRY(ir_flow_make(g->s->function, g->s->arena, &g->flow, err));
    EV_TRY(mark_threads(g, err));
    EV_TRY(find_loop(g, edit, err));
    EV_TRY(check_loop(g, err));
    EV_TRY(ir_check_stays(&g->flow, g->loop, err));
    EV_TRY(ir_check_near(&g->flow, err));
    list_dims(g);
    EV_TRY(list_loads(g, edit, err));
    return check_sizes(g, err);
}

ev_status ir_structure_stage(ir_structure *s, const ir_edit *edit, ev_error *err) {
    ir_staging g = {.s = s};
    g.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = ir_stage_plan(&g, edit, err);
    if (status == EV_OK)
        status = ir_stage_write(&g, err);
    LLVMDisposeBuilder(g.builder);
    return status;
}
