/* Predicate: the kernel is jammed with one member, whose effects are guarded.
 *
 * Blocks whose first thread ends by a test end as a whole. So each test must be one by which all
 * threads of a block end if the first one does (ends.c). */
#include "ir/structure/analyses/ends_internal.h"
#include "ir/structure/analyses/guards_internal.h"
#include "ir/structure/jam_internal.h"
#include "ir/structure/structure_internal.h"

#include <stdio.h>
#include <string.h>

enum { AXES = 3 };

typedef struct predicating {
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

static ev_status check(const predicating *p, ev_error *err) {
    for (uint32_t i = 0; i < p->flow.insn_count; i++) {
        if (ir_deed_of(p->flow.insns[i]) == IR_DEED_WARP &&
            strncmp(ir_call_name(p->flow.insns[i]), "llvm.nvvm.shfl.", 15) != 0)
            return ev_fail(err, EV_BAD, "the threads of a warp vote, and some of them end early");
        if (!ir_names_all_lanes(p->flow.insns[i]))
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

static ev_status check_ends(const predicating *p, ev_error *err) {
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        const ir_test *test = &p->guards.tests[t];
        if (!ir_first_decides(&p->flow, p->is_seed[AXES], test->condition, test->leaves_if))
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

/* Whether each test asks for the place along one axis alone. Then a thread may take place 0 along
 * the axes whose tests fail, and keep the others. */
static bool are_tests_apart(const predicating *p) {
    for (uint32_t t = 0; t < p->guards.test_count; t++) {
        uint32_t axes = 0;
        for (uint32_t a = 0; a < AXES; a++)
            axes += ir_depends_on(&p->flow, p->is_seed[a], p->guards.tests[t].condition);
        if (axes > 1)
            return false;
    }
    return true;
}

/* Writes whether the thread has work, and the place that the thread takes. */
static ev_status write_places(predicating *p, ev_error *err) {
    LLVMValueRef alive[AXES] = {0}, taken[AXES], stays = NULL;
    bool are_apart = are_tests_apart(p);
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
        LLVMValueRef by = alive[a] && !are_apart ? p->jam.alive[0] : alive[a];
        taken[a] = by ? LLVMBuildSelect(p->builder, by, p->place[a], zero, "") : p->place[a];
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
    EV_TRY(ir_check_idle(&p->vary, err));
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
