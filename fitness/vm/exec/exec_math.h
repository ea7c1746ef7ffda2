/* PTX arithmetic for which C has no operator. Only the executor includes this file. Each function
 * follows the section of its instruction in the PTX ISA. */
#ifndef FITNESS_VM_EXEC_EXEC_MATH_H
#define FITNESS_VM_EXEC_EXEC_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PTX_INLINE static inline __attribute__((always_inline, unused))

PTX_INLINE uint32_t bits_of_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
PTX_INLINE float f32_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}
PTX_INLINE uint64_t bits_of_f64(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}
PTX_INLINE double f64_of_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* ---- integers */

PTX_INLINE int32_t ptx_sat_s32(int64_t x) {
    if (x > INT32_MAX)
        return INT32_MAX;
    return x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
PTX_INLINE int32_t ptx_relu_s32(int32_t x) {
    return x < 0 ? 0 : x;
}

PTX_INLINE uint16_t mulhi_u16(uint16_t a, uint16_t b) {
    return (uint16_t)((uint32_t)a * b >> 16);
}
PTX_INLINE int16_t mulhi_s16(int16_t a, int16_t b) {
    return (int16_t)((int32_t)a * b >> 16);
}
PTX_INLINE uint32_t mulhi_u32(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}
PTX_INLINE int32_t mulhi_s32(int32_t a, int32_t b) {
    return (int32_t)((int64_t)a * b >> 32);
}
PTX_INLINE uint64_t mulhi_u64(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
PTX_INLINE int64_t mulhi_s64(int64_t a, int64_t b) {
    return (int64_t)((__int128)a * b >> 64);
}
#define ptx_mulhi(a, b)                                                                            \
    _Generic((a),                                                                                  \
        uint16_t: mulhi_u16,                                                                       \
        int16_t: mulhi_s16,                                                                        \
        uint32_t: mulhi_u32,                                                                       \
        int32_t: mulhi_s32,                                                                        \
        uint64_t: mulhi_u64,                                                                       \
        int64_t: mulhi_s64)(a, b)
#define ptx_mulhi_any ptx_mulhi

PTX_INLINE int64_t mul24_s(int32_t a, int32_t b) {
    return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}
PTX_INLINE uint64_t mul24_u(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}
#define ptx_mul24(a, b) _Generic((a), int32_t: mul24_s, uint32_t: mul24_u)(a, b)

/* Division by zero has trapped before. Here the division must only not fault in lanes that are off.
 */
#define ptx_quotient(a, b) ((b) == 0 ? (a) : ptx_minus_one(b) ? 0 - (a) : (a) / (b))
#define ptx_remainder(a, b) ((b) == 0 || ptx_minus_one(b) ? 0 : (a) % (b))
#define ptx_minus_one(b) ((__typeof__(b))-1 < 0 && (b) == (__typeof__(b))-1)

PTX_INLINE uint32_t carry_add32(uint32_t a, uint32_t b, uint32_t in, uint32_t *out) {
    uint64_t sum = (uint64_t)a + b + in;
    *out = (uint32_t)(sum >> 32);
    return (uint32_t)sum;
}
PTX_INLINE uint64_t carry_add64(uint64_t a, uint64_t b, uint32_t in, uint32_t *out) {
    unsigned __int128 sum = (unsigned __int128)a + b + in;
    *out = (uint32_t)(sum >> 64);
    return (uint64_t)sum;
}
#define ptx_carry_add(a, b, in, out)                                                               \
    _Generic((a),                                                                                  \
        uint32_t: carry_add32,                                                                     \
        int32_t: carry_add32,                                                                      \
        uint64_t: carry_add64,                                                                     \
        int64_t: carry_add64)((__typeof__(a))(a), (__typeof__(a))(b), in, out)

#define ptx_popc(a)                                                                                \
    (uint32_t)_Generic((a), uint32_t: __builtin_popcount, uint64_t: __builtin_popcountll)(a)
PTX_INLINE uint32_t clz32(uint32_t a) {
    return a ? (uint32_t)__builtin_clz(a) : 32;
}
PTX_INLINE uint32_t clz64(uint64_t a) {
    return a ? (uint32_t)__builtin_clzll(a) : 64;
}
#define ptx_clz(a) _Generic((a), uint32_t: clz32, uint64_t: clz64)(a)

/* The position of the most significant bit that differs from the sign; all ones if there is none.
 */
PTX_INLINE uint32_t bfind_u32(uint32_t a) {
    return a ? 31 - clz32(a) : UINT32_MAX;
}
PTX_INLINE uint32_t bfind_u64(uint64_t a) {
    return a ? 63 - clz64(a) : UINT32_MAX;
}
PTX_INLINE uint32_t bfind_s32(int32_t a) {
    return bfind_u32((uint32_t)(a < 0 ? ~a : a));
}
PTX_INLINE uint32_t bfind_s64(int64_t a) {
    return bfind_u64((uint64_t)(a < 0 ? ~a : a));
}
#define ptx_bfind(a)                                                                               \
    _Generic((a),                                                                                  \
        uint32_t: bfind_u32,                                                                       \
        int32_t: bfind_s32,                                                                        \
        uint64_t: bfind_u64,                                                                       \
        int64_t: bfind_s64)(a)
#define ptx_bfind_shift(a)                                                                         \
    (ptx_bfind(a) == UINT32_MAX ? UINT32_MAX : (uint32_t)sizeof(a) * 8 - 1 - ptx_bfind(a))

PTX_INLINE uint32_t brev32(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
PTX_INLINE uint64_t brev64(uint64_t x) {
    return (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32));
}
#define ptx_brev(a) _Generic((a), uint32_t: brev32, uint64_t: brev64)(a)

/* The position of the n-th set bit of mask from `base`: upwards for n > 0, downwards for n < 0. */
PTX_INLINE uint32_t ptx_fns(uint32_t mask, uint32_t base, int32_t n) {
    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int32_t step = n > 0 ? 1 : -1, count = n > 0 ? n : -(n + 1), left = n > 0 ? count - 1 : count;
    for (int32_t i = (int32_t)base; i >= 0 && i < 32; i += step)
        if (mask >> i & 1 && left-- == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

PTX_INLINE uint64_t low_mask(uint32_t bits) {
    return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

PTX_INLINE uint64_t bfe_any(uint64_t a, uint32_t b, uint32_t c, uint32_t bits, bool is_signed) {
    uint32_t pos = b & 255, len = c & 255;
    a &= low_mask(bits);
    if (len == 0)
        return 0;
    uint32_t top = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
    uint32_t have;
    if (pos >= bits)
        have = 0;
    else
        have = len < bits - pos ? len : bits - pos;
    uint64_t value = (have ? a >> pos : 0) & low_mask(have);
    bool fill = is_signed && (a >> top & 1);
    return fill ? value | ~low_mask(have) : value;
}
#define ptx_bfe(a, b, c)                                                                           \
    bfe_any((uint64_t)(a), b, c, (uint32_t)sizeof(a) * 8, (__typeof__(a))-1 < 0)

PTX_INLINE uint64_t bfi_any(uint64_t a, uint64_t b, uint32_t c, uint32_t e, uint32_t bits) {
    uint32_t pos = c & 255, len = e & 255;
    if (pos >= bits || len == 0)
        return b;
    uint64_t mask = low_mask(len) << pos & low_mask(bits);
    return (b & ~mask) | (a << pos & mask);
}
#define ptx_bfi(a, b, c, e) bfi_any(a, b, c, e, (uint32_t)sizeof(a) * 8)

PTX_INLINE uint32_t ptx_bmsk(uint32_t a, uint32_t b, bool wrap) {
    uint32_t pos = wrap ? a & 31 : a, len = wrap ? b & 31 : b;
    if (pos > 31)
        return 0;
    return (uint32_t)(low_mask(len) << pos);
}
PTX_INLINE uint32_t szext_any(uint32_t a, uint32_t b, bool wrap, bool is_signed) {
    uint32_t n;
    if (wrap)
        n = b & 31;
    else
        n = b > 32 ? 32 : b;
    if (n == 0)
        return 0;
    if (n == 32)
        return a;
    uint32_t value = a & (uint32_t)low_mask(n);
    return is_signed && (a >> (n - 1) & 1) ? value | ~(uint32_t)low_mask(n) : value;
}
#define ptx_szext(a, b, wrap) szext_any((uint32_t)(a), b, wrap, (__typeof__(a))-1 < 0)

#define ptx_shl(a, b) ((b) >= sizeof(a) * 8 ? 0 : (a) << (b))
#define ptx_shr(a, b)                                                                              \
    ((a) >> ((b) >= sizeof(a) * 8 ? sizeof(a) * 8 - 1 : (b)) >> ((b) >= sizeof(a) * 8))
PTX_INLINE uint32_t ptx_shf_l(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)((((uint64_t)b << 32 | a) << (n & 63)) >> 32);
}
PTX_INLINE uint32_t ptx_shf_r(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)(((uint64_t)b << 32 | a) >> (n & 63));
}

PTX_INLINE uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t selector = c >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (selector & 7))) & 255;
        uint32_t sign = (0u - (byte >> 7)) & 255;
        result |= (selector & 8 ? sign : byte) << (8 * i);
    }
    return result;
}

PTX_INLINE uint32_t ptx_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    r |= table & 1 ? ~a & ~b & ~c : 0;
    r |= table & 2 ? ~a & ~b & c : 0;
    r |= table & 4 ? ~a & b & ~c : 0;
    r |= table & 8 ? ~a & b & c : 0;
    r |= table & 16 ? a & ~b & ~c : 0;
    r |= table & 32 ? a & ~b & c : 0;
    r |= table & 64 ? a & b & ~c : 0;
    r |= table & 128 ? a & b & c : 0;
    return r;
}

/* ---- floats */

#define PTX_NAN32 (f32_of_bits(0x7fffffff))
#define PTX_NAN64 (f64_of_bits(0x7ff8000000000000))
PTX_INLINE float canonical_f32(float x) {
    return x != x ? PTX_NAN32 : x;
}
PTX_INLINE double canonical_f64(double x) {
    return x != x ? PTX_NAN64 : x;
}
PTX_INLINE float flush_f32(float x) {
    uint32_t u = bits_of_f32(x);
    return f32_of_bits((u & 0x7f800000) == 0 ? u & 0x80000000 : u);
}

PTX_INLINE double f16_to_double(uint32_t h) {
    uint32_t em = h & 0x7fff;
    uint32_t normal = (em << 13) + (em >= 0x7c00 ? 224u << 23 : 112u << 23);
    float magnitude = em < 0x400 ? (float)(int32_t)em * 0x1p-24f : f32_of_bits(normal);
    return (double)f32_of_bits(bits_of_f32(magnitude) | (h & 0x8000) << 16);
}
PTX_INLINE double bf16_to_double(uint32_t h) {
    return (double)f32_of_bits(h << 16);
}

/* Rounds to `fraction` bits of fraction with the least exponent `emin`, to nearest even. */
PTX_INLINE uint32_t double_to_small(double x, unsigned fraction, int emin, uint32_t inf,
                                    uint32_t nan) {
    uint64_t u = bits_of_f64(x);
    uint32_t sign = (uint32_t)(u >> 48) & 0x8000;
    uint64_t magnitude = u & INT64_MAX;
    double m = f64_of_bits(magnitude);
    unsigned drop = 52 - fraction;
    uint64_t rounded = (magnitude + ((1ull << (drop - 1)) - 1) + (magnitude >> drop & 1)) >> drop;
    uint64_t normal = rounded - ((uint64_t)(1023 + emin - 1) << fraction);
    double scale = f64_of_bits((uint64_t)(1023 - emin + (int)fraction) << 52);
    double tiny = m * scale + 0x1p52 - 0x1p52;
    uint32_t r;
    if (m < f64_of_bits((uint64_t)(1023 + emin) << 52))
        r = (uint32_t)(int32_t)tiny;
    else
        r = normal >= inf ? inf : (uint32_t)normal;
    return x != x ? nan : r | sign;
}
PTX_INLINE uint32_t double_to_f16(double x) {
    return double_to_small(x, 10, -14, 0x7c00, 0x7fff);
}
PTX_INLINE uint32_t double_to_bf16(double x) {
    return double_to_small(x, 7, -126, 0x7f80, 0x7fff);
}

/* a * b + c of half-width operands, rounded to odd, so that a second rounding to fewer bits is
 * correct (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). The product
 * is exact in double. */
PTX_INLINE double ptx_fma_odd(double a, double b, double c) {
    double p = a * b, s = p + c;
    double t = s - p, err = (p - (s - t)) + (c - t);
    uint64_t u = bits_of_f64(s);
    bool toward = (err > 0) == (s > 0);
    bool inexact = err == err && err != 0 && s - s == 0;
    uint64_t odd;
    if (u & 1)
        odd = u;
    else
        odd = toward ? u + 1 : u - 1;
    return inexact ? f64_of_bits(odd) : s;
}

PTX_INLINE float ptx_div_approx(float a, float b) {
    float magnitude = f32_of_bits(bits_of_f32(b) & 0x7fffffff);
    if (magnitude > 0x1p126f && magnitude < __builtin_inff()) /* 1/b flushes to zero inside */
        return a * f32_of_bits(bits_of_f32(b) & 0x80000000);
    return a / b;
}
PTX_INLINE float sqrt_f32(float x) {
    return __builtin_sqrtf(x);
}
PTX_INLINE double sqrt_f64(double x) {
    return __builtin_sqrt(x);
}
#define ptx_sqrt(a) _Generic((a), float: sqrt_f32, double: sqrt_f64)(a)
/* The .approx.ftz.f64 forms read the upper half of the operand only, and give no subnormal results.
 */
PTX_INLINE double ptx_high_word(double x) {
    uint64_t u = bits_of_f64(x) & 0xffffffff00000000;
    u = (u & 0x7ff0000000000000) == 0 ? u & 0x8000000000000000 : u;
    return x != x ? PTX_NAN64 : f64_of_bits(u);
}

/* ---- rounding modes: sets MXCSR around the few instructions with another mode than nearest. */

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* `mode` in the encoding of MXCSR: 0 nearest, 1 down, 2 up, 3 towards zero. */
PTX_INLINE unsigned round_enter(unsigned mode) {
    unsigned old = _mm_getcsr();
    if (mode) {
        unsigned now = (old & ~0x6000u) | mode << 13;
        __asm__ volatile("ldmxcsr %0" : : "m"(now) : "memory");
    }
    return old;
}
PTX_INLINE void round_leave(unsigned mode, unsigned old) {
    if (mode)
        __asm__ volatile("ldmxcsr %0" : : "m"(old) : "memory");
}

#endif
