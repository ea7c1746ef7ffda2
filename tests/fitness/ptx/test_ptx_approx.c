/* Approximate instructions over their range, against the C library in long double, within the
 * bounds that the PTX ISA 8.5 states (sections 9.7.3 and 9.7.4). Half precision is swept whole.
 * Each of vm_approx is swept: the nearest results, and those that are off, which have to use their
 * bound.
 *
 * Special values (infinities, zeros, NaN, flushed subnormals) are goldens of their own:
 * tests/fitness/ptx/goldens_function.txt and goldens_half.txt. */
#include "base/hash.h"
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POINTS (1u << 17)
#define BLOCK 256

#define PI 3.14159265358979323846

typedef enum format { FORMAT_F32, FORMAT_F16, FORMAT_BF16 } format;

typedef enum bound_kind {
    BOUND_ULP,      /* units in the last place of the exact result */
    BOUND_RELATIVE, /* to the exact result */
    BOUND_ABSOLUTE,
} bound_kind;

typedef enum spread {
    SPREAD_BITS,  /* evenly over the bit patterns between `low` and `high`, so over all scales */
    SPREAD_EVEN,  /* evenly over the values */
    SPREAD_WHOLE, /* each of the 65536 bit patterns */
} spread;

typedef struct approx {
    const char *name;
    format format;
    spread spread;
    double low, high;
    bool mirrored; /* also the negative ones */
    bound_kind kind;
    double bound;
    long double (*exact)(long double a, long double b);
} approx;

static long double exact_rcp(long double a, long double b) {
    return (void)b, 1 / a;
}
static long double exact_sqrt(long double a, long double b) {
    return (void)b, sqrtl(a);
}
static long double exact_rsqrt(long double a, long double b) {
    return (void)b, 1 / sqrtl(a);
}
static long double exact_ex2(long double a, long double b) {
    return (void)b, exp2l(a);
}
static long double exact_lg2(long double a, long double b) {
    return (void)b, log2l(a);
}
static long double exact_sin(long double a, long double b) {
    return (void)b, sinl(a);
}
static long double exact_cos(long double a, long double b) {
    return (void)b, cosl(a);
}
static long double exact_tanh(long double a, long double b) {
    return (void)b, tanhl(a);
}
static long double exact_div(long double a, long double b) {
    return a / b;
}

#define LEAST 0x1p-126
#define LARGEST 0x1.fffffep127
static const approx rows[] = {
    {"rcp.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, true, BOUND_ULP, 1, exact_rcp},
    {"rcp.approx.ftz.f32", FORMAT_F32, SPREAD_BITS, LEAST, 0x1p126, true, BOUND_ULP, 1, exact_rcp},
    {"sqrt.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, false, BOUND_RELATIVE, 0x1p-23,
     exact_sqrt},
    {"sqrt.approx.ftz.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, false, BOUND_RELATIVE, 0x1p-23,
     exact_sqrt},
    {"rsqrt.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, false, BOUND_RELATIVE,
     0x1.125fbep-23 /* 2^-22.9 */, exact_rsqrt},
    {"rsqrt.approx.ftz.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, false, BOUND_RELATIVE,
     0x1.125fbep-23, exact_rsqrt},
    {"ex2.approx.f32", FORMAT_F32, SPREAD_EVEN, -149, 128, false, BOUND_ULP, 2, exact_ex2},
    {"ex2.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, 1, true, BOUND_ULP, 2, exact_ex2},
    {"ex2.approx.ftz.f32", FORMAT_F32, SPREAD_EVEN, -126, 127.99, false, BOUND_ULP, 2, exact_ex2},
    {"lg2.approx.f32", FORMAT_F32, SPREAD_EVEN, 0.5, 2, false, BOUND_ABSOLUTE, 0x1p-22, exact_lg2},
    {"lg2.approx.f32", FORMAT_F32, SPREAD_BITS, 2, LARGEST, false, BOUND_RELATIVE, 0x1p-22,
     exact_lg2},
    {"lg2.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, 0.5, false, BOUND_RELATIVE, 0x1p-22,
     exact_lg2},
    {"lg2.approx.ftz.f32", FORMAT_F32, SPREAD_BITS, LEAST, 0.5, false, BOUND_RELATIVE, 0x1p-22,
     exact_lg2},
    {"sin.approx.f32", FORMAT_F32, SPREAD_EVEN, 0, 2 * PI, true, BOUND_ABSOLUTE,
     0x1.6a09e6p-21 /* 2^-20.5 */, exact_sin},
    {"sin.approx.ftz.f32", FORMAT_F32, SPREAD_EVEN, 0, 100 * PI, true, BOUND_ABSOLUTE,
     0x1.3b2c46p-15 /* 2^-14.7 */, exact_sin},
    {"cos.approx.f32", FORMAT_F32, SPREAD_EVEN, 0, 2 * PI, true, BOUND_ABSOLUTE, 0x1.6a09e6p-21,
     exact_cos},
    {"cos.approx.ftz.f32", FORMAT_F32, SPREAD_EVEN, 0, 100 * PI, true, BOUND_ABSOLUTE,
     0x1.3b2c46p-15, exact_cos},
    {"tanh.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, 100, true, BOUND_RELATIVE, 0x1p-11,
     exact_tanh},
    {"div.approx.f32", FORMAT_F32, SPREAD_BITS, LEAST, 0x1p126, true, BOUND_ULP, 2, exact_div},
    {"div.full.f32", FORMAT_F32, SPREAD_BITS, LEAST, LARGEST, true, BOUND_ULP, 2, exact_div},
    {"ex2.approx.f16", FORMAT_F16, SPREAD_WHOLE, 0, 0, false, BOUND_RELATIVE,
     0x1.125fbep-10 /* 2^-9.9 */, exact_ex2},
    {"ex2.approx.ftz.bf16", FORMAT_BF16, SPREAD_WHOLE, 0, 0, false, BOUND_RELATIVE, 0x1p-7,
     exact_ex2},
    {"tanh.approx.f16", FORMAT_F16, SPREAD_WHOLE, 0, 0, false, BOUND_ABSOLUTE,
     0x1.0251p-11 /* 2^-10.987 */, exact_tanh},
    {"tanh.approx.bf16", FORMAT_BF16, SPREAD_WHOLE, 0, 0, false, BOUND_ABSOLUTE, 0x1p-8,
     exact_tanh},
};

/* ---- formats */

/* Fraction bits and the least normal exponent. */
static const struct {
    int width, fraction, least, most;
} formats[] = {
    [FORMAT_F32] = {8, 23, -126, 127},
    [FORMAT_F16] = {5, 10, -14, 15},
    [FORMAT_BF16] = {8, 7, -126, 127},
};

static double value_of(uint32_t bits, format f) {
    int fraction = formats[f].fraction, width = formats[f].width;
    uint32_t part = bits & ((1u << fraction) - 1);
    int exponent = (int)(bits >> fraction & ((1u << width) - 1));
    double sign = bits >> (fraction + width) & 1 ? -1 : 1;
    if (exponent == (1 << width) - 1)
        return part ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(part, formats[f].least - fraction);
    return sign *
           ldexp((double)(part | 1u << fraction), exponent - 1 + formats[f].least - fraction);
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- points */

/* The `i`-th of POINTS steps through the row's range, by a walk that meets every region early. */
static uint32_t point(const approx *r, uint32_t i, uint32_t step) {
    if (r->spread == SPREAD_WHOLE)
        return i & 0xffff;
    uint32_t at = i * step % POINTS; /* step is odd: a permutation */
    uint32_t sign = r->mirrored && i & 1 ? 0x80000000u : 0;
    if (r->spread == SPREAD_EVEN) {
        double x = r->low + (r->high - r->low) * at / (POINTS - 1);
        return bits_of((float)x) | sign;
    }
    uint64_t low = bits_of((float)r->low), high = bits_of((float)r->high);
    return (uint32_t)(low + (high - low) * at / (POINTS - 1)) | sign;
}

/* ---- one sweep */

static char *module_text(const approx *r) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    unsigned width = r->format == FORMAT_F32 ? 32 : 16;
    fprintf(
        f,
        ".version 8.5\n.target sm_90\n.address_size 64\n"
        ".visible .entry sweep(.param .u64 first, .param .u64 second, .param .u64 result)\n{\n"
        ".reg .b32 %%i<4>; .reg .b64 %%p<4>; .reg .b%u %%a, %%b, %%d;\n"
        "mov.u32 %%i1, %%ctaid.x;\nmov.u32 %%i2, %%tid.x;\nmad.lo.u32 %%i1, %%i1, %d, %%i2;\n"
        "ld.param.u64 %%p1, [first];\nld.param.u64 %%p2, [second];\nld.param.u64 %%p3, [result];\n"
        "mad.wide.u32 %%p1, %%i1, 4, %%p1;\nmad.wide.u32 %%p2, %%i1, 4, %%p2;\n"
        "mad.wide.u32 %%p3, %%i1, 4, %%p3;\n"
        "ld.global.b%u %%a, [%%p1];\nld.global.b%u %%b, [%%p2];\n%s %%d, %%a%s;\n"
        "st.global.b%u [%%p3], %%d;\nret;\n}\n",
        width, BLOCK, width, width, r->name, r->exact == exact_div ? ", %b" : "", width);
    fclose(f);
    return text;
}

static double error_of(const approx *r, long double exact, double got) {
    int fraction = formats[r->format].fraction, exponent = 0;
    long double limit = ldexpl(2 - ldexpl(1, -fraction - 1), formats[r->format].most);
    if (isnan(got) || isinf(got)) /* right where the exact result rounds to it */
        return isinf(got) && fabsl(exact) >= limit && (got > 0) == (exact > 0) ? 0 : INFINITY;
    long double far = fabsl(got - exact);
    (void)frexpl(exact, &exponent);
    int least = formats[r->format].least;
    long double unit = ldexpl(1, (exponent - 1 > least ? exponent - 1 : least) - fraction);
    if (r->kind == BOUND_ULP)
        return (double)(far / unit);
    if (r->kind == BOUND_ABSOLUTE || far == 0)
        return (double)far;
    if (fabsl(exact) < ldexpl(1, least)) /* no relative error below the normal numbers */
        return far <= unit || got == 0 ? 0 : INFINITY;
    return (double)(far / fabsl(exact));
}

typedef struct sweep_errors {
    double most;    /* the largest, in the unit of the row's bound */
    uint32_t worst; /* where */
    uint32_t above, below;
} sweep_errors;

static sweep_errors errors_of(const approx *r, const uint32_t *a, const uint32_t *b,
                              const uint32_t *d) {
    sweep_errors e = {0};
    for (uint32_t i = 0; i < POINTS; i++) {
        double x = value_of(a[i], r->format), y = value_of(b[i], r->format);
        if (!isfinite(x))
            continue; /* goldens */
        long double exact = r->exact(x, y);
        uint32_t mask = r->format == FORMAT_F32 ? UINT32_MAX : 0xffff;
        double got = value_of(d[i] & mask, r->format), error = error_of(r, exact, got);
        e.above += got > exact;
        e.below += got < exact;
        if (error > e.most) {
            e.most = error;
            e.worst = i;
        }
    }
    return e;
}

/* What is off has to show it, or no gate would see an approximation: most of the bound is used, to
 * both sides. */
static void check_errors(const approx *r, vm_approx with, const sweep_errors *e, const uint32_t *a,
                         const uint32_t *b, const uint32_t *d) {
    print_message("%-22s %u: %.3g of %.3g\n", r->name, with, e->most, r->bound);
    if (!(e->most <= r->bound))
        fail_msg("%s of %08x (and %08x) gives %08x: error %g, allowed %g", r->name, a[e->worst],
                 b[e->worst], d[e->worst], e->most, r->bound);
    if (with == VM_APPROX_NEAREST)
        return;
    assert_true(e->most > 0.7 * r->bound);
    assert_true(e->above > POINTS / 16 && e->below > POINTS / 16);
}

/* A hash of the results. */
static uint64_t sweep(const approx *r, const vm_module *module, vm_memory *memory, vm_approx with) {
    uint64_t params[3];
    ev_error err = {0};
    vm_memory_clear(memory);
    assert_int_equal(
        vm_memory_alloc(memory, (uint64_t)POINTS * 4, VM_BUFFER_IN, "first", &params[0], &err),
        EV_OK);
    assert_int_equal(
        vm_memory_alloc(memory, (uint64_t)POINTS * 4, VM_BUFFER_IN, "second", &params[1], &err),
        EV_OK);
    assert_int_equal(
        vm_memory_alloc(memory, (uint64_t)POINTS * 4, VM_BUFFER_OUT, "result", &params[2], &err),
        EV_OK);
    uint32_t *a = vm_memory_host(memory, params[0]), *b = vm_memory_host(memory, params[1]);
    for (uint32_t i = 0; i < POINTS; i++) {
        a[i] = point(r, i, 1);
        b[i] = point(r, i, 40503); /* another order, so that scales meet */
    }
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "sweep"),
                        .grid = {POINTS / BLOCK, 1, 1},
                        .block = {BLOCK, 1, 1},
                        .approx = with,
                        .params = params};
    vm_result result = {0};
    assert_int_equal(vm_run(memory, &launch, &result, &err), EV_OK);
    if (!result.ok)
        fail_msg("%s: %s", r->name, result.trap.message);
    const uint32_t *d = vm_memory_host(memory, params[2]);
    sweep_errors errors = errors_of(r, a, b, d);
    check_errors(r, with, &errors, a, b, d);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < POINTS; i++)
        hash = ev_mix64(hash ^ d[i]);
    return hash;
}

static void test_sweep(void **state) {
    const approx *r = *state;
    char *text = module_text(r);
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    ev_error err = {0};
    if (vm_module_load(text, strlen(text), "sweep.ptx", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_memory_new(1u << 26, &memory, &err), EV_OK);
    uint64_t first[VM_APPROX_COUNT] = {0};
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(module, isa);
        for (unsigned with = 0; with < VM_APPROX_COUNT; with++) {
            uint64_t hash = sweep(r, module, memory, (vm_approx)with);
            first[with] = isa == 0 ? hash : first[with];
            assert_true(first[with] == hash); /* the same bits from each instruction set */
        }
    }
    assert_true(first[VM_APPROX_WORST] != first[VM_APPROX_TURNED]);
    vm_memory_free(memory);
    vm_module_free(module);
    free(text);
}

int main(void) {
    struct CMUnitTest tests[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_sweep,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
