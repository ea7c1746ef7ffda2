/* The oracle of bp_data_masked_conv on every check case of its task, against a sum over the pixels
 * of dY in long double; that zeros are where the mask is off, and nowhere else; and that missing
 * arguments are refused. */
#include "tests/kernels/task_inputs.h"

#include <math.h>

/* Element `at` of dX, and in `size` the sum of the terms' sizes: of all pixels of the image, those
 * of dY that the forward pass makes from this one. */
static long double gradient(const task_inputs *in, uint64_t at, long double *size) {
    const float *dY = floats(in, "dY"), *W = floats(in, "W");
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), S = whole(in, "side");
    uint64_t c = at % C, x = at / C % S, y = at / C / S % S, n = at / C / S / S;
    long double sum = 0;
    *size = 0;
    for (uint64_t pixel = 0; pixel < S * S; pixel++) {
        uint64_t r = y + 1 - pixel / S, s = x + 1 - pixel % S; /* wrapped around below 0 */
        for (uint64_t k = 0; k < O && r < 3 && s < 3; k++) {
            long double term = (long double)dY[(n * S * S + pixel) * O + k] *
                               (long double)W[((k * 3 + r) * 3 + s) * C + c];
            sum += term;
            *size += fabsl(term);
        }
    }
    return sum;
}

static void check_case(const task *t, const task_case *c) {
    task_inputs in = task_inputs_make(t, c);
    size_t output = task_inputs_index(&in, "dX");
    uint64_t count = in.arguments[output].count;
    double *value = calloc(count, sizeof *value), *scale = calloc(count, sizeof *scale);
    assert_true(value != NULL && scale != NULL);
    task_inputs_ask(&in, output, 0, count, value, scale);
    for (uint64_t at = 0; at < count; at++) {
        long double size = 0, want = gradient(&in, at, &size);
        if (!(floats(&in, "X")[at] > 0)) {
            assert_true(value[at] == 0 && scale[at] == 0);
            continue;
        }
        assert_true(value[at] != 0);
        assert_true(fabsl((long double)value[at] - want) <= 1e-15L * size);
        assert_true(fabsl((long double)scale[at] - size) <= 1e-12L * size);
        double again = 0, again_scale = 0; /* by itself, as a part of a range */
        task_inputs_ask(&in, output, at, 1, &again, &again_scale);
        assert_true(again == value[at] && again_scale == scale[at]);
    }
    evoke_oracle_call call = {.arguments = in.arguments, .argument_count = 1, .count = 1};
    assert_int_not_equal(t->oracle(&call), 0);
    free(value);
    free(scale);
    task_inputs_free(&in);
}

static void test_bp_data_masked_conv(void **state) {
    (void)state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open("bp_data_masked_conv", &t, &err));
    size_t checked = 0;
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use != TASK_TIME) {
            check_case(t, &t->cases[i]);
            checked++;
        }
    }
    assert_true(checked >= 12);
    task_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bp_data_masked_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
