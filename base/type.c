/* Element types: conversions between doubles and what the arrays of a kernel hold. */
#include "base/type_range.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct type_row {
    const char *name;
    unsigned char bytes;
    bool is_float;
    bool is_signed;
} type_row;

static const type_row TYPES[] = {
#define EV_TYPE(id, name, bytes, is_float, is_signed) {name, bytes, is_float, is_signed},
#include "base/types.def"
#undef EV_TYPE
};

_Static_assert(sizeof TYPES / sizeof TYPES[0] == EV_TYPE_COUNT, "one row a type");

/* An IEEE 754 binary format, by the widths of its fields. */
typedef struct float_format {
    int exponent_bits;
    int fraction_bits;
} float_format;

static const float_format FORMAT_F16 = {5, 10};
static const float_format FORMAT_BF16 = {8, 7};
static const float_format FORMAT_F32 = {8, 23};
static const float_format FORMAT_F64 = {11, 52};

const char *ev_type_name(ev_type type) {
    assert((unsigned)type < EV_TYPE_COUNT);
    return TYPES[type].name;
}

size_t ev_type_bytes(ev_type type) {
    assert((unsigned)type < EV_TYPE_COUNT);
    return TYPES[type].bytes;
}

bool ev_type_is_float(ev_type type) {
    assert((unsigned)type < EV_TYPE_COUNT);
    return TYPES[type].is_float;
}

bool ev_type_is_signed(ev_type type) {
    assert((unsigned)type < EV_TYPE_COUNT);
    return TYPES[type].is_signed;
}

bool ev_type_find(const char *name, ev_type *out) {
    for (int i = 0; i < EV_TYPE_COUNT; i++) {
        if (strcmp(TYPES[i].name, name) == 0) {
            *out = (ev_type)i;
            return true;
        }
    }
    return false;
}

/* The smallest normal exponent of a format: -14 for f16, -126 for bf16 and f32. */
static int format_least_exponent(float_format format) {
    return 2 - (1 << (format.exponent_bits - 1));
}

static uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A 16-bit float as a double; exact. */
static double widen16(uint16_t bits, float_format format) {
    int fraction_bits = format.fraction_bits;
    uint64_t sign = (uint64_t)(bits >> 15) << 63;
    int exponent = (bits & 0x7fff) >> fraction_bits;
    uint64_t fraction = bits & ((1u << fraction_bits) - 1u);
    if (exponent == (1 << format.exponent_bits) - 1)
        return double_of_bits(sign | 0x7ffu * (UINT64_C(1) << 52) |
                              fraction << (52 - fraction_bits));
    if (exponent == 0) {
        double size = ldexp((double)fraction, format_least_exponent(format) - fraction_bits);
        return sign ? -size : size;
    }
    uint64_t biased = (uint64_t)exponent + (uint64_t)(format_least_exponent(format) + 1022);
    return double_of_bits(sign | biased << 52 | fraction << (52 - fraction_bits));
}

/* A double as a 16-bit float: rounded once, to nearest even; too large becomes infinity. The
 * significand, hidden bit included, is added to the exponent field, so that a carry out of the
 * rounding moves to the next exponent by itself. */
static uint16_t narrow16(double value, float_format format) {
    uint64_t bits = bits_of_double(value);
    int fraction_bits = format.fraction_bits;
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    uint32_t infinity = ((1u << format.exponent_bits) - 1u) << fraction_bits;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));
    int least = format_least_exponent(format);
    if (exponent > 1 - least)
        return (uint16_t)(sign | infinity);
    int shift = 52 - fraction_bits;
    if (exponent < least) {
        shift += least - exponent;
        exponent = least;
    }
    if (shift > 53)
        return (uint16_t)sign; /* below half of the smallest subnormal */
    uint64_t kept = significand >> shift;
    uint64_t rest = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1u)))
        kept++;
    uint32_t size = ((uint32_t)(exponent - least) << fraction_bits) + (uint32_t)kept;
    return (uint16_t)(sign | (size > infinity ? infinity : size));
}

static double integer_get(ev_type type, const unsigned char *at) {
    bool is_signed = TYPES[type].is_signed;
    uint64_t raw = 0;
    size_t bytes = TYPES[type].bytes;
    memcpy(&raw, at, bytes); /* little-endian, as every target of CUDA is */
    if (!is_signed)
        return (double)raw;
    unsigned unused = 64u - 8u * (unsigned)bytes;
    return (double)((int64_t)(raw << unused) >> unused);
}

double ev_type_get(ev_type type, const void *array, size_t index) {
    const unsigned char *at = (const unsigned char *)array + index * ev_type_bytes(type);
    uint16_t half = 0;
    float single = 0;
    double value = 0;
    switch (type) {
    case EV_F16:
        memcpy(&half, at, sizeof half);
        return widen16(half, FORMAT_F16);
    case EV_BF16:
        memcpy(&half, at, sizeof half);
        return widen16(half, FORMAT_BF16);
    case EV_F32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    case EV_F64:
        memcpy(&value, at, sizeof value);
        return value;
    default:
        return integer_get(type, at);
    }
}

static void integer_set(ev_type type, unsigned char *at, double value) {
    size_t bytes = TYPES[type].bytes;
    int bits = (int)bytes * 8 - (TYPES[type].is_signed ? 1 : 0);
    double above = ldexp(1, bits); /* one more than the largest */
    double least = TYPES[type].is_signed ? -above : 0;
    double rounded = rint(value);
    uint64_t raw = 0;
    if (rounded >= above)
        raw = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    else if (rounded <= least)
        raw = TYPES[type].is_signed ? (uint64_t)1 << bits : 0;
    else if (rounded >= 0)
        raw = (uint64_t)rounded;
    else if (rounded < 0)
        raw = (uint64_t)(int64_t)rounded; /* NaN falls through to 0 */
    memcpy(at, &raw, bytes);
}

void ev_type_set(ev_type type, void *array, size_t index, double value) {
    unsigned char *at = (unsigned char *)array + index * ev_type_bytes(type);
    uint16_t half = 0;
    float single = 0;
    switch (type) {
    case EV_F16:
        half = narrow16(value, FORMAT_F16);
        memcpy(at, &half, sizeof half);
        return;
    case EV_BF16:
        half = narrow16(value, FORMAT_BF16);
        memcpy(at, &half, sizeof half);
        return;
    case EV_F32:
        single = (float)value;
        memcpy(at, &single, sizeof single);
        return;
    case EV_F64:
        memcpy(at, &value, sizeof value);
        return;
    default:
        integer_set(type, at, value);
        return;
    }
}

static float_format type_format(ev_type type) {
    switch (type) {
    case EV_F16:
        return FORMAT_F16;
    case EV_BF16:
        return FORMAT_BF16;
    case EV_F32:
        return FORMAT_F32;
    default:
        return FORMAT_F64;
    }
}

double ev_type_ulp(ev_type type, double value) {
    if (!ev_type_is_float(type))
        return 1;
    if (isnan(value))
        return value;
    float_format format = type_format(type);
    int least = format_least_exponent(format);
    int exponent = least;
    if (isinf(value))
        exponent = 1 - least;
    else if (value != 0)
        exponent = ilogb(value);
    if (exponent < least)
        exponent = least;
    if (exponent > 1 - least)
        exponent = 1 - least;
    return ldexp(1, exponent - format.fraction_bits);
}

int ev_type_least_exponent(ev_type type) {
    assert(ev_type_is_float(type));
    return format_least_exponent(type_format(type));
}

int ev_type_most_exponent(ev_type type) {
    return 1 - ev_type_least_exponent(type);
}

double ev_type_largest(ev_type type) {
    if (ev_type_is_float(type))
        return ldexp(2 - ldexp(1, -type_format(type).fraction_bits), ev_type_most_exponent(type));
    int bits = (int)TYPES[type].bytes * 8 - (TYPES[type].is_signed ? 1 : 0);
    return ldexp(1, bits) - 1;
}
