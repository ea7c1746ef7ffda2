/* CUDA's mathematics as evoke_cuda.h has it, run in the virtual machine, against long double: each
 * function in both precisions over all numbers, within the errors that NVIDIA documents. The
 * virtual machine rounds ex2.approx correctly; a GPU may err by two units more there (expf, exp2f,
 * exp10f). `test_cuda_math_bounds -v` prints what was measured. */
#include "base/file.h"
#include "base/str.h"
#include "tests/kernels/cuda_build.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <unistd.h>

#define PI 3.14159265358979323846264338327950288L
#define PTXAS "/usr/local/cuda/bin/ptxas"

enum { COUNT = 12000 };

static bool verbose;

/* ---- references --------------------------------------------------------------------------------
 */

typedef long double exact(long double x, long double y);

static long double sinpil(long double x) {
    long double r = fmodl(fabsl(x), 2), sign = r >= 1 ? -1 : 1;
    r = r >= 1 ? r - 1 : r;
    r = r > 0.5L ? 1 - r : r;
    if (!isfinite(x))
        return (long double)NAN;
    if (r == 0)
        return copysignl(0, x);
    long double v = sign * (r > 0.25L ? cosl(PI * (0.5L - r)) : sinl(PI * r));
    return x < 0 ? -v : v;
}

static long double cospil(long double x) {
    long double r = fmodl(fabsl(x), 2);
    r = r > 1 ? 2 - r : r;
    long double sign = r > 0.5L ? -1 : 1;
    r = r > 0.5L ? 1 - r : r;
    if (r == 0.5L)
        return 0;
    return sign * (r < 0.25L ? cosl(PI * r) : sinl(PI * (0.5L - r)));
}

/* By bisection to a double's half, then Newton's steps on erf or erfc. */
static long double erfinvl(long double x) {
    long double a = fabsl(x), low = 0, high = 7;
    if (!(a < 1))
        return a == 1 ? copysignl(HUGE_VALL, x) : (long double)NAN;
    for (int i = 0; i < 30; i++) {
        long double middle = (low + high) / 2;
        if (a < 0.5L ? erfl(middle) > a : erfcl(middle) < 1 - a)
            high = middle;
        else
            low = middle;
    }
    long double y = a < 1e-8L ? a * sqrtl(PI) / 2 : low;
    for (int i = 0; i < 4; i++) {
        long double slope = 2 / sqrtl(PI) * expl(-y * y);
        y -= a < 0.5L ? (erfl(y) - a) / slope : (1 - a - erfcl(y)) / slope;
    }
    return copysignl(y, x);
}

static long double rsqrtl(long double x) {
    return 1 / sqrtl(x);
}

static long double exp10_of(long double x) {
    return powl(10, x);
}

/* In long double, the root would be rounded twice. */
static long double sqrt_of(long double x) {
    return (long double)sqrt((double)x);
}

#define exp10l exp10_of
#define sqrtl sqrt_of
#define ONE(name, f32, f64, low, high)                                                             \
    static long double exact_##name(long double x, long double y) {                                \
        (void)y;                                                                                   \
        return name##l(x);                                                                         \
    }
#define TWO(name, f32, f64)                                                                        \
    static long double exact_##name(long double x, long double y) {                                \
        return name##l(x, y);                                                                      \
    }
#include "kernels/include/evoke_cuda_math_bounds.def"
#undef ONE
#undef TWO

static long double exact_sincos(long double x, long double y) {
    return y < 0 ? sinl(x) : cosl(x);
}

static long double exact_kind(long double x, long double y) {
    (void)y;
    return isnan(x) ? 1 : (isinf(x) ? 2 : 3);
}

typedef struct row {
    const char *name;
    exact *want;
    double bounds[2]; /* f32, f64 */
    double low, high; /* equal: of two arguments */
} row;

static const row ROWS[] = {
#define ONE(name, f32, f64, low, high) {#name, exact_##name, {f32, f64}, low, high},
#define TWO(name, f32, f64) {#name, exact_##name, {f32, f64}, 0, 0},
#include "kernels/include/evoke_cuda_math_bounds.def"
#undef ONE
#undef TWO
    {"sincos", exact_sincos, {2, 2}, -100, 100},
    {"kind", exact_kind, {0, 0}, -1, 1},
};

/* ---- arguments ---------------------------------------------------------------------------------
 */

static uint64_t drawn = 88172645463325252u;

static uint64_t draw(void) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    return drawn ^= drawn << 17;
}

static double draw_unit(void) {
    return (double)(draw() >> 11) * 0x1p-53;
}

/* Any number of the type, of all sizes alike; never one that the type does not have. */
static double draw_any(bool is_double) {
    uint64_t bits = draw();
    if (is_double) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    uint32_t half = (uint32_t)bits;
    float x;
    memcpy(&x, &half, sizeof x);
    return (double)x;
}

static const double SPECIAL[] = {0.0,
                                 -0.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 0.5,
                                 -0.5,
                                 3,
                                 -3,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 0x1.fffffep127,
                                 -0x1.fffffep127,
                                 1.5,
                                 -1.5,
                                 2.5,
                                 7,
                                 -7,
                                 1e6,
                                 1e22,
                                 -1e22,
                                 0x1p120,
                                 16777216,
                                 8388609};
enum { SPECIALS = (int)(sizeof SPECIAL / sizeof SPECIAL[0]) };

static void arguments(const row *r, bool is_double, double *x, double *y) {
    for (int i = 0; i < COUNT; i++) {
        bool near = i % 3 != 0;
        x[i] = draw_any(is_double);
        y[i] = draw_any(is_double);
        if (r->low < r->high) {
            x[i] = near ? r->low + (r->high - r->low) * draw_unit() : x[i];
        } else if (near) { /* y within 2^40 of x, or a power that stays a number */
            x[i] = ldexp(1 + draw_unit(), (int)(draw() % 80) - 40);
            y[i] = (i % 3 == 1 ? x[i] * ldexp(draw_unit(), (int)(draw() % 80) - 40)
                               : (draw_unit() - 0.5) * (is_double ? 1400 : 180) / log(x[i]));
            x[i] = strcmp(r->name, "pow") != 0 && (draw() & 1) ? -x[i] : x[i];
        }
        if (i < SPECIALS * SPECIALS) {
            x[i] = SPECIAL[i / SPECIALS];
            y[i] = SPECIAL[i % SPECIALS];
        }
        x[i] = is_double ? x[i] : (double)(float)x[i];
        y[i] = is_double ? y[i] : (double)(float)y[i];
        if (strcmp(r->name, "lgamma") == 0 && x[i] > -11.0001 && x[i] < -2.2637)
            x[i] = 5.5;
    }
}

/* ---- a run -------------------------------------------------------------------------------------
 */

/* z = f(x, y); elements of `bytes` bytes. */
static void map(const vm_module *module, const char *name, const void *x, const void *y, void *z,
                size_t bytes) {
    ev_error err = {EV_OK, ""};
    const vm_entry *entry = vm_module_find(module, name);
    const uint32_t n = COUNT;
    vm_memory *memory = NULL;
    uint64_t at[3] = {0};
    if (entry == NULL)
        fail_msg("no kernel %s", name);
    if (vm_memory_new(1u << 30, &memory, &err) != EV_OK ||
        vm_memory_alloc(memory, n * bytes, VM_BUFFER_IN, "x", &at[0], &err) != EV_OK ||
        vm_memory_alloc(memory, n * bytes, VM_BUFFER_IN, "y", &at[1], &err) != EV_OK ||
        vm_memory_alloc(memory, n * bytes, VM_BUFFER_OUT, "z", &at[2], &err) != EV_OK)
        fail_msg("%s", err.text);
    memcpy(vm_memory_host(memory, at[0]), x, n * bytes);
    memcpy(vm_memory_host(memory, at[1]), y, n * bytes);
    unsigned char params[64] = {0};
    for (int i = 0; i < 3; i++)
        memcpy(params + entry->params[i].offset, &at[i], sizeof at[i]);
    memcpy(params + entry->params[3].offset, &n, sizeof n);
    cuda_run(memory, module, entry, params, n, name);
    memcpy(z, vm_memory_host(memory, at[2]), n * bytes);
    vm_memory_free(memory);
}

/* Numbers of the type between two results; of NaN against a number, and of zeros of two signs, more
 * than any bound. */
static double distance(double got, double want, bool is_double) {
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : HUGE_VAL;
    if (got == want)
        return signbit(got) == signbit(want) ? 0 : HUGE_VAL;
    int64_t keys[2];
    for (int i = 0; i < 2; i++) {
        double v = i == 0 ? got : want;
        float f = (float)v;
        uint32_t half = 0;
        if (is_double)
            memcpy(&keys[i], &v, sizeof v);
        else {
            memcpy(&half, &f, sizeof f);
            keys[i] = (int64_t)(half & 0x7fffffffu);
        }
        keys[i] = is_double ? (int64_t)((uint64_t)keys[i] & INT64_MAX) : keys[i];
        keys[i] = signbit(v) ? -keys[i] : keys[i];
    }
    if (signbit(got) != signbit(want))
        return HUGE_VAL;
    return fabs((double)(keys[0] - keys[1]));
}

static void check(const vm_module *module, const row *r, const char *prefix, bool is_double) {
    static double x[COUNT], y[COUNT], z[COUNT];
    static float xf[COUNT], yf[COUNT], zf[COUNT];
    char name[64];
    (void)snprintf(name, sizeof name, "%s_%s", prefix, r->name);
    arguments(r, is_double, x, y);
    for (int i = 0; i < COUNT; i++) {
        xf[i] = (float)x[i];
        yf[i] = (float)y[i];
    }
    if (is_double)
        map(module, name, x, y, z, sizeof *x);
    else
        map(module, name, xf, yf, zf, sizeof *xf);
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        long double exactly = r->want((long double)x[i], (long double)y[i]);
        double want = is_double ? (double)exactly : (double)(float)exactly;
        double got = is_double ? z[i] : (double)zf[i], far = distance(got, want, is_double);
        if (far > r->bounds[is_double])
            fail_msg("%s(%.17g, %.17g) is %.17g, not %.17g: %g ulp, above %g", name, x[i], y[i],
                     got, want, far, r->bounds[is_double]);
        worst = far > worst ? far : worst;
    }
    if (verbose)
        print_message("%-14s %2g ulp, bound %g\n", name, worst, r->bounds[is_double]);
}

static void test_bounds(void **state) {
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        check(*state, &ROWS[i], "f32", false);
        check(*state, &ROWS[i], "f64", true);
        if (ROWS[i].want != exact_sincos && ROWS[i].want != exact_kind)
            check(*state, &ROWS[i], "over", false);
    }
}

static void test_mixed(void **state) {
    static double x[COUNT], y[COUNT], z[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = 1 + i / 16.0;
        y[i] = i / 4096.0;
    }
    map(*state, "mixed", x, y, z, sizeof *x);
    for (int i = 0; i < COUNT; i++) {
        double want = x[i] * x[i] + pow(3, y[i]) + x[i] * x[i] + exp(y[i]) + exp(3);
        assert_true(fabs(z[i] - want) <= 1e-6 * want); /* exp of a float is expf */
    }
}

/* NVIDIA's assembler takes the PTX, where it is installed. */
static void test_assembles(void **state) {
    (void)state;
    if (access(PTXAS, X_OK) != 0)
        skip();
    ev_error err = {EV_OK, ""};
    ev_proc_result result;
    ev_str ptx = cuda_ptx("tests/kernels/cuda_math_bounds.cu");
    char path[] = "/tmp/evoke-math-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_true(write(file, ev_str_text(&ptx), ptx.length) == (ssize_t)ptx.length);
    (void)close(file);
    const char *const argv[] = {PTXAS, "-arch=sm_90", "-O0", "-o", "/dev/null", path, NULL};
    if (ev_proc_run(argv, NULL, 300, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    (void)unlink(path);
    if (result.exit_code != 0)
        fail_msg("%s", ev_str_text(&result.err));
    ev_proc_result_free(&result);
    ev_str_free(&ptx);
}

/* Each function of the two headers is a row of ir/math_names.def: a source that names one is
 * compiled with them. */
static void test_names(void **state) {
    (void)state;
    static const char *const rows[] = {
#define NAME(name) #name,
#include "ir/math_names.def"
#undef NAME
    };
    static const char *const headers[] = {"kernels/include/evoke_cuda_math_double.h",
                                          "kernels/include/evoke_cuda_math_special.h"};
    size_t seen = 0;
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        size_t bytes = 0;
        ev_error err = {EV_OK, ""};
        if (ev_file_read(headers[i], &text, &bytes, &err) != EV_OK)
            fail_msg("%s", err.text);
        for (char *at = strstr(text, "\nEVOKE_FN "); at; at = strstr(at + 1, "\nEVOKE_FN ")) {
            char *end = strchr(at, '('), *begin = end;
            while (begin[-1] != ' ' && begin[-1] != '*')
                begin--;
            *end = 0;
            bool listed = strncmp(begin, "evoke_", 6) == 0;
            seen += !listed;
            for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
                listed = listed || strcmp(begin, rows[k]) == 0;
            if (!listed)
                fail_msg("%s is no row of ir/math_names.def", begin);
            *end = '(';
        }
        free(text);
    }
    assert_true(seen == sizeof rows / sizeof rows[0]);
}

static int set_up(void **state) {
    *state = cuda_build("tests/kernels/cuda_math_bounds.cu");
    return 0;
}

static int tear_down(void **state) {
    vm_module_free(*state);
    return 0;
}

int main(int argc, char **argv) {
    verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_assembles),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
