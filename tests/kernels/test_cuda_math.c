/* The mathematics of evoke_cuda.h, run in the virtual machine, against double precision: the errors
 * that the header promises, and what comes of zeros, infinities and NaN. */
#include "base/type.h"
#include "tests/kernels/cuda_build.h"

#include <math.h>
#include <stdint.h>

#define COUNT 60000

typedef double exact(double x);

static double exact_sinpi(double x) {
    double r = fmod(x, 2.0);
    if (r == rint(r))
        return 0.0;
    return sin(3.14159265358979323846 * r);
}

static double exact_cospi(double x) {
    double r = fabs(fmod(x, 2.0));
    if (r == 0.5 || r == 1.5)
        return 0.0;
    return cos(3.14159265358979323846 * r);
}

static double exact_rsqrt(double x) {
    return 1.0 / sqrt(x);
}

static double exact_exp10(double x) {
    return pow(10.0, x);
}

static double exact_fmod(double x) {
    return fmod(x, (double)0.7f);
}

static double exact_fmod_turned(double x) {
    return fmod((double)1e30f, x);
}

/* Arguments: `each` over a range, or all magnitudes of both signs (spread over the exponents). */
typedef struct range {
    double low, high;
    bool by_exponent;
} range;

typedef struct row {
    const char *entry;
    exact *want;
    double ulps;
    range arguments[4];
} row;

static const row ROWS[] = {
    {"map_expf", exp, 3, {{-104, 89, false}, {-1, 1, false}, {1e-30, 1e2, true}}},
    {"map_exp2f", exp2, 3, {{-126, 127.9, false}, {-1, 1, false}}},
    {"map_logf", log, 3, {{0.5, 2, false}, {0.99, 1.01, false}, {1e-44, 3e38, true}}},
    {"map_log2f", log2, 3, {{0.5, 2, false}, {0.99, 1.01, false}, {1e-44, 3e38, true}}},
    {"map_tanhf", tanh, 3, {{-1, 1, false}, {-12, 12, false}, {1e-40, 1e3, true}}},
    {"map_sinf", sin, 3, {{-10, 10, false}, {-8200, 8200, false}, {1e-38, 3e38, true}}},
    {"map_cosf", cos, 3, {{-10, 10, false}, {-8200, 8200, false}, {1e-38, 3e38, true}}},
    {"map_sinpif", exact_sinpi, 3, {{-3, 3, false}, {-1e5, 1e5, false}, {1e-37, 1e7, true}}},
    {"map_cospif", exact_cospi, 3, {{-3, 3, false}, {-1e5, 1e5, false}, {1e-37, 1e7, true}}},
    {"map_exp10f", exact_exp10, 2, {{-37, 38, false}, {-1, 1, false}, {-44, -37, false}}},
    {"map_log10f", log10, 2, {{0.5, 2, false}, {0.99, 1.01, false}, {1e-44, 3e38, true}}},
    {"map_tanf", tan, 4, {{-10, 10, false}, {-8200, 8200, false}, {1e-38, 3e38, true}}},
    {"map_fmodf", exact_fmod, 0, {{-10, 10, false}, {1e-44, 3e38, true}}},
    {"map_fmodf_turned", exact_fmod_turned, 0, {{1e-44, 3e38, true}}},
    {"map_roundf", round, 0, {{-10, 10, false}, {1e-44, 3e38, true}}},
    {"map_sqrtf", sqrt, 0.5, {{0, 100, false}, {1e-44, 3e38, true}}},
    {"map_rsqrtf", exact_rsqrt, 2, {{0.25, 4, false}, {1e-37, 3e38, true}}},
};

static float argument(const range *r, unsigned i) {
    double at = (double)((i * 2654435761u) >> 2) / 0x1p30; /* in [0, 1), well spread */
    if (!r->by_exponent)
        return (float)(r->low + (r->high - r->low) * at);
    return (float)exp(log(r->low) + (log(r->high) - log(r->low)) * at);
}

/* y = f(x) for all of x. */
static void map(const vm_module *module, const char *name, const float *x, float *y, uint32_t n) {
    ev_error err = {EV_OK, ""};
    const vm_entry *entry = vm_module_find(module, name);
    vm_memory *memory = NULL;
    uint64_t in = 0, out = 0;
    assert_non_null(entry);
    if (vm_memory_new(1u << 30, &memory, &err) != EV_OK ||
        vm_memory_alloc(memory, n * sizeof *x, VM_BUFFER_IN, "x", &in, &err) != EV_OK ||
        vm_memory_alloc(memory, n * sizeof *y, VM_BUFFER_OUT, "y", &out, &err) != EV_OK)
        fail_msg("%s", err.text);
    memcpy(vm_memory_host(memory, in), x, n * sizeof *x);
    unsigned char params[64] = {0};
    memcpy(params + entry->params[0].offset, &in, sizeof in);
    memcpy(params + entry->params[1].offset, &out, sizeof out);
    memcpy(params + entry->params[2].offset, &n, sizeof n);
    cuda_run(memory, module, entry, params, n, name);
    memcpy(y, vm_memory_host(memory, out), n * sizeof *y);
    vm_memory_free(memory);
}

/* A float's unit in the last place at |value|; of the smallest subnormal below the normal numbers.
 */
static double ulp_at(double value) {
    int exponent = 0;
    (void)frexp(value, &exponent);
    return ldexp(1.0, exponent < -125 ? -149 : exponent - 24);
}

static void check_row(const vm_module *module, const row *r, const range *arguments) {
    static float x[COUNT], y[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        x[i] = argument(arguments, i);
    map(module, r->entry, x, y, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        double want = r->want((double)x[i]);
        if (fabs(want) > 3.4028234e38)
            continue; /* the edge cases look at these */
        double error = fabs((double)y[i] - want) / ulp_at(want);
        if (!(error <= r->ulps + 1e-6))
            fail_msg("%s(%.9g) is %.9g, not %.9g: %.2f ulp", r->entry, (double)x[i], (double)y[i],
                     want, error);
    }
}

static void test_errors(void **state) {
    const vm_module *module = *state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        for (size_t k = 0; k < 4 && ROWS[i].arguments[k].high > 0; k++)
            check_row(module, &ROWS[i], &ROWS[i].arguments[k]);
    }
}

static void test_edges(void **state) {
    const float inf = INFINITY, nan = NAN;
    static const char *const all[] = {"map_expf", "map_logf", "map_log2f",  "map_tanhf",
                                      "map_sinf", "map_cosf", "map_sinpif", "map_cospif"};
    const struct {
        const char *entry;
        float x, want;
    } rows[] = {
        {"map_expf", inf, inf},   {"map_expf", -inf, 0},   {"map_expf", 200, inf},
        {"map_expf", -200, 0},    {"map_expf", 0, 1},      {"map_logf", 0, -inf},
        {"map_logf", -1, nan},    {"map_logf", inf, inf},  {"map_logf", 1, 0},
        {"map_log2f", 8, 3},      {"map_log2f", 0, -inf},  {"map_tanhf", inf, 1},
        {"map_tanhf", -inf, -1},  {"map_tanhf", 0, 0},     {"map_sinf", inf, nan},
        {"map_cosf", -inf, nan},  {"map_sinf", 0, 0},      {"map_cosf", 0, 1},
        {"map_sinpif", 0.5f, 1},  {"map_sinpif", 1, 0},    {"map_cospif", 0.5f, 0},
        {"map_cospif", 1, -1},    {"map_cospif", 3e9f, 1}, {"map_sinpif", inf, nan},
        {"map_sinpif", -1.5f, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float y = 0;
        map(*state, rows[i].entry, &rows[i].x, &y, 1);
        bool same = isnan(rows[i].want) ? isnan(y) : y == rows[i].want;
        if (!same)
            fail_msg("%s(%g) is %g, not %g", rows[i].entry, (double)rows[i].x, (double)y,
                     (double)rows[i].want);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        float y = 0;
        map(*state, all[i], &nan, &y, 1);
        assert_true(isnan(y));
    }
}

enum { GROUPED = 1000 };

static void test_groups_and_halves(void **state) {
    (void)state;
    static float x[GROUPED], y[GROUPED];
    vm_module *module = cuda_build("tests/kernels/cuda_groups.cu");
    for (int i = 0; i < GROUPED; i++)
        x[i] = (float)(i % 13) / 4.0f; /* sums and squares are halves */
    map(module, "map_tile", x, y, GROUPED);
    for (int i = 0; i < GROUPED; i++) {
        int tile = i % 256 / 8;
        float want = 1000.0f * (float)(i % 8) + 100000.0f * (float)tile;
        for (int k = i / 8 * 8; k < i / 8 * 8 + 8 && k < GROUPED; k++)
            want += x[k];
        assert_true(y[i] == want);
    }
    map(module, "map_half", x, y, GROUPED);
    for (int i = 0; i < GROUPED; i++) {
        float pair = (x[i] * x[i] + 0.25f) + (x[i] + 0.25f);
        assert_true(y[i] == (x[i] > 1.0f ? x[i] + x[i] * x[i] : pair));
    }
    map(module, "map_brain", x, y, GROUPED);
    for (int i = 0; i < GROUPED; i++) /* 1/3 to 8 bits is 171/512; quarters have few bits */
        assert_true(y[i] == (x[i] > 0 ? 2 * x[i] + 171 / 256.0f : -171 / 512.0f));
    for (int i = 0; i < GROUPED; i++)
        x[i] = 1 + (float)(i % 128) / 128; /* all digits of a bfloat16 */
    map(module, "map_fused", x, y, GROUPED);
    for (int i = 0; i < GROUPED; i++) {
        uint16_t square = 0;
        ev_type_set(EV_BF16, &square, 0, (double)x[i] * x[i]);
        assert_true(y[i] == x[i] * x[i] - (float)ev_type_get(EV_BF16, &square, 0));
    }
    static const char *const doubled[] = {"map_cached", "map_shuffled"};
    for (size_t k = 0; k < 2; k++) {
        map(module, doubled[k], x, y, GROUPED);
        for (int i = 0; i < GROUPED; i++)
            assert_true(y[i] == 2 * x[i]);
    }
    vm_module_free(module);
}

static int set_up(void **state) {
    *state = cuda_build("tests/kernels/cuda_math.cu");
    return 0;
}

static int tear_down(void **state) {
    vm_module_free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_groups_and_halves),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
