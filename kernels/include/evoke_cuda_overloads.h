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
template <bool is, typename T> struct evoke_if {};
template <typename T> struct evoke_if<true, T> {
    typedef T type;
};
#define EVOKE_OF_WHOLE(name)                                                                       \
    template <typename T> EVOKE_FN typename evoke_if<__is_integral(T), double>::type name(T x) {   \
        return name((double)x);                                                                    \
    }
#define EVOKE_OVERLOADS(name) EVOKE_OF_FLOAT(name) EVOKE_OF_WHOLE(name)
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

EVOKE_OVERLOADS(fabs)
EVOKE_OVERLOADS(sqrt)
EVOKE_OVERLOADS(floor)
EVOKE_OVERLOADS(ceil)
EVOKE_OVERLOADS(trunc)
EVOKE_OVERLOADS(rint)
EVOKE_OVERLOADS(nearbyint)
EVOKE_OVERLOADS(round)
#ifndef EVOKE_CUDA_LEAN
EVOKE_OVERLOADS(exp)
EVOKE_OVERLOADS(exp2)
EVOKE_OVERLOADS(exp10)
EVOKE_OVERLOADS(expm1)
EVOKE_OVERLOADS(sinh)
EVOKE_OVERLOADS(cosh)
EVOKE_OVERLOADS(tanh)
EVOKE_OVERLOADS(log)
EVOKE_OVERLOADS(log2)
EVOKE_OVERLOADS(log10)
EVOKE_OVERLOADS(log1p)
EVOKE_OVERLOADS(rsqrt)
EVOKE_OVERLOADS(cbrt)
EVOKE_OVERLOADS(sin)
EVOKE_OVERLOADS(cos)
EVOKE_OVERLOADS(tan)
EVOKE_OVERLOADS(sinpi)
EVOKE_OVERLOADS(cospi)
EVOKE_OVERLOADS(asin)
EVOKE_OVERLOADS(acos)
EVOKE_OVERLOADS(atan)
EVOKE_OVERLOADS(erf)
EVOKE_OVERLOADS(erfc)
EVOKE_OVERLOADS(erfinv)
EVOKE_OVERLOADS(lgamma)
EVOKE_OVERLOADS(tgamma)
EVOKE_FN void sincos(float x, float *s, float *c) {
    sincosf(x, s, c);
}
EVOKE_FN void sincospi(float x, float *s, float *c) {
    sincospif(x, s, c);
}

#endif

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

EVOKE_FN float fdim(float a, float b) {
    return fdimf(a, b);
}
/* Arguments of two types are taken as doubles, as in C++. */
#define EVOKE_MIXED(name)                                                                          \
    template <typename A, typename B>                                                              \
    EVOKE_FN typename evoke_if<__is_arithmetic(A) && __is_arithmetic(B), double>::type name(A a,   \
                                                                                            B b) { \
        return name((double)a, (double)b);                                                         \
    }
EVOKE_MIXED(copysign)
EVOKE_MIXED(fmin)
EVOKE_MIXED(fmax)
EVOKE_MIXED(fdim)
#ifndef EVOKE_CUDA_LEAN
#define EVOKE_OF_TWO(name)                                                                         \
    EVOKE_FN float name(float a, float b) {                                                        \
        return name##f(a, b);                                                                      \
    }                                                                                              \
    EVOKE_MIXED(name)
EVOKE_OF_TWO(pow)
EVOKE_OF_TWO(hypot)
EVOKE_OF_TWO(atan2)
EVOKE_OF_TWO(fmod)
EVOKE_OF_TWO(remainder)
#undef EVOKE_OF_TWO
#endif
#undef EVOKE_MIXED

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
#undef EVOKE_OVERLOADS
#undef EVOKE_OF_FLOAT
#undef EVOKE_OF_WHOLE
#undef EVOKE_EXACT

namespace std {
using ::abs;
using ::ceil;
using ::copysign;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::nearbyint;
using ::rint;
using ::round;
using ::signbit;
using ::sqrt;
using ::trunc;
#ifndef EVOKE_CUDA_LEAN
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fmod;
using ::hypot;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::pow;
using ::remainder;
using ::sin;
using ::sinh;
using ::tan;
using ::tanh;
using ::tgamma;
#endif
} // namespace std

#endif
