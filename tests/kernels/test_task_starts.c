/* Every start of the shipped tasks and the examples, in the virtual machine under all its checks,
 * on every smoke and check case, against the task's oracle. */
#include "tests/kernels/cuda_build.h"
#include "tests/kernels/task_inputs.h"

#include <math.h>

/* A case in the virtual machine's memory. */
typedef struct laid_out {
    vm_memory *memory;
    uint64_t *addresses; /* of the arguments that are buffers */
    unsigned char *params;
} laid_out;

static vm_buffer_kind buffer_kind(task_argument_kind kind) {
    if (kind == TASK_IN)
        return VM_BUFFER_IN;
    if (kind == TASK_OUT)
        return VM_BUFFER_OUT;
    return VM_BUFFER_INOUT;
}

static void lay_out_buffer(const task_argument *a, const evoke_argument *data, laid_out *l,
                           size_t index) {
    ev_error err = {EV_OK, ""};
    uint64_t bytes = data->count * ev_type_bytes(a->type);
    OK_OR_FAIL(vm_memory_alloc(l->memory, bytes, buffer_kind(a->kind), a->name,
                               &l->addresses[index], &err));
    if (data->data != NULL)
        memcpy(vm_memory_host(l->memory, l->addresses[index]), data->data, bytes);
}

static laid_out lay_out(const task_inputs *in, const vm_entry *entry) {
    ev_error err = {EV_OK, ""};
    laid_out l = {NULL, calloc(in->t->argument_count, sizeof(uint64_t)),
                  calloc(1, entry->param_bytes + 8)};
    assert_true(l.addresses != NULL && l.params != NULL);
    assert_int_equal(entry->param_count, in->t->argument_count);
    OK_OR_FAIL(vm_memory_new(UINT64_C(1) << 30, &l.memory, &err));
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        unsigned char *param = l.params + entry->params[i].offset;
        if (a->kind == TASK_SCALAR) {
            ev_type_set(a->type, param, 0, in->arguments[i].value);
            continue;
        }
        lay_out_buffer(a, &in->arguments[i], &l, i);
        memcpy(param, &l.addresses[i], sizeof l.addresses[i]);
    }
    return l;
}

static void launch(const task_inputs *in, const task_start *start, const vm_module *module,
                   const vm_entry *entry, const laid_out *l) {
    ev_error err = {EV_OK, ""};
    launch_geometry geometry;
    vm_result result;
    OK_OR_FAIL(task_launch_of(in->t, start, start->plan, NULL, 0, in->c, &geometry, &err));
    vm_launch run = {.module = module,
                     .entry = entry,
                     .dynamic_shared = geometry.shared_bytes,
                     .params = l->params,
                     .checks = VM_CHECK_ALL,
                     .schedule_seed = 7};
    memcpy(run.grid, geometry.grid, sizeof run.grid);
    memcpy(run.block, geometry.block, sizeof run.block);
    OK_OR_FAIL(vm_run(l->memory, &run, &result, &err));
    if (!result.ok)
        fail_msg("%s, %s, %s: %s", in->t->name, start->name, in->c->name, result.trap.message);
}

static void compare(const task_inputs *in, const task_start *start, const laid_out *l,
                    size_t output, double *value, double *scale) {
    const task_argument *a = &in->t->arguments[output];
    uint64_t count = in->arguments[output].count;
    const void *got = vm_memory_host(l->memory, l->addresses[output]);
    double depth = 1, errors = 0, wanted = 0, scaled = 0;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_depth_of(in->t, in->c, &depth, &err));
    task_inputs_ask(in, output, 0, count, value, scale);
    for (uint64_t i = 0; i < count; i++) {
        double error = fabs(ev_type_get(a->type, got, i) - value[i]);
        assert_true(isfinite(error));
        errors += error * error;
        wanted += value[i] * value[i];
        scaled = fmax(scaled, scale[i] > 0 ? error / (0x1p-24 * sqrt(depth) * scale[i]) : 0);
    }
    double limit = in->t->tolerance.scaled_max;
    if (sqrt(errors) > in->t->tolerance.relative_l2 * sqrt(wanted) || (limit > 0 && scaled > limit))
        fail_msg("%s, %s, %s, %s: relative error %g, scaled %g", in->t->name, start->name,
                 in->c->name, a->name, sqrt(errors / wanted), scaled);
}

static void check_case(const task *t, const task_start *start, const vm_module *module,
                       const task_case *c) {
    const vm_entry *entry = vm_module_find(module, launch_plan_entry(start->plan));
    assert_non_null(entry);
    task_inputs in = task_inputs_make(t, c);
    laid_out l = lay_out(&in, entry);
    launch(&in, start, module, entry, &l);
    for (size_t i = 0; i < t->argument_count && t->oracle != NULL; i++) {
        if (t->arguments[i].kind != TASK_OUT && t->arguments[i].kind != TASK_INOUT)
            continue;
        double *value = calloc(in.arguments[i].count, sizeof *value);
        double *scale = calloc(in.arguments[i].count, sizeof *scale);
        assert_true(value != NULL && scale != NULL);
        compare(&in, start, &l, i, value, scale);
        free(value);
        free(scale);
    }
    vm_memory_free(l.memory);
    free(l.addresses);
    free(l.params);
    task_inputs_free(&in);
}

static void check_task(const char *name) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    for (size_t s = 0; s < t->start_count; s++) {
        vm_module *module = cuda_build(t->starts[s].source);
        for (size_t c = 0; c < t->case_count; c++) {
            if (t->cases[c].use != TASK_TIME)
                check_case(t, &t->starts[s], module, &t->cases[c]);
        }
        vm_module_free(module);
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
