/* Turns: what the edits share that give a loop a copy before it which does several turns at a time:
 * turns.c writes the turns one after the other, jam_turns.c side by side. Private to ir/structure.
 */
#ifndef IR_STRUCTURE_TURNS_INTERNAL_H
#define IR_STRUCTURE_TURNS_INTERNAL_H

#include "ir/structure/structure_internal.h"

enum { IR_MOST_TURNS = 16 };

typedef struct ir_turns {
    ir_structure *s;
    ir_flow flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    uint32_t turns;
    LLVMBasicBlockRef *blocks; /* by block, the copy that is being written */
    LLVMValueRef *values;      /* by instruction, its value in that copy */
    LLVMValueRef full;         /* turns of the main loop times `turns`, in the induction's type */
    LLVMValueRef bound;        /* where the main loop's induction ends */
} ir_turns;

/* Writes the turns of the main loop. `top`: its header, whose PHIs are the header's `values`. Sets
 * *begin to the turns' first block and `values` to those of the last turn; the copy of the latch
 * leads to `top`. EV_BAD, with the reason: the turns cannot be written so. */
typedef ev_status ir_turns_writer(ir_turns *t, LLVMBasicBlockRef top, LLVMBasicBlockRef *begin,
                                  ev_error *err);
ir_turns_writer ir_turns_write_jammed EV_CHECKED;

/* Whether it is a PHI of the loop's header. */
bool ir_turns_is_phi(const ir_turns *t, uint32_t insn);
/* Whether it is the branch at the end of the loop's header, which no turn has. */
bool ir_turns_is_test(const ir_turns *t, uint32_t insn);
/* The constant that a PHI of the loop's header grows by each turn; 0: it does not. */
int64_t ir_turns_count_step(const ir_turns *t, LLVMValueRef phi);
/* The block in the loop that its header's branch leads to. */
uint32_t ir_turns_first(const ir_turns *t);
/* Gives each block of the loop an empty copy. */
void ir_turns_make_blocks(ir_turns *t);

#endif
