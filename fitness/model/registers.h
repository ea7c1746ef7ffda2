/* Registers: estimates the registers a thread of a kernel needs, and those that the GPU allocates.
 * The counts are of 32-bit registers. */
#ifndef FITNESS_MODEL_REGISTERS_H
#define FITNESS_MODEL_REGISTERS_H

#include "fitness/model/insns.h"
#include "fitness/model/model.h"
#include "fitness/model/rows.h"
#include "fitness/model/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct model_need {
    uint32_t wanted; /* that the assembler takes where nothing bounds it */
    uint32_t least;  /* that it can do with, without spills; at most `wanted` */
} model_need;

/* Of a module that is read already. Zeros: out of memory. */
model_need model_registers_needed(const vm_module *module, const model_insns *insns,
                                  const vm_entry *entry);
/* Where the blocks of `schedule` need more than `given` registers, and more than leave every warp a
 * place on an SM, loads move less far ahead: the window of such a block is the longest in which the
 * registers suffice, or the one that needs the fewest. `options`, `rows`: those that made the
 * schedule. EV_INFRA: out of memory. */
ev_status model_registers_fit(const vm_module *module, const model_insns *insns,
                              const vm_entry *entry, uint32_t given,
                              const model_schedule_options *options, const model_rows *rows,
                              model_schedule *schedule, ev_error *err) EV_CHECKED;
/* The registers that the GPU allocates for `live` ones, at most `cap`. */
uint32_t model_given_registers(uint32_t live, uint32_t cap);

/* ---- pressure.c: an order of a straight-line block in which few registers are alive ---- */

typedef struct pressure_step {
    const uint16_t *operands; /* registers: uses, then defs; borrowed */
    uint8_t use_count, def_count;
    uint8_t reads, writes; /* MODEL_SPACE_* */
    bool cuts;             /* nothing moves across */
    bool hurries;          /* goes as early as it can */
} pressure_step;

typedef struct model_pressure model_pressure;

/* Room for `count` steps with `operands` operands, of `registers` registers; NULL: out of memory.
 * `words`: each register's weight; borrowed. */
model_pressure *model_pressure_new(uint32_t count, uint32_t operands, uint32_t registers,
                                   const uint8_t *words);
void model_pressure_free(model_pressure *p); /* NULL is fine */
/* Writes the order of the steps [first, end), one block, to order[first..end). `live`: bit set of
 * the registers alive behind it. */
void model_pressure_order(model_pressure *p, const pressure_step *steps, uint32_t first,
                          uint32_t end, const uint64_t *live, uint32_t *order);

/* ---- values.c: the cost of each PTX register in the register file ---- */

typedef struct model_values {
    uint8_t *words; /* 32-bit registers; 0: none of its own */
    uint16_t *home; /* the register that holds its value, mostly itself */
} model_values;

/* Of the `count` instructions from `first_pc` on, which are one entry's. */
ev_status model_values_make(const vm_module *module, const model_insns *insns, uint32_t first_pc,
                            uint32_t count, model_values *out, ev_error *err) EV_CHECKED;
void model_values_free(model_values *values);

#endif
