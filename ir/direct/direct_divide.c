/* Integer division of the direct emitter: division by a constant as a multiplication by a magic
 * number and a shift (Warren, "Hacker's Delight", 2nd edition, chapter 10; Granlund and
 * Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994).
 *
 * The loop of the magic-number functions searches the smallest shift for which the multiplier is
 * exact for all dividends. */
#include "ir/direct/direct_internal.h"

static direct_operand word(int64_t value) {
    return direct_int(DIRECT_R, 32, value);
}

static direct_operand binary(ir_direct *d, LLVMOpcode opcode, direct_operand a, direct_operand b) {
    return direct_integer(d, NULL, opcode, a, b);
}

/* ---- magic numbers of 32 bits -----------------------------------------------------------------
 */

/* Quotient of a signed x by `by`, |by| >= 3 and no power of two. */
static direct_operand signed_quotient(ir_direct *d, direct_operand x, int32_t by) {
    const uint32_t two31 = 0x80000000u;
    uint32_t ad = by < 0 ? 0u - (uint32_t)by : (uint32_t)by;
    uint32_t t = two31 + ((uint32_t)by >> 31), anc = t - 1 - t % ad;
    uint32_t q1 = two31 / anc, r1 = two31 - q1 * anc, q2 = two31 / ad, r2 = two31 - q2 * ad, delta;
    int p = 31;
    do {
        p++;
        q1 *= 2, r1 *= 2;
        if (r1 >= anc)
            q1++, r1 -= anc;
        q2 *= 2, r2 *= 2;
        if (r2 >= ad)
            q2++, r2 -= ad;
        delta = ad - r2;
    } while (q1 < delta || (q1 == delta && r1 == 0));
    int32_t magic = (int32_t)(by < 0 ? 0u - (q2 + 1) : q2 + 1);
    direct_operand q = direct_pure2(d, "mul.hi.s32", DIRECT_R, x, word(magic));
    if (by > 0 && magic < 0)
        q = binary(d, LLVMAdd, q, x);
    if (by < 0 && magic > 0)
        q = binary(d, LLVMSub, q, x);
    direct_operand shifted = binary(d, LLVMAShr, q, word(p - 32));
    return binary(d, LLVMAdd, p > 32 ? shifted : q, binary(d, LLVMLShr, q, word(31)));
}

/* Quotient of an unsigned x by `by` >= 3, no power of two. */
static direct_operand unsigned_quotient(ir_direct *d, direct_operand x, uint32_t by) {
    unsigned log = 32 - (unsigned)__builtin_clz(by - 1); /* 2^log >= by */
    uint64_t magic = (((uint64_t)1 << (log + 32)) / by) + 1 - ((uint64_t)1 << 32);
    direct_operand high =
        direct_pure2(d, "mul.hi.u32", DIRECT_R, x, word((int64_t)(uint32_t)magic));
    direct_operand half = binary(d, LLVMLShr, binary(d, LLVMSub, x, high), word(1));
    return binary(d, LLVMLShr, binary(d, LLVMAdd, half, high), word(log - 1));
}

/* ---- by powers of two -------------------------------------------------------------------------
 */

static int power_of(direct_operand by) {
    uint64_t value = (uint64_t)by.imm;
    if (by.kind != DIRECT_INT || by.imm <= 0 || (value & (value - 1)))
        return -1;
    return __builtin_ctzll(value);
}

static direct_operand by_power(ir_direct *d, LLVMOpcode opcode, direct_operand a, int power) {
    unsigned width = 64;
    if (a.cls == DIRECT_RS)
        width = 16;
    else if (a.cls == DIRECT_R)
        width = 32;
    direct_operand by = direct_int(a.cls, width, power);
    int64_t mask = (int64_t)(((uint64_t)1 << power) - 1);
    a.bits = (uint8_t)width;
    if (opcode == LLVMUDiv)
        return binary(d, LLVMLShr, a, by);
    if (opcode == LLVMURem)
        return binary(d, LLVMAnd, a, direct_int(a.cls, width, mask));
    if (power == 0)
        return opcode == LLVMSDiv ? a : direct_int(a.cls, width, 0);
    /* negative numbers are rounded towards 0 */
    direct_operand sign = binary(d, LLVMAShr, a, direct_int(a.cls, width, width - 1));
    direct_operand bias = binary(d, LLVMLShr, sign, direct_int(a.cls, width, (int)width - power));
    direct_operand sum = binary(d, LLVMAdd, a, bias);
    if (opcode == LLVMSDiv)
        return binary(d, LLVMAShr, sum, by);
    return binary(d, LLVMSub, a, binary(d, LLVMAnd, sum, direct_int(a.cls, width, ~mask)));
}

/* ---- division ---------------------------------------------------------------------------------
 */

static bool by_constant(ir_direct *d, LLVMOpcode opcode, direct_operand a, direct_operand b,
                        direct_operand *out) {
    bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
    if (a.cls != DIRECT_R || b.kind != DIRECT_INT || a.kind != DIRECT_REG)
        return false;
    int64_t by = is_signed ? (int32_t)b.imm : (int64_t)(uint32_t)b.imm;
    if ((by >= -2 && by <= 2) || by <= INT32_MIN || by > INT32_MAX || power_of(word(-by)) >= 0)
        return false;
    direct_operand q =
        is_signed ? signed_quotient(d, a, (int32_t)by) : unsigned_quotient(d, a, (uint32_t)by);
    if (opcode == LLVMSRem || opcode == LLVMURem)
        q = binary(d, LLVMSub, a, binary(d, LLVMMul, q, word(by)));
    *out = q;
    return true;
}

direct_operand direct_divide(ir_direct *d, LLVMOpcode opcode, direct_operand a, direct_operand b) {
    static const char *const ops[4][3] = {{"div.u16", "div.u32", "div.u64"},
                                          {"div.s16", "div.s32", "div.s64"},
                                          {"rem.u16", "rem.u32", "rem.u64"},
                                          {"rem.s16", "rem.s32", "rem.s64"}};
    direct_operand result;
    int power = power_of(b);
    if (power >= 0 && a.kind == DIRECT_REG)
        return by_power(d, opcode, a, power);
    if (by_constant(d, opcode, a, b, &result))
        return result;
    unsigned row = 3;
    if (opcode == LLVMUDiv)
        row = 0;
    else if (opcode == LLVMSDiv)
        row = 1;
    else if (opcode == LLVMURem)
        row = 2;
    return direct_pure2(d, ops[row][a.cls - DIRECT_RS], a.cls, a, b);
}
