/* Oracle: the trusted answer of a task, as a C function. This header needs nothing else of the
 * project. An oracle of your own is one C file that includes this header and defines
 * `evoke_oracle`.
 *
 * The caller may ask for any range of an output, so a kernel can be checked at shapes that are too
 * large to compute in full. Compute in double precision, with compensated sums where terms may
 * cancel. */
#ifndef KERNELS_EVOKE_ORACLE_H
#define KERNELS_EVOKE_ORACLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One argument of the kernel, in the task's order, as it was before the launch. */
typedef struct evoke_argument {
    const char *name;
    const char *type; /* "f32", "s32", "f16", ... */
    const void *data; /* buffers: the elements (of an `out` buffer: NULL); scalars: NULL. See
                         evoke_element */
    uint64_t count;   /* buffers: elements */
    double value;     /* scalars */
} evoke_argument;

typedef struct evoke_oracle_call {
    const evoke_argument *arguments; /* behind those of the kernel: the task's symbols, then
                                        the fields of structs in buffers, by BUFFER.FIELD */
    size_t argument_count;           /* all of them */
    const char *const *shape_names;  /* the case's shape */
    const double *shape_values;
    size_t shape_count;
    size_t output;  /* index of the argument to compute */
    uint64_t first; /* its elements first .. first + count - 1 */
    uint64_t count;
    double *value; /* [count], to be filled */
    double *scale; /* [count], preset to 0: the sum of |terms| of each element, if known */
    void *scratch; /* kept between calls on the same inputs; NULL at first; the oracle allocates it
                      with malloc, the caller frees it with free */
} evoke_oracle_call;

/* 0: done; anything else: the oracle could not answer. */
typedef int evoke_oracle_fn(evoke_oracle_call *call);

/* The value of a 16-bit float's bits; exact. */
static inline double evoke_f16(uint16_t bits) {
    /* Shifted to the fraction of an f32, the exponent is 112 too small: 2^112 corrects it,
     * subnormal numbers too. */
    uint32_t wide = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
    float value;
    if ((bits & 0x7c00) == 0x7c00) {
        wide |= 0x7f800000 | sign;
        memcpy(&value, &wide, sizeof value);
        return (double)value;
    }
    memcpy(&value, &wide, sizeof value);
    return (sign != 0 ? -0x1p112 : 0x1p112) * (double)value;
}

static inline double evoke_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* Element `index` of a buffer as a double, whatever its type: 16-bit floats are in memory as their
 * bits (f16: IEEE binary16; bf16: the upper half of an f32), and C has no portable type for them.
 * Whole numbers beyond 2^53 are rounded. A scalar, or a buffer without data: NaN. */
static inline double evoke_element(const evoke_argument *a, uint64_t index) {
    const char *type = a->type;
    if (a->data == NULL)
        return (double)NAN;
    if (type[0] == 'b')
        return evoke_bf16(((const uint16_t *)a->data)[index]);
    if (type[0] == 'f') {
        if (type[1] == '3')
            return (double)((const float *)a->data)[index];
        return type[1] == '1' ? evoke_f16(((const uint16_t *)a->data)[index])
                              : ((const double *)a->data)[index];
    }
    switch ((type[0] == 's' ? 100 : 0) + type[1]) { /* "8", "16", "32", "64" */
    case '8':
        return ((const uint8_t *)a->data)[index];
    case '1':
        return ((const uint16_t *)a->data)[index];
    case '3':
        return ((const uint32_t *)a->data)[index];
    case '6':
        return (double)((const uint64_t *)a->data)[index];
    case 100 + '8':
        return ((const int8_t *)a->data)[index];
    case 100 + '1':
        return ((const int16_t *)a->data)[index];
    case 100 + '3':
        return ((const int32_t *)a->data)[index];
    default:
        return (double)((const int64_t *)a->data)[index];
    }
}

#endif
