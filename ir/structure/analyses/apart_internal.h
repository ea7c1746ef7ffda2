/* Apart: whether the turns of a loop write to places of their own, so that several threads may make
 * them. Private to ir/structure.
 *
 * A place is told by its address: a sum with the loop's counter times a number, and nothing else of
 * the turn. Guessed, and tried by the gates: the counter of a loop inside stays below what the
 * turns are apart; two places that differ by arguments and indices are different; a step that is
 * computed of these is not 0. Arguments and indices vary from case to case. What hides behind a
 * condition, a choice or a load does not, so nothing is guessed of those. */
#ifndef IR_STRUCTURE_ANALYSES_APART_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_APART_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* Whether two bases are one: one value, or one field of a struct that is passed by value. */
bool ir_is_one_base(LLVMModuleRef module, LLVMValueRef a, LLVMValueRef b);
/* Whether the loop's stores go elsewhere in each turn, and what a turn loads from their arrays is
 * what the turn stores to. Atomics that may change places happen as often as before. */
bool ir_turns_are_apart(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop);
/* Whether each turn accesses one place every time that the loop `around` runs the loop again, or
 * places beyond those of all turns of the other times. */
bool ir_turns_stay(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                   const ir_loop *around, LLVMValueRef access);
/* Whether accesses in two loops that count alike are to one place in the turns of one number, and
 * to different ones in others. So one thread does both, if the loops' turns are spread alike. */
bool ir_turns_are_alike(LLVMModuleRef module, const ir_flow *flow, const ir_loop *a,
                        LLVMValueRef in_a, const ir_loop *b, LLVMValueRef in_b);
/* Whether no turn of the loop meets a place that is accessed elsewhere: the first turn, whose
 * number is a constant, is beyond, and the others are further away. guesses: so it is as well where
 * arguments, indices and counters tell the places apart, as the gates would see. */
bool ir_turns_are_beyond(LLVMModuleRef module, const ir_flow *flow, const ir_loop *loop,
                         LLVMValueRef in_loop, LLVMValueRef elsewhere, bool guesses);

#endif
