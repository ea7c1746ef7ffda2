/* Guards: the tests of coordinates at a kernel's beginning that send threads home ("if (i >= n)
 * return;", or "if (i < n) { ... }" around all). Private to ir/structure. */
#ifndef IR_STRUCTURE_ANALYSES_GUARDS_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_GUARDS_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* One of several tests that all must let a thread stay. */
typedef struct ir_test {
    LLVMValueRef condition;
    bool leaves_if; /* the value of the condition with which the thread ends */
} ir_test;

enum { IR_MOST_GUARDS = 8, IR_MOST_TESTS = 32 };

typedef struct ir_guards {
    LLVMBasicBlockRef block[IR_MOST_GUARDS];   /* ends with a guard's branch */
    LLVMBasicBlockRef goes_on[IR_MOST_GUARDS]; /* where threads that stay go */
    uint32_t count;
    ir_test tests[IR_MOST_TESTS]; /* of all guards: "a or b" is two tests */
    uint32_t test_count;
} ir_guards;

/* Whether a value is the constant `bit`. */
bool ir_is_bit(LLVMValueRef value, bool bit);
/* Whether the condition has value `leaves_if` as soon as one of two others has, which come in
 * `parts`. */
bool ir_is_either(LLVMValueRef condition, bool leaves_if, LLVMValueRef parts[2]);
/* Lists the guards, in order. `arithmetic`: up to the first whose test is not made of arguments,
 * constants and places alone, such as one that reads memory. */
void ir_guards_find(const ir_flow *flow, bool arithmetic, ir_guards *out);
/* Makes the guards' branches unconditional; their conditions stay in the code. */
void ir_guards_open(const ir_guards *guards, LLVMBuilderRef builder);
/* Whether a value is computed from a seed: is_seed is by instruction of the flow. */
bool ir_depends_on(const ir_flow *flow, const bool *is_seed, LLVMValueRef value);

#endif
