/* Stands in for NVIDIA's cuda_fp16.h: half and half2, with conversions and arithmetic. What it
 * lacks (hexp and its kin) is refused by its name. Needs sm_53. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_FP16_H
#define KERNELS_INCLUDE_CUDA_CUDA_FP16_H
#include "evoke_cuda.h"

#define EVOKE_HALF static __device__ __forceinline__
#define EVOKE_MEMBER __device__ __forceinline__

typedef _Float16 evoke_h2 __attribute__((ext_vector_type(2)));

struct __half {
    _Float16 value;
    __half() = default;
    EVOKE_MEMBER __half(_Float16 of) : value(of) {}
    EVOKE_MEMBER __half(float of) : value((_Float16)of) {}
    EVOKE_MEMBER __half(double of) : value((_Float16)of) {}
    EVOKE_MEMBER __half(int of) : value((_Float16)of) {}
    EVOKE_MEMBER __half(unsigned int of) : value((_Float16)of) {}
    EVOKE_MEMBER operator float() const { return (float)value; }
};
typedef __half half;

struct __attribute__((aligned(4))) __half2 {
    __half x, y;
};
typedef __half2 half2;

/* ---- conversions ---- */

EVOKE_HALF half __float2half(float x) {
    return half(x);
}
EVOKE_HALF half __float2half_rn(float x) {
    return half(x);
}
EVOKE_HALF float __half2float(half x) {
    return (float)x.value;
}
EVOKE_HALF half __int2half_rn(int x) {
    return half(x);
}
EVOKE_HALF int __half2int_rz(half x) {
    return (int)x.value;
}
EVOKE_HALF half __ushort_as_half(unsigned short x) {
    return half(__builtin_bit_cast(_Float16, x));
}
EVOKE_HALF unsigned short __half_as_ushort(half x) {
    return __builtin_bit_cast(unsigned short, x.value);
}
EVOKE_HALF half2 __halves2half2(half x, half y) {
    return {x, y};
}
EVOKE_HALF half2 make_half2(half x, half y) {
    return {x, y};
}
EVOKE_HALF half2 __half2half2(half x) {
    return {x, x};
}
EVOKE_HALF half2 __float2half2_rn(float x) {
    return {half(x), half(x)};
}
EVOKE_HALF half2 __floats2half2_rn(float x, float y) {
    return {half(x), half(y)};
}
EVOKE_HALF half2 __float22half2_rn(float2 x) {
    return {half(x.x), half(x.y)};
}
EVOKE_HALF float2 __half22float2(half2 x) {
    return {(float)x.x, (float)x.y};
}
EVOKE_HALF half __low2half(half2 x) {
    return x.x;
}
EVOKE_HALF half __high2half(half2 x) {
    return x.y;
}
EVOKE_HALF float __low2float(half2 x) {
    return (float)x.x;
}
EVOKE_HALF float __high2float(half2 x) {
    return (float)x.y;
}

/* ---- arithmetic ---- */

/* ---- warp functions ---- */

#define EVOKE_HALF_SHUFFLE(name)                                                                   \
    EVOKE_HALF half name(unsigned int mask, half value, int lane, int width = 32) {                \
        unsigned int bits = __half_as_ushort(value);                                               \
        return __ushort_as_half((unsigned short)name(mask, bits, lane, width));                    \
    }                                                                                              \
    EVOKE_HALF half2 name(unsigned int mask, half2 value, int lane, int width = 32) {              \
        unsigned int bits = __builtin_bit_cast(unsigned int, value);                               \
        return __builtin_bit_cast(half2, name(mask, bits, lane, width));                           \
    }
EVOKE_HALF_SHUFFLE(__shfl_sync)
EVOKE_HALF_SHUFFLE(__shfl_down_sync)
EVOKE_HALF_SHUFFLE(__shfl_xor_sync)
EVOKE_HALF_SHUFFLE(__shfl_up_sync)
#undef EVOKE_HALF_SHUFFLE

#define EVOKE_HALF_BINARY(name, op)                                                                \
    EVOKE_HALF half operator op(half a, half b) {                                                  \
        return half((_Float16)(a.value op b.value));                                               \
    }                                                                                              \
    EVOKE_HALF half &operator op##=(half & a, half b) {                                            \
        a = a op b;                                                                                \
        return a;                                                                                  \
    }                                                                                              \
    EVOKE_HALF half name(half a, half b) {                                                         \
        return a op b;                                                                             \
    }                                                                                              \
    EVOKE_HALF half2 name##2(half2 a, half2 b) {                                                   \
        return __builtin_bit_cast(half2, (evoke_h2)(__builtin_bit_cast(evoke_h2, a)                \
                                                        op __builtin_bit_cast(evoke_h2, b)));      \
    }                                                                                              \
    EVOKE_HALF half2 operator op(half2 a, half2 b) {                                               \
        return name##2(a, b);                                                                      \
    }
EVOKE_HALF_BINARY(__hadd, +)
EVOKE_HALF_BINARY(__hsub, -)
EVOKE_HALF_BINARY(__hmul, *)
EVOKE_HALF half operator/(half a, half b) {
    return half((float)a / (float)b);
}
EVOKE_HALF half __hdiv(half a, half b) {
    return a / b;
}
EVOKE_HALF half operator-(half a) {
    return half((_Float16)-a.value);
}
EVOKE_HALF half __hneg(half a) {
    return -a;
}
EVOKE_HALF half __habs(half a) {
    return half((_Float16)__builtin_fabsf16(a.value));
}
EVOKE_HALF half __hfma(half a, half b, half c) {
    return half((_Float16)__builtin_fmaf16(a.value, b.value, c.value));
}
EVOKE_HALF half2 __hfma2(half2 a, half2 b, half2 c) {
    return __builtin_bit_cast(half2, __builtin_elementwise_fma(__builtin_bit_cast(evoke_h2, a),
                                                               __builtin_bit_cast(evoke_h2, b),
                                                               __builtin_bit_cast(evoke_h2, c)));
}
EVOKE_HALF half hsqrt(half a) {
    return half(sqrtf((float)a));
}

/* ---- comparisons ---- */

#define EVOKE_HALF_COMPARE(name, op)                                                               \
    EVOKE_HALF bool operator op(half a, half b) {                                                  \
        return a.value op b.value;                                                                 \
    }                                                                                              \
    EVOKE_HALF bool name(half a, half b) {                                                         \
        return a op b;                                                                             \
    }
EVOKE_HALF_COMPARE(__hlt, <)
EVOKE_HALF_COMPARE(__hle, <=)
EVOKE_HALF_COMPARE(__hgt, >)
EVOKE_HALF_COMPARE(__hge, >=)
EVOKE_HALF_COMPARE(__heq, ==)
EVOKE_HALF_COMPARE(__hne, !=)
EVOKE_HALF half __hmax(half a, half b) {
    return half((_Float16)__builtin_fmaxf16(a.value, b.value));
}
EVOKE_HALF half __hmin(half a, half b) {
    return half((_Float16)__builtin_fminf16(a.value, b.value));
}
EVOKE_HALF bool __hisnan(half a) {
    return __builtin_isnan((float)a);
}
EVOKE_HALF half __ldg(const half *p) {
    return *p;
}

#undef EVOKE_HALF_BINARY
#undef EVOKE_HALF_COMPARE
#undef EVOKE_MEMBER
#undef EVOKE_HALF
#endif
