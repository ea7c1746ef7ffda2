/* Element types of kernel arguments: one table (base/types.def) gives name, size and C meaning. */
#ifndef BASE_TYPE_H
#define BASE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ev_type {
#define EV_TYPE(id, name, bytes, is_float, is_signed) EV_##id,
#include "base/types.def"
#undef EV_TYPE
    EV_TYPE_COUNT
} ev_type;

const char *ev_type_name(ev_type type);
size_t ev_type_bytes(ev_type type);
bool ev_type_is_float(ev_type type);
bool ev_type_is_signed(ev_type type);              /* floats are */
bool ev_type_find(const char *name, ev_type *out); /* false: no such type */

/* Element `index` of an array of `type`, as a double (f16 and bf16 widened; u64 rounded). */
double ev_type_get(ev_type type, const void *array, size_t index);
/* Stores `value`, rounded once to nearest even. Overflow gives infinity for floats and the largest
 * (least) value for integers. NaN gives 0 for integers. */
void ev_type_set(ev_type type, void *array, size_t index, double value);
/* One unit in the last place at |value|; 1 for integers, NaN for NaN. Above the largest finite
 * value it is the unit of that value, below the smallest normal the unit of the subnormals. */
double ev_type_ulp(ev_type type, double value);

#endif
