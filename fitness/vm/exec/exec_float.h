/* Handlers of floating-point arithmetic and of conversions. Plain handlers serve round-to-nearest
 * without ftz and sat; all other forms share a second handler that reads the modifiers (variant 1).
 */

static inline unsigned csr_mode(uint8_t rnd) {
    if (rnd == PTX_M_RM || rnd == PTX_M_RMI)
        return 1;
    if (rnd == PTX_M_RP || rnd == PTX_M_RPI)
        return 2;
    return rnd == PTX_M_RZ || rnd == PTX_M_RZI ? 3 : 0;
}

/* The effect of the modifiers on an operand and on a result. */
#define IN_f32(x) FZ_f32(x)
#define IN_f64(x) (x)
#define IN_f16(x) (ip->ftz && (x) < 0x1p-14 && (x) > -0x1p-14 ? __builtin_copysign(0.0, x) : (x))
#define IN_bf16(x) (ip->ftz && (x) < 0x1p-126 && (x) > -0x1p-126 ? __builtin_copysign(0.0, x) : (x))
static inline float saturate_f32(const ptx_insn *ip, float x) {
    x = ip->ftz ? flush_f32(x) : x;
    float clamped;
    if (x > 0)
        clamped = x < 1 ? x : 1.0f;
    /* also for NaN */
    else
        clamped = 0.0f;
    return ip->sat ? clamped : x;
}
static inline double at_most_one(double x) {
    return x < 1 ? x : 1.0;
}
static inline double relu_f64(const ptx_insn *ip, double x) {
    return ip->relu && x < 0 ? 0.0 : x;
}
static inline double saturate_f64(const ptx_insn *ip, double x) {
    double clamped = x > 0 ? at_most_one(x) : 0.0;
    return ip->sat ? clamped : relu_f64(ip, x);
}
#define OUT_f32(x) bits_of_f32(saturate_f32(ip, canonical_f32((float)(x))))
#define OUT_f64(x) PUT_f64(saturate_f64(ip, x))
#define OUT_f16(x) flush_f16(ip, double_to_f16(saturate_f64(ip, x)))
#define OUT_bf16(x) flush_bf16(ip, double_to_bf16(saturate_f64(ip, x)))
static inline uint32_t flush_f16(const ptx_insn *ip, uint32_t h) {
    return ip->ftz && (h & 0x7c00) == 0 ? h & 0x8000 : h;
}
static inline uint32_t flush_bf16(const ptx_insn *ip, uint32_t h) {
    return ip->ftz && (h & 0x7f80) == 0 ? h & 0x8000 : h;
}

#define F_HANDLERS(T, id, sources, values, expr)                                                   \
    HANDLER(id##_##T) {                                                                            \
        sources(T) LT(T) *out = OUT(LT(T));                                                        \
        LANES {                                                                                    \
            values(T, GET_##T) out[i] = PUT_##T(expr);                                             \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }                                                                                              \
    static __attribute__((noinline)) void modified_##id##_##T(const ptx_insn *ip, uint8_t *regs,   \
                                                              LT(T) * out) {                       \
        sources(T) LANES {                                                                         \
            values(T, MOD_GET_##T) out[i] = OUT_##T(expr);                                         \
        }                                                                                          \
    }                                                                                              \
    HANDLER(id##_##T##_mod) {                                                                      \
        unsigned mode = csr_mode(ip->rnd), old = round_enter(mode);                                \
        modified_##id##_##T(ip, regs, OUT(LT(T)));                                                 \
        round_leave(mode, old);                                                                    \
        FINISH(T);                                                                                 \
    }
#define MOD_GET_f32(x) IN_f32(GET_f32(x))
#define MOD_GET_f64(x) GET_f64(x)
#define MOD_GET_f16(x) IN_f16(GET_f16(x))
#define MOD_GET_bf16(x) GET_bf16(x)
#define VALUES1(T, get) CT_##T a = get(pa[i]);
#define VALUES2(T, get) CT_##T a = get(pa[i]), b = get(pb[i]);
#define VALUES3(T, get) CT_##T a = get(pa[i]), b = get(pb[i]), c = get(pc[i]);

/* Two halves in a register: the scalar form on each half. */
#define HALF_f16x2 f16
#define HALF_bf16x2 bf16
#define PART(p, k) ((p)[i] >> (16 * (k)) & 0xffff)
#define VALUES1P(H, k, get) double a = get(PART(pa, k));
#define VALUES2P(H, k, get) double a = get(PART(pa, k)), b = get(PART(pb, k));
#define VALUES3P(H, k, get) double a = get(PART(pa, k)), b = get(PART(pb, k)), c = get(PART(pc, k));
#define X_HANDLERS(T, H, id, sources, values, expr)                                                \
    static __attribute__((noinline)) void packed_##id##_##T(const ptx_insn *ip, uint8_t *regs,     \
                                                            uint32_t *out) {                       \
        sources(u32) LANES {                                                                       \
            uint32_t lo, hi;                                                                       \
            {                                                                                      \
                values(H, 0, MOD_GET_##H) lo = OUT_##H(expr);                                      \
            }                                                                                      \
            {                                                                                      \
                values(H, 1, MOD_GET_##H) hi = OUT_##H(expr);                                      \
            }                                                                                      \
            out[i] = lo | hi << 16;                                                                \
        }                                                                                          \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        packed_##id##_##T(ip, regs, OUT(uint32_t));                                                \
        FINISH(u32);                                                                               \
    }                                                                                              \
    HANDLER(id##_##T##_mod) {                                                                      \
        packed_##id##_##T(ip, regs, OUT(uint32_t));                                                \
        FINISH(u32);                                                                               \
    }
#define FUN_f32(id, n, expr) F_HANDLERS(f32, id, SOURCES##n, VALUES##n, expr)
#define FUN_f64(id, n, expr) F_HANDLERS(f64, id, SOURCES##n, VALUES##n, expr)
#define FUN_f16(id, n, expr) F_HANDLERS(f16, id, SOURCES##n, VALUES##n, expr)
#define FUN_bf16(id, n, expr) F_HANDLERS(bf16, id, SOURCES##n, VALUES##n, expr)
#define FUN_f16x2(id, n, expr) X_HANDLERS(f16x2, f16, id, SOURCES##n, VALUES##n##P, expr)
#define FUN_bf16x2(id, n, expr) X_HANDLERS(bf16x2, bf16, id, SOURCES##n, VALUES##n##P, expr)
#define H_FUN(T, id, expr) FUN_##T(id, 1, expr)
#define H_FBIN(T, id, expr) FUN_##T(id, 2, expr)
#define H_FTER(T, id, expr) FUN_##T(id, 3, expr)

/* ---- approximations: the row's expression rounded, or what hardware may give (exec_approx.h) */

#include "fitness/vm/exec/exec_approx.h"

/* Two results of a register that holds two halves, else one. */
#define APPROX_LANE(T, id, b) OUT_##T(approx_##id##_##T(w->approx, MOD_GET_##T(pa[i]), b))
#define APPROX_PART(H, id, k) OUT_##H(approx_##id##_##H(w->approx, MOD_GET_##H(PART(pa, k)), 0))
#define APPROX_f32(id, b) APPROX_LANE(f32, id, b)
#define APPROX_f64(id, b) APPROX_LANE(f64, id, b)
#define APPROX_f16(id, b) APPROX_LANE(f16, id, b)
#define APPROX_bf16(id, b) APPROX_LANE(bf16, id, b)
#define APPROX_f16x2(id, b) (APPROX_PART(f16, id, 0) | APPROX_PART(f16, id, 1) << 16)
#define APPROX_bf16x2(id, b) (APPROX_PART(bf16, id, 0) | APPROX_PART(bf16, id, 1) << 16)

/* h_exact_ID_TYPE is the handler of a row without error; h_ID_TYPE asks the launch which is wanted.
 */
#define APPROX_HANDLER(T, id, suffix, sources, b)                                                  \
    HANDLER(id##_##T##suffix) {                                                                    \
        if (__builtin_expect(w->approx == VM_APPROX_NEAREST, 1))                                   \
            return h_exact_##id##_##T##suffix(w, ip, regs, mask);                                  \
        approximate_##id##_##T(w, ip, regs, OUT(LT(T)));                                           \
        FINISH(T);                                                                                 \
    }
#define APPROX_HANDLERS(T, id, sources, b)                                                         \
    static __attribute__((noinline)) void approximate_##id##_##T(                                  \
        const vm_warp *w, const ptx_insn *ip, const uint8_t *regs, LT(T) * out) {                  \
        sources(T) for (unsigned i = 0; i < 32; i++) out[i] = APPROX_##T(id, b);                   \
    }                                                                                              \
    APPROX_HANDLER(T, id, , sources, b)                                                            \
    APPROX_HANDLER(T, id, _mod, sources, b)
#define H_APPROX1(T, id, expr) FUN_##T(exact_##id, 1, expr) APPROX_HANDLERS(T, id, SOURCES1, 0)
#define H_APPROX2(T, id, expr)                                                                     \
    FUN_##T(exact_##id, 2, expr) APPROX_HANDLERS(T, id, SOURCES2, MOD_GET_##T(pb[i]))

/* ---- sign, minimum, class */

#define SIGN_f32 0x80000000u
#define SIGN_f64 0x8000000000000000u
#define SIGN_f16 0x8000u
#define SIGN_bf16 0x8000u
#define SIGN_f16x2 0x80008000u
#define SIGN_bf16x2 0x80008000u
static inline uint32_t half_flushed(uint32_t h) {
    return h & 0x7c00 ? h : h & 0x8000;
}
#define FLUSHED_f32(a) ((a) & 0x7f800000u ? (a) : (a) & 0x80000000u)
#define FLUSHED_f64(a) (a)
#define FLUSHED_f16(a) half_flushed(a)
#define FLUSHED_bf16(a) (a)
#define FLUSHED_f16x2(a) (half_flushed((a) & 0xffff) | half_flushed((a) >> 16) << 16)
#define FLUSHED_bf16x2(a) (a)
#define H_FSIGN(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) LT(T) *out = OUT(LT(T)), sign = SIGN_##T;                                      \
        bool flush = ip->ftz;                                                                      \
        LANES {                                                                                    \
            LT(T) a = pa[i];                                                                       \
            a = flush ? FLUSHED_##T(a) : a;                                                        \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_COPYSIGN(T, id, expr)                                                                    \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T)), sign = SIGN_##T;                                      \
        LANES {                                                                                    \
            LT(T) a = pa[i], b = pb[i];                                                            \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
/* -0 is less than +0. */
#define ptx_less(a, b) ((a) < (b) || ((a) == (b) && ptx_signbit(a) && !ptx_signbit(b)))
#define ptx_signbit(x) __builtin_signbit(x)
#define MINMAX(T, expr)                                                                            \
    CT_##T r = a != a ? b : b != b ? a : (expr);                                                   \
    r = (ip->flags & PTX_F_NAN) && (a != a || b != b) ? (CT_##T)__builtin_nanf("") : r;
#define ABS_OF(T, x)                                                                               \
    (ip->flags & PTX_F_XORSIGN ? (CT_##T)((x) < 0 || ptx_signbit(x) ? -(x) : (x)) : (x))
#define H_FMINMAX_ONE(T, id, expr)                                                                 \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        LANES {                                                                                    \
            CT_##T x = MOD_GET_##T(pa[i]), y = MOD_GET_##T(pb[i]);                                 \
            CT_##T a = ABS_OF(T, x), b = ABS_OF(T, y);                                             \
            MINMAX(T, expr)                                                                        \
            LT(T) bits = PUT_##T(r);                                                               \
            bool flip = (ip->flags & PTX_F_XORSIGN) && r == r &&                                   \
                        (ptx_signbit(x) != 0) != (ptx_signbit(y) != 0);                            \
            out[i] = flip ? bits ^ SIGN_##T : bits;                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_FMINMAX_TWO(T, H, id, expr)                                                              \
    static inline uint32_t minmax_##id##_##T(const ptx_insn *ip, uint32_t pa, uint32_t pb) {       \
        double x = MOD_GET_##H(pa), y = MOD_GET_##H(pb);                                           \
        double a = ABS_OF(H, x), b = ABS_OF(H, y);                                                 \
        MINMAX(H, expr)                                                                            \
        uint32_t bits = PUT_##H(r);                                                                \
        bool flip = (ip->flags & PTX_F_XORSIGN) && r == r &&                                       \
                    (ptx_signbit(x) != 0) != (ptx_signbit(y) != 0);                                \
        return flip ? bits ^ 0x8000 : bits;                                                        \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(u32) uint32_t *out = OUT(uint32_t);                                               \
        LANES out[i] = minmax_##id##_##T(ip, pa[i] & 0xffff, pb[i] & 0xffff) |                     \
                       minmax_##id##_##T(ip, pa[i] >> 16, pb[i] >> 16) << 16;                      \
        FINISH(u32);                                                                               \
    }
#define FMINMAX_f32(id, expr) H_FMINMAX_ONE(f32, id, expr)
#define FMINMAX_f64(id, expr) H_FMINMAX_ONE(f64, id, expr)
#define FMINMAX_f16(id, expr) H_FMINMAX_ONE(f16, id, expr)
#define FMINMAX_bf16(id, expr) H_FMINMAX_ONE(bf16, id, expr)
#define FMINMAX_f16x2(id, expr) H_FMINMAX_TWO(f16x2, f16, id, expr)
#define FMINMAX_bf16x2(id, expr) H_FMINMAX_TWO(bf16x2, bf16, id, expr)
#define H_FMINMAX(T, id, expr) FMINMAX_##T(id, expr)

#define EXPONENT_f32 0x7f800000u
#define EXPONENT_f64 0x7ff0000000000000u
#define H_TESTP(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) int32_t cond[32];                                                              \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            LT(T) a = pa[i] & ~SIGN_##T, e = EXPONENT_##T;                                         \
            bool subnormal = a != 0 && a < (e & (0 - e));                                          \
            switch (ip->op) {                                                                      \
            case PTX_M_FINITE:                                                                     \
                cond[i] = a < e;                                                                   \
                break;                                                                             \
            case PTX_M_INFINITE:                                                                   \
                cond[i] = a == e;                                                                  \
                break;                                                                             \
            case PTX_M_NUMBER:                                                                     \
                cond[i] = a <= e;                                                                  \
                break;                                                                             \
            case PTX_M_NOTANUMBER:                                                                 \
                cond[i] = a > e;                                                                   \
                break;                                                                             \
            case PTX_M_NORMAL:                                                                     \
                cond[i] = a < e && !subnormal; /* zero counts as normal */                         \
                break;                                                                             \
            default:                                                                               \
                cond[i] = subnormal;                                                               \
            }                                                                                      \
        }                                                                                          \
        put_predicate(regs, ip->d, mask_of(cond), mask);                                           \
        NEXT;                                                                                      \
    }

/* ---- conversions: every type of PTX_LIST_CVT to every other */

#define KIND_u8 I
#define KIND_s8 I
#define KIND_u16 I
#define KIND_s16 I
#define KIND_u32 I
#define KIND_s32 I
#define KIND_u64 I
#define KIND_s64 I
#define KIND_f16 H
#define KIND_bf16 H
#define KIND_f32 F
#define KIND_f64 F
#define LEAST_u8 0
#define LEAST_s8 INT8_MIN
#define LEAST_u16 0
#define LEAST_s16 INT16_MIN
#define LEAST_u32 0
#define LEAST_s32 INT32_MIN
#define LEAST_u64 0
#define LEAST_s64 INT64_MIN
#define MOST_u8 UINT8_MAX
#define MOST_s8 INT8_MAX
#define MOST_u16 UINT16_MAX
#define MOST_s16 INT16_MAX
#define MOST_u32 UINT32_MAX
#define MOST_s32 INT32_MAX
#define MOST_u64 UINT64_MAX
#define MOST_s64 INT64_MAX

/* Integer to integer: wraps, or clamps with .sat. Both are exact in 128 bits. */
#define CVT_II(T, S)                                                                               \
    if (ip->sat)                                                                                   \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            __int128 a = GET_##S(pa[i]);                                                           \
            out[i] = a > (__int128)MOST_##T    ? PUT_##T(MOST_##T)                                 \
                     : a < (__int128)LEAST_##T ? PUT_##T(LEAST_##T)                                \
                                               : PUT_##T((CT_##T)a);                               \
        }                                                                                          \
    else                                                                                           \
        LANES {                                                                                    \
            CT_##S a = GET_##S(pa[i]);                                                             \
            out[i] = PUT_##T((CT_##T)a);                                                           \
        }

static inline double round_integral(uint8_t rnd, double x) {
    if (rnd == PTX_M_RMI || rnd == PTX_M_RM)
        return __builtin_floor(x);
    if (rnd == PTX_M_RPI || rnd == PTX_M_RP)
        return __builtin_ceil(x);
    return rnd == PTX_M_RZI || rnd == PTX_M_RZ ? __builtin_trunc(x) : __builtin_rint(x);
}
/* .ftz of a conversion flushes single precision alone (PTX ISA, cvt). */
#define CVT_IN_f16(x) (x)
#define CVT_IN_bf16(x) (x)
#define CVT_IN_f32(x) FZ_f32(x)
#define CVT_IN_f64(x) (x)

/* Float to integer: rounds and clamps. NaN becomes 0, or 1 << (bits - 1) for 64-bit types. */
#define CVT_IF(T, S)                                                                               \
    {                                                                                              \
        uint64_t nan =                                                                             \
            sizeof(CT_##T) == 8 || PTX_T_##S == PTX_T_f64 ? 1ull << (sizeof(CT_##T) * 8 - 1) : 0;  \
        uint8_t rnd = ip->rnd;                                                                     \
        LANES {                                                                                    \
            double x = round_integral(rnd, (double)CVT_IN_##S(GET_##S(pa[i])));                    \
            double past = (double)(MOST_##T / 2 + 1) * 2;                                          \
            bool high = x >= past, low = x < (double)LEAST_##T, odd = x != x;                      \
            CT_##T r = (CT_##T)(high || low || odd ? 0 : x);                                       \
            r = high ? (CT_##T)MOST_##T : low ? (CT_##T)LEAST_##T : odd ? (CT_##T)nan : r;         \
            out[i] = PUT_##T(r);                                                                   \
        }                                                                                          \
    }
#define CVT_IH(T, S) CVT_IF(T, S)
#define CVT_FI(T, S)                                                                               \
    LANES {                                                                                        \
        CT_##S a = GET_##S(pa[i]);                                                                 \
        LT(T) r = OUT_##T((CT_##T)a);                                                              \
        out[i] = a == 0 ? 0 : r; /* +0 even when rounding down */                                  \
    }
/* 64-bit integers to narrow floats by way of double: a sticky bit avoids a second rounding. */
static inline double sticky_double(__int128 a) {
    unsigned __int128 m = a < 0 ? (unsigned __int128)-a : (unsigned __int128)a;
    if (m >> 53)
        m = (m & ~(unsigned __int128)0xfff) | ((m & 0xfff) != 0 ? 0x800 : 0);
    double d = (double)(uint64_t)m;
    return a < 0 ? -d : d;
}
#define CVT_HI(T, S)                                                                               \
    for (unsigned i = 0; i < 32; i++)                                                              \
        out[i] = small_float_##T(ip, sticky_double((__int128)GET_##S(pa[i])));
/* Rounds a double to f16 or bf16 in the mode rn, rz, rm or rp. */
static inline uint32_t directed(uint32_t nearest, double back, double x, uint8_t rnd,
                                uint32_t infinity) {
    if (x != x || back == x || rnd == PTX_M_RN || rnd == PTX_M_NONE)
        return nearest;
    bool away = back > x ? x > 0 : x < 0; /* the nearest value lies farther from zero than x */
    bool want_away = false;
    if (rnd == PTX_M_RP)
        want_away = x > 0;
    else if (rnd == PTX_M_RM)
        want_away = x < 0;
    uint32_t sign = nearest & 0x8000, magnitude = nearest & 0x7fff;
    if (x - x != 0) /* an infinity stays */
        return nearest;
    if (magnitude == 0)
        sign = x < 0 ? 0x8000 : 0;
    if (away && !want_away)
        magnitude--;
    else if (!away && want_away && magnitude < infinity)
        magnitude++;
    return sign | magnitude;
}
static inline uint32_t small_float_f16(const ptx_insn *ip, double x) {
    x = saturate_f64(ip, x);
    uint32_t h = double_to_f16(x);
    return directed(h, f16_to_double(h), x, ip->rnd, 0x7c00);
}
static inline uint32_t small_float_bf16(const ptx_insn *ip, double x) {
    x = saturate_f64(ip, x);
    uint32_t h = double_to_bf16(x);
    return directed(h, bf16_to_double(h), x, ip->rnd, 0x7f80);
}
#define CVT_HF(T, S)                                                                               \
    LANES {                                                                                        \
        double x = (double)CVT_IN_##S(GET_##S(pa[i]));                                             \
        x = ip->rnd >= PTX_M_RNI && ip->rnd <= PTX_M_RPI ? round_integral(ip->rnd, x) : x;         \
        out[i] = small_float_##T(ip, x);                                                           \
    }
#define CVT_HH(T, S) CVT_HF(T, S)
#define CVT_FF(T, S)                                                                               \
    LANES {                                                                                        \
        CT_##S x = CVT_IN_##S(GET_##S(pa[i]));                                                     \
        double y = ip->rnd >= PTX_M_RNI && ip->rnd <= PTX_M_RPI ? round_integral(ip->rnd, x) : x;  \
        y = ip->relu && y < 0 ? 0 : y;                                                             \
        out[i] = OUT_##T((CT_##T)y);                                                               \
    }
#define CVT_FH(T, S) CVT_FF(T, S)

/* A source register may be wider than its type, a destination too. */
static inline const uint32_t *narrow(const uint8_t *regs, const ptx_insn *ip, uint32_t *space) {
    if (ip->count != 64)
        return CSLOT(uint32_t, ip->a);
    for (unsigned i = 0; i < 32; i++)
        space[i] = (uint32_t)CSLOT(uint64_t, ip->a)[i];
    return space;
}
static inline void widen(uint8_t *regs, const ptx_insn *ip, const uint32_t *from, uint32_t mask) {
    uint64_t *d = SLOT(uint64_t, ip->d);
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1)
            d[i] = ip->flags & PTX_F_SIGNED ? (uint64_t)(int64_t)(int32_t)from[i] : from[i];
}
#define SOURCE_32 narrow(regs, ip, space)
#define SOURCE_64 CSLOT(uint64_t, ip->a)
#define LANES_OUT_32 (ip->wide ? w->tmp : OUT(uint32_t))
#define LANES_OUT_64 OUT(uint64_t)
#define LANES_END_32                                                                               \
    if (ip->wide) {                                                                                \
        widen(regs, ip, w->tmp, mask);                                                             \
        NEXT;                                                                                      \
    }                                                                                              \
    FINISH(u32)
#define LANES_END_64 FINISH(u64)
/* Rounding by the mode of the host's FPU. The small floats are rounded by arithmetic instead. */
#define HARD_u8 0
#define HARD_s8 0
#define HARD_u16 0
#define HARD_s16 0
#define HARD_u32 0
#define HARD_s32 0
#define HARD_u64 0
#define HARD_s64 0
#define HARD_f16 0
#define HARD_bf16 0
#define HARD_f32 1
#define HARD_f64 1
#define H_CVT(T, id, expr) PTX_LIST2_CVT(H_CVT_ONE, T)
#define H_CVT_ONE(S, T)                                                                            \
    static __attribute__((noinline)) void convert_##T##_##S(const ptx_insn *ip, const LT(S) * pa,  \
                                                            LT(T) * out){                          \
        JOIN(CVT_, JOIN2(KIND_##T, KIND_##S))(T, S)} HANDLER(CVT_##T##_##S) {                      \
        uint32_t space[32];                                                                        \
        (void)space;                                                                               \
        unsigned mode = HARD_##T && ip->rnd <= PTX_M_RP ? csr_mode(ip->rnd) : 0;                   \
        unsigned old = round_enter(mode);                                                          \
        convert_##T##_##S(ip, JOIN(SOURCE_, LB_##S), JOIN(LANES_OUT_, LB_##T));                    \
        round_leave(mode, old);                                                                    \
        JOIN(LANES_END_, LB_##T);                                                                  \
    }
#define H_CVTPACK(T, id, expr)                                                                     \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(u32) uint32_t *out = OUT(uint32_t);                                               \
        bool brain = ip->row == PTX_OP_CVT_PACK_BF16;                                              \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            double hi = (double)f32_of_bits(pa[i]), lo = (double)f32_of_bits(pb[i]);               \
            uint32_t h = brain ? small_float_bf16(ip, hi) : small_float_f16(ip, hi);               \
            uint32_t l = brain ? small_float_bf16(ip, lo) : small_float_f16(ip, lo);               \
            out[i] = h << 16 | l;                                                                  \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
static inline uint32_t tf32_half(uint32_t a, uint8_t rnd) {
    return rnd == PTX_M_RNA ? 0x1000 : 0xfff + (a >> 13 & 1);
}
/* rna: ties away from zero; rn: ties to even; rz: truncation. Infinities and NaN stay as they are.
 */
static inline uint32_t to_tf32(uint32_t a, uint8_t rnd) {
    if ((a & 0x7f800000) == 0x7f800000)
        return a & 0x007fffff ? 0x7fffffff : a;
    uint32_t add = rnd == PTX_M_RZ ? 0 : tf32_half(a, rnd);
    return (a + add) & ~0x1fffu;
}
#define H_CVTTF32(T, id, expr)                                                                     \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(u32) uint32_t *out = OUT(uint32_t);                                               \
        LANES {                                                                                    \
            uint32_t r = to_tf32(pa[i], ip->rnd);                                                  \
            out[i] = ip->relu && (int32_t)r < 0 ? 0 : r;                                           \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
