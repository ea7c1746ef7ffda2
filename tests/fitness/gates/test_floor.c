/* The floor of a case: by what the task declares and the GPU's numbers, part by part. */
#include "fitness/gates/floor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

static int set_up(void **state) {
    gpu *g = NULL;
    OK(gpu_load("h200", &g, &err));
    *state = g;
    return 0;
}

static int tear_down(void **state) {
    gpu_free(*state);
    return 0;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* 4,554 GB/s, a launch of 3.13 us. */
static void bytes_bound(void **state) {
    task_amounts work = {.is_declared = true, .bytes = 4554e3};
    case_floor floor = floor_of(*state, &work);
    assert_true(is_near(floor.ns, 3130 + 1000));
    assert_true(is_near(floor.launch_ns, 3130));
    assert_string_equal(floor.bound_by, "DRAM");
    work.operations[TASK_UNIT_F32] = 1; /* next to nothing beside the bytes: parts overlap */
    assert_true(floor_of(*state, &work).ns == floor.ns);
}

/* 132 SMs at 1.98 GHz: so many lanes of each unit. */
static void operations_bound(void **state) {
    static const struct {
        task_unit unit;
        double lanes;
        const char *name;
    } rows[] = {
        {TASK_UNIT_F32, 128, "f32"},
        {TASK_UNIT_F64, 64, "f64"},
        {TASK_UNIT_F16, 256, "f16"},
        {TASK_UNIT_SPECIAL, 16, "special"},
        {TASK_UNIT_INT_ADD, 64, "int_add"},
        {TASK_UNIT_INT_MUL, 64, "int_mul"},
        {TASK_UNIT_SHIFT, 64, "shift"},
        {TASK_UNIT_COMPARE, 64, "compare"},
        {TASK_UNIT_LOGIC, 64, "logic"},
        {TASK_UNIT_CLZ, 16, "clz"},
        {TASK_UNIT_POPC, 16, "popc"},
        {TASK_UNIT_TENSOR_F16, 2048, "tensor_f16"},
        {TASK_UNIT_TENSOR_TF32, 1024, "tensor_tf32"},
        {TASK_UNIT_TENSOR_F64, 128, "tensor_f64"},
    };
    assert_int_equal(sizeof rows / sizeof rows[0], TASK_UNIT_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        task_amounts work = {.is_declared = true, .bytes = 100};
        work.operations[rows[i].unit] = 132 * 1.98 * rows[i].lanes * 5000;
        case_floor floor = floor_of(*state, &work);
        assert_true(is_near(floor.ns, 3130 + 5000));
        assert_string_equal(floor.bound_by, rows[i].name);
    }
}

/* Without a declaration there is no floor; a unit that the GPU lacks counts nothing. */
static void not_known(void **state) {
    task_amounts work = {.is_declared = false};
    assert_true(floor_of(*state, &work).ns == 0);
    gpu *old = NULL;
    OK(gpu_load("p100", &old, &err));
    assert_true(gpu_get(old, GPU_TENSOR) == 0);
    work = (task_amounts){.is_declared = true};
    work.operations[TASK_UNIT_TENSOR_F16] = 1e12;
    case_floor floor = floor_of(old, &work);
    assert_true(floor.ns == floor.launch_ns && floor.ns > 0);
    gpu_free(old);
}

/* ar_adam at 2^20 parameters and 4 ranks: 14.0 us of bytes, and a launch. */
static void of_a_shipped_task(void **state) {
    (void)state;
    task *t = NULL;
    device *d = NULL;
    fitness *f = NULL;
    case_floor floor;
    OK(task_open("ar_adam", &t, &err));
    OK(device_open("vm:h200", &d, &err));
    OK(fitness_open(t, d, NULL, &f, &err));
    OK(fitness_floor(f, task_find_case(t, "coconet.2p20-p4"), &floor, &err));
    assert_true(is_near(floor.ns, 3130 + 52.0 * 1048576 / 4554));
    fitness_close(f);
    device_close(d);
    task_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_bound), cmocka_unit_test(operations_bound),
        cmocka_unit_test(not_known), cmocka_unit_test(of_a_shipped_task)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
