/* Blocks: finds the straight-line stretches of the code, and the dependences between the
 * instructions of each (schedule.c reorders by these). What the assembler predicates is part of a
 * block. pcs are indices of instructions in the module. */
#ifndef FITNESS_MODEL_BLOCKS_H
#define FITNESS_MODEL_BLOCKS_H

#include "base/status.h"
#include "fitness/ptx/module.h"

#include <stdbool.h>
#include <stdint.h>

#define MODEL_WINDOW_MOST 64

typedef struct model_insns model_insns; /* insns.h */

/* Dependences of one instruction. Bit d - 1 stands for the instruction d places before it
 * (`before`) or behind it (`after`, `feeds`). */
typedef struct model_link {
    uint64_t before; /* instructions that must stay before it */
    uint64_t after;  /* instructions that must stay after it */
    uint64_t feeds;  /* those of `after` that read its result */
} model_link;

typedef struct model_blocks {
    uint32_t *block_end; /* by pc: at the first instruction of a block, the pc after its last;
                            elsewhere 0 */
    uint32_t *next;      /* by pc: first instruction of the next block */
    model_link *links;   /* by pc */
} model_blocks;

/* Marks what is predicated, too. False: out of memory; the caller frees *out with model_blocks_free
 * in any case. */
bool model_blocks_make(const vm_module *module, model_insns *insns, model_blocks *out) EV_CHECKED;
void model_blocks_free(model_blocks *blocks);

#endif
