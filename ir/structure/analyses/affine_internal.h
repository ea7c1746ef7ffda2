/* Affine: values and addresses as sums of coefficient times variable. Private to ir/structure.
 *
 * A form is a constant plus terms. The variables are special registers, arguments, induction
 * variables and every value that is no sum, product with a constant, or shift: all are SSA values,
 * and a caller asks what one is. Sign extensions are looked through where LLVM knows that the
 * narrow sum does not wrap (nsw), and zero extensions where the value is known not to be negative.
 * A product of two variables is a variable of its own. */
#ifndef IR_STRUCTURE_ANALYSES_AFFINE_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_AFFINE_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

enum { IR_AFFINE_TERMS = 12 };

typedef struct ir_term {
    LLVMValueRef value;
    int64_t factor; /* not 0 */
} ir_term;

typedef struct ir_affine {
    int64_t constant;
    ir_term terms[IR_AFFINE_TERMS]; /* each value once, in the order of their discovery */
    uint32_t count;
} ir_affine;

/* The form of a whole number. A form with too many terms is the value itself, times one. */
ir_affine ir_affine_of(LLVMValueRef value);
/* The form of a condition `a predicate b` as a - b; false: no comparison of whole numbers. */
bool ir_affine_of_condition(LLVMValueRef condition, ir_affine *out, LLVMIntPredicate *predicate);
/* The form of a pointer in bytes behind *base: an argument, a global, or any other pointer. */
ir_affine ir_affine_of_address(LLVMModuleRef module, LLVMValueRef pointer, LLVMValueRef *base);
/* Whether launches may pass one buffer for two arguments: the task says so. */
bool ir_may_overlap(LLVMValueRef a, LLVMValueRef b);
/* Whether two loads or stores go to different arguments. Guessed by all who ask: no two arguments
 * overlap of which the task does not say so. */
bool ir_affine_apart(LLVMModuleRef module, LLVMValueRef a, LLVMValueRef b);
/* The factor of a value; 0: it has no term. */
int64_t ir_affine_factor(const ir_affine *form, LLVMValueRef value);
/* a + factor * b; false: too many terms, or a number over 64 bits. */
bool ir_affine_add(ir_affine *a, const ir_affine *b, int64_t factor);

#endif
