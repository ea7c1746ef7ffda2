/* Pressure: an order of a straight-line block in which few registers are alive at once. */
#ifndef FITNESS_MODEL_PRESSURE_H
#define FITNESS_MODEL_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct model_step {
    const uint16_t *operands; /* registers: uses, then defs; borrowed */
    uint8_t use_count, def_count;
    uint8_t reads, writes; /* MODEL_SPACE_* */
    bool cuts;             /* nothing moves across */
    bool hurries;          /* goes as early as it can */
} model_step;

typedef struct model_pressure model_pressure;

/* Room for `count` steps with `operands` operands, of `registers` registers; NULL: out of memory.
 * `words`: each register's weight; borrowed. */
model_pressure *model_pressure_new(uint32_t count, uint32_t operands, uint32_t registers,
                                   const uint8_t *words);
void model_pressure_free(model_pressure *p); /* NULL is fine */
/* Writes the order of the steps [first, end), one block, to order[first..end). `live`: bit set of
 * the registers alive behind it. */
void model_pressure_order(model_pressure *p, const model_step *steps, uint32_t first, uint32_t end,
                          const uint64_t *live, uint32_t *order);

#endif
