/* What instructions choose between: shared by the build that notes arms and by the judge of edits.
 * Private to ir/. */
#ifndef IR_ARMS_INTERNAL_H
#define IR_ARMS_INTERNAL_H

#include "ir/internal.h"

/* Flags of an instruction, by number: its first and its second arm, and, at the last instruction of
 * a block, whether the block ran. */
enum { IR_ARM_FIRST, IR_ARM_SECOND, IR_ARM_RAN, IR_ARM_COUNT = 4 };

typedef enum ir_guard {
    IR_GUARD_NONE,
    IR_GUARD_BRANCH,  /* the condition is true, false */
    IR_GUARD_SELECT,  /* the same */
    IR_GUARD_COMPARE, /* the same of its result */
    IR_GUARD_ORDER,   /* a minimum or maximum: the first operand is less, greater */
} ir_guard;

/* What the instruction is; vectors are no guards. */
ir_guard ir_guard_of(LLVMValueRef insn);
/* Of IR_GUARD_ORDER: compares as signed whole numbers, else as unsigned ones; or floats. */
typedef enum ir_order { IR_ORDER_SIGNED, IR_ORDER_UNSIGNED, IR_ORDER_FLOAT } ir_order;
ir_order ir_order_of(LLVMValueRef insn);

#endif
