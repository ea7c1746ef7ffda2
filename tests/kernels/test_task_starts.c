/* Every start of the shipped tasks and the examples, in the virtual machine under all its checks,
 * on every smoke and check case, against the task's oracle. */
#include "tests/kernels/cuda_build.h"
#include "tests/kernels/task_run.h"

#include <math.h>

/* A 16-bit output is a float's sum, rounded once and to the nearest: within half a unit of the
 * oracle's value, and what a sum of `depth` terms in float is wrong by. */
static void check_rounding(const task_inputs *in, const task_start *start, const task_argument *a,
                           const void *got, double depth, const double *value,
                           const double *scale) {
    for (uint64_t i = 0; i < in->arguments[a - in->t->arguments].count; i++) {
        double error = fabs(ev_type_get(a->type, got, i) - value[i]);
        double limit = ev_type_ulp(a->type, value[i]) / 2 + depth * ev_type_ulp(EV_F32, scale[i]);
        if (error > limit)
            fail_msg("%s, %s, %s, %s[%" PRIu64 "]: wrong by %g, where rounding allows %g",
                     in->t->name, start->name, in->c->name, a->name, i, error, limit);
    }
}

static void compare(const task_inputs *in, const task_start *start, const task_run *run,
                    size_t output, double *value, double *scale) {
    const task_argument *a = &in->t->arguments[output];
    uint64_t count = in->arguments[output].count;
    void *got = task_run_output(in, run, output);
    double depth = 1, errors = 0, wanted = 0, scaled = 0;
    double unit = ev_type_ulp(a->type, 1) / 2;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_depth_of(in->t, in->c, &depth, &err));
    task_inputs_ask(in, output, 0, count, value, scale);
    for (uint64_t i = 0; i < count; i++) {
        double error = fabs(ev_type_get(a->type, got, i) - value[i]);
        assert_true(isfinite(error));
        errors += error * error;
        wanted += value[i] * value[i];
        scaled = fmax(scaled, scale[i] > 0 ? error / (unit * sqrt(depth) * scale[i]) : 0);
    }
    if (ev_type_bytes(a->type) == 2)
        check_rounding(in, start, a, got, depth, value, scale);
    free(got);
    double limit = in->t->tolerance.scaled_max;
    if (sqrt(errors) > in->t->tolerance.relative_l2 * sqrt(wanted) || (limit > 0 && scaled > limit))
        fail_msg("%s, %s, %s, %s: relative error %g, scaled %g", in->t->name, start->name,
                 in->c->name, a->name, sqrt(errors / wanted), scaled);
}

static void check_case(const task *t, const task_start *start, const vm_module *module,
                       const task_case *c) {
    task_inputs in = task_inputs_make(t, c);
    task_run run = task_run_make(&in, start, module, 7);
    if (!run.result.ok)
        fail_msg("%s, %s, %s: %s", t->name, start->name, c->name, run.result.trap.message);
    for (size_t i = 0; i < t->argument_count && t->oracle != NULL; i++) {
        if (t->arguments[i].kind != TASK_OUT && t->arguments[i].kind != TASK_INOUT)
            continue;
        double *value = calloc(in.arguments[i].count, sizeof *value);
        double *scale = calloc(in.arguments[i].count, sizeof *scale);
        assert_true(value != NULL && scale != NULL);
        compare(&in, start, &run, i, value, scale);
        free(value);
        free(scale);
    }
    task_run_free(&run);
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

static void test_shipped(void **state) {
    (void)state;
    each_shipped_task(check_task);
}

static void test_examples(void **state) {
    (void)state;
    check_task("examples/rmsnorm/task.json");
    check_task("examples/softmax/task.json");
    check_task("examples/matmul/task.json");
    check_task("examples/rownorm/task.json");
    check_task("examples/conv2d/task.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
