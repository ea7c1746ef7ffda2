/* Loops, affine forms, variation and early IR, on the functions of analyses.ll and on kernels.cu.
 */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

#include <llvm-c/IRReader.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

typedef struct fixture {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMValueRef function;
    ev_arena *arena;
    ir_flow flow;
} fixture;

static void open_function(fixture *f, const char *name) {
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    f->context = LLVMContextCreate();
    f->arena = ev_arena_new();
    assert_non_null(f->arena);
    assert_false(LLVMCreateMemoryBufferWithContentsOfFile("tests/ir/structure/analyses.ll", &buffer,
                                                          &message));
    if (LLVMParseIRInContext(f->context, buffer, &f->module, &message))
        fail_msg("%s", message);
    f->function = LLVMGetNamedFunction(f->module, name);
    assert_non_null(f->function);
    OK(ir_flow_make(f->function, f->arena, &f->flow, &err));
}

static void close_function(fixture *f) {
    LLVMDisposeModule(f->module);
    LLVMContextDispose(f->context);
    ev_arena_free(f->arena);
}

/* The instruction or argument with a name. */
static LLVMValueRef named(const fixture *f, const char *name) {
    size_t length;
    for (uint32_t i = 0; i < f->flow.insn_count; i++) {
        if (strcmp(LLVMGetValueName2(f->flow.insns[i], &length), name) == 0)
            return f->flow.insns[i];
    }
    for (unsigned i = 0; i < LLVMCountParams(f->function); i++) {
        if (strcmp(LLVMGetValueName2(LLVMGetParam(f->function, i), &length), name) == 0)
            return LLVMGetParam(f->function, i);
    }
    fail_msg("no value %s", name);
    return NULL;
}

static const ir_loop *loop_at(const fixture *f, const char *path) {
    uint32_t loop = ir_loop_find(&f->flow, path);
    assert_true(loop != IR_NONE);
    ev_str text = EV_STR_EMPTY;
    ir_loop_path(&f->flow, loop, &text);
    assert_string_equal(ev_str_text(&text), path);
    ev_str_free(&text);
    return &f->flow.loops[loop];
}

static void loops_have_a_tree_and_induction_variables(void **state) {
    (void)state;
    fixture f = {0};
    open_function(&f, "nested");
    assert_int_equal(f.flow.loop_count, 3);
    const ir_loop *outer = loop_at(&f, "0"), *first = loop_at(&f, "0.0");
    const ir_loop *second = loop_at(&f, "0.1");
    assert_true(outer->depth == 0 && first->depth == 1 && second->depth == 1);
    assert_ptr_equal(outer->induction, named(&f, "i"));
    assert_ptr_equal(outer->bound, named(&f, "n"));
    assert_true(outer->step == 1 && outer->trips == -1 && outer->stays == LLVMIntSLT);
    assert_ptr_equal(first->induction, named(&f, "j"));
    assert_true(first->step == 2 && first->trips == 7 && first->compares_next);
    assert_ptr_equal(second->induction, named(&f, "k"));
    assert_true(second->step == -1 && second->trips == -1 && second->stays == LLVMIntNE);
    assert_true(outer->preheader == 0 && outer->exit != IR_NONE && outer->latch != IR_NONE);
    assert_int_equal(ir_loop_of(&f.flow, second->header), ir_loop_find(&f.flow, "0.1"));
    const char *const absent[] = {"1", "0.2", "0.0.0", "", "x", "0.", "0.1x"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_int_equal(ir_loop_find(&f.flow, absent[i]), IR_NONE);
    close_function(&f);
}

/* 0, 50, ... 200, and then 250; 0, 100, 200, and then 44. */
static void narrow_counters_wrap(void **state) {
    (void)state;
    fixture f = {0};
    open_function(&f, "narrow");
    const ir_loop *ends = loop_at(&f, "0"), *wraps = loop_at(&f, "1");
    assert_true(ends->step == 50 && ends->trips == 5);
    assert_true(wraps->step == 100 && wraps->trips == -1);
    close_function(&f);
}

static void addresses_are_base_and_sum(void **state) {
    (void)state;
    fixture f = {0};
    LLVMValueRef base = NULL;
    open_function(&f, "addresses");
    ir_affine at = ir_affine_of_address(f.module, named(&f, "q"), &base);
    assert_ptr_equal(base, named(&f, "x"));
    assert_true(at.count == 3 && at.constant == 20);
    assert_int_equal(ir_affine_factor(&at, named(&f, "tid")), 4);
    assert_int_equal(ir_affine_factor(&at, named(&f, "block")), 12);
    assert_int_equal(ir_affine_factor(&at, named(&f, "n")), 12);
    at = ir_affine_of_address(f.module, named(&f, "r"), &base);
    assert_ptr_equal(base, LLVMGetNamedGlobal(f.module, "tile"));
    assert_true(at.count == 1 && at.constant == 0);
    assert_int_equal(ir_affine_factor(&at, named(&f, "tid")), 8);
    ir_affine product = ir_affine_of(named(&f, "g")), none = ir_affine_of(named(&f, "h"));
    assert_int_equal(ir_affine_factor(&product, named(&f, "g")), 1);
    assert_true(none.count == 0 && none.constant == 0);
    LLVMIntPredicate predicate;
    assert_true(ir_affine_of_condition(named(&f, "test"), &at, &predicate));
    assert_true(predicate == LLVMIntSLT && at.constant == -4 && at.count == 2);
    assert_int_equal(ir_affine_factor(&at, named(&f, "n")), -1);
    assert_false(ir_affine_of_condition(named(&f, "less"), &at, &predicate));
    close_function(&f);
}

static ir_vary vary_by(const fixture *f, const char *seed, bool shared_is_one) {
    bool *is_seed = EV_NEW_ARRAY(f->arena, bool, f->flow.insn_count + 1);
    ir_vary vary;
    for (uint32_t i = 0; i < f->flow.insn_count; i++)
        is_seed[i] = ir_reads_register(f->flow.insns[i], seed);
    OK(ir_vary_make(&f->flow, is_seed, shared_is_one, &vary, &err));
    return vary;
}

static void check_vary(const fixture *f, const ir_vary *vary, const char *const *names,
                       size_t count, bool varies) {
    for (size_t i = 0; i < count; i++) {
        if (ir_varies(vary, named(f, names[i])) != varies)
            fail_msg("%s %s", names[i], varies ? "does not vary" : "varies");
    }
}

static void values_differ_among_threads_or_blocks(void **state) {
    (void)state;
    fixture f = {0};
    open_function(&f, "differs");
    static const char *const by_thread[] = {"tid", "at", "slot", "is_odd", "side"};
    static const char *const not_by_thread[] = {"block", "early", "same", "own", "late", "k"};
    ir_vary threads = vary_by(&f, "tid.x", true);
    check_vary(&f, &threads, by_thread, 5, true);
    check_vary(&f, &threads, not_by_thread, 6, false);
    static const char *const by_block[] = {"block", "own", "late", "leaves", "last"};
    static const char *const not_by_block[] = {"tid", "slot", "early", "side", "same"};
    ir_vary blocks = vary_by(&f, "ctaid.y", false);
    check_vary(&f, &blocks, by_block, 5, true);
    check_vary(&f, &blocks, not_by_block, 5, false);
    close_function(&f);
}

static void regions_have_one_entry_and_one_exit(void **state) {
    (void)state;
    fixture f = {0};
    open_function(&f, "differs");
    ir_vary threads = vary_by(&f, "tid.x", true), blocks = vary_by(&f, "ctaid.y", false);
    assert_int_equal(threads.region_count, 1);
    const ir_region *sides = &threads.regions[0];
    assert_true(sides->entry == 0 && !sides->whole);
    assert_int_equal(sides->exit, f.flow.home[ir_flow_insn(&f.flow, named(&f, "side"))]);
    assert_int_equal(blocks.region_count, 1);
    const ir_region *turns = &blocks.regions[0];
    assert_true(turns->whole);
    assert_int_equal(turns->entry, f.flow.home[ir_flow_insn(&f.flow, named(&f, "k"))]);
    assert_int_equal(turns->exit, f.flow.home[ir_flow_insn(&f.flow, named(&f, "last"))]);
    close_function(&f);
}

/* What an edit writes again: the loop that it names, or the kernel. */
static void edits_grow_what_they_write_again(void **state) {
    (void)state;
    static const struct {
        ir_edit_kind kind;
        ir_form form;
        int64_t option;
        uint64_t in_loop, grown;
    } rows[] = {
        {IR_EDIT_UNROLL_TURNS, IR_FORM_NONE, 4, 100, 3000},
        {IR_EDIT_UNROLL_TURNS, IR_FORM_NONE, 4, 0, 10400},
        {IR_EDIT_COARSEN, IR_FORM_STRIDED, 3, 0, 7800},
        {IR_EDIT_UNROLL_LOOP, IR_FORM_NONE, 1, 100, 2600},
        {IR_EDIT_UNROLL_LOOP, IR_FORM_MEMBERS, 1, 100, 5200},
        {IR_EDIT_PIPELINE_LOADS, IR_FORM_NONE, 1, 100, 2600},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ir_edit edit = {.kind = rows[i].kind, .form = rows[i].form, .option = rows[i].option};
        assert_int_equal(ir_structure_grown(&edit, 2600, rows[i].in_loop), rows[i].grown);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_counters_wrap),
        cmocka_unit_test(loops_have_a_tree_and_induction_variables),
        cmocka_unit_test(addresses_are_base_and_sum),
        cmocka_unit_test(values_differ_among_threads_or_blocks),
        cmocka_unit_test(regions_have_one_entry_and_one_exit),
        cmocka_unit_test(edits_grow_what_they_write_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
