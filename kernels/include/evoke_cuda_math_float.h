/* CUDA's mathematics in single precision. Included by evoke_cuda.h.
 *
 * evoke_cuda_math_double.h says how to read it: here the same with floats, and evoke_ff for a sum
 * of two floats. expf, exp2f and exp10f use the instruction ex2.approx, as nvcc's do; all others
 * stand on correctly rounded instructions. Polynomials were made for this file in the same way.
 * evoke_cuda_math_bounds.def has the bounds. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_MATH_FLOAT_H
#define KERNELS_INCLUDE_EVOKE_CUDA_MATH_FLOAT_H

/* EVOKE_Fn(z, c0, ..., cn-1) is c0 + z (c1 + z (...)). */
#define EVOKE_F1(z, a) (a)
#define EVOKE_F2(z, a, ...) __builtin_fmaf(z, EVOKE_F1(z, __VA_ARGS__), a)
#define EVOKE_F3(z, a, ...) __builtin_fmaf(z, EVOKE_F2(z, __VA_ARGS__), a)
#define EVOKE_F4(z, a, ...) __builtin_fmaf(z, EVOKE_F3(z, __VA_ARGS__), a)
#define EVOKE_F5(z, a, ...) __builtin_fmaf(z, EVOKE_F4(z, __VA_ARGS__), a)
#define EVOKE_F6(z, a, ...) __builtin_fmaf(z, EVOKE_F5(z, __VA_ARGS__), a)
#define EVOKE_F7(z, a, ...) __builtin_fmaf(z, EVOKE_F6(z, __VA_ARGS__), a)
#define EVOKE_F8(z, a, ...) __builtin_fmaf(z, EVOKE_F7(z, __VA_ARGS__), a)
#define EVOKE_F9(z, a, ...) __builtin_fmaf(z, EVOKE_F8(z, __VA_ARGS__), a)
#define EVOKE_F10(z, a, ...) __builtin_fmaf(z, EVOKE_F9(z, __VA_ARGS__), a)
#define EVOKE_F11(z, a, ...) __builtin_fmaf(z, EVOKE_F10(z, __VA_ARGS__), a)
#define EVOKE_F12(z, a, ...) __builtin_fmaf(z, EVOKE_F11(z, __VA_ARGS__), a)
#define EVOKE_F13(z, a, ...) __builtin_fmaf(z, EVOKE_F12(z, __VA_ARGS__), a)

struct evoke_ff {
    float hi, lo;
};

/* a + b exactly; |a| >= |b|, or a = 0. */
EVOKE_FN evoke_ff evoke_sum_f(float a, float b) {
    float hi = a + b;
    return {hi, (a - hi) + b};
}
EVOKE_FN evoke_ff evoke_product_f(float a, float b) {
    float hi = __fmul_rn(a, b);
    return {hi, __builtin_fmaf(a, b, -hi)};
}
EVOKE_FN evoke_ff evoke_times_f(evoke_ff a, evoke_ff c) {
    float hi = __fmul_rn(a.hi, c.hi);
    float lo = __builtin_fmaf(a.hi, c.hi, -hi);
    return {hi, __builtin_fmaf(a.lo, c.hi, __builtin_fmaf(a.hi, c.lo, lo))};
}
EVOKE_FN float evoke_clamp_f(float x, float low, float high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* ---- exponentials ------------------------------------------------------------------------------
 */

/* 2^n for n in [-126, 127], exactly. */
EVOKE_FN float evoke_power_of_two(int n) {
    return __int_as_float((n + 127) << 23);
}
/* v 2^n with one rounding, for |n| <= 250 and v near 1. */
EVOKE_FN float evoke_scale_f(float v, int n) {
    int half = n >> 1;
    return v * evoke_power_of_two(half) * evoke_power_of_two(n - half);
}

EVOKE_FN float exp2f(float x) {
    return __nvvm_ex2_approx_f(x);
}
/* exp(x) = 2^n exp(r), with r = x - n ln 2 in two steps (Cody and Waite), and exp(r) by ex2. 2^n is
 * applied in two halves, so that results down to the smallest subnormal are right. */
EVOKE_FN float expf(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -105.0f ? -105.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = fmaf(n, -0.693145752f, x);
    r = fmaf(n, -1.42860677e-6f, r);
    return evoke_scale_f(__nvvm_ex2_approx_f(r * 1.44269504f), __float2int_rn(n));
}
/* 10^x as 2^n 10^r, with r = x - n log10(2) in two steps, as expf. */
EVOKE_FN float exp10f(float x) {
    x = x > 39.0f ? 39.0f : x;
    x = x < -46.0f ? -46.0f : x;
    float n = rintf(x * 3.32192809f);
    float r = fmaf(n, -0.301025391f, x);
    r = fmaf(n, -4.60503898e-6f, r);
    return evoke_scale_f(__nvvm_ex2_approx_f(r * 3.32192809f), __float2int_rn(n));
}

/* (exp(r) - 1 - r) / r^2 for |r| <= 0.35. */
EVOKE_FN float evoke_exp_tail_f(float r) {
    return EVOKE_F6(r, 0.5f, 0.166666672f, 0.0416664556f, 0.00833331048f, 0.00139345415f,
                    0.000198919806f);
}
EVOKE_FN evoke_ff evoke_exp_reduce_f(evoke_ff x, int *n) {
    float whole = __builtin_rintf(x.hi * 1.44269504f);
    *n = __float2int_rn(whole);
    float r = __builtin_fmaf(whole, -0.693145752f, x.hi);
    float low = __builtin_fmaf(whole, -1.42860677e-6f, x.lo);
    float hi = r + low;
    return {hi, (r - hi) + low};
}
/* exp(x) = v 2^n without ex2, for |x| <= 160. */
EVOKE_FN evoke_ff evoke_exp_parts_f(evoke_ff x, int *n) {
    evoke_ff r = evoke_exp_reduce_f(x, n);
    float tail = __fmul_rn(r.hi * r.hi, evoke_exp_tail_f(r.hi));
    evoke_ff v = evoke_sum_f(1.0f, r.hi);
    return evoke_sum_f(v.hi, v.lo + (tail + __builtin_fmaf(r.lo, r.hi, r.lo)));
}
EVOKE_FN float expm1f(float x) {
    if (x == 0.0f)
        return x;
    int n;
    evoke_ff r = evoke_exp_reduce_f({evoke_clamp_f(x, -25.0f, 90.0f), 0.0f}, &n);
    float tail = __fmul_rn(r.hi * r.hi, evoke_exp_tail_f(r.hi));
    evoke_ff v = evoke_sum_f(1.0f - evoke_power_of_two(n > 100 ? -100 : -n), r.hi);
    return evoke_scale_f(v.hi + (v.lo + (tail + r.lo)), n);
}

/* ---- hyperbolic functions ----------------------------------------------------------------------
 */

EVOKE_FN float sinhf(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    if (a < 1.0f) /* x + x^3 p(x^2) */
        return __builtin_fmaf(x * z, EVOKE_F3(z, 0.166666761f, 0.00833176263f, 0.000202588853f), x);
    int n;
    evoke_ff e = evoke_exp_parts_f({evoke_clamp_f(a, 0.0f, 95.0f), 0.0f}, &n);
    float back = evoke_power_of_two(n > 40 ? -80 : -2 * n) / e.hi;
    evoke_ff v = evoke_sum_f(e.hi, -back);
    return __builtin_copysignf(evoke_scale_f(v.hi + (v.lo + e.lo), n - 1), x);
}
EVOKE_FN float coshf(float x) {
    int n;
    evoke_ff e = evoke_exp_parts_f({evoke_clamp_f(__builtin_fabsf(x), 0.0f, 95.0f), 0.0f}, &n);
    float back = evoke_power_of_two(n > 40 ? -80 : -2 * n) / e.hi;
    return evoke_scale_f(e.hi + (e.lo + back), n - 1);
}
/* Small arguments by a polynomial, others by the exponential. */
EVOKE_FN float tanhf(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    if (x == 0.0f)
        return x;
    if (a < 0.55f) /* x + x^3 p(x^2) */
        return __builtin_fmaf(x * z,
                              EVOKE_F5(z, -0.333333313f, 0.133331135f, -0.0539093763f,
                                       0.0213090628f, -0.00660961401f),
                              x);
    float e = expf(2.0f * a);
    return __builtin_copysignf(1.0f - 2.0f / (e + 1.0f), x);
}

/* ---- logarithms --------------------------------------------------------------------------------
 */

/* Splits x > 0 into 2^n m, with m in [sqrt(1/2), sqrt(2)). */
EVOKE_FN float evoke_log_split_f(float x, float *n) {
    float below = 0.0f;
    if (x < 1.17549435e-38f) {
        x *= 8388608.0f;
        below = -23.0f;
    }
    int bits = __float_as_int(x);
    int shift = (bits - 0x3f3504f3) & (int)0xff800000;
    *n = below + (float)(shift >> 23);
    return __int_as_float(bits - shift);
}
EVOKE_FN float evoke_log_limits_f(float x, float ordinary) {
    float zero_or_nan = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
    float result = x > 0.0f ? ordinary : zero_or_nan;
    return x == __builtin_inff() ? x : result;
}
/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)): 2 artanh(s) with s = f / (2 + f), in the form
 * f - s (f - z series), which keeps f exact. */
EVOKE_FN float evoke_log_core_f(float f) {
    float s = f / (2.0f + f), z = s * s;
    float series = EVOKE_F4(z, 0.666666687f, 0.400001228f, 0.285505861f, 0.233368114f);
    return __builtin_fmaf(-s, __builtin_fmaf(-z, series, f), f);
}
/* The same to about 31 bits. */
EVOKE_FN evoke_ff evoke_log_two_f(float f) {
    evoke_ff under = evoke_sum_f(2.0f, f);
    float s = f / under.hi;
    float s_low = __builtin_fmaf(-s, under.lo, __builtin_fmaf(-s, under.hi, f)) / under.hi;
    evoke_ff z = evoke_product_f(s, s);
    z.lo = __builtin_fmaf(2.0f * s, s_low, z.lo);
    float rest = __fmul_rn(z.hi, EVOKE_F3(z.hi, 0.400001228f, 0.285505861f, 0.233368114f));
    evoke_ff u = evoke_sum_f(0.666666687f, rest);
    u.lo += -1.98682155e-08f;
    evoke_ff cube = evoke_times_f(evoke_times_f({s, s_low}, z), u);
    evoke_ff v = evoke_sum_f(2.0f * s, cube.hi);
    v.lo += __builtin_fmaf(2.0f, s_low, cube.lo);
    return v;
}
EVOKE_FN float logf(float x) {
    float n, m = evoke_log_split_f(x, &n);
    float l = evoke_log_core_f(m - 1.0f);
    return evoke_log_limits_f(x, fmaf(n, 0.693145752f, fmaf(n, 1.42860677e-6f, l)));
}
EVOKE_FN float log2f(float x) {
    float n, m = evoke_log_split_f(x, &n);
    evoke_ff l = evoke_times_f(evoke_log_two_f(m - 1.0f), {1.44269502f, 1.92596303e-08f});
    evoke_ff v = evoke_sum_f(n, l.hi);
    return evoke_log_limits_f(x, v.hi + (v.lo + l.lo));
}
EVOKE_FN float log10f(float x) {
    float n, m = evoke_log_split_f(x, &n);
    float l = evoke_log_core_f(m - 1.0f);
    float low = fmaf(l, -1.010305e-08f, n * 4.60503898e-6f); /* of log10(e) and log10(2) */
    return evoke_log_limits_f(x, fmaf(n, 0.301025391f, fmaf(l, 0.434294492f, low)));
}
/* log(1 + x). Where 1 + x is rounded, the part that got lost is added, over 1 + x. */
EVOKE_FN float log1pf(float x) {
    if (x > -0.29f && x < 0.41f)
        return x == 0.0f ? x : evoke_log_core_f(x);
    float u = 1.0f + x;
    float lost = (x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
    float n, m = evoke_log_split_f(u, &n);
    float l = evoke_log_core_f(m - 1.0f);
    return evoke_log_limits_f(u, fmaf(n, 0.693145752f, fmaf(n, 1.42860677e-6f, lost) + l));
}

/* ---- powers and roots --------------------------------------------------------------------------
 */

/* x^y for x > 0 finite, as exp(y log x). */
EVOKE_FN float evoke_pow_positive_f(float x, float y) {
    float n, m = evoke_log_split_f(x, &n);
    evoke_ff l = evoke_log_two_f(m - 1.0f);
    evoke_ff v = evoke_sum_f(__fmul_rn(n, 0.693145752f), l.hi);
    v = evoke_sum_f(v.hi, v.lo + __builtin_fmaf(n, 1.42860677e-6f, l.lo));
    evoke_ff e = evoke_product_f(y, v.hi);
    e.lo = __builtin_fmaf(y, v.lo, e.lo);
    bool far = !(e.hi > -120.0f && e.hi < 100.0f);
    int whole;
    v = evoke_exp_parts_f({evoke_clamp_f(e.hi, -120.0f, 100.0f), far ? 0.0f : e.lo}, &whole);
    return evoke_scale_f(v.hi + v.lo, whole);
}
/* The cases of C's Annex F. */
EVOKE_FN float powf(float x, float y) {
    if (x == 1.0f || y == 0.0f)
        return 1.0f;
    if (x != x || y != y)
        return x + y;
    float a = __builtin_fabsf(x), far = __builtin_fabsf(y);
    bool whole = __builtin_truncf(y) == y;
    bool odd = whole && far < 16777216.0f && __builtin_truncf(y * 0.5f) != y * 0.5f;
    float sign = odd && __float_as_int(x) < 0 ? -1.0f : 1.0f;
    if (a == 0.0f || a == __builtin_inff()) {
        bool grows = (a == 0.0f) == (y < 0.0f);
        return sign * (grows ? __builtin_inff() : 0.0f);
    }
    if (far == __builtin_inff())
        return a == 1.0f ? 1.0f : ((a > 1.0f) == (y > 0.0f) ? far : 0.0f);
    if (x < 0.0f && !whole)
        return __builtin_nanf("");
    return sign * evoke_pow_positive_f(a, y);
}
EVOKE_FN float cbrtf(float x) {
    float a = __builtin_fabsf(x);
    if (!(a > 0.0f && a < __builtin_inff()))
        return x;
    int below = 0;
    if (a < 1.17549435e-38f) {
        a *= 16777216.0f;
        below = 8;
    }
    int bits = __float_as_int(a);
    int exponent = (bits >> 23) - 127 + 150; /* a = 2^(3 third - 150) m, m in [1, 8) */
    int third = exponent / 3;
    float m = __int_as_float((bits & 0x7fffff) | ((exponent - 3 * third + 127) << 23));
    float y = EVOKE_F5(m, 0.653896299f, 0.412181478f, -0.0679728f, 0.00698916948f, -0.00028821993f);
    float cube = y * y * y;
    y = y * (cube + 2.0f * m) / (2.0f * cube + m); /* Halley: from 2^-7 to 2^-22 */
    evoke_ff p = evoke_product_f(y, y);
    float rest = __builtin_fmaf(p.lo, y, __builtin_fmaf(p.hi, y, -m));
    y = y - rest / (3.0f * p.hi);
    return __builtin_copysignf(y * evoke_power_of_two(third - 50 - below), x);
}
/* Borges, "An improved algorithm for hypot(a, b)", 2019: the root, and its error by fma. */
EVOKE_FN float hypotf(float x, float y) {
    float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
    if (a == __builtin_inff() || b == __builtin_inff())
        return __builtin_inff();
    float more = a > b ? a : b, less = a > b ? b : a;
    if (!(more > 0.0f)) /* both are zero, or one is NaN */
        return a + b;
    float up = more > 0x1p60f ? 0x1p-70f : (more < 0x1p-40f ? 0x1p90f : 1.0f);
    float down = more > 0x1p60f ? 0x1p70f : (more < 0x1p-40f ? 0x1p-90f : 1.0f);
    more *= up;
    less *= up;
    float h = __builtin_sqrtf(__builtin_fmaf(more, more, less * less));
    evoke_ff square = evoke_product_f(h, h), larger = evoke_product_f(more, more);
    float rest = __builtin_fmaf(-less, less, square.hi - larger.hi) + (square.lo - larger.lo);
    return (h - rest / (2.0f * h)) * down;
}

/* ---- circular functions ------------------------------------------------------------------------
 */

/* sin and cos on [-pi/4, pi/4] by their power series. */
EVOKE_FN float evoke_sin_core(float r) {
    float z = r * r;
    float p =
        fmaf(z, fmaf(z, fmaf(z, 2.75573192e-6f, -1.98412698e-4f), 8.33333333e-3f), -0.166666667f);
    return fmaf(r * z, p, r);
}
EVOKE_FN float evoke_cos_core(float r) {
    float z = r * r;
    float p =
        fmaf(z, fmaf(z, fmaf(z, -2.75573192e-7f, 2.48015873e-5f), -1.38888889e-3f), 4.16666667e-2f);
    return fmaf(z, fmaf(z, p, -0.5f), 1.0f);
}
EVOKE_FN float evoke_sin_quadrant(float r, int quadrant) {
    float v = (quadrant & 1) ? evoke_cos_core(r) : evoke_sin_core(r);
    return (quadrant & 2) ? -v : v;
}

/* Payne and Hanek's reduction, for large arguments. With |x| = i 2^(e-31), only the bits of 2/pi
 * from the (e-32)th on matter modulo 4 quadrants, and 96 of these bits are enough. */
static __device__ __noinline__ EVOKE_PURE unsigned long long evoke_reduce_large(float x) {
    static const __constant__ unsigned int two_over_pi[7] = {
        0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u};
    unsigned int bits = __float_as_uint(x);
    int at = (int)((bits >> 23) & 0xffu) - 127 - 1;
    unsigned long long i = (unsigned long long)((bits << 8) | 0x80000000u);
    int word = (at >> 5) & 3, shift = at & 31; /* within the table for all x */
    unsigned long long w0 = two_over_pi[word], w1 = two_over_pi[word + 1];
    unsigned long long w2 = two_over_pi[word + 2], w3 = two_over_pi[word + 3];
    unsigned int a = (unsigned int)((((w0 << 32) | w1) << shift) >> 32);
    unsigned int b = (unsigned int)((((w1 << 32) | w2) << shift) >> 32);
    unsigned int c = (unsigned int)((((w2 << 32) | w3) << shift) >> 32);
    unsigned long long top = ((i * a) << 32) + i * b + ((i * c) >> 32);
    long long fraction = (long long)(top << 2);
    int q = (int)(top >> 62) + (fraction < 0);
    float r = (float)((double)fraction * 8.5153039502163865e-20); /* pi / 2 * 2^-64 */
    q = x < 0.0f ? -q : q;
    r = x < 0.0f ? -r : r;
    return ((unsigned long long)(unsigned int)q << 32) | __float_as_uint(r);
}

/* Reduces x to quadrant * pi/2 + r, |r| <= pi/4. Arguments up to 8192 take four steps of Cody and
 * Waite. The first three are exact: their parts of pi/2 have 11, 12 and 12 bits, and the quadrant
 * has 13. */
EVOKE_FN float evoke_reduce(float x, int *quadrant) {
    if (!(fabsf(x) <= 8192.0f)) {
        if (!(fabsf(x) < __builtin_inff())) {
            *quadrant = 0;
            return __builtin_nanf("");
        }
        unsigned long long both = evoke_reduce_large(x);
        *quadrant = (int)(both >> 32);
        return __uint_as_float((unsigned int)both);
    }
    float n = rintf(x * 0.636619772f);
    *quadrant = __float2int_rn(n);
    float r = fmaf(n, -1.5703125f, x);
    r = fmaf(n, -4.83751297e-4f, r);
    r = fmaf(n, -7.54953362e-8f, r);
    return fmaf(n, -2.56334415e-12f, r);
}

EVOKE_FN float sinf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    return x == 0.0f ? x : evoke_sin_quadrant(r, quadrant);
}
EVOKE_FN float cosf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    return evoke_sin_quadrant(r, quadrant + 1);
}
EVOKE_FN void sincosf(float x, float *s, float *c) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    *s = x == 0.0f ? x : evoke_sin_quadrant(r, quadrant);
    *c = evoke_sin_quadrant(r, quadrant + 1);
}

/* sin(pi x) and cos(pi x): the reduction is exact. Floats above 2^24 are even integers. */
EVOKE_FN float evoke_reduce_pi(float x, int *quadrant) {
    if (!(fabsf(x) < 16777216.0f))
        x = x - x; /* 0; NaN if x is an infinity or NaN */
    float n = rintf(2.0f * x);
    *quadrant = __float2int_rn(n);
    float r = fmaf(n, -0.5f, x);
    return fmaf(r, 3.14159274f, r * -8.74227766e-8f);
}
EVOKE_FN float sinpif(float x) {
    int quadrant;
    float r = evoke_reduce_pi(x, &quadrant);
    float v = evoke_sin_quadrant(r, quadrant);
    return v == 0.0f ? __builtin_copysignf(0.0f, x) : v;
}
EVOKE_FN float cospif(float x) {
    int quadrant;
    float r = evoke_reduce_pi(x, &quadrant);
    float v = evoke_sin_quadrant(r, quadrant + 1);
    return v == 0.0f ? 0.0f : v;
}
EVOKE_FN void sincospif(float x, float *s, float *c) {
    *s = sinpif(x);
    *c = cospif(x);
}
EVOKE_FN float tanf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    float s = evoke_sin_core(r), c = evoke_cos_core(r);
    return x == 0.0f ? x : ((quadrant & 1) ? -c / s : s / c);
}

/* ---- their inverses ----------------------------------------------------------------------------
 */

/* (asin(x) - x) / x^3 by z = x^2 <= 1/4. */
EVOKE_FN float evoke_asin_tail_f(float z) {
    return EVOKE_F5(z, 0.166666731f, 0.0749885291f, 0.0450018942f, 0.0265506636f, 0.0380939618f);
}
/* asin(sqrt((1 - a) / 2)) for a in [1/2, 1], which is half of acos(a). */
EVOKE_FN evoke_ff evoke_half_acos_f(float a) {
    float z = 0.5f * (1.0f - a), s = __builtin_sqrtf(z);
    float rest = s > 0.0f ? __builtin_fmaf(-s, s, z) / (2.0f * s) : 0.0f;
    return {s, __builtin_fmaf(s * z, evoke_asin_tail_f(z), rest)};
}
EVOKE_FN float asinf(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    if (a <= 0.5f)
        return __builtin_fmaf(x * z, evoke_asin_tail_f(z), x);
    if (!(a <= 1.0f))
        return __builtin_nanf("");
    evoke_ff h = evoke_half_acos_f(a), v = evoke_sum_f(1.57079637f, -2.0f * h.hi);
    return __builtin_copysignf(v.hi + (v.lo + __builtin_fmaf(-2.0f, h.lo, -4.37113883e-08f)), x);
}
EVOKE_FN float acosf(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    if (a <= 0.5f) {
        evoke_ff v = evoke_sum_f(1.57079637f, -x);
        return v.hi + (v.lo + __builtin_fmaf(-x * z, evoke_asin_tail_f(z), -4.37113883e-08f));
    }
    if (!(a <= 1.0f))
        return __builtin_nanf("");
    evoke_ff h = evoke_half_acos_f(a);
    if (x > 0.0f)
        return 2.0f * (h.hi + h.lo);
    evoke_ff v = evoke_sum_f(3.14159274f, -2.0f * h.hi);
    return v.hi + (v.lo + __builtin_fmaf(-2.0f, h.lo, -8.74227766e-08f));
}
/* The angle `base` + sign (t + t^3 p(t^2)), for t in [0, 1]. */
EVOKE_FN float evoke_atan_core_f(float t, evoke_ff base, float sign) {
    float z = t * t;
    float p = EVOKE_F9(z, -0.333333313f, 0.199997395f, -0.142785683f, 0.110337645f, -0.0865688026f,
                       0.0625016913f, -0.0358715393f, 0.0135077713f, -0.00238699722f);
    evoke_ff v = evoke_sum_f(base.hi, sign * t);
    return v.hi + (v.lo + __builtin_fmaf(sign * t * z, p, base.lo));
}
EVOKE_FN float atanf(float x) {
    float a = __builtin_fabsf(x);
    bool turned = a > 1.0f;
    evoke_ff base = {turned ? 1.57079637f : 0.0f, turned ? -4.37113883e-08f : 0.0f};
    return __builtin_copysignf(
        evoke_atan_core_f(turned ? 1.0f / a : a, base, turned ? -1.0f : 1.0f), x);
}
EVOKE_FN float atan2f(float y, float x) {
    if (x != x || y != y)
        return x + y;
    float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
    bool steep = b > a, left = __float_as_int(x) < 0;
    float more = steep ? b : a, less = steep ? a : b;
    float t = less / more;
    t = more == 0.0f ? 0.0f : (less == __builtin_inff() ? 1.0f : t);
    evoke_ff base = {steep ? 1.57079637f : (left ? 3.14159274f : 0.0f),
                     steep ? -4.37113883e-08f : (left ? -8.74227766e-08f : 0.0f)};
    return __builtin_copysignf(evoke_atan_core_f(t, base, steep != left ? -1.0f : 1.0f), y);
}

/* ---- error functions ---------------------------------------------------------------------------
 */

/* erfc(a) for a >= 0, as evoke_erfc_positive. */
EVOKE_FN float evoke_erfc_positive_f(float a) {
    a = a > 11.0f ? 11.0f : a;
    float t = (a - 4.0f) / (a + 4.0f);
    float p = EVOKE_F11(t, 1.23299515f, -0.13962093f, 0.0153775923f, 0.0680883974f, -0.101001427f,
                        0.0938634872f, -0.0665093809f, 0.0363834724f, -0.0162923578f,
                        0.00659800228f, 0.000742842793f);
    int n;
    evoke_ff e = evoke_exp_parts_f(evoke_product_f(-a, a), &n);
    float v = p / __builtin_fmaf(2.0f, a, 1.0f);
    return evoke_scale_f(__builtin_fmaf(v, e.lo, v * e.hi), n);
}
/* erf(x) for |x| < 1: x + x p(x^2). */
EVOKE_FN float evoke_erf_near_f(float x) {
    float z = x * x;
    return __builtin_fmaf(x,
                          EVOKE_F7(z, 0.128379166f, -0.37612626f, 0.112835944f, -0.0268542115f,
                                   0.00518908724f, -0.00080168643f, 7.87587487e-05f),
                          x);
}
EVOKE_FN float erfcf(float x) {
    if (__builtin_fabsf(x) < 0.5f)
        return 1.0f - evoke_erf_near_f(x);
    float v = evoke_erfc_positive_f(__builtin_fabsf(x));
    return x < 0.0f ? 2.0f - v : v;
}
EVOKE_FN float erff(float x) {
    if (__builtin_fabsf(x) < 1.0f)
        return evoke_erf_near_f(x);
    return __builtin_copysignf(1.0f - evoke_erfc_positive_f(__builtin_fabsf(x)), x);
}
/* Giles, "Approximating the erfinv function", 2010: x p(w) with w = -log(1 - x^2). */
EVOKE_FN float erfinvf(float x) {
    if (x == 0.0f)
        return x;
    if (__builtin_fabsf(x) <= 0.5f) { /* x + x p(x^2) */
        float z = x * x;
        return __builtin_fmaf(x,
                              EVOKE_F7(z, -0.11377307f, 0.232013419f, 0.127571762f, 0.0861866623f,
                                       0.0689698532f, 0.0298555009f, 0.0974826366f),
                              x);
    }
    float w = -logf((1.0f - x) * (1.0f + x));
    if (w < 5.0f) {
        float t = w - 2.5f;
        return x * EVOKE_F10(t, 1.50140941f, 0.246640295f, -0.00417736918f, -0.00125276577f,
                             0.000218324247f, -4.9455266e-06f, -3.45563217e-06f, 4.61256803e-07f,
                             2.24781065e-08f, -8.3404661e-09f);
    }
    if (w == __builtin_inff())
        return __builtin_copysignf(w, x);
    float t = __builtin_sqrtf(w) - 3.0f;
    return x * EVOKE_F10(t, 2.83297682f, 1.00167489f, 0.00944505725f, -0.00763635058f,
                         0.00568861514f, -0.00360124349f, 0.00148149952f, -5.07104778e-05f,
                         -0.000307212729f, 0.000112432761f);
}

/* ---- remainders --------------------------------------------------------------------------------
 */

/* |x| as a whole number with its top bit at 23, times a power of two; x is neither zero nor NaN. */
EVOKE_FN unsigned int evoke_whole_part(unsigned int bits, int *exponent) {
    unsigned int part = bits & 0x7fffffu;
    *exponent = (int)(bits >> 23);
    if (*exponent > 0)
        return part | 0x800000u;
    int up = __clz((int)part) - 8;
    *exponent = 1 - up;
    return part << up;
}
/* a modulo b for a > b > 0, by long division, a bit a step. */
static __device__ __noinline__ EVOKE_PURE float evoke_fmodf_far(float a, float b) {
    int of_top, of_by;
    unsigned int x = evoke_whole_part(__float_as_uint(a), &of_top);
    unsigned int y = evoke_whole_part(__float_as_uint(b), &of_by);
    for (; of_top > of_by; of_top--) {
        x = x >= y ? x - y : x;
        x <<= 1;
    }
    x = x >= y ? x - y : x;
    if (x == 0)
        return 0.0f;
    int up = __clz((int)x) - 8, exponent = of_by - up;
    x <<= up;
    if (exponent > 0)
        return __uint_as_float(((unsigned int)exponent << 23) | (x & 0x7fffffu));
    return __uint_as_float(x >> (1 - exponent));
}
/* The remainder of a / b with the sign of a: exact. A quotient below 2^24 takes one division: of a
 * rounded quotient the fma gives the exact rest, which is negative where it was rounded up. */
EVOKE_FN float fmodf(float a, float b) {
    float x = __builtin_fabsf(a), y = __builtin_fabsf(b);
    if (!(x < __builtin_inff()) || !(y > 0.0f))
        return __builtin_nanf("");
    if (x < y || y == __builtin_inff())
        return a;
    float q = x / y, r;
    if (q < 16777216.0f && y > 0x1p-100f) {
        r = __builtin_fmaf(-__builtin_truncf(q), y, x);
        r = r < 0.0f ? r + y : r;
    } else {
        r = evoke_fmodf_far(x, y);
    }
    return __builtin_copysignf(r, a);
}
/* The rest with the quotient rounded to the nearest, of two equally near the even one: exact. */
EVOKE_FN float remainderf(float a, float b) {
    float y = __builtin_fabsf(b);
    if (!(__builtin_fabsf(a) < __builtin_inff()) || !(y > 0.0f))
        return __builtin_nanf("");
    float x = __builtin_fabsf(y < 0x1p127f ? fmodf(a, 2.0f * y) : a);
    if (y < 0x1p-120f) { /* the half of y may not be a number */
        if (x + x > y) {
            x -= y;
            x = x + x >= y ? x - y : x;
        }
    } else if (x > 0.5f * y) {
        x -= y;
        x = x >= 0.5f * y ? x - y : x;
    }
    return __float_as_int(a) < 0 ? -x : x;
}

#endif
