/* Ranges of the element types: largest values and exponents. */
#ifndef BASE_TYPE_RANGE_H
#define BASE_TYPE_RANGE_H

#include "base/type.h"

/* The largest finite value: 65504 for f16, 255 for u8. That of 64-bit integers is rounded. */
double ev_type_largest(ev_type type);
/* Exponents of a float's smallest and largest normal numbers: -14 and 15 for f16, -126 and 127 for
 * bf16 and f32. */
int ev_type_least_exponent(ev_type type);
int ev_type_most_exponent(ev_type type);

#endif
