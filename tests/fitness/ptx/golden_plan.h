/* Plans: what a golden instruction becomes on a device: a module that loads the registers of each
 * lane from a buffer, executes, and stores them; its launches, its input, what has to come out. */
#ifndef TESTS_FITNESS_PTX_GOLDEN_PLAN_H
#define TESTS_FITNESS_PTX_GOLDEN_PLAN_H

#include "tests/fitness/ptx/golden_parse.h"

#define GOLDEN_REGISTERS (2 * GOLDEN_OPERANDS)
#define GOLDEN_SLOT 8 /* bytes a register takes in the buffers */

/* One register of an instruction's cases: what is loaded, what is compared. */
typedef struct golden_slot {
    const char *name;
    uint8_t bits;
    const golden_operand *in, *out; /* of the instruction's first case; NULL: not there */
} golden_slot;

/* A launch: lanes, and where each finds its values. */
typedef struct golden_plan {
    const golden_insn *insn;
    const golden_case *first; /* its shape, trap and memory */
    size_t cases;             /* > 1, or an unshaped one: a case a lane */
    bool by_case;
    bool guarded; /* odd lanes are switched off */
    unsigned isa; /* the executor, where the caller tells them apart */
    size_t lanes;
    golden_slot slots[GOLDEN_REGISTERS];
    size_t slot_count;
} golden_plan;

/* The parameters of a plan's kernel, as they lie in memory. */
typedef struct golden_params {
    uint64_t input, output, memory;
    uint8_t bytes[16];
} golden_params;

/* Calls `each` for every plan of an instruction: its cases, those of single values together, and
 * these a second time with a guard that is false in every other lane. A plan whose lists or widths
 * do not fit each other comes with is_sound false. */
typedef void golden_plan_fn(void *context, golden_plan *plan, bool is_sound);
void golden_each_plan(const golden_insn *insn, golden_plan_fn *each, void *context);

/* The module, with the kernel `golden(input, output, memory, bytes)`. malloc'ed. */
char *golden_plan_text(const golden_plan *p);
/* The same as a device takes it: for the target sm_NN where the golden is for more than that and
 * does not name its own, with the least PTX version that it needs there. */
char *golden_plan_text_for(const golden_plan *p, int sm);
size_t golden_plan_bytes(const golden_plan *p); /* of the input, and of the output */
void golden_plan_fill(const golden_plan *p, uint8_t *to);
void golden_plan_shape(const golden_plan *p, uint32_t grid[3], uint32_t block[3]);
golden_params golden_plan_params(uint64_t input, uint64_t output, uint64_t memory);
/* Of the buffer `m`. */
size_t golden_memory_bytes(const golden_operand *o);
void golden_memory_fill(const golden_operand *o, uint8_t *to);

const golden_case *golden_case_of(const golden_plan *p, size_t lane);
/* Of NVIDIA's assembler, by which a GPU may differ in this lane; NULL: none is known. */
const golden_fault *golden_fault_of(const golden_plan *p, size_t lane);
/* NULL: the case gives none. */
const golden_value *golden_value_of(const golden_plan *p, const golden_slot *s, size_t lane,
                                    bool after);
/* What a lane's register holds before. */
uint64_t golden_bits_before(const golden_plan *p, const golden_slot *s, size_t lane);
uint64_t golden_mask(unsigned bits);
bool golden_value_fits(const golden_value *v, uint64_t got);

#endif
