/* Stage, the plan: which loads of a loop go through shared memory, and in which boxes. */
#include "ir/structure/predicate_internal.h"
#include "ir/structure/stage_internal.h"

#include <llvm-c/Target.h>

#include <string.h>

enum { DEEPEST = 48, MOST_TILE = 64, MOST_ROUNDS = 64, MOST_SHARED = 48 * 1024 };

/* ---- dims -------------------------------------------------------------------------------------
 */

bool ir_stage_is_in_loop(const ir_staging *g, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&g->flow, value);
    return insn != IR_NONE && g->loop->holds[g->flow.home[insn]];
}

int64_t ir_stage_step(const ir_staging *g, LLVMValueRef phi) {
    if (!LLVMIsAPHINode(phi) || LLVMGetInstructionParent(phi) != g->flow.blocks[g->loop->header])
        return 0;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, i);
        if (LLVMGetIncomingBlock(phi, i) == g->flow.blocks[g->loop->latch] &&
            LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
            LLVMGetOperand(next, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
            return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
    }
    return 0;
}

uint32_t ir_stage_dim_of(const ir_staging *g, LLVMValueRef value) {
    static const char *const places[] = {"tid.x", "tid.y", "tid.z"};
    for (uint32_t a = 0; a < 3; a++) {
        if (ir_reads_register(value, places[a]))
            return a;
    }
    for (uint32_t d = IR_DIM_INNER; d < g->dim_count; d++) {
        if (g->dims[d].phi == value)
            return d;
    }
    return ir_stage_step(g, value) != 0 ? IR_DIM_TURN : IR_NONE;
}

static bool is_same_for_the_block(LLVMValueRef value) {
    static const char *const names[] = {"ctaid.x", "ctaid.y",  "ctaid.z",  "ntid.x",  "ntid.y",
                                        "ntid.z",  "nctaid.x", "nctaid.y", "nctaid.z"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (ir_reads_register(value, names[i]))
            return true;
    }
    return false;
}

static uint32_t mask_of(ir_staging *g, LLVMValueRef value, unsigned depth);

/* Whether the block runs once in each turn of its innermost loop, and so on up to the staged one,
 * all of whose inner loops have constant turns. */
static bool runs_each_turn(const ir_staging *g, uint32_t block) {
    const ir_flow *flow = &g->flow;
    while (block != g->loop->header) {
        const ir_loop *inner = &flow->loops[ir_loop_of(flow, block)];
        if (block == inner->header || inner->latch == IR_NONE ||
            !ir_dominance_over(&flow->over, block, inner->latch))
            return false;
        if (inner == g->loop)
            return true;
        if (inner->trips < 1 || inner->step != 1 || inner->compares_next ||
            inner->exit == IR_NONE || inner->preheader == IR_NONE)
            return false;
        block = inner->preheader;
    }
    return false;
}

/* Whether a load, in an address of another one, may be done for other coordinates as well. */
static bool is_free_to_load(const ir_staging *g, LLVMValueRef value) {
    LLVMValueRef base = NULL;
    return ir_deed_of(value) == IR_DEED_LOAD && ir_reads_only(&g->flow, value, &base) &&
           (!ir_stage_is_in_loop(g, value) ||
            runs_each_turn(g, g->flow.home[ir_flow_insn(&g->flow, value)]));
}

static uint32_t mask_of_operands(ir_staging *g, LLVMValueRef value, unsigned depth) {
    uint32_t mask = 0;
    if (depth == 0 || LLVMIsAPHINode(value) || LLVMIsAAllocaInst(value) ||
        (ir_deed_of(value) != IR_DEED_PURE && !is_free_to_load(g, value)) ||
        (LLVMIsACallInst(value) && strstr(ir_call_name(value), "sreg")))
        return IR_NO_DIMS;
    for (int k = 0; k < LLVMGetNumOperands(value) && mask != IR_NO_DIMS; k++) {
        uint32_t part = mask_of(g, LLVMGetOperand(value, (unsigned)k), depth - 1);
        mask = part == IR_NO_DIMS ? IR_NO_DIMS : mask | part;
    }
    return mask;
}

static uint32_t mask_of(ir_staging *g, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&g->flow, value);
    if (insn == IR_NONE)
        return 0;
    if (g->masks[insn] != 0)
        return g->masks[insn] - 1;
    uint32_t dim = ir_stage_dim_of(g, value), mask = 0;
    bool is_fixed = !ir_stage_is_in_loop(g, value) && !ir_varies(&g->vary, value);
    if (dim != IR_NONE)
        mask = 1u << dim;
    else if (!is_fixed && !is_same_for_the_block(value))
        mask = mask_of_operands(g, value, depth);
    g->masks[insn] = mask + 1;
    return mask;
}

uint32_t ir_stage_mask(ir_staging *g, LLVMValueRef value) {
    return mask_of(g, value, DEEPEST);
}

/* ---- distances --------------------------------------------------------------------------------
 */

/* How far a value moves from one value of a dim to the next: factor times `by` (NULL: 1). */
typedef struct distance {
    int64_t factor;
    LLVMValueRef by;
} distance;

static LLVMValueRef without_casts(LLVMValueRef value) {
    while (LLVMIsAInstruction(value) && (LLVMGetInstructionOpcode(value) == LLVMSExt ||
                                         LLVMGetInstructionOpcode(value) == LLVMZExt))
        value = LLVMGetOperand(value, 0);
    return value;
}

static bool add_distance(distance *to, distance more, int64_t factor) {
    if (more.factor == 0 || factor == 0)
        return true;
    if (to->factor != 0 && to->by != more.by)
        return false;
    to->by = more.by;
    to->factor += more.factor * factor;
    return true;
}

static bool distance_of(ir_staging *g, LLVMValueRef value, uint32_t dim, distance *out);

static bool distance_of_product(ir_staging *g, LLVMValueRef value, uint32_t dim, distance *out) {
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef factor = without_casts(LLVMGetOperand(value, side));
        distance part = {0};
        if (ir_stage_mask(g, factor) != 0 ||
            !distance_of(g, LLVMGetOperand(value, 1 - side), dim, &part))
            continue;
        if (LLVMIsAConstantInt(factor))
            return add_distance(out, part, LLVMConstIntGetSExtValue(factor));
        if (part.by)
            return false;
        *out = (distance){part.factor, factor};
        return true;
    }
    return false;
}

static bool distance_of_step(ir_staging *g, LLVMValueRef step, uint32_t dim, distance *out) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(g->s->base->module);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    if (!distance_of(g, LLVMGetOperand(step, 0), dim, out))
        return false;
    for (unsigned i = 0; i < LLVMGetNumIndices(step); i++) {
        LLVMValueRef index = LLVMGetOperand(step, i + 1);
        distance part = {0};
        if (i > 0 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (i > 0)
            type = LLVMGetElementType(type);
        if (!distance_of(g, index, dim, &part) ||
            !add_distance(out, part, (int64_t)LLVMABISizeOfType(layout, type)))
            return false;
    }
    return true;
}

/* A select among values that move alike; a place that is replaced by 0 moves as it is. */
static bool distance_of_select(ir_staging *g, LLVMValueRef value, uint32_t dim, distance *out) {
    LLVMValueRef yes = LLVMGetOperand(value, 1), no = LLVMGetOperand(value, 2);
    distance other = {0};
    if (LLVMIsAConstantInt(no) && LLVMConstIntGetZExtValue(no) == 0)
        return distance_of(g, yes, dim, out);
    return distance_of(g, yes, dim, out) && distance_of(g, no, dim, &other) &&
           out->factor == other.factor && out->by == other.by;
}

static bool distance_of_sum(ir_staging *g, LLVMValueRef value, int64_t sign, uint32_t dim,
                            distance *out) {
    distance right = {0};
    return distance_of(g, LLVMGetOperand(value, 0), dim, out) &&
           distance_of(g, LLVMGetOperand(value, 1), dim, &right) && add_distance(out, right, sign);
}

static bool distance_of(ir_staging *g, LLVMValueRef value, uint32_t dim, distance *out) {
    distance part = {0};
    *out = part;
    if ((ir_stage_mask(g, value) & 1u << dim) == 0)
        return true;
    if (ir_stage_dim_of(g, value) == dim) {
        *out = (distance){dim == IR_DIM_TURN ? ir_stage_step(g, value) : 1, NULL};
        return true;
    }
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return distance_of_sum(g, value, 1, dim, out);
    case LLVMSub:
        return distance_of_sum(g, value, -1, dim, out);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) && distance_of_sum(g, value, 1, dim, out);
    case LLVMMul:
        return distance_of_product(g, value, dim, out);
    case LLVMShl:
        return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) &&
               distance_of(g, LLVMGetOperand(value, 0), dim, &part) &&
               add_distance(out, part,
                            INT64_C(1)
                                << (LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1)) & 31));
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMAddrSpaceCast:
        return distance_of(g, LLVMGetOperand(value, 0), dim, out);
    case LLVMGetElementPtr:
        return distance_of_step(g, value, dim, out);
    case LLVMSelect:
        return distance_of_select(g, value, dim, out);
    default:
        return false;
    }
}

/* ---- boxes ------------------------------------------------------------------------------------
 */

static uint64_t bytes_of(const ir_staging *g, LLVMTypeRef type) {
    return LLVMABISizeOfType(LLVMGetModuleDataLayout(g->s->base->module), type);
}

/* How far apart adjacent values along an axis are: 0 for neighbours, 1 for a few values, or where
 * addresses are loaded, which mostly grow, 2 for other distances. */
static unsigned spread_of(ir_staging *g, LLVMValueRef pointer, uint32_t dim, LLVMTypeRef type) {
    enum { NEAR = 4 };
    distance d;
    if (!distance_of(g, pointer, dim, &d))
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
    distance x, y;
    return distance_of(g, pointer, a, &x) && distance_of(g, pointer, b, &y) && x.factor != 0 &&
           x.factor == y.factor && x.by == y.by;
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

static void add_load(ir_staging *g, LLVMValueRef load, const ir_box *box) {
    uint32_t b = 0;
    while (b < g->box_count && !is_same_box(&g->boxes[b], box))
        b++;
    if (b == g->box_count)
        g->boxes[g->box_count++] = *box;
    else
        g->boxes[b].members++;
    g->loads[g->load_count++] = (ir_staged){load, b, g->boxes[b].members - 1};
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

/* Why a load cannot be staged; NULL: it can, in the box. */
static const char *refusal(ir_staging *g, LLVMValueRef load, ir_box *box) {
    LLVMValueRef argument = NULL;
    if (!ir_reads_only(&g->flow, load, &argument))
        return "the kernel writes to the argument that the loop loads from";
    if (!runs_each_turn(g, g->flow.home[ir_flow_insn(&g->flow, load)]))
        return "a load does not run once in each turn";
    if (ir_stage_mask(g, LLVMGetOperand(load, 0)) == IR_NO_DIMS)
        return "a load's address is more than arithmetic of places, turns and arguments";
    *box = box_of(g, load, argument);
    if ((uint64_t)box->elements * 3 > uses_of(g, load) * 2 && !is_scattered(g, load, box))
        return "the threads of a block hardly load the same values in a tile, and the addresses of "
               "a "
               "warp are as near to each other as the tile's";
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
        if (!ir_stage_is_in_loop(g, load) || ir_deed_of(load) != IR_DEED_LOAD)
            continue;
        (void)ir_reads_only(&g->flow, load, &base);
        if (!LLVMIsAArgument(base) || !is_wanted(g, edit, load))
            continue;
        const char *why = refusal(g, load, &box);
        if (!why)
            add_load(g, load, &box);
        else
            reason = why;
    }
    return g->load_count > 0 ? EV_OK : ev_fail(err, EV_BAD, "%s", reason);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static ev_status check_sizes(const ir_staging *g, ev_error *err) {
    uint64_t bytes = 0, rounds = 0;
    LLVMModuleRef module = g->s->base->module;
    for (LLVMValueRef a = LLVMGetFirstGlobal(module); a; a = LLVMGetNextGlobal(a)) {
        enum { SHARED_SPACE = 3 };
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(a)) == SHARED_SPACE)
            bytes += bytes_of(g, LLVMGlobalGetValueType(a));
    }
    for (uint32_t b = 0; b < g->box_count; b++) {
        const ir_box *box = &g->boxes[b];
        bytes += (uint64_t)box->elements / box->axes[0].size * box->pitch * box->members *
                 bytes_of(g, box->type);
        rounds += (uint64_t)(box->elements + g->threads - 1) / g->threads * box->members;
    }
    if (bytes > MOST_SHARED)
        return ev_fail(err, EV_BAD, "the tile takes %llu bytes of shared memory, more than %d",
                       (unsigned long long)bytes, MOST_SHARED);
    if (rounds > MOST_ROUNDS)
        return ev_fail(err, EV_BAD, "a thread would load %llu values for a tile, more than %d",
                       (unsigned long long)rounds, MOST_ROUNDS);
    return EV_OK;
}

static bool grows_to_bound(const ir_loop *loop) {
    LLVMIntPredicate p = loop->stays;
    if (loop->step > 0)
        return p == LLVMIntSLT || p == LLVMIntULT || p == LLVMIntSLE || p == LLVMIntULE;
    return p == LLVMIntSGT || p == LLVMIntSGE;
}

static ev_status check_loop(const ir_staging *g, ev_error *err) {
    const ir_loop *loop = g->loop;
    const ir_flow *flow = &g->flow;
    if (!loop->induction || loop->compares_next || !grows_to_bound(loop) || loop->exit == IR_NONE)
        return ev_fail(err, EV_BAD,
                       "the loop does not count from a start to a bound, tested at its top");
    uint32_t exit = loop->exit;
    if (flow->back.first[exit + 1] - flow->back.first[exit] != 1 ||
        flow->back.succ[flow->back.first[exit]] != loop->header)
        return ev_fail(err, EV_BAD, "the loop is left in more than one place");
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
    g->masks = EV_NEW_ARRAY(g->s->arena, uint32_t, g->flow.insn_count + 1);
    if (!is_seed || !g->masks)
        return ev_fail_memory(err, g->flow.insn_count);
    for (uint32_t i = 0; i < g->flow.insn_count; i++) {
        const char *name = ir_call_name(g->flow.insns[i]);
        is_seed[i] = strncmp(name, "llvm.nvvm.read.ptx.sreg.", 24) == 0 &&
                     !is_same_for_the_block(g->flow.insns[i]);
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
