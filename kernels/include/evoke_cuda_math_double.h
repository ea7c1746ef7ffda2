/* CUDA's mathematics in double precision. Included by evoke_cuda.h.
 *
 * How to read it. A value that needs more than 53 bits is a sum of two doubles (evoke_dd; Dekker
 * 1971, Knuth's two-sum). Most functions are an argument reduction, a polynomial on a short
 * interval, and a reconstruction whose last step is one addition of a large and a small part, which
 * keeps the error near half an ulp (Muller, "Elementary Functions", 3rd edition, 2016). Polynomials
 * were made for this file: Chebyshev interpolation of the function over the interval that the
 * comment names, in 160 digits, as powers, each rounded to double. Algorithms with an author are
 * cited where they stand. kernels/include/evoke_cuda_math_bounds.def has the bounds, which are
 * those of the CUDA C++ Programming Guide, appendix "Mathematical Functions".
 *
 * Products whose rounding error is needed, and products that meet a two-sum, are __dmul_rn, which
 * no compiler fuses with an addition. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_MATH_DOUBLE_H
#define KERNELS_INCLUDE_EVOKE_CUDA_MATH_DOUBLE_H

/* ---- bits, and instructions with a rounding ----------------------------------------------------
 */

EVOKE_FN long long __double_as_longlong(double x) {
    return __builtin_bit_cast(long long, x);
}
EVOKE_FN double __longlong_as_double(long long x) {
    return __builtin_bit_cast(double, x);
}
EVOKE_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return __nvvm_mulhi_ull(a, b);
}
EVOKE_FN int __double2hiint(double x) {
    return (int)(__double_as_longlong(x) >> 32);
}
EVOKE_FN int __double2loint(double x) {
    return (int)__double_as_longlong(x);
}
EVOKE_FN double __hiloint2double(int high, int low) {
    return __longlong_as_double(((long long)high << 32) | (unsigned int)low);
}
EVOKE_FN int __double2int_rn(double x) {
    return __nvvm_d2i_rn(x);
}
EVOKE_FN int __double2int_rz(double x) {
    return __nvvm_d2i_rz(x);
}
EVOKE_FN double __dadd_rn(double a, double b) {
    return __nvvm_add_rn_d(a, b);
}
EVOKE_FN double __dsub_rn(double a, double b) {
    return __nvvm_add_rn_d(a, -b);
}
EVOKE_FN double __dmul_rn(double a, double b) {
    return __nvvm_mul_rn_d(a, b);
}
EVOKE_FN double __fma_rn(double a, double b, double c) {
    return __nvvm_fma_rn_d(a, b, c);
}
EVOKE_FN double __ddiv_rn(double a, double b) {
    return __nvvm_div_rn_d(a, b);
}
EVOKE_FN double __drcp_rn(double a) {
    return __nvvm_rcp_rn_d(a);
}
EVOKE_FN double __dsqrt_rn(double a) {
    return __nvvm_sqrt_rn_d(a);
}

/* ---- polynomials -------------------------------------------------------------------------------
 */

/* EVOKE_Dn(z, c0, ..., cn-1) is c0 + z (c1 + z (...)). */
#define EVOKE_D1(z, a) (a)
#define EVOKE_D2(z, a, ...) __builtin_fma(z, EVOKE_D1(z, __VA_ARGS__), a)
#define EVOKE_D3(z, a, ...) __builtin_fma(z, EVOKE_D2(z, __VA_ARGS__), a)
#define EVOKE_D4(z, a, ...) __builtin_fma(z, EVOKE_D3(z, __VA_ARGS__), a)
#define EVOKE_D5(z, a, ...) __builtin_fma(z, EVOKE_D4(z, __VA_ARGS__), a)
#define EVOKE_D6(z, a, ...) __builtin_fma(z, EVOKE_D5(z, __VA_ARGS__), a)
#define EVOKE_D7(z, a, ...) __builtin_fma(z, EVOKE_D6(z, __VA_ARGS__), a)
#define EVOKE_D8(z, a, ...) __builtin_fma(z, EVOKE_D7(z, __VA_ARGS__), a)
#define EVOKE_D9(z, a, ...) __builtin_fma(z, EVOKE_D8(z, __VA_ARGS__), a)
#define EVOKE_D10(z, a, ...) __builtin_fma(z, EVOKE_D9(z, __VA_ARGS__), a)
#define EVOKE_D11(z, a, ...) __builtin_fma(z, EVOKE_D10(z, __VA_ARGS__), a)
#define EVOKE_D12(z, a, ...) __builtin_fma(z, EVOKE_D11(z, __VA_ARGS__), a)
#define EVOKE_D13(z, a, ...) __builtin_fma(z, EVOKE_D12(z, __VA_ARGS__), a)
#define EVOKE_D14(z, a, ...) __builtin_fma(z, EVOKE_D13(z, __VA_ARGS__), a)
#define EVOKE_D15(z, a, ...) __builtin_fma(z, EVOKE_D14(z, __VA_ARGS__), a)
#define EVOKE_D16(z, a, ...) __builtin_fma(z, EVOKE_D15(z, __VA_ARGS__), a)
#define EVOKE_D17(z, a, ...) __builtin_fma(z, EVOKE_D16(z, __VA_ARGS__), a)
#define EVOKE_D18(z, a, ...) __builtin_fma(z, EVOKE_D17(z, __VA_ARGS__), a)
#define EVOKE_D19(z, a, ...) __builtin_fma(z, EVOKE_D18(z, __VA_ARGS__), a)
#define EVOKE_D20(z, a, ...) __builtin_fma(z, EVOKE_D19(z, __VA_ARGS__), a)
#define EVOKE_D21(z, a, ...) __builtin_fma(z, EVOKE_D20(z, __VA_ARGS__), a)
#define EVOKE_D22(z, a, ...) __builtin_fma(z, EVOKE_D21(z, __VA_ARGS__), a)
#define EVOKE_D23(z, a, ...) __builtin_fma(z, EVOKE_D22(z, __VA_ARGS__), a)
#define EVOKE_D24(z, a, ...) __builtin_fma(z, EVOKE_D23(z, __VA_ARGS__), a)
#define EVOKE_D25(z, a, ...) __builtin_fma(z, EVOKE_D24(z, __VA_ARGS__), a)

/* ---- two doubles -------------------------------------------------------------------------------
 */

struct evoke_dd {
    double hi, lo;
};

/* a + b exactly; |a| >= |b|, or a = 0. */
EVOKE_FN evoke_dd evoke_sum(double a, double b) {
    double hi = a + b;
    return {hi, (a - hi) + b};
}
EVOKE_FN evoke_dd evoke_product(double a, double b) {
    double hi = __dmul_rn(a, b);
    return {hi, __builtin_fma(a, b, -hi)};
}
/* (a + b) c without the smallest part. */
EVOKE_FN evoke_dd evoke_times(evoke_dd a, evoke_dd c) {
    double hi = __dmul_rn(a.hi, c.hi);
    double lo = __builtin_fma(a.hi, c.hi, -hi);
    return {hi, __builtin_fma(a.lo, c.hi, __builtin_fma(a.hi, c.lo, lo))};
}

/* 2^n for n in [-1022, 1023], exactly. */
EVOKE_FN double evoke_power_of_two_d(int n) {
    return __longlong_as_double((long long)(n + 1023) << 52);
}
/* v 2^n with one rounding, for |n| <= 2000 and v near 1. */
EVOKE_FN double evoke_scale(double v, int n) {
    int half = n >> 1;
    return v * evoke_power_of_two_d(half) * evoke_power_of_two_d(n - half);
}

/* ---- exponentials ------------------------------------------------------------------------------
 */

/* ln 2 in two parts. The first has 42 bits, so that its product with an exponent is exact. */
#define EVOKE_LN2_HIGH 0x1.62e42fefa38p-1
#define EVOKE_LN2_LOW 0x1.ef35793c7673p-45

/* (exp(r) - 1 - r) / r^2 for |r| <= 0.35. */
EVOKE_FN double evoke_exp_tail(double r) {
    return EVOKE_D11(r, 0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333325544,
                     0.0013888888888883327, 0.00019841269876864356, 2.4801587327007187e-05,
                     2.755725283351691e-06, 2.75572718102198e-07, 2.5106274733573296e-08,
                     2.0915442297780116e-09);
}
/* exp(r) for |r| <= 0.35; both parts may be large. */
EVOKE_FN evoke_dd evoke_exp_core(evoke_dd r) {
    double tail = __dmul_rn(r.hi * r.hi, evoke_exp_tail(r.hi));
    evoke_dd v = evoke_sum(1.0, r.hi);
    v.lo += tail + __builtin_fma(r.lo, r.hi, r.lo);
    return v;
}
/* Cody and Waite's reduction: x = n ln 2 + r. */
EVOKE_FN evoke_dd evoke_exp_reduce(evoke_dd x, int *n) {
    double whole = __builtin_rint(x.hi * 1.4426950408889634);
    *n = __double2int_rn(whole);
    double r = __builtin_fma(whole, -EVOKE_LN2_HIGH, x.hi);
    double low = __builtin_fma(whole, -EVOKE_LN2_LOW, x.lo);
    double hi = r + low;
    return {hi, (r - hi) + low};
}
/* exp(x) = v 2^n, for |x| <= 800. */
EVOKE_FN evoke_dd evoke_exp_parts(evoke_dd x, int *n) {
    evoke_dd v = evoke_exp_core(evoke_exp_reduce(x, n));
    return evoke_sum(v.hi, v.lo);
}
EVOKE_FN double evoke_clamp(double x, double low, double high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

EVOKE_FN double exp(double x) {
    int n;
    evoke_dd v = evoke_exp_parts({evoke_clamp(x, -760.0, 720.0), 0.0}, &n);
    return evoke_scale(v.hi + v.lo, n);
}
EVOKE_FN double exp2(double x) {
    x = evoke_clamp(x, -1090.0, 1030.0);
    double whole = __builtin_rint(x);
    evoke_dd r = evoke_times({x - whole, 0.0}, {0.6931471805599453, 2.3190468138462996e-17});
    evoke_dd v = evoke_exp_core(r);
    return evoke_scale(v.hi + v.lo, __double2int_rn(whole));
}
EVOKE_FN double exp10(double x) {
    x = evoke_clamp(x, -330.0, 312.0);
    double whole = __builtin_rint(x * 3.321928094887362);
    double a = __builtin_fma(whole, -0x1.34413509f78p-2, x); /* log10(2), 42 bits of it */
    double b = whole * -0x1.fef311f12b358p-46;
    double hi = a + b;
    evoke_dd r = evoke_times({hi, (a - hi) + b}, {2.302585092994046, -2.1707562233822494e-16});
    evoke_dd v = evoke_exp_core(r);
    return evoke_scale(v.hi + v.lo, __double2int_rn(whole));
}
/* exp(x) - 1 = 2^n ((1 - 2^-n) + r + r^2 tail). */
EVOKE_FN double expm1(double x) {
    if (x == 0.0)
        return x;
    int n;
    evoke_dd r = evoke_exp_reduce({evoke_clamp(x, -45.0, 720.0), 0.0}, &n);
    double tail = __dmul_rn(r.hi * r.hi, evoke_exp_tail(r.hi));
    evoke_dd v = evoke_sum(1.0 - evoke_power_of_two_d(n > 1000 ? -1000 : -n), r.hi);
    return evoke_scale(v.hi + (v.lo + (tail + r.lo)), n);
}

/* ---- hyperbolic functions ----------------------------------------------------------------------
 */

EVOKE_FN double sinh(double x) {
    double a = __builtin_fabs(x), z = x * x;
    if (a < 1.0) /* x + x^3 p(x^2) */
        return __builtin_fma(x * z,
                             EVOKE_D8(z, 0.16666666666666666, 0.008333333333333333,
                                      0.00019841269841269773, 2.755731922404034e-06,
                                      2.505210836405804e-08, 1.6059048396350562e-10,
                                      7.646625361656657e-13, 2.8445264169895285e-15),
                             x);
    int n;
    evoke_dd e = evoke_exp_parts({evoke_clamp(a, 0.0, 720.0), 0.0}, &n);
    double back = evoke_power_of_two_d(n > 100 ? -200 : -2 * n) / e.hi;
    evoke_dd v = evoke_sum(e.hi, -back);
    return __builtin_copysign(evoke_scale(v.hi + (v.lo + e.lo), n - 1), x);
}
EVOKE_FN double cosh(double x) {
    int n;
    evoke_dd e = evoke_exp_parts({evoke_clamp(__builtin_fabs(x), 0.0, 720.0), 0.0}, &n);
    double back = evoke_power_of_two_d(n > 100 ? -200 : -2 * n) / e.hi;
    double hi = e.hi + back;
    return evoke_scale(hi + (((e.hi - hi) + back) + e.lo), n - 1);
}
EVOKE_FN double tanh(double x) {
    double a = __builtin_fabs(x), z = x * x;
    if (x == 0.0)
        return x;
    if (a < 0.55) /* x + x^3 p(x^2) */
        return __builtin_fma(
            x * z,
            EVOKE_D11(z, -0.3333333333333333, 0.13333333333332714, -0.05396825396743174,
                      0.021869488493563037, -0.008863234395418095, 0.003592110347096177,
                      -0.0014556615775702365, 0.0005889348072447028, -0.00023463104528300406,
                      8.510707927354112e-05, -2.059855667327517e-05),
            x);
    int n; /* (e - 1) / (e + 1) with e = exp(2 a), both divided by 2^n */
    evoke_dd e = evoke_exp_parts({2.0 * evoke_clamp(a, 0.0, 22.0), 0.0}, &n);
    double one = evoke_power_of_two_d(-n);
    evoke_dd top = evoke_sum(e.hi, -one);
    double under = e.hi + one, under_low = ((e.hi - under) + one) + e.lo;
    double q = top.hi / under;
    double rest = __builtin_fma(-q, under, top.hi) + ((top.lo + e.lo) - q * under_low);
    return __builtin_copysign(q + rest / under, x);
}

/* ---- logarithms --------------------------------------------------------------------------------
 */

/* Splits x > 0 into 2^n m, with m in [sqrt(1/2), sqrt(2)). */
EVOKE_FN double evoke_log_split(double x, double *n) {
    double below = 0.0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        below = -54.0;
    }
    long long bits = __double_as_longlong(x);
    long long shift = (bits - 0x3fe6a09e667f3bcdLL) & (long long)0xfff0000000000000ULL;
    *n = below + (double)(int)(shift >> 52);
    return __longlong_as_double(bits - shift);
}
EVOKE_FN double evoke_log_limits(double x, double ordinary) {
    double zero_or_nan = x == 0.0 ? -__builtin_inf() : __builtin_nan("");
    double result = x > 0.0 ? ordinary : zero_or_nan;
    return x == __builtin_inf() ? x : result;
}
/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)): 2 artanh(s) with s = f / (2 + f), in the form
 * f - s (f - z series), which keeps f exact (as in fdlibm's log). */
EVOKE_FN double evoke_log_core(double f) {
    double s = f / (2.0 + f), z = s * s;
    double series =
        EVOKE_D7(z, 0.666666666666667, 0.3999999999989607, 0.28571428627528794, 0.22222210881932927,
                 0.1818290749767122, 0.1533111258796017, 0.1462395660821188);
    return __builtin_fma(-s, __builtin_fma(-z, series, f), f);
}
/* The same to about 63 bits: the quotient, its square and the first term of the series are sums of
 * two doubles. */
EVOKE_FN evoke_dd evoke_log_two(double f) {
    evoke_dd under = evoke_sum(2.0, f);
    double s = f / under.hi;
    double s_low = __builtin_fma(-s, under.lo, __builtin_fma(-s, under.hi, f)) / under.hi;
    evoke_dd z = evoke_product(s, s);
    z.lo = __builtin_fma(2.0 * s, s_low, z.lo);
    double rest =
        __dmul_rn(z.hi, EVOKE_D7(z.hi, 0.4000000000000003, 0.28571428571335483, 0.2222222227246897,
                                 0.18181808025080376, 0.1538559095957839, 0.13285421679017204,
                                 0.12920221324272918));
    evoke_dd u = evoke_sum(0.6666666666666666, rest);
    u.lo += 3.700743415417188e-17;
    evoke_dd cube = evoke_times(evoke_times({s, s_low}, z), u);
    evoke_dd v = evoke_sum(2.0 * s, cube.hi);
    v.lo += __builtin_fma(2.0, s_low, cube.lo);
    return v;
}
/* log(x) for x > 0 to about 63 bits. */
EVOKE_FN evoke_dd evoke_log_full(double x) {
    double n, m = evoke_log_split(x, &n);
    evoke_dd l = evoke_log_two(m - 1.0);
    evoke_dd v = evoke_sum(__dmul_rn(n, EVOKE_LN2_HIGH), l.hi);
    v.lo += __builtin_fma(n, EVOKE_LN2_LOW, l.lo);
    return evoke_sum(v.hi, v.lo);
}

EVOKE_FN double log(double x) {
    double n, m = evoke_log_split(x, &n);
    double l = evoke_log_core(m - 1.0);
    return evoke_log_limits(x,
                            __builtin_fma(n, EVOKE_LN2_HIGH, __builtin_fma(n, EVOKE_LN2_LOW, l)));
}
EVOKE_FN double log2(double x) {
    double n, m = evoke_log_split(x, &n);
    evoke_dd l = evoke_times(evoke_log_two(m - 1.0), {1.4426950408889634, 2.0355273740931033e-17});
    evoke_dd v = evoke_sum(n, l.hi);
    return evoke_log_limits(x, v.hi + (v.lo + l.lo));
}
EVOKE_FN double log10(double x) {
    double n, m = evoke_log_split(x, &n);
    evoke_dd l = evoke_times(evoke_log_two(m - 1.0), {0.4342944819032518, 1.098319650216765e-17});
    evoke_dd v = evoke_sum(__dmul_rn(n, 0x1.34413509f78p-2), l.hi);
    return evoke_log_limits(x, v.hi + (v.lo + __builtin_fma(n, 0x1.fef311f12b358p-46, l.lo)));
}
/* log(1 + x). Where 1 + x is rounded, the part that got lost is added, over 1 + x. */
EVOKE_FN double log1p(double x) {
    if (x > -0.29 && x < 0.41)
        return x == 0.0 ? x : evoke_log_core(x);
    double u = 1.0 + x;
    double lost = (x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
    double n, m = evoke_log_split(u, &n);
    double l = evoke_log_core(m - 1.0);
    return evoke_log_limits(
        u, __builtin_fma(n, EVOKE_LN2_HIGH, __builtin_fma(n, EVOKE_LN2_LOW, lost) + l));
}

/* ---- powers and roots --------------------------------------------------------------------------
 */

/* x^y for x > 0 finite, as exp(y log x). */
EVOKE_FN double evoke_pow_positive(double x, double y) {
    evoke_dd l = evoke_log_full(x);
    evoke_dd e = evoke_product(y, l.hi);
    e.lo = __builtin_fma(y, l.lo, e.lo);
    bool far = !(e.hi > -760.0 && e.hi < 720.0);
    double at = evoke_clamp(e.hi, -760.0, 720.0);
    int n;
    evoke_dd v = evoke_exp_parts({at, far ? 0.0 : e.lo}, &n);
    return evoke_scale(v.hi + v.lo, n);
}
/* The cases of C's Annex F. */
EVOKE_FN double pow(double x, double y) {
    if (x == 1.0 || y == 0.0)
        return 1.0;
    if (x != x || y != y)
        return x + y;
    double a = __builtin_fabs(x), far = __builtin_fabs(y);
    bool whole = __builtin_trunc(y) == y;
    bool odd = whole && far < 0x1p53 && __builtin_trunc(y * 0.5) != y * 0.5;
    double sign = odd && __double_as_longlong(x) < 0 ? -1.0 : 1.0;
    if (a == 0.0 || a == __builtin_inf()) {
        bool grows = (a == 0.0) == (y < 0.0);
        return sign * (grows ? __builtin_inf() : 0.0);
    }
    if (far == __builtin_inf())
        return a == 1.0 ? 1.0 : ((a > 1.0) == (y > 0.0) ? far : 0.0);
    if (x < 0.0 && !whole)
        return __builtin_nan("");
    return sign * evoke_pow_positive(a, y);
}

EVOKE_FN double rsqrt(double x) {
    return 1.0 / __builtin_sqrt(x);
}
/* A step of Newton for y^3 = m, with the residual to twice the precision. */
EVOKE_FN double evoke_cbrt_step(double y, double m) {
    evoke_dd p = evoke_product(y, y);
    double rest = __builtin_fma(p.lo, y, __builtin_fma(p.hi, y, -m));
    return y - rest / (3.0 * p.hi);
}
EVOKE_FN double cbrt(double x) {
    double a = __builtin_fabs(x);
    if (!(a > 0.0 && a < __builtin_inf()))
        return x;
    int below = 0;
    if (a < 0x1p-1022) {
        a *= 0x1p54;
        below = 18;
    }
    long long bits = __double_as_longlong(a);
    int exponent = (int)(bits >> 52) - 1023 + 1200; /* a = 2^(3 third - 1200) m, m in [1, 8) */
    int third = exponent / 3;
    double m = __longlong_as_double((bits & 0xfffffffffffffLL) |
                                    ((long long)(exponent - 3 * third + 1023) << 52));
    double y = EVOKE_D5(m, 0.6538962985569791, 0.4121814779629245, -0.06797280035500547,
                        0.0069891694835587225, -0.0002882199346276574);
    double cube = y * y * y;
    y = y * (cube + 2.0 * m) / (2.0 * cube + m); /* Halley: from 2^-7 to 2^-22 */
    y = evoke_cbrt_step(evoke_cbrt_step(y, m), m);
    return __builtin_copysign(y * evoke_power_of_two_d(third - 400 - below), x);
}
/* Borges, "An improved algorithm for hypot(a, b)", 2019: the root, and its error by fma. */
EVOKE_FN double hypot(double x, double y) {
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    if (a == __builtin_inf() || b == __builtin_inf())
        return __builtin_inf();
    double more = a > b ? a : b, less = a > b ? b : a;
    if (!(more > 0.0)) /* both are zero, or one is NaN */
        return a + b;
    double up = more > 0x1p500 ? 0x1p-600 : (more < 0x1p-450 ? 0x1p600 : 1.0);
    double down = more > 0x1p500 ? 0x1p600 : (more < 0x1p-450 ? 0x1p-600 : 1.0);
    more *= up;
    less *= up;
    double h = __builtin_sqrt(__builtin_fma(more, more, less * less));
    evoke_dd square = evoke_product(h, h), larger = evoke_product(more, more);
    double rest = __builtin_fma(-less, less, square.hi - larger.hi) + (square.lo - larger.lo);
    return (h - rest / (2.0 * h)) * down;
}

/* ---- circular functions ------------------------------------------------------------------------
 */

/* x modulo pi/2 for large |x| (Payne and Hanek 1983): with |x| = i 2^e, only those bits of 2/pi
 * matter that begin at the weight of i's 2^2, and 192 of these are enough. */
static __device__ __noinline__ evoke_dd evoke_reduce_huge(double x, int *quadrant) {
    static const __constant__ unsigned long long two_over_pi[20] = {
        0x0000000000000000ULL, 0xa2f9836e4e441529ULL, 0xfc2757d1f534ddc0ULL, 0xdb6295993c439041ULL,
        0xfe5163abdebbc561ULL, 0xb7246e3a424dd2e0ULL, 0x06492eea09d1921cULL, 0xfe1deb1cb129a73eULL,
        0xe88235f52ebb4484ULL, 0xe99c7026b45f7e41ULL, 0x3991d639835339f4ULL, 0x9c845f8bbdf9283bULL,
        0x1ff897ffde05980fULL, 0xef2f118b5a0a6d1fULL, 0x6d367ecf27cb09b7ULL, 0x4f463f669e5fea2dULL,
        0x7527bac7ebe5f17bULL, 0x3d0739f78a5292eaULL, 0x6bfb5fb11f8d5d08ULL, 0x56033046fc7b6babULL};
    unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    /* |x| = i 2^(at - 62), i a whole number with its top bit at 63; the product's bits from 2^1
     * downwards begin with the bit `at` of the table, whose first word has the weights above 1. */
    int at = (int)((bits >> 52) & 0x7ff) - 1023 - 1;
    unsigned long long i = (bits << 11) | 0x8000000000000000ULL;
    int word = at >> 6, shift = at & 63, back = 63 - shift;
    unsigned long long w0 = two_over_pi[word], w1 = two_over_pi[word + 1];
    unsigned long long w2 = two_over_pi[word + 2], w3 = two_over_pi[word + 3];
    unsigned long long a = (w0 << shift) | ((w1 >> 1) >> back);
    unsigned long long b = (w1 << shift) | ((w2 >> 1) >> back);
    unsigned long long c = (w2 << shift) | ((w3 >> 1) >> back);
    unsigned long long carry = __umul64hi(i, c), under = i * b + carry;
    unsigned long long top = i * a + __umul64hi(i, b) + (under < carry);
    int q = (int)(top >> 62);
    top = (top << 2) | (under >> 62);
    under <<= 2;
    bool minus = (long long)top < 0; /* the nearer multiple is the next one */
    if (minus) {
        q++;
        under = ~under;
        top = ~top;
    }
    int zeros = __builtin_clzll(top | 1);
    top = zeros > 0 ? (top << zeros) | (under >> (64 - zeros)) : top;
    under <<= zeros;
    double hi = (double)(top >> 11);
    double lo = (double)(((top & 0x7ff) << 52) | (under >> 12)) * 0x1p-63;
    evoke_dd r = evoke_times({hi, lo}, {1.5707963267948966, 6.123233995736766e-17});
    double scale = evoke_power_of_two_d(-53 - zeros);
    scale = minus != (x < 0.0) ? -scale : scale;
    *quadrant = x < 0.0 ? -q : q;
    return {r.hi * scale, r.lo * scale};
}
/* x = quadrant pi/2 + r, |r| <= pi/4. Cody and Waite in three parts: the first product is exact in
 * the fma, the second one as two doubles. */
EVOKE_FN evoke_dd evoke_reduce_d(double x, int *quadrant) {
    if (!(__builtin_fabs(x) < 1e9)) {
        if (__builtin_fabs(x) < __builtin_inf())
            return evoke_reduce_huge(x, quadrant);
        *quadrant = 0;
        return {__builtin_nan(""), 0.0};
    }
    double n = __builtin_rint(x * 0.6366197723675814);
    *quadrant = __double2int_rn(n);
    double a = __builtin_fma(n, -1.5707963267948966, x);
    evoke_dd b = evoke_product(n, -6.123233995736766e-17);
    double hi = a + b.hi, part = hi - a; /* two-sum */
    double lo = (a - (hi - part)) + (b.hi - part);
    lo += __builtin_fma(n, 1.4973849048591698e-33, b.lo);
    return evoke_sum(hi, lo);
}
/* sin and cos of r on [-pi/4, pi/4], as a large and a small part. */
EVOKE_FN evoke_dd evoke_sin_two(evoke_dd r) {
    double z = r.hi * r.hi;
    double p = EVOKE_D6(z, -0.16666666666666666, 0.0083333333333307, -0.00019841269836385435,
                        2.7557315910939e-06, -2.5051092308431318e-08, 1.5915309183057952e-10);
    return {r.hi, __builtin_fma(r.hi * z, p, __builtin_fma(-0.5 * z, r.lo, r.lo))};
}
EVOKE_FN evoke_dd evoke_cos_two(evoke_dd r) {
    double z = __dmul_rn(r.hi, r.hi);
    double p = EVOKE_D6(z, 0.041666666666666664, -0.0013888888888887241, 2.480158729853226e-05,
                        -2.7557317151858866e-07, 2.0876121534608454e-09, -1.1380868171449914e-11);
    evoke_dd v = evoke_sum(1.0, -0.5 * z);
    return {v.hi, v.lo + __builtin_fma(z * z, p, -r.hi * r.lo)};
}
EVOKE_FN double evoke_circle(evoke_dd r, int quadrant) {
    evoke_dd s = evoke_sin_two(r), c = evoke_cos_two(r);
    double v = (quadrant & 1) ? c.hi + c.lo : s.hi + s.lo;
    return (quadrant & 2) ? -v : v;
}

EVOKE_FN double sin(double x) {
    int quadrant;
    evoke_dd r = evoke_reduce_d(x, &quadrant);
    return x == 0.0 ? x : evoke_circle(r, quadrant);
}
EVOKE_FN double cos(double x) {
    int quadrant;
    evoke_dd r = evoke_reduce_d(x, &quadrant);
    return evoke_circle(r, quadrant + 1);
}
EVOKE_FN void sincos(double x, double *s, double *c) {
    int quadrant;
    evoke_dd r = evoke_reduce_d(x, &quadrant);
    *s = x == 0.0 ? x : evoke_circle(r, quadrant);
    *c = evoke_circle(r, quadrant + 1);
}
EVOKE_FN double tan(double x) {
    int quadrant;
    evoke_dd r = evoke_reduce_d(x, &quadrant);
    evoke_dd s = evoke_sin_two(r), c = evoke_cos_two(r);
    evoke_dd top = (quadrant & 1) ? c : s, under = (quadrant & 1) ? s : c;
    top = evoke_sum(top.hi, top.lo);
    under = evoke_sum(under.hi, under.lo);
    double q = top.hi / under.hi;
    double rest = __builtin_fma(-q, under.hi, top.hi) + (top.lo - q * under.lo);
    double v = q + rest / under.hi;
    return x == 0.0 ? x : ((quadrant & 1) ? -v : v);
}

/* sin(pi x) and cos(pi x): the reduction is exact. Doubles above 2^53 are even integers. */
EVOKE_FN evoke_dd evoke_reduce_pi_d(double x, int *quadrant) {
    if (!(__builtin_fabs(x) < 0x1p53))
        x = x - x;                                           /* 0; NaN if x is an infinity or NaN */
    double half = 2.0 * (x - 2.0 * __builtin_rint(0.5 * x)); /* in [-2, 2] */
    double n = __builtin_rint(half);
    *quadrant = __double2int_rn(n);
    return evoke_times({0.5 * (half - n), 0.0}, {3.141592653589793, 1.2246467991473532e-16});
}
EVOKE_FN double sinpi(double x) {
    int quadrant;
    evoke_dd r = evoke_reduce_pi_d(x, &quadrant);
    double v = evoke_circle(r, quadrant);
    return v == 0.0 ? __builtin_copysign(0.0, x) : v;
}
EVOKE_FN double cospi(double x) {
    int quadrant;
    evoke_dd r = evoke_reduce_pi_d(x, &quadrant);
    double v = evoke_circle(r, quadrant + 1);
    return v == 0.0 ? 0.0 : v;
}
EVOKE_FN void sincospi(double x, double *s, double *c) {
    *s = sinpi(x);
    *c = cospi(x);
}

/* ---- their inverses ----------------------------------------------------------------------------
 */

/* (asin(x) - x) / x^3 by z = x^2 <= 1/4. */
EVOKE_FN double evoke_asin_tail(double z) {
    return EVOKE_D13(z, 0.16666666666666669, 0.07499999999998425, 0.04464285714637338,
                     0.030381944137085216, 0.022372173002005596, 0.017352391265909227,
                     0.013971235301124539, 0.011478952690257387, 0.010324318288744113,
                     0.005450878187720551, 0.017419357964884856, -0.014881409392818063,
                     0.02877844261259304);
}
/* asin(sqrt((1 - a) / 2)) for a in [1/2, 1], which is half of acos(a). */
EVOKE_FN evoke_dd evoke_half_acos(double a) {
    double z = 0.5 * (1.0 - a), s = __builtin_sqrt(z);
    double rest = s > 0.0 ? __builtin_fma(-s, s, z) / (2.0 * s) : 0.0;
    return {s, __builtin_fma(s * z, evoke_asin_tail(z), rest)};
}
EVOKE_FN double asin(double x) {
    double a = __builtin_fabs(x), z = x * x;
    if (a <= 0.5)
        return __builtin_fma(x * z, evoke_asin_tail(z), x);
    if (!(a <= 1.0))
        return __builtin_nan("");
    evoke_dd h = evoke_half_acos(a), v = evoke_sum(1.5707963267948966, -2.0 * h.hi);
    return __builtin_copysign(v.hi + (v.lo + __builtin_fma(-2.0, h.lo, 6.123233995736766e-17)), x);
}
EVOKE_FN double acos(double x) {
    double a = __builtin_fabs(x), z = x * x;
    if (a <= 0.5) {
        evoke_dd v = evoke_sum(1.5707963267948966, -x);
        return v.hi + (v.lo + __builtin_fma(-x * z, evoke_asin_tail(z), 6.123233995736766e-17));
    }
    if (!(a <= 1.0))
        return __builtin_nan("");
    evoke_dd h = evoke_half_acos(a);
    if (x > 0.0)
        return 2.0 * (h.hi + h.lo);
    evoke_dd v = evoke_sum(3.141592653589793, -2.0 * h.hi);
    return v.hi + (v.lo + __builtin_fma(-2.0, h.lo, 1.2246467991473532e-16));
}
/* The angle `base` (two doubles) + sign (t + t^3 p(t^2)), for t in [0, 1]. */
EVOKE_FN double evoke_atan_core(double t, evoke_dd base, double sign) {
    double z = t * t;
    double p = EVOKE_D20(z, -0.3333333333333333, 0.1999999999999753, -0.14285714285384132,
                         0.11111111093490827, -0.09090908590891934, 0.07692298971033217,
                         -0.06666564699289104, 0.05881506877793656, -0.052579733342841106,
                         0.04737749579527779, -0.04260356632601652, 0.03749486812535247,
                         -0.031277189066996385, 0.023696731580048622, -0.015535152475414177,
                         0.008368931178450162, -0.0034958859739163094, 0.0010496035084968515,
                         -0.00019996189377901382, 1.806195461861215e-05);
    evoke_dd v = evoke_sum(base.hi, sign * t);
    return v.hi + (v.lo + __builtin_fma(sign * t * z, p, base.lo));
}
EVOKE_FN double atan(double x) {
    double a = __builtin_fabs(x);
    bool turned = a > 1.0;
    evoke_dd base = {turned ? 1.5707963267948966 : 0.0, turned ? 6.123233995736766e-17 : 0.0};
    return __builtin_copysign(evoke_atan_core(turned ? 1.0 / a : a, base, turned ? -1.0 : 1.0), x);
}
EVOKE_FN double atan2(double y, double x) {
    if (x != x || y != y)
        return x + y;
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    bool steep = b > a, left = __double_as_longlong(x) < 0;
    double more = steep ? b : a, less = steep ? a : b;
    double t = less / more;
    t = more == 0.0 ? 0.0 : (less == __builtin_inf() ? 1.0 : t);
    evoke_dd base = {steep ? 1.5707963267948966 : (left ? 3.141592653589793 : 0.0),
                     steep ? 6.123233995736766e-17 : (left ? 1.2246467991473532e-16 : 0.0)};
    return __builtin_copysign(evoke_atan_core(t, base, steep != left ? -1.0 : 1.0), y);
}

#endif
