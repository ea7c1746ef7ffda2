/* Buffers with contents, and the difference of two launches' outputs, on the stand-in for the
 * driver. */
#include "base/cuda/driver.h"
#include "base/type.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N 128

static cu_driver cu;
static CUcontext context;
static evoke_number number = {"N", N};
static const evoke_shape shape = {&number, 1};
static evoke_error error;

#define OK(call) assert_int_equal((call), 0)
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        if ((call) != EVOKE_OK)                                                                    \
            fail_msg("%s", error.text);                                                            \
    } while (0)

static int open_all(void **state) {
    ev_error err = {0};
    if (sample_make_folder(state) != 0 || sample_write(sample_path("b.tar"), &err) != EV_OK ||
        cu_driver_find(&cu, &err) != EV_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS;
}

static evoke_bundle *open_sample(const char *name, evoke_choice *choice) {
    evoke_bundle *b = NULL;
    evoke_gpu gpu;
    char text[256];
    GOOD(evoke_bundle_open(sample_path(name), &b, &error));
    GOOD(evoke_gpu_current(&gpu, text, &error));
    GOOD(evoke_bundle_resolve(b, "add", &gpu, &shape, 0, choice, &error));
    return b;
}

static void read_back(const evoke_buffer *from, float *to) {
    assert_int_equal(from->bytes, N * sizeof *to);
    OK(cu.cuMemcpyDtoH_v2(to, from->address, from->bytes));
}

/* Adds the argument's name to a text, and fills with 1, 2, ... */
static void count_up(void *text, const evoke_argument *a, void *data, size_t bytes) {
    (void)strcat(text, a->name); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): 2 letters */
    for (size_t i = 0; i < bytes / a->element_bytes; i++)
        ((float *)data)[i] += (float)(i + 1); /* of zeros */
}

static void buffers_get_contents(void **state) {
    (void)state;
    evoke_choice c;
    evoke_bundle *b = open_sample("b.tar", &c);
    evoke_buffer own[2], given[3];
    float x[N], y[N];
    char names[8] = "";
    size_t count = 0, zeros = 0, different = 0;
    GOOD(evoke_variant_allocate(c.variant, &shape, NULL, NULL, 2, own, &count, &error));
    assert_int_equal(count, 2);
    read_back(&own[0], x);
    read_back(&own[1], y);
    assert_memory_equal(x, y, sizeof x);
    for (size_t i = 0; i < N; i++) {
        assert_true(x[i] >= -0.5f && x[i] < 0.5f);
        zeros += x[i] == 0;
        different += i > 1 && x[i] != x[1];
    }
    assert_true(zeros >= N / 3 && zeros < N / 2 && different > N / 2);
    GOOD(evoke_variant_allocate(c.variant, &shape, count_up, names, 3, given, &count, &error));
    assert_string_equal(names, "xy");
    read_back(&given[1], y);
    assert_true(y[0] == 1 && y[N - 1] == N);
    GOOD(evoke_buffers_free(own, 2, &error));
    assert_true(own[0].address == 0 && own[1].address == 0);
    GOOD(evoke_buffers_free(own, 2, &error)); /* nothing is left to free */
    given[1].address += 4;
    assert_int_equal(evoke_buffers_free(given, 2, &error), EVOKE_INFRA);
    assert_true(given[0].address == 0 && strstr(error.text, "cuMemFree") != NULL);
    evoke_bundle_close(b);
}

static void integers_count_up(void **state) {
    (void)state;
    static const bundle_argument arguments[] = {
        {"x", "in", "u8", "300", 0, false, 0, 0, NULL, NULL, false},
        {"y", "out", "f16", "N", 0, false, 0, 0, NULL, NULL, false}};
    ev_error err = {0};
    evoke_choice c;
    evoke_buffer buffers[2];
    unsigned char x[300];
    uint16_t y[N];
    size_t count = 0;
    sample s;
    sample_fill(&s);
    s.kernel.arguments = arguments;
    s.kernel.argument_count = 2;
    if (bundle_write(sample_path("types.tar"), &s.content, &err) != EV_OK)
        fail_msg("%s", err.text);
    evoke_bundle *b = open_sample("types.tar", &c);
    GOOD(evoke_variant_allocate(c.variant, &shape, NULL, NULL, 2, buffers, &count, &error));
    OK(cu.cuMemcpyDtoH_v2(x, buffers[0].address, sizeof x));
    OK(cu.cuMemcpyDtoH_v2(y, buffers[1].address, sizeof y));
    assert_true(x[0] == 0 && x[1] == 1 && x[255] == 255 && x[299] == 255);
    assert_true(fabs(ev_type_get(EV_F16, y, 1)) > 0 && fabs(ev_type_get(EV_F16, y, 1)) <= 0.5);
    GOOD(evoke_buffers_free(buffers, count, &error));
    evoke_bundle_close(b);
}

static void launch(const evoke_variant *v, evoke_buffer *buffers) {
    const float shift[2] = {0, 7};
    size_t count = 0;
    GOOD(evoke_variant_allocate(v, &shape, NULL, NULL, 2, buffers, &count, &error));
    GOOD(evoke_variant_fill(v, "shift", &shape, shift, sizeof shift, &error));
    GOOD(evoke_variant_launch(v, &shape, buffers, count, NULL, &error));
}

static double difference_with(const evoke_variant *v, const evoke_buffer *got,
                              const evoke_buffer *want, const float *y) {
    evoke_difference d;
    OK(cu.cuMemcpyHtoD_v2(got[1].address, y, N * sizeof *y));
    GOOD(evoke_variant_compare(v, got, want, 2, &d, &error));
    return d.relative;
}

static void outputs_are_compared(void **state) {
    (void)state;
    evoke_choice c;
    evoke_bundle *b = open_sample("b.tar", &c);
    evoke_buffer got[2], want[2];
    evoke_difference d;
    float y[N];
    launch(c.variant, got);
    launch(c.variant, want);
    OK(cu.cuMemsetD8_v2(got[0].address, 0, 4)); /* an input is not compared */
    GOOD(evoke_variant_compare(c.variant, got, want, 2, &d, &error));
    assert_true(d.relative == 0 && d.elements == N && d.norm > 0);
    sample s;
    sample_fill(&s);
    assert_true(d.tolerance == s.variant.tolerance && d.tolerance > 0);
    read_back(&want[1], y);
    double norm = 0, last = y[N - 1];
    for (size_t i = 0; i < N; i++)
        norm += (double)y[i] * y[i];
    assert_true(fabs(d.norm - sqrt(norm)) < 1e-12 * d.norm);
    y[N - 1] = (float)last + 1;
    double off = (double)y[N - 1] - last;
    assert_true(fabs(difference_with(c.variant, got, want, y) - off / d.norm) < 1e-12);
    y[N - 1] = NAN;
    assert_true(isinf(difference_with(c.variant, got, want, y)));
    /* Both then have it. */
    assert_true(difference_with(c.variant, want, got, y) == 0); /* NOLINT: swapped on purpose */
    y[N - 1] = INFINITY;
    assert_true(isinf(difference_with(c.variant, got, want, y)));
    OK(cu.cuMemsetD8_v2(want[1].address, 0, want[1].bytes));
    memset(y, 0, sizeof y);
    assert_true(difference_with(c.variant, got, want, y) == 0);
    y[0] = 1;
    assert_true(isinf(difference_with(c.variant, got, want, y)));
    GOOD(evoke_variant_compare(c.variant, got, want, 2, &d, &error));
    assert_true(d.norm == 0);
    GOOD(evoke_buffers_free(got, 2, &error));
    GOOD(evoke_buffers_free(want, 2, &error));
    evoke_bundle_close(b);
}

static void bad_calls_are_refused(void **state) {
    (void)state;
    evoke_choice c;
    evoke_bundle *b = open_sample("b.tar", &c);
    evoke_buffer got[2], want[2] = {{7, 8}, {7, 8}};
    evoke_difference d = {.norm = -1};
    evoke_shape none = {NULL, 0};
    size_t count = 9;
    assert_int_equal(evoke_variant_allocate(c.variant, &shape, NULL, NULL, 1, want, &count, &error),
                     EVOKE_BAD);
    assert_string_equal(error.text, "add takes 2 buffers, and there is room for 1");
    assert_int_equal(evoke_variant_allocate(c.variant, &none, NULL, NULL, 2, want, &count, &error),
                     EVOKE_BAD);
    assert_non_null(strstr(error.text, "the shape lacks 'N'"));
    OK(cu.cuCtxSetCurrent(NULL));
    assert_int_equal(evoke_variant_allocate(c.variant, &shape, NULL, NULL, 2, want, &count, &error),
                     EVOKE_INFRA);
    assert_non_null(strstr(error.text, "add, argument x: cuMemAlloc"));
    OK(cu.cuCtxSetCurrent(context));
    assert_true(count == 9 && want[0].address == 7 && want[1].bytes == 8);
    launch(c.variant, got);
    launch(c.variant, want);
    assert_int_equal(evoke_variant_compare(c.variant, got, want, 1, &d, &error), EVOKE_BAD);
    assert_string_equal(error.text, "add takes 2 buffers, and 1 are given");
    want[1].bytes -= 4;
    assert_int_equal(evoke_variant_compare(c.variant, got, want, 2, &d, &error), EVOKE_BAD);
    assert_string_equal(error.text, "add: the two buffers of 'y' have 512 and 508 bytes");
    want[1].bytes += 4;
    GOOD(evoke_buffers_free(want, 2, &error));
    assert_int_equal(evoke_variant_compare(c.variant, got, want, 2, &d, &error), EVOKE_INFRA);
    assert_true(d.norm == -1);
    GOOD(evoke_buffers_free(got, 2, &error));
    evoke_bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_get_contents), cmocka_unit_test(integers_count_up),
        cmocka_unit_test(outputs_are_compared), cmocka_unit_test(bad_calls_are_refused)};
    return cmocka_run_group_tests(tests, open_all, sample_remove_folder);
}
