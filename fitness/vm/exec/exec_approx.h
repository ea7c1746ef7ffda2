/* Results of approximate instructions as hardware may give them (ptx_approx.def). The distance from
 * the exact value is a hash of the instruction and its operands, within the bound that the ISA
 * states: the same operands give the same result wherever the instruction stands. VM_APPROX_TURNED
 * has each distance with the other sign. Zeros, infinities, NaN and what a zero or subnormal
 * operand gives are exact, as the ISA's tables of special values say. */

/* The unit in the last place just below a value (one that was rounded up to a power of two has its
 * exact value there): 2^(exponent - digits), at least the smallest
 * subnormal. */
static double ulp_of(double y, int digits, int least) {
    uint64_t biased = (bits_of_f64(y) - 1) >> 52 & 0x7ff;
    int exponent = (int)biased - 1023 - digits;
    exponent = exponent < least ? least : exponent;
    return exponent < -1022 ? 0 : f64_of_bits((uint64_t)(exponent + 1023) << 52);
}
static double ulp_f32(double y) {
    return ulp_of(y, 23, -149);
}
static double ulp_f16(double y) {
    return ulp_of(y, 10, -24);
}
static double ulp_bf16(double y) {
    return ulp_of(y, 7, -133);
}
static double ulp_f64(double y) {
    return ulp_of(y, 52, -1022);
}
/* Of the upper word: a sign, 11 bits of exponent, 20 of mantissa. */
static double ulp_high(double y) {
    return ulp_of(y, 20, -1022);
}

/* In -1 .. 1: where in its bound a result lies. */
static double approx_place(vm_approx with, unsigned row, uint64_t a, uint64_t b) {
    uint64_t hash = ev_mix64(ev_mix64(a + row) ^ b);
    double place = (double)(int64_t)hash * 0x1p-63;
    return with == VM_APPROX_TURNED ? -place : place;
}

static double approx_limit(double r, double limit) {
    return fabs(r) > limit ? __builtin_copysign(limit, r) : r;
}

/* Where the result lies before it is rounded to its type, which takes at most half a unit. */
static double approx_moved(double y, double bound, double half_ulp, double place) {
    double room = bound > half_ulp ? bound - half_ulp : 0;
    return y + place * room;
}

/* Sine and cosine: beyond 100 pi the ISA states no bound, and hardware loses the quotient's bits.
 */
static double approx_turn_bound(float a) {
    const double pi = 3.14159265358979323846;
    double x = fabs((double)a);
    if (x <= 0x1.921fb6p2)         /* 2 pi as a float */
        return 0x1.6a09e6p-21;     /* 2^-20.5 */
    double bound = 0x1.3b2c48p-15; /* 2^-14.7 */
    return x <= 100 * pi ? bound : bound * (x / (100 * pi));
}

static double approx_quotient(float a, float b, vm_approx with) {
    double y = (double)a / b, size = fabs((double)b);
    if (size > 0x1p126 && size < HUGE_VAL) /* 1 / b flushes to zero inside */
        return ptx_div_approx(a, b);
    if (size < 0x1p-126 || size == HUGE_VAL || a - a != 0)
        return y;
    double reciprocal = 1 / (double)b, ulp = ulp_f32(reciprocal);
    double place = approx_place(with, PTX_OP_RCP_APPROX, bits_of_f32(b), 0);
    float inside = (float)approx_moved(reciprocal, ulp, ulp / 2, place);
    double r = (double)(a * inside);
    return fabs(r - y) > 2 * ulp_f32(y) ? y : r;
}

/* A subnormal or zero operand has a result of its own in the ISA's tables. */
static inline bool is_plain_f32(float a) {
    uint32_t e = bits_of_f32(a) & 0x7f800000;
    return e != 0 && e != 0x7f800000;
}
static inline bool is_plain_f64(double a) {
    uint64_t e = bits_of_f64(a) & 0x7ff0000000000000;
    return e != 0 && e != 0x7ff0000000000000;
}
static inline bool is_plain_f16(double a) {
    double size = fabs(a);
    return size >= 0x1p-14 && size < HUGE_VAL;
}
static inline bool is_plain_bf16(double a) {
    return is_plain_f16(a * 0x1p112); /* its exponents go down to 2^-126 */
}
#define approx_bits_f32(a) bits_of_f32(a)
#define approx_bits_f64(a) bits_of_f64(a)
#define approx_bits_f16(a) bits_of_f64(a)
#define approx_bits_bf16(a) bits_of_f64(a)

#define approx_least_f32 0x1p-126
#define approx_least_f64 0x1p-1022
#define approx_least_f16 0x1p-14
#define approx_least_bf16 0x1p-126
#define approx_round_f32(r) ((double)(float)(r))
#define approx_round_f64(r) (r)
#define approx_round_f16(r) f16_to_double(double_to_f16(r))
#define approx_round_bf16(r) bf16_to_double(double_to_bf16(r))

/* approx_ID_TYPE(with, a, b): the result, in double. One that another binade's rounding takes past
 * the bound, or to what .ftz would flush, is the nearest instead. */
#define PTX_APPROX(id, T, value, bound, limit, source)                                             \
    static double approx_##id##_##T(vm_approx with, CT_##T a, CT_##T b) {                          \
        double y = (value), most = (bound);                                                        \
        if (most == 0 || !is_plain_##T(a) || y == 0 || y - y != 0)                                 \
            return y;                                                                              \
        double place = approx_place(with, PTX_OP_##id, approx_bits_##T(a), approx_bits_##T(b));    \
        double moved = approx_moved(y, most, ulp_##T(y) / 2, place);                               \
        double r = approx_limit(approx_round_##T(moved), limit);                                   \
        bool flushed = fabs(r) < approx_least_##T && fabs(y) >= approx_least_##T;                  \
        return flushed || fabs(r - y) >= most ? y : r;                                             \
    }
#include "fitness/ptx/ptx_approx.def"
#undef PTX_APPROX
