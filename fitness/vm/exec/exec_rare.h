/* Instructions that few kernels have, a lane at a time: comparisons of half formats to half
 * formats, floats of 8 bits, packed integers. */

static inline double rare_half(const ptx_insn *ip, uint32_t bits, bool brain) {
    bool subnormal = !brain && (bits & 0x7c00) == 0;
    if (ip->ftz && subnormal)
        bits &= 0x8000;
    return brain ? bf16_to_double(bits & 0xffff) : f16_to_double(bits & 0xffff);
}

static bool rare_compare(uint8_t op, double a, double b) {
    bool unordered = a != a || b != b;
    switch (op) {
    case PTX_M_EQ:
        return a == b;
    case PTX_M_NE:
        return !unordered && a != b;
    case PTX_M_LT:
        return a < b;
    case PTX_M_LE:
        return a <= b;
    case PTX_M_GT:
        return a > b;
    case PTX_M_GE:
        return a >= b;
    case PTX_M_EQU:
        return unordered || a == b;
    case PTX_M_NEU:
        return a != b;
    case PTX_M_LTU:
        return !(a >= b);
    case PTX_M_LEU:
        return !(a > b);
    case PTX_M_GTU:
        return !(a <= b);
    case PTX_M_GEU:
        return !(a < b);
    case PTX_M_NUM:
        return !unordered;
    default:
        return unordered;
    }
}

/* The lanes whose low (or high) halves compare as the instruction says. */
static uint32_t rare_compared(const ptx_insn *ip, const uint8_t *regs, unsigned shift) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a), *pb = CSLOT(uint32_t, ip->b);
    bool brain = ip->t == PTX_T_bf16 || ip->t == PTX_T_bf16x2;
    uint32_t p = 0;
    for (unsigned i = 0; i < 32; i++) {
        double a = rare_half(ip, pa[i] >> shift, brain), b = rare_half(ip, pb[i] >> shift, brain);
        p |= (uint32_t)rare_compare(ip->op, a, b) << i;
    }
    return p;
}

static uint32_t rare_chosen(const ptx_insn *ip, const uint8_t *regs, uint32_t p) {
    return ip->bool_op ? combine(ip->bool_op, p, predicate(ip, regs, ip->c, 2)) : p;
}

/* set of half formats: 1.0, or all bits, in each half. */
HANDLER(SETHALF) {
    uint32_t low = rare_chosen(ip, regs, rare_compared(ip, regs, 0)), high = 0, yes = 0xffff;
    bool two = ip->t == PTX_T_f16x2 || ip->t == PTX_T_bf16x2;
    if (two)
        high = rare_chosen(ip, regs, rare_compared(ip, regs, 16));
    if (ip->u == PTX_T_f16 || ip->u == PTX_T_f16x2)
        yes = 0x3c00;
    else if (ip->u == PTX_T_bf16 || ip->u == PTX_T_bf16x2)
        yes = 0x3f80;
    uint32_t *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++)
        out[i] = (low >> i & 1 ? yes : 0) | (high >> i & 1 ? yes << 16 : 0);
    FINISH(u32);
}

/* setp of two halves: a predicate each. */
HANDLER(SETPHALF) {
    uint32_t low = rare_chosen(ip, regs, rare_compared(ip, regs, 0));
    uint32_t high = rare_chosen(ip, regs, rare_compared(ip, regs, 16));
    put_predicate(regs, ip->d, low, mask);
    if (ip->d2 != PTX_NONE)
        put_predicate(regs, ip->d2, high, mask);
    NEXT;
}

/* ---- floats of 8 bits: e4m3 has no infinity and one NaN, e5m2 is the upper half of an f16 */

static uint32_t rare_to_fp8(const ptx_insn *ip, double x) {
    bool wide = ip->t == PTX_T_e5m2x2; /* of exponent */
    unsigned fraction = wide ? 2 : 3;
    int least = wide ? -14 : -6;
    double most = wide ? 57344 : 448, m = __builtin_fabs(x);
    uint32_t sign = ptx_signbit(x) ? 0x80 : 0;
    if (x != x)
        return 0x7f;
    if (ip->relu && sign)
        return 0;
    if (m >= most)
        return sign | (wide ? 0x7b : 0x7e);
    int exponent = m == 0 ? least : __builtin_ilogb(m);
    exponent = exponent < least ? least : exponent;
    double unit = __builtin_ldexp(1, exponent - (int)fraction);
    double rounded = m / unit + 0x1p52 - 0x1p52; /* to nearest even; both are exact */
    uint32_t code = (uint32_t)rounded + ((uint32_t)(exponent - least) << fraction);
    uint32_t last = wide ? 0x7b : 0x7e;
    return sign | (code > last ? last : code);
}

static uint32_t rare_of_fp8(const ptx_insn *ip, uint32_t bits) {
    bool wide = ip->t == PTX_T_e5m2x2;
    uint32_t magnitude = bits & 0x7f, sign = (bits & 0x80) << 8;
    bool nan = wide ? magnitude > 0x7c : magnitude == 0x7f;
    if (nan)
        return 0x7fff;
    if (ip->relu && sign)
        return 0;
    if (wide)
        return sign | magnitude << 8;
    int exponent = (int)(magnitude >> 3);
    double fraction = magnitude & 7;
    double value =
        exponent ? __builtin_ldexp(8 + fraction, exponent - 10) : __builtin_ldexp(fraction, -9);
    return sign | double_to_f16(value);
}

HANDLER(CVTFP8) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a);
    uint32_t *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++) {
        if (ip->row == PTX_OP_CVT_FP8_F32) {
            double high = (double)f32_of_bits(pa[i]);
            double low = (double)f32_of_bits(CSLOT(uint32_t, ip->b)[i]);
            out[i] = rare_to_fp8(ip, high) << 8 | rare_to_fp8(ip, low);
        } else if (ip->row == PTX_OP_CVT_FP8_F16) {
            out[i] = rare_to_fp8(ip, f16_to_double(pa[i] >> 16)) << 8 |
                     rare_to_fp8(ip, f16_to_double(pa[i] & 0xffff));
        } else {
            out[i] = rare_of_fp8(ip, pa[i] >> 8 & 0xff) << 16 | rare_of_fp8(ip, pa[i] & 0xff);
        }
    }
    FINISH(u32);
}

/* ---- packed integers */

static int64_t rare_clamp(int64_t v, unsigned bits, bool is_signed) {
    int64_t most = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    int64_t least = is_signed ? -most - 1 : 0;
    if (v < least)
        return least;
    return v > most ? most : v;
}

/* a and b side by side, and above them the low bits of c. */
HANDLER(PACKSAT) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a), *pb = CSLOT(uint32_t, ip->b);
    unsigned bits = ptx_type_bits((ptx_type)ip->t);
    bool is_signed = ptx_type_kind((ptx_type)ip->t) == 'S';
    uint32_t keep = (uint32_t)low_mask(bits), *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++) {
        uint32_t a = (uint32_t)rare_clamp((int32_t)pa[i], bits, is_signed) & keep;
        uint32_t b = (uint32_t)rare_clamp((int32_t)pb[i], bits, is_signed) & keep;
        uint32_t c = ip->c == PTX_NONE ? 0 : CSLOT(uint32_t, ip->c)[i] << (2 * bits & 31);
        out[i] = c | a << bits | b;
    }
    FINISH(u32);
}
