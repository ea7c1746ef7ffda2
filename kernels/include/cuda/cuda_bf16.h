/* Stands in for NVIDIA's cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162, with conversions,
 * arithmetic and comparisons. Sums, products and quotients are those of floats, rounded to
 * bfloat16: a float has more than twice the digits and two more, so this is the correct rounding
 * (Figueroa 1995). A fused multiply-add is the instruction fma.rn.bf16. What the header lacks (hexp
 * and its kin) is refused by its name. The fused multiply-add needs sm_80. */
#ifndef KERNELS_INCLUDE_CUDA_CUDA_BF16_H
#define KERNELS_INCLUDE_CUDA_CUDA_BF16_H
#include "evoke_cuda.h"

#define EVOKE_BRAIN static __device__ __forceinline__
#define EVOKE_MEMBER __device__ __forceinline__

/* Rounds to the nearest, ties to even. */
EVOKE_BRAIN unsigned short evoke_brain_bits(float x) {
#if __CUDA_ARCH__ >= 800
    return __builtin_bit_cast(unsigned short, __nvvm_f2bf16_rn(x));
#else
    unsigned int bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* not a number */
        return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    EVOKE_MEMBER __nv_bfloat16(float of) : bits(evoke_brain_bits(of)) {}
    EVOKE_MEMBER __nv_bfloat16(int of) : bits(evoke_brain_bits((float)of)) {}
    EVOKE_MEMBER operator float() const { return __uint_as_float((unsigned int)bits << 16); }
};
typedef __nv_bfloat16 nv_bfloat16;

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;

/* ---- conversions ---- */

EVOKE_BRAIN __nv_bfloat16 __float2bfloat16(float x) {
    return __nv_bfloat16(x);
}
EVOKE_BRAIN __nv_bfloat16 __float2bfloat16_rn(float x) {
    return __nv_bfloat16(x);
}
EVOKE_BRAIN float __bfloat162float(__nv_bfloat16 x) {
    return (float)x;
}
EVOKE_BRAIN unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) {
    return x.bits;
}
EVOKE_BRAIN __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
    return __builtin_bit_cast(__nv_bfloat16, x);
}
EVOKE_BRAIN __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
    return {x, y};
}
EVOKE_BRAIN __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
    return {x, y};
}
EVOKE_BRAIN __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) {
    return {x, x};
}
EVOKE_BRAIN __nv_bfloat162 __float2bfloat162_rn(float x) {
    return {__nv_bfloat16(x), __nv_bfloat16(x)};
}
EVOKE_BRAIN __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
EVOKE_BRAIN __nv_bfloat162 __float22bfloat162_rn(float2 x) {
    return {__nv_bfloat16(x.x), __nv_bfloat16(x.y)};
}
EVOKE_BRAIN float2 __bfloat1622float2(__nv_bfloat162 x) {
    return {(float)x.x, (float)x.y};
}
EVOKE_BRAIN float __low2float(__nv_bfloat162 x) {
    return (float)x.x;
}
EVOKE_BRAIN float __high2float(__nv_bfloat162 x) {
    return (float)x.y;
}

/* ---- arithmetic and comparisons ---- */

#define EVOKE_BRAIN_BINARY(name, op)                                                               \
    EVOKE_BRAIN __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) {                      \
        return __nv_bfloat16((float)a op(float) b);                                                \
    }                                                                                              \
    EVOKE_BRAIN __nv_bfloat16 &operator op##=(__nv_bfloat16 & a, __nv_bfloat16 b) {                \
        a = a op b;                                                                                \
        return a;                                                                                  \
    }                                                                                              \
    EVOKE_BRAIN __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) {                             \
        return a op b;                                                                             \
    }                                                                                              \
    EVOKE_BRAIN __nv_bfloat162 operator op(__nv_bfloat162 a, __nv_bfloat162 b) {                   \
        return {a.x op b.x, a.y op b.y};                                                           \
    }
EVOKE_BRAIN_BINARY(__hadd, +)
EVOKE_BRAIN_BINARY(__hsub, -)
EVOKE_BRAIN_BINARY(__hmul, *)
EVOKE_BRAIN_BINARY(__hdiv, /)
EVOKE_BRAIN __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return a + b;
}
EVOKE_BRAIN __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return a - b;
}
EVOKE_BRAIN __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return a * b;
}
EVOKE_BRAIN __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
    return __builtin_bit_cast(__nv_bfloat16, __nvvm_fma_rn_bf16(__builtin_bit_cast(__bf16, a),
                                                                __builtin_bit_cast(__bf16, b),
                                                                __builtin_bit_cast(__bf16, c)));
}
EVOKE_BRAIN __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
EVOKE_BRAIN __nv_bfloat16 operator-(__nv_bfloat16 a) {
    return __ushort_as_bfloat16(a.bits ^ 0x8000u);
}
EVOKE_BRAIN __nv_bfloat16 __hneg(__nv_bfloat16 a) {
    return -a;
}
EVOKE_BRAIN __nv_bfloat16 __habs(__nv_bfloat16 a) {
    return __ushort_as_bfloat16(a.bits & 0x7fffu);
}
EVOKE_BRAIN __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fmaxf((float)a, (float)b));
}
EVOKE_BRAIN __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fminf((float)a, (float)b));
}
#define EVOKE_BRAIN_COMPARE(name, op)                                                              \
    EVOKE_BRAIN bool operator op(__nv_bfloat16 a, __nv_bfloat16 b) {                               \
        return (float)a op(float) b;                                                               \
    }                                                                                              \
    EVOKE_BRAIN bool name(__nv_bfloat16 a, __nv_bfloat16 b) {                                      \
        return a op b;                                                                             \
    }
EVOKE_BRAIN_COMPARE(__hlt, <)
EVOKE_BRAIN_COMPARE(__hle, <=)
EVOKE_BRAIN_COMPARE(__hgt, >)
EVOKE_BRAIN_COMPARE(__hge, >=)
EVOKE_BRAIN_COMPARE(__heq, ==)
EVOKE_BRAIN_COMPARE(__hne, !=)
EVOKE_BRAIN bool __hisnan(__nv_bfloat16 a) {
    return __builtin_isnan((float)a);
}
EVOKE_BRAIN __nv_bfloat16 __ldg(const __nv_bfloat16 *p) {
    return *p;
}

#undef EVOKE_BRAIN_BINARY
#undef EVOKE_BRAIN_COMPARE
#undef EVOKE_MEMBER
#undef EVOKE_BRAIN
#endif
