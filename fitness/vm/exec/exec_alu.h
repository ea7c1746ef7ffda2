/* Handlers of arithmetic, logic, comparison and conversion: one macro for each shape of
 * ptx_ops.def.
 *
 * Each handler computes all 32 lanes in a loop that the compiler turns into vector instructions. If
 * some lanes are off, the result goes to w->tmp first and is blended in. Destination and source may
 * be the same slot, but never overlap in part, so iterations are independent (LANES). */

#define HANDLER(name)                                                                              \
    static const ptx_insn *h_##name(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask)

/* Stands before a loop that must become vector instructions. Clang would unroll a short loop to
 * scalar code before it tries vectors, hence `unroll(disable)`. Iterations are independent. */
#ifdef __clang__
#define VECTORS _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#define VECTORS2 _Pragma("clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)")
#else
#define VECTORS _Pragma("GCC ivdep")
#define VECTORS2 VECTORS
#endif
#define LANES VECTORS2 for (unsigned i = 0; i < 32; i++)

#define SLOT(type, at) ((type *)(void *)(regs + (at)))
#define CSLOT(type, at) ((const type *)(const void *)(regs + (at)))
#define OUT(type) (mask == VM_FULL ? SLOT(type, ip->d) : (type *)(void *)w->tmp)
#define DONE(type)                                                                                 \
    if (mask != VM_FULL)                                                                           \
        blend##type(regs + ip->d, w->tmp, mask);                                                   \
    NEXT

/* For each PTX type: the C type of a value, the type of a lane in a slot, and the conversions
 * between them. */
#define CT_u8 uint8_t
#define CT_s8 int8_t
#define CT_u16 uint16_t
#define CT_s16 int16_t
#define CT_b16 uint16_t
#define CT_u32 uint32_t
#define CT_s32 int32_t
#define CT_b32 uint32_t
#define CT_u64 uint64_t
#define CT_s64 int64_t
#define CT_b64 uint64_t
#define CT_f32 float
#define CT_f64 double
#define CT_f16 double
#define CT_bf16 double
#define LB_u8 32
#define LB_s8 32
#define LB_u16 32
#define LB_s16 32
#define LB_b16 32
#define LB_u32 32
#define LB_s32 32
#define LB_b32 32
#define LB_u64 64
#define LB_s64 64
#define LB_b64 64
#define LB_f32 32
#define LB_f64 64
#define LB_f16 32
#define LB_bf16 32
#define LB_f16x2 32
#define LB_bf16x2 32
#define LT_32 uint32_t
#define LT_64 uint64_t
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b) /* a second JOIN, for results that use CAT */
#define JOIN2_(a, b) a##b
#define JOIN2(a, b) JOIN2_(a, b)
#define LT(T) CAT(LT_, LB_##T)
#define UT(T) LT(T)
#define GET_u8(x) ((uint8_t)(x))
#define GET_s8(x) ((int8_t)(x))
#define GET_u16(x) ((uint16_t)(x))
#define GET_s16(x) ((int16_t)(x))
#define GET_b16(x) ((uint16_t)(x))
#define GET_u32(x) ((uint32_t)(x))
#define GET_s32(x) ((int32_t)(x))
#define GET_b32(x) ((uint32_t)(x))
#define GET_u64(x) ((uint64_t)(x))
#define GET_s64(x) ((int64_t)(x))
#define GET_b64(x) ((uint64_t)(x))
#define GET_f32(x) f32_of_bits(x)
#define GET_f64(x) f64_of_bits(x)
#define GET_f16(x) f16_to_double((x) & 0xffff)
#define GET_bf16(x) bf16_to_double((x) & 0xffff)
#define PUT_u8(x) ((uint32_t)(uint8_t)(x))
#define PUT_s8(x) ((uint32_t)(int32_t)(int8_t)(x))
#define PUT_u16(x) ((uint32_t)(uint16_t)(x))
#define PUT_s16(x) ((uint32_t)(int32_t)(int16_t)(x))
#define PUT_b16(x) ((uint32_t)(uint16_t)(x))
#define PUT_u32(x) ((uint32_t)(x))
#define PUT_s32(x) ((uint32_t)(int32_t)(x))
#define PUT_b32(x) ((uint32_t)(x))
#define PUT_u64(x) ((uint64_t)(x))
#define PUT_s64(x) ((uint64_t)(int64_t)(x))
#define PUT_b64(x) ((uint64_t)(x))
#define PUT_f32(x) bits_of_f32(canonical_f32((float)(x)))
#define PUT_f64(x) bits_of_f64(canonical_f64((double)(x)))
#define PUT_f16(x) double_to_f16((double)(x))
#define PUT_bf16(x) double_to_bf16((double)(x))

static inline void blend32(uint8_t *to, const uint32_t *from, uint32_t mask) {
    uint32_t *d = (uint32_t *)(void *)to;
    LANES d[i] = mask >> i & 1 ? from[i] : d[i];
}
static inline void blend64(uint8_t *to, const uint32_t *from, uint32_t mask) {
    uint64_t *d = (uint64_t *)(void *)to;
    const uint64_t *s = (const uint64_t *)(const void *)from;
    LANES d[i] = mask >> i & 1 ? s[i] : d[i];
}
#define BLEND(T) CAT(blend, LB_##T)
#define FINISH(T)                                                                                  \
    if (mask != VM_FULL)                                                                           \
        BLEND(T)(regs + ip->d, w->tmp, mask);                                                      \
    NEXT

/* Bit i: condition[i] is not zero. */
static inline uint32_t mask_of(const int32_t *condition) {
#ifdef __clang__
    typedef int32_t lanes __attribute__((ext_vector_type(32)));
    typedef bool flags __attribute__((ext_vector_type(32)));
    lanes v;
    memcpy(&v, condition, sizeof v);
    flags f = __builtin_convertvector(v != 0, flags);
    uint32_t m;
    memcpy(&m, &f, sizeof m);
    return m;
#else
    uint32_t m = 0;
    for (unsigned i = 0; i < 32; i++)
        m |= (uint32_t)(condition[i] != 0) << i;
    return m;
#endif
}

static inline void put_predicate(uint8_t *regs, uint32_t slot, uint32_t value, uint32_t mask) {
    uint32_t *p = SLOT(uint32_t, slot);
    *p = (*p & ~mask) | (value & mask);
}

/* Source predicate `n` (0: a, 1: b, 2: c, 3: e). */
static inline uint32_t predicate(const ptx_insn *ip, const uint8_t *regs, uint32_t slot,
                                 unsigned n) {
    uint32_t p = *CSLOT(uint32_t, slot);
    return ip->negate >> n & 1 ? ~p : p;
}

#define SOURCES1(T) const LT(T) *pa = CSLOT(LT(T), ip->a);
#define SOURCES2(T) SOURCES1(T) const LT(T) *pb = CSLOT(LT(T), ip->b);
#define SOURCES3(T) SOURCES2(T) const LT(T) *pc = CSLOT(LT(T), ip->c);

/* ---- integers and logic */

#define H_UN(T, id, expr)                                                                          \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) LT(T) *out = OUT(LT(T));                                                       \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]);                                                             \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_MOVE(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) LT(T) *out = OUT(LT(T));                                                       \
        LANES out[i] = pa[i];                                                                      \
        FINISH(T);                                                                                 \
    }
#define H_BIN(T, id, expr)                                                                         \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_TER(T, id, expr)                                                                         \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(T) LT(T) *out = OUT(LT(T));                                                       \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]), c = GET_##T(pc[i]);                     \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define X2_u16x2 uint16_t
#define X2_s16x2 int16_t
#define H_BIN16X2(T, id, expr)                                                                     \
    static inline uint32_t half_##id##_##T(uint32_t x, uint32_t y) {                               \
        X2_##T a = (X2_##T)x, b = (X2_##T)y;                                                       \
        return (uint16_t)(expr);                                                                   \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(u32) uint32_t *out = OUT(uint32_t);                                               \
        LANES out[i] = half_##id##_##T(pa[i], pb[i]) | half_##id##_##T(pa[i] >> 16, pb[i] >> 16)   \
                                                           << 16;                                  \
        FINISH(u32);                                                                               \
    }
#define W_u16 u32
#define W_s16 s32
#define W_u32 u64
#define W_s32 s64
#define H_WIDE(T, id, expr) H_WIDE_(T, CAT(W_, T), id, expr)
#define H_WIDE_(T, TW, id, expr) H_WIDE__(T, TW, id, expr)
#define H_WIDE__(T, TW, id, expr)                                                                  \
    HANDLER(id##_##T) {                                                                            \
        typedef CT_##TW WIDE;                                                                      \
        SOURCES2(T) LT(TW) *out = OUT(LT(TW));                                                     \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            out[i] = PUT_##TW(expr);                                                               \
        }                                                                                          \
        FINISH(TW);                                                                                \
    }
#define H_WIDE3(T, id, expr) H_WIDE3_(T, CAT(W_, T), id, expr)
#define H_WIDE3_(T, TW, id, expr) H_WIDE3__(T, TW, id, expr)
#define H_WIDE3__(T, TW, id, expr)                                                                 \
    HANDLER(id##_##T) {                                                                            \
        typedef CT_##TW WIDE;                                                                      \
        SOURCES2(T) LT(TW) *out = OUT(LT(TW));                                                     \
        const LT(TW) *pc = CSLOT(LT(TW), ip->c);                                                   \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            WIDE c = GET_##TW(pc[i]);                                                              \
            out[i] = PUT_##TW(expr);                                                               \
        }                                                                                          \
        FINISH(TW);                                                                                \
    }
#define CARRY_BODY(T, expr, third)                                                                 \
    {                                                                                              \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        uint32_t cc = 0;                                                                           \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            third uint32_t carry = w->cc >> i & 1;                                                 \
            out[i] = PUT_##T(expr);                                                                \
            cc |= carry << i;                                                                      \
        }                                                                                          \
        w->cc = (w->cc & ~mask) | (cc & mask);                                                     \
        FINISH(T);                                                                                 \
    }
#define H_CARRY(T, id, expr) HANDLER(id##_##T) CARRY_BODY(T, expr, )
#define H_CARRY3(T, id, expr)                                                                      \
    HANDLER(id##_##T) CARRY_BODY(T, expr, CT_##T c = GET_##T(CSLOT(LT(T), ip->c)[i]);)
#define H_DIVIDE(T, id, expr)                                                                      \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            if (b == 0 && mask >> i & 1)                                                           \
                return division_by_zero(w, ip, i);                                                 \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_COUNT(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) uint32_t *out = OUT(uint32_t);                                                 \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]);                                                             \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
/* Sources: a of type T, then unsigned 32-bit operands. */
#define H_SHIFT(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) const uint32_t *pb = CSLOT(uint32_t, ip->b);                                   \
        LT(T) *out = OUT(LT(T));                                                                   \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]);                                                             \
            uint32_t b = pb[i];                                                                    \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_EXTRACT(T, id, expr)                                                                     \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) const uint32_t *pb = CSLOT(uint32_t, ip->b), *pc = CSLOT(uint32_t, ip->c);     \
        LT(T) *out = OUT(LT(T));                                                                   \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]);                                                             \
            uint32_t b = pb[i], c = pc[i];                                                         \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define H_INSERT(T, id, expr)                                                                      \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) const uint32_t *pc = CSLOT(uint32_t, ip->c), *pe = CSLOT(uint32_t, ip->e);     \
        LT(T) *out = OUT(LT(T));                                                                   \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]), b = GET_##T(pb[i]);                                         \
            uint32_t c = pc[i], e = pe[i];                                                         \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }
#define WRAP_BODY(T, expr)                                                                         \
    {                                                                                              \
        SOURCES2(u32) uint32_t *out = OUT(uint32_t);                                               \
        bool wrap = ip->op == PTX_M_WRAP;                                                          \
        LANES {                                                                                    \
            CT_##T a = GET_##T(pa[i]);                                                             \
            uint32_t b = pb[i];                                                                    \
            out[i] = PUT_##T(expr);                                                                \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
#define H_MASKBITS(T, id, expr) HANDLER(id##_##T) WRAP_BODY(T, expr)
#define H_EXTEND(T, id, expr) HANDLER(id##_##T) WRAP_BODY(T, expr)
#define H_FUNNEL(T, id, expr)                                                                      \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(u32) uint32_t *out = OUT(uint32_t);                                               \
        bool wrap = ip->op == PTX_M_WRAP;                                                          \
        LANES {                                                                                    \
            uint32_t a = pa[i], b = pb[i], n = pc[i];                                              \
            uint32_t c = wrap ? n & 31 : n > 32 ? 32 : n;                                          \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
#define H_LOP3(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(u32) uint32_t *out = OUT(uint32_t), table = (uint32_t)ip->imm;                    \
        LANES {                                                                                    \
            uint32_t a = pa[i], b = pb[i], c = pc[i];                                              \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
#define H_LOP3P(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(u32) uint32_t *out = OUT(uint32_t), table = (uint32_t)ip->imm;                    \
        int32_t cond[32];                                                                          \
        LANES {                                                                                    \
            uint32_t a = pa[i], b = pb[i], c = pc[i], r = expr;                                    \
            out[i] = r;                                                                            \
            cond[i] = r != 0;                                                                      \
        }                                                                                          \
        uint32_t q = predicate(ip, regs, ip->e, 3);                                                \
        put_predicate(regs, ip->d2, combine(ip->bool_op, mask_of(cond), q), mask);                 \
        FINISH(u32);                                                                               \
    }
#define H_PRMTMODE(T, id, expr)                                                                    \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(u32) uint32_t *out = OUT(uint32_t), mode = ip->op;                                \
        LANES {                                                                                    \
            uint32_t a = pa[i], b = pb[i], c = pc[i];                                              \
            out[i] = expr;                                                                         \
        }                                                                                          \
        FINISH(u32);                                                                               \
    }
static inline uint32_t ptx_prmt_selector(uint32_t mode, uint32_t c) {
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    return selectors[mode - PTX_M_F4E][c & 3];
}

/* Dot product: the sum of a.x * b.x plus c. `sa` and `sb`: the operand is signed. */
static inline uint32_t dot(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, unsigned a_bits,
                           unsigned b_at) {
    for (unsigned k = 0; k < 32 / a_bits; k++) {
        uint32_t x = a >> (k * a_bits), y = b >> (b_at + 8 * k);
        int32_t u;
        if (a_bits == 8)
            u = sa ? (int8_t)x : (uint8_t)x;
        else
            u = sa ? (int16_t)x : (uint16_t)x;
        int32_t v = sb ? (int8_t)y : (uint8_t)y;
        c += (uint32_t)u * (uint32_t)v;
    }
    return c;
}
#define H_DP4A(T, id, expr) H_DOT(T, id, 8, 0)
#define H_DP2A(T, id, expr) H_DOT(T, id, 16, (ip->op == PTX_M_HI ? 16 : 0))
#define H_DOT(T, id, a_bits, b_at)                                                                 \
    HANDLER(id##_##T) {                                                                            \
        SOURCES3(u32) uint32_t *out = OUT(uint32_t);                                               \
        bool sa = ip->t == PTX_T_s32, sb = ip->u == PTX_T_s32;                                     \
        LANES out[i] = dot(pa[i], pb[i], pc[i], sa, sb, a_bits, b_at);                             \
        FINISH(u32);                                                                               \
    }
#define H_PREDICATE(T, id, expr)                                                                   \
    HANDLER(id##_##T) {                                                                            \
        uint32_t a = predicate(ip, regs, ip->a, 0);                                                \
        uint32_t b = ip->b == PTX_NONE ? 0 : predicate(ip, regs, ip->b, 1);                        \
        (void)b;                                                                                   \
        put_predicate(regs, ip->d, expr, mask);                                                    \
        NEXT;                                                                                      \
    }

/* ---- comparison and selection */

static inline uint32_t combine(uint8_t bool_op, uint32_t p, uint32_t q) {
    if (bool_op == PTX_M_BAND)
        return p & q;
    return bool_op == PTX_M_BOR ? p | q : p ^ q;
}

#define FZ_f32(x) (ip->ftz ? flush_f32(x) : (x))
#define FZ_f64(x) (x)
#define FZ_f16(x) (ip->ftz && (x) < 0x1p-14 && (x) > -0x1p-14 ? __builtin_copysign(0.0, x) : (x))
#define FZ_bf16(x) (x)
#define FZ_u16(x) (x)
#define FZ_s16(x) (x)
#define FZ_b16(x) (x)
#define FZ_u32(x) (x)
#define FZ_s32(x) (x)
#define FZ_b32(x) (x)
#define FZ_u64(x) (x)
#define FZ_s64(x) (x)
#define FZ_b64(x) (x)
#define COMPARE_LANES(T, test)                                                                     \
    int32_t cond[32];                                                                              \
    SOURCES2(T)                                                                                    \
    LANES {                                                                                        \
        CT_##T a = FZ_##T(GET_##T(pa[i])), b = FZ_##T(GET_##T(pb[i]));                             \
        cond[i] = (test);                                                                          \
    }                                                                                              \
    uint32_t p = mask_of(cond);

#define H_SETP_ONE(cmp, test, T, id)                                                               \
    HANDLER(id##_##T##_##cmp) {                                                                    \
        COMPARE_LANES(T, test)                                                                     \
        uint32_t n = ~p;                                                                           \
        if (ip->bool_op) {                                                                         \
            uint32_t q = predicate(ip, regs, ip->c, 2);                                            \
            p = combine(ip->bool_op, p, q);                                                        \
            n = combine(ip->bool_op, n, q);                                                        \
        }                                                                                          \
        put_predicate(regs, ip->d, p, mask);                                                       \
        if (ip->d2 != PTX_NONE)                                                                    \
            put_predicate(regs, ip->d2, n, mask);                                                  \
        NEXT;                                                                                      \
    }
#define H_SET_ONE(cmp, test, T, id)                                                                \
    HANDLER(id##_##T##_##cmp) {                                                                    \
        COMPARE_LANES(T, test)                                                                     \
        if (ip->bool_op)                                                                           \
            p = combine(ip->bool_op, p, predicate(ip, regs, ip->c, 2));                            \
        uint32_t yes = ip->u == PTX_T_f32 ? 0x3f800000u : UINT32_MAX;                              \
        uint32_t *out = OUT(uint32_t);                                                             \
        LANES out[i] = p >> i & 1 ? yes : 0;                                                       \
        FINISH(u32);                                                                               \
    }
#define COMPARISONS_b16 PTX_COMPARISONS
#define COMPARISONS_b32 PTX_COMPARISONS
#define COMPARISONS_b64 PTX_COMPARISONS
#define COMPARISONS_s16 PTX_COMPARISONS
#define COMPARISONS_s32 PTX_COMPARISONS
#define COMPARISONS_s64 PTX_COMPARISONS
#define UNSIGNED_COMPARISONS(M, ...)                                                               \
    PTX_COMPARISONS(M, __VA_ARGS__) PTX_COMPARISONS_U(M, __VA_ARGS__)
#define COMPARISONS_u16 UNSIGNED_COMPARISONS
#define COMPARISONS_u32 UNSIGNED_COMPARISONS
#define COMPARISONS_u64 UNSIGNED_COMPARISONS
#define FLOAT_COMPARISONS(M, ...) PTX_COMPARISONS(M, __VA_ARGS__) PTX_COMPARISONS_F(M, __VA_ARGS__)
#define COMPARISONS_f16 FLOAT_COMPARISONS
#define COMPARISONS_bf16 FLOAT_COMPARISONS
#define COMPARISONS_f32 FLOAT_COMPARISONS
#define COMPARISONS_f64 FLOAT_COMPARISONS
#define H_SETP(T, id, expr) COMPARISONS_##T(H_SETP_ONE, T, id)
#define H_SET(T, id, expr) COMPARISONS_##T(H_SET_ONE, T, id)
#define H_SELECT(T, id, expr)                                                                      \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        uint32_t p = predicate(ip, regs, ip->c, 2);                                                \
        LANES out[i] = p >> i & 1 ? pa[i] : pb[i];                                                 \
        FINISH(T);                                                                                 \
    }
#define H_SLCT(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        SOURCES2(T) LT(T) *out = OUT(LT(T));                                                       \
        const uint32_t *pc = CSLOT(uint32_t, ip->c);                                               \
        bool is_float = ip->u == PTX_T_f32;                                                        \
        LANES {                                                                                    \
            float f = FZ_f32(f32_of_bits(pc[i]));                                                  \
            bool c = is_float ? f >= 0 : (int32_t)pc[i] >= 0;                                      \
            out[i] = c ? pa[i] : pb[i];                                                            \
        }                                                                                          \
        FINISH(T);                                                                                 \
    }

/* ---- moves of more than a register */

#define H_SREG(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        LT(T) *out = OUT(LT(T)), value = (LT(T))vm_sreg_read(w, (ptx_sreg)ip->target);             \
        LANES out[i] = value;                                                                      \
        FINISH(T);                                                                                 \
    }
#define H_LOCALADDR(T, id, expr)                                                                   \
    HANDLER(id##_##T) {                                                                            \
        LT(T) *out = OUT(LT(T)), value = (LT(T))ip->imm;                                           \
        const uint32_t *base = w->frame->local_base;                                               \
        LANES out[i] = base[i] + value;                                                            \
        FINISH(T);                                                                                 \
    }
/* Elements of 8, 16 or 32 bits. Their registers have 32-bit lanes. */
#define H_PACK(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        LT(T) *out = OUT(LT(T));                                                                   \
        unsigned bits = ip->bytes * 8u;                                                            \
        uint64_t keep = low_mask(bits);                                                            \
        LT(T) sum[32] = {0};                                                                       \
        for (unsigned k = 0; k < ip->count; k++) {                                                 \
            const uint32_t *part = CSLOT(uint32_t, ip->v[k]);                                      \
            LANES sum[i] |= (LT(T))((part[i] & keep) << (k * bits));                               \
        }                                                                                          \
        LANES out[i] = sum[i];                                                                     \
        FINISH(T);                                                                                 \
    }
#define H_UNPACK(T, id, expr)                                                                      \
    HANDLER(id##_##T) {                                                                            \
        unsigned bits = ip->bytes * 8u;                                                            \
        uint64_t keep = low_mask(bits);                                                            \
        LT(T) whole[32];                                                                           \
        memcpy(whole, regs + ip->a, sizeof whole);                                                 \
        for (unsigned k = 0; k < ip->count; k++) {                                                 \
            LANES w->tmp[i] = (uint32_t)(whole[i] >> (k * bits) & keep);                           \
            blend32(regs + ip->v[k], w->tmp, mask);                                                \
        }                                                                                          \
        NEXT;                                                                                      \
    }
/* Elements are independent: none is written before all are read. */
#define H_MOVES(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        const uint32_t from[4] = {ip->a, ip->b, ip->c, ip->e};                                     \
        LT(T) whole[4][32];                                                                        \
        for (unsigned k = 0; k < ip->count; k++)                                                   \
            memcpy(whole[k], regs + from[k], sizeof whole[k]);                                     \
        for (unsigned k = 0; k < ip->count; k++)                                                   \
            BLEND(T)(regs + ip->v[k], (const uint32_t *)(const void *)whole[k], mask);             \
        NEXT;                                                                                      \
    }
static inline uint64_t window_of(uint8_t space) {
    if (space == VM_SPACE_SHARED)
        return VM_WINDOW_SHARED;
    if (space == VM_SPACE_LOCAL)
        return VM_WINDOW_LOCAL;
    if (space == VM_SPACE_CONST)
        return VM_WINDOW_CONST;
    return space == VM_SPACE_PARAM ? VM_WINDOW_PARAM : 0;
}
#define H_CVTA(T, id, expr)                                                                        \
    HANDLER(id##_##T) {                                                                            \
        SOURCES1(T) LT(T) *out = OUT(LT(T));                                                       \
        LT(T) window = (LT(T))window_of(ip->space);                                                \
        LT(T) add = ip->row == PTX_OP_CVTA ? window : (LT(T))0 - window;                           \
        LANES out[i] = pa[i] + add;                                                                \
        FINISH(T);                                                                                 \
    }
#define H_ISSPACEP(T, id, expr)                                                                    \
    HANDLER(id##_##T) {                                                                            \
        uint64_t window = window_of(ip->space);                                                    \
        int32_t cond[32];                                                                          \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            uint64_t a =                                                                           \
                ip->address_bits == 64 ? CSLOT(uint64_t, ip->a)[i] : CSLOT(uint32_t, ip->a)[i];    \
            uint64_t high = a >> VM_WINDOW_SHIFT << VM_WINDOW_SHIFT;                               \
            bool is_global = high >= VM_GLOBAL_BASE || high == VM_WINDOW_PARAM;                    \
            cond[i] = window ? high == window : is_global;                                         \
        }                                                                                          \
        put_predicate(regs, ip->d, mask_of(cond), mask);                                           \
        NEXT;                                                                                      \
    }
