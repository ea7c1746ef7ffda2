/* Predicate: the kernel is jammed with one member, whose effects are guarded.
 *
 * Blocks whose first thread ends by a test end as a whole. So each test must be one by which all
 * threads of a block end if the first one does: its sides grow with the thread's place, or shrink.
 */
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/analyses/plain_internal.h"
#include "ir/structure/jam_internal.h"
#include "ir/structure/structure_internal.h"

#include <stdio.h>
#include <string.h>

enum { AXES = 3 };

typedef struct predicating {
    bool is_unsigned; /* the comparison in question reads its sides as numbers without sign */
    ir_structure *s;
    ir_flow flow;
    ir_vary vary;
    ir_jam jam;
    LLVMBuilderRef builder;
    ir_guards guards;
    bool *is_seed[AXES + 1]; /* by instruction: reads the thread's place; the last: in any axis */
    LLVMValueRef place[AXES];
} predicating;

/* The axis of a read of the thread's place; AXES: none. */
static uint32_t axis_of(LLVMValueRef value) {
    static const char *const names[AXES] = {"tid.x", "tid.y", "tid.z"};
    uint32_t a = 0;
    while (a < AXES && !ir_reads_register(value, names[a]))
        a++;
    return a;
}

static ev_status mark_seeds(predicating *p, ev_error *err) {
    for (uint32_t a = 0; a <= AXES; a++) {
        p->is_seed[a] = EV_NEW_ARRAY(p->s->arena, bool, p->flow.insn_count + 1);
        if (!p->is_seed[a])
            return ev_fail_memory(err, p->flow.insn_count);
    }
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        uint32_t a = axis_of(p->flow.insns[i]);
        p->is_seed[a][i] = a < AXES;
        p->is_seed[AXES][i] = a < AXES;
    }
    return EV_OK;
}

static bool is_needed(const predicating *p) {
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        if (ir_depends_on(&p->flow, p->is_seed[AXES], p->guards.tests[t].condition))
            return true;
    }
    return false;
}

/* Whether a shuffle is one of all lanes, also of those that end early. */
static bool names_all_lanes(LLVMValueRef shuffle) {
    LLVMValueRef mask = LLVMGetOperand(shuffle, 0);
    bool has_mask = strstr(ir_call_name(shuffle), ".sync.") != NULL;
    return !has_mask || (LLVMIsAConstantInt(mask) && LLVMConstIntGetSExtValue(mask) == -1);
}

static ev_status check(const predicating *p, ev_error *err) {
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (ir_deed_of(p->flow.insns[i]) == IR_DEED_WARP &&
            strncmp(ir_call_name(p->flow.insns[i]), "llvm.nvvm.shfl.", 15) != 0)
            return ev_fail(err, EV_BAD, "the threads of a warp vote, and some of them end early");
        if (ir_deed_of(p->flow.insns[i]) == IR_DEED_WARP && !names_all_lanes(p->flow.insns[i]))
            return ev_fail(
                err, EV_BAD,
                "the threads of a warp exchange values by a mask that is no constant, and "
                "some of them end early");
        if (ir_is_block_vote(p->flow.insns[i]))
            return ev_fail(err, EV_BAD, "the threads of a block vote, and some of them end early");
    }
    return ir_jam_check(&p->vary, err);
}

/* ---- which blocks end -------------------------------------------------------------------------
 */

/* How a value behaves over the threads of a block. */
typedef enum course {
    COURSE_SAME,
    COURSE_ROOT, /* least at the first thread, where the value is 0 */
    COURSE_UP,   /* least at the first thread */
    COURSE_DOWN, /* greatest there */
    COURSE_UNKNOWN
} course;

static course turned(course c) {
    if (c == COURSE_UP || c == COURSE_ROOT)
        return COURSE_DOWN;
    return c == COURSE_DOWN ? COURSE_UP : c;
}

static course joined(course a, course b) {
    if (a == COURSE_ROOT && b == COURSE_ROOT)
        return COURSE_ROOT;
    a = a == COURSE_ROOT ? COURSE_UP : a;
    b = b == COURSE_ROOT ? COURSE_UP : b;
    if (a == COURSE_SAME || b == COURSE_SAME)
        return a == COURSE_SAME ? b : a;
    return a == b ? a : COURSE_UNKNOWN;
}

static course course_of(const predicating *p, LLVMValueRef value, unsigned depth);

/* Whether a value is as great as its operands say, read as the comparison reads it: nothing wraps
 * around, and nothing is cut off. */
static bool is_whole(const predicating *p, LLVMValueRef value) {
    if (ir_is_told(&p->flow, value,
                   false)) /* the number of a thread, far from the end of 32 bits */
        return true;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        return p->is_unsigned ? LLVMGetNUW(value) : LLVMGetNSW(value);
    case LLVMOr:
        return LLVMGetIsDisjoint(value);
    case LLVMTrunc:
    case LLVMLShr:
    case LLVMUDiv:
    case LLVMURem:
    case LLVMAnd:
        return p->is_unsigned && LLVMGetInstructionOpcode(value) != LLVMTrunc;
    case LLVMSExt:
    case LLVMSDiv:
    case LLVMAShr:
    case LLVMSRem:
        return !p->is_unsigned;
    default:
        return true;
    }
}

/* Of a product, quotient or remainder with a factor that is the same for all threads, and taken to
 * be positive. */
static course course_of_part(const predicating *p, LLVMValueRef value, unsigned depth) {
    course a = course_of(p, LLVMGetOperand(value, 0), depth - 1);
    course b = course_of(p, LLVMGetOperand(value, 1), depth - 1);
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    LLVMValueRef by = LLVMGetOperand(value, op == LLVMMul && a == COURSE_SAME ? 0 : 1);
    bool turns = LLVMIsAConstantInt(by) && LLVMConstIntGetSExtValue(by) < 0;
    if (op == LLVMMul && a == COURSE_SAME)
        return turns ? turned(b) : b;
    if (b != COURSE_SAME)
        return COURSE_UNKNOWN;
    if (op == LLVMURem || op == LLVMSRem || op == LLVMAnd)
        return a == COURSE_ROOT || a == COURSE_SAME ? a : COURSE_UNKNOWN;
    return turns && op != LLVMShl ? turned(a) : a;
}

static course course_of(const predicating *p, LLVMValueRef value, unsigned depth) {
    if (!ir_depends_on(&p->flow, p->is_seed[AXES], value))
        return COURSE_SAME;
    if (axis_of(value) < AXES)
        return COURSE_ROOT;
    if (depth == 0 || !LLVMIsAInstruction(value) || !is_whole(p, value))
        return COURSE_UNKNOWN;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return course_of(p, LLVMGetOperand(value, 0), depth - 1);
    case LLVMAdd:
    case LLVMOr: /* of bits that the other one has not */
        return joined(course_of(p, LLVMGetOperand(value, 0), depth - 1),
                      course_of(p, LLVMGetOperand(value, 1), depth - 1));
    case LLVMSub:
        return joined(course_of(p, LLVMGetOperand(value, 0), depth - 1),
                      turned(course_of(p, LLVMGetOperand(value, 1), depth - 1)));
    case LLVMMul:
    case LLVMShl:
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMURem:
    case LLVMSRem:
    case LLVMAnd:
        return course_of_part(p, value, depth);
    default:
        return COURSE_UNKNOWN;
    }
}

/* Whether a - b has its least value at the first thread if `greater`, else its greatest. */
static bool ends_by(predicating *p, LLVMValueRef compare, bool greater) {
    enum { DEEPEST = 16 };
    LLVMIntPredicate is = LLVMGetICmpPredicate(compare);
    p->is_unsigned = is == LLVMIntUGT || is == LLVMIntUGE || is == LLVMIntULT || is == LLVMIntULE;
    course a = course_of(p, LLVMGetOperand(compare, 0), DEEPEST);
    course b = course_of(p, LLVMGetOperand(compare, 1), DEEPEST);
    course rest = joined(a, turned(b));
    return greater ? rest == COURSE_UP : rest == COURSE_DOWN;
}

/* Whether a condition has the value at all threads of a block if the first one has it. */
static bool ends_block(predicating *p, LLVMValueRef condition, bool value, unsigned depth) {
    LLVMValueRef parts[2];
    if (!ir_depends_on(&p->flow, p->is_seed[AXES], condition))
        return true;
    if (depth == 0)
        return false;
    if (LLVMGetInstructionOpcode(condition) == LLVMXor &&
        ir_is_bit(LLVMGetOperand(condition, 1), true))
        return ends_block(p, LLVMGetOperand(condition, 0), !value, depth - 1);
    if (ir_is_either(condition, true, parts) || ir_is_either(condition, false, parts))
        return ends_block(p, parts[0], value, depth - 1) &&
               ends_block(p, parts[1], value, depth - 1);
    if (!LLVMIsAICmpInst(condition))
        return false;
    LLVMIntPredicate is = LLVMGetICmpPredicate(condition);
    switch (value ? is : ir_predicate_inverse(is)) {
    case LLVMIntSGT:
    case LLVMIntSGE:
    case LLVMIntUGT:
    case LLVMIntUGE:
        return ends_by(p, condition, true);
    case LLVMIntSLT:
    case LLVMIntSLE:
    case LLVMIntULT:
    case LLVMIntULE:
        return ends_by(p, condition, false);
    default:
        return false;
    }
}

static ev_status check_ends(predicating *p, ev_error *err) {
    enum { DEEPEST = 24 };
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        const ir_test *test = &p->guards.tests[t];
        if (!ends_block(p, test->condition, test->leaves_if, DEEPEST))
            return ev_fail(err, EV_BAD,
                           "the first thread of a block may end early where others do not");
    }
    return EV_OK;
}

/* ---- the prologue -----------------------------------------------------------------------------
 */

static LLVMValueRef both(const predicating *p, LLVMValueRef a, LLVMValueRef b) {
    return a ? LLVMBuildAnd(p->builder, a, b, "") : b;
}

/* Gives the kernel's reads of the thread's place the values of `places`. */
static void map_places(predicating *p, LLVMValueRef const places[AXES]) {
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        uint32_t a = axis_of(p->flow.insns[i]);
        if (a < AXES)
            p->jam.map[i] = places[a];
    }
}

/* Writes whether test `t` lets a thread at the mapped place stay. */
static ev_status write_test(predicating *p, uint32_t t, LLVMValueRef *stays, ev_error *err) {
    const ir_test *test = &p->guards.tests[t];
    *stays = ir_jam_expression(&p->jam, test->condition, 0);
    if (!*stays)
        return ev_fail(err, EV_BAD, "a test at the kernel's beginning is too long");
    if (test->leaves_if)
        *stays = LLVMBuildNot(p->builder, *stays, "");
    return EV_OK;
}

/* Ends the blocks whose first thread would end. */
static ev_status write_exit(predicating *p, LLVMBasicBlockRef *body, ev_error *err) {
    LLVMContextRef context = p->s->base->context;
    LLVMValueRef zero = LLVMConstInt(LLVMInt32TypeInContext(context), 0, false);
    LLVMValueRef stay = NULL, stays = NULL;
    map_places(p, (LLVMValueRef[AXES]){zero, zero, zero});
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        EV_TRY(write_test(p, t, &stays, err));
        stay = both(p, stay, stays);
    }
    *body = LLVMAppendBasicBlockInContext(context, p->s->function, "");
    LLVMBasicBlockRef out = LLVMAppendBasicBlockInContext(context, p->s->function, "");
    LLVMBuildCondBr(p->builder, stay, *body, out);
    LLVMPositionBuilderAtEnd(p->builder, out);
    LLVMBuildRetVoid(p->builder);
    LLVMPositionBuilderAtEnd(p->builder, *body);
    return EV_OK;
}

/* Writes whether the thread has work, and the place that the thread takes. */
static ev_status write_places(predicating *p, ev_error *err) {
    LLVMValueRef alive[AXES] = {0}, taken[AXES], stays = NULL;
    map_places(p, p->place);
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        LLVMValueRef condition = p->guards.tests[t].condition;
        if (!ir_depends_on(&p->flow, p->is_seed[AXES], condition))
            continue;
        EV_TRY(write_test(p, t, &stays, err));
        p->jam.alive[0] = both(p, p->jam.alive[0], stays);
        for (uint32_t a = 0; a < AXES; a++) {
            if (ir_depends_on(&p->flow, p->is_seed[a], condition))
                alive[a] = both(p, alive[a], stays);
        }
    }
    for (uint32_t a = 0; a < AXES; a++) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(p->place[a]));
        taken[a] =
            alive[a] ? LLVMBuildSelect(p->builder, alive[a], p->place[a], zero, "") : p->place[a];
    }
    map_places(p, taken);
    return EV_OK;
}

static ev_status predicate(predicating *p, ev_error *err) {
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(mark_seeds(p, err));
    ir_guards_find(&p->flow, true, &p->guards);
    if (!is_needed(p))
        return EV_OK;
    ir_guards_open(&p->guards, p->builder);
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    EV_TRY(mark_seeds(p, err));
    EV_TRY(check_ends(p, err));
    EV_TRY(ir_vary_make(&p->flow, p->is_seed[AXES], true, &p->vary, err));
    EV_TRY(check(p, err));
    EV_TRY(ir_jam_begin(&p->vary, 1, p->builder, &p->jam, err));
    LLVMBasicBlockRef keep[2] = {
        LLVMAppendBasicBlockInContext(p->s->base->context, p->s->function, "")};
    LLVMPositionBuilderAtEnd(p->builder, keep[0]);
    LLVMSetCurrentDebugLocation2(p->builder, NULL);
    ir_jam_allocate(&p->jam);
    for (uint32_t a = 0; a < AXES; a++)
        p->place[a] = ir_structure_read(p->s, p->builder, "tid", a);
    EV_TRY(write_exit(p, &keep[1], err));
    EV_TRY(write_places(p, err));
    return ir_jam_write(&p->jam, keep, 2, err);
}

ev_status ir_predicate(ir_structure *s, ev_error *err) {
    predicating p = {.s = s};
    p.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = predicate(&p, err);
    LLVMDisposeBuilder(p.builder);
    return status;
}
