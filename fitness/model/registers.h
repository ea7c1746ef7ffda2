/* Registers: how many a kernel needs, and what the GPU allocates for them. */
#ifndef FITNESS_MODEL_REGISTERS_H
#define FITNESS_MODEL_REGISTERS_H

#include "fitness/model/insns.h"
#include "fitness/model/model.h"

#include <stdint.h>

/* As model_live_registers, of a module that was read. */
uint32_t model_live_registers_of(const vm_module *module, const model_insns *insns,
                                 const vm_entry *entry);
/* What the GPU allocates for them. */
uint32_t model_given_registers(uint32_t live, uint32_t cap);

#endif
