/* Facts: what holds in a block because of the branches that lead there. Private to ir/structure.
 *
 * A comparison of whole numbers is a sum that is below 0, or equals 0, or does not: "a < b" and "a
 * + 1 <= b" are one fact. Sums are numbered by polynomials, so the tests of jammed members and
 * unrolled turns can be compared. Any other condition is a value with its truth. */
#ifndef IR_STRUCTURE_ANALYSES_FACTS_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_FACTS_INTERNAL_H

#include "ir/structure/analyses/polynomials_internal.h"

typedef enum ir_fact_kind { IR_FACT_BELOW, IR_FACT_ZERO, IR_FACT_OTHER, IR_FACT_TRUE } ir_fact_kind;

typedef struct ir_fact {
    ir_fact_kind kind;
    ir_spot sum;        /* BELOW: under 0; ZERO: equal to 0; OTHER: not 0 */
    LLVMValueRef value; /* TRUE: the condition ... */
    bool truth;         /* ... and what it is */
} ir_fact;

enum { IR_MOST_FACTS = 48 };

/* Facts that hold together. */
typedef struct ir_facts {
    uint32_t count;
    bool is_full; /* some did not find room */
    ir_fact items[IR_MOST_FACTS];
} ir_facts;

/* The facts of a flow's blocks, kept once they have been asked for. */
typedef struct ir_facts_of ir_facts_of;

/* Borrows both, and the flow's arena. NULL: out of memory. */
ir_facts_of *ir_facts_new(const ir_flow *flow, ir_polynomials *sums);

/* Whether block `a` has run in the same turn of all loops around it whenever block `b` runs, by the
 * tests that lead to both. *fork: the block whose branch is the first that could pass `a` by; where
 * `a` dominates `b`, `a` itself. False also where memory has run out: ir_facts_failed tells. */
bool ir_facts_runs_before(ir_facts_of *facts, uint32_t a, uint32_t b, uint32_t *fork);
bool ir_facts_failed(const ir_facts_of *facts);

#endif
