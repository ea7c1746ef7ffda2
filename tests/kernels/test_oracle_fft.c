/* The oracle of rfft2d against transforms of rows, then of columns, in long double; that a
 * transform of a single number is that number turned; and what the oracle refuses. The oracle of
 * irfft2d against inverses of single numbers, those of fft_conv2d_any and its gradients against
 * sums over all pixels of a map, with filters of any size and of 5 x 5. */
#include "tests/kernels/task_inputs.h"

#include <math.h>

enum { MOST = 32 };

typedef struct number {
    long double re, im;
} number;

/* One line of `tile` numbers, each `step` behind the one before. */
static void transform(number *line, uint64_t tile, uint64_t step) {
    number to[MOST];
    for (uint64_t k = 0; k < tile; k++) {
        to[k] = (number){0, 0};
        for (uint64_t i = 0; i < tile; i++) {
            long double angle = -2 * acosl(-1) * (long double)(k * i % tile) / (long double)tile;
            long double c = cosl(angle), s = sinl(angle);
            number v = line[i * step];
            to[k].re += v.re * c - v.im * s;
            to[k].im += v.im * c + v.re * s;
        }
    }
    for (uint64_t k = 0; k < tile; k++)
        line[k * step] = to[k];
}

/* Tile `x`, row after row, and the sum of its numbers' sizes. */
static long double transform_tile(const float *x, uint64_t tile, number *to) {
    long double size = 0;
    for (uint64_t i = 0; i < tile * tile; i++) {
        to[i] = (number){(long double)x[i], 0};
        size += fabsl(to[i].re);
    }
    for (uint64_t y = 0; y < tile; y++)
        transform(to + y * tile, tile, 1);
    for (uint64_t u = 0; u < tile; u++)
        transform(to + u, tile, tile);
    return size;
}

static void check_case(const task *t, const task_case *c) {
    task_inputs in = task_inputs_make(t, c);
    size_t output = task_inputs_index(&in, "S");
    const float *x = in.arguments[task_inputs_index(&in, "X")].data;
    uint64_t tile = 1U << (unsigned)in.arguments[task_inputs_index(&in, "levels")].value;
    uint64_t row = tile + 2, of_tile = tile * row, count = in.arguments[output].count;
    double *value = calloc(count, sizeof *value), *scale = calloc(count, sizeof *scale);
    assert_true(value != NULL && scale != NULL && tile <= MOST && count % of_tile == 0);
    /* In two parts that end within a tile. */
    task_inputs_ask(&in, output, 0, count - 7, value, scale);
    task_inputs_ask(&in, output, count - 7, 7, value + count - 7, scale + count - 7);
    for (uint64_t i = 0; i < count; i += of_tile) {
        number want[MOST * MOST];
        long double size = transform_tile(x + i / of_tile * tile * tile, tile, want);
        for (uint64_t k = 0; k < of_tile; k++) {
            const number *z = &want[k / row * tile + k % row / 2];
            long double right = k % 2 == 0 ? z->re : z->im;
            assert_true(fabsl((long double)scale[i + k] - size) <= 1e-12L * size);
            if (!(fabsl((long double)value[i + k] - right) <= 1e-14L * size))
                fail_msg("%s[%llu]: %.17g, not %.17Lg", c->name, (unsigned long long)(i + k),
                         value[i + k], right);
        }
    }
    free(value);
    free(scale);
    task_inputs_free(&in);
}

static task *open_named(const char *name) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    return t;
}

static task *open_task(void) {
    return open_named("rfft2d");
}

static void test_rfft2d(void **state) {
    (void)state;
    task *t = open_task();
    size_t checked = 0;
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use != TASK_TIME) {
            check_case(t, &t->cases[i]);
            checked++;
        }
    }
    assert_true(checked >= 8);
    task_free(t);
}

/* A 1 at row 1 and column 0 is exp(-2 pi i u / tile) in row u of the spectrum. */
static void test_sign(void **state) {
    (void)state;
    task *t = open_task();
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    evoke_argument *a = &in.arguments[task_inputs_index(&in, "X")];
    float *x = (float *)(uintptr_t)a->data;
    memset(x, 0, a->count * sizeof *x);
    x[8] = 1;
    double value[4] = {0}, scale[4] = {0};
    /* Row 2 of 8, a quarter around: -i in all columns. */
    task_inputs_ask(&in, task_inputs_index(&in, "S"), 20, 4, value, scale);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fabs(value[i] - (i % 2 == 0 ? 0.0 : -1.0)) < 1e-15);
        assert_true(fabs(scale[i] - 1) < 1e-15);
    }
    task_inputs_free(&in);
    task_free(t);
}

static void test_refused(void **state) {
    (void)state;
    task *t = open_task();
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    double value = 0, scale = 0;
    evoke_oracle_call call = {.arguments = in.arguments,
                              .argument_count = 1,
                              .count = 1,
                              .value = &value,
                              .scale = &scale};
    assert_int_not_equal(t->oracle(&call), 0);
    call.argument_count = t->argument_count;
    assert_int_equal(t->oracle(&call), 0);
    in.arguments[task_inputs_index(&in, "levels")].value = 6;
    assert_int_not_equal(t->oracle(&call), 0);
    in.arguments[task_inputs_index(&in, "levels")].value = 2;
    assert_int_not_equal(t->oracle(&call), 0);
    task_inputs_free(&in);
    task_free(t);
}

/* The tile of 8 x 8 whose spectrum has one number, 1 or i, at row u and column v. */
static void check_number(const task_inputs *in, size_t u, size_t v, size_t part) {
    const evoke_argument *a = &in->arguments[task_inputs_index(in, "S")];
    float *S = (float *)(uintptr_t)a->data;
    double value[64] = {0}, scale[64] = {0}, times = v == 0 || v == 4 ? 1 : 2;
    memset(S, 0, a->count * sizeof *S);
    S[10 * u + 2 * v + part] = 1;
    task_inputs_ask(in, task_inputs_index(in, "X"), 0, 64, value, scale);
    for (size_t e = 0; e < 64; e++) {
        size_t row = e / 8, eighths = u * row + v * (e % 8);
        double angle = acos(-1) / 4 * (double)eighths;
        double want = times * (part == 0 ? cos(angle) : -sin(angle)) / 64;
        assert_true(fabs(value[e] - want) < 1e-15);
        assert_true(fabs(scale[e] - times / 64) < 1e-15);
    }
}

static void test_inverse(void **state) {
    (void)state;
    task *t = open_named("irfft2d");
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    for (size_t u = 0; u < 8; u++) {
        for (size_t v = 0; v < 5; v++) {
            check_number(&in, u, v, 0);
            check_number(&in, u, v, 1);
        }
    }
    in.arguments[task_inputs_index(&in, "levels")].value = 6;
    double value = 0, scale = 0;
    evoke_oracle_call call = {.arguments = in.arguments,
                              .argument_count = t->argument_count,
                              .count = 1,
                              .value = &value,
                              .scale = &scale};
    assert_int_not_equal(t->oracle(&call), 0);
    task_inputs_free(&in);
    task_free(t);
}

/* Element `at` of Y: of each input map, all pixels that lie in the window. */
static long double convolved(const task_inputs *in, uint64_t at) {
    const float *X = floats(in, "X");
    const float *F = floats(in, "F");
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), r = whole(in, "filter");
    uint64_t H = whole(in, "height"), W = whole(in, "width"), map = at / (H - r + 1) / (W - r + 1);
    uint64_t y = at / (W - r + 1) % (H - r + 1), x = at % (W - r + 1);
    long double sum = 0;
    for (uint64_t k = 0; k < C * H * W; k++) {
        uint64_t c = k / W / H, i = k / W % H - y, j = k % W - x; /* wrapped around below 0 */
        if (i < r && j < r)
            sum += (long double)X[map / O * C * H * W + k] *
                   (long double)F[((map % O * C + c) * r + i) * r + j];
    }
    return sum;
}

/* Rows and columns of a filter; tasks without the argument have 5 x 5. */
static uint64_t filter_size(const task_inputs *in) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        if (strcmp(in->t->arguments[i].name, "filter") == 0)
            return whole(in, "filter");
    }
    return 5;
}

/* Element `at` of dX: of the gradient of each output map, all pixels whose window has it. */
static long double data_gradient(const task_inputs *in, uint64_t at) {
    const float *dY = floats(in, "dY");
    const float *F = floats(in, "F");
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), r = filter_size(in);
    uint64_t H = whole(in, "height"), W = whole(in, "width"), map = at / H / W;
    uint64_t rows = H - r + 1, columns = W - r + 1, y = at / W % H, x = at % W;
    long double sum = 0;
    for (uint64_t k = 0; k < O * rows * columns; k++) {
        uint64_t o = k / columns / rows;
        uint64_t i = y - k / columns % rows, j = x - k % columns; /* wrapped around below 0 */
        if (i < r && j < r)
            sum += (long double)dY[map / C * O * rows * columns + k] *
                   (long double)F[((o * C + map % C) * r + i) * r + j];
    }
    return sum;
}

/* Element `at` of dF: of all images, the pixels of the input that a window has at that place. */
static long double filter_gradient(const task_inputs *in, uint64_t at) {
    const float *X = floats(in, "X");
    const float *dY = floats(in, "dY");
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), r = filter_size(in);
    uint64_t H = whole(in, "height"), W = whole(in, "width"), map = at / r / r;
    uint64_t rows = H - r + 1, columns = W - r + 1;
    long double sum = 0;
    for (uint64_t k = 0; k < whole(in, "images") * H * W; k++) {
        uint64_t n = k / W / H, y = k / W % H, x = k % W;
        uint64_t u = y - at / r % r, v = x - at % r; /* wrapped around below 0 */
        if (u < rows && v < columns)
            sum += (long double)X[((n * C + map % C) * H + y) * W + x] *
                   (long double)dY[((n * O + map / C) * rows + u) * columns + v];
    }
    return sum;
}

static void check_convolution(const char *name, const char *output_name,
                              long double (*right)(const task_inputs *, uint64_t)) {
    task *t = open_named(name);
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use == TASK_TIME)
            continue;
        task_inputs in = task_inputs_make(t, &t->cases[i]);
        size_t output = task_inputs_index(&in, output_name);
        for (uint64_t at = 0; at < in.arguments[output].count; at++) {
            double value[1] = {0}, scale[1] = {0};
            task_inputs_ask(&in, output, at, 1, value, scale);
            assert_true(scale[0] * (1 + 1e-9) >= fabs(value[0]));
            long double off = fabsl((long double)value[0] - right(&in, at));
            if (!(off <= 1e-14L * (long double)scale[0]))
                fail_msg("%s, %s: %s[%llu] is off by %Lg", name, t->cases[i].name, output_name,
                         (unsigned long long)at, off);
        }
        evoke_oracle_call call = {.arguments = in.arguments, .argument_count = 1, .count = 1};
        assert_int_not_equal(t->oracle(&call), 0);
        task_inputs_free(&in);
    }
    task_free(t);
}

static void test_fft_conv2d_any(void **state) {
    (void)state;
    check_convolution("fft_conv2d_any", "Y", convolved);
}

static void test_data_gradients(void **state) {
    (void)state;
    check_convolution("fft_conv2d_any_bp_data", "dX", data_gradient);
    check_convolution("fft_conv2d_bp_data", "dX", data_gradient);
}

static void test_filter_gradients(void **state) {
    (void)state;
    check_convolution("fft_conv2d_any_bp_filter", "dF", filter_gradient);
    check_convolution("fft_conv2d_bp_filter", "dF", filter_gradient);
}

/* A filter that is larger than the map, or none. */
static void test_refused_filters(void **state) {
    (void)state;
    static const char *const names[] = {"fft_conv2d_any", "fft_conv2d_any_bp_data",
                                        "fft_conv2d_any_bp_filter"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        task *t = open_named(names[i]);
        task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
        double value = 0, scale = 0;
        evoke_oracle_call call = {.arguments = in.arguments,
                                  .argument_count = t->argument_count,
                                  .count = 1,
                                  .value = &value,
                                  .scale = &scale};
        assert_int_equal(t->oracle(&call), 0);
        evoke_argument *filter = &in.arguments[task_inputs_index(&in, "filter")];
        filter->value = 6;
        assert_int_not_equal(t->oracle(&call), 0);
        filter->value = 0;
        assert_int_not_equal(t->oracle(&call), 0);
        task_inputs_free(&in);
        task_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfft2d),           cmocka_unit_test(test_sign),
        cmocka_unit_test(test_refused),          cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_fft_conv2d_any),   cmocka_unit_test(test_data_gradients),
        cmocka_unit_test(test_filter_gradients), cmocka_unit_test(test_refused_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
