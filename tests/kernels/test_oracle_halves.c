/* Oracles of 16-bit floats: elements as the kernel's type holds them, the same sums as of the same
 * numbers in f32, and a scale that holds below the least normal number of the output's type. */
#include "tests/kernels/task_inputs.h"

#include <math.h>

/* An oracle in C sees each element as the kernel's type holds it. */
static void test_elements(void **state) {
    (void)state;
    for (int type = 0; type < EV_TYPE_COUNT; type++) {
        size_t bytes = ev_type_bytes((ev_type)type), count = bytes == 1 ? 256 : 65536;
        unsigned char *data = malloc(count * bytes);
        assert_non_null(data);
        for (uint64_t i = 0; i < count; i++) { /* every pattern of up to 16 bits */
            uint64_t bits = bytes > 2 ? i * UINT64_C(0x9e3779b97f4a7c15) : i;
            memcpy(data + i * bytes, &bits, bytes);
        }
        const evoke_argument a = {.name = "x", .type = ev_type_name((ev_type)type), .data = data};
        for (uint64_t i = 0; i < count; i++) {
            double got = evoke_element(&a, i), want = ev_type_get((ev_type)type, data, i);
            if (got != want && !(isnan(got) && isnan(want)))
                fail_msg("%s, element %llu: %a is not %a", a.type, (unsigned long long)i, got,
                         want);
            assert_true(isnan(want) || signbit(got) == signbit(want));
        }
        free(data);
    }
    const evoke_argument scalar = {.name = "s", .type = "f32", .value = 2};
    assert_true(isnan(evoke_element(&scalar, 0)));
}

/* First rounded to the 16 bits of a type, then as f32 again. */
static void *halve(evoke_argument *a, ev_type type) {
    float *single = (float *)(uintptr_t)a->data;
    void *half = malloc(a->count * 2);
    assert_non_null(half);
    for (uint64_t i = 0; i < a->count; i++) {
        ev_type_set(type, half, i, (double)single[i]);
        single[i] = (float)ev_type_get(type, half, i);
    }
    return half;
}

/* The same numbers in 16 bits give the same sums. */
static void compare_halves(const task *t, ev_type type) {
    static const char *const names[] = {"dY", "W", "X"};
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    size_t output = task_inputs_index(&in, "dX");
    uint64_t count = in.arguments[output].count;
    double *wide = calloc(count, sizeof *wide), *half = calloc(count, sizeof *half);
    double *scale = calloc(count, sizeof *scale);
    void *halves[3];
    for (size_t k = 0; k < 3; k++)
        halves[k] = halve(&in.arguments[task_inputs_index(&in, names[k])], type);
    task_inputs_ask(&in, output, 0, count, wide, scale);
    for (size_t k = 0; k < 3; k++) {
        evoke_argument *a = &in.arguments[task_inputs_index(&in, names[k])];
        free((void *)(uintptr_t)a->data);
        a->data = halves[k];
        a->type = ev_type_name(type);
    }
    task_inputs_ask(&in, output, 0, count, half, scale);
    for (uint64_t i = 0; i < count; i++)
        assert_true(half[i] == wide[i]);
    free(wide);
    free(half);
    free(scale);
    task_inputs_free(&in);
}

static void test_half_inputs(void **state) {
    (void)state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open("bp_data_masked", &t, &err));
    compare_halves(t, EV_F16);
    compare_halves(t, EV_BF16);
    task_free(t);
}

/* Scales of dX where all gradients are zero: `least` at kept neurons, and exactly zero at others.
 */
static void check_least(const char *name, double least) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    evoke_argument *dG = &in.arguments[task_inputs_index(&in, "dG")];
    size_t output = task_inputs_index(&in, "dX");
    uint64_t count = in.arguments[output].count, kept = 0;
    double *value = calloc(count, sizeof *value), *scale = calloc(count, sizeof *scale);
    memset((void *)(uintptr_t)dG->data, 0, dG->count * (strcmp(dG->type, "f16") == 0 ? 2 : 4));
    task_inputs_ask(&in, output, 0, count, value, scale);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(value[i] == 0 && (scale[i] == 0 || scale[i] == least));
        kept += scale[i] == least;
    }
    assert_int_equal(kept, least > 0 ? whole(&in, "B") * whole(&in, "k") : count);
    free(value);
    free(scale);
    task_inputs_free(&in);
    task_free(t);
}

/* A subnormal half is rounded by half a unit of the least normal one, however small it is. */
static void test_least(void **state) {
    (void)state;
    check_least("sd_lstm_bp_data_f16", 0x1p-14);
    check_least("sd_lstm_bp_data", 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_half_inputs),
        cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
