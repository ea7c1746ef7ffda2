/* Element types: the table, every 16-bit float, the rounding of both, and saturation. */
#include "base/divisor.h"
#include "base/type_range.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/pcg.h"

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < EV_TYPE_COUNT; i++) {
        ev_type found = EV_TYPE_COUNT;
        assert_true(ev_type_find(ev_type_name((ev_type)i), &found));
        assert_int_equal(found, i);
    }
    ev_type untouched = EV_F64;
    assert_false(ev_type_find("f80", &untouched));
    assert_int_equal(untouched, EV_F64);
    assert_int_equal(ev_type_bytes(EV_BF16), 2);
    assert_int_equal(ev_type_bytes(EV_U64), 8);
    assert_true(ev_type_is_float(EV_F16));
    assert_false(ev_type_is_float(EV_S16));
}

static double f16_by_definition(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double size = fraction * 0x1p-24;
    if (exponent == 31)
        size = fraction == 0 ? INFINITY : NAN;
    else if (exponent != 0)
        size = (1 + fraction / 1024) * pow(2, exponent - 15);
    return bits >> 15 ? -size : size;
}

static double bf16_by_definition(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16; /* a bf16 is the upper half of an f32 */
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static bool same_double(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

/* Every pattern widens as defined and comes back as itself (a NaN as some NaN). */
static void check_all_patterns(ev_type type, double (*defined)(uint16_t)) {
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        uint16_t from = (uint16_t)bits, back = 0;
        double value = ev_type_get(type, &from, 0);
        assert_true(same_double(value, defined(from)));
        ev_type_set(type, &back, 0, value);
        if (isnan(value))
            assert_true(isnan(ev_type_get(type, &back, 0)));
        else
            assert_int_equal(back, from);
    }
}

static void test_every_f16(void **state) {
    (void)state;
    check_all_patterns(EV_F16, f16_by_definition);
}

static void test_every_bf16(void **state) {
    (void)state;
    check_all_patterns(EV_BF16, bf16_by_definition);
}

/* Between each two neighbours: the midpoint goes to the even one, and a hair beside it to the
 * nearer. The hair is one unit of a double, so a second rounding through f32 would show. */
static void check_midpoints(ev_type type, uint16_t largest) {
    for (uint32_t bits = 0; bits < largest; bits++) {
        uint16_t low = (uint16_t)bits, high = (uint16_t)(bits + 1), got = 0;
        double middle = (ev_type_get(type, &low, 0) + ev_type_get(type, &high, 0)) / 2;
        ev_type_set(type, &got, 0, middle);
        assert_int_equal(got, bits & 1 ? high : low);
        ev_type_set(type, &got, 0, nextafter(middle, 0));
        assert_int_equal(got, low);
        ev_type_set(type, &got, 0, -nextafter(middle, INFINITY));
        assert_int_equal(got, high | 0x8000);
    }
}

static void test_midpoints(void **state) {
    (void)state;
    check_midpoints(EV_F16, 0x7bff);
    check_midpoints(EV_BF16, 0x7f7f);
}

static uint16_t stored16(ev_type type, double value) {
    uint16_t bits = 0;
    ev_type_set(type, &bits, 0, value);
    return bits;
}

static void test_float_ends(void **state) {
    (void)state;
    assert_int_equal(stored16(EV_F16, 65519.99), 0x7bff);
    assert_int_equal(stored16(EV_F16, 65520), 0x7c00); /* the midpoint above the largest */
    assert_int_equal(stored16(EV_F16, -1e300), 0xfc00);
    assert_int_equal(stored16(EV_F16, INFINITY), 0x7c00);
    assert_int_equal(stored16(EV_F16, 0x1p-25), 0);
    assert_int_equal(stored16(EV_F16, nextafter(0x1p-25, 1)), 1);
    assert_int_equal(stored16(EV_F16, -0.0), 0x8000);
    assert_int_equal(stored16(EV_F16, 5e-324), 0);
    assert_int_equal(stored16(EV_BF16, 0x1.ffp127), 0x7f80);
    assert_int_equal(stored16(EV_BF16, 3.38e38), 0x7f7e);
    assert_int_equal(stored16(EV_BF16, 0x1p-134), 0);
    assert_int_equal(stored16(EV_BF16, 0x1p-133), 1);
    assert_int_equal(stored16(EV_BF16, 1.00390625), 0x3f80); /* 1 + 2^-8: ties to even */
    /* 1 + 2^-8 + 2^-30 rounds up in one step, and to even by way of f32 */
    assert_int_equal(stored16(EV_BF16, 1.00390625 + 0x1p-30), 0x3f81);
}

#if defined(__FLT16_MAX__) && defined(__SSE2__)
/* The compiler's own conversion, over random doubles spread across the exponents of f16. */
static void test_against_compiler(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(16, 16);
    for (int i = 0; i < 1000000; i++) {
        double value = ldexp(ev_pcg_unit(&rng) * 2 - 1, 18 - (int)ev_pcg_below(&rng, 46));
        _Float16 expected = (_Float16)value;
        uint16_t bits = 0;
        memcpy(&bits, &expected, sizeof bits);
        assert_int_equal(stored16(EV_F16, value), bits);
    }
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        uint16_t from = (uint16_t)bits;
        _Float16 half;
        memcpy(&half, &from, sizeof half);
        assert_true(same_double(ev_type_get(EV_F16, &from, 0), (double)half));
    }
}
#else
static void test_against_compiler(void **state) {
    (void)state;
    skip(); /* this compiler has no _Float16 */
}
#endif

static double stored(ev_type type, double value) {
    unsigned char room[8];
    memset(room, 0xa5, sizeof room);
    ev_type_set(type, room, 0, value);
    for (size_t i = ev_type_bytes(type); i < sizeof room; i++)
        assert_int_equal(room[i], 0xa5);
    return ev_type_get(type, room, 0);
}

static void test_integers(void **state) {
    (void)state;
    static const struct {
        ev_type type;
        double least, largest;
    } rows[] = {
        {EV_U8, 0, 255},         {EV_S8, -128, 127},        {EV_U16, 0, 65535},
        {EV_S16, -32768, 32767}, {EV_U32, 0, 4294967295u},  {EV_S32, -2147483648.0, 2147483647},
        {EV_U64, 0, 0x1p64},     {EV_S64, -0x1p63, 0x1p63},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_type type = rows[i].type;
        assert_true(stored(type, 1e30) == rows[i].largest);
        assert_true(stored(type, INFINITY) == rows[i].largest);
        assert_true(stored(type, -1e30) == rows[i].least);
        assert_true(stored(type, -INFINITY) == rows[i].least);
        assert_true(stored(type, NAN) == 0);
        assert_true(stored(type, 77) == 77);
        assert_true(stored(type, 2.5) == 2);
        assert_true(stored(type, 3.5) == 4);
        assert_true(stored(type, -1) == (rows[i].least < 0 ? -1 : 0));
    }
    int64_t low = 0;
    ev_type_set(EV_S64, &low, 0, -1e30);
    assert_true(low == INT64_MIN);
    uint64_t high = 0;
    ev_type_set(EV_U64, &high, 0, 1e30);
    assert_true(high == UINT64_MAX);
}

static void test_wide_floats(void **state) {
    (void)state;
    float singles[3] = {0, 0, 0};
    ev_type_set(EV_F32, singles, 1, 0.1);
    assert_true(singles[1] == 0.1f);
    assert_true(singles[0] == 0 && singles[2] == 0);
    assert_true(ev_type_get(EV_F32, singles, 1) == (double)0.1f);
    double doubles[2] = {0, 0};
    ev_type_set(EV_F64, doubles, 1, 0.1);
    assert_true(ev_type_get(EV_F64, doubles, 1) == 0.1);
}

static void test_ulp(void **state) {
    (void)state;
    assert_true(ev_type_ulp(EV_S32, 1e9) == 1);
    assert_true(ev_type_ulp(EV_F32, 1) == 0x1p-23);
    assert_true(ev_type_ulp(EV_F32, -1.99) == 0x1p-23);
    assert_true(ev_type_ulp(EV_F32, 0) == 0x1p-149);
    assert_true(ev_type_ulp(EV_F32, INFINITY) == 0x1p104);
    assert_true(ev_type_ulp(EV_F16, 1024) == 1);
    assert_true(ev_type_ulp(EV_F16, 1e9) == 32);
    assert_true(ev_type_ulp(EV_F16, 1e-9) == 0x1p-24);
    assert_true(ev_type_ulp(EV_BF16, 1) == 0x1p-7);
    assert_true(ev_type_ulp(EV_F64, 1) == 0x1p-52);
    assert_true(isnan(ev_type_ulp(EV_F32, NAN)));
}

static void test_divisors(void **state) {
    (void)state;
    assert_int_equal(ev_divisor(0, 0), 0);
    assert_int_equal(ev_divisor(0, 7), 7);
    assert_int_equal(ev_divisor(84, 36), 12);
    assert_true(ev_divisor(UINT64_MAX, UINT64_C(1) << 63) == 1);
    assert_int_equal(ev_divisor_signed(-84, 36), 12);
    assert_int_equal(ev_divisor_signed(0, -5), 5);
    assert_true(ev_divisor_signed(-INT64_MAX, 0) == INT64_MAX);
}

static void test_ranges(void **state) {
    (void)state;
    for (int type = 0; type < EV_TYPE_COUNT; type++) {
        double largest = ev_type_largest((ev_type)type), room = 0;
        ev_type_set((ev_type)type, &room, 0, largest);
        assert_true(ev_type_get((ev_type)type, &room, 0) == largest ||
                    ev_type_bytes((ev_type)type) == 8);
        if (!ev_type_is_float((ev_type)type))
            continue;
        assert_true(ev_type_ulp((ev_type)type, largest) == ev_type_ulp((ev_type)type, INFINITY));
        assert_true(isfinite(largest) && ilogb(largest) == ev_type_most_exponent((ev_type)type));
    }
    assert_true(ev_type_largest(EV_F16) == 65504 && ev_type_largest(EV_U8) == 255);
    assert_true(ev_type_largest(EV_S16) == 32767 && ev_type_largest(EV_BF16) == 0x1.fep127);
    assert_int_equal(ev_type_least_exponent(EV_F16), -14);
    assert_int_equal(ev_type_least_exponent(EV_BF16), -126);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divisors),   cmocka_unit_test(test_table),
        cmocka_unit_test(test_ranges),     cmocka_unit_test(test_every_f16),
        cmocka_unit_test(test_every_bf16), cmocka_unit_test(test_midpoints),
        cmocka_unit_test(test_float_ends), cmocka_unit_test(test_against_compiler),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_wide_floats),
        cmocka_unit_test(test_ulp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
