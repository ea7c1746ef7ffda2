/* The direct emitter against LLVM: every shipped start, and small modules with an instruction or a
 * flow of their own; both texts run in the virtual machine, and the outputs are the same bits. */
#include "direct_rig.h"
#include "ir/ir.h"

/* ---- the shipped starts -----------------------------------------------------------------------
 */

static vm_module *load(const char *ptx, size_t bytes, const char *name) {
    ev_error err = {EV_OK, ""};
    vm_module *module = NULL;
    OK_OR_FAIL(vm_module_load(ptx, bytes, name, &module, &err));
    return module;
}

static vm_module *direct_module(ir_build *build) {
    ev_error err = {EV_OK, ""};
    const char *ptx;
    size_t bytes;
    bool covered;
    OK_OR_FAIL(ir_build_direct(build, &ptx, &bytes, &covered, &err));
    if (!covered)
        fail_msg("%s", err.text);
    return load(ptx, bytes, "direct");
}

static void run_stages(ir_build *build, ir_stage from, ir_stage to) {
    ev_error err = {EV_OK, ""};
    for (ir_stage stage = from; stage <= to; stage++)
        OK_OR_FAIL(ir_build_run(build, stage, &err));
}

typedef struct modules {
    vm_module *early, *direct, *llvm; /* early: direct, before the passes */
} modules;

static modules build_start(const task_start *start) {
    ev_error err = {EV_OK, ""};
    ir_source source = {
        .path = start->source, .entry = start->entry, .include = "kernels/include", .sm = 90};
    ir_base *base;
    ir_build *build;
    OK_OR_FAIL(ir_base_load(&source, &base, &err));
    ir_genome *genome = ir_genome_new(start->name);
    assert_non_null(genome);
    assert_true(ir_genome_make_light(genome));
    OK_OR_FAIL(ir_build_new(base, genome, &build, &err));
    run_stages(build, IR_STAGE_EDIT, IR_STAGE_VERIFY);
    modules m = {.early = direct_module(build)};
    run_stages(build, IR_STAGE_OPTIMISE, IR_STAGE_OPTIMISE);
    m.direct = direct_module(build);
    run_stages(build, IR_STAGE_EMIT, IR_STAGE_EMIT);
    size_t bytes;
    const char *ptx = ir_build_ptx(build, &bytes);
    m.llvm = load(ptx, bytes, "LLVM's");
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
    return m;
}

static void check_case(const task *t, const task_start *start, const modules *m,
                       const task_case *c) {
    task_inputs in = task_inputs_make(t, c);
    rig_run direct = rig_launch(&in, start, m->direct, 0),
            llvm = rig_launch(&in, start, m->llvm, 0);
    rig_run early = rig_launch(&in, start, m->early, 0);
    char says[200];
    if (!direct.result.ok || !llvm.result.ok || !early.result.ok)
        fail_msg("%s, %s, %s: %s", t->name, start->name, c->name,
                 !direct.result.ok ? direct.result.trap.message
                 : !llvm.result.ok ? llvm.result.trap.message
                                   : early.result.trap.message);
    rig_compare(&in, &direct, &llvm, says, sizeof says);
    if (says[0])
        fail_msg("%s, %s: %s", t->name, start->name, says);
    rig_free(&direct);
    rig_free(&llvm);
    rig_free(&early);
    task_inputs_free(&in);
}

static void check_task(const char *name) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    for (size_t s = 0; s < t->start_count; s++) {
        modules m = build_start(&t->starts[s]);
        for (size_t c = 0; c < t->case_count; c++) {
            if (t->cases[c].use != TASK_TIME)
                check_case(t, &t->starts[s], &m, &t->cases[c]);
        }
        vm_module_free(m.early);
        vm_module_free(m.direct);
        vm_module_free(m.llvm);
    }
    task_free(t);
}

static void test_bp_data_masked(void **state) {
    (void)state;
    check_task("bp_data_masked");
}

static void test_sd_lstm_fp(void **state) {
    (void)state;
    check_task("sd_lstm_fp");
}

static void test_fft_conv2d(void **state) {
    (void)state;
    check_task("fft_conv2d");
}

static void test_ar_adam(void **state) {
    (void)state;
    check_task("ar_adam");
}

static void test_examples(void **state) {
    (void)state;
    check_task("examples/rmsnorm/task.json");
    check_task("examples/softmax/task.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bp_data_masked), cmocka_unit_test(test_sd_lstm_fp),
        cmocka_unit_test(test_fft_conv2d),     cmocka_unit_test(test_ar_adam),
        cmocka_unit_test(test_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
