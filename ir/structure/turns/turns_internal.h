/* Turns: edits that give a loop a copy before it which does several turns at a time. turns.c writes
 * the copy, by a plan that says what of a turn is its head. Private to ir/structure. */
#ifndef IR_STRUCTURE_TURNS_INTERNAL_H
#define IR_STRUCTURE_TURNS_INTERNAL_H

#include "ir/structure/structure_internal.h"

/* How an instruction differs among the turns. */
typedef enum ir_tie {
    IR_TIE_ALIKE,  /* it is the same in each turn */
    IR_TIE_OWN,    /* it differs with the turn's number */
    IR_TIE_CHAINED /* it takes what the turn before handed on */
} ir_tie;

typedef struct ir_turns {
    ir_structure *s;
    ir_flow flow;
    const ir_loop *loop;
    ir_loop own;       /* the loop as this edit sees it, where no constant is its step */
    LLVMValueRef step; /* of the induction, from outside the loop */
    LLVMBuilderRef builder;
    uint32_t turns;
    /* The first block of a turn's tail, which passes through it in any case; the tail is what it
     * dominates, and the head is the rest. Heads run side by side, and tails one after the other.
     */
    uint32_t tail;
    ir_tie *ties; /* by instruction; those of the head, and of the PHIs where the tail begins */
    LLVMBasicBlockRef *blocks; /* copies: [turn * blocks + block]; of the head one for all turns */
    LLVMValueRef *values;      /* copies: [turn * instructions + instruction] */
    LLVMValueRef *starts;      /* by PHI of the loop's header: what the loop itself begins with */
    LLVMValueRef full;         /* turns of the main loop times `turns`, in the induction's type */
    LLVMValueRef bound;        /* where the main loop's induction ends */
} ir_turns;

/* Sets `tail` and `ties`. EV_BAD, with the reason: the turns cannot run so. */
typedef ev_status ir_turns_plan(ir_turns *t, ev_error *err);
/* What the loops inside need is the head. */
ir_turns_plan ir_turns_plan_jam EV_CHECKED;

/* Whether it is a PHI of the loop's header. */
bool ir_turns_is_phi(const ir_turns *t, uint32_t insn);
/* Whether it is the branch at the end of the loop's header, which no turn has. */
bool ir_turns_is_test(const ir_turns *t, uint32_t insn);
bool ir_turns_in_loop(const ir_turns *t, uint32_t insn); /* false: IR_NONE, too */
bool ir_turns_in_head(const ir_turns *t, uint32_t insn);
/* Whether it is a PHI where the tail begins. It chooses among values of the head, and so stands
 * there for all turns. */
bool ir_turns_begins_tail(const ir_turns *t, uint32_t insn);
/* What a PHI of the loop's header grows by each turn: a constant or, in a loop whose own step is
 * none, a value from outside the loop; NULL: it does not count. */
LLVMValueRef ir_turns_growth(const ir_turns *t, LLVMValueRef phi);

#endif
