/* Alive: the values that are still to be read at each end of a straight-line block. A value is a
 * number that the caller gives to registers; sets of values are bit sets. */
#ifndef FITNESS_MODEL_ALIVE_H
#define FITNESS_MODEL_ALIVE_H

#include "fitness/model/insns.h"

#include <stdbool.h>
#include <stdint.h>

#define ALIVE_NONE UINT16_MAX /* no value: the register is not looked at */

typedef struct alive_insn {
    uint32_t operands; /* index in model_alive.operands: uses, then defs */
    uint8_t use_count, def_count;
    bool ends;     /* its block ends here */
    bool falls;    /* the next instruction may follow */
    bool indirect; /* any block may follow */
    bool keeps;    /* under a predicate: what its results held before may live on */
    uint32_t target;
} alive_insn;

typedef struct alive_block {
    uint32_t first, end;
    uint32_t next[2]; /* UINT32_MAX: none */
} alive_block;

/* Of the `count` instructions from `first_pc` on; all indices count from there. */
typedef struct model_alive {
    const model_insns *read; /* borrowed */
    uint32_t first_pc, count;
    alive_insn *insns;
    uint16_t *operands; /* values */
    alive_block *blocks;
    uint32_t block_count;
    uint32_t set_words; /* 64-bit words of a set */
    uint64_t *live_in;  /* by block: alive at its begin */
    uint64_t *ends;     /* by block: what it writes at any rate before it reads it */
} model_alive;

/* `uses`, `defs`: by register, the value that a use or a definition of it is; NULL: its own number.
 * `values`: above all of them. False: out of memory; the caller frees *a in any case. */
bool model_alive_make(model_alive *a, const model_insns *read, uint32_t first_pc, uint32_t count,
                      const uint16_t *uses, const uint16_t *defs, uint32_t values) EV_CHECKED;
void model_alive_free(model_alive *a);
/* live = what is alive behind the block. */
void model_alive_out(const model_alive *a, uint32_t block, uint64_t *live);
/* From what is alive behind an instruction to what is alive before it. `ends`: as above; or NULL.
 */
void model_alive_step(const model_alive *a, const alive_insn *insn, uint64_t *live, uint64_t *ends);

static inline void set_add(uint64_t *set, uint32_t i) {
    set[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void set_remove(uint64_t *set, uint32_t i) {
    set[i / 64] &= ~(UINT64_C(1) << (i % 64));
}
static inline bool set_has(const uint64_t *set, uint32_t i) {
    return set[i / 64] >> (i % 64) & 1;
}
static inline void set_union(uint64_t *into, const uint64_t *from, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        into[i] |= from[i];
}

#endif
