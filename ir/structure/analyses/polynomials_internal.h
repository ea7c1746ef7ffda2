/* Polynomials: one number for all addresses that are equal but for a constant. Private to
 * ir/structure.
 *
 * An address is written as a sum of products: (row + 1) * width + column is row * width + width +
 * column. Two addresses of one sum are as far apart as their constants. LLVM's own passes compare
 * instructions, and so miss equal addresses that were computed in different ways, as jammed members
 * and unrolled turns do.
 *
 * A sum in a narrow type is widened term by term where its flags say that it does not wrap; else
 * the whole narrow sum is one factor. So equal sums are equal for all values for which the address
 * is no poison. */
#ifndef IR_STRUCTURE_ANALYSES_POLYNOMIALS_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_POLYNOMIALS_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

typedef struct ir_polynomials ir_polynomials;

/* Borrows the function's module and the arena. NULL: out of memory. */
ir_polynomials *ir_polynomials_new(LLVMModuleRef module, ev_arena *arena);

/* An address: the number of its sum without the constant, counted from 0, and the constant, bytes.
 */
typedef struct ir_spot {
    uint32_t sum;
    int64_t constant;
} ir_spot;

/* The sum is IR_NONE where it has too many terms. False: out of memory. */
bool ir_polynomials_spot(ir_polynomials *sums, LLVMValueRef pointer, ir_spot *out);
/* left - right, of integers of one type with at most 32 bits, read with their signs or without. The
 * difference is a whole number, as nothing wraps. The sum is IR_NONE where there is none to tell.
 * False: out of memory. */
bool ir_polynomials_difference(ir_polynomials *sums, LLVMValueRef left, LLVMValueRef right,
                               bool is_signed, ir_spot *out);
/* Whether a whole number (ir_polynomials_difference) is at most another one, whatever the values of
 * their terms are: what one has beside the other is known not to be negative. */
bool ir_polynomials_at_most(const ir_polynomials *sums, const ir_spot *a, const ir_spot *b);
/* The numbers given so far: all are below. */
uint32_t ir_polynomials_count(const ir_polynomials *sums);

#endif
