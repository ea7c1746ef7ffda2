/* The oracles of data gradients of 3 x 3 convolutions: sums by hand; every check case of their
 * tasks, against a sum over the pixels of dY in long double; that zeros are where the mask is off
 * or no pixel of dY is live, and nowhere else; and that missing arguments are refused. */
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

/* Whether element `at` is one that a mask makes zero; a task without a mask has none. */
static bool is_masked(const task_inputs *in, uint64_t at) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        if (strcmp(in->t->arguments[i].name, "X") == 0)
            return !(floats(in, "X")[at] > 0);
    }
    return false;
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
        if (is_masked(&in, at)) {
            assert_true(value[at] == 0 && scale[at] == 0);
            continue;
        }
        assert_true((value[at] != 0) == (size > 0));
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

/* Two output channels of a map of 2 x 2, by hand. The filter of the first is 1 to 9, so the pixels
 * have the weights 5 4 2 1, 6 5 3 2, 8 7 5 4 and 9 8 6 5 in the four sums; that of the second is 10
 * everywhere, which adds 10 (1 + 2) to each. */
static void check_by_hand(const task *t) {
    static const float dY[] = {10, 1, 0, 0, -1, 2, 100, 0}, X[] = {1, 1, 1, 1};
    static const float W[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    static const double want[] = {178, 287, 505, 614}, sizes[] = {182, 293, 515, 626};
    const evoke_argument arguments[] = {
        {.name = "dY", .type = "f32", .count = 8, .data = dY},
        {.name = "W", .type = "f32", .count = 18, .data = W},
        {.name = "X", .type = "f32", .count = 4, .data = X},
        {.name = "dX", .type = "f32", .count = 4},
        {.name = "outputs", .type = "s32", .value = 2},
        {.name = "channels", .type = "s32", .value = 1},
        {.name = "side", .type = "s32", .value = 2},
    };
    double value[4] = {0}, scale[4] = {0};
    evoke_oracle_call call = {.arguments = arguments,
                              .argument_count = sizeof arguments / sizeof arguments[0],
                              .output = 3,
                              .count = 4,
                              .value = value,
                              .scale = scale};
    assert_int_equal(t->oracle(&call), 0);
    for (int i = 0; i < 4; i++)
        assert_true(value[i] == want[i] && scale[i] == sizes[i]);
}

static void check_task(const char *name, size_t least) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    check_by_hand(t);
    size_t checked = 0;
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use != TASK_TIME) {
            check_case(t, &t->cases[i]);
            checked++;
        }
    }
    assert_true(checked >= least);
    task_free(t);
}

static void test_bp_data_masked_conv(void **state) {
    (void)state;
    check_task("bp_data_masked_conv", 12);
}

static void test_bp_data_input_sparse_conv(void **state) {
    (void)state;
    check_task("bp_data_input_sparse_conv", 14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bp_data_masked_conv),
        cmocka_unit_test(test_bp_data_input_sparse_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
