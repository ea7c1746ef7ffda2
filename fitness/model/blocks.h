/* Blocks: the straight lines of the code, and what must keep its order in each. */
#ifndef FITNESS_MODEL_BLOCKS_H
#define FITNESS_MODEL_BLOCKS_H

#include "base/status.h"
#include "fitness/ptx/module.h"

#include <stdbool.h>
#include <stdint.h>

#define MODEL_WINDOW_MOST 64

typedef struct model_insns model_insns; /* insns.h */

/* Bit d - 1: the instruction d before or behind. */
typedef struct model_link {
    uint64_t before; /* must come before it */
    uint64_t after;  /* must come after it */
    uint64_t feeds;  /* likewise, and reads what it writes */
} model_link;

typedef struct model_blocks {
    uint32_t *block_end; /* by pc: where a block begins, the pc after its last; elsewhere 0 */
    uint32_t *next;      /* by pc: where the block after its own begins */
    model_link *links;   /* by pc */
} model_blocks;

/* False: out of memory; what is there is freed with the rest. */
bool model_blocks_make(const vm_module *module, const model_insns *insns,
                       model_blocks *out) EV_CHECKED;
void model_blocks_free(model_blocks *blocks);

#endif
