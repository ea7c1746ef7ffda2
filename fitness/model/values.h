/* Values: the cost of each PTX register in the register file. */
#ifndef FITNESS_MODEL_VALUES_H
#define FITNESS_MODEL_VALUES_H

#include "fitness/model/insns.h"

#include <stdint.h>

typedef struct model_values {
    uint8_t *words; /* 32-bit registers; 0: none of its own */
    uint16_t *home; /* the register that holds its value, mostly itself */
} model_values;

/* Of the `count` instructions from `first_pc` on, which are one entry's. */
ev_status model_values_make(const vm_module *module, const model_insns *insns, uint32_t first_pc,
                            uint32_t count, model_values *out, ev_error *err) EV_CHECKED;
void model_values_free(model_values *values);

#endif
