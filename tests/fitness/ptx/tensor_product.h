/* Matrix products by plain triple loops, and the bits of their elements: what matrix instructions
 * are held against. */
#ifndef TESTS_FITNESS_PTX_TENSOR_PRODUCT_H
#define TESTS_FITNESS_PTX_TENSOR_PRODUCT_H

#include "fitness/ptx/ptx_load.h"
#include "fitness/vm/vm.h"
#include "tests/fitness/vm/shared_rig.h"

#include <fenv.h>
#include <math.h>

typedef enum kind { F16, BF16, TF32, F32, F64, U8, S8, U4, S4, B1, S32 } kind;

static const unsigned kind_bits[] = {16, 16, 32, 32, 64, 8, 8, 4, 4, 1, 32};
static const char *const kind_names[] = {"f16", "bf16", "tf32", "f32", "f64", "u8",
                                         "s8",  "u4",   "s4",   "b1",  "s32"};

/* One instruction: the text up to the operands has %s where the layouts of wmma stand. */
typedef struct form {
    const char *text;
    unsigned m, n, k;
    kind a, b, c, d;
    bool sat, xor, quads;
    int rounding; /* of fenv.h */
} form;

typedef union matrix_value {
    double f;
    int64_t i;
} value;

typedef struct problem {
    form f;
    value a[32 * 256], b[256 * 32], c[32 * 32];
    uint64_t want[32 * 32]; /* bits of d; floats: see fits */
    double scale[32 * 32];  /* sum of |a b| and |c| */
} problem;

typedef struct session {
    vm_memory *memory;
    problem *p;
    uint64_t random;
    unsigned compared;
    uint8_t seen[PTX_OP_COUNT][PTX_T_COUNT][PTX_T_COUNT];
} session;

static inline uint32_t draw(session *s, uint32_t below) {
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % below;
}

/* ---- numbers and their bits */

static inline uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline double double_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint32_t bits_of_single(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float single_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* A half from its parts: sign, five bits of exponent, ten of fraction. */
static inline double half_value(uint32_t h) {
    int exponent = (int)(h >> 10 & 31);
    double fraction = h & 1023, sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(fraction + 1024, exponent - 25) : ldexp(fraction, -24));
}

static inline double float_value(kind k, uint64_t bits) {
    switch (k) {
    case F16:
        return half_value((uint32_t)bits);
    case BF16:
        return (double)single_of((uint32_t)bits << 16);
    case TF32: /* the lower 13 bits do not count */
        return (double)single_of((uint32_t)bits >> 13 << 13);
    case F32:
        return (double)single_of((uint32_t)bits);
    default:
        return double_of(bits);
    }
}

static inline bool is_float(kind k) {
    return k <= F64;
}

static inline int64_t integer_value(kind k, uint64_t bits) {
    unsigned n = kind_bits[k];
    bool is_signed = k == S8 || k == S4 || k == S32;
    int64_t v = (int64_t)bits;
    return is_signed && bits >> (n - 1) & 1 ? v - ((int64_t)1 << n) : v;
}

static inline value value_of(kind k, uint64_t bits) {
    return is_float(k) ? (value){.f = float_value(k, bits)} : (value){.i = integer_value(k, bits)};
}

enum { EXACT, ROUGH, EDGES, TRIALS };

static inline uint64_t edge_bits(session *s, kind k) {
    static const uint64_t half[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,
                                    0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0x3c00};
    static const uint64_t bf16[] = {0,      0x8000, 1,      0x8001, 0x7f,   0x80,
                                    0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc1, 0x3f80};
    static const uint64_t single[] = {0,          0x80000000, 0x2000,     0x80002000,
                                      0x7fe000,   0x800000,   0x7f7fffff, 0xff7fffff,
                                      0x7f800000, 0xff800000, 0x7fc02000, 0x3f801fff};
    static const uint64_t pair[] = {0,
                                    1ull << 63,
                                    1,
                                    0x000fffffffffffff,
                                    0x7fefffffffffffff,
                                    0xffefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000001,
                                    0x3ff0000000000000,
                                    0x3cb0000000000000,
                                    0xbff0000000000001};
    unsigned i = draw(s, 40); /* mostly ones, so that some sums stay numbers */
    i = i < 12 ? i : 11;
    if (k == F16)
        return half[i];
    if (k == BF16)
        return bf16[i];
    return k == F64 ? pair[i < 11 ? i : 9] : single[i];
}

/* Bits of a random element. EXACT: small multiples of 1/4, whose sums no order rounds. */
static inline uint64_t draw_bits(session *s, kind k, int trial) {
    if (!is_float(k)) {
        uint64_t bits = (uint64_t)draw(s, 1u << 16) << 16 | draw(s, 1u << 16);
        if (k == S32 && trial == EDGES)
            return draw(s, 2) ? 0x7fffff00u + draw(s, 256) : 0x80000000u + draw(s, 256);
        return bits & (kind_bits[k] == 32 ? UINT32_MAX : (1u << kind_bits[k]) - 1);
    }
    if (trial == EDGES)
        return edge_bits(s, k);
    double x = (int)draw(s, 33) - 16;
    if (trial == ROUGH)
        x = (x + draw(s, 1024) / 1024.0) * ldexp(1, (int)draw(s, 8) - 4);
    else
        x /= 4;
    if (k == F64)
        return bits_of(x);
    if (k == F32 || k == TF32) /* of tf32, noise below what counts */
        return bits_of_single((float)x) | (k == TF32 ? draw(s, 8192) : 0);
    if (k == BF16)
        return bits_of_single((float)x) >> 16;
    uint32_t u = bits_of_single((float)x);
    return x == 0 ? 0 : (u >> 16 & 0x8000) | (((u >> 13 & 0x3ffff) - (112u << 10)) & 0x7fff);
}

/* ---- the product */

static inline uint64_t wanted_integer(const problem *p, int64_t sum) {
    if (p->f.sat && sum > INT32_MAX)
        sum = INT32_MAX;
    if (p->f.sat && sum < INT32_MIN)
        sum = INT32_MIN;
    return (uint32_t)sum;
}

static inline void multiply_element(problem *p, unsigned i, unsigned j) {
    const form *f = &p->f;
    unsigned at = i * f->n + j;
    int64_t isum = p->c[at].i;
    double sum = p->c[at].f, scale = fabs(sum);
    long double wide = sum;
    for (unsigned k = 0; k < f->k; k++) {
        value a = p->a[i * f->k + k], b = p->b[k * f->n + j];
        if (f->a == B1)
            isum += f->xor ? a.i != b.i : a.i && b.i;
        else if (!is_float(f->a))
            isum += a.i * b.i;
        else if (f->a == F64)
            sum = fma(a.f, b.f, sum);
        else {
            wide += (long double)a.f * b.f;
            scale += fabs(a.f * b.f);
        }
    }
    p->want[at] =
        !is_float(f->a) ? wanted_integer(p, isum) : bits_of(f->a == F64 ? sum : (double)wide);
    p->scale[at] = scale;
}

static inline void multiply(problem *p) {
    fesetround(p->f.rounding);
    for (unsigned i = 0; i < p->f.m; i++)
        for (unsigned j = 0; j < p->f.n; j++)
            multiply_element(p, i, j);
    fesetround(FE_TONEAREST);
}

/* Integers and f64 exactly. The others: NaN and infinity exactly, else within what single precision
 * loses over the sum, and the last place of the result's type. */
static inline bool fits(const problem *p, unsigned at, uint64_t got) {
    kind d = p->f.d;
    if (!is_float(d))
        return got == p->want[at];
    double want = double_of(p->want[at]), have = float_value(d, got);
    if (want != want || have != have)
        return want != want && have != have;
    if (d == F64)
        return got == p->want[at];
    double largest = d == F16 ? 65520 : 0x1.ffffffp127, unit = d == F16 ? 0x1p-11 : 0x1p-24;
    double least = d == F16 ? 0x1p-25 : 0x1p-150;
    if (fabs(want) >= largest)
        return have == (want > 0 ? INFINITY : -INFINITY);
    double bound = fabs(want) * unit + least + p->scale[at] * p->f.k * 0x1p-24;
    return fabs(have - want) <= bound;
}

static inline void check(session *s, const problem *p, unsigned i, unsigned j, uint64_t got,
                         const char *what) {
    s->compared++;
    if (!fits(p, i * p->f.n + j, got))
        fail_msg("%s: d[%u][%u] is %llx; expected %llx (floats: as a double)", what, i, j,
                 (unsigned long long)got, (unsigned long long)p->want[i * p->f.n + j]);
}

#endif
