/* Registers: estimates the registers a thread of a kernel needs, and those that the GPU allocates.
 * The counts are of 32-bit registers. */
#ifndef FITNESS_MODEL_REGISTERS_H
#define FITNESS_MODEL_REGISTERS_H

#include "fitness/model/insns.h"
#include "fitness/model/model.h"

#include <stdint.h>

typedef struct model_need {
    uint32_t wanted; /* that the assembler takes where nothing bounds it */
    uint32_t least;  /* that it can do with, without spills; at most `wanted` */
} model_need;

/* Of a module that is read already. Zeros: out of memory. */
model_need model_registers_needed(const vm_module *module, const model_insns *insns,
                                  const vm_entry *entry);
/* The most that a thread of the entry may have in blocks of so many threads: model_register_cap,
 * and what leaves room for one block. */
uint32_t model_block_cap(const vm_entry *entry, uint64_t threads);
/* As model_live_registers, for a module that is read already. */
uint32_t model_live_registers_of(const vm_module *module, const model_insns *insns,
                                 const vm_entry *entry);
/* The registers that the GPU allocates for `live` ones, at most `cap`. */
uint32_t model_given_registers(uint32_t live, uint32_t cap);

#endif
