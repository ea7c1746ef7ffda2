/* C++ overloads of CUDA's functions, as nvcc has them: sqrt(float) is sqrtf, fma(float, ...) is
 * fmaf, min(float, double) is a double. Without them a call with floats is computed in double
 * precision. Included by evoke_cuda.h, whose functions it calls.
 *
 * std:: gets the same functions, ahead of the host's: a call in device code takes those of the
 * device. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_OVERLOADS_H
#define KERNELS_INCLUDE_EVOKE_CUDA_OVERLOADS_H

/* clang lets a function of a system header stand ahead of the host's constexpr one. */
#pragma clang system_header

/* ---- one argument ------------------------------------------------------------------------------
 */

#define EVOKE_OF_FLOAT(name)                                                                       \
    EVOKE_FN float name(float x) {                                                                 \
        return name##f(x);                                                                         \
    }
/* Whole numbers are taken as doubles, as in C++. */
#define EVOKE_OF_WHOLE(name)                                                                       \
    EVOKE_FN double name(int x) {                                                                  \
        return name((double)x);                                                                    \
    }
#define EVOKE_EXACT(name)                                                                          \
    EVOKE_FN double name(double x) {                                                               \
        return __builtin_##name(x);                                                                \
    }

EVOKE_EXACT(floor)
EVOKE_EXACT(ceil)
EVOKE_EXACT(trunc)
EVOKE_EXACT(rint)
EVOKE_FN double nearbyint(double x) {
    return __builtin_rint(x);
}
EVOKE_FN float nearbyintf(float x) {
    return __builtin_rintf(x);
}
/* To the nearest, halves away from zero. */
EVOKE_FN float roundf(float x) {
    float whole = __builtin_truncf(x);
    return __builtin_fabsf(x - whole) >= 0.5f ? whole + __builtin_copysignf(1.0f, x)
                                              : __builtin_copysignf(whole, x);
}
EVOKE_FN double round(double x) {
    double whole = __builtin_trunc(x);
    return __builtin_fabs(x - whole) >= 0.5 ? whole + __builtin_copysign(1.0, x)
                                            : __builtin_copysign(whole, x);
}
EVOKE_FN double copysign(double x, double sign) {
    return __builtin_copysign(x, sign);
}

/* 10^x as 2^n 10^r, with r = x - n log10(2) in two steps, as expf. */
EVOKE_FN float exp10f(float x) {
    x = x > 39.0f ? 39.0f : x;
    x = x < -46.0f ? -46.0f : x;
    float n = rintf(x * 3.32192809f);
    float r = fmaf(n, -0.301025391f, x);
    r = fmaf(n, -4.60503898e-6f, r);
    int whole = __float2int_rn(n);
    int half = whole >> 1;
    return __nvvm_ex2_approx_f(r * 3.32192809f) * evoke_power_of_two(half) *
           evoke_power_of_two(whole - half);
}
EVOKE_FN float log10f(float x) {
    float n;
    float l = evoke_log_parts(x, &n);
    float low = fmaf(l, 1.21433844e-9f, n * 4.60503898e-6f); /* of log10(e) and log10(2) */
    return evoke_log_edges(x, fmaf(n, 0.301025391f, fmaf(l, 0.434294481f, low)));
}
EVOKE_FN float tanf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    float s = evoke_sin_core(r), c = evoke_cos_core(r);
    return (quadrant & 1) ? -c / s : s / c;
}
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
/* The remainder of a / b with the sign of a: exact. Long division, a bit a step. */
EVOKE_FN float fmodf(float a, float b) {
    unsigned int top = __float_as_uint(a) & 0x7fffffffu, by = __float_as_uint(b) & 0x7fffffffu;
    unsigned int sign = __float_as_uint(a) & 0x80000000u;
    if (by == 0 || by > 0x7f800000u || top >= 0x7f800000u)
        return __builtin_nanf("");
    if (top < by)
        return a;
    int of_top, of_by;
    unsigned int x = evoke_whole_part(top, &of_top), y = evoke_whole_part(by, &of_by);
    for (; of_top > of_by; of_top--) {
        x = x >= y ? x - y : x;
        x <<= 1;
    }
    x = x >= y ? x - y : x;
    if (x == 0)
        return __uint_as_float(sign);
    int up = __clz((int)x) - 8, exponent = of_by - up;
    x <<= up;
    if (exponent > 0)
        return __uint_as_float(sign | ((unsigned int)exponent << 23) | (x & 0x7fffffu));
    return __uint_as_float(sign | (x >> (1 - exponent)));
}

EVOKE_OF_FLOAT(exp10)
EVOKE_OF_FLOAT(log10)
EVOKE_OF_FLOAT(tan)
EVOKE_FN float fmod(float a, float b) {
    return fmodf(a, b);
}
EVOKE_OF_FLOAT(fabs)
EVOKE_OF_FLOAT(sqrt)
EVOKE_OF_FLOAT(floor)
EVOKE_OF_FLOAT(ceil)
EVOKE_OF_FLOAT(trunc)
EVOKE_OF_FLOAT(rint)
EVOKE_OF_FLOAT(nearbyint)
EVOKE_OF_FLOAT(round)
EVOKE_OF_FLOAT(exp)
EVOKE_OF_FLOAT(exp2)
EVOKE_OF_FLOAT(log)
EVOKE_OF_FLOAT(log2)
EVOKE_OF_FLOAT(tanh)
EVOKE_OF_FLOAT(sin)
EVOKE_OF_FLOAT(cos)
EVOKE_OF_FLOAT(rsqrt)
EVOKE_OF_FLOAT(sinpi)
EVOKE_OF_FLOAT(cospi)
EVOKE_OF_WHOLE(sqrt)
EVOKE_OF_WHOLE(fabs)
EVOKE_OF_WHOLE(floor)
EVOKE_OF_WHOLE(ceil)

EVOKE_FN double rsqrt(double x) {
    return 1.0 / __builtin_sqrt(x);
}
/* Without these, a double would be rounded to the float that the function above takes. */
#define EVOKE_ABSENT(name)                                                                         \
    __attribute__((unavailable("Evoke has no " #name " in double precision"))) __device__ double   \
    name(double x);
EVOKE_ABSENT(exp)
EVOKE_ABSENT(exp2)
EVOKE_ABSENT(exp10)
EVOKE_ABSENT(log)
EVOKE_ABSENT(log2)
EVOKE_ABSENT(log10)
EVOKE_ABSENT(tanh)
EVOKE_ABSENT(sin)
EVOKE_ABSENT(cos)
EVOKE_ABSENT(tan)
EVOKE_ABSENT(sinpi)
EVOKE_ABSENT(cospi)
__attribute__((unavailable("Evoke has no fmod in double precision"))) __device__ double
fmod(double a, double b);
#undef EVOKE_ABSENT

/* ---- several arguments -------------------------------------------------------------------------
 */

EVOKE_FN float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
EVOKE_FN float copysign(float x, float sign) {
    return __builtin_copysignf(x, sign);
}
EVOKE_FN float fmin(float a, float b) {
    return __builtin_fminf(a, b);
}
EVOKE_FN float fmax(float a, float b) {
    return __builtin_fmaxf(a, b);
}
EVOKE_FN float fdimf(float a, float b) {
    return a <= b ? 0.0f : a - b;
}
EVOKE_FN double fdim(double a, double b) {
    return a <= b ? 0.0 : a - b;
}

/* ---- absolute value, minimum, maximum ----------------------------------------------------------
 */

EVOKE_FN long abs(long a) {
    return a < 0 ? -a : a;
}
EVOKE_FN long long abs(long long a) {
    return a < 0 ? -a : a;
}
EVOKE_FN float abs(float a) {
    return __builtin_fabsf(a);
}
EVOKE_FN double abs(double a) {
    return __builtin_fabs(a);
}
EVOKE_FN long labs(long a) {
    return a < 0 ? -a : a;
}
EVOKE_FN long long llabs(long long a) {
    return a < 0 ? -a : a;
}

/* Mixed arguments give the type that C's arithmetic would. */
#define EVOKE_LEAST(result, a_type, b_type)                                                        \
    EVOKE_FN result min(a_type a, b_type b) {                                                      \
        return (result)a < (result)b ? (result)a : (result)b;                                      \
    }                                                                                              \
    EVOKE_FN result max(a_type a, b_type b) {                                                      \
        return (result)a > (result)b ? (result)a : (result)b;                                      \
    }
#define EVOKE_LEAST_REAL(a_type, b_type)                                                           \
    EVOKE_FN double min(a_type a, b_type b) {                                                      \
        return __builtin_fmin((double)a, (double)b);                                               \
    }                                                                                              \
    EVOKE_FN double max(a_type a, b_type b) {                                                      \
        return __builtin_fmax((double)a, (double)b);                                               \
    }
EVOKE_LEAST(unsigned int, int, unsigned int)
EVOKE_LEAST(unsigned int, unsigned int, int)
EVOKE_LEAST(long, long, long)
EVOKE_LEAST(unsigned long, unsigned long, unsigned long)
EVOKE_LEAST(unsigned long, long, unsigned long)
EVOKE_LEAST(unsigned long, unsigned long, long)
EVOKE_LEAST(unsigned long long, unsigned long long, unsigned long long)
EVOKE_LEAST(unsigned long long, long long, unsigned long long)
EVOKE_LEAST(unsigned long long, unsigned long long, long long)
EVOKE_LEAST_REAL(double, double)
EVOKE_LEAST_REAL(float, double)
EVOKE_LEAST_REAL(double, float)
#undef EVOKE_LEAST
#undef EVOKE_LEAST_REAL

/* ---- kinds of numbers --------------------------------------------------------------------------
 */

#define EVOKE_KINDS(type)                                                                          \
    EVOKE_FN bool isnan(type x) {                                                                  \
        return __builtin_isnan(x);                                                                 \
    }                                                                                              \
    EVOKE_FN bool isinf(type x) {                                                                  \
        return __builtin_isinf(x);                                                                 \
    }                                                                                              \
    EVOKE_FN bool isfinite(type x) {                                                               \
        return __builtin_isfinite(x);                                                              \
    }                                                                                              \
    EVOKE_FN bool signbit(type x) {                                                                \
        return __builtin_signbit(x);                                                               \
    }
EVOKE_KINDS(float)
EVOKE_KINDS(double)
#undef EVOKE_KINDS
#undef EVOKE_OF_FLOAT
#undef EVOKE_OF_WHOLE
#undef EVOKE_EXACT

namespace std {
using ::abs;
using ::ceil;
using ::copysign;
using ::cos;
using ::exp;
using ::exp2;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log10;
using ::log2;
using ::nearbyint;
using ::rint;
using ::round;
using ::signbit;
using ::sin;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;
} // namespace std

#endif
