/* Instructions: the properties of each instruction that the model needs, independent of the GPU.
 * pcs are indices in the module; the module is borrowed and must outlive the tables. EV_INFRA: out
 * of memory. */
#ifndef FITNESS_MODEL_INSNS_H
#define FITNESS_MODEL_INSNS_H

#include "fitness/model/blocks.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether a mnemonic begins with `prefix`. Called some ten times for each instruction; most calls
 * end at the first characters. */
static inline bool model_starts_with(const char *text, const char *prefix) {
    while (*prefix != '\0' && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == '\0';
}

/* Whether a mnemonic of `length` characters begins with `first` and ends with `last`, as in
 * costs.def. */
static inline bool model_name_fits(const char *name, size_t length, const char *first,
                                   size_t first_length, const char *last, size_t last_length) {
    return first_length + last_length <= length && memcmp(name, first, first_length) == 0 &&
           memcmp(name + length - last_length, last, last_length) == 0;
}

/* Properties that follow from the mnemonic. */
enum {
    MODEL_MOVES = 1,
    MODEL_IS_PARAMETER = 2, /* a load of a parameter */
    MODEL_CONVERTS_ADDRESS = 4,
    MODEL_CALLS = 8,
    MODEL_JUMPS_ANYWHERE = 16,
    MODEL_ADDS = 32,         /* of two integers */
    MODEL_NARROWS = 64,      /* the lower half of the result depends only on the lower halves
                                of the operands */
    MODEL_TAKES_LOW = 128,   /* the result is the lower half of the operand */
    MODEL_EXTENDS = 256,     /* extends with zeros */
    MODEL_BYPASSES_L1 = 512, /* a load that bypasses the L1 */
    MODEL_IS_ORDERED = 1024, /* volatile, or with a memory order */
    MODEL_IS_CONSTANT = 2048,
    MODEL_ARRIVES = 4096, /* arrives at a barrier and does not wait */
};

enum { MODEL_SPACE_GLOBAL = 1, MODEL_SPACE_SHARED = 2, MODEL_SPACE_LOCAL = 4, MODEL_SPACE_ALL = 7 };

typedef struct model_cost {
    const char *first, *last;
    size_t first_length, last_length;
    double slots, own, special, latency;
} model_cost;

typedef struct model_name {
    const char *text;
    const model_cost *cost;
    uint32_t traits;
    uint32_t fuses_first, fuses_into; /* rows of costs.def that it may be the first or the second
                                         instruction of, a bit each */
} model_name;

typedef struct model_insn {
    uint32_t operands; /* index in model_insns.operands: uses, then defs */
    uint32_t target;   /* pc of a branch or a function; UINT32_MAX: none */
    uint32_t name;     /* index in model_insns.names */
    uint32_t traits;
    uint32_t guard; /* pc of the branch that predicates it, plus 1 (blocks.c); 0: none */
    uint8_t use_count, def_count;
    uint8_t pipe, kind; /* vm_pipe, row_kind */
    uint8_t space;      /* vm_space */
    uint8_t access_bytes;
    uint8_t joins;         /* as of vm_insn_info */
    uint8_t reads, writes; /* MODEL_SPACE_*: spaces that it may read or write, in order with
                              other accesses */
    bool is_access, is_branch, is_exit, is_conditional, ends_block;
    bool is_fused; /* one machine instruction with the one that makes one of its operands */
    bool is_guard; /* a branch for which the assembler predicates what it skips */
} model_insn;

struct model_insns {
    model_insn *insns; /* [count], by pc */
    uint32_t count;
    const uint16_t *operands; /* borrowed from the module */
    uint32_t operand_count, register_count;
    model_name *names;
    uint32_t name_count;
    model_blocks blocks;
};

ev_status model_insns_make(const vm_module *module, model_insns *out, ev_error *err) EV_CHECKED;
void model_insns_free(model_insns *insns);
/* copies.c: makes instructions of the moves that the assembler cannot leave out. False: out of
 * memory. */
bool model_copies_keep(const vm_module *module, model_insns *insns) EV_CHECKED;

#endif
